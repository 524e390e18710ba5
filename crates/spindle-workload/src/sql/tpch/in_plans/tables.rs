//! The eight tables as the embedded database has them: the same columns and indexes as in SQL, rows encoded by
//! [`spindle_query`], and the rows' generators one after the other.

use std::sync::LazyLock;

use spindle_query::{Columns, QueryPlan, Relation, Type};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::sql::Value;
use crate::sql::tpch::load;
use crate::sql::tpch::schema::{TABLES, TpchTable};
use crate::workload::{IndexSpec, Loader};

/// Places of tables among all.
pub(super) const ORDERS: usize = 6;
pub(super) const LINEITEM: usize = 7;

/// Lines of an order, at most.
pub(super) const LINES_MAX: u64 = 7;

/// Rows of the first two tables at any scale (TPC-H, clause 4.2.5). Their generators are not asked: they would make the
/// text of all comments, 300 MB.
const REGIONS: i64 = 5;
const NATIONS: i64 = 25;

/// Where a key has its parts in a row.
type Parts = Vec<(u16, u16)>;

static RELATIONS: LazyLock<Vec<Relation>> = LazyLock::new(|| {
    let relation = |table: &&TpchTable| {
        let columns = table.columns.iter().zip(table.types);
        Relation {
            name: table.name,
            columns: Columns::new(columns.map(|(name, of)| (*name, *of))),
        }
    };
    TABLES.iter().map(relation).collect()
});

/// Of each table, the names, the uniqueness and the keys of its indexes.
static KEYS: LazyLock<Vec<Vec<(String, bool, Parts)>>> = LazyLock::new(|| {
    let of_table = |(table, relation): (&&TpchTable, &Relation)| {
        let parts = |columns: &[&str]| {
            let part = |name: &&str| relation.columns.key_part(name);
            let parts: Result<Parts, _> = columns.iter().map(part).collect();
            parts.expect("keys are columns of a fixed length")
        };
        let primary = (format!("{}_key", table.name), true, parts(table.key));
        let others = table
            .indexes
            .iter()
            .map(|columns| (columns.join("_"), false, parts(columns)));
        [primary].into_iter().chain(others).collect()
    };
    TABLES.iter().zip(&*RELATIONS).map(of_table).collect()
});

static INDEXES: LazyLock<Vec<Vec<IndexSpec>>> = LazyLock::new(|| {
    let keys: &'static Vec<Vec<(String, bool, Parts)>> = &KEYS;
    let spec = |(name, is_unique, key): &'static (String, bool, Parts)| IndexSpec {
        name,
        is_unique: *is_unique,
        key,
    };
    keys.iter()
        .map(|of_table| of_table.iter().map(spec).collect())
        .collect()
});

/// All tables.
pub(super) fn relations() -> &'static [Relation] {
    &RELATIONS
}

/// The indexes of a table.
pub(super) fn indexes(table: usize) -> &'static [IndexSpec] {
    &INDEXES[table]
}

/// A table by its description.
pub(super) fn relation(table: &TpchTable) -> &'static Relation {
    let found = RELATIONS.iter().find(|found| found.name == table.name);
    found.expect("every table has one")
}

/// All rows of a table.
pub(super) fn scan(table: &TpchTable) -> QueryPlan {
    QueryPlan::scan(relation(table))
}

/// Rows of a table at a scale factor.
pub(super) fn rows_of(table: usize, scale: f64) -> u64 {
    let rows = match table {
        0 => REGIONS,
        1 => NATIONS,
        2 => PartGenerator::calculate_row_count(scale, 1, 1),
        3 => SupplierGenerator::calculate_row_count(scale, 1, 1),
        4 => 4 * PartSuppGenerator::calculate_row_count(scale, 1, 1),
        5 => CustomerGenerator::calculate_row_count(scale, 1, 1),
        ORDERS => OrderGenerator::calculate_row_count(scale, 1, 1),
        _ => lines(scale),
    };
    rows.unsigned_abs()
}

/// Rows of lineitem: each order draws how many it has.
fn lines(scale: f64) -> i64 {
    let mut drawn = OrderGenerator::create_line_count_random();
    let orders = OrderGenerator::calculate_row_count(scale, 1, 1);
    let lines = (0..orders).map(|_| {
        let lines = i64::from(drawn.next_value());
        drawn.row_finished();
        lines
    });
    lines.sum()
}

/// Makes the rows of a table, from row `first` on.
pub(super) fn loader(table: usize, scale: f64, first: u64) -> Loader<'static> {
    macro_rules! loader {
        ($generator:ident, $buffers:expr, $values:expr) => {{
            let mut rows = $generator::new(scale, 1, 1).iter().skip(first as usize);
            let mut buffers = $buffers;
            let columns = &RELATIONS[table].columns;
            Box::new(move |_, bytes| {
                let row = rows.next().expect("there are as many as were counted");
                encode(columns, &$values(&row, &mut buffers), bytes);
            })
        }};
    }
    match table {
        0 => loader!(RegionGenerator, (), |row, _: &mut ()| load::region_row(row)),
        1 => loader!(NationGenerator, (), |row, _: &mut ()| load::nation_row(row)),
        2 => loader!(PartGenerator, load::Texts::default(), load::part_row),
        3 => loader!(
            SupplierGenerator,
            load::Texts::default(),
            load::supplier_row
        ),
        4 => loader!(PartSuppGenerator, (), |row, _: &mut ()| load::partsupp_row(
            row
        )),
        5 => loader!(
            CustomerGenerator,
            load::Texts::default(),
            load::customer_row
        ),
        ORDERS => loader!(OrderGenerator, String::new(), load::order_row),
        _ => loader!(LineItemGenerator, (), |row, _: &mut ()| load::lineitem_row(
            row
        )),
    }
}

/// Writes a row.
pub(super) fn encode(columns: &Columns, values: &[Value<'_>], bytes: &mut Vec<u8>) {
    let mut encoder = columns.encoder(bytes);
    for value in values {
        match value {
            Value::Int(number) => encoder.number(i128::from(*number)),
            Value::Decimal { digits, .. } => encoder.number(i128::from(*digits)),
            Value::Date(day) => encoder.number(i128::from(*day)),
            Value::Text(text) => encoder.text(text.as_bytes()),
            other => unreachable!("no table of TPC-H holds {other:?}"),
        }
    }
}

/// The key of an order, in orders and in lineitem.
pub(super) fn order_key(key: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let columns = Columns::new([("key", Type::Key)]);
    columns.encoder(&mut bytes).number(i128::from(key));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::tpch::schema;

    #[test]
    fn as_many_lines_are_counted_as_are_made() {
        let made = LineItemGenerator::new(0.01, 1, 1).iter().count() as u64;
        assert_eq!(rows_of(LINEITEM, 0.01), made);
        let made = PartSuppGenerator::new(0.01, 1, 1).iter().count() as u64;
        assert_eq!(rows_of(4, 0.01), made);
        assert_eq!((rows_of(0, 0.01), rows_of(1, 0.01)), (5, 25));
        assert_eq!(schema::ORDERS.name, TABLES[ORDERS].name);
        assert_eq!(schema::LINEITEM.name, TABLES[LINEITEM].name);
    }
}
