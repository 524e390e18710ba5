//! Row locks and the last committed version of locked rows. A transaction locks a row before it first changes it and
//! leaves the row's bytes as they were beside the lock, where readers find them; locks go when the transaction ends.
//! A session that waits too long gives up (deadlocks are broken by that timeout).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::{Latch, Notify, timeout};

use crate::block::RowId;
use crate::block::heap::RowKind;
use crate::error::{KernelError, Result};
use crate::instance::Shared;
use crate::probe::{self, Probe};
use crate::wait_event::{ProcessWaits, WaitEvent};

const SHARDS: usize = 64;

struct Entry {
    owner: u64,
    /// The row before the owner's first change, once there was one: its bytes, or that there was no row.
    before: Option<Option<(RowKind, Box<[u8]>)>>,
    waiters: Option<Arc<Notify>>,
}

/// All row locks of an instance.
pub(crate) struct RowLocks {
    shards: Vec<Latch<FxHashMap<RowId, Entry>>>,
}

impl RowLocks {
    /// No locks.
    pub(crate) fn new() -> RowLocks {
        RowLocks {
            shards: (0..SHARDS).map(|_| Latch::default()).collect(),
        }
    }

    fn shard(&self, row: RowId) -> &Latch<FxHashMap<RowId, Entry>> {
        let mixed =
            (row.address.to_u64() ^ u64::from(row.slot) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 58) as usize]
    }

    /// Locks the row for `owner` if nobody else has it. True when it was not the owner's before; `Err` holds the waiting
    /// place.
    pub(crate) fn try_lock(
        &self,
        row: RowId,
        owner: u64,
    ) -> std::result::Result<bool, Arc<Notify>> {
        let mut shard = self.shard(row).lock();
        match shard.get_mut(&row) {
            None => {
                shard.insert(
                    row,
                    Entry {
                        owner,
                        before: None,
                        waiters: None,
                    },
                );
                Ok(true)
            }
            Some(entry) if entry.owner == owner => Ok(false),
            Some(entry) => Err(Arc::clone(entry.waiters.get_or_insert_with(Arc::default))),
        }
    }

    /// Locks the row for `owner`, waiting for its holder up to the lock timeout.
    pub(crate) async fn lock(
        &self,
        shared: &Shared,
        waits: &ProcessWaits,
        row: RowId,
        owner: u64,
    ) -> Result<bool> {
        let mut holder = match self.try_lock(row, owner) {
            Ok(new) => return Ok(new),
            Err(holder) => Some(holder),
        };
        let began_ns = shared.env.now();
        let limit_ns = shared.settings.lock_timeout_ns;
        let locked = loop {
            let Some(waiting) = holder.take() else {
                break Ok(true);
            };
            let mut released = std::pin::pin!(waiting.notified());
            released.as_mut().enable();
            // The holder may have ended since.
            match self.try_lock(row, owner) {
                Ok(_) => break Ok(true),
                Err(again) => {
                    // Another holder by now, whose waiting place is another: nobody will call at this one.
                    let is_other = !Arc::ptr_eq(&again, &waiting);
                    holder = Some(again);
                    if is_other {
                        continue;
                    }
                }
            }
            shared.health.check()?;
            let waited_ns = shared.env.now() - began_ns;
            let rest_ns = limit_ns.saturating_sub(waited_ns);
            if rest_ns == 0 || timeout(&*shared.env, rest_ns, released).await.is_err() {
                probe::hit(Probe::LockTimeout);
                break Err(KernelError::LockTimeout {
                    row,
                    waited_ms: limit_ns / 1_000_000,
                });
            }
        };
        waits.add(WaitEvent::RowLockContention, shared.env.now() - began_ns);
        locked
    }

    /// True when a transaction has the row locked, whoever it is.
    pub(crate) fn is_locked(&self, row: RowId) -> bool {
        self.shard(row).lock().contains_key(&row)
    }

    /// Leaves the committed version for readers, at the owner's first change. The block is held exclusively.
    pub(crate) fn keep_before(&self, row: RowId, before: Option<(RowKind, &[u8])>) {
        let mut shard = self.shard(row).lock();
        let entry = shard
            .get_mut(&row)
            .expect("a row is locked before it is changed");
        if entry.before.is_none() {
            entry.before = Some(before.map(|(kind, bytes)| (kind, Box::from(bytes))));
        }
    }

    /// Calls `read` with the last committed version when another transaction has changed the row; else gives `read` back.
    /// The block is held shared.
    pub(crate) fn read_committed<T, R: FnOnce(Option<(RowKind, &[u8])>) -> T>(
        &self,
        row: RowId,
        reader: Option<u64>,
        read: R,
    ) -> std::result::Result<T, R> {
        let shard = self.shard(row).lock();
        match shard.get(&row) {
            Some(Entry {
                owner,
                before: Some(before),
                ..
            }) if Some(*owner) != reader => {
                Ok(read(before.as_ref().map(|(kind, bytes)| (*kind, &**bytes))))
            }
            _ => Err(read),
        }
    }

    /// Wakes everyone who waits for a row, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        for shard in &self.shards {
            for entry in shard.lock().values() {
                if let Some(waiters) = &entry.waiters {
                    waiters.notify_waiters();
                }
            }
        }
    }

    /// The owner of `rows` has ended.
    pub(crate) fn release(&self, rows: &[RowId]) {
        for row in rows {
            let entry = self.shard(*row).lock().remove(row);
            if let Some(waiters) = entry.and_then(|entry| entry.waiters) {
                waiters.notify_waiters();
            }
        }
    }
}
