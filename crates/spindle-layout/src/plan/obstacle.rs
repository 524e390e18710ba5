//! What stands in the way of a layout before anything is done.

use std::path::PathBuf;

use super::facts::tools_of;
use super::{Facts, room, share, taken_twice};
use crate::file_system;
use crate::guard::Refusal;
use crate::spec::{DeviceSpec, LayoutKind, LayoutSpec};
use crate::tool::package_of;
use spindle_system::DeviceMapper;

/// Why a layout cannot be made here, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// The guard refuses a device.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Rights are missing.
    #[error("{what} needs root: run Spindle as root, or use raw on files")]
    NeedsRoot {
        /// What.
        what: &'static str,
    },
    /// A tool is missing.
    #[error("{tool} is not installed{}", package_of(tool).map(|package| format!("; it comes with {package}")).unwrap_or_default())]
    NoTool {
        /// Its name.
        tool: String,
    },
    /// The kernel makes no volumes.
    #[error(
        "a volume takes device-mapper, which this kernel has not: try modprobe dm-mod, start a kernel that has it \
         (CONFIG_BLK_DEV_DM; those of distributions do), or leave volume out"
    )]
    NoDeviceMapper,
    /// A layout names a device twice.
    #[error("{} is named twice by this layout: name it once", path.display())]
    NamedAgain {
        /// The device.
        path: PathBuf,
    },
    /// Two layouts want the same device.
    #[error("{} is named by {by:?}, too: name it once, or write share = \"fair\" in both layouts", path.display())]
    TakenTwice {
        /// The device.
        path: PathBuf,
        /// The other layout.
        by: String,
    },
    /// Two devices are the same storage, by different stacks.
    #[error(
        "{} and {}, which {by:?} names, come down to the same bytes: name one of them, once",
        path.display(), other.display()
    )]
    SameStorage {
        /// The device.
        path: PathBuf,
        /// The other one.
        other: PathBuf,
        /// Its layout.
        by: String,
    },
    /// A file is to be made where there is one.
    #[error("{} exists already, and Spindle makes its own: name another file, or remove it", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// No file can be made where one is to be.
    #[error("no file can be made where {} is to be: {reason}", path.display())]
    NoFileThere {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Layouts that share do not name the same devices.
    #[error(
        "it shares devices with {other:?}, which names other ones: with share = \"fair\" both must name the same devices, \
         or none favours neither"
    )]
    UnequalShare {
        /// The other layout.
        other: String,
    },
    /// There are too few devices, or too many.
    #[error(
        "{what} takes {wanted}, but the layout has {found}; with share = \"fair\" each part counts"
    )]
    DeviceCount {
        /// What.
        what: String,
        /// How many.
        wanted: String,
        /// How many there are.
        found: usize,
    },
    /// A part would be too small.
    #[error("cut into {parts} parts, {} is too small: less than {least_mib} MiB each", path.display())]
    PartsTooSmall {
        /// The device.
        path: PathBuf,
        /// How many parts.
        parts: usize,
        /// What each must have.
        least_mib: u64,
    },
    /// A file system would be too small.
    #[error(
        "{type_name} takes devices of {least_mib} MiB at least, and here is one of {found_mib} MiB: name a larger one"
    )]
    DeviceTooSmall {
        /// The type of the file system.
        type_name: String,
        /// What its `mkfs` takes.
        least_mib: u64,
        /// What the smallest device has.
        found_mib: u64,
    },
    /// A name that is no text cannot be handed to tools.
    #[error("tools cannot be given the name {}: it must be UTF-8 without control characters", path.display())]
    OddName {
        /// The device or file.
        path: PathBuf,
    },
}

/// Obstacles that show without looking at devices.
pub(super) fn of_spec(spec: &LayoutSpec, facts: &Facts) -> Vec<Obstacle> {
    let mut obstacles = Vec::new();
    let mut needs_root = |what| {
        if !facts.is_root {
            obstacles.push(Obstacle::NeedsRoot { what });
        }
    };
    if matches!(spec.kind, LayoutKind::FileSystem(_)) {
        needs_root("a file system");
    }
    if spec.volume.is_some() {
        needs_root("a volume");
    }
    if spec
        .devices
        .iter()
        .any(|device| matches!(device, DeviceSpec::Existing(_)))
    {
        needs_root("a layout on devices");
    }
    if spec.preparation.overwrite_passes > 0 {
        needs_root("a preconditioned device");
    }
    if facts.is_root {
        let missing = tools_of(spec)
            .into_iter()
            .filter(|tool| !facts.tools.contains(tool));
        obstacles.extend(missing.map(|tool| Obstacle::NoTool { tool }));
    }
    if spec.volume.is_some() && facts.device_mapper == DeviceMapper::Missing {
        obstacles.push(Obstacle::NoDeviceMapper);
    }
    obstacles.extend(odd_names(spec));
    let made = spec.devices.iter().map(DeviceSpec::path);
    let there = made.filter(|path| facts.existing_files.contains(*path));
    obstacles.extend(there.map(|path| Obstacle::FileExists {
        path: path.to_owned(),
    }));
    let made = spec.devices.iter().map(DeviceSpec::path);
    let impossible = made.filter_map(|path| facts.impossible_files.get_key_value(path));
    obstacles.extend(impossible.map(|(path, reason)| Obstacle::NoFileThere {
        path: path.clone(),
        reason: reason.clone(),
    }));
    if spec.devices.is_empty() {
        obstacles.push(Obstacle::DeviceCount {
            what: "a layout".to_owned(),
            wanted: "at least one device".to_owned(),
            found: 0,
        });
    }
    obstacles
}

