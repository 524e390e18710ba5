//! What both sides say to each other, whatever the other one does: lines of JSON. The other side begins, with
//! [`FarAnswer::Hello`]; then this one asks. One whose standard input ends, or is silent for [`SILENCE`], has lost its
//! run, and ends.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Version of these messages, and of those of each use. A program with another version is refused.
pub const PROTOCOL: u32 = 2;
/// One that hears nothing for this time ends. This side sends something several times within it.
pub const SILENCE: Duration = Duration::from_secs(60);

/// What this side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FarAsk<W> {
    /// What does your clock say?
    Clock {
        /// Comes back with the answer.
        number: u64,
    },
    /// A message specific to the use: agent or load machine.
    Word(W),
}

/// What the other side says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FarAnswer<S> {
    /// It has started.
    Hello(Hello),
    /// What its clocks say.
    Clock {
        /// Of the question.
        number: u64,
        /// Its own clock (`facts::monotonic_ns`).
        at_ns: u64,
    },
    /// A message specific to the use: agent or load machine.
    Word(S),
}

/// How the other side introduces itself. Further fields may come with later versions; these stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// Version of the program.
    pub version: String,
    /// Its machine, in words.
    pub machine: String,
}
