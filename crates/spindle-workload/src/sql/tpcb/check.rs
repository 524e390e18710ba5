//! What must hold after TPC-B: the balances of accounts, tellers and branches, and what history says moved them, are
//! the same in sum, and history has every transaction that a client was promised.

use crate::sql::connection::SqlConnection;
use crate::sql::numbered;
use crate::workload::{Acknowledged, CheckError};

/// The tables, and what is summed up in each.
const SUMS: [(&str, &str); 4] = [
    ("accounts", "select sum(abalance) from accounts"),
    ("tellers", "select sum(tbalance) from tellers"),
    ("branches", "select sum(bbalance) from branches"),
    ("history", "select sum(delta) from history"),
];

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

/// What all four add up to.
pub(super) fn agreed(sums: [i64; 4]) -> Result<i64, CheckError> {
    if sums.iter().all(|sum| *sum == sums[0]) {
        return Ok(sums[0]);
    }
    let tables = SUMS.iter().zip(sums);
    let told: Vec<String> = tables
        .map(|((table, _), sum)| format!("{table} {sum}"))
        .collect();
    let told = told.join(", ");
    Err(CheckError::Lost(format!("balances do not agree: {told}")))
}

/// That all is well.
pub(super) fn said(count: u64, sum: i64) -> String {
    format!("{count} transactions in history, balances of {sum} in sum agree with it")
}
