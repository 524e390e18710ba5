//! How a copy of the control file is written down: a header with checksum, format and number, then words of 8 bytes,
//! then the columns of tables and keys, packed. What earlier versions wrote ends sooner.

use super::columns::{get_columns, put_columns};
use super::{
    COPY_BYTES, CheckpointRecord, Contents, Extent, IndexOfTable, KeyPart, Segment, StoredKey,
    UNDO_SEGMENT,
};
use crate::log::marks::Location;

const MAGIC: u32 = 0x5350_4343;
pub(super) const HEADER_BYTES: usize = 24;
/// What this program writes. Format 0 knew no columns.
pub(super) const FORMAT: u32 = 1;

/// A copy as it is written.
pub(crate) fn encode(contents: &Contents, number: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES];
    put_words(contents, &mut bytes);
    put_columns(contents, &mut bytes);
    bytes[12..16].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    seal_copy(&mut bytes);
    bytes
}

/// All but the columns.
fn put_words(contents: &Contents, bytes: &mut Vec<u8>) {
    let mut put = |value: u64| bytes.extend_from_slice(&value.to_le_bytes());
    let location = contents.checkpoint.location;
    put(contents.database);
    put(u64::from(contents.block_bytes));
    put(contents.checkpoint.position);
    put(location.position);
    put(location.file as u64);
    put(u64::from(location.sequence));
    put(location.offset);
    put(contents.file_blocks.len() as u64);
    for (blocks, next_free) in contents.file_blocks.iter().zip(&contents.next_free) {
        put(u64::from(*blocks));
        put(u64::from(*next_free));
    }
    put(contents.segments.len() as u64);
    for segment in &contents.segments {
        put(u64::from(segment.number));
        put(u64::from(segment.row_bytes));
        put(segment.loaded_rows);
        put(segment.extents.len() as u64);
        for extent in &segment.extents {
            put(u64::from(extent.file));
            put(u64::from(extent.first_block));
            put(u64::from(extent.blocks));
        }
        put(segment.name.len() as u64);
        segment.name.bytes().for_each(|byte| put(u64::from(byte)));
    }
    put(contents.indexes.len() as u64);
    for index in &contents.indexes {
        put(u64::from(index.segment));
        put(u64::from(index.table));
        put(u64::from(index.is_unique));
        let parts = match &index.key {
            StoredKey::Bytes(parts) => &parts[..],
            StoredKey::Columns(_) => &[],
        };
        put(parts.len() as u64);
        for part in parts {
            put(u64::from(part.offset));
            put(u64::from(part.bytes));
        }
    }
    put(u64::from(contents.has_maps));
}

/// Makes bytes a copy that is whole, whatever they say behind the header.
pub fn seal_copy(bytes: &mut [u8]) {
    let length = bytes.len() as u32;
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&length.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}

fn word_at(start: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"))
}

/// How long a copy says that it is; `None` when it is no copy.
pub(super) fn stated_length(start: &[u8]) -> Option<usize> {
    let length = word_at(start, 8) as usize;
    let fits = (HEADER_BYTES..=COPY_BYTES as usize).contains(&length);
    (word_at(start, 0) == MAGIC && fits).then_some(length)
}

/// A copy that is as it was written, without what follows it.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let length = stated_length(bytes.get(..HEADER_BYTES)?)?;
    let copy = bytes.get(..length)?;
    (crc32c::crc32c(&copy[8..]) == word_at(copy, 4)).then_some(copy)
}

/// The format of a whole copy that a later version of this program wrote.
pub(super) fn later_format(bytes: &[u8]) -> Option<u32> {
    let format = word_at(whole(bytes)?, 12);
    (format > FORMAT).then_some(format)
}

/// Reads a whole copy, whatever follows it.
pub(super) fn decode(bytes: &[u8]) -> Option<(Contents, u64)> {
    let copy = whole(bytes)?;
    let format = word_at(copy, 12);
    if format > FORMAT {
        return None;
    }
    let number = u64::from_le_bytes(copy[16..24].try_into().expect("eight bytes"));
    let mut rest = &copy[HEADER_BYTES..];
    let mut contents = decode_words(&mut || {
        let (word, behind) = rest.split_first_chunk()?;
        rest = behind;
        Some(u64::from_le_bytes(*word))
    })?;
    if format > 0 {
        get_columns(&mut contents, rest)?;
    }
    is_sound(&contents).then_some((contents, number))
}

