//! Most of a transaction's time is waiting for the log: redo, the write-ahead log, a rollback journal.

use super::case_facts::CaseFacts;
use super::kind::{AtLoad, FindingKind, Sighting};
use super::locks::is_lock;
use crate::{OracleEvent, TimeUse};

/// Share of a transaction's time, that in which it waits for others' locks left out: their holders wait for the log.
const LOG_MIN: f64 = 0.40;
/// And of all of its time: where nearly all of it is lock waits, what the holders do is a guess.
const LOG_OF_ALL_MIN: f64 = 0.10;

const BESIDE_LOCKS: &str = "A transaction waits for the log (redo, WAL) more than for anything but other transactions' \
                            locks, and those that hold the locks wait for the log, too.";
const BESIDE_OTHERS: &str = "Waiting for the log (redo, WAL) is a large part of a transaction's time, though not its longest wait.";

pub(super) const KIND: FindingKind = FindingKind {
    name: "log writes dominate",
    text: "A transaction waits for the log (redo, WAL) more than for anything else.",
    words: Some(words),
    remedy: "Put the log on a device with faster synchronous writes: its own, if it shares one (placement.redo of a \
             layout, or database.redo_path).",
    look,
};

/// By the nearest of Oracle's events, which every engine's waits carry: `log file sync` is PostgreSQL's `WALSync` and
/// `LWLock:WALWrite`, InnoDB's commit, SQLite's sync of its log.
fn is_log(part: &TimeUse) -> bool {
    part.is_wait(OracleEvent::is_log_write)
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let of_all = facts.share(is_log)?;
    let locks = facts.share(is_lock)?;
    let share = of_all / (1.0 - locks).max(f64::EPSILON);
    if share < LOG_MIN || of_all < LOG_OF_ALL_MIN {
        return None;
    }
    let mut evidence = format!(
        "waits for the log are {:.0} % {}",
        100.0 * of_all,
        facts.of_time()
    );
    if locks >= LOG_OF_ALL_MIN {
        evidence += &format!(
            ", and {:.0} % of what is left without its waits for other transactions' locks",
            100.0 * share
        );
    }
    if let Some(part) = facts.largest(is_log) {
        evidence += &format!("; most of them are `{part}`");
    }
    if let Some(write_ms) = facts
        .case
        .mean_nearest_ms(&OracleEvent::LogFileParallelWrite)
    {
        evidence += &format!("; a write of the log takes {write_ms:.2} ms");
    }
    Some(Sighting {
        weight: share.min(1.0),
        evidence,
    })
}

/// What is true of the case: its share is of what is left without locks, so it need not be the longest wait.
fn words(facts: &CaseFacts<'_>, _: AtLoad) -> &'static str {
    let log = facts.share(is_log).unwrap_or(0.0);
    let locks = facts.share(is_lock).unwrap_or(0.0);
    let longest = facts.longest_wait_but(|part| is_log(part) || is_lock(part));
    match (longest > log, locks > log) {
        (true, _) => BESIDE_OTHERS,
        (false, true) => BESIDE_LOCKS,
        (false, false) => KIND.text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(sync_us: f64) -> Stage {
        Stage::new()
            .parts(&[
                ("log file sync", sync_us),
                ("db file sequential read", 100.0 - sync_us),
            ])
            .waits("log file parallel write", 10, 25_000.0)
    }

    #[test]
    fn waiting_for_redo_most_of_the_time_shows_it() {
        let seen = stage(62.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "waits for the log are 62 % of a transaction's time; most of them are `log file sync`; a write of the log takes \
             2.50 ms"
        );
        assert_eq!(seen.weight, 0.62);
    }

    #[test]
    fn transactions_that_queue_for_one_that_waits_for_the_log_wait_for_the_log() {
        let stage = |log_us: f64, lock_us: f64| {
            Stage::new().parts(&[
                ("WALSync (log file sync)", log_us),
                (
                    "Lock:transactionid (enq: TX - row lock contention)",
                    lock_us,
                ),
                ("user CPU", 100.0 - log_us - lock_us),
            ])
        };
        let seen = stage(24.0, 70.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "waits for the log are 24 % of a transaction's time, and 80 % of what is left without its waits for other \
             transactions' locks; most of them are `WALSync (log file sync)`"
        );
        assert_eq!(stage(9.0, 90.0).look(&KIND), None);
        assert_eq!(stage(11.0, 70.0).look(&KIND), None);
    }

    #[test]
    fn less_does_not_show_it_nor_does_waiting_for_a_checkpoint() {
        assert_eq!(stage(38.0).look(&KIND), None);
        let checkpoint = ("log file switch (checkpoint incomplete)", 60.0);
        let stage = Stage::new().parts(&[checkpoint, ("log file sync", 35.0), ("user CPU", 5.0)]);
        assert_eq!(stage.look(&KIND), None);
    }

    #[test]
    fn what_is_waited_for_longer_is_not_left_out_of_the_words() {
        let said = |parts: &[(&str, f64)]| {
            let stage = Stage::new().parts(parts);
            assert!(stage.look(&KIND).is_some(), "{parts:?}");
            stage.said(&KIND, AtLoad::Alike)
        };
        let (log, read) = ("log file sync", "db file sequential read");
        let lock = "enq: TX - row lock contention";
        assert_eq!(said(&[(log, 60.0), (lock, 40.0)]), KIND.text);
        assert_eq!(said(&[(log, 20.0), (lock, 80.0)]), BESIDE_LOCKS);
        assert_eq!(said(&[(log, 41.0), (read, 59.0)]), BESIDE_OTHERS);
        assert_eq!(said(&[(log, 41.0), ("run queue", 59.0)]), BESIDE_OTHERS);
        assert_eq!(said(&[(log, 41.0), ("user CPU", 59.0)]), KIND.text);
    }
}
