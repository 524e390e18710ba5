//! What devices have read so far, by their own counters. A point takes it before and after; `cache` judges the share.

use std::collections::BTreeSet;

use spindle_system::disk::DiskCounters;
use spindle_system::{Beneath, DeviceNumber, SystemTree};

use crate::below::Below;
use crate::figures::DeviceShare;
use crate::target::ReadyTarget;

/// Bytes that devices have read since the system began, for whomever.
pub(crate) struct ReadSoFar {
    /// Those of the targets, each once.
    devices_bytes: u64,
    /// The disks at the bottom; `None` where they are the same, or not all of them are known.
    disks_bytes: Option<u64>,
}

impl ReadSoFar {
    /// `None` unless each device of the targets tells. A file system that hides its device, as btrfs does, is known by
    /// the disks at the bottom.
    pub(crate) fn of(targets: &[ReadyTarget]) -> Option<ReadSoFar> {
        let tree = SystemTree::default();
        let read_bytes = |devices: &BTreeSet<DeviceNumber>| {
            let read = |number: &DeviceNumber| DiskCounters::read(&tree, *number);
            let counters: Option<Vec<DiskCounters>> = devices.iter().map(read).collect();
            Some(DiskCounters::total(&counters?).read_bytes)
        };
        let disks_of =
            |target: &ReadyTarget| Below::of(&Beneath::of(&tree, target.target().path())).disks;
        let disks: Option<Vec<_>> = targets.iter().map(disks_of).collect();
        let disks: Option<BTreeSet<DeviceNumber>> =
            disks.map(|of| of.into_iter().flatten().map(|(_, number)| number).collect());
        let own: Option<BTreeSet<DeviceNumber>> = targets.iter().map(ReadyTarget::device).collect();
        let devices = own.or_else(|| disks.clone())?;
        Some(ReadSoFar {
            devices_bytes: read_bytes(&devices)?,
            disks_bytes: disks
                .filter(|disks| *disks != devices)
                .and_then(|disks| read_bytes(&disks)),
        })
    }

    /// What was read since then, beside what was asked for.
    pub(crate) fn share_since(&self, before: &ReadSoFar, asked_bytes: u64) -> DeviceShare {
        let disks = self.disks_bytes.zip(before.disks_bytes);
        DeviceShare {
            asked_bytes,
            device_bytes: self.devices_bytes.saturating_sub(before.devices_bytes),
            disks_bytes: disks.map(|(after, before)| after.saturating_sub(before)),
        }
    }
}
