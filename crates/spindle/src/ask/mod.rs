//! Asking without a file: an experiment file written from a few answers, commented, to be kept and changed. What
//! is run is read from that text by the same reader as any other file, so that a saved one is the one that was run.
//!
//! [`draft`] is the file being written, [`command_line`] tells which argument a part of it comes from, [`engines`] what
//! may be asked for, [`workloads`] under which loads, [`error`] what is wrong with a question, [`question`] what
//! `spindle try` makes of directories and settings, [`interview`] what `spindle init` makes of five answers. `cli`
//! calls this.

pub mod command_line;
pub mod draft;
pub mod engines;
pub mod error;
pub mod interview;
pub mod question;
pub mod workloads;
