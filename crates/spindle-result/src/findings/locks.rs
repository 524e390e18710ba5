//! Transactions wait for each other: for rows that others have locked, or for a database that lets one of them write at
//! a time.

use super::case_facts::CaseFacts;
use super::kind::{AtLoad, FindingKind, Sighting};
use super::log_writes;
use crate::{OracleEvent, TimeUse};

/// Share of a transaction's time.
const LOCKS_MIN: f64 = 0.40;

const BESIDE_OTHERS: &str = "Waiting for other transactions' locks is a large part of a transaction's time, though not its longest wait: they \
     change the same rows, or the database lets only one of them write at a time.";

pub(super) const KIND: FindingKind = FindingKind {
    name: "locks dominate",
    text: "Transactions wait for each other's locks more than for anything else: they change the same rows, or the \
           database lets only one of them write at a time.",
    words: Some(words),
    remedy: "What a transaction does while it holds a lock delays all that wait for it: make it shorter, or use fewer \
             clients. Where the same rows are changed, spread the changes over more rows (a larger scale). Where one \
             transaction writes at a time, as in SQLite, only shorter ones help.",
    look,
};

/// A wait for another transaction's lock, by the nearest of Oracle's events.
pub(super) fn is_lock(part: &TimeUse) -> bool {
    part.is_wait(OracleEvent::is_lock)
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let share = facts.share(is_lock)?;
    // Where the holders wait for the log, that is the cause and the queue its effect.
    if share < LOCKS_MIN || (log_writes::KIND.look)(facts).is_some() {
        return None;
    }
    let part = facts.largest(is_lock)?;
    Some(Sighting {
        weight: share,
        evidence: format!(
            "waits for other transactions' locks are {:.0} % {}; most of them are `{part}`",
            100.0 * share,
            facts.of_time()
        ),
    })
}

/// What is true of the case, which may wait longer for something else.
fn words(facts: &CaseFacts<'_>, _: AtLoad) -> &'static str {
    let locks = facts.share(is_lock).unwrap_or(0.0);
    match facts.longest_wait_but(is_lock) > locks {
        true => BESIDE_OTHERS,
        false => KIND.text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(lock_us: f64, log_us: f64) -> Stage {
        Stage::new().parts(&[
            (
                "Lock:transactionid (enq: TX - row lock contention)",
                lock_us,
            ),
            ("WALSync (log file sync)", log_us),
            ("user CPU", 100.0 - lock_us - log_us),
        ])
    }

    #[test]
    fn waiting_for_each_other_most_of_the_time_shows_it() {
        assert_eq!(
            stage(62.0, 5.0).look(&KIND).expect("seen").evidence,
            "waits for other transactions' locks are 62 % of a transaction's time; most of them are `Lock:transactionid \
             (enq: TX - row lock contention)`"
        );
    }

    #[test]
    fn less_of_it_or_holders_that_wait_for_the_log_do_not() {
        assert_eq!(stage(39.0, 5.0).look(&KIND), None);
        assert_eq!(stage(62.0, 20.0).look(&KIND), None);
    }

    #[test]
    fn a_longer_wait_is_not_left_out_of_the_words() {
        let lock = "Lock:transactionid (enq: TX - row lock contention)";
        let read = "DataFileRead (db file sequential read)";
        let said = |lock_us: f64| {
            let stage = Stage::new().parts(&[(lock, lock_us), (read, 100.0 - lock_us)]);
            assert!(stage.look(&KIND).is_some());
            stage.said(&KIND, AtLoad::Alike)
        };
        assert_eq!(said(60.0), KIND.text);
        assert_eq!(said(42.0), BESIDE_OTHERS);
    }
}
