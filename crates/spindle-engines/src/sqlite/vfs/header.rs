//! What the first bytes of a database say of its size (https://www.sqlite.org/fileformat2.html#the_database_header).
//! They lie in one sector, which is written whole or not at all, so that they can be read after a crash, before SQLite
//! has recovered the database: they are then those of before or of after what was cut short.

use crate::{EngineError, ErrorKind};

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const PAGE_BYTES_AT: usize = 16;
const CHANGES_AT: usize = 24;
const PAGES_AT: usize = 28;
/// The change counter when the number of pages was written: the number counts only while the two agree.
const PAGES_VALID_FOR_AT: usize = 92;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of a page, a power of two from 512 to 65,536.
    pub page_bytes: u32,
    /// Pages of the database.
    pub pages: u32,
}

impl Header {
    /// Reads the first [`HEADER_BYTES`] bytes of a database.
    ///
    /// # Errors
    /// `Failed`: they cannot be relied on.
    pub fn read(bytes: &[u8]) -> Result<Header, EngineError> {
        let number = |at: usize| {
            let four = bytes.get(at..at + 4);
            four.map_or(0, |four| {
                u32::from_be_bytes(four.try_into().expect("four bytes"))
            })
        };
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
            return Err(damaged("there is no SQLite database on it"));
        }
        // 65,536 does not fit in two bytes, and is written as 1.
        let page_bytes = match number(PAGE_BYTES_AT) >> 16 {
            1 => 65536,
            bytes => bytes,
        };
        if !page_bytes.is_power_of_two() || page_bytes < 512 {
            return Err(damaged(format!(
                "its database is damaged: pages of {page_bytes} bytes"
            )));
        }
        let pages = number(PAGES_AT);
        if pages == 0 || number(CHANGES_AT) != number(PAGES_VALID_FOR_AT) {
            return Err(damaged(
                "its database does not say how many pages it has: it was last written by a SQLite before 3.7.0",
            ));
        }
        Ok(Header { page_bytes, pages })
    }
}

fn damaged(words: impl Into<String>) -> EngineError {
    EngineError::new(ErrorKind::Failed, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(page_bytes: u16, pages: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&page_bytes.to_be_bytes());
        bytes[24..28].copy_from_slice(&7u32.to_be_bytes());
        bytes[28..32].copy_from_slice(&pages.to_be_bytes());
        bytes[92..96].copy_from_slice(&7u32.to_be_bytes());
        bytes
    }

    #[test]
    fn sizes_are_read() {
        let read = |page_bytes, pages| {
            let header = Header::read(&header(page_bytes, pages)).unwrap();
            (header.page_bytes, header.pages)
        };
        assert_eq!(read(512, 1), (512, 1));
        assert_eq!(read(32768, u32::MAX), (32768, u32::MAX));
        assert_eq!(read(1, 2), (65536, 2));
    }

    #[test]
    fn what_cannot_be_relied_on_is_refused() {
        let refused = |bytes: &[u8]| Header::read(bytes).unwrap_err().to_string();
        let sound = header(4096, 9);
        assert!(refused(&sound[..99]).contains("no SQLite database"));
        assert!(refused(&[0x5A; 4096]).contains("no SQLite database"));
        assert!(refused(&header(1000, 9)).contains("pages of 1000 bytes"));
        assert!(refused(&header(256, 9)).contains("pages of 256 bytes"));
        assert!(refused(&header(4096, 0)).contains("how many pages"));
        let mut old = sound;
        old[95] = 8;
        assert!(refused(&old).contains("before 3.7.0"));
    }
}
