//! I/O errors that a simulated disk is told to return: which I/O fails, for how long, and by which seed it is drawn
//! what the failed I/O left behind. The head of [`super::disk`] says what a failure may leave.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::Operation;
use crate::env::seeded_rng;

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IoKind {
    /// It reads.
    Read = 1,
    /// It writes into the disk's cache.
    Write = 2,
    /// It writes to stable storage.
    DurableWrite = 3,
    /// It makes completed writes stable.
    Flush = 4,
}

impl IoKind {
    pub(super) fn of(operation: &Operation) -> IoKind {
        match operation {
            Operation::Read(_) => IoKind::Read,
            Operation::Write { durable: false, .. } => IoKind::Write,
            Operation::Write { durable: true, .. } => IoKind::DurableWrite,
            Operation::Flush => IoKind::Flush,
        }
    }

    /// The word of error messages.
    pub(super) fn word(self) -> &'static str {
        match self {
            IoKind::Read => "read",
            IoKind::Write | IoKind::DurableWrite => "write",
            IoKind::Flush => "flush",
        }
    }
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// One I/O fails; the disk works again at once.
    Once,
    /// Every later I/O to the same disk fails, too: reads when a read failed first, else writes and flushes.
    ForEver,
}

/// Has I/O number `io` of a world (the first is 1) fail, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoFault {
    /// The number of the first I/O to fail.
    pub io: u64,
    /// Whether others follow.
    pub lasts: Lasts,
    /// What is left of failed writes and flushes is drawn from this.
    pub seed: u64,
}

/// An I/O that was failed on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedIo {
    /// Number of the disk.
    pub disk: u64,
    /// What the I/O did.
    pub kind: IoKind,
}

/// What becomes of an I/O that a disk has taken.
pub(crate) enum Fate {
    /// It ends well.
    Succeeds,
    /// It ends with an error; what it leaves behind is drawn from this.
    Fails(Xoshiro256PlusPlus),
    /// The power goes off with it: it never ends.
    NeverEnds,
}

/// The fault a world was told to have, and how far it has come.
#[derive(Default)]
pub(super) struct Faults {
    planned: Option<IoFault>,
    first: Option<FailedIo>,
}

impl Faults {
    pub(super) fn plan(&mut self, fault: IoFault) {
        *self = Faults {
            planned: Some(fault),
            first: None,
        };
    }

    pub(super) fn first(&self) -> Option<FailedIo> {
        self.first
    }

    /// Whether I/O number `io` fails.
    pub(super) fn fate(&mut self, io: u64, taken: FailedIo) -> Fate {
        let Some(fault) = self.planned else {
            return Fate::Succeeds;
        };
        let fails = match self.first {
            None => io == fault.io,
            Some(first) => {
                let alike = (taken.kind == IoKind::Read) == (first.kind == IoKind::Read);
                fault.lasts == Lasts::ForEver && taken.disk == first.disk && alike
            }
        };
        if !fails {
            return Fate::Succeeds;
        }
        self.first.get_or_insert(taken);
        Fate::Fails(seeded_rng(fault.seed, io))
    }
}