fn spans_devices(type_name: &str) -> bool {
    file_system::kind(type_name).is_some_and(|kind| kind.spans_devices)
}

/// Whether the layout can stand on this many devices, or parts of shared ones. A file system takes one, unless its kind
/// spans several or it stands on a volume; a volume as many as it has stripes and copies.
fn of_count(spec: &LayoutSpec, found: usize) -> Option<Obstacle> {
    let wrong = |what: String, wanted: String| {
        Some(Obstacle::DeviceCount {
            what,
            wanted,
            found,
        })
    };
    match (&spec.volume, &spec.kind) {
        // Another obstacle says why.
        _ if found == 0 => None,
        (Some(volume), _) => {
            let least = volume.stripes.max(1) * (volume.mirrors + 1);
            if found >= least as usize {
                None
            } else {
                wrong(format!("a {volume}"), format!("at least {least} devices"))
            }
        }
        (None, LayoutKind::FileSystem(file_system))
            if found > 1 && !spans_devices(&file_system.type_name) =>
        {
            wrong(
                file_system.type_name.clone(),
                "one device, or a volume over several".to_owned(),
            )
        }
        _ => None,
    }
}

/// Too few devices, or too many, or too small ones.
pub(super) fn of_pieces(spec: &LayoutSpec, sizes_bytes: &[u64]) -> Option<Obstacle> {
    of_count(spec, sizes_bytes.len()).or_else(|| of_sizes(spec, sizes_bytes))
}

/// A file system of devices, or a volume, that are smaller than its `mkfs` takes without options that say otherwise.
fn of_sizes(spec: &LayoutSpec, sizes_bytes: &[u64]) -> Option<Obstacle> {
    let LayoutKind::FileSystem(file_system) = &spec.kind else {
        return None;
    };
    if !file_system.mkfs_options.is_empty() {
        return None;
    }
    let kind = file_system::kind(&file_system.type_name)?;
    let least_bytes = *sizes_bytes.iter().min()?;
    let found_mib = match &spec.volume {
        Some(volume) => room::of_volume(volume, sizes_bytes) >> 20,
        None => least_bytes >> 20,
    };
    let devices = if spec.volume.is_some() {
        1
    } else {
        sizes_bytes.len()
    };
    let least_mib = (kind.least_mib)(devices);
    (found_mib < least_mib).then(|| Obstacle::DeviceTooSmall {
        type_name: file_system.type_name.clone(),
        least_mib,
        found_mib,
    })
}

/// What stands in the way of layouts on any machine and with any devices of these names: each obstacle with the number
/// of its layout, in order.
pub fn mistakes_of(specs: &[LayoutSpec]) -> Vec<(usize, Obstacle)> {
    let mut taken = taken_twice(specs);
    let pieces = share::pieces_of(specs);
    let of_layout = |(index, spec): (usize, &LayoutSpec)| {
        let mut obstacles = taken.remove(&index).unwrap_or_default();
        match pieces.get(&index) {
            None => obstacles.extend(of_count(spec, spec.devices.len())),
            Some(Ok(pieces)) => obstacles.extend(of_count(spec, *pieces)),
            Some(Err(obstacle)) => obstacles.push(obstacle.clone()),
        }
        obstacles.extend(odd_names(spec));
        obstacles.into_iter().map(move |obstacle| (index, obstacle))
    };
    specs.iter().enumerate().flat_map(of_layout).collect()
}

