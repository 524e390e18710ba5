//! The control file: which database this is, where recovery starts, and the data dictionary (datafiles, segments,
//! extents). Two copies are written in turn, each with a checksum and a number: the newer whole one counts.

use std::sync::Arc;

use spindle_io::sync::{Latch, Semaphore};
use spindle_io::{Arena, BlockDevice, Request, Submission, read_blocks};

use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::log::marks::Location;
use crate::settings::PlantedFault;
use crate::wait_event::{ProcessWaits, WaitEvent};

/// Size of the control file, bytes.
pub const CONTROL_FILE_BYTES: u64 = 2 * COPY_BYTES;
/// Size of one copy.
pub(crate) const COPY_BYTES: u64 = 512 << 10;
const PIECE_BYTES: usize = 4096;
const MAGIC: u32 = 0x5350_4343;
const HEADER_BYTES: usize = 24;

/// A contiguous run of blocks of one datafile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Datafile number.
    pub file: u16,
    /// First block.
    pub first_block: u32,
    /// Length, blocks.
    pub blocks: u32,
}

/// A table, or the undo segment, and the space it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its number; 0 is the undo segment's.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Length of its longest rows, bytes; for the undo segment, blocks of the transaction table.
    pub row_bytes: u32,
    /// Rows loaded when it was made: they lie in its first blocks, the same number in each.
    pub loaded_rows: u64,
    /// Its space, in order.
    pub extents: Vec<Extent>,
}

impl Segment {
    /// Blocks in all of its extents.
    pub(crate) fn blocks(&self) -> u64 {
        let extents = self.extents.iter();
        extents.map(|extent| u64::from(extent.blocks)).sum()
    }
}

/// Bytes of a row that are a part of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPart {
    /// Where in the row it begins.
    pub offset: u16,
    /// How long it is, bytes. The last part of a key ends with the row where that is shorter.
    pub bytes: u16,
}

/// An index of a table. Its space, and its name, are those of its segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexOfTable {
    /// Its segment.
    pub(crate) segment: u32,
    /// That of its table.
    pub(crate) table: u32,
    /// No two rows have the same key.
    pub(crate) is_unique: bool,
    /// The key's parts, in order.
    pub(crate) key: Vec<KeyPart>,
}

/// Where recovery starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointRecord {
    /// Every change before this position is in the datafiles.
    pub(crate) position: u64,
    /// Where to start reading redo; not after the position.
    pub(crate) location: Location,
}

/// What the control file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) database: u64,
    pub(crate) block_bytes: u32,
    pub(crate) checkpoint: CheckpointRecord,
    /// For each datafile the first block not given to a segment.
    pub(crate) next_free: Vec<u32>,
    /// Blocks in each datafile.
    pub(crate) file_blocks: Vec<u32>,
    pub(crate) segments: Vec<Segment>,
    /// Which of the segments are indexes, and of what.
    pub(crate) indexes: Vec<IndexOfTable>,
    /// The datafiles have maps of their free space.
    pub(crate) has_maps: bool,
}

impl Contents {
    /// Where a segment is in the list.
    pub(crate) fn segment_index(&self, number: u32) -> usize {
        self.segments
            .iter()
            .position(|segment| segment.number == number)
            .expect("the dictionary knows its segments")
    }
}

/// The control file of a running instance.
pub(crate) struct ControlFile {
    device: Arc<dyn BlockDevice>,
    state: Latch<(Contents, u64)>,
    turn: Semaphore,
}

impl ControlFile {
    /// A control file that has not been written yet.
    pub(crate) fn create(device: Arc<dyn BlockDevice>, contents: Contents) -> ControlFile {
        ControlFile {
            device,
            state: Latch::new((contents, 0)),
            turn: Semaphore::new(1),
        }
    }

