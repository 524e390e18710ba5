//! Row locks. A transaction locks a row before it first changes it; readers take none. Locks go when the transaction
//! ends, each to the transaction that has waited longest: that one is woken, and the others sleep on. If the row went
//! to the first comer, the victim of a deadlock, which tries again at once, would take it from those it made room for.
//! A transaction that would wait for itself, by way of others, is told so at once (a deadlock); one that waits too long
//! gives up.

use std::collections::VecDeque;
use std::collections::hash_map;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use spindle_io::sync::{Latch, has_planted, oneshot, timeout};

use crate::block::RowId;
use crate::error::{KernelError, Result};
use crate::fixed_sga::FixedSga;
use crate::probe::{self, Probe};
use crate::settings::PlantedFault;
use crate::wait_event::{ProcessWaits, WaitEvent};

use super::wait_graph::{Holder, WaitGraph};

const SHARDS: usize = 64;

/// Planted race: the transaction that lets a row go looks for waiters first, and then lets it go.
pub(crate) const LOOKS_THEN_LETS_GO: &str = "who waits for a row is looked up before it is let go";
/// Planted race: a transaction checks that the instance has not failed, and only then joins a row's queue.
pub(crate) const CHECKS_THEN_QUEUES: &str = "a transaction looks at the health before it queues";

struct LockEntry {
    owner: u64,
    /// Once others have waited for the row. In a box, for nearly no row is waited for.
    waiters: Option<Box<Waiters>>,
}

impl LockEntry {
    fn new(owner: u64) -> LockEntry {
        LockEntry {
            owner,
            waiters: None,
        }
    }
}

/// Who waits for a row.
struct Waiters {
    /// Transactions, in the order in which they shall have it.
    queue: VecDeque<QueuePlace>,
    /// What they wait for, in the graph of waits.
    holder: Arc<Holder>,
}

/// A transaction's place in the queue for a row, and what wakes it when the row is its own.
struct QueuePlace {
    owner: u64,
    call: oneshot::Sender<()>,
}

/// All row locks of an instance.
pub(crate) struct RowLocks {
    shards: Vec<Latch<FxHashMap<RowId, LockEntry>>>,
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

