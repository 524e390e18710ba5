//! The files of a database server. What files there are is the server's own affair, so a golden copy here is a tree of
//! directories, one for each kind of file, made by the server; an image is a copy of it, put back before every trial:
//! what differs is written in place, what is missing is made, what is new goes. Files keep owner and mode. Symbolic
//! links are left alone on both sides: they are the server's way to its other directories, which lie elsewhere in every
//! copy. Files of an image may lie on raw devices (`device_node`) or in a disk group (`grouped_file`), or share their
//! blocks with a copy beside them.

mod device_node;
mod grouped_file;
mod put_back;
mod removal;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use spindle_text::file_kind::FileKind;

use crate::error::LayoutError;
use crate::image::{RestoreMethod, RestoreReport, Verify};
use crate::known_device::KnownDevice;
use crate::place::Place;
use device_node::DeviceNode;
pub use device_node::RawFile;
pub use grouped_file::{GroupedFile, place_of};
use put_back::{By, GoldenSums, PutBack, Stamp};
pub(crate) use removal::{remove_tree, wait_until_left};

/// The directories of a server's database, by what they are for. All exist; a server that has nothing of a kind leaves
/// its directory empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TreeDirectories {
    /// Tables, and whatever has no separate directory.
    pub data: PathBuf,
    /// Indexes.
    pub index: PathBuf,
    /// Redo: the write-ahead log.
    pub redo: PathBuf,
    /// Undo.
    pub undo: PathBuf,
    /// Temporary files.
    pub temp: PathBuf,
    /// Files of `data` that are nodes of raw devices, with the device that each must lead to.
    pub devices: Vec<KnownDevice>,
}

impl TreeDirectories {
    /// Each kind's directory in the directory that `place` says for it.
    pub fn within(mut place: impl FnMut(FileKind) -> PathBuf) -> TreeDirectories {
        let mut of = |kind: FileKind| place(kind).join(kind.as_str());
        TreeDirectories {
            data: of(FileKind::Data),
            index: of(FileKind::Index),
            redo: of(FileKind::Redo),
            undo: of(FileKind::Undo),
            temp: of(FileKind::Temp),
            devices: Vec::new(),
        }
    }

    /// Every directory with its kind.
    pub fn named(&self) -> [(FileKind, &Path); 5] {
        [
            (FileKind::Data, &self.data),
            (FileKind::Index, &self.index),
            (FileKind::Redo, &self.redo),
            (FileKind::Undo, &self.undo),
            (FileKind::Temp, &self.temp),
        ]
    }

    /// Makes them, empty, for this user alone. Errors: one exists, or the system's.
    pub fn make(&self) -> Result<(), LayoutError> {
        for (_, path) in self.named() {
            let made = DirBuilder::new().mode(0o700).create(path);
            made.map_err(|error| LayoutError::system("make the directory", path, error))?;
        }
        Ok(())
    }

    /// Every regular file in them, and every device that one of them lies on, for looking at. Errors: the system's.
    pub fn files(&self) -> Result<Vec<PathBuf>, LayoutError> {
        let mut files = Vec::new();
        for (_, path) in self.named() {
            list(path, &mut files)?;
        }
        Ok(files)
    }

