//! Where the extents of one file lie, for every I/O to look up: a table of atomics, read without a latch. Each extent
//! has a word that counts the I/Os under way to it, so that a copy can be moved or repaired. That keeps writes out and
//! waits for those under way ([`ExtentMap::lock_writes`]). Changing the place itself keeps out reads as well
//! ([`WritesKeptOut::keep_reads_out`]), so that no late read finds a place that has been given to another file.

use crate::disk_group::extents::striping::FileExtents;
use crate::sync::Notify;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Most copies of an extent: high redundancy.
pub(crate) const COPIES_MAX: usize = 3;

/// Where one copy of an extent begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnitPlace {
    pub(crate) disk: u16,
    pub(crate) au: u32,
}

const NOWHERE: u64 = u64::MAX;

impl UnitPlace {
    fn pack(self) -> u64 {
        u64::from(self.disk) << 32 | u64::from(self.au)
    }

    fn unpack(packed: u64) -> Option<UnitPlace> {
        (packed != NOWHERE).then_some(UnitPlace {
            disk: (packed >> 32) as u16,
            au: packed as u32,
        })
    }
}

const ONE_READ: u64 = 1;
const ONE_WRITE: u64 = 1 << 24;
const READS: u64 = ONE_WRITE - 1;
const WRITES: u64 = READS << 24;
/// Writes wait.
const NO_WRITES: u64 = 1 << 62;
/// Reads wait as well.
const NO_READS: u64 = 1 << 63;
/// A write ended well on no copy that counts: what the copies hold may differ until they are made equal.
const DIVERGED: u64 = 1 << 61;

/// One extent.
pub(crate) struct Extent {
    word: AtomicU64,
    copies: [AtomicU64; COPIES_MAX],
}

impl Extent {
    fn at(places: &[UnitPlace]) -> Extent {
        Extent {
            word: AtomicU64::new(0),
            copies: std::array::from_fn(|copy| {
                AtomicU64::new(places.get(copy).map_or(NOWHERE, |place| place.pack()))
            }),
        }
    }

    /// Where copy number `copy` lies.
    #[inline]
    pub(crate) fn place(&self, copy: usize) -> Option<UnitPlace> {
        UnitPlace::unpack(self.copies[copy].load(Ordering::Acquire))
    }

    /// Where the copies lie, the primary one first.
    pub(crate) fn places(&self) -> impl Iterator<Item = UnitPlace> + '_ {
        (0..COPIES_MAX).map_while(|copy| self.place(copy))
    }

    pub(crate) fn set_place(&self, copy: usize, place: UnitPlace) {
        self.copies[copy].store(place.pack(), Ordering::Release);
    }

    /// Whether a write is under way.
    pub(crate) fn has_writes(&self) -> bool {
        self.word.load(Ordering::SeqCst) & WRITES != 0
    }

    /// Whether its copies may differ for good.
    pub(crate) fn has_diverged(&self) -> bool {
        self.word.load(Ordering::SeqCst) & DIVERGED != 0
    }

    pub(crate) fn set_diverged(&self, diverged: bool) {
        if diverged {
            self.word.fetch_or(DIVERGED, Ordering::SeqCst);
        } else {
            self.word.fetch_and(!DIVERGED, Ordering::SeqCst);
        }
    }
}

/// The extents of one file.
pub(crate) struct ExtentMap {
    pub(crate) shape: FileExtents,
    copies: usize,
    extents: Box<[Extent]>,
    /// An I/O has left an extent that is being locked.
    left: Notify,
    /// An extent is no longer locked.
    unlocked: Notify,
}

/// Which I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl Access {
    fn one_and_bar(self) -> (u64, u64) {
        match self {
            Access::Read => (ONE_READ, NO_READS),
            Access::Write => (ONE_WRITE, NO_WRITES),
        }
    }
}

impl ExtentMap {
    /// A file of that shape whose extents lie at `places`, `copies` of each.
    pub(crate) fn new(shape: FileExtents, copies: usize, places: &[Vec<UnitPlace>]) -> ExtentMap {
        ExtentMap {
            shape,
            copies,
            extents: places.iter().map(|places| Extent::at(places)).collect(),
            left: Notify::new(),
            unlocked: Notify::new(),
        }
    }

    /// Copies of each extent.
    pub(crate) fn copies(&self) -> usize {
        self.copies
    }

    pub(crate) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Counts an I/O to an extent in, unless it has to wait.
    #[inline]
    pub(crate) fn try_enter(&self, extent: usize, access: Access) -> bool {
        let (one, bar) = access.one_and_bar();
        // SeqCst: code that clears a bit of the change map, or lets a disk back in, looks at the count after that. The
        // I/O looks at map and disks after this; one of them sees the other.
        let before = self.extents[extent].word.fetch_add(one, Ordering::SeqCst);
        if before & bar == 0 {
            return true;
        }
        self.leave(extent, access);
        false
    }

