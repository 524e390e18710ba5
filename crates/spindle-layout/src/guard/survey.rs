//! What the machine looked like at one moment, as far as the use of storage goes: every block device, what each stands
//! on and by which ranges, mounts of all namespaces, swap, and who has what open. One survey answers for all devices of
//! a plan; `stack` asks it. Reads only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use spindle_io::real::facts::loop_target;

use crate::tool::Tools;
use spindle_system::mounts::{Mount, TableError, View, swaps, views};
use spindle_system::node::{BlockDeviceNode, btrfs_members};
use spindle_system::{DeviceNumber, OpenFiles, StoragePlace, SystemTree};

use super::mapped::{MappedTarget, targets};

/// The machine at one moment.
#[derive(Debug, Clone)]
pub struct GuardSurvey {
    pub(super) devices: BTreeMap<DeviceNumber, Device>,
    pub(super) mounts: Vec<MountedOn>,
    pub(super) views: Vec<View>,
    pub(super) swaps: Vec<BTreeSet<StoragePlace>>,
    pub(super) btrfs: Vec<(String, Vec<String>)>,
    pub(super) open: OpenFiles,
}

/// A block device and what it stands on.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub name: String,
    pub size_bytes: u64,
    /// What the kernel says stands on it.
    pub holders: Vec<String>,
    pub below: Vec<Layer>,
    /// Of a loop device: its file, as the kernel names it.
    pub file: Option<PathBuf>,
}

/// That a range of a device is a range of something else.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub lower: Lower,
    /// The bytes of the device.
    pub upper: Range<u64>,
    /// The bytes of what is beneath.
    pub area: Range<u64>,
    /// Whether the one are the other in the same order; else a byte may be anywhere in the area.
    pub is_linear: bool,
    pub kind: LayerKind,
}