/// All but the columns.
fn decode_words(next: &mut impl FnMut() -> Option<u64>) -> Option<Contents> {
    let (database, block_bytes, position) = (next()?, next()? as u32, next()?);
    let location = Location {
        position: next()?,
        file: next()? as usize,
        sequence: next()? as u32,
        offset: next()?,
    };
    let (mut file_blocks, mut next_free) = (Vec::new(), Vec::new());
    for _ in 0..next()? {
        file_blocks.push(next()? as u32);
        next_free.push(next()? as u32);
    }
    let mut segments = Vec::new();
    for _ in 0..next()? {
        segments.push(decode_segment(next)?);
    }
    let mut indexes = Vec::new();
    // A control file from before there were indexes ends here.
    for _ in 0..next().unwrap_or(0) {
        indexes.push(decode_index(next)?);
    }
    // One from before there were maps ends here.
    let has_maps = next().is_some_and(|word| word != 0);
    Some(Contents {
        database,
        block_bytes,
        checkpoint: CheckpointRecord { position, location },
        next_free,
        file_blocks,
        segments,
        indexes,
        has_maps,
    })
}

fn decode_index(next: &mut impl FnMut() -> Option<u64>) -> Option<IndexOfTable> {
    let (segment, table, is_unique) = (next()? as u32, next()? as u32, next()? != 0);
    let mut key = Vec::new();
    for _ in 0..next()? {
        key.push(KeyPart {
            offset: next()? as u16,
            bytes: next()? as u16,
        });
    }
    Some(IndexOfTable {
        segment,
        table,
        is_unique,
        key: StoredKey::Bytes(key),
    })
}

fn decode_segment(next: &mut impl FnMut() -> Option<u64>) -> Option<Segment> {
    let (number, row_bytes, loaded_rows) = (next()? as u32, next()? as u32, next()?);
    let mut extents = Vec::new();
    for _ in 0..next()? {
        extents.push(Extent {
            file: next()? as u16,
            first_block: next()? as u32,
            blocks: next()? as u32,
        });
    }
    let name_bytes: Option<Vec<u8>> = (0..next()?)
        .map(|_| next().map(|byte| byte as u8))
        .collect();
    let name = String::from_utf8(name_bytes?).ok()?;
    Some(Segment {
        number,
        name,
        row_bytes,
        loaded_rows,
        extents,
        columns: None,
    })
}

