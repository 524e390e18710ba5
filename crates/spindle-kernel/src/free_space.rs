//! Room that rows have left in blocks of their segment, and leaves of indexes that hold nothing any longer: which
//! blocks those are, in memory, in step with the maps of the datafiles ([`crate::block::space_map`]). Sessions that
//! insert come here for a block; those that make room report it ([`crate::change::space`]).

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use spindle_io::sync::Latch;

use crate::block::{BlockAddress, RowId, heap};

/// Share of a block that inserts leave free, for rows that grow (Oracle's `PCTFREE`, whose default is the same).
pub(crate) const PCT_FREE: usize = 10;
/// A block without this share of room is not worth a look by inserts.
const PCT_ROOM: usize = 30;

/// The blocks of a segment that have room.
pub(crate) struct FreeSpace {
    /// The longest that a slot may hold, bytes.
    slot_bytes_max: usize,
    /// The database has maps.
    is_mapped: bool,
    state: Latch<State>,
}

#[derive(Default)]
struct State {
    /// Blocks that the map says have room.
    known: FxHashSet<BlockAddress>,
    /// Those that no session inserts into, and others that a session has given back.
    waiting: VecDeque<BlockAddress>,
    /// Those that come after all of these.
    aside: VecDeque<BlockAddress>,
    /// The first block, counted over the extents, that has not been taken yet.
    next: u64,
}

impl FreeSpace {
    /// Of a segment of rows of up to `row_bytes`, of whose room nothing is known.
    fn new(row_bytes: usize, is_mapped: bool) -> FreeSpace {
        FreeSpace {
            slot_bytes_max: row_bytes + RowId::BYTES,
            is_mapped,
            state: Latch::default(),
        }
    }

    /// True when the database has maps.
    pub(crate) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    /// True when the map need not be told that a block has room.
    pub(crate) fn is_known(&self, address: BlockAddress) -> bool {
        !self.is_mapped || self.state.lock().known.contains(&address)
    }

    /// The map says of a block that it has room.
    pub(crate) fn learn(&self, address: BlockAddress) {
        let mut state = self.state.lock();
        if state.known.insert(address) {
            state.waiting.push_back(address);
        }
    }

    /// The same of a block that a session inserts into.
    pub(crate) fn learn_taken(&self, address: BlockAddress) {
        self.state.lock().known.insert(address);
    }

    /// The map is about to say that a block has none.
    pub(crate) fn forget(&self, address: BlockAddress) {
        self.state.lock().known.remove(&address);
    }

    /// A session no longer inserts into a block.
    pub(crate) fn give_back(&self, address: BlockAddress) {
        self.state.lock().waiting.push_front(address);
    }

    /// Nothing can be done about a block before others change: it is looked at again when none waits.
    pub(crate) fn set_aside(&self, address: BlockAddress) {
        self.state.lock().aside.push_back(address);
    }

    /// Its room is locked: others may look again later.
    pub(crate) fn wait_again(&self, address: BlockAddress) {
        self.state.lock().waiting.push_back(address);
    }

    /// A block that waits, or was set aside when none does.
    pub(crate) fn take_waiting(&self) -> Option<BlockAddress> {
        let mut state = self.state.lock();
        let waiting = state.waiting.pop_front();
        waiting.or_else(|| state.aside.pop_front())
    }

    /// How many blocks wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Number and address of the next block that has not been taken; `find` gives the address. `Err` with the number
    /// when there is none.
    pub(crate) fn take_next(
        &self,
        find: impl Fn(u64) -> Option<BlockAddress>,
    ) -> Result<(u64, BlockAddress), u64> {
        let mut state = self.state.lock();
        let number = state.next;
        let address = find(number).ok_or(number)?;
        state.next += 1;
        Ok((number, address))
    }

    /// Begins again with what the maps say: blocks that have room, others that wait, and the first never taken.
    pub(crate) fn recall(&self, known: &[BlockAddress], waiting: &[BlockAddress], next: u64) {
        *self.state.lock() = State {
            known: known.iter().copied().collect(),
            waiting: waiting.iter().copied().collect(),
            aside: VecDeque::new(),
            next,
        };
    }

    /// True when a heap block has room for any row of the segment, and enough to be worth a look, once a slot holds
    /// this many bytes (`None`: no row) instead of what it does. Locks do not count.
    pub(crate) fn has_room(&self, block: &[u8], slot: u16, holds: Option<usize>) -> bool {
        let (spare_bytes, has_rows) = heap::spare(block, slot, holds);
        let least_bytes = heap::needed_bytes(self.slot_bytes_max);
        let reserve_bytes = block.len() * PCT_FREE / 100;
        let usual_bytes = (block.len() * PCT_ROOM / 100).max(reserve_bytes + least_bytes);
        spare_bytes >= usual_bytes || !has_rows && spare_bytes >= least_bytes
    }
}

