//! The columns of a table as its rows keep them: for each its type, and the form of its bytes. A dictionary stores
//! them, so that rows and keys can be read and made by names and values. Plans have [`crate::Columns`], which are such
//! columns in one form only.

mod codec;
mod data_type;
mod error;

use std::fmt;
use std::sync::Arc;

pub use data_type::{COLUMNS_MAX, DataType, Form, NAME_BYTES_MAX};
pub use error::{Result, RowLayoutError};

use crate::columns::{Columns, Type};

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: String,
    of: DataType,
    form: Form,
    /// Where it is among the columns of a fixed length.
    offset: u16,
}

impl Column {
    /// A column in the form that columns of plans have: whole and exact numbers in 8 bytes.
    pub fn new(name: impl Into<String>, of: DataType) -> Column {
        Column::in_form(name, of, of.usual_form())
    }

    /// A column in a given form.
    pub fn in_form(name: impl Into<String>, of: DataType, form: Form) -> Column {
        Column {
            name: name.into(),
            of,
            form,
            offset: 0,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn of(&self) -> DataType {
        self.of
    }

    /// How a row keeps it.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Bytes among the columns of a fixed length.
    fn fixed_bytes(&self) -> usize {
        match self.form {
            Form::Blanks | Form::Zeros => usize::from(self.of.text_bytes()),
            Form::Ended | Form::Counted => 2,
            Form::Ordered(bytes) | Form::Unsigned(bytes) | Form::Signed(bytes) => {
                usize::from(bytes)
            }
        }
    }

    fn check(&self) -> Result<()> {
        if !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Err(RowLayoutError::NameLength {
                name: self.name.clone(),
            });
        }
        match self.of.can_be(self.form) {
            true => Ok(()),
            false => Err(RowLayoutError::Form {
                column: self.name.clone(),
                of: self.of,
                form: self.form,
            }),
        }
    }
}

/// The columns of a table, in the order in which its rows keep them. Cheap to copy.
#[derive(Clone, PartialEq, Eq)]
pub struct RowLayout {
    columns: Arc<[Column]>,
    /// Bytes of all columns of a fixed length.
    fixed_bytes: usize,
    row_bytes_max: usize,
}

impl RowLayout {
    /// Columns in their order.
    ///
    /// # Errors
    /// [`RowLayoutError`]: none or too many, a name that is empty, too long or there twice, a type that cannot have its
    /// form, or rows longer than 65,535 bytes.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Result<RowLayout> {
        let mut columns: Vec<Column> = columns.into_iter().collect();
        if !(1..=COLUMNS_MAX).contains(&columns.len()) {
            let columns = columns.len();
            return Err(RowLayoutError::Count { columns });
        }
        let (mut offset, mut more) = (0, 0);
        for number in 0..columns.len() {
            let (before, rest) = columns.split_at_mut(number);
            let column = &mut rest[0];
            column.check()?;
            if before.iter().any(|other| other.name == column.name) {
                let name = column.name.clone();
                return Err(RowLayoutError::SameName { name });
            }
            column.offset = offset as u16;
            offset += column.fixed_bytes();
            if column.form.is_varying() {
                more += usize::from(column.of.text_bytes());
            }
        }
        let row_bytes_max = offset + more;
        if row_bytes_max > usize::from(u16::MAX) {
            return Err(RowLayoutError::RowLength { row_bytes_max });
        }
        let counted = columns.iter().position(|of| of.form == Form::Counted);
        if let Some(counted) = counted {
            let varying = columns.iter().filter(|column| column.form.is_varying());
            if counted + 1 < columns.len() || varying.count() > 1 {
                let column = columns[counted].name.clone();
                return Err(RowLayoutError::CountedNotLast { column });
            }
        }
        Ok(RowLayout {
            columns: columns.into(),
            fixed_bytes: offset,
            row_bytes_max,
        })
    }

    /// Its columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Length of the longest row, bytes.
    pub fn row_bytes_max(&self) -> usize {
        self.row_bytes_max
    }

    /// Which of the columns has a name.
    ///
    /// # Errors
    /// [`RowLayoutError::NoSuchColumn`].
    pub fn number(&self, name: &str) -> Result<u16> {
        let found = self.columns.iter().position(|column| column.name == name);
        found
            .map(|number| number as u16)
            .ok_or_else(|| RowLayoutError::NoSuchColumn {
                name: name.to_owned(),
                known: self.known(),
            })
    }

