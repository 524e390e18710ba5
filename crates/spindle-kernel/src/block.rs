//! The database block: its header, the three kinds of body (heap, undo, transaction table), and the checks that a block
//! read from a device must pass. Pure functions on bytes; everything else in the kernel goes through them.
//!
//! Header, little-endian: CRC32C of the rest (4 bytes), kind (1), format version (1), unused (2), address (8), SCN (8),
//! segment number (4), unused (4). The SCN is the redo position just after the last change to the block: one number
//! says both how new a block is and how far the redo must be on stable storage before the block may be written.

use std::fmt;

/// Bytes before the body.
pub const HEADER_BYTES: usize = 32;
const FORMAT_VERSION: u8 = 1;

/// Where a block is: datafile number and block number in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// Datafile number; 0 is the undo tablespace's.
    pub file: u16,
    /// Block number in the file; 0 is the file's own header.
    pub block: u32,
}

impl BlockAddress {
    /// Both numbers in one, as stored in headers and redo.
    pub fn to_u64(self) -> u64 {
        (u64::from(self.file) << 32) | u64::from(self.block)
    }

    /// Inverse of [`BlockAddress::to_u64`].
    pub fn from_u64(value: u64) -> BlockAddress {
        BlockAddress {
            file: (value >> 32) as u16,
            block: value as u32,
        }
    }
}

impl fmt::Display for BlockAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.file, self.block)
    }
}

impl fmt::Debug for BlockAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Where a row is: its block and its slot there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId {
    /// The block.
    pub address: BlockAddress,
    /// The slot, from 0.
    pub slot: u16,
}

impl fmt::Display for RowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.address, self.slot)
    }
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlockKind {
    /// Written once when the file was made, never used since.
    Unused = 1,
    /// Block 0 of a datafile.
    FileHeader = 2,
    /// Rows of a table.
    Heap = 3,
    /// Undo records.
    Undo = 4,
    /// A part of the transaction table (undo segment header).
    TransactionTable = 5,
}

fn get_u16(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(block[at..at + 2].try_into().expect("two bytes"))
}

fn get_u32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"))
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Writes a fresh header; the body is left as it is.
pub fn format(block: &mut [u8], kind: BlockKind, address: BlockAddress, segment: u32) {
    block[..HEADER_BYTES].fill(0);
    block[4] = kind as u8;
    block[5] = FORMAT_VERSION;
    put(block, 8, &address.to_u64().to_le_bytes());
    put(block, 24, &segment.to_le_bytes());
}

/// The kind byte, as stored.
pub fn kind(block: &[u8]) -> u8 {
    block[4]
}

/// The block's SCN.
pub fn scn(block: &[u8]) -> u64 {
    get_u64(block, 16)
}

/// Sets the block's SCN.
pub fn set_scn(block: &mut [u8], scn: u64) {
    put(block, 16, &scn.to_le_bytes());
}

/// Stores the checksum: the last thing done before a block is written.
pub fn seal(block: &mut [u8]) {
    let crc = crc32c::crc32c(&block[4..]);
    put(block, 0, &crc.to_le_bytes());
}

/// Checks that a block read at `address` is whole and is the one that belongs there.
pub fn verify(block: &[u8], address: BlockAddress) -> Result<(), String> {
    let stored = get_u32(block, 0);
    let computed = crc32c::crc32c(&block[4..]);
    if stored != computed {
        return Err(format!(
            "its checksum is {stored:08x}, its bytes say {computed:08x} (torn or overwritten)"
        ));
    }
    let found = BlockAddress::from_u64(get_u64(block, 8));
    if found != address {
        return Err(format!(
            "it bears the address {found} (misdirected write or read)"
        ));
    }
    if block[5] != FORMAT_VERSION {
        return Err(format!(
            "its format version is {}, this program knows {FORMAT_VERSION}",
            block[5]
        ));
    }
    Ok(())
}

/// Rows of fixed length: row length (2 bytes), number of slots (2), a bitmap of slots in use, the rows.
pub mod heap {
    use super::{BlockAddress, BlockKind, HEADER_BYTES, format, get_u16, kind, put};

    const FIXED: usize = HEADER_BYTES + 4;

    /// Rows of `row_bytes` that fit into a block of `block_bytes`.
    pub fn slots_per_block(block_bytes: usize, row_bytes: usize) -> usize {
        let mut slots = (block_bytes - FIXED) * 8 / (row_bytes * 8 + 1);
        while slots > 0 && FIXED + slots.div_ceil(8) + slots * row_bytes > block_bytes {
            slots -= 1;
        }
        slots
    }

