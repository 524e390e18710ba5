//! What a plan must know of the machine: rights, tools, and what the guard says of each device.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{LEAST_DEVICE_BYTES, Obstacle};
use crate::directory_rights::why_no_file;
use crate::guard::{Guard, GuardSurvey, Looked, Refusal, Want};
use crate::spec::{DeviceSpec, LayoutKind, LayoutSpec};
use crate::tool::{Tools, find};
use spindle_system::{DeviceMapper, SystemTree};

/// What a plan must know of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether devices, volumes and mounts may be made.
    pub is_root: bool,
    /// What the guard says of each existing device.
    pub devices: BTreeMap<PathBuf, Result<Looked, Refusal>>,
    /// Files that layouts want made, and that already exist.
    pub existing_files: BTreeSet<PathBuf>,
    /// Files that layouts want made, and why nothing can be made in their directories.
    pub impossible_files: BTreeMap<PathBuf, String>,
    /// What could not be looked at, in words.
    pub unseen: Option<String>,
    /// The tools that are installed.
    pub tools: BTreeSet<String>,
    /// Whether volumes can be made.
    pub device_mapper: DeviceMapper,
    /// Whether device-mapper can delay a device (dm-delay).
    pub has_dm_delay: bool,
    /// File systems are mounted on new directories in here.
    pub mounts_under: PathBuf,
}

impl Facts {
    /// Looks at what these layouts need. Reads devices; changes nothing.
    pub fn gather(specs: &[LayoutSpec], tree: &SystemTree) -> Facts {
        let tools = Tools::new();
        let guard = Guard::new(tree, &tools);
        let mut existing = specs.iter().flat_map(|spec| &spec.devices);
        let mut survey = existing
            .any(|device| matches!(device, DeviceSpec::Existing(_)))
            .then(|| GuardSurvey::take(tree).ok())
            .flatten();
        let mut devices = BTreeMap::new();
        for spec in specs {
            for device in &spec.devices {
                if let DeviceSpec::Existing(path) = device {
                    let want = Want {
                        path,
                        least_bytes: LEAST_DEVICE_BYTES,
                        erase: &spec.erase,
                    };
                    // Layouts that share a device must all allow what is done to it.
                    let looked = match &mut survey {
                        Some(survey) => guard.look_in(survey, &want),
                        None => guard.look(&want),
                    };
                    let before = devices
                        .entry(path.clone())
                        .or_insert_with(|| looked.clone());
                    if looked.is_err() {
                        *before = looked;
                    }
                }
            }
        }
        let looked = devices.values().filter_map(|looked| looked.as_ref().ok());
        let mut unseen = looked.filter_map(|looked| looked.state.unseen.clone());
        let is_there = |path: &&Path| path.symlink_metadata().is_ok();
        let files = || {
            let devices = specs.iter().flat_map(|spec| &spec.devices);
            let is_file = |device: &&DeviceSpec| matches!(device, DeviceSpec::File { .. });
            devices.filter(is_file).map(DeviceSpec::path)
        };
        let impossible = |path: &Path| Some((path.to_owned(), why_no_file(path.parent()?)?));
        Facts {
            is_root: rustix::process::geteuid().is_root(),
            unseen: unseen.next(),
            existing_files: files().filter(is_there).map(Path::to_owned).collect(),
            impossible_files: files().filter_map(impossible).collect(),
            devices,
            tools: needed_tools(specs)
                .into_iter()
                .filter(|tool| find(tool).is_some())
                .collect(),
            device_mapper: tree.device_mapper(),
            has_dm_delay: tree.has_mapped_target("delay"),
            mounts_under: "/run/spindle".into(),
        }
    }

    pub(super) fn looked(&self, path: &Path) -> Result<&Looked, Obstacle> {
        match self.devices.get(path) {
            Some(Ok(looked)) => Ok(looked),
            Some(Err(refusal)) => Err(Obstacle::Refused(refusal.clone())),
            None => Err(Obstacle::Refused(Refusal::Unknown {
                path: path.to_owned(),
                reason: "it was not looked at".to_owned(),
            })),
        }
    }
}

/// The tool that makes dm-delay devices.
pub(super) const DELAYING_TOOL: &str = "dmsetup";

fn needed_tools(specs: &[LayoutSpec]) -> BTreeSet<String> {
    let mut tools: BTreeSet<String> = specs.iter().flat_map(tools_of).collect();
    // Without it the database delays its own I/O.
    if specs.iter().any(|spec| spec.delay.is_some()) {
        tools.insert(DELAYING_TOOL.to_owned());
    }
    tools
}

/// The tools that a layout's steps run, as root.
pub(super) fn tools_of(spec: &LayoutSpec) -> BTreeSet<String> {
    let mut tools = BTreeSet::new();
    let mut add = |names: &[&str]| tools.extend(names.iter().map(ToString::to_string));
    add(&["blkid"]);
    for device in &spec.devices {
        match device {
            DeviceSpec::File { .. } => add(&["losetup"]),
            DeviceSpec::Existing(_) => add(&["wipefs", "blockdev"]),
        }
        if spec.share.is_some() && matches!(device, DeviceSpec::Existing(_)) {
            add(&["sfdisk", "partx"]);
        }
    }
    if spec.preparation.discard {
        add(&["blkdiscard"]);
    }
    if spec.volume.is_some() {
        add(&["lvm"]);
    }
    if let LayoutKind::FileSystem(file_system) = &spec.kind {
        add(&["mount", &format!("mkfs.{}", file_system.type_name)]);
    }
    tools
}
