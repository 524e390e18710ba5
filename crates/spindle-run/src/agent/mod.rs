//! What the machine of an existing server does in a trial, seen from there: this program, brought by `ssh` for the time
//! of a run ([`crate::far`]), looks with the same eyes that a trial on this machine has. [`protocol`] is what the two
//! sides say to each other, [`far_side`] the agent itself, [`connection`] the run's side of it, [`figures`] what
//! becomes of its looks. Only the runner starts agents.

pub mod connection;
pub mod far_side;
pub mod figures;
pub mod protocol;

pub use connection::Agent;
