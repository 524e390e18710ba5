//! What DBWR does with the cache: chooses dirty buffers, takes them out of change, and makes them clean.

use std::sync::Arc;

use spindle_io::ReadHold;
use spindle_io::sync::atomic::Ordering;
use spindle_io::sync::has_planted;

use super::buffer::{Access, Buffer, Pin, State, WriteClone, why_busy};
use super::shard::Shard;
use super::{BufferCache, CheckpointQueue};
use crate::block::{self, BlockAddress, BlockKind};
use crate::error::Result;
use crate::fixed_sga::FixedSga;
use crate::invariant::are_checked;
use crate::settings::PlantedFault;
use crate::wait_event::ProcessWaits;

/// Planted race: changes are let in before the block is noted as written.
pub(crate) const LETS_GO_THEN_NOTES: &str = "a written block is let go before it is noted clean";

/// A batch holds at most this many times the blocks that were chosen: each with those beside it.
const NEIGHBOURS_MAX: usize = 4;
/// The address of a planted fault.
const NOWHERE: BlockAddress = BlockAddress {
    file: 9,
    block: 999,
};

/// A dirty buffer chosen to be written.
pub(crate) struct Candidate {
    pin: Pin,
}

impl Candidate {
    /// Its block.
    pub(crate) fn address(&self) -> BlockAddress {
        self.pin.address
    }
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
    fn shards_of(&self, writer: usize, writers: usize) -> impl Iterator<Item = &Shard> {
        let shards = self.shards.iter().skip(writer).step_by(writers);
        shards.map(|shard| &**shard)
    }

    /// The writer that serves a shard.
    pub(crate) fn writer_of_shard(shard: usize, writers: usize) -> usize {
        shard % writers
    }

    /// True when this many of a writer's buffers are dirty that it should write before sessions run out: a quarter,
    /// as with Oracle's `_db_large_dirty_queue`.
    pub(crate) fn is_behind(&self, writer: usize, writers: usize) -> bool {
        self.shards_of(writer, writers)
            .any(|shard| shard.dirty() > shard.buffers / 4)
    }

    /// True when a session waits for a buffer of this writer's.
    pub(crate) fn is_awaited(&self, writer: usize, writers: usize) -> bool {
        self.shards_of(writer, writers).any(Shard::is_awaited)
    }

    /// The buffer's shard, when this many of its buffers are dirty that its writer should start.
    pub(crate) fn shard_behind(&self, pin: &Pin) -> Option<usize> {
        let shard = &self.shards[pin.buffer.shard];
        (shard.dirty() > shard.buffers / 4).then_some(pin.buffer.shard)
    }

    /// About `limit` dirty, unpinned buffers, from every shard by its share of them and at least one where a session
    /// waits; in each those that the clock will come to next, cold ones first. Where sessions wait and there is nothing
    /// to write, they get what is free.
    pub(crate) fn cold_dirty(&self, writer: usize, writers: usize, limit: usize) -> Vec<Candidate> {
        let all: usize = self.shards_of(writer, writers).map(Shard::dirty).sum();
        let mut chosen = Vec::new();
        for shard in self.shards_of(writer, writers) {
            let quota = (limit * shard.dirty()).div_ceil(all.max(1));
            let is_awaited = shard.is_awaited();
            let before = chosen.len();
            if quota > 0 {
                choose(shard, quota, is_awaited, &mut chosen);
            }
            if is_awaited && chosen.len() == before {
                shard.give_away();
            }
        }
        self.take_neighbours(writer, writers, &mut chosen);
        chosen
    }

    /// Adds dirty blocks beside the chosen ones, which cost no further write. Those in demand come along only beside a
    /// block that is in demand itself.
    fn take_neighbours(&self, writer: usize, writers: usize, chosen: &mut Vec<Candidate>) {
        let seeds = chosen.len();
        for seed in 0..seeds {
            let (pin, demand) = (&chosen[seed].pin, &chosen[seed].pin.buffer.touch);
            let (address, in_demand) = (pin.address, demand.load(Ordering::Relaxed) > 0);
            for step in [1, -1] {
                let mut beside = address;
                while chosen.len() < seeds * NEIGHBOURS_MAX {
                    let Some(block) = beside.block.checked_add_signed(step) else {
                        break;
                    };
                    beside.block = block;
                    let shard = self.shard_number(beside);
                    if Self::writer_of_shard(shard, writers) != writer {
                        break;
                    }
                    match self.shards[shard].dirty_at(beside, in_demand) {
                        Some(neighbour) => chosen.push(neighbour),
                        None => break,
                    }
                }
            }
        }
    }

    /// A writer's checkpoint queue.
    pub(crate) fn queue(&self, writer: usize) -> &CheckpointQueue {
        &self.queues[writer]
    }

    /// Up to `limit` buffers of a writer that the checkpoint wants written, those first that hold it back most.
    pub(crate) fn due(&self, writer: usize, limit: usize) -> Vec<Candidate> {
        let due = self.queues[writer].due(limit).into_iter();
        due.map(|pin| Candidate { pin }).collect()
    }

    /// The lowest position of all queues, or the end of the redo, whichever comes first; nothing enters a queue before
    /// it from here on.
    pub(crate) fn settle_lowest(&self) -> u64 {
        let queues = self.queues.iter();
        let lowest = queues.map(|queue| queue.settle_lowest(|| self.log.end()));
        lowest.min().expect("there is a writer")
    }

    /// True when a dirty buffer was changed before `position`.
    pub(crate) fn has_before(&self, position: u64) -> bool {
        self.queues.iter().any(|queue| queue.has_before(position))
    }

