//! The tables of TPC-C as rows of bytes: columns of fixed widths at fixed places, in the order in which they are
//! loaded. Numbers have 4 bytes, exact amounts (hundredths) and moments 8, the highest first; texts end with zeros. A
//! number or a moment that is not there is 0. Each row begins with its primary key.

use spindle_query::{Column as StoredColumn, DataType, Form, RowLayout};

use crate::session::SessionError;
use crate::sql::connection::RowSink;
use crate::sql::tpcc::schema;
use crate::sql::value::Value;

/// Where a column lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    pub at: usize,
    pub bytes: usize,
}

impl ByteRange {
    fn of(self, row: &[u8]) -> &[u8] {
        &row[self.at..self.at + self.bytes]
    }

    fn of_mut(self, row: &mut [u8]) -> &mut [u8] {
        &mut row[self.at..self.at + self.bytes]
    }

    /// The number in it.
    pub fn number(self, row: &[u8]) -> u32 {
        u32::from_be_bytes(self.of(row).try_into().expect("a number has four bytes"))
    }

    /// The amount, the moment or the large number in it.
    pub fn amount(self, row: &[u8]) -> i64 {
        i64::from_be_bytes(self.of(row).try_into().expect("an amount has eight bytes"))
    }

    /// The text in it.
    pub fn text(self, row: &[u8]) -> &[u8] {
        let text = self.of(row);
        let end = text.iter().rposition(|byte| *byte != 0);
        &text[..end.map_or(0, |last| last + 1)]
    }

    /// Puts a number.
    pub fn set_number(self, row: &mut [u8], number: u32) {
        self.of_mut(row).copy_from_slice(&number.to_be_bytes());
    }

    /// Puts an amount, a moment or a large number.
    pub fn set_amount(self, row: &mut [u8], amount: i64) {
        self.of_mut(row).copy_from_slice(&amount.to_be_bytes());
    }

    /// Adds to a number.
    pub fn add_number(self, row: &mut [u8], more: u32) {
        self.set_number(row, self.number(row) + more);
    }

    /// Adds to an amount.
    pub fn add_amount(self, row: &mut [u8], more: i64) {
        self.set_amount(row, self.amount(row) + more);
    }

    /// Puts a text, cut where the column ends.
    pub fn set_text(self, row: &mut [u8], text: &[u8]) {
        let column = self.of_mut(row);
        let length = text.len().min(column.len());
        column.fill(0);
        column[..length].copy_from_slice(&text[..length]);
    }

    /// Puts a value, as it is loaded.
    fn set(self, row: &mut [u8], value: &Value<'_>) -> Result<(), SessionError> {
        match value {
            Value::Null => {}
            Value::Text(text) if text.len() <= self.bytes => self.set_text(row, text.as_bytes()),
            Value::Int(number) | Value::Decimal { digits: number, .. } if self.bytes == 4 => {
                self.set_number(row, *number as u32);
            }
            Value::Int(number)
            | Value::Decimal { digits: number, .. }
            | Value::Timestamp(number)
                if self.bytes == 8 =>
            {
                self.set_amount(row, *number);
            }
            other => {
                let reason = format!("a column of {} bytes does not take {other:?}", self.bytes);
                return Err(SessionError::Failed(reason));
            }
        }
        Ok(())
    }
}

