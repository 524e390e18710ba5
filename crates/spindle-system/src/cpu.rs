//! Processor time: the whole machine's from `/proc/stat`, one process's from `/proc/PID/stat`.

use serde::{Deserialize, Serialize};

use super::{SystemTree, names, number};

/// One tick of `/proc/stat` and `/proc/PID/stat`: USER_HZ is 100 on every architecture Linux supports with Rust
/// (Linux include/asm-generic/param.h).
const TICK_US: u64 = 10_000;

/// Processor time of the whole machine since boot, all processors together. Resolution is 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Programs, low priority and guests included.
    pub user_us: u64,
    /// The kernel, interrupts included.
    pub system_us: u64,
    /// Idle with an I/O under way on that processor.
    pub iowait_us: u64,
    /// Idle.
    pub idle_us: u64,
    /// Taken by the hypervisor for others.
    pub steal_us: u64,
}

/// The longest time that a processor takes to leave an idle state that it may enter; `None` where the kernel shows no
/// such states (Linux Documentation/admin-guide/pm/cpuidle.rst).
pub fn deepest_idle_latency_us(files: &SystemTree) -> Option<u64> {
    let states = files.sys.join("devices/system/cpu/cpu0/cpuidle");
    names(&states)
        .into_iter()
        .map(|name| states.join(name))
        .filter(|state| number(&state.join("disable")) != Some(1))
        .filter_map(|state| number(&state.join("latency")))
        .max()
}

impl CpuTimes {
    /// Reads `/proc/stat`.
    pub fn read(files: &SystemTree) -> Option<CpuTimes> {
        CpuTimes::parse(&files.proc_text("stat")?)
    }

    /// Reads the first line of `/proc/stat` (proc_stat(5)): user nice system idle iowait irq softirq steal; guest time,
    /// which follows, is already counted as user.
    pub(super) fn parse(stat: &str) -> Option<CpuTimes> {
        let mut words = stat.lines().next()?.split_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let sum_us = |columns: &[usize]| {
            let ticks = columns.iter().filter_map(|&column| ticks.get(column));
            ticks.fold(0_u64, |sum_us, ticks| {
                sum_us.saturating_add(ticks.saturating_mul(TICK_US))
            })
        };
        (ticks.len() >= 4).then(|| CpuTimes {
            user_us: sum_us(&[0, 1]),
            system_us: sum_us(&[2, 5, 6]),
            iowait_us: sum_us(&[4]),
            idle_us: sum_us(&[3]),
            steal_us: sum_us(&[7]),
        })
    }

    /// The sum of two.
    pub fn and(&self, other: &CpuTimes) -> CpuTimes {
        CpuTimes {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            iowait_us: self.iowait_us + other.iowait_us,
            idle_us: self.idle_us + other.idle_us,
            steal_us: self.steal_us + other.steal_us,
        }
    }

    /// The time spent between an earlier snapshot and this one. The kernel lets idle and I/O wait go back a little;
    /// that counts as none.
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        CpuTimes {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            iowait_us: self.iowait_us.saturating_sub(earlier.iowait_us),
            idle_us: self.idle_us.saturating_sub(earlier.idle_us),
            steal_us: self.steal_us.saturating_sub(earlier.steal_us),
        }
    }

    /// The parts of the whole; `None` when no time has passed.
    pub fn shares(&self) -> Option<CpuShares> {
        let parts_us = [
            self.user_us,
            self.system_us,
            self.iowait_us,
            self.idle_us,
            self.steal_us,
        ];
        let total_us: f64 = parts_us.iter().map(|&part_us| part_us as f64).sum();
        let percent = |part_us: u64| part_us as f64 * 100.0 / total_us;
        (total_us > 0.0).then(|| CpuShares {
            user_percent: percent(self.user_us),
            system_percent: percent(self.system_us),
            iowait_percent: percent(self.iowait_us),
            idle_percent: percent(self.idle_us),
            steal_percent: percent(self.steal_us),
        })
    }
}

/// How all processors together spent an interval; the five add up to 100.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Programs.
    pub user_percent: f64,
    /// The kernel, interrupts included.
    pub system_percent: f64,
    /// Idle with an I/O under way.
    pub iowait_percent: f64,
    /// Idle.
    pub idle_percent: f64,
    /// Taken by the hypervisor for others.
    pub steal_percent: f64,
}

/// Processor time one process has used, all its threads together, children not. Resolution is 10 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// In the program.
    pub user_us: u64,
    /// In the kernel on its behalf.
    pub system_us: u64,
}

