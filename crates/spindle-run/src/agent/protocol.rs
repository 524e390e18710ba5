//! What the run and an agent say to each other: lines of JSON. The agent begins, with [`Answer::Hello`]; then the run
//! asks. An agent whose standard input ends, or is silent for [`SILENCE`], has lost its run, and ends.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_engines::sql::ServerHome;
use spindle_system::sampler::Sample;

/// Version of what is said here. An agent of another one is not talked to.
pub const PROTOCOL: u32 = 1;
/// The hidden command that turns the program into an agent.
pub const AGENT_COMMAND: &str = "agent";
/// An agent that hears nothing for this time ends. The run sends something several times within it.
pub const SILENCE: Duration = Duration::from_secs(60);

/// What the run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What does your clock say?
    Clock {
        /// Comes back with the answer.
        number: u64,
    },
    /// Look at your machine from now on.
    Watch(Watch),
    /// Look no more.
    Rest,
}

/// What is looked at, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Where the server is on its machine.
    pub home: ServerHome,
    /// Time between looks.
    pub interval_ms: u64,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is there.
    Hello(Hello),
    /// What its clock says.
    Clock {
        /// Of the question.
        number: u64,
        /// Its own clock (`facts::monotonic_ns`).
        at_ns: u64,
    },
    /// What it looks at.
    Watching(Watching),
    /// What it saw.
    Seen(Box<Seen>),
}

/// Who an agent is. Further fields may come with later versions; these stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    /// Its machine, in words.
    pub machine: String,
}

/// What an agent looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watching {
    /// The devices beneath the server's directories, in words.
    pub devices: Vec<String>,
    /// The process of the server; `None` where it was not found.
    pub process: Option<u32>,
    /// Directories beneath which no device is known.
    pub unknown: Vec<PathBuf>,
}

/// One look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// When, by the agent's clock.
    pub at_ns: u64,
    /// Processor time that looking has taken so far, nanoseconds.
    pub own_cpu_ns: u64,
    /// What was there.
    pub system: Sample,
}
