//! `async`: queued on the caller's io_uring and submitted together when it next waits; one call submits, another
//! reaps, as `io_submit` and `io_getevents` do.

use std::io;
use std::sync::Arc;

use super::carrier::{Carrier, Way};
use super::ring::{self, Calls};
use super::ring_config::RingConfig;
use crate::device::{Completion, Operation};
use crate::real::facts;
use crate::real::file::core::Core;

/// The way.
pub(super) struct Uring;

/// The rings of a queue.
pub(super) struct Ring(pub(super) Arc<RingConfig>);

impl Way for Uring {
    fn open(&self, _: usize) -> io::Result<Arc<dyn Carrier>> {
        Ok(Arc::new(Ring(Arc::new(RingConfig::new()))))
    }

    fn available(&self) -> Result<(), String> {
        facts::io_uring_available().map_err(|reason| format!("no io_uring here: {reason}"))
    }

    fn is_asynchronous(&self) -> bool {
        true
    }
}

impl Carrier for Ring {
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        ring::submit(core, &self.0, Calls::Two, offset, operation, total)
    }

    fn ring(&self) -> Option<&Arc<RingConfig>> {
        Some(&self.0)
    }
}
