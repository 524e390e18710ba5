//! TPC-H on the embedded database: the same tables, keys, parameters, streams and refresh functions, and for each query
//! a plan written by hand. [`tables`] has the rows, the files named by numbers the plans.

mod parts;
mod q01_q06;
mod q07_q12;
mod q13_q17;
mod q18_q22;
mod refresh;
mod tables;

use std::collections::BTreeSet;
use std::sync::Arc;

use spindle_query::{Cell, Columns, Query, RowLayout};

use super::answers::KeptAnswer;
use super::refresh::{loaded_key, loaded_orders, orders_of, set_orders};
use super::terms::{KINDS, Keeps, RF1, Tpch, Values};
use crate::keyed::{Ended, Keyed, Procedure, StepFuture};
use crate::session::Txn;
use crate::sql::value::{date_text, decimal_text};
use crate::workload::{
    Acknowledged, CheckError, Checker, Client, IndexSpec, Inserts, LoadedTable, Loader, RowLength,
    TableSize, TableSpec, Tally, Workload, checker_of,
};
use refresh::RefreshInRows;
use tables::{LINEITEM, LINES_MAX, ORDERS, relations};

/// Temporary space of a stream for a unit of scale: the larger joins keep both sides. Bytes.
const TEMP_PER_SCALE: f64 = 1.5e9;
/// In addition, of each slave: extents of its runs that are not full.
const SLAVE_TEMP_BYTES: u64 = 64 << 20;

/// A query as the embedded database carries it out.
pub fn plan(query: u8, values: &[String]) -> Query {
    let plans = [
        q01_q06::q01,
        q01_q06::q02,
        q01_q06::q03,
        q01_q06::q04,
        q01_q06::q05,
        q01_q06::q06,
        q07_q12::q07,
        q07_q12::q08,
        q07_q12::q09,
        q07_q12::q10,
        q07_q12::q11,
        q07_q12::q12,
        q13_q17::q13,
        q13_q17::q14,
        q13_q17::q15,
        q13_q17::q16,
        q13_q17::q17,
        q18_q22::q18,
        q18_q22::q19,
        q18_q22::q20,
        q18_q22::q21,
        q18_q22::q22,
    ];
    plans[usize::from(query) - 1](values)
}

/// The workload, in plans.
pub(super) struct TpchInPlans {
    pub(super) tpch: Tpch,
    /// Most streams there will be.
    pub(super) streams: u64,
    /// Processes that carry out a query.
    pub(super) slaves: u32,
}

impl TpchInPlans {
    fn query(&self, kind: usize, stream: usize) -> Query {
        let number = kind as u8 + 1;
        let query = match self.tpch.values(number, stream) {
            Values::OfQuery(values) => plan(number, &values),
            Values::OfClerk(values) => q13_q17::of_clerk(&values),
        };
        Query {
            slaves: self.slaves as usize,
            limit_ns: self.tpch.query_limit.map(|limit| limit.as_nanos() as u64),
            ..query
        }
    }
}

