//! The machine a run stood on, captured once before it starts and kept as `machine.json`: hardware, versions, and the
//! settings known to move results, so that a figure that surprises can be traced to what it was measured on.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::DeviceNumber;
use super::block_device::{DiskFacts, chosen};
use super::calibrated::{CalibratedLimits, DeviceIdentity};
use super::cgroup::GroupLimits;
use super::cpu::CpuTimes;
use super::mounts::{self, Mount};
use super::node::{btrfs_members, number_of_name};
use super::{SystemTree, flag, keyed_number, text};

/// What stands for a name that the system does not give.
const UNKNOWN: &str = "unknown";
const BTRFS: &str = "btrfs";

/// Everything known about the machine. Options are `None` where the system does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// When this was captured.
    pub captured_at: Timestamp,
    /// Version of Spindle.
    pub spindle_version: String,
    /// Name of the host.
    pub host: String,
    /// Distribution, as it calls itself.
    pub distribution: String,
    /// Kernel release, such as `6.1.0-18-amd64`.
    pub kernel_release: String,
    /// Kernel build.
    pub kernel_version: String,
    /// Processors.
    pub processor: Processor,
    /// Memory the kernel manages.
    pub memory_bytes: Option<u64>,
    /// Swap space.
    pub swap_bytes: Option<u64>,
    /// What a hypervisor, if any, shows of itself.
    pub virtualisation: Virtualisation,
    /// Kernel settings.
    pub settings: MachineSettings,
    /// Limits set on this process by control groups.
    pub limits: GroupLimits,
    /// How busy the machine was.
    pub load: MachineLoad,
    /// Where data will lie.
    pub data_paths: Vec<DataPath>,
}

/// Processors and how their speed is governed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Model, as the kernel calls it.
    pub model: String,
    /// Processors the kernel schedules on, hardware threads counted singly.
    pub logical_processors: Option<u32>,
    /// Cores; fewer than logical processors with hardware threads.
    pub cores: Option<u32>,
    /// Frequency governors in use, comma separated when processors differ.
    pub governor: Option<String>,
    /// Driver of idle states (`none` when idle processors only halt).
    pub idle_driver: Option<String>,
    /// Whether processors may exceed their rated frequency.
    pub turbo: Option<bool>,
}

/// Signs of a hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualisation {
    /// Whether the processor says that it is a guest's.
    pub hypervisor_flag: Option<bool>,
    /// Maker and product from the firmware; on a guest often the hypervisor's name.
    pub product: Option<String>,
}

/// Kernel settings that move results. Names of `vm_*` fields are those of sysctl, with the unit where it has one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSettings {
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Dirty share of available memory at which writers must write back themselves; 0 when the bytes are set instead.
    pub vm_dirty_ratio_percent: Option<u64>,
    /// The same in bytes; 0 when the share is set instead.
    pub vm_dirty_bytes: Option<u64>,
    /// Dirty share of available memory at which write-back starts in the background; 0 when the bytes are set instead.
    pub vm_dirty_background_ratio_percent: Option<u64>,
    /// The same in bytes; 0 when the share is set instead.
    pub vm_dirty_background_bytes: Option<u64>,
    /// Age at which dirty pages are written.
    pub vm_dirty_expire_centiseconds: Option<u64>,
    /// Time between rounds of write-back.
    pub vm_dirty_writeback_centiseconds: Option<u64>,
    /// Willingness to swap, 0 to 200.
    pub vm_swappiness: Option<u64>,
    /// 0: io_uring for all, 1: for the group in `io_uring_group` only, 2: for none; `None` before Linux 6.6.
    pub io_uring_disabled: Option<u8>,
}

/// How busy the machine was when captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// Load averages over 1, 5 and 15 minutes.
    pub averages: Option<[f64; 3]>,
    /// Tasks running or ready to run.
    pub running_tasks: Option<u32>,
    /// Share of processor time since boot that the hypervisor took for others.
    pub steal_percent_since_boot: Option<f64>,
}

/// A place where data will lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataPath {
    /// As it was given.
    pub path: String,
    /// The file system; `None` for a raw device.
    pub file_system: Option<FileSystem>,
    /// The block device beneath, or the raw device itself.
    pub device: Option<DiskFacts>,
    /// Why `device` is `None`.
    pub device_unknown_because: Option<String>,
    /// What `spindle calibrate` found of it, where that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<CalibratedLimits>,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Type, such as `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Options of the mount and the file system, comma separated.
    pub options: String,
    /// What was mounted.
    pub source: String,
    /// Number of the device; major 0 when no single block device lies beneath.
    pub device: DeviceNumber,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Free for users other than root.
    pub free_bytes: Option<u64>,
}

