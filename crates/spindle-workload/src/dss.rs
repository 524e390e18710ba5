//! `dss`: decision support on one large table of sales. Each stream asks five queries, one after the other: a scan of
//! some days, groups that fit into memory, groups that do not, and two sorts. What does not fit goes to temporary
//! segments, whose space the study of ASM and LVM suspected of deciding its decision support.
//!
//! A row: its number (8 bytes), customer (4), item (2), day (2), amount (4), the rest random. Customers and amounts are
//! the row's number through a permutation, so that the right answers are known.

use std::ops::RangeInclusive;
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::section::SettingsRefusal;
use spindle_text::settings;

use crate::query::{RightAnswer, RowField, TableQuery, TableQueryPlan};
use crate::session::{RowOperation, Txn};
use crate::sql::kind::{MadeFor, MadeWorkload, TrialPace, WorkloadSettings};
use crate::workload::{
    Acknowledged, CheckError, Checker, Client, LoadedTable, Loader, RowLength, TableSize,
    TableSpec, Tally, Workload, checker_of,
};

const ROW_BYTES: usize = 100;
/// What a row takes of a block, about.
const ROW_IN_BLOCK_BYTES: u64 = 125;
/// What a row takes in a temporary segment, at most: key, row, length, its share of headers and of space not filled.
const ROW_IN_TEMP_BYTES: u64 = 175;
/// Additional temporary space of a slave: extents of its runs that are not full.
const SLAVE_TEMP_BYTES: u64 = 16 << 20;

const NUMBER: RowField = (0, 8);
const CUSTOMER: RowField = (8, 4);
const ITEM: RowField = (12, 2);
const DAY: RowField = (14, 2);
const AMOUNT: RowField = (16, 4);

/// Rows of a customer.
const ROWS_PER_CUSTOMER: u64 = 4;
const ITEMS: u64 = 2000;
const DAYS: u64 = 2500;
const AMOUNTS: u64 = 1_000_000;
/// One of this many days is looked at by queries of some days.
const DAYS_SHARE: u64 = 5;
/// Primes that multiply a row's number; the first that does not divide the number of rows gives a permutation.
const PRIMES: [u64; 4] = [2_654_435_761, 2_246_822_519, 3_266_489_917, 668_265_263];

/// The queries, in their order.
const QUERIES: [&str; 5] = [
    "scan",
    "group by day",
    "group by customer",
    "order by amount",
    "order by customer",
];

settings! {
    /// Settings of `dss`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct DssSettings {
        /// Query slaves: processes that carry out each query side by side; 1: the client's own. Each may use
        /// `sort_area` of memory.
        slaves: u32 = number("slaves", 2, 1..=64),
    }
}

impl WorkloadSettings for DssSettings {
    fn make(&self, ground: &MadeFor) -> MadeWorkload {
        MadeWorkload::Rows(Box::new(Dss {
            rows: (ground.data_bytes / ROW_IN_BLOCK_BYTES).max(ROWS_PER_CUSTOMER),
            clients: ground.clients,
            slaves: self.slaves,
        }))
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn processes(&self) -> u32 {
        self.slaves
    }

    fn pace(&self) -> TrialPace {
        TrialPace::Streams
    }

    fn check(&self, ground: &MadeFor) -> Vec<SettingsRefusal> {
        let in_sql = ground.dialect.map(|_| SettingsRefusal {
            keys: &["kind"],
            title: "dss has no form in SQL".to_owned(),
            label: "only with engine = \"kernel\"".to_owned(),
            help: "leave database.engine out, or ask the queries of TPC-H: kind = \"tpch\"",
            shown: None,
        });
        in_sql.into_iter().collect()
    }
}

/// The workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dss {
    rows: u64,
    clients: u64,
    slaves: u32,
}

impl Dss {
    fn make_row(&self, row: u64, bytes: &mut [u8]) {
        bytes[..8].copy_from_slice(&row.to_le_bytes());
        put(bytes, CUSTOMER, self.permuted(row, 0) % self.customers());
        put(bytes, ITEM, self.permuted(row, 1) % ITEMS);
        put(bytes, DAY, self.day(row));
        put(bytes, AMOUNT, self.permuted(row, 2) % AMOUNTS);
    }

    /// Another number for each row, from 0 to the last.
    fn permuted(&self, row: u64, first: usize) -> u64 {
        let primes = PRIMES.iter().cycle().skip(first).take(PRIMES.len());
        let is_fit = |prime: &&u64| !self.rows.is_multiple_of(**prime);
        let prime = primes.copied().find(|prime| is_fit(&prime)).unwrap_or(1);
        (u128::from(row) * u128::from(prime) % u128::from(self.rows)) as u64
    }

    fn customers(&self) -> u64 {
        self.rows / ROWS_PER_CUSTOMER
    }

    fn day(&self, row: u64) -> u64 {
        (u128::from(row) * u128::from(DAYS) / u128::from(self.rows)) as u64
    }

    /// Days of which a row is.
    fn days(&self) -> u64 {
        self.rows.min(DAYS)
    }

    /// Rows of some days.
    fn rows_of(&self, days: &RangeInclusive<u64>) -> u64 {
        let first =
            |day: u64| (u128::from(day) * u128::from(self.rows)).div_ceil(DAYS.into()) as u64;
        first(days.end() + 1) - first(*days.start())
    }