    /// Bytes of all their files. Errors: the system's.
    pub fn bytes(&self) -> Result<u64, LayoutError> {
        let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        Ok(self.files()?.iter().map(length).sum())
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), LayoutError> {
    let wrong = |error| LayoutError::system("list", directory, error);
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let kind = entry.file_type().map_err(wrong)?;
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else if kind.is_file() || kind.is_block_device() {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// A loaded database of a server, stopped in order: what every image is made from and put back to.
#[derive(Debug)]
pub struct GoldenTree {
    directories: TreeDirectories,
    bytes: u64,
    sums: Arc<GoldenSums>,
    interrupted: Arc<AtomicBool>,
}

impl GoldenTree {
    /// Keeps what is in these directories; the server has been stopped. Once `interrupted`, making and putting back
    /// images of it fails. Errors: the system's.
    pub fn seal(
        directories: TreeDirectories,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Arc<GoldenTree>, LayoutError> {
        for path in directories.files()? {
            let wrong = |error| LayoutError::system("flush", &path, error);
            let file = File::open(&path).map_err(wrong)?;
            file.sync_all().map_err(wrong)?;
        }
        let bytes = directories.bytes()?;
        Ok(Arc::new(GoldenTree {
            directories,
            bytes,
            sums: Arc::default(),
            interrupted: Arc::clone(interrupted),
        }))
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the files in the directories of its tables and indexes. Errors: the system's.
    pub fn data_bytes(&self) -> Result<u64, LayoutError> {
        let mut files = Vec::new();
        list(&self.directories.data, &mut files)?;
        list(&self.directories.index, &mut files)?;
        let bytes = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        Ok(files.iter().map(bytes).sum())
    }

    /// The devices of files that an image has on raw devices, by the files' paths there.
    fn nodes(&self, site: &mut TreeSite) -> Result<BTreeMap<PathBuf, DeviceNode>, LayoutError> {
        let mut nodes = BTreeMap::new();
        for file in &site.raw {
            let needed_bytes = length(&self.directories.data.join(&file.name))?;
            if needed_bytes > file.device.bytes {
                return Err(LayoutError::NoRoomOnDevices {
                    file: file.name.clone(),
                    needed_bytes,
                    device: file.device.called().to_owned(),
                    free_bytes: file.device.bytes,
                });
            }
            let node = DeviceNode::of(&file.device)?;
            let path = site.directories.data.join(&file.name);
            site.directories.devices.push(node.known(path.clone()));
            nodes.insert(path, node);
        }
        Ok(nodes)
    }

    /// Makes the files that an image has in disk groups; returns where they are, by their paths in the data directory.
    fn make_grouped(&self, site: &TreeSite) -> Result<BTreeMap<PathBuf, Place>, LayoutError> {
        let mut grouped = BTreeMap::new();
        for file in &site.grouped {
            let golden_file = self.directories.data.join(&file.name);
            let needed_bytes = length(&golden_file)?;
            if needed_bytes > file.bytes {
                return Err(LayoutError::NoRoomInGroup {
                    file: file.name.clone(),
                    needed_bytes,
                    bytes: file.bytes,
                });
            }
            let place = file.place(format!("{}{}", site.prefix, file.name));
            file.make(&place, &golden_file, &self.interrupted)?;
            grouped.insert(site.directories.data.join(&file.name), place);
        }
        Ok(grouped)
    }
}

/// Bytes of a golden file.
fn length(golden: &Path) -> Result<u64, LayoutError> {
    let found = std::fs::metadata(golden);
    let found = found.map_err(|error| LayoutError::system("examine", golden, error))?;
    Ok(found.len())
}

/// Where an image of a golden tree is to lie.
#[derive(Debug)]
pub struct TreeSite {
    /// Its directories, which exist and are empty.
    pub directories: TreeDirectories,
    /// Those of a copy that its files share their blocks with, if they do: existing, empty, on the same file systems.
    pub originals: Option<TreeDirectories>,
    /// Files of the data directory that lie on raw devices, each of which the caller has for itself: they are written
    /// over.
    pub raw: Vec<RawFile>,
    /// Files of the data directory that lie in disk groups, where they are made.
    pub grouped: Vec<GroupedFile>,
    /// Their names there begin so, as no others do.
    pub prefix: String,
}

impl From<TreeDirectories> for TreeSite {
    fn from(directories: TreeDirectories) -> TreeSite {
        TreeSite {
            directories,
            originals: None,
            raw: Vec::new(),
            grouped: Vec::new(),
            prefix: String::new(),
        }
    }
}

/// A copy of a golden tree that trials use.
pub struct TreeImage {
    golden: Arc<GoldenTree>,
    directories: TreeDirectories,
    /// What each file was like when it was last put back.
    stamps: Mutex<BTreeMap<PathBuf, Stamp>>,
    /// Its files that lie on raw devices.
    nodes: BTreeMap<PathBuf, DeviceNode>,
    /// Its files that lie in disk groups.
    grouped: BTreeMap<PathBuf, Place>,
    /// What its files share their blocks with, if they do.
    originals: Option<TreeDirectories>,
}

impl TreeImage {
    /// Copies the golden tree. Errors: [`LayoutError::NoRoomOnDevices`], [`LayoutError::NoDeviceNode`] and
    /// [`LayoutError::NoRoomInGroup`], before anything is written there; [`LayoutError::DiskGroup`]; those of a file
    /// system that cannot share blocks ([`crate::reflink_refusal`]); or the system's.
    pub fn provision(
        golden: &Arc<GoldenTree>,
        site: impl Into<TreeSite>,
    ) -> Result<TreeImage, LayoutError> {
        let mut site = site.into();
        let nodes = golden.nodes(&mut site)?;
        let grouped = golden.make_grouped(&site)?;
        let originals = match site.originals {
            Some(originals) => Some(TreeImage::provision(golden, originals)?.directories),
            None => None,
        };
        let image = TreeImage {
            golden: Arc::clone(golden),
            directories: site.directories,
            stamps: Mutex::default(),
            nodes,
            grouped,
            originals,
        };
        image.restore(Verify::Full)?;
        Ok(image)
    }

    /// Where it is.
    pub fn directories(&self) -> &TreeDirectories {
        &self.directories
    }

    /// Makes the image the golden tree again; a server that is still ending, as that of a killed trial, is waited for.
    /// With [`Verify::Full`] every block of every file is read and compared by a checksum of 64 bits; with
    /// [`Verify::Changed`] those of files that were written to since, as their times of change tell, and of raw
    /// devices. Files that share blocks with originals share all of them again when they were written to; they are
    /// compared with the golden tree only by [`Verify::Full`]. Nothing of the files is in the page cache afterwards, as
    /// far as the file system lets it go. Errors: [`LayoutError::NotPutBack`], or the system's.
    pub fn restore(&self, verify: Verify) -> Result<RestoreReport, LayoutError> {
        let started = Instant::now();
        for (_, directory) in self.directories.named() {
            wait_until_left(directory)?;
        }
        if let Some(originals) = &self.originals {
            let mut cloned = self.put_back(By::Cloning, self.stamps().clone());
            cloned.tree(originals, &self.directories)?;
            *self.stamps() = cloned.stamps;
            return self.verify(verify, RestoreMethod::Cloned, started);
        }
        let trusted = match verify {
            Verify::Full => BTreeMap::new(),
            _ => std::mem::take(&mut *self.stamps()),
        };
        let mut copied = self
            .put_back(By::Copying, trusted)
            .with_elsewhere(self.nodes.clone(), self.grouped.clone());
        copied.tree(&self.golden.directories, &self.directories)?;
        let report = report_of(&copied, RestoreMethod::Files, verify, started);
        *self.stamps() = copied.stamps;
        Ok(report)
    }

    /// Makes sure, as [`Self::restore`] does, that an image is the golden tree after the volumes beneath it were put
    /// back, which began at `started`: with [`Verify::Full`] by every block, else by the times of its files. Errors:
    /// [`LayoutError::NotPutBack`], or the system's.
    pub fn rolled_back(
        &self,
        verify: Verify,
        started: Instant,
    ) -> Result<RestoreReport, LayoutError> {
        self.verify(verify, RestoreMethod::RolledBack, started)
    }

    /// Looks whether the image is the golden tree; what differs is put right all the same.
    fn verify(
        &self,
        verify: Verify,
        method: RestoreMethod,
        started: Instant,
    ) -> Result<RestoreReport, LayoutError> {
        let began = Instant::now();
        let trusted = match verify {
            Verify::Full => BTreeMap::new(),
            _ => self.stamps().clone(),
        };
        let mut compared = self.put_back(By::Copying, trusted);
        compared.tree(&self.golden.directories, &self.directories)?;
        if let Some((file, block)) = compared.first_changed.take() {
            return Err(LayoutError::NotPutBack {
                file: file.display().to_string(),
                block,
                blocks: compared.changed_blocks,
            });
        }
        let mut report = report_of(&compared, method, verify, started);
        report.verify_us = began.elapsed().as_micros() as u64;
        *self.stamps() = compared.stamps;
        Ok(report)
    }

    fn put_back(&self, by: By, trusted: BTreeMap<PathBuf, Stamp>) -> PutBack {
        let golden = &self.golden;
        let (sums, interrupted) = (&golden.sums, &golden.interrupted);
        PutBack::new(by, trusted, Arc::clone(sums), Arc::clone(interrupted))
    }

    fn stamps(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Stamp>> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn report_of(
    work: &PutBack,
    method: RestoreMethod,
    verified: Verify,
    started: Instant,
) -> RestoreReport {
    RestoreReport {
        method,
        direct: false,
        changed_blocks: work.changed_blocks,
        copied_bytes: work.copied_bytes,
        verified,
        resident_pages: work.resident_pages,
        moved_files: Vec::new(),
        duration_us: started.elapsed().as_micros() as u64,
        verify_us: 0,
    }
}

#[cfg(test)]
mod tests;
