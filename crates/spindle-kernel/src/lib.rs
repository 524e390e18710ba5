//! The embedded database: small, real, of Oracle's architecture. A buffer cache with database writers (DBWR), a log
//! writer (LGWR) with group commit over a ring of log files, an undo segment with roll-back, row locks, checkpoints
//! (CKPT) and crash recovery. It is plain `async` code over [`spindle_io::Env`] and [`spindle_io::BlockDevice`], so the
//! same code runs on threads and files and in the simulated world. Start at [`Instance`]; sessions are [`Session`]s.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

pub mod block;
#[cfg(feature = "planted")]
pub mod buggify;
#[cfg(not(feature = "planted"))]
mod buggify;
mod cache;
mod change;
mod control_file;
mod error;
mod fixed_sga;
mod free_space;
mod index;
mod index_build;
mod instance;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(feature = "switchable")]
pub mod invariant;
#[cfg(not(feature = "switchable"))]
mod invariant;
mod key;
mod log;
#[cfg(feature = "planted")]
pub mod probe;
#[cfg(not(feature = "planted"))]
mod probe;
mod processes;
mod query;
mod recovery;
mod session;
mod settings;
mod sga;
mod space;
mod statistics;
mod storage;
mod table;
mod temp;
mod temp_space;
mod transaction;
mod wait_event;

pub use block::{BlockAddress, RowId};
pub use buggify::{Switch, Switches};
pub use control_file::CONTROL_FILE_BYTES;
#[cfg(feature = "planted")]
pub use control_file::{control_file_copy, first_free_blocks, seal_copy};
pub use error::{KernelError, Result};
pub use index::{Index, IndexKey, KeyPart};
pub use instance::{Instance, SegmentSpace, Shutdown, create_database};
#[cfg(feature = "planted")]
pub use log::redo;
pub use processes::double_write::double_write_bytes;
pub use query::{AnswerRow, GroupOrder, KernelQuery, QueryShape, RowFilter, ask, ask_plan};
pub use recovery::RecoveryReport;
pub use session::{IndexShape, Session, TableShape, TypedTable};
pub use settings::{
    BLOCK_BYTES_DEFAULT, BUFFER_CACHE_BYTES_DEFAULT, Commit, InstanceSettings, KernelSettings,
    PlantedFault, TornBlocks, WriteSync,
};
pub use space::datafile_blocks;
pub use statistics::StatisticsSnapshot;
pub use storage::Storage;
pub use table::{RowsOf, Table, growth_blocks, row_bytes_max, table_blocks};
pub use wait_event::{SampledWaits, WaitEvent, WaitTotal};
