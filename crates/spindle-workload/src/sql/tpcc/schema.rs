//! The nine tables of TPC-C (clause 1.3), their keys and indexes. Orders and history have two columns more than the
//! standard's: the client that made them and its transaction's number, empty in rows that were loaded; by them a lost
//! transaction shows.

use spindle_query::DataType;

use crate::sql::dialect::Dialect;

/// What stands in a table's columns for types that differ between dialects.
const MONEY: &str = "MONEY";
const AMOUNT: &str = "AMOUNT";
const PRICE: &str = "PRICE";
const RATE: &str = "RATE";
const MOMENT: &str = "MOMENT";

/// A table: its name, its columns, its key; history has none.
const TABLES: [(&str, &str, &str); 9] = [
    (
        "warehouse",
        "w_id integer not null, w_name varchar(10) not null, w_street_1 varchar(20) not null, \
         w_street_2 varchar(20) not null, w_city varchar(20) not null, w_state char(2) not null, w_zip char(9) not null, \
         w_tax RATE not null, w_ytd MONEY not null",
        "w_id",
    ),
    (
        "district",
        "d_w_id integer not null, d_id integer not null, d_name varchar(10) not null, d_street_1 varchar(20) not null, \
         d_street_2 varchar(20) not null, d_city varchar(20) not null, d_state char(2) not null, d_zip char(9) not null, \
         d_tax RATE not null, d_ytd MONEY not null, d_next_o_id integer not null",
        "d_w_id, d_id",
    ),
    (
        "customer",
        "c_w_id integer not null, c_d_id integer not null, c_id integer not null, c_first varchar(16) not null, \
         c_middle char(2) not null, c_last varchar(16) not null, c_street_1 varchar(20) not null, \
         c_street_2 varchar(20) not null, c_city varchar(20) not null, c_state char(2) not null, c_zip char(9) not null, \
         c_phone char(16) not null, c_since MOMENT not null, c_credit char(2) not null, c_credit_lim MONEY not null, \
         c_discount RATE not null, c_balance MONEY not null, c_ytd_payment MONEY not null, c_payment_cnt integer not null, \
         c_delivery_cnt integer not null, c_data varchar(500) not null",
        "c_w_id, c_d_id, c_id",
    ),
    (
        "history",
        "h_c_id integer not null, h_c_d_id integer not null, h_c_w_id integer not null, h_d_id integer not null, \
         h_w_id integer not null, h_date MOMENT not null, h_amount AMOUNT not null, h_data varchar(24) not null, \
         h_client integer, h_number bigint",
        "",
    ),
    (
        "new_order",
        "no_w_id integer not null, no_d_id integer not null, no_o_id integer not null",
        "no_w_id, no_d_id, no_o_id",
    ),
    (
        "orders",
        "o_w_id integer not null, o_d_id integer not null, o_id integer not null, o_c_id integer not null, \
         o_entry_d MOMENT not null, o_carrier_id integer, o_ol_cnt integer not null, o_all_local integer not null, \
         o_client integer, o_number bigint",
        "o_w_id, o_d_id, o_id",
    ),
    (
        "order_line",
        "ol_w_id integer not null, ol_d_id integer not null, ol_o_id integer not null, ol_number integer not null, \
         ol_i_id integer not null, ol_supply_w_id integer not null, ol_delivery_d MOMENT, ol_quantity integer not null, \
         ol_amount AMOUNT not null, ol_dist_info char(24) not null",
        "ol_w_id, ol_d_id, ol_o_id, ol_number",
    ),
    (
        "item",
        "i_id integer not null, i_im_id integer not null, i_name varchar(24) not null, i_price PRICE not null, \
         i_data varchar(50) not null",
        "i_id",
    ),
    (
        "stock",
        "s_w_id integer not null, s_i_id integer not null, s_quantity integer not null, s_dist_01 char(24) not null, \
         s_dist_02 char(24) not null, s_dist_03 char(24) not null, s_dist_04 char(24) not null, s_dist_05 char(24) not null, \
         s_dist_06 char(24) not null, s_dist_07 char(24) not null, s_dist_08 char(24) not null, s_dist_09 char(24) not null, \
         s_dist_10 char(24) not null, s_ytd integer not null, s_order_cnt integer not null, s_remote_cnt integer not null, \
         s_data varchar(50) not null",
        "s_w_id, s_i_id",
    ),
];

