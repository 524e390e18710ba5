//! The statements that read indexes, by SCN: an entry that was deleted stays in its index while one of them may want
//! it.

use std::collections::BTreeMap;

use spindle_io::sync::Latch;

/// Statements under way.
#[derive(Default)]
pub(crate) struct Statements {
    /// How many there are of each SCN.
    running: Latch<BTreeMap<u64, usize>>,
}

/// A statement under way, until it is dropped.
pub(crate) struct Running<'a> {
    all: &'a Statements,
    scn: u64,
}

impl Statements {
    /// One begins; `scn` says as of when.
    pub(crate) fn begin(&self, scn: impl FnOnce() -> u64) -> Running<'_> {
        // Under the latch: no older one can begin after a session has asked for the oldest.
        let mut running = self.running.lock();
        let scn = scn();
        *running.entry(scn).or_default() += 1;
        Running { all: self, scn }
    }

    /// No statement, of those under way and those yet to begin, is older than this; `scn` is that of one that begins
    /// now.
    pub(crate) fn oldest(&self, scn: impl FnOnce() -> u64) -> u64 {
        let running = self.running.lock();
        let now = scn();
        running
            .first_key_value()
            .map_or(now, |(&oldest, _)| oldest.min(now))
    }
}

impl Running<'_> {
    /// As of when it sees the database.
    pub(crate) fn scn(&self) -> u64 {
        self.scn
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = self.all.running.lock();
        let count = running.get_mut(&self.scn).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            running.remove(&self.scn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_until_it_ends() {
        let statements = Statements::default();
        assert_eq!(statements.oldest(|| 7), 7);
        let first = statements.begin(|| 7);
        let (second, third) = (statements.begin(|| 9), statements.begin(|| 9));
        assert_eq!((first.scn(), statements.oldest(|| 20)), (7, 7));
        drop(first);
        drop(third);
        assert_eq!(statements.oldest(|| 20), 9);
        drop(second);
        assert_eq!(statements.oldest(|| 20), 20);
    }
}
