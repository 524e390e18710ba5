//! `libaio`: as `async`, by the kernel's older asynchronous I/O, which Oracle and InnoDB use; what is buffered, or has
//! to be allocated, blocks at submission.

use std::io;
use std::sync::Arc;

use super::aio;
use super::carrier::{BatchMethod, Carrier};
use super::unavailable::MethodUnavailable;
use crate::device::{Completion, Operation};
use crate::real::facts;
use crate::real::file::core::Core;

/// The way, and what carries it out: a context belongs to its thread.
pub(super) struct Libaio;

impl BatchMethod for Libaio {
    fn open(&self, _: usize) -> io::Result<Arc<dyn Carrier>> {
        Ok(Arc::new(Libaio))
    }

    fn available(&self) -> Result<(), MethodUnavailable> {
        facts::libaio_available().map_err(MethodUnavailable::NoAio)
    }

    fn is_asynchronous(&self) -> bool {
        true
    }
}

impl Carrier for Libaio {
    fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        aio::submit(core, offset, operation, total)
    }
}