/// By which customers are found by name, and the last order of a customer.
const INDEXES: [&str; 2] = [
    "create index customer_name on customer (c_w_id, c_d_id, c_last, c_first)",
    "create index orders_customer on orders (o_w_id, o_d_id, o_c_id, o_id)",
];

const POSTGRES_PROCEDURES: &str = include_str!("procedures/postgres.sql");
const MARIADB_PROCEDURES: &str = include_str!("procedures/mariadb.sql");
/// Begins each procedure in these files.
const PROCEDURE: &str = "create procedure";

pub fn create_tables(dialect: Dialect) -> Vec<String> {
    let tables = TABLES.iter().map(|(name, columns, key)| {
        let columns = typed(columns, dialect);
        match key.is_empty() {
            true => format!("create table {name} ({columns})"),
            false => dialect.create_table(name, &columns, key),
        }
    });
    tables.collect()
}

fn typed(columns: &str, dialect: Dialect) -> String {
    columns
        .replace(MONEY, &dialect.exact_type(12, 2))
        .replace(AMOUNT, &dialect.exact_type(6, 2))
        .replace(PRICE, &dialect.exact_type(5, 2))
        .replace(RATE, &dialect.exact_type(4, 4))
        .replace(MOMENT, dialect.moment_type())
}

pub fn create_indexes(dialect: Dialect) -> Vec<String> {
    let keyed = TABLES.iter().filter(|(_, _, key)| !key.is_empty());
    let keys = keyed.filter_map(|(name, _, key)| dialect.add_key(name, key));
    keys.chain(INDEXES.map(str::to_owned)).collect()
}

/// Names and types of the columns of a table, by its place among all, in their order.
pub fn columns(table: usize) -> impl Iterator<Item = (&'static str, DataType)> {
    TABLES[table].1.split(", ").map(|column| {
        let mut words = column.split(' ');
        let (name, of) = (words.next(), words.next());
        let of = of
            .and_then(data_type)
            .expect("a column has a name and a type");
        (name.expect("a column has a name"), of)
    })
}

fn data_type(word: &str) -> Option<DataType> {
    let length = |word: &str| word.strip_suffix(')')?.parse().ok();
    match word {
        "integer" | "bigint" => Some(DataType::Integer),
        MONEY | AMOUNT | PRICE => Some(DataType::Decimal(2)),
        RATE => Some(DataType::Decimal(4)),
        MOMENT => Some(DataType::Timestamp),
        text => match text.split_once('(')? {
            ("char", bytes) => length(bytes).map(DataType::Char),
            ("varchar", bytes) => length(bytes).map(DataType::Varchar),
            _ => None,
        },
    }
}

/// Statements that make the procedures; none where there are no procedures.
pub fn create_procedures(dialect: Dialect) -> Vec<String> {
    let text = match dialect {
        Dialect::Postgres => POSTGRES_PROCEDURES,
        Dialect::MariaDb => MARIADB_PROCEDURES,
        Dialect::Sqlite => return Vec::new(),
    };
    let bodies = text.split(PROCEDURE).skip(1);
    bodies
        .map(|body| {
            let statement = format!("{PROCEDURE}{}", body.trim_end());
            statement.trim_end_matches(';').to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_has_nine_tables_and_what_has_procedures_has_five() {
        for dialect in [Dialect::Postgres, Dialect::MariaDb, Dialect::Sqlite] {
            let tables = create_tables(dialect);
            assert_eq!(tables.len(), 9);
            let untyped = |text: &String| {
                [MONEY, AMOUNT, PRICE, RATE, MOMENT]
                    .iter()
                    .any(|word| text.contains(word))
            };
            assert!(!tables.iter().any(untyped));
            let procedures = create_procedures(dialect);
            assert_eq!(
                procedures.len(),
                if dialect == Dialect::Sqlite { 0 } else { 5 }
            );
            assert!(procedures.iter().all(|procedure| !procedure.ends_with(';')));
        }
    }
}
