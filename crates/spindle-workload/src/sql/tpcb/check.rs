//! What must hold after TPC-B: the balances of accounts, tellers and branches, and what history says moved them, are
//! the same in sum, and history has every transaction that a client was promised.

use crate::sql::connection::SqlConnection;
use crate::sql::numbered;
use crate::workload::Acknowledged;

const SUMS: [(&str, &str); 4] = [
    ("accounts", "select sum(abalance) from accounts"),
    ("tellers", "select sum(tbalance) from tellers"),
    ("branches", "select sum(bbalance) from branches"),
    ("history", "select sum(delta) from history"),
];

pub(super) fn check(
    connection: &mut dyn SqlConnection,
    acknowledged: &[Acknowledged],
) -> Result<String, String> {
    let mut sums = Vec::new();
    for (table, sql) in SUMS {
        let mut sum = 0;
        let asked = connection.ask(sql, &mut |row| {
            // There is no sum of no rows.
            sum = if row.is_null(0)? { 0 } else { row.int(0)? };
            Ok(())
        });
        asked.map_err(|error| error.to_string())?;
        sums.push((table, sum));
    }
    if sums.iter().any(|(_, sum)| *sum != sums[0].1) {
        let told: Vec<String> = sums
            .iter()
            .map(|(table, sum)| format!("{table} {sum}"))
            .collect();
        return Err(format!("balances do not agree: {}", told.join(", ")));
    }
    let count = numbered::check(
        connection,
        "select client, number from history",
        acknowledged,
    )?;
    let sum = sums[0].1;
    Ok(format!(
        "{count} transactions in history, balances of {sum} in sum agree with it"
    ))
}
