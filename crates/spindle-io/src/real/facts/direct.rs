//! Whether direct I/O is direct. [`direct_io`] asks the system what it requires; [`direct_probe`] does some and looks
//! whether the page cache was used after all, for file systems accept O_DIRECT and then fall back to buffering (tmpfs,
//! btrfs with checksums, some overlays).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::file_system;
use super::page_cache::{resident_pages, resident_pages_at_start};
use crate::arena::{Arena, Frame};
use crate::real::error::FileError;

/// What direct I/O on a file requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectIo {
    /// It is supported with these alignments.
    Aligned {
        /// Offsets and lengths are multiples of this.
        offset_alignment_bytes: u32,
        /// Memory addresses are multiples of this.
        memory_alignment_bytes: u32,
    },
    /// It is refused.
    NotSupported {
        /// Why, in words.
        reason: String,
    },
    /// The system does not say, and nothing could be tried.
    Unknown,
}

/// What came of trying direct I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectProbe {
    /// Blocks were written and read, and none was in the page cache afterwards.
    Direct,
    /// Direct I/O is refused, or the page cache was used.
    NotDirect {
        /// Why, in words.
        reason: String,
        /// The I/O is carried out all the same, through the page cache.
        is_taken: bool,
    },
}

/// What direct I/O on the file or block device at `path` requires: from statx (STATX_DIOALIGN, Linux 6.1), or by trying
/// reads. Errors: the file cannot be examined.
pub fn direct_io(path: &Path) -> Result<DirectIo, FileError> {
    let status = statx(
        CWD,
        path,
        AtFlags::empty(),
        StatxFlags::TYPE | StatxFlags::DIOALIGN,
    )
    .map_err(|error| FileError::system("examine", path, error))?;
    if status.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(try_reads(path));
    }
    Ok(
        match (status.stx_dio_offset_align, status.stx_dio_mem_align) {
            (0, _) | (_, 0) => DirectIo::NotSupported {
                reason: "the file system does no direct I/O on this file".to_owned(),
            },
            (offset_alignment_bytes, memory_alignment_bytes) => DirectIo::Aligned {
                offset_alignment_bytes,
                memory_alignment_bytes,
            },
        },
    )
}

/// The largest direct write that the device under `path` promises never to tear, when asked by RWF_ATOMIC: statx
/// (STATX_WRITE_ATOMIC, Linux 6.11), a power of two; 0 where nothing is promised. For a directory it is asked of a
/// nameless new file there. Errors: the file cannot be examined, or none can be made.
pub fn atomic_write_bytes(path: &Path) -> Result<u32, FileError> {
    let wanted = StatxFlags::from_bits_retain(libc::STATX_WRITE_ATOMIC);
    let wrong = |error| FileError::system("examine", path, error);
    let status = if path.is_dir() {
        let file = nameless_file(path).map_err(wrong)?;
        statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE | wanted)
    } else {
        statx(CWD, path, AtFlags::empty(), StatxFlags::TYPE | wanted)
    };
    let status = status.map_err(|error| wrong(error.into()))?;
    let is_known = status.stx_mask & wanted.bits() != 0;
    Ok(if is_known {
        status.stx_atomic_write_unit_max
    } else {
        0
    })
}

/// Looked at before it is opened: a pipe would wait for its other end, another device may do something.
pub(in crate::real) fn must_be_storage(path: &Path, called: &Path) -> Result<(), FileError> {
    let wrong = |error| FileError::system("open", called, error);
    let found = std::fs::metadata(path).map_err(wrong)?.file_type();
    if found.is_file() || found.is_block_device() {
        return Ok(());
    }
    let reason = "it is neither a file nor a block device";
    Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, reason)))
}

/// The alignment found by reading with less and less of it.
fn try_reads(path: &Path) -> DirectIo {
    if must_be_storage(path, path).is_err() {
        return DirectIo::Unknown;
    }
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return DirectIo::NotSupported {
                reason: "the file system refuses O_DIRECT".to_owned(),
            };
        }
        Err(_) => return DirectIo::Unknown,
    };
    let Ok(frame) = probe_frame(8192) else {
        return DirectIo::Unknown;
    };
    let mut memory = frame.try_write().expect("the frame is nobody else's");
    for bytes in [512u32, 4096] {
        let alignment = bytes as usize;
        // Away from the start, as far in memory as in the file, so that nothing is aligned by chance.
        if file
            .read_at(&mut memory[alignment..2 * alignment], bytes.into())
            .is_ok_and(|read| read == alignment)
        {
            return DirectIo::Aligned {
                offset_alignment_bytes: bytes,
                memory_alignment_bytes: bytes,
            };
        }
    }
    DirectIo::Unknown
}

const PROBE_BYTES: usize = 64 * 1024;
/// This many places are tried before the page cache counts as in the way.
const TRIES_MAX: u64 = 3;