    /// Reads the newer whole copy.
    pub(crate) async fn open(device: Arc<dyn BlockDevice>) -> Result<ControlFile> {
        let mut newest: Option<(Contents, u64)> = None;
        let mut is_empty = true;
        for copy in 0..2 {
            let start = read_bytes(&*device, copy * COPY_BYTES, PIECE_BYTES).await?;
            is_empty &= start.iter().all(|byte| *byte == 0);
            let Some(length) = stated_length(&start) else {
                continue;
            };
            let bytes = read_bytes(&*device, copy * COPY_BYTES, length).await?;
            if let Some((contents, number)) = decode(&bytes)
                && newest.as_ref().is_none_or(|(_, newest)| number > *newest)
            {
                newest = Some((contents, number));
            }
        }
        let Some(state) = newest else {
            return Err(KernelError::ControlFile {
                device: device.name().to_string(),
                reason: no_copy(is_empty).to_string(),
            });
        };
        Ok(ControlFile {
            device,
            state: Latch::new(state),
            turn: Semaphore::new(1),
        })
    }

    /// Looks something up.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Contents) -> T) -> T {
        look(&self.state.lock().0)
    }

    /// Changes the contents in memory and writes them durably before it returns. A failed write fails the instance: the
    /// next one would go over the only whole copy.
    pub(crate) async fn update<T>(
        &self,
        fixed: &FixedSga,
        change: impl FnOnce(&mut Contents) -> Result<T>,
    ) -> Result<T> {
        let _turn = self
            .turn
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let (bytes, number, value) = {
            let mut state = self.state.lock();
            let mut contents = state.0.clone();
            let value = change(&mut contents)?;
            let number = state.1 + 1;
            let bytes = encode(&contents, number);
            if bytes.len() as u64 > COPY_BYTES {
                return Err(KernelError::ControlFile {
                    device: self.device.name().to_string(),
                    reason: format!(
                        "{} bytes of dictionary are more than a copy holds",
                        bytes.len()
                    ),
                });
            }
            *state = (contents, number);
            (bytes, number, value)
        };
        let durable = !fixed
            .settings
            .has_planted(PlantedFault::ControlFileNotDurable);
        let written = write_bytes(&*self.device, (number % 2) * COPY_BYTES, &bytes, durable).await;
        if let Err(error) = &written {
            fixed.fail_by("control file: ", error);
        }
        written.map(|()| value)
    }

    /// As [`ControlFile::update`], for the data dictionary: both copies know of the change when it returns, so that
    /// either may be lost.
    pub(crate) async fn update_both<T>(
        &self,
        fixed: &FixedSga,
        change: impl FnOnce(&mut Contents) -> Result<T>,
    ) -> Result<T> {
        let value = self.update(fixed, change).await?;
        self.update(fixed, |_| Ok(())).await?;
        Ok(value)
    }

    /// Enters a complete checkpoint.
    pub(crate) async fn set_checkpoint(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        checkpoint: CheckpointRecord,
    ) -> Result<()> {
        let wait = waits.begin(&*fixed.env);
        self.update(fixed, |contents| {
            contents.checkpoint = checkpoint;
            Ok(())
        })
        .await?;
        wait.end(WaitEvent::ControlFileWrite);
        Ok(())
    }
}

/// Reads bytes that need not be aligned to anything but the device's sectors.
pub(crate) async fn read_bytes(
    device: &dyn BlockDevice,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>> {
    let arena = transfer_arena(1)?;
    let frame = arena.allocate().expect("the arena has a frame");
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        let hold = frame.try_write_hold().expect("the frame is ours");
        let at = offset + bytes.len() as u64;
        let holds = read_blocks(device, at, vec![hold], Submission::Alone).await?;
        let wanted = (length - bytes.len()).min(PIECE_BYTES);
        bytes.extend_from_slice(&holds[0][..wanted]);
    }
    Ok(bytes)
}

async fn write_bytes(
    device: &dyn BlockDevice,
    offset: u64,
    bytes: &[u8],
    durable: bool,
) -> Result<()> {
    let arena = transfer_arena(bytes.len().div_ceil(PIECE_BYTES))?;
    let mut holds = Vec::new();
    for piece in bytes.chunks(PIECE_BYTES) {
        let frame = arena.allocate().expect("one frame for each piece");
        let mut hold = frame.try_write_hold().expect("the frame is ours");
        hold[..piece.len()].copy_from_slice(piece);
        hold[piece.len()..].fill(0);
        holds.push(hold.share(PIECE_BYTES));
    }
    Ok(device
        .submit(Request::write(offset, holds, durable, Submission::Alone))
        .await
        .result?)
}

