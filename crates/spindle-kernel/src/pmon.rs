//! PMON: cleans up behind sessions that ended in mid-transaction. A session that is dropped hands its transaction over;
//! PMON rolls it back and lets its row locks go, as Oracle's process monitor does for a session that died. What it
//! cannot roll back now (a block cannot be read) it tries again later; what is left when the instance stops, the next
//! start rolls back.

use std::sync::Arc;

use spindle_io::sync::{Latch, Notify, Semaphore, timeout};

use crate::error::Result;
use crate::instance::Shared;
use crate::redo::RecordBuilder;
use crate::transaction::{self, Ending, Transaction};
use crate::wait_event::ProcessWaits;

/// PMON looks around this often: what it could not roll back it tries again then.
const IDLE_NS: u64 = 3_000_000_000;

/// PMON, as others see it.
pub(crate) struct Pmon {
    abandoned: Latch<Vec<Transaction>>,
    wanted: Notify,
    /// One roll-back at a time: the process's own and those at a shutdown.
    turn: Semaphore,
}

impl Pmon {
    /// Nobody has died yet.
    pub(crate) fn new() -> Pmon {
        Pmon {
            abandoned: Latch::default(),
            wanted: Notify::new(),
            turn: Semaphore::new(1),
        }
    }

    /// Takes over the transaction of a session that is no more.
    pub(crate) fn adopt(&self, transaction: Transaction) {
        self.abandoned.lock().push(transaction);
        self.wanted.notify_one();
    }

    /// True when nothing is left that could not be rolled back.
    pub(crate) fn is_done(&self) -> bool {
        self.abandoned.lock().is_empty()
    }

    /// Wakes PMON, to learn that the instance has failed or stops.
    pub(crate) fn wake_all(&self) {
        self.wanted.notify_one();
    }
}

/// The process monitor process.
pub(crate) async fn run(shared: Arc<Shared>) {
    let waits = shared.waits.register();
    loop {
        // Whether called or due by time makes no difference.
        let _ = timeout(&*shared.env, IDLE_NS, shared.pmon.wanted.notified()).await;
        if shared.health.is_stopping() {
            return;
        }
        // Who rolls back tells nobody of a failed read: it is tried again. Anything worse fails the instance by itself.
        let _ = clean_up(&shared, &waits).await;
    }
}

/// Rolls back every transaction that was handed over. After an error those not rolled back are kept.
pub(crate) async fn clean_up(shared: &Shared, waits: &ProcessWaits) -> Result<()> {
    let pmon = &shared.pmon;
    let turn = pmon.turn.acquire().await;
    let _turn = turn.expect("the semaphore is never closed");
    let mut builder = RecordBuilder::default();
    let mut result = Ok(());
    // Taken before the loop: its latch would be held as long.
    let abandoned = std::mem::take(&mut *pmon.abandoned.lock());
    for transaction in abandoned {
        let undone = transaction::roll_back(shared, waits, &mut builder, transaction.id).await;
        match undone {
            Ok(()) => {
                transaction::forget(shared, &transaction, Ending::RolledBack);
                shared.statistics.add_rollback();
            }
            Err(error) => {
                pmon.abandoned.lock().push(transaction);
                result = result.and(Err(error));
            }
        }
    }
    result
}