    /// The longest row of which one fits into a block.
    pub fn row_bytes_max(block_bytes: usize) -> usize {
        block_bytes - FIXED - 1
    }

    /// Makes an empty heap block.
    pub fn format_heap(block: &mut [u8], address: BlockAddress, segment: u32, row_bytes: usize) {
        format(block, BlockKind::Heap, address, segment);
        let slots = slots_per_block(block.len(), row_bytes);
        put(block, HEADER_BYTES, &(row_bytes as u16).to_le_bytes());
        put(block, HEADER_BYTES + 2, &(slots as u16).to_le_bytes());
        block[FIXED..FIXED + slots.div_ceil(8)].fill(0);
    }

    /// True when the block is a heap block.
    pub fn is_heap(block: &[u8]) -> bool {
        kind(block) == BlockKind::Heap as u8
    }

    /// Slots in the block, used or not.
    pub fn slots(block: &[u8]) -> u16 {
        get_u16(block, HEADER_BYTES + 2)
    }

    fn row_start(block: &[u8], slot: u16) -> (usize, usize) {
        let row_bytes = usize::from(get_u16(block, HEADER_BYTES));
        let start = FIXED + usize::from(slots(block)).div_ceil(8) + usize::from(slot) * row_bytes;
        (start, row_bytes)
    }

    fn is_used(block: &[u8], slot: u16) -> bool {
        slot < slots(block) && block[FIXED + usize::from(slot / 8)] & (1 << (slot % 8)) != 0
    }

    /// The row in a slot; `None` when the slot is empty or does not exist.
    pub fn row(block: &[u8], slot: u16) -> Option<&[u8]> {
        if !is_heap(block) || !is_used(block, slot) {
            return None;
        }
        let (start, length) = row_start(block, slot);
        Some(&block[start..start + length])
    }

    /// The first empty slot.
    pub fn empty_slot(block: &[u8]) -> Option<u16> {
        (0..slots(block)).find(|&slot| !is_used(block, slot))
    }

    /// Puts a whole row into a slot, or empties it.
    pub fn set_row(block: &mut [u8], slot: u16, row: Option<&[u8]>) {
        let bit = 1u8 << (slot % 8);
        let at = FIXED + usize::from(slot / 8);
        match row {
            None => block[at] &= !bit,
            Some(bytes) => {
                block[at] |= bit;
                let (start, length) = row_start(block, slot);
                block[start..start + length].copy_from_slice(bytes);
            }
        }
    }

    /// Overwrites some bytes of a row.
    pub fn patch_row(block: &mut [u8], slot: u16, offset: u16, bytes: &[u8]) {
        let (start, _) = row_start(block, slot);
        put(block, start + usize::from(offset), bytes);
    }
}

/// Undo records, newest last: the offset of the first free byte (4 bytes), then each record with its length after it, so
/// that a chain can be walked backwards.
pub mod undo {
    use super::{BlockAddress, BlockKind, HEADER_BYTES, format, get_u16, get_u32, put};

    /// Bytes in use in an empty undo block.
    pub const EMPTY_BYTES: usize = HEADER_BYTES + 8;

    /// Bytes a record of `record_bytes` takes in a block.
    pub fn stored_bytes(record_bytes: usize) -> usize {
        record_bytes + 2
    }

    /// Makes an empty undo block.
    pub fn format_undo(block: &mut [u8], address: BlockAddress, segment: u32) {
        format(block, BlockKind::Undo, address, segment);
        truncate(block, EMPTY_BYTES);
    }

    /// Offset of the first free byte.
    pub fn used(block: &[u8]) -> usize {
        get_u32(block, HEADER_BYTES) as usize
    }

    /// The longest record that an empty block of `block_bytes` takes.
    pub fn record_bytes_max(block_bytes: usize) -> usize {
        block_bytes - EMPTY_BYTES - 2
    }

    /// Adds a record; it must fit.
    pub fn append(block: &mut [u8], record: &[u8]) {
        let at = used(block);
        put(block, at, record);
        put(
            block,
            at + record.len(),
            &(record.len() as u16).to_le_bytes(),
        );
        truncate(block, at + record.len() + 2);
    }

    /// The newest record and where it begins; `None` in an empty block.
    pub fn last(block: &[u8]) -> Option<(usize, &[u8])> {
        let end = used(block);
        if end <= EMPTY_BYTES {
            return None;
        }
        let length = usize::from(get_u16(block, end - 2));
        let start = end - 2 - length;
        Some((start, &block[start..end - 2]))
    }

