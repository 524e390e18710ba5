//! The buffer cache: frames of the SGA that hold blocks. Sharded by block address; each shard replaces by clock with a
//! small touch count, among clean and unpinned buffers only. No latch is held across an await or an I/O: a buffer under
//! I/O is protected by its frame's own hold and by its phase, and who must wait does so under the wait event that says why.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use rustc_hash::FxHashMap;
use spindle_io::arena::{FrameRead, FrameWrite};
use spindle_io::sync::{Latch, Notify, timeout};
use spindle_io::{Arena, Frame, Operation, Request, Submission};

use crate::block::{self, BlockAddress, BlockKind};
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// A session in need of a buffer looks again after this long.
const FREE_BUFFER_LOOK_NS: u64 = 10_000_000;
const TOUCH_MAX: u32 = 3;
/// Tries before a session waits for a buffer: its users hold it for well under a microsecond.
const SPINS: usize = 50;
const SHARDS_MAX: usize = 64;
const SHARD_BUFFERS_MIN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Empty,
    Reading,
    Valid,
}

struct State {
    address: BlockAddress,
    phase: Phase,
    dirty: bool,
    /// Redo position before the first change since the buffer was clean.
    first_change: u64,
    writing: bool,
}

/// One frame of the cache and what it holds.
pub(crate) struct Buffer {
    frame: Frame,
    shard: usize,
    pins: AtomicU32,
    touch: AtomicU32,
    waiters: AtomicU32,
    state: Latch<State>,
    changed: Notify,
}

struct Shard {
    map: FxHashMap<BlockAddress, usize>,
    buffers: Vec<Arc<Buffer>>,
    hand: usize,
}

struct ShardCell {
    shard: Latch<Shard>,
    dirty: AtomicUsize,
    buffers: usize,
    /// A buffer became clean or free.
    freed: Notify,
}

/// The cache.
pub(crate) struct BufferCache {
    shards: Vec<ShardCell>,
    arena: Arc<Arena>,
}

/// Keeps a buffer in the cache, and on its block, while it exists.
pub(crate) struct Pin {
    buffer: Arc<Buffer>,
    address: BlockAddress,
}

impl Clone for Pin {
    fn clone(&self) -> Pin {
        self.buffer.pins.fetch_add(1, Ordering::Relaxed);
        Pin {
            buffer: Arc::clone(&self.buffer),
            address: self.address,
        }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.buffer.pins.fetch_sub(1, Ordering::Release);
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
    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("held until dropped")
    }
}

impl std::ops::Deref for ExclusiveBlock<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("held until dropped")
    }
}

impl std::ops::DerefMut for ExclusiveBlock<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().expect("held until dropped")
    }
}

impl Drop for SharedBlock<'_> {
    fn drop(&mut self) {
        self.bytes = None;
        self.buffer.released();
    }
}

impl Drop for ExclusiveBlock<'_> {
    fn drop(&mut self) {
        self.bytes = None;
        self.buffer.released();
    }
}

impl Buffer {
    fn new(frame: Frame, shard: usize) -> Buffer {
        let state = State {
            address: BlockAddress { file: 0, block: 0 },
            phase: Phase::Empty,
            dirty: false,
            first_change: 0,
            writing: false,
        };
        Buffer {
            frame,
            shard,
            pins: AtomicU32::new(0),
            touch: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            state: Latch::new(state),
            changed: Notify::new(),
        }
    }

