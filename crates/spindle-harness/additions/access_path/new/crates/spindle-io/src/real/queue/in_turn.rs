//! `in_turn`: one by one, each a blocking call of the caller.

use std::io;
use std::sync::Arc;

use super::carrier::{BatchMethod, Carrier};
use crate::device::{Completion, Operation};
use crate::real::file::core::Core;
use crate::real::file::transfer;

/// The way, and what carries it out.
pub(super) struct InTurn;

impl BatchMethod for InTurn {
    fn open(&self, _: usize) -> io::Result<Arc<dyn Carrier>> {
        Ok(Arc::new(InTurn))
    }
}

impl Carrier for InTurn {
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        Completion::ready(transfer::perform(core, offset, operation, total))
    }
}
