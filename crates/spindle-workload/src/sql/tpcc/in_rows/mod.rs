//! TPC-C on the embedded database: the same nine tables, keys and rows as bytes, the same transactions step by step,
//! and the conditions of consistency looked for in all rows.

mod check;
mod columns;
mod transactions;

use std::sync::Arc;

use spindle_query::RowLayout;

use super::delivery::Delivery;
use super::load;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::stock_level::StockLevel;
use super::terms::{self, DISTRICTS, Tpcc};
use crate::keyed::IndexOf;
use crate::session::Txn;
use crate::sql::dialect::Dialect;
use crate::workload::{
    Acknowledged, Checker, Client, IndexSpec, Inserts, LoadedTable, Loader, RowLength, TableSize,
    TableSpec, TerminalTimes, Workload, checker_of,
};
use check::TpccRowLook;
use columns::{
    CUSTOMER, DISTRICT, HISTORY, ITEM, Loaded, NEW_ORDER, ORDER_LINE, ORDERS, STOCK, TABLES,
    WAREHOUSE, history, layout, new_order, order_line, orders,
};

/// Loaded rows are those of a database that knows exact numbers and moments.
const DIALECT: Dialect = Dialect::Postgres;
/// When orders are entered and delivered: one moment, as of the loaded rows, so that a seed is one history.
const MOMENT: i64 = load::ENTERED_US;
/// Lines of an order, on average and a tenth more.
const LINES_ABOUT: u64 = 11;

/// Of each table: its primary key, which its rows begin with, then the others. History has none.
const INDEXES: [&[IndexSpec]; 9] = [
    &[unique("warehouse_key", &[(0, 4)])],
    &[unique("district_key", &[(0, 8)])],
    &[
        unique("customer_key", &[(0, 12)]),
        IndexSpec {
            name: "customer_by_name",
            is_unique: false,
            // Warehouse, district, last name, first name.
            key: &[(0, 8), (30, 16), (12, 16)],
        },
    ],
    &[],
    &[unique("new_order_key", &[(0, 12)])],
    &[
        unique("orders_key", &[(0, 12)]),
        // Warehouse, district, customer, order.
        unique("orders_by_customer", &[(0, 8), (12, 4), (8, 4)]),
    ],
    &[unique("order_line_key", &[(0, 16)])],
    &[unique("item_key", &[(0, 4)])],
    &[unique("stock_key", &[(0, 8)])],
];

const fn unique(name: &'static str, key: &'static [(u16, u16)]) -> IndexSpec {
    IndexSpec {
        name,
        is_unique: true,
        key,
    }
}

fn primary(table: usize) -> IndexOf {
    IndexOf { table, index: 0 }
}

fn by_last_name() -> IndexOf {
    IndexOf {
        table: CUSTOMER,
        index: 1,
    }
}

fn by_customer() -> IndexOf {
    IndexOf {
        table: ORDERS,
        index: 1,
    }
}

/// The workload, in rows.
pub(super) struct TpccInRows {
    tpcc: Tpcc,
    /// Transactions for whose rows there is room.
    room_for: u64,
    /// Rows of order lines that are loaded.
    order_lines: u64,
}

impl TpccInRows {
    pub(super) fn new(tpcc: Tpcc, room_for: u64) -> TpccInRows {
        TpccInRows {
            order_lines: load::order_lines_of(&tpcc),
            tpcc,
            room_for,
        }
    }

    fn rows_of(&self, table: usize) -> u64 {
        let warehouses = u64::from(self.tpcc.warehouses);
        let sizes = self.tpcc.sizes;
        let districts = warehouses * DISTRICTS;
        match table {
            WAREHOUSE => warehouses,
            DISTRICT => districts,
            NEW_ORDER => districts * (sizes.customers - sizes.delivered()),
            ORDER_LINE => self.order_lines,
            ITEM => sizes.items,
            STOCK => warehouses * sizes.items,
            // Every customer has made one order and one payment.
            _ => districts * sizes.customers,
        }
    }
}

impl Workload for TpccInRows {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let spec = |(table, (name, _, bytes)): (usize, (&'static str, _, usize))| TableSpec {
            name,
            row: RowLength::Bytes(bytes),
            size: TableSize::Rows(self.rows_of(table)),
        };
        TABLES.into_iter().enumerate().map(spec).collect()
    }

    fn columns(&self, table: usize) -> Option<RowLayout> {
        Some(layout(table))
    }

    fn indexes(&self, table: usize) -> &'static [IndexSpec] {
        INDEXES[table]
    }

    fn inserts(&self) -> Vec<Inserts> {
        let share = |percent: u32| (self.room_for * u64::from(percent)).div_ceil(100);
        let (ordered, paid) = (share(self.tpcc.mix.new_order), share(self.tpcc.mix.payment));
        let of = |table, rows, row_bytes, rows_per_transaction| Inserts {
            table,
            rows,
            row_bytes,
            rows_per_transaction,
        };
        vec![
            of(HISTORY, paid, history::BYTES, 1),
            of(NEW_ORDER, ordered, new_order::BYTES, 1),
            of(ORDERS, ordered, orders::BYTES, 1),
            of(
                ORDER_LINE,
                ordered * LINES_ABOUT,
                order_line::BYTES,
                terms::LINES_MAX,
            ),
        ]
    }

    fn kinds(&self) -> Vec<String> {
        terms::KINDS.map(str::to_owned).to_vec()
    }

    fn loader(&self, table: usize, first: u64) -> Loader<'_> {
        let (name, _, row_bytes) = TABLES[table];
        let parts = load::parts(&self.tpcc, DIALECT);
        let mut parts = parts.into_iter().filter(move |part| part.table == name);
        let mut part = Loaded::new(table);
        let mut next = 0;
        let mut load = move |_, bytes: &mut Vec<u8>| {
            if next == part.rows.len() {
                let make = parts.next().expect("there are parts for all rows").rows;
                part.rows.clear();
                make(&mut part).expect("rows fit their columns");
                next = 0;
            }
            bytes.clear();
            bytes.extend_from_slice(&part.rows[next..next + row_bytes]);
            next += row_bytes;
        };
        let mut before = Vec::new();
        (0..first).for_each(|row| load(row, &mut before));
        Box::new(load)
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    fn next(&self, client: &mut Client, _: &[LoadedTable]) -> Txn {
        let tpcc = &self.tpcc;
        match tpcc.kind(client) {
            terms::NEW_ORDER => {
                let order = NewOrder::draw(tpcc, client);
                let number = order.number;
                Txn::call(order, number)
            }
            terms::PAYMENT => {
                let payment = Payment::draw(tpcc, client);
                let number = payment.number;
                Txn::call(payment, number)
            }
            terms::ORDER_STATUS => Txn::call(OrderStatus::draw(tpcc, client), 0),
            terms::DELIVERY => Txn::call(Delivery::draw(tpcc, client), 0),
            _ => Txn::call(StockLevel::draw(tpcc, client), 0),
        }
    }

    fn is_deferred(&self, kind: usize) -> bool {
        self.tpcc.puts_off(kind)
    }

    fn terminal_times(&self, kind: usize, client: &mut Client) -> TerminalTimes {
        self.tpcc.times_of(kind, client)
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(TpccRowLook::new(self.tpcc.sizes.delivered(), acknowledged))
    }
}
