//! What I/O under way needs of the file that it is on, by any method.

use std::sync::Arc;

use crate::device::{Fault, IoError, IoFailure, Limits, Operation};
use crate::real::counts::{Counters, WrittenBlocks};

use super::identify::OpenFile;

/// What I/O under way needs of its device; keeps the file open until the last of it has ended.
pub(crate) struct Core {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) limits: Limits,
    /// Where the device begins in the file: 0, unless it is a region.
    pub(crate) first_byte: u64,
    pub(crate) counters: Counters,
    name: String,
    pub(crate) tracker: Option<Arc<WrittenBlocks>>,
}

impl Core {
    /// The device's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn new(file: Arc<OpenFile>, limits: Limits) -> Core {
        let name = file.path.display().to_string();
        Core {
            file,
            limits,
            first_byte: 0,
            counters: Counters::default(),
            name,
            tracker: None,
        }
    }

    /// An error of this device.
    pub(crate) fn error(
        &self,
        operation: &Operation,
        offset: u64,
        bytes: usize,
        reason: String,
    ) -> IoError {
        IoError::from(IoFailure {
            device: self.name.clone(),
            operation: operation.name(),
            offset,
            bytes,
            reason,
            fault: Fault::Other,
        })
    }

    /// A device has the size it was opened with: a write past its end would grow the file unseen.
    pub(crate) fn check_bounds(
        &self,
        operation: &Operation,
        offset: u64,
        bytes: usize,
    ) -> Result<(), IoError> {
        let end = offset.checked_add(bytes as u64);
        if end.is_some_and(|end| end <= self.limits.capacity_bytes)
            || matches!(operation, Operation::Flush)
        {
            return Ok(());
        }
        let reason = format!(
            "past the end: it holds {} bytes",
            self.limits.capacity_bytes
        );
        Err(self.error(operation, offset, bytes, reason))
    }
}
