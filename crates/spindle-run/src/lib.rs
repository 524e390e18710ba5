//! A run: every trial of an experiment, in order, journalled. [`runner`] is the whole story; the other modules are its
//! parts: which trials come next ([`schedule`]), what this machine can do ([`examine`]), the layouts' `limits`, the
//! `databases`, made, kept and put back (with [`schemas`] on existing servers and the thin `volumes` beneath them), the
//! [`journal`] and what it adds up to ([`replay`]), and the run [`directory`]. What follows from an error is decided in
//! `consequence`. A [`trial`] is a separate process; what the system says meanwhile is in [`observe`], what that of a
//! server's machine says in [`agent`]; this program on other machines is in [`far`]. A run prints nothing: it tells a
//! [`listener`]. Only the command line calls this crate.

// Tests make files as they like, and say why they are skipped.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod agent;
pub mod answers;
pub mod calibrations;
mod consequence;
pub mod database_error;
mod databases;
pub mod description;
pub mod directory;
pub mod examine;
pub mod far;
mod finished_trial;
pub mod journal;
pub mod layout_targets;
mod limits;
pub mod listener;
mod neighbour;
pub mod observe;
mod own_directories;
mod panics;
mod quiet;
pub mod reckoning;
mod recorded_machine;
pub mod refusals;
pub mod replay;
pub mod runner;
mod same_place;
pub mod schedule;
pub mod schemas;
mod server_files;
pub mod trial;
mod trial_time;
mod volumes;