    /// The names of columns by their numbers.
    ///
    /// # Panics
    /// If there is no column of such a number.
    pub fn names(&self, numbers: &[u16]) -> Vec<&str> {
        let names = numbers.iter();
        names
            .map(|number| self.columns[usize::from(*number)].name())
            .collect()
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(Column::name).collect();
        names.join(", ")
    }

    /// The bytes of rows that make a key of these columns: where each begins, and its length. The last one ends with
    /// the row where that is shorter.
    ///
    /// # Errors
    /// [`RowLayoutError`]: no column, one of them twice, one whose bytes are not in the order of its values, or a text
    /// of varying length that is not the key's last and the table's only one.
    pub fn key_parts(&self, key: &[u16]) -> Result<Vec<(u16, u16)>> {
        if key.is_empty() {
            return Err(RowLayoutError::EmptyKey);
        }
        let mut parts: Vec<(u16, u16)> = Vec::new();
        for (place, number) in key.iter().enumerate() {
            let column = self.columns.get(usize::from(*number));
            let column = column.ok_or_else(|| RowLayoutError::NoSuchColumn {
                name: format!("number {number}"),
                known: self.known(),
            })?;
            let name = || column.name.clone();
            if key[..place].contains(number) {
                return Err(RowLayoutError::TwiceInKey { column: name() });
            }
            let part = match column.form {
                Form::Signed(_) => return Err(RowLayoutError::Unordered { column: name() }),
                Form::Ended | Form::Counted => {
                    let varying = self.columns.iter().filter(|other| other.form.is_varying());
                    if place + 1 < key.len() || varying.count() > 1 {
                        return Err(RowLayoutError::VaryingInKey { column: name() });
                    }
                    (self.fixed_bytes as u16, column.of.text_bytes())
                }
                _ => (column.offset, column.fixed_bytes() as u16),
            };
            parts.push(part);
        }
        Ok(parts)
    }

    /// The columns whose bytes make a key: the reverse of [`RowLayout::key_parts`].
    ///
    /// # Errors
    /// [`RowLayoutError::NoColumnAt`] where bytes are not whole columns; those of [`RowLayout::key_parts`].
    pub fn key_columns(&self, parts: impl IntoIterator<Item = (u16, u16)>) -> Result<Vec<u16>> {
        let mut key = Vec::new();
        for (begin, bytes) in parts {
            let wrong = RowLayoutError::NoColumnAt {
                begin,
                end: begin.saturating_add(bytes),
            };
            let (mut at, mut left) = (begin, bytes);
            while left > 0 {
                let found = self.column_at(at).filter(|(_, bytes)| *bytes <= left);
                let (number, bytes) = found.ok_or_else(|| wrong.clone())?;
                key.push(number);
                (at, left) = (at.saturating_add(bytes), left - bytes);
            }
        }
        self.key_parts(&key).map(|_| key)
    }

    /// The column whose value begins at a place of the row, and its length.
    fn column_at(&self, at: u16) -> Option<(u16, u16)> {
        let mut numbered = self.columns.iter().zip(0..);
        numbered.find_map(|(column, number)| match column.form.is_varying() {
            true => (usize::from(at) == self.fixed_bytes).then(|| (number, column.of.text_bytes())),
            false => (column.offset == at).then(|| (number, column.fixed_bytes() as u16)),
        })
    }
}

impl TryFrom<&Columns> for RowLayout {
    type Error = RowLayoutError;

    /// The columns of rows that plans know. Errors as [`RowLayout::new`].
    fn try_from(columns: &Columns) -> Result<RowLayout> {
        let column = |(name, of): (&str, Type)| match of {
            Type::Key => Column::new(name, DataType::Integer),
            Type::Integer => Column::in_form(name, DataType::Integer, Form::Ordered(4)),
            Type::Decimal(scale) => Column::new(name, DataType::Decimal(scale)),
            Type::Sum(scale) => Column::in_form(name, DataType::Decimal(scale), Form::Ordered(16)),
            Type::Date => Column::new(name, DataType::Date),
            Type::Fixed(bytes) => Column::new(name, DataType::Char(bytes)),
            Type::Varying(bytes) => Column::new(name, DataType::Varchar(bytes)),
        };
        RowLayout::new(columns.iter().map(column))
    }
}

impl fmt::Display for RowLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, column) in self.columns.iter().enumerate() {
            let before = if number == 0 { "" } else { ", " };
            write!(formatter, "{before}{} {}", column.name, column.of)?;
        }
        Ok(())
    }
}

impl fmt::Debug for RowLayout {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.columns.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
