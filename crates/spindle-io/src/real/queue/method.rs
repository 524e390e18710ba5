//! The ways in which requests that are submitted as a batch are carried out. A [`Method`] is the word for one; a
//! [`Queue`] is one with what it needs, as a device takes it. A new way is a file in this folder and a line in the list
//! here.

use std::fmt;
use std::io;
use std::sync::Arc;

use spindle_text::words;

use super::carrier::{BatchMethod, Carrier};
use super::ring_config::RingConfig;
use super::unavailable::MethodUnavailable;
use super::{at_once, libaio, ring_calls, to_slaves};
use crate::device::{Completion, Operation};
use crate::real::file::core::Core;
use crate::real::slaves::SlavePool;

macro_rules! methods {
    ($($(#[doc = $says:literal])+ $variant:ident = $word:literal, $way:expr;)+) => {
        words! {
            /// How a process that has several blocks to read or write hands them over.
            pub enum Method {
                $($(#[doc = $says])+ $variant = $word,)+
            }
        }

        impl Method {
            fn way(self) -> &'static dyn BatchMethod {
                match self {
                    $(Method::$variant => &$way,)+
                }
            }
        }
    };
}

methods! {
    /// One by one, each waited for.
    Sync = "sync", at_once::AtOnce;
    /// Handed to I/O slaves, which work synchronously beside each other.
    Slaves = "slaves", to_slaves::ToSlaves;
    /// Submitted together through io_uring.
    Async = "async", ring_calls::ASYNC;
    /// Submitted together through the kernel's older asynchronous I/O, as Oracle and InnoDB do; buffered I/O, and
    /// direct I/O for which the file system must allocate, blocks while it is submitted.
    Libaio = "libaio", libaio::Libaio;
    /// As Oracle Disk Manager: direct and asynchronous, files created atomically and identified once for all processes,
    /// many submissions and completions in one call.
    Odm = "odm", ring_calls::ODM;
}

impl Method {
    /// Makes what it needs; `slaves` is the number of I/O slaves, where it [has some](Method::has_slaves). Errors: the
    /// system's, which may refuse a thread.
    pub fn open(self, slaves: usize) -> io::Result<Queue> {
        let carrier = self.way().open(slaves)?;
        Ok(Queue {
            method: self,
            carrier,
        })
    }

    /// Whether this system has it. Errors: why not.
    pub fn available(self) -> Result<(), MethodUnavailable> {
        self.way().available()
    }

    /// It has I/O slaves.
    pub fn has_slaves(self) -> bool {
        self.way().has_slaves()
    }

    /// Requests are under way together, and no thread of this process waits for one of them.
    pub fn is_asynchronous(self) -> bool {
        self.way().is_asynchronous()
    }

    /// It is a disk manager's: files are made by it, always direct, and identified once for all threads.
    pub fn identifies_files(self) -> bool {
        self.way().identifies_files()
    }
}

/// What a device hands its batched requests to: a [`Method`] with what it needs. Clones are the same queue.
#[derive(Clone)]
pub struct Queue {
    method: Method,
    carrier: Arc<dyn Carrier>,
}

impl Queue {
    /// One by one, each a blocking call of the caller.
    pub fn sync() -> Queue {
        Queue::carried(Method::Sync, at_once::AtOnce)
    }

    /// By these I/O slaves.
    pub fn slaves(pool: Arc<SlavePool>) -> Queue {
        Queue::carried(Method::Slaves, to_slaves::Slaves(pool))
    }

    /// By the caller's io_uring, made like this.
    pub fn uring(config: Arc<RingConfig>) -> Queue {
        Queue::carried(Method::Async, ring_calls::ASYNC.carrier(config))
    }

    /// By the kernel's older asynchronous I/O.
    pub fn libaio() -> Queue {
        Queue::carried(Method::Libaio, libaio::Libaio)
    }

    /// As a disk manager does, by the caller's io_uring, made like this.
    pub fn odm(config: Arc<RingConfig>) -> Queue {
        Queue::carried(Method::Odm, ring_calls::ODM.carrier(config))
    }

    fn carried(method: Method, carrier: impl Carrier + 'static) -> Queue {
        Queue {
            method,
            carrier: Arc::new(carrier),
        }
    }

    /// The word for it.
    pub fn method(&self) -> Method {
        self.method
    }

    /// How its rings are made, if it has some.
    pub fn ring(&self) -> Option<&Arc<RingConfig>> {
        self.carrier.ring()
    }

    /// Its I/O slaves, if it has some.
    pub(in crate::real) fn pool(&self) -> Option<&Arc<SlavePool>> {
        self.carrier.slaves()
    }

    pub(in crate::real) fn submit(
        &self,
        core: &Arc<Core>,
        offset: u64,
        operation: Operation,
        total: usize,
    ) -> Completion {
        self.carrier.submit(core, offset, operation, total)
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({})", self.method)
    }
}
