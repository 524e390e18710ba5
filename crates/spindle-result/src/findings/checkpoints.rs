//! The log has gone round and waits for a checkpoint: blocks that it still protects are not written yet.

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use crate::{OracleEvent, TimeUse};

/// Share of a transaction's time.
const WAITS_MIN: f64 = 0.20;

pub(super) const KIND: FindingKind = FindingKind {
    name: "checkpoints hold up the log",
    text: "Transactions wait for checkpoints: the log is full of changes whose blocks are not written yet.",
    words: None,
    remedy: "Make the log larger (embedded: database.log_file_size, log_files; PostgreSQL: max_wal_size; MariaDB: \
             innodb_log_file_size), or write blocks faster: more writers (embedded: database.writers), or several writes \
             under way (method = \"slaves\", \"async\", \"odm\").",
    look,
};

/// A wait for a checkpoint, whatever the log itself takes to be written.
fn is_checkpoint(part: &TimeUse) -> bool {
    part.is_wait(|event| *event == OracleEvent::LogFileSwitchCheckpoint)
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let share = facts.share(is_checkpoint)?;
    (share >= WAITS_MIN).then(|| Sighting {
        weight: share,
        evidence: format!(
            "`log file switch (checkpoint incomplete)` is {:.0} % {}",
            100.0 * share,
            facts.of_time()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(checkpoint_us: f64) -> Stage {
        Stage::new().parts(&[
            ("log file switch (checkpoint incomplete)", checkpoint_us),
            ("db file sequential read", 100.0 - checkpoint_us),
        ])
    }

    #[test]
    fn a_log_that_has_gone_round_shows_it() {
        assert_eq!(
            stage(45.0).look(&KIND).expect("seen").evidence,
            "`log file switch (checkpoint incomplete)` is 45 % of a transaction's time"
        );
    }

    #[test]
    fn now_and_then_does_not() {
        assert_eq!(stage(19.0).look(&KIND), None);
    }
}
