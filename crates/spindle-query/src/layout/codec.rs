//! Rows and keys of a table from values, and values from rows. A value is checked against its column before a byte of
//! it is written.

use super::{Column, DataType, Form, Result, RowLayout, RowLayoutError};
use crate::row::Cell;

/// A value as its column keeps it.
enum Kept<'a> {
    Digits(i128),
    Bytes(&'a [u8]),
}

impl Column {
    /// A value as this column keeps it.
    fn keep<'a>(&self, value: &Cell<'a>) -> Result<Kept<'a>> {
        match (*value, self.of.scale()) {
            (Cell::Number { digits, scale }, Some(_)) => {
                let digits = self.to_scale(digits, scale)?;
                self.in_range(digits).map(Kept::Digits)
            }
            (Cell::Date(day), _) if self.of == DataType::Date => {
                self.in_range(i128::from(day)).map(Kept::Digits)
            }
            (Cell::Text(text), _) if self.of.text_bytes() > 0 => self.text(text).map(Kept::Bytes),
            (Cell::Null, _) => Err(RowLayoutError::Null {
                column: self.name.clone(),
            }),
            (other, _) => Err(RowLayoutError::WrongType {
                column: self.name.clone(),
                of: self.of,
                value: match other {
                    Cell::Number { .. } => "a number",
                    Cell::Date(_) => "a day",
                    Cell::Text(_) => "a text",
                    Cell::Null => "NULL",
                },
            }),
        }
    }

    /// The digits of a number with the places that the column has.
    fn to_scale(&self, digits: i128, scale: u8) -> Result<i128> {
        let of_column = self.of.scale().unwrap_or(0);
        let power = |places: u8| 10_i128.checked_pow(u32::from(places));
        if scale <= of_column {
            let scaled = power(of_column - scale).and_then(|power| digits.checked_mul(power));
            return scaled.ok_or_else(|| self.out_of_range(digits));
        }
        match power(scale - of_column) {
            Some(power) if digits % power == 0 => Ok(digits / power),
            None if digits == 0 => Ok(0),
            _ => Err(RowLayoutError::Scale {
                column: self.name.clone(),
                of: self.of,
                digits,
                scale,
            }),
        }
    }

    /// The least and the greatest number it can hold, without their points.
    fn range(&self) -> (i128, i128) {
        match self.form {
            Form::Unsigned(bytes) => (0, (1 << (8 * u32::from(bytes))) - 1),
            Form::Ordered(16) => (i128::MIN, i128::MAX),
            Form::Ordered(bytes) | Form::Signed(bytes) => {
                let beyond = 1 << (8 * u32::from(bytes) - 1);
                (-beyond, beyond - 1)
            }
            Form::Blanks | Form::Zeros | Form::Ended | Form::Counted => (0, 0),
        }
    }

    fn in_range(&self, digits: i128) -> Result<i128> {
        let (least, greatest) = self.range();
        match (least..=greatest).contains(&digits) {
            true => Ok(digits),
            false => Err(self.out_of_range(digits)),
        }
    }

    fn out_of_range(&self, digits: i128) -> RowLayoutError {
        let (least, greatest) = self.range();
        RowLayoutError::Range {
            column: self.name.clone(),
            digits,
            least,
            greatest,
        }
    }

    fn text<'a>(&self, text: &'a [u8]) -> Result<&'a [u8]> {
        let text = match self.of {
            DataType::Char(_) => without_end(text, b' '),
            _ => text,
        };
        if text.len() > usize::from(self.of.text_bytes()) {
            return Err(RowLayoutError::TextLength {
                column: self.name.clone(),
                of: self.of,
                bytes: text.len(),
            });
        }
        match (self.form, text.last()) {
            (Form::Zeros, Some(0)) => Err(RowLayoutError::EndsWithZero {
                column: self.name.clone(),
            }),
            _ => Ok(text),
        }
    }

    /// Writes a value where the column has a fixed length.
    fn put(&self, kept: &Kept<'_>, target: &mut [u8]) {
        match kept {
            Kept::Digits(digits) => {
                let turned = match self.form {
                    Form::Ordered(bytes) => digits ^ (1 << (8 * u32::from(bytes) - 1)),
                    _ => *digits,
                };
                let bytes = turned.to_be_bytes();
                target.copy_from_slice(&bytes[bytes.len() - target.len()..]);
            }
            Kept::Bytes(text) => {
                target[..text.len()].copy_from_slice(text);
                target[text.len()..].fill(self.filler());
            }
        }
    }

    fn filler(&self) -> u8 {
        if self.form == Form::Blanks { b' ' } else { 0 }
    }

    /// The value in bytes of a fixed length.
    fn value<'r>(&self, bytes: &'r [u8]) -> Cell<'r> {
        let Some(number_bytes) = self.form.number_bytes() else {
            return Cell::Text(without_end(bytes, self.filler()));
        };
        let unsigned = bytes
            .iter()
            .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
        let sign = 1_u128 << (8 * u32::from(number_bytes) - 1);
        let digits = match self.form {
            // Turned back, it stands among the numbers of its length, from which half of them is taken off.
            Form::Ordered(_) => unsigned.wrapping_sub(sign) as i128,
            Form::Signed(_) => (unsigned ^ sign).wrapping_sub(sign) as i128,
            _ => unsigned as i128,
        };
        match self.of.scale() {
            Some(scale) => Cell::Number { digits, scale },
            None => Cell::Date(digits as i32),
        }
    }
}

