//! The checkpoint queue: a writer's dirty buffers by the redo position from which recovery would need them. Its lowest
//! entry bounds the checkpoint position, so what enters and what CKPT notes must agree: see
//! [`crate::processes::checkpoint`].

use std::collections::BTreeMap;
use std::sync::Arc;

use spindle_io::sync::Latch;

use super::buffer::{Buffer, Pin};
use crate::block::BlockAddress;

#[derive(Default)]
struct Inner {
    entries: BTreeMap<(u64, BlockAddress), Arc<Buffer>>,
    /// Nothing enters before this position: what lies before it is to be written, or was noted as written.
    floor: u64,
}

/// The queue of one writer.
#[derive(Default)]
pub(crate) struct CheckpointQueue {
    inner: Latch<Inner>,
}

impl CheckpointQueue {
    /// Takes a buffer in that is about to be changed: at the position of its image if that still counts, else at the
    /// end of the redo. Returns the position.
    pub(super) fn enter(
        &self,
        buffer: &Arc<Buffer>,
        address: BlockAddress,
        image: Option<u64>,
        end: impl FnOnce() -> u64,
    ) -> u64 {
        let mut inner = self.inner.lock();
        let position = image
            .filter(|&image| image >= inner.floor)
            .unwrap_or_else(end);
        inner
            .entries
            .insert((position, address), Arc::clone(buffer));
        position
    }

    /// Takes a buffer in that recovery changes; no position is noted before recovery has ended.
    pub(super) fn enter_at(&self, position: u64, buffer: &Arc<Buffer>, address: BlockAddress) {
        let entry = ((position, address), Arc::clone(buffer));
        self.inner.lock().entries.extend([entry]);
    }

    /// The buffer is clean.
    pub(super) fn leave(&self, position: u64, address: BlockAddress) {
        self.inner.lock().entries.remove(&(position, address));
    }

    /// Asks for everything before `target` to be written; true when there is something.
    pub(crate) fn raise_target(&self, target: u64) -> bool {
        let mut inner = self.inner.lock();
        inner.floor = inner.floor.max(target);
        inner.has_before(target)
    }

    /// True when a buffer is waiting that was changed before `position`.
    pub(crate) fn has_before(&self, position: u64) -> bool {
        self.inner.lock().has_before(position)
    }

    /// The lowest position in the queue, or the end of the redo. From here on nothing enters before it.
    pub(super) fn settle_lowest(&self, end: impl FnOnce() -> u64) -> u64 {
        let mut inner = self.inner.lock();
        let lowest = inner.entries.first_key_value().map(|(key, _)| key.0);
        let lowest = lowest.unwrap_or_else(end);
        inner.floor = inner.floor.max(lowest);
        lowest
    }

    /// What everything before which was asked to be written.
    pub(super) fn target(&self) -> u64 {
        self.inner.lock().floor
    }

    /// Up to `limit` buffers before the target, lowest first, pinned.
    pub(super) fn due(&self, limit: usize) -> Vec<Pin> {
        let inner = self.inner.lock();
        inner
            .entries
            .iter()
            .take_while(|((position, _), _)| *position < inner.floor)
            .take(limit)
            .map(|((_, address), buffer)| {
                // A dirty buffer keeps its block, and only the writer that asks here makes it clean.
                Pin::new(buffer, *address)
            })
            .collect()
    }
}

impl Inner {
    fn has_before(&self, position: u64) -> bool {
        self.entries
            .first_key_value()
            .is_some_and(|(key, _)| key.0 < position)
    }
}
