//! Undo records, newest last: the offset of the first free byte (4 bytes), then each record with its length after it,
//! so that a chain can be walked backwards.

use super::{BlockAddress, BlockKind, Damage, HEADER_BYTES, format, get_u16, get_u32, kind, put};

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

/// True when a record of `record_bytes` fits.
pub fn takes(block: &[u8], record_bytes: usize) -> bool {
    (EMPTY_BYTES..=block.len()).contains(&used(block))
        && stored_bytes(record_bytes) <= block.len() - used(block)
}

/// Checks that no more is in use than there is.
pub fn check(block: &[u8]) -> Result<(), Damage> {
    if (EMPTY_BYTES..=block.len()).contains(&used(block)) {
        return Ok(());
    }
    let used = used(block);
    Err(Damage(format!(
        "{used} of its {} bytes are in use",
        block.len()
    )))
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

/// The newest record and where it begins; `None` in an empty block, and in one that is no undo block.
pub fn last(block: &[u8]) -> Option<(usize, &[u8])> {
    let end = used(block);
    let is_undo = kind(block) == BlockKind::Undo as u8;
    if !is_undo || !(EMPTY_BYTES + 2..=block.len()).contains(&end) {
        return None;
    }
    let length = usize::from(get_u16(block, end - 2));
    let start = (end - 2).checked_sub(length)?;
    Some((start, &block[start..end - 2]))
}

/// The record that begins at offset `start`, if one does: records are counted back from the newest, so that bytes of a
/// later use of the block are never taken for one.
pub fn starting_at(block: &[u8], start: usize) -> Option<&[u8]> {
    if kind(block) != BlockKind::Undo as u8 {
        return None;
    }
    let mut end = used(block);
    while end > EMPTY_BYTES {
        let length = usize::from(get_u16(block, end.checked_sub(2)?));
        let at = end.checked_sub(stored_bytes(length))?;
        if at <= start {
            return (at == start).then(|| &block[at..end - 2]);
        }
        end = at;
    }
    None
}

/// Forgets everything from offset `used` on.
pub fn truncate(block: &mut [u8], used: usize) {
    put(block, HEADER_BYTES, &(used as u32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_records_are_walked_backwards() {
        let mut block = vec![0; 2048];
        format_undo(&mut block, BlockAddress { file: 0, block: 7 }, 1);
        assert_eq!(last(&block), None);
        append(&mut block, b"first");
        append(&mut block, b"second");
        let (start, record) = last(&block).unwrap();
        assert_eq!(record, b"second");
        truncate(&mut block, start);
        assert_eq!(last(&block).unwrap().1, b"first");
    }

    #[test]
    fn a_record_is_found_where_it_begins_and_nowhere_else() {
        let mut block = vec![0; 2048];
        let address = BlockAddress { file: 0, block: 7 };
        format_undo(&mut block, address, 1);
        let mut starts = Vec::new();
        for length in [30, 7, 100] {
            starts.push((used(&block), length));
            append(&mut block, &vec![length; usize::from(length)]);
        }
        for start in 0..2048 {
            let expected = starts.iter().find(|(at, _)| *at == start);
            let expected = expected.map(|&(_, length)| vec![length; usize::from(length)]);
            assert_eq!(starting_at(&block, start).map(<[u8]>::to_vec), expected);
        }
        format_undo(&mut block, address, 1);
        append(&mut block, &[9; 10]);
        append(&mut block, &[9; 200]);
        for (start, _) in &starts[1..] {
            assert_eq!(
                starting_at(&block, *start),
                None,
                "the block is another's now"
            );
        }
    }
}
