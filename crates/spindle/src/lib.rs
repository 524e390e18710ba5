//! Spindle: runs the same database workload on every storage layout a person is considering, and says which is faster.
//! The program's own crate: from the experiment file to the plan ([`experiment`]), the run and its trials ([`run`],
//! [`trial`]), what the system says meanwhile ([`observe`]), what was found ([`result`]) and what people see of it
//! ([`table`], [`report`], [`cli`]). Beside a run: what it would do ([`plan`]), what the machine can do ([`doctor`]),
//! what dead runs left ([`clean`]). Meanwhile: a dashboard ([`watch`]). After it: showing a run ([`show`]), handing it
//! to other programs ([`export`]), comparing runs ([`compare`]) and finding them ([`mod@list`]). How files of runs are
//! opened and written ([`files`]), how anything is printed ([`say`]), and as what ([`plain_text`]).

// Tests make files as they like, and say why they are skipped.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod clean;
pub mod cli;
pub mod compare;
mod disk_group;
pub mod doctor;
pub mod experiment;
pub mod export;
pub mod files;
pub mod list;
pub mod observe;
pub mod plain_text;
pub mod plan;
pub mod power_cut;
pub mod report;
pub mod result;
pub mod run;
pub mod say;
pub mod show;
pub mod table;
pub mod trial;
pub mod watch;
