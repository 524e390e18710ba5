//! Making database files through a file manager so that a failure leaves none: of the file that failed by the manager's
//! own care, of those made before it by [`Unfinished`].

use std::path::PathBuf;

use spindle_io::disk_group::{Striping, Template};
use spindle_io::real::create::{OdmCreation, PIECE_BYTES, create_plain};
use spindle_io::real::{Caching, FileError, Queue, block_on};
use spindle_io::{Arena, BlockDevice, Request, Submission};

use crate::error::LayoutError;
use crate::known_device::KnownDevice;
use crate::place::{Opening, Place};
use crate::shape::FileManager;

/// Files of disk groups are whole blocks of this size.
const GROUP_BLOCK_BYTES: u64 = 4096;

/// Makes one file of `bytes` bytes, each piece from `fill(offset, piece)`; a region exists already and is written.
/// Errors: `fill`'s first, or see [`FileError`]; no file is left then.
pub fn create_file(
    manager: FileManager,
    place: &Place,
    bytes: u64,
    fill: impl FnMut(u64, &mut [u8]) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    let path = match place {
        Place::File(path) => path,
        Place::Region { .. } => return block_on(write_region(place, bytes, fill)),
        Place::GroupFile {
            disks,
            file,
            fine_stripes,
            ..
        } => {
            let striping = match fine_stripes {
                true => Striping::Fine,
                false => Striping::Coarse,
            };
            return block_on(create_in_group(disks, file, bytes, striping, fill));
        }
    };
    match manager {
        FileManager::Plain => create_plain(path, bytes, fill),
        FileManager::Odm => {
            let mut creation = OdmCreation::begin(path, bytes)?;
            creation.fill(fill)?;
            creation.commit().map_err(FileError::into)
        }
    }
}

/// Writes a region of a raw device from front to back and makes it durable.
async fn write_region(
    place: &Place,
    bytes: u64,
    fill: impl FnMut(u64, &mut [u8]) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    let mut opening = Opening::new();
    let file = opening.open(place, Caching::Direct, Queue::sync(), None);
    write(&*file.await?.device, bytes, fill).await
}

/// Makes a file of a disk group, which appears when it is whole.
async fn create_in_group(
    disks: &[KnownDevice],
    file: &str,
    bytes: u64,
    striping: Striping,
    fill: impl FnMut(u64, &mut [u8]) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    let mut opening = Opening::new();
    let group = opening.group(disks, None, Queue::sync()).await?;
    let template = Template {
        striping,
        redundancy: None,
    };
    let whole_bytes = bytes.next_multiple_of(GROUP_BLOCK_BYTES);
    let creation = group.begin_file(file, whole_bytes, template).await?;
    write(&*creation.device(), bytes, fill).await?;
    creation.commit().await?;
    Ok(opening.close().await?)
}

/// Writes a device from front to back and makes it durable.
async fn write(
    device: &dyn BlockDevice,
    bytes: u64,
    mut fill: impl FnMut(u64, &mut [u8]) -> Result<(), LayoutError>,
) -> Result<(), LayoutError> {
    let new_frame = |bytes| {
        let arena = Arena::new(bytes, 1).map_err(|source| LayoutError::Memory { source })?;
        Ok::<_, LayoutError>(arena.allocate().expect("a new arena has its frame"))
    };
    let mut frame = new_frame(PIECE_BYTES)?;
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let length = (bytes - offset).min(PIECE_BYTES as u64) as usize;
        if length < PIECE_BYTES {
            frame = new_frame(length)?;
        }
        fill(offset, &mut frame.try_write().expect("nobody else has it"))?;
        let hold = frame.try_read_hold().expect("nobody writes it");
        let durable = false; // the flush at the end makes all of it durable at once
        let request = Request::write(offset, vec![hold], durable, Submission::Alone);
        device.submit(request).await.result?;
    }
    Ok(device.submit(Request::flush()).await.result?)
}

/// Files made so far, of several that make sense only together. Dropping it removes them.
#[derive(Default)]
pub(crate) struct Unfinished(Vec<PathBuf>);

impl Unfinished {
    /// One more was made.
    pub(crate) fn add(&mut self, place: &Place) {
        if let Place::File(path) = place {
            self.0.push(path.clone());
        }
    }

    /// All are made: they stay.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.0 {
            // The error that led here is the one to tell; the run's data directory tries again.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_odm_manager_hides_a_file_until_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data1.dbf");
        for manager in [FileManager::Plain, FileManager::Odm] {
            let made = create_file(manager, &Place::File(path.clone()), 3 << 20, |_, piece| {
                assert_eq!(path.exists(), manager == FileManager::Plain);
                piece.fill(7);
                Ok(())
            });
            if let Err(LayoutError::File(FileError::DirectRefused { .. })) = made {
                spindle_harness::skip("no direct I/O here");
                continue;
            }
            made.unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), vec![7; 3 << 20]);
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_source_that_fails_ends_the_writing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        std::fs::write(&path, vec![0xAA; 8 << 20]).unwrap();
        let place = Place::Region {
            device: KnownDevice::look(&path).unwrap(),
            first_byte: 0,
            bytes: 8 << 20,
        };
        let made = create_file(FileManager::Plain, &place, 8 << 20, |offset, piece| {
            piece.fill(7);
            match offset >> 20 {
                3 => Err(LayoutError::Interrupted),
                _ => Ok(()),
            }
        });
        match made {
            Err(LayoutError::Interrupted) => {}
            Err(LayoutError::File(FileError::DirectRefused { .. })) => {
                return spindle_harness::skip("no direct I/O here");
            }
            other => panic!("{other:?}"),
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes[3 << 20..].iter().all(|byte| *byte == 0xAA));
    }

    #[test]
    fn a_source_that_fails_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data1.dbf");
        for manager in [FileManager::Plain, FileManager::Odm] {
            let made =
                create_file(
                    manager,
                    &Place::File(path.clone()),
                    3 << 20,
                    |offset, _| match offset {
                        0 => Ok(()),
                        _ => Err(LayoutError::BadShape {
                            reason: format!("at {offset}"),
                        }),
                    },
                );
            match made {
                Err(LayoutError::BadShape { reason }) => assert_eq!(reason, "at 1048576"),
                Err(LayoutError::File(FileError::DirectRefused { .. })) => {}
                other => panic!("{other:?}"),
            }
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
