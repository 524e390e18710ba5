//! Makes one tree of directories like another, changing as little as possible: blocks that differ are written in place,
//! so that files keep the extents they have; or files that were written to are made again, of the blocks of the other
//! tree's.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::hash::Hasher;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHasher;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, ioctl_ficlone, mkdirat,
    openat, statat, unlinkat,
};
use spindle_io::real::{FileError, RunPath, facts};

use super::TreeDirectories;
use super::device_node::DeviceNode;
use super::grouped_file::{InGroup, text_of};
use super::removal::remove_entry;
use crate::block_files::go_on_unless;
use crate::error::LayoutError;
use crate::open_directory::{entries, is_on_mount_of, open_within};
use crate::place::Place;

/// Files are compared in pieces of this size, and written back in blocks of the other.
pub(super) const PIECE_BYTES: usize = 1 << 20;
const BLOCK_BYTES: usize = 8192;
/// This many runs of a golden file are read at once.
const RUNS_AT_ONCE: usize = 64;

/// How long a file may still be written to by a server that has ended.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// What tells that a file was written to (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    pub fn of(status: &Stat) -> Stamp {
        Stamp {
            inode: status.st_ino,
            bytes: status.st_size,
            modified: (status.st_mtime, status.st_mtime_nsec),
            changed: (status.st_ctime, status.st_ctime_nsec),
        }
    }
}

/// How a file is made like another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// Blocks that differ are copied.
    Copying,
    /// It shares all blocks of the other (FICLONE, ioctl_ficlone(2)).
    Cloning,
}

/// The work of one restore.
pub(super) struct PutBack {
    by: By,
    /// Ends it.
    interrupted: Arc<AtomicBool>,
    /// The checksums of the files that are put back, as far as they are known.
    sums: Arc<GoldenSums>,
    /// What files were like that need no look if they still are.
    trusted: BTreeMap<PathBuf, Stamp>,
    /// What they are like now.
    pub stamps: BTreeMap<PathBuf, Stamp>,
    /// Files of the image that lie on raw devices.
    nodes: BTreeMap<PathBuf, DeviceNode>,
    /// Files of the image that lie in disk groups.
    grouped: BTreeMap<PathBuf, Place>,
    pub changed_blocks: u64,
    /// The first file that was not as it should be, or there to be, and its first such block.
    pub first_changed: Option<(PathBuf, u64)>,
    pub copied_bytes: u64,
    pub resident_pages: u64,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl PutBack {
    pub fn new(
        by: By,
        trusted: BTreeMap<PathBuf, Stamp>,
        sums: Arc<GoldenSums>,
        interrupted: Arc<AtomicBool>,
    ) -> PutBack {
        PutBack {
            by,
            interrupted,
            sums,
            trusted,
            stamps: BTreeMap::new(),
            nodes: BTreeMap::new(),
            grouped: BTreeMap::new(),
            changed_blocks: 0,
            first_changed: None,
            copied_bytes: 0,
            resident_pages: 0,
            ours: vec![0; PIECE_BYTES],
            theirs: vec![0; PIECE_BYTES],
        }
    }

    /// With files of the image that lie on raw devices and in disk groups.
    pub fn with_elsewhere(
        self,
        nodes: BTreeMap<PathBuf, DeviceNode>,
        grouped: BTreeMap<PathBuf, Place>,
    ) -> PutBack {
        PutBack {
            nodes,
            grouped,
            ..self
        }
    }

    /// Makes every directory of a tree like that of another.
    pub fn tree(
        &mut self,
        from: &TreeDirectories,
        to: &TreeDirectories,
    ) -> Result<(), LayoutError> {
        for ((_, from), (_, to)) in from.named().into_iter().zip(to.named()) {
            self.directory(from, to)?;
        }
        Ok(())
    }

    /// Makes the existing directory `to` like `from`.
    fn directory(&mut self, from: &Path, to: &Path) -> Result<(), LayoutError> {
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
            let way = RunPath::to(path);
            let opened = way.and_then(|way| way.open(options.read(true), flags));
            opened.map_err(|error| LayoutError::system("open", path, error))
        };
        let (golden, image) = (open(from)?, open(to)?);
        own_alike(&golden, &image, to)?;
        self.contents(&golden, from, &image, to)
    }

