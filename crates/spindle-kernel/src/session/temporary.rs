//! What a session's queries ([`crate::query`]) write to temporary segments, and with what.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Session;
use crate::temp::{TempWork, Usage};

impl Session {
    /// Bytes that queries of this session have written to temporary segments since this was asked last.
    pub fn take_temporary_bytes(&mut self) -> u64 {
        self.usage.written.swap(0, Ordering::Relaxed)
    }

    /// The most bytes that queries of this session, their slaves included, had in memory of rows for joins and
    /// look-ups since this was asked last.
    pub fn take_kept_bytes_most(&mut self) -> u64 {
        self.usage.held_most.swap(0, Ordering::Relaxed)
    }

    /// What sorts and aggregations of this session's queries work with.
    pub(crate) fn work(&self) -> TempWork {
        self.work_of(&self.usage, None)
    }

    /// The same for a slave of another session, whose use it adds to.
    pub(crate) fn work_of(&self, usage: &Arc<Usage>, deadline_ns: Option<u64>) -> TempWork {
        TempWork {
            sga: Arc::clone(&self.sga),
            waits: Arc::clone(&self.waits),
            usage: Arc::clone(usage),
            memory_bytes: self.sga.settings.instance.sort_area_bytes as usize,
            deadline_ns,
        }
    }

    /// Another session of the process that does some work.
    pub(crate) fn beside(work: &TempWork) -> Session {
        Session::waiting_as(Arc::clone(&work.sga), Arc::clone(&work.waits))
    }
}
