//! What a file, its file system, the page cache and this process's rights are really like. Equal terms rest on these
//! facts: whether direct I/O is direct, whether blocks were ever written, whether bytes are still dirty.

mod direct;
mod extents;
mod file_system;
mod loop_device;
mod mount_table;
mod page_cache;
mod process;

use rustix::process::Resource;

pub use super::queue::aio::libaio_available;
pub use super::queue::ring::io_uring_available;
pub(in crate::real) use direct::must_be_storage;
pub(super) use direct::parent;
pub use direct::{DirectIo, DirectProbe, atomic_write_bytes, direct_io, direct_probe};
pub use extents::{Extents, SeenBy, extents, extents_within};
pub use file_system::{FsFacts, file_system};
pub use loop_device::{LoopTarget, loop_target};
pub use mount_table::{MountLine, unescaped};
pub use page_cache::{
    CacheState, cached, drop_cache, resident_pages, will_be_read_in_order, will_be_read_soon,
};
pub use process::{
    ProcessorTime, anonymous_bytes, is_open_to_write, monotonic_ns, preemptions,
    processor_time_of_thread, processor_use_of_thread, share_open_files, sleeps,
};

/// Bytes of memory this process may lock (RLIMIT_MEMLOCK, `ulimit -l`), which io_uring's fixed buffers count as;
/// `None` when not limited. A process with CAP_IPC_LOCK is not held to it.
pub fn locked_memory_limit_bytes() -> Option<u64> {
    rustix::process::getrlimit(Resource::Memlock).current
}

/// Whether the effective user is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
