//! Rows that say which transaction made them: its client, and its number among the client's, which begin with 1 and
//! leave none out. So a transaction that was promised and is gone shows, and one that was carried out twice.

use std::collections::BTreeMap;

use super::connection::{SqlConnection, SqlRow};
use crate::workload::{Acknowledged, CheckError};

/// What a client's rows say.
#[derive(Debug, Clone, Copy, Default)]
struct ClientNumbers {
    rows: u64,
    numbers: u64,
    last: u64,
}

/// Compares what clients were promised with what the database has; `rows` selects a `client` and a `number` for each
/// transaction. How many there are.
///
/// # Errors
/// See [`CheckError`].
pub fn check(
    connection: &mut dyn SqlConnection,
    rows: &str,
    acknowledged: &[Acknowledged],
) -> Result<u64, CheckError> {
    let mut clients: BTreeMap<usize, ClientNumbers> = BTreeMap::new();
    let sql = format!(
        "select client, count(*), count(distinct number), max(number) from ({rows}) as numbered group by client"
    );
    connection.ask(&sql, &mut |row: &dyn SqlRow| {
        let number = |column| Ok(row.int(column)?.unsigned_abs());
        let found = ClientNumbers {
            rows: number(1)?,
            numbers: number(2)?,
            last: number(3)?,
        };
        clients.insert(row.int(0)?.unsigned_abs() as usize, found);
        Ok(())
    })?;
    judge(&clients, acknowledged)
}

fn judge(
    clients: &BTreeMap<usize, ClientNumbers>,
    acknowledged: &[Acknowledged],
) -> Result<u64, CheckError> {
    for (client, promised) in acknowledged.iter().enumerate() {
        let found = clients.get(&client).copied().unwrap_or_default();
        if let Some(what) = wrong_with(*promised, found) {
            return Err(CheckError::Lost(format!("client {client} {what}")));
        }
    }
    Ok(clients.values().map(|found| found.numbers).sum())
}

/// Such rows as a database without SQL shows them, one by one.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    of_clients: BTreeMap<usize, Vec<u64>>,
}

impl Numbers {
    /// One more row.
    pub fn add(&mut self, client: usize, number: u64) {
        self.of_clients.entry(client).or_default().push(number);
    }

    /// More rows.
    pub fn add_all(&mut self, others: Numbers) {
        for (client, numbers) in others.of_clients {
            self.of_clients.entry(client).or_default().extend(numbers);
        }
    }

    /// The same as [`check`].
    ///
    /// # Errors
    /// See [`CheckError`].
    pub fn check(&self, acknowledged: &[Acknowledged]) -> Result<u64, CheckError> {
        let found = |numbers: &Vec<u64>| {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sorted.dedup();
            ClientNumbers {
                rows: numbers.len() as u64,
                numbers: sorted.len() as u64,
                last: sorted.last().copied().unwrap_or(0),
            }
        };
        let of_clients = self.of_clients.iter();
        let clients = of_clients.map(|(client, numbers)| (*client, found(numbers)));
        judge(&clients.collect(), acknowledged)
    }
}

/// `None`: nothing.
fn wrong_with(promised: Acknowledged, found: ClientNumbers) -> Option<String> {
    let Acknowledged { last, failed } = promised;
    if found.last < last {
        let found = found.last;
        return Some(format!(
            "was promised transaction {last}, the database has none after {found}"
        ));
    }
    // One more may have been committed with no client left to hear of it.
    if found.last > last + failed + 1 {
        let found = found.last;
        return Some(format!(
            "ended with transaction {last}, the database has {found}"
        ));
    }
    let missing = found.last - found.numbers;
    if missing > failed {
        return Some(format!(
            "had {failed} transactions fail, of those up to {} the database lacks {missing}",
            found.last
        ));
    }
    if found.rows != found.numbers {
        let twice = found.rows - found.numbers;
        return Some(format!(
            "has {twice} transactions in the database more than once"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(promised: (u64, u64), found: (u64, u64, u64)) -> Option<String> {
        let (last, failed) = promised;
        let (rows, numbers, last_found) = found;
        let found = ClientNumbers {
            rows,
            numbers,
            last: last_found,
        };
        wrong_with(Acknowledged { last, failed }, found)
    }

    #[test]
    fn what_was_promised_is_there_once() {
        assert_eq!(judged((0, 0), (0, 0, 0)), None);
        assert_eq!(judged((5, 0), (5, 5, 5)), None);
        assert_eq!(judged((5, 0), (6, 6, 6)), None, "nobody heard of it");
        assert_eq!(judged((5, 1), (4, 4, 5)), None, "one failed");
        assert_eq!(judged((5, 1), (7, 7, 7)), None, "one was cut off");
        let says = |promised, found, what: &str| {
            let wrong = judged(promised, found).expect("something is wrong");
            assert!(wrong.contains(what), "{wrong}");
        };
        says((5, 0), (4, 4, 4), "promised transaction 5");
        says((5, 0), (4, 4, 5), "lacks 1");
        says((5, 0), (6, 5, 5), "more than once");
        says((5, 0), (7, 7, 7), "the database has 7");
        says((5, 1), (3, 3, 5), "lacks 2");
    }

    #[test]
    fn rows_that_are_seen_one_by_one_are_judged_alike() {
        let seen = |numbers: &[u64]| {
            let (mut all, mut others) = (Numbers::default(), Numbers::default());
            let (some, more) = numbers.split_at(numbers.len() / 2);
            some.iter().for_each(|number| all.add(1, *number));
            more.iter().for_each(|number| others.add(1, *number));
            all.add_all(others);
            all.check(&[Acknowledged::default(), Acknowledged::up_to(3)])
        };
        assert_eq!(seen(&[2, 1, 3]), Ok(3));
        for (numbers, what) in [
            (&[1, 2][..], "promised transaction 3"),
            (&[1, 3], "lacks 1"),
            (&[1, 2, 3, 2], "more than once"),
        ] {
            assert!(seen(numbers).unwrap_err().to_string().contains(what));
        }
    }
}
