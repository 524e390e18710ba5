//! Which block device or file an open descriptor is of. A path may come to mean another device, and so may a number: a
//! loop device that was detached is given to another file. So code that has looked at a device opens it again with
//! `open_this`, and code that has not cannot open it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::error::FileError;

/// `BLKGETDISKSEQ`: `_IOR(0x12, 128, __u64)` (linux/fs.h).
const GET_DISK_SEQUENCE: u32 = 0x8008_1280;

/// A block device or a regular file, as long as the system runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageIdentity {
    /// A block device.
    Device {
        /// Its number's first part.
        major: u32,
        /// Its number's second part.
        minor: u32,
        /// Which device of this number it is (diskseq); `None` when that does not count or is not known (kernels before
        /// 5.15).
        sequence: Option<u64>,
    },
    /// A regular file.
    File {
        /// `st_dev` of its file system.
        file_system: u64,
        /// `st_ino`.
        inode: u64,
    },
}

impl StorageIdentity {
    /// What an open file is of. Errors: the system's; `InvalidInput` for what is neither a block device nor a regular
    /// file.
    pub fn of(file: &File) -> io::Result<StorageIdentity> {
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            let number = metadata.rdev();
            return Ok(StorageIdentity::Device {
                major: rustix::fs::major(number),
                minor: rustix::fs::minor(number),
                sequence: disk_sequence(file)?,
            });
        }
        if !metadata.is_file() {
            let reason = "it is neither a block device nor a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        Ok(StorageIdentity::File {
            file_system: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Whether `found` is this one: by the number alone where no sequence was noted.
    pub fn is(&self, found: StorageIdentity) -> bool {
        match (*self, found) {
            (
                StorageIdentity::Device {
                    major,
                    minor,
                    sequence: None,
                },
                StorageIdentity::Device {
                    major: found_major,
                    minor: found_minor,
                    ..
                },
            ) => (major, minor) == (found_major, found_minor),
            (noted, found) => noted == found,
        }
    }

    /// Whether an open file is of this one; people know it as `path`. Errors: [`FileError::Other`], or the system's.
    pub fn check(&self, file: &File, path: &Path) -> Result<(), FileError> {
        let found = StorageIdentity::of(file);
        let found = found.map_err(|error| FileError::system("examine", path, error))?;
        if self.is(found) {
            return Ok(());
        }
        Err(FileError::Other {
            path: path.to_owned(),
            noted: *self,
            found,
        })
    }
}

impl fmt::Display for StorageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageIdentity::Device {
                major,
                minor,
                sequence,
            } => {
                write!(f, "device {major}:{minor}")?;
                match sequence {
                    Some(sequence) => write!(f, " (diskseq {sequence})"),
                    None => Ok(()),
                }
            }
            StorageIdentity::File { file_system, inode } => {
                let (major, minor) = (
                    rustix::fs::major(*file_system),
                    rustix::fs::minor(*file_system),
                );
                write!(f, "file {inode} of file system {major}:{minor}")
            }
        }
    }
}

#[allow(unsafe_code)] // neither std nor rustix has this call
fn disk_sequence(device: &File) -> io::Result<Option<u64>> {
    let mut sequence = 0_u64;
    // SAFETY: the kernel writes eight bytes, and they are ours.
    let answer = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            GET_DISK_SEQUENCE as _,
            &raw mut sequence,
        )
    };
    if answer == 0 {
        return Ok(Some(sequence));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Kernels before 5.15 do not know the question.
        Some(libc::ENOTTY | libc::EINVAL) => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: StorageIdentity = StorageIdentity::Device {
        major: 7,
        minor: 1,
        sequence: Some(4),
    };

    #[test]
    fn a_device_that_came_back_under_its_number_is_another() {
        let later = StorageIdentity::Device {
            major: 7,
            minor: 1,
            sequence: Some(5),
        };
        assert!(OLD.is(OLD) && !OLD.is(later));
        let by_number = StorageIdentity::Device {
            major: 7,
            minor: 1,
            sequence: None,
        };
        assert!(by_number.is(later) && !later.is(by_number));
    }

    #[test]
    fn files_are_known_by_their_inode() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("a"), directory.path().join("b"));
        let file = File::create(&first).unwrap();
        let noted = StorageIdentity::of(&file).unwrap();
        std::fs::rename(&first, &second).unwrap();
        let moved = File::open(&second).unwrap();
        noted.check(&moved, &second).unwrap();
        let another = File::create(&first).unwrap();
        let told = noted.check(&another, &first).unwrap_err().to_string();
        assert!(told.contains("nothing was written"), "{told}");
        assert!(StorageIdentity::of(&File::open(directory.path()).unwrap()).is_err());
    }
}
