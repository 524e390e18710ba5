//! Which transactions a statement sees: those that had ended by its SCN. The transaction table says when each slot's
//! last transaction ended; this look-aside in memory knows it of the last few dozen of every slot, and of older ones a
//! bound. After a restart it is recalled from the table.

use spindle_io::sync::Latch;

use crate::block::transaction_table::TransactionSlot;

/// Endings known exactly for each slot.
const KEPT: usize = 64;

/// Whether a statement sees what a transaction has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// It had ended by the statement's SCN.
    Visible,
    /// It has not ended, or later.
    Later,
    /// It is about to end: its entry in the transaction table, whose block is held until that is done, will tell.
    Ending,
    /// It ended too long ago: only a bound is known, which the statement is older than.
    Unknown,
}

/// The transactions of one slot. SCNs of endings rise with the wrap number.
struct Slot {
    /// The latest.
    wrap: u32,
    /// Whether that has ended.
    state: State,
    /// By wrap number modulo [`KEPT`]: when it ended.
    ended: [u64; KEPT],
    /// The earliest whose ending is known exactly.
    first_kept: u32,
    /// All before that had ended by this SCN.
    ended_before: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Ending,
    Ended,
}

/// When the transactions of every slot ended.
pub(crate) struct Endings {
    slots: Vec<Latch<Slot>>,
}

impl Endings {
    /// For `slots` slots that have not been used.
    pub(crate) fn new(slots: usize) -> Endings {
        let unused = |_| {
            Latch::new(Slot {
                wrap: 0,
                state: State::Ended,
                ended: [0; KEPT],
                first_kept: 0,
                ended_before: 0,
            })
        };
        Endings {
            slots: (0..slots).map(unused).collect(),
        }
    }

    /// What the transaction table said at a start. A transaction that had not ended is about to be rolled back; no row
    /// will bear its name.
    pub(crate) fn recall(&self, slot: usize, entry: TransactionSlot) {
        let mut it = self.slots[slot].lock();
        it.wrap = entry.wrap;
        it.state = State::Ended;
        it.ended[entry.wrap as usize % KEPT] = entry.ended;
        it.first_kept = entry.wrap;
        it.ended_before = entry.ended_before;
    }

    /// The slot's next transaction begins. Returns its wrap number.
    pub(crate) fn begin(&self, slot: usize) -> u32 {
        let mut it = self.slots[slot].lock();
        it.wrap += 1;
        it.state = State::Running;
        it.wrap
    }

    /// The slot's transaction is about to end (`true`), or could not (`false`). To be called with its block of the
    /// transaction table held, before the redo record of the ending can be on stable storage.
    pub(crate) fn set_ending(&self, slot: usize, is_ending: bool) {
        self.slots[slot].lock().state = if is_ending {
            State::Ending
        } else {
            State::Running
        };
    }

    /// The slot's transaction has ended at an SCN; `None` when it had not begun.
    pub(crate) fn end(&self, slot: usize, scn: Option<u64>) {
        let mut it = self.slots[slot].lock();
        let place = it.wrap as usize % KEPT;
        if it.wrap - it.first_kept >= KEPT as u32 {
            it.ended_before = it.ended[place];
            it.first_kept += 1;
        }
        let before = it.ended[it.wrap.wrapping_sub(1) as usize % KEPT];
        it.ended[place] = scn.unwrap_or(before);
        it.state = State::Ended;
    }

    /// True when there is such a slot.
    pub(crate) fn has_slot(&self, slot: usize) -> bool {
        slot < self.slots.len()
    }

    /// Whether a statement of `scn` sees transaction `wrap` of a slot. Blocks name transactions, and may be damaged:
    /// of a slot that there is not nothing is known.
    pub(crate) fn visibility(&self, slot: usize, wrap: u32, scn: u64) -> Visibility {
        let Some(it) = self.slots.get(slot) else {
            return Visibility::Unknown;
        };
        let it = it.lock();
        let seen = |ended: u64, if_not| {
            if ended <= scn {
                Visibility::Visible
            } else {
                if_not
            }
        };
        if wrap < it.first_kept {
            return seen(it.ended_before, Visibility::Unknown);
        }
        match it.state {
            State::Running if wrap >= it.wrap => Visibility::Later,
            State::Ending if wrap >= it.wrap => Visibility::Ending,
            _ => seen(it.ended[wrap as usize % KEPT], Visibility::Later),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockAddress;

    #[test]
    fn a_transaction_is_seen_from_its_commit_scn_on() {
        let endings = Endings::new(1);
        assert_eq!(endings.begin(0), 1);
        assert_eq!(endings.visibility(0, 1, 1000), Visibility::Later);
        endings.set_ending(0, true);
        assert_eq!(endings.visibility(0, 1, 1000), Visibility::Ending);
        endings.end(0, Some(500));
        assert_eq!(endings.visibility(0, 1, 499), Visibility::Later);
        assert_eq!(endings.visibility(0, 1, 500), Visibility::Visible);
        assert_eq!(endings.begin(0), 2);
        assert_eq!(endings.visibility(0, 1, 499), Visibility::Later);
        assert_eq!(endings.visibility(0, 1, 500), Visibility::Visible);
        assert_eq!(endings.visibility(0, 2, 1000), Visibility::Later);
        // It never came to be.
        endings.end(0, None);
        assert_eq!(endings.visibility(0, 1, 499), Visibility::Later);
        assert_eq!(endings.visibility(0, 2, 500), Visibility::Visible);
    }

    #[test]
    fn of_old_transactions_a_bound_is_known() {
        let endings = Endings::new(1);
        for number in 1..=200 {
            assert_eq!(endings.begin(0), number);
            endings.end(0, Some(u64::from(number) * 10));
        }
        let first_kept = 201 - KEPT as u32;
        for wrap in 1..=200 {
            let ended = u64::from(wrap) * 10;
            let bound = u64::from(first_kept - 1) * 10;
            if wrap >= first_kept {
                assert_eq!(endings.visibility(0, wrap, ended - 1), Visibility::Later);
                assert_eq!(endings.visibility(0, wrap, ended), Visibility::Visible);
            } else {
                assert_eq!(endings.visibility(0, wrap, bound - 1), Visibility::Unknown);
                assert_eq!(endings.visibility(0, wrap, bound), Visibility::Visible);
            }
        }
    }

    #[test]
    fn what_the_table_says_is_recalled() {
        let endings = Endings::new(1);
        endings.recall(
            0,
            TransactionSlot {
                active: false,
                wrap: 1000,
                undo_block: BlockAddress { file: 0, block: 9 },
                ended: 700,
                ended_before: 600,
            },
        );
        assert_eq!(endings.visibility(0, 1000, 699), Visibility::Later);
        assert_eq!(endings.visibility(0, 1000, 700), Visibility::Visible);
        assert_eq!(endings.visibility(0, 999, 599), Visibility::Unknown);
        assert_eq!(endings.visibility(0, 999, 600), Visibility::Visible);
        assert_eq!(endings.begin(0), 1001);
        endings.end(0, Some(800));
        assert_eq!(endings.visibility(0, 1000, 699), Visibility::Later);
        assert_eq!(endings.visibility(0, 1001, 799), Visibility::Later);
    }
}
