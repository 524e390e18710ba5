//! What is measured: a block device or an existing file, which are only read, or a directory, in which a file without a
//! name is made and filled. Such a file goes with this process, whatever happens to it. A device is written only when
//! it was claimed for that. Every target is looked at before the first is opened for I/O, so that a mistake in the last
//! one touches none.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_core::RngCore;
use rustix::fs::{Mode, OFlags, SeekFrom};
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, FileDevice, Identified, Queue, StorageIdentity, facts};
use spindle_io::{Arena, Frame};
use spindle_layout::{KnownDevice, why_no_file};
use spindle_system::machine::DataPath;
use spindle_system::{Beneath, BlockDeviceNode, DeviceNumber, SystemTree};
use spindle_text::quantity::{size, size_free};
use spindle_text::remedy::with_remedy;

use crate::error::CalibrateError;
use crate::figures::TargetKind;

/// Less than this tells more of caches than of storage.
const BYTES_MIN: u64 = 8 << 20;
/// Pieces in which a file is filled: as long as the large reads.
const PIECE_BYTES: usize = 1 << 20;
/// What `st_blocks` counts in (stat(3type)).
const STAT_BLOCK_BYTES: u64 = 512;
/// Types of file systems that answer how much space a file has, and not where: FUSE and NFS (linux/magic.h).
const SPACE_ALONE: [u64; 2] = [0x6573_5546, 0x6969];
/// A file that is made takes at most this part of what is free.
const FREE_PART: u64 = 4;

/// The part of a file that a loop device stands for.
struct LoopRange {
    /// Device and inode.
    file: (u64, u64),
    path: PathBuf,
    /// Or else a block device that is no loop device.
    is_file: bool,
    begin_bytes: u64,
    end_bytes: u64,
}

/// What is known of the storage of a device that is only read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// All of it was written.
    Whole,
    /// Parts never were: what of which file, in words.
    InParts(String),
    /// It is unknown.
    Unknown,
}

/// Something to measure, looked at and not yet opened for I/O.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    kind: TargetKind,
    identity: Option<StorageIdentity>,
    place: DataPath,
}

impl Target {
    /// Looks at a path. Opens a file or device for reading at most, and changes nothing.
    ///
    /// # Errors
    /// [`CalibrateError::Target`]: it is not there, cannot be read, is too small, or has parts that were never written.
    /// [`CalibrateError::Refused`]: a directory takes no files.
    pub fn look(path: &Path) -> Result<Target, CalibrateError> {
        let wrong = |reason: String| CalibrateError::target(path, reason);
        let metadata = std::fs::metadata(path).map_err(|error| {
            wrong(format!(
                "{}. Name an existing block device, file or directory",
                with_remedy(&error)
            ))
        })?;
        let kind = if metadata.is_dir() {
            TargetKind::Directory
        } else if metadata.is_file() {
            TargetKind::File
        } else if metadata.file_type().is_block_device() {
            TargetKind::Device
        } else {
            return Err(wrong(
                "it is neither a block device nor a file nor a directory; name one of these"
                    .to_owned(),
            ));
        };
        let identity = match kind {
            TargetKind::Directory => {
                let refused = |why| {
                    CalibrateError::Refused(format!("{why}; name a directory that takes files"))
                };
                why_no_file(path).map_or(Ok(None), |why| Err(refused(why)))?
            }
            TargetKind::File | TargetKind::Device => Some(readable(path, kind)?),
        };
        Ok(Target::at(path, kind, identity))
    }

    /// A device of a layout, or the file that stands in for one. It may be written, and so needs no content.
    ///
    /// # Errors
    /// It cannot be opened for reading.
    pub(crate) fn of_layout(known: &KnownDevice) -> Result<Target, CalibrateError> {
        let file = known.open_file(OpenOptions::new().read(true))?;
        let kind = match file.metadata()?.is_file() {
            true => TargetKind::File,
            false => TargetKind::Device,
        };
        let identity = StorageIdentity::of(&file)?;
        Ok(Target::at(known.path(), kind, Some(identity)))
    }

