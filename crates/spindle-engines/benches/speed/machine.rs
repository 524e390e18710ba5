//! How busy the machine was, others included: its processors, and the disk below a directory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{major, minor};

/// What the machine has done so far.
#[derive(Clone, Copy)]
pub struct Moment {
    at: Instant,
    /// Ticks of all processors, and those in which they had nothing to do.
    ticks: Option<[f64; 2]>,
    /// Milliseconds in which the disk had something to do.
    disk_ms: Option<f64>,
}

/// Shares of the time between two moments, from 0 to 1; `None` where the system does not tell.
#[derive(Clone, Copy, Default)]
pub struct Busy {
    pub processors: Option<f64>,
    pub disk: Option<f64>,
}

impl Moment {
    /// Now, for the disk on which `directory` lies.
    pub fn now(directory: &Path) -> Moment {
        Moment {
            at: Instant::now(),
            ticks: ticks(),
            disk_ms: disk_ms(directory),
        }
    }

    pub fn busy_until(self, later: Moment) -> Busy {
        let both = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
        let ticks = self.ticks.zip(later.ticks);
        let processors = ticks.map(|(before, after)| {
            let idle = after[1] - before[1];
            1.0 - idle / (after[0] - before[0]).max(1.0)
        });
        let elapsed_ms = (later.at - self.at).as_secs_f64() * 1e3;
        Busy {
            processors,
            disk: both(self.disk_ms, later.disk_ms).map(|busy_ms| busy_ms / elapsed_ms),
        }
    }
}

/// The first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks() -> Option<[f64; 2]> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let first = text.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<f64> = first.map_while(|tick| tick.parse().ok()).collect();
    Some([ticks.iter().sum(), ticks.get(3)? + ticks.get(4)?])
}

/// Field 10 of `/sys/dev/block/MAJOR:MINOR/stat`.
fn disk_ms(directory: &Path) -> Option<f64> {
    let device = directory.metadata().ok()?.dev();
    let numbers = format!("{}:{}", major(device), minor(device));
    let stat = std::fs::read_to_string(format!("/sys/dev/block/{numbers}/stat")).ok()?;
    stat.split_whitespace().nth(9)?.parse().ok()
}
