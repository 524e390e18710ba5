//! Overlays that are mounted, and the directories they are made of. A file of such a layer is a file of the overlay,
//! too, with another `st_dev` there: a process that has it open through the overlay seems to have another file. Layers
//! are compared by identity, not by name. What the kernel tells of them are the words with which the overlay was
//! mounted: a relative path, a path of another root directory. Each is looked up wherever it may lead. Source: Linux
//! Documentation/filesystems/overlayfs.rst, fs/overlayfs/params.c.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use spindle_io::real::facts::unescaped;

use super::mounts::{Mount, View, mount_of};
use super::{DeviceNumber, StoragePlace, SystemTree, names};

/// `st_dev` and `st_ino` of a directory.
type Identity = (u64, u64);

/// A layer of an overlay that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayLayer {
    /// The layer's directory.
    pub directory: PathBuf,
    /// Where the overlay is mounted.
    pub mounted_on: PathBuf,
}

/// The layer of an overlay that a file lies in, seen from outside the overlay; `path` leads to the file for one of the
/// views. `None`: there is none, or neither `path` nor the layer's name leads anywhere from here.
pub fn layer_with(
    tree: &SystemTree,
    views: &[View],
    file: StoragePlace,
    path: &Path,
) -> Option<OverlayLayer> {
    overlays(views).next()?;
    let names = names_of(views, file, path);
    let around = names.iter().flat_map(|name| directories_of(name));
    let around: BTreeSet<Identity> = around.collect();
    let bases = bases(tree, &names);
    let is_around = |directory: &PathBuf| {
        identity(directory).is_some_and(|identity| around.contains(&identity))
    };
    overlays(views).find_map(|(view, mount)| {
        let directories = directories(view, mount, &bases);
        Some(OverlayLayer {
            directory: directories.into_iter().find(is_around)?,
            mounted_on: mount.mount_point.clone(),
        })
    })
}

/// The files in the layers that a file of an overlay may be, as far as the names of the layers lead to them from here;
/// none of a file that is on no overlay. `path` is as for [`layer_with`].
pub fn files_in_layers(
    tree: &SystemTree,
    views: &[View],
    file: StoragePlace,
    path: &Path,
) -> BTreeSet<StoragePlace> {
    if overlays(views).next().is_none() {
        return BTreeSet::new();
    }
    let names = names_of(views, file, path);
    let bases = bases(tree, &names);
    let mut found = BTreeSet::new();
    for (view, mount) in overlays(views) {
        let mounted_on = view.path(&mount.mount_point);
        let below = names
            .iter()
            .filter_map(|name| name.strip_prefix(&mounted_on).ok());
        // From the root of the overlay, of which a part may be mounted.
        let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
        let within: Vec<PathBuf> = below.map(|below| root.join(below)).collect();
        if within.is_empty() {
            continue;
        }
        for directory in directories(view, mount, &bases) {
            let paths = within.iter().map(|within| directory.join(within));
            let there = paths.filter_map(|path| std::fs::metadata(path).ok());
            found.extend(there.filter_map(|metadata| StoragePlace::of(&metadata)));
        }
    }
    found.remove(&file);
    found
}

fn overlays(views: &[View]) -> impl Iterator<Item = (&View, &Mount)> {
    let mounts = views
        .iter()
        .flat_map(|view| view.mounts.iter().map(move |mount| (view, mount)));
    mounts.filter(|(_, mount)| mount.kind == "overlay")
}

/// Where the relative paths of layers may begin: around the file, or where a process is. The one that mounted the
/// overlay may still be there.
fn bases(tree: &SystemTree, file: &[PathBuf]) -> Vec<PathBuf> {
    let around = file.iter().flat_map(|name| name.ancestors().skip(1));
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = names(&tree.proc).into_iter().filter(is_process);
    let working = processes.map(|pid| tree.proc.join(pid).join("cwd"));
    around.map(Path::to_owned).chain(working).collect()
}

/// Paths that lead to a file from here: as named, and by each mount that shows the same part of the file system.
fn names_of(views: &[View], file: StoragePlace, path: &Path) -> Vec<PathBuf> {
    let is_it = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok();
        metadata.and_then(|metadata| StoragePlace::of(&metadata)) == Some(file)
    };
    let device = match file {
        StoragePlace::File { file_system, .. } => Some(DeviceNumber::of_stat(file_system)),
        StoragePlace::Device(_) => None,
    };
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut names: Vec<PathBuf> = Vec::new();
    for view in views.iter().filter(|view| is_it(&view.path(&real))) {
        names.push(view.path(&real));
        let Some(mount) = mount_of(&view.mounts, &real, device) else {
            continue;
        };
        let Ok(below) = real.strip_prefix(&mount.mount_point) else {
            continue;
        };
        let within = mount.root.join(below);
        for other in views {
            let same = other.mounts.iter().filter(|it| it.device == mount.device);
            let shown = same.filter_map(|it| {
                let below = within.strip_prefix(&it.root).ok()?;
                Some(other.path(&it.mount_point).join(below))
            });
            names.extend(shown.filter(is_it));
        }
    }
    names
}

