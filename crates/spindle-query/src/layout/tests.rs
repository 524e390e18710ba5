//! Columns in every form: rows and keys from values and back, their order, and what is refused.

use super::*;
use crate::row::Cell;

fn number(digits: i128, scale: u8) -> Cell<'static> {
    Cell::Number { digits, scale }
}

/// A column in every form.
fn every_form() -> RowLayout {
    RowLayout::new([
        Column::new("id", DataType::Integer),
        Column::in_form("small", DataType::Integer, Form::Ordered(4)),
        Column::in_form("wide", DataType::Decimal(4), Form::Ordered(16)),
        Column::in_form("count", DataType::Integer, Form::Unsigned(4)),
        Column::in_form("balance", DataType::Decimal(2), Form::Signed(8)),
        Column::new("day", DataType::Date),
        Column::in_form("made", DataType::Timestamp, Form::Signed(8)),
        Column::new("state", DataType::Char(2)),
        Column::in_form("last", DataType::Varchar(16), Form::Zeros),
        Column::new("note", DataType::Varchar(40)),
        Column::new("more", DataType::Varchar(20)),
    ])
    .unwrap()
}

fn values() -> Vec<Cell<'static>> {
    vec![
        number(-7, 0),
        number(i128::from(i32::MIN), 0),
        number(-12_345, 4),
        number(u32::MAX.into(), 0),
        number(-1000, 2),
        Cell::Date(-400),
        number(1_199_145_600_000_000, 6),
        Cell::Text(b"a"),
        Cell::Text(b"BARBARBAR"),
        Cell::Text(b""),
        Cell::Text(b"more "),
    ]
}

#[test]
fn what_is_put_in_a_row_is_in_it() {
    let layout = every_form();
    let mut row = vec![1];
    layout.encode(&values(), &mut row).unwrap();
    assert_eq!(layout.decode(&row).unwrap(), values());
    let changed = [(0, number(8, 0)), (9, Cell::Text(b"a note"))];
    let other = layout.changed(&row, &changed).unwrap();
    assert_eq!(other.len(), row.len() + 6);
    let found = layout.decode(&other).unwrap();
    assert_eq!((found[0], found[9]), (changed[0].1, changed[1].1));
    assert_eq!(found[10], values()[10]);
    assert!(row.len() <= layout.row_bytes_max());
}