impl Machine {
    /// Looks the machine over. `data_paths` are directories, files or block devices; one that does not exist yet is
    /// described by the nearest directory above it that does.
    pub fn capture(files: &SystemTree, data_paths: &[PathBuf]) -> Machine {
        let meminfo = files.proc_text("meminfo").unwrap_or_default();
        let memory = |key| Some(keyed_number(&meminfo, key)?.saturating_mul(1024));
        let named = |file: &str| files.proc_text(file).unwrap_or_else(|| UNKNOWN.to_owned());
        Machine {
            captured_at: Timestamp::now(),
            spindle_version: env!("CARGO_PKG_VERSION").to_owned(),
            host: named("sys/kernel/hostname"),
            distribution: distribution(files).unwrap_or_else(|| UNKNOWN.to_owned()),
            kernel_release: named("sys/kernel/osrelease"),
            kernel_version: named("sys/kernel/version"),
            processor: Processor::capture(files),
            memory_bytes: memory("MemTotal"),
            swap_bytes: memory("SwapTotal"),
            virtualisation: Virtualisation::capture(files),
            settings: MachineSettings::capture(files),
            limits: GroupLimits::read(files),
            load: MachineLoad::capture(files),
            data_paths: data_paths
                .iter()
                .map(|path| DataPath::capture(files, path))
                .collect(),
        }
    }
}

/// `PRETTY_NAME` of os-release(5).
fn distribution(files: &SystemTree) -> Option<String> {
    let release = text(&files.etc.join("os-release"))?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches(['"', '\'']).to_owned())
}

impl Processor {
    fn capture(files: &SystemTree) -> Processor {
        let cpuinfo = files.proc_text("cpuinfo").unwrap_or_default();
        let values = |key: &'static str| -> Vec<&str> { cpuinfo_values(&cpuinfo, key).collect() };
        let model = values("model name")
            .first()
            .map(|name| (*name).to_owned())
            // ARM names no model; the board's is the next best.
            .or_else(|| files.sys_text("firmware/devicetree/base/model"));
        Processor {
            model: model.unwrap_or_else(|| UNKNOWN.to_owned()),
            logical_processors: count(values("processor").len()),
            cores: count(distinct(
                values("physical id").into_iter().zip(values("core id")),
            )),
            governor: governors(files),
            idle_driver: files.sys_text("devices/system/cpu/cpuidle/current_driver"),
            turbo: turbo(files),
        }
    }
}

/// The values of one key of `/proc/cpuinfo`, processor by processor.
fn cpuinfo_values<'a>(cpuinfo: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(move |(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> usize {
    items.collect::<std::collections::BTreeSet<T>>().len()
}

fn count(counted: usize) -> Option<u32> {
    u32::try_from(counted).ok().filter(|&counted| counted > 0)
}

