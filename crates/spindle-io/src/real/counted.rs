//! [`CountedDevice`]: a file of a disk group as the database's counters and restores want it: what was asked of it is
//! counted, blocks written are noted, and it is as long as the file was meant to be. (A `FileDevice` does that itself.)

use std::sync::Arc;

use super::counts::{Counters, IoCounts, WrittenBlocks};
use crate::device::{
    BlockDevice, Completion, Fault, IoError, IoFailure, IoOutcome, Limits, Operation, Request,
};

/// Another device, counted. Requests count when they are submitted.
pub struct CountedDevice {
    inner: Arc<dyn BlockDevice>,
    limits: Limits,
    counters: Counters,
    tracker: Option<Arc<WrittenBlocks>>,
}

impl CountedDevice {
    /// The first `bytes` bytes of `inner`, which marks in `tracker` every block it writes.
    pub fn new(
        inner: Arc<dyn BlockDevice>,
        bytes: u64,
        tracker: Option<Arc<WrittenBlocks>>,
    ) -> CountedDevice {
        let limits = Limits {
            capacity_bytes: bytes.min(inner.limits().capacity_bytes),
            ..inner.limits()
        };
        CountedDevice {
            inner,
            limits,
            counters: Counters::default(),
            tracker,
        }
    }

    /// What was asked of this device since it was made.
    pub fn counters(&self) -> IoCounts {
        self.counters.read()
    }
}

impl BlockDevice for CountedDevice {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.limits.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        let bytes = request.bytes();
        let end = request.offset.saturating_add(bytes as u64);
        let is_flush = matches!(request.operation, Operation::Flush);
        if end > self.limits.capacity_bytes && !is_flush {
            let result = Err(IoError::from(IoFailure {
                device: self.inner.name().to_owned(),
                operation: request.operation.name(),
                offset: request.offset,
                bytes,
                reason: format!(
                    "past the end: it holds {} bytes",
                    self.limits.capacity_bytes
                ),
                fault: Fault::Other,
            }));
            return Completion::ready(IoOutcome {
                result,
                operation: request.operation,
            });
        }
        if let (Operation::Write { .. }, Some(tracker)) = (&request.operation, &self.tracker) {
            tracker.mark(request.offset, bytes as u64);
        }
        self.counters.count(&request.operation, bytes);
        self.inner.submit(request)
    }
}
