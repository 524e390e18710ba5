//! The log of dm-log-writes: every write, flush and mark of a device, in the order in which the device promised them. A
//! write stands before the flush that made it durable, or, with FUA, where it completed; so whatever follows the last
//! flush before some entry, and is not FUA, may be lost, kept or torn if the power goes there.
//!
//! The format is that of Linux, Documentation/admin-guide/device-mapper/log-writes.rst and drivers/md/dm-log-writes.c.
//! All numbers are little-endian, every piece begins at a sector of the log device:
//!
//! | piece | bytes | holds |
//! | --- | --- | --- |
//! | superblock, sector 0 | 8 | magic `0x6a736677736872` |
//! | | 8 | version, 1 |
//! | | 8 | number of entries |
//! | | 4 | size of a sector, bytes |
//! | entry, from sector 1 on | 8 | first sector on the device |
//! | | 8 | number of sectors |
//! | | 8 | flags: FLUSH 1, FUA 2, DISCARD 4, MARK 8, METADATA 16 |
//! | | 8 | length of a mark, whose text follows in the same sector |
//! | data | | the sectors written; none for a discard |

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use spindle_io::real::facts;
use spindle_text::quantity::size;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;
const ENTRY_BYTES: usize = 32;

/// Sectors of one write at most: what Linux sends as one request is far smaller.
const WRITE_BYTES_MAX: u64 = 1 << 30;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file could not be read.
    #[error("reading the log of writes at byte {offset}: {source}")]
    System {
        /// Where.
        offset: u64,
        /// The system's own words.
        source: io::Error,
    },
    /// It is no log, or one that another kernel writes.
    #[error("this is not a log of dm-log-writes, version {VERSION}: {reason}")]
    NotALog {
        /// What it is instead.
        reason: String,
    },
    /// An entry makes no sense.
    #[error("entry {entry} of the log of writes is damaged: {reason}")]
    Damaged {
        /// Its number, from 0.
        entry: u64,
        /// What is wrong.
        reason: String,
    },
}

/// What an entry puts on the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// This many zeros, written or discarded: a discarded sector of a fresh virtual disk or a sparse file reads as
    /// zeros.
    Zeros(u64),
}

impl Content {
    /// The bytes written; a run of zeros is known for what it is.
    pub fn of(bytes: Vec<u8>) -> Content {
        if bytes.iter().all(|byte| *byte == 0) {
            Content::Zeros(bytes.len() as u64)
        } else {
            Content::Bytes(bytes.into())
        }
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::Zeros(bytes) => *bytes,
        }
    }
}

/// One request to the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Everything before it is on stable storage.
    pub is_flush: bool,
    /// Its own bytes are on stable storage.
    pub is_durable: bool,
    /// Where its bytes begin on the device.
    pub first_byte: u64,
    /// Its bytes; none for a flush or a mark.
    pub content: Content,
    /// The text of a mark.
    pub mark: Option<String>,
}

/// All requests to a device, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteLog {
    /// The requests.
    pub entries: Vec<LoggedRequest>,
}

impl WriteLog {
    /// Reads the log that begins at byte `first_byte` of a file or device.
    pub fn open(path: &Path, first_byte: u64) -> Result<WriteLog, LogError> {
        let wrong = |source| LogError::System {
            offset: first_byte,
            source,
        };
        let file = File::open(path).map_err(wrong)?;
        // The log is written past the page cache of its device, which may hold what was read there before: that stays
        // as long as the device is held.
        facts::drop_cache(&file).map_err(wrong)?;
        WriteLog::read(|offset, into| file.read_exact_at(into, first_byte + offset))
    }

    /// Reads a log; `read(offset, into)` gives its bytes.
    pub fn read(read: impl Fn(u64, &mut [u8]) -> io::Result<()>) -> Result<WriteLog, LogError> {
        let read = |offset, bytes: usize| {
            let mut into = vec![0; bytes];
            let done = read(offset, &mut into);
            done.map_err(|source| LogError::System { offset, source })?;
            Ok(into)
        };
        let superblock: Vec<u8> = read(0, 28)?;
        let (magic, version) = (number(&superblock, 0), number(&superblock, 8));
        let count = number(&superblock, 16);
        let sector_bytes = number(&superblock, 20) >> 32;
        if magic != MAGIC || version != VERSION {
            return Err(LogError::NotALog {
                reason: format!("it begins with {magic:#x}, version {version}"),
            });
        }
        if !sector_bytes.is_power_of_two() || !(512..=65536).contains(&sector_bytes) {
            return Err(LogError::NotALog {
                reason: format!("its sectors have {}", size(sector_bytes)),
            });
        }
        let mut entries = Vec::new();
        let mut at = sector_bytes;
        for entry in 0..count {
            let header = read(at, sector_bytes as usize)?;
            let header = Header::of(&header, sector_bytes, entry)?;
            at += sector_bytes;
            let content = if header.flags & DISCARD != 0 {
                Content::Zeros(header.bytes)
            } else {
                let bytes = read(at, header.bytes as usize)?;
                at += header.bytes;
                Content::of(bytes)
            };
            entries.push(LoggedRequest {
                is_flush: header.flags & FLUSH != 0,
                is_durable: header.flags & FUA != 0,
                first_byte: header.first_byte,
                content,
                mark: header.mark,
            });
        }
        Ok(WriteLog { entries })
    }

