//! How a file's blocks lie on its file system: how many extents, and how many bytes were never written. A read of such
//! bytes is answered without any I/O, so a datafile must have none.
#![allow(unsafe_code)]

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use rustc_hash::FxHasher;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// What is known of a file's extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extents {
    /// Bytes of the file that are holes, allocated but never written, or not yet allocated (delayed allocation).
    pub unwritten_bytes: u64,
    /// Extents that hold written data; `None` when the file system does not tell.
    pub written_extents: Option<u64>,
    /// A number made of where on the device every written byte lies: another number means that some were moved. `None`
    /// when the file system does not tell.
    pub places: Option<u64>,
    /// How this was found out.
    pub seen_by: SeenBy,
}

/// The two ways of seeing a file's extents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenBy {
    /// The FIEMAP ioctl, which tells everything.
    Fiemap,
    /// lseek's SEEK_HOLE, for file systems without FIEMAP: unwritten bytes that are in the page cache go unseen.
    SeekHole,
}

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const EXTENTS_PER_CALL: usize = 256;

/// `struct fiemap` of linux/fiemap.h with room for extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_PER_CALL],
}

/// `_IOWR('f', 11, struct fiemap)`: direction 3, size 32 (without extents), type 'f'. linux/fs.h.
const FS_IOC_FIEMAP: u64 = 3 << 30 | 32 << 16 | (b'f' as u64) << 8 | 11;
const EXTENT_LAST: u32 = 0x1;
const EXTENT_DELALLOC: u32 = 0x4;
const EXTENT_UNWRITTEN: u32 = 0x800;

/// Looks at the extents of a regular file. Dirty pages are not written first: what is not on the device yet may count
/// as unwritten. Errors: the system's, for a file that is neither mapped nor sought.
pub fn extents(file: &File) -> io::Result<Extents> {
    extents_within(file, 0..u64::MAX)
}

/// As [`extents`], of these bytes of the file alone; what lies past its end does not count.
pub fn extents_within(file: &File, bytes: Range<u64>) -> io::Result<Extents> {
    let bytes = bytes.start..bytes.end.min(file.metadata()?.len());
    match by_fiemap(file, &bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => by_seek(file, &bytes),
        answer => Ok(answer?),
    }
}

fn by_fiemap(file: &File, bytes: &Range<u64>) -> Result<Extents, Errno> {
    let (mut written_bytes, mut written_extents, mut start) = (0, 0, bytes.start);
    let (mut places, mut shift) = (FxHasher::default(), None);
    while start < bytes.end {
        let mut map = Box::new(Fiemap {
            start,
            length: bytes.end - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: EXTENTS_PER_CALL as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS_PER_CALL],
        });
        // SAFETY: the structure has the kernel's layout and room for as many extents as it says.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut *map) };
        if answer != 0 {
            return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
        }
        let found = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_PER_CALL)];
        for extent in found
            .iter()
            .filter(|extent| extent.flags & (EXTENT_UNWRITTEN | EXTENT_DELALLOC) == 0)
        {
            // The first extent of a call may begin before its start, the last one end after what is asked for.
            let end = (extent.logical + extent.length).min(bytes.end);
            written_bytes += end.saturating_sub(extent.logical.max(start));
            written_extents += u64::from(extent.logical >= start || start == bytes.start);
            // Extents that continue where the last one ended count as one, however the file system divides them.
            let next_shift = Some(extent.physical.wrapping_sub(extent.logical));
            if shift != next_shift {
                shift = next_shift;
                (extent.logical, extent.physical).hash(&mut places);
            }
        }
        match found.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => start = last.logical + last.length,
            _ => break,
        }
    }
    Ok(Extents {
        unwritten_bytes: bytes.end.saturating_sub(bytes.start) - written_bytes,
        written_extents: Some(written_extents),
        places: Some(places.finish()),
        seen_by: SeenBy::Fiemap,
    })
}

fn by_seek(file: &File, bytes: &Range<u64>) -> io::Result<Extents> {
    let (mut written_bytes, mut position) = (0, bytes.start);
    while position < bytes.end {
        let data = match seek(file, SeekFrom::Data(position)) {
            Ok(data) => data,
            // No data from here to the end.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        position = seek(file, SeekFrom::Hole(data))?.min(bytes.end);
        written_bytes += position.saturating_sub(data);
    }
    Ok(Extents {
        unwritten_bytes: bytes.end.saturating_sub(bytes.start) - written_bytes,
        written_extents: None,
        places: None,
        seen_by: SeenBy::SeekHole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn moved_bytes_have_other_places() {
        let directory = tempfile::tempdir().unwrap();
        let make = |name| {
            let file = File::create_new(directory.path().join(name)).unwrap();
            file.write_all_at(&[1; 65536], 0).unwrap();
            file.sync_all().unwrap();
            file
        };
        let (one, other) = (make("one"), make("other"));
        let before = extents(&one).unwrap();
        if before.places.is_none() {
            return eprintln!("this file system has no FIEMAP");
        }
        one.write_all_at(&[2; 4096], 8192).unwrap();
        one.sync_all().unwrap();
        // File systems that copy on write move what is overwritten.
        let in_place = extents(&one).unwrap() == before;
        assert!(in_place || before.written_extents < extents(&one).unwrap().written_extents);
        assert_ne!(extents(&other).unwrap().places, before.places);
    }

    #[test]
    fn both_ways_see_a_hole() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let whole = 0..1 << 20;
        assert_eq!(by_seek(&file, &whole).unwrap().unwritten_bytes, 1 << 20);
        file.write_all_at(&[1; 65536], 131_072).unwrap();
        file.sync_all().unwrap();
        for (bytes, unwritten) in [
            (whole, (1 << 20) - 65536),
            (131_072..196_608, 0),
            (0..131_072, 131_072),
            (126_976..135_168, 4096),
        ] {
            assert_eq!(by_seek(&file, &bytes).unwrap().unwritten_bytes, unwritten);
            match by_fiemap(&file, &bytes) {
                Ok(seen) => assert_eq!(seen.unwritten_bytes, unwritten),
                Err(error) => eprintln!("this file system has no FIEMAP: {error}"),
            }
        }
        let past = extents_within(&file, 1 << 20..1 << 30).unwrap();
        assert_eq!(past.unwritten_bytes, 0);
    }
}
