//! What a trial was measured under: facts about the machine around it that are no property of its layout.

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_text::quantity::size;

/// What a trial was measured under. Every part is optional: results of older versions have none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Which run of the plan it belongs to, from 1; `None` when the plan has one run only.
    pub run: Option<u32>,
    /// The wait for quiet before it; `None` when there was none.
    pub quiet: Option<QuietWait>,
    /// What the device did just before it; `None` where there is nothing to be probed.
    pub probe: Option<DeviceProbe>,
    /// Time in which its process or the machine stood still, from the first client's start to the end of the flush.
    pub standstill: Option<Standstill>,
    /// Measured time that was asked for, milliseconds; `None` for workloads that end with their last transaction.
    pub asked_ms: Option<u64>,
    /// Where its time went.
    pub times: Option<TrialTimes>,
    /// The program that used the devices of the case most beside its database; `None` where none did, or it is not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
}

/// A program that used the devices of a case while it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its name, as far as the kernel keeps it.
    pub program: String,
    /// Its process.
    pub process_id: u32,
    /// Bytes that were fetched from storage for it, per second, from the start of the trial's process to its end.
    pub read_bytes_per_s: f64,
    /// Bytes that it wrote, per second.
    pub written_bytes_per_s: f64,
}

impl Neighbour {
    /// All that it moved, per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.read_bytes_per_s + self.written_bytes_per_s
    }
}

impl fmt::Display for Neighbour {
    /// As a sentence without its end: who did how much.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_s = |bytes_per_s: f64| size(bytes_per_s.round() as u64);
        write!(
            f,
            "{} (process {}) wrote {} and read {} per second",
            self.program,
            self.process_id,
            per_s(self.written_bytes_per_s),
            per_s(self.read_bytes_per_s)
        )
    }
}

/// How quick the devices of a case were just before a trial: direct reads beneath its data, durable writes beneath its
/// redo, 8 KiB each, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceProbe {
    /// Reads; `None` where none could be made.
    pub read: Option<ProbedTimes>,
    /// Durable writes; `None` where none may be made, as on a raw device that holds the database.
    pub write: Option<ProbedTimes>,
    /// How long it all took, milliseconds.
    pub took_ms: u64,
}

/// How long requests of one kind took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProbedTimes {
    /// How many there were.
    pub requests: u64,
    /// Half of them took no longer, microseconds.
    pub median_us: f64,
    /// Arithmetic mean, microseconds.
    pub mean_us: f64,
}

/// Time in which nothing could happen: the process was stopped, or the machine was suspended or paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standstill {
    /// All of it, milliseconds. Gaps below 100 ms count only if they are a tenth of the time.
    pub total_ms: u64,
    /// The longest gap, milliseconds.
    pub longest_ms: u64,
    /// The part in which the machine was suspended, milliseconds.
    pub suspended_ms: u64,
}

/// Where the time of a trial went, milliseconds each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialTimes {
    /// Putting the database back.
    pub restore_ms: u64,
    /// Waiting until the devices were at rest.
    pub quiet_ms: u64,
    /// Probing the device.
    pub probe_ms: u64,
    /// Starting the server, or opening the database.
    pub start_ms: u64,
    /// Warm-up.
    pub warm_up_ms: u64,
    /// Measured time, the flush left out.
    pub measured_ms: u64,
    /// The flush at the end.
    pub flush_ms: u64,
    /// Checking that nothing was lost.
    pub check_ms: u64,
    /// Stopping the server, or closing the database.
    pub stop_ms: u64,
    /// The trial from begin to end.
    pub whole_ms: u64,
}

/// A wait, before a trial, until its devices were at rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietWait {
    /// How long it took, milliseconds.
    pub waited_ms: u64,
    /// How long it might have taken, milliseconds.
    pub limit_ms: u64,
    /// Whether the devices came to rest; `false` when the time ran out.
    pub is_quiet: bool,
    /// What kept them busy at the end, in words; `None` when nothing did.
    pub in_the_way: Option<String>,
}