impl Workload for TpchInPlans {
    fn name(&self) -> &'static str {
        self.tpch.word()
    }

    fn tables(&self) -> Vec<TableSpec> {
        let spec = |(number, relation): (usize, &spindle_query::Relation)| TableSpec {
            name: relation.name,
            row: RowLength::Bytes(relation.columns.row_bytes_max()),
            size: TableSize::Rows(tables::rows_of(number, self.tpch.scale)),
        };
        relations().iter().enumerate().map(spec).collect()
    }

    fn columns(&self, table: usize) -> Option<RowLayout> {
        let columns = RowLayout::try_from(&relations()[table].columns);
        Some(columns.expect("columns of TPC-H's tables"))
    }

    fn indexes(&self, table: usize) -> &'static [IndexSpec] {
        tables::indexes(table)
    }

    fn inserts(&self) -> Vec<Inserts> {
        if !self.tpch.refresh {
            return Vec::new();
        }
        let orders = set_orders(self.tpch.scale).unsigned_abs();
        let of = |table: usize, rows_per_transaction| Inserts {
            table,
            rows: rows_per_transaction * self.streams,
            row_bytes: relations()[table].columns.row_bytes_max(),
            rows_per_transaction,
        };
        vec![of(ORDERS, orders), of(LINEITEM, orders * LINES_MAX)]
    }

    fn kinds(&self) -> Vec<String> {
        KINDS.map(str::to_owned).to_vec()
    }

    fn transactions(&self, client: usize, clients: usize) -> Option<u64> {
        let role = self.tpch.role(client, clients);
        Some(self.tpch.steps(&role).len() as u64)
    }

    fn temp_bytes(&self) -> u64 {
        let of_data = (TEMP_PER_SCALE * self.tpch.scale) as u64;
        self.streams * (of_data + u64::from(self.slaves) * SLAVE_TEMP_BYTES)
    }

    fn loader(&self, table: usize, first: u64) -> Loader<'_> {
        tables::loader(table, self.tpch.scale, first)
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    fn next(&self, client: &mut Client, _: &[LoadedTable]) -> Txn {
        let next = self.tpch.next_step(client);
        if next.kind >= RF1 {
            let refresh = RefreshInRows {
                kind: next.kind,
                set: next.set,
                scale: self.tpch.scale,
            };
            return Txn::call(refresh, client.changes);
        }
        let asked = RunningQuery {
            kind: next.kind,
            query: self.query(next.kind, next.stream),
            keeps: self.tpch.keeps(&next),
        };
        Txn::call(asked, 0)
    }

    fn kept_answers(&self) -> Vec<KeptAnswer> {
        self.tpch.all_kept_answers()
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        let [added, removed] = self.tpch.refreshed(&acknowledged);
        let scale = self.tpch.scale;
        let of_set = |set| orders_of(set as u32, scale).map(loaded_key);
        let orders = loaded_orders(scale) + (added as i64 - removed as i64) * set_orders(scale);
        checker_of(Orders {
            wanted: orders.unsigned_abs(),
            removed: (0..removed)
                .flat_map(of_set)
                .map(tables::order_key)
                .collect(),
            orders: 0,
            left: 0,
        })
    }
}

/// A query on its way.
struct RunningQuery {
    kind: usize,
    query: Query,
    keeps: Option<Keeps>,
}

impl Procedure for RunningQuery {
    fn kind(&self) -> usize {
        self.kind
    }

    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            let Some(keeps) = &self.keeps else {
                rows.ask(&self.query, &mut |_, _| {}).await?;
                return Ok(Ended::Done);
            };
            let mut found = keeps.answer(self.kind);
            let mut take = |columns: &Columns, cells: &[Cell<'_>]| {
                let names = || columns.iter().map(|(name, _)| name.to_owned()).collect();
                found.add_texts(names, cells.iter().map(text_of));
            };
            rows.ask(&self.query, &mut take).await?;
            keeps.kept.keep(found);
            Ok(Ended::Done)
        })
    }
}

/// A value as answers have it.
pub fn text_of(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Number { digits, scale } => decimal_text(*digits, *scale),
        Cell::Date(day) => date_text(*day),
        Cell::Text(text) => String::from_utf8_lossy(text).trim().to_owned(),
        Cell::Null => "null".to_owned(),
    }
}

/// Counts the orders, and those that should have been removed.
#[derive(Clone)]
struct Orders {
    wanted: u64,
    removed: BTreeSet<Vec<u8>>,
    orders: u64,
    left: u64,
}

impl Tally for Orders {
    fn row(&mut self, table: usize, bytes: &[u8]) {
        if table == ORDERS {
            self.orders += 1;
            // The key is the first column.
            self.left += u64::from(self.removed.contains(&bytes[..8]));
        }
    }

    fn add(&mut self, other: Self) {
        self.orders += other.orders;
        self.left += other.left;
    }

    fn finish(&self) -> Result<String, CheckError> {
        let Orders {
            orders,
            left,
            wanted,
            ..
        } = self;
        match (orders == wanted, *left) {
            (false, _) => Err(CheckError::Lost(format!(
                "there are {orders} orders, not {wanted}"
            ))),
            (true, 0) => Ok(format!("{orders} orders, as many as there should be")),
            (true, left) => Err(CheckError::Lost(format!(
                "{left} orders are there that were removed"
            ))),
        }
    }
}
