//! What makes results noisy: processor clocks, other work, memory, clocks that are being set, and devices' caches.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use spindle_text::quantity::{size, thousands};

use super::finding::Finding;
use spindle_system::block_device::DiskFacts;
use spindle_system::cpu::{CpuTimes, deepest_idle_latency_us};
use spindle_system::disk::ProcessIo;
use spindle_system::machine::Machine;
use spindle_system::sampler::{MemoryState, SwapState};
use spindle_system::{BlockDeviceNode, SystemTree, processes};

/// How long other work is watched.
const SAMPLE: Duration = Duration::from_millis(500);

/// I/O of another process that counts as heavy.
const HEAVY_BYTES_PER_S: u64 = 1 << 20;

/// A clock that is set this much faster or slower falsifies nothing, but says that it is being set.
const SLEW_NOTABLE_PPM: f64 = 100.0;

/// Idle states that take longer to leave than this are felt by an I/O of a fast device.
const IDLE_LATENCY_NOTABLE_US: u64 = 50;

/// Steal that is felt.
const STEAL_NOTABLE_PERCENT: f64 = 1.0;

/// What was seen over a little while.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// Bytes per second that other processes read and wrote, by their names.
    io_bytes_per_s: BTreeMap<String, u64>,
    /// Other processes whose reads and writes this user may not see.
    unseen: usize,
    /// How much faster the clock went than the hardware's, in millionths.
    slew_ppm: f64,
    /// Processor time that the host gave to others, in per cent.
    steal_percent: Option<f64>,
}

impl Sampled {
    /// Watches for half a second.
    pub(super) fn over_half_a_second(files: &SystemTree) -> Sampled {
        let (io_before, _) = process_io(files);
        let cpu_before = CpuTimes::read(files);
        let (set_before, raw_before) = clocks_ns();
        std::thread::sleep(SAMPLE);
        let (set_after, raw_after) = clocks_ns();
        let (io, unseen) = process_io(files);
        let moved = |((pid, name), bytes): (&(u32, String), &u64)| {
            let before = io_before
                .get(&(*pid, name.clone()))
                .copied()
                .unwrap_or(*bytes);
            (name.clone(), bytes.saturating_sub(before) * 2)
        };
        let raw = (raw_after - raw_before) as f64;
        let cpu = CpuTimes::read(files).zip(cpu_before);
        Sampled {
            io_bytes_per_s: io
                .iter()
                .map(moved)
                .filter(|(_, bytes)| *bytes >= HEAVY_BYTES_PER_S)
                .collect(),
            unseen,
            slew_ppm: ((set_after - set_before) as f64 - raw) / raw * 1e6,
            steal_percent: cpu
                .and_then(|(after, before)| Some(after.since(&before).shares()?.steal_percent)),
        }
    }
}

/// The monotonic clock as it is set by time services, and as the hardware runs: clock_gettime(2).
fn clocks_ns() -> (i128, i128) {
    let nanoseconds =
        |time: Timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    (
        nanoseconds(clock_gettime(ClockId::Monotonic)),
        nanoseconds(clock_gettime(ClockId::MonotonicRaw)),
    )
}

/// Bytes that each other process has read from and written to devices: proc_pid_io(5), for root only of all users. And
/// how many processes do not tell this user.
fn process_io(files: &SystemTree) -> (BTreeMap<(u32, String), u64>, usize) {
    let others = processes::ids(files)
        .into_iter()
        .filter(|process_id| *process_id != std::process::id());
    let (mut moved, mut unseen) = (BTreeMap::new(), 0);
    for process_id in others {
        // One that has ended meanwhile has no name either.
        let Some(program) = processes::program_of(files, process_id) else {
            continue;
        };
        let program = String::from_utf8_lossy(&program).into_owned();
        match ProcessIo::read(files, process_id) {
            Some(io) => _ = moved.insert((process_id, program), io.read_bytes + io.written_bytes),
            None => unseen += 1,
        }
    }
    (moved, unseen)
}

/// Looks at everything.
pub(super) fn find(files: &SystemTree, sampled: &Sampled) -> Vec<Finding> {
    let machine = Machine::capture(files, &[]);
    let mut findings = vec![
        governor(&machine),
        idle_states(files),
        virtualisation(&machine, sampled),
        load(&machine),
        other_io(sampled),
    ];
    findings.extend(memory(files));
    findings.push(huge_pages(&machine));
    findings.push(clock(sampled));
    findings.extend(disks(files).iter().flat_map(disk));
    findings
}

fn governor(machine: &Machine) -> Finding {
    match machine.processor.governor.as_deref() {
        Some("performance") => Finding::ok("governor: performance"),
        Some(other) => Finding::warn(
            format!("governor: {other}"),
            "the clock follows the load, so latencies at low load are too high: cpupower frequency-set -g performance",
        ),
        None => Finding::ok("CPU governor: unknown (virtual machine)"),
    }
}