    /// What has been asked to be written, whether it has been or not.
    pub(crate) fn target(&self) -> u64 {
        let targets = self.queues.iter().map(CheckpointQueue::target);
        targets.max().expect("there is a writer")
    }

    /// Takes the block for writing: from here to [`BufferCache::written`] it cannot be changed. Of a block in demand a
    /// copy is taken instead, as long as there are frames for that, and sessions may change the block. `None` when it
    /// is clean by now.
    pub(crate) async fn seal(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        candidate: Candidate,
    ) -> Result<Option<Sealed>> {
        let buffer = &*candidate.pin.buffer;
        let mut hold = buffer
            .wait_until(fixed, waits, (Access::Exclusive, why_busy), |buffer| {
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
        let planted = fixed.settings.has_planted(PlantedFault::BlockMisplaced);
        let address = candidate.pin.address;
        if planted && block::kind(&hold) == BlockKind::Heap as u8 {
            block::format(&mut hold, BlockKind::Heap, NOWHERE, 0);
        }
        if are_checked() {
            let damage = block::check(&hold, address).err();
            fixed.require_none(damage.map(|what| {
                format!("block {address} is not written, for it cannot be one: {what}")
            }))?;
        }
        block::seal(&mut hold);
        let scn = block::scn(&hold);
        let bytes = match self.write_clone(buffer, &hold) {
            Some(clone) => {
                buffer.state.lock().write_clone = Some(WriteClone::Same);
                drop(hold);
                clone
            }
            None => hold.share(self.arena.frame_bytes()),
        };
        // Readers may come in again; changes wait where there is no copy.
        buffer.released();
        Ok(Some(Sealed {
            address: candidate.pin.address,
            candidate,
            scn,
            bytes,
        }))
    }

    /// A copy of a block that is used often, if there is a frame for it.
    fn write_clone(&self, buffer: &Buffer, block: &[u8]) -> Option<ReadHold> {
        if buffer.touch.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let frame = self.arena.allocate()?;
        let mut clone = frame.try_write_hold().expect("the frame is new");
        clone.copy_from_slice(block);
        Some(clone.share(block.len()))
    }

    /// The write of a block has ended, or was given up; `done` when what was taken is on its datafile. The block is
    /// clean then, unless it was changed while its copy was written. Where there is no copy, `hold` keeps changes out
    /// until this is noted: one that came between would be taken for written.
    pub(crate) fn written<H>(&self, fixed: &FixedSga, candidate: Candidate, hold: H, done: bool) {
        let buffer = &candidate.pin.buffer;
        let hold = (!has_planted(LETS_GO_THEN_NOTES)).then_some(hold);
        let mut state = buffer.state.lock();
        state.writing = false;
        if done && state.dirty {
            self.note_written(fixed, buffer, &mut state);
        }
        let is_clean = !state.dirty;
        drop(state);
        drop(hold);
        buffer.released();
        let (shard, place) = (&self.shards[buffer.shard], buffer.place);
        // Here it goes to who waits for a buffer.
        drop(candidate);
        if is_clean {
            shard.became_clean(place);
        }
    }

    /// The block as it was taken is on its datafile: it is clean, or dirty since the first change after that. Not for a
    /// write that failed: recovery would still have to begin where it had to.
    fn note_written(&self, fixed: &FixedSga, buffer: &Buffer, state: &mut State) {
        let forgotten = fixed.settings.has_planted(PlantedFault::CloneTakenForBlock);
        match state.write_clone.take() {
            Some(WriteClone::ChangedFrom(position)) if !forgotten => {
                if position != state.first_change {
                    self.queue_of(buffer)
                        .leave(state.first_change, state.address);
                    state.first_change = position;
                }
            }
            Some(WriteClone::ChangedFrom(position)) => {
                self.queue_of(buffer).leave(position, state.address);
                self.now_clean(buffer, state);
            }
            Some(WriteClone::Same) | None => self.now_clean(buffer, state),
        }
    }
}

impl Shard {
    /// The block at `address`, if it is dirty and not in use; of those in demand only on request.
    fn dirty_at(&self, address: BlockAddress, in_demand: bool) -> Option<Candidate> {
        let inner = self.inner.lock();
        let buffer = inner.buffer_of(address)?;
        candidate(buffer, true).or_else(|| in_demand.then(|| candidate(buffer, false)).flatten())
    }
}

/// Adds up to `quota` candidates of a shard. Those chosen because sessions wait go to them when they are clean, unless
/// they are used meanwhile.
fn choose(shard: &Shard, quota: usize, is_awaited: bool, chosen: &mut Vec<Candidate>) {
    let inner = shard.inner.lock();
    let length = inner.buffers.len();
    let mut wanted = quota;
    for cold in [true, false] {
        let places = (0..length).map(|step| (inner.hand + step) % length);
        let candidates = places.filter_map(|at| candidate(&inner.buffers[at], cold));
        for candidate in candidates.take(wanted) {
            if is_awaited {
                candidate.pin.buffer.touch.store(0, Ordering::Relaxed);
            }
            wanted -= 1;
            chosen.push(candidate);
        }
    }
}

/// The buffer as a candidate, if it is dirty, unpinned, and as cold as asked.
fn candidate(buffer: &Arc<Buffer>, cold: bool) -> Option<Candidate> {
    let is_cold = buffer.touch.load(Ordering::Relaxed) == 0;
    if is_cold != cold || buffer.pins.load(Ordering::Relaxed) > 0 {
        return None;
    }
    let state = buffer.state.lock();
    if !state.dirty || state.writing {
        return None;
    }
    Some(Candidate {
        pin: Pin::new(buffer, state.address),
    })
}
