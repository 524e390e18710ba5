//! `spindle export`: a run for other programs. What each format holds is described in `docs/export.md`; a field that
//! goes away or changes its meaning there is a breaking change for readers.

mod csv;
mod openmetrics;
pub mod rows;

pub use csv::csv;
pub use openmetrics::openmetrics;
