//! One snapshot of everything that moves while a trial runs: processors, devices, memory, pressure. The caller decides
//! when; a snapshot reads about a dozen small files and takes a fraction of a millisecond.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::DeviceNumber;
use super::cgroup::Hierarchy;
use super::cpu::{CpuTimes, ProcessCpu};
use super::disk::{DiskCounters, ProcessIo};
use super::processes::Processes;
use super::{SystemTree, keyed_number, text};

/// The machine's memory, from `/proc/meminfo` (proc_meminfo(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryState {
    /// All memory.
    pub total_bytes: u64,
    /// Memory used for nothing.
    pub free_bytes: u64,
    /// What programs could get without swapping.
    pub available_bytes: u64,
    /// Page cache, shared memory included.
    pub cached_bytes: u64,
    /// Page cache yet to be written.
    pub dirty_bytes: u64,
    /// Page cache being written.
    pub writeback_bytes: u64,
}

impl MemoryState {
    /// Reads the state now.
    pub fn read(files: &SystemTree) -> Option<MemoryState> {
        let meminfo = files.proc_text("meminfo")?;
        let bytes = |key| Some(keyed_number(&meminfo, key)?.saturating_mul(1024));
        Some(MemoryState {
            total_bytes: bytes("MemTotal")?,
            free_bytes: bytes("MemFree")?,
            available_bytes: bytes("MemAvailable")?,
            cached_bytes: bytes("Cached")?,
            dirty_bytes: bytes("Dirty")?,
            writeback_bytes: bytes("Writeback")?,
        })
    }
}

/// The machine's swap space, from `/proc/meminfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapState {
    /// All of it.
    pub total_bytes: u64,
    /// What is in use.
    pub used_bytes: u64,
}

impl SwapState {
    /// Reads the state now.
    pub fn read(files: &SystemTree) -> Option<SwapState> {
        let meminfo = files.proc_text("meminfo")?;
        let bytes = |key| Some(keyed_number(&meminfo, key)?.saturating_mul(1024));
        let total_bytes = bytes("SwapTotal")?;
        Some(SwapState {
            total_bytes,
            used_bytes: total_bytes.saturating_sub(bytes("SwapFree")?),
        })
    }
}

/// Time lost waiting for a resource since boot (Linux Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// With at least one task waiting.
    pub some_us: u64,
    /// With every task that could run waiting; `None` where the kernel does not say.
    pub full_us: Option<u64>,
}

impl Pressure {
    /// Reads the pressure on `cpu`, `memory` or `io`; `None` where the kernel does not keep it.
    pub fn read(files: &SystemTree, resource: &str) -> Option<Pressure> {
        let pressure = files.proc_text(&format!("pressure/{resource}"))?;
        let total = |kind| {
            let line = pressure.lines().find(|line| line.starts_with(kind))?;
            line.rsplit_once("total=")?.1.trim().parse().ok()
        };
        Some(Pressure {
            some_us: total("some ")?,
            full_us: total("full "),
        })
    }

    /// The time lost between an earlier snapshot and this one.
    pub fn since(&self, earlier: &Pressure) -> Pressure {
        Pressure {
            some_us: self.some_us.saturating_sub(earlier.some_us),
            full_us: self
                .full_us
                .zip(earlier.full_us)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// What the scheduler says of the whole machine, from `/proc/stat` (proc_stat(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduler {
    /// Context switches since boot.
    pub context_switches: u64,
    /// Threads that run or could, the one that reads this included.
    pub runnable: u64,
    /// Threads that wait for an I/O.
    pub blocked: u64,
}

impl Scheduler {
    fn parse(stat: &str) -> Option<Scheduler> {
        Some(Scheduler {
            context_switches: keyed_number(stat, "ctxt")?,
            runnable: keyed_number(stat, "procs_running")?,
            blocked: keyed_number(stat, "procs_blocked")?,
        })
    }
}

/// One device's counters in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSample {
    /// The device.
    pub device: DeviceNumber,
    /// Its counters; `None` when hidden.
    pub counters: Option<DiskCounters>,
}

/// One snapshot. Counters count since boot (or the process's start): take differences between samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since the sampler was made.
    pub elapsed_us: u64,
    /// Processor time of the machine.
    pub cpu: Option<CpuTimes>,
    /// Processor time of the processes watched.
    pub process_cpu: Option<ProcessCpu>,
    /// I/O of the processes watched.
    pub process_io: Option<ProcessIo>,
    /// The devices watched, in the order they were named.
    pub disks: Vec<DiskSample>,
    /// The machine's memory.
    pub memory: Option<MemoryState>,
    /// The machine's scheduler.
    #[serde(default)]
    pub scheduler: Option<Scheduler>,
    /// Time since boot that the processor limit of our control group, or of one above it, kept threads from running, in
    /// microseconds; `None` where nothing limits us.
    #[serde(default)]
    pub cpu_throttled_us: Option<u64>,
    /// Pressure on processors.
    pub cpu_pressure: Option<Pressure>,
    /// Pressure on memory.
    pub memory_pressure: Option<Pressure>,
    /// Pressure on block I/O.
    pub io_pressure: Option<Pressure>,
}

/// Takes samples.
#[derive(Debug, Clone)]
pub struct Sampler {
    files: SystemTree,
    devices: Vec<DeviceNumber>,
    processes: Processes,
    /// The account of each control group that may hold us back.
    cpu_accounts: Vec<PathBuf>,
    started: Instant,
}

