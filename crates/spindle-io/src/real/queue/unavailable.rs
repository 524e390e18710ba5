//! Why the system lacks a way of carrying out requests, for who asks a [`Method`](super::method::Method) whether it is
//! available; and what a ring goes without, for who tells of it.

use std::io;

use spindle_text::quantity::size;
use thiserror::Error;

/// Why a method of I/O cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MethodUnavailable {
    /// It needs rings.
    #[error("no io_uring here: {0}")]
    NoRing(NoRing),
    /// It needs the kernel's older asynchronous I/O.
    #[error("no libaio here: {0}")]
    NoAio(NoAio),
}

/// Why the system gives no io_uring.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoRing {
    /// The administrator keeps it for some.
    #[error(
        "io_uring is for privileged processes here: kernel.io_uring_disabled is 1 (set it to 0, or join the group in \
         kernel.io_uring_group)"
    )]
    ForPrivileged,
    /// The administrator keeps it from all.
    #[error("io_uring is switched off here: kernel.io_uring_disabled is 2 (set it to 0)")]
    SwitchedOff,
    /// The system does not permit it.
    #[error(
        "io_uring is refused, probably by a seccomp filter, as container runtimes set (allow the io_uring system calls \
         in its profile)"
    )]
    Refused,
    /// The kernel does not know it, or does as if.
    #[error(
        "io_uring is unknown to this kernel, or hidden by a seccomp filter (Linux 5.13 or later is needed)"
    )]
    Unknown,
    /// The limit of locked memory is reached.
    #[error("io_uring gets no memory: {0} (rings may count as locked memory; see ulimit -l)")]
    NoMemory(String),
    /// Something else.
    #[error("io_uring cannot be used: {0}")]
    Other(String),
}

/// Why the system gives no context of the older asynchronous I/O.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoAio {
    /// Others have all there are.
    #[error("{0}: all of fs.aio-max-nr is taken; raise it (sysctl fs.aio-max-nr=1048576)")]
    AllTaken(String),
    /// The kernel does not know it.
    #[error("{0}: this kernel is built without AIO")]
    NotBuilt(String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl NoAio {
    /// From the system's answer.
    pub(crate) fn of(error: &io::Error) -> NoAio {
        let words = error.to_string();
        match error.raw_os_error() {
            Some(libc::EAGAIN) => NoAio::AllTaken(words),
            Some(libc::ENOSYS) => NoAio::NotBuilt(words),
            _ => NoAio::Other(words),
        }
    }
}

/// What was not registered with a ring, whose I/O continues without.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotRegistered {
    /// Its table of files is full.
    #[error("a ring registers at most {0} files")]
    TooManyFiles(usize),
    /// The system refused a table of files.
    #[error("registering files: {0}")]
    Files(String),
    /// The system refused a file.
    #[error("registering a file: {0}")]
    File(String),
    /// The system refused memory.
    #[error("registering {} with io_uring: {reason} ({})", size(*bytes), limit(*limit_bytes))]
    Memory {
        /// How much.
        bytes: u64,
        /// The system's words.
        reason: String,
        /// The limit of locked memory, if there is one.
        limit_bytes: Option<u64>,
    },
}

fn limit(limit_bytes: Option<u64>) -> String {
    match limit_bytes {
        Some(bytes) => format!(
            "the limit of locked memory is {} for all rings together; see ulimit -l",
            size(bytes)
        ),
        None => "locked memory is not limited".to_owned(),
    }
}
