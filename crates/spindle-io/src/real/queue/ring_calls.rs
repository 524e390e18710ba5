//! `async` and `odm`: queued on the caller's io_uring and submitted together when it next waits. With `async` one call
//! submits and another reaps, as `io_submit` and `io_getevents` do. `odm`, as Oracle's disk manager, does both in a
//! single call, and its files are identified once for all threads and registered with their rings.

use std::io;
use std::sync::Arc;

use super::carrier::{BatchMethod, Carrier};
use super::ring::{self, Calls};
use super::ring_config::RingConfig;
use super::unavailable::MethodUnavailable;
use crate::device::{Completion, Operation};
use crate::real::facts;
use crate::real::file::core::Core;

/// A way with rings.
pub(super) struct Rings {
    calls: Calls,
    identifies_files: bool,
}

/// `async`.
pub(super) const ASYNC: Rings = Rings {
    calls: Calls::Two,
    identifies_files: false,
};

/// `odm`.
pub(super) const ODM: Rings = Rings {
    calls: Calls::One,
    identifies_files: true,
};

impl Rings {
    /// What carries a queue out, its rings made like this.
    pub(super) fn carrier(&self, config: Arc<RingConfig>) -> Ring {
        Ring {
            config,
            calls: self.calls,
        }
    }
}

impl BatchMethod for Rings {
    fn open(&self, _: usize) -> io::Result<Arc<dyn Carrier>> {
        Ok(Arc::new(self.carrier(Arc::new(RingConfig::new()))))
    }

    fn available(&self) -> Result<(), MethodUnavailable> {
        facts::io_uring_available().map_err(MethodUnavailable::NoRing)
    }

    fn is_asynchronous(&self) -> bool {
        true
    }

    fn identifies_files(&self) -> bool {
        self.identifies_files
    }
}

/// The rings of a queue.
pub(super) struct Ring {
    config: Arc<RingConfig>,
    calls: Calls,
}

impl Carrier for Ring {
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        ring::submit(core, &self.config, self.calls, offset, operation, total)
    }

    fn ring(&self) -> Option<&Arc<RingConfig>> {
        Some(&self.config)
    }
}