    fn at(path: &Path, kind: TargetKind, identity: Option<StorageIdentity>) -> Target {
        Target {
            path: path.to_owned(),
            kind,
            identity,
            place: DataPath::capture(&SystemTree::default(), path),
        }
    }

    /// As written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Whether both are the same file or device, or the same directory.
    pub fn is_same(&self, other: &Target) -> bool {
        match (self.identity, other.identity) {
            (Some(own), Some(others)) => own.is(others),
            (None, None) => {
                // A bind mount gives one directory a second path.
                let inode = |path: &Path| {
                    let found = std::fs::metadata(path).ok()?;
                    Some((found.dev(), found.ino()))
                };
                inode(&self.path) == inode(&other.path)
            }
            _ => false,
        }
    }

    /// Whether its bytes are those of the other one, or lie on it: a partition, a loop device on a file, a file of a
    /// file system that is on the device.
    pub(crate) fn lies_on(&self, other: &Target, tree: &SystemTree) -> bool {
        let Ok(others) = std::fs::metadata(&other.path) else {
            return false;
        };
        let beneath = Beneath::of(tree, &self.path);
        let mut devices = beneath.devices();
        match other.kind {
            TargetKind::Directory => false,
            TargetKind::Device => {
                let number = Some(DeviceNumber::of_stat(others.rdev()));
                devices.any(|device| device.number == number || device.partition == number)
            }
            TargetKind::File => devices.any(|device| {
                let backing = device.backing_file.as_ref();
                let found = backing.and_then(|path| std::fs::metadata(path).ok());
                found
                    .is_some_and(|found| (found.dev(), found.ino()) == (others.dev(), others.ino()))
            }),
        }
    }

    /// The file that both stand for, as loop devices on one range of it.
    pub(crate) fn shares_file(&self, other: &Target, tree: &SystemTree) -> Option<PathBuf> {
        let (own, others) = (self.loop_range(tree)?, other.loop_range(tree)?);
        let is_shared = own.file == others.file
            && own.begin_bytes < others.end_bytes
            && others.begin_bytes < own.end_bytes;
        is_shared.then_some(own.path)
    }

    /// What of which file it stands for, when it is a loop device or a partition of one.
    fn loop_range(&self, tree: &SystemTree) -> Option<LoopRange> {
        let device = std::fs::metadata(&self.path).ok()?;
        let is_device = self.kind == TargetKind::Device;
        let number = is_device.then(|| DeviceNumber::of_stat(device.rdev()))?;
        let bytes = BlockDeviceNode::of(tree, number)?.size_bytes()?;
        loop_range(tree, number, 0..bytes)
    }

    /// Whether the storage of a loop device was written. What is in memory alone goes to the disk first: it has no
    /// place there yet.
    pub(crate) fn written(&self, tree: &SystemTree) -> Written {
        let Some(range) = self.loop_range(tree).filter(|range| range.is_file) else {
            return Written::Unknown;
        };
        let Ok(file) = File::open(&range.path) else {
            return Written::Unknown;
        };
        let _ = file.sync_all();
        match unwritten(&file, range.begin_bytes..range.end_bytes) {
            Some(unwritten) => {
                let path = range.path.display();
                Written::InParts(format!("it is backed by {path}: {unwritten}"))
            }
            None => Written::Whole,
        }
    }

