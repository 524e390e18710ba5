//! What had been promised when: the recording program marks the log after every acknowledged commit, before the client
//! does anything else. A mark is a separate entry and flushes nothing, so it hides no flush that a layout forgot.
//! The log itself then says what had been acknowledged before each of its entries, without a clock.

use super::log::{LoggedRequest, WriteLog};

/// What the marks begin with.
const PREFIX: &str = "spindle:";

/// A mark shares a sector of the log with the head of its entry.
const LENGTH_MAX: usize = 400;

/// The text of a mark: for each client the number of its last changing transaction whose commit returned.
///
/// # Panics
/// For more clients than a mark has room for; twenty always have.
pub fn mark(acknowledged: &[u64]) -> String {
    let numbers: Vec<String> = acknowledged.iter().map(u64::to_string).collect();
    let text = format!("{PREFIX}{}", numbers.join(","));
    assert!(text.len() <= LENGTH_MAX, "too many clients for a mark");
    text
}

fn acknowledged(entry: &LoggedRequest) -> Option<Vec<u64>> {
    let numbers = entry.mark.as_deref()?.strip_prefix(PREFIX)?;
    numbers
        .split(',')
        .map(|number| number.parse().ok())
        .collect()
}

/// What was promised, by the marks of a log.
pub struct Notes(Vec<(usize, Vec<u64>)>);

impl Notes {
    /// Reads the marks.
    pub fn of(log: &WriteLog) -> Notes {
        let entries = log.entries.iter().enumerate();
        Notes(
            entries
                .filter_map(|(index, entry)| Some((index, acknowledged(entry)?)))
                .collect(),
        )
    }

    /// The numbers of entries after which the power may be cut, first and last: while the workload ran. `None` when it
    /// did not run.
    pub fn running(&self) -> Option<(usize, usize)> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        (first.0 < last.0).then_some((first.0 + 1, last.0))
    }

    /// What was acknowledged in the end.
    pub fn in_the_end(&self) -> &[u64] {
        self.acknowledged(usize::MAX)
    }

    /// What had been acknowledged when the device had come to this many entries.
    pub fn acknowledged(&self, entries: usize) -> &[u64] {
        let after = self.0.partition_point(|(index, _)| *index < entries);
        let last = after.checked_sub(1).map(|last| &self.0[last].1);
        last.map_or(&[], |acknowledged| acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_cut::Content;

    #[test]
    fn the_log_tells_what_was_promised_before_each_entry() {
        let entry = |mark: &str| LoggedRequest {
            is_flush: false,
            is_durable: false,
            first_byte: 0,
            content: Content::Zeros(0),
            mark: Some(mark.to_owned()),
        };
        let marks = [
            "other",
            &mark(&[0, 0]),
            "",
            &mark(&[1, 0]),
            &mark(&[1, 7]),
            "end",
        ];
        let log = WriteLog {
            entries: marks.into_iter().map(entry).collect(),
        };
        let notes = Notes::of(&log);
        assert_eq!(notes.running(), Some((2, 4)));
        assert_eq!(notes.acknowledged(1), [0; 0]);
        assert_eq!(notes.acknowledged(3), [0, 0]);
        assert_eq!(notes.acknowledged(4), [1, 0]);
        assert_eq!(notes.acknowledged(5), [1, 7]);
        assert_eq!(notes.in_the_end(), [1, 7]);
    }
}
