//! One buffer: a frame of the cache, what it holds, and the guards and pins through which it is used.

use std::sync::Arc;

use spindle_io::Frame;
use spindle_io::arena::{FrameRead, FrameWrite};
use spindle_io::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use spindle_io::sync::{Latch, Notify, has_planted};

use super::shard::Home;
use crate::block::BlockAddress;
use crate::error::Result;
use crate::fixed_sga::FixedSga;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// Tries before a session waits for a buffer: its users hold it for well under a microsecond.
const SPINS: usize = 50;

/// Planted race: waiters for a block are called before it is let go.
pub(crate) const CALLS_THEN_LETS_GO: &str = "a block's waiters are woken before it is let go";
/// Planted race: the session that lets a buffer go looks for waiters first, and then lets it go.
pub(crate) const LOOKS_THEN_UNPINS: &str = "who waits for buffers is looked up before the unpin";

/// Where a buffer is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Empty,
    Reading,
    Valid,
}

/// A copy of a block that is being written in its place, so that it can be changed meanwhile (Oracle's statistics call
/// it a write clone).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteClone {
    /// The block is what its copy is.
    Same,
    /// The block was changed since. When its copy is on the datafile, recovery would have to begin here for it.
    ChangedFrom(u64),
}

/// What changes under a buffer's latch.
pub(super) struct State {
    pub(super) address: BlockAddress,
    pub(super) phase: Phase,
    pub(super) dirty: bool,
    /// While it is dirty: where in the redo recovery would have to begin for it, and its place in the checkpoint queue.
    pub(super) first_change: u64,
    /// The record that holds the block's last image begins at or after this position; `None` when that is not known.
    pub(super) image: Option<u64>,
    pub(super) writing: bool,
    /// While it is dirty: the copy of it that is being written, if there is one.
    pub(super) write_clone: Option<WriteClone>,
}

/// One frame of the cache and what it holds.
pub(crate) struct Buffer {
    pub(super) frame: Frame,
    /// Its shard, and its place there.
    pub(super) shard: usize,
    pub(super) place: usize,
    home: Arc<Home>,
    pub(super) pins: AtomicU32,
    pub(super) touch: AtomicU32,
    /// Its phase is [`Phase::Valid`], for those who know its block. Becomes false under its shard's latch only.
    pub(super) is_valid: AtomicBool,
    pub(super) state: Latch<State>,
    /// Sessions that wait to share it: all of them continue together.
    sharers: Waiters,
    /// Sessions and writers that wait for exclusive access: one continues at a time, and calls the next.
    takers: Waiters,
}

/// How a buffer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Shared,
    Exclusive,
}

/// Those who wait for a buffer in one way.
#[derive(Default)]
struct Waiters {
    count: AtomicU32,
    call: Notify,
}

/// Keeps a buffer in the cache, and on its block, while it exists.
pub(crate) struct Pin {
    pub(super) buffer: Arc<Buffer>,
    pub(super) address: BlockAddress,
}

impl Pin {
    /// Pins a buffer that holds `address` and cannot lose it meanwhile: its shard's latch is held, or it is dirty.
    pub(super) fn new(buffer: &Arc<Buffer>, address: BlockAddress) -> Pin {
        buffer.pins.fetch_add(1, Ordering::Relaxed);
        Pin {
            buffer: Arc::clone(buffer),
            address,
        }
    }
}

impl Drop for Pin {
    /// The orders pair with those of a session that begins to wait: it says so and then looks at the pins; here the pin
    /// goes first. One of the two sees the other.
    fn drop(&mut self) {
        let buffer = &*self.buffer;
        let looked_early = has_planted(LOOKS_THEN_UNPINS).then(|| buffer.home.is_awaited());
        let pins = buffer.pins.fetch_sub(1, Ordering::SeqCst);
        assert!(
            pins > 0,
            "the buffer of block {} is let go once too often",
            self.address
        );
        if pins == 1 && looked_early.unwrap_or_else(|| buffer.home.is_awaited()) {
            buffer.unpinned();
        }
    }
}

/// A buffer that is its claimer's to fill with a block. Dropped before that, it becomes empty, and those who wait for
/// the block look for it again.
pub(crate) struct Claim(Option<Pin>);

impl Claim {
    /// `pin` is the claimer's.
    pub(super) fn new(pin: Pin) -> Claim {
        Claim(Some(pin))
    }

    /// The buffer and its block.
    pub(super) fn pin(&self) -> &Pin {
        self.0.as_ref().expect("a claim has its pin until it ends")
    }

    /// The block has been read.
    pub(super) fn now_valid(mut self) -> Pin {
        let pin = self.0.take().expect("a claim has its pin until it ends");
        pin.buffer.state.lock().phase = Phase::Valid;
        pin.buffer.is_valid.store(true, Ordering::Release);
        pin.buffer.released();
        pin
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(pin) = self.0.take()
            && let Some(shard) = pin.buffer.home.shard()
        {
            shard.forget(&pin.buffer);
        }
    }
}

/// Shared access to a block's bytes.
pub(crate) struct SharedBlock<'a> {
    bytes: Option<FrameRead<'a>>,
    buffer: &'a Buffer,
}

/// Exclusive access to a block's bytes.
pub(crate) struct ExclusiveBlock<'a> {
    bytes: Option<FrameWrite<'a>>,
    buffer: &'a Buffer,
}

impl std::ops::Deref for SharedBlock<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("held until dropped")
    }
}

impl std::ops::Deref for ExclusiveBlock<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("held until dropped")
    }
}