fn transfer_arena(frames: usize) -> Result<Arc<Arena>> {
    Arena::new(PIECE_BYTES, frames).map_err(|error| KernelError::Memory {
        what: "a control file transfer",
        reason: error.to_string(),
    })
}

/// A copy as it is written.
pub(crate) fn encode(contents: &Contents, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    let mut put = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    let location = contents.checkpoint.location;
    put(contents.database);
    put(u64::from(contents.block_bytes));
    put(contents.checkpoint.position);
    put(location.position);
    put(location.file as u64);
    put(u64::from(location.sequence));
    put(location.offset);
    put(contents.file_blocks.len() as u64);
    for (blocks, next_free) in contents.file_blocks.iter().zip(&contents.next_free) {
        put(u64::from(*blocks));
        put(u64::from(*next_free));
    }
    put(contents.segments.len() as u64);
    for segment in &contents.segments {
        put(u64::from(segment.number));
        put(u64::from(segment.row_bytes));
        put(segment.loaded_rows);
        put(segment.extents.len() as u64);
        for extent in &segment.extents {
            put(u64::from(extent.file));
            put(u64::from(extent.first_block));
            put(u64::from(extent.blocks));
        }
        put(segment.name.len() as u64);
        segment.name.bytes().for_each(|byte| put(u64::from(byte)));
    }
    put(contents.indexes.len() as u64);
    for index in &contents.indexes {
        put(u64::from(index.segment));
        put(u64::from(index.table));
        put(u64::from(index.is_unique));
        put(index.key.len() as u64);
        for part in &index.key {
            put(u64::from(part.offset));
            put(u64::from(part.bytes));
        }
    }
    put(u64::from(contents.has_maps));
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// How long a copy says that it is; `None` when it is no copy.
fn stated_length(start: &[u8]) -> Option<usize> {
    let field = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    let length = field(8) as usize;
    let fits = (HEADER_BYTES..=COPY_BYTES as usize).contains(&length);
    (field(0) == MAGIC && fits).then_some(length)
}

/// For tests that look at the disks: for each datafile the first block that no segment has, as the newer copy in all
/// the bytes of a control file says.
#[cfg(feature = "planted")]
pub fn first_free_blocks(bytes: &[u8]) -> Option<Vec<u32>> {
    let copies = bytes.chunks(COPY_BYTES as usize).filter_map(decode);
    let newest = copies.max_by_key(|(_, number)| *number);
    newest.map(|(contents, _)| contents.next_free)
}

/// For tests that read hostile control files: a copy of one, whole, of a database with a table and an index.
#[cfg(feature = "planted")]
pub fn control_file_copy() -> Vec<u8> {
    let extent = Extent {
        file: 1,
        first_block: 2,
        blocks: 128,
    };
    let segment = |number: u32| Segment {
        number,
        name: format!("segment {number}"),
        row_bytes: 100,
        loaded_rows: 10,
        extents: vec![extent],
    };
    let location = Location {
        position: 0,
        file: 0,
        sequence: 1,
        offset: 4096,
    };
    let index = IndexOfTable {
        segment: 2,
        table: 1,
        is_unique: true,
        key: vec![KeyPart {
            offset: 8,
            bytes: 16,
        }],
    };
    let contents = Contents {
        database: 1,
        block_bytes: 2048,
        checkpoint: CheckpointRecord {
            position: 0,
            location,
        },
        next_free: vec![100, 130],
        file_blocks: vec![100, 600],
        segments: (0..3).map(segment).collect(),
        indexes: vec![index],
        has_maps: true,
    };
    encode(&contents, 1)
}

/// Why no copy can be read. A loop device whose file was cut off or replaced reads as zeros, without an error.
fn no_copy(is_empty: bool) -> &'static str {
    match is_empty {
        true => {
            "both of its copies read as zeros: the file or device beneath was cut off, emptied or replaced since the database was \
             made"
        }
        false => "neither of its copies is whole: this is no Spindle database, or it is damaged",
    }
}

