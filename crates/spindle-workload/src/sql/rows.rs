//! A workload of row operations in SQL: the same inputs, the same mix and the same check as on the embedded database.
//! Each of its tables has the row's number as the key, the three counters that the check looks at, the bytes that
//! updates replace, and the rest.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::connection::{LoadPart, SqlConnection};
use super::dialect::Dialect;
use super::value::Value;
use super::{SqlTransaction, SqlWorkload};
use crate::ledger::{BALANCE, CHECKED_BYTES, NUMBER, VERSIONS};
use crate::session::{Edit, RowOperation, SessionError, Txn};
use crate::workload::{
    Acknowledged, CheckError, Client, LoadedTable, RowLength, TableSize, TableSpec, Workload,
};

/// A row that fills a block has this many bytes. PostgreSQL's pages of 8 KiB are half filled when it is loaded
/// (`fillfactor`), so that there is one to a page and room for its next version; InnoDB has two to its page of 16 KiB,
/// as it demands; SQLite one to its page of 4 KiB.
const BLOCK_ROW_BYTES: usize = 4000 - CHECKED_BYTES;
/// What a row of a block counts for when a table is to have a size.
const BLOCK_BYTES: u64 = 8192;
/// What a shorter row takes beside its bytes, about, in any of the databases.
const ROW_OVERHEAD_BYTES: u64 = 40;
/// Rows that one connection loads in one transaction, about.
const PART_BYTES: u64 = 64 << 20;

const COLUMNS: [&str; 6] = ["id", "number", "versions", "balance", "changed", "filler"];
const COUNTERS: [usize; 3] = [NUMBER, VERSIONS, BALANCE];

/// Statements there are for each table, by their place.
const READ: usize = 0;
const UPDATE_COUNTERS: usize = 1;
const UPDATE_WITH_BYTES: usize = 2;
const SCAN: usize = 3;
const STATEMENTS: usize = 4;

/// A workload of row operations, in SQL.
pub struct RowsInSql {
    workload: Arc<dyn Workload>,
    specs: Vec<TableSpec>,
    tables: Arc<[LoadedTable]>,
    seed: u64,
}

impl RowsInSql {
    /// The workload; its rows are drawn from `seed`.
    pub fn new(workload: Arc<dyn Workload>, seed: u64) -> RowsInSql {
        let specs = workload.tables();
        let tables = specs.iter().map(table_of).collect();
        RowsInSql {
            workload,
            specs,
            tables,
            seed,
        }
    }

    fn replaced_bytes(&self, table: usize) -> usize {
        let row_bytes = self.tables[table].row_bytes;
        self.workload.replaced_bytes(table, row_bytes)
    }

    /// The part of a table's rows from `first` on.
    fn part(&self, number: usize, first: u64, end: u64) -> LoadPart {
        let (workload, seed) = (Arc::clone(&self.workload), self.seed);
        let row_bytes = self.tables[number].row_bytes;
        let replaced_bytes = self.replaced_bytes(number);
        LoadPart {
            table: self.specs[number].name,
            columns: &COLUMNS,
            rows: Box::new(move |sink| {
                let of_part = seed ^ (number as u64) << 48 ^ first;
                let mut random = Xoshiro256PlusPlus::seed_from_u64(of_part);
                let mut bytes = vec![0; row_bytes];
                let mut load = workload.loader(number, first);
                for row in first..end {
                    random.fill_bytes(&mut bytes);
                    load(row, &mut bytes);
                    let counter = |offset| Value::Int(counter_at(&bytes, offset));
                    let (changed, filler) = bytes[CHECKED_BYTES..].split_at(replaced_bytes);
                    sink.row(&[
                        Value::Int(row as i64),
                        counter(NUMBER),
                        counter(VERSIONS),
                        counter(BALANCE),
                        Value::bytes(changed),
                        Value::bytes(filler),
                    ])?;
                }
                Ok(())
            }),
        }
    }
}

