//! The buffer cache: frames of the SGA that hold blocks. Sharded by block address; each shard replaces by clock with a
//! small touch count, among clean and unpinned buffers only. No latch is held across an await or an I/O: a buffer under
//! I/O is protected by its frame's own hold and by its phase, and who must wait does so under the wait event that says
//! why.

mod buffer;
mod checkpoint_queue;
mod shard;
mod writers;
pub(crate) mod writing;

use std::sync::Arc;

use spindle_io::sync::Semaphore;
use spindle_io::sync::atomic::Ordering;
use spindle_io::{Arena, BlockDevice, Submission, read_blocks};

use crate::block::{self, BlockAddress, BlockKind, Damage};
use crate::buggify::Switch;
use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::log::buffer::Log;
use crate::probe::{self, Probe};
use crate::settings::{PlantedFault, TornBlocks};
use crate::wait_event::{ProcessWaits, WaitEvent};

use buffer::{Access, Buffer, Claim, Phase, State, WriteClone};
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use buffer::{CALLS_THEN_LETS_GO, LOOKS_THEN_UNPINS};
pub(crate) use buffer::{ExclusiveBlock, Pin};
pub(crate) use checkpoint_queue::CheckpointQueue;
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use shard::LOOKS_THEN_WAITS;
use shard::{BufferForBlock, Looked, Shard};
use writers::Writers;

/// How often a session that needs two blocks tries to get them without waiting for one while it holds the other.
const UNPINNED_TRIES: u32 = 4;
const SHARDS_MAX: usize = 64;
const SHARD_BUFFERS_MIN: usize = 256;
/// Frames for copies of blocks that are being written, for each writer: a batch of them. At most a sixteenth of the
/// cache.
const WRITE_CLONES: usize = 128;

/// The cache.
pub(crate) struct BufferCache {
    shards: Vec<Arc<Shard>>,
    /// Of each writer.
    queues: Vec<CheckpointQueue>,
    /// The turn of the session that waits for a buffer while it holds another.
    pinned_wait: Semaphore,
    arena: Arc<Arena>,
    writers: Writers,
    /// What blocks say is compared with the end of the redo.
    log: Arc<Log>,
}

impl BufferCache {
    /// A cache of `bytes` bytes of blocks, for this many DBWRs.
    pub(crate) fn new(
        bytes: u64,
        block_bytes: usize,
        writers: usize,
        log: Arc<Log>,
    ) -> Result<BufferCache> {
        let calls = Writers::new(writers);
        let frames = ((bytes as usize) / block_bytes).max(16);
        let clones = (frames / 16).min(writers * WRITE_CLONES);
        let arena =
            Arena::new(block_bytes, frames + clones).map_err(|error| KernelError::Memory {
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
                let call = &calls.calls[Self::writer_of_shard(shard, writers)];
                Shard::new(shard, count, &arena, Arc::clone(call))
            })
            .collect();
        Ok(BufferCache {
            shards,
            queues: (0..writers).map(|_| CheckpointQueue::default()).collect(),
            pinned_wait: Semaphore::new(1),
            arena,
            writers: calls,
            log,
        })
    }

    /// How many blocks it holds.
    pub(crate) fn buffers(&self) -> usize {
        self.shards.iter().map(|shard| shard.buffers).sum()
    }

    /// The memory the cache lives in.
    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Buffers that hold changes not yet written.
    pub(crate) fn dirty_buffers(&self) -> usize {
        self.shards.iter().map(|shard| shard.dirty()).sum()
    }

    fn shard_of(&self, address: BlockAddress) -> &Shard {
        &self.shards[self.shard_number(address)]
    }

    fn shard_number(&self, address: BlockAddress) -> usize {
        // Fibonacci hashing: neighbouring blocks go to different shards.
        let hash = address.to_u64().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        (hash % self.shards.len() as u64) as usize
    }

