//! `junk` on the embedded database: the same columns and keys as rows of bytes. A row: `c1` to `c4` (8 bytes each, the
//! highest first, so that they are in order as bytes), `c5` (4, days), `c6` (100), length of `c7` (2), `c7`.

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_query::{Column, DataType, Form, RowLayout};

use super::check::{ClientSums, judge};
use super::{C6_LENGTH, C7_LENGTH, Junk};
use crate::session::{RowOperation, Txn};
use crate::workload::{
    Acknowledged, CheckError, Checker, Client, IndexSpec, Inserts, LoadedTable, Loader, RowLength,
    TableSize, TableSpec, Tally, Workload, checker_of,
};

const JUNK: usize = 0;
/// The longest `c7`, as in `varchar(1000)`.
const C7_LENGTH_MAX: usize = 1000;
/// Bytes before `c7`.
const FIXED_BYTES: usize = 4 * 8 + 4 + C6_LENGTH + 2;
/// `c5` of every row, days since 1970: 1 January 2006. The current day of other databases would make runs differ.
const C5_DAYS: u32 = 13_149;
/// Where `c1` and `c3` begin, which number a client's rows.
const NUMBERS: [usize; 2] = [0, 16];

/// Primary key (c1, c2), unique (c3, c4).
const INDEXES: [IndexSpec; 2] = [
    IndexSpec {
        name: "junk_c1_c2",
        is_unique: true,
        key: &[(0, 8), (8, 8)],
    },
    IndexSpec {
        name: "junk_c3_c4",
        is_unique: true,
        key: &[(16, 8), (24, 8)],
    },
];

/// The workload, in rows.
pub(super) struct JunkInRows(pub(super) Junk);

impl Workload for JunkInRows {
    fn name(&self) -> &'static str {
        "junk"
    }

    fn tables(&self) -> Vec<TableSpec> {
        vec![TableSpec {
            name: "junk",
            row: RowLength::Bytes(FIXED_BYTES + C7_LENGTH_MAX),
            size: TableSize::Rows(0),
        }]
    }

    fn inserts(&self) -> Vec<Inserts> {
        vec![Inserts {
            table: JUNK,
            rows: self.0.rows,
            row_bytes: FIXED_BYTES + C7_LENGTH,
            rows_per_transaction: u64::from(self.0.commit_every),
        }]
    }

    fn columns(&self, _: usize) -> Option<RowLayout> {
        let number = |name| Column::in_form(name, DataType::Integer, Form::Unsigned(8));
        let columns = RowLayout::new([
            number("c1"),
            number("c2"),
            number("c3"),
            number("c4"),
            Column::in_form("c5", DataType::Date, Form::Signed(4)),
            Column::new("c6", DataType::Char(C6_LENGTH as u16)),
            Column::in_form("c7", DataType::Varchar(C7_LENGTH_MAX as u16), Form::Counted),
        ]);
        Some(columns.expect("columns of junk"))
    }

    fn indexes(&self, _: usize) -> &'static [IndexSpec] {
        &INDEXES
    }

    fn transactions(&self, _: usize, clients: usize) -> Option<u64> {
        Some(self.0.commits(clients))
    }

    fn loader(&self, _: usize, _: u64) -> Loader<'_> {
        Box::new(|_, _| {})
    }

    fn replaced_bytes(&self, _: usize, _: usize) -> usize {
        0
    }

    fn next(&self, client: &mut Client, _: &[LoadedTable]) -> Txn {
        let mut letter = || b'a' + (client.rng.next_u64() % 26) as u8;
        let letters: Vec<u8> = (0..C6_LENGTH + C7_LENGTH).map(|_| letter()).collect();
        let rows = u64::from(self.0.commit_every);
        let first = client.changes * rows + 1;
        client.changes += 1;
        let insert = RowOperation::Insert {
            table: JUNK,
            first: row(first, client.number as u64, &letters),
            rows,
            counters: &NUMBERS,
        };
        Txn {
            operations: vec![insert],
            number: client.changes,
        }
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        checker_of(Rows {
            commit_every: u64::from(self.0.commit_every),
            clients: vec![ClientSums::default(); acknowledged.len()],
            acknowledged,
        })
    }
}

