//! The transaction table: one entry per slot, spread over the first blocks of the undo segment.

use super::{BlockAddress, BlockKind, HEADER_BYTES, format, get_u32, get_u64, put};

/// Bytes of a slot.
pub const ENTRY_BYTES: usize = 16;

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
