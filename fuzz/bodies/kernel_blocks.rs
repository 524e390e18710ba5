//! Any bytes as what the embedded database reads from its devices: a block of each kind, redo, a control file. What the
//! checks let pass is read in every way there is, and redo that passes is carried out on it; nothing of that may panic,
//! go on for ever, or leave a block that would not be written.

use spindle_kernel::block::heap::{self, RowFit, RowKind};
use spindle_kernel::block::index::{self, EntryPlace, IndexEntry, IndexHead, Node};
use spindle_kernel::block::{self, BlockAddress, BlockKind, RowId, RowVersion};
use spindle_kernel::block::{space_map, transaction_table, undo};
use spindle_kernel::redo::{self, RecordBuilder, VectorKind, Vectors, row_head};
use spindle_kernel::{control_file_copy, first_free_blocks, seal_copy};

/// The blocks' length.
const BLOCK: usize = 2048;
const ADDRESS: BlockAddress = BlockAddress { file: 1, block: 9 };
const SEGMENT: u32 = 3;
/// What a control file begins with.
const CONTROL_HEADER_BYTES: usize = 24;

/// The first byte says what the others are: redo for each of the blocks that there are to begin with, a control file,
/// or a block.
pub fn run(bytes: &[u8]) {
    let Some((what, bytes)) = bytes.split_first() else {
        return;
    };
    match what % 4 {
        0 => carry_out(bytes),
        1 => {
            read_control_file(bytes);
            // Its checksum is right: otherwise that would be all that is looked at.
            let mut sealed = bytes.to_vec();
            if sealed.len() >= CONTROL_HEADER_BYTES {
                seal_copy(&mut sealed);
                read_control_file(&sealed);
            }
        }
        _ => {
            let mut block = bytes.to_vec();
            block.resize(BLOCK, 0);
            // Its header is right: otherwise that would be all that is looked at.
            let whole = blocks().swap_remove(0);
            let kind = block[4];
            block[5..16].copy_from_slice(&whole[5..16]);
            block[24..28].copy_from_slice(&SEGMENT.to_le_bytes());
            block[4] = kind;
            look_at(&block);
        }
    }
}

/// Carries redo out as recovery does: record by record, each vector that fits.
fn carry_out(bytes: &[u8]) {
    for whole in blocks() {
        let mut rest = bytes;
        let mut block = whole;
        while !rest.is_empty() {
            let Ok((vectors, after)) = redo::split_record(rest) else {
                break;
            };
            assert!(after.len() < rest.len(), "a record takes something");
            rest = after;
            for vector in Vectors::new(vectors) {
                if vector.kind != VectorKind::Image && redo::check(vector, &block).is_ok() {
                    redo::apply(vector, &mut block, 1000);
                }
            }
        }
        look_at(&block);
    }
}

/// Reads a block in every way, if it passes the check.
fn look_at(block: &[u8]) {
    match block::check(block, ADDRESS) {
        Err(damage) => assert!(!damage.to_string().is_empty()),
        Ok(()) if heap::is_heap(block) => look_at_heap(block),
        Ok(()) if index::is_node(block) => look_at_node(block),
        Ok(()) if index::is_head(block) => drop(IndexHead::of(block)),
        Ok(()) if block[4] == BlockKind::Undo as u8 => look_at_undo(block),
        Ok(()) if space_map::is_map(block) => {
            for place in 0..space_map::places_per_block(BLOCK) {
                space_map::fill_at(block, place);
            }
        }
        Ok(()) if block[4] == BlockKind::TransactionTable as u8 => {
            for slot in 0..transaction_table::slots_per_block(BLOCK) {
                transaction_table::entry(block, slot);
            }
        }
        Ok(()) => {}
    }
}

fn look_at_heap(block: &[u8]) {
    let slots = heap::slots(block);
    for slot in 0..=slots {
        heap::version(block, slot);
        heap::spare(block, slot, Some(100));
        if let Some((kind, bytes)) = heap::stored(block, slot)
            && kind != RowKind::Row
        {
            RowId::from_bytes(bytes);
        }
        for length in [0, 8, 100, 700] {
            let mut changed = block.to_vec();
            match heap::fit(block, slot, length, 0, |other| other % 3 == 0) {
                RowFit::No => continue,
                RowFit::Now => {}
                RowFit::Compacted(cut) => heap::compact(&mut changed, slot, cut.into_iter()),
            }
            heap::put_row(
                &mut changed,
                slot,
                RowKind::Row,
                RowVersion::LOADED,
                &vec![1; length],
            );
            block::check(&changed, ADDRESS).expect("it takes a row where one fits");
        }
    }
}