/// A text without the bytes that fill it up.
fn without_end(text: &[u8], filler: u8) -> &[u8] {
    let last = text.iter().rposition(|byte| *byte != filler);
    &text[..last.map_or(0, |last| last + 1)]
}

impl RowLayout {
    /// Makes a row of values, one for each column in order, in `row`, which it empties. After an error that is not a
    /// row.
    ///
    /// # Errors
    /// [`RowLayoutError`] when there are more or fewer values than columns, or one does not fit its column.
    pub fn encode(&self, values: &[Cell<'_>], row: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.columns.len() {
            return Err(RowLayoutError::ValueCount {
                values: values.len(),
                columns: self.columns.len(),
            });
        }
        row.clear();
        row.resize(self.fixed_bytes, 0);
        for (column, value) in self.columns.iter().zip(values) {
            let kept = column.keep(value)?;
            let at = usize::from(column.offset);
            match (column.form, &kept) {
                (Form::Ended, Kept::Bytes(text)) => {
                    row.extend_from_slice(text);
                    let end = (row.len() as u16).to_le_bytes();
                    row[at..at + 2].copy_from_slice(&end);
                }
                (Form::Counted, Kept::Bytes(text)) => {
                    row.extend_from_slice(text);
                    row[at..at + 2].copy_from_slice(&(text.len() as u16).to_be_bytes());
                }
                _ => column.put(&kept, &mut row[at..at + column.fixed_bytes()]),
            }
        }
        Ok(())
    }

    /// The values of a row, in the order of the columns.
    ///
    /// # Errors
    /// [`RowLayoutError::NoRow`] when its bytes do not fit the columns.
    pub fn decode<'r>(&self, row: &'r [u8]) -> Result<Vec<Cell<'r>>> {
        let no_row = || RowLayoutError::NoRow {
            row_bytes: row.len(),
        };
        if row.len() < self.fixed_bytes {
            return Err(no_row());
        }
        let mut begin = self.fixed_bytes;
        let mut values = Vec::with_capacity(self.columns.len());
        for column in self.columns.iter() {
            let at = usize::from(column.offset);
            let fixed = &row[at..at + column.fixed_bytes()];
            let end = match column.form {
                Form::Ended => usize::from(u16::from_le_bytes([fixed[0], fixed[1]])),
                Form::Counted => begin + usize::from(u16::from_be_bytes([fixed[0], fixed[1]])),
                _ => {
                    values.push(column.value(fixed));
                    continue;
                }
            };
            let text = row.get(begin..end).ok_or_else(no_row)?;
            if text.len() > usize::from(column.of.text_bytes()) {
                return Err(no_row());
            }
            values.push(Cell::Text(text));
            begin = end;
        }
        match begin == row.len() {
            true => Ok(values),
            false => Err(no_row()),
        }
    }

    /// A row with other values in some of its columns, by their numbers.
    ///
    /// # Errors
    /// Those of [`RowLayout::decode`] and [`RowLayout::encode`].
    pub fn changed(&self, row: &[u8], changes: &[(u16, Cell<'_>)]) -> Result<Vec<u8>> {
        let mut values = self.decode(row)?;
        for (number, value) in changes {
            values[usize::from(*number)] = *value;
        }
        let mut changed = Vec::with_capacity(row.len());
        self.encode(&values, &mut changed)?;
        Ok(changed)
    }

    /// The bytes of a key of these columns, as [`RowLayout::key_parts`] takes them from a row; of its first columns
    /// alone where there are fewer values.
    ///
    /// # Errors
    /// [`RowLayoutError`] when there are more values than columns, or one does not fit its column.
    pub fn key(&self, columns: &[u16], values: &[Cell<'_>]) -> Result<Vec<u8>> {
        if values.len() > columns.len() {
            return Err(RowLayoutError::ValueCount {
                values: values.len(),
                columns: columns.len(),
            });
        }
        let mut key = Vec::new();
        for (number, value) in columns.iter().zip(values) {
            let column = &self.columns[usize::from(*number)];
            let start = key.len();
            match (column.form.is_varying(), column.keep(value)?) {
                (true, Kept::Bytes(text)) => key.extend_from_slice(text),
                (_, kept) => {
                    key.resize(start + column.fixed_bytes(), 0);
                    column.put(&kept, &mut key[start..]);
                }
            }
        }
        Ok(key)
    }
}
