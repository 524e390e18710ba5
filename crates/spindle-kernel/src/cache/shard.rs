//! A shard of the cache: which of its buffers holds which block, which one is used next for another block, and who
//! waits for one.
//!
//! A buffer is *free* when it is clean and not pinned. Every way of becoming free ends with a pin let go: a session has
//! done with its block, a writer has written it, a read has failed. So there is one place, [`Shard::unpinned`], where a
//! buffer passes to the session that has waited longest, and no session has to look for one again: one is woken for
//! one. No session starts to wait while a buffer is free, and while any session waits no newcomer takes one.
//!
//! A buffer in demand (its touch count says so) is spared while the writer has others to clean, as the clock would
//! spare it. That costs one touch, and happens no more often in a row than the shard has buffers. A session that does
//! not pass a buffer on calls the writer, which cleans one, or gives away what is free if it has nothing to write.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;
use spindle_io::Arena;
use spindle_io::sync::atomic::{AtomicUsize, Ordering};
use spindle_io::sync::{Latch, Notify, has_planted, oneshot};

use super::buffer::{Buffer, Claim, Phase, Pin, State};
use crate::block::BlockAddress;
use crate::error::Result;
use crate::fixed_sga::Health;
use crate::invariant::are_checked;
use crate::wait_event::WaitEvent;

/// A buffer's touch count goes up to this.
const TOUCH_MAX: u32 = 3;

/// Planted race: a session looks for a free buffer, and then says that it waits.
pub(crate) const LOOKS_THEN_WAITS: &str = "a session looks for a free buffer before it waits";

/// A buffer for a block.
pub(super) enum BufferForBlock {
    /// In the cache, perhaps still being read by another session.
    Present(Pin),
    /// Not in the cache; the buffer is the caller's to fill.
    Claimed(Claim),
}

/// What a session comes away with that can wait.
pub(super) enum Looked {
    Found(BufferForBlock),
    /// Nothing yet: the buffer comes by the receiver, which closes without one when the instance fails or stops.
    Queued {
        buffer: oneshot::Receiver<BufferForBlock>,
        /// What the wait is for: the writers when most of the buffers are dirty, else other sessions' pins.
        event: WaitEvent,
    },
}

/// A block for which no buffer was free, and the sessions that want it.
struct Wanted {
    address: BlockAddress,
    sessions: Vec<oneshot::Sender<BufferForBlock>>,
}

/// What a shard's buffers know of it.
pub(super) struct Home {
    /// Sessions that wait for a buffer; changes under the shard's latch.
    waiting: AtomicUsize,
    shard: Weak<Shard>,
}

impl Home {
    /// True when a buffer that becomes free must be passed on.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// The shard; `None` when the cache is no more.
    pub(super) fn shard(&self) -> Option<Arc<Shard>> {
        self.shard.upgrade()
    }
}

pub(super) struct Inner {
    map: FxHashMap<BlockAddress, usize>,
    pub(super) buffers: Vec<Arc<Buffer>>,
    pub(super) hand: usize,
    /// Places of buffers that a writer has just made clean: the first to be used again. Some may have been changed or
    /// pinned since.
    clean: VecDeque<usize>,
    /// First come, first served.
    wanted: VecDeque<Wanted>,
    /// Free buffers that were not passed on since one was.
    spared: usize,
}

/// One shard.
pub(super) struct Shard {
    pub(super) inner: Latch<Inner>,
    pub(super) dirty: AtomicUsize,
    pub(super) buffers: usize,
    home: Arc<Home>,
    /// Calls the writer that serves the shard.
    writer: Arc<Notify>,
}

impl Shard {
    /// Shard number `number` with `count` empty buffers in frames of the arena.
    pub(super) fn new(
        number: usize,
        count: usize,
        arena: &Arc<Arena>,
        writer: Arc<Notify>,
    ) -> Arc<Shard> {
        Arc::new_cyclic(|shard| {
            let home = Arc::new(Home {
                waiting: AtomicUsize::new(0),
                shard: Weak::clone(shard),
            });
            let buffer = |place| {
                let frame = arena.allocate().expect("one frame for each buffer");
                Arc::new(Buffer::new(frame, number, place, Arc::clone(&home)))
            };
            let inner = Inner {
                map: FxHashMap::default(),
                buffers: (0..count).map(buffer).collect(),
                hand: 0,
                clean: VecDeque::new(),
                wanted: VecDeque::new(),
                spared: 0,
            };
            Shard {
                inner: Latch::new(inner),
                dirty: AtomicUsize::new(0),
                buffers: count,
                home,
                writer,
            }
        })
    }