    /// Amounts of all rows: those of the whole cycles, and of what is left.
    fn amounts(&self) -> u64 {
        let (cycles, left) = (self.rows / AMOUNTS, self.rows % AMOUNTS);
        let sum_below = |count: u64| count * count.saturating_sub(1) / 2;
        cycles * sum_below(AMOUNTS) + sum_below(left)
    }

    /// A query of a kind; `chance` chooses the days of those that look at some.
    fn query(&self, kind: usize, chance: u64) -> TableQuery {
        let first = chance % (DAYS - DAYS / DAYS_SHARE);
        let days = first..=first + DAYS / DAYS_SHARE - 1;
        let of_days = Some((DAY, days.clone()));
        let groups = |key, by_sum| TableQueryPlan::Groups {
            key,
            sum: AMOUNT,
            by_sum,
        };
        let (filter, plan) = match kind {
            0 => (of_days, groups(&[][..], false)),
            1 => (None, groups(&[DAY][..], false)),
            2 => (None, groups(&[CUSTOMER][..], true)),
            3 => (
                None,
                TableQueryPlan::Rows {
                    key: &[AMOUNT, NUMBER],
                },
            ),
            _ => (of_days, TableQueryPlan::Rows { key: &[CUSTOMER] }),
        };
        let rows = filter.as_ref().map_or(self.rows, |_| self.rows_of(&days));
        let groups = match kind {
            0 => Some(u64::from(rows > 0)),
            1 => Some(self.days()),
            2 => Some(self.customers()),
            _ => None,
        };
        let sum = matches!(kind, 1 | 2).then(|| self.amounts());
        TableQuery {
            kind,
            table: 0,
            filter,
            plan,
            slaves: self.slaves,
            expected: RightAnswer {
                rows,
                groups: groups.filter(|groups| *groups > 0),
                sum,
            },
        }
    }
}

fn put(bytes: &mut [u8], (offset, length): RowField, number: u64) {
    let (offset, length) = (usize::from(offset), usize::from(length));
    bytes[offset..offset + length].copy_from_slice(&number.to_be_bytes()[8 - length..]);
}

impl Workload for Dss {
    fn name(&self) -> &'static str {
        "dss"
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![TableSpec {
            name: "sales",
            row: RowLength::Bytes(ROW_BYTES),
            size: TableSize::Rows(self.rows),
        }]
    }

    fn kinds(&self) -> Vec<String> {
        QUERIES.map(str::to_owned).to_vec()
    }

    fn transactions(&self, _: usize, _: usize) -> Option<u64> {
        Some(QUERIES.len() as u64)
    }

    fn temp_bytes(&self) -> u64 {
        let slaves = u64::from(self.slaves) * SLAVE_TEMP_BYTES;
        self.clients * (self.rows * ROW_IN_TEMP_BYTES + slaves)
    }

    fn loader(&self, _: usize, _: u64) -> Loader<'_> {
        Box::new(|row, bytes| self.make_row(row, bytes))
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    /// Each stream begins with another query, so that streams are seldom at the same.
    fn next(&self, client: &mut Client, _: &[LoadedTable]) -> Txn {
        let kind = (client.number as u64 + client.changes) % QUERIES.len() as u64;
        client.changes += 1;
        let query = self.query(kind as usize, client.rng.next_u64());
        Txn {
            operations: vec![RowOperation::Query(query)],
            number: 0,
        }
    }

    fn checker(&self, _: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(Sales {
            wanted: self.rows,
            rows: 0,
        })
    }
}

/// Counts the rows: queries change none.
#[derive(Clone)]
struct Sales {
    wanted: u64,
    rows: u64,
}

impl Tally for Sales {
    fn row(&mut self, _: usize, _: &[u8]) {
        self.rows += 1;
    }

    fn add(&mut self, other: Self) {
        self.rows += other.rows;
    }

    fn finish(&self) -> Result<String, CheckError> {
        match self.rows == self.wanted {
            true => Ok(format!(
                "{} rows; every answer was the right one",
                self.rows
            )),
            false => Err(CheckError::Lost(format!(
                "{} rows, not {}",
                self.rows, self.wanted
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn number(row: &[u8], (offset, length): RowField) -> u64 {
        let bytes = &row[usize::from(offset)..usize::from(offset + length)];
        bytes
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    #[test]
    fn the_right_answers_are_those_of_the_rows() {
        for rows in [4, 30_000, 2_654_435_761 / 40_000] {
            let dss = Dss {
                rows,
                clients: 1,
                slaves: 1,
            };
            let mut table = vec![[0; ROW_BYTES]; rows as usize];
            for (row, bytes) in table.iter_mut().enumerate() {
                dss.make_row(row as u64, bytes);
            }
            for kind in 0..QUERIES.len() {
                let query = dss.query(kind, 12_345);
                let counts = |row: &&[u8; ROW_BYTES]| match &query.filter {
                    Some((place, range)) => range.contains(&number(&row[..], *place)),
                    None => true,
                };
                let rows: Vec<_> = table.iter().filter(counts).collect();
                assert_eq!(rows.len() as u64, query.expected.rows, "{kind}");
                let TableQueryPlan::Groups { key, sum, .. } = query.plan else {
                    continue;
                };
                let mut groups: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
                for row in rows {
                    let key = key.iter().map(|place| number(row, *place)).collect();
                    *groups.entry(key).or_default() += number(row, sum);
                }
                assert_eq!(Some(groups.len() as u64), query.expected.groups, "{kind}");
                if let Some(sum) = query.expected.sum {
                    assert_eq!(groups.values().sum::<u64>(), sum, "{kind}");
                }
            }
        }
    }
}