fn governors(files: &SystemTree) -> Option<String> {
    let policies = fs::read_dir(files.sys.join("devices/system/cpu/cpufreq")).ok()?;
    let mut governors: Vec<String> = policies
        .filter_map(|policy| text(&policy.ok()?.path().join("scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

/// Intel's driver has a switch that forbids, the others one that allows (Linux Documentation/admin-guide/pm).
fn turbo(files: &SystemTree) -> Option<bool> {
    let cpu = files.sys.join("devices/system/cpu");
    flag(&cpu.join("intel_pstate/no_turbo"))
        .map(|forbidden| !forbidden)
        .or_else(|| flag(&cpu.join("cpufreq/boost")))
}

impl SystemTree {
    /// What the firmware says under one of its names, such as `sys_vendor` (Linux
    /// Documentation/ABI/testing/sysfs-class-dmi).
    pub fn firmware(&self, name: &str) -> Option<String> {
        self.sys_text(&format!("class/dmi/id/{name}"))
    }
}

impl Virtualisation {
    fn capture(files: &SystemTree) -> Virtualisation {
        let cpuinfo = files.proc_text("cpuinfo").unwrap_or_default();
        let product: Vec<String> = ["sys_vendor", "product_name"]
            .iter()
            .filter_map(|name| files.firmware(name))
            .collect();
        Virtualisation {
            hypervisor_flag: cpuinfo_values(&cpuinfo, "flags")
                .next()
                .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
            product: (!product.is_empty()).then(|| product.join(" ")),
        }
    }
}

impl MachineSettings {
    fn capture(files: &SystemTree) -> MachineSettings {
        let vm = |name: &str| files.proc_number(&format!("sys/vm/{name}"));
        MachineSettings {
            transparent_huge_pages: files
                .sys_text("kernel/mm/transparent_hugepage/enabled")
                .map(|all| chosen(&all).to_owned()),
            vm_dirty_ratio_percent: vm("dirty_ratio"),
            vm_dirty_bytes: vm("dirty_bytes"),
            vm_dirty_background_ratio_percent: vm("dirty_background_ratio"),
            vm_dirty_background_bytes: vm("dirty_background_bytes"),
            vm_dirty_expire_centiseconds: vm("dirty_expire_centisecs"),
            vm_dirty_writeback_centiseconds: vm("dirty_writeback_centisecs"),
            vm_swappiness: vm("swappiness"),
            io_uring_disabled: files.proc_number("sys/kernel/io_uring_disabled"),
        }
    }
}

impl MachineLoad {
    /// Reads `/proc/loadavg` (proc_loadavg(5)): three averages, running/all tasks, the latest process.
    fn capture(files: &SystemTree) -> MachineLoad {
        let loadavg = files.proc_text("loadavg").unwrap_or_default();
        let words: Vec<&str> = loadavg.split_whitespace().collect();
        let average = |at: usize| words.get(at)?.parse::<f64>().ok();
        let averages = || Some([average(0)?, average(1)?, average(2)?]);
        let running_tasks = || words.get(3)?.split_once('/')?.0.parse().ok();
        MachineLoad {
            averages: averages(),
            running_tasks: running_tasks(),
            steal_percent_since_boot: CpuTimes::read(files)
                .and_then(|times| times.shares())
                .map(|shares| shares.steal_percent),
        }
    }
}

impl DataPath {
    /// What its storage is recognised by; `None` where nothing marks it.
    pub fn identity(&self, files: &SystemTree) -> Option<DeviceIdentity> {
        match (&self.device, &self.file_system) {
            // As runs of earlier versions have noted it, which knew no device of btrfs.
            (Some(_), Some(of)) if of.kind == BTRFS => {
                DeviceIdentity::of_file_system(&of.kind, &of.source)
            }
            (Some(device), _) => DeviceIdentity::of_device(files, device),
            (None, Some(of)) => DeviceIdentity::of_file_system(&of.kind, &of.source),
            (None, None) => None,
        }
    }

    /// Finds what lies beneath a path.
    pub fn capture(files: &SystemTree, path: &Path) -> DataPath {
        let given = path.display().to_string();
        let Some((existing, metadata)) = nearest_existing(path) else {
            return DataPath::unknown(given, "the path cannot be reached".to_owned());
        };
        if metadata.file_type().is_block_device() {
            return DataPath::on_device(files, given, None, DeviceNumber::of_stat(metadata.rdev()));
        }
        let mounts = mounts::readable_mounts(files);
        let device = DeviceNumber::of_stat(metadata.dev());
        let Some(mount) = mounts::mount_of(&mounts, &existing, Some(device)) else {
            return DataPath::unknown(given, "the mount table does not show its mount".to_owned());
        };
        let file_system = FileSystem::capture(mount, &existing);
        let number = only_device_of_btrfs(files, mount).unwrap_or(mount.device);
        DataPath::on_device(files, given, Some(file_system), number)
    }

    fn on_device(
        files: &SystemTree,
        path: String,
        file_system: Option<FileSystem>,
        number: DeviceNumber,
    ) -> DataPath {
        let device = DiskFacts::describe(files, number);
        let why = match (&device, &file_system) {
            (Some(_), _) => None,
            (None, Some(file_system)) if number.is_anonymous() => Some(format!(
                "{} (from {}) has no single block device that the kernel names",
                file_system.kind, file_system.source
            )),
            (None, _) => Some(format!("/sys does not show device {number}")),
        };
        DataPath {
            path,
            file_system,
            device,
            device_unknown_because: why,
            calibrated: None,
        }
    }

    fn unknown(path: String, why: String) -> DataPath {
        DataPath {
            path,
            file_system: None,
            device: None,
            device_unknown_because: Some(why),
            calibrated: None,
        }
    }
}

/// The device of a btrfs that has one only: its files bear another number. The kernel itself lists the devices, for
/// what the mount table names may be gone, or another by now.
fn only_device_of_btrfs(files: &SystemTree, mount: &Mount) -> Option<DeviceNumber> {
    if mount.kind != BTRFS || !mount.device.is_anonymous() {
        return None;
    }
    let named = files.kernel_name(&mount.source)?;
    let mut members = btrfs_members(files).into_iter().map(|(_, members)| members);
    let members = members.find(|members| members.contains(&named))?;
    match members.len() {
        1 => number_of_name(files, &named),
        _ => None,
    }
}

/// The path itself, free of links, or the nearest above it that exists.
fn nearest_existing(path: &Path) -> Option<(PathBuf, fs::Metadata)> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|candidate| {
        let real = fs::canonicalize(candidate).ok()?;
        let metadata = fs::metadata(&real).ok()?;
        Some((real, metadata))
    })
}

impl FileSystem {
    fn capture(mount: &Mount, path: &Path) -> FileSystem {
        let space = rustix::fs::statvfs(path).ok();
        let bytes = |blocks: u64, block_bytes: u64| blocks.saturating_mul(block_bytes);
        FileSystem {
            kind: mount.kind.clone(),
            mount_point: mount.mount_point.display().to_string(),
            options: mount.options.clone(),
            source: mount.source.display().to_string(),
            device: mount.device,
            size_bytes: space
                .as_ref()
                .map(|space| bytes(space.f_blocks, space.f_frsize)),
            free_bytes: space
                .as_ref()
                .map(|space| bytes(space.f_bavail, space.f_frsize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const CPUINFO: &str = "\
processor\t: 0\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: 0\nflags\t\t: fpu hypervisor\n
processor\t: 1\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: 0\nflags\t\t: fpu hypervisor\n
processor\t: 2\nmodel name\t: Fast CPU\nphysical id\t: 1\ncore id\t: 0\nflags\t\t: fpu hypervisor\n";

    fn fixture() -> Fixture {
        Fixture::with(&[
            ("proc/cpuinfo", CPUINFO),
            ("proc/meminfo", "MemTotal: 2048 kB\nSwapTotal: 0 kB\n"),
            ("proc/stat", "cpu  50 0 0 40 0 0 0 10\n"),
            ("proc/loadavg", "0.50 1.25 2.00 3/120 999\n"),
            ("proc/sys/kernel/hostname", "db1\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
            ("proc/sys/vm/dirty_ratio", "20\n"),
            ("proc/sys/vm/swappiness", "60\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
                "powersave\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy1/scaling_governor",
                "performance\n",
            ),
            (
                "sys/devices/system/cpu/cpufreq/policy2/scaling_governor",
                "powersave\n",
            ),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            ("sys/class/dmi/id/product_name", "Standard PC\n"),
            ("etc/os-release", "ID=x\nPRETTY_NAME=\"Test Linux 1\"\n"),
        ])
    }

    #[test]
    fn every_setting_comes_from_its_file() {
        let machine = Machine::capture(&fixture().files(), &[]);
        assert_eq!(machine.host, "db1");
        assert_eq!(machine.distribution, "Test Linux 1");
        assert_eq!(machine.kernel_release, "6.1.0");
        assert_eq!(machine.kernel_version, UNKNOWN);
        assert_eq!(machine.memory_bytes, Some(2048 * 1024));
        assert_eq!(machine.swap_bytes, Some(0));
        let processor = &machine.processor;
        assert_eq!(processor.model, "Fast CPU");
        assert_eq!(processor.logical_processors, Some(3));
        assert_eq!(processor.cores, Some(2));
        assert_eq!(
            processor.governor.as_deref(),
            Some("performance, powersave")
        );
        assert_eq!(
            (processor.turbo, &processor.idle_driver),
            (Some(false), &None)
        );
        assert_eq!(machine.virtualisation.hypervisor_flag, Some(true));
        assert_eq!(
            machine.virtualisation.product.as_deref(),
            Some("QEMU Standard PC")
        );
        let settings = &machine.settings;
        assert_eq!(settings.transparent_huge_pages.as_deref(), Some("madvise"));
        assert_eq!(settings.vm_dirty_ratio_percent, Some(20));
        assert_eq!(settings.vm_swappiness, Some(60));
        assert_eq!(settings.vm_dirty_bytes, None);
        assert_eq!(settings.io_uring_disabled, Some(2));
        assert_eq!(machine.load.averages, Some([0.5, 1.25, 2.0]));
        assert_eq!(machine.load.running_tasks, Some(3));
        assert_eq!(machine.load.steal_percent_since_boot, Some(10.0));
    }

    #[test]
    fn a_system_that_tells_nothing_is_unknown() {
        let fixture = Fixture::empty();
        let machine = Machine::capture(&fixture.files(), &[fixture.path("not/there")]);
        assert_eq!(machine.host, UNKNOWN);
        assert_eq!(machine.distribution, UNKNOWN);
        assert_eq!(machine.processor.model, UNKNOWN);
        assert_eq!(machine.processor.cores, None);
        assert_eq!(machine.virtualisation.hypervisor_flag, None);
        assert_eq!(machine.settings, MachineSettings::default());
        assert_eq!(machine.load, MachineLoad::default());
        let path = &machine.data_paths[0];
        assert_eq!((&path.device, &path.file_system), (&None, &None));
        assert_eq!(
            path.device_unknown_because.as_deref(),
            Some("the mount table does not show its mount")
        );
    }

    #[test]
    fn a_data_path_is_followed_to_its_device() {
        let fixture = fixture();
        fixture.write(
            "proc/self/mountinfo",
            "27 1 8:1 / / rw,noatime - ext4 /dev/sda1 rw,data=ordered\n",
        );
        fixture.write("sys/devices/sda/sda1/size", "100\n");
        fixture.write("sys/devices/sda/sda1/partition", "1\n");
        fixture.link("sys/dev/block/8:1", "sys/devices/sda/sda1");
        let path = DataPath::capture(&fixture.files(), &fixture.path("data/not/yet"));
        let file_system = path.file_system.expect("a file system");
        assert_eq!(file_system.kind, "ext4");
        assert_eq!(file_system.options, "rw,noatime,data=ordered");
        assert!(file_system.free_bytes <= file_system.size_bytes);
        assert!(file_system.size_bytes > Some(0));
        let device = path.device.expect("a device");
        assert_eq!(device.name, "sda1");
        assert_eq!(device.partition_of.as_deref(), Some("sda"));
        assert_eq!(path.device_unknown_because, None);
    }

    #[test]
    fn a_file_system_without_a_device_says_why() {
        let fixture = fixture();
        fixture.write(
            "proc/self/mountinfo",
            "27 1 0:33 / / rw - btrfs /dev/sdb rw,subvol=/\n",
        );
        let path = DataPath::capture(&fixture.files(), &fixture.path("data"));
        assert_eq!(path.device, None);
        let why = path.device_unknown_because.expect("a reason");
        assert!(why.contains("btrfs (from /dev/sdb)"), "{why}");
    }

    #[test]
    fn a_btrfs_of_one_device_has_that_one() {
        let fixture = fixture();
        let table = "27 1 0:33 / / rw - btrfs /dev/sdb rw,subvol=/\n";
        fixture.write("proc/self/mountinfo", table);
        fixture.write("sys/devices/sdb/size", "100\n");
        fixture.link("sys/dev/block/8:16", "sys/devices/sdb");
        fixture.write("sys/class/block/sdb/dev", "8:16\n");
        let look = || DataPath::capture(&fixture.files(), &fixture.path("data"));
        assert_eq!(look().device, None, "the kernel lists none");
        fixture.write("sys/fs/btrfs/12-34/devices/sdb/size", "100\n");
        let path = look();
        assert_eq!(path.device.as_ref().expect("a device").name, "sdb");
        let identity = path.identity(&fixture.files());
        assert_eq!(
            identity,
            DeviceIdentity::of_file_system("btrfs", "/dev/sdb"),
            "as earlier versions noted it"
        );
        fixture.write("sys/fs/btrfs/12-34/devices/sdc/size", "100\n");
        assert_eq!(look().device, None, "it has two");
    }

    #[test]
    fn the_running_machine_is_described_and_survives_machine_json() {
        let here = std::env::current_dir().expect("a directory");
        let machine = Machine::capture(&SystemTree::default(), &[here]);
        assert_ne!(machine.kernel_release, UNKNOWN);
        assert!(machine.processor.logical_processors.is_some());
        let path = &machine.data_paths[0];
        assert!(path.file_system.is_some());
        assert_ne!(path.device.is_some(), path.device_unknown_because.is_some());
        let json = serde_json::to_string_pretty(&machine).expect("written");
        assert_eq!(
            serde_json::from_str::<Machine>(&json).expect("read"),
            machine
        );
    }
}
