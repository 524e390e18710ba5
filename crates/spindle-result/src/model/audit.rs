//! The program's own I/O counts beside the device's: a measurement whose two sides disagree measured something else.

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_text::quantity;

use super::ClientAudit;

/// Reads and writes over one trial, as one side counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IoCounts {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// What the program counted, what the device counted over the same time, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// What the database asked for; `None` where it does not tell, as some existing servers.
    #[serde(default)]
    pub tool: Option<IoCounts>,
    /// What the device did, or `None` where the file system hides it.
    pub device: Option<IoCounts>,
    /// Bytes the database read over bytes the device read; `None` when unknown or the device read nothing. Above 1 the
    /// page cache answered some reads; below 1 the device read more than was asked for.
    pub read_ratio: Option<f64>,
    /// Bytes the database wrote over bytes the device wrote; `None` when unknown or the device wrote nothing. Above 1
    /// some writes have not reached the device; below 1 it wrote more than was asked for, such as a file system's
    /// journal.
    pub write_ratio: Option<f64>,
    /// Share of the bytes read by the database that never reached the device, from 0 to 1; `None` when unknown.
    pub page_cache_share: Option<f64>,
    /// Bytes of the database's files not yet on the device when the clock stopped; `None` when unknown.
    pub dirty_bytes_at_end: Option<u64>,
    /// Bytes of changed blocks that the buffer cache still held when the clock stopped, DBWR's debt; `None` when
    /// unknown.
    pub dirty_buffer_bytes_at_end: Option<u64>,
    /// Pages of the data and undo files in the page cache after the clients had stopped. Of a direct case only, where
    /// it must be 0; `None` when unknown.
    pub cached_pages_at_end: Option<u64>,
    /// Time in microseconds that flushing them took, inside the measured time; `None` when nothing was flushed.
    pub flush_at_end_us: Option<f64>,
    /// Bytes of the data and undo files that the page cache held when the clients had stopped, of cases that are not
    /// direct; `None` when unknown.
    #[serde(default)]
    pub page_cache_bytes_at_end: Option<u64>,
    /// Whether the transactions account for all clients, and each client got a turn; `None` in runs of older versions.
    #[serde(default)]
    pub clients: Option<ClientAudit>,
    /// What the clients of a database in other processes took of this machine's processors; `None` where they are part
    /// of the database, or the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_processors: Option<ClientProcessors>,
    /// Of the limits that the experiment sets, the one of which most was used; `None` where it sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest_limit: Option<UsedLimit>,
}

/// How much of a limit was used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UsedLimit {
    /// What it limits.
    pub of: LimitedIo,
    /// What the device did, per second.
    pub done_per_s: f64,
    /// What it may do, per second.
    pub allowed_per_s: u64,
}

impl UsedLimit {
    /// What was done as a share of what is allowed.
    pub fn share(&self) -> f64 {
        self.done_per_s / self.allowed_per_s.max(1) as f64
    }
}

impl fmt::Display for UsedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done_per_s, allowed_per_s) = (self.done_per_s, self.allowed_per_s);
        match self.of {
            LimitedIo::Reads => write!(f, "{done_per_s:.0} of {allowed_per_s} reads/s"),
            LimitedIo::Writes => write!(f, "{done_per_s:.0} of {allowed_per_s} writes/s"),
            LimitedIo::BytesRead | LimitedIo::BytesWritten => {
                let done = quantity::size(done_per_s.round() as u64);
                let what = match self.of {
                    LimitedIo::BytesRead => "read",
                    _ => "written",
                };
                write!(f, "{done}/s of {}/s {what}", quantity::size(allowed_per_s))
            }
        }
    }
}

/// What a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitedIo {
    /// Requests that read.
    Reads,
    /// Requests that write.
    Writes,
    /// Bytes read.
    BytesRead,
    /// Bytes written.
    BytesWritten,
}

/// What clients took of the processors of the machine they are on: shares of the time in transactions, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientProcessors {
    /// In which they were on a processor.
    pub running: f64,
    /// In which they waited for one.
    pub waiting: f64,
}

impl Audit {
    /// Derives ratios and page-cache share from both sides' counts; what was found at the end is the caller's to fill
    /// in.
    pub fn of_counts(tool: Option<IoCounts>, device: Option<IoCounts>) -> Audit {
        let both = tool.zip(device);
        let ratio = |bytes: fn(&IoCounts) -> u64| {
            let (tool_bytes, device_bytes) =
                both.map(|(tool, device)| (bytes(&tool), bytes(&device)))?;
            (device_bytes > 0).then(|| tool_bytes as f64 / device_bytes as f64)
        };
        let page_cache_share =
            both.filter(|(tool, _)| tool.read_bytes > 0)
                .map(|(tool, device)| {
                    (1.0 - device.read_bytes as f64 / tool.read_bytes as f64).max(0.0)
                });
        Audit {
            tool,
            device,
            read_ratio: ratio(|counts| counts.read_bytes),
            write_ratio: ratio(|counts| counts.write_bytes),
            page_cache_share,
            dirty_bytes_at_end: None,
            dirty_buffer_bytes_at_end: None,
            cached_pages_at_end: None,
            flush_at_end_us: None,
            page_cache_bytes_at_end: None,
            client_processors: None,
            clients: None,
            nearest_limit: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(read_bytes: u64, write_bytes: u64) -> Option<IoCounts> {
        Some(IoCounts {
            read_bytes,
            write_bytes,
            ..IoCounts::default()
        })
    }

    #[test]
    fn both_sides_agree() {
        let audit = Audit::of_counts(bytes(1_000, 600), bytes(1_000, 500));
        assert_eq!(audit.read_ratio, Some(1.0));
        assert_eq!(audit.write_ratio, Some(1.2));
        assert_eq!(audit.page_cache_share, Some(0.0));
    }

    #[test]
    fn reads_answered_from_memory_show() {
        let audit = Audit::of_counts(bytes(1_000, 1), bytes(250, 1));
        assert_eq!(audit.read_ratio, Some(4.0));
        assert_eq!(audit.page_cache_share, Some(0.75));
        let all = Audit::of_counts(bytes(1_000, 1), bytes(0, 1));
        assert_eq!(all.read_ratio, None);
        assert_eq!(all.page_cache_share, Some(1.0));
    }

    #[test]
    fn read_ahead_is_no_negative_share() {
        let audit = Audit::of_counts(bytes(1_000, 1), bytes(4_000, 1));
        assert_eq!(audit.read_ratio, Some(0.25));
        assert_eq!(audit.page_cache_share, Some(0.0));
    }

    #[test]
    fn one_hidden_side_leaves_everything_unknown() {
        for (tool, device) in [(bytes(1_000, 600), None), (None, bytes(1_000, 600))] {
            let audit = Audit::of_counts(tool, device);
            assert_eq!(
                (audit.read_ratio, audit.write_ratio, audit.page_cache_share),
                (None, None, None)
            );
        }
    }
}