    fn shard(&self, row: RowId) -> &Latch<FxHashMap<RowId, LockEntry>> {
        let mixed =
            (row.address.to_u64() ^ u64::from(row.slot) << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 58) as usize]
    }

    /// Locks the row for `owner` if no other transaction has it; `None` when one has. True when it was not the owner's
    /// before.
    pub(crate) fn try_lock(&self, row: RowId, owner: u64) -> Option<bool> {
        let mut shard = self.shard(row).lock();
        match shard.entry(row) {
            hash_map::Entry::Vacant(free) => {
                free.insert(LockEntry::new(owner));
                Some(true)
            }
            hash_map::Entry::Occupied(held) => (held.get().owner == owner).then_some(false),
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
        let locked = Box::pin(self.wait(fixed, row, owner)).await;
        wait.end(WaitEvent::RowLockContention);
        locked.map(|()| true)
    }

    /// True when any transaction has the row locked.
    pub(crate) fn is_locked(&self, row: RowId) -> bool {
        self.shard(row).lock().contains_key(&row)
    }

    /// A row that is still locked, if there is one.
    pub(crate) fn in_use(&self) -> Option<String> {
        for shard in &self.shards {
            if let Some((row, entry)) = shard.lock().iter().next() {
                return Some(format!(
                    "all have gone, and row {row} is still locked by transaction {}",
                    entry.owner
                ));
            }
        }
        None
    }

    /// Sends everyone away who waits for a row, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        for shard in &self.shards {
            let sent_away: Vec<_> = {
                let mut shard = shard.lock();
                let entries = shard.values_mut();
                let waiters = entries.filter_map(|entry| entry.waiters.as_mut());
                waiters
                    .map(|waiters| std::mem::take(&mut waiters.queue))
                    .collect()
            };
            drop(sent_away);
        }
    }

    /// The owner of `rows` has ended: each goes to the transaction that has waited longest, and only that one is woken.
    pub(crate) fn release(&self, rows: &[RowId]) {
        for row in rows {
            if let Some(call) = self.hand_over(*row) {
                // A transaction that has gone finds the row its own when it leaves the queue, and lets it go.
                let _ = call.send(());
            }
        }
    }

    /// Gives a row to the transaction that has waited longest; what wakes it. `None` when none waits.
    fn hand_over(&self, row: RowId) -> Option<oneshot::Sender<()>> {
        if has_planted(LOOKS_THEN_LETS_GO) {
            let is_awaited = |entry: &LockEntry| {
                let waiters = entry.waiters.as_ref();
                waiters.is_some_and(|waiters| !waiters.queue.is_empty())
            };
            if !self.shard(row).lock().get(&row).is_some_and(is_awaited) {
                self.shard(row).lock().remove(&row);
                return None;
            }
        }
        let mut shard = self.shard(row).lock();
        let hash_map::Entry::Occupied(mut held) = shard.entry(row) else {
            return None;
        };
        let entry = held.get_mut();
        let waiters = entry.waiters.as_mut();
        let next = waiters.and_then(|waiters| Some((waiters.queue.pop_front()?, &waiters.holder)));
        let Some((next, holder)) = next else {
            held.remove();
            return None;
        };
        entry.owner = next.owner;
        self.waiting.hand_over(next.owner, holder);
        Some(next.call)
    }

    /// Waits for a row that another transaction has.
    async fn wait(&self, fixed: &FixedSga, row: RowId, owner: u64) -> Result<()> {
        let Some((mut waiter, called)) = self.queue(fixed, row, owner)? else {
            return Ok(());
        };
        let limit_ns = fixed.settings.instance.lock_timeout_ns;
        match timeout(&*fixed.env, limit_ns, called).await {
            Ok(Ok(())) => {
                waiter.waits = false;
                Ok(())
            }
            Ok(Err(_)) => Err(fixed.health.why()),
            Err(_) => {
                probe::hit(Probe::LockTimeout);
                Err(KernelError::LockTimeout {
                    row,
                    waited_ms: limit_ns / 1_000_000,
                })
            }
        }
    }

    /// Joins the queue for a row; `None` when the row was free meanwhile and is the owner's. Error: it would wait
    /// forever, or the instance has failed or stops.
    fn queue(
        &self,
        fixed: &FixedSga,
        row: RowId,
        owner: u64,
    ) -> Result<Option<(Waiter<'_>, oneshot::Receiver<()>)>> {
        let early = has_planted(CHECKS_THEN_QUEUES).then(|| fixed.health.check());
        let mut shard = self.shard(row).lock();
        let entry = match shard.entry(row) {
            hash_map::Entry::Vacant(free) => {
                free.insert(LockEntry::new(owner));
                return Ok(None);
            }
            hash_map::Entry::Occupied(held) => held.into_mut(),
        };
        // Under the latch: a stop of the instance empties the queues afterwards.
        early.unwrap_or_else(|| fixed.health.check())?;
        let (owner_now, waiters) = (entry.owner, &mut entry.waiters);
        let waiters = waiters.get_or_insert_with(|| {
            let holder = Arc::new(Holder::new(owner_now));
            let queue = VecDeque::new();
            Box::new(Waiters { queue, holder })
        });
        if !fixed.settings.has_planted(PlantedFault::DeadlockUnseen) {
            let entered = self.waiting.wait_for(owner, &waiters.holder);
            entered.map_err(|transactions| {
                probe::hit(Probe::DeadlockBroken);
                fixed.statistics.add_deadlock();
                KernelError::Deadlock { row, transactions }
            })?;
        }
        let (call, called) = oneshot::channel();
        waiters.queue.push_back(QueuePlace { owner, call });
        let waiter = Waiter {
            locks: self,
            row,
            owner,
            waits: true,
        };
        Ok(Some((waiter, called)))
    }
}