    /// Makes it ready: a directory gets its file, which is filled as `filling` says; so is a device that was `claimed`
    /// to be written.
    ///
    /// # Errors
    /// It cannot be made or filled, there is no room, or what was looked at is another one now.
    pub(crate) fn make(
        self,
        claimed: Option<&KnownDevice>,
        filling: Filling<'_>,
    ) -> Result<ReadyTarget, CalibrateError> {
        let wrong = |source| CalibrateError::Make {
            path: self.path.clone(),
            source,
        };
        let (known, file, bytes) = match (self.kind, claimed) {
            (TargetKind::Directory, _) => {
                let bytes = self.room(filling.bytes)?;
                let file = nameless(&self.path).map_err(wrong)?;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let known = KnownDevice::of(&file, path.into(), &self.path)?;
                let bytes = fill(&file, &Filling { bytes, ..filling }).map_err(wrong)?;
                (known, Some(file), bytes)
            }
            (TargetKind::Device | TargetKind::File, Some(known)) => {
                let file = known.open_file(OpenOptions::new().read(true).write(true))?;
                let bytes = self.must_be(&file)?.min(filling.bytes);
                let bytes = fill(&file, &Filling { bytes, ..filling }).map_err(wrong)?;
                (known.clone(), Some(file), bytes)
            }
            (TargetKind::File | TargetKind::Device, _) => {
                let known = KnownDevice::look(&self.path)?;
                let file = known.open_file(OpenOptions::new().read(true))?;
                let bytes = self.must_be(&file)?;
                (known, None, bytes)
            }
        };
        CalibrateError::if_asked(filling.interrupted)?;
        Ok(ReadyTarget {
            target: self,
            known,
            file,
            bytes,
        })
    }

    /// The size of an open file or device, which must be the one that was looked at.
    fn must_be(&self, file: &File) -> Result<u64, CalibrateError> {
        if self.identity != Some(StorageIdentity::of(file)?) {
            return Err(CalibrateError::target(
                &self.path,
                "it changed since it was checked a moment ago",
            ));
        }
        let end = rustix::fs::seek(file, SeekFrom::End(0));
        end.map_err(|error| CalibrateError::System(error.into()))
    }

    /// How large a file may be here.
    ///
    /// # Errors
    /// [`CalibrateError::Target`]: there is too little room for any.
    pub(crate) fn room(&self, size_bytes: u64) -> Result<u64, CalibrateError> {
        let file_system = self.place.file_system.as_ref();
        if file_system.is_some_and(|found| found.kind == "ramfs") {
            // It has no end but that of memory, and says that nothing is free.
            return Ok(BYTES_MIN);
        }
        let free = rustix::fs::statvfs(&self.path)
            .map(|found| found.f_bavail.saturating_mul(found.f_frsize))
            .unwrap_or(0);
        let bytes = size_bytes.min(free / FREE_PART) / PIECE_BYTES as u64 * PIECE_BYTES as u64;
        if bytes < BYTES_MIN {
            return Err(CalibrateError::target(
                &self.path,
                format!(
                    "only {} are free; a file to measure takes a quarter of that at most, and {} at least. Name a directory with \
                     {} free or more",
                    size_free(free),
                    size(BYTES_MIN),
                    size(FREE_PART * BYTES_MIN)
                ),
            ));
        }
        Ok(bytes)
    }
}

/// How what may be written is filled before it is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling<'a> {
    /// At most this much,
    pub(crate) bytes: u64,
    /// as far as it comes in this time.
    pub(crate) time: Duration,
    pub(crate) caching: Caching,
    pub(crate) interrupted: &'a AtomicBool,
}

/// A target that is ready to be measured. A file that was made goes with it.
#[derive(Debug)]
pub struct ReadyTarget {
    target: Target,
    known: KnownDevice,
    /// What may be written: the file that was made, or a device that was claimed.
    file: Option<File>,
    bytes: u64,
}

impl ReadyTarget {
    /// What it was made of.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Bytes that are measured.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it may be written: a file was made for it, or it was claimed.
    pub(crate) fn is_writable(&self) -> bool {
        self.file.is_some()
    }

    /// The file or device, if it may be written.
    pub(crate) fn writable(&self) -> Option<&File> {
        self.file.as_ref()
    }

