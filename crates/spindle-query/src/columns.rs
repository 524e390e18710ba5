//! Columns and how a row keeps them: those of a fixed length first, each at its place, then the texts of varying
//! length. Of these the first part has the end. Numbers have their highest byte first and their sign turned over, so
//! that their bytes are in the order of their values, as keys must be.

use std::fmt;
use std::sync::Arc;

use crate::error::{QueryError, Result};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A key, or what refers to one: a whole number of 8 bytes.
    Key,
    /// A whole number of 4 bytes.
    Integer,
    /// An exact number with this many decimal places, in 8 bytes.
    Decimal(u8),
    /// A sum of exact numbers with this many decimal places, in 16 bytes.
    Sum(u8),
    /// A day, counted from 1970-01-01, in 4 bytes.
    Date,
    /// A text that blanks fill up to this length.
    Fixed(u16),
    /// A text of up to this length.
    Varying(u16),
}

impl Type {
    /// Bytes among the columns of a fixed length.
    pub fn fixed_bytes(self) -> usize {
        match self {
            Type::Key | Type::Decimal(_) => 8,
            Type::Integer | Type::Date => 4,
            Type::Sum(_) => 16,
            Type::Fixed(bytes) => usize::from(bytes),
            // The end of the text.
            Type::Varying(_) => 2,
        }
    }

    /// Bytes beyond these, at most.
    fn more_bytes(self) -> usize {
        match self {
            Type::Varying(most) => usize::from(most),
            _ => 0,
        }
    }

    /// The places of an exact number; `None` of texts.
    pub fn scale(self) -> Option<u8> {
        match self {
            Type::Key | Type::Integer | Type::Date => Some(0),
            Type::Decimal(scale) | Type::Sum(scale) => Some(scale),
            Type::Fixed(_) | Type::Varying(_) => None,
        }
    }

    /// Length of the longest text; 0 of numbers.
    pub(crate) fn text_bytes(self) -> u16 {
        match self {
            Type::Fixed(bytes) | Type::Varying(bytes) => bytes,
            _ => 0,
        }
    }

    pub(crate) fn is_varying(self) -> bool {
        matches!(self, Type::Varying(_))
    }
}

/// Where a row has a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnPlace {
    /// Its type.
    pub(crate) of: Type,
    /// Its place among the columns of a fixed length; that of its end if it is of varying length.
    pub(crate) offset: usize,
    /// Of a text of varying length, where its beginning is written; `None`: it begins behind the fixed lengths.
    pub(crate) begin_at: Option<usize>,
    /// Bytes of all fixed lengths.
    pub(crate) fixed_bytes: usize,
}

impl ColumnPlace {
    /// The bytes of a text.
    pub(crate) fn text(self, row: &[u8]) -> &[u8] {
        match self.of {
            Type::Varying(_) => {
                let begin = self.begin_at.map_or(self.fixed_bytes, |at| end_at(row, at));
                &row[begin..end_at(row, self.offset)]
            }
            _ => &row[self.offset..self.offset + self.of.fixed_bytes()],
        }
    }
}

fn end_at(row: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([row[at], row[at + 1]]))
}

/// The columns of a row.
#[derive(Clone, PartialEq, Eq)]
pub struct Columns {
    list: Arc<[(String, ColumnPlace)]>,
    fixed_bytes: usize,
}

impl Columns {
    /// Columns in their order.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Type)>) -> Columns {
        let named: Vec<(String, Type)> = columns
            .into_iter()
            .map(|(name, of)| (name.into(), of))
            .collect();
        let fixed_bytes = named.iter().map(|(_, of)| of.fixed_bytes()).sum();
        let (mut offset, mut last_end) = (0, None);
        let list = named.into_iter().map(|(name, of)| {
            let place = ColumnPlace {
                of,
                offset,
                begin_at: last_end,
                fixed_bytes,
            };
            if of.is_varying() {
                last_end = Some(offset);
            }
            offset += of.fixed_bytes();
            (name, place)
        });
        Columns {
            list: list.collect(),
            fixed_bytes,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Names and types, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Type)> {
        self.list
            .iter()
            .map(|(name, place)| (name.as_str(), place.of))
    }

    /// Length of the longest row, bytes.
    pub fn row_bytes_max(&self) -> usize {
        let more = self.list.iter().map(|(_, place)| place.of.more_bytes());
        self.fixed_bytes + more.sum::<usize>()
    }