/// A transaction that waits for a row. Dropped while it does, it leaves the row's queue and the graph of waits.
struct Waiter<'a> {
    locks: &'a RowLocks,
    row: RowId,
    owner: u64,
    waits: bool,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if !self.waits {
            return;
        }
        self.locks.waiting.wait_no_longer(self.owner);
        let mut shard = self.locks.shard(self.row).lock();
        let Some(entry) = shard.get_mut(&self.row) else {
            return;
        };
        if let Some(waiters) = &mut entry.waiters {
            waiters.queue.retain(|place| place.owner != self.owner);
        }
        let handed_over = entry.owner == self.owner;
        drop(shard);
        // The row came too late.
        if handed_over {
            self.locks.release(&[self.row]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Weak;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use spindle_io::real::{MemoryDevice, RealEnv};
    use spindle_io::{BlockDevice, Env};

    use super::*;
    use crate::block::BlockAddress;
    use crate::fixed_sga::Waiters;
    use crate::settings::KernelSettings;
    use crate::storage::Storage;

    struct Nobody;

    impl Waiters for Nobody {
        fn wake_all(&self) {}
    }

    fn fixed_sga() -> FixedSga {
        let memory = |name| -> Arc<dyn BlockDevice> { MemoryDevice::new(name, 4096) };
        let storage = Storage {
            control: memory("control"),
            redo: vec![memory("redo")],
            undo: memory("undo"),
            data: vec![memory("data")],
            double_write: None,
            temp: Vec::new(),
        };
        let env: Arc<dyn Env> = RealEnv::new(1);
        let nobody: Weak<Nobody> = Weak::new();
        FixedSga::new(&env, &storage, &KernelSettings::default(), nobody)
    }

    fn row(slot: u16) -> RowId {
        let address = BlockAddress { file: 1, block: 1 };
        RowId { address, slot }
    }

    #[derive(Default)]
    struct Calls(AtomicU32);

    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_row_let_go_wakes_the_one_that_has_waited_longest_and_nobody_else() {
        let (fixed, locks) = (fixed_sga(), RowLocks::new());
        let waits = fixed.waits.register();
        assert_eq!(locks.try_lock(row(0), 9), Some(true));
        let calls: Vec<Arc<Calls>> = (0..5).map(|_| Arc::default()).collect();
        let mut waiting: Vec<_> = (0..5)
            .map(|owner| Box::pin(locks.lock(&fixed, &waits, row(0), owner)))
            .collect();
        let mut poll = |owner: usize| {
            let waker = Waker::from(Arc::clone(&calls[owner]));
            let polled = waiting[owner].as_mut();
            polled.poll(&mut Context::from_waker(&waker))
        };
        for owner in 0..5 {
            assert_eq!(poll(owner), Poll::Pending);
        }
        for next in 0..5 {
            locks.release(&[row(0)]);
            let called: Vec<u32> = calls
                .iter()
                .map(|calls| calls.0.load(Ordering::Relaxed))
                .collect();
            let expected: Vec<u32> = (0..5).map(|owner| u32::from(owner <= next)).collect();
            assert_eq!(called, expected);
            assert_eq!(poll(next), Poll::Ready(Ok(true)));
        }
        locks.release(&[row(0)]);
        assert_eq!(locks.in_use(), None);
    }

    #[test]
    fn a_row_goes_past_those_that_have_gone() {
        let (fixed, locks) = (fixed_sga(), RowLocks::new());
        let waits = fixed.waits.register();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(locks.try_lock(row(0), 9), Some(true));
        let mut third = pin!(locks.lock(&fixed, &waits, row(0), 3));
        {
            let mut first = pin!(locks.lock(&fixed, &waits, row(0), 1));
            let mut second = pin!(locks.lock(&fixed, &waits, row(0), 2));
            assert_eq!(first.as_mut().poll(&mut context), Poll::Pending);
            assert_eq!(second.as_mut().poll(&mut context), Poll::Pending);
            assert_eq!(third.as_mut().poll(&mut context), Poll::Pending);
            // The first has it, and does not hear of it any more.
            locks.release(&[row(0)]);
        }
        assert_eq!(third.as_mut().poll(&mut context), Poll::Ready(Ok(true)));
        assert_eq!(locks.try_lock(row(0), 4), None);
        locks.release(&[row(0)]);
        assert_eq!(locks.in_use(), None);
    }

    #[test]
    fn who_waits_behind_another_waits_for_it_when_it_has_the_row() {
        let (fixed, locks) = (fixed_sga(), RowLocks::new());
        let waits = fixed.waits.register();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(locks.try_lock(row(0), 9), Some(true));
        assert_eq!(locks.try_lock(row(1), 2), Some(true));
        let mut first = pin!(locks.lock(&fixed, &waits, row(0), 1));
        let mut second = pin!(locks.lock(&fixed, &waits, row(0), 2));
        assert_eq!(first.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(second.as_mut().poll(&mut context), Poll::Pending);
        locks.release(&[row(0)]);
        assert_eq!(first.as_mut().poll(&mut context), Poll::Ready(Ok(true)));
        let mut other = pin!(locks.lock(&fixed, &waits, row(1), 1));
        let deadlock = KernelError::Deadlock {
            row: row(1),
            transactions: vec![1, 2],
        };
        let told = other.as_mut().poll(&mut context);
        assert_eq!(told, Poll::Ready(Err(deadlock)));
    }
}
