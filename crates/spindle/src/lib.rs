//! Spindle: runs the same database workload on every storage layout a person is considering, and says which is faster.
//! The program's own crate: from the experiment file to the plan ([`experiment`]), the run and its trials ([`run`],
//! [`trial`]) and what the system says meanwhile ([`observe`]). What was found is `spindle-result`'s to say, and what
//! people see of it `spindle-report`'s; the command line is [`cli`]. Beside a run: what it would do ([`plan`]), what
//! the machine can do ([`doctor`]), what dead runs left ([`clean`]). Meanwhile: a dashboard ([`watch`]). After it:
//! finding runs ([`mod@list`]). How files of runs are opened and written ([`files`]), how anything is printed
//! ([`say`]).

// Tests make files as they like, and say why they are skipped.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod ask;
pub mod clean;
pub mod cli;
mod disk_group;
pub mod doctor;
pub mod examples;
pub mod explain;
pub mod list;
pub mod observe;
pub mod plan;
pub mod power_cut;
pub mod run;
pub mod say;
pub mod trial;
pub mod watch;
