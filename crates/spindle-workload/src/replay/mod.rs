//! Workloads that were recorded: what each session of a server did, in its order and at its time. `recording` is the
//! file, `lanes` deals sessions out to clients, `inlined` puts parameters into a text, `transaction` carries one out,
//! and `workload` is the kind of workload that the experiment file names. `spindle import` writes such files.

mod inlined;
mod lanes;
pub mod recording;
#[cfg(test)]
mod tests;
mod transaction;
mod workload;

pub use inlined::inlined;
pub use lanes::clients_at_once;
pub use workload::{ReplaySettings, Times};
