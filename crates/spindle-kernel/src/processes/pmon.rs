//! PMON: cleans up behind sessions that ended in mid-transaction. A session that is dropped hands its transaction over;
//! PMON rolls it back and lets its row locks go, as Oracle's process monitor does for a session that died. What it
//! cannot roll back now (a block cannot be read) it tries again later; what is left when the instance stops, the next
//! start rolls back.

use std::sync::Arc;

use spindle_io::sync::timeout;

use crate::change::roll_back::roll_back;
use crate::change::transaction::forget;
use crate::error::Result;
use crate::log::redo::RecordBuilder;
use crate::sga::Sga;
use crate::transaction::Ending;
use crate::wait_event::ProcessWaits;

/// PMON looks around this often: what it could not roll back it tries again then.
const IDLE_NS: u64 = 3_000_000_000;

/// The process monitor process.
pub(crate) async fn run(sga: Arc<Sga>) {
    let waits = sga.waits.register();
    loop {
        // Whether called or due by time makes no difference.
        let _ = timeout(&*sga.env, IDLE_NS, sga.abandoned.wanted.notified()).await;
        if sga.health.is_stopping() {
            return;
        }
        // A failed read in a roll-back is not reported: it is tried again. Anything worse fails the instance by itself.
        let _ = clean_up(&sga, &waits).await;
    }
}

/// Rolls back every transaction that was handed over. After an error those not rolled back are kept.
pub(crate) async fn clean_up(sga: &Sga, waits: &ProcessWaits) -> Result<()> {
    let left = &sga.abandoned;
    let turn = left.turn.acquire().await;
    let _turn = turn.expect("the semaphore is never closed");
    let mut builder = RecordBuilder::default();
    let mut result = Ok(());
    // Taken before the loop: its latch would be held as long.
    let abandoned = std::mem::take(&mut *left.transactions.lock());
    for transaction in abandoned {
        let undone = roll_back(sga, waits, &mut builder, transaction.id).await;
        match undone {
            Ok(()) => {
                forget(sga, &transaction, Ending::RolledBack);
                sga.statistics.add_rollback();
            }
            Err(error) => {
                left.transactions.lock().push(transaction);
                result = result.and(Err(error));
            }
        }
    }
    result
}