impl Sampler {
    /// Watches these devices and these processes from now on.
    pub fn new(files: SystemTree, devices: Vec<DeviceNumber>, processes: Processes) -> Sampler {
        let hierarchy = Hierarchy::of_self(&files, "cpu");
        let groups = hierarchy.iter().flat_map(Hierarchy::upwards);
        let cpu_accounts = groups.map(|group| group.join("cpu.stat")).collect();
        Sampler {
            cpu_accounts,
            files,
            devices,
            processes,
            started: Instant::now(),
        }
    }

    /// Takes a snapshot now.
    pub fn sample(&self) -> Sample {
        let files = &self.files;
        let stat = files.proc_text("stat");
        let disks = self.devices.iter().map(|&device| DiskSample {
            device,
            counters: DiskCounters::read(files, device),
        });
        Sample {
            elapsed_us: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            cpu: stat.as_deref().and_then(CpuTimes::parse),
            process_cpu: self.processes.cpu(files),
            process_io: self.processes.io(files),
            disks: disks.collect(),
            memory: MemoryState::read(files),
            scheduler: stat.as_deref().and_then(Scheduler::parse),
            cpu_throttled_us: self.cpu_throttled_us(),
            cpu_pressure: Pressure::read(files, "cpu"),
            memory_pressure: Pressure::read(files, "memory"),
            io_pressure: Pressure::read(files, "io"),
        }
    }
}

impl Sampler {
    fn cpu_throttled_us(&self) -> Option<u64> {
        let known = self
            .cpu_accounts
            .iter()
            .filter_map(|account| throttled_us(&text(account)?));
        known.reduce(|sum_us, us| sum_us + us)
    }
}

/// Version 2 counts microseconds, version 1 nanoseconds (Linux Documentation/admin-guide/cgroup-v2.rst,
/// scheduler/sched-bwc.rst).
fn throttled_us(account: &str) -> Option<u64> {
    keyed_number(account, "throttled_usec")
        .or_else(|| Some(keyed_number(account, "throttled_time")? / 1000))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const MEMINFO: &str = "MemTotal: 100 kB\nMemFree: 50 kB\nMemAvailable: 80 kB\nCached: 20 kB\nSwapCached: 1 kB\n\
                           Dirty: 3 kB\nWriteback: 2 kB\nWritebackTmp: 9 kB\n";
    const DEVICE: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

    #[test]
    fn a_sample_holds_what_each_file_says_at_that_moment() {
        let fixture = Fixture::with(&[
            (
                "proc/stat",
                "cpu  1 0 0 9 0 0 0 0\nctxt 50\nprocs_running 3\nprocs_blocked 1\n",
            ),
            ("proc/meminfo", MEMINFO),
            (
                "proc/pressure/io",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=44\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=33\n",
            ),
            (
                "proc/pressure/cpu",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
            ),
            ("proc/diskstats", "8 0 sda 5 0 0 0 6 0 0 0 0 0 0\n"),
        ]);
        let sampler = Sampler::new(fixture.files(), vec![DEVICE], Processes::one(1));
        let first = sampler.sample();
        let memory = first.memory.expect("memory");
        assert_eq!(memory.dirty_bytes, 3 * 1024);
        assert_eq!(memory.writeback_bytes, 2 * 1024);
        assert_eq!(memory.cached_bytes, 20 * 1024);
        assert_eq!(first.disks[0].counters.expect("disk").writes, 6);
        let scheduler = Scheduler {
            context_switches: 50,
            runnable: 3,
            blocked: 1,
        };
        assert_eq!(first.scheduler, Some(scheduler));
        let io_pressure = first.io_pressure.expect("pressure");
        assert_eq!((io_pressure.some_us, io_pressure.full_us), (44, Some(33)));
        assert_eq!(first.cpu_pressure.expect("pressure").full_us, None);
        assert_eq!(first.memory_pressure, None);
        assert_eq!(first.process_cpu, None);

        fixture.write("proc/stat", "cpu  4 0 0 9 0 0 0 0\n");
        fixture.write("proc/diskstats", "8 0 sda 5 0 0 0 9 0 0 0 0 0 0\n");
        let second = sampler.sample();
        let cpu = second.cpu.expect("cpu").since(&first.cpu.expect("cpu"));
        assert_eq!(cpu.user_us, 30_000);
        assert_eq!(second.disks[0].counters.expect("disk").writes, 9);
        assert!(second.elapsed_us >= first.elapsed_us);
    }

    #[test]
    fn both_kinds_of_control_group_tell_of_throttling() {
        assert_eq!(
            throttled_us("nr_throttled 3\nthrottled_usec 70\n"),
            Some(70)
        );
        assert_eq!(
            throttled_us("nr_throttled 3\nthrottled_time 70000\n"),
            Some(70)
        );
        assert_eq!(throttled_us("usage_usec 3\n"), None);
    }

    #[test]
    fn a_system_that_tells_nothing_gives_an_empty_sample() {
        let sample =
            Sampler::new(Fixture::empty().files(), vec![DEVICE], Processes::one(1)).sample();
        assert_eq!(sample.cpu, None);
        assert_eq!(sample.memory, None);
        assert_eq!(sample.disks[0].counters, None);
    }

    #[test]
    fn a_sample_survives_the_journal() {
        let sampler = Sampler::new(
            SystemTree::default(),
            vec![DEVICE],
            Processes::one(std::process::id()),
        );
        let sample = sampler.sample();
        assert!(sample.cpu.is_some() && sample.memory.is_some() && sample.process_cpu.is_some());
        let line = serde_json::to_string(&sample).expect("written");
        assert_eq!(serde_json::from_str::<Sample>(&line).expect("read"), sample);
    }
}
