//! The columns of tables and of their indexes' keys in a control file, packed: a copy has little room, and names of
//! columns are many.

use spindle_query::{Column, DataType, Form, RowLayout};

use super::{Contents, StoredKey};

/// Appends the columns of each table that has them, then those of each key made of columns.
pub(super) fn put_columns(contents: &Contents, bytes: &mut Vec<u8>) {
    let tables = contents.segments.iter();
    let tables = tables.filter_map(|segment| Some((segment.number, segment.columns.as_ref()?)));
    put_u32(bytes, tables.clone().count() as u32);
    for (number, layout) in tables {
        put_u32(bytes, number);
        bytes.push(layout.columns().len() as u8);
        for column in layout.columns() {
            put_column(column, bytes);
        }
    }
    let indexes = contents.indexes.iter();
    let keys = indexes.filter_map(|index| match &index.key {
        StoredKey::Columns(columns) => Some((index.segment, columns)),
        StoredKey::Bytes(_) => None,
    });
    put_u32(bytes, keys.clone().count() as u32);
    for (number, columns) in keys {
        put_u32(bytes, number);
        bytes.push(columns.len() as u8);
        bytes.extend(columns.iter().flat_map(|column| column.to_le_bytes()));
    }
}

fn put_u32(bytes: &mut Vec<u8>, value: u32) {
    bytes.extend_from_slice(&value.to_le_bytes());
}

/// A column: its name, its type, its form.
fn put_column(column: &Column, bytes: &mut Vec<u8>) {
    bytes.push(column.name().len() as u8);
    bytes.extend_from_slice(column.name().as_bytes());
    let (of, argument) = match column.of() {
        DataType::Integer => (0, 0),
        DataType::Decimal(scale) => (1, u16::from(scale)),
        DataType::Date => (2, 0),
        DataType::Timestamp => (3, 0),
        DataType::Char(length) => (4, length),
        DataType::Varchar(length) => (5, length),
    };
    bytes.push(of);
    bytes.extend_from_slice(&argument.to_le_bytes());
    let (form, argument) = match column.form() {
        Form::Ordered(length) => (0, length),
        Form::Unsigned(length) => (1, length),
        Form::Signed(length) => (2, length),
        Form::Blanks => (3, 0),
        Form::Zeros => (4, 0),
        Form::Ended => (5, 0),
        Form::Counted => (6, 0),
    };
    bytes.extend_from_slice(&[form, argument]);
}

/// Takes what [`put_columns`] appended, and gives it to tables and indexes. `None`: these are other bytes.
pub(super) fn get_columns(contents: &mut Contents, bytes: &[u8]) -> Option<()> {
    let mut rest = bytes;
    let rest = &mut rest;
    for _ in 0..get_u32(rest)? {
        let number = get_u32(rest)?;
        let count = get::<1>(rest)?[0];
        let columns: Option<Vec<Column>> = (0..count).map(|_| get_column(rest)).collect();
        let layout = RowLayout::new(columns?).ok()?;
        let mut segments = contents.segments.iter_mut();
        let table = segments.find(|segment| segment.number == number)?;
        table.columns = Some(layout);
    }
    for _ in 0..get_u32(rest)? {
        let number = get_u32(rest)?;
        let count = get::<1>(rest)?[0];
        let columns: Option<Vec<u16>> = (0..count)
            .map(|_| get(rest).map(u16::from_le_bytes))
            .collect();
        let mut indexes = contents.indexes.iter_mut();
        let index = indexes.find(|index| index.segment == number)?;
        index.key = StoredKey::Columns(columns?);
    }
    rest.is_empty().then_some(())
}

fn get<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn get_u32(rest: &mut &[u8]) -> Option<u32> {
    get(rest).map(u32::from_le_bytes)
}

fn get_column(rest: &mut &[u8]) -> Option<Column> {
    let length = get::<1>(rest)?[0];
    let (name, behind) = rest.split_at_checked(usize::from(length))?;
    *rest = behind;
    let name = std::str::from_utf8(name).ok()?;
    let of = get::<1>(rest)?[0];
    let argument = u16::from_le_bytes(get(rest)?);
    let of = match of {
        0 => DataType::Integer,
        1 => DataType::Decimal(u8::try_from(argument).ok()?),
        2 => DataType::Date,
        3 => DataType::Timestamp,
        4 => DataType::Char(argument),
        5 => DataType::Varchar(argument),
        _ => return None,
    };
    let [form, argument] = get(rest)?;
    let form = match form {
        0 => Form::Ordered(argument),
        1 => Form::Unsigned(argument),
        2 => Form::Signed(argument),
        3 => Form::Blanks,
        4 => Form::Zeros,
        5 => Form::Ended,
        6 => Form::Counted,
        _ => return None,
    };
    Some(Column::in_form(name, of, form))
}
