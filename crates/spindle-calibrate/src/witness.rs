//! The disks' own counters as a witness of flushes: one writer that waits for each of its flushes makes a disk with a
//! volatile cache complete at least as many, and a disk without one at least as many writes. Flushes of others are
//! counted, too: the witness may speak for storage that ignores flushes, and never against storage that does not.

use spindle_system::block_device::DiskFacts;
use spindle_system::disk::{DiskCounters, whole_disks};
use spindle_system::{DeviceNumber, SystemTree};

/// Disks that are watched.
#[derive(Debug)]
pub(crate) struct Witness {
    disks: Vec<Disk>,
    /// Their names; `None` when all disks of the machine are watched, as it is not known which.
    pub(crate) names: Option<String>,
}

#[derive(Debug)]
struct Disk {
    number: DeviceNumber,
    by_flushes: bool,
}

impl Witness {
    /// Watches these disks, or all there are. `None` when the kernel keeps no counters of them.
    pub(crate) fn of(
        tree: &SystemTree,
        disks: Option<&[(String, DeviceNumber)]>,
    ) -> Option<Witness> {
        let is_kept = |number: &DeviceNumber| DiskCounters::are_kept(tree, *number);
        let (numbers, names) = match disks {
            Some(disks) => {
                let mut numbers: Vec<_> = disks.iter().map(|disk| disk.1).collect();
                numbers.sort_unstable();
                numbers.dedup();
                let mut names: Vec<&str> = disks.iter().map(|disk| disk.0.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                let all = numbers.iter().all(is_kept).then_some(numbers)?;
                (all, Some(names.join(", ")))
            }
            None => {
                let all = whole_disks(tree).into_iter().filter(is_kept);
                (all.collect(), None)
            }
        };
        let disks: Vec<Disk> = numbers
            .into_iter()
            .map(|number| Disk::of(tree, number))
            .collect();
        (!disks.is_empty()).then_some(Witness { disks, names })
    }

    /// What was made durable since the start; `None` when a disk is gone.
    pub(crate) fn count(&self, tree: &SystemTree) -> Option<u64> {
        self.disks.iter().map(|disk| disk.count(tree)).sum()
    }
}

impl Disk {
    /// Counts flushes where the disk has a cache and the kernel counts its flushes at all.
    fn of(tree: &SystemTree, number: DeviceNumber) -> Disk {
        let device = DiskFacts::describe(tree, number);
        let has_none =
            device.is_some_and(|device| device.write_cache.as_deref() == Some("write through"));
        let flushes = DiskCounters::read(tree, number).and_then(|counters| counters.flushes);
        Disk {
            number,
            by_flushes: !has_none && flushes.is_some_and(|flushes| flushes > 0),
        }
    }

    fn count(&self, tree: &SystemTree) -> Option<u64> {
        let counters = DiskCounters::read(tree, self.number)?;
        match self.by_flushes {
            true => counters.flushes,
            false => Some(counters.writes),
        }
    }
}