/// The directories around a file in its own file system: what is mounted in a layer is no part of it.
fn directories_of(file: &Path) -> Vec<Identity> {
    let mount_id = |path: &Path| {
        let asked = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
        (asked.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(asked.stx_mnt_id)
    };
    let Ok(own) = std::fs::metadata(file) else {
        return Vec::new();
    };
    let own_mount = mount_id(file);
    let directories = file.ancestors().skip(1).filter_map(|directory| {
        let identity = identity(directory)?;
        let same_mount = own_mount.is_some() && mount_id(directory) == own_mount;
        (identity.0 == own.dev() || same_mount).then_some(identity)
    });
    directories.collect()
}

fn identity(directory: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(directory).ok().filter(Metadata::is_dir)?;
    Some((metadata.dev(), metadata.ino()))
}

/// The directories that the layers of an overlay may be, each as it is read (see [`Layers`]). Relative ones count where
/// all of them are found together. Where a path goes up first, what follows is looked for by itself, too.
fn directories(view: &View, mount: &Mount, bases: &[PathBuf]) -> Vec<PathBuf> {
    let Layers { layers, workdir } = Layers::of(mount);
    let mounted_on = view.path(&mount.mount_point);
    let is_relative = |layer: &&Vec<PathBuf>| layer.iter().all(|path| path.is_relative());
    let (relative, absolute): (Vec<_>, Vec<_>) = layers.iter().partition(is_relative);
    let mut found: Vec<PathBuf> = Vec::new();
    for path in absolute.into_iter().flatten() {
        found.extend([path.clone(), view.path(path)]);
    }
    let paths = relative.iter().copied().flatten();
    let after_parents = paths.filter_map(|path| below_parents(path));
    let after_parents: Vec<PathBuf> = after_parents.collect();
    let bases = bases.iter().map(PathBuf::as_path);
    for base in bases.chain(mounted_on.ancestors()) {
        let at_base = |layer: &&Vec<PathBuf>| {
            let mut paths = layer.iter().map(|path| base.join(path));
            paths.find(|path| path.is_dir())
        };
        let has_workdir = workdir
            .iter()
            .filter(is_relative)
            .all(|it| at_base(&it).is_some());
        let together: Option<Vec<PathBuf>> = relative.iter().map(at_base).collect();
        found.extend(together.filter(|_| has_workdir).into_iter().flatten());
        found.extend(after_parents.iter().map(|path| base.join(path)));
    }
    // The name of a layer may lead to the overlay itself: in a container, or when it is mounted over that layer.
    let is_other = |directory: &PathBuf| {
        identity(directory)
            .is_some_and(|(file_system, _)| DeviceNumber::of_stat(file_system) != mount.device)
    };
    found.retain(is_other);
    found
}

/// What follows the last `..` of a path; `None` when it has none, or nothing follows.
fn below_parents(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let up = parts
        .iter()
        .rposition(|part| *part == Component::ParentDir)?;
    let after: PathBuf = parts[up + 1..].iter().collect();
    (!after.as_os_str().is_empty()).then_some(after)
}

/// The layers of an overlay by its options, each in all ways in which it may be read: the older interface takes a
/// backslash as an escape, the newer one as itself, and the kernel shows what it was given.
#[derive(Debug, Default)]
struct Layers {
    layers: Vec<Vec<PathBuf>>,
    /// Where the kernel prepares what it moves into the upper layer: no file of the overlay lies there.
    workdir: Option<Vec<PathBuf>>,
}

impl Layers {
    fn of(mount: &Mount) -> Layers {
        let mut found = Layers::default();
        for option in mount.options.split(',') {
            let Some((key, value)) = option.split_once('=') else {
                continue;
            };
            let value = unescaped(value.as_bytes());
            let value = value.as_os_str().as_bytes();
            match key {
                "upperdir" => found.layers.push(readings(value)),
                "workdir" => found.workdir = Some(readings(value)),
                "lowerdir+" | "datadir+" => found.layers.push(vec![path(value)]),
                "lowerdir" => {
                    let parts = split_layers(value).into_iter();
                    found.layers.extend(parts.map(readings));
                }
                _ => {}
            }
        }
        found
    }
}

/// Parts between colons that have no backslash before them; `::` comes before a layer of data.
fn split_layers(value: &[u8]) -> Vec<&[u8]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < value.len() {
        match value[at] {
            b'\\' => at += 1,
            b':' => {
                parts.push(&value[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&value[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn readings(value: &[u8]) -> Vec<PathBuf> {
    let mut plain = Vec::with_capacity(value.len());
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        plain.extend(match byte {
            b'\\' => bytes.next(),
            _ => Some(byte),
        });
    }
    let plain = PathBuf::from(std::ffi::OsString::from_vec(plain));
    match path(value) {
        written if written == plain => vec![plain],
        written => vec![written, plain],
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::mounts::parse_mount;
    use super::*;

    fn read(options: &str) -> Layers {
        let line = format!("89 27 0:40 / /m rw - overlay overlay rw,{options}");
        Layers::of(&parse_mount(line.as_bytes()).unwrap())
    }

    #[test]
    fn layers_are_read_as_the_kernel_shows_them() {
        let found = read(
            "lowerdir=a\\040b:l2\\134:x::data,lowerdir+=/p:q,upperdir=/up\\134\\054er,workdir=w,uuid=on",
        );
        let expected: [&[&str]; 5] = [
            &["a b"],
            &["l2\\:x", "l2:x"],
            &["data"],
            &["/p:q"],
            &["/up\\,er", "/up,er"],
        ];
        let expected = expected.map(|layer| layer.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(found.layers, expected);
        assert_eq!(found.workdir, Some(vec![PathBuf::from("w")]));
    }

    #[test]
    fn what_follows_the_parents_is_left() {
        let after = |path: &str| below_parents(Path::new(path));
        assert_eq!(after("../a/../b/c"), Some(PathBuf::from("b/c")));
        assert_eq!((after("./b/c"), after("..")), (None, None));
    }
}