    /// Wakes who waits, if anyone does. The fence pairs with the one in `wait_until`: either the waiter sees the frame
    /// free, or we see the waiter.
    fn released(&self) {
        fence(Ordering::SeqCst);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `attempt` succeeds, trying again whenever the buffer changes. Error: the instance has failed or stops,
    /// and who has the buffer may be gone.
    async fn wait_until<'a, T>(
        &'a self,
        shared: &Shared,
        waits: &ProcessWaits,
        event: impl Fn(&State) -> WaitEvent,
        attempt: impl Fn(&'a Buffer) -> Option<T>,
    ) -> Result<T> {
        for _ in 0..SPINS {
            if let Some(found) = attempt(self) {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        let event = event(&self.state.lock());
        let began_ns = shared.env.now();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            fence(Ordering::SeqCst);
            if let Some(found) = attempt(self) {
                break Ok(found);
            }
            if let Err(error) = shared.health.check() {
                break Err(error);
            }
            changed.await;
        };
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        waits.add(event, shared.env.now() - began_ns);
        found
    }
}

fn why_busy(state: &State) -> WaitEvent {
    if state.writing {
        WaitEvent::WriteCompleteWaits
    } else {
        WaitEvent::BufferBusyWaits
    }
}

impl Pin {
    /// Shared access, waiting while someone changes the block.
    pub(crate) async fn read(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
    ) -> Result<SharedBlock<'_>> {
        let buffer = &*self.buffer;
        let bytes = buffer
            .wait_until(shared, waits, why_busy, |buffer| buffer.frame.try_read())
            .await?;
        Ok(SharedBlock {
            bytes: Some(bytes),
            buffer,
        })
    }

    /// Exclusive access if it is to be had at once.
    pub(crate) fn try_write(&self) -> Option<ExclusiveBlock<'_>> {
        let bytes = self.buffer.frame.try_write()?;
        Some(ExclusiveBlock {
            bytes: Some(bytes),
            buffer: &self.buffer,
        })
    }

    /// Exclusive access, waiting while anyone uses the block or it is being written.
    pub(crate) async fn write(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
    ) -> Result<ExclusiveBlock<'_>> {
        let buffer = &*self.buffer;
        let bytes = buffer
            .wait_until(shared, waits, why_busy, |buffer| buffer.frame.try_write())
            .await?;
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

impl BufferCache {
    /// A cache of `bytes` bytes of blocks, for `writers` DBWRs.
    pub(crate) fn new(bytes: u64, block_bytes: usize, writers: usize) -> Result<BufferCache> {
        let frames = ((bytes as usize) / block_bytes).max(16);
        let arena = Arena::new(block_bytes, frames).map_err(|error| KernelError::Memory {
            what: "the buffer cache",
            reason: error.to_string(),
        })?;
        let shard_count = (frames / SHARD_BUFFERS_MIN).clamp(1, SHARDS_MAX.max(writers));
        let shards = (0..shard_count)
            .map(|shard| {
                let count = frames / shard_count + usize::from(shard < frames % shard_count);
                let buffers = (0..count)
                    .map(|_| {
                        Arc::new(Buffer::new(
                            arena.allocate().expect("one frame for each buffer"),
                            shard,
                        ))
                    })
                    .collect();
                ShardCell {
                    shard: Latch::new(Shard {
                        map: FxHashMap::default(),
                        buffers,
                        hand: 0,
                    }),
                    dirty: AtomicUsize::new(0),
                    buffers: count,
                    freed: Notify::new(),
                }
            })
            .collect();
        Ok(BufferCache { shards, arena })
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
        shared.statistics.add_logical_read();
        loop {
            let found = self.find(shared, waits, address).await?;
            if let Some(pin) = self.settle(shared, waits, found).await? {
                return Ok(pin);
            }
        }
    }

