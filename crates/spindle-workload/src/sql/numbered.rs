//! Rows that say which transaction made them: its client, and its number among the client's, which begin with 1 and
//! leave none out. So a transaction that was promised and is gone shows, and one that was carried out twice.

use std::collections::BTreeMap;

use super::connection::{Row, SqlConnection};
use crate::workload::Acknowledged;

/// What a client's rows say.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    rows: u64,
    numbers: u64,
    last: u64,
}

/// Compares what clients were promised with what the database has; `rows` selects a `client` and a `number` for each
/// transaction. How many there are.
///
/// # Errors
/// What is missing, for people.
pub fn check(
    connection: &mut dyn SqlConnection,
    rows: &str,
    acknowledged: &[Acknowledged],
) -> Result<u64, String> {
    let mut clients: BTreeMap<usize, Found> = BTreeMap::new();
    let sql = format!(
        "select client, count(*), count(distinct number), max(number) from ({rows}) as numbered group by client"
    );
    let asked = connection.ask(&sql, &mut |row: &dyn Row| {
        let number = |column| Ok(row.int(column)?.unsigned_abs());
        let found = Found {
            rows: number(1)?,
            numbers: number(2)?,
            last: number(3)?,
        };
        clients.insert(row.int(0)?.unsigned_abs() as usize, found);
        Ok(())
    });
    asked.map_err(|error| error.to_string())?;
    for (client, promised) in acknowledged.iter().enumerate() {
        let found = clients.get(&client).copied().unwrap_or_default();
        compare(*promised, found).map_err(|wrong| format!("client {client} {wrong}"))?;
    }
    Ok(clients.values().map(|found| found.numbers).sum())
}

fn compare(promised: Acknowledged, found: Found) -> Result<(), String> {
    let Acknowledged { last, failed } = promised;
    if found.last < last {
        let found = found.last;
        return Err(format!(
            "was promised transaction {last}, the database has none after {found}"
        ));
    }
    // One more may have been committed when nobody was left to hear of it.
    if found.last > last + failed + 1 {
        let found = found.last;
        return Err(format!(
            "ended with transaction {last}, the database has {found}"
        ));
    }
    let missing = found.last - found.numbers;
    if missing > failed {
        return Err(format!(
            "had {failed} transactions fail, of those up to {} the database lacks {missing}",
            found.last
        ));
    }
    if found.rows != found.numbers {
        let twice = found.rows - found.numbers;
        return Err(format!(
            "has {twice} transactions in the database more than once"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(promised: (u64, u64), found: (u64, u64, u64)) -> Result<(), String> {
        let (last, failed) = promised;
        let (rows, numbers, last_found) = found;
        let found = Found {
            rows,
            numbers,
            last: last_found,
        };
        compare(Acknowledged { last, failed }, found)
    }

    #[test]
    fn what_was_promised_is_there_once() {
        assert_eq!(judged((0, 0), (0, 0, 0)), Ok(()));
        assert_eq!(judged((5, 0), (5, 5, 5)), Ok(()));
        assert_eq!(judged((5, 0), (6, 6, 6)), Ok(()), "nobody heard of it");
        assert_eq!(judged((5, 1), (4, 4, 5)), Ok(()), "one failed");
        assert_eq!(judged((5, 1), (7, 7, 7)), Ok(()), "one was cut off");
        let says = |promised, found, what: &str| {
            let wrong = judged(promised, found).expect_err("something is wrong");
            assert!(wrong.contains(what), "{wrong}");
        };
        says((5, 0), (4, 4, 4), "promised transaction 5");
        says((5, 0), (4, 4, 5), "lacks 1");
        says((5, 0), (6, 5, 5), "more than once");
        says((5, 0), (7, 7, 7), "the database has 7");
        says((5, 1), (3, 3, 5), "lacks 2");
    }
}
