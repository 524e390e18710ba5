//! A load may be spread over machines, each with some of the clients: which those are, and what they say of their
//! transactions, to be added up.

use serde::{Deserialize, Serialize};
use spindle_stats::LatencyHistogram;

/// Some of the clients of a load that is spread over machines. Each draws and locks as it would among all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientPart {
    /// Number of the first of them; the others follow.
    pub first: usize,
    /// Clients of all parts.
    pub all: usize,
}

/// What became of one kind of transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindRecord {
    /// Its name.
    pub kind: String,
    /// How long those took that ended while measuring; as many as there were. One that began before counts whole.
    pub latencies: LatencyHistogram,
    /// Those that took at least this long: given up while measuring, or not ended when it did.
    pub at_least: LatencyHistogram,
    /// Those that failed for good while measuring.
    pub errors: u64,
    /// Bytes that those that ended while measuring have written to temporary files, all together; `None` unless it is
    /// known of each.
    pub temporary_bytes: Option<u64>,
}

impl KindRecord {
    /// Adds what became of the same kind elsewhere.
    pub fn add(&mut self, other: &KindRecord) {
        self.latencies.merge(&other.latencies);
        self.at_least.merge(&other.at_least);
        self.errors += other.errors;
        let both = self.temporary_bytes.zip(other.temporary_bytes);
        self.temporary_bytes = both.map(|(one, more)| one + more);
    }
}

/// Transactions that were under way when measuring ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftOpen {
    /// How many.
    pub count: u64,
    /// Time since the longest of them began, or was to begin, nanoseconds.
    pub longest_ns: u64,
}

impl LeftOpen {
    /// With those elsewhere.
    #[must_use]
    pub fn and(self, other: LeftOpen) -> LeftOpen {
        LeftOpen {
            count: self.count + other.count,
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}
