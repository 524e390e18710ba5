//! The keys of a `[[layout]]` by which Spindle makes it itself: `devices`, then what becomes of them (`raw`,
//! `filesystem`, `volume`, `diskgroup`), and how they are treated before (`share`, `erase`, `discard`, `precondition`).

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_layout::LayoutSpec;
use spindle_layout::spec::{
    DeviceSettings, DeviceSpec, FileDeviceSettings, FileSystemSettings, FileSystemSpec, LayoutKind,
    Precondition, Preparation, TYPES_ALLOWED, VolumeSpec,
};
use spindle_text::section::Section;

use super::Layout;
use super::disk_group::{DiskGroupSpec, StripingByKind};
use super::placement::PlacementSpec;
use crate::reader::{Item, Reader, keys_asked_by, keys_in};

/// Keys that mean nothing without `devices`.
const OF_DEVICES: [&str; 8] = [
    "raw",
    "filesystem",
    "volume",
    "diskgroup",
    "share",
    "erase",
    "discard",
    "precondition",
];

/// Keys that say what devices become: one of them is needed.
const USES: [&str; 3] = ["raw", "filesystem", "diskgroup"];
/// What these keys say together, which is in doubt where they say nothing or too much.
const USE: &str = "what devices become";
/// The keys that whatever is said of devices and of what they become rests on.
pub(crate) const SAY_WHAT_IS_MADE: [&str; 7] = [
    "devices",
    "raw",
    "filesystem",
    "diskgroup",
    USE,
    "volume",
    "share",
];

/// More than any machine has of one kind.
const DEVICES_MAX: usize = 512;
const DEVICES_ALLOWED: &str = "a list of block devices and files, such as [\"/dev/disk/by-id/...\", { file = \"disk1.img\", size = \"1GiB\" }]";

/// What Spindle makes for a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeLayout {
    /// Devices, and what becomes of them; paths of files as written.
    pub spec: LayoutSpec,
    /// The disk group to be made of the devices, if that is what they become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_group: Option<DiskGroupSpec>,
}

impl fmt::Display for MadeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.spec.devices.iter();
        let paths: Vec<String> = devices
            .map(|device| device.path().display().to_string())
            .collect();
        let kind = match &self.spec.kind {
            LayoutKind::Raw => "raw",
            LayoutKind::FileSystem(of) => &of.type_name,
            LayoutKind::DiskGroup => "disk group",
        };
        write!(f, "{kind} on {}", paths.join(", "))
    }
}

impl MadeLayout {
    /// Reads what is to be made for the layout called `name`; `None` when it has no devices.
    pub(super) fn read(reader: &mut Reader<'_>, name: &str) -> Option<MadeLayout> {
        let devices = read_devices(reader);
        let file_system = read_file_system(reader);
        let volume = read_volume(reader);
        let disk_group = DiskGroupSpec::of(reader, &devices);
        let DeviceSettings {
            raw,
            share,
            erase,
            discard,
            precondition,
        } = Section::read(reader);
        let preparation = Preparation {
            discard,
            overwrite_passes: precondition.map_or(0, |it| it.passes),
        };
        let uses = [raw, reader.has("filesystem"), disk_group.is_some()];
        check_together(reader, uses, volume.as_ref());
        if !reader.has("devices") {
            return None;
        }
        let kind = match (file_system, &disk_group) {
            (Some(file_system), _) => LayoutKind::FileSystem(file_system),
            (None, Some(_)) => LayoutKind::DiskGroup,
            (None, None) => LayoutKind::Raw,
        };
        let spec = LayoutSpec {
            name: name.to_owned(),
            devices,
            volume,
            kind,
            share,
            erase,
            preparation,
            delay: None,
        };
        Some(MadeLayout { spec, disk_group })
    }

    /// Whether no file system stands between the database and the devices.
    pub fn is_raw(&self) -> bool {
        !matches!(self.spec.kind, LayoutKind::FileSystem(_))
    }

    /// What is to be made, with paths that begin at the root: a relative one starts in the current directory.
    ///
    /// # Errors
    /// There is no current directory.
    pub fn absolute(&self) -> io::Result<LayoutSpec> {
        let mut spec = self.spec.clone();
        for device in &mut spec.devices {
            if let DeviceSpec::File { path, .. } = device {
                *path = std::path::absolute(&*path)?;
            }
        }
        Ok(spec)
    }
}