    /// Two blocks. While a buffer for the second is waited for the first is not pinned: sessions that each hold one and
    /// wait for another could stop each other for good.
    pub(crate) async fn get_two(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        addresses: [BlockAddress; 2],
    ) -> Result<[Pin; 2]> {
        loop {
            let first = self.get(shared, waits, addresses[0]).await?;
            shared.statistics.add_logical_read();
            match self.find_now(shared, addresses[1])? {
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
        for block in first.block..first.block + count {
            let address = BlockAddress {
                file: first.file,
                block,
            };
            match self.find_now(shared, address)? {
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
            shared.statistics.add_logical_read();
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
        let cell = &self.shards[self.shard_of(address)];
        if let Some(found) = self.find_now(shared, address)? {
            return Ok(found);
        }
        let began_ns = shared.env.now();
        loop {
            let mut freed = std::pin::pin!(cell.freed.notified());
            freed.as_mut().enable();
            shared.dbwr.wake_for_demand(self.shard_of(address));
            if let Some(found) = self.find_now(shared, address)? {
                waits.add(WaitEvent::FreeBufferWaits, shared.env.now() - began_ns);
                return Ok(found);
            }
            // Unpinning a clean buffer wakes nobody: look again after a while whatever DBWR does.
            let _ = timeout(&*shared.env, FREE_BUFFER_LOOK_NS, freed).await;
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
    fn find_now(&self, shared: &Shared, address: BlockAddress) -> Result<Option<Found>> {
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
        let Some(at) = shard.victim() else {
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
        let began_ns = shared.env.now();
        let offset = u64::from(first.block) * block_bytes as u64;
        let outcome = device.submit(Request::read(offset, into, submission)).await;
        let event = if pins.len() == 1 {
            WaitEvent::DbFileSequentialRead
        } else {
            WaitEvent::DbFileScatteredRead
        };
        waits.add(event, shared.env.now() - began_ns);
        shared.statistics.add_physical_read(pins.len(), block_bytes);
        let verified = outcome.result.map_err(KernelError::from).and_then(|()| {
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
        cell.freed.notify_waiters();
    }

    /// Marks the block as changed; `position` is a redo position not after the change. To be called before the change
    /// is logged, with the block held exclusively, so that a checkpoint that begins after it cannot miss it.
    /// True when it was clean.
    pub(crate) fn mark_dirty(&self, pin: &Pin, position: u64) -> bool {
        let mut state = pin.buffer.state.lock();
        if state.dirty {
            return false;
        }
        state.dirty = true;
        state.first_change = position;
        self.shards[pin.buffer.shard]
            .dirty
            .fetch_add(1, Ordering::Relaxed);
        true
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
    block::verify(bytes, address)?;
    let scn = block::scn(bytes);
    if scn <= shared.log.flushed() || scn <= shared.log.end() {
        return Ok(());
    }
    Err(format!(
        "its SCN {scn} is beyond the end of the redo: datafile and log files are not of one time"
    ))
}

enum Found {
    /// In the cache, perhaps still being read by another session.
    Present(Pin),
    /// Not in the cache; the buffer is the caller's to fill.
    Claimed(Pin),
}

impl Shard {
    /// The next clean, unpinned, untouched buffer under the clock hand.
    fn victim(&mut self) -> Option<usize> {
        for _ in 0..self.buffers.len() * (TOUCH_MAX as usize + 1) {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.buffers.len();
            let buffer = &self.buffers[at];
            if buffer.pins.load(Ordering::Acquire) > 0 {
                continue;
            }
            let state = buffer.state.lock();
            if state.dirty || state.writing {
                continue;
            }
            if buffer.touch.load(Ordering::Relaxed) > 0 {
                buffer.touch.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            return Some(at);
        }
        None
    }
}

/// What DBWR needs of the cache.
pub(crate) mod writing {
    use super::*;
    use spindle_io::ReadHold;

    /// A dirty buffer chosen to be written.
    pub(crate) struct Candidate {
        pin: Pin,
    }

    /// A sealed block on its way to its datafile.
    pub(crate) struct Sealed {
        pub(crate) candidate: Candidate,
        pub(crate) address: BlockAddress,
        pub(crate) scn: u64,
        pub(crate) bytes: ReadHold,
    }

    impl BufferCache {
        /// Shards that writer number `writer` of `writers` serves.
        fn shards_of(&self, writer: usize, writers: usize) -> impl Iterator<Item = &ShardCell> {
            self.shards.iter().skip(writer).step_by(writers)
        }

        /// The writer that serves a shard.
        pub(crate) fn writer_of_shard(shard: usize, writers: usize) -> usize {
            shard % writers
        }

        /// True when so many of a writer's buffers are dirty that it should write before sessions run out: a quarter,
        /// as with Oracle's `_db_large_dirty_queue`.
        pub(crate) fn is_behind(&self, writer: usize, writers: usize) -> bool {
            self.shards_of(writer, writers)
                .any(|cell| cell.dirty.load(Ordering::Relaxed) > cell.buffers / 4)
        }

        /// The buffer's shard, when so many of its buffers are dirty that its writer should start.
        pub(crate) fn shard_behind(&self, pin: &Pin) -> Option<usize> {
            let cell = &self.shards[pin.buffer.shard];
            (cell.dirty.load(Ordering::Relaxed) > cell.buffers / 4).then_some(pin.buffer.shard)
        }

        /// Up to `limit` dirty, unpinned buffers that the clock will come to next, cold ones first.
        pub(crate) fn cold_dirty(
            &self,
            writer: usize,
            writers: usize,
            limit: usize,
        ) -> Vec<Candidate> {
            let mut chosen = Vec::new();
            for cold_only in [true, false] {
                for cell in self.shards_of(writer, writers) {
                    if cell.dirty.load(Ordering::Relaxed) == 0 {
                        continue;
                    }
                    let shard = cell.shard.lock();
                    let length = shard.buffers.len();
                    for step in 0..length {
                        if chosen.len() >= limit {
                            return chosen;
                        }
                        let buffer = &shard.buffers[(shard.hand + step) % length];
                        let cold = buffer.touch.load(Ordering::Relaxed) == 0;
                        if cold != cold_only || buffer.pins.load(Ordering::Relaxed) > 0 {
                            continue;
                        }
                        let state = buffer.state.lock();
                        if state.dirty && !state.writing {
                            buffer.pins.fetch_add(1, Ordering::Relaxed);
                            chosen.push(Candidate {
                                pin: Pin {
                                    buffer: Arc::clone(buffer),
                                    address: state.address,
                                },
                            });
                        }
                    }
                }
            }
            chosen
        }

        /// Every buffer of a writer whose first unwritten change lies before `position`.
        pub(crate) fn dirty_before(
            &self,
            writer: usize,
            writers: usize,
            position: u64,
        ) -> Vec<Candidate> {
            let mut chosen = Vec::new();
            for cell in self.shards_of(writer, writers) {
                let shard = cell.shard.lock();
                for buffer in &shard.buffers {
                    let state = buffer.state.lock();
                    if state.dirty && state.first_change < position {
                        buffer.pins.fetch_add(1, Ordering::Relaxed);
                        chosen.push(Candidate {
                            pin: Pin {
                                buffer: Arc::clone(buffer),
                                address: state.address,
                            },
                        });
                    }
                }
            }
            chosen
        }

        /// Takes the block for writing: from here to [`BufferCache::written`] nobody can change it. `None` when it is clean
        /// by now.
        pub(crate) async fn seal(
            &self,
            shared: &Shared,
            waits: &ProcessWaits,
            candidate: Candidate,
        ) -> Result<Option<Sealed>> {
            let buffer = &*candidate.pin.buffer;
            let mut hold = buffer
                .wait_until(shared, waits, why_busy, |buffer| {
                    buffer.frame.try_write_hold()
                })
                .await?;
            let mut state = buffer.state.lock();
            if !state.dirty {
                drop(state);
                drop(hold);
                buffer.released();
                return Ok(None);
            }
            state.writing = true;
            drop(state);
            block::seal(&mut hold);
            let scn = block::scn(&hold);
            let bytes = hold.share(self.arena.frame_bytes());
            // Readers may come in again; only changes wait.
            buffer.released();
            Ok(Some(Sealed {
                address: candidate.pin.address,
                candidate,
                scn,
                bytes,
            }))
        }

        /// The write of a block has ended, or was given up; `clean` when the block is on its datafile. `hold` keeps
        /// changes out until this is noted: one that came between would be taken for written.
        pub(crate) fn written<H>(&self, candidate: Candidate, hold: H, clean: bool) {
            let buffer = &candidate.pin.buffer;
            let cell = &self.shards[buffer.shard];
            let mut state = buffer.state.lock();
            state.writing = false;
            if clean && state.dirty {
                state.dirty = false;
                cell.dirty.fetch_sub(1, Ordering::Relaxed);
            }
            drop(state);
            drop(hold);
            buffer.released();
            drop(candidate);
            cell.freed.notify_waiters();
        }
    }
}
