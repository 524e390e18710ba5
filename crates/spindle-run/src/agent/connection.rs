//! The run's side of an agent: it starts one, reads its clock, has it look, and takes what it saw.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spindle_engines::sql::{ServerHome, SshHost};

use super::protocol::{AGENT_COMMAND, AgentAnswer, AgentAsk, AgentLook, AgentWatch, Watching};
use crate::far::clock::{ClockLine, ClockReading};
use crate::far::machine::PATIENCE;
use crate::far::protocol::SILENCE;
use crate::far::{FarError, FarMachine, MachineAccess};

/// An agent at work.
pub struct Agent {
    machine: FarMachine<AgentAsk, AgentAnswer>,
}

/// What an agent saw in a trial.
#[derive(Debug)]
pub struct Watched {
    /// Its clock.
    pub line: ClockLine,
    /// Its looks, in order.
    pub seen: Vec<AgentLook>,
    /// Time between them.
    pub interval_ms: u64,
    /// Why it ended before the trial did, if so.
    pub gone: Option<FarError>,
}

/// A trial that is being looked at.
#[derive(Debug, Clone, Copy)]
pub struct WatchingTrial {
    first: ClockReading,
    interval_ms: u64,
}

impl Agent {
    /// Brings this program to a host and starts it there. Ends early once `interrupted`.
    ///
    /// # Errors
    /// See [`FarError`].
    pub fn start(host: &SshHost, interrupted: &AtomicBool) -> Result<Agent, FarError> {
        let way = MachineAccess::to(host.clone());
        let machine = FarMachine::start(&way, AGENT_COMMAND, interrupted)?;
        Ok(Agent { machine })
    }

    /// The way to it.
    pub fn way(&self) -> &MachineAccess {
        self.machine.way()
    }

    /// Its machine, in words.
    pub fn machine(&self) -> &str {
        self.machine.described()
    }

    /// Reads its clock.
    ///
    /// # Errors
    /// It is gone.
    pub fn read_clock(&mut self, interrupted: &AtomicBool) -> Result<ClockReading, FarError> {
        self.machine.read_clock(interrupted)
    }

    /// Looks once at what there is of a server.
    ///
    /// # Errors
    /// It is gone.
    pub fn look(
        &mut self,
        home: &ServerHome,
        interrupted: &AtomicBool,
    ) -> Result<Watching, FarError> {
        // Answers to an earlier look are discarded.
        self.machine.heard();
        let watch = AgentWatch {
            home: home.clone(),
            interval_ms: SILENCE.as_millis() as u64,
        };
        self.machine.tell(AgentAsk::Watch(watch), interrupted)?;
        let until = Instant::now() + PATIENCE;
        let watching = loop {
            if let AgentAnswer::Watching(watching) = self.machine.hear(Some(until), interrupted)? {
                break watching;
            }
        };
        self.machine.tell(AgentAsk::Rest, interrupted)?;
        Ok(watching)
    }

    /// Has it look at a server from now on.
    ///
    /// # Errors
    /// It is gone.
    pub fn watch(
        &mut self,
        home: &ServerHome,
        interval_ms: u64,
        interrupted: &AtomicBool,
    ) -> Result<WatchingTrial, FarError> {
        let first = self.read_clock(interrupted)?;
        self.machine.heard();
        let watch = AgentWatch {
            home: home.clone(),
            interval_ms,
        };
        self.machine.tell(AgentAsk::Watch(watch), interrupted)?;
        Ok(WatchingTrial { first, interval_ms })
    }

    /// Has it look no more; what it saw.
    pub fn rest(&mut self, trial: WatchingTrial, interrupted: &AtomicBool) -> Watched {
        let last = self
            .machine
            .tell(AgentAsk::Rest, interrupted)
            .and_then(|()| self.read_clock(interrupted));
        let WatchingTrial { first, interval_ms } = trial;
        let seen = self.machine.heard().into_iter();
        let seen = seen.filter_map(|said| match said {
            AgentAnswer::Seen(seen) => Some(*seen),
            AgentAnswer::Watching(_) => None,
        });
        Watched {
            line: ClockLine {
                first,
                last: *last.as_ref().unwrap_or(&first),
            },
            seen: seen.collect(),
            interval_ms,
            gone: last.err(),
        }
    }
}
