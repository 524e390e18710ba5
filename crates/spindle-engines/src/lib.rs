//! The databases under test, each behind the same face, [`engine::Engine`]: worked on by clients, counted, stopped. The
//! embedded one is `kernel`; those that speak SQL are a folder each, on what `sql` has in common for them.

pub mod engine;
mod error;
pub mod kernel;
mod mariadb;
mod postgres;
pub mod power_cut;
pub mod promise;
mod registry;
pub mod spec;
pub mod sql;
mod sqlite;

pub use error::{EngineError, ErrorKind};
