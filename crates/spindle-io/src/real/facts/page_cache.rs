//! What the page cache holds of a file: cachestat(2) where the kernel has it (Linux 6.5), mincore(2) elsewhere, which
//! knows resident pages but not dirty ones.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;

use rustix::fs::{Advice, SeekFrom, fadvise, seek};

/// Pages of a range of a file in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheState {
    /// In the cache, dirty or not.
    pub cached_pages: u64,
    /// Changed and not yet on their way to the device.
    pub dirty_pages: u64,
    /// On their way to the device.
    pub writeback_pages: u64,
}

/// `struct cachestat_range` and `struct cachestat` of linux/mman.h.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The same number on every architecture (added after the tables were unified).
const SYS_CACHESTAT: libc::c_long = 451;

/// The page cache's state for `length` bytes from `offset` (0: to the end). `None` when the kernel does not tell:
/// before Linux 6.5, or for a file that is not the caller's to write.
pub fn cached(file: &File, offset: u64, length: u64) -> Option<CacheState> {
    let range = CachestatRange { offset, length };
    let mut state = Cachestat::default();
    // SAFETY: both structures have the kernel's layout and outlive the call.
    let answer = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut state,
            0u32,
        )
    };
    (answer == 0).then_some(CacheState {
        cached_pages: state.cached,
        dirty_pages: state.dirty,
        writeback_pages: state.writeback,
    })
}

/// Pages of the whole file, or device, in the page cache, by cachestat or else by mincore. Errors: the file cannot be
/// mapped.
pub fn resident_pages(file: &File) -> io::Result<u64> {
    match cached(file, 0, 0) {
        Some(state) => Ok(state.cached_pages),
        None => resident_by_mincore(file, u64::MAX),
    }
}

/// The same of its first `length` bytes.
pub(super) fn resident_pages_at_start(file: &File, length: u64) -> io::Result<u64> {
    match cached(file, 0, length) {
        Some(state) => Ok(state.cached_pages),
        None => resident_by_mincore(file, length),
    }
}

/// As much as is looked at in one piece: a whole number of pages of any size.
const MAPPED_BYTES: u64 = 1 << 30;

fn resident_by_mincore(file: &File, length: u64) -> io::Result<u64> {
    let length = length.min(size_bytes(file)?);
    let mut resident = 0;
    for offset in (0..length).step_by(MAPPED_BYTES as usize) {
        resident += resident_in_piece(file, offset, (length - offset).min(MAPPED_BYTES))?;
    }
    Ok(resident)
}

/// The size of a file or of a block device, which stat does not tell.
fn size_bytes(file: &File) -> io::Result<u64> {
    let position = seek(file, SeekFrom::Current(0));
    let Ok(position) = position else {
        // What cannot be sought holds no pages.
        return Ok(0);
    };
    let end = seek(file, SeekFrom::End(0))?;
    seek(file, SeekFrom::Start(position))?;
    Ok(end)
}

fn resident_in_piece(file: &File, offset: u64, length: u64) -> io::Result<u64> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    let page_bytes = rustix::param::page_size();
    // SAFETY: a new mapping at an address of the kernel's choice; it is looked at by mincore only, never read.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0u8; length.div_ceil(page_bytes)];
    // SAFETY: the range is the mapping just made, and the vector has one byte for each of its pages.
    let answer = match unsafe { libc::mincore(start, length, pages.as_mut_ptr()) } {
        0 => Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64),
        _ => Err(io::Error::last_os_error()),
    };
    // SAFETY: unmaps what was mapped above and is not shared.
    unsafe { libc::munmap(start, length) };
    answer
}

/// Writes what is dirty and drops the file's clean pages from the page cache; returns the pages that stayed all the
/// same (mapped or locked by someone). Errors: the sync failed, or the system cannot say what stayed.
pub fn drop_cache(file: &File) -> io::Result<u64> {
    file.sync_data()?;
    fadvise(file, 0, None, Advice::DontNeed)?;
    resident_pages(file)
}

/// Says that a file will be read from its beginning to its end, so that the system reads further ahead
/// (posix_fadvise(2)). It is advice: where it is not taken, nothing is lost but time.
pub fn will_be_read_in_order(file: &File) {
    let _ = fadvise(file, 0, None, Advice::Sequential);
}

/// Says that `length` bytes of a file from `offset` will be read soon: the system begins to, and the caller continues.
pub fn will_be_read_soon(file: &File, offset: u64, length: u64) {
    let _ = fadvise(file, offset, NonZeroU64::new(length), Advice::WillNeed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_ways_see_the_same_resident_pages() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 20 * rustix::param::page_size()])
            .unwrap();
        assert_eq!(resident_by_mincore(&file, u64::MAX).unwrap(), 20);
        let three = 3 * rustix::param::page_size() as u64;
        assert_eq!(resident_by_mincore(&file, three).unwrap(), 3);
        assert_eq!(resident_pages_at_start(&file, three).unwrap(), 3);
        match cached(&file, 0, 0) {
            Some(state) => assert_eq!(state.cached_pages, 20),
            None => eprintln!("this kernel has no cachestat"),
        }
        assert_eq!(
            resident_by_mincore(&File::open("/dev/null").unwrap(), u64::MAX).unwrap(),
            0
        );
    }
}
