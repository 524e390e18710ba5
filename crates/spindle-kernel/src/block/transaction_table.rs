//! The transaction table: one entry per slot, spread over the first blocks of the undo segment.

use super::{BlockAddress, BlockKind, HEADER_BYTES, format, get_u32, get_u64, put};

/// Bytes of a slot.
pub const ENTRY_BYTES: usize = 32;

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionSlot {
    /// A transaction uses the slot and has not ended.
    pub active: bool,
    /// How often the slot has been used: with the slot it names a transaction.
    pub wrap: u32,
    /// The undo block the transaction wrote to last.
    pub undo_block: BlockAddress,
    /// SCN at which the transaction ended (its commit SCN), once it has.
    pub ended: u64,
    /// SCN at which the transaction before it in this slot ended: every older one of the slot had ended by then.
    pub ended_before: u64,
}

impl TransactionSlot {
    /// As stored.
    pub fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = u8::from(self.active);
        put(&mut bytes, 4, &self.wrap.to_le_bytes());
        put(&mut bytes, 8, &self.undo_block.to_u64().to_le_bytes());
        put(&mut bytes, 16, &self.ended.to_le_bytes());
        put(&mut bytes, 24, &self.ended_before.to_le_bytes());
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
pub fn entry(block: &[u8], slot: usize) -> TransactionSlot {
    let at = HEADER_BYTES + slot * ENTRY_BYTES;
    TransactionSlot {
        active: block[at] != 0,
        wrap: get_u32(block, at + 4),
        undo_block: BlockAddress::from_u64(get_u64(block, at + 8)),
        ended: get_u64(block, at + 16),
        ended_before: get_u64(block, at + 24),
    }
}

/// Writes a slot as stored bytes.
pub fn set_entry(block: &mut [u8], slot: usize, bytes: &[u8]) {
    put(block, HEADER_BYTES + slot * ENTRY_BYTES, bytes);
}

/// The slot's transaction has ended at an SCN.
pub fn end_entry(block: &mut [u8], slot: usize, scn: u64) {
    let ended = TransactionSlot {
        active: false,
        ended: scn,
        ..entry(block, slot)
    };
    set_entry(block, slot, &ended.to_bytes());
}
