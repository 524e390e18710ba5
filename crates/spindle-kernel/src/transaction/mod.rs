//! What an instance remembers of its transactions, in memory: which ones run, which rows and undo blocks each has,
//! which waits for which, what was left behind. How a transaction begins, changes blocks and ends is in
//! [`crate::change`].

pub(crate) mod abandoned;
pub(crate) mod row_lock;
pub(crate) mod statements;
pub(crate) mod undo_record;
pub(crate) mod undo_segment;
pub(crate) mod visibility;
pub(crate) mod wait_graph;

use crate::block::{BlockAddress, RowId};
use crate::error::{KernelError, Result};

/// A running transaction.
pub(crate) struct Transaction {
    /// Slot and wrap number in one: never the same twice.
    pub(crate) id: u64,
    /// Rows it has locked.
    pub(crate) locks: Vec<RowId>,
    /// A roll-back has begun, or a change of several steps has failed halfway: all that can be done is to roll it
    /// back.
    pub(crate) rolling_back: bool,
    /// Undo blocks it has written to, the present one last.
    pub(crate) touched: Vec<BlockAddress>,
    /// Bytes left in the present one.
    pub(crate) undo_room: usize,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Committed,
    RolledBack,
}

impl Transaction {
    /// Error when a roll-back has begun and has not come to its end.
    pub(crate) fn check_not_rolling_back(&self) -> Result<()> {
        if self.rolling_back {
            Err(KernelError::RollBackUnfinished)
        } else {
            Ok(())
        }
    }

    /// The undo block it writes to.
    pub(crate) fn undo_block(&self) -> BlockAddress {
        *self
            .touched
            .last()
            .expect("a transaction has an undo block from its beginning")
    }
}

/// Slot and wrap number of a transaction.
pub(crate) fn slot_of(id: u64) -> (usize, u32) {
    ((id >> 32) as usize, id as u32)
}

/// Names the transaction of a slot and wrap number.
pub(crate) fn id_of(slot: usize, wrap: u32) -> u64 {
    (slot as u64) << 32 | u64::from(wrap)
}
