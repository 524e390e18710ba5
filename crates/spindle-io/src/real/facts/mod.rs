//! What a file, its file system, the page cache and this process's rights are really like. Equal terms rest on these
//! facts: whether direct I/O is direct, whether blocks were ever written, whether bytes are still dirty.

mod direct;
mod extents;
mod file_system;
mod loop_device;
mod page_cache;
mod process;

use std::io;

use rustix::process::Resource;

use super::{aio, ring};

pub(super) use direct::parent;
pub use direct::{DirectIo, DirectProbe, atomic_write_bytes, direct_io, direct_probe};
pub use extents::{Extents, SeenBy, extents};
pub use file_system::{FsFacts, file_system};
pub use loop_device::{LoopTarget, loop_target};
pub use page_cache::{CacheState, cached, drop_cache, resident_pages};
pub use process::{
    ProcessorTime, anonymous_bytes, preemptions, processor_time_of_thread, processor_use_of_thread,
    share_open_files, sleeps,
};

/// Whether this process can use io_uring; else why not and what would help, in words for people.
pub fn io_uring_available() -> Result<(), String> {
    ring::probe().map_err(|error| io_uring_refusal(&error))
}

/// Whether this process can use the kernel's older asynchronous I/O (libaio); else why not and what would help, in
/// words for people.
pub fn libaio_available() -> Result<(), String> {
    aio::probe().map_err(|error| aio::refusal(&error))
}

/// Why there is no ring, given the system's answer.
pub(super) fn io_uring_refusal(error: &io::Error) -> String {
    let disabled =
        std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    refusal(error, disabled.trim())
}

/// The reason behind an error of `io_uring_setup`; `disabled` is the value of kernel.io_uring_disabled (Linux 6.6,
/// Documentation/admin-guide/sysctl/kernel.rst), empty where there is none.
fn refusal(error: &io::Error, disabled: &str) -> String {
    match (error.raw_os_error(), disabled) {
        (Some(libc::EPERM), "1") => "io_uring is for privileged processes here: kernel.io_uring_disabled is 1 (set it to 0, \
                                     or join the group in kernel.io_uring_group)"
            .to_owned(),
        (Some(libc::EPERM), "2") => {
            "io_uring is switched off here: kernel.io_uring_disabled is 2 (set it to 0)".to_owned()
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "io_uring is refused, probably by a seccomp filter, as container runtimes set (allow the io_uring system \
             calls in its profile)"
                .to_owned()
        }
        (Some(libc::ENOSYS), _) => {
            "io_uring is unknown to this kernel, or hidden by a seccomp filter (Linux 5.13 or later is needed)".to_owned()
        }
        (Some(libc::ENOMEM), _) => {
            format!("io_uring gets no memory: {error} (rings may count as locked memory; see ulimit -l)")
        }
        _ => format!("io_uring cannot be used: {error}"),
    }
}

/// Bytes of memory this process may lock (RLIMIT_MEMLOCK, `ulimit -l`), which io_uring's fixed buffers count as;
/// `None` when not limited. A process with CAP_IPC_LOCK is not held to it: see [`may_lock_any_memory`].
pub fn locked_memory_limit_bytes() -> Option<u64> {
    rustix::process::getrlimit(Resource::Memlock).current
}

/// Whether the calling thread has CAP_IPC_LOCK and so is not held to the limit of locked memory.
pub fn may_lock_any_memory() -> bool {
    use rustix::thread::{CapabilitySet, capabilities};
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK))
}

/// Whether the effective user is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_ring_has_a_reason_for_people() {
        let told = |errno, disabled| refusal(&io::Error::from_raw_os_error(errno), disabled);
        assert!(told(libc::EPERM, "2").contains("kernel.io_uring_disabled is 2"));
        assert!(told(libc::EPERM, "1").contains("kernel.io_uring_disabled is 1"));
        assert!(told(libc::EPERM, "0").contains("seccomp"));
        assert!(told(libc::ENOSYS, "").contains("Linux 5.13"));
        assert!(told(libc::ENOMEM, "0").contains("ulimit -l"));
        assert!(told(libc::EMFILE, "0").contains("Too many open files"));
    }
}