impl ProcessCpu {
    /// Reads a process's time; `None` if there is no such process.
    pub fn read(files: &SystemTree, process_id: u32) -> Option<ProcessCpu> {
        ProcessCpu::parse(&files.proc_text(&format!("{process_id}/stat"))?)
    }

    /// The time of a process and of those of its children that have ended and been waited for: fields 14 to 17.
    pub(super) fn parse_with_ended_children(stat: &str) -> Option<ProcessCpu> {
        let own = ProcessCpu::parse(stat)?;
        let (_, from_third_field) = stat.rsplit_once(')')?;
        let mut fields = from_third_field.split_whitespace().skip(13);
        let mut next_us = || Some(fields.next()?.parse::<u64>().ok()?.saturating_mul(TICK_US));
        Some(own.and(&ProcessCpu {
            user_us: next_us()?,
            system_us: next_us()?,
        }))
    }

    /// The sum of two.
    pub fn and(&self, other: &ProcessCpu) -> ProcessCpu {
        ProcessCpu {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
        }
    }

    /// Fields 14 and 15 of proc_pid_stat(5). Field 2 is a name in parentheses that may itself hold spaces and
    /// parentheses, so fields are counted from the last one.
    pub(super) fn parse(stat: &str) -> Option<ProcessCpu> {
        let (_, from_third_field) = stat.rsplit_once(')')?;
        let mut fields = from_third_field.split_whitespace().skip(11);
        let mut next_us = || Some(fields.next()?.parse::<u64>().ok()?.saturating_mul(TICK_US));
        Some(ProcessCpu {
            user_us: next_us()?,
            system_us: next_us()?,
        })
    }

    /// The time used between an earlier snapshot and this one.
    pub fn since(&self, earlier: &ProcessCpu) -> ProcessCpu {
        ProcessCpu {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn every_column_of_the_machine_lands_in_its_share() {
        let fixture =
            Fixture::with(&[("proc/stat", "cpu  10 1 20 300 40 2 3 5 7 0\ncpu0 1 1 1 1\n")]);
        let times = CpuTimes::read(&fixture.files()).expect("times");
        assert_eq!(
            times,
            CpuTimes {
                user_us: 110_000,
                system_us: 250_000,
                iowait_us: 400_000,
                idle_us: 3_000_000,
                steal_us: 50_000,
            }
        );
    }

    #[test]
    fn shares_are_of_the_difference_and_add_up() {
        let earlier = CpuTimes {
            user_us: 1000,
            iowait_us: 900,
            ..CpuTimes::default()
        };
        let later = CpuTimes {
            user_us: 1300,
            system_us: 100,
            iowait_us: 800,
            idle_us: 500,
            steal_us: 100,
        };
        let shares = later.since(&earlier).shares().expect("time has passed");
        assert_eq!(shares.user_percent, 30.0);
        assert_eq!(shares.system_percent, 10.0);
        assert_eq!(shares.iowait_percent, 0.0);
        assert_eq!(shares.idle_percent, 50.0);
        assert_eq!(shares.steal_percent, 10.0);
        assert_eq!(later.since(&later).shares(), None);
    }

    #[test]
    fn a_process_name_with_spaces_and_parentheses_is_skipped() {
        let stat =
            "12 (a (b) 1 2) R 1 1 1 0 -1 4194304 101 0 0 0 7 9 0 0 20 0 1 0 97961 3133440 399";
        let fixture = Fixture::with(&[("proc/12/stat", stat)]);
        assert_eq!(
            ProcessCpu::read(&fixture.files(), 12),
            Some(ProcessCpu {
                user_us: 70_000,
                system_us: 90_000
            })
        );
        assert_eq!(ProcessCpu::read(&fixture.files(), 13), None);
    }

    #[test]
    fn broken_files_are_unknown() {
        for stat in ["", "intr 1 2 3", "cpu  1 2", "cpu x"] {
            assert_eq!(CpuTimes::parse(stat), None, "{stat}");
        }
        assert_eq!(ProcessCpu::parse("1 (x) R 1"), None);
    }

    #[test]
    fn the_running_system_is_read() {
        let files = SystemTree::default();
        let times = CpuTimes::read(&files).expect("/proc/stat");
        assert!(times.user_us + times.system_us > 0);
        assert!(ProcessCpu::read(&files, std::process::id()).is_some());
    }
}