#[test]
fn numbers_take_the_places_of_their_column() {
    let layout = RowLayout::new([Column::new("price", DataType::Decimal(2))]).unwrap();
    let kept = |value| {
        let mut row = Vec::new();
        layout.encode(&[value], &mut row)?;
        Ok(match layout.decode(&row)?[0] {
            Cell::Number { digits, scale: 2 } => digits,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(kept(number(3, 0)), Ok(300));
    assert_eq!(kept(number(-35, 1)), Ok(-350));
    assert_eq!(
        kept(number(1_250, 4)),
        Err(RowLayoutError::Scale {
            column: "price".to_owned(),
            of: DataType::Decimal(2),
            digits: 1_250,
            scale: 4,
        })
    );
    assert_eq!(kept(number(1_200, 4)), Ok(12));
    assert!(matches!(
        kept(number(1 << 63, 2)),
        Err(RowLayoutError::Range { .. })
    ));
    assert!(matches!(
        kept(number(i128::MAX, 0)),
        Err(RowLayoutError::Range { .. })
    ));
    assert!(matches!(
        kept(number(1, 255)),
        Err(RowLayoutError::Scale { .. })
    ));
}

#[test]
fn a_value_that_does_not_fit_is_refused_with_its_column() {
    let layout = every_form();
    let refused = |column: usize, value: Cell<'_>| {
        let mut all = values();
        all[column] = value;
        let error = layout
            .encode(&all, &mut Vec::new())
            .unwrap_err()
            .to_string();
        let name = format!("column `{}`", layout.columns()[column].name());
        assert!(error.starts_with(&name), "{error}");
        error
    };
    assert!(refused(0, Cell::Null).contains("NULL is not supported"));
    assert!(refused(0, Cell::Text(b"1")).contains("a text does not fit it"));
    assert!(refused(1, number(1 << 31, 0)).contains("-2147483648 to 2147483647 is allowed"));
    assert!(refused(3, number(-1, 0)).contains("0 to 4294967295 is allowed"));
    assert!(refused(5, number(1, 0)).contains("a number does not fit it"));
    assert!(refused(7, Cell::Date(1)).contains("is char(2): a day does not fit it"));
    assert!(refused(7, Cell::Text(b"abc")).contains("a text of 3 bytes is too long"));
    assert!(refused(8, Cell::Text(b"a\0")).contains("cannot end with one"));
    assert!(refused(9, Cell::Text(&[b'x'; 41])).contains("a text of 41 bytes is too long"));
    let few = layout.encode(&values()[1..], &mut Vec::new()).unwrap_err();
    assert_eq!(
        few,
        RowLayoutError::ValueCount {
            values: 10,
            columns: 11
        }
    );
}

#[test]
fn bytes_that_are_no_row_are_refused() {
    let layout = every_form();
    let mut row = Vec::new();
    layout.encode(&values(), &mut row).unwrap();
    for length in 0..row.len() {
        assert!(layout.decode(&row[..length]).is_err(), "{length}");
    }
    for at in 0..row.len() {
        for byte in [0, 1, 127, 128, 255] {
            let mut other = row.clone();
            other[at] = byte;
            // Read or refused; and what is read can be written, if it is in range.
            if let Ok(values) = layout.decode(&other) {
                let written = layout.encode(&values, &mut Vec::new());
                assert!(written.is_ok(), "{at} {byte}: {written:?}");
            }
        }
    }
    row.push(0);
    assert!(layout.decode(&row).is_err());
}

#[test]
fn keys_are_in_the_order_of_their_values() {
    let layout = every_form();
    let key = |columns: &[u16], values: &[Cell<'_>]| layout.key(columns, values).unwrap();
    let ids = [i64::MIN, -300, -1, 0, 1, 255, 256, i64::MAX];
    let of_ids: Vec<_> = ids.map(|id| key(&[0], &[number(id.into(), 0)])).into();
    assert!(of_ids.is_sorted_by(|left, right| left < right));
    let days = [i32::MIN, -1, 0, 20_000].map(|day| key(&[5], &[Cell::Date(day)]));
    assert!(days.is_sorted_by(|left, right| left < right));
    let wide = [i128::MIN, -1, 0, i128::MAX].map(|digits| key(&[2], &[number(digits, 4)]));
    assert!(wide.is_sorted_by(|left, right| left < right));
    let texts = [&b""[..], b"a", b"a!", b"aa", b"b"].map(|text| key(&[8], &[Cell::Text(text)]));
    assert!(texts.is_sorted_by(|left, right| left < right));
    let blanks = key(&[7], &[Cell::Text(b"a  ")]);
    assert_eq!(blanks, key(&[7], &[Cell::Text(b"a")]));
}

#[test]
fn a_key_is_what_its_parts_take_from_the_row() {
    let counted = RowLayout::new([
        Column::in_form("c1", DataType::Integer, Form::Unsigned(8)),
        Column::in_form("c2", DataType::Integer, Form::Unsigned(8)),
        Column::in_form("c3", DataType::Varchar(30), Form::Counted),
    ])
    .unwrap();
    let values = [number(5, 0), number(6, 0), Cell::Text(b"text")];
    let mut row = Vec::new();
    counted.encode(&values, &mut row).unwrap();
    assert_eq!(row[16..], *b"\0\x04text");
    let keys: [&[u16]; 4] = [&[0, 1], &[1, 0], &[1, 2], &[2]];
    for key in keys {
        let parts = counted.key_parts(key).unwrap();
        let taken: Vec<u8> = parts
            .iter()
            .flat_map(|(begin, bytes)| {
                let end = usize::from(begin + bytes).min(row.len());
                row[usize::from(*begin)..end].to_vec()
            })
            .collect();
        let values: Vec<_> = key
            .iter()
            .map(|number| values[usize::from(*number)])
            .collect();
        assert_eq!(counted.key(key, &values).unwrap(), taken);
        assert_eq!(counted.key_columns(parts).unwrap(), key);
    }
    assert_eq!(counted.key_parts(&[0, 1]).unwrap(), [(0, 8), (8, 8)]);
    assert_eq!(counted.key_columns([(0, 16)]).unwrap(), [0, 1]);
    let crooked = [[(0, 7)], [(1, 8)], [(16, 2)], [(0, 65_535)]];
    for parts in crooked {
        let refused = counted.key_columns(parts);
        assert!(
            matches!(refused, Err(RowLayoutError::NoColumnAt { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let layout = every_form();
    let refused = |key: &[u16]| layout.key_parts(key).unwrap_err().to_string();
    assert!(refused(&[]).contains("at least one column"));
    assert!(refused(&[1, 0, 1]).contains("`small` is in the key twice"));
    assert!(refused(&[0, 4]).contains("`balance` cannot be in a key"));
    assert!(refused(&[0, 9]).contains("`note` has a varying length"));
    assert!(refused(&[11]).contains("no column `number 11`"));
    assert!(
        layout
            .number("none")
            .unwrap_err()
            .to_string()
            .contains("there are id, small")
    );
    let one = RowLayout::new([
        Column::new("name", DataType::Varchar(9)),
        Column::new("id", DataType::Integer),
    ]);
    let one = one.unwrap();
    assert_eq!(one.key_parts(&[1, 0]).unwrap(), [(2, 8), (10, 9)]);
    assert!(matches!(
        one.key_parts(&[0, 1]),
        Err(RowLayoutError::VaryingInKey { .. })
    ));
}

#[test]
fn columns_that_cannot_be_are_refused() {
    let refused = |columns: Vec<Column>| RowLayout::new(columns).unwrap_err().to_string();
    let integer = |name: &str| Column::new(name, DataType::Integer);
    assert!(refused(Vec::new()).contains("1 to 254 columns, not 0"));
    let many = (0..255).map(|number| integer(&format!("c{number}")));
    assert!(refused(many.collect()).contains("not 255"));
    assert!(refused(vec![integer("")]).contains("1 to 30 bytes"));
    assert!(refused(vec![integer(&"n".repeat(31))]).contains("1 to 30 bytes"));
    assert!(refused(vec![integer("a"), integer("a")]).contains("two columns are called `a`"));
    let wrong = [
        (DataType::Integer, Form::Ordered(3)),
        (DataType::Integer, Form::Signed(16)),
        (DataType::Decimal(19), Form::Ordered(8)),
        (DataType::Date, Form::Unsigned(4)),
        (DataType::Timestamp, Form::Ordered(4)),
        (DataType::Char(0), Form::Blanks),
        (DataType::Char(4), Form::Ended),
        (DataType::Varchar(4), Form::Blanks),
    ];
    for (of, form) in wrong {
        let said = refused(vec![Column::in_form("c", of, form)]);
        assert!(said.contains("column `c` cannot be"), "{said}");
    }
    let long = |name: &str| Column::new(name, DataType::Varchar(40_000));
    assert!(refused(vec![long("a"), long("b")]).contains("65535 is the most"));
    let counted = Column::in_form("t", DataType::Varchar(9), Form::Counted);
    assert!(refused(vec![counted.clone(), integer("a")]).contains("must be last"));
    let note = Column::new("note", DataType::Varchar(9));
    assert!(refused(vec![note, counted]).contains("must be last"));
}

#[test]
fn rows_of_plans_have_the_same_bytes() {
    let columns = Columns::new([
        ("key", Type::Key),
        ("lines", Type::Integer),
        ("price", Type::Decimal(2)),
        ("all", Type::Sum(4)),
        ("name", Type::Varying(12)),
        ("day", Type::Date),
        ("flag", Type::Fixed(3)),
        ("note", Type::Varying(9)),
    ]);
    let mut plain = Vec::new();
    let mut encoder = columns.encoder(&mut plain);
    for digits in [-5, 7, -1234, 99] {
        encoder.number(digits);
    }
    encoder.text(b"name");
    encoder.number(-3);
    encoder.text(b"R");
    encoder.text(b"a note");
    let layout = RowLayout::try_from(&columns).unwrap();
    let values: Vec<_> = (0..8)
        .map(|column| crate::cell(&columns, &plain, column))
        .collect();
    assert_eq!(layout.decode(&plain).unwrap(), values);
    let mut row = Vec::new();
    layout.encode(&values, &mut row).unwrap();
    assert_eq!(row, plain);
    assert_eq!(layout.row_bytes_max(), columns.row_bytes_max());
    let (offset, bytes) = columns.key_part("flag").unwrap();
    let flag = layout.number("flag").unwrap();
    assert_eq!(layout.key_parts(&[flag]).unwrap(), [(offset, bytes)]);
    assert_eq!(
        layout.to_string(),
        "key integer, lines integer, price decimal(2), all decimal(4), name varchar(12), day date, flag char(3), \
         note varchar(9)"
    );
}