    /// Counts an I/O in as soon as it may proceed.
    pub(crate) async fn enter(&self, extent: usize, access: Access) {
        loop {
            let unlocked = self.unlocked.notified();
            if self.try_enter(extent, access) {
                return;
            }
            unlocked.await;
        }
    }

    /// An I/O has ended.
    #[inline]
    pub(crate) fn leave(&self, extent: usize, access: Access) {
        let (one, _) = access.one_and_bar();
        let before = self.extents[extent].word.fetch_sub(one, Ordering::SeqCst);
        if before & (NO_WRITES | NO_READS) != 0 {
            self.left.notify_waiters();
        }
    }

    /// Keeps writes to an extent out; returns when none is under way. One at a time; others wait.
    pub(crate) async fn lock_writes(&self, extent: usize) -> WritesKeptOut<'_> {
        loop {
            let unlocked = self.unlocked.notified();
            let before = self.extents[extent]
                .word
                .fetch_or(NO_WRITES, Ordering::SeqCst);
            if before & NO_WRITES == 0 {
                break;
            }
            unlocked.await;
        }
        let locked = WritesKeptOut { map: self, extent };
        locked.wait_for_none(WRITES).await;
        locked
    }
}

/// Writes to an extent are held off until this is dropped.
pub(crate) struct WritesKeptOut<'a> {
    map: &'a ExtentMap,
    extent: usize,
}

impl WritesKeptOut<'_> {
    /// Keeps reads out as well; returns when none is under way.
    pub(crate) async fn keep_reads_out(&self) {
        let word = &self.map.extents[self.extent].word;
        word.fetch_or(NO_READS, Ordering::SeqCst);
        self.wait_for_none(READS).await;
    }

    async fn wait_for_none(&self, of: u64) {
        loop {
            let left = self.map.left.notified();
            if self.map.extents[self.extent].word.load(Ordering::SeqCst) & of == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for WritesKeptOut<'_> {
    fn drop(&mut self) {
        let word = &self.map.extents[self.extent].word;
        word.fetch_and(!(NO_WRITES | NO_READS), Ordering::SeqCst);
        self.map.unlocked.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_group::extents::striping::Striping;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn map() -> ExtentMap {
        let shape = FileExtents::new(1 << 20, Striping::Coarse, 1, 1 << 20);
        ExtentMap::new(
            shape,
            2,
            &[vec![
                UnitPlace { disk: 3, au: 9 },
                UnitPlace { disk: 0, au: 4 },
            ]],
        )
    }

    fn is_ready<F: Future>(future: &mut std::pin::Pin<&mut F>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(future.as_mut().poll(&mut context), Poll::Ready(_))
    }

    #[test]
    fn places_are_kept() {
        let map = map();
        let places: Vec<UnitPlace> = map.extents()[0].places().collect();
        assert_eq!(
            places,
            [UnitPlace { disk: 3, au: 9 }, UnitPlace { disk: 0, au: 4 }]
        );
        map.extents()[0].set_place(
            1,
            UnitPlace {
                disk: 1023,
                au: u32::MAX,
            },
        );
        assert_eq!(
            map.extents()[0].place(1),
            Some(UnitPlace {
                disk: 1023,
                au: u32::MAX
            })
        );
    }

    #[test]
    fn a_lock_waits_for_writes_and_keeps_them_out_and_lets_reads_go_on() {
        let map = map();
        assert!(map.try_enter(0, Access::Write));
        let mut locking = pin!(map.lock_writes(0));
        assert!(!is_ready(&mut locking), "a write is under way");
        assert!(!map.try_enter(0, Access::Write));
        assert!(map.try_enter(0, Access::Read));
        map.leave(0, Access::Write);
        assert!(is_ready(&mut locking));
    }

    #[test]
    fn a_place_changes_only_when_no_read_is_under_way() {
        let map = map();
        assert!(map.try_enter(0, Access::Read));
        let mut locking = pin!(async {
            let locked = map.lock_writes(0).await;
            locked.keep_reads_out().await;
            locked
        });
        assert!(!is_ready(&mut locking), "a read is under way");
        assert!(!map.try_enter(0, Access::Read));
        map.leave(0, Access::Read);
        let mut reading = pin!(map.enter(0, Access::Read));
        assert!(!is_ready(&mut reading));
        assert!(is_ready(&mut locking));
    }
}
