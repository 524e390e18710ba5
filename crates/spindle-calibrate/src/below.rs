//! What lies beneath a target, as far as it decides what its flushes are worth, and a place on the storage beneath
//! where flushes can be timed beside it. It only looks, but for a file without a name that shows a place to take one.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use spindle_system::beneath::{DeviceLayer, FileSystemLayer, Layer, WriteCache};
use spindle_system::mounts::readable_mounts;
use spindle_system::{Beneath, DeviceNumber, SystemTree};

use crate::error::CalibrateError;

/// What was found beneath a target.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Below {
    /// Its file systems and devices, from the top down.
    pub(crate) layers: Vec<String>,
    /// What keeps it, where that is memory alone.
    pub(crate) memory: Option<String>,
    /// The part of it that is memory, where another part is not.
    pub(crate) memory_part: Option<String>,
    /// A setting with which a flush is not handed down, in words.
    pub(crate) set_to_ignore: Option<String>,
    /// What answers for flushes and cannot be looked into, such as `fuse.sshfs on /mnt`.
    pub(crate) hidden: Option<String>,
    /// Whether another machine may keep it.
    pub(crate) may_be_remote: bool,
    /// The disks at the bottom, where all of it is known.
    pub(crate) disks: Option<Vec<(String, DeviceNumber)>>,
}

impl Below {
    /// What the layers say.
    pub(crate) fn of(beneath: &Beneath) -> Below {
        let ends: Vec<&Layer> = beneath
            .layers
            .iter()
            .filter(|layer| is_end(layer))
            .collect();
        let in_memory = ends.iter().find(|layer| is_memory(layer));
        let in_memory = in_memory.map(|layer| name(layer));
        let is_all_memory = ends.iter().all(|layer| is_memory(layer));
        let (memory, memory_part) = match is_all_memory {
            true => (in_memory, None),
            false => (None, in_memory),
        };
        let hidden = ends.iter().find(|layer| number_of(layer).is_none());
        let disks = ends
            .iter()
            .map(|layer| Some((name(layer), number_of(layer)?)));
        Below {
            layers: beneath.layers.iter().map(name).collect(),
            memory,
            memory_part,
            set_to_ignore: set_to_ignore(beneath),
            hidden: hidden.map(|layer| name(layer)),
            may_be_remote: ends.iter().any(|layer| may_be_remote(layer)),
            disks: disks
                .collect::<Option<Vec<_>>>()
                .filter(|disks| !disks.is_empty()),
        }
    }
}

fn is_end(layer: &Layer) -> bool {
    match layer {
        Layer::FileSystem(of) => of.is_lowest,
        Layer::Device(of) => of.is_lowest,
        Layer::Hidden(_) => true,
    }
}

fn is_memory(layer: &Layer) -> bool {
    match layer {
        Layer::FileSystem(of) => of.is_memory(),
        Layer::Device(of) => of.is_memory(),
        Layer::Hidden(_) => false,
    }
}

/// A file system that no device of this machine is known for. FUSE and ZFS are taken for local ones.
fn may_be_remote(layer: &Layer) -> bool {
    match layer {
        Layer::FileSystem(of) => !of.is_fuse() && of.kind != "zfs",
        _ => false,
    }
}

fn number_of(layer: &Layer) -> Option<DeviceNumber> {
    match layer {
        Layer::Device(of) => of.number,
        _ => None,
    }
}

fn name(layer: &Layer) -> String {
    match layer {
        Layer::FileSystem(of) => format!("{} on {}", of.kind, of.mount_point.display()),
        Layer::Device(of) => of.name.clone(),
        Layer::Hidden(what) => what.clone(),
    }
}

