//! The log buffer: where sessions put their redo, and where commits wait for LGWR. Two frames take turns: sessions
//! fill one while LGWR writes the other straight from memory. Positions count record bytes (see [`crate::log::redo`]).

use std::sync::Arc;

use spindle_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spindle_io::sync::{Latch, Notify, has_planted, oneshot};
use spindle_io::{Arena, Frame, ReadHold, WriteHold};

use super::redo::{RECORD_HEADER_BYTES, VectorKind, batch, image_vector_bytes, vector_header};
use super::room::{Queue, Room};
use crate::block::BlockAddress;
use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;

/// The first position of a new database; blocks never changed have SCN 0, which is before it.
pub(crate) const FIRST_POSITION: u64 = 1;

pub(crate) struct Inner {
    active: WriteHold,
    /// Bytes used in the active frame, batch header included.
    used: usize,
    /// Who waits for room in it, and what is reserved for whom.
    pub(crate) queue: Queue,
    /// Position of the first record in the active frame.
    first_position: u64,
    /// The other frame, when LGWR is not writing it.
    spare: Option<WriteHold>,
}

impl Inner {
    fn end(&self) -> u64 {
        self.first_position + (self.used - batch::HEADER_BYTES) as u64
    }

    /// Bytes of the active frame that hold nothing.
    pub(crate) fn free(&self) -> usize {
        self.active.len() - self.used
    }
}

/// The log buffer and who waits on it.
pub(crate) struct Log {
    pub(crate) inner: Latch<Inner>,
    frames: [Frame; 2],
    arena: Arc<Arena>,
    /// [`Log::end`], to be read without the latch.
    appended: AtomicU64,
    flushed: AtomicU64,
    requested: AtomicU64,
    commits: Latch<Vec<(u64, oneshot::Sender<()>)>>,
    /// The ring of log files has room for everything that may be in the buffers. While it has not, changes wait for
    /// a checkpoint, so that LGWR itself never has to: DBWR may need it to complete that checkpoint.
    ring_has_room: AtomicBool,
    pub(crate) lgwr: Notify,
}

/// Planted race: LGWR looks who waits, and then says how far it has come.
pub(crate) const LOOKS_THEN_MOVES: &str = "LGWR looks at the list before it moves `flushed`";
/// Planted race: LGWR is called before it is said what for.
pub(crate) const CALLS_THEN_ASKS: &str = "LGWR is woken before `requested` is moved";
/// Planted race: a record's end is looked up when others may have added theirs.
pub(crate) const READS_END_LATE: &str = "the end of a record is read after the latch is let go";
/// Planted race: a commit checks that the instance has not failed, and only then enters itself among those that are
/// told.
pub(crate) const CHECKS_THEN_ENTERS: &str =
    "a commit looks at the health before it enters the list";

/// What became of an attempt to add a record.
pub(crate) enum Append {
    /// Added.
    Done {
        /// Position of its first byte.
        start: u64,
        /// Position after its last.
        end: u64,
    },
    /// No room until LGWR takes the buffer, or none before others who have waited longer.
    Full {
        /// Bytes that the record takes.
        bytes: usize,
    },
}

/// Bytes of a record of these images and vectors.
pub(crate) fn record_bytes(images: &[(BlockAddress, &[u8])], vectors: &[u8]) -> usize {
    let images = images.iter();
    let image_bytes: usize = images
        .map(|(_, block)| image_vector_bytes(block.len()))
        .sum();
    RECORD_HEADER_BYTES + image_bytes + vectors.len()
}

/// Redo that LGWR takes to write.
pub(crate) struct Batch {
    /// Header and records, sealed.
    pub(crate) bytes: ReadHold,
    /// Position of the first record.
    pub(crate) start: u64,
    /// Position after the last record.
    pub(crate) end: u64,
}

