//! A row on its way: the rows it was put together from, none of them copied. [`RowHeading`] knows which columns they
//! have.

use crate::columns::{ColumnPlace, Columns, Type, number_4, number_8, number_16};
use crate::error::{QueryError, Result};

/// Rows from which one is put together, at most.
pub const SLOTS_MAX: usize = 8;

/// A row that is put together from others.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r> {
    slots: [&'r [u8]; SLOTS_MAX],
    count: usize,
}

impl<'r> Row<'r> {
    /// One row alone.
    pub fn of(bytes: &'r [u8]) -> Row<'r> {
        let mut slots: [&[u8]; SLOTS_MAX] = [&[]; SLOTS_MAX];
        slots[0] = bytes;
        Row { slots, count: 1 }
    }

    /// With another row behind it.
    ///
    /// # Panics
    /// If it has [`SLOTS_MAX`] already, which [`RowHeading::and`] refuses.
    #[must_use]
    pub fn and(&self, bytes: &'r [u8]) -> Row<'r> {
        let mut longer = *self;
        longer.slots[self.count] = bytes;
        longer.count += 1;
        longer
    }

    pub(crate) fn slot(&self, slot: usize) -> &'r [u8] {
        self.slots[slot]
    }
}

/// Where a row that is put together has a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundColumn {
    pub(crate) slot: usize,
    pub(crate) place: ColumnPlace,
}

impl FoundColumn {
    pub(crate) fn number(&self, row: &Row<'_>) -> i128 {
        let (bytes, at) = (row.slot(self.slot), self.place.offset);
        match self.place.of.fixed_bytes() {
            4 => i128::from(number_4(bytes, at)),
            8 => i128::from(number_8(bytes, at)),
            _ => number_16(bytes, at),
        }
    }

    pub(crate) fn text<'r>(&self, row: &Row<'r>) -> &'r [u8] {
        let text = self.place.text(row.slot(self.slot));
        match self.place.of {
            Type::Fixed(_) => text.trim_ascii_end(),
            _ => text,
        }
    }
}

/// The columns of a row that is put together.
#[derive(Debug, Clone, Default)]
pub struct RowHeading {
    slots: Vec<Columns>,
}

impl RowHeading {
    /// Of one row alone.
    pub fn of(columns: Columns) -> RowHeading {
        RowHeading {
            slots: vec![columns],
        }
    }

    /// With another row behind it.
    ///
    /// # Errors
    /// [`QueryError::TooManyJoins`], [`QueryError::SameName`].
    pub fn and(&self, columns: Columns) -> Result<RowHeading> {
        if self.slots.len() == SLOTS_MAX {
            return Err(QueryError::TooManyJoins { most: SLOTS_MAX });
        }
        if let Some((name, _)) = columns.iter().find(|(name, _)| self.has(name)) {
            let name = name.to_owned();
            return Err(QueryError::SameName { name });
        }
        let mut longer = self.clone();
        longer.slots.push(columns);
        Ok(longer)
    }

    /// Whether a column has this name.
    pub fn has(&self, name: &str) -> bool {
        self.slots.iter().any(|columns| columns.has(name))
    }

    /// Names and types of all columns.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Type)> {
        self.slots.iter().flat_map(Columns::iter)
    }

    pub(crate) fn find(&self, name: &str) -> Result<FoundColumn> {
        for (slot, columns) in self.slots.iter().enumerate() {
            if columns.has(name) {
                let place = columns.place(name)?;
                return Ok(FoundColumn { slot, place });
            }
        }
        let known: Vec<String> = self.slots.iter().map(ToString::to_string).collect();
        Err(QueryError::NoSuchColumn {
            name: name.to_owned(),
            known: known.join(", "),
        })
    }

    /// Those of its columns that a test names, as a separate row.
    pub fn only(&self, mut is_wanted: impl FnMut(&str) -> bool) -> Projection {
        let mut taken = Vec::new();
        let mut columns = Vec::new();
        for (slot, of) in self.slots.iter().enumerate() {
            for (name, type_) in of.iter().filter(|(name, _)| is_wanted(name)) {
                let place = of.place(name).expect("it has this column");
                columns.push((name.to_owned(), type_));
                taken.push(FoundColumn { slot, place });
            }
        }
        Projection::new(taken, Columns::new(columns))
    }

    /// Columns by name, in this order.
    ///
    /// # Errors
    /// [`QueryError::NoSuchColumn`].
    pub fn named<S: AsRef<str>>(&self, names: &[S]) -> Result<Projection> {
        let mut taken = Vec::new();
        let mut columns = Vec::new();
        for name in names {
            let found = self.find(name.as_ref())?;
            columns.push((name.as_ref().to_owned(), found.place.of));
            taken.push(found);
        }
        Ok(Projection::new(taken, Columns::new(columns)))
    }
}

