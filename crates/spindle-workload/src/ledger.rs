//! The ledger: one row for each client, changed by each of its transactions that changes anything, in the same
//! transaction. It says how many transactions the client has made and what they add up to, so that after a crash both a
//! lost and a half-done transaction show.

use crate::session::{Edit, RowOperation};
use crate::workload::{Acknowledged, CheckError, RowLength, TableSize, TableSpec, Tally};

/// Clients the ledger has rows for.
pub const CLIENTS_MAX: u64 = 4096;

/// Where a ledger row counts its client's transactions.
pub const NUMBER: usize = 8;
/// Where a row counts its changes.
pub const VERSIONS: usize = 16;
/// Where a row keeps what it was changed by in sum.
pub const BALANCE: usize = 24;
/// Bytes of a data row, or a ledger row, that the check looks at.
pub const CHECKED_BYTES: usize = 32;

/// The table: a block for each client, so that clients do not meet there.
pub fn table(clients: u64) -> TableSpec {
    assert!(
        clients <= CLIENTS_MAX,
        "the ledger has rows for {CLIENTS_MAX} clients"
    );
    TableSpec {
        name: "ledger",
        row: RowLength::WholeBlock,
        size: TableSize::Rows(clients),
    }
}

/// Makes a row, of the ledger or of data: its number, and nothing done yet.
pub fn fill(row: u64, bytes: &mut [u8]) {
    bytes[..CHECKED_BYTES].fill(0);
    bytes[..8].copy_from_slice(&row.to_le_bytes());
}

/// The change of a data row that the ledger knows of: once more changed, and `amount` more.
pub fn data_edits(amount: i64) -> Vec<Edit> {
    vec![
        Edit::Add {
            offset: VERSIONS,
            amount: 1,
        },
        Edit::Add {
            offset: BALANCE,
            amount,
        },
    ]
}

/// The client's entry for a transaction of `changes` changed rows that add up to `amount`.
pub fn entry(table: usize, client: usize, changes: i64, amount: i64) -> RowOperation {
    let edits = vec![
        Edit::Add {
            offset: NUMBER,
            amount: 1,
        },
        Edit::Add {
            offset: VERSIONS,
            amount: changes,
        },
        Edit::Add {
            offset: BALANCE,
            amount,
        },
    ];
    RowOperation::Update {
        table,
        row: client as u64,
        edits,
    }
}

/// Adds data and ledger up.
#[derive(Clone)]
pub struct LedgerTotals {
    acknowledged: Vec<Acknowledged>,
    ledger_table: usize,
    data: (u64, u64, i64),
    entered: (u64, i64),
    numbers: Vec<u64>,
}

fn number_at(row: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(row[offset..offset + 8].try_into().expect("eight bytes"))
}

impl LedgerTotals {
    /// Nothing seen yet; all tables but `ledger_table` hold data.
    pub fn new(ledger_table: usize, acknowledged: Vec<Acknowledged>) -> LedgerTotals {
        LedgerTotals {
            acknowledged,
            ledger_table,
            data: (0, 0, 0),
            entered: (0, 0),
            numbers: Vec::new(),
        }
    }
}

impl Tally for LedgerTotals {
    fn row(&mut self, table: usize, bytes: &[u8]) {
        let (versions, balance) = (number_at(bytes, VERSIONS), number_at(bytes, BALANCE) as i64);
        if table == self.ledger_table {
            let client = number_at(bytes, 0) as usize;
            if self.numbers.len() <= client {
                self.numbers.resize(client + 1, 0);
            }
            self.numbers[client] = number_at(bytes, NUMBER);
            self.entered.0 += versions;
            self.entered.1 = self.entered.1.wrapping_add(balance);
        } else {
            self.data.0 += 1;
            self.data.1 += versions;
            self.data.2 = self.data.2.wrapping_add(balance);
        }
    }