/// What is to be made for the `wanted` of some layouts, by their numbers, each with those that stand on it: they differ
/// in their names at most.
///
/// # Errors
/// There is no current directory for relative paths.
pub fn specs_of(layouts: &[Layout], wanted: &[usize]) -> io::Result<Vec<(LayoutSpec, Vec<usize>)>> {
    let mut specs: Vec<(LayoutSpec, Vec<usize>)> = Vec::new();
    for &index in wanted {
        let Some(made) = &layouts[index].made else {
            continue;
        };
        let mut spec = made.absolute()?;
        let is_same = |(other, standing): &&mut (LayoutSpec, Vec<usize>)| {
            let of_other = layouts[standing[0]].made.as_ref();
            let named = LayoutSpec {
                name: other.name.clone(),
                ..spec.clone()
            };
            named == *other
                && of_other.is_some_and(|of| match (&of.disk_group, &made.disk_group) {
                    (Some(other), Some(group)) => group.is_made_as(other),
                    (other, group) => other == group,
                })
        };
        match specs.iter_mut().find(is_same) {
            Some((_, standing)) => standing.push(index),
            None => {
                spec.name.clone_from(&layouts[index].name);
                specs.push((spec, vec![index]));
            }
        }
    }
    Ok(specs)
}

fn read_devices(reader: &mut Reader<'_>) -> Vec<DeviceSpec> {
    let mut devices = Vec::new();
    let items = reader.items("devices", DEVICES_ALLOWED);
    if items.len() > DEVICES_MAX {
        reader.refuse_meaning(
            "devices",
            format!("{} devices in one layout", items.len()),
            format!("allowed: up to {DEVICES_MAX}"),
            "leave some out",
        );
        return devices;
    }
    for item in items {
        let device = match item {
            Item::Text(path) if path.starts_with('/') => {
                Some(DeviceSpec::Existing(PathBuf::from(path)))
            }
            Item::Text(path) => {
                reader.refuse_meaning(
                    "devices",
                    format!("{path:?} is not a path of a device"),
                    "paths of devices begin with /",
                    format!("write the device as /dev/..., or, for a file that is made: {{ file = {path:?}, size = \"1GiB\" }}"),
                );
                None
            }
            Item::Table(mut table) => read_file(&mut table),
        };
        devices.extend(device);
    }
    devices
}

fn read_file(table: &mut Reader<'_>) -> Option<DeviceSpec> {
    let said: FileDeviceSettings = Section::read(table);
    table.finish();
    match (said.file, said.size_bytes) {
        (Some(path), Some(size_bytes)) => Some(DeviceSpec::File {
            path: PathBuf::from(path),
            size_bytes,
        }),
        _ => {
            let refused = table.conflict(
                &["file", "size"],
                "a file that stands in for a device needs a path and a size",
                "file or size is missing",
                "write { file = \"disk1.img\", size = \"1GiB\" }",
            );
            let refused = refused.given(table.keys(["file", "size"]));
            table.note(refused.doubting(table.keys(["file and size"])));
            None
        }
    }
}

fn read_file_system(reader: &mut Reader<'_>) -> Option<FileSystemSpec> {
    let allowed = "the type of a file system such as \"xfs\", or { type = \"ext4\", mkfs = \"-b 4096\", mount = \"noatime\" }";
    let FileSystemSettings {
        type_name,
        mkfs,
        mount,
    } = match reader.item("filesystem", allowed)? {
        Item::Text(type_name) => FileSystemSettings {
            type_name: Some(type_name.to_owned()),
            ..FileSystemSettings::default()
        },
        Item::Table(mut table) => {
            let said = Section::read(&mut table);
            table.finish();
            said
        }
    };
    let is_type = |text: &String| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let Some(type_name) = type_name.filter(is_type) else {
        let refused = reader.conflict(
            &["filesystem"],
            "filesystem names no type of file system",
            format!("allowed: {TYPES_ALLOWED}"),
            "write filesystem = \"xfs\"",
        );
        let refused = refused.given(reader.keys(["filesystem.type"]));
        reader.note(refused.doubting(reader.keys(["filesystem"])));
        return None;
    };
    let mkfs = mkfs.unwrap_or_default();
    let spec = FileSystemSpec {
        type_name,
        mkfs_options: mkfs.split_whitespace().map(str::to_owned).collect(),
        mount_options: mount.unwrap_or_default(),
    };
    if let Some((key, option)) = spec.leads_elsewhere() {
        reader.refuse(
            &["filesystem"],
            format!("{key} has {option:?}, which may lead to another device"),
            "Spindle writes to the devices of the layout only",
            "leave it out; to put redo on another device, use placement",
        );
    }
    if let Some((key, option)) = spec.takes_no_database() {
        reader.refuse(
            &["filesystem"],
            format!("{key} has {option:?}, and so no database could be put there"),
            "the file system must be made, and written to",
            "leave it out",
        );
    }
    Some(spec)
}