fn idle_states(files: &SystemTree) -> Finding {
    match deepest_idle_latency_us(files) {
        Some(latency_us) if latency_us > IDLE_LATENCY_NOTABLE_US => Finding::warn(
            format!("idle states: the deepest takes {latency_us} us to leave"),
            "a processor that waits for an I/O falls asleep and wakes late: cpupower idle-set -D 50, or boot with intel_idle.max_cstate=1",
        ),
        Some(latency_us) => Finding::ok(format!(
            "idle states: the deepest takes {latency_us} us to leave"
        )),
        None => Finding::ok("idle states: none seen (the host decides in a virtual machine)"),
    }
}

fn virtualisation(machine: &Machine, sampled: &Sampled) -> Finding {
    let since_boot = machine.load.steal_percent_since_boot;
    let steal = sampled
        .steal_percent
        .unwrap_or(0.0)
        .max(since_boot.unwrap_or(0.0));
    match machine.virtualisation.hypervisor_flag {
        Some(true) if steal >= STEAL_NOTABLE_PERCENT => Finding::warn(
            format!("virtual machine: the host took {steal:.1} % of the processors' time"),
            "neighbours are measured, too: use more rounds, a quieter host, or processors of your own",
        ),
        Some(true) => Finding::ok(format!(
            "virtual machine: the host took {steal:.1} % of the processors' time"
        )),
        Some(false) => Finding::ok("no virtual machine"),
        None => Finding::ok("virtual machine: not told"),
    }
}

fn load(machine: &Machine) -> Finding {
    let Some([minute, ..]) = machine.load.averages else {
        return Finding::ok("load: not told");
    };
    let processors = machine.processor.logical_processors.unwrap_or(1);
    let what = format!("load {minute:.2} over the last minute, {processors} processors");
    if minute < 0.25 * f64::from(processors) {
        Finding::ok(what)
    } else {
        Finding::warn(
            what,
            "another program is busy: stop it, or wait until it is done",
        )
    }
}

fn other_io(sampled: &Sampled) -> Finding {
    let unseen = match sampled.unseen {
        0 => None,
        1 => Some("1 process of another user".to_owned()),
        unseen => Some(format!(
            "{} processes of other users",
            thousands(unseen as f64)
        )),
    };
    if sampled.io_bytes_per_s.is_empty() {
        return match unseen {
            None => Finding::ok("other processes: none reads or writes 1 MiB/s or more"),
            Some(unseen) => Finding::warn(
                format!("other processes: {unseen} cannot be looked at"),
                "what they read and write is not known; as root, spindle doctor sees it. Of the others none reads or writes \
                 1 MiB/s or more",
            ),
        };
    }
    let unseen = unseen.map_or(String::new(), |unseen| {
        format!("; {unseen} cannot be looked at")
    });
    let all: Vec<String> = sampled
        .io_bytes_per_s
        .iter()
        .map(|(name, bytes)| format!("{name} {}/s", size(*bytes)))
        .collect();
    Finding::warn(
        format!("other processes read and write: {}{unseen}", all.join(", ")),
        "they share the devices and the page cache: stop them for the run",
    )
}

fn memory(files: &SystemTree) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(state) = MemoryState::read(files) {
        let (available, total) = (state.available_bytes, state.total_bytes);
        let what = format!("memory: {} of {} available", size(available), size(total));
        findings.push(if available * 4 >= total {
            Finding::ok(what)
        } else {
            Finding::warn(
                what,
                "little is left for buffer cache and page cache: stop other programs",
            )
        });
    }
    let swap = SwapState::read(files).unwrap_or_default();
    let (used, total) = (swap.used_bytes, swap.total_bytes);
    findings.push(if used == 0 {
        Finding::ok(format!("swap: none of {} in use", size(total)))
    } else {
        Finding::warn(
            format!("swap: {} of {} in use", size(used), size(total)),
            "memory comes back from disk during trials: free memory, then swapoff -a and swapon -a",
        )
    });
    findings
}

fn huge_pages(machine: &Machine) -> Finding {
    match machine.settings.transparent_huge_pages.as_deref() {
        Some("never") => Finding::warn(
            "transparent huge pages: never",
            "the buffer cache costs about a tenth more processor time per read: set it to madvise",
        ),
        Some(word) => Finding::ok(format!("transparent huge pages: {word}")),
        None => Finding::ok("transparent huge pages: not told"),
    }
}

fn clock(sampled: &Sampled) -> Finding {
    let what = format!(
        "clock: set {:.0} millionths off the hardware's",
        sampled.slew_ppm.abs()
    );
    if sampled.slew_ppm.abs() < SLEW_NOTABLE_PPM {
        Finding::ok(what)
    } else {
        Finding::warn(
            what,
            "a time service is correcting it; wait until it is right, or all times are off by that much",
        )
    }
}

