//! The real world: threads, files, the clock. A process of [`RealEnv`] is a thread inside [`block_on()`]; a
//! [`FileDevice`] reads and writes one file or block device by one of five methods; a [`MemoryDevice`] costs what no
//! device costs, a [`DelayedDevice`] takes longer than the one beneath; [`facts`] says what a file, its page cache and
//! the machine are like; [`create`] makes files the plain way and the ODM way. Layouts, engines and the program open
//! files here; the database sees only `Env` and `BlockDevice`.

mod aio;
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
mod flights;
mod identify;
mod memory;
mod parker;
mod queue_calls;
mod ring;
mod ring_config;
mod ring_tables;
mod slaves;
mod storage_identity;
mod timers;
mod transfer;

pub use block_on::block_on;
pub use counted::CountedDevice;
pub use counts::{IoCounts, WrittenBlocks};
pub use delay::{Delay, DelayedDevice};
pub use env::RealEnv;
pub use error::FileError;
pub use file::{FileDevice, Method};
pub use identify::{Caching, Identified, identify, identify_this};
pub use memory::MemoryDevice;
pub use queue_calls::QueueCalls;
pub use ring_config::{FixedBuffers, RingConfig};
pub use slaves::SlavePool;
pub use storage_identity::StorageIdentity;
