//! What a finished run looks like on paper: `report.html`, one page that opens offline, and `report.md` for a pull
//! request.
//!
//! Both are pure functions of a [`RunResult`](spindle_result::RunResult) and the sampled throughput; they ask neither
//! the clock nor the machine, so the same journal gives the same pages. The columns of the comparison table are
//! declared once, in [`comparison`], for the terminal too. Why the pages are made this way:
//! `docs/decisions/0004-report.md` and `docs/decisions/0024-the-page.md`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod brief;
mod bulk_load;
pub mod calibration_sheet;
mod capacity;
mod chart;
pub mod compare;
pub mod comparison;
pub mod cost;
mod costs;
mod device_limits;
mod diagram;
mod effects;
pub mod export;
pub mod facts;
pub mod headings;
pub mod history;
mod io_calls;
mod kinds;
mod load_curve;
mod markdown;
mod page;
mod pairs;
pub mod queries;
pub mod sentences;
pub mod show;
mod side_by_side;
pub mod table;
mod timeline;
mod times;

pub use markdown::markdown;
pub use page::{calibration_html, html};