fn read_volume(reader: &mut Reader<'_>) -> Option<VolumeSpec> {
    let mut table = reader.section("volume");
    let volume: VolumeSpec = Section::read(&mut table);
    table.finish();
    if volume.thin && volume.mirrors > 0 {
        let refused = table.conflict(
            &["thin", "mirrors"],
            "a thin volume has no mirrors",
            "thin or mirrors",
            "leave one of them out",
        );
        table.note(refused.doubting(table.keys(["mirrors"])));
    }
    reader.has("volume").then_some(volume)
}

/// What only makes sense together, or not together.
fn check_together(reader: &Reader<'_>, uses: [bool; 3], volume: Option<&VolumeSpec>) {
    let used = uses.iter().filter(|is_used| **is_used).count();
    if !reader.has("devices") {
        // The first of them says it for all.
        if let Some(key) = OF_DEVICES.iter().find(|key| reader.has(key)) {
            let refused = reader.conflict(
                &[key],
                format!("{key} needs devices"),
                "this layout is a directory",
                format!(
                    "add devices = [...], or leave {key} out to use path, an existing directory"
                ),
            );
            let refused = refused.given(reader.keys(["devices"]));
            reader.note(refused.doubting(reader.keys([USE])));
        }
        return;
    }
    if reader.has("path") {
        reader.refuse(
            &["path", "devices"],
            "a layout has both a path and devices",
            "path or devices",
            "with devices Spindle makes the layout itself; with path it uses an existing directory",
        );
    }
    match used {
        0 => {
            let refused = reader.conflict(
                &["devices"],
                "the layout does not say what to make of its devices",
                "raw, filesystem or diskgroup is missing",
                "add raw = true, filesystem = \"xfs\" or diskgroup = {}",
            );
            let refused = refused.given(reader.keys(USES));
            reader.note(refused.doubting(reader.keys([USE])));
        }
        1 if volume.is_some() && uses[2] => reader.refuse(
            &["volume", "diskgroup"],
            "a disk group does not stand on a volume",
            "volume or diskgroup",
            "give the disk group the devices themselves",
        ),
        1 => {}
        _ => {
            let refused = reader.conflict(
                &USES,
                "devices become one thing only",
                "raw, filesystem or diskgroup",
                "make a layout of each: they may share the devices with share = \"fair\"",
            );
            reader.note(refused.doubting(reader.keys([USE])));
        }
    }
}

/// The tables of a layout, each with how it is read.
pub(crate) fn keys_of_tables() -> Vec<(String, Vec<&'static str>)> {
    let tables = [
        (
            "an entry of the devices of a [[layout]]",
            keys_in::<FileDeviceSettings>(),
        ),
        (
            "the filesystem table of a [[layout]]",
            keys_in::<FileSystemSettings>(),
        ),
        ("the volume table of a [[layout]]", keys_in::<VolumeSpec>()),
        (
            "the placement table of a [[layout]]",
            keys_asked_by(PlacementSpec::read_table),
        ),
        (
            "the diskgroup table of a [[layout]]",
            keys_in::<DiskGroupSpec>(),
        ),
        (
            "the striping table of a diskgroup",
            keys_in::<StripingByKind>(),
        ),
        (
            "the precondition table of a [[layout]]",
            keys_in::<Precondition>(),
        ),
    ];
    let named = tables.into_iter();
    named.map(|(name, keys)| (name.to_owned(), keys)).collect()
}
