//! What this machine can do: access paths, rights, tools, control groups.

use std::path::Path;

use spindle_io::real::facts::{self, DirectProbe};
use spindle_layout::tool::{find as find_tool, package_of};
use spindle_system::DeviceMapper;
use spindle_system::SystemTree;

use super::finding::Finding;
use spindle_system::memory::MemoryBudget;
use spindle_system::own_group::Controller;

/// Tools by which layouts are made, and what for.
const TOOLS: [(&str, &str); 10] = [
    ("losetup", "files as devices"),
    ("blkid", "any layout on devices"),
    ("sfdisk", "share = \"fair\" on devices"),
    ("lvm", "volume"),
    ("dmsetup", "delay beneath a layout, powercut"),
    ("mkfs.ext4", "filesystem = \"ext4\""),
    ("mkfs.ext3", "filesystem = \"ext3\""),
    ("mkfs.ext2", "filesystem = \"ext2\""),
    ("mkfs.xfs", "filesystem = \"xfs\""),
    ("mkfs.btrfs", "filesystem = \"btrfs\""),
];

/// Looks at everything, direct I/O in the directory `here`.
pub(super) fn find(files: &SystemTree, here: &Path) -> Vec<Finding> {
    let mut findings = vec![io_uring(), libaio(files), direct(here), root()];
    findings.extend(
        TOOLS
            .iter()
            .map(|(tool, what_for)| installed(tool, what_for)),
    );
    findings.push(device_mapper(files));
    findings.push(memory_controller(files));
    findings.push(io_controller(files));
    findings
}

fn io_uring() -> Finding {
    match facts::io_uring_available() {
        Ok(()) => Finding::ok("io_uring: methods \"async\" and \"odm\""),
        Err(reason) => Finding::missing(
            format!("io_uring: {reason}"),
            "methods \"async\" and \"odm\" are skipped; allow it with sysctl kernel.io_uring_disabled=0, outside containers that forbid it",
        ),
    }
}

/// Kernel AIO, by its own limits.
fn libaio(files: &SystemTree) -> Finding {
    match files.aio_requests() {
        Some((used, most)) if used < most => {
            Finding::ok(format!("libaio: {used} of {most} requests taken"))
        }
        Some((used, most)) => Finding::missing(
            format!("libaio: all {most} requests are taken ({used})"),
            "end what uses them, or raise sysctl fs.aio-max-nr",
        ),
        None => Finding::missing(
            "libaio: the kernel has none",
            "it was built without CONFIG_AIO; use io_uring",
        ),
    }
}

fn direct(here: &Path) -> Finding {
    let place = format!("direct I/O in {}", here.display());
    let skipped = "direct layouts are skipped here; choose a directory on ext4, xfs or btrfs, not on tmpfs or overlay";
    match facts::direct_probe(here) {
        Ok(DirectProbe::Direct) => Finding::ok(place),
        Ok(DirectProbe::NotDirect { reason, .. }) => {
            Finding::missing(format!("{place}: {reason}"), skipped)
        }
        Err(error) => Finding::missing(
            format!("{place}: not known: {error}"),
            "ask again where you may make a file: go there (cd) first",
        ),
    }
}

fn root() -> Finding {
    if facts::is_root() {
        Finding::ok("root: devices, volumes and file systems can be made")
    } else {
        Finding::missing(
            "root: this is an ordinary user",
            "layouts are directories and plain files only; run as root to have Spindle make devices, volumes and file systems",
        )
    }
}

fn installed(tool: &str, what_for: &str) -> Finding {
    if find_tool(tool).is_some() {
        return Finding::ok(format!("{tool}: {what_for}"));
    }
    let package = package_of(tool).unwrap_or(tool);
    Finding::missing(
        format!("{tool}: {what_for}"),
        format!("it comes with the package {package}"),
    )
}

fn device_mapper(files: &SystemTree) -> Finding {
    let delays = match files.has_mapped_target("delay") {
        true => "volumes, delays",
        false => "volumes (no dm-delay: the database delays its own I/O)",
    };
    match files.device_mapper() {
        DeviceMapper::Loaded => Finding::ok(format!("device-mapper: {delays}")),
        DeviceMapper::Loadable => Finding::ok(format!(
            "device-mapper: {delays}; its module is loaded when needed"
        )),
        DeviceMapper::Missing => Finding::missing(
            "device-mapper: this kernel has none",
            "layouts with volume cannot be made, and a delay is the database's own; try modprobe dm-mod, or a kernel that has it (CONFIG_BLK_DEV_DM)",
        ),
    }
}

fn memory_controller(files: &SystemTree) -> Finding {
    match MemoryBudget::available(files) {
        Ok(budget) => Finding::ok(format!(
            "memory budget: control groups {:?}",
            budget.version
        )),
        Err(reason) => Finding::missing(
            format!("memory budget: {reason}"),
            "the page cache is not held to database.memory: buffered layouts may win by caching; run as root, or in a delegated group",
        ),
    }
}

fn io_controller(files: &SystemTree) -> Finding {
    match Controller::BlockIo.of_self(files) {
        Some(hierarchy) => Finding::ok(format!(
            "I/O limits: control groups {:?}",
            hierarchy.version
        )),
        None => Finding::missing(
            "I/O limits: neither the controller blkio (v1) nor io (v2) is there",
            "layouts with `limit` are skipped; mount the controller, or boot with it",
        ),
    }
}
