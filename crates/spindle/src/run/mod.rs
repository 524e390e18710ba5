//! A run: every trial of an experiment, in order, journalled, and the report at the end. [`runner`] is the whole story;
//! the other modules are its parts: which trials come next ([`schedule`]), what this machine can do ([`examine`]), the
//! layouts' `limits`, the databases' files ([`images`] of the embedded one, `trees` of servers, [`schemas`] on existing
//! servers) and the thin `volumes` beneath them, the [`journal`] and what it adds up to ([`replay`]), the run
//! [`directory`], and what people see meanwhile ([`progress`]). Only the command line calls this module.

mod databases;
pub mod description;
pub mod directory;
pub mod examine;
mod finished_trial;
pub mod grounds;
pub mod images;
pub mod journal;
mod limits;
mod own_directories;
pub mod progress;
mod quiet;
pub mod reckoning;
pub mod replay;
pub mod runner;
pub mod schedule;
pub mod schemas;
mod server_files;
mod trees;
mod volumes;
