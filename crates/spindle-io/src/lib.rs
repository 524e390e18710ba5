//! How Spindle reaches storage: the world code runs in ([`Env`]), the things that hold blocks ([`BlockDevice`]), the
//! aligned memory they read into and write from ([`Arena`]), and the two worlds there are: [`real`] threads and files,
//! [`sim`]ulated tasks and disks in virtual time. Everything above (kernel, layouts, workloads) talks to storage
//! through this crate only; it is the one place where `unsafe` is allowed.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod arena;
pub mod device;
pub mod disk_group;
pub mod env;
#[cfg(feature = "shuttle")]
pub mod explore;
pub mod real;
pub mod sim;
pub mod sync;

pub use arena::{Arena, Frame, ReadHold, WriteHold};
pub use device::{
    BlockDevice, Completion, Fault, IoError, IoFailure, IoOutcome, LINUX_SECTOR_BYTES, Limits,
    Operation, Request, Submission, WHOLE_SECTOR_BYTES, read_blocks,
};
pub use env::{Env, Join, ProcessStart, ProcessorUse};
