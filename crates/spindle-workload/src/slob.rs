//! `slob`: the shape of Kevin Closson's Silly Little Oracle Benchmark. Each client has its own schema, one row to
//! a block; a transaction works on `work_unit` random rows of it, reading them, updating them (`update_percent`), or
//! scanning adjacent blocks (`scan_percent`). Its settings bear SLOB's names (UPDATE_PCT and so on) in lower case.

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::quantity::size;
use spindle_text::section::SettingsRefusal;
use spindle_text::{settings, words};

use crate::ledger::{self, LedgerTotals};
use crate::session::{Edit, RowOperation, Txn};
use crate::sql::kind::{MadeFor, MadeWorkload, WorkloadSettings};
use crate::workload::{
    Acknowledged, Checker, Client, LoadedTable, Loader, RowLength, TableSize, TableSpec, Workload,
    checker_of,
};

const BLOCKS: usize = 0;
const LEDGER: usize = 1;
/// Bytes replaced by an update under REDO_STRESS LITE: one column of SLOB's table.
const LITE_BYTES: usize = 128;
/// And under HEAVY: its columns 2 to 20, as far as a block has room for the row and its undo.
const HEAVY_BYTES: usize = 19 * 128;

words! {
    /// How much redo an update makes.
    pub enum RedoStress {
        /// One column of 128 bytes changes.
        Lite = "lite",
        /// Nineteen of them do, or half the row if that is less.
        Heavy = "heavy",
    }
}

settings! {
    /// A part of each client's data that is visited more often than the rest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Hotspot {
        /// `HOTSPOT_MB`; within the data.
        size_bytes: u64 = size("size", 8 << 20, 1 << 20..=1 << 40),
        /// `HOTSPOT_OFFSET_MB`: where it begins in a client's data.
        offset_bytes: u64 = size("offset", 16 << 20, 0..=1 << 40),
        /// `HOTSPOT_FREQUENCY`: every n-th operation goes to it.
        every: u32 = number("every", 3, 1..=1000),
    }
}

settings! {
    /// Settings of `slob`, after those of its `slob.conf`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct SlobSettings {
        /// `UPDATE_PCT`: share of operations that update.
        update_percent: u32 = number("update_percent", 10, 0..=100),
        /// `SCAN_PCT`: share of reading operations that scan the scan table.
        scan_percent: u32 = number("scan_percent", 0, 0..=100),
        /// `SCAN_TABLE_SZ`: adjacent blocks that a scan reads, from a random place of the data; no more than the data.
        scan_blocks: u32 = number("scan_blocks", 128, 1..=1 << 24),
        /// `WORK_UNIT`: blocks touched by one operation.
        work_unit: u32 = number("work_unit", 64, 1..=10_000),
        /// `REDO_STRESS`: an update changes one column of 128 bytes, or 19 of them (half the row if that is less).
        redo_stress: RedoStress = word("redo_stress", RedoStress::Lite),
        /// `DO_HOTSPOT`: a part of each client's data that is visited more often.
        hotspot: Option<Hotspot> = table("hotspot"),
    }
}

impl WorkloadSettings for SlobSettings {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        MadeWorkload::Rows(Box::new(Slob {
            data_bytes: made_for.data_bytes,
            block_bytes: made_for.block_bytes,
            clients: made_for.clients,
            settings: *self,
        }))
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        let data = size(made_for.data_bytes);
        let scan_bytes = u64::from(self.scan_blocks) * made_for.block_bytes;
        let scan = (scan_bytes > made_for.data_bytes).then(|| SettingsRefusal {
            keys: &["scan_blocks"],
            title: format!(
                "a scan table of {} is larger than the data, {data}",
                size(scan_bytes)
            ),
            label: format!("at most {}", made_for.data_bytes / made_for.block_bytes),
            help: "set fewer scan_blocks or a larger database.size",
            shown: None,
        });
        let end_of = |hotspot: &Hotspot| hotspot.offset_bytes + hotspot.size_bytes;
        let end_bytes = self.hotspot.as_ref().map_or(0, end_of);
        let hotspot = (end_bytes > made_for.data_bytes).then(|| SettingsRefusal {
            keys: &["hotspot"],
            title: format!(
                "the hot spot ends at {}, past the data, {data}",
                size(end_bytes)
            ),
            label: "offset + size must lie within the data".to_owned(),
            help: "make the hot spot smaller, or set a larger database.size",
            shown: None,
        });
        scan.into_iter().chain(hotspot).collect()
    }

    fn only_reads(&self) -> bool {
        self.update_percent == 0
    }

    fn locked_rows(&self) -> u32 {
        self.work_unit
    }
}

/// The workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slob {
    /// Size of all schemas together, bytes of blocks.
    pub data_bytes: u64,
    /// Size of a block.
    pub block_bytes: u64,
    /// Most clients there will be.
    pub clients: u64,
    /// What it does.
    pub settings: SlobSettings,
}

impl Slob {
    /// The rows of a client's schema: the first and how many.
    fn schema(&self, client: &Client, table: LoadedTable) -> (u64, u64) {
        let rows = (table.rows / client.clients as u64).max(1);
        let first = (client.number as u64 * rows).min(table.rows - rows);
        (first, rows)
    }

