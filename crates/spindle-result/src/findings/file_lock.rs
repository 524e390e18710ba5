//! Writing threads wait for each other at the lock of a file: a file system lets one buffered write at a time into a
//! file, and some direct ones.

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use crate::SystemFigure;

/// Threads that wait at any moment, on average: fewer are a chance meeting.
const WAITING_MIN: f64 = 0.5;

pub(super) const KIND: FindingKind = FindingKind {
    name: "writers serialised on a file",
    text: "Writers wait for each other at the lock of a file.",
    words: None,
    remedy: "Spread the data over more files (embedded: database.datafiles), or use a file system and access path that let \
             several writes into a file at once (XFS or raw devices, direct).",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let waiting = facts.mean(&SystemFigure::WritersWaitingForFileLock)?;
    if waiting < WAITING_MIN {
        return None;
    }
    let datafiles = facts.database.and_then(|database| database.datafiles);
    let datafiles = datafiles.map_or(String::new(), |datafiles| {
        format!(", with datafiles = {datafiles}")
    });
    Some(Sighting {
        weight: 0.5 * waiting / (waiting + 1.0),
        evidence: format!(
            "{waiting:.1} of the database's writing threads waited for a file's lock at any moment{datafiles}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    const COLUMN: &str = "writers_waiting_for_file_lock";

    #[test]
    fn threads_that_wait_for_the_lock_show_it() {
        let seen = Stage::new().system(&[(COLUMN, 2.25)]).look(&KIND);
        assert_eq!(
            seen.expect("seen").evidence,
            "2.2 of the database's writing threads waited for a file's lock at any moment, with datafiles = 4"
        );
    }

    #[test]
    fn a_chance_meeting_does_not() {
        assert_eq!(Stage::new().system(&[(COLUMN, 0.45)]).look(&KIND), None);
        assert_eq!(Stage::new().look(&KIND), None);
    }
}
