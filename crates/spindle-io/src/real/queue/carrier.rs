//! What each way of carrying out batched requests offers: a [`BatchMethod`] is known without being used, a [`Carrier`]
//! is one with what it needs. `method` lists them.

use std::io;
use std::sync::Arc;

use super::ring_config::RingConfig;
use super::unavailable::MethodUnavailable;
use crate::device::{Completion, Operation};
use crate::real::file::core::Core;
use crate::real::slaves::SlavePool;

/// What there is to know of a way of carrying out batched requests.
pub(in crate::real) trait BatchMethod: Sync {
    /// Makes what it needs; `slaves` is the number of I/O slaves, where it has some.
    fn open(&self, slaves: usize) -> io::Result<Arc<dyn Carrier>>;

    /// Whether the system has it.
    ///
    /// # Errors
    /// Why not.
    fn available(&self) -> Result<(), MethodUnavailable> {
        Ok(())
    }

    /// It has I/O slaves.
    fn has_slaves(&self) -> bool {
        false
    }

    /// Requests are under way together, and no thread of this process waits for one of them.
    fn is_asynchronous(&self) -> bool {
        false
    }

    /// It is a disk manager's: files are made by it, always direct, and identified once for all threads.
    fn identifies_files(&self) -> bool {
        false
    }
}

/// Carries out batched requests.
pub(in crate::real) trait Carrier: Send + Sync {
    /// Takes a read or write of `total` bytes.
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion;

    /// Its I/O slaves.
    fn slaves(&self) -> Option<&Arc<SlavePool>> {
        None
    }

    /// How its rings are made.
    fn ring(&self) -> Option<&Arc<RingConfig>> {
        None
    }
}