    /// The rows that this transaction chooses from.
    fn aim(&self, client: &mut Client, table: LoadedTable) -> (u64, u64) {
        let (first, rows) = self.schema(client, table);
        match self.settings.hotspot {
            Some(hotspot)
                if client
                    .rng
                    .next_u64()
                    .is_multiple_of(u64::from(hotspot.every)) =>
            {
                let offset = (hotspot.offset_bytes / self.block_bytes).min(rows - 1);
                let size = (hotspot.size_bytes / self.block_bytes).clamp(1, rows - offset);
                (first + offset, size)
            }
            _ => (first, rows),
        }
    }

    fn update(&self, row: u64, row_bytes: usize, client: &mut Client) -> RowOperation {
        let mut bytes = vec![0; self.replaced_bytes(BLOCKS, row_bytes)];
        client.rng.fill_bytes(&mut bytes);
        let mut edits = ledger::data_edits(1);
        edits.push(Edit::Put {
            offset: ledger::CHECKED_BYTES,
            bytes,
        });
        RowOperation::Update {
            table: BLOCKS,
            row,
            edits,
        }
    }
}

impl Workload for Slob {
    fn name(&self) -> &'static str {
        "slob"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let schemas = TableSpec {
            name: "cf1",
            row: RowLength::WholeBlock,
            size: TableSize::Bytes(self.data_bytes),
        };
        vec![schemas, ledger::table(self.clients)]
    }

    fn loader(&self, _: usize, _: u64) -> Loader<'_> {
        Box::new(|row, bytes| ledger::fill(row, bytes))
    }

    fn replaced_bytes(&self, table: usize, row_bytes: usize) -> usize {
        let wanted = match (table, self.settings.redo_stress) {
            (BLOCKS, RedoStress::Lite) => LITE_BYTES,
            (BLOCKS, RedoStress::Heavy) => HEAVY_BYTES,
            _ => 0,
        };
        wanted.min(row_bytes / 2)
    }

    fn next(&self, client: &mut Client, tables: &[LoadedTable]) -> Txn {
        let table = tables[BLOCKS];
        let (first, rows) = self.aim(client, table);
        if client.rng.next_u64() % 100 < u64::from(self.settings.update_percent) {
            let mut chosen: Vec<u64> = (0..self.settings.work_unit)
                .map(|_| first + client.rng.next_u64() % rows)
                .collect();
            chosen.sort_unstable();
            chosen.dedup();
            let changes = chosen.len() as i64;
            let mut operations: Vec<RowOperation> = chosen
                .into_iter()
                .map(|row| self.update(row, table.row_bytes, client))
                .collect();
            operations.push(ledger::entry(LEDGER, client.number, changes, changes));
            client.changes += 1;
            return Txn {
                operations,
                number: client.changes,
            };
        }
        if client.rng.next_u64() % 100 < u64::from(self.settings.scan_percent) {
            let blocks = u64::from(self.settings.scan_blocks).min(table.blocks);
            let first_block = client.rng.next_u64() % (table.blocks - blocks + 1);
            let operations = vec![RowOperation::Scan {
                table: BLOCKS,
                first_block,
                blocks,
            }];
            return Txn {
                operations,
                number: 0,
            };
        }
        let read = |_| RowOperation::Read {
            table: BLOCKS,
            row: first + client.rng.next_u64() % rows,
        };
        Txn {
            operations: (0..self.settings.work_unit).map(read).collect(),
            number: 0,
        }
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(LedgerTotals::new(LEDGER, acknowledged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::env::seeded_rng;

    fn slob(update_percent: u32) -> Slob {
        Slob {
            data_bytes: 8 << 20,
            block_bytes: 8192,
            clients: 4,
            settings: SlobSettings {
                update_percent,
                scan_percent: 0,
                scan_blocks: 16,
                work_unit: 8,
                redo_stress: RedoStress::Lite,
                hotspot: None,
            },
        }
    }

    #[test]
    fn clients_stay_in_their_schemas() {
        let tables = [LoadedTable {
            rows: 1000,
            blocks: 1000,
            row_bytes: 8000,
        }; 2];
        let mut client = Client {
            number: 2,
            clients: 4,
            changes: 0,
            rng: seeded_rng(1, 2),
        };
        for _ in 0..500 {
            for operation in slob(50).next(&mut client, &tables).operations {
                match operation {
                    RowOperation::Read { row, .. }
                    | RowOperation::Update {
                        table: BLOCKS, row, ..
                    } => {
                        assert!((500..750).contains(&row), "row {row} is another client's");
                    }
                    RowOperation::Update { row, .. } => assert_eq!(row, 2),
                    other => panic!("{other:?} was not asked for"),
                }
            }
        }
    }

    #[test]
    fn the_hot_spot_is_hot() {
        let hotspot = Some(Hotspot {
            size_bytes: 10 * 8192,
            offset_bytes: 8192,
            every: 2,
        });
        let mut slob = slob(0);
        slob.settings.hotspot = hotspot;
        let tables = [LoadedTable {
            rows: 1000,
            blocks: 1000,
            row_bytes: 8000,
        }; 2];
        let mut client = Client {
            number: 0,
            clients: 1,
            changes: 0,
            rng: seeded_rng(1, 0),
        };
        let rows: Vec<u64> = (0..1000)
            .flat_map(|_| slob.next(&mut client, &tables).operations)
            .map(|operation| match operation {
                RowOperation::Read { row, .. } => row,
                other => panic!("{other:?}"),
            })
            .collect();
        let hot = rows.iter().filter(|row| (1..11).contains(*row)).count();
        assert!((0.47..0.54).contains(&(hot as f64 / rows.len() as f64)));
    }
}