    /// Buffers that hold changes not yet written.
    pub(super) fn dirty(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// True when sessions wait for a buffer.
    pub(super) fn is_awaited(&self) -> bool {
        self.home.is_awaited()
    }

    /// The buffer of `address`, if the block is in it.
    pub(super) fn present(&self, address: BlockAddress) -> Option<Pin> {
        let pin = self.inner.lock().present(address)?;
        let is_valid = pin.buffer.is_valid.load(Ordering::Acquire);
        is_valid.then_some(pin)
    }

    /// One look, without waiting: the buffer of `address`, or a claimed one, or `None` when none is free. `scarce`
    /// plays that none is.
    pub(super) fn find(
        &self,
        address: BlockAddress,
        scarce: impl FnOnce() -> bool,
    ) -> Option<BufferForBlock> {
        let mut inner = self.inner.lock();
        if let Some(pin) = inner.present(address) {
            return Some(BufferForBlock::Present(pin));
        }
        if !inner.wanted.is_empty() || scarce() {
            return None;
        }
        let at = inner.victim()?;
        Some(BufferForBlock::Claimed(inner.claim(at, address)))
    }

    /// The buffer of `address`, or a claimed one, or a place in the queue for one. Error: the instance has failed or
    /// stops.
    pub(super) fn find_or_queue(&self, address: BlockAddress, health: &Health) -> Result<Looked> {
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        // Under the latch: a stop of the instance empties the queue afterwards.
        health.check()?;
        if let Some(pin) = inner.present(address) {
            return Ok(Looked::Found(BufferForBlock::Present(pin)));
        }
        let late = has_planted(LOOKS_THEN_WAITS);
        let early = late.then(|| inner.victim()).flatten();
        // Before the look: a session that lets a buffer go from here on either is seen to have done so, or sees this.
        self.home.waiting.fetch_add(1, Ordering::SeqCst);
        if inner.wanted.is_empty() {
            let at = if late { early } else { inner.victim() };
            if let Some(at) = at {
                self.home.waiting.fetch_sub(1, Ordering::SeqCst);
                return Ok(Looked::Found(BufferForBlock::Claimed(
                    inner.claim(at, address),
                )));
            }
        }
        let (sender, buffer) = oneshot::channel();
        match inner
            .wanted
            .iter_mut()
            .find(|wanted| wanted.address == address)
        {
            Some(wanted) => wanted.sessions.push(sender),
            None => inner.wanted.push_back(Wanted {
                address,
                sessions: vec![sender],
            }),
        }
        drop(guard);
        let event = if 2 * self.dirty() >= self.buffers {
            WaitEvent::FreeBufferWaits
        } else {
            WaitEvent::BufferBusyWaits
        };
        self.writer.notify_one();
        Ok(Looked::Queued { buffer, event })
    }

    /// The last pin of the buffer at a place was let go while sessions wait for one.
    pub(super) fn unpinned(&self, place: usize) {
        let passed_on = {
            let mut inner = self.inner.lock();
            if inner.wanted.is_empty() {
                return;
            }
            let goes = inner.is_free(place) && !inner.spares(place, self.dirty());
            goes.then(|| inner.pass_on(place, &self.home)).flatten()
        };
        match passed_on {
            Some(grant) => grant.deliver(),
            None => self.writer.notify_one(),
        }
    }

    /// Gives free buffers to those who wait, whether they are in demand or not. For the writer that has nothing to
    /// write.
    pub(super) fn give_away(&self) {
        loop {
            let grant = {
                let mut inner = self.inner.lock();
                if inner.wanted.is_empty() {
                    return;
                }
                let Some(at) = inner.victim() else { return };
                inner.pass_on(at, &self.home)
            };
            if let Some(grant) = grant {
                grant.deliver();
            }
        }
    }

    /// A claimed buffer whose block did not come becomes empty again; those who waited for it try for themselves.
    pub(super) fn forget(&self, buffer: &Buffer) {
        let mut inner = self.inner.lock();
        let mut state = buffer.state.lock();
        inner.map.remove(&state.address);
        state.phase = Phase::Empty;
        drop(state);
        drop(inner);
        buffer.released();
    }

    /// A writer has written the buffer at a place. The list is as long as the shard at most: where no session needs
    /// buffers, the oldest entries are forgotten and left to the clock.
    pub(super) fn became_clean(&self, place: usize) {
        let mut inner = self.inner.lock();
        if inner.clean.len() == inner.buffers.len() {
            inner.clean.pop_front();
        }
        inner.clean.push_back(place);
    }

    /// Sends everyone away who waits, to learn that the instance has failed or stops.
    pub(super) fn wake_all(&self) {
        let (gone, buffers) = {
            let mut inner = self.inner.lock();
            self.home.waiting.store(0, Ordering::SeqCst);
            (std::mem::take(&mut inner.wanted), inner.buffers.clone())
        };
        drop(gone);
        for buffer in buffers {
            buffer.wake_all();
        }
    }

    /// A buffer that a process still has or waits for, if there is one.
    pub(super) fn in_use(&self) -> Option<String> {
        let inner = self.inner.lock();
        for buffer in &inner.buffers {
            let pins = buffer.pins.load(Ordering::SeqCst);
            if pins > 0 || !buffer.frame.is_free() {
                let address = buffer.state.lock().address;
                return Some(format!(
                    "all have gone, and {pins} still have the buffer of block {address} pinned, or its frame in use"
                ));
            }
        }
        match inner.wanted.len() {
            0 => None,
            left => Some(format!(
                "all have gone, and {left} blocks still wait for buffers"
            )),
        }
    }
}

/// A buffer on its way to those who waited for its block: to the first of them to fill, to the others to share.
struct Grant {
    claim: Claim,
    to: oneshot::Sender<BufferForBlock>,
    others: Vec<(oneshot::Sender<BufferForBlock>, Pin)>,
}

impl Grant {
    /// Outside every latch, for it wakes. What a session that has gone was to get is let go of, and so goes to the
    /// next.
    fn deliver(self) {
        let _ = self.to.send(BufferForBlock::Claimed(self.claim));
        for (session, pin) in self.others {
            let _ = session.send(BufferForBlock::Present(pin));
        }
    }
}

impl Inner {
    /// The buffer of a block, if it has one.
    pub(super) fn buffer_of(&self, address: BlockAddress) -> Option<&Arc<Buffer>> {
        Some(&self.buffers[*self.map.get(&address)?])
    }