    /// The number of entries that flush the device: a log without any comes from a device without a write cache, and
    /// power cuts drawn from it would show nothing.
    pub fn flushes(&self) -> usize {
        let promises = |entry: &&LoggedRequest| entry.is_flush || entry.is_durable;
        self.entries.iter().filter(promises).count()
    }
}

struct Header {
    first_byte: u64,
    bytes: u64,
    flags: u64,
    mark: Option<String>,
}

impl Header {
    fn of(sector: &[u8], sector_bytes: u64, entry: u64) -> Result<Header, LogError> {
        let damaged = |reason| LogError::Damaged { entry, reason };
        let [first, sectors, flags, mark_bytes] =
            [0, 8, 16, 24].map(|offset| number(sector, offset));
        let bytes = sectors.checked_mul(sector_bytes);
        let first_byte = first.checked_mul(sector_bytes);
        let (Some(bytes), Some(first_byte)) = (bytes, first_byte) else {
            return Err(damaged(format!(
                "it begins at sector {first} and has {sectors}"
            )));
        };
        if bytes > WRITE_BYTES_MAX && flags & DISCARD == 0 {
            return Err(damaged(format!("it writes {bytes} bytes at once")));
        }
        let mark = match flags & MARK {
            0 => None,
            _ => {
                let text = sector[ENTRY_BYTES..].get(..mark_bytes as usize);
                let text = text.ok_or_else(|| damaged(format!("a mark of {mark_bytes} bytes")))?;
                let text = String::from_utf8_lossy(text);
                Some(text.trim_end_matches('\0').to_owned())
            }
        };
        Ok(Header {
            first_byte,
            bytes,
            flags,
            mark,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: usize = 512;

    /// A log as the kernel would write it: first sector, flags, mark, data.
    fn written(entries: &[(u64, u64, &str, &[u8])]) -> Vec<u8> {
        let mut log = vec![0; SECTOR];
        for (at, value) in [(0, MAGIC), (8, 1), (16, entries.len() as u64), (24, 512)] {
            log[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        for (first, flags, mark, data) in entries {
            let mut sector = vec![0; SECTOR];
            let sectors = (data.len() / SECTOR) as u64;
            for (field, value) in [*first, sectors, *flags, mark.len() as u64]
                .iter()
                .enumerate()
            {
                sector[field * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
            sector[ENTRY_BYTES..][..mark.len()].copy_from_slice(mark.as_bytes());
            log.extend(sector);
            if flags & DISCARD == 0 {
                log.extend(*data);
            }
        }
        log
    }

    fn read(log: &[u8]) -> Result<WriteLog, LogError> {
        WriteLog::read(|offset, into| {
            let from = log
                .get(offset as usize..)
                .and_then(|rest| rest.get(..into.len()));
            into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let (ones, zeros) = ([1; 1024], [0; 512]);
        let log = written(&[
            (8, 0, "", &ones),
            (0, FLUSH, "", &[]),
            (2, FUA, "", &zeros),
            (4, DISCARD, "", &ones),
            (0, MARK, "dm-log-writes-end", &[]),
        ]);
        let log = read(&log).unwrap();
        let entry = |is_flush, is_durable, first_byte, content| LoggedRequest {
            is_flush,
            is_durable,
            first_byte,
            content,
            mark: None,
        };
        assert_eq!(
            log.entries[..4],
            [
                entry(false, false, 4096, Content::Bytes(ones.into())),
                entry(true, false, 0, Content::Zeros(0)),
                entry(false, true, 1024, Content::Zeros(512)),
                entry(false, false, 2048, Content::Zeros(1024)),
            ]
        );
        assert_eq!(log.entries[4].mark.as_deref(), Some("dm-log-writes-end"));
        assert_eq!(log.flushes(), 2);
    }

    #[test]
    fn what_is_no_log_is_told() {
        let told = read(&[7; 4096]).unwrap_err().to_string();
        assert!(told.contains("0x707070707070707"), "{told}");
        let log = written(&[(0, 0, "", &[1; 512]), (1, 0, "", &[1; 512])]);
        let told = read(&log[..log.len() - 512]).unwrap_err().to_string();
        assert!(told.contains("at byte 2048"), "{told}");
        let mut huge = written(&[(0, 0, "", &[1; 512])]);
        huge[SECTOR + 8..SECTOR + 16].fill(0xFF);
        let told = read(&huge).unwrap_err().to_string();
        assert!(told.contains("entry 0"), "{told}");
        let mut mark = written(&[(0, MARK, "here", &[])]);
        mark[SECTOR + 24..SECTOR + 32].copy_from_slice(&500u64.to_le_bytes());
        assert!(read(&mark).unwrap_err().to_string().contains("mark"));
    }
}