    /// Where a column of a fixed length is, and its length, bytes: a part of a key.
    ///
    /// # Errors
    /// [`QueryError::NoSuchColumn`], [`QueryError::WrongType`].
    pub fn key_part(&self, name: &str) -> Result<(u16, u16)> {
        let place = self.place(name)?;
        match place.of {
            Type::Varying(_) => Err(QueryError::WrongType {
                what: "a column of fixed length",
                found: name.to_owned(),
            }),
            of => Ok((place.offset as u16, of.fixed_bytes() as u16)),
        }
    }

    /// With those of another list whose names it lacks. Which of two columns of one name is meant is asked where both
    /// are needed: see [`crate::RowHeading::and`].
    #[must_use]
    pub(crate) fn and(&self, others: &Columns) -> Columns {
        let new = others.iter().filter(|(name, _)| !self.has(name));
        Columns::new(self.iter().chain(new))
    }

    pub(crate) fn place(&self, name: &str) -> Result<ColumnPlace> {
        let found = self.list.iter().find(|(known, _)| known == name);
        found
            .map(|(_, place)| *place)
            .ok_or_else(|| QueryError::NoSuchColumn {
                name: name.to_owned(),
                known: self.to_string(),
            })
    }

    pub(crate) fn nth(&self, number: usize) -> ColumnPlace {
        self.list[number].1
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(known, _)| known == name)
    }

    /// Begins a row in `bytes`, which it empties.
    pub fn encoder<'a>(&'a self, bytes: &'a mut Vec<u8>) -> Encoder<'a> {
        bytes.clear();
        bytes.resize(self.fixed_bytes, 0);
        Encoder {
            columns: self,
            bytes,
            next: 0,
        }
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, _)) in self.list.iter().enumerate() {
            let before = if number == 0 { "" } else { ", " };
            write!(formatter, "{before}{name}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

/// Writes a row, column by column.
pub struct Encoder<'a> {
    columns: &'a Columns,
    bytes: &'a mut Vec<u8>,
    next: usize,
}

impl Encoder<'_> {
    /// The type of the next column; `None` behind the last.
    pub fn next_type(&self) -> Option<Type> {
        self.columns.list.get(self.next).map(|(_, place)| place.of)
    }

    fn place(&mut self) -> ColumnPlace {
        let place = self.columns.list[self.next].1;
        self.next += 1;
        place
    }

    /// The next column is a number: its digits, without a point.
    ///
    /// # Panics
    /// If it is a text, or there is none.
    pub fn number(&mut self, digits: i128) {
        let place = self.place();
        let target = &mut self.bytes[place.offset..];
        match place.of {
            Type::Key | Type::Decimal(_) => {
                let turned = digits as u64 ^ 1 << 63;
                target[..8].copy_from_slice(&turned.to_be_bytes());
            }
            Type::Integer | Type::Date => {
                let turned = digits as u32 ^ 1 << 31;
                target[..4].copy_from_slice(&turned.to_be_bytes());
            }
            Type::Sum(_) => {
                let turned = digits as u128 ^ 1 << 127;
                target[..16].copy_from_slice(&turned.to_be_bytes());
            }
            Type::Fixed(_) | Type::Varying(_) => panic!("column {} is a text", self.next - 1),
        }
    }

    /// The next column is a text; what is longer than the column is cut off.
    ///
    /// # Panics
    /// If it is a number, or there is none.
    pub fn text(&mut self, text: &[u8]) {
        let place = self.place();
        match place.of {
            Type::Fixed(bytes) => {
                let target = &mut self.bytes[place.offset..place.offset + usize::from(bytes)];
                let taken = text.len().min(target.len());
                target[..taken].copy_from_slice(&text[..taken]);
                target[taken..].fill(b' ');
            }
            Type::Varying(most) => {
                let taken = text.len().min(usize::from(most));
                self.bytes.extend_from_slice(&text[..taken]);
                let end = (self.bytes.len() as u16).to_le_bytes();
                self.bytes[place.offset..place.offset + 2].copy_from_slice(&end);
            }
            _ => panic!("column {} is a number", self.next - 1),
        }
    }
}

/// The number of 8 bytes at a place.
pub(crate) fn number_8(row: &[u8], at: usize) -> i64 {
    let bytes = row[at..at + 8].try_into().expect("eight bytes");
    (u64::from_be_bytes(bytes) ^ 1 << 63) as i64
}

/// The number of 4 bytes at a place.
pub(crate) fn number_4(row: &[u8], at: usize) -> i32 {
    let bytes = row[at..at + 4].try_into().expect("four bytes");
    (u32::from_be_bytes(bytes) ^ 1 << 31) as i32
}

/// The number of 16 bytes at a place.
pub(crate) fn number_16(row: &[u8], at: usize) -> i128 {
    let bytes = row[at..at + 16].try_into().expect("sixteen bytes");
    (u128::from_be_bytes(bytes) ^ 1 << 127) as i128
}
