//! Redo: how a change is written down and how it is carried out. A record is a group of change vectors that happen
//! together or not at all; [`apply`] is the only code that changes a block, both when a change is first made and
//! when it is rolled forward, so the two cannot differ.
//!
//! Record: length of the whole (4 bytes), then vectors: kind (1), unused (3), block address (8), payload length (4),
//! payload. A position in the redo (an SCN) counts record bytes since the database was created; batch headers and
//! padding are not counted.

use std::ops::Range;

use crate::block::index::{self, EntryPlace};
use crate::block::space_map::{self, Fill};
use crate::block::{
    self, BlockAddress, BlockKind, Damage, RowId, RowVersion, heap, transaction_table, undo,
};

/// Bytes before the first vector of a record.
pub const RECORD_HEADER_BYTES: usize = 4;
const VECTOR_HEADER_BYTES: usize = 16;

/// What a change vector does to its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum VectorKind {
    /// The whole block as it was just before this record: protects against a torn write of it.
    Image = 1,
    /// A new, empty heap block: segment (4).
    FormatHeap = 2,
    /// A new, empty undo block: segment (4).
    FormatUndo = 3,
    /// Bytes inside a row: slot (2), offset (2), version (16), the bytes.
    PatchRow = 4,
    /// A row put into its slot: slot (2), kind (1), unused (1), version (16), the row.
    SetRow = 5,
    /// A slot emptied: slot (2), unused (2), version (16).
    ClearRow = 6,
    /// An undo record added: the record.
    UndoAppend = 7,
    /// Undo records forgotten after they were applied: bytes left in use (4).
    UndoTruncate = 8,
    /// A transaction-table slot: slot (2), the entry.
    SetSlot = 9,
    /// The rooms of a heap block moved together: slot that loses its room (2), slots whose rooms are cut (2 each).
    CompactHeap = 10,
    /// The transaction of a slot has ended, at the SCN after this record: slot (2).
    EndSlot = 11,
    /// A node of an index: segment (4), the node.
    FormatNode = 12,
    /// An entry put into a node: position (2), whether it replaces the one there (1), unused (1), the entry.
    PutEntry = 13,
    /// An entry taken from a node: position (2).
    DropEntry = 14,
    /// A node tidied up: how many entries go (2), positions of those (2 each), of those that lose their numbers (2
    /// each).
    TidyNode = 15,
    /// A node left with its first entries: how many (2), unused (2), its new right neighbour (8), rowid (8) and key of
    /// the place where that begins.
    CutNode = 16,
    /// The header of an index: first free block (8), first block never used (4).
    SetIndexHead = 17,
    /// A block of an index that is in no tree: segment (4), the next free block (8).
    FreeNode = 18,
    /// What a map says of a block: its place there (4), what it holds (1).
    SetFill = 19,
}

impl VectorKind {
    fn from_u8(value: u8) -> Option<VectorKind> {
        use VectorKind::*;
        [
            Image,
            FormatHeap,
            FormatUndo,
            PatchRow,
            SetRow,
            ClearRow,
            UndoAppend,
            UndoTruncate,
            SetSlot,
            CompactHeap,
            EndSlot,
            FormatNode,
            PutEntry,
            DropEntry,
            TidyNode,
            CutNode,
            SetIndexHead,
            FreeNode,
            SetFill,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == value)
    }

    /// True when the vector says all there is to know of the block, so that its bytes on disk do not matter.
    pub fn replaces_block(self) -> bool {
        use VectorKind::*;
        matches!(
            self,
            Image | FormatHeap | FormatUndo | FormatNode | FreeNode
        )
    }
}

/// One change to one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector<'a> {
    /// What it does.
    pub kind: VectorKind,
    /// To which block.
    pub address: BlockAddress,
    /// With what.
    pub payload: &'a [u8],
}

/// Builds the vectors of one record in a buffer that is used again and again.
#[derive(Default)]
pub struct RecordBuilder {
    bytes: Vec<u8>,
    /// Where the vectors are, so that they need not be read again.
    placed: Vec<Placed>,
}