/// True when what the dictionary names is in it, as the code that opens the database takes for granted.
fn is_sound(contents: &Contents) -> bool {
    let has_place = |segment: &Segment| !segment.extents.is_empty();
    let is_undo = |segment: &Segment| segment.number == UNDO_SEGMENT && has_place(segment);
    let find = |number: u32| contents.segments.iter().find(|of| of.number == number);
    let is_index = |number: u32| contents.indexes.iter().any(|of| of.segment == number);
    contents.segments.first().is_some_and(is_undo)
        && contents.indexes.iter().all(|index| {
            let has_table = index.table != UNDO_SEGMENT && !is_index(index.table);
            let table = find(index.table).filter(|_| has_table);
            let has_key = table.is_some_and(|table| index.parts(table.columns.as_ref()).is_some());
            has_key && find(index.segment).is_some_and(has_place)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_query::{Column, DataType, Form, RowLayout};

    fn layout() -> RowLayout {
        let columns = [
            Column::in_form("aid", DataType::Integer, Form::Unsigned(4)),
            Column::in_form("abalance", DataType::Decimal(2), Form::Signed(8)),
            Column::new("day", DataType::Date),
            Column::in_form("made", DataType::Timestamp, Form::Signed(8)),
            Column::new("state", DataType::Char(2)),
            Column::in_form("last", DataType::Varchar(16), Form::Zeros),
            Column::new("note", DataType::Varchar(300)),
        ];
        RowLayout::new(columns).unwrap()
    }

    fn segment(number: u32, name: &str) -> Segment {
        Segment {
            number,
            name: name.to_owned(),
            row_bytes: 128,
            loaded_rows: 10,
            extents: vec![Extent {
                file: 1,
                first_block: 1 + 128 * number,
                blocks: 128,
            }],
            columns: None,
        }
    }

    /// Undo, a table of bytes and one of columns, and an index of each.
    fn contents() -> Contents {
        let mut segments: Vec<Segment> = ["undo", "rows", "accounts", "rows_key", "accounts_key"]
            .into_iter()
            .zip(0..)
            .map(|(name, number)| segment(number, name))
            .collect();
        segments[2].columns = Some(layout());
        let index = |segment, table, key| IndexOfTable {
            segment,
            table,
            is_unique: true,
            key,
        };
        let part = KeyPart {
            offset: 8,
            bytes: 16,
        };
        Contents {
            database: 99,
            block_bytes: 8192,
            checkpoint: CheckpointRecord {
                position: 5,
                location: Location {
                    position: 4,
                    file: 1,
                    sequence: 7,
                    offset: 4096,
                },
            },
            next_free: vec![3, 4],
            file_blocks: vec![100, 2000],
            segments,
            indexes: vec![
                index(3, 1, StoredKey::Bytes(vec![part])),
                index(4, 2, StoredKey::Columns(vec![5, 0, 6])),
            ],
            has_maps: true,
        }
    }

    #[test]
    fn contents_survive_writing_down() {
        let contents = contents();
        let mut bytes = encode(&contents, 3);
        bytes.resize(COPY_BYTES as usize, 0);
        assert_eq!(decode(&bytes), Some((contents, 3)));
        bytes[40] ^= 1;
        assert_eq!(decode(&bytes), None);
    }

    /// As it was written before there were columns, before there were maps, and before there were indexes: in format 0,
    /// ever fewer words at the end.
    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let mut old = contents();
        old.segments[2].columns = None;
        old.indexes.truncate(1);
        let mut bytes = vec![0; HEADER_BYTES];
        put_words(&old, &mut bytes);
        bytes[16] = 4;
        let mut read = |words: usize| {
            bytes.truncate(bytes.len() - 8 * words);
            seal_copy(&mut bytes);
            decode(&bytes)
        };
        assert_eq!(read(0), Some((old.clone(), 4)));
        old.has_maps = false;
        assert_eq!(read(1), Some((old.clone(), 4)));
        // The index: segment, table, whether it is unique, one part, and their number.
        old.indexes.clear();
        assert_eq!(read(7), Some((old, 4)));
    }

    /// Byte for byte what version 0 of the format was, for a database of one table.
    #[test]
    fn the_first_format_is_what_it_was() {
        let word = |value: u64| value.to_le_bytes();
        let undo = [0, 1, 0, 1, 0, 1, 9, 1, u64::from(b'u')];
        let table = [1, 100, 7, 1, 1, 2, 128, 1, u64::from(b't')];
        let index = [2, 16, 0, 1, 1, 130, 128, 1, u64::from(b'i')];
        let body = [
            [9, 2048, 0, 0, 0, 1, 4096].as_slice(),
            &[2, 10, 10, 600, 258],
        ];
        let end = [1, 2, 1, 1, 1, 8, 16, 1];
        let words = [&body.concat(), &[3][..], &undo, &table, &index, &end].concat();
        let mut bytes = [0x43, 0x43, 0x50, 0x53].to_vec();
        bytes.resize(HEADER_BYTES, 0);
        bytes[16] = 1;
        bytes.extend(words.into_iter().flat_map(word));
        seal_copy(&mut bytes);
        let (contents, number) = decode(&bytes).expect("it is read");
        assert_eq!((number, contents.has_maps), (1, true));
        let names: Vec<_> = contents
            .segments
            .iter()
            .map(|of| of.name.as_str())
            .collect();
        assert_eq!(names, ["u", "t", "i"]);
        assert!(contents.segments.iter().all(|of| of.columns.is_none()));
        let part = KeyPart {
            offset: 8,
            bytes: 16,
        };
        assert_eq!(contents.indexes[0].key, StoredKey::Bytes(vec![part]));
    }

    #[test]
    fn a_later_format_is_told_and_not_read() {
        let mut bytes = encode(&contents(), 3);
        assert_eq!(later_format(&bytes), None);
        bytes[12] = 2;
        assert_eq!(later_format(&bytes), None);
        seal_copy(&mut bytes);
        assert_eq!((later_format(&bytes), decode(&bytes)), (Some(2), None));
    }

    #[test]
    fn a_key_of_columns_that_are_not_there_is_no_dictionary() {
        let without = |change: &dyn Fn(&mut Contents)| {
            let mut contents = contents();
            change(&mut contents);
            decode(&encode(&contents, 1)).is_none()
        };
        assert!(!without(&|_| {}));
        assert!(without(
            &|of| of.indexes[1].key = StoredKey::Columns(vec![7])
        ));
        assert!(without(
            &|of| of.indexes[1].key = StoredKey::Columns(vec![6, 0])
        ));
        assert!(without(&|of| of.indexes[1].table = 1));
        assert!(without(&|of| of.indexes[1].table = 9));
        assert!(without(&|of| of.indexes[0].segment = 9));
        assert!(without(&|of| of.segments[4].extents.clear()));
        assert!(without(&|of| of.segments.clear()));
    }

    /// Bytes that a checksum lets pass, cut off anywhere and wrong anywhere.
    #[test]
    fn any_dictionary_is_read_or_refused() {
        let whole = encode(&contents(), 1);
        let mut read = 0;
        for at in HEADER_BYTES..whole.len() {
            let mut cut = whole[..at].to_vec();
            seal_copy(&mut cut);
            assert_eq!(decode(&cut), None, "{at}");
            for byte in [0, 1, 3, 6, 7, 127, 255] {
                let mut other = whole.clone();
                other[at] = byte;
                seal_copy(&mut other);
                read += usize::from(decode(&other).is_some());
            }
        }
        assert!(read > whole.len(), "{read} of them were read");
    }
}
