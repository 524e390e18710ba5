//! Room in the log buffer: who waits for it, and for whom it is reserved. First come, first served: as soon as there is
//! room for the record of the session that has waited longest, it is reserved and that session is woken. No session is
//! woken in vain, and while any session waits no newcomer takes the room. A session that waits has let its blocks go:
//! its record may have grown meanwhile, and then it waits again, before all others.

use std::collections::VecDeque;

use spindle_io::sync::{has_planted, oneshot};

use super::buffer::{Inner, Log};
use crate::error::Result;
use crate::fixed_sga::FixedSga;
use crate::probe::{self, Probe};
use crate::wait_event::{ProcessWaits, WaitEvent};

/// Planted race: a session looks whether there is room, and then says that it waits.
pub(crate) const LOOKS_THEN_QUEUES: &str =
    "a session looks for room in the log buffer before it waits";
/// Planted fault: room that is given back is not passed on.
pub(crate) const GIVES_BACK_SILENTLY: &str = "room given back is not passed on";

/// Room that was waited for: of this many bytes, for whom.
pub(crate) type Given = Vec<(usize, oneshot::Sender<()>)>;

/// Who waits for room, and what is reserved.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: VecDeque<(usize, oneshot::Sender<()>)>,
    /// Bytes given to sessions that have not used them yet.
    reserved: usize,
}

impl Queue {
    /// True when a record of this many bytes may be added now to a buffer with `free` bytes.
    pub(crate) fn admits(&self, bytes: usize, free: usize, room: Option<&Room<'_>>) -> bool {
        let is_turn = room.is_some() || self.waiting.is_empty();
        let own = room.map_or(0, |room| room.bytes);
        is_turn && self.reserved - own + bytes <= free
    }

    /// True when no session waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A record was added, into `room` if there was any; `free` bytes are left. What the room had too much is passed
    /// on.
    pub(crate) fn used(&mut self, room: Option<Room<'_>>, free: usize) -> Given {
        match room {
            Some(room) => {
                self.reserved -= room.spent();
                self.give(free)
            }
            None => Vec::new(),
        }
    }

    /// Reserves room for those who have waited longest, as far as `free` bytes go.
    fn give(&mut self, free: usize) -> Given {
        let mut given = Vec::new();
        while let Some((bytes, _)) = self.waiting.front()
            && self.reserved + bytes <= free
        {
            let (bytes, session) = self.waiting.pop_front().expect("it was just looked at");
            self.reserved += bytes;
            given.push((bytes, session));
        }
        given
    }

    /// What processes still have or wait for, if anything.
    pub(crate) fn in_use(&self) -> Option<String> {
        let (reserved, waiting) = (self.reserved, self.waiting.len());
        if reserved == 0 && waiting == 0 {
            return None;
        }
        Some(format!(
            "all have gone, and {reserved} bytes of the log buffer are still reserved, or waited for by {waiting}"
        ))
    }

    /// Sends everyone away, when the result is dropped.
    pub(crate) fn clear(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.waiting)
    }
}

impl Log {
    /// Reserves what room there is for those who wait.
    pub(crate) fn give(&self, inner: &mut Inner) -> Given {
        let free = inner.free();
        match self.ring_has_room() {
            true => inner.queue.give(free),
            false => Vec::new(),
        }
    }

    /// Waits for room for a record of this many bytes. Who `had` room that turned out to be too small gives it back and
    /// comes next. Error: the instance has failed or stops.
    pub(crate) async fn wait_for_room<'a>(
        &'a self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        bytes: usize,
        had: Option<Room<'a>>,
    ) -> Result<Room<'a>> {
        let wait = waits.begin(&*fixed.env);
        let (mut room, ring_has_room) = Room::queue(self, fixed, bytes, had)?;
        // While anyone waits, all that is in the buffer is asked for: see `append` for what is added later.
        self.request(self.end());
        let coming = room.coming.as_mut().expect("it has just been asked for");
        let came = coming.await;
        let event = if ring_has_room {
            WaitEvent::LogBufferSpace
        } else {
            probe::hit(Probe::LogFileWait);
            WaitEvent::LogFileSwitchCheckpoint
        };
        wait.end(event);
        if came.is_err() {
            return Err(fixed.health.why());
        }
        room.coming = None;
        Ok(room)
    }

    /// Wakes those who were given room. Without the latch.
    pub(crate) fn deliver(&self, given: Given) {
        for (bytes, session) in given {
            if session.send(()).is_err() {
                self.give_back(bytes);
            }
        }
    }

    /// Room that is not used after all goes to the next session.
    fn give_back(&self, bytes: usize) {
        let given = {
            let mut inner = self.inner.lock();
            inner.queue.reserved -= bytes;
            if has_planted(GIVES_BACK_SILENTLY) {
                return;
            }
            self.give(&mut inner)
        };
        self.deliver(given);
    }
}

/// Room in the log buffer that is waited for, and then reserved until it is used or dropped.
pub(crate) struct Room<'a> {
    log: &'a Log,
    bytes: usize,
    /// By which it comes; `None` when it has.
    coming: Option<oneshot::Receiver<()>>,
}

impl<'a> Room<'a> {
    /// Takes a place in the queue, and room at once if there is any; whether the log files had room, too.
    fn queue(
        log: &'a Log,
        fixed: &FixedSga,
        bytes: usize,
        had: Option<Room<'a>>,
    ) -> Result<(Room<'a>, bool)> {
        let (session, coming) = oneshot::channel();
        let late = has_planted(LOOKS_THEN_QUEUES);
        let looked_early = late.then(|| log.give(&mut log.inner.lock()));
        let mut inner = log.inner.lock();
        // Under the latch: a stop of the instance empties the queue afterwards.
        if let Err(error) = fixed.health.check() {
            drop(inner);
            return Err(error);
        }
        match had {
            Some(had) => {
                inner.queue.reserved -= had.spent();
                inner.queue.waiting.push_front((bytes, session));
            }
            None => inner.queue.waiting.push_back((bytes, session)),
        }
        let ring_has_room = log.ring_has_room();
        let given = looked_early.unwrap_or_else(|| log.give(&mut inner));
        drop(inner);
        log.deliver(given);
        let coming = Some(coming);
        Ok((Room { log, bytes, coming }, ring_has_room))
    }

    /// Its bytes, which are no longer its own to give back.
    fn spent(mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let has_come = self.coming.take().is_none_or(|mut coming| {
            // Nothing comes from here on; what came before is seen.
            coming.close();
            coming.try_recv().is_ok()
        });
        if has_come && self.bytes > 0 {
            self.log.give_back(self.bytes);
        }
    }
}