    /// The block at `address`, read in if it is not in the cache.
    pub(crate) async fn get(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Pin> {
        waits.add_logical_read();
        let pin = match self.present(fixed, address)? {
            Some(pin) => pin,
            // In a box, for this future is a part of many, which are moved about.
            None => Box::pin(self.get_absent(fixed, waits, address)).await?,
        };
        if fixed.settings.has_planted(PlantedFault::PinKept) {
            std::mem::forget(Pin::new(&pin.buffer, address));
        }
        Ok(pin)
    }

    async fn get_absent(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Pin> {
        loop {
            let found = self.find(fixed, waits, address).await?;
            if let Some(pin) = self.settle(fixed, waits, found).await? {
                return Ok(pin);
            }
        }
    }

    /// The block at `address` if it is in the cache, as it nearly always is: without a wait.
    fn present(&self, fixed: &FixedSga, address: BlockAddress) -> Result<Option<Pin>> {
        fixed.health.check()?;
        Ok(self.shard_of(address).present(address))
    }

    /// Two blocks, as [`BufferCache::get_all`].
    pub(crate) async fn get_two(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        addresses: [BlockAddress; 2],
    ) -> Result<[Pin; 2]> {
        let wanted = addresses.map(Wanted::Present);
        self.get_all(fixed, waits, wanted).await
    }

    /// Several blocks. While a buffer for one is waited for no other is pinned: sessions that each hold one and wait
    /// for another could stop each other for good. The one waited for is kept, and then the others are tried. The first
    /// should be the one that is likely to be in the cache. Where buffers are so scarce that a block is gone when the
    /// other has come, a session may hold some after all; one session at a time, so that no two wait for each other.
    pub(crate) async fn get_all<const N: usize>(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        wanted: [Wanted; N],
    ) -> Result<[Pin; N]> {
        let mut kept = 0;
        for _ in 0..UNPINNED_TRIES {
            let mut pins = [const { None }; N];
            pins[kept] = Some(self.get_wanted(fixed, waits, wanted[kept]).await?);
            let missing = self.get_others(fixed, waits, &wanted, &mut pins).await?;
            match missing {
                None => return Ok(pins.map(|pin| pin.expect("none is missing"))),
                Some(index) => kept = index,
            }
        }
        probe::hit(Probe::PinnedWait);
        let turn = self.pinned_wait.acquire().await;
        let _turn = turn.expect("the semaphore is never closed");
        let mut pins = [const { None }; N];
        for (pin, wanted) in pins.iter_mut().zip(wanted) {
            *pin = Some(self.get_wanted(fixed, waits, wanted).await?);
        }
        Ok(pins.map(|pin| pin.expect("each was waited for")))
    }

    async fn get_wanted(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        wanted: Wanted,
    ) -> Result<Pin> {
        match wanted {
            Wanted::Present(address) => self.get(fixed, waits, address).await,
            Wanted::New(address) => self.get_new(fixed, waits, address).await,
        }
    }

    /// Gets those that are not there without waiting for a buffer. Returns the first for which there is none.
    async fn get_others<const N: usize>(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        wanted: &[Wanted; N],
        pins: &mut [Option<Pin>; N],
    ) -> Result<Option<usize>> {
        for (index, (pin, wanted)) in pins.iter_mut().zip(wanted).enumerate() {
            if pin.is_some() {
                continue;
            }
            let address = wanted.address();
            waits.add_logical_read();
            *pin = self.present(fixed, address)?;
            if pin.is_some() {
                continue;
            }
            let Some(found) = self.find_now(fixed, address)? else {
                return Ok(Some(index));
            };
            *pin = match (found, wanted) {
                (BufferForBlock::Claimed(claim), Wanted::New(_)) => Some(format_claimed(claim)),
                (found, _) => Box::pin(self.settle(fixed, waits, found)).await?,
            };
            if pin.is_none() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// The block at `address` when its present bytes do not matter, because the caller formats it: never read in.
    pub(crate) async fn get_new(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<Pin> {
        loop {
            let found = self.find(fixed, waits, address).await?;
            if let BufferForBlock::Claimed(claim) = found {
                return Ok(format_claimed(claim));
            }
            if let Some(pin) = self.settle(fixed, waits, found).await? {
                return Ok(pin);
            }
        }
    }

    /// Up to `count` blocks from `first`, at least one, pinned and in order; those that are not in the cache are read
    /// in runs of one I/O each. Fewer when buffers are scarce: they are waited for with none pinned.
    pub(crate) async fn get_run(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        first: BlockAddress,
        count: u32,
    ) -> Result<Vec<Pin>> {
        let mut pins: Vec<Pin> = Vec::with_capacity(count as usize);
        let mut run: Vec<Claim> = Vec::new();
        let count = fixed.buggify.shorten(Switch::ShortMultiblockRead, count);
        for block in first.block..first.block + count {
            let address = BlockAddress {
                file: first.file,
                block,
            };
            match self.find_now(fixed, address)? {
                Some(BufferForBlock::Claimed(claim)) => run.push(claim),
                Some(found) => {
                    // Perhaps to be waited for: what was claimed is read first, so that two sessions never wait for
                    // each other's claims.
                    self.read_run(fixed, waits, &mut run, &mut pins).await?;
                    match self.settle(fixed, waits, found).await? {
                        Some(pin) => pins.push(pin),
                        None => break,
                    }
                }
                None => break,
            }
            waits.add_logical_read();
        }
        self.read_run(fixed, waits, &mut run, &mut pins).await?;
        if pins.is_empty() {
            pins.push(self.get(fixed, waits, first).await?);
        }
        Ok(pins)
    }

    /// Reads the blocks of `run`, if there are any, and adds them to `pins`.
    async fn read_run(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        run: &mut Vec<Claim>,
        pins: &mut Vec<Pin>,
    ) -> Result<()> {
        let how = match run.len() {
            0 => return Ok(()),
            1 => Submission::Alone,
            _ => Submission::Batched,
        };
        let run = std::mem::take(run);
        pins.extend(self.read_in(fixed, waits, run, how).await?);
        Ok(())
    }

    /// Finds the buffer of `address` or claims one for it, waiting as long as that takes.
    async fn find(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        address: BlockAddress,
    ) -> Result<BufferForBlock> {
        if let Some(found) = self.find_now(fixed, address)? {
            return Ok(found);
        }
        let shard = self.shard_of(address);
        match shard.find_or_queue(address, &fixed.health)? {
            Looked::Found(found) => Ok(found),
            Looked::Queued { buffer, event } => {
                probe::hit(Probe::FreeBufferWait);
                let wait = waits.begin(&*fixed.env);
                let found = buffer.await;
                wait.end(event);
                found.map_err(|_| fixed.health.why())
            }
        }
    }

    /// Makes what was found fit for use: reads a claimed block in, or waits for another session's read of it. `None`
    /// when that read failed: the block is to be looked for again.
    async fn settle(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        found: BufferForBlock,
    ) -> Result<Option<Pin>> {
        let pin = match found {
            BufferForBlock::Present(pin) => pin,
            BufferForBlock::Claimed(claim) => {
                let alone = self.read_in(fixed, waits, vec![claim], Submission::Alone);
                return Ok(alone.await?.pop());
            }
        };
        let holds = |buffer: &Buffer| match buffer.state.lock().phase {
            Phase::Reading => None,
            phase => Some(phase == Phase::Valid),
        };
        let valid = match holds(&pin.buffer) {
            Some(valid) => valid,
            None => {
                let reading = |_: &State| WaitEvent::ReadByOtherSession;
                pin.buffer
                    .wait_until(fixed, waits, (Access::Shared, reading), holds)
                    .await?
            }
        };
        Ok(valid.then_some(pin))
    }

    /// One look, without waiting: the buffer of `address`, or a claimed one, or `None` when no buffer is free.
    fn find_now(&self, fixed: &FixedSga, address: BlockAddress) -> Result<Option<BufferForBlock>> {
        fixed.health.check()?;
        let scarce = || fixed.buggify.fires(Switch::NoFreeBuffer);
        Ok(self.shard_of(address).find(address, scarce))
    }

    /// Reads adjacent blocks into the buffers claimed for them, in one I/O. After an error none of them is claimed any
    /// longer.
    async fn read_in(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        claims: Vec<Claim>,
        submission: Submission,
    ) -> Result<Vec<Pin>> {
        let first = claims[0].pin().address;
        let block_bytes = self.arena.frame_bytes();
        let device = device_of(fixed, first, claims.len() * block_bytes)?;
        let into = claims
            .iter()
            .map(|claim| {
                let frame = &claim.pin().buffer.frame;
                frame
                    .try_write_hold()
                    .expect("a claimed buffer is its claimer's")
            })
            .collect();
        let wait = waits.begin(&*fixed.env);
        let offset = u64::from(first.block) * block_bytes as u64;
        let read = read_blocks(device, offset, into, submission).await;
        let event = if claims.len() == 1 {
            WaitEvent::DbFileSequentialRead
        } else {
            WaitEvent::DbFileScatteredRead
        };
        wait.end(event);
        waits.add_physical_read(claims.len());
        let unreadable = |error| KernelError::UnreadableBlock {
            address: first,
            error,
        };
        let verified = read.map_err(unreadable).and_then(|holds| {
            holds.iter().zip(&claims).try_for_each(|(bytes, claim)| {
                let address = claim.pin().address;
                self.verify(fixed, bytes, address)
                    .map_err(|damage| KernelError::DamagedBlock {
                        address,
                        device: device.name().to_string(),
                        reason: damage.to_string(),
                    })
            })
        });
        verified?;
        Ok(claims.into_iter().map(Claim::now_valid).collect())
    }

    /// Checks a block as it was read in: whole, in its place, and of this database's present.
    fn verify(
        &self,
        fixed: &FixedSga,
        bytes: &[u8],
        address: BlockAddress,
    ) -> std::result::Result<(), Damage> {
        if !fixed
            .settings
            .has_planted(PlantedFault::BlockChecksumUnverified)
        {
            block::verify(bytes, address)?;
            // What bears a right checksum may have been sealed by another program.
            block::check(bytes, address)?;
        }
        let scn = block::scn(bytes);
        if scn <= self.log.flushed() || scn <= self.log.end() {
            return Ok(());
        }
        Err(Damage(format!(
            "its SCN {scn} is beyond the end of the redo: datafile and log files are not of one time"
        )))
    }

    /// Marks a block dirty that is about to be changed; it is held exclusively. To be called before the change is
    /// logged, so that the checkpoint position cannot go past it. An image before `images_from` no longer counts.
    pub(crate) fn begin_change(&self, fixed: &FixedSga, images_from: u64, pin: &Pin) -> Begun {
        let mut state = pin.buffer.state.lock();
        let is_cloned = state.write_clone == Some(WriteClone::Same);
        if state.dirty && !is_cloned {
            return Begun::AlreadyDirty;
        }
        let is_old = fixed.settings.has_planted(PlantedFault::ImageTooOld);
        let usable = state.image.filter(|&image| image >= images_from && !is_old);
        let queue = self.queue_of(&pin.buffer);
        let position = queue.enter(&pin.buffer, pin.address, usable, || self.log.end());
        self.now_dirty(&pin.buffer, &mut state, position);
        if fixed.settings.instance.torn_blocks != TornBlocks::Images {
            return Begun::Protected;
        }
        if usable == Some(position) || is_old && state.image.is_some() {
            probe::hit(Probe::ImageUsedAgain);
            Begun::Protected
        } else {
            Begun::Unprotected
        }
    }

    /// The change was logged, and its record, which begins at `position`, holds all there is to know of the block. Of
    /// use with [`TornBlocks::Images`] only.
    pub(crate) fn note_image(&self, pin: &Pin, position: u64) {
        pin.buffer.state.lock().image = Some(position);
    }

    /// The change was not logged, and the block that it made dirty is as clean as before. It was held all the time.
    pub(crate) fn give_up_change(&self, pin: &Pin) {
        let mut state = pin.buffer.state.lock();
        if let Some(WriteClone::ChangedFrom(position)) = state.write_clone {
            state.write_clone = Some(WriteClone::Same);
            if position != state.first_change {
                self.queue_of(&pin.buffer).leave(position, pin.address);
            }
        } else {
            self.now_clean(&pin.buffer, &mut state);
        }
    }

    /// Marks a block dirty that recovery rolls forward from `position`.
    pub(crate) fn begin_roll_forward(&self, pin: &Pin, position: u64) {
        let mut state = pin.buffer.state.lock();
        if state.dirty && state.write_clone != Some(WriteClone::Same) {
            return;
        }
        self.queue_of(&pin.buffer)
            .enter_at(position, &pin.buffer, pin.address);
        self.now_dirty(&pin.buffer, &mut state, position);
    }

    /// The buffer, which is clean or as its write clone is, has entered its queue at `position`.
    fn now_dirty(&self, buffer: &Buffer, state: &mut State, position: u64) {
        if state.dirty {
            probe::hit(Probe::WriteCloneChanged);
            state.write_clone = Some(WriteClone::ChangedFrom(position));
            return;
        }
        state.dirty = true;
        state.first_change = position;
        self.shards[buffer.shard]
            .dirty
            .fetch_add(1, Ordering::Relaxed);
    }

    fn now_clean(&self, buffer: &Buffer, state: &mut State) {
        state.dirty = false;
        // Before it leaves the queue, which wakes who waits until it is written.
        self.shards[buffer.shard]
            .dirty
            .fetch_sub(1, Ordering::Relaxed);
        self.queue_of(buffer)
            .leave(state.first_change, state.address);
    }

    fn queue_of(&self, buffer: &Buffer) -> &CheckpointQueue {
        &self.queues[Self::writer_of_shard(buffer.shard, self.queues.len())]
    }

    /// What is not as a stopped instance leaves it, if anything.
    pub(crate) fn in_use(&self) -> Option<String> {
        self.shards.iter().find_map(|shard| shard.in_use())
    }

    /// Wakes every session that waits for a free buffer or a busy one, and the writers.
    pub(crate) fn wake_all(&self) {
        for shard in &self.shards {
            shard.wake_all();
        }
        self.writers.wake_all();
    }
}

/// The device to read this many bytes from. Error when it has no such blocks: what led there is damaged.
fn device_of(fixed: &FixedSga, first: BlockAddress, bytes: usize) -> Result<&dyn BlockDevice> {
    let found = fixed.storage.find_datafile(first.file);
    let damaged = |device: String| KernelError::DamagedBlock {
        address: first,
        device,
        reason: "another block leads to it, and there is no such block".to_string(),
    };
    let device = found.ok_or_else(|| damaged(format!("datafile {}", first.file)))?;
    let offset = u64::from(first.block) * fixed.settings.block_bytes as u64;
    if offset + bytes as u64 > device.limits().capacity_bytes {
        return Err(damaged(device.name().to_string()));
    }
    Ok(&**device)
}

/// A block that is about to be formatted, in the buffer claimed for it.
fn format_claimed(claim: Claim) -> Pin {
    let pin = claim.pin();
    let mut bytes = pin
        .buffer
        .frame
        .try_write()
        .expect("a claimed buffer is its claimer's");
    block::format(&mut bytes, BlockKind::Unused, pin.address, 0);
    drop(bytes);
    claim.now_valid()
}

/// A block that is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// As it is.
    Present(BlockAddress),
    /// To be formatted: what it holds does not matter.
    New(BlockAddress),
}

impl Wanted {
    pub(crate) fn address(self) -> BlockAddress {
        let (Wanted::Present(address) | Wanted::New(address)) = self;
        address
    }
}

/// What a change finds of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It was dirty, and has an image from which recovery can begin.
    AlreadyDirty,
    /// It was clean, or as its write clone is; its last image is in the redo that recovery would read, or it needs
    /// none.
    Protected,
    /// It was clean, or as its write clone is; recovery would not find an image of it.
    Unprotected,
}
