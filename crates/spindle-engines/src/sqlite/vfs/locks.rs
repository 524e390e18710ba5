//! The locks of a database file among this process's connections: SQLite's five levels
//! (https://www.sqlite.org/lockingv3.html#locking), of which `Unlocked` is none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlite_plugin::flags::LockLevel;
use sqlite_plugin::vars;
use sqlite_plugin::vfs::VfsResult;

/// The locks of one database.
#[derive(Default)]
pub(super) struct Locks {
    state: Mutex<State>,
    /// Planted fault: every request for a lock is granted.
    #[cfg(test)]
    pub lock_nobody_out: std::sync::atomic::AtomicBool,
}

#[derive(Default)]
struct State {
    /// Connections that hold a lock of any level.
    holders: u32,
    /// The one connection whose lock is above `Shared`.
    writer: Option<(u64, LockLevel)>,
}

/// The lock of one connection.
pub(super) struct Held {
    /// Which connection: no other of the database has the number.
    pub connection: u64,
    pub level: LockLevel,
}

impl Locks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn locks_nobody_out(&self) -> bool {
        self.lock_nobody_out
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    #[cfg(not(test))]
    fn locks_nobody_out(&self) -> bool {
        false
    }

    /// Raises a lock to this level.
    ///
    /// # Errors
    /// `SQLITE_BUSY`: another's is in the way. A connection that asked for `Exclusive` may then hold `Pending`, which
    /// admits no new readers.
    pub fn lock(&self, held: &mut Held, wanted: LockLevel) -> VfsResult<()> {
        if wanted <= held.level {
            return Ok(());
        }
        if self.locks_nobody_out() {
            held.level = wanted;
            return Ok(());
        }
        let mut state = self.state();
        let other = state
            .writer
            .filter(|(writer, _)| *writer != held.connection);
        if wanted == LockLevel::Shared {
            if other.is_some_and(|(_, level)| level >= LockLevel::Pending) {
                return Err(vars::SQLITE_BUSY);
            }
            state.holders += 1;
            held.level = LockLevel::Shared;
            return Ok(());
        }
        if other.is_some() {
            return Err(vars::SQLITE_BUSY);
        }
        let must_wait = wanted == LockLevel::Exclusive && state.holders > 1;
        held.level = match must_wait {
            true => LockLevel::Pending,
            false => wanted,
        };
        state.writer = Some((held.connection, held.level));
        match must_wait {
            true => Err(vars::SQLITE_BUSY),
            false => Ok(()),
        }
    }

    /// Lowers a lock to `Shared`, or gives it up.
    pub fn unlock(&self, held: &mut Held, wanted: LockLevel) {
        if wanted >= held.level {
            return;
        }
        if !self.locks_nobody_out() {
            let mut state = self.state();
            state.writer = state
                .writer
                .filter(|(writer, _)| *writer != held.connection);
            if wanted == LockLevel::Unlocked {
                state.holders -= 1;
            }
        }
        held.level = wanted;
    }

    /// Whether some connection is about to write, or writes.
    pub fn is_reserved(&self) -> bool {
        self.state().writer.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockLevel::{Exclusive, Pending, Reserved, Shared, Unlocked};

    fn three() -> (Locks, [Held; 3]) {
        let held = [0, 1, 2].map(|connection| Held {
            connection,
            level: Unlocked,
        });
        (Locks::default(), held)
    }

    #[test]
    fn many_read_and_one_is_about_to_write() {
        let (locks, [mut a, mut b, mut c]) = three();
        assert!(!locks.is_reserved());
        locks.lock(&mut a, Shared).unwrap();
        locks.lock(&mut b, Shared).unwrap();
        locks.lock(&mut a, Reserved).unwrap();
        assert!(locks.is_reserved());
        assert_eq!(locks.lock(&mut b, Reserved), Err(vars::SQLITE_BUSY));
        assert_eq!(b.level, Shared);
        locks.lock(&mut c, Shared).unwrap();
        locks.unlock(&mut a, Shared);
        assert!(!locks.is_reserved());
        locks.lock(&mut b, Reserved).unwrap();
    }

    #[test]
    fn a_writer_waits_for_readers_and_lets_no_new_ones_in() {
        let (locks, [mut a, mut b, mut c]) = three();
        locks.lock(&mut a, Shared).unwrap();
        locks.lock(&mut b, Shared).unwrap();
        locks.lock(&mut a, Reserved).unwrap();
        assert_eq!(locks.lock(&mut a, Exclusive), Err(vars::SQLITE_BUSY));
        assert_eq!(a.level, Pending);
        assert_eq!(locks.lock(&mut c, Shared), Err(vars::SQLITE_BUSY));
        assert_eq!(locks.lock(&mut b, Exclusive), Err(vars::SQLITE_BUSY));
        locks.unlock(&mut b, Unlocked);
        locks.lock(&mut a, Exclusive).unwrap();
        assert_eq!(locks.lock(&mut c, Shared), Err(vars::SQLITE_BUSY));
        locks.unlock(&mut a, Unlocked);
        locks.lock(&mut c, Shared).unwrap();
    }

    #[test]
    fn a_reader_that_finds_a_journal_writes_at_once() {
        let (locks, [mut a, mut b, _]) = three();
        locks.lock(&mut a, Shared).unwrap();
        locks.lock(&mut a, Exclusive).unwrap();
        assert_eq!(locks.lock(&mut b, Shared), Err(vars::SQLITE_BUSY));
        locks.unlock(&mut a, Shared);
        locks.lock(&mut b, Shared).unwrap();
    }

    #[test]
    fn what_is_held_already_is_no_question() {
        let (locks, [mut a, mut b, _]) = three();
        locks.lock(&mut a, Shared).unwrap();
        locks.lock(&mut a, Shared).unwrap();
        locks.unlock(&mut a, Unlocked);
        locks.unlock(&mut a, Unlocked);
        locks.lock(&mut b, Shared).unwrap();
        locks.lock(&mut b, Exclusive).unwrap();
    }
}
