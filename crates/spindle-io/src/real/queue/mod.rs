//! How batched requests are carried out, a file for each [`Method`](method::Method); beneath them, I/O that is queued
//! and handed to the kernel together, by a thread's io_uring or its older context (libaio).

pub(crate) mod aio;
mod at_once;
mod carrier;
mod flights;
mod libaio;
pub(crate) mod method;
pub(crate) mod queue_calls;
pub(crate) mod ring;
mod ring_calls;
pub(crate) mod ring_config;
pub(crate) mod ring_refusal;
mod ring_tables;
mod to_slaves;
pub(crate) mod unavailable;
