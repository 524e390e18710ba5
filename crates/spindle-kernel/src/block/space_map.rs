//! The map of free space: what blocks of a datafile hold, two bits for each. The first blocks of a datafile behind its
//! header are its map. After the block's header, four blocks to a byte, the lowest bits first.

use super::{BlockAddress, BlockKind, HEADER_BYTES, format, kind};

/// What a map says of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fill {
    /// Nothing: it was never used, or it was loaded and has been left alone since, or it is not of a table or index.
    Untold = 0,
    /// It is in use, and has no room worth looking at.
    Full = 1,
    /// Of a table: rows may be added. Of an index: it is a leaf that holds nothing.
    Room = 2,
}

impl Fill {
    /// Inverse of `as u8`; `None` for what is none.
    pub fn from_u8(value: u8) -> Option<Fill> {
        match value {
            0 => Some(Fill::Untold),
            1 => Some(Fill::Full),
            2 => Some(Fill::Room),
            _ => None,
        }
    }
}

/// Blocks of which a map block of `block_bytes` tells.
pub fn places_per_block(block_bytes: usize) -> u32 {
    4 * (block_bytes - HEADER_BYTES) as u32
}

/// Blocks that the map of a datafile of `file_blocks` takes.
pub fn map_blocks(block_bytes: usize, file_blocks: u32) -> u32 {
    file_blocks.div_ceil(places_per_block(block_bytes))
}

/// Where the map tells of a block: the map's block, and the place there.
pub fn place_of(block_bytes: usize, address: BlockAddress) -> (BlockAddress, u32) {
    let places = places_per_block(block_bytes);
    let map = BlockAddress {
        file: address.file,
        block: 1 + address.block / places,
    };
    (map, address.block % places)
}

/// Makes a map block that tells nothing yet.
pub fn format_map(block: &mut [u8], address: BlockAddress, segment: u32) {
    format(block, BlockKind::SpaceMap, address, segment);
    block[HEADER_BYTES..].fill(0);
}

/// True when the block is one of a map.
pub fn is_map(block: &[u8]) -> bool {
    kind(block) == BlockKind::SpaceMap as u8
}

/// What it says of the block at a place; what is no word of it counts as nothing.
pub fn fill_at(block: &[u8], place: u32) -> Fill {
    let byte = block[HEADER_BYTES + place as usize / 4];
    Fill::from_u8(byte >> (2 * (place % 4)) & 3).unwrap_or(Fill::Untold)
}

/// Notes what the block at a place holds.
pub fn set_fill(block: &mut [u8], place: u32, fill: Fill) {
    let byte = &mut block[HEADER_BYTES + place as usize / 4];
    let shift = 2 * (place % 4);
    *byte = *byte & !(3 << shift) | (fill as u8) << shift;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_a_place_and_keeps_its_word() {
        let places = places_per_block(2048);
        let at = |block| place_of(2048, BlockAddress { file: 2, block });
        let map = |block| BlockAddress { file: 2, block };
        assert_eq!(at(0), (map(1), 0));
        assert_eq!(at(places - 1), (map(1), places - 1));
        assert_eq!(at(places), (map(2), 0));
        assert_eq!(map_blocks(2048, places), 1);
        assert_eq!(map_blocks(2048, places + 1), 2);

        let mut block = vec![0xFF; 2048];
        format_map(&mut block, map(1), 0);
        let words = [Fill::Room, Fill::Full, Fill::Untold, Fill::Room, Fill::Full];
        for (place, fill) in (places - 5..places).zip(words) {
            set_fill(&mut block, place, Fill::Full);
            set_fill(&mut block, place, fill);
        }
        for (place, fill) in (places - 5..places).zip(words) {
            assert_eq!(fill_at(&block, place), fill);
        }
        assert_eq!(fill_at(&block, places - 6), Fill::Untold);
    }
}
