//! Requests under way in a thread's ring or context: each has a number while the kernel has it, owns its buffers and
//! its open file. The waiting caller is told when the ring or context is no longer borrowed, because it may then close
//! a file or submit more.

use std::sync::Arc;
use std::task::Waker;

use rustix::io::Errno;

use crate::device::{Completer, IoOutcome};
use crate::real::file::core::Core;
use crate::real::file::transfer::Transfer;

/// A request from its queueing until the kernel has ended it. `Extra` is what a ring or context must know of it beside.
pub(crate) struct Flight<Extra> {
    pub(crate) transfer: Transfer,
    pub(crate) core: Arc<Core>,
    pub(crate) completer: Completer,
    /// What a vectored request points to.
    pub(crate) vectors: Vec<libc::iovec>,
    pub(crate) extra: Extra,
}

/// All requests of a ring or context.
pub(crate) struct Flights<Extra> {
    places: Vec<Option<Flight<Extra>>>,
    vacant: Vec<u32>,
    finished: Vec<Finished>,
}

/// A request that has ended, and whom to tell.
pub(crate) struct Finished {
    core: Arc<Core>,
    news: News,
}

enum News {
    /// The outcome is where who waits for it looks.
    Settled(Option<Waker>),
    /// A follower is to learn of it first.
    Followed(Box<(Completer, IoOutcome)>),
}

impl Finished {
    pub(crate) fn deliver(self) {
        // The code that learns of the end may close the device: let go of it first.
        drop(self.core);
        match self.news {
            News::Settled(waker) => waker.into_iter().for_each(Waker::wake),
            News::Followed(told) => told.0.complete(told.1),
        }
    }
}

impl<Extra> Flights<Extra> {
    pub(crate) fn new() -> Flights<Extra> {
        Flights {
            places: Vec::new(),
            vacant: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// How many are under way; those that have finished are not.
    pub(crate) fn count(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Takes a request in; returns its number.
    #[inline]
    pub(crate) fn add(&mut self, flight: Flight<Extra>) -> u32 {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[index as usize] = Some(flight);
        index
    }

    /// A request that is under way.
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Flight<Extra> {
        self.places[index as usize]
            .as_mut()
            .expect("the number of a request under way")
    }

    /// The kernel has answered. Whether the request has ended; if not, what is left of it must be queued again.
    #[inline]
    pub(crate) fn answered(&mut self, index: u32, answer: Result<usize, Errno>) -> bool {
        let flight = self.get_mut(index);
        let Some(result) = flight.transfer.advance(&flight.core, answer) else {
            return false;
        };
        let ended = self.places[index as usize].take();
        let Flight {
            transfer,
            core,
            completer,
            ..
        } = ended.expect("looked at above");
        self.vacant.push(index);
        let news = match completer.settle(transfer.outcome(result)) {
            Ok(waker) => News::Settled(waker),
            Err(told) => News::Followed(Box::new(told)),
        };
        self.finished.push(Finished { core, news });
        true
    }

    /// Whether there is something to deliver.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// What is to be delivered, when the ring or context is no longer borrowed.
    pub(crate) fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished)
    }

    /// Gives back what [`Flights::take_finished`] took, empty, for its room, unless there is more to deliver meanwhile.
    pub(crate) fn give_room(&mut self, empty: &mut Vec<Finished>) {
        if self.finished.is_empty() {
            std::mem::swap(&mut self.finished, empty);
        }
    }
}
