//! How the database writers are called, and how sessions and CKPT wait for them. What they do is in
//! [`crate::processes::dbwr`].

use std::sync::Arc;

use spindle_io::sync::Notify;
use spindle_io::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;
use crate::fixed_sga::Health;

use super::BufferCache;
use super::buffer::Pin;

/// The writers, as others see them.
pub(crate) struct Writers {
    /// A call for each writer: it looks what there is to do.
    pub(super) calls: Vec<Arc<Notify>>,
    /// A batch has been written.
    written: Notify,
    /// How many wait until blocks are written.
    waiting: AtomicUsize,
}

/// Someone waits until blocks are written.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Writers {
    /// This many writers, not yet running.
    pub(super) fn new(writers: usize) -> Writers {
        Writers {
            calls: (0..writers).map(|_| Arc::new(Notify::new())).collect(),
            written: Notify::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Waits until a writer is called.
    pub(crate) async fn called(&self, writer: usize) {
        self.calls[writer].notified().await;
    }

    /// A batch has been written: waiters for blocks look again.
    pub(crate) fn batch_written(&self) {
        self.written.notify_waiters();
    }

    /// True when a full checkpoint, or recovery, waits for the writers.
    pub(crate) fn are_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Wakes the writers, and who waits for them, to learn that the instance has failed or stops.
    pub(super) fn wake_all(&self) {
        for call in &self.calls {
            call.notify_one();
        }
        self.written.notify_waiters();
    }
}

impl BufferCache {
    /// The writers of its blocks.
    pub(crate) fn writers(&self) -> &Writers {
        &self.writers
    }

    /// A buffer became dirty: its writer starts when too many are.
    pub(crate) fn wake_if_behind(&self, pin: &Pin) {
        if let Some(shard) = self.shard_behind(pin) {
            let calls = &self.writers.calls;
            calls[BufferCache::writer_of_shard(shard, calls.len())].notify_one();
        }
    }

    /// Asks for every block to be written that recovery would need redo before `target` for.
    pub(crate) fn raise_target(&self, target: u64) {
        for (number, call) in self.writers.calls.iter().enumerate() {
            if self.queue(number).raise_target(target) {
                call.notify_one();
            }
        }
    }

    /// Has these blocks written, and returns when they are.
    pub(crate) async fn write_before(&self, health: &Health, target: u64) -> Result<()> {
        self.writers.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.writers.waiting);
        self.raise_target(target);
        loop {
            let mut written = std::pin::pin!(self.writers.written.notified());
            written.as_mut().enable();
            health.check()?;
            if !self.has_before(target) {
                return Ok(());
            }
            written.await;
        }
    }
}