/// Does direct I/O where `path` is and proves by residency that the page cache stayed out of it. For a directory or a
/// regular file the I/O goes to a nameless new file in the (same) directory; a block device is only read. Errors: no
/// file can be made or the device cannot be opened, or the page cache cannot be looked at.
pub fn direct_probe(path: &Path) -> Result<DirectProbe, FileError> {
    let wrong = |error| FileError::system("try direct I/O at", path, error);
    let kind = std::fs::metadata(path).map_err(wrong)?.file_type();
    let opened = if kind.is_block_device() {
        OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(path)
    } else {
        let directory = if kind.is_dir() { path } else { parent(path) };
        nameless_file(directory)
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            return Ok(not_direct(path, "refuses O_DIRECT".to_owned(), false));
        }
        Err(error) => return Err(wrong(error)),
    };
    let used = if kind.is_block_device() {
        pages_used_by_reading(&file)
    } else {
        pages_used_by_both(&file)
    };
    Ok(match used {
        Ok(0) => DirectProbe::Direct,
        Ok(pages) => not_direct(
            path,
            format!("accepts O_DIRECT but left {pages} pages of it in the page cache"),
            true,
        ),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            let what = "accepts O_DIRECT but refuses the I/O".to_owned();
            not_direct(path, what, false)
        }
        Err(error) => return Err(wrong(error)),
    })
}

fn not_direct(path: &Path, what: String, is_taken: bool) -> DirectProbe {
    let name =
        file_system(path).map_or_else(|_| "the file system".to_owned(), |facts| facts.type_name);
    DirectProbe::NotDirect {
        reason: format!("{name} {what}"),
        is_taken,
    }
}

/// Writes and reads an empty file; pages found in the cache after either. A file system may buffer a write now and then
/// (btrfs did the first one of a run), so one that leaves pages is followed by another, and the fewest count.
fn pages_used_by_both(file: &File) -> io::Result<u64> {
    let frame = probe_frame(PROBE_BYTES)?;
    let mut memory = frame.try_write().expect("the frame is nobody else's");
    memory.fill(0x5a);
    let mut fewest = u64::MAX;
    for number in 0..TRIES_MAX {
        let start = number * PROBE_BYTES as u64;
        let before = resident_pages(file)?;
        file.write_all_at(&memory, start)?;
        let after_write = resident_pages(file)?;
        file.read_exact_at(&mut memory, start)?;
        let most = after_write.max(resident_pages(file)?);
        fewest = fewest.min(most.saturating_sub(before));
        if fewest == 0 {
            break;
        }
    }
    Ok(fewest)
}

/// Reads near the start of a device; pages that came into the cache by it. Another program may read the device just
/// then, so a read that leaves pages is followed by one of the next place, and the fewest count.
fn pages_used_by_reading(file: &File) -> io::Result<u64> {
    let frame = probe_frame(PROBE_BYTES)?;
    let mut memory = frame.try_write().expect("the frame is nobody else's");
    let mut fewest = None;
    for number in 0..TRIES_MAX {
        let start = number * PROBE_BYTES as u64;
        let pages = || resident_pages_at_start(file, start + PROBE_BYTES as u64);
        let before = pages()?;
        match (file.read_exact_at(&mut memory, start), fewest) {
            (Ok(()), _) => {}
            // The device ends there.
            (Err(_), Some(fewest)) => return Ok(fewest),
            (Err(error), None) => return Err(error),
        }
        let used = pages()?.saturating_sub(before);
        fewest = Some(fewest.map_or(used, |fewest: u64| fewest.min(used)));
        if used == 0 {
            break;
        }
    }
    Ok(fewest.unwrap_or(0))
}

/// A frame aligned to its page.
fn probe_frame(bytes: usize) -> io::Result<Frame> {
    Ok(Arena::new(bytes, 1)?
        .allocate()
        .expect("a new arena has its frames"))
}

pub(in crate::real) fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A new file for direct I/O without a name, or with one that is removed at once.
fn nameless_file(directory: &Path) -> io::Result<File> {
    let open = |flags| {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_DIRECT | flags);
        options
    };
    match open(libc::O_TMPFILE).open(directory) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let path = directory.join(format!(".direct-probe-{}", std::process::id()));
            let file = open(0).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_of_a_bare_name_is_here() {
        assert_eq!(parent(Path::new("data.dbf")), Path::new("."));
        assert_eq!(parent(Path::new("/u01/data.dbf")), Path::new("/u01"));
    }

    #[test]
    fn a_pipe_is_not_opened_and_so_makes_nobody_wait() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(direct_io(&pipe).unwrap(), DirectIo::Unknown);
        let error = must_be_storage(&pipe, &pipe).unwrap_err().to_string();
        assert!(error.contains("neither a file nor"), "{error}");
        let null = Path::new("/dev/null");
        assert!(must_be_storage(null, null).is_err());
    }

    #[test]
    fn a_missing_place_is_named() {
        let error = direct_probe(Path::new("/no/such/place"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("/no/such/place"), "{error}");
    }
}
