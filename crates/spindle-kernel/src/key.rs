//! Keys: which bytes of a row an index goes by.

use std::ops::Range;
use std::sync::Arc;

use spindle_io::sync::Latch;
use spindle_io::sync::atomic::{AtomicBool, Ordering};

use crate::control_file::KeyPart;
use crate::error::{KernelError, Result};

/// How an index takes keys from rows.
pub(crate) struct Key {
    /// The index's name.
    pub(crate) index: String,
    /// The segment of its table.
    pub(crate) table: u32,
    /// What the key is put together from, in order.
    pub(crate) parts: Vec<KeyPart>,
    /// The same bytes in fewer pieces: parts that lie side by side are taken at once.
    pieces: Vec<KeyPart>,
}

impl Key {
    /// That of an index of a table, which is named by its segment.
    pub(crate) fn new(index: &str, table: u32, parts: Vec<KeyPart>) -> Key {
        let mut pieces: Vec<KeyPart> = Vec::with_capacity(parts.len());
        for part in &parts {
            match pieces.last_mut() {
                Some(last) if range(last).end == usize::from(part.offset) => {
                    last.bytes += part.bytes;
                }
                _ => pieces.push(*part),
            }
        }
        Key {
            index: index.to_string(),
            table,
            parts,
            pieces,
        }
    }

    /// The key of a row. Error when the row ends before the last part begins.
    pub(crate) fn of(&self, row: &[u8]) -> Result<Vec<u8>> {
        let bytes = self.parts.iter().map(|part| usize::from(part.bytes)).sum();
        let mut key = Vec::with_capacity(bytes);
        for part in self.parts_of(row) {
            key.extend_from_slice(part?);
        }
        Ok(key)
    }

    /// True when that is the key of a row. Errors as [`Key::of`].
    pub(crate) fn is_of(&self, row: &[u8], key: &[u8]) -> Result<bool> {
        let mut rest = key;
        for part in self.parts_of(row) {
            match rest.strip_prefix(part?) {
                Some(after) => rest = after,
                None => return Ok(false),
            }
        }
        Ok(rest.is_empty())
    }

    fn parts_of<'a>(&'a self, row: &'a [u8]) -> impl Iterator<Item = Result<&'a [u8]>> {
        let last_begins = self.parts.last().map_or(0, |last| usize::from(last.offset));
        self.pieces.iter().enumerate().map(move |(number, piece)| {
            let is_last = number + 1 == self.pieces.len();
            let Range { start, end } = range(piece);
            let end = match is_last {
                true => end.min(row.len()).max(last_begins),
                false => end,
            };
            row.get(start..end).ok_or_else(|| KernelError::NoKey {
                index: self.index.clone(),
                row_bytes: row.len(),
            })
        })
    }

    fn has_bytes(&self, bytes: &Range<usize>) -> bool {
        self.pieces
            .iter()
            .map(range)
            .any(|part| part.start < bytes.end && bytes.start < part.end)
    }
}

fn range(part: &KeyPart) -> Range<usize> {
    let start = usize::from(part.offset);
    start..start + usize::from(part.bytes)
}

/// The keys of all indexes.
#[derive(Default)]
pub(crate) struct Keys {
    /// So that databases without indexes do not pay for them.
    are_any: AtomicBool,
    list: Latch<Vec<Arc<Key>>>,
}

impl Keys {
    /// There is another index.
    pub(crate) fn add(&self, key: &Arc<Key>) {
        self.list.lock().push(Arc::clone(key));
        self.are_any.store(true, Ordering::Release);
    }

    /// The key to which some of these bytes of a row belong; the table is named by its segment.
    pub(crate) fn with_bytes(&self, table: u32, bytes: &Range<usize>) -> Option<Arc<Key>> {
        if !self.are_any.load(Ordering::Acquire) {
            return None;
        }
        let list = self.list.lock();
        let mut of_table = list.iter().filter(|key| key.table == table);
        of_table.find(|key| key.has_bytes(bytes)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        let part = |offset, bytes| KeyPart { offset, bytes };
        Key::new("i", 1, vec![part(4, 2), part(0, 2), part(8, 4)])
    }

    #[test]
    fn parts_side_by_side_are_taken_at_once_and_must_all_begin() {
        let part = |offset, bytes| KeyPart { offset, bytes };
        let key = Key::new("i", 1, vec![part(6, 2), part(0, 2), part(2, 4)]);
        assert_eq!(key.pieces, [part(6, 2), part(0, 6)]);
        assert_eq!(key.of(b"01234567").unwrap(), b"67012345");
        let key = Key::new("i", 1, vec![part(0, 2), part(2, 2), part(4, 4)]);
        assert_eq!(key.pieces, [part(0, 8)]);
        assert_eq!(key.of(b"01234567").unwrap(), b"01234567");
        assert_eq!(key.of(b"01234").unwrap(), b"01234");
        assert_eq!(key.of(b"0123").unwrap(), b"0123");
        assert!(matches!(key.of(b"012"), Err(KernelError::NoKey { .. })));
    }

    #[test]
    fn the_last_part_ends_with_the_row() {
        assert_eq!(key().of(b"0123456789abcd").unwrap(), b"450189ab");
        assert_eq!(key().of(b"012345678").unwrap(), b"45018");
        assert_eq!(key().of(b"01234567").unwrap(), b"4501");
        let is_of = |row: &[u8], of| key().is_of(row, of).unwrap();
        assert!(is_of(b"0123456789abcd", b"450189ab") && is_of(b"012345678", b"45018"));
        assert!(!is_of(b"012345678", b"4501") && !is_of(b"012345678", b"450189"));
        assert!(!is_of(b"012345678", b"45028") && key().is_of(b"0123456", b"4501").is_err());
        assert!(matches!(
            key().of(b"0123456"),
            Err(KernelError::NoKey { row_bytes: 7, .. })
        ));
    }

    #[test]
    fn bytes_of_keys_are_known() {
        let keys = Keys::default();
        assert!(keys.with_bytes(1, &(0..100)).is_none());
        keys.add(&Arc::new(key()));
        let belongs = |table, bytes| keys.with_bytes(table, &bytes).is_some();
        assert!(belongs(1, 0..1) && belongs(1, 3..5) && belongs(1, 11..20));
        assert!(!belongs(1, 2..4) && !belongs(1, 6..8) && !belongs(1, 12..13) && !belongs(2, 0..1));
    }
}