    fn contents(
        &mut self,
        golden: &File,
        from: &Path,
        image: &File,
        to: &Path,
    ) -> Result<(), LayoutError> {
        let wanted: BTreeSet<CString> = entries(golden, from)?.into_iter().collect();
        for name in entries(image, to)? {
            if !wanted.contains(&name) && kind_of(image, &name, to)? != Some(FileType::Symlink) {
                let path = join(to, &name);
                remove_entry(image, &name, &path)?;
                self.first_changed.get_or_insert((path, 0));
            }
        }
        for name in wanted {
            let (inner_from, inner_to) = (join(from, &name), join(to, &name));
            match kind_of(golden, &name, from)? {
                Some(FileType::Directory) => {
                    self.make_room(image, &name, &inner_to, FileType::Directory)?;
                    let opened = open_within(golden, &name, OFlags::DIRECTORY);
                    let inner = opened.map_err(|e| LayoutError::system("open", &inner_from, e))?;
                    let image = open_directory(image, &name, &inner_to)?;
                    own_alike(&inner, &image, &inner_to)?;
                    self.contents(&inner, &inner_from, &image, &inner_to)?;
                }
                Some(FileType::RegularFile) => {
                    let opened = open_within(golden, &name, OFlags::empty());
                    let inner = opened.map_err(|e| LayoutError::system("open", &inner_from, e))?;
                    if let Some(node) = self.nodes.get(&inner_to) {
                        let device = node.open(image, &name, &inner_to, &inner)?;
                        self.device(&inner, &inner_from, &device, &inner_to)?;
                        continue;
                    }
                    self.make_room(image, &name, &inner_to, FileType::RegularFile)?;
                    if let Some(place) = self.grouped.get(&inner_to).cloned() {
                        say_where(image, &name, &inner_to, &place, &inner)?;
                        self.in_group(&inner, &inner_from, &place, &inner_to)?;
                        continue;
                    }
                    self.file(&inner, &inner_from, image, &name, &inner_to)?;
                }
                // Links are the server's own; sockets and pipes of a server that has ended mean nothing.
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes what has the name and is something else.
    fn make_room(
        &mut self,
        image: &File,
        name: &CStr,
        path: &Path,
        wanted: FileType,
    ) -> Result<(), LayoutError> {
        match kind_of(image, name, path)? {
            Some(found) if found == FileType::Symlink && found != wanted => {
                unlinkat(image, name, AtFlags::empty())
                    .map_err(|error| LayoutError::system("remove", path, error))
            }
            Some(found) if found != wanted => remove_entry(image, name, path),
            _ => Ok(()),
        }
    }

    /// Waits until no process writes a file any longer. What a server that was killed had asked of io_uring comes after
    /// its end, and would change what is put back. Errors: [`FileError::InUse`], interrupted, or the system's.
    fn wait_until_written(
        &self,
        directory: &File,
        name: &CStr,
        path: &Path,
    ) -> Result<(), LayoutError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(directory, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(LayoutError::system("open", path, error)),
        };
        let began = Instant::now();
        while facts::is_open_to_write(&file) == Some(true) {
            go_on_unless(&self.interrupted)?;
            if began.elapsed() > PATIENCE {
                let path = path.to_path_buf();
                return Err(FileError::InUse { path }.into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn file(
        &mut self,
        golden: &File,
        from: &Path,
        image: &File,
        name: &CStr,
        to: &Path,
    ) -> Result<(), LayoutError> {
        let wrong = |error: std::io::Error| LayoutError::system("put back", to, error);
        let status = |file: &File| fstat(file).map_err(|error| wrong(error.into()));
        self.wait_until_written(image, name, to)?;
        let mut file = open_file(image, name, to)?;
        if self.trusted.get(to) != Some(&Stamp::of(&status(&file)?)) {
            match self.by {
                By::Copying => {
                    own_alike(golden, &file, to)?;
                    let bytes = status(golden)?.st_size.unsigned_abs();
                    let is_longer = status(&file)?.st_size.unsigned_abs() > bytes;
                    if is_longer {
                        file.set_len(bytes).map_err(wrong)?;
                        let block = bytes / BLOCK_BYTES as u64;
                        self.first_changed.get_or_insert((to.to_owned(), block));
                    }
                    facts::will_be_read_in_order(&file);
                    if self.blocks(golden, from, &file, to, bytes)? || is_longer {
                        file.sync_all().map_err(wrong)?;
                    }
                    facts::drop_cache(golden).map_err(wrong)?;
                }
                By::Cloning => {
                    // A new file: one that was longer, or that its server keeps from copying on write, would not take
                    // the blocks.
                    remove_entry(image, name, to)?;
                    file = open_file(image, name, to)?;
                    own_alike(golden, &file, to)?;
                    let cloned = ioctl_ficlone(&file, golden);
                    cloned.map_err(|error| {
                        LayoutError::system("share blocks with the original of", to, error)
                    })?;
                    file.sync_all().map_err(wrong)?;
                }
            }
        }
        self.resident_pages += facts::drop_cache(&file).map_err(wrong)?;
        self.stamps
            .insert(to.to_path_buf(), Stamp::of(&status(&file)?));
        Ok(())
    }

    /// Makes a device begin as a file does. It does not tell when it was written to, so that all of it is compared.
    fn device(
        &mut self,
        golden: &File,
        from: &Path,
        device: &File,
        to: &Path,
    ) -> Result<(), LayoutError> {
        let wrong = |error: std::io::Error| LayoutError::system("put back", to, error);
        let status = fstat(golden).map_err(|error| wrong(error.into()))?;
        facts::will_be_read_in_order(device);
        if self.blocks(golden, from, device, to, status.st_size.unsigned_abs())? {
            device.sync_all().map_err(wrong)?;
        }
        facts::drop_cache(golden).map_err(wrong)?;
        self.resident_pages += facts::drop_cache(device).map_err(wrong)?;
        Ok(())
    }

    /// Makes a file of a disk group begin as a file does; nor does it tell when it was written to.
    fn in_group(
        &mut self,
        golden: &File,
        from: &Path,
        place: &Place,
        to: &Path,
    ) -> Result<(), LayoutError> {
        let wrong = |error: std::io::Error| LayoutError::system("put back", to, error);
        let status = fstat(golden).map_err(|error| wrong(error.into()))?;
        let file = InGroup::open(place)?;
        self.blocks(golden, from, &file, to, status.st_size.unsigned_abs())?;
        file.close()?;
        facts::drop_cache(golden).map_err(wrong)?;
        Ok(())
    }

    /// Compares a file with a golden one and copies the blocks that differ; whether there were any.
    fn blocks(
        &mut self,
        golden: &File,
        from: &Path,
        image: &impl Blocks,
        to: &Path,
        bytes: u64,
    ) -> Result<bool, LayoutError> {
        let status = fstat(golden).map_err(|error| LayoutError::system("examine", from, error))?;
        let stamp = Stamp::of(&status);
        if let Some(sums) = self.sums.of(from, stamp) {
            let runs = self.runs_to_copy(&sums, image, to, bytes)?;
            self.copy(&runs, (golden, from), image, to)?;
            return Ok(!runs.is_empty());
        }
        let mut sums = Vec::new();
        let mut changed = false;
        facts::will_be_read_in_order(golden);
        for (offset, length) in pieces(bytes) {
            go_on_unless(&self.interrupted)?;
            let read = golden.read_exact_at(&mut self.ours[..length], offset);
            read.map_err(|error| LayoutError::system("read", from, error))?;
            let found = image.read_up_to(&mut self.theirs[..length], offset, to)?;
            let wanted: Vec<u64> = self.ours[..length]
                .chunks(BLOCK_BYTES)
                .map(sum_of)
                .collect();
            for run in differing_runs(&wanted, length, &self.theirs[..found]) {
                let at = offset + run.start as u64;
                image.write(&self.ours[run.clone()], at, to)?;
                self.count_copied(to, at, run.len());
                changed = true;
            }
            sums.extend(wanted);
        }
        self.sums.learn(from, stamp, sums);
        Ok(changed)
    }

    /// Where a file has not what the checksums want: places and lengths, each of a piece at most.
    fn runs_to_copy(
        &mut self,
        sums: &[u64],
        image: &impl Blocks,
        to: &Path,
        bytes: u64,
    ) -> Result<Vec<(u64, usize)>, LayoutError> {
        let mut runs = Vec::new();
        for ((offset, length), wanted) in pieces(bytes).zip(sums.chunks(PIECE_BYTES / BLOCK_BYTES))
        {
            go_on_unless(&self.interrupted)?;
            let found = image.read_up_to(&mut self.theirs[..length], offset, to)?;
            let differing = differing_runs(wanted, length, &self.theirs[..found]);
            runs.extend(
                differing
                    .iter()
                    .map(|run| (offset + run.start as u64, run.len())),
            );
        }
        Ok(runs)
    }

    /// Copies runs of the golden file. They are scattered, and are read many at a time: one by one, each would wait for
    /// the device alone.
    fn copy(
        &mut self,
        runs: &[(u64, usize)],
        (golden, from): (&File, &Path),
        image: &impl Blocks,
        to: &Path,
    ) -> Result<(), LayoutError> {
        for some in runs.chunks(RUNS_AT_ONCE) {
            go_on_unless(&self.interrupted)?;
            some.iter()
                .for_each(|&(at, length)| facts::will_be_read_soon(golden, at, length as u64));
            for &(at, length) in some {
                let read = golden.read_exact_at(&mut self.ours[..length], at);
                read.map_err(|error| LayoutError::system("read", from, error))?;
                image.write(&self.ours[..length], at, to)?;
                self.count_copied(to, at, length);
            }
        }
        Ok(())
    }

    fn count_copied(&mut self, to: &Path, at: u64, length: usize) {
        let block = at / BLOCK_BYTES as u64;
        self.first_changed
            .get_or_insert_with(|| (to.to_owned(), block));
        self.changed_blocks += length.div_ceil(BLOCK_BYTES) as u64;
        self.copied_bytes += length as u64;
    }
}

/// The pieces of a file in their order: where each begins, and its length.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..bytes)
        .step_by(PIECE_BYTES)
        .map(move |offset| (offset, PIECE_BYTES.min((bytes - offset) as usize)))
}

/// Runs of blocks, of `length` bytes in all, whose checksums are not as wanted in `theirs`, or that it has not.
fn differing_runs(wanted: &[u64], length: usize, theirs: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (start, wanted) in (0..length).step_by(BLOCK_BYTES).zip(wanted) {
        let end = (start + BLOCK_BYTES).min(length);
        if theirs.get(start..end).map(sum_of) != Some(*wanted) {
            match runs.last_mut() {
                Some(run) if run.end == start => run.end = end,
                _ => runs.push(start..end),
            }
        }
    }
    runs
}

/// The checksum of a block, of 64 bits: of all that a server could have left there instead, one block of 10^19 has the
/// same.
fn sum_of(block: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(block);
    hasher.finish()
}

/// What is known of the files of a golden tree.
#[derive(Debug, Default)]
pub(super) struct GoldenSums {
    files: Mutex<BTreeMap<PathBuf, FileSums>>,
}

/// The checksums of a file's blocks, and what the file was like when they were learnt.
#[derive(Debug)]
struct FileSums {
    learnt_of: Stamp,
    sums: Arc<[u64]>,
}

impl GoldenSums {
    /// The checksums of a file's blocks, if the file is as it was when they were learnt.
    fn of(&self, file: &Path, stamp: Stamp) -> Option<Arc<[u64]>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.get(file)?;
        (known.learnt_of == stamp).then(|| Arc::clone(&known.sums))
    }

    fn learn(&self, file: &Path, stamp: Stamp, sums: Vec<u64>) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = FileSums {
            learnt_of: stamp,
            sums: sums.into(),
        };
        files.insert(file.to_owned(), known);
    }
}

/// What is made like a golden file.
trait Blocks {
    /// Reads as much as there is; returns how much that was.
    fn read_up_to(&self, into: &mut [u8], offset: u64, path: &Path) -> Result<usize, LayoutError>;

    fn write(&self, bytes: &[u8], offset: u64, path: &Path) -> Result<(), LayoutError>;
}

impl Blocks for File {
    fn read_up_to(&self, into: &mut [u8], offset: u64, path: &Path) -> Result<usize, LayoutError> {
        let mut done = 0;
        while done < into.len() {
            let read = self.read_at(&mut into[done..], offset + done as u64);
            match read.map_err(|error| LayoutError::system("read", path, error))? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }

    fn write(&self, bytes: &[u8], offset: u64, path: &Path) -> Result<(), LayoutError> {
        let written = self.write_all_at(bytes, offset);
        written.map_err(|error| LayoutError::system("write", path, error))
    }
}

impl Blocks for InGroup {
    fn read_up_to(&self, into: &mut [u8], offset: u64, _: &Path) -> Result<usize, LayoutError> {
        self.read(into, offset)?;
        Ok(into.len())
    }

    fn write(&self, bytes: &[u8], offset: u64, _: &Path) -> Result<(), LayoutError> {
        Ok(InGroup::write(self, bytes, offset)?)
    }
}

/// Has the file of this name in an open directory say where it really is; it belongs to the owner of `like`.
fn say_where(
    directory: &File,
    name: &CStr,
    path: &Path,
    place: &Place,
    like: &File,
) -> Result<(), LayoutError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from);
    let file = opened.map_err(|error| LayoutError::system("open", path, error))?;
    own_alike(like, &file, path)?;
    Blocks::write(&file, text_of(place).as_bytes(), 0, path)
}

/// Opens a file for reading and writing, a new one when there is none.
fn open_file(directory: &File, name: &CStr, path: &Path) -> Result<File, LayoutError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from);
    let opened = opened.map_err(|error| LayoutError::system("open", path, error))?;
    not_mounted(opened, directory, path)
}

