//! What lies beneath and beside a device or file, and who uses any of it. From the storage that is asked for the walk
//! goes down through partitions, loop devices, volumes, arrays and caches to what keeps the bytes, with the range of
//! each. Any other user of a range that overlaps, at any level, uses the storage: by a mount, as swap, with an open
//! file, or by another device that stands there. A regular file ends the walk: the file system beneath gives its blocks
//! to nobody else. Pure functions of a [`GuardSurvey`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use spindle_system::open_files::{Holder, OpenFor};
use spindle_system::{DeviceNumber, StoragePlace};

use super::survey::{GuardSurvey, Layer, LayerKind, Lower, MountedOn};
use super::verdict::Use;

/// The ranges that a storage comes down to, itself among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    ranges: BTreeMap<StoragePlace, Vec<Range<u64>>>,
    /// Storages that the kernel alone reaches, through a volume, an array or a cache.
    stacked: Vec<StoragePlace>,
    /// Devices that loop devices stand on. A loop device does not take its device for itself.
    looped: BTreeSet<DeviceNumber>,
    /// Pools that are reached through one of their thin volumes.
    pools: Vec<StoragePlace>,
    /// Files that loop devices stand for and that cannot be found, by the kernel's names for them.
    lost: Vec<(PathBuf, Range<u64>)>,
    /// By which paths the kernel knows files that loop devices stand for.
    paths: BTreeMap<StoragePlace, PathBuf>,
}

impl Footprint {
    /// Whether two come to a byte that both have.
    pub fn overlaps(&self, other: &Footprint) -> bool {
        let on_storage = self.ranges.iter().any(|(storage, ranges)| {
            let others = other.ranges.get(storage).map_or(&[][..], Vec::as_slice);
            let is_pool = self.pools.contains(storage) && other.pools.contains(storage);
            !is_pool
                && ranges
                    .iter()
                    .any(|range| others.iter().any(|other| overlap(range, other)))
        });
        let on_lost = self.lost.iter().any(|(file, range)| {
            other
                .lost
                .iter()
                .any(|(other, theirs)| file == other && overlap(range, theirs))
        });
        on_storage || on_lost
    }

    /// The regular files beneath, the kernel's names for them, and the ranges. They may be other files in this mount
    /// namespace.
    pub(super) fn files(&self) -> impl Iterator<Item = (StoragePlace, &Path, &Vec<Range<u64>>)> {
        let files = self.paths.iter();
        files.filter_map(|(storage, path)| {
            Some((*storage, path.as_path(), self.ranges.get(storage)?))
        })
    }

    /// The devices beneath that no process may hold exclusively. Volumes, arrays and caches already hold what is
    /// beneath them; of a partition the kernel compares its disk's user itself.
    pub(super) fn free_beneath(&self) -> impl Iterator<Item = DeviceNumber> {
        let is_taken = |device: &DeviceNumber| {
            let storage = StoragePlace::Device(*device);
            self.stacked.contains(&storage) || self.pools.contains(&storage)
        };
        let looped = self.looped.iter().copied();
        looped.filter(move |device| !is_taken(device))
    }

