//! Row locks. A transaction locks a row before it first changes it; readers take none. Locks go when the transaction
//! ends, each to the transaction that has waited longest. Were it up for whoever comes first, the victim of a deadlock,
//! which tries again at once, would take it from under those it made room for. Whoever would wait for itself, by way of
//! others, is told so at once (a deadlock); who waits too long gives up.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::{Latch, Notify, timeout};

use crate::block::RowId;
use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::wait_event::{ProcessWaits, WaitEvent};

use super::wait_graph::WaitGraph;

const SHARDS: usize = 64;

struct Entry {
    owner: u64,
    /// Transactions that wait for the row, in the order in which they shall have it.
    queue: VecDeque<u64>,
    /// Where the owner's end is called out, once somebody listens.
    released: Option<Arc<Notify>>,
}

impl Entry {
    fn new(owner: u64, queue: VecDeque<u64>) -> Entry {
        Entry {
            owner,
            queue,
            released: None,
        }
    }
}

/// Another transaction has the row.
struct Held {
    holder: u64,
    /// Where the end of that transaction is called out.
    released: Arc<Notify>,
}

/// All row locks of an instance.
pub(crate) struct RowLocks {
    shards: Vec<Latch<FxHashMap<RowId, Entry>>>,
    waiting: WaitGraph,
}

impl RowLocks {
    /// No locks.
    pub(crate) fn new() -> RowLocks {
        RowLocks {
            shards: (0..SHARDS).map(|_| Latch::default()).collect(),
            waiting: WaitGraph::default(),
        }
    }

    fn shard(&self, row: RowId) -> &Latch<FxHashMap<RowId, Entry>> {
        let mixed =
            (row.address.to_u64() ^ u64::from(row.slot) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 58) as usize]
    }

    /// Locks the row for `owner` if nobody else has it; `None` when somebody has. True when it was not the owner's
    /// before.
    pub(crate) fn try_lock(&self, row: RowId, owner: u64) -> Option<bool> {
        let mut shard = self.shard(row).lock();
        match shard.get(&row) {
            None => {
                shard.insert(row, Entry::new(owner, VecDeque::new()));
                Some(true)
            }
            Some(entry) => (entry.owner == owner).then_some(false),
        }
    }

    /// Locks the row for `owner`, waiting for its holder up to the lock timeout, or not at all when that would be a
    /// deadlock. True when it was not the owner's before.
    pub(crate) async fn lock(
        &self,
        fixed: &FixedSga,
        waits: &ProcessWaits,
        row: RowId,
        owner: u64,
    ) -> Result<bool> {
        if let Some(new) = self.try_lock(row, owner) {
            return Ok(new);
        }
        let wait = waits.begin(&*fixed.env);
        let waiter = Waiter {
            locks: self,
            row,
            owner,
            locked: false,
        };
        let locked = waiter.wait(fixed).await;
        wait.end(WaitEvent::RowLockContention);
        locked.map(|()| true)
    }

    /// True when a transaction has the row locked, whoever it is.
    pub(crate) fn is_locked(&self, row: RowId) -> bool {
        self.shard(row).lock().contains_key(&row)
    }

    /// Error when a row is still locked.
    pub(crate) fn check_unused(&self) -> std::result::Result<(), String> {
        for shard in &self.shards {
            if let Some((row, entry)) = shard.lock().iter().next() {
                return Err(format!(
                    "everybody has gone, and row {row} is still locked by transaction {}",
                    entry.owner
                ));
            }
        }
        Ok(())
    }

    /// Wakes everyone who waits for a row, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        for shard in &self.shards {
            for entry in shard.lock().values() {
                if let Some(released) = &entry.released {
                    released.notify_waiters();
                }
            }
        }
    }

    /// The owner of `rows` has ended: each goes to whoever has waited longest.
    pub(crate) fn release(&self, rows: &[RowId]) {
        for row in rows {
            let mut shard = self.shard(*row).lock();
            let Some(mut entry) = shard.remove(row) else {
                continue;
            };
            if let Some(next) = entry.queue.pop_front() {
                shard.insert(*row, Entry::new(next, entry.queue));
            }
            drop(shard);
            if let Some(released) = entry.released {
                released.notify_waiters();
            }
        }
    }
}

/// A transaction that waits for a row: in the row's queue and in the graph of waits until it is dropped.
struct Waiter<'a> {
    locks: &'a RowLocks,
    row: RowId,
    owner: u64,
    locked: bool,
}

impl Waiter<'_> {
    /// Returns when the row is the transaction's.
    async fn wait(mut self, fixed: &FixedSga) -> Result<()> {
        let limit_ns = fixed.settings.lock_timeout_ns;
        let deadline_ns = fixed.env.now().saturating_add(limit_ns);
        while let Some(held) = self.lock_or_queue() {
            let mut released = std::pin::pin!(held.released.notified());
            released.as_mut().enable();
            // The holder may have ended before somebody listened: then its end is not called out here any more.
            let now = self.lock_or_queue();
            if now.is_none_or(|now| !Arc::ptr_eq(&now.released, &held.released)) {
                continue;
            }
            fixed.health.check()?;
            self.wait_for(fixed, held.holder)?;
            let rest_ns = deadline_ns.saturating_sub(fixed.env.now());
            if rest_ns == 0 || timeout(&*fixed.env, rest_ns, released).await.is_err() {
                probe::hit(Probe::LockTimeout);
                return Err(KernelError::LockTimeout {
                    row: self.row,
                    waited_ms: limit_ns / 1_000_000,
                });
            }
        }
        self.locked = true;
        Ok(())
    }

    /// Takes the row if it is free or was handed over; else makes sure of a place in its queue and says who has it.
    fn lock_or_queue(&self) -> Option<Held> {
        let mut shard = self.locks.shard(self.row).lock();
        let entry = shard
            .entry(self.row)
            .or_insert_with(|| Entry::new(self.owner, VecDeque::new()));
        if entry.owner == self.owner {
            return None;
        }
        if !entry.queue.contains(&self.owner) {
            entry.queue.push_back(self.owner);
        }
        Some(Held {
            holder: entry.owner,
            released: Arc::clone(entry.released.get_or_insert_default()),
        })
    }

    /// Enters the wait for the row's holder into the graph; error when it would never end.
    fn wait_for(&self, fixed: &FixedSga, holder: u64) -> Result<()> {
        if fixed.settings.has_planted(PlantedFault::DeadlockUnseen) {
            return Ok(());
        }
        let entered = self.locks.waiting.wait_for(self.owner, holder);
        entered.map_err(|transactions| {
            probe::hit(Probe::DeadlockBroken);
            fixed.statistics.add_deadlock();
            KernelError::Deadlock {
                row: self.row,
                transactions,
            }
        })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.locks.waiting.wait_no_longer(self.owner);
        if self.locked {
            return;
        }
        let mut shard = self.locks.shard(self.row).lock();
        let Some(entry) = shard.get_mut(&self.row) else {
            return;
        };
        entry.queue.retain(|waiter| *waiter != self.owner);
        let handed_over = entry.owner == self.owner;
        drop(shard);
        // The row came too late.
        if handed_over {
            self.locks.release(&[self.row]);
        }
    }
}
