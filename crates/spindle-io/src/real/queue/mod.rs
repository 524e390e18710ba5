//! I/O that is queued and handed to the kernel together, by a thread's io_uring or its older context (libaio).

pub(crate) mod aio;
mod flights;
pub(crate) mod queue_calls;
pub(crate) mod ring;
pub(crate) mod ring_config;
mod ring_refusal;
mod ring_tables;