/// Where the kernel does not tell which part is where.
const ANYWHERE: Range<u64> = 0..u64::MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lower {
    Known(StoragePlace),
    /// The file of a loop device that cannot be found, as the kernel names it.
    Lost(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerKind {
    Partition,
    Loop,
    /// Volumes, arrays, caches: the kernel keeps what is beneath for itself.
    Stacked,
    /// A thin volume: its pool gives no block to two volumes.
    Thin,
}

/// A mount, and the storage its file system lies on.
#[derive(Debug, Clone)]
pub(super) struct MountedOn {
    pub at: PathBuf,
    pub device: DeviceNumber,
    /// The kernel's name, and the storage, of what was mounted.
    pub source: (Option<String>, Option<StoragePlace>),
}

impl GuardSurvey {
    /// Surveys the machine. Errors: a table of the kernel that cannot be read or understood.
    pub fn take(tree: &SystemTree) -> Result<GuardSurvey, TableError> {
        let is_mapped = |node: &BlockDeviceNode| node.mapped_name().is_some();
        let tables = match BlockDeviceNode::all(tree).iter().any(is_mapped) {
            // Without the tool volumes are taken to lie anywhere on what they stand on.
            true => Tools::new().run("dmsetup", &["table"]).unwrap_or_default(),
            false => String::new(),
        };
        GuardSurvey::with_tables(tree, &tables)
    }

    /// Surveys the machine, the tables of device-mapper (as `dmsetup table` prints them) being given.
    pub fn with_tables(tree: &SystemTree, mapped_tables: &str) -> Result<GuardSurvey, TableError> {
        let views = views(tree)?;
        Ok(GuardSurvey {
            devices: devices(tree, mapped_tables),
            mounts: mounts_on(tree, &views),
            views,
            swaps: swaps(tree)?
                .iter()
                .map(|path| swap_on(tree, path))
                .collect(),
            btrfs: btrfs_members(tree),
            open: OpenFiles::read(tree),
        })
    }

    /// What could not be looked at, in words.
    pub fn unseen(&self) -> Option<String> {
        self.open.unseen().words()
    }

    /// What a storage stands on.
    pub(super) fn below(&self, storage: StoragePlace) -> &[Layer] {
        match storage {
            StoragePlace::Device(number) => self
                .devices
                .get(&number)
                .map_or(&[], |device| &device.below),
            StoragePlace::File { .. } => &[],
        }
    }

    /// What stands on a storage.
    pub(super) fn above(
        &self,
        storage: StoragePlace,
    ) -> impl Iterator<Item = (DeviceNumber, &Device, &Layer)> {
        let stands_on = move |layer: &&Layer| layer.lower == Lower::Known(storage);
        self.devices.iter().flat_map(move |(number, device)| {
            let layers = device.below.iter().filter(stands_on);
            layers.map(move |layer| (*number, device, layer))
        })
    }

    /// A storage's size, as far as the kernel tells.
    pub(super) fn size_bytes(&self, storage: StoragePlace) -> u64 {
        match storage {
            StoragePlace::Device(number) => self
                .devices
                .get(&number)
                .map_or(u64::MAX, |device| device.size_bytes),
            StoragePlace::File { .. } => u64::MAX,
        }
    }

    /// A storage's name, in words.
    pub(super) fn name(&self, storage: StoragePlace) -> String {
        match storage {
            StoragePlace::Device(number) => match self.devices.get(&number) {
                Some(device) => device.name.clone(),
                None => storage.to_string(),
            },
            StoragePlace::File { .. } => "the file".to_owned(),
        }
    }
}

fn mounts_on(tree: &SystemTree, views: &[View]) -> Vec<MountedOn> {
    let mut sources: BTreeMap<PathBuf, (Option<String>, Option<StoragePlace>)> = BTreeMap::new();
    let on = |mount: &Mount| {
        let source = sources
            .entry(mount.source.clone())
            .or_insert_with_key(|path| match path.is_absolute() {
                true => (tree.kernel_name(path), tree.storage_at(path)),
                false => (None, None),
            });
        MountedOn {
            at: mount.mount_point.clone(),
            device: mount.device,
            source: source.clone(),
        }
    };
    let mounts = views.iter().flat_map(|view| &view.mounts);
    mounts.map(on).collect()
}

/// What a path of the list of swap areas may mean. Its node may be gone: then its name tells.
fn swap_on(tree: &SystemTree, path: &Path) -> BTreeSet<StoragePlace> {
    let name = tree.kernel_name(path);
    let named = BlockDeviceNode::all(tree)
        .into_iter()
        .filter(|node| Some(&node.name) == name.as_ref());
    let found: BTreeSet<StoragePlace> = named
        .map(|node| StoragePlace::Device(node.number))
        .collect();
    found.into_iter().chain(tree.storage_at(path)).collect()
}

fn devices(tree: &SystemTree, mapped_tables: &str) -> BTreeMap<DeviceNumber, Device> {
    let nodes = BlockDeviceNode::all(tree);
    let by_name: BTreeMap<&str, DeviceNumber> = nodes
        .iter()
        .map(|node| (node.name.as_str(), node.number))
        .collect();
    let tables = targets(mapped_tables);
    let device = |node: &BlockDeviceNode| {
        let size_bytes = node.size_bytes().unwrap_or(u64::MAX);
        let slaves = node.slaves();
        let slaves: Vec<DeviceNumber> = slaves
            .iter()
            .filter_map(|name| by_name.get(name.as_str()).copied())
            .collect();
        let table = node.mapped_name().and_then(|name| tables.get(&name));
        let below = partition(node, size_bytes)
            .into_iter()
            .chain(loop_layer(tree, node, size_bytes))
            .chain(stacked(&slaves, table.map(Vec::as_slice)))
            .collect();
        let device = Device {
            name: node.name.clone(),
            size_bytes,
            holders: node.holders(),
            below,
            file: node.loop_backing().map(|backing| backing.file),
        };
        (node.number, device)
    };
    nodes.iter().map(device).collect()
}

fn partition(node: &BlockDeviceNode, size_bytes: u64) -> Option<Layer> {
    let area = node
        .start_bytes()
        .map(|start| start..start.saturating_add(size_bytes));
    Some(Layer {
        lower: Lower::Known(StoragePlace::Device(node.disk()?.number)),
        upper: 0..size_bytes,
        is_linear: area.is_some(),
        area: area.unwrap_or(ANYWHERE),
        kind: LayerKind::Partition,
    })
}

fn loop_layer(tree: &SystemTree, node: &BlockDeviceNode, size_bytes: u64) -> Option<Layer> {
    let backing = node.loop_backing()?;
    Some(Layer {
        lower: behind_loop(tree, node, &backing.file),
        upper: 0..size_bytes,
        area: backing.offset_bytes..backing.offset_bytes.saturating_add(size_bytes),
        is_linear: true,
        kind: LayerKind::Loop,
    })
}

/// By inode where the loop device may be asked, else by the path that the kernel tells.
fn behind_loop(tree: &SystemTree, node: &BlockDeviceNode, file: &Path) -> Lower {
    let asked = File::open(tree.dev.join(&node.name)).and_then(|device| loop_target(&device));
    let by_path = || match tree.storage_at(file) {
        Some(storage) => Lower::Known(storage),
        None => Lower::Lost(file.to_owned()),
    };
    match asked {
        Ok(target) if target.special_device != 0 => Lower::Known(StoragePlace::Device(
            DeviceNumber::of_stat(target.special_device),
        )),
        Ok(target) => Lower::Known(StoragePlace::File {
            file_system: target.device,
            inode: target.inode,
        }),
        Err(_) => by_path(),
    }
}

/// What `/sys` shows beneath, by the ranges that device-mapper's table tells.
fn stacked(slaves: &[DeviceNumber], table: Option<&[MappedTarget]>) -> Vec<Layer> {
    let mut layers: Vec<Layer> = Vec::new();
    for target in table.unwrap_or_default() {
        for mapping in &target.mappings {
            let kind = match target.is_thin {
                true => LayerKind::Thin,
                false => LayerKind::Stacked,
            };
            layers.push(Layer {
                lower: Lower::Known(StoragePlace::Device(mapping.lower)),
                upper: target.range.clone(),
                area: mapping.area.clone(),
                is_linear: mapping.is_linear,
                kind,
            });
        }
    }
    for slave in slaves {
        let lower = Lower::Known(StoragePlace::Device(*slave));
        if !layers.iter().any(|layer| layer.lower == lower) {
            layers.push(Layer {
                lower,
                upper: ANYWHERE,
                area: ANYWHERE,
                is_linear: false,
                kind: LayerKind::Stacked,
            });
        }
    }
    layers
}