impl Log {
    /// Two frames of `frame_bytes`, with positions starting at `position`.
    pub(crate) fn new(frame_bytes: usize, position: u64) -> Result<Log> {
        let arena = Arena::new(frame_bytes, 2).map_err(|error| KernelError::Memory {
            what: "the log buffer",
            reason: error.to_string(),
        })?;
        let frames = [0, 1].map(|_| arena.allocate().expect("the arena has two frames"));
        let take = |frame: &Frame| frame.try_write_hold().expect("nobody else knows the frame");
        let inner = Inner {
            active: take(&frames[0]),
            used: batch::HEADER_BYTES,
            queue: Queue::default(),
            first_position: position,
            spare: Some(take(&frames[1])),
        };
        Ok(Log {
            inner: Latch::new(inner),
            frames,
            arena,
            appended: AtomicU64::new(position),
            flushed: AtomicU64::new(position),
            requested: AtomicU64::new(position),
            commits: Latch::default(),
            ring_has_room: AtomicBool::new(true),
            lgwr: Notify::new(),
        })
    }

    /// The memory LGWR writes from.
    pub(crate) fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Continues from `position`, where recovery found the end of the redo.
    pub(crate) fn reset(&self, position: u64) {
        let mut inner = self.inner.lock();
        inner.first_position = position;
        inner.used = batch::HEADER_BYTES;
        self.appended.store(position, Ordering::Release);
        self.flushed.store(position, Ordering::Release);
        self.requested.store(position, Ordering::Release);
    }

    /// Position after the last record there is.
    pub(crate) fn end(&self) -> u64 {
        self.inner.lock().end()
    }

    /// Position after the last record, or a little earlier when others are adding some.
    pub(crate) fn appended(&self) -> u64 {
        self.appended.load(Ordering::Acquire)
    }

