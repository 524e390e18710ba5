//! The control file: which database this is, where recovery starts, and the data dictionary (datafiles, segments,
//! extents, columns, keys). Two copies are written in turn, each with a checksum and a number: the newer whole one
//! counts.

mod columns;
mod encoding;

use std::sync::Arc;

use spindle_io::sync::{Latch, Semaphore};
use spindle_io::{Arena, BlockDevice, Request, Submission, read_blocks};
use spindle_query::RowLayout;

use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::log::marks::Location;
use crate::settings::PlantedFault;
use crate::wait_event::{ProcessWaits, WaitEvent};

pub(crate) use encoding::encode;
#[cfg(feature = "planted")]
pub use encoding::seal_copy;
use encoding::{FORMAT, decode, later_format, stated_length};

/// Size of the control file, bytes.
pub const CONTROL_FILE_BYTES: u64 = 2 * COPY_BYTES;
/// Size of one copy.
pub(crate) const COPY_BYTES: u64 = 512 << 10;
const PIECE_BYTES: usize = 4096;
/// Number of the undo segment.
pub(crate) const UNDO_SEGMENT: u32 = 0;

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
    /// Its columns; `None`: its rows are bytes.
    pub columns: Option<RowLayout>,
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
    /// What its key is put together from, in order.
    pub(crate) key: StoredKey,
}

/// What the key of an index is put together from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredKey {
    /// Bytes of the row.
    Bytes(Vec<KeyPart>),
    /// Columns of the table, by their numbers.
    Columns(Vec<u16>),
}

impl IndexOfTable {
    /// The bytes of a row that make its key, given the table's columns; `None` when these make no such key.
    pub(crate) fn parts(&self, columns: Option<&RowLayout>) -> Option<Vec<KeyPart>> {
        match &self.key {
            StoredKey::Bytes(parts) => Some(parts.clone()),
            StoredKey::Columns(key) => {
                let parts = columns?.key_parts(key).ok()?.into_iter();
                Some(
                    parts
                        .map(|(offset, bytes)| KeyPart { offset, bytes })
                        .collect(),
                )
            }
        }
    }
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
    /// The segment of a number.
    pub(crate) fn segment(&self, number: u32) -> &Segment {
        &self.segments[self.segment_index(number)]
    }

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
            if let Some(format) = later_format(&bytes) {
                return Err(KernelError::ControlFile {
                    device: device.name().to_string(),
                    reason: format!(
                        "a later version of Spindle wrote it, in format {format}; this one knows formats up to {FORMAT}"
                    ),
                });
            }
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
    use spindle_query::{Column, DataType, Form};
    let columns = [
        Column::in_form("id", DataType::Integer, Form::Unsigned(8)),
        Column::new("day", DataType::Date),
        Column::new("name", DataType::Char(16)),
        Column::new("note", DataType::Varchar(70)),
    ];
    let columns = RowLayout::new(columns).expect("columns of a table");
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
        columns: (number == 1).then(|| columns.clone()),
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
        key: StoredKey::Columns(vec![2, 0]),
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
