//! The real world: threads, files, the clock. A process of [`RealEnv`] is a thread inside [`block_on()`]; a
//! [`FileDevice`] reads and writes one file or block device by one of the methods in `queue`; a [`MemoryDevice`] costs
//! what no device costs, a [`DelayedDevice`] takes longer than the one beneath; [`facts`] says what a file, its page
//! cache and the machine are like; [`create`] makes files the plain way and the ODM way. Layouts, engines and the
//! program open files here; the database sees only `Env` and `BlockDevice`.

mod access_path;
mod bare_ring;
mod block_on;
mod counted;
mod counts;
pub mod create;
mod delay;
pub mod device_mapper;
mod env;
mod error;
pub mod facts;
mod file;
mod file_device;
mod memory;
mod parker;
mod prompt;
mod queue;
mod run_path;
mod slaves;
mod storage_identity;
mod timers;

pub use access_path::{AccessPath, AccessPathSettings, FilesystemioOptions};
pub use bare_ring::{BareRing, RingRequest};
pub use block_on::{block_on, outcome_of};
pub use counted::CountedDevice;
pub use counts::{IoCounts, WrittenBlocks};
pub use delay::{Delay, DelayedDevice};
pub use env::{NO_THREAD, RealEnv};
pub use error::FileError;
pub use file::identify::{Caching, Identified, identify, identify_this};
pub use file_device::FileDevice;
pub use memory::MemoryDevice;
pub use queue::method::{Method, Queue};
pub use queue::queue_calls::QueueCalls;
pub use queue::ring_config::{FixedBuffers, RingConfig};
pub use queue::unavailable::{MethodUnavailable, NoAio, NoRing, NotRegistered};
pub use run_path::{RUN_DIRECTORY_PREFIX, RunPath};
pub use slaves::SlavePool;
pub use storage_identity::StorageIdentity;