    /// Forgets everything from offset `used` on.
    pub fn truncate(block: &mut [u8], used: usize) {
        put(block, HEADER_BYTES, &(used as u32).to_le_bytes());
    }
}

/// The transaction table: one entry per slot, spread over the first blocks of the undo segment.
pub mod transaction_table {
    use super::{BlockAddress, BlockKind, HEADER_BYTES, format, get_u32, get_u64, put};

    const ENTRY_BYTES: usize = 16;

    /// One slot.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Entry {
        /// A transaction uses the slot and has not ended.
        pub active: bool,
        /// How often the slot has been used: with the slot it names a transaction.
        pub wrap: u32,
        /// The undo block the transaction wrote to last.
        pub undo_block: BlockAddress,
    }

    impl Entry {
        /// As stored.
        pub fn to_bytes(self) -> [u8; ENTRY_BYTES] {
            let mut bytes = [0; ENTRY_BYTES];
            bytes[0] = u8::from(self.active);
            put(&mut bytes, 4, &self.wrap.to_le_bytes());
            put(&mut bytes, 8, &self.undo_block.to_u64().to_le_bytes());
            bytes
        }
    }

    /// Slots in a block of `block_bytes`.
    pub fn slots_per_block(block_bytes: usize) -> usize {
        (block_bytes - HEADER_BYTES) / ENTRY_BYTES
    }

    /// Makes a table block with every slot free.
    pub fn format_table(block: &mut [u8], address: BlockAddress, segment: u32) {
        format(block, BlockKind::TransactionTable, address, segment);
        block[HEADER_BYTES..].fill(0);
    }

    /// Reads a slot.
    pub fn entry(block: &[u8], slot: usize) -> Entry {
        let at = HEADER_BYTES + slot * ENTRY_BYTES;
        Entry {
            active: block[at] != 0,
            wrap: get_u32(block, at + 4),
            undo_block: BlockAddress::from_u64(get_u64(block, at + 8)),
        }
    }

    /// Writes a slot as stored bytes.
    pub fn set_entry(block: &mut [u8], slot: usize, bytes: &[u8]) {
        put(block, HEADER_BYTES + slot * ENTRY_BYTES, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: BlockAddress = BlockAddress { file: 3, block: 77 };

    #[test]
    fn a_damaged_or_misplaced_block_is_refused() {
        let mut block = vec![0x5A; 4096];
        heap::format_heap(&mut block, ADDRESS, 1, 100);
        seal(&mut block);
        assert_eq!(verify(&block, ADDRESS), Ok(()));
        assert!(
            verify(&block, BlockAddress { file: 3, block: 78 })
                .unwrap_err()
                .contains("3.77")
        );
        block[4000] ^= 1;
        assert!(verify(&block, ADDRESS).unwrap_err().contains("checksum"));
    }

    #[test]
    fn heap_rows_fill_a_block_exactly() {
        for (block_bytes, row_bytes) in [
            (2048, 1),
            (2048, 7),
            (8192, 128),
            (8192, 200),
            (32768, 1000),
        ] {
            let slots = heap::slots_per_block(block_bytes, row_bytes);
            let mut block = vec![0; block_bytes];
            heap::format_heap(&mut block, ADDRESS, 1, row_bytes);
            for slot in 0..slots as u16 {
                assert_eq!(heap::empty_slot(&block), Some(slot));
                heap::set_row(&mut block, slot, Some(&vec![slot as u8; row_bytes]));
            }
            assert_eq!(heap::empty_slot(&block), None);
            assert!(
                (0..slots as u16)
                    .all(|slot| heap::row(&block, slot).unwrap() == vec![slot as u8; row_bytes])
            );
            heap::set_row(&mut block, 0, None);
            assert_eq!(heap::row(&block, 0), None);
        }
        assert_eq!(heap::slots_per_block(8192, heap::row_bytes_max(8192)), 1);
    }

    #[test]
    fn undo_records_are_walked_backwards() {
        let mut block = vec![0; 2048];
        undo::format_undo(&mut block, ADDRESS, 1);
        assert_eq!(undo::last(&block), None);
        undo::append(&mut block, b"first");
        undo::append(&mut block, b"second");
        let (start, record) = undo::last(&block).unwrap();
        assert_eq!(record, b"second");
        undo::truncate(&mut block, start);
        assert_eq!(undo::last(&block).unwrap().1, b"first");
    }
}