impl std::ops::DerefMut for ExclusiveBlock<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().expect("held until dropped")
    }
}

impl Drop for SharedBlock<'_> {
    fn drop(&mut self) {
        if has_planted(CALLS_THEN_LETS_GO) {
            return self.buffer.released();
        }
        self.bytes = None;
        self.buffer.released();
    }
}

impl Drop for ExclusiveBlock<'_> {
    fn drop(&mut self) {
        if has_planted(CALLS_THEN_LETS_GO) {
            return self.buffer.released();
        }
        self.bytes = None;
        self.buffer.released();
    }
}

impl Buffer {
    /// An empty buffer at a place of a shard.
    pub(super) fn new(frame: Frame, shard: usize, place: usize, home: Arc<Home>) -> Buffer {
        let state = State {
            address: BlockAddress { file: 0, block: 0 },
            phase: Phase::Empty,
            dirty: false,
            first_change: 0,
            image: None,
            writing: false,
            write_clone: None,
        };
        Buffer {
            frame,
            shard,
            place,
            home,
            pins: AtomicU32::new(0),
            touch: AtomicU32::new(0),
            is_valid: AtomicBool::new(false),
            state: Latch::new(state),
            sharers: Waiters::default(),
            takers: Waiters::default(),
        }
    }

    /// It is no longer pinned, and sessions wait for a buffer.
    #[cold]
    fn unpinned(&self) {
        if let Some(shard) = self.home.shard() {
            shard.unpinned(self.place);
        }
    }

    /// Wakes everyone who waits for it, to learn that the instance has failed or stops.
    pub(super) fn wake_all(&self) {
        self.sharers.call.notify_waiters();
        self.takers.call.notify_waiters();
    }

    /// Wakes waiters that can continue: all that share it, and one that wants exclusive access when it is free. Other
    /// holders will come here, too. The orders pair with those in `wait_until`: a waiter says so and then looks at the
    /// frame; here the frame was let go, and then the waiters are looked at. Either the waiter sees the frame free, or
    /// we see the waiter. Frames are taken and let go in the same order ([`spindle_io::arena`]).
    pub(super) fn released(&self) {
        if self.sharers.count.load(Ordering::SeqCst) > 0 {
            self.sharers.call.notify_waiters();
        }
        if self.takers.count.load(Ordering::SeqCst) > 0 && self.frame.is_free() {
            self.takers.call.notify_one();
        }
    }

    /// Waits until `attempt` succeeds, trying again whenever the buffer changes. Error: the instance has failed or
    /// stops, and who has the buffer may be gone.
    pub(super) async fn wait_until<'a, T>(
        &'a self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        (access, event): (Access, impl Fn(&State) -> WaitEvent),
        attempt: impl Fn(&'a Buffer) -> Option<T>,
    ) -> Result<T> {
        for _ in 0..SPINS {
            if let Some(found) = attempt(self) {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        let event = event(&self.state.lock());
        let wait = waits.begin(&*fixed.env);
        let waiters = match access {
            Access::Shared => &self.sharers,
            Access::Exclusive => &self.takers,
        };
        waiters.count.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            // One that is called and goes away without having waited hands the call on.
            let mut called = std::pin::pin!(waiters.call.notified());
            called.as_mut().enable();
            if let Some(found) = attempt(self) {
                break Ok(found);
            }
            if let Err(error) = fixed.health.check() {
                break Err(error);
            }
            called.await;
        };
        waiters.count.fetch_sub(1, Ordering::SeqCst);
        wait.end(event);
        found
    }
}

/// What a session waits for when it cannot have a buffer.
pub(super) fn why_busy(state: &State) -> WaitEvent {
    if state.writing {
        WaitEvent::WriteCompleteWaits
    } else {
        WaitEvent::BufferBusyWaits
    }
}

impl Pin {
    /// Shared access, waiting while someone changes the block.
    pub(crate) async fn read<'a>(
        &'a self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
    ) -> Result<SharedBlock<'a>> {
        let buffer = &*self.buffer;
        let attempt = |buffer: &'a Buffer| buffer.frame.try_read();
        let bytes = match attempt(buffer) {
            Some(bytes) => bytes,
            None => {
                let wanted = (Access::Shared, why_busy);
                let waiting = buffer.wait_until(fixed, waits, wanted, attempt);
                Box::pin(waiting).await?
            }
        };
        Ok(SharedBlock {
            bytes: Some(bytes),
            buffer,
        })
    }

    /// Exclusive access, if it is free at once.
    pub(crate) fn try_write(&self) -> Option<ExclusiveBlock<'_>> {
        let bytes = self.buffer.frame.try_write()?;
        Some(ExclusiveBlock {
            bytes: Some(bytes),
            buffer: &self.buffer,
        })
    }

    /// Exclusive access, waiting while anyone uses the block or it is being written.
    pub(crate) async fn write<'a>(
        &'a self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
    ) -> Result<ExclusiveBlock<'a>> {
        let buffer = &*self.buffer;
        let attempt = |buffer: &'a Buffer| buffer.frame.try_write();
        let bytes = match attempt(buffer) {
            Some(bytes) => bytes,
            None => {
                let wanted = (Access::Exclusive, why_busy);
                let waiting = buffer.wait_until(fixed, waits, wanted, attempt);
                Box::pin(waiting).await?
            }
        };
        Ok(ExclusiveBlock {
            bytes: Some(bytes),
            buffer,
        })
    }

    /// Where the block belongs.
    pub(crate) fn address(&self) -> BlockAddress {
        self.address
    }
}
