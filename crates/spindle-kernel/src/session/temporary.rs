//! What a session's queries ([`crate::query`]) write to temporary segments, and with what.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Session;
use crate::temp::TempWork;

impl Session {
    /// Bytes that queries of this session have written to temporary segments since this was asked last.
    pub fn take_temporary_bytes(&mut self) -> u64 {
        self.temporary_bytes.swap(0, Ordering::Relaxed)
    }

    /// What sorts and aggregations of this session's queries work with.
    pub(crate) fn work(&self) -> TempWork {
        self.work_of(&self.temporary_bytes)
    }

    /// The same for a slave of another session, whose count it adds to.
    pub(crate) fn work_of(&self, written_bytes: &Arc<AtomicU64>) -> TempWork {
        TempWork {
            sga: Arc::clone(&self.sga),
            waits: Arc::clone(&self.waits),
            written_bytes: Arc::clone(written_bytes),
            memory_bytes: self.sga.settings.sort_area_bytes,
        }
    }

    /// Another session of the process that does some work.
    pub(crate) fn beside(work: &TempWork) -> Session {
        Session::waiting_as(Arc::clone(&work.sga), Arc::clone(&work.waits))
    }
}
