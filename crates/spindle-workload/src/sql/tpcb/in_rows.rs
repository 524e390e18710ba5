//! TPC-B on the embedded database: the same tables, keys and widths as rows of bytes, and the same transaction step by
//! step. Numbers of keys have their highest byte first, so that they are in order as bytes. History, which no key leads
//! to, has the moment of all its rows in common: the present one would make runs differ.

use std::sync::Arc;

use spindle_query::{Column, DataType, Form, RowLayout};

use super::check::{agreed, said};
use super::transaction::{Select, TpcbTransaction};
use super::{Drawn, TELLERS, Tpcb};
use crate::keyed::{Ended, IndexOf, Keyed, Procedure, StepFuture, is_missing};
use crate::session::{SessionError, Txn};
use crate::sql::numbered::Numbers;
use crate::workload::{
    Acknowledged, CheckError, Checker, Client, IndexSpec, Inserts, LoadedTable, Loader, RowLength,
    TableSize, TableSpec, Tally, Workload, checker_of,
};

const BRANCHES: usize = 0;
const TELLERS_TABLE: usize = 1;
const ACCOUNTS_TABLE: usize = 2;
const HISTORY: usize = 3;

/// Of a branch: its number and its balance (4 bytes each).
const BRANCH_BYTES: usize = 8;
/// Of a teller: its number, its branch's, its balance.
const TELLER_BYTES: usize = 12;
/// Of an account: the same, and the filler of 84. It is not blank as in SQL: storage that compresses would be measured.
const ACCOUNT_BYTES: usize = 96;
/// Of history: teller, branch, account, delta (4 each), moment (8), client (4), number (8).
const HISTORY_BYTES: usize = 36;
/// 1 January 2008, microseconds since 1970.
const MOMENT: i64 = 1_199_145_600_000_000;

/// The primary keys of branches, tellers and accounts.
const KEYS: [&[IndexSpec]; 3] = [
    &[primary_key("branches_bid")],
    &[primary_key("tellers_tid")],
    &[primary_key("accounts_aid")],
];

const fn primary_key(name: &'static str) -> IndexSpec {
    IndexSpec {
        name,
        is_unique: true,
        key: &[(0, 4)],
    }
}

/// The columns of a table, as in SQL but for fillers that are not kept.
fn columns_of(table: usize) -> Vec<Column> {
    let number = |name| Column::in_form(name, DataType::Integer, Form::Unsigned(4));
    let amount = |name| Column::in_form(name, DataType::Integer, Form::Signed(4));
    match table {
        BRANCHES => vec![number("bid"), amount("bbalance")],
        TELLERS_TABLE => vec![number("tid"), number("bid"), amount("tbalance")],
        ACCOUNTS_TABLE => vec![
            number("aid"),
            number("bid"),
            amount("abalance"),
            Column::new("filler", DataType::Char(84)),
        ],
        _ => vec![
            number("tid"),
            number("bid"),
            number("aid"),
            amount("delta"),
            Column::in_form("mtime", DataType::Timestamp, Form::Signed(8)),
            number("client"),
            Column::in_form("number", DataType::Integer, Form::Unsigned(8)),
        ],
    }
}

/// Where the balance of a row of each table is.
const fn balance_at(table: usize) -> usize {
    match table {
        BRANCHES => 4,
        TELLERS_TABLE => 8,
        ACCOUNTS_TABLE => 8,
        _ => 12,
    }
}

fn number_at(row: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(row[at..at + 4].try_into().expect("four bytes"))
}

/// A balance or a delta.
fn amount(row: &[u8], table: usize) -> i64 {
    i64::from(number_at(row, balance_at(table)) as i32)
}

fn key(number: i64) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

/// The workload, in rows.
pub(super) struct TpcbInRows {
    pub(super) tpcb: Tpcb,
    /// Of each branch.
    pub(super) accounts: u64,
}

impl TpcbInRows {
    fn rows_of(&self, table: usize) -> u64 {
        let branches = u64::from(self.tpcb.scale);
        match table {
            BRANCHES => branches,
            TELLERS_TABLE => branches * TELLERS,
            ACCOUNTS_TABLE => branches * self.accounts,
            _ => 0,
        }
    }
}

impl Workload for TpcbInRows {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn tables(&self) -> Vec<TableSpec> {
        let tables = [
            ("branches", BRANCH_BYTES),
            ("tellers", TELLER_BYTES),
            ("accounts", ACCOUNT_BYTES),
            ("history", HISTORY_BYTES),
        ];
        let spec = |(table, (name, bytes))| TableSpec {
            name,
            row: RowLength::Bytes(bytes),
            size: TableSize::Rows(self.rows_of(table)),
        };
        tables.into_iter().enumerate().map(spec).collect()
    }

    fn columns(&self, table: usize) -> Option<RowLayout> {
        let columns = RowLayout::new(columns_of(table));
        Some(columns.expect("columns of TPC-B's tables"))
    }