/// Bytes that lie side by side in a slot.
#[derive(Debug, Clone, Copy)]
struct Piece {
    slot: usize,
    begin: usize,
    end: usize,
}

/// Takes some columns out of a row and puts them into a new one.
#[derive(Debug, Clone)]
pub struct Projection {
    columns: Columns,
    /// The fixed lengths, in order. Of a text of varying length it has the end in the old row, which is put right.
    pieces: Vec<Piece>,
    /// Texts of varying length, and where the new row has their ends.
    texts: Vec<(FoundColumn, usize)>,
}

impl Projection {
    fn new(taken: Vec<FoundColumn>, columns: Columns) -> Projection {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut texts, mut offset) = (Vec::new(), 0);
        for found in taken {
            let (begin, bytes) = (found.place.offset, found.place.of.fixed_bytes());
            match pieces.last_mut() {
                Some(last) if last.slot == found.slot && last.end == begin => last.end += bytes,
                _ => pieces.push(Piece {
                    slot: found.slot,
                    begin,
                    end: begin + bytes,
                }),
            }
            if found.place.of.is_varying() {
                texts.push((found, offset));
            }
            offset += bytes;
        }
        Projection {
            columns,
            pieces,
            texts,
        }
    }

    /// The columns of the new row.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The lengths of its columns, bytes; only of fixed lengths.
    pub fn lengths(&self) -> Vec<usize> {
        self.columns
            .iter()
            .map(|(_, of)| of.fixed_bytes())
            .collect()
    }

    /// Puts the new row behind what `bytes` has.
    pub fn append(&self, row: &Row<'_>, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        for piece in &self.pieces {
            bytes.extend_from_slice(&row.slot(piece.slot)[piece.begin..piece.end]);
        }
        for (found, end_at) in &self.texts {
            bytes.extend_from_slice(found.place.text(row.slot(found.slot)));
            let end = ((bytes.len() - start) as u16).to_le_bytes();
            bytes[start + end_at..start + end_at + 2].copy_from_slice(&end);
        }
    }

    /// Calls `part` with each piece of the new row, without making it; only of fixed lengths.
    pub fn pieces<'r>(&self, row: &Row<'r>, mut part: impl FnMut(&'r [u8])) {
        for piece in &self.pieces {
            part(&row.slot(piece.slot)[piece.begin..piece.end]);
        }
    }
}

/// A value of an answer, or of a table's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// An exact number: `digits` divided by ten to the power of `scale`.
    Number {
        /// Its digits.
        digits: i128,
        /// How many stand behind the point.
        scale: u8,
    },
    /// A day, counted from 1970-01-01.
    Date(i32),
    /// A text.
    Text(&'a [u8]),
    /// Nothing: a sum of no rows.
    Null,
}

/// The values of a row, in the order of its columns.
pub fn cell<'a>(columns: &Columns, row: &'a [u8], number: usize) -> Cell<'a> {
    let place = columns.nth(number);
    let found = FoundColumn { slot: 0, place };
    let of = Row::of(row);
    match place.of {
        Type::Fixed(_) | Type::Varying(_) => Cell::Text(found.text(&of)),
        Type::Date => Cell::Date(found.number(&of) as i32),
        other => Cell::Number {
            digits: found.number(&of),
            scale: other.scale().unwrap_or(0),
        },
    }
}