/// Reads a whole copy, whatever follows it.
fn decode(bytes: &[u8]) -> Option<(Contents, u64)> {
    let length = stated_length(bytes.get(..HEADER_BYTES)?)?;
    let crc = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
    if length > bytes.len() || crc32c::crc32c(&bytes[8..length]) != crc {
        return None;
    }
    let number = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes"));
    let mut words = bytes[HEADER_BYTES..length]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    let mut next = || words.next();
    let (database, block_bytes, position) = (next()?, next()? as u32, next()?);
    let location = Location {
        position: next()?,
        file: next()? as usize,
        sequence: next()? as u32,
        offset: next()?,
    };
    let (mut file_blocks, mut next_free) = (Vec::new(), Vec::new());
    for _ in 0..next()? {
        file_blocks.push(next()? as u32);
        next_free.push(next()? as u32);
    }
    let mut segments = Vec::new();
    for _ in 0..next()? {
        segments.push(decode_segment(&mut next)?);
    }
    let mut indexes = Vec::new();
    // A control file from before there were indexes ends here.
    for _ in 0..next().unwrap_or(0) {
        indexes.push(decode_index(&mut next)?);
    }
    // One from before there were maps ends here.
    let has_maps = next().is_some_and(|word| word != 0);
    let checkpoint = CheckpointRecord { position, location };
    Some((
        Contents {
            database,
            block_bytes,
            checkpoint,
            next_free,
            file_blocks,
            segments,
            indexes,
            has_maps,
        },
        number,
    ))
}

fn decode_index(next: &mut impl FnMut() -> Option<u64>) -> Option<IndexOfTable> {
    let (segment, table, is_unique) = (next()? as u32, next()? as u32, next()? != 0);
    let mut key = Vec::new();
    for _ in 0..next()? {
        key.push(KeyPart {
            offset: next()? as u16,
            bytes: next()? as u16,
        });
    }
    Some(IndexOfTable {
        segment,
        table,
        is_unique,
        key,
    })
}

fn decode_segment(next: &mut impl FnMut() -> Option<u64>) -> Option<Segment> {
    let (number, row_bytes, loaded_rows) = (next()? as u32, next()? as u32, next()?);
    let mut extents = Vec::new();
    for _ in 0..next()? {
        extents.push(Extent {
            file: next()? as u16,
            first_block: next()? as u32,
            blocks: next()? as u32,
        });
    }
    let name_bytes: Option<Vec<u8>> = (0..next()?)
        .map(|_| next().map(|byte| byte as u8))
        .collect();
    let name = String::from_utf8(name_bytes?).ok()?;
    Some(Segment {
        number,
        name,
        row_bytes,
        loaded_rows,
        extents,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_survive_writing_down() {
        let contents = Contents {
            database: 99,
            block_bytes: 8192,
            checkpoint: CheckpointRecord {
                position: 5,
                location: Location {
                    position: 4,
                    file: 1,
                    sequence: 7,
                    offset: 4096,
                },
            },
            next_free: vec![3, 4],
            file_blocks: vec![100, 200],
            segments: vec![Segment {
                number: 1,
                name: "accounts".to_string(),
                row_bytes: 128,
                loaded_rows: 10,
                extents: vec![Extent {
                    file: 1,
                    first_block: 1,
                    blocks: 128,
                }],
            }],
            indexes: vec![IndexOfTable {
                segment: 2,
                table: 1,
                is_unique: true,
                key: vec![KeyPart {
                    offset: 8,
                    bytes: 16,
                }],
            }],
            has_maps: true,
        };
        let mut bytes = encode(&contents, 3);
        bytes.resize(COPY_BYTES as usize, 0);
        assert_eq!(decode(&bytes), Some((contents.clone(), 3)));
        bytes[40] ^= 1;
        assert_eq!(decode(&bytes), None);

        // As it was written before there were maps, and before there were indexes.
        let without = Contents {
            indexes: Vec::new(),
            has_maps: false,
            ..contents
        };
        for words in [1, 2] {
            let mut old = encode(&without, 4);
            old.truncate(old.len() - 8 * words);
            let length = old.len() as u32;
            old[8..12].copy_from_slice(&length.to_le_bytes());
            let crc = crc32c::crc32c(&old[8..]);
            old[4..8].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(decode(&old), Some((without.clone(), 4)));
        }
    }
}
