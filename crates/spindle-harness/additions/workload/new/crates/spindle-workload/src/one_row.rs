//! `one_row`: each transaction reads one row, always the same, so often as it is told.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_text::settings;

use crate::session::{RowOperation, Txn};
use crate::sql::kind::{MadeFor, MadeWorkload, WorkloadSettings};
use crate::workload::{
    Acknowledged, CheckError, Checker, Client, LoadedTable, Loader, RowLength, TableSize,
    TableSpec, Tally, Workload, checker_of,
};

settings! {
    /// Settings of `one_row`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct OneRow {
        /// How often a transaction reads the row.
        times: u32 = number("times", 3, 1..=100),
    }
}

impl WorkloadSettings for OneRow {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        MadeWorkload::Rows(Box::new(Reading {
            data_bytes: made_for.data_bytes,
            times: self.times,
        }))
    }
}

struct Reading {
    data_bytes: u64,
    times: u32,
}

impl Workload for Reading {
    fn name(&self) -> &'static str {
        "one_row"
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![TableSpec {
            name: "rows",
            row: RowLength::Bytes(100),
            size: TableSize::Bytes(self.data_bytes),
        }]
    }

    fn loader(&self, _: usize, _: u64) -> Loader<'_> {
        Box::new(|row, bytes| bytes[..8].copy_from_slice(&row.to_le_bytes()))
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    fn next(&self, _: &mut Client, _: &[LoadedTable]) -> Txn {
        let read = || RowOperation::Read { table: 0, row: 0 };
        Txn {
            operations: (0..self.times).map(|_| read()).collect(),
            number: 0,
        }
    }

    fn checker(&self, _: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(Rows(0))
    }
}

/// Counts rows.
#[derive(Clone)]
struct Rows(u64);

impl Tally for Rows {
    fn row(&mut self, _: usize, _: &[u8]) {
        self.0 += 1;
    }

    fn add(&mut self, other: Self) {
        self.0 += other.0;
    }

    fn finish(&self) -> Result<String, CheckError> {
        Ok(format!("{} rows are there", self.0))
    }
}