    fn indexes(&self, table: usize) -> &'static [IndexSpec] {
        KEYS.get(table).copied().unwrap_or_default()
    }

    fn inserts(&self) -> Vec<Inserts> {
        match self.tpcb.select_only {
            true => Vec::new(),
            false => vec![Inserts {
                table: HISTORY,
                rows: self.tpcb.room_for,
                row_bytes: HISTORY_BYTES,
                rows_per_transaction: 1,
            }],
        }
    }

    fn kinds(&self) -> Vec<String> {
        vec![self.tpcb.kind_word().to_owned()]
    }

    fn loader(&self, table: usize, _: u64) -> Loader<'_> {
        let of_branch = self.rows_of(table) / self.rows_of(BRANCHES);
        Box::new(move |row, bytes| {
            bytes[..4].copy_from_slice(&key(row as i64 + 1));
            if table != BRANCHES {
                bytes[4..8].copy_from_slice(&key((row / of_branch) as i64 + 1));
            }
            bytes[balance_at(table)..][..4].fill(0);
        })
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    fn next(&self, client: &mut Client, _: &[LoadedTable]) -> Txn {
        match self.tpcb.draw(client, self.accounts) {
            Drawn::Select(select) => Txn::call(select, 0),
            Drawn::Transaction(transaction) => {
                let number = transaction.number;
                Txn::call(transaction, number)
            }
        }
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(Sums {
            acknowledged,
            sums: [0; 4],
            entries: Numbers::default(),
        })
    }
}

impl Procedure for TpcbTransaction {
    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            self.add(rows, ACCOUNTS_TABLE, self.account).await?;
            balance(rows, self.account).await?;
            self.add(rows, TELLERS_TABLE, self.teller).await?;
            self.add(rows, BRANCHES, self.branch).await?;
            rows.insert(HISTORY, &self.entry()).await?;
            Ok(Ended::Done)
        })
    }
}

impl Procedure for Select {
    fn run<'a>(&'a self, rows: &'a mut dyn Keyed) -> StepFuture<'a, Ended> {
        Box::pin(async move {
            balance(rows, self.account).await?;
            Ok(Ended::Done)
        })
    }
}

impl TpcbTransaction {
    /// Adds the amount to a balance.
    async fn add(
        &self,
        rows: &mut dyn Keyed,
        table: usize,
        number: i64,
    ) -> Result<(), SessionError> {
        let mut edit = |row: &mut Vec<u8>| {
            let sum = (amount(row, table) + self.delta) as i32;
            row[balance_at(table)..][..4].copy_from_slice(&sum.to_be_bytes());
        };
        match rows.update(primary(table), &key(number), &mut edit).await? {
            true => Ok(()),
            false => Err(is_missing(format!("row {number} of table {table}"))),
        }
    }

    /// Its row of history.
    fn entry(&self) -> Vec<u8> {
        let columns = [self.teller, self.branch, self.account, self.delta];
        let mut row = Vec::with_capacity(HISTORY_BYTES);
        for column in columns {
            row.extend_from_slice(&(column as i32).to_be_bytes());
        }
        row.extend_from_slice(&MOMENT.to_be_bytes());
        row.extend_from_slice(&(self.client as u32).to_be_bytes());
        row.extend_from_slice(&self.number.to_be_bytes());
        row
    }
}

fn primary(table: usize) -> IndexOf {
    IndexOf { table, index: 0 }
}

/// Asks for an account's balance.
async fn balance(rows: &mut dyn Keyed, account: i64) -> Result<i64, SessionError> {
    let found = rows.get(primary(ACCOUNTS_TABLE), &key(account)).await?;
    let found = found.map(|row| amount(&row, ACCOUNTS_TABLE));
    found.ok_or_else(|| is_missing(format!("account {account}")))
}

/// Looks at every row.
#[derive(Clone)]
struct Sums {
    acknowledged: Vec<Acknowledged>,
    /// Of accounts, tellers, branches, history.
    sums: [i64; 4],
    entries: Numbers,
}

impl Tally for Sums {
    fn row(&mut self, table: usize, bytes: &[u8]) {
        let place = match table {
            ACCOUNTS_TABLE => 0,
            TELLERS_TABLE => 1,
            BRANCHES => 2,
            _ => 3,
        };
        self.sums[place] += amount(bytes, table);
        if table == HISTORY {
            let number = bytes[HISTORY_BYTES - 8..].try_into().expect("eight bytes");
            let client = number_at(bytes, HISTORY_BYTES - 12) as usize;
            self.entries.add(client, u64::from_be_bytes(number));
        }
    }

    fn add(&mut self, other: Self) {
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            *mine += theirs;
        }
        self.entries.add_all(other.entries);
    }

    fn finish(&self) -> Result<String, CheckError> {
        let agreed = agreed(self.sums)?;
        Ok(said(self.entries.check(&self.acknowledged)?, agreed))
    }
}