    fn includes(&self, storage: StoragePlace, range: &Range<u64>) -> bool {
        let known = self.ranges.get(&storage);
        known.is_some_and(|known| {
            known
                .iter()
                .any(|known| known.start <= range.start && range.end <= known.end)
        })
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The bytes beneath a layer that a range above it lies on; `None` when it is not the layer's.
fn down(layer: &Layer, range: &Range<u64>) -> Option<Range<u64>> {
    if !overlap(&layer.upper, range) {
        return None;
    }
    if !layer.is_linear {
        return Some(layer.area.clone());
    }
    let first = range.start.max(layer.upper.start) - layer.upper.start;
    let end = range.end.min(layer.upper.end) - layer.upper.start;
    let at = |offset: u64| layer.area.start.saturating_add(offset);
    Some(at(first)..at(end))
}

/// The bytes above a layer that lie on a range beneath it.
fn up(layer: &Layer, range: &Range<u64>) -> Option<Range<u64>> {
    if !overlap(&layer.area, range) {
        return None;
    }
    if !layer.is_linear {
        return Some(layer.upper.clone());
    }
    let first = range.start.max(layer.area.start) - layer.area.start;
    let end = range.end.min(layer.area.end) - layer.area.start;
    Some(layer.upper.start + first..layer.upper.start + end)
}

impl GuardSurvey {
    /// What a storage comes down to.
    pub fn footprint(&self, storage: StoragePlace) -> Footprint {
        let mut footprint = Footprint::default();
        let whole = 0..self.size_bytes(storage).max(1);
        self.descend(storage, whole, &mut footprint);
        footprint
    }

    fn descend(&self, storage: StoragePlace, range: Range<u64>, footprint: &mut Footprint) {
        if footprint.includes(storage, &range) {
            return;
        }
        footprint
            .ranges
            .entry(storage)
            .or_default()
            .push(range.clone());
        for layer in self.below(storage) {
            let Some(beneath) = down(layer, &range) else {
                continue;
            };
            match &layer.lower {
                Lower::Lost(file) => footprint.lost.push((file.clone(), beneath)),
                Lower::Known(lower) => {
                    if let (StoragePlace::File { .. }, Some(file)) =
                        (lower, self.file_behind(storage))
                    {
                        footprint.paths.insert(*lower, file.clone());
                    }
                    match layer.kind {
                        LayerKind::Stacked => footprint.stacked.push(*lower),
                        LayerKind::Thin => footprint.pools.push(*lower),
                        LayerKind::Loop => {
                            if let StoragePlace::Device(device) = lower {
                                footprint.looped.insert(*device);
                            }
                        }
                        LayerKind::Partition => {}
                    }
                    self.descend(*lower, beneath, footprint);
                }
            }
        }
    }

    fn file_behind(&self, storage: StoragePlace) -> Option<&PathBuf> {
        match storage {
            StoragePlace::Device(number) => self.devices.get(&number)?.file.as_ref(),
            StoragePlace::File { .. } => None,
        }
    }

    /// Who uses a storage, or any of what it comes down to.
    pub fn uses(&self, storage: StoragePlace) -> Vec<Use> {
        let footprint = self.footprint(storage);
        let mut uses = Vec::new();
        // What is asked for comes first.
        let own = footprint.ranges.get_key_value(&storage);
        let others = footprint
            .ranges
            .iter()
            .filter(|(lower, _)| **lower != storage);
        for (lower, ranges) in own.into_iter().chain(others) {
            let is_stacked = footprint.stacked.contains(lower) || footprint.pools.contains(lower);
            self.uses_here(*lower, is_stacked, &mut uses);
            for range in ranges {
                self.uses_above(*lower, range, &footprint, &mut uses);
            }
        }
        for (file, range) in &footprint.lost {
            self.uses_of_lost(file, range, &footprint, &mut uses);
        }
        let mut seen = Vec::new();
        uses.retain(|found| {
            !seen.contains(found) && {
                seen.push(found.clone());
                true
            }
        });
        uses
    }

    /// Who uses a storage directly. What the kernel keeps for a volume or an array may be read by those who watch over
    /// its paths (multipathd keeps them open); writing there is everyone's business.
    fn uses_here(&self, storage: StoragePlace, is_stacked: bool, uses: &mut Vec<Use>) {
        let device = self.name(storage);
        let mounted = self
            .mounts
            .iter()
            .filter(|mount| self.is_on(mount, storage));
        uses.extend(mounted.map(|mount| Use::Mounted {
            device: device.clone(),
            at: mount.at.clone(),
        }));
        if self.swaps.iter().any(|swap| swap.contains(&storage)) {
            uses.push(Use::Swap {
                device: device.clone(),
            });
        }
        uses.extend(self.unexplained(storage).map(|by| Use::Held {
            device: device.clone(),
            by: by.clone(),
        }));
        let of_btrfs = self
            .btrfs
            .iter()
            .filter(|(_, members)| members.contains(&device));
        uses.extend(of_btrfs.map(|(id, _)| Use::Held {
            device: device.clone(),
            by: format!("btrfs {id}"),
        }));
        if let StoragePlace::Device(number) = storage {
            let holders = self.open.holders_of_files_on(number);
            uses.extend(holders.map(|by| Use::Open {
                device: format!("a file on {device}"),
                by,
            }));
        }
        let counts = |holder: &Holder| !is_stacked || holder.open_for != OpenFor::Reading;
        uses.extend(
            self.open
                .holders(storage)
                .filter(counts)
                .map(|by| Use::Open {
                    device: device.clone(),
                    by,
                }),
        );
    }

    /// Holders of a device that do not say themselves what they stand on, and so what part of it they have.
    fn unexplained(&self, storage: StoragePlace) -> impl Iterator<Item = &String> {
        let device = match storage {
            StoragePlace::Device(number) => self.devices.get(&number),
            StoragePlace::File { .. } => None,
        };
        let holders = device.into_iter().flat_map(|device| &device.holders);
        holders.filter(move |holder| {
            self.above(storage)
                .all(|(_, upper, _)| upper.name != **holder)
        })
    }

    fn is_on(&self, mount: &MountedOn, storage: StoragePlace) -> bool {
        let (name, source) = &mount.source;
        if *source == Some(storage) {
            return true;
        }
        let StoragePlace::Device(number) = storage else {
            return false;
        };
        let is_named = || self.devices.get(&number).map(|device| &device.name) == name.as_ref();
        mount.device == number || source.is_none() && name.is_some() && is_named()
    }

    /// What stands on a range of a storage and is none of what was walked down.
    fn uses_above(
        &self,
        storage: StoragePlace,
        range: &Range<u64>,
        footprint: &Footprint,
        uses: &mut Vec<Use>,
    ) {
        for (number, upper, layer) in self.above(storage) {
            let standing = StoragePlace::Device(number);
            let is_sibling = layer.kind == LayerKind::Thin && footprint.pools.contains(&storage);
            if footprint.ranges.contains_key(&standing) || is_sibling {
                continue;
            }
            let Some(range) = up(layer, range) else {
                continue;
            };
            if layer.kind == LayerKind::Partition || self.is_shown_pool(storage, layer, footprint) {
                self.uses_here(standing, false, uses);
                self.uses_above(standing, &range, footprint, uses);
            } else {
                uses.push(Use::Held {
                    device: self.name(storage),
                    by: upper.name.clone(),
                });
            }
        }
    }

    /// Whether a layer is the device by which LVM shows a pool of thin volumes: all of the pool, as it is. It holds
    /// nothing by itself.
    fn is_shown_pool(&self, storage: StoragePlace, layer: &Layer, footprint: &Footprint) -> bool {
        let is_all = layer.area == (0..self.size_bytes(storage));
        footprint.pools.contains(&storage) && layer.is_linear && is_all
    }

    fn uses_of_lost(
        &self,
        file: &Path,
        range: &Range<u64>,
        footprint: &Footprint,
        uses: &mut Vec<Use>,
    ) {
        for (number, device) in &self.devices {
            let is_own = footprint
                .ranges
                .contains_key(&StoragePlace::Device(*number));
            let mut layers = device.below.iter();
            let stands_there = layers.any(|layer| {
                matches!(&layer.lower, Lower::Lost(other) if other == file)
                    && overlap(&layer.area, range)
            });
            if !is_own && stands_there {
                uses.push(Use::Held {
                    device: file.display().to_string(),
                    by: device.name.clone(),
                });
            }
        }
    }
}
