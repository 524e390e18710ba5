//! The disks of a group as a command opens them. To change a group, each is taken after a look at who uses it, under
//! whatever name, and looked at again when it is open; to look at one, each is opened for reading alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_io::BlockDevice;
use spindle_io::disk_group::{Disk, DiskGroupError};
use spindle_io::real::create::OdmCreation;
use spindle_io::real::facts::{self, DirectProbe};
use spindle_io::real::{Caching, FileError, Queue};
use spindle_layout::guard::{FileUses, Guard, Refusal, TakenDevice, Want};
use spindle_layout::steps::{empty_device, empty_file};
use spindle_layout::tool::Tools;
use spindle_system::{StoragePlace, SystemTree};

use super::{CommandError, NewDisks};

/// A disk holds metadata and a few allocation units at the least.
const LEAST_DEVICE_BYTES: u64 = 16 << 20;

fn caching_of(path: &Path) -> Result<Caching, FileError> {
    Ok(match facts::direct_probe(path)? {
        DirectProbe::Direct => Caching::Direct,
        DirectProbe::NotDirect { .. } => Caching::Buffered,
    })
}

fn storage_of(path: &Path) -> Option<StoragePlace> {
    StoragePlace::of(&path.metadata().ok()?)
}

/// Whether no two of the paths lead to one file or device. Those that lead nowhere are for others to judge.
pub(super) fn must_differ(paths: impl Iterator<Item = PathBuf>) -> Result<(), CommandError> {
    let mut known: Vec<(PathBuf, Option<StoragePlace>)> = Vec::new();
    for path in paths {
        let storage = storage_of(&path);
        let is_same = |(other, its): &&(PathBuf, Option<StoragePlace>)| {
            *other == path || storage.is_some() && *its == storage
        };
        if let Some((first, _)) = known.iter().find(is_same) {
            return Err(CommandError::GivenTwice {
                first: first.clone(),
                second: path,
            });
        }
        known.push((path, storage));
    }
    Ok(())
}

/// Disks held exclusively as long as these live.
#[derive(Default)]
pub(super) struct TakenDisks {
    pub(super) devices: Vec<Arc<dyn BlockDevice>>,
    alone: Vec<TakenDevice>,
    files: Vec<FileUses>,
    /// What could not be looked at.
    pub(super) unseen: Option<String>,
}

impl TakenDisks {
    /// Takes the disks of a group, whatever they hold.
    pub(super) fn take(paths: &[PathBuf]) -> Result<TakenDisks, CommandError> {
        must_differ(paths.iter().cloned())?;
        let mut taken = TakenDisks::default();
        for path in paths {
            taken.take_one(path, |guard| guard.claim_with_data(path), true)?;
        }
        Ok(taken)
    }

    /// Looks at a device or file and opens it: that which was looked at, and nothing else.
    fn take_one(
        &mut self,
        path: &Path,
        claim: impl FnOnce(&Guard<'_>) -> Result<TakenDevice, Refusal>,
        may_hold_data: bool,
    ) -> Result<Arc<dyn BlockDevice>, CommandError> {
        let (tree, tools) = (SystemTree::default(), Tools::new());
        let guard = Guard::new(&tree, &tools);
        let device = if matches!(storage_of(path), Some(StoragePlace::Device(_))) {
            let taken = claim(&guard)?;
            self.unseen.clone_from(&taken.state().unseen);
            // The device that was examined, whatever its path means by now.
            let known = taken.held().known();
            let caching = caching_of(known.path()).map_err(|error| error.of(path))?;
            let device = known.open(caching, Queue::sync())?;
            self.alone.push(taken);
            device
        } else {
            let looked = guard.look_at_file(path, may_hold_data)?;
            let device = looked.device.open(caching_of(path)?, Queue::sync())?;
            // A process that opened it meanwhile is seen now.
            let again = guard.look_at_file(path, may_hold_data)?;
            self.unseen.clone_from(&again.unseen);
            self.files.push(looked);
            device
        };
        let device: Arc<dyn BlockDevice> = Arc::new(device);
        self.devices.push(Arc::clone(&device));
        Ok(device)
    }

    /// Keeps others as long as these.
    pub(super) fn append(&mut self, others: TakenDisks) {
        self.devices.extend(others.devices);
        self.alone.extend(others.alone);
        self.files.extend(others.files);
        self.unseen = others.unseen;
    }
}

/// Disks that are read and not written to, even while others use them.
pub(super) struct SeenDisks {
    pub(super) devices: Vec<Arc<dyn BlockDevice>>,
    seen: Vec<(PathBuf, FileUses)>,
    /// What could not be looked at.
    pub(super) unseen: Option<String>,
}

impl SeenDisks {
    /// Opens the disks of a group for reading.
    pub(super) fn see(paths: &[PathBuf]) -> Result<SeenDisks, CommandError> {
        must_differ(paths.iter().cloned())?;
        let (tree, tools) = (SystemTree::default(), Tools::new());
        let guard = Guard::new(&tree, &tools);
        let mut disks = SeenDisks {
            devices: Vec::new(),
            seen: Vec::new(),
            unseen: None,
        };
        for path in paths {
            let seen = guard.see(path)?;
            // Where direct I/O may not be tried, the system's cache answers.
            let caching = caching_of(path).unwrap_or(Caching::Buffered);
            let device = seen.device.open_to_read(caching, Queue::sync())?;
            disks.devices.push(Arc::new(device));
            disks.unseen.clone_from(&seen.unseen);
            disks.seen.push((path.clone(), seen));
        }
        Ok(disks)
    }

