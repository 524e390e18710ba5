//! Files of a server's database that lie in a disk group. Where the golden tree has a regular file, the image then has
//! a small one that says where it is, for the server to open it there ([`place_of`]).

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_io::real::{Caching, Queue, block_on};
use spindle_io::{Arena, BlockDevice, Frame, IoError, Request, Submission};

use super::put_back::PIECE_BYTES;
use crate::block_files::go_on_unless;
use crate::creation::create_file;
use crate::error::LayoutError;
use crate::known_device::KnownDevice;
use crate::place::{Opening, Place};
use crate::shape::FileManager;

/// What a file that says where another is begins with. No database does.
const MARK: &str = "spindle-place\n";
/// Such a file is no longer than this.
const MARKED_BYTES_MAX: u64 = 1 << 20;

/// A file of a server's data directory that lies in a disk group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupedFile {
    /// Its name in the data directory.
    pub name: String,
    /// The group's disks.
    pub disks: Vec<KnownDevice>,
    /// Its size, whole mebibytes.
    pub bytes: u64,
    /// Whether it lies in stripes of 128 KiB, or else allocation unit by allocation unit.
    pub fine_stripes: bool,
    /// The failure group whose copies are read where there is one.
    pub preferred_failure_group: Option<String>,
}

impl GroupedFile {
    /// Where it is, under a name in the group that no other file has.
    pub(super) fn place(&self, name: String) -> Place {
        Place::GroupFile {
            disks: self.disks.clone(),
            file: name,
            bytes: self.bytes,
            fine_stripes: self.fine_stripes,
            preferred_failure_group: self.preferred_failure_group.clone(),
        }
    }

    /// Makes it in its group, with the bytes of a golden file. Errors: [`LayoutError::DiskGroup`], or the system's.
    pub(super) fn make(
        &self,
        place: &Place,
        golden: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(), LayoutError> {
        let wrong = |error| LayoutError::system("read", golden, error);
        let file = File::open(golden).map_err(wrong)?;
        let length = file.metadata().map_err(wrong)?.len();
        create_file(FileManager::Plain, place, self.bytes, |offset, piece| {
            go_on_unless(interrupted)?;
            let there = length.saturating_sub(offset).min(piece.len() as u64) as usize;
            piece[there..].fill(0);
            file.read_exact_at(&mut piece[..there], offset)
                .map_err(wrong)
        })
    }
}

/// What a file says that stands for one at this place.
pub(super) fn text_of(place: &Place) -> String {
    let place = serde_json::to_string(place).expect("a place is plain data");
    format!("{MARK}{place}\n")
}

/// Where the file at `path` really is, when it is one that only says so. Errors: the system's.
pub fn place_of(path: &Path) -> Result<Option<Place>, LayoutError> {
    let wrong = |error| LayoutError::system("read", path, error);
    let found = std::fs::symlink_metadata(path).map_err(wrong)?;
    if !found.is_file() || found.len() > MARKED_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(wrong)?;
    file.read_to_end(&mut bytes).map_err(wrong)?;
    let Some(place) = bytes.strip_prefix(MARK.as_bytes()) else {
        return Ok(None);
    };
    let place = serde_json::from_slice(place);
    place.map(Some).map_err(|error| wrong(error.into()))
}

/// A file of a disk group that is compared and put back, while its group is mounted for that.
pub(super) struct InGroup {
    opening: Opening,
    device: Arc<dyn BlockDevice>,
    frame: Frame,
}

impl InGroup {
    /// Errors: see [`Opening::open`].
    pub fn open(place: &Place) -> Result<InGroup, LayoutError> {
        let mut opening = Opening::new();
        let opened = block_on(opening.open(place, Caching::Direct, Queue::sync(), None))?;
        let arena = Arena::new(PIECE_BYTES, 1).map_err(|source| LayoutError::Memory { source })?;
        Ok(InGroup {
            opening,
            device: opened.device,
            frame: arena.allocate().expect("a new arena has its frame"),
        })
    }

    /// Reads from the beginning of a piece. Errors: the device's.
    pub fn read(&self, into: &mut [u8], offset: u64) -> Result<(), IoError> {
        let hold = self.frame.try_write_hold().expect("nobody else has it");
        self.submit(Request::read(offset, vec![hold], Submission::Alone))?;
        let bytes = self.frame.try_read().expect("the read has ended");
        into.copy_from_slice(&bytes[..into.len()]);
        Ok(())
    }

    /// Writes whole blocks of the group, of a piece at most. Errors: the device's.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<(), IoError> {
        let mut hold = self.frame.try_write_hold().expect("nobody else has it");
        hold[..bytes.len()].copy_from_slice(bytes);
        let from = vec![hold.share(bytes.len())];
        let durable = false; // `close` makes all of it durable at once
        self.submit(Request::write(offset, from, durable, Submission::Alone))
    }

    fn submit(&self, request: Request) -> Result<(), IoError> {
        // One I/O of a disk group may take several.
        let ended = self.device.submit(request).already();
        ended.unwrap_or_else(block_on).result
    }

    /// Makes what was written durable, and lets go of the group. Errors: the device's, or the group's.
    pub fn close(self) -> Result<(), LayoutError> {
        self.submit(Request::flush())?;
        drop(self.device);
        Ok(block_on(self.opening.close())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_say_so_are_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spindle.db");
        assert!(place_of(&path).is_err());
        std::fs::write(&path, "SQLite format 3\0 and so on").unwrap();
        assert_eq!(place_of(&path).unwrap(), None);
        let place = GroupedFile {
            name: "spindle.db".to_owned(),
            disks: ["/dev/a", "/dev/b"]
                .map(|path| KnownDevice::never_looked_at(path.into()))
                .to_vec(),
            bytes: 3 << 20,
            fine_stripes: true,
            preferred_failure_group: Some("left".to_owned()),
        }
        .place("1-spindle.db".to_owned());
        std::fs::write(&path, text_of(&place)).unwrap();
        assert_eq!(place_of(&path).unwrap(), Some(place));
        std::fs::write(&path, format!("{MARK}{{")).unwrap();
        assert!(place_of(&path).is_err());
    }
}
