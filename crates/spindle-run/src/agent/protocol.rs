//! What the run and an agent say to each other beside what [`crate::far`] says for all.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_engines::sql::ServerHome;
use spindle_system::sampler::Sample;

/// The hidden command that turns the program into an agent.
pub const AGENT_COMMAND: &str = "agent";

/// What the run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAsk {
    /// Look at your machine from now on.
    Watch(AgentWatch),
    /// Look no more.
    Rest,
}

/// What is looked at, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWatch {
    /// Where the server is on its machine.
    pub home: ServerHome,
    /// Time between looks.
    pub interval_ms: u64,
}

/// What an agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentAnswer {
    /// What it looks at.
    Watching(Watching),
    /// What it saw.
    Seen(Box<AgentLook>),
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
pub struct AgentLook {
    /// When, by the agent's clock.
    pub at_ns: u64,
    /// Processor time that looking has taken so far, nanoseconds.
    pub own_cpu_ns: u64,
    /// What it found.
    pub system: Sample,
}