    /// Errors: a disk is in use.
    pub(super) fn must_be_unused(&self) -> Result<(), CommandError> {
        let used = self.seen.iter().find(|(_, seen)| !seen.uses.is_empty());
        used.map_or(Ok(()), |(path, seen)| {
            let (path, uses) = (path.clone(), seen.uses.clone());
            Err(Refusal::InUse { path, uses }.into())
        })
    }

    /// Who uses which disk, in words.
    pub(super) fn users(&self) -> Option<String> {
        let mut words: Vec<String> = Vec::new();
        for (path, seen) in &self.seen {
            let of_disk = seen.uses.iter();
            words.extend(of_disk.map(|found| format!("{} ({found})", path.display())));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// What is found while others write may be of the moment.
    pub(super) fn explain(&self, error: DiskGroupError) -> CommandError {
        match self.users() {
            Some(users) => CommandError::WhileInUse {
                error: Box::new(error),
                users,
            },
            None => error.into(),
        }
    }
}

/// Disks that are to join, opened.
pub(super) struct NewlyOpened {
    pub(super) disks: Vec<Disk>,
    taken: TakenDisks,
    /// Files that were made and are no disks yet: they go with this.
    made: Vec<PathBuf>,
}

impl Drop for NewlyOpened {
    fn drop(&mut self) {
        for path in &self.made {
            // The error that led here is the one to tell.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A path, and the failure group behind it.
fn split(text: &str) -> (PathBuf, Option<String>) {
    match text.rsplit_once(':') {
        // Names below /dev/disk/by-path contain colons themselves.
        Some((path, failure_group)) if !Path::new(text).exists() => {
            (PathBuf::from(path), Some(failure_group.to_owned()))
        }
        _ => (PathBuf::from(text), None),
    }
}

impl NewDisks {
    /// The paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.new.iter().map(|text| split(text).0)
    }

    /// What may be erased, as the guard is told.
    fn erase_words(&self) -> Vec<String> {
        let erase = self.erase.iter();
        erase.map(|path| path.display().to_string()).collect()
    }

    fn may_hold_data(&self, path: &Path) -> bool {
        self.erase.iter().any(|named| named == path)
    }
}

fn want<'a>(path: &'a Path, erase: &'a [String]) -> Want<'a> {
    Want {
        path,
        least_bytes: LEAST_DEVICE_BYTES,
        erase,
    }
}

/// Makes a file of zeros.
fn make(path: &Path, bytes: u64, interrupted: &AtomicBool) -> Result<(), CommandError> {
    let mut creation = OdmCreation::begin(path, bytes)?;
    creation.fill(|_, piece| match interrupted.load(Ordering::Relaxed) {
        true => Err(CommandError::Interrupted),
        false => {
            piece.fill(0);
            Ok(())
        }
    })?;
    creation.commit()?;
    Ok(())
}

impl NewlyOpened {
    /// Opens devices and files that are to join, after a look at who uses them and what they hold.
    pub(super) fn open(
        group: &str,
        first: u16,
        new: &NewDisks,
        interrupted: &AtomicBool,
    ) -> Result<NewlyOpened, CommandError> {
        let mut opened = NewlyOpened {
            disks: Vec::new(),
            taken: TakenDisks::default(),
            made: Vec::new(),
        };
        for (number, text) in (first..).zip(&new.new) {
            let (path, failure_group) = split(text);
            if !path.exists() {
                let none = || CommandError::NoFile { path: path.clone() };
                make(&path, new.size.ok_or_else(none)?, interrupted)?;
                opened.made.push(path.clone());
            }
            opened.disks.push(Disk {
                name: format!("{group}_{number:04}"),
                failure_group,
                device: opened.taken.take_new(&path, new)?,
            });
        }
        Ok(opened)
    }

    /// Empties them of whatever they hold. To be called when all else is known to be right, just before the group is
    /// written.
    pub(super) fn empty(&mut self, new: &NewDisks) -> Result<(), CommandError> {
        let erase = new.erase_words();
        for taken in std::mem::take(&mut self.taken.alone) {
            let path = taken.path().to_owned();
            let emptied = empty_device(taken, &want(&path, &erase))?;
            self.taken.alone.push(emptied);
        }
        let may_hold_data = |file: &&FileUses| new.may_hold_data(file.device.called());
        for file in self.taken.files.iter().filter(may_hold_data) {
            empty_file(file)?;
        }
        Ok(())
    }

    /// They have joined.
    pub(super) fn keep(mut self) -> TakenDisks {
        self.made.clear();
        std::mem::take(&mut self.taken)
    }
}

impl TakenDisks {
    fn take_new(
        &mut self,
        path: &Path,
        new: &NewDisks,
    ) -> Result<Arc<dyn BlockDevice>, CommandError> {
        let erase = new.erase_words();
        let want = want(path, &erase);
        self.take_one(path, |guard| guard.claim(&want), new.may_hold_data(path))
    }
}
