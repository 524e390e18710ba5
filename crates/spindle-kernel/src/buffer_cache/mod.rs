//! The buffer cache: frames of the SGA that hold blocks. Sharded by block address; each shard replaces by clock with a
//! small touch count, among clean and unpinned buffers only. No latch is held across an await or an I/O: a buffer under
//! I/O is protected by its frame's own hold and by its phase, and who must wait does so under the wait event that says why.

mod buffer;
mod checkpoint_queue;
pub(crate) mod writing;

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::atomic::{AtomicUsize, Ordering};
use spindle_io::sync::{Latch, Notify, Semaphore, timeout};
use spindle_io::{Arena, Operation, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind};
use crate::buggify::Switch;
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::probe::{self, Probe};
use crate::settings::{PlantedFault, TornBlocks};
use crate::wait_event::{ProcessWaits, WaitEvent};

#[cfg(all(test, feature = "shuttle"))]
pub(crate) use buffer::CALLS_THEN_LETS_GO;
use buffer::{Buffer, Phase, State};
pub(crate) use buffer::{ExclusiveBlock, Pin};
pub(crate) use checkpoint_queue::CheckpointQueue;

/// A session in need of a buffer looks again after this long.
const FREE_BUFFER_LOOK_NS: u64 = 10_000_000;
/// So often a session that needs two blocks tries to get them without waiting for one while it holds the other.
const UNPINNED_TRIES: u32 = 4;
const TOUCH_MAX: u32 = 3;
const SHARDS_MAX: usize = 64;
const SHARD_BUFFERS_MIN: usize = 256;

struct Shard {
    map: FxHashMap<BlockAddress, usize>,
    buffers: Vec<Arc<Buffer>>,
    hand: usize,
    /// Places of buffers that DBWR has just made clean: the first to be used again. Some may have been changed or
    /// pinned since.
    clean: VecDeque<usize>,
}

struct ShardCell {
    shard: Latch<Shard>,
    dirty: AtomicUsize,
    buffers: usize,
    /// A buffer became clean or free: the session that has waited longest is woken.
    freed: Notify,
    /// Sessions that wait for one. While there are any, others queue up behind them.
    waiting: AtomicUsize,
}

/// The cache.
pub(crate) struct BufferCache {
    shards: Vec<ShardCell>,
    /// Of each writer.
    queues: Vec<CheckpointQueue>,
    /// The turn of the session that waits for a buffer while it holds another.
    pinned_wait: Semaphore,
    arena: Arc<Arena>,
}

impl BufferCache {
    /// A cache of `bytes` bytes of blocks, for `writers` DBWRs.
    pub(crate) fn new(bytes: u64, block_bytes: usize, writers: usize) -> Result<BufferCache> {
        let frames = ((bytes as usize) / block_bytes).max(16);
        let arena = Arena::new(block_bytes, frames).map_err(|error| KernelError::Memory {
            what: "the buffer cache",
            reason: error.to_string(),
        })?;
        // Every writer has a shard to serve, unless the cache is tiny.
        let shard_count = (frames / SHARD_BUFFERS_MIN)
            .clamp(1, SHARDS_MAX)
            .max(writers.min(frames / 64));
        let shards = (0..shard_count)
            .map(|shard| {
                let count = frames / shard_count + usize::from(shard < frames % shard_count);
                let buffers = (0..count)
                    .map(|place| {
                        let frame = arena.allocate().expect("one frame for each buffer");
                        Arc::new(Buffer::new(frame, shard, place))
                    })
                    .collect();
                ShardCell {
                    shard: Latch::new(Shard {
                        map: FxHashMap::default(),
                        buffers,
                        hand: 0,
                        clean: VecDeque::new(),
                    }),
                    dirty: AtomicUsize::new(0),
                    buffers: count,
                    freed: Notify::new(),
                    waiting: AtomicUsize::new(0),
                }
            })
            .collect();
        Ok(BufferCache {
            shards,
            queues: (0..writers).map(|_| CheckpointQueue::default()).collect(),
            pinned_wait: Semaphore::new(1),
            arena,
        })
    }

