//! Undo records: what a change did away with, as it is stored in undo blocks.

use crate::block::heap::RowKind;
use crate::block::{BlockAddress, RowId, RowVersion};

/// What an undo record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoRecord<'a> {
    /// A transaction's first record in this block; the block it wrote to before, if any.
    Link { previous: Option<BlockAddress> },
    /// What is to be put back into a slot.
    Row { row: RowId, was: RowBefore<'a> },
    /// The index of this segment had no entry of the key and row.
    NoEntry {
        row: RowId,
        index: u32,
        key: &'a [u8],
    },
    /// The index of this segment had an entry of the key and row.
    Entry {
        row: RowId,
        index: u32,
        key: &'a [u8],
    },
}

/// What a change did away with in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowBefore<'a> {
    /// Bytes of the row as they were.
    Patch { offset: u16, bytes: &'a [u8] },
    /// What the slot held.
    Whole { kind: RowKind, bytes: &'a [u8] },
    /// The slot was empty.
    Nothing,
}

impl<'a> RowBefore<'a> {
    /// The row's bytes.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            RowBefore::Patch { bytes, .. } | RowBefore::Whole { bytes, .. } => bytes,
            RowBefore::Nothing => &[],
        }
    }
}

/// Bytes an undo record takes beyond the row's.
pub(crate) const UNDO_RECORD_OVERHEAD_BYTES: usize = 24 + RowVersion::BYTES;

impl<'a> UndoRecord<'a> {
    /// As stored: what it says (1), kind of the row (1), slot (2), offset (2) and unused (2), or the index (4);
    /// transaction (8), address (8), version of the row before (16), bytes.
    pub(crate) fn header(
        &self,
        transaction: u64,
        previous: RowVersion,
    ) -> [u8; UNDO_RECORD_OVERHEAD_BYTES] {
        let mut header = [0; UNDO_RECORD_OVERHEAD_BYTES];
        let (kind, slot, own, address) = match *self {
            UndoRecord::Link { previous } => (1, 0, 0, previous.map_or(0, BlockAddress::to_u64)),
            UndoRecord::Row { row, was } => {
                let (what, own) = match was {
                    RowBefore::Patch { offset, .. } => (2, u32::from(offset)),
                    RowBefore::Whole { kind, .. } => {
                        header[1] = kind as u8;
                        (3, 0)
                    }
                    RowBefore::Nothing => (4, 0),
                };
                (what, row.slot, own, row.address.to_u64())
            }
            UndoRecord::NoEntry { row, index, .. } => (5, row.slot, index, row.address.to_u64()),
            UndoRecord::Entry { row, index, .. } => (6, row.slot, index, row.address.to_u64()),
        };
        header[0] = kind;
        header[2..4].copy_from_slice(&slot.to_le_bytes());
        header[4..8].copy_from_slice(&own.to_le_bytes());
        header[8..16].copy_from_slice(&transaction.to_le_bytes());
        header[16..24].copy_from_slice(&address.to_le_bytes());
        header[24..].copy_from_slice(&previous.to_bytes());
        header
    }

    /// The row's bytes, or the entry's key.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            UndoRecord::Row { was, .. } => was.bytes(),
            UndoRecord::NoEntry { key, .. } | UndoRecord::Entry { key, .. } => key,
            UndoRecord::Link { .. } => &[],
        }
    }
}

/// An undo record as it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredUndo<'a> {
    /// Whose it is.
    pub(crate) transaction: u64,
    /// Which change had made the row what it was.
    pub(crate) previous: RowVersion,
    pub(crate) record: UndoRecord<'a>,
}

impl<'a> StoredUndo<'a> {
    /// Reads a stored record. `None` when it is no undo record.
    pub(crate) fn parse(stored: &'a [u8]) -> Option<StoredUndo<'a>> {
        let (header, bytes) = stored.split_at_checked(UNDO_RECORD_OVERHEAD_BYTES)?;
        let short =
            |at: usize| u16::from_le_bytes(header[at..at + 2].try_into().expect("two bytes"));
        let long =
            |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let address = BlockAddress::from_u64(long(16));
        let row = RowId {
            address,
            slot: short(2),
        };
        let of_row = |was| UndoRecord::Row { row, was };
        let record = match header[0] {
            1 => UndoRecord::Link {
                previous: (long(16) != 0).then_some(address),
            },
            2 => of_row(RowBefore::Patch {
                offset: short(4),
                bytes,
            }),
            3 => of_row(RowBefore::Whole {
                kind: RowKind::from_u8(header[1]),
                bytes,
            }),
            4 => of_row(RowBefore::Nothing),
            5 => UndoRecord::NoEntry {
                row,
                index: u32::from_le_bytes(*header[4..].first_chunk()?),
                key: bytes,
            },
            6 => UndoRecord::Entry {
                row,
                index: u32::from_le_bytes(*header[4..].first_chunk()?),
                key: bytes,
            },
            _ => return None,
        };
        Some(StoredUndo {
            transaction: long(8),
            previous: RowVersion::from_bytes(&header[24..]),
            record,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_writing_down() {
        let row = RowId {
            address: BlockAddress { file: 2, block: 8 },
            slot: 3,
        };
        let of_row = |was| UndoRecord::Row { row, was };
        for record in [
            UndoRecord::Link { previous: None },
            UndoRecord::Link {
                previous: Some(row.address),
            },
            of_row(RowBefore::Patch {
                offset: 7,
                bytes: b"old",
            }),
            of_row(RowBefore::Whole {
                kind: RowKind::Migrated,
                bytes: b"whole",
            }),
            of_row(RowBefore::Nothing),
            UndoRecord::NoEntry {
                row,
                index: 70_000,
                key: b"key",
            },
            UndoRecord::Entry {
                row,
                index: 3,
                key: b"",
            },
        ] {
            let previous = RowVersion {
                transaction: 41,
                undo_block: BlockAddress { file: 3, block: 6 },
                undo_offset: 77,
            };
            let mut stored = record.header(42, previous).to_vec();
            stored.extend_from_slice(record.bytes());
            let expected = StoredUndo {
                transaction: 42,
                previous,
                record,
            };
            assert_eq!(StoredUndo::parse(&stored), Some(expected));
        }
    }
}
