//! Waiting, before a trial, until what came before has left the system's queues, so that its backlog is not billed to
//! the trial. What is still dirty should be synced first: this only watches.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::SystemFiles;
use super::block_device::DeviceNumber;
use super::disk::DiskCounters;
use super::sampler::MemoryState;

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// This many looks in a row must find nothing: together half a second, longer than a device keeps a request.
const QUIET_LOOKS: u32 = 5;

/// Other programs always dirty a page now and then: this much writeback, or change of dirty bytes between two looks,
/// counts as none.
const NOISE_BYTES: u64 = 1 << 20;

/// What [`wait_until_quiet`] saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiet {
    /// Whether the system was quiet before the time was up.
    pub reached: bool,
    /// How long it took.
    pub waited_ms: u64,
    /// The last look.
    pub last: Backlog,
}

/// What one look found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Requests under way on the device and bytes it moved since boot; `None` when it is hidden.
    pub device: Option<DeviceBacklog>,
    /// Page cache of the whole machine yet to be written; `None` when unknown.
    pub dirty_bytes: Option<u64>,
    /// Page cache of the whole machine being written; `None` when unknown.
    pub writeback_bytes: Option<u64>,
}

/// A device's part of a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBacklog {
    /// Requests under way.
    pub in_flight: u64,
    /// Bytes read and written since boot.
    pub moved_bytes: u64,
}

impl Backlog {
    fn look(files: &SystemFiles, device: Option<DeviceNumber>) -> Backlog {
        let memory = MemoryState::read(files);
        let counters = device.and_then(|device| DiskCounters::read(files, device));
        Backlog {
            device: counters.map(|counters| DeviceBacklog {
                in_flight: counters.in_flight,
                moved_bytes: counters.read_bytes.saturating_add(counters.written_bytes),
            }),
            dirty_bytes: memory.map(|memory| memory.dirty_bytes),
            writeback_bytes: memory.map(|memory| memory.writeback_bytes),
        }
    }

    /// Whether nothing was under way between an earlier look and this one. What is unknown cannot be waited for and
    /// counts as quiet.
    fn is_quiet_since(&self, earlier: &Backlog) -> bool {
        let device_quiet = match (self.device, earlier.device) {
            (Some(now), Some(then)) => {
                now.in_flight == 0 && now.moved_bytes.abs_diff(then.moved_bytes) <= NOISE_BYTES
            }
            _ => true,
        };
        let dirty_settled = match (self.dirty_bytes, earlier.dirty_bytes) {
            (Some(now), Some(then)) => now.abs_diff(then) <= NOISE_BYTES,
            _ => true,
        };
        let nothing_written = self.writeback_bytes.unwrap_or(0) <= NOISE_BYTES;
        device_quiet && dirty_settled && nothing_written
    }
}

/// Waits until, for half a second, `device` has had no I/O under way and moved next to nothing, and the machine's dirty
/// and written-back page cache has settled; gives up after `limit`. Sync what was written before calling: dirty pages
/// that merely wait look settled.
pub fn wait_until_quiet(
    files: &SystemFiles,
    device: Option<DeviceNumber>,
    limit: Duration,
) -> Quiet {
    let started = Instant::now();
    let mut look = || {
        thread::sleep(LOOK_EVERY);
        (Backlog::look(files, device), started.elapsed() >= limit)
    };
    let (reached, last) = watch(Backlog::look(files, device), &mut look);
    Quiet {
        reached,
        waited_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        last,
    }
}

/// Takes looks, each with whether the time is up, until enough in a row are quiet.
fn watch(first: Backlog, look: &mut dyn FnMut() -> (Backlog, bool)) -> (bool, Backlog) {
    let mut last = first;
    let mut quiet_looks = 0;
    loop {
        let (now, time_is_up) = look();
        quiet_looks = if now.is_quiet_since(&last) {
            quiet_looks + 1
        } else {
            0
        };
        last = now;
        if quiet_looks == QUIET_LOOKS {
            return (true, last);
        }
        if time_is_up {
            return (false, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const STILL: Backlog = Backlog {
        device: Some(DeviceBacklog {
            in_flight: 0,
            moved_bytes: 1 << 30,
        }),
        dirty_bytes: Some(8 << 20),
        writeback_bytes: Some(0),
    };

    /// Plays the looks one after the other, then `STILL` for ever; says how many were taken and how it ended.
    fn play(looks: &[Backlog], most_looks: usize) -> (bool, usize) {
        let mut taken = 0;
        let (reached, _) = watch(STILL, &mut || {
            let look = looks.get(taken).copied().unwrap_or(STILL);
            taken += 1;
            (look, taken >= most_looks)
        });
        (reached, taken)
    }

    #[test]
    fn a_still_system_is_quiet_after_the_fewest_looks() {
        assert_eq!(play(&[], 100), (true, QUIET_LOOKS as usize));
    }

    #[test]
    fn each_kind_of_activity_starts_the_count_again() {
        let in_flight = Backlog {
            device: Some(DeviceBacklog {
                in_flight: 1,
                moved_bytes: 1 << 30,
            }),
            ..STILL
        };
        let writeback = Backlog {
            writeback_bytes: Some(5 << 20),
            ..STILL
        };
        for busy in [in_flight, writeback] {
            assert_eq!(play(&[STILL, STILL, busy], 100), (true, 8), "{busy:?}");
        }
        // Moved and dirty bytes show in the look where they change and in the one where they change back.
        let moved = Backlog {
            device: Some(DeviceBacklog {
                in_flight: 0,
                moved_bytes: 2 << 30,
            }),
            ..STILL
        };
        let dirty = Backlog {
            dirty_bytes: Some(20 << 20),
            ..STILL
        };
        for busy in [moved, dirty] {
            assert_eq!(play(&[STILL, busy], 100), (true, 8), "{busy:?}");
        }
    }

    #[test]
    fn a_busy_system_ends_with_the_time() {
        let busy = Backlog {
            writeback_bytes: Some(5 << 20),
            ..STILL
        };
        assert_eq!(play(&[busy; 20], 10), (false, 10));
    }

    #[test]
    fn a_busy_device_is_seen_in_the_system_files() {
        let fixture = Fixture::with(&[("proc/diskstats", "8 0 sda 5 0 2 0 6 0 4 0 3 0 0\n")]);
        let device = DeviceNumber { major: 8, minor: 0 };
        let seen = wait_until_quiet(&fixture.files(), Some(device), Duration::ZERO);
        assert!(!seen.reached);
        assert_eq!(
            seen.last.device,
            Some(DeviceBacklog {
                in_flight: 3,
                moved_bytes: 6 * 512
            })
        );
        assert_eq!(seen.last.dirty_bytes, None);
    }
}
