//! Waiting, before a trial, until what came before has left the system's queues, so that its backlog is not billed to
//! the trial. What is still dirty should be synced first: this only watches.

use std::fmt;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::DeviceNumber;
use super::SystemTree;
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
    /// What was in the way when it ended; `None` when it was quiet.
    pub in_the_way: Option<Activity>,
}

/// What one look found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// Requests under way on the devices and bytes they moved since boot, all together; `None` when they are hidden.
    pub device: Option<DeviceBacklog>,
    /// Page cache of the whole machine yet to be written; `None` when unknown.
    pub dirty_bytes: Option<u64>,
    /// Page cache of the whole machine being written; `None` when unknown.
    pub writeback_bytes: Option<u64>,
}

/// What kept the system from being quiet between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Requests under way on the devices.
    pub in_flight: u64,
    /// Bytes that the devices moved.
    pub moved_bytes: u64,
    /// Bytes by which the dirty page cache changed.
    pub dirty_change_bytes: u64,
    /// Bytes of the page cache that are being written.
    pub writeback_bytes: u64,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = |bytes: u64| bytes as f64 / LOOK_EVERY.as_secs_f64() / 1e6;
        let limit = per_second(NOISE_BYTES);
        if self.moved_bytes > NOISE_BYTES {
            let moved = per_second(self.moved_bytes);
            write!(
                f,
                "the devices move {moved:.0} MB/s (quiet: at most {limit:.0} MB/s)"
            )
        } else if self.writeback_bytes > NOISE_BYTES {
            let bytes = self.writeback_bytes as f64 / 1e6;
            write!(
                f,
                "{bytes:.0} MB of the page cache are being written (quiet: at most 1 MB)"
            )
        } else if self.dirty_change_bytes > NOISE_BYTES {
            let change = per_second(self.dirty_change_bytes);
            write!(
                f,
                "other programs dirty {change:.0} MB/s of the page cache (quiet: at most {limit:.0} MB/s)"
            )
        } else {
            match self.in_flight {
                // All came to rest at the last look, and that was too late.
                0 => f.write_str("the devices came to rest only just now"),
                1 => f.write_str("a request is under way on the devices (quiet: none)"),
                more => write!(
                    f,
                    "{more} requests are under way on the devices (quiet: none)"
                ),
            }
        }
    }
}

/// The devices' part of a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBacklog {
    /// Requests under way.
    pub in_flight: u64,
    /// Bytes read and written since boot.
    pub moved_bytes: u64,
}

impl Backlog {
    fn look(files: &SystemTree, devices: &[DeviceNumber]) -> Backlog {
        let memory = MemoryState::read(files);
        let mut counters = devices
            .iter()
            .filter_map(|device| DiskCounters::read(files, *device));
        let first = counters.next().map(DeviceBacklog::of);
        Backlog {
            device: first.map(|first| {
                counters
                    .map(DeviceBacklog::of)
                    .fold(first, DeviceBacklog::plus)
            }),
            dirty_bytes: memory.map(|memory| memory.dirty_bytes),
            writeback_bytes: memory.map(|memory| memory.writeback_bytes),
        }
    }

    /// What happened between an earlier look and this one. What is unknown cannot be waited for and counts as quiet.
    fn activity_since(&self, earlier: &Backlog) -> Activity {
        let (in_flight, moved_bytes) = match (self.device, earlier.device) {
            (Some(now), Some(then)) => (now.in_flight, now.moved_bytes.abs_diff(then.moved_bytes)),
            _ => (0, 0),
        };
        let dirty_change_bytes = match (self.dirty_bytes, earlier.dirty_bytes) {
            (Some(now), Some(then)) => now.abs_diff(then),
            _ => 0,
        };
        Activity {
            in_flight,
            moved_bytes,
            dirty_change_bytes,
            writeback_bytes: self.writeback_bytes.unwrap_or(0),
        }
    }
}

impl Activity {
    fn is_quiet(&self) -> bool {
        let most = self
            .moved_bytes
            .max(self.dirty_change_bytes)
            .max(self.writeback_bytes);
        self.in_flight == 0 && most <= NOISE_BYTES
    }
}

impl DeviceBacklog {
    fn of(counters: DiskCounters) -> DeviceBacklog {
        DeviceBacklog {
            in_flight: counters.in_flight,
            moved_bytes: counters.read_bytes.saturating_add(counters.written_bytes),
        }
    }

    fn plus(self, other: DeviceBacklog) -> DeviceBacklog {
        DeviceBacklog {
            in_flight: self.in_flight + other.in_flight,
            moved_bytes: self.moved_bytes.saturating_add(other.moved_bytes),
        }
    }
}

/// Waits until, for half a second, `devices` have had no I/O under way and moved next to nothing, and the machine's
/// dirty and written-back page cache has settled; gives up after `limit`, or when `hear`, which is told at each look
/// what is in the way, says so. Sync what was written before calling: dirty pages that merely wait look settled.
pub fn wait_until_quiet(
    files: &SystemTree,
    devices: &[DeviceNumber],
    limit: Duration,
    hear: &mut dyn FnMut(&Activity) -> ControlFlow<()>,
) -> Quiet {
    let started = Instant::now();
    let mut look = |activity: Option<&Activity>| {
        let goes_on = activity.is_none_or(|activity| hear(activity).is_continue());
        if started.elapsed() >= limit || !goes_on {
            return None;
        }
        thread::sleep(LOOK_EVERY);
        Some(Backlog::look(files, devices))
    };
    let (in_the_way, last) = watch(Backlog::look(files, devices), &mut look);
    Quiet {
        reached: in_the_way.is_none(),
        waited_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        last,
        in_the_way,
    }
}

/// Takes looks until enough in a row are quiet, or there are no more. Each look is told what was in the way before it.
/// Returns what was in the way last, if it never became quiet.
fn watch(
    first: Backlog,
    look: &mut dyn FnMut(Option<&Activity>) -> Option<Backlog>,
) -> (Option<Activity>, Backlog) {
    let mut last = first;
    let mut quiet_looks = 0;
    let mut in_the_way: Option<Activity> = None;
    while let Some(now) = look(in_the_way.as_ref().filter(|_| quiet_looks == 0)) {
        let activity = now.activity_since(&last);
        last = now;
        if activity.is_quiet() {
            quiet_looks += 1;
        } else {
            quiet_looks = 0;
            in_the_way = Some(activity);
        }
        if quiet_looks == QUIET_LOOKS {
            return (None, last);
        }
    }
    (Some(in_the_way.unwrap_or_default()), last)
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

    /// Plays the looks one after the other, then `STILL` forever; says how many were taken and how it ended.
    fn play(looks: &[Backlog], most_looks: usize) -> (bool, usize) {
        let mut taken = 0;
        let (in_the_way, _) = watch(STILL, &mut |_| {
            let look = looks.get(taken).copied().unwrap_or(STILL);
            (taken < most_looks).then(|| {
                taken += 1;
                look
            })
        });
        (in_the_way.is_none(), taken)
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
        let at_rest = Activity::default().to_string();
        assert_eq!(at_rest, "the devices came to rest only just now");
        let mut told = Vec::new();
        let limit = Duration::from_secs(60);
        let seen = wait_until_quiet(&fixture.files(), &[device], limit, &mut |activity| {
            told.push(activity.to_string());
            ControlFlow::Break(())
        });
        assert!(!seen.reached);
        assert!(seen.waited_ms < 30_000, "who hears of it can end it");
        assert_eq!(
            told,
            ["3 requests are under way on the devices (quiet: none)"]
        );
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
