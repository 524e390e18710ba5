//! `slaves`: handed to I/O slaves, threads that make the blocking calls.

use std::io;
use std::sync::Arc;

use super::carrier::{BatchMethod, Carrier};
use crate::device::{Completion, Operation};
use crate::real::file::core::Core;
use crate::real::slaves::SlavePool;

/// The way.
pub(super) struct ToSlaves;

/// The slaves of a queue.
pub(super) struct Slaves(pub(super) Arc<SlavePool>);

impl BatchMethod for ToSlaves {
    fn open(&self, slaves: usize) -> io::Result<Arc<dyn Carrier>> {
        Ok(Arc::new(Slaves(SlavePool::new(slaves)?)))
    }

    fn has_slaves(&self) -> bool {
        true
    }
}

impl Carrier for Slaves {
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        self.0.submit(core, offset, operation, total)
    }

    fn slaves(&self) -> Option<&Arc<SlavePool>> {
        Some(&self.0)
    }
}