fn counter_at(bytes: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

fn table_of(spec: &TableSpec) -> LoadedTable {
    let (row_bytes, on_disk_bytes) = match spec.row {
        RowLength::WholeBlock => (BLOCK_ROW_BYTES, BLOCK_BYTES),
        RowLength::Bytes(bytes) => (bytes, bytes as u64 + ROW_OVERHEAD_BYTES),
    };
    let rows = match spec.size {
        TableSize::Rows(rows) => rows,
        TableSize::Bytes(bytes) => (bytes / on_disk_bytes).max(1),
    };
    LoadedTable {
        rows,
        blocks: (rows * on_disk_bytes).div_ceil(BLOCK_BYTES),
        row_bytes,
    }
}

impl SqlWorkload for RowsInSql {
    fn name(&self) -> &'static str {
        self.workload.name()
    }

    fn kinds(&self) -> Vec<String> {
        vec!["transaction".to_owned()]
    }

    fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        let mut statements = Vec::new();
        for (number, spec) in self.specs.iter().enumerate() {
            let (name, bigint) = (spec.name, dialect.bigint());
            let replaced_bytes = self.replaced_bytes(number);
            let filler_bytes = self.tables[number].row_bytes - CHECKED_BYTES - replaced_bytes;
            let (changed, filler) = (dialect.bytes(replaced_bytes), dialect.bytes(filler_bytes));
            let is_block = spec.row == RowLength::WholeBlock;
            // InnoDB and SQLite keep rows in their key; it must be there first.
            let (key, half_filled) = match dialect {
                Dialect::Postgres if is_block => ("", " with (fillfactor = 50)"),
                Dialect::Postgres => ("", ""),
                Dialect::MariaDb | Dialect::Sqlite => (" primary key", ""),
            };
            statements.push(format!(
                "create table {name} (id {bigint} not null{key}, number {bigint} not null, versions {bigint} not null, \
                 balance {bigint} not null, changed {changed} not null, filler {filler} not null){half_filled}"
            ));
            if dialect == Dialect::Postgres {
                // A row is not to be packed, nor split.
                statements.push(format!(
                    "alter table {name} alter changed set storage plain, alter filler set storage plain"
                ));
            }
        }
        statements
    }

    fn load_parts(&self, _: Dialect) -> Vec<LoadPart> {
        let mut parts = Vec::new();
        for (number, table) in self.tables.iter().enumerate() {
            let rows_per_part = (PART_BYTES / table.row_bytes as u64).max(1);
            let mut first = 0;
            while first < table.rows {
                let end = (first + rows_per_part).min(table.rows);
                parts.push(self.part(number, first, end));
                first = end;
            }
        }
        parts
    }

    fn create_indexes(&self, dialect: Dialect) -> Vec<String> {
        match dialect {
            Dialect::Postgres => {
                let names = self.specs.iter().map(|spec| spec.name);
                names
                    .map(|name| format!("alter table {name} add primary key (id)"))
                    .collect()
            }
            Dialect::MariaDb | Dialect::Sqlite => Vec::new(),
        }
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        let of_table = |spec: &TableSpec| -> [String; STATEMENTS] {
            let name = spec.name;
            let counters = "number = number + $1, versions = versions + $2, balance = balance + $3";
            [
                format!("select number, versions, balance from {name} where id = $1"),
                format!("update {name} set {counters} where id = $4"),
                format!("update {name} set {counters}, changed = $4 where id = $5"),
                format!("select count(*), sum(versions) from {name} where id >= $1 and id < $2"),
            ]
        };
        self.specs.iter().flat_map(of_table).collect()
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        Box::new(RowsTransaction {
            txn: self.workload.next(client, &self.tables),
            tables: Arc::clone(&self.tables),
        })
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        let checker = self.workload.checker(acknowledged.to_vec());
        let mut whole = checker.share();
        for (number, spec) in self.specs.iter().enumerate() {
            let mut bytes = [0; CHECKED_BYTES];
            let asked = connection.ask(
                &format!("select id, number, versions, balance from {}", spec.name),
                &mut |row| {
                    for (column, offset) in [0].into_iter().chain(COUNTERS).enumerate() {
                        bytes[offset..offset + 8].copy_from_slice(&row.int(column)?.to_le_bytes());
                    }
                    whole.row(number, &bytes);
                    Ok(())
                },
            );
            asked?;
        }
        whole.end();
        checker.finish()
    }
}

/// A transaction of row operations.
struct RowsTransaction {
    txn: Txn,
    tables: Arc<[LoadedTable]>,
}

impl SqlTransaction for RowsTransaction {
    fn number(&self) -> u64 {
        self.txn.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        // What only reads is one statement after the other, each on its own.
        let changes = self.txn.number > 0;
        if changes {
            connection.begin()?;
        }
        for operation in &self.txn.operations {
            self.carry_out(operation, connection)?;
        }
        if changes {
            connection.commit()?;
        }
        Ok(())
    }
}

impl RowsTransaction {
    fn carry_out(
        &self,
        operation: &RowOperation,
        connection: &mut dyn SqlConnection,
    ) -> Result<(), SessionError> {
        let (rows, wanted) = match operation {
            RowOperation::Read { table, row } => {
                let parameters = [Value::Int(*row as i64)];
                let statement = table * STATEMENTS + READ;
                (
                    connection.query(statement, &parameters, &mut |_| Ok(()))?,
                    1,
                )
            }
            RowOperation::Update { table, row, edits } => {
                (update(*table, *row, edits, connection)?, 1)
            }
            RowOperation::Insert { .. } | RowOperation::Call(_) | RowOperation::Query(_) => {
                let reason = "a workload that adds rows, or has procedures or queries, has its own statements in SQL";
                return Err(SessionError::Failed(reason.to_owned()));
            }
            RowOperation::Scan {
                table,
                first_block,
                blocks,
            } => {
                let of = self.tables[*table];
                let row_at = |block: u64| Value::Int((block * of.rows / of.blocks) as i64);
                let parameters = [row_at(*first_block), row_at(first_block + blocks)];
                let statement = table * STATEMENTS + SCAN;
                (
                    connection.query(statement, &parameters, &mut |_| Ok(()))?,
                    1,
                )
            }
        };
        if rows != wanted {
            let found = format!("{operation:?} found {rows} rows");
            return Err(SessionError::Failed(found));
        }
        Ok(())
    }
}

fn update(
    table: usize,
    row: u64,
    edits: &[Edit],
    connection: &mut dyn SqlConnection,
) -> Result<u64, SessionError> {
    let mut added = [0; 3];
    let mut replaced = None;
    for edit in edits {
        match edit {
            Edit::Add { offset, amount } => {
                let counter = COUNTERS.iter().position(|counter| counter == offset);
                added[counter.expect("workloads add to counters")] += amount;
            }
            Edit::Put { bytes, .. } => replaced = Some(bytes),
        }
    }
    let [number, versions, balance] = added.map(Value::Int);
    let key = Value::Int(row as i64);
    match replaced {
        None => connection.execute(
            table * STATEMENTS + UPDATE_COUNTERS,
            &[number, versions, balance, key],
        ),
        Some(bytes) => connection.execute(
            table * STATEMENTS + UPDATE_WITH_BYTES,
            &[number, versions, balance, Value::bytes(bytes), key],
        ),
    }
}