    /// The buffer of a block, touched and pinned, if it has one.
    fn present(&self, address: BlockAddress) -> Option<Pin> {
        let buffer = self.buffer_of(address)?;
        if buffer.touch.load(Ordering::Relaxed) < TOUCH_MAX {
            buffer.touch.fetch_add(1, Ordering::Relaxed);
        }
        Some(Pin::new(buffer, address))
    }

    /// A free buffer to be used for another block: one just made clean, or the next untouched one under the clock hand,
    /// which goes round once, or the least touched that it passed. `None` when none is free.
    fn victim(&mut self) -> Option<usize> {
        while let Some(at) = self.clean.pop_front() {
            if self.is_free(at) && self.buffers[at].touch.load(Ordering::Relaxed) == 0 {
                return Some(at);
            }
        }
        let mut coldest: Option<(u32, usize)> = None;
        for _ in 0..self.buffers.len() {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.buffers.len();
            if !self.is_free(at) {
                continue;
            }
            let touch = self.buffers[at].touch.load(Ordering::Relaxed);
            if touch == 0 {
                return Some(at);
            }
            self.buffers[at].touch.store(touch - 1, Ordering::Relaxed);
            if coldest.is_none_or(|(least, _)| touch < least) {
                coldest = Some((touch, at));
            }
        }
        coldest.map(|(_, at)| at)
    }

    fn is_free(&self, at: usize) -> bool {
        let buffer = &self.buffers[at];
        if buffer.pins.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let state = buffer.state.lock();
        // A writer pins a dirty buffer without the shard's latch. Under the buffer's own it is seen: it is dirty still,
        // or pinned until the writer has let go of it.
        let is_pinned = buffer.pins.load(Ordering::SeqCst) > 0;
        let is_clean = !state.dirty && !state.writing && state.phase != Phase::Reading;
        // When a simulated world ends, a read still has the frame after its session has gone.
        !is_pinned && is_clean && buffer.frame.is_free()
    }

