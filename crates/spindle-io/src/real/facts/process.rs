//! What this process has used of the machine: processor time and memory of its own.
#![allow(unsafe_code)]

use std::time::Duration;

/// Processor time of this process, all its threads together, those that have ended included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTime {
    /// In the program.
    pub user: Duration,
    /// In the system on its behalf.
    pub system: Duration,
}

impl ProcessorTime {
    /// What has been used since the process began (`getrusage`).
    pub fn now() -> ProcessorTime {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call fills the structure it is given; zeroed, it is a valid one from the beginning.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let duration = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        };
        ProcessorTime {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        }
    }

    /// Both kinds together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

impl std::ops::Sub for ProcessorTime {
    type Output = ProcessorTime;
    fn sub(self, earlier: ProcessorTime) -> ProcessorTime {
        ProcessorTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// Bytes of memory that this process has in use and that belong to no file: heap, stacks, buffers. Counted page by page
/// (`/proc/self/smaps_rollup`, Linux 4.14), because the quick counters lag by megabytes on machines of many processors.
/// `None` where the system does not say.
pub fn anonymous_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = ProcessorTime::now();
        let mut sum = 0u64;
        while (ProcessorTime::now() - before).total() < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }

    #[test]
    fn memory_counts_when_it_is_touched() {
        let Some(before) = anonymous_bytes() else {
            println!("skipped: the system does not tell a process's memory");
            return;
        };
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        let grown = anonymous_bytes().unwrap() - before;
        assert!(grown >= 60 << 20, "{grown}");
        drop(touched);
    }
}