macro_rules! columns {
    ($($(#[doc = $says:literal])* $table:ident { $($column:ident $bytes:literal,)+ })+) => {
        $($(#[doc = $says])*
        pub mod $table {
            use crate::sql::tpcc::in_rows::columns::ByteRange;
            /// Every column, in order.
            pub const ALL: &[ByteRange] = &[$($column),+];
            /// Bytes of a row.
            pub const BYTES: usize = 0 $(+ $bytes)+;
            columns!(@ 0; $($column $bytes,)+);
        })+
    };
    (@ $at:expr; $column:ident $bytes:literal, $($rest:tt)*) => {
        pub const $column: ByteRange = ByteRange { at: $at, bytes: $bytes };
        columns!(@ $at + $bytes; $($rest)*);
    };
    (@ $at:expr;) => {};
}

columns! {
    warehouse {
        ID 4, NAME 10, STREET_1 20, STREET_2 20, CITY 20, STATE 2, ZIP 9, TAX 4, YTD 8,
    }
    district {
        WAREHOUSE 4, ID 4, NAME 10, STREET_1 20, STREET_2 20, CITY 20, STATE 2, ZIP 9, TAX 4, YTD 8, NEXT_ORDER 4,
    }
    customer {
        WAREHOUSE 4, DISTRICT 4, ID 4, FIRST 16, MIDDLE 2, LAST 16, STREET_1 20, STREET_2 20, CITY 20, STATE 2, ZIP 9,
        PHONE 16, SINCE 8, CREDIT 2, CREDIT_LIMIT 8, DISCOUNT 4, BALANCE 8, YTD_PAYMENT 8, PAYMENTS 4, DELIVERIES 4,
        DATA 500,
    }
    history {
        CUSTOMER 4, CUSTOMER_DISTRICT 4, CUSTOMER_WAREHOUSE 4, DISTRICT 4, WAREHOUSE 4, MOMENT 8, AMOUNT 8, DATA 24,
        CLIENT 4, NUMBER 8,
    }
    new_order {
        WAREHOUSE 4, DISTRICT 4, ORDER 4,
    }
    orders {
        WAREHOUSE 4, DISTRICT 4, ID 4, CUSTOMER 4, ENTERED 8, CARRIER 4, LINES 4, ALL_LOCAL 4, CLIENT 4, NUMBER 8,
    }
    order_line {
        WAREHOUSE 4, DISTRICT 4, ORDER 4, LINE 4, ITEM 4, SUPPLY_WAREHOUSE 4, DELIVERED 8, QUANTITY 4, AMOUNT 8,
        INFO 24,
    }
    item {
        ID 4, IMAGE 4, NAME 24, PRICE 8, DATA 50,
    }
    /// A text of 24 for each district stands from `DISTRICT_1` on.
    stock {
        WAREHOUSE 4, ITEM 4, QUANTITY 4, DISTRICT_1 24, DISTRICT_2 24, DISTRICT_3 24, DISTRICT_4 24, DISTRICT_5 24,
        DISTRICT_6 24, DISTRICT_7 24, DISTRICT_8 24, DISTRICT_9 24, DISTRICT_10 24, YTD 4, ORDERS 4, REMOTE 4, DATA 50,
    }
}

/// The tables, in the order by which steps name them: name, columns, bytes of a row.
pub const TABLES: [(&str, &[ByteRange], usize); 9] = [
    ("warehouse", warehouse::ALL, warehouse::BYTES),
    ("district", district::ALL, district::BYTES),
    ("customer", customer::ALL, customer::BYTES),
    ("history", history::ALL, history::BYTES),
    ("new_order", new_order::ALL, new_order::BYTES),
    ("orders", orders::ALL, orders::BYTES),
    ("order_line", order_line::ALL, order_line::BYTES),
    ("item", item::ALL, item::BYTES),
    ("stock", stock::ALL, stock::BYTES),
];

pub const WAREHOUSE: usize = 0;
pub const DISTRICT: usize = 1;
pub const CUSTOMER: usize = 2;
pub const HISTORY: usize = 3;
pub const NEW_ORDER: usize = 4;
pub const ORDERS: usize = 5;
pub const ORDER_LINE: usize = 6;
pub const ITEM: usize = 7;
pub const STOCK: usize = 8;

/// The columns of a table for a dictionary: names and types are those of SQL, places those of [`TABLES`].
pub fn layout(table: usize) -> RowLayout {
    let widths = TABLES[table].1.iter();
    let columns = schema::columns(table)
        .zip(widths)
        .map(|((name, of), column)| {
            let form = match (of, column.bytes) {
                (DataType::Char(_) | DataType::Varchar(_), _) => Form::Zeros,
                (_, 4) => Form::Unsigned(4),
                _ => Form::Signed(8),
            };
            StoredColumn::in_form(name, of, form)
        });
    RowLayout::new(columns).expect("columns of TPC-C's tables")
}

/// A key, or the first numbers of one.
pub fn key<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    let numbers = numbers.map(|number| (number as u32).to_be_bytes());
    numbers.concat()
}

/// Rows of one table, as they are loaded.
pub struct Loaded {
    columns: &'static [ByteRange],
    bytes: usize,
    /// The rows, each as long as the table's.
    pub rows: Vec<u8>,
}

impl Loaded {
    /// None yet.
    pub fn new(table: usize) -> Loaded {
        let (_, columns, bytes) = TABLES[table];
        Loaded {
            columns,
            bytes,
            rows: Vec::new(),
        }
    }
}

impl RowSink for Loaded {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        let start = self.rows.len();
        self.rows.resize(start + self.bytes, 0);
        let row = &mut self.rows[start..];
        // The last columns of some tables are not loaded.
        for (column, value) in self.columns.iter().zip(values) {
            column.set(row, value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_each_other_without_gaps() {
        for (name, columns, bytes) in TABLES {
            let mut end = 0;
            for column in columns {
                assert_eq!(column.at, end, "{name}");
                end += column.bytes;
            }
            assert_eq!(end, bytes, "{name}");
        }
    }

    #[test]
    fn a_dictionary_has_them_where_they_are() {
        for (table, (name, columns, bytes)) in TABLES.into_iter().enumerate() {
            let layout = layout(table);
            assert_eq!(layout.columns().len(), columns.len(), "{name}");
            assert_eq!(layout.row_bytes_max(), bytes, "{name}");
            let mut texts = 0;
            for (number, column) in columns.iter().enumerate() {
                let stored = &layout.columns()[number];
                match stored.of() {
                    DataType::Char(length) | DataType::Varchar(length) => {
                        assert_eq!(usize::from(length), column.bytes, "{}", stored.name());
                        texts += 1;
                    }
                    _ => {}
                }
                if let Ok(parts) = layout.key_parts(&[number as u16]) {
                    assert_eq!(parts, [(column.at as u16, column.bytes as u16)]);
                }
            }
            println!("{name}: {layout}");
            assert!(texts < columns.len());
        }
        let named = |table: usize, column: &str| layout(table).number(column).is_ok();
        assert!(named(CUSTOMER, "c_last") && named(STOCK, "s_dist_10"));
    }

    #[test]
    fn what_is_put_is_there() {
        let mut row = vec![0; customer::BYTES];
        customer::ID.set_number(&mut row, 7);
        customer::BALANCE.set_amount(&mut row, -1000);
        customer::BALANCE.add_amount(&mut row, 10);
        customer::DATA.set_text(&mut row, &[b'x'; 600]);
        customer::LAST.set_text(&mut row, b"BARBARBAR");
        assert_eq!(customer::ID.number(&row), 7);
        assert_eq!(customer::BALANCE.amount(&row), -990);
        assert_eq!(customer::DATA.text(&row), [b'x'; 500]);
        assert_eq!(customer::LAST.text(&row), b"BARBARBAR");
        assert_eq!(customer::DELIVERIES.number(&row), 0);
    }
}