    /// Everything before this position is on stable storage.
    pub(crate) fn flushed(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    /// Adds a record: images of blocks as they are, then the vectors; into `room` if that was reserved for it, and then
    /// nothing is left of the room.
    pub(crate) fn append(
        &self,
        images: &[(BlockAddress, &[u8])],
        vectors: &[u8],
        room: &mut Option<Room<'_>>,
    ) -> Append {
        let length = record_bytes(images, vectors);
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let free = inner.free();
        if !self.ring_has_room() || !inner.queue.admits(length, free, room.as_ref()) {
            return Append::Full { bytes: length };
        }
        let start = inner.end();
        let mut at = inner.used;
        let mut put = |bytes: &[u8]| {
            inner.active[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&(length as u32).to_le_bytes());
        for (address, block) in images {
            put(&vector_header(VectorKind::Image, *address, block.len()));
            put(block);
        }
        put(vectors);
        let was_third_full = inner.used * 3 > inner.active.len();
        inner.used = at;
        let end = inner.end();
        self.appended.store(end, Ordering::Release);
        let given = inner.queue.used(room.take(), inner.free());
        // Sessions that wait for room get it when LGWR has taken what stands here.
        let now_third_full = !was_third_full && at * 3 > inner.active.len();
        let wake = now_third_full || !inner.queue.is_empty();
        drop(guard);
        self.deliver(given);
        let end = if has_planted(READS_END_LATE) {
            self.end()
        } else {
            end
        };
        if wake {
            self.request(end);
        }
        Append::Done { start, end }
    }

    /// Asks LGWR to write everything up to `position`.
    pub(crate) fn request(&self, position: u64) {
        if has_planted(CALLS_THEN_ASKS) {
            self.lgwr.notify_one();
            self.requested.fetch_max(position, Ordering::AcqRel);
            return;
        }
        if self.requested.fetch_max(position, Ordering::AcqRel) < position {
            self.lgwr.notify_one();
        }
    }

    /// True when LGWR has something to write.
    pub(crate) fn is_wanted(&self) -> bool {
        self.requested.load(Ordering::Acquire) > self.flushed()
    }

    /// Waits until everything before `position` is on stable storage.
    pub(crate) async fn flush_to(&self, fixed: &FixedSga, position: u64) -> Result<()> {
        if self.flushed() >= position {
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        if has_planted(CHECKS_THEN_ENTERS) {
            fixed.health.check()?;
        }
        self.commits.lock().push((position, sender));
        self.request(position);
        // LGWR may have written it between the look and the push; it looks at the list after it moves `flushed`.
        if self.flushed() >= position {
            return Ok(());
        }
        // After the push: a stop of the instance clears the list, and then either finds this entry or is seen here.
        if !has_planted(CHECKS_THEN_ENTERS) {
            fixed.health.check()?;
        }
        receiver.await.map_err(|_| fixed.health.why())
    }

    /// LGWR takes what there is. `None` when there is nothing.
    pub(crate) fn take(&self, database: u64, sequence: u32) -> Option<Batch> {
        let (mut hold, used, first_position, end, given) = {
            let mut guard = self.inner.lock();
            let inner = &mut *guard;
            if inner.used == batch::HEADER_BYTES {
                return None;
            }
            let end = inner.end();
            let spare = inner
                .spare
                .take()
                .expect("LGWR gives a frame back before it takes the next");
            let taken = std::mem::replace(&mut inner.active, spare);
            let used = std::mem::replace(&mut inner.used, batch::HEADER_BYTES);
            let first_position = std::mem::replace(&mut inner.first_position, end);
            let given = self.give(inner);
            (taken, used, first_position, end, given)
        };
        self.deliver(given);
        batch::seal(&mut hold[..used], database, sequence, first_position);
        let whole = hold.len();
        hold[used..whole.min(used + PADDING_MAX)].fill(0);
        Some(Batch {
            bytes: hold.share(whole),
            start: first_position,
            end,
        })
    }

    /// The bytes of the next batch, header included, and the position it begins at; zero when there is nothing.
    pub(crate) fn pending(&self) -> (usize, u64) {
        let inner = self.inner.lock();
        (
            if inner.used == batch::HEADER_BYTES {
                0
            } else {
                inner.used
            },
            inner.first_position,
        )
    }

    /// What is not as a stopped instance leaves it, if anything.
    pub(crate) fn in_use(&self) -> Option<String> {
        self.inner.lock().queue.in_use()
    }

    /// LGWR gives the written frame back: everything before `end` is on stable storage.
    pub(crate) fn written(&self, end: u64) {
        let spare = self
            .frames
            .iter()
            .find_map(Frame::try_write_hold)
            .expect("the frame written is free, the other is held by the buffer");
        self.inner.lock().spare = Some(spare);
        self.acknowledge(end);
    }

    /// Whether the ring of log files had room when it was last looked at.
    pub(crate) fn ring_has_room(&self) -> bool {
        self.ring_has_room.load(Ordering::Acquire)
    }

    /// Says whether the ring of log files has room; when it has again, changes continue.
    pub(crate) fn set_ring_has_room(&self, has_room: bool) {
        let had_room = self.ring_has_room.swap(has_room, Ordering::AcqRel);
        if has_room && !had_room {
            let given = self.give(&mut self.inner.lock());
            self.deliver(given);
        }
    }

    /// Lets commits up to `end` return.
    pub(crate) fn acknowledge(&self, end: u64) {
        let moves_late = has_planted(LOOKS_THEN_MOVES);
        if !moves_late {
            self.flushed.fetch_max(end, Ordering::AcqRel);
        }
        let done: Vec<_> = self
            .commits
            .lock()
            .extract_if(.., |(position, _)| *position <= end)
            .collect();
        if moves_late {
            self.flushed.fetch_max(end, Ordering::AcqRel);
        }
        for (_, sender) in done {
            // The session may have gone.
            let _ = sender.send(());
        }
    }

    /// Wakes everyone who waits here, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        self.commits.lock().clear();
        let sent_away = self.inner.lock().queue.clear();
        drop(sent_away);
        self.lgwr.notify_one();
    }
}

/// Redo blocks are at most this long: padding beyond a batch's end is made of zeros up to here.
pub(crate) const PADDING_MAX: usize = 4096;
