//! The refresh functions (clause 2.5 to 2.7): RF1 brings in new orders with their lines, RF2 takes old ones away, each
//! a thousandth of all orders. Which, is DBGEN's rule: of every 32 keys the loaded orders have 8, and set `n` of new
//! orders has the next 8 behind the keys of the n-th thousandth of loaded orders, which are those that RF2 removes.
//! What is in the new rows comes from DBGEN's streams of chance where the loaded rows ended. Only comments are cut from
//! a shorter text than DBGEN's, which would take 300 MB of the memory of a trial.

use std::sync::OnceLock;

use tpchgen::distribution::Distributions;
use tpchgen::generators::{LineItemGenerator, OrderGenerator};
use tpchgen::text::TextPool;

use super::load::{lineitem_row, order_row};
use super::schema::{LINEITEM, ORDERS, TpchTable};
use crate::session::SessionError;
use crate::sql::{SqlConnection, Value};

/// A refresh set is this part of all orders.
const SETS: i32 = 1000;
/// Of the text that comments are cut from, bytes.
const TEXT_BYTES: i32 = 4 << 20;
/// Keys of new orders lie so far behind those of the loaded orders of their block of 32.
const NEW_KEYS: i64 = 8;

/// Statements, by their numbers.
const INSERT_ORDER: usize = 0;
const INSERT_LINE: usize = 1;
const DELETE_ORDER: usize = 2;
const DELETE_LINES: usize = 3;

/// Their text.
pub(super) fn statements() -> Vec<String> {
    let insert = |table: &TpchTable| {
        let places: Vec<String> = (1..=table.columns.len()).map(|n| format!("${n}")).collect();
        let (name, columns) = (table.name, table.columns.join(", "));
        format!(
            "insert into {name} ({columns}) values ({})",
            places.join(", ")
        )
    };
    vec![
        insert(&ORDERS),
        insert(&LINEITEM),
        "delete from orders where o_orderkey = $1".to_owned(),
        "delete from lineitem where l_orderkey = $1".to_owned(),
    ]
}

/// Text for comments. Made once, by the first caller: before anything is measured.
pub(super) fn text() -> &'static TextPool {
    static TEXT: OnceLock<TextPool> = OnceLock::new();
    TEXT.get_or_init(|| TextPool::new(TEXT_BYTES, Distributions::static_default()))
}

/// Orders in a refresh set.
pub(super) fn set_orders(scale: f64) -> i64 {
    OrderGenerator::calculate_row_count(scale, 1, SETS)
}

/// Orders that are loaded.
pub(super) fn loaded_orders(scale: f64) -> i64 {
    OrderGenerator::calculate_row_count(scale, 1, 1)
}

/// The n-th loaded order's key, n from 1.
pub(super) fn loaded_key(order: i64) -> i64 {
    OrderGenerator::make_order_key(order)
}

/// Which order a loaded key is of.
fn order_of(key: i64) -> i64 {
    (key >> 5 << 3) | (key & 7)
}

/// The numbers of the orders of a set, from 0, among the loaded orders.
pub(super) fn orders_of(set: u32, scale: f64) -> std::ops::RangeInclusive<i64> {
    let (count, set) = (set_orders(scale), i64::from(set));
    set * count + 1..=(set + 1) * count
}

/// Keys of the orders that RF2 removes: the first and the last.
pub(super) fn old_keys(set: u32, scale: f64) -> (i64, i64) {
    let orders = orders_of(set, scale);
    (loaded_key(*orders.start()), loaded_key(*orders.end()))
}

/// Makes the rows of a set of new orders: `take` gets each order, and after it its lines; true: it is an order.
///
/// # Errors
/// Those of `take`.
pub(super) fn new_orders(
    set: u32,
    scale: f64,
    mut take: impl FnMut(bool, &[Value<'_>]) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    let (part, words) = (SETS + 1 + set as i32, Distributions::static_default());
    let (order, line) = (
        OrderGenerator::new_with_distributions_and_text_pool(scale, part, SETS, words, text()),
        LineItemGenerator::new_with_distributions_and_text_pool(scale, part, SETS, words, text()),
    );
    // The generators count on from the loaded orders.
    let (count, new) = (set_orders(scale), orders_of(set, scale));
    let before = i64::from(SETS + set as i32) * count;
    let new_key = |key: i64| {
        let order = order_of(key) - before + new.start() - 1;
        loaded_key(order) + NEW_KEYS
    };
    let mut lines = line.iter().peekable();
    let mut clerk = String::new();
    for mut order in order.iter() {
        let generated_key = order.o_orderkey;
        order.o_orderkey = new_key(generated_key);
        take(true, &order_row(&order, &mut clerk))?;
        while let Some(mut line) = lines.next_if(|line| line.l_orderkey == generated_key) {
            line.l_orderkey = order.o_orderkey;
            take(false, &lineitem_row(&line))?;
        }
    }
    Ok(())
}

/// RF1.
pub(super) fn insert(
    set: u32,
    scale: f64,
    connection: &mut dyn SqlConnection,
) -> Result<(), SessionError> {
    connection.begin()?;
    new_orders(set, scale, |is_order, values| {
        let statement = if is_order { INSERT_ORDER } else { INSERT_LINE };
        connection.execute(statement, values).map(drop)
    })?;
    connection.commit()
}

/// RF2.
pub(super) fn delete(
    set: u32,
    scale: f64,
    connection: &mut dyn SqlConnection,
) -> Result<(), SessionError> {
    connection.begin()?;
    for order in orders_of(set, scale) {
        let key = [Value::Int(loaded_key(order))];
        connection.execute(DELETE_LINES, &key)?;
        let orders = connection.execute(DELETE_ORDER, &key)?;
        if orders != 1 {
            let found = format!("order {} was there {orders} times", loaded_key(order));
            return Err(SessionError::Failed(found));
        }
    }
    connection.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_dbgen() {
        // The first block of 32 keys has loaded orders 0 to 7, the next 8 keys are those of new ones.
        assert_eq!([1, 7, 8, 15, 16].map(loaded_key), [1, 7, 32, 39, 64]);
        for order in [1, 7, 8, 1500, 1_500_000] {
            assert_eq!(order_of(loaded_key(order)), order);
        }
        assert_eq!(set_orders(1.0), 1500);
        assert_eq!(orders_of(1, 1.0), 1501..=3000);
        assert_eq!(old_keys(0, 0.01), (1, 39));
    }

    #[test]
    fn new_orders_go_on_where_the_loaded_ones_end() {
        let (scale, words) = (0.01, Distributions::static_default());
        let of = |part, parts| {
            OrderGenerator::new_with_distributions_and_text_pool(scale, part, parts, words, text())
        };
        // The parts of the loaded orders, one after the other, are followed by the first set.
        let last = of(SETS, SETS).iter().last().unwrap();
        let first = of(SETS + 1, SETS).iter().next().unwrap();
        assert_eq!(order_of(last.o_orderkey), 15_000);
        assert_eq!(order_of(first.o_orderkey), 15_001);
    }
}
