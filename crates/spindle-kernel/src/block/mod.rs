//! The database block: its header, and the checks that a block read from a device must pass; in separate modules the
//! kinds of body (heap, index, undo, transaction table, map). Pure functions on bytes; everything else in the kernel
//! goes through them.
//!
//! Header, little-endian: CRC32C of the rest (4 bytes), kind (1), format version (1), unused (2), address (8), SCN (8),
//! segment number (4), unused (4). The SCN is the redo position just after the last change to the block: one number
//! says both how new a block is and how far the redo must be on stable storage before the block may be written.

pub mod heap;
pub mod index;
pub mod space_map;
pub mod transaction_table;
pub mod undo;

use std::fmt;

/// Bytes before the body.
pub const HEADER_BYTES: usize = 32;
const FORMAT_VERSION: u8 = 2;

/// Where a block is: datafile number and block number in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// Datafile number; 0 is the undo tablespace's.
    pub file: u16,
    /// Block number in the file; 0 is the file's own header.
    pub block: u32,
}

impl BlockAddress {
    /// The number of a datafile that no database has: keys are locked as if they were rows of it.
    pub(crate) const OF_KEYS: u16 = u16::MAX;

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

impl RowId {
    /// Bytes of a rowid as stored.
    pub const BYTES: usize = 8;
    /// After every row's.
    pub const MAX: RowId = RowId {
        address: BlockAddress {
            file: u16::MAX,
            block: u32::MAX,
        },
        slot: u16::MAX,
    };

    /// As stored: datafile (2), block (4), slot (2).
    pub fn to_bytes(self) -> [u8; RowId::BYTES] {
        let mut bytes = [0; RowId::BYTES];
        put(&mut bytes, 0, &self.address.file.to_le_bytes());
        put(&mut bytes, 2, &self.address.block.to_le_bytes());
        put(&mut bytes, 6, &self.slot.to_le_bytes());
        bytes
    }

    /// The rowid at the beginning of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> RowId {
        RowId {
            address: BlockAddress {
                file: get_u16(bytes, 0),
                block: get_u32(bytes, 2),
            },
            slot: get_u16(bytes, 6),
        }
    }
}

impl fmt::Display for RowId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.address.file == BlockAddress::OF_KEYS {
            return write!(
                formatter,
                "of key {:08x}{:04x}",
                self.address.block, self.slot
            );
        }
        write!(formatter, "{}.{}", self.address, self.slot)
    }
}

/// Which change made a row what it is: the transaction, and where its undo record is, which leads to the version
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowVersion {
    /// Slot of the transaction table and wrap number in one; 0: the row is as it was loaded, or has never been there.
    pub transaction: u64,
    /// Block of the undo segment.
    pub undo_block: BlockAddress,
    /// Offset of the undo record in that block.
    pub undo_offset: u16,
}

impl RowVersion {
    /// Bytes of a version as stored.
    pub const BYTES: usize = 16;
    /// Changed by no transaction.
    pub const LOADED: RowVersion = RowVersion {
        transaction: 0,
        undo_block: BlockAddress { file: 0, block: 0 },
        undo_offset: 0,
    };

    /// As stored: transaction (8), undo block (4), offset there (2), the undo block's datafile (2).
    pub fn to_bytes(self) -> [u8; RowVersion::BYTES] {
        let mut bytes = [0; RowVersion::BYTES];
        put(&mut bytes, 0, &self.transaction.to_le_bytes());
        put(&mut bytes, 8, &self.undo_block.block.to_le_bytes());
        put(&mut bytes, 12, &self.undo_offset.to_le_bytes());
        put(&mut bytes, 14, &self.undo_block.file.to_le_bytes());
        bytes
    }

