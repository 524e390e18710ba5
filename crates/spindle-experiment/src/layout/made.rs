//! The keys of a `[[layout]]` by which Spindle makes it itself: `devices`, then what becomes of them (`raw`,
//! `filesystem`, `volume`, `diskgroup`), and how they are treated before (`share`, `erase`, `discard`, `precondition`).

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_layout::LayoutSpec;
use spindle_layout::spec::{DeviceSpec, FileSystemSpec, LayoutKind, Preparation, VolumeSpec};

use super::Layout;
use super::disk_group::{DiskGroup, StripingByKind};
use super::placement::Placement;
use crate::reader::{Item, Reader, keys_asked_by};
use spindle_text::quantity::{KIB, MIB, TIB};

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

/// Stripe sizes of LVM: powers of two, up to an extent.
const STRIPE_SIZES: [u64; 11] = [
    4 * KIB,
    8 * KIB,
    16 * KIB,
    32 * KIB,
    64 * KIB,
    128 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    2 * MIB,
    4 * MIB,
];

/// What Spindle makes for a layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Devices, and what becomes of them; paths of files as written.
    pub spec: LayoutSpec,
    /// The disk group to be made of the devices, if that is what they become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_group: Option<DiskGroup>,
}

impl fmt::Display for Made {
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

impl Made {
    /// Reads what is to be made for the layout called `name`; `None` when it has no devices.
    pub(super) fn read(reader: &mut Reader<'_>, name: &str) -> Option<Made> {
        let devices = read_devices(reader);
        let raw = reader.flag("raw", false);
        let file_system = read_file_system(reader);
        let volume = read_volume(reader);
        let disk_group = DiskGroup::read(reader, &devices);
        let share = reader.optional_word("share");
        let erase = reader.texts(
            "erase",
            "a list of devices by name, each a by-id name, a serial number, a world-wide name or a path",
        );
        let preparation = Preparation {
            discard: reader.flag("discard", false),
            overwrite_passes: read_precondition(reader),
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
        Some(Made { spec, disk_group })
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
    let path = table.text("file", "the path of a file, which is made");
    let size_bytes = table.size("size", 0, 16 * MIB..=64 * TIB);
    table.finish();
    match path {
        Some(path) if size_bytes > 0 => Some(DeviceSpec::File {
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
    let type_allowed = "the type of a file system: \"ext2\", \"ext3\", \"ext4\", \"xfs\", \"btrfs\", or another that has a mkfs.TYPE";
    let (type_name, mkfs, mount) = match reader.item("filesystem", allowed)? {
        Item::Text(type_name) => (Some(type_name), None, None),
        Item::Table(mut table) => {
            let keys = read_file_system_table(&mut table, type_allowed);
            table.finish();
            keys
        }
    };
    let is_type = |text: &&str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let Some(type_name) = type_name.filter(is_type) else {
        let refused = reader.conflict(
            &["filesystem"],
            "filesystem names no type of file system",
            format!("allowed: {type_allowed}"),
            "write filesystem = \"xfs\"",
        );
        let refused = refused.given(reader.keys(["filesystem.type"]));
        reader.note(refused.doubting(reader.keys(["filesystem"])));
        return None;
    };
    let words = mkfs.unwrap_or_default().split_whitespace();
    let spec = FileSystemSpec {
        type_name: type_name.to_owned(),
        mkfs_options: words.map(str::to_owned).collect(),
        mount_options: mount.unwrap_or_default().to_owned(),
    };
    if let Some((key, option)) = spec.leads_elsewhere() {
        reader.refuse(
            &["filesystem"],
            format!("{key} has {option:?}, which may lead to another device"),
            "Spindle writes to the devices of the layout only",
            "leave it out; to put redo on another device, use placement",
        );
    }
    Some(spec)
}

type FileSystemKeys<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>);

fn read_file_system_table<'a>(table: &mut Reader<'a>, type_allowed: &str) -> FileSystemKeys<'a> {
    (
        table.text("type", type_allowed),
        table.text("mkfs", "arguments for mkfs, separated by blanks"),
        table.text("mount", "mount options, separated by commas"),
    )
}

fn read_volume(reader: &mut Reader<'_>) -> Option<VolumeSpec> {
    let mut table = reader.section("volume");
    let volume = read_volume_table(&mut table);
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

fn read_volume_table(table: &mut Reader<'_>) -> VolumeSpec {
    VolumeSpec {
        stripes: table.number("stripes", 1, 1..=128),
        stripe_size_bytes: table.size_among("stripe_size", 64 * KIB, &STRIPE_SIZES),
        mirrors: table.number("mirrors", 0, 0..=9),
        thin: table.flag("thin", false),
    }
}

/// How often devices are overwritten.
fn read_precondition(reader: &mut Reader<'_>) -> u32 {
    let mut table = reader.section("precondition");
    let passes = table.number("passes", 1, 1..=10);
    table.finish();
    match reader.has("precondition") {
        true => passes,
        false => 0,
    }
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

/// The tables of a layout and the keys they understand.
pub(crate) fn keys_of_tables() -> Vec<(String, Vec<&'static str>)> {
    vec![
        (
            "an entry of the devices of a [[layout]]".to_owned(),
            keys_asked_by(read_file),
        ),
        (
            "the filesystem table of a [[layout]]".to_owned(),
            keys_asked_by(|table| {
                read_file_system_table(table, "");
            }),
        ),
        (
            "the volume table of a [[layout]]".to_owned(),
            keys_asked_by(read_volume_table),
        ),
        (
            "the placement table of a [[layout]]".to_owned(),
            keys_asked_by(Placement::read_table),
        ),
        (
            "the diskgroup table of a [[layout]]".to_owned(),
            keys_asked_by(DiskGroup::read_table),
        ),
        (
            "the striping table of a diskgroup".to_owned(),
            keys_asked_by(StripingByKind::read_table),
        ),
        (
            "the precondition table of a [[layout]]".to_owned(),
            vec!["passes"],
        ),
    ]
}
