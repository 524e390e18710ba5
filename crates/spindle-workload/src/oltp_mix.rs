//! `oltp_mix`: short transactions of row operations on rows drawn evenly from the whole table, some reads, some
//! updates, as in the published comparison of raw devices and file systems (40 % reads, 60 % writes).

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;

use serde::{Deserialize, Serialize};
use spindle_text::settings;

use crate::ledger::{self, LedgerTotals};
use crate::session::{Edit, RowOperation, Txn};
use crate::sql::kind::{MadeFor, MadeWorkload, WorkloadSettings};
use crate::workload::{
    Acknowledged, Checker, Client, LoadedTable, Loader, RowLength, TableSize, TableSpec, Workload,
    checker_of,
};

const ROWS: usize = 0;
const LEDGER: usize = 1;
const ROW_BYTES: usize = 120;
/// Bytes of its text that an update replaces.
const TEXT_BYTES: usize = 24;

settings! {
    /// Settings of `oltp_mix`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct OltpMixSettings {
        /// Share of row operations that read; the rest update.
        read_percent: u32 = number("read_percent", 40, 0..=100),
        /// Row operations in a transaction; 5 make 8.2 physical I/Os in the quickstart, redo included, and more where
        /// the cache holds less of the data.
        row_operations: u32 = number("row_operations", 5, 1..=1000),
    }
}

impl WorkloadSettings for OltpMixSettings {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        MadeWorkload::Rows(Box::new(OltpMix {
            data_bytes: made_for.data_bytes,
            clients: made_for.clients,
            settings: *self,
        }))
    }

    fn only_reads(&self) -> bool {
        self.read_percent == 100
    }

    fn locked_rows(&self) -> u32 {
        self.row_operations
    }
}

/// The workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OltpMix {
    /// Size of the table, bytes of blocks.
    pub data_bytes: u64,
    /// Most clients there will be.
    pub clients: u64,
    /// What it does.
    pub settings: OltpMixSettings,
}

impl Workload for OltpMix {
    fn name(&self) -> &'static str {
        "oltp_mix"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let rows = TableSpec {
            name: "accounts",
            row: RowLength::Bytes(ROW_BYTES),
            size: TableSize::Bytes(self.data_bytes),
        };
        vec![rows, ledger::table(self.clients)]
    }

    fn loader(&self, _: usize, _: u64) -> Loader<'_> {
        Box::new(|row, bytes| ledger::fill(row, bytes))
    }

    fn replaced_bytes(&self, table: usize, _: usize) -> usize {
        match table {
            ROWS => TEXT_BYTES,
            _ => 0,
        }
    }

    fn next(&self, client: &mut Client, tables: &[LoadedTable]) -> Txn {
        let mut rows: Vec<u64> = (0..self.settings.row_operations)
            .map(|_| client.rng.next_u64() % tables[ROWS].rows)
            .collect();
        // In one order, so that transactions cannot wait for each other in a circle.
        rows.sort_unstable();
        rows.dedup();
        let mut operations = Vec::with_capacity(rows.len() + 1);
        let (mut changes, mut sum) = (0, 0);
        for row in rows {
            if client.rng.next_u64() % 100 < u64::from(self.settings.read_percent) {
                operations.push(RowOperation::Read { table: ROWS, row });
            } else {
                let amount = (client.rng.next_u64() % 2001) as i64 - 1000;
                let mut edits = ledger::data_edits(amount);
                let mut text = vec![0; TEXT_BYTES];
                client.rng.fill_bytes(&mut text);
                edits.push(Edit::Put {
                    offset: ledger::CHECKED_BYTES,
                    bytes: text,
                });
                operations.push(RowOperation::Update {
                    table: ROWS,
                    row,
                    edits,
                });
                changes += 1;
                sum += amount;
            }
        }
        let number = if changes > 0 {
            operations.push(ledger::entry(LEDGER, client.number, changes, sum));
            client.changes += 1;
            client.changes
        } else {
            0
        };
        Txn { operations, number }
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(LedgerTotals::new(LEDGER, acknowledged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::env::seeded_rng;

    #[test]
    fn the_mix_is_as_asked_and_repeatable() {
        let mix = OltpMix {
            data_bytes: 1 << 20,
            clients: 1,
            settings: OltpMixSettings {
                read_percent: 40,
                row_operations: 5,
            },
        };
        let tables = [LoadedTable {
            rows: 100_000,
            blocks: 1500,
            row_bytes: ROW_BYTES,
        }; 2];
        let transactions = |seed| {
            let mut client = Client {
                number: 0,
                clients: 1,
                changes: 0,
                rng: seeded_rng(seed, 0),
            };
            (0..2000)
                .map(|_| mix.next(&mut client, &tables))
                .collect::<Vec<_>>()
        };
        let made = transactions(1);
        assert_eq!(made, transactions(1));
        assert_ne!(made, transactions(2));
        let operations = made.iter().flat_map(|txn| &txn.operations);
        let on_rows = |operation: &&RowOperation| {
            !matches!(operation, RowOperation::Update { table: LEDGER, .. })
        };
        let (reads, all) = operations
            .filter(on_rows)
            .fold((0, 0), |(reads, all), operation| {
                (
                    reads + u32::from(matches!(operation, RowOperation::Read { .. })),
                    all + 1,
                )
            });
        let share = f64::from(reads) / f64::from(all);
        assert!(
            (0.38..0.42).contains(&share),
            "{share} of {all} operations read"
        );
        assert!((9990..=10_000).contains(&all));
    }
}
