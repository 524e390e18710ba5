//! Spindle: runs the same database workload on every storage layout a person is considering, and says which is faster.
//! This crate is the program on top of all others: the command line ([`cli`]), how a run's progress is shown (lines, or
//! a dashboard: [`watch`]), the [`reports`] that are written of it. Beside a run: what it would do ([`plan`]), what the
//! machine can do ([`doctor`]), what dead runs left ([`clean`]), what power cuts leave ([`power_cut`]). After it:
//! finding runs ([`mod@list`]). Only this crate prints ([`say`]).

// Tests make files as they like, and say why they are skipped.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod ask;
mod calibration_sheet;
pub mod clean;
pub mod cli;
mod disk_group;
pub mod doctor;
pub mod examples;
pub mod explain;
pub mod import;
mod kept_limits;
pub mod list;
pub mod plan;
pub mod power_cut;
mod progress;
pub mod reports;
mod results_database;
pub mod say;
pub mod watch;