fn row(number: u64, client: u64, letters: &[u8]) -> Vec<u8> {
    let (c6, c7) = letters.split_at(C6_LENGTH);
    let mut row = Vec::with_capacity(FIXED_BYTES + c7.len());
    for column in [number, client, number, client] {
        row.extend_from_slice(&column.to_be_bytes());
    }
    row.extend_from_slice(&C5_DAYS.to_be_bytes());
    row.extend_from_slice(c6);
    row.extend_from_slice(&(c7.len() as u16).to_be_bytes());
    row.extend_from_slice(c7);
    row
}

/// Looks at every row.
#[derive(Clone)]
struct Rows {
    commit_every: u64,
    clients: Vec<ClientSums>,
    acknowledged: Vec<Acknowledged>,
}

impl Tally for Rows {
    fn row(&mut self, _: usize, bytes: &[u8]) {
        let column = |number: usize| {
            let bytes = &bytes[8 * number..8 * number + 8];
            u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
        };
        let [c1, c2, c3, c4] = [0, 1, 2, 3].map(column);
        let found = ClientSums {
            rows: 1,
            last: c1,
            disagreeing: u64::from((c1, c2) != (c3, c4)),
        };
        if let Some(client) = self.clients.get_mut(c2 as usize) {
            client.add(found);
        }
    }

    fn add(&mut self, other: Self) {
        for (mine, theirs) in self.clients.iter_mut().zip(&other.clients) {
            mine.add(*theirs);
        }
    }

    fn finish(&self) -> Result<String, CheckError> {
        judge(&self.clients, self.commit_every, &self.acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::env::seeded_rng;

    fn rows_of(txn: &Txn) -> Vec<Vec<u8>> {
        let [
            RowOperation::Insert {
                first,
                rows,
                counters,
                ..
            },
        ] = &txn.operations[..]
        else {
            panic!("junk inserts")
        };
        let next = |row: &Vec<u8>| {
            let mut row = row.clone();
            RowOperation::count_on(&mut row, counters);
            Some(row)
        };
        std::iter::successors(Some(first.clone()), next)
            .take(*rows as usize)
            .collect()
    }

    fn inserted(clients: usize, commits: u64) -> (JunkInRows, Vec<Vec<u8>>) {
        let junk = JunkInRows(Junk {
            rows: 1000,
            commit_every: 10,
            procedure: false,
        });
        let mut rows = Vec::new();
        for number in 0..clients {
            let mut client = Client {
                number,
                clients,
                changes: 0,
                rng: seeded_rng(1, number as u64),
            };
            for _ in 0..commits {
                rows.extend(rows_of(&junk.next(&mut client, &[])));
            }
        }
        (junk, rows)
    }

    fn judged(junk: &JunkInRows, rows: &[Vec<u8>], commits: u64) -> Result<String, CheckError> {
        let checker = junk.checker(vec![Acknowledged::up_to(commits); 2]);
        let (some, others) = rows.split_at(rows.len() / 3);
        for rows in [some, others] {
            let mut share = checker.share();
            rows.iter().for_each(|row| share.row(JUNK, row));
            share.end();
        }
        checker.finish()
    }

    #[test]
    fn rows_have_the_columns_of_the_study() {
        let (junk, rows) = inserted(2, 3);
        assert_eq!(junk.transactions(0, 2), Some(50));
        assert!(
            rows.iter()
                .all(|row| row.len() == junk.inserts()[0].row_bytes)
        );
        assert_eq!(
            rows[12][..16],
            [0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(rows[12][..16], rows[12][16..32]);
    }

    #[test]
    fn a_row_that_is_missing_or_wrong_is_told() {
        let (junk, rows) = inserted(2, 3);
        assert_eq!(
            judged(&junk, &rows, 3),
            Ok("60 rows, those of whole commits".to_string())
        );
        assert!(judged(&junk, &rows[1..], 3).is_err());
        assert!(judged(&junk, &rows[10..], 3).is_err());
        let mut wrong = rows;
        wrong[7][16] = 1;
        assert!(
            judged(&junk, &wrong, 3)
                .unwrap_err()
                .to_string()
                .contains("do not agree")
        );
    }
}
