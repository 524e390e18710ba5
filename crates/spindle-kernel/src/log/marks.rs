//! Marks in the ring of log files: places at which a batch begins, with how much redo had been written by then and
//! when. They turn "this much redo ago", "this long ago" and "this position" into places from which the redo can be
//! read. Not every batch is marked, but enough of them to be exact within a small share of what is asked for.

use std::collections::VecDeque;

/// Where in the ring a position of the redo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// Position of the first record of the batch at this place.
    pub(crate) position: u64,
    /// Which log file.
    pub(crate) file: usize,
    /// Its sequence number then.
    pub(crate) sequence: u32,
    /// Byte in the file.
    pub(crate) offset: u64,
}

/// A lag, or an interval, is divided into this many parts; a mark stands in each of them.
const PARTS: u64 = 256;

#[derive(Debug, Clone, Copy)]
struct Mark {
    location: Location,
    /// Bytes written to the ring before it, since the instance started.
    written_bytes: u64,
    /// When everything before it was on stable storage.
    at_ns: u64,
}

/// The marks that may be needed.
pub(crate) struct RingMarks {
    /// Oldest first; the newest is at or before `end`.
    marks: VecDeque<Mark>,
    end: Mark,
    step_bytes: u64,
    step_ns: u64,
}

impl RingMarks {
    /// Marks fit for a lag of `lag_bytes` and an age of `interval_ns`; the redo ends at `location`.
    pub(crate) fn new(location: Location, lag_bytes: u64, interval_ns: u64) -> RingMarks {
        let end = Mark {
            location,
            written_bytes: 0,
            at_ns: 0,
        };
        RingMarks {
            marks: VecDeque::from([end]),
            end,
            step_bytes: lag_bytes / PARTS,
            step_ns: interval_ns / PARTS,
        }
    }

    /// The redo ends at another place, before which everything is on stable storage and no longer needed.
    pub(crate) fn reset(&mut self, location: Location) {
        self.end.location = location;
        self.marks.clear();
        self.marks.push_back(self.end);
    }

    /// The next batch goes to `location`, `bytes` further on; everything before it was on stable storage at `at_ns`.
    pub(crate) fn advance(&mut self, location: Location, bytes: u64, at_ns: u64) {
        self.end = Mark {
            location,
            written_bytes: self.end.written_bytes + bytes,
            at_ns,
        };
        let last = *self.marks.back().expect("there is always a mark");
        let is_due = location.sequence != last.location.sequence
            || self.end.written_bytes >= last.written_bytes + self.step_bytes.max(1)
            || at_ns >= last.at_ns + self.step_ns;
        if is_due {
            self.marks.push_back(self.end);
        }
    }

    /// The last place at or before `position` where a batch begins.
    pub(crate) fn place_of(&self, position: u64) -> Location {
        if position >= self.end.location.position {
            return self.end.location;
        }
        let after = self
            .marks
            .partition_point(|mark| mark.location.position <= position);
        self.marks[after.saturating_sub(1)].location
    }

    /// The first mark from which there are no more than `lag_bytes` to the end.
    pub(crate) fn lagging(&self, lag_bytes: u64) -> u64 {
        let from = self.end.written_bytes.saturating_sub(lag_bytes);
        let at = self.marks.partition_point(|mark| mark.written_bytes < from);
        self.marks.get(at).unwrap_or(&self.end).location.position
    }

    /// A position before which everything was changed at `at_ns` or earlier.
    pub(crate) fn changed_by(&self, at_ns: u64) -> u64 {
        if self.end.at_ns <= at_ns {
            return self.end.location.position;
        }
        let after = self.marks.partition_point(|mark| mark.at_ns <= at_ns);
        match after.checked_sub(1) {
            Some(at) => self.marks[at].location.position,
            None => 0,
        }
    }

    /// Recovery would begin at `position` or later.
    pub(crate) fn forget_before(&mut self, position: u64) {
        while self
            .marks
            .get(1)
            .is_some_and(|mark| mark.location.position <= position)
        {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sequence: u32, position: u64) -> Location {
        Location {
            position,
            file: 0,
            sequence,
            offset: position * 2,
        }
    }

    /// A batch of ten positions and twenty bytes at each tick, in files of five batches.
    fn marked() -> RingMarks {
        let mut marks = RingMarks::new(place(1, 0), 25_600, 1 << 60);
        for tick in 1..=100 {
            marks.advance(place(1 + tick as u32 / 5, tick * 10), 20, tick);
        }
        marks
    }

    #[test]
    fn a_position_is_read_from_a_batch_at_or_before_it() {
        let marks = marked();
        for position in 0..=1000 {
            let place = marks.place_of(position).position;
            assert!(place <= position && position - place < 50 && place.is_multiple_of(10));
        }
        // The first batch of a file, and the end, are known exactly.
        assert_eq!(marks.place_of(50), place(2, 50));
        assert_eq!(marks.place_of(1000), place(21, 1000));
    }

    #[test]
    fn what_lies_too_far_behind_is_known_by_bytes_and_by_time() {
        let mut marks = marked();
        assert_eq!(marks.lagging(0), 1000);
        assert_eq!(marks.lagging(100), 950);
        assert_eq!(marks.lagging(1 << 40), 0);
        assert_eq!(marks.changed_by(100), 1000);
        assert_eq!(marks.changed_by(57), 550);
        marks.forget_before(333);
        assert_eq!(marks.place_of(333), place(7, 300));
        assert_eq!(marks.changed_by(3), 0);
    }
}
