//! The machine of a run as results know it: hardware, versions, and the settings that move results. The run fills it in
//! from what the system said; names and shape are those of `machine.json`. Reports read it by these types.

use serde::{Deserialize, Serialize};

/// Everything known about the machine. Options are `None` where the system does not say; a text that is empty and may
/// be left out stands for a moment, a name or a place that is of no interest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// When it was looked at, UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub captured_at: String,
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
    /// Limits set on the program by control groups.
    pub limits: ControlGroupLimits,
    /// How busy the machine was.
    pub load: Busy,
    /// Where data lies.
    pub data_paths: Vec<DataPath>,
}

/// Processors and how their speed is governed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Model, as the kernel calls it.
    pub model: String,
    /// Processors the kernel schedules on, hardware threads counted singly.
    pub logical_processors: Option<u32>,
    /// Cores; fewer than logical processors with hardware threads.
    pub cores: Option<u32>,
    /// Frequency governors in use, comma separated when processors differ.
    pub governor: Option<String>,
    /// Driver of idle states.
    pub idle_driver: Option<String>,
    /// Whether processors may exceed their rated frequency.
    pub turbo: Option<bool>,
}

/// Signs of a hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Virtualisation {
    /// Whether the processor says that it is a guest's.
    pub hypervisor_flag: Option<bool>,
    /// Maker and product from the firmware; on a guest often the hypervisor's name.
    pub product: Option<String>,
}

/// Kernel settings that move results, under the names of sysctl.
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
    /// 0: io_uring for all, 1: for one group only, 2: for none; `None` before Linux 6.6.
    pub io_uring_disabled: Option<u8>,
}

/// The tightest limits that control groups set on the program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlGroupLimits {
    /// Most memory, page cache included; `None` when not limited.
    pub memory_bytes: Option<u64>,
    /// Most processor time per time, in processors; `None` when not limited.
    pub cpu_processors: Option<f64>,
    /// The processors it may run on, as a list such as `0-3`.
    pub cpuset: Option<String>,
    /// Block I/O limits as the kernel writes them, each after the name of its file.
    pub block_io: Vec<String>,
}

/// How busy the machine was when it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    /// Load averages over 1, 5 and 15 minutes.
    pub averages: Option<[f64; 3]>,
    /// Tasks running or ready to run.
    pub running_tasks: Option<u32>,
    /// Share of processor time since boot that the hypervisor took for others.
    pub steal_percent_since_boot: Option<f64>,
}

/// A place where data lies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataPath {
    /// As it was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Type, such as `ext4`.
    pub kind: String,
    /// Where it is mounted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount_point: String,
    /// Options of the mount and the file system, comma separated.
    pub options: String,
    /// What was mounted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Number of the device, `major:minor`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub device: String,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Free for users other than root.
    pub free_bytes: Option<u64>,
}

/// A block device and its settings. Everything but number and name is `None` where the kernel does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFacts {
    /// Its number, `major:minor`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub number: String,
    /// Its kernel name, such as `sda1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The whole disk, when this is a partition; queue settings below are the disk's.
    pub partition_of: Option<String>,
    /// Vendor of the disk (a PCI number for virtio).
    pub vendor: Option<String>,
    /// Model of the disk.
    pub model: Option<String>,
    /// Size of this device (of the partition, when it is one).
    pub size_bytes: Option<u64>,
    /// Whether the kernel takes it for a spinning disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Read-ahead of buffered reads.
    pub read_ahead_kib: Option<u64>,
    /// `write back` (volatile cache, flushes matter) or `write through`.
    pub write_cache: Option<String>,
    /// Requests the queue holds per direction.
    pub nr_requests: Option<u64>,
    /// 0 merges adjacent requests, 1 only simple merges, 2 none.
    pub nomerges: Option<u8>,
    /// Smallest unit of address and direct I/O.
    pub logical_sector_bytes: Option<u32>,
    /// Smallest unit the device writes without reading first.
    pub physical_sector_bytes: Option<u32>,
    /// Whether a write can be made durable without flushing the whole cache.
    pub fua: Option<bool>,
    /// Largest discard; 0 when the device has none.
    pub discard_max_bytes: Option<u64>,
    /// Largest write that is never torn; 0 when the device promises none.
    pub atomic_write_max_bytes: Option<u64>,
    /// The file or device behind a loop device.
    pub loop_backing_file: Option<String>,
    /// Whether a loop device reads and writes its file directly, past the page cache.
    pub loop_direct_io: Option<bool>,
    /// The whole device on which the file behind a loop device lies; `None` in older records, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_file_device: Option<String>,
    /// The devices a stacked one (device-mapper, md) stands on.
    pub stands_on: Vec<DiskFacts>,
}

/// A device's own limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibratedLimits {
    /// When they were measured, UTC.
    pub at: String,
    /// Most requests of 8 KiB per second.
    pub iops: f64,
    /// Most bytes per second, in millions, by requests of 1 MiB.
    pub mb_per_s: Option<f64>,
    /// Least mean time of a request, microseconds.
    pub latency_us: Option<f64>,
    /// Of 100 requests, how many wrote.
    pub write_percent: u32,
}
