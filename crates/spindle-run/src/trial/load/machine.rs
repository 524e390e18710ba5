//! One load machine: the program there, its part of the clients, and what it said of them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use spindle_engines::sql::{Address, MachineAccess, Password};
use spindle_engines::{EngineError, ErrorKind};
use spindle_text::plain::shortened;
use spindle_workload::driver::ClientPart;

use super::counts::{LoadCounts, LoadRecord};
use super::words::{LOAD_COMMAND, LoadSaid, LoadWord, Tick};
use crate::far::clock::{ClockLine, ClockReading};
use crate::far::machine::PATIENCE;
use crate::far::{FarError, FarMachine};

/// The person who wants to stop ends the process that holds the machines, and they end with it.
static NEVER: AtomicBool = AtomicBool::new(false);
/// As much is shown of what it should not have said, in characters.
const SAID_LENGTH_MAX: usize = 200;

/// A machine at work.
pub struct MachineAtWork {
    far: FarMachine<LoadWord, LoadSaid>,
    /// Its part of the clients.
    pub part: ClientPart,
    /// How many they are.
    pub clients: u32,
    /// Its clock, when it was come to.
    pub first: ClockReading,
    /// Its counts when measuring began and when it ended, by this machine's clock.
    pub counts: Vec<LoadCounts>,
    /// When measuring was to begin and to end, by this machine's clock.
    pub due_ns: [u64; 2],
}

impl MachineAtWork {
    /// Comes to a machine, and starts the program there.
    ///
    /// # Errors
    /// See [`FarError`].
    pub fn start(way: &MachineAccess, interrupted: &AtomicBool) -> Result<MachineAtWork, FarError> {
        let mut far = FarMachine::start(way, LOAD_COMMAND, interrupted)?;
        let first = far.read_clock(interrupted)?;
        Ok(MachineAtWork {
            far,
            part: ClientPart { first: 0, all: 0 },
            clients: 0,
            first,
            counts: Vec::new(),
            due_ns: [0; 2],
        })
    }

    /// Comes to a machine in a trial, for this many clients from `part.first` on.
    ///
    /// # Errors
    /// It cannot be come to.
    pub fn open(
        way: &MachineAccess,
        clients: u32,
        part: ClientPart,
    ) -> Result<MachineAtWork, EngineError> {
        let machine = MachineAtWork::start(way, &NEVER).map_err(lost)?;
        Ok(MachineAtWork {
            part,
            clients,
            ..machine
        })
    }

    /// The way to it.
    pub fn way(&self) -> &MachineAccess {
        self.far.way()
    }

    /// It, in a few words.
    pub fn described(&self) -> &str {
        self.far.described()
    }

    /// What its clock says at a moment of this machine's.
    pub fn there_ns(&self, here_ns: u64) -> u64 {
        here_ns.wrapping_add_signed(self.first.ahead_ns)
    }

    /// What this machine's clock says at a moment of the load machine's clock.
    pub fn here_ns(&self, there_ns: u64) -> u64 {
        let (first, last) = (self.first, self.first);
        ClockLine { first, last }.here_ns(there_ns)
    }

    /// Reads its clock again: since it was come to.
    ///
    /// # Errors
    /// It is gone.
    pub fn clock(&mut self) -> Result<ClockLine, EngineError> {
        let last = self.far.read_clock(&NEVER).map_err(lost)?;
        let first = self.first;
        Ok(ClockLine { first, last })
    }

    /// Tells it something.
    ///
    /// # Errors
    /// It is gone.
    pub fn tell(&mut self, word: LoadWord) -> Result<(), EngineError> {
        self.far.tell(word, &NEVER).map_err(lost)
    }

    /// What it says next, until `after` a moment; `None`: as long as it takes.
    ///
    /// # Errors
    /// It is gone, silent, or its clients cannot continue.
    fn hear(&mut self, after: Option<Duration>) -> Result<LoadSaid, EngineError> {
        let until = after.map(|after| Instant::now() + after + PATIENCE);
        match self.far.hear(until, &NEVER).map_err(lost)? {
            LoadSaid::Failed(reason) => Err(self.failed(&reason)),
            said => Ok(said),
        }
    }

    /// Has it look whether it reaches a server. Ends early once `interrupted`.
    ///
    /// # Errors
    /// `Unavailable`, with the reason; it is gone; `Interrupted`.
    pub fn look(
        &mut self,
        address: &Address,
        password: Option<Password>,
        interrupted: &AtomicBool,
    ) -> Result<(), EngineError> {
        let address = Box::new(address.clone());
        let word = LoadWord::Look { address, password };
        self.far.tell(word, interrupted).map_err(lost)?;
        match self.far.hear(None, interrupted).map_err(lost)? {
            LoadSaid::Looked(Ok(())) => Ok(()),
            LoadSaid::Looked(Err(reason)) => {
                Err(EngineError::unavailable(self.failed(&reason).to_string()))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits until it has said this, which takes as long as its clients do.
    ///
    /// # Errors
    /// Those of [`MachineAtWork::hear`].
    pub fn hear_that(&mut self, wanted: &LoadSaid) -> Result<(), EngineError> {
        let said = self.hear(None)?;
        match said == *wanted {
            true => Ok(()),
            false => Err(self.unexpected(&said)),
        }
    }

    /// Its next tick, due `after` this time.
    ///
    /// # Errors
    /// Those of [`MachineAtWork::hear`].
    pub fn tick(&mut self, after: Duration) -> Result<Tick, EngineError> {
        match self.hear(Some(after))? {
            LoadSaid::Tick(tick) => Ok(Tick {
                at_ns: self.here_ns(tick.at_ns),
                ..tick
            }),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Its counts, due `after` this time.
    ///
    /// # Errors
    /// Those of [`MachineAtWork::hear`].
    pub fn take_counts(&mut self, after: Duration) -> Result<LoadCounts, EngineError> {
        match self.hear(Some(after))? {
            LoadSaid::Counts(counts) => {
                let at_ns = self.here_ns(counts.at_ns);
                let counts = LoadCounts { at_ns, ..*counts };
                self.counts.push(counts.clone());
                Ok(counts)
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// What became of all its transactions, when every client has ended.
    ///
    /// # Errors
    /// Those of [`MachineAtWork::hear`].
    pub fn take_record(&mut self) -> Result<LoadRecord, EngineError> {
        let mut record = LoadRecord::default();
        loop {
            match self.hear(None)? {
                LoadSaid::Kind(kind) => record.kinds.push(*kind),
                LoadSaid::Ended(rest) => {
                    record.rest = *rest;
                    return Ok(record);
                }
                other => return Err(self.unexpected(&other)),
            }
        }
    }

    /// Why its clients cannot continue, by its name.
    fn failed(&self, reason: &EngineError) -> EngineError {
        EngineError::failed(format_args!("load machine {}", self.way()), reason)
    }

    fn unexpected(&self, said: &LoadSaid) -> EngineError {
        let said = format!("{said:?}");
        let said = shortened(&said, SAID_LENGTH_MAX);
        EngineError::other(format!("load machine {} said {said}", self.way()))
    }
}

fn lost(error: FarError) -> EngineError {
    let kind = match error {
        FarError::Interrupted => ErrorKind::Interrupted,
        _ => ErrorKind::Failed,
    };
    EngineError::new(kind, format!("load machine {error}"))
}
