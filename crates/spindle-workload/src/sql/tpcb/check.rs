//! What must hold after TPC-B: the balances of accounts, tellers and branches, and what history says moved them, are
//! the same in sum, and history has every transaction that a client was promised.

use crate::session::SessionError;
use crate::sql::connection::SqlConnection;
use crate::sql::numbered;
use crate::workload::Acknowledged;

/// The tables, and what is summed up in each.
const SUMS: [(&str, &str); 4] = [
    ("accounts", "select sum(abalance) from accounts"),
    ("tellers", "select sum(tbalance) from tellers"),
    ("branches", "select sum(bbalance) from branches"),
    ("history", "select sum(delta) from history"),
];

/// Why a database is not what it must be.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckError {
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Disagreement(#[from] Disagreement),
    #[error(transparent)]
    NotThere(#[from] numbered::NotThere),
}

pub(super) fn check(
    connection: &mut dyn SqlConnection,
    acknowledged: &[Acknowledged],
) -> Result<String, CheckError> {
    let mut sums = [0; 4];
    for ((_, sql), sum) in SUMS.iter().zip(&mut sums) {
        let asked = connection.ask(sql, &mut |row| {
            // There is no sum of no rows.
            *sum = if row.is_null(0)? { 0 } else { row.int(0)? };
            Ok(())
        });
        asked?;
    }
    let agreed = agreed(sums)?;
    let entries = "select client, number from history";
    let count = numbered::check(connection, entries, acknowledged)?;
    Ok(said(count, agreed))
}

/// The sums of the tables differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("balances do not agree: {told}")]
pub(super) struct Disagreement {
    told: String,
}

/// What all four add up to.
pub(super) fn agreed(sums: [i64; 4]) -> Result<i64, Disagreement> {
    if sums.iter().all(|sum| *sum == sums[0]) {
        return Ok(sums[0]);
    }
    let tables = SUMS.iter().zip(sums);
    let told: Vec<String> = tables
        .map(|((table, _), sum)| format!("{table} {sum}"))
        .collect();
    Err(Disagreement {
        told: told.join(", "),
    })
}

/// That all is well.
pub(super) fn said(count: u64, sum: i64) -> String {
    format!("{count} transactions in history, balances of {sum} in sum agree with it")
}
