//! Sessions wait for free buffers while the database writers write all the time.

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use crate::OracleEvent;

/// Share of a transaction's time.
const FREE_BUFFER_WAITS_MIN: f64 = 0.10;
/// Share of the writers' time that they spend writing: one that is idle for longer is held up by something else.
const WRITING_MIN: f64 = 0.70;

pub(super) const KIND: FindingKind = FindingKind {
    name: "DBWR cannot keep up",
    text: "Sessions wait for free buffers: the database writers cannot write as fast as blocks are changed.",
    words: None,
    remedy: "Write more in parallel: more writers (database.writers), I/O slaves or asynchronous I/O (method = \
             \"slaves\", \"async\", \"odm\"), or a device with faster synchronous writes.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let share = facts.share_of_waits(&OracleEvent::FreeBufferWaits)?;
    // A server has at least one thread for it.
    let writers = facts.database?.writers.unwrap_or(1);
    let is_write = |event: &OracleEvent| {
        matches!(
            event,
            OracleEvent::DbFileParallelWrite | OracleEvent::DoubleWrite
        )
    };
    let (_, writing_us) = facts.case.total_wait(|wait| is_write(wait.nearest()));
    let writing = writing_us / 1e6 / (f64::from(writers) * facts.measured_s());
    (share >= FREE_BUFFER_WAITS_MIN && writing >= WRITING_MIN).then(|| Sighting {
        weight: share,
        evidence: format!(
            "`free buffer waits` are {:.0} % {}, and {} spent {:.0} % of the time writing",
            100.0 * share,
            facts.of_time(),
            match writers {
                1 => "the writer".to_owned(),
                writers => format!("the {writers} writers"),
            },
            100.0 * writing.min(1.0)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    /// In each trial of 5 seconds the two writers have 10.
    fn stage(free_buffer_waits_us: f64, writing_s: f64) -> Stage {
        Stage::new()
            .parts(&[
                ("free buffer waits", free_buffer_waits_us),
                ("log file sync", 100.0 - free_buffer_waits_us),
            ])
            .waits("db file parallel write", 100, writing_s * 1e6)
    }

    #[test]
    fn waits_for_buffers_beside_busy_writers_show_it() {
        let seen = stage(30.0, 9.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "`free buffer waits` are 30 % of a transaction's time, and the 2 writers spent 90 % of the time writing"
        );
    }

    #[test]
    fn either_alone_does_not() {
        assert_eq!(stage(9.0, 9.0).look(&KIND), None);
        assert_eq!(stage(30.0, 6.5).look(&KIND), None);
    }
}