    fn add(&mut self, other: Self) {
        self.data.0 += other.data.0;
        self.data.1 += other.data.1;
        self.data.2 = self.data.2.wrapping_add(other.data.2);
        self.entered.0 += other.entered.0;
        self.entered.1 = self.entered.1.wrapping_add(other.entered.1);
        if self.numbers.len() < other.numbers.len() {
            self.numbers.resize(other.numbers.len(), 0);
        }
        // A client's row is in one share: the other has nothing of it.
        for (number, seen) in self.numbers.iter_mut().zip(&other.numbers) {
            *number += seen;
        }
    }

    fn finish(&self) -> Result<String, CheckError> {
        for (client, acknowledged) in self.acknowledged.iter().enumerate() {
            let found = self.numbers.get(client).copied().unwrap_or(0);
            let Acknowledged { last, failed } = *acknowledged;
            // One more may have been committed with no client left to hear of it.
            let allowed = last.saturating_sub(failed)..=last + failed + 1;
            if !allowed.contains(&found) {
                return Err(CheckError::Lost(format!(
                    "client {client} was promised {last} transactions, the database has {found}"
                )));
            }
        }
        let (rows, versions, balance) = self.data;
        if (versions, balance) != self.entered {
            return Err(CheckError::Lost(format!(
                "the rows were changed {versions} times by {balance} in sum, the ledger has {} times by {}",
                self.entered.0, self.entered.1
            )));
        }
        Ok(format!(
            "{rows} rows, changed {versions} times, agree with the ledger"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, changes: &[Edit]) -> Vec<u8> {
        let mut bytes = vec![0xEE; 64];
        fill(number, &mut bytes);
        changes.iter().for_each(|edit| edit.apply(&mut bytes, 0));
        bytes
    }

    fn check_after(
        acknowledged: Acknowledged,
        data: &[Edit],
        entries: i64,
    ) -> Result<String, CheckError> {
        let mut totals = LedgerTotals::new(1, vec![acknowledged]);
        totals.row(0, &row(0, data));
        let RowOperation::Update { edits, .. } = entry(1, 0, entries, 7 * entries) else {
            unreachable!()
        };
        totals.row(1, &row(0, &edits));
        totals.finish()
    }

    fn check(last: u64, data: &[Edit], entries: i64) -> Result<String, CheckError> {
        check_after(Acknowledged::up_to(last), data, entries)
    }

    #[test]
    fn a_transaction_that_failed_may_be_there_or_not() {
        let after = |last, failed| check_after(Acknowledged { last, failed }, &data_edits(7), 1);
        assert!(after(2, 1).is_ok(), "the first failed");
        assert!(after(0, 1).is_ok(), "it was committed, and cut off");
        assert!(after(3, 1).unwrap_err().to_string().contains("promised 3"));
    }

    #[test]
    fn shares_add_up_to_the_whole() {
        let RowOperation::Update { edits, .. } = entry(1, 0, 2, 14) else {
            unreachable!()
        };
        // The first has a data row and the entry of client 0, the second a data row and the entry of client 2.
        let share = |clients: &[u64]| {
            let mut totals = LedgerTotals::new(1, [1, 0, 1].map(Acknowledged::up_to).to_vec());
            totals.row(0, &row(0, &[data_edits(7), data_edits(7)].concat()));
            for client in clients {
                totals.row(1, &row(*client, &edits));
            }
            totals
        };
        for (first, second) in [([0], [2]), ([2], [0])] {
            let mut whole = share(&first);
            assert!(whole.finish().is_err(), "a share alone");
            whole.add(share(&second));
            let found = whole.finish().unwrap();
            assert_eq!(found, "2 rows, changed 4 times, agree with the ledger");
        }
    }

    #[test]
    fn what_agrees_passes_and_what_does_not_is_named() {
        assert!(check(1, &data_edits(7), 1).is_ok());
        assert!(
            check(0, &data_edits(7), 1).is_ok(),
            "committed, but not acknowledged"
        );
        assert!(
            check(2, &data_edits(7), 1)
                .unwrap_err()
                .to_string()
                .contains("promised 2")
        );
        assert!(
            check(1, &[], 1)
                .unwrap_err()
                .to_string()
                .contains("changed 0 times")
        );
        assert!(
            check(1, &data_edits(8), 1)
                .unwrap_err()
                .to_string()
                .contains("by 8")
        );
    }
}