/// Those of all segments.
pub(crate) struct FreeSpaces {
    is_mapped: bool,
    by_segment: Latch<FxHashMap<u32, Arc<FreeSpace>>>,
}

impl FreeSpaces {
    /// Of a database with or without maps.
    pub(crate) fn new(is_mapped: bool) -> FreeSpaces {
        FreeSpaces {
            is_mapped,
            by_segment: Latch::default(),
        }
    }

    /// That of a segment of rows of up to `row_bytes`.
    pub(crate) fn of(&self, segment: u32, row_bytes: impl FnOnce() -> usize) -> Arc<FreeSpace> {
        let mut by_segment = self.by_segment.lock();
        let new = || Arc::new(FreeSpace::new(row_bytes(), self.is_mapped));
        Arc::clone(by_segment.entry(segment).or_insert_with(new))
    }

    /// A segment gets a number. One before it may have had that and never come to be: nothing of it counts.
    pub(crate) fn forget(&self, segment: u32) {
        self.by_segment.lock().remove(&segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::RowVersion;
    use crate::block::heap::{RowKind, clear_row, format_heap, put_row};

    fn at(block: u32) -> BlockAddress {
        BlockAddress { file: 1, block }
    }

    #[test]
    fn blocks_that_wait_come_before_new_ones_and_each_is_given_once() {
        let free = FreeSpace::new(100, true);
        let find = |number| (number < 2).then(|| at(number as u32));
        free.learn(at(7));
        free.learn(at(7));
        assert!(free.is_known(at(7)) && !free.is_known(at(8)));
        assert_eq!(free.take_waiting(), Some(at(7)));
        assert_eq!(free.take_waiting(), None);
        assert_eq!(free.take_next(find), Ok((0, at(0))));
        assert_eq!(free.take_next(find), Ok((1, at(1))));
        assert_eq!(free.take_next(find), Err(2));
        free.give_back(at(1));
        free.wait_again(at(9));
        assert_eq!(free.take_waiting(), Some(at(1)));
        free.forget(at(7));
        assert!(!free.is_known(at(7)));
        assert!(FreeSpace::new(100, false).is_known(at(7)));
    }

    #[test]
    fn blocks_set_aside_come_when_none_waits() {
        let free = FreeSpace::new(100, true);
        free.learn(at(1));
        assert_eq!(free.take_waiting(), Some(at(1)));
        free.set_aside(at(1));
        free.learn(at(2));
        assert_eq!(free.take_waiting(), Some(at(2)));
        assert_eq!(free.take_waiting(), Some(at(1)));
        assert_eq!(free.take_waiting(), None);
        assert!(free.is_known(at(1)));
    }

    #[test]
    fn a_number_that_is_given_again_brings_nothing_with_it() {
        let all = FreeSpaces::new(true);
        all.of(3, || 500).learn(at(7));
        all.forget(3);
        let again = all.of(3, || 80);
        assert_eq!(again.take_waiting(), None);
        assert_eq!(again.slot_bytes_max, 80 + RowId::BYTES);
    }

    #[test]
    fn a_block_has_room_when_any_row_fits_and_a_share_of_it_is_spare() {
        let mut block = vec![0; 2048];
        format_heap(&mut block, at(1), 1);
        for slot in 0..18 {
            put_row(&mut block, slot, RowKind::Row, RowVersion::LOADED, &[7; 80]);
        }
        let (short, long) = (FreeSpace::new(80, true), FreeSpace::new(1900, true));
        assert!(!short.has_room(&block, 0, None));
        for slot in 0..5 {
            clear_row(&mut block, slot, RowVersion::LOADED);
        }
        assert!(!short.has_room(&block, 17, Some(80)));
        assert!(short.has_room(&block, 17, None), "the sixth makes it 30 %");
        assert!(!long.has_room(&block, 17, None));
        let mut block = vec![0; 2048];
        format_heap(&mut block, at(1), 1);
        put_row(&mut block, 0, RowKind::Row, RowVersion::LOADED, &[7; 1900]);
        assert!(!long.has_room(&block, 0, Some(8)));
        assert!(long.has_room(&block, 0, None), "without a row any fits");
    }
}