    /// The device whose counters tell what reached it; `None` where the kernel names none.
    pub(crate) fn device(&self) -> Option<DeviceNumber> {
        Some(self.target.place.device.as_ref()?.number)
    }

    /// The name of that device.
    pub(crate) fn device_name(&self) -> Option<String> {
        Some(self.target.place.device.as_ref()?.name.clone())
    }

    /// Why none is known; `None` when one is.
    pub(crate) fn device_unknown_because(&self) -> Option<String> {
        self.target.place.device_unknown_because.clone()
    }

    /// The file system's type; `None` for a device.
    pub(crate) fn file_system(&self) -> Option<String> {
        let place = self.target.place.file_system.as_ref();
        place.map(|found| found.kind.clone())
    }

    /// Opens it for reading only.
    ///
    /// # Errors
    /// The file system refuses direct I/O, or see [`KnownDevice::open_to_read`].
    pub(crate) fn to_read(
        &self,
        caching: Caching,
        queue: Queue,
    ) -> Result<FileDevice, CalibrateError> {
        Ok(self.known.open_to_read(caching, queue)?)
    }

    /// Opens it once for all threads, for direct reads and writes.
    ///
    /// # Errors
    /// It may not be written, or see [`KnownDevice::identify`].
    pub(crate) fn to_mix(&self) -> Result<Identified, CalibrateError> {
        match self.file {
            Some(_) => Ok(self.known.identify()?),
            None => Err(CalibrateError::target(
                self.target.path(),
                "it is only read",
            )),
        }
    }

    /// Opens what may be written; `None` for everything else, which is never written.
    ///
    /// # Errors
    /// See [`KnownDevice::open`].
    pub(crate) fn to_write(&self, caching: Caching) -> Result<Option<FileDevice>, CalibrateError> {
        match self.file {
            Some(_) => Ok(Some(self.known.open(caching, Queue::sync())?)),
            None => Ok(None),
        }
    }