    /// The version at the beginning of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> RowVersion {
        RowVersion {
            transaction: get_u64(bytes, 0),
            undo_block: BlockAddress {
                file: get_u16(bytes, 14),
                block: get_u32(bytes, 8),
            },
            undo_offset: get_u16(bytes, 12),
        }
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
    /// A node of an index, or its header.
    Index = 6,
    /// Records of a sort or an aggregation, in a tempfile.
    Temporary = 7,
    /// A part of the map of a datafile's free space.
    SpaceMap = 8,
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

/// The segment it belongs to.
pub fn segment(block: &[u8]) -> u32 {
    get_u32(block, 24)
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

/// What is wrong with a block, or with redo for it, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Damage(pub(crate) String);

/// Checks that a block read at `address` is whole and is the one that belongs there.
pub fn verify(block: &[u8], address: BlockAddress) -> Result<(), Damage> {
    let stored = get_u32(block, 0);
    let computed = crc32c::crc32c(&block[4..]);
    if stored != computed {
        return Err(Damage(format!(
            "its checksum is {stored:08x}, its bytes say {computed:08x} (torn or overwritten)"
        )));
    }
    check_header(block, address)
}

fn check_header(block: &[u8], address: BlockAddress) -> Result<(), Damage> {
    let found = BlockAddress::from_u64(get_u64(block, 8));
    if found != address {
        return Err(Damage(format!(
            "it bears the address {found} (misdirected write or read)"
        )));
    }
    if block[5] != FORMAT_VERSION {
        return Err(Damage(format!(
            "its format version is {}, this program knows {FORMAT_VERSION}",
            block[5]
        )));
    }
    Ok(())
}

/// Checks a block that is about to be written at `address`: its header, and that what its body says of itself can be.
/// Its checksum is yet to be stored.
pub fn check(block: &[u8], address: BlockAddress) -> Result<(), Damage> {
    check_header(block, address)?;
    let is = |wanted: BlockKind| kind(block) == wanted as u8;
    if is(BlockKind::Heap) {
        heap::check(block)
    } else if is(BlockKind::Index) {
        index::check(block).map_or(Ok(()), |what| Err(Damage(what)))
    } else if is(BlockKind::Undo) {
        undo::check(block)
    } else if is(BlockKind::TransactionTable) || is(BlockKind::Unused) || is(BlockKind::SpaceMap) {
        Ok(())
    } else {
        Err(Damage(format!("it is of kind {}", kind(block))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: BlockAddress = BlockAddress { file: 3, block: 77 };

    #[test]
    fn a_damaged_or_misplaced_block_is_refused() {
        let mut block = vec![0x5A; 4096];
        heap::format_heap(&mut block, ADDRESS, 1);
        seal(&mut block);
        assert_eq!(verify(&block, ADDRESS), Ok(()));
        assert!(
            verify(&block, BlockAddress { file: 3, block: 78 })
                .unwrap_err()
                .0
                .contains("3.77")
        );
        block[4000] ^= 1;
        assert!(verify(&block, ADDRESS).unwrap_err().0.contains("checksum"));
    }

    #[test]
    fn a_block_that_cannot_be_is_not_written() {
        let mut heap = vec![0; 4096];
        heap::format_heap(&mut heap, ADDRESS, 1);
        for (slot, row) in [[7; 20], [8; 20]].iter().enumerate() {
            heap::put_row(
                &mut heap,
                slot as u16,
                heap::RowKind::Row,
                RowVersion::LOADED,
                row,
            );
        }
        assert_eq!(check(&heap, ADDRESS), Ok(()));
        let mut undo = vec![0; 4096];
        undo::format_undo(&mut undo, ADDRESS, 1);
        undo::append(&mut undo, b"record");
        assert_eq!(check(&undo, ADDRESS), Ok(()));

        let said = |block: &[u8], at: usize, byte: u8| {
            let mut block = block.to_vec();
            block[at] = byte;
            check(&block, ADDRESS).unwrap_err().0
        };
        assert!(said(&heap, 8, 99).contains("the address 3.99"));
        assert!(said(&heap, 4, 77).contains("of kind 77"));
        assert!(said(&heap, 4, BlockKind::FileHeader as u8).contains("of kind 2"));
        // The number of slots, where rooms begin, and where the first slot's room is.
        for at in [HEADER_BYTES + 1, HEADER_BYTES + 3, heap::slot_at(0) + 1] {
            assert!(said(&heap, at, 0xFF).contains("of its"), "byte {at}");
        }
        assert!(said(&undo, HEADER_BYTES + 1, 0xFF).contains("of its 4096 bytes"));
    }
}