/// Names that no tool can be given, or that would be read as an option, and those that the kernel tells in another
/// spelling.
fn odd_names(spec: &LayoutSpec) -> impl Iterator<Item = Obstacle> {
    let is_plain = |text: &str| text.starts_with('/') && !text.chars().any(char::is_control);
    let is_odd = move |path: &PathBuf| !path.to_str().is_some_and(is_plain);
    let paths = spec.devices.iter().map(|device| device.path().to_owned());
    paths.filter(is_odd).map(|path| Obstacle::OddName { path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ProvisionPlan;
    use crate::spec::{DeviceSharing, FileSystemSpec, Preparation, VolumeSpec};

    fn shared(kind: LayoutKind, stripes: Option<u32>) -> LayoutSpec {
        LayoutSpec {
            name: "a".to_owned(),
            devices: vec![DeviceSpec::Existing(PathBuf::from("/dev/a"))],
            volume: stripes.map(|stripes| VolumeSpec {
                stripes,
                stripe_size_bytes: 65_536,
                mirrors: 0,
                thin: false,
            }),
            kind,
            share: Some(DeviceSharing::Fair),
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
        }
    }

    fn file_system(type_name: &str) -> LayoutKind {
        LayoutKind::FileSystem(FileSystemSpec {
            type_name: type_name.to_owned(),
            mkfs_options: Vec::new(),
            mount_options: String::new(),
        })
    }

    #[test]
    fn each_part_of_a_shared_device_counts() {
        let of = |kind, stripes, parts| of_count(&shared(kind, stripes), parts).is_none();
        assert!(!of(file_system("ext4"), None, 2));
        assert!(of(file_system("ext4"), None, 1));
        assert!(of(file_system("ext4"), Some(1), 2));
        assert!(of(file_system("btrfs"), None, 2));
        assert!(of(LayoutKind::DiskGroup, None, 2));
        assert!(of(LayoutKind::Raw, Some(2), 2));
        assert!(!of(LayoutKind::Raw, Some(3), 2));
    }

    #[test]
    fn names_are_of_any_language_but_have_no_control_characters() {
        let is_refused = |name: &str| {
            let mut spec = shared(LayoutKind::Raw, None);
            spec.devices = vec![DeviceSpec::File {
                path: PathBuf::from(name),
                size_bytes: 1,
            }];
            odd_names(&spec).count() == 1
        };
        for name in ["/srv/my disks/größe 'a'.img", "/dev/disk/by-label/a\\x20b"] {
            assert!(!is_refused(name), "{name:?}");
        }
        for name in ["--find", "/srv/a\nb.img", "/srv/\u{1b}[2J"] {
            assert!(is_refused(name), "{name:?}");
        }
    }

    #[test]
    fn no_file_system_is_planned_on_less_than_its_mkfs_takes() {
        const MIB: u64 = 1 << 20;
        let least = |name, volume, sizes: &[u64]| {
            let spec = shared(file_system(name), volume);
            match of_sizes(
                &spec,
                &sizes.iter().map(|mib| mib * MIB).collect::<Vec<_>>(),
            ) {
                Some(Obstacle::DeviceTooSmall { least_mib, .. }) => Some(least_mib),
                Some(other) => panic!("{other}"),
                None => None,
            }
        };
        assert_eq!(least("xfs", None, &[299]), Some(300));
        assert_eq!(least("xfs", None, &[300]), None);
        assert_eq!(least("xfs", Some(2), &[256, 256]), None);
        assert_eq!(least("xfs", Some(2), &[128, 128]), Some(300));
        assert_eq!(least("btrfs", None, &[100]), Some(109));
        assert_eq!(least("btrfs", None, &[512, 68]), Some(69));
        assert_eq!(least("btrfs", None, &[69, 69, 80]), None);
        assert_eq!(least("ext4", None, &[8]), None);
    }

    #[test]
    fn a_volume_without_device_mapper_stands_alone_in_its_way() {
        let file = |name: &str| DeviceSpec::File {
            path: PathBuf::from(name),
            size_bytes: 64 << 20,
        };
        let raw = |name: &str, volume| LayoutSpec {
            name: name.to_owned(),
            devices: vec![file(&format!("/d/{name}.img"))],
            volume,
            kind: LayoutKind::Raw,
            share: None,
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
        };
        let volume = VolumeSpec {
            stripes: 1,
            stripe_size_bytes: 64 << 10,
            mirrors: 0,
            thin: false,
        };
        let specs = [raw("volume", Some(volume)), raw("raw", None)];
        let tools = ["lvm", "losetup", "blkid"].map(str::to_owned);
        let mut facts = Facts {
            is_root: true,
            tools: tools.into(),
            ..Facts::default()
        };
        let plan = ProvisionPlan::of(&specs, &facts, "r");
        assert_eq!(plan.layouts[0].obstacles, [Obstacle::NoDeviceMapper]);
        let told = plan.layouts[0].obstacles[0].to_string();
        assert!(told.contains("modprobe dm-mod") && told.contains("CONFIG_BLK_DEV_DM"));
        assert!(plan.layouts[0].steps.is_empty());
        assert!(plan.layouts[1].obstacles.is_empty() && !plan.layouts[1].steps.is_empty());
        facts.device_mapper = DeviceMapper::Loadable;
        let plan = ProvisionPlan::of(&specs, &facts, "r");
        assert!(plan.layouts[0].obstacles.is_empty(), "{plan}");
    }
}