/// A vector among the bytes of a record.
struct Placed {
    kind: VectorKind,
    address: BlockAddress,
    payload: Range<usize>,
}

impl RecordBuilder {
    /// Forgets all vectors.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.placed.clear();
    }

    /// Adds a vector whose payload is the given parts, one after the other.
    pub fn push(&mut self, kind: VectorKind, address: BlockAddress, payload: &[&[u8]]) {
        self.push_written(kind, address, |bytes| {
            for part in payload {
                bytes.extend_from_slice(part);
            }
        });
    }

    /// Adds a vector whose payload is what `write` adds to the bytes it gets.
    pub fn push_written(
        &mut self,
        kind: VectorKind,
        address: BlockAddress,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let header_at = self.bytes.len();
        let start = header_at + VECTOR_HEADER_BYTES;
        self.bytes.resize(start, 0);
        write(&mut self.bytes);
        let payload = start..self.bytes.len();
        let header = vector_header(kind, address, payload.len());
        self.bytes[header_at..start].copy_from_slice(&header);
        self.placed.push(Placed {
            kind,
            address,
            payload,
        });
    }

    /// The vectors as they stand in the record.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The vectors, in order.
    pub fn vectors(&self) -> impl Iterator<Item = Vector<'_>> {
        self.placed.iter().map(|placed| Vector {
            kind: placed.kind,
            address: placed.address,
            payload: &self.bytes[placed.payload.clone()],
        })
    }
}

/// Header of a vector.
pub fn vector_header(
    kind: VectorKind,
    address: BlockAddress,
    payload_bytes: usize,
) -> [u8; VECTOR_HEADER_BYTES] {
    let mut header = [0; VECTOR_HEADER_BYTES];
    header[0] = kind as u8;
    header[4..12].copy_from_slice(&address.to_u64().to_le_bytes());
    header[12..16].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
    header
}

/// Bytes that the image of a block takes in a record.
pub fn image_vector_bytes(block_bytes: usize) -> usize {
    VECTOR_HEADER_BYTES + block_bytes
}

/// Reads the vectors of a record.
pub struct Vectors<'a> {
    rest: &'a [u8],
}

impl<'a> Vectors<'a> {
    /// Over the bytes after a record's header.
    pub fn new(bytes: &'a [u8]) -> Vectors<'a> {
        Vectors { rest: bytes }
    }
}

impl<'a> Iterator for Vectors<'a> {
    type Item = Vector<'a>;

    fn next(&mut self) -> Option<Vector<'a>> {
        if self.rest.len() < VECTOR_HEADER_BYTES {
            return None;
        }
        let (header, rest) = self.rest.split_at(VECTOR_HEADER_BYTES);
        let kind = VectorKind::from_u8(header[0])?;
        let address = BlockAddress::from_u64(u64::from_le_bytes(
            header[4..12].try_into().expect("eight bytes"),
        ));
        let length = u32::from_le_bytes(header[12..16].try_into().expect("four bytes")) as usize;
        if length > rest.len() {
            return None;
        }
        let (payload, rest) = rest.split_at(length);
        self.rest = rest;
        Some(Vector {
            kind,
            address,
            payload,
        })
    }
}

