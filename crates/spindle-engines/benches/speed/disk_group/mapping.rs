//! What the mapping of a disk group costs: the same random single-block I/Os to a device of memory, bare and as a file
//! of a group of four. Memory costs the same in both, so the difference is the group's.

use std::sync::Arc;

use spindle_io::disk_group::Striping;
use spindle_io::real::MemoryDevice;
use spindle_io::{BlockDevice, Submission};

use super::{Group, MEMBER_OVERHEAD_BYTES};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal, median};
use crate::random_io::{Kind, Load};

/// Small enough to lie in the processor's caches for the most part: misses would be all that is measured.
const FILE_BYTES: u64 = 8 << 20;
const DISKS: u64 = 4;
/// Small, so that copying it hides as little as can be.
const BLOCK_BYTES: u64 = 512;
const GOAL_NS: f64 = 150.0;

pub fn run(pace: Pace, figures: &mut Figures) {
    let bare: Arc<dyn BlockDevice> = MemoryDevice::new("bare", FILE_BYTES);
    for (kind, striping, what) in [
        (Kind::Read, Striping::Coarse, "read, coarse stripes"),
        (Kind::Read, Striping::Fine, "read, fine stripes"),
        (Kind::Write, Striping::Coarse, "write, coarse stripes"),
    ] {
        let disk = |number: u64| -> Arc<dyn BlockDevice> {
            let bytes = FILE_BYTES / DISKS + MEMBER_OVERHEAD_BYTES;
            MemoryDevice::new(&format!("memory {number}"), bytes)
        };
        let group = Group::of((0..DISKS).map(disk), striping, FILE_BYTES);
        let load = Load {
            kind,
            block_bytes: BLOCK_BYTES,
            clients: 1,
            submission: Submission::Alone,
            within_bytes: FILE_BYTES,
        };
        let cost_ns = |device: &_| load.run(device, pace.measure / 2).cpu_ns;
        let pairs: Vec<(f64, f64)> = (0..pace.pairs)
            .map(|_| (cost_ns(&group.file), cost_ns(&bare)))
            .collect();
        let mapping: Vec<f64> = pairs.iter().map(|(ours, bare)| ours - bare).collect();
        let of_all = median(pairs.iter().map(|(ours, _)| *ours)).unwrap_or(0.0);
        let what = format!(
            "ns of mapping per I/O in a disk group: {what} ({of_all:.0} with the device of memory)"
        );
        figures.add(Figure::alone(
            what,
            mapping.into_iter(),
            Some(Goal::AtMost(GOAL_NS)),
        ));
    }
}