    /// Drops a file that was made from the page cache. What is only read keeps its pages: others may count on them.
    pub(crate) fn forget(&self) {
        if let (TargetKind::Directory, Some(file)) = (self.target.kind, &self.file) {
            // A file system that cannot do it reads from a warm cache, which is told.
            let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }

    /// Share of its pages in the page cache, 0 to 1; `None` where the system does not tell.
    pub(crate) fn resident_share(&self) -> Option<f64> {
        let file = self.known.open_file(OpenOptions::new().read(true)).ok()?;
        let pages = facts::resident_pages(&file).ok()?;
        let bytes = pages * rustix::param::page_size() as u64;
        Some((bytes as f64 / self.bytes as f64).min(1.0))
    }
}

/// What of which file stands for these bytes of a device, through loop devices on loop devices; `None` for what is no
/// loop device.
fn loop_range(tree: &SystemTree, number: DeviceNumber, bytes: Range<u64>) -> Option<LoopRange> {
    let node = BlockDeviceNode::of(tree, number)?;
    let disk = node.disk();
    let backing = disk.as_ref().unwrap_or(&node).loop_backing()?;
    let found = std::fs::metadata(&backing.file).ok()?;
    let from_bytes = backing.offset_bytes + disk.and(node.start_bytes()).unwrap_or(0);
    let begin_bytes = bytes.start.saturating_add(from_bytes);
    let end_bytes = bytes.end.saturating_add(from_bytes);
    let is_device = found.file_type().is_block_device();
    let beneath = is_device.then(|| DeviceNumber::of_stat(found.rdev()));
    let beneath = beneath.and_then(|number| loop_range(tree, number, begin_bytes..end_bytes));
    Some(beneath.unwrap_or(LoopRange {
        file: (found.dev(), found.ino()),
        path: backing.file,
        is_file: found.is_file(),
        begin_bytes,
        end_bytes,
    }))
}

/// Whether a file or device can be read and is worth it.
fn readable(path: &Path, kind: TargetKind) -> Result<StorageIdentity, CalibrateError> {
    let wrong = |reason: String| CalibrateError::target(path, reason);
    let file = File::open(path)
        .map_err(|error| wrong(format!("it cannot be read: {}", with_remedy(&error))))?;
    let identity = StorageIdentity::of(&file).map_err(|error| wrong(error.to_string()))?;
    let bytes =
        rustix::fs::seek(&file, SeekFrom::End(0)).map_err(|error| wrong(error.to_string()))?;
    if bytes < BYTES_MIN {
        let instead = match kind {
            TargetKind::Device => "name a larger device, or a directory, in which a file is made",
            _ => "name its directory, and a file is made there",
        };
        return Err(wrong(format!(
            "it has {}, and {} are needed at least; {instead}",
            size_free(bytes),
            size(BYTES_MIN)
        )));
    }
    if kind == TargetKind::File {
        // What was written a moment ago has no place on the device yet.
        let _ = file.sync_all();
    }
    if kind == TargetKind::File
        && let Some(unwritten) = unwritten(&file, 0..bytes)
    {
        return Err(wrong(format!(
            "{unwritten}. Write it as a whole, or name its directory, and a file is made there"
        )));
    }
    Ok(identity)
}

/// What of these bytes of a file was never written, in words; `None` when all of it was, as far as the file system
/// tells. FUSE and NFS do not tell where: there, a file that has less space than content is not trusted.
fn unwritten(file: &File, bytes: Range<u64>) -> Option<String> {
    let found = rustix::fs::fstatfs(file).ok()?;
    let tells_where = !SPACE_ALONE.contains(&(found.f_type as u64));
    if let (true, Ok(extents)) = (tells_where, facts::extents_within(file, bytes)) {
        let never = extents.unwritten_bytes;
        return (never > 0).then(|| {
            format!(
                "{} of the file were never written, and reads of these reach no device",
                size(never)
            )
        });
    }
    let metadata = file.metadata().ok()?;
    let (bytes, space) = (metadata.len(), metadata.blocks() * STAT_BLOCK_BYTES);
    (space < bytes).then(|| {
        format!(
            "the file has {} of space for {} of content. Parts were never written, or are compressed, and reads of these \
             reach no device",
            size(space),
            size(bytes)
        )
    })
}

/// A file without a name, or one that loses its name at once where the file system has no other.
pub(crate) fn nameless(directory: &Path) -> std::io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR) => {
            let name = directory.join(format!(".spindle-calibrate-{}", std::process::id()));
            let file = rustix::fs::open(&name, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
            rustix::fs::unlink(&name)?;
            Ok(File::from(file))
        }
        Err(error) => Err(error.into()),
    }
}

/// Fills a file or device from its beginning until it has its bytes or the time is over, with bytes that do not
/// compress, and makes them durable. Returns how many.
fn fill(file: &File, filling: &Filling<'_>) -> std::io::Result<u64> {
    let began = Instant::now();
    let arena = Arena::new(PIECE_BYTES, 1)?;
    let frame: Frame = arena.allocate().expect("a new arena has its frame");
    let mut piece = frame.try_write().expect("the frame is nobody else's");
    let mut rng = seeded_rng(0x5eed, u64::from(std::process::id()));
    // Past the page cache where that can be: what is filled is not to lie there when it is read.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path);
    let to = match (&direct, filling.caching) {
        (Ok(direct), Caching::Direct) => direct,
        _ => file,
    };
    let bytes = filling.bytes / PIECE_BYTES as u64 * PIECE_BYTES as u64;
    let mut filled = 0;
    while filled < bytes && (filled < BYTES_MIN || began.elapsed() < filling.time) {
        if filling.interrupted.load(Ordering::Relaxed) {
            break;
        }
        rng.fill_bytes(&mut piece);
        to.write_all_at(&piece, filled)?;
        filled += PIECE_BYTES as u64;
    }
    file.sync_all()?;
    Ok(filled)
}
