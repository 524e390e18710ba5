//! The memory that connections to one database share: the index of its log
//! (https://www.sqlite.org/walformat.html#the_wal_index_file_format), in regions, and eight locks. SQLite keeps it in a
//! file, for several processes; a database on a device belongs to one, and it is gone with that.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlite_plugin::flags::ShmLockMode;
use sqlite_plugin::vars;
use sqlite_plugin::vfs::VfsResult;

/// Locks that there are (SQLITE_SHM_NLOCK).
const SLOTS: usize = 8;

/// The shared memory of one database.
#[derive(Default)]
pub(super) struct SharedMemory(Mutex<State>);

#[derive(Default)]
struct State {
    /// Written by SQLite, through pointers that it keeps until it unmaps: none moves while there is a user.
    regions: Vec<Box<[AtomicU64]>>,
    users: u32,
    /// For each lock, how many share it; [`EXCLUSIVE`]: one has it alone.
    slots: [i32; SLOTS],
}

const EXCLUSIVE: i32 = -1;

/// What one connection has of it. Bits are locks.
#[derive(Default)]
pub(super) struct Share {
    is_user: bool,
    shared: u8,
    exclusive: u8,
}

impl SharedMemory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a region lies; `None` when it is not there and `extend` does not ask for it. New ones are zeros.
    ///
    /// # Errors
    /// `SQLITE_IOERR_SHMSIZE`: regions have another size.
    pub fn map(
        &self,
        share: &mut Share,
        region: usize,
        bytes: usize,
        extend: bool,
    ) -> VfsResult<Option<NonNull<u8>>> {
        let mut state = self.state();
        if !share.is_user {
            share.is_user = true;
            state.users += 1;
        }
        if !extend && region >= state.regions.len() {
            return Ok(None);
        }
        while state.regions.len() <= region {
            let words = bytes.div_ceil(size_of::<AtomicU64>());
            let zeros = (0..words).map(|_| AtomicU64::new(0));
            state.regions.push(zeros.collect());
        }
        let found = &state.regions[region];
        match size_of_val::<[AtomicU64]>(found) == bytes {
            true => Ok(NonNull::new(found.as_ptr().cast_mut().cast())),
            false => Err(vars::SQLITE_IOERR_SHMSIZE),
        }
    }

    /// Takes or gives back `count` locks from `first` on, all or none.
    ///
    /// # Errors
    /// `SQLITE_BUSY`: another connection has one of them; `SQLITE_IOERR_SHMLOCK`: there are none such.
    pub fn lock(
        &self,
        share: &mut Share,
        first: u32,
        count: u32,
        mode: ShmLockMode,
    ) -> VfsResult<()> {
        let slots = first as usize..first as usize + count as usize;
        if slots.end > SLOTS || slots.is_empty() {
            return Err(vars::SQLITE_IOERR_SHMLOCK);
        }
        let bits: u8 = slots.clone().map(|slot| 1 << slot).sum();
        let mut state = self.state();
        match mode {
            ShmLockMode::UnlockShared | ShmLockMode::UnlockExclusive => {
                release(&mut state, share, bits);
                Ok(())
            }
            ShmLockMode::LockShared => {
                let wanted = bits & !share.shared;
                let is_alone = |slot: usize| state.slots[slot] == EXCLUSIVE;
                if each(wanted).any(is_alone) {
                    return Err(vars::SQLITE_BUSY);
                }
                each(wanted).for_each(|slot| state.slots[slot] += 1);
                share.shared |= wanted;
                Ok(())
            }
            ShmLockMode::LockExclusive => {
                let wanted = bits & !share.exclusive;
                if each(wanted).any(|slot| state.slots[slot] != 0) {
                    return Err(vars::SQLITE_BUSY);
                }
                each(wanted).for_each(|slot| state.slots[slot] = EXCLUSIVE);
                share.exclusive |= wanted;
                Ok(())
            }
        }
    }

    /// A connection needs it no longer. It goes with the last one; the next connection makes it again from the log.
    pub fn unmap(&self, share: &mut Share) {
        let mut state = self.state();
        release(&mut state, share, u8::MAX);
        if std::mem::take(&mut share.is_user) {
            state.users -= 1;
            if state.users == 0 {
                state.regions.clear();
            }
        }
    }
}

/// The locks of these bits.
fn each(bits: u8) -> impl Iterator<Item = usize> {
    (0..SLOTS).filter(move |slot| bits >> slot & 1 == 1)
}

/// Gives back what a connection has of these locks.
fn release(state: &mut State, share: &mut Share, bits: u8) {
    each(bits & share.shared).for_each(|slot| state.slots[slot] -= 1);
    each(bits & share.exclusive).for_each(|slot| state.slots[slot] = 0);
    share.shared &= !bits;
    share.exclusive &= !bits;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ShmLockMode::{LockExclusive, LockShared, UnlockExclusive, UnlockShared};

    const REGION_BYTES: usize = 32 << 10;

    #[test]
    fn locks_are_shared_or_alone_and_all_or_none() {
        let memory = SharedMemory::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        memory.lock(&mut a, 3, 1, LockShared).unwrap();
        memory.lock(&mut b, 3, 1, LockShared).unwrap();
        let busy = Err(vars::SQLITE_BUSY);
        assert_eq!(memory.lock(&mut a, 2, 3, LockExclusive), busy);
        memory.lock(&mut b, 2, 1, LockExclusive).unwrap();
        assert_eq!(memory.lock(&mut a, 2, 1, LockShared), busy);
        memory.lock(&mut b, 2, 1, UnlockExclusive).unwrap();
        memory.lock(&mut a, 2, 1, LockShared).unwrap();
        memory.lock(&mut b, 3, 1, UnlockShared).unwrap();
        memory.lock(&mut a, 2, 2, UnlockShared).unwrap();
        memory.lock(&mut b, 0, 8, LockExclusive).unwrap();
        let none = Err(vars::SQLITE_IOERR_SHMLOCK);
        assert_eq!(memory.lock(&mut a, 7, 2, LockShared), none);
        assert_eq!(memory.lock(&mut a, 7, 0, LockShared), none);
    }

    #[test]
    fn a_connection_that_ends_gives_its_locks_back() {
        let memory = SharedMemory::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        memory.lock(&mut a, 0, 2, LockExclusive).unwrap();
        memory.lock(&mut a, 4, 1, LockShared).unwrap();
        memory.unmap(&mut a);
        memory.lock(&mut b, 0, 8, LockExclusive).unwrap();
    }

    #[test]
    fn regions_stay_where_they_are_until_the_last_user_leaves() {
        let memory = SharedMemory::default();
        let (mut a, mut b) = (Share::default(), Share::default());
        assert_eq!(memory.map(&mut a, 0, REGION_BYTES, false), Ok(None));
        let first = memory.map(&mut a, 0, REGION_BYTES, true).unwrap();
        assert!(first.is_some_and(|first| first.addr().get() % 8 == 0));
        for region in 1..50 {
            memory.map(&mut b, region, REGION_BYTES, true).unwrap();
        }
        assert_eq!(memory.map(&mut b, 0, REGION_BYTES, false), Ok(first));
        let other = memory.map(&mut b, 0, REGION_BYTES / 2, false);
        assert_eq!(other, Err(vars::SQLITE_IOERR_SHMSIZE));
        memory.unmap(&mut a);
        assert_eq!(memory.map(&mut b, 0, REGION_BYTES, false), Ok(first));
        memory.unmap(&mut b);
        assert_eq!(memory.map(&mut a, 0, REGION_BYTES, false), Ok(None));
    }
}