/// The first setting from the top with which a flush goes no further down.
fn set_to_ignore(beneath: &Beneath) -> Option<String> {
    let has_cache = |of: &DeviceLayer| {
        [of.write_cache, of.hardware_cache].contains(&Some(WriteCache::WriteBack))
    };
    let cached = beneath.devices().find(|device| has_cache(device));
    let of_file_system = |of: &FileSystemLayer, layer: &Layer| match (of.is_volatile(), cached) {
        (Some(option), _) => Some(format!("{} is mounted with {option}", name(layer))),
        (None, Some(device)) => of.no_barrier().map(|option| {
            let device = &device.name;
            format!(
                "{} is mounted with {option}, and {device} has a cache",
                name(layer)
            )
        }),
        (None, None) => None,
    };
    let not_handed = |layer: &Layer| {
        format!(
            "no flush is handed down to {}: a device above it is set to have no cache (queue/write_cache)",
            name(layer)
        )
    };
    beneath.layers.iter().find_map(|layer| match layer {
        Layer::FileSystem(of) if !of.is_flushed => Some(not_handed(layer)),
        Layer::FileSystem(of) => of_file_system(of, layer),
        Layer::Device(of) if !of.is_flushed && has_cache(of) => Some(not_handed(layer)),
        Layer::Device(of) => {
            let is_denied = of.write_cache == Some(WriteCache::WriteThrough);
            (is_denied && of.hardware_cache == Some(WriteCache::WriteBack))
                .then(|| format!("{} has a write-back cache and is set to have none", of.name))
        }
        Layer::Hidden(_) => None,
    })
}

/// A directory on the storage beneath a directory, and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundDirectory {
    pub(crate) directory: PathBuf,
    pub(crate) found_as: String,
}

/// Why no place on the storage beneath was looked for, found or used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoControl {
    #[error("it was given")]
    Given,
    #[error("{0} is memory")]
    Memory(String),
    #[error("no other mounted file system lies on the storage beneath it")]
    NoPlace,
    #[error("no file without a name can be made beneath it ({0})")]
    Refused(String),
    #[error(transparent)]
    Make(#[from] CalibrateError),
}

/// Looks for a place beneath `directory` where a nameless file can be made.
///
/// # Errors
/// [`NoControl`]: there is none.
pub(crate) fn place_beneath(
    tree: &SystemTree,
    directory: &Path,
    beneath: &Beneath,
) -> Result<FoundDirectory, NoControl> {
    let mut why_not = Vec::new();
    let candidates = lower(beneath)
        .into_iter()
        .chain(beside(tree, directory, beneath));
    for place in candidates {
        match takes_nameless(&place.directory) {
            Ok(()) => return Ok(place),
            Err(error) => why_not.push(format!("{}: {error}", place.directory.display())),
        }
    }
    Err(match why_not.as_slice() {
        [] => NoControl::NoPlace,
        all => NoControl::Refused(all.join("; ")),
    })
}

/// Directories that the layers themselves name: of a loop device's file, of an overlay's changes.
fn lower(beneath: &Beneath) -> Vec<FoundDirectory> {
    let place = |layer: &Layer| match layer {
        Layer::Device(of) => Some(FoundDirectory {
            directory: of.backing_file.as_ref()?.parent()?.to_owned(),
            found_as: format!("the directory of {}'s file", of.name),
        }),
        Layer::FileSystem(of) => Some(FoundDirectory {
            directory: of.value_of("upperdir")?.into(),
            found_as: format!("the upper directory of {}", name(layer)),
        }),
        Layer::Hidden(_) => None,
    };
    beneath.layers.iter().filter_map(place).collect()
}

/// Mount points of other file systems on the same disks, of the same type and with no more devices between: others may
/// be slower for reasons of their own.
fn beside(tree: &SystemTree, directory: &Path, beneath: &Beneath) -> Vec<FoundDirectory> {
    let disks = Below::of(beneath).disks;
    let top = beneath.file_systems().next();
    let (Some(disks), Some(top)) = (disks, top) else {
        return Vec::new();
    };
    let fits = |other: &Beneath| {
        let is_like = other.file_systems().next().is_some_and(|of| {
            of.kind == top.kind && of.mount_point != top.mount_point && of.no_barrier().is_none()
        });
        is_like
            && other.devices().count() <= beneath.devices().count()
            && Below::of(other).disks.as_ref() == Some(&disks)
    };
    let own = std::fs::metadata(directory).ok();
    let is_own = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        let other = std::fs::metadata(path).ok();
        own.as_ref().map(|of| of.dev()) == other.map(|of| of.dev())
    };
    let mounts = readable_mounts(tree).into_iter();
    mounts
        .filter(|mount| mount.kind == top.kind && !is_own(&mount.mount_point))
        .filter(|mount| fits(&Beneath::of(tree, &mount.mount_point)))
        .map(|mount| FoundDirectory {
            found_as: format!("{} on the same disk", mount.kind),
            directory: mount.mount_point,
        })
        .collect()
}

