//! The databases under test, each behind the same face: an [`engine::Engine`] is looked at, made, loaded, kept, put
//! back and started; an [`engine::RunningEngine`] is worked on by clients, counted and stopped. [`database`] has the
//! three kinds. The embedded one is `kernel`; those that speak SQL are a folder each, on what `sql` has in common for
//! them.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod database;
pub mod engine;
mod error;
pub mod kernel;
mod mariadb;
mod postgres;
pub mod power_cut;
pub mod promise;
mod registry;
pub mod sections;
pub mod spec;
pub mod sql;
mod sqlite;

pub use error::{Cause, EngineError, ErrorKind};
