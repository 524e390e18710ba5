//! What a trial and a load machine say to each other. The machine opens its clients, which connect and pause; begins
//! when it is told to; and then, for each [`Stretch`] of time, says its counts and ticks. Times are on its own clock.

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_engines::sql::{Address, Password};
use spindle_workload::driver::{ClientPart, KindRecord};

use super::super::protocol::Task;
use super::counts::{LoadCounts, RestOfRecord};

/// The hidden command that turns the program into the worker of a load machine.
pub const LOAD_COMMAND: &str = "load-worker";

/// What a load machine is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadWord {
    /// Look whether you reach a server.
    Look {
        /// Which.
        address: Box<Address>,
        /// Its password, if there is one.
        password: Option<Password>,
    },
    /// Connect your clients, and let them pause.
    Open(Box<Orders>),
    /// Let them begin.
    Begin {
        /// When.
        at_ns: u64,
    },
    /// Say how it goes.
    Watch(Stretch),
    /// Let every client end its transaction, and say what became of all.
    Stop,
}

/// What the clients of a machine do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// The trial, with the password of its server. Its number of clients, and its rate, are this machine's.
    pub task: Task,
    /// Which of all clients they are.
    pub part: ClientPart,
}

/// A stretch of time that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// When it begins.
    pub from_ns: u64,
    /// How long it is.
    pub length_ns: u64,
    /// Time between ticks. The last comes when the stretch ends.
    pub step_ns: u64,
    /// Whether it is measured: counts are then said when it begins and when it ends.
    pub measured: bool,
}

impl Stretch {
    /// When its ticks are due, the first when it begins.
    pub fn ticks(self) -> impl Iterator<Item = u64> {
        let count = self.length_ns.div_ceil(self.step_ns.max(1));
        (0..=count).map(move |tick| self.from_ns + (tick * self.step_ns).min(self.length_ns))
    }
}

/// What a load machine says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadSaid {
    /// It reaches the server that it looked at, or why it does not.
    Looked(Result<(), EngineError>),
    /// Its clients are connected, and pause.
    Opened,
    /// They have begun.
    Begun,
    /// How far they are.
    Tick(Tick),
    /// Their counts.
    Counts(Box<LoadCounts>),
    /// What became of one kind of transaction.
    Kind(Box<KindRecord>),
    /// The rest of the record. They have ended.
    Ended(Box<RestOfRecord>),
    /// They cannot continue.
    Failed(EngineError),
}

/// How far clients are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// When that was looked at.
    pub at_ns: u64,
    /// Transactions committed since they began.
    pub committed: u64,
    /// Transactions that were due and had not begun.
    pub backlog: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_at_steps_from_the_begin_to_the_end() {
        let stretch = |length_ns, step_ns| Stretch {
            from_ns: 100,
            length_ns,
            step_ns,
            measured: true,
        };
        let ticks = |of: Stretch| of.ticks().collect::<Vec<_>>();
        assert_eq!(ticks(stretch(30, 10)), [100, 110, 120, 130]);
        assert_eq!(ticks(stretch(25, 10)), [100, 110, 120, 125]);
        assert_eq!(ticks(stretch(5, 10)), [100, 105]);
        assert_eq!(ticks(stretch(0, 10)), [100]);
    }
}
