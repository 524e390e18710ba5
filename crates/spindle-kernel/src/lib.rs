//! The embedded database: small, real, of Oracle's architecture. A buffer cache with database writers (DBWR), a log
//! writer (LGWR) with group commit over a ring of log files, an undo segment with roll-back, row locks, checkpoints
//! (CKPT) and crash recovery. It is plain `async` code over [`spindle_io::Env`] and [`spindle_io::BlockDevice`], so the
//! same code runs on threads and files and in the simulated world. Start at [`Instance`]; sessions are [`Session`]s.

pub mod block;
mod buffer_cache;
#[cfg(feature = "planted")]
pub mod buggify;
#[cfg(not(feature = "planted"))]
mod buggify;
mod change;
mod checkpoint;
mod control_file;
mod dbwr;
mod double_write;
mod error;
mod instance;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(feature = "switchable")]
pub mod invariant;
#[cfg(not(feature = "switchable"))]
mod invariant;
mod lgwr;
mod log;
mod log_reader;
mod log_room;
mod pmon;
#[cfg(feature = "planted")]
pub mod probe;
#[cfg(not(feature = "planted"))]
mod probe;
mod processes;
mod recovery;
mod redo;
mod ring_marks;
mod row_lock;
mod session;
mod settings;
mod statistics;
mod table;
mod transaction;
mod undo;
mod visibility;
mod wait_event;
mod wait_graph;

pub use block::{BlockAddress, RowId};
pub use buggify::{Switch, Switches};
pub use control_file::CONTROL_FILE_BYTES;
pub use double_write::double_write_bytes;
pub use error::{KernelError, Result};
pub use instance::{Instance, SegmentSpace, Shutdown, Storage, create_database};
pub use recovery::RecoveryReport;
pub use session::Session;
pub use settings::{CommitWait, PlantedFault, Settings, TornBlocks, WriteSync};
pub use statistics::StatisticsSnapshot;
pub use table::{Table, row_bytes_max, table_blocks};
pub use wait_event::{SampledWaits, WaitEvent, WaitTotal};
