//! What the page cache holds of a trial's files: what is yet to be written, and what a direct case should not have
//! there.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use spindle_io::real::facts;

use spindle_result::NOT_DIRECT_HERE;

pub(super) const PAGE_BYTES: u64 = 4096;

/// Most pages of a block device in the page cache that need not be the database's. udev looks at each device that was
/// written to and closed, through the page cache, and what it read stays there while the next one holds the device
/// open: 261 pages with systemd 252.
const PAGES_READ_BY_UDEV_MAX: u64 = 512;

/// Pages of files in the page cache, without those that udev read of a block device; `None` when the system does not
/// say.
pub(super) fn cached_pages_of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Option<u64> {
    let pages_of = |path: &Path| {
        let file = File::open(path).ok()?;
        let is_device = file.metadata().ok()?.file_type().is_block_device();
        let pages = facts::resident_pages(&file).ok()?;
        Some(of_the_trial(pages, is_device))
    };
    files.into_iter().map(pages_of).sum()
}

fn of_the_trial(pages: u64, is_device: bool) -> u64 {
    if is_device && pages <= PAGES_READ_BY_UDEV_MAX {
        0
    } else {
        pages
    }
}

/// What is to be said of pages that a direct case left in the page cache.
pub(super) fn not_direct(cached_pages: Option<u64>) -> Option<String> {
    let pages = cached_pages.filter(|&pages| pages > 0)?;
    Some(format!(
        "{NOT_DIRECT_HERE}: {pages} pages of the data files were in the page cache after the trial"
    ))
}

/// Bytes of a file that are in the page cache only, or on their way.
pub(super) fn dirty_bytes_of(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    let to_the_end = 0;
    let state = facts::cached(&file, 0, to_the_end)?;
    Some((state.dirty_pages + state.writeback_pages) * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_datafiles_in_the_page_cache_are_seen_and_said() {
        // Beside the test program, because /tmp may be a tmpfs, which keeps every page.
        let program = std::env::current_exe().expect("path of the test");
        let directory = tempfile::tempdir_in(program.parent().expect("directory")).unwrap();
        let files = ["data", "undo"].map(|name| directory.path().join(name));
        let paths = || files.iter().map(|path| path.as_path());
        let drop_all = || {
            for path in &files {
                assert_eq!(facts::drop_cache(&File::open(path).unwrap()).unwrap(), 0);
            }
        };
        for path in &files {
            std::fs::write(path, vec![1; 1 << 20]).unwrap();
        }
        drop_all();
        assert_eq!(cached_pages_of(paths()), Some(0));
        assert_eq!(not_direct(Some(0)), None);

        for path in &files {
            std::fs::read(path).unwrap();
        }
        let pages_of_one = cached_pages_of(paths().take(1)).unwrap();
        assert!(pages_of_one > 0);
        assert_eq!(cached_pages_of(paths()), Some(2 * pages_of_one));
        assert_eq!(
            not_direct(Some(40)).as_deref(),
            Some(
                "not direct here: 40 pages of the data files were in the page cache after the trial"
            )
        );

        drop_all();
        assert_eq!(cached_pages_of(paths()), Some(0));
        assert_eq!(
            cached_pages_of([directory.path().join("none").as_path()]),
            None
        );
        assert_eq!(not_direct(None), None);
    }

    #[test]
    fn what_udev_reads_of_a_device_is_not_the_trials() {
        assert_eq!(of_the_trial(261, true), 0);
        assert_eq!(of_the_trial(261, false), 261);
        assert_eq!(of_the_trial(513, true), 513);
    }
}