    /// True when a free buffer is kept for its own block, because it is in demand and the writer will clean others.
    fn spares(&mut self, at: usize, dirty: usize) -> bool {
        let touch = self.buffers[at].touch.load(Ordering::Relaxed);
        if touch == 0 || dirty == 0 || self.spared >= self.buffers.len() {
            return false;
        }
        self.buffers[at].touch.store(touch - 1, Ordering::Relaxed);
        self.spared += 1;
        true
    }

    /// Uses a free buffer for a block.
    fn claim(&mut self, at: usize, address: BlockAddress) -> Claim {
        let buffer = &self.buffers[at];
        let mut state = buffer.state.lock();
        let pins = buffer.pins.load(Ordering::Relaxed);
        let is_clean = !state.dirty && !state.writing && state.phase != Phase::Reading;
        assert!(
            !are_checked() || pins == 0 && is_clean && buffer.frame.is_free(),
            "the buffer of block {} is in use ({pins} pins, clean: {is_clean}) and taken for block {address}",
            state.address
        );
        if state.phase != Phase::Empty {
            self.map.remove(&state.address);
        }
        self.map.insert(address, at);
        *state = State {
            address,
            phase: Phase::Reading,
            dirty: false,
            first_change: 0,
            image: None,
            writing: false,
            write_clone: None,
        };
        buffer.is_valid.store(false, Ordering::Release);
        drop(state);
        buffer.touch.store(0, Ordering::Relaxed);
        Claim::new(Pin::new(buffer, address))
    }

    /// Uses a free buffer for the block that has been wanted longest; `None` when all who wanted one have gone.
    fn pass_on(&mut self, at: usize, home: &Home) -> Option<Grant> {
        self.spared = 0;
        while let Some(Wanted { address, sessions }) = self.wanted.pop_front() {
            home.waiting.fetch_sub(sessions.len(), Ordering::SeqCst);
            let mut sessions = sessions.into_iter().filter(|session| !session.is_closed());
            let Some(to) = sessions.next() else { continue };
            let claim = self.claim(at, address);
            let buffer = &self.buffers[at];
            let others: Vec<_> = sessions
                .map(|session| (session, Pin::new(buffer, address)))
                .collect();
            let touches = others.len().min(TOUCH_MAX as usize) as u32;
            buffer.touch.store(touches, Ordering::Relaxed);
            return Some(Grant { claim, to, others });
        }
        None
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const A_BLOCK: BlockAddress = BlockAddress { file: 1, block: 7 };
    const ANOTHER: BlockAddress = BlockAddress { file: 1, block: 8 };

    fn shard() -> Arc<Shard> {
        let arena = Arena::new(4096, 1).unwrap();
        Shard::new(0, 1, &arena, Arc::new(Notify::new()))
    }

    fn found(shard: &Shard) -> Pin {
        match shard.find(A_BLOCK, || false) {
            Some(BufferForBlock::Claimed(claim)) => claim.now_valid(),
            _ => unreachable!("the buffer is free"),
        }
    }

    #[test]
    #[should_panic(
        expected = "the buffer of block 1.7 is in use (1 pins, clean: true) and taken for block 1.8"
    )]
    fn a_pinned_buffer_is_not_used_for_another_block() {
        let shard = shard();
        let _pin = found(&shard);
        let _claim = shard.inner.lock().claim(0, ANOTHER);
    }

    #[test]
    #[should_panic(expected = "clean: false")]
    fn a_changed_buffer_is_not_used_for_another_block() {
        let shard = shard();
        found(&shard).buffer.state.lock().dirty = true;
        let _claim = shard.inner.lock().claim(0, ANOTHER);
    }

    #[test]
    #[should_panic(expected = "the buffer of block 1.7 is let go once too often")]
    fn a_pin_is_let_go_once() {
        let shard = shard();
        let pin = found(&shard);
        pin.buffer.pins.fetch_sub(1, Ordering::SeqCst);
    }

    #[test]
    fn what_is_kept_when_all_have_gone_is_told() {
        let shard = shard();
        let pin = found(&shard);
        let said = shard.in_use().unwrap();
        assert!(
            said.contains("1 still have the buffer of block 1.7"),
            "{said}"
        );
        drop(pin);
        assert_eq!(shard.in_use(), None);
    }
}