    /// The memory the cache lives in.
    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Buffers that hold changes not yet written.
    pub(crate) fn dirty_buffers(&self) -> usize {
        self.shards
            .iter()
            .map(|cell| cell.dirty.load(Ordering::Relaxed))
            .sum()
    }

    fn shard_of(&self, address: BlockAddress) -> usize {
        // Fibonacci hashing: neighbouring blocks go to different shards.
        let hash = address.to_u64().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        (hash % self.shards.len() as u64) as usize
    }

    /// The block at `address`, read in if it is not in the cache.
    pub(crate) async fn get(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Pin> {
        waits.add_logical_read();
        loop {
            let found = self.find(shared, waits, address).await?;
            if let Some(pin) = self.settle(shared, waits, found).await? {
                return Ok(pin);
            }
        }
    }

    /// Two blocks. While a buffer for the second is waited for the first is not pinned: sessions that each hold one and
    /// wait for another could stop each other for good. The first should be the one that is likely to be in the cache,
    /// for it may have to be found again. Where buffers are so scarce that each block is gone when the other has come,
    /// a session may hold the first after all; one at a time, so that no two wait for each other.
    pub(crate) async fn get_two(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        addresses: [BlockAddress; 2],
    ) -> Result<[Pin; 2]> {
        for _ in 0..UNPINNED_TRIES {
            let first = self.get(shared, waits, addresses[0]).await?;
            waits.add_logical_read();
            match self.find_now(shared, addresses[1], Search::Sweep)? {
                Some(found) => {
                    if let Some(second) = self.settle(shared, waits, found).await? {
                        return Ok([first, second]);
                    }
                }
                None => {
                    drop(first);
                    self.get(shared, waits, addresses[1]).await?;
                }
            }
        }
        probe::hit(Probe::PinnedWait);
        let turn = self.pinned_wait.acquire().await;
        let _turn = turn.expect("the semaphore is never closed");
        let first = self.get(shared, waits, addresses[0]).await?;
        let second = self.get(shared, waits, addresses[1]).await?;
        Ok([first, second])
    }

    /// The block at `address` when its present bytes do not matter, because the caller formats it: never read in.
    pub(crate) async fn get_new(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Pin> {
        loop {
            let found = self.find(shared, waits, address).await?;
            if let Found::Claimed(pin) = found {
                let mut bytes = pin
                    .buffer
                    .frame
                    .try_write()
                    .expect("a claimed buffer is its claimer's");
                block::format(&mut bytes, BlockKind::Unused, address, 0);
                drop(bytes);
                self.now_valid(&pin);
                return Ok(pin);
            }
            if let Some(pin) = self.settle(shared, waits, found).await? {
                return Ok(pin);
            }
        }
    }

    /// Up to `count` blocks from `first`, at least one, pinned and in order; those that are not in the cache are read in
    /// runs of one I/O each. Fewer when buffers are scarce: they are waited for with none pinned.
    pub(crate) async fn get_run(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        first: BlockAddress,
        count: u32,
    ) -> Result<Vec<Pin>> {
        let mut pins: Vec<Pin> = Vec::with_capacity(count as usize);
        let mut run: Vec<Pin> = Vec::new();
        let count = shared.buggify.shorten(Switch::ShortMultiblockRead, count);
        for block in first.block..first.block + count {
            let address = BlockAddress {
                file: first.file,
                block,
            };
            match self.find_now(shared, address, Search::Sweep)? {
                Some(Found::Claimed(pin)) => {
                    run.push(pin.clone());
                    pins.push(pin);
                }
                Some(found) => {
                    // Perhaps to be waited for: what was claimed is read first, lest two sessions wait for each
                    // other's claims.
                    self.read_run(shared, waits, &mut run).await?;
                    match self.settle(shared, waits, found).await? {
                        Some(pin) => pins.push(pin),
                        None => break,
                    }
                }
                None => break,
            }
            waits.add_logical_read();
        }
        self.read_run(shared, waits, &mut run).await?;
        if pins.is_empty() {
            pins.push(self.get(shared, waits, first).await?);
        }
        Ok(pins)
    }

    async fn read_run(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        run: &mut Vec<Pin>,
    ) -> Result<()> {
        let Some(first) = run.first() else {
            return Ok(());
        };
        let address = first.address();
        let how = if run.len() == 1 {
            Submission::Alone
        } else {
            Submission::Batched
        };
        self.read_in(shared, waits, run, address, how).await?;
        run.clear();
        Ok(())
    }

    /// Finds the buffer of `address` or claims one for it, waiting as long as that takes.
    async fn find(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Found> {
        let index = self.shard_of(address);
        let cell = &self.shards[index];
        let first_look = match cell.waiting.load(Ordering::Relaxed) {
            0 => Search::Sweep,
            _ => Search::Present,
        };
        if let Some(found) = self.find_now(shared, address, first_look)? {
            return Ok(found);
        }
        let wait = waits.begin(&*shared.env);
        probe::hit(Probe::FreeBufferWait);
        cell.waiting.fetch_add(1, Ordering::Relaxed);
        let found = self.wait_for_buffer(shared, index, address).await;
        cell.waiting.fetch_sub(1, Ordering::Relaxed);
        wait.end(WaitEvent::FreeBufferWaits);
        found
    }

    async fn wait_for_buffer(
        &self,
        shared: &Shared,
        index: usize,
        address: BlockAddress,
    ) -> Result<Found> {
        let cell = &self.shards[index];
        let mut search = Search::Clean;
        loop {
            let mut freed = std::pin::pin!(cell.freed.notified());
            freed.as_mut().enable();
            shared.dbwr.wake_for_demand(index);
            if let Some(found) = self.find_now(shared, address, search)? {
                return Ok(found);
            }
            // Unpinning a clean buffer wakes nobody: sweep again after a while, whatever DBWR does. Not at every
            // wake-up, or sweeps would use up the touch counts of the few clean buffers that are in demand.
            search = match timeout(&*shared.env, FREE_BUFFER_LOOK_NS, freed).await {
                Ok(()) => Search::Clean,
                Err(_) => Search::Sweep,
            };
        }
    }

    /// Makes what was found fit for use: reads a claimed block in, or waits for another session's read of it. `None` when
    /// that read failed: the block is to be looked for again.
    async fn settle(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        found: Found,
    ) -> Result<Option<Pin>> {
        let pin = match found {
            Found::Present(pin) => pin,
            Found::Claimed(pin) => {
                let (run, address) = (std::slice::from_ref(&pin), pin.address);
                self.read_in(shared, waits, run, address, Submission::Alone)
                    .await?;
                return Ok(Some(pin));
            }
        };
        let holds = |buffer: &Buffer| match buffer.state.lock().phase {
            Phase::Reading => None,
            phase => Some(phase == Phase::Valid),
        };
        let valid = match holds(&pin.buffer) {
            Some(valid) => valid,
            None => {
                pin.buffer
                    .wait_until(shared, waits, |_| WaitEvent::ReadByOtherSession, holds)
                    .await?
            }
        };
        Ok(valid.then_some(pin))
    }

    /// One look, without waiting: the buffer of `address`, or a claimed one, or `None` when no buffer is free.
    fn find_now(
        &self,
        shared: &Shared,
        address: BlockAddress,
        search: Search,
    ) -> Result<Option<Found>> {
        shared.health.check()?;
        let index = self.shard_of(address);
        let mut shard = self.shards[index].shard.lock();
        if let Some(&at) = shard.map.get(&address) {
            let buffer = &shard.buffers[at];
            buffer.pins.fetch_add(1, Ordering::Relaxed);
            if buffer.touch.load(Ordering::Relaxed) < TOUCH_MAX {
                buffer.touch.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(Some(Found::Present(Pin {
                buffer: Arc::clone(buffer),
                address,
            })));
        }
        if shared.buggify.fires(Switch::NoFreeBuffer) {
            return Ok(None);
        }
        let Some(at) = shard.victim(search) else {
            return Ok(None);
        };
        let buffer = Arc::clone(&shard.buffers[at]);
        let mut state = buffer.state.lock();
        if state.phase != Phase::Empty {
            shard.map.remove(&state.address);
        }
        shard.map.insert(address, at);
        *state = State {
            address,
            phase: Phase::Reading,
            dirty: false,
            first_change: 0,
            image: None,
            writing: false,
        };
        drop(state);
        buffer.pins.fetch_add(1, Ordering::Relaxed);
        buffer.touch.store(0, Ordering::Relaxed);
        Ok(Some(Found::Claimed(Pin { buffer, address })))
    }

    /// Reads adjacent blocks into the buffers claimed for them, in one I/O.
    async fn read_in(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        pins: &[Pin],
        first: BlockAddress,
        submission: Submission,
    ) -> Result<()> {
        let device = shared.storage.datafile(first.file);
        let block_bytes = self.arena.frame_bytes();
        let into = pins
            .iter()
            .map(|pin| {
                pin.buffer
                    .frame
                    .try_write_hold()
                    .expect("a claimed buffer is its claimer's")
            })
            .collect();
        let wait = waits.begin(&*shared.env);
        let offset = u64::from(first.block) * block_bytes as u64;
        let outcome = device.submit(Request::read(offset, into, submission)).await;
        let event = if pins.len() == 1 {
            WaitEvent::DbFileSequentialRead
        } else {
            WaitEvent::DbFileScatteredRead
        };
        wait.end(event);
        waits.add_physical_read(pins.len());
        let unreadable = |error| KernelError::UnreadableBlock {
            address: first,
            error,
        };
        let verified = outcome.result.map_err(unreadable).and_then(|()| {
            let Operation::Read(holds) = &outcome.operation else {
                unreachable!("a read was submitted")
            };
            holds.iter().zip(pins).try_for_each(|(bytes, pin)| {
                verify(shared, bytes, pin.address).map_err(|reason| KernelError::DamagedBlock {
                    address: pin.address,
                    device: device.name().to_string(),
                    reason,
                })
            })
        });
        drop(outcome.operation);
        for pin in pins {
            match verified {
                Ok(()) => self.now_valid(pin),
                Err(_) => self.forget(pin),
            }
        }
        verified
    }

    fn now_valid(&self, pin: &Pin) {
        pin.buffer.state.lock().phase = Phase::Valid;
        pin.buffer.released();
    }

    /// A claimed buffer whose block could not be read becomes empty again; those who waited try for themselves.
    fn forget(&self, pin: &Pin) {
        let cell = &self.shards[pin.buffer.shard];
        let mut shard = cell.shard.lock();
        let mut state = pin.buffer.state.lock();
        shard.map.remove(&state.address);
        state.phase = Phase::Empty;
        drop(state);
        drop(shard);
        pin.buffer.released();
        cell.freed.notify_one();
    }

    /// Marks a block dirty that is about to be changed; it is held exclusively. To be called before the change is logged,
    /// so that the checkpoint position cannot go past it.
    pub(crate) fn begin_change(&self, shared: &Shared, pin: &Pin) -> Begun {
        let mut state = pin.buffer.state.lock();
        if state.dirty {
            return Begun::AlreadyDirty;
        }
        let is_old = shared.settings.has_planted(PlantedFault::ImageTooOld);
        let recent = shared.log_files.images_from();
        let usable = state.image.filter(|&image| image >= recent && !is_old);
        let address = pin.address;
        state.first_change = self
            .queue_of(&pin.buffer)
            .enter(&pin.buffer, address, usable, || shared.log.end());
        state.dirty = true;
        self.shards[pin.buffer.shard]
            .dirty
            .fetch_add(1, Ordering::Relaxed);
        if shared.settings.torn_blocks != TornBlocks::Images {
            return Begun::Protected;
        }
        if usable == Some(state.first_change) || is_old && state.image.is_some() {
            probe::hit(Probe::ImageUsedAgain);
            Begun::Protected
        } else {
            Begun::Unprotected
        }
    }

    /// The change was logged, and its record, which begins at `position`, holds all there is to know of the block. Of use
    /// with [`TornBlocks::Images`] only.
    pub(crate) fn note_image(&self, pin: &Pin, position: u64) {
        pin.buffer.state.lock().image = Some(position);
    }

    /// The change was not logged, and the block that it made dirty is as clean as before. It was held all the time.
    pub(crate) fn give_up_change(&self, pin: &Pin) {
        let mut state = pin.buffer.state.lock();
        self.now_clean(&pin.buffer, &mut state);
    }

    /// Marks a block dirty that recovery rolls forward from `position`.
    pub(crate) fn begin_roll_forward(&self, pin: &Pin, position: u64) {
        let mut state = pin.buffer.state.lock();
        if state.dirty {
            return;
        }
        state.dirty = true;
        state.first_change = position;
        self.queue_of(&pin.buffer)
            .enter_at(position, &pin.buffer, pin.address);
        self.shards[pin.buffer.shard]
            .dirty
            .fetch_add(1, Ordering::Relaxed);
    }

    fn now_clean(&self, buffer: &Buffer, state: &mut State) {
        state.dirty = false;
        self.queue_of(buffer)
            .leave(state.first_change, state.address);
        self.shards[buffer.shard]
            .dirty
            .fetch_sub(1, Ordering::Relaxed);
    }

    fn queue_of(&self, buffer: &Buffer) -> &CheckpointQueue {
        &self.queues[Self::writer_of_shard(buffer.shard, self.queues.len())]
    }

    /// Wakes every session that waits for a free buffer or a busy one.
    pub(crate) fn wake_all(&self) {
        for cell in &self.shards {
            cell.freed.notify_waiters();
            let buffers = cell.shard.lock().buffers.clone();
            for buffer in buffers {
                buffer.changed.notify_waiters();
            }
        }
    }
}

/// Checks a block as it was read in: whole, in its place, and of this database's present.
fn verify(shared: &Shared, bytes: &[u8], address: BlockAddress) -> std::result::Result<(), String> {
    if !shared
        .settings
        .has_planted(PlantedFault::BlockChecksumUnverified)
    {
        block::verify(bytes, address)?;
    }
    let scn = block::scn(bytes);
    if scn <= shared.log.flushed() || scn <= shared.log.end() {
        return Ok(());
    }
    Err(format!(
        "its SCN {scn} is beyond the end of the redo: datafile and log files are not of one time"
    ))
}

/// What a change finds of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It was dirty, and has an image from which recovery can begin.
    AlreadyDirty,
    /// It was clean; its last image is in the redo that recovery would read, or it needs none.
    Protected,
    /// It was clean; recovery would not find an image of it.
    Unprotected,
}

enum Found {
    /// In the cache, perhaps still being read by another session.
    Present(Pin),
    /// Not in the cache; the buffer is the caller's to fill.
    Claimed(Pin),
}

/// Where to look for a buffer that can be used for another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Nowhere: others have waited longer.
    Present,
    /// Among those that DBWR has made clean.
    Clean,
    /// There, and then under the clock hand.
    Sweep,
}

impl Shard {
    /// A clean, unpinned buffer to be used for another block: one just made clean, or the next untouched one under the
    /// clock hand, which goes round once.
    fn victim(&mut self, search: Search) -> Option<usize> {
        if search == Search::Present {
            return None;
        }
        while let Some(at) = self.clean.pop_front() {
            if self.is_free(at) && self.buffers[at].touch.load(Ordering::Relaxed) == 0 {
                return Some(at);
            }
        }
        let steps = if search == Search::Sweep {
            self.buffers.len()
        } else {
            0
        };
        for _ in 0..steps {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.buffers.len();
            if !self.is_free(at) {
                continue;
            }
            let touch = &self.buffers[at].touch;
            if touch.load(Ordering::Relaxed) == 0 {
                return Some(at);
            }
            touch.fetch_sub(1, Ordering::Relaxed);
        }
        None
    }

    /// DBWR has written the buffer at a place. The list is as long as the shard at most: where nobody needs buffers, the
    /// oldest entries are forgotten and left to the clock.
    fn became_clean(&mut self, place: usize) {
        if self.clean.len() == self.buffers.len() {
            self.clean.pop_front();
        }
        self.clean.push_back(place);
    }

    fn is_free(&self, at: usize) -> bool {
        let buffer = &self.buffers[at];
        if buffer.pins.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let state = buffer.state.lock();
        // DBWR pins a dirty buffer without the shard's latch. Under the buffer's own it is seen: it is dirty still, or
        // pinned until DBWR has let go of it.
        let is_pinned = buffer.pins.load(Ordering::Acquire) > 0;
        !is_pinned && !state.dirty && !state.writing && state.phase != Phase::Reading
    }
}
