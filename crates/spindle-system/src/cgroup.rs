//! Control groups: where this process stands in them, in version 1 (one tree per controller) and version 2 (one tree
//! for all), and the limits in force on it. Making a group of our own is [`super::memory`]'s.
//! Sources: Linux Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst, cgroups(7).

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::mounts::{self, Mount};
use super::{SystemTree, keyed_number, number, text};

/// Version 1 writes "no limit" as the largest multiple of the page size; anything this large is no limit.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// Which of the two interfaces a controller is reached through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// One tree per controller.
    V1,
    /// One tree for all controllers.
    V2,
}

/// A controller's tree and our place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// The interface.
    pub version: CgroupVersion,
    /// The top of the tree as far as this process sees it.
    pub top: PathBuf,
    /// The process's own group, `top` or below it.
    pub own: PathBuf,
}

impl Hierarchy {
    /// Where this process stands for one controller (`memory`, `cpu`, `cpuset`; for block I/O `blkio` in version 1 and
    /// `io` in version 2); `None` if the controller is not mounted.
    pub fn of_self(files: &SystemTree, controller: &str) -> Option<Hierarchy> {
        let groups = files.proc_text("self/cgroup")?;
        let mounts = mounts::readable_mounts(files);
        v1(files, &groups, &mounts, controller).or_else(|| v2(files, &groups, &mounts, controller))
    }

    /// Our own group and every group above it, lowest first. A limit set on any of them holds us.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.own
            .ancestors()
            .take_while(|group| group.starts_with(&self.top))
    }
}

fn v1(files: &SystemTree, groups: &str, mounts: &[Mount], controller: &str) -> Option<Hierarchy> {
    let names = |list: &str| list.split(',').any(|name| name == controller);
    let path = group_lines(groups).find_map(|(list, path)| names(list).then_some(path))?;
    let mount = mounts
        .iter()
        .find(|mount| mount.kind == "cgroup" && names(&mount.options))?;
    Some(place(files, CgroupVersion::V1, mount, path))
}

fn v2(files: &SystemTree, groups: &str, mounts: &[Mount], controller: &str) -> Option<Hierarchy> {
    let path = group_lines(groups).find_map(|(list, path)| list.is_empty().then_some(path))?;
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    let hierarchy = place(files, CgroupVersion::V2, mount, path);
    has_word(&hierarchy.top.join("cgroup.controllers"), controller).then_some(hierarchy)
}

/// The lines of `/proc/PID/cgroup`: `number:controllers:path`, the path free to hold colons.
fn group_lines(groups: &str) -> impl Iterator<Item = (&str, &str)> {
    groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    })
}

/// A group's path is counted from the tree's root, of which the mount may show only a part, as in a container. A group
/// outside that part is out of reach: we then see only the top.
fn place(files: &SystemTree, version: CgroupVersion, mount: &Mount, path: &str) -> Hierarchy {
    let top = files.locate(&mount.mount_point);
    let below = Path::new(path)
        .strip_prefix(&mount.root)
        .ok()
        .filter(|rest| !rest.components().any(|part| part == Component::ParentDir));
    let own = match below {
        Some(rest) if !rest.as_os_str().is_empty() => top.join(rest),
        _ => top.clone(),
    };
    Hierarchy { version, top, own }
}

/// Whether a file of words separated by white space holds this one.
pub(super) fn has_word(file: &Path, word: &str) -> bool {
    text(file).is_some_and(|words| words.split_whitespace().any(|each| each == word))
}

/// The limits that control groups set on this process, the tightest of its own group and all above.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupLimits {
    /// Most memory, page cache included; `None` when not limited.
    pub memory_bytes: Option<u64>,
    /// Most processor time per time, in processors; `None` when not limited.
    pub cpu_processors: Option<f64>,
    /// The processors we may run on, as a list such as `0-3`; `None` when the kernel does not say.
    pub cpuset: Option<String>,
    /// Block I/O limits as the kernel writes them, each after the name of its file.
    pub block_io: Vec<String>,
}

impl GroupLimits {
    /// Reads the limits in force on this process.
    pub fn read(files: &SystemTree) -> GroupLimits {
        GroupLimits {
            memory_bytes: memory_limit(files),
            cpu_processors: cpu_limit(files),
            cpuset: cpuset(files),
            block_io: block_io_limits(files),
        }
    }
}

fn memory_limit(files: &SystemTree) -> Option<u64> {
    let hierarchy = Hierarchy::of_self(files, "memory")?;
    let limits = hierarchy
        .upwards()
        .filter_map(|group| match hierarchy.version {
            CgroupVersion::V1 => keyed_number(
                &text(&group.join("memory.stat"))?,
                "hierarchical_memory_limit",
            ),
            CgroupVersion::V2 => number(&group.join("memory.max")),
        });
    limits.filter(|&bytes| bytes < NO_LIMIT_BYTES).min()
}