/// Cuts the first record off; gives its vectors and what follows. Error: it is no record.
pub fn split_record(bytes: &[u8]) -> Result<(&[u8], &[u8]), Damage> {
    let length = bytes
        .first_chunk()
        .map_or(0, |first| u32::from_le_bytes(*first) as usize);
    if length < RECORD_HEADER_BYTES || length > bytes.len() {
        return Err(Damage(format!(
            "a record of {length} bytes does not fit the {} that are left",
            bytes.len()
        )));
    }
    let (record, rest) = bytes.split_at(length);
    let vectors = &record[RECORD_HEADER_BYTES..];
    let mut parsed = Vectors::new(vectors);
    let count = parsed.by_ref().count();
    if parsed.rest.is_empty() {
        Ok((vectors, rest))
    } else {
        Err(Damage(format!(
            "after {count} vectors comes none that is known"
        )))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Bytes before the row's own in the vectors that change a row.
const ROW_HEAD_BYTES: usize = 4 + RowVersion::BYTES;
/// Bytes before the key in the vector that cuts a node.
const CUT_HEAD_BYTES: usize = 12 + RowId::BYTES;

/// What the vectors that change a row begin with: the slot, two bytes of the vector's own, and the row's new version.
pub fn row_head(slot: u16, own: [u8; 2], version: RowVersion) -> [u8; ROW_HEAD_BYTES] {
    let mut head = [0; ROW_HEAD_BYTES];
    head[0..2].copy_from_slice(&slot.to_le_bytes());
    head[2..4].copy_from_slice(&own);
    head[4..].copy_from_slice(&version.to_bytes());
    head
}

/// The place in the vector that cuts a node.
fn place_at(payload: &[u8]) -> EntryPlace<'_> {
    EntryPlace {
        key: &payload[CUT_HEAD_BYTES..],
        row: RowId::from_bytes(&payload[CUT_HEAD_BYTES - RowId::BYTES..]),
    }
}

/// Checks that a vector of an index can be carried out.
fn index_fits(vector: Vector<'_>, bytes: &[u8]) -> bool {
    let payload = vector.payload;
    let node = |least: usize| index::is_node(bytes) && payload.len() >= least;
    let position = || u16_at(payload, 0);
    match vector.kind {
        VectorKind::FormatNode => payload.len() > 4 && index::node_fits(&payload[4..], bytes.len()),
        VectorKind::PutEntry => {
            node(4) && index::takes(bytes, position(), payload[2] != 0, &payload[4..])
        }
        VectorKind::DropEntry => node(2) && payload.len() == 2 && position() < index::count(bytes),
        VectorKind::TidyNode => {
            let exist = || {
                let mut positions = payload
                    .chunks_exact(2)
                    .skip(1)
                    .map(|bytes| u16_at(bytes, 0));
                positions.all(|position| position < index::count(bytes))
            };
            let positions = payload.len() / 2;
            node(2)
                && payload.len().is_multiple_of(2)
                && usize::from(position()) < positions
                && exist()
        }
        VectorKind::CutNode => {
            node(CUT_HEAD_BYTES) && index::takes_cut(bytes, position(), place_at(payload))
        }
        VectorKind::SetIndexHead => {
            index::is_head(bytes) && payload.len() == index::IndexHead::BYTES
        }
        VectorKind::FreeNode => payload.len() == 12,
        _ => false,
    }
}

/// Checks that a vector can be carried out on the block as it is: redo that was damaged on its way must not be.
pub fn check(vector: Vector<'_>, bytes: &[u8]) -> Result<(), Damage> {
    let (payload, kind) = (vector.payload, block::kind(bytes));
    let is = |wanted: BlockKind| kind == wanted as u8;
    let fixed = |length: usize| payload.len() == length;
    let heap = is(BlockKind::Heap) && payload.len() >= 2;
    let row = heap && payload.len() >= ROW_HEAD_BYTES;
    let slots_exist = |slots: &[u8]| {
        slots.len().is_multiple_of(2)
            && slots
                .chunks_exact(2)
                .all(|slot| u16_at(slot, 0) < heap::slots(bytes))
    };
    let table_slot = || {
        let slots = transaction_table::slots_per_block(bytes.len());
        is(BlockKind::TransactionTable) && usize::from(u16_at(payload, 0)) < slots
    };
    let fits = match vector.kind {
        VectorKind::Image => fixed(bytes.len()),
        VectorKind::FormatHeap | VectorKind::FormatUndo => fixed(4),
        VectorKind::PatchRow => {
            let patched = || usize::from(u16_at(payload, 2)) + payload.len() - ROW_HEAD_BYTES;
            row && heap::takes_patch(bytes, u16_at(payload, 0), patched())
        }
        VectorKind::SetRow => {
            row && heap::takes_row(bytes, u16_at(payload, 0), payload.len() - ROW_HEAD_BYTES)
        }
        VectorKind::ClearRow => heap && fixed(ROW_HEAD_BYTES) && slots_exist(&payload[..2]),
        VectorKind::CompactHeap => heap && slots_exist(&payload[2..]),
        VectorKind::UndoAppend => is(BlockKind::Undo) && undo::takes(bytes, payload.len()),
        VectorKind::UndoTruncate => {
            let forgets =
                || (undo::EMPTY_BYTES..=undo::used(bytes)).contains(&(u32_at(payload, 0) as usize));
            fixed(4) && is(BlockKind::Undo) && forgets()
        }
        VectorKind::SetSlot => fixed(2 + transaction_table::ENTRY_BYTES) && table_slot(),
        VectorKind::EndSlot => fixed(2) && table_slot(),
        VectorKind::SetFill => {
            let is_place = || u32_at(payload, 0) < space_map::places_per_block(bytes.len());
            is(BlockKind::SpaceMap) && fixed(5) && is_place() && Fill::from_u8(payload[4]).is_some()
        }
        VectorKind::FormatNode
        | VectorKind::PutEntry
        | VectorKind::DropEntry
        | VectorKind::TidyNode
        | VectorKind::CutNode
        | VectorKind::SetIndexHead
        | VectorKind::FreeNode => index_fits(vector, bytes),
    };
    fits.then_some(()).ok_or_else(|| {
        Damage(format!(
            "a vector {:?} of {} bytes does not fit block {}, which is of kind {kind}",
            vector.kind,
            payload.len(),
            vector.address
        ))
    })
}

/// Carries out a vector of a record that ends at position `end`. The caller sets the block's SCN after the last vector
/// of the record for it.
pub fn apply(vector: Vector<'_>, bytes: &mut [u8], end: u64) {
    let payload = vector.payload;
    let version = || RowVersion::from_bytes(&payload[4..]);
    match vector.kind {
        VectorKind::Image => bytes.copy_from_slice(payload),
        VectorKind::FormatHeap => {
            heap::format_heap(bytes, vector.address, u32_at(payload, 0));
        }
        VectorKind::FormatUndo => undo::format_undo(bytes, vector.address, u32_at(payload, 0)),
        VectorKind::PatchRow => {
            let (slot, offset) = (u16_at(payload, 0), u16_at(payload, 2));
            heap::patch_row(bytes, slot, offset, version(), &payload[ROW_HEAD_BYTES..]);
        }
        VectorKind::SetRow => {
            let kind = heap::RowKind::from_u8(payload[2]);
            let row = &payload[ROW_HEAD_BYTES..];
            heap::put_row(bytes, u16_at(payload, 0), kind, version(), row);
        }
        VectorKind::ClearRow => heap::clear_row(bytes, u16_at(payload, 0), version()),
        VectorKind::UndoAppend => undo::append(bytes, payload),
        VectorKind::UndoTruncate => undo::truncate(bytes, u32_at(payload, 0) as usize),
        VectorKind::SetSlot => {
            transaction_table::set_entry(bytes, usize::from(u16_at(payload, 0)), &payload[2..])
        }
        VectorKind::EndSlot => {
            transaction_table::end_entry(bytes, usize::from(u16_at(payload, 0)), end);
        }
        VectorKind::SetFill => {
            let fill = Fill::from_u8(payload[4]).unwrap_or(Fill::Untold);
            space_map::set_fill(bytes, u32_at(payload, 0), fill);
        }
        VectorKind::CompactHeap => {
            let cut = payload[2..].chunks_exact(2).map(|slot| u16_at(slot, 0));
            heap::compact(bytes, u16_at(payload, 0), cut);
        }
        VectorKind::FormatNode
        | VectorKind::PutEntry
        | VectorKind::DropEntry
        | VectorKind::TidyNode
        | VectorKind::CutNode
        | VectorKind::SetIndexHead
        | VectorKind::FreeNode => apply_to_index(vector, bytes),
    }
    debug_assert_ne!(
        block::kind(bytes),
        BlockKind::FileHeader as u8,
        "redo never touches a file header"
    );
}

fn apply_to_index(vector: Vector<'_>, bytes: &mut [u8]) {
    let (payload, address) = (vector.payload, vector.address);
    let long_at =
        |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
    match vector.kind {
        VectorKind::FormatNode => {
            index::format_node(bytes, address, u32_at(payload, 0), &payload[4..]);
        }
        VectorKind::PutEntry => {
            index::put_entry(bytes, u16_at(payload, 0), payload[2] != 0, &payload[4..]);
        }
        VectorKind::DropEntry => index::drop_entry(bytes, u16_at(payload, 0)),
        VectorKind::TidyNode => {
            let positions: Vec<u16> = payload
                .chunks_exact(2)
                .map(|bytes| u16_at(bytes, 0))
                .collect();
            let (gone, bare) = positions[1..].split_at(usize::from(positions[0]));
            index::tidy(bytes, gone, bare);
        }
        VectorKind::CutNode => {
            let right = BlockAddress::from_u64(long_at(4));
            index::cut(bytes, u16_at(payload, 0), place_at(payload), right);
        }
        VectorKind::SetIndexHead => index::IndexHead::set(bytes, payload),
        _ => index::format_free(bytes, address, u32_at(payload, 0), long_at(4)),
    }
}

/// Header of what LGWR writes in one go: magic (4), CRC32C of the rest of the header and the payload (4), log sequence
/// number (4), payload length (4), position of the first record (8), database (8). Records follow, then padding to
/// whole redo blocks, so that no later write touches a redo block that holds an acknowledged commit.
pub mod batch {
    /// Bytes before the payload.
    pub const HEADER_BYTES: usize = 32;
    const MAGIC: u32 = 0x5350_4C47;

    /// What a header says.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Header {
        /// Sequence number of the log file it was written to.
        pub sequence: u32,
        /// Position of its first record.
        pub position: u64,
        /// Length of its records.
        pub payload_bytes: usize,
    }

    impl Header {
        /// The header of a batch of this database, whole or not.
        pub fn read(bytes: &[u8], database: u64) -> Option<Header> {
            let short =
                |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            let long =
                |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            (short(0) == MAGIC && long(24) == database).then(|| Header {
                sequence: short(8),
                position: long(16),
                payload_bytes: short(12) as usize,
            })
        }

        /// True when it is that of the batch expected at a place.
        pub fn is_at(&self, sequence: u32, position: u64) -> bool {
            (self.sequence, self.position) == (sequence, position)
        }
    }

    /// Fills the header in and sets the checksum. `bytes` is header and payload.
    pub fn seal(bytes: &mut [u8], database: u64, sequence: u32, first_position: u64) {
        let payload_bytes = (bytes.len() - HEADER_BYTES) as u32;
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&sequence.to_le_bytes());
        bytes[12..16].copy_from_slice(&payload_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&first_position.to_le_bytes());
        bytes[24..32].copy_from_slice(&database.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// True when header and payload are as they were sealed.
    pub fn is_whole(bytes: &[u8]) -> bool {
        let stored = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes"));
        crc32c::crc32c(&bytes[8..]) == stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_back_as_they_went_in() {
        let mut builder = RecordBuilder::default();
        let address = BlockAddress { file: 1, block: 9 };
        builder.push(VectorKind::PatchRow, address, &[&[1, 0], &[2, 0], b"abc"]);
        builder.push(VectorKind::ClearRow, address, &[&[7, 0]]);
        let kinds: Vec<_> = builder
            .vectors()
            .map(|vector| (vector.kind, vector.payload.to_vec()))
            .collect();
        assert_eq!(
            kinds,
            vec![
                (VectorKind::PatchRow, vec![1, 0, 2, 0, b'a', b'b', b'c']),
                (VectorKind::ClearRow, vec![7, 0])
            ]
        );
    }

    #[test]
    fn a_batch_is_known_by_database_sequence_position_and_checksum() {
        let mut bytes = vec![0u8; batch::HEADER_BYTES + 100];
        bytes[batch::HEADER_BYTES..].fill(9);
        batch::seal(&mut bytes, 77, 5, 1000);
        let header = batch::Header::read(&bytes, 77).unwrap();
        assert_eq!(header.payload_bytes, 100);
        assert!(header.is_at(5, 1000));
        assert!(!header.is_at(4, 1000) && !header.is_at(5, 1001));
        assert_eq!(batch::Header::read(&bytes, 78), None);
        assert!(batch::is_whole(&bytes));
        bytes[131] ^= 1;
        assert!(!batch::is_whole(&bytes));
    }

    #[test]
    fn what_is_no_record_is_told() {
        let mut builder = RecordBuilder::default();
        let address = BlockAddress { file: 1, block: 9 };
        builder.push(VectorKind::ClearRow, address, &[&[7, 0]]);
        let length = RECORD_HEADER_BYTES + builder.bytes().len();
        let record = [&(length as u32).to_le_bytes(), builder.bytes()].concat();
        let two = [&record[..], &record[..]].concat();
        let (vectors, rest) = split_record(&two).unwrap();
        assert_eq!((vectors, rest), (builder.bytes(), &record[..]));
        // Every byte of a record changed, and every length cut short.
        for at in 0..record.len() {
            let mut other = record.clone();
            other[at] ^= 0xFF;
            if let Ok((vectors, _)) = split_record(&other) {
                assert_eq!(Vectors::new(vectors).count(), 1, "byte {at}");
            }
            split_record(&record[..at]).unwrap_err();
        }
        split_record(&[0; 8]).unwrap_err();
    }

    /// Random vectors on blocks of every kind: those that pass the check can be carried out.
    #[test]
    fn what_passes_the_check_never_panics() {
        use rand_xoshiro::rand_core::RngCore;
        let mut rng = spindle_io::env::seeded_rng(1, 0);
        let address = BlockAddress { file: 1, block: 9 };
        let mut passed = 0;
        for _ in 0..400_000 {
            let mut block = vec![0; 2048];
            match rng.next_u64() % 6 {
                5 => space_map::format_map(&mut block, address, 1),
                3 => {
                    let node = index::Node {
                        level: 0,
                        low: EntryPlace::FIRST,
                        high: None,
                        right: None,
                    };
                    let entry = |slot| index::IndexEntry {
                        suffix: &[7; 400],
                        row: RowId { address, slot },
                        number: (slot == 1).then_some(5),
                        is_ghost: slot == 1,
                    };
                    let node = node.with((0..4).map(|slot| (&[][..], entry(slot))));
                    index::format_node(&mut block, address, 1, &node);
                }
                4 => {
                    let head = index::IndexHead {
                        free: None,
                        fresh: 2,
                    };
                    index::format_head(&mut block, address, 1, head);
                }
                0 => {
                    heap::format_heap(&mut block, address, 1);
                    for slot in 0..3 {
                        heap::put_row(
                            &mut block,
                            slot,
                            heap::RowKind::Row,
                            RowVersion::LOADED,
                            &[9; 500],
                        );
                    }
                }
                1 => {
                    undo::format_undo(&mut block, address, 1);
                    undo::append(&mut block, &[7; 1500]);
                }
                _ => transaction_table::format_table(&mut block, address, 1),
            }
            let Some(kind) = VectorKind::from_u8(2 + (rng.next_u64() % 18) as u8) else {
                continue;
            };
            let mut payload =
                vec![0; (rng.next_u64() % [8, 30, 700][(rng.next_u64() % 3) as usize]) as usize];
            for byte in payload.iter_mut().take(4) {
                *byte = (rng.next_u64() % [3, 256][(rng.next_u64() % 2) as usize]) as u8;
            }
            let vector = Vector {
                kind,
                address,
                payload: &payload,
            };
            if check(vector, &block).is_ok() {
                apply(vector, &mut block, 1000);
                passed += 1;
            }
        }
        assert!(passed > 7_000, "{passed}");
    }
}