/// Makes a file without a name, and lets it go. No named file is made that was not asked for.
fn takes_nameless(directory: &Path) -> Result<(), rustix::io::Errno> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE;
    rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_system(kind: &str, options: &str, is_lowest: bool) -> Layer {
        Layer::FileSystem(FileSystemLayer {
            kind: kind.to_owned(),
            mount_point: "/m".into(),
            options: options.split(',').map(str::to_owned).collect(),
            has_journal: None,
            commit_interval_ms: None,
            is_flushed: true,
            is_lowest,
        })
    }

    fn device(name: &str, cache: WriteCache, is_lowest: bool) -> Layer {
        Layer::Device(DeviceLayer {
            name: name.to_owned(),
            number: Some(DeviceNumber { major: 8, minor: 0 }),
            partition: None,
            backing_file: None,
            write_cache: Some(cache),
            hardware_cache: None,
            is_scsi_debug: false,
            atomic_write_bytes: 0,
            is_flushed: true,
            is_lowest,
        })
    }

    fn below(layers: Vec<Layer>) -> Below {
        Below::of(&Beneath {
            layers,
            write_back_ms: None,
        })
    }

    #[test]
    fn memory_is_all_of_it_or_a_part_of_it() {
        use WriteCache::{WriteBack, WriteThrough};
        let top = || file_system("ext4", "rw", false);
        let zram = || device("zram0", WriteThrough, true);
        assert_eq!(below(vec![top(), zram()]).memory.as_deref(), Some("zram0"));
        let on_tmpfs = vec![
            top(),
            device("loop0", WriteBack, false),
            file_system("tmpfs", "", true),
        ];
        assert_eq!(below(on_tmpfs).memory.as_deref(), Some("tmpfs on /m"));
        let sda = || device("sda", WriteBack, true);
        for ends in [[zram(), sda()], [sda(), zram()]] {
            let found = below([vec![top()], ends.to_vec()].concat());
            assert_eq!(found.memory, None);
            assert_eq!(found.memory_part.as_deref(), Some("zram0"));
        }
        assert_eq!(below(vec![top(), sda()]).memory_part, None);
    }

    #[test]
    fn a_missing_barrier_matters_where_there_is_a_cache() {
        use WriteCache::{WriteBack, WriteThrough};
        for (cache, is_ignored) in [(WriteBack, true), (WriteThrough, false)] {
            let layers = vec![
                file_system("ext4", "rw,nobarrier", false),
                device("sda", cache, true),
            ];
            assert_eq!(below(layers).set_to_ignore.is_some(), is_ignored);
        }
        let volatile = vec![file_system("overlay", "volatile", true)];
        assert!(below(volatile).set_to_ignore.unwrap().contains("volatile"));
        let honest = vec![
            file_system("ext4", "rw", false),
            device("sda", WriteBack, true),
        ];
        assert_eq!(below(honest).set_to_ignore, None);
    }

    #[test]
    fn what_no_disk_is_known_for_is_hidden() {
        let fuse = below(vec![file_system("fuse.x", "", true)]);
        assert_eq!((fuse.disks, fuse.may_be_remote), (None, false));
        assert_eq!(fuse.hidden.as_deref(), Some("fuse.x on /m"));
        assert!(below(vec![file_system("nfs4", "", true)]).may_be_remote);
        let gone = below(vec![Layer::Hidden("gone".to_owned())]);
        assert_eq!((gone.disks, gone.memory), (None, None));
    }
}
