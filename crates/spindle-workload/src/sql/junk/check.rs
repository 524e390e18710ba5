//! What must hold after `junk`: each client's rows are those of whole commits, none of which it was promised is
//! missing, and the columns of both keys agree.

use crate::sql::connection::SqlConnection;
use crate::workload::{Acknowledged, CheckError};

/// What a client's rows add up to.
#[derive(Clone, Copy, Default)]
pub(super) struct ClientSums {
    /// How many there are.
    pub(super) rows: u64,
    /// The largest number.
    pub(super) last: u64,
    /// Those in which the columns of both keys differ.
    pub(super) disagreeing: u64,
}

impl ClientSums {
    /// More of the client's rows.
    pub(super) fn add(&mut self, more: ClientSums) {
        self.rows += more.rows;
        self.last = self.last.max(more.last);
        self.disagreeing += more.disagreeing;
    }
}

pub(super) fn check(
    connection: &mut dyn SqlConnection,
    commit_every: u64,
    acknowledged: &[Acknowledged],
) -> Result<String, CheckError> {
    let mut clients = vec![ClientSums::default(); acknowledged.len()];
    let sql = "select c2, count(*), max(c1), sum(case when c1 = c3 and c2 = c4 then 0 else 1 end) from junk group by c2";
    let asked = connection.ask(sql, &mut |row| {
        let number = |column| Ok(row.int(column)?.unsigned_abs());
        if let Some(client) = clients.get_mut(number(0)? as usize) {
            *client = ClientSums {
                rows: number(1)?,
                last: number(2)?,
                disagreeing: number(3)?,
            };
        }
        Ok(())
    });
    asked?;
    judge(&clients, commit_every, acknowledged)
}

/// Compares what was found with what the clients were promised.
pub(super) fn judge(
    clients: &[ClientSums],
    commit_every: u64,
    acknowledged: &[Acknowledged],
) -> Result<String, CheckError> {
    for (client, (found, promised)) in clients.iter().zip(acknowledged).enumerate() {
        if let Some(what) = wrong_with(*found, commit_every, *promised) {
            return Err(CheckError::Lost(format!("client {client} {what}")));
        }
    }
    let rows: u64 = clients.iter().map(|found| found.rows).sum();
    Ok(format!("{rows} rows, those of whole commits"))
}

/// `None`: nothing.
fn wrong_with(found: ClientSums, commit_every: u64, promised: Acknowledged) -> Option<String> {
    let ClientSums {
        rows,
        last,
        disagreeing,
    } = found;
    let Acknowledged {
        last: commits,
        failed,
    } = promised;
    if disagreeing > 0 {
        return Some(format!("has {disagreeing} rows whose keys do not agree"));
    }
    if rows % commit_every != 0 || last % commit_every != 0 {
        return Some(format!(
            "has {rows} rows, the last of them {last}: not those of whole commits of {commit_every}"
        ));
    }
    let (found, last) = (rows / commit_every, last / commit_every);
    // One more may have been committed with no client left to hear of it.
    let is_promised = last >= commits && last <= commits + failed + 1;
    if !is_promised || last - found.min(last) > failed {
        return Some(format!(
            "was promised {commits} commits, the database has {found}, the last of them {last}"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rows: u64, last: u64, promised: (u64, u64)) -> Option<String> {
        let found = ClientSums {
            rows,
            last,
            disagreeing: 0,
        };
        let (last, failed) = promised;
        wrong_with(found, 100, Acknowledged { last, failed })
    }

    #[test]
    fn rows_are_those_of_whole_commits() {
        assert_eq!(judged(300, 300, (3, 0)), None);
        assert_eq!(judged(400, 400, (3, 0)), None, "nobody heard of it");
        assert_eq!(judged(200, 300, (3, 1)), None, "one failed");
        assert!(judged(299, 300, (3, 0)).is_some());
        assert!(judged(200, 300, (3, 0)).is_some());
        assert!(judged(200, 200, (3, 0)).is_some());
        assert!(judged(500, 500, (3, 0)).is_some());
    }
}