fn cpu_limit(files: &SystemTree) -> Option<f64> {
    let hierarchy = Hierarchy::of_self(files, "cpu")?;
    let limits = hierarchy.upwards().filter_map(|group| {
        let (quota_us, period_us) = match hierarchy.version {
            CgroupVersion::V1 => (
                number::<i64>(&group.join("cpu.cfs_quota_us"))?,
                number::<i64>(&group.join("cpu.cfs_period_us"))?,
            ),
            CgroupVersion::V2 => {
                let quota_and_period = text(&group.join("cpu.max"))?;
                let (quota, period) = quota_and_period.split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
    });
    limits.min_by(f64::total_cmp)
}

fn cpuset(files: &SystemTree) -> Option<String> {
    let hierarchy = Hierarchy::of_self(files, "cpuset")?;
    let file = match hierarchy.version {
        CgroupVersion::V1 => "cpuset.effective_cpus",
        CgroupVersion::V2 => "cpuset.cpus.effective",
    };
    // In version 2 the file is missing where the controller is not handed down; the group above then holds.
    hierarchy
        .upwards()
        .find_map(|group| text(&group.join(file)))
}

fn block_io_limits(files: &SystemTree) -> Vec<String> {
    const V1_FILES: &[&str] = &[
        "blkio.throttle.read_bps_device",
        "blkio.throttle.write_bps_device",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_iops_device",
    ];
    const V2_FILES: &[&str] = &["io.max", "io.latency"];
    let Some((hierarchy, names)) = Hierarchy::of_self(files, "blkio")
        .map(|hierarchy| (hierarchy, V1_FILES))
        .or_else(|| Some((Hierarchy::of_self(files, "io")?, V2_FILES)))
    else {
        return Vec::new();
    };
    let mut limits = Vec::new();
    for group in hierarchy.upwards() {
        for name in names {
            let lines = text(&group.join(name)).unwrap_or_default();
            limits.extend(lines.lines().map(|line| format!("{name} {line}")));
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    const V1_MOUNTS: &str = "\
1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
2 0 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu
3 0 0:3 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
4 0 0:4 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn version_1_limits_are_the_tightest_of_all_groups_above() {
        let fixture = Fixture::with(&[
            (
                "proc/self/cgroup",
                "4:memory:/a/b\n3:cpu,cpuacct:/a/b\n2:blkio:/a\n0::/\n",
            ),
            ("proc/self/mountinfo", V1_MOUNTS),
            (
                "sys/fs/cgroup/memory/a/b/memory.stat",
                "cache 1\nhierarchical_memory_limit 1000\n",
            ),
            (
                "sys/fs/cgroup/memory/a/memory.stat",
                "hierarchical_memory_limit 9223372036854771712\n",
            ),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "150000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/blkio/a/blkio.throttle.read_iops_device",
                "7:0 500\n7:1 600\n",
            ),
        ]);
        let limits = GroupLimits::read(&fixture.files());
        assert_eq!(limits.memory_bytes, Some(1000));
        assert_eq!(limits.cpu_processors, Some(1.5));
        assert_eq!(limits.cpuset, None);
        assert_eq!(
            limits.block_io,
            [
                "blkio.throttle.read_iops_device 7:0 500",
                "blkio.throttle.read_iops_device 7:1 600"
            ]
        );
    }

    #[test]
    fn version_2_limits_are_found_below_a_partial_mount() {
        let fixture = Fixture::with(&[
            ("proc/self/cgroup", "0::/box/run\n"),
            (
                "proc/self/mountinfo",
                "1 0 0:4 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            (
                "sys/fs/cgroup/cgroup.controllers",
                "cpuset cpu io memory pids\n",
            ),
            ("sys/fs/cgroup/run/memory.max", "max\n"),
            ("sys/fs/cgroup/memory.max", "4096\n"),
            ("sys/fs/cgroup/run/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/cpuset.cpus.effective", "0-1\n"),
            (
                "sys/fs/cgroup/run/io.max",
                "8:0 rbps=1000 wbps=max riops=max wiops=max\n",
            ),
        ]);
        let limits = GroupLimits::read(&fixture.files());
        assert_eq!(limits.memory_bytes, Some(4096));
        assert_eq!(limits.cpu_processors, Some(0.5));
        assert_eq!(limits.cpuset.as_deref(), Some("0-1"));
        assert_eq!(
            limits.block_io,
            ["io.max 8:0 rbps=1000 wbps=max riops=max wiops=max"]
        );
    }

    #[test]
    fn a_controller_is_only_where_it_is_mounted() {
        let fixture = Fixture::with(&[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/self/mountinfo", V1_MOUNTS),
            ("sys/fs/cgroup/unified/cgroup.controllers", "pids\n"),
        ]);
        assert_eq!(Hierarchy::of_self(&fixture.files(), "memory"), None);
        let pids = Hierarchy::of_self(&fixture.files(), "pids").expect("a hierarchy");
        assert_eq!(pids.version, CgroupVersion::V2);
        assert_eq!(pids.own, pids.top);
    }

    #[test]
    fn a_group_outside_the_mount_is_seen_as_its_top() {
        let fixture = Fixture::with(&[
            ("proc/self/cgroup", "4:memory:/../other\n"),
            ("proc/self/mountinfo", V1_MOUNTS),
        ]);
        let hierarchy = Hierarchy::of_self(&fixture.files(), "memory").expect("a hierarchy");
        assert_eq!(hierarchy.own, fixture.path("sys/fs/cgroup/memory"));
    }

    #[test]
    fn no_files_mean_no_limits() {
        assert_eq!(
            GroupLimits::read(&Fixture::empty().files()),
            GroupLimits::default()
        );
    }
}