/// What was opened in a directory, unless something is mounted there, which the run did not do.
fn not_mounted(opened: File, directory: &File, path: &Path) -> Result<File, LayoutError> {
    match is_on_mount_of(&opened, directory) {
        Ok(true) => Ok(opened),
        Ok(false) => Err(LayoutError::system(
            "put back",
            path,
            rustix::io::Errno::XDEV,
        )),
        Err(error) => Err(LayoutError::system("examine", path, error)),
    }
}

fn open_directory(parent: &File, name: &CStr, path: &Path) -> Result<File, LayoutError> {
    match mkdirat(parent, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(LayoutError::system("make the directory", path, error)),
    }
    let opened = open_within(parent, name, OFlags::DIRECTORY);
    let opened = opened.map_err(|error| LayoutError::system("open", path, error))?;
    not_mounted(opened, parent, path)
}

/// Gives a file or directory the owner and the mode of another.
fn own_alike(like: &File, file: &File, path: &Path) -> Result<(), LayoutError> {
    let wrong = |error| LayoutError::system("change the owner of", path, error);
    let (wanted, found) = (fstat(like).map_err(wrong)?, fstat(file).map_err(wrong)?);
    if (wanted.st_uid, wanted.st_gid) != (found.st_uid, found.st_gid) {
        let (owner, group) = (Uid::from_raw(wanted.st_uid), Gid::from_raw(wanted.st_gid));
        fchown(file, Some(owner), Some(group)).map_err(wrong)?;
    }
    if wanted.st_mode != found.st_mode {
        fchmod(file, Mode::from_raw_mode(wanted.st_mode)).map_err(wrong)?;
    }
    Ok(())
}

/// What has this name; `None` when nothing does.
fn kind_of(directory: &File, name: &CStr, path: &Path) -> Result<Option<FileType>, LayoutError> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(FileType::from_raw_mode(status.st_mode))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(LayoutError::system("examine", &join(path, name), error)),
    }
}

fn join(path: &Path, name: &CStr) -> PathBuf {
    path.join(std::ffi::OsStr::from_bytes(name.to_bytes()))
}
