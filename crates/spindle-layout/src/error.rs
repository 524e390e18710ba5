//! What can go wrong with the files of a run: each error says what, where, and what to do next.

use std::io;
use std::path::{Path, PathBuf};

use spindle_io::IoError;
use spindle_io::disk_group::DiskGroupError;
use spindle_io::real::FileError;
use spindle_text::quantity::{size_free, size_needed, two_sizes};

/// Why a directory, a golden copy or an image cannot be made, put back or removed.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A file cannot be opened, made or examined; also [`FileError::InUse`], when a process of an earlier trial still
    /// has it open.
    #[error(transparent)]
    File(#[from] FileError),
    /// A read or a write failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// Anything else the system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    System {
        /// What was tried, an English verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The system gives no memory to copy through.
    #[error("no memory to copy database files: {source}")]
    Memory {
        /// The system's answer.
        source: io::Error,
    },
    /// The name of a run is no name for a directory.
    #[error(
        "{run_id:?} cannot name a run: use 1 to 100 letters, digits, hyphens, underscores and dots, no dot first"
    )]
    BadRunId {
        /// The name.
        run_id: String,
    },
    /// The place for a data directory is no directory, or nothing may be written there.
    #[error(
        "cannot make files in {}: {source}; choose an existing directory that you may write in",
        directory.display()
    )]
    NotWritable {
        /// The place.
        directory: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is a data directory of this run already.
    #[error(
        "{} exists already: another run has it, or a killed one left it; resume that run, or remove the directory",
        path.display()
    )]
    DataDirectoryExists {
        /// The directory.
        path: PathBuf,
    },
    /// A directory does not bear the mark of the run that is to remove it.
    #[error("{} is left alone: {reason}; remove it yourself if it is not needed", path.display())]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// The run that made the directory is still going on.
    #[error("{} belongs to a run that is still going on (process {pid}): wait for it or stop it", path.display())]
    RunAlive {
        /// The directory.
        path: PathBuf,
        /// The process that made it.
        pid: u32,
    },
    /// The file system has too little space for what is to be made.
    #[error(
        "not enough space in {}: {} needed, {} free; free some, choose another path or a smaller database size",
        directory.display(), size_needed(*needed_bytes), size_free(*free_bytes)
    )]
    NotEnoughSpace {
        /// The place.
        directory: PathBuf,
        /// What is needed.
        needed_bytes: u64,
        /// What an ordinary user may still take.
        free_bytes: u64,
    },
    /// A disk group refuses.
    #[error(transparent)]
    DiskGroup(Box<DiskGroupError>),
    /// Raw devices have too little room for a file.
    #[error(
        "no room for {file} on raw devices: {} needed, {} free on {}, which has most (a file lies on one device): \
         choose larger devices, more datafiles or a smaller database size",
        size_needed(*needed_bytes), size_free(*free_bytes), device.display()
    )]
    NoRoomOnDevices {
        /// Name of the file: `data1`, ...
        file: String,
        /// Its size.
        needed_bytes: u64,
        /// The device with most room.
        device: PathBuf,
        /// That room.
        free_bytes: u64,
    },
    /// A file was given less room in a disk group than it takes.
    #[error(
        "{file} takes {} and was given {} in the disk group: choose a smaller database size",
        size_needed(*needed_bytes), size_free(*bytes)
    )]
    NoRoomInGroup {
        /// Name of the file.
        file: String,
        /// The room that it needs.
        needed_bytes: u64,
        /// What it was given.
        bytes: u64,
    },
    /// The person asked for it.
    #[error("interrupted")]
    Interrupted,
    /// A server cannot be given a raw device.
    #[error("{} cannot be given to a server as a raw device: {reason}", device.display())]
    NoDeviceNode {
        /// The device.
        device: PathBuf,
        /// Why not, and what to do.
        reason: String,
    },
    /// Sizes that no database has.
    #[error("these files make no database: {reason}")]
    BadShape {
        /// Which, and what is allowed.
        reason: String,
    },
    /// A loaded file has blocks that were never written: reading them takes no I/O, so they measure nothing.
    #[error(
        "{unwritten_bytes} of the {file_bytes} bytes of {file} were never written, and reading them would cost no I/O: \
         load the whole file"
    )]
    Unwritten {
        /// Name of the file: `data1`, ...
        file: String,
        /// Bytes in holes or in extents that were allocated only.
        unwritten_bytes: u64,
        /// Its size.
        file_bytes: u64,
    },
    /// A loaded file compresses well: a device or file system that compresses would do less I/O than the database asks
    /// for.
    #[error(
        "the data of {file} are not real: LZ4 packs them into {packed_percent} % of their size (at least \
         {least_percent} % is needed); load rows whose bytes do not repeat"
    )]
    Compressible {
        /// Name of the file.
        file: String,
        /// Packed size in percent of the size.
        packed_percent: u64,
        /// What is allowed.
        least_percent: u64,
    },
    /// The golden copy is no longer what was sealed.
    #[error(
        "block {block} of {file} in the golden copy has changed since it was sealed: something else wrote to it, or the \
         device does not keep its data; start the run again"
    )]
    GoldenDamaged {
        /// Name of the file.
        file: String,
        /// First such block met.
        block: u64,
    },
    /// A new image is not what was written to it.
    #[error(
        "{blocks} blocks of {file} are not what was just written there, the first of them block {block}: the device or \
         file system does not keep its data"
    )]
    CopyDiffers {
        /// Name of the first such file.
        file: String,
        /// First such block of the file.
        block: u64,
        /// Such blocks in all files.
        blocks: u64,
    },
    /// After a restore, blocks still differ from the golden copy: they were written behind the back of the list of
    /// changed blocks, or writing them did not take. They are left as they are; a restore without a list repairs them.
    #[error(
        "{blocks} blocks differ from the golden copy after the restore, the first of them block {block} of {file}: they \
         were written unseen, so the last trial's list of writes is not to be trusted; restore without it"
    )]
    RestoreMissed {
        /// Name of the first such file.
        file: String,
        /// First such block of the file.
        block: u64,
        /// Such blocks in all files.
        blocks: u64,
    },
    /// An image that was put back by sharing blocks, or with the volume beneath it, is not the golden copy.
    #[error(
        "{blocks} blocks differ from the golden copy after they were put back, the first of them block {block} of {file}: \
         what they are put back to has changed, or the device does not keep its data; start the run again, or with \
         restore = \"copy\""
    )]
    NotPutBack {
        /// Name of the first such file.
        file: String,
        /// First such block of the file.
        block: u64,
        /// Such blocks in all files.
        blocks: u64,
    },
    /// A file of an image has another size than it was made with, which no restore in place can mend.
    #[error("{file} has {}: the image must be made again", two_sizes(*found_bytes, *bytes).join(" instead of "))]
    SizeChanged {
        /// Name of the file.
        file: String,
        /// Size it was made with.
        bytes: u64,
        /// Size it has.
        found_bytes: u64,
    },
    /// A list of changed blocks names what the image does not have.
    #[error("the list of changed blocks names {what}, which the image does not have")]
    NoSuchBlock {
        /// A file, or blocks of a file.
        what: String,
    },
}

impl From<DiskGroupError> for LayoutError {
    fn from(error: DiskGroupError) -> LayoutError {
        LayoutError::DiskGroup(Box::new(error))
    }
}

impl LayoutError {
    /// Wraps the system's answer to `action` on `path`.
    pub(crate) fn system(
        action: &'static str,
        path: &Path,
        source: impl Into<io::Error>,
    ) -> LayoutError {
        LayoutError::System {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}