/// Whole devices that hold data; not loop devices, memory or empty drives.
fn disks(files: &SystemTree) -> Vec<DiskFacts> {
    let mut disks: Vec<DiskFacts> = BlockDeviceNode::all(files)
        .into_iter()
        .filter(|node| !node.is_partition())
        .filter_map(|node| DiskFacts::describe(files, node.number))
        .filter(|disk| disk.size_bytes.is_some_and(|bytes| bytes > 0))
        .filter(|disk| {
            !["loop", "ram", "zram", "sr", "fd"]
                .iter()
                .any(|kind| disk.name.starts_with(kind))
        })
        .collect();
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks
}

fn disk(disk: &DiskFacts) -> Vec<Finding> {
    let name = &disk.name;
    let scheduler = disk.scheduler.as_deref().unwrap_or("not told");
    let slow = disk.rotational == Some(true);
    let scheduler_fits = matches!(scheduler, "none" | "mq-deadline" | "not told") || slow;
    let mut findings = vec![if scheduler_fits {
        Finding::ok(format!("{name}: scheduler {scheduler}"))
    } else {
        Finding::warn(
            format!("{name}: scheduler {scheduler}"),
            format!(
                "it costs processor time and reorders: echo none > /sys/block/{name}/queue/scheduler"
            ),
        )
    }];
    let cache = disk.write_cache.as_deref().unwrap_or("not told");
    findings.push(match (cache, disk.fua) {
        ("write back", Some(false)) => Finding::ok(format!(
            "{name}: volatile write cache, no FUA: each durable write is a write and a flush of the whole cache"
        )),
        ("write back", _) => Finding::ok(format!("{name}: volatile write cache, flushed for durable writes")),
        ("write through", _) => Finding::ok(format!(
            "{name}: the device reports no volatile write cache (if someone set it to report that, commits are not safe)"
        )),
        (other, _) => Finding::ok(format!("{name}: write cache {other}")),
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Health;
    use spindle_system::fixture::Fixture;

    fn warnings(fixture: &Fixture, sampled: &Sampled) -> String {
        let findings = find(&fixture.files(), sampled);
        let noisy = findings
            .iter()
            .filter(|finding| finding.health == Health::Warn);
        noisy.map(|finding| finding.what.clone() + "\n").collect()
    }

    #[test]
    fn a_quiet_machine_has_no_warning() {
        let fixture = Fixture::with(&[
            ("proc/loadavg", "0.05 0.0 0.0 1/100 5\n"),
            (
                "proc/meminfo",
                "MemTotal: 4000000 kB\nMemFree: 9 kB\nMemAvailable: 3000000 kB\nCached: 9 kB\nSwapTotal: 0 kB\n\
                 SwapFree: 0 kB\nDirty: 0 kB\nWriteback: 0 kB\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                "performance\n",
            ),
        ]);
        assert_eq!(warnings(&fixture, &Sampled::default()), "");
    }

    #[test]
    fn everything_that_is_noisy_is_told() {
        let fixture = Fixture::with(&[
            ("proc/cpuinfo", "processor\t: 0\nflags\t: fpu hypervisor\n"),
            ("proc/loadavg", "3.50 1.0 1.0 1/100 5\n"),
            (
                "proc/meminfo",
                "MemTotal: 4000000 kB\nMemFree: 9 kB\nMemAvailable: 300000 kB\nCached: 9 kB\nSwapTotal: 8192 kB\n\
                 SwapFree: 4096 kB\nDirty: 0 kB\nWriteback: 0 kB\n",
            ),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always madvise [never]\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                "powersave\n",
            ),
            ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "2\n"),
            (
                "sys/devices/system/cpu/cpu0/cpuidle/state2/latency",
                "133\n",
            ),
            (
                "sys/devices/system/cpu/cpu0/cpuidle/state3/latency",
                "900\n",
            ),
            ("sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1\n"),
            ("sys/devices/sda/dev", "8:0\n"),
            ("sys/devices/sda/size", "100\n"),
            ("sys/devices/sda/queue/scheduler", "none [bfq]\n"),
            ("sys/devices/sda/queue/rotational", "0\n"),
        ]);
        fixture.link("sys/block/sda", "sys/devices/sda");
        fixture.link("sys/dev/block/8:0", "sys/devices/sda");
        let sampled = Sampled {
            io_bytes_per_s: [("rsync".to_owned(), 30 << 20)].into(),
            unseen: 0,
            slew_ppm: -420.0,
            steal_percent: Some(7.5),
        };
        insta::assert_snapshot!(warnings(&fixture, &sampled));
    }
}