fn look_at_node(block: &[u8]) {
    let places: Vec<(Vec<u8>, RowId)> = index::entries(block)
        .map(|entry| (index::key_of(block, &entry), entry.row))
        .collect();
    let looked_for = places
        .iter()
        .map(|(key, row)| EntryPlace { key, row: *row });
    for place in looked_for.chain([EntryPlace::FIRST]) {
        index::covers(block, SEGMENT, place);
        let found = index::find(block, place);
        assert!(found.is_err() || !places.is_empty());
        if index::level(block) > 0 {
            index::child(block, place);
        }
    }
    for bytes in [0, 40, 400] {
        index::fit(block, bytes, true, None, |number| number % 2 == 0);
    }
    index::right(block);
    index::high(block);
    let node = Node::of(block);
    let entries = index::entries(block).map(|entry| (index::prefix(block), entry));
    node.with(entries);
    if index::count(block) > 1 {
        let keep = index::split_at(block, 0).clamp(1, index::count(block) - 1);
        index::separator(block, keep);
    }
}

fn look_at_undo(block: &[u8]) {
    let last = undo::last(block);
    for start in 0..BLOCK {
        let found = undo::starting_at(block, start);
        assert!(found.is_none() || last.is_some());
    }
    undo::takes(block, 100);
}

/// A block of each kind, as it may be.
fn blocks() -> Vec<Vec<u8>> {
    let blank = || vec![0; BLOCK];
    let row = |slot| RowId {
        address: ADDRESS,
        slot,
    };
    let mut rows = blank();
    heap::format_heap(&mut rows, ADDRESS, SEGMENT);
    for (slot, kind) in [
        RowKind::Row,
        RowKind::Forward,
        RowKind::Migrated,
        RowKind::Row,
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = [&row(7).to_bytes()[..], &[slot as u8; 90]].concat();
        let length = if kind == RowKind::Forward { 8 } else { 98 };
        heap::put_row(
            &mut rows,
            slot as u16,
            kind,
            RowVersion::LOADED,
            &bytes[..length],
        );
    }
    heap::clear_row(&mut rows, 3, RowVersion::LOADED);

    let nodes = [0, 1].map(|level| {
        let node = Node {
            level,
            low: EntryPlace {
                key: b"aab",
                row: row(0),
            },
            high: Some(EntryPlace {
                key: b"aaz",
                row: row(0),
            }),
            right: Some(BlockAddress { file: 1, block: 12 }),
        };
        let number = |place: u16| (level == 1 || place == 2).then_some(u64::from(place) + 20);
        let keys = [&b"aab"[..], b"aac", b"aacd", b"aaf"];
        let entries = (0u16..).zip(keys).map(|(place, key)| {
            let entry = IndexEntry {
                suffix: key,
                row: row(place),
                number: number(place),
                is_ghost: level == 0 && place == 2,
            };
            (&[][..], entry)
        });
        let bytes = node.with(entries);
        let mut block = blank();
        index::format_node(&mut block, ADDRESS, SEGMENT, &bytes);
        block
    });

    let mut head = blank();
    let of = IndexHead {
        free: Some(BlockAddress { file: 1, block: 15 }),
        fresh: 8,
    };
    index::format_head(&mut head, ADDRESS, SEGMENT, of);
    let mut records = blank();
    undo::format_undo(&mut records, ADDRESS, SEGMENT);
    for length in [40, 60, 90] {
        undo::append(&mut records, &vec![length; usize::from(length)]);
    }
    let mut table = blank();
    transaction_table::format_table(&mut table, ADDRESS, SEGMENT);
    let mut map = blank();
    space_map::format_map(&mut map, ADDRESS, SEGMENT);
    let [leaf, branch] = nodes;
    vec![rows, leaf, branch, head, records, table, map]
}

fn read_control_file(bytes: &[u8]) {
    if let Some(first_free) = first_free_blocks(bytes) {
        assert!(first_free.len() <= bytes.len());
    }
}

/// Redo that most of the blocks take, the blocks, and a control file.
pub fn beginnings() -> Vec<Vec<u8>> {
    let mut builder = RecordBuilder::default();
    let head = row_head(0, [0, 0], RowVersion::LOADED);
    builder.push(VectorKind::SetRow, ADDRESS, &[&head, &[5; 120]]);
    builder.push(VectorKind::CompactHeap, ADDRESS, &[&[3, 0], &[0, 0]]);
    builder.push(VectorKind::UndoAppend, ADDRESS, &[&[9; 50]]);
    builder.push(VectorKind::DropEntry, ADDRESS, &[&[1, 0]]);
    builder.push(VectorKind::TidyNode, ADDRESS, &[&[0, 0, 2, 0]]);
    builder.push(VectorKind::SetFill, ADDRESS, &[&[77, 0, 0, 0, 2]]);
    let length = redo::RECORD_HEADER_BYTES + builder.bytes().len();
    let record = [&(length as u32).to_le_bytes(), builder.bytes()].concat();
    let mut beginnings = vec![[&[0][..], &record, &record].concat()];
    beginnings.push([&[1][..], &control_file_copy()].concat());
    beginnings.extend(
        blocks()
            .into_iter()
            .map(|block| [&[2][..], &block].concat()),
    );
    beginnings
}
