//! Files that share their blocks with an original until one of them is overwritten: reflinks (FICLONE,
//! ioctl_ficlone(2)), as XFS and btrfs make them. An image that is put back so costs no copying before a trial; the
//! trial pays, for each first overwrite takes a new place.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ioctl_ficlone};

use crate::creation::Unfinished;
use crate::error::LayoutError;
use crate::shape::DatabaseFiles;

/// What the trial clones: a whole number of any file system's blocks.
const TRIED_BYTES: usize = 64 << 10;

/// Why files in a directory cannot share their blocks, found out with two files without a name; `None` when they can.
pub fn reflink_refusal(directory: &Path) -> Option<String> {
    let tried = || -> io::Result<()> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let nameless = || rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR);
        let (mut original, clone) = (File::from(nameless()?), nameless()?);
        original.write_all(&vec![0x5a; TRIED_BYTES])?;
        ioctl_ficlone(&clone, &original)?;
        Ok(())
    };
    let error = tried().err()?;
    Some(format!(
        "files in {} cannot share blocks (reflink): {error}; XFS made with reflink=1 and btrfs can",
        directory.display()
    ))
}

/// Makes each file of `clones` of the one of the same name in `originals`; all lie on file systems.
pub(crate) fn make_clones(
    originals: &DatabaseFiles,
    clones: &DatabaseFiles,
    unfinished: &mut Unfinished,
) -> Result<(), LayoutError> {
    for (_, place) in clones.named() {
        let mut options = OpenOptions::new();
        let made = options
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(place.path());
        made.map_err(|error| LayoutError::system("make", place.path(), error))?;
        unfinished.add(place);
    }
    put_back_clones(originals, clones)
}

/// Gives each file of `clones` the blocks of the one in `originals`, whatever it had.
pub(crate) fn put_back_clones(
    originals: &DatabaseFiles,
    clones: &DatabaseFiles,
) -> Result<(), LayoutError> {
    for ((_, original), (_, clone)) in originals.named().into_iter().zip(clones.named()) {
        let (from, to) = (original.path(), clone.path());
        let source = File::open(from).map_err(|error| LayoutError::system("open", from, error))?;
        let target = OpenOptions::new().write(true).open(to);
        let target = target.map_err(|error| LayoutError::system("open", to, error))?;
        ioctl_ficlone(&target, &source)
            .map_err(|error| LayoutError::system("share blocks with the original of", to, error))?;
    }
    Ok(())
}
