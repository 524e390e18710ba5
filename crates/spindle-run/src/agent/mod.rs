//! What the machine of an existing server does in a trial, seen from there: this program, brought by `ssh` for the time
//! of a run, looks with the same eyes that a trial on this machine has. [`protocol`] is what the two sides say to each
//! other, [`far_side`] the agent itself, `ssh` how it is brought there, `pipes` what goes to it and comes from it,
//! [`connection`] the run's side of it, [`clock`] how times there become times here, [`figures`] what becomes of its
//! looks. Only the runner starts agents.

pub mod clock;
pub mod connection;
mod error;
pub mod far_side;
pub mod figures;
mod pipes;
pub mod protocol;
mod ssh;

pub use connection::Agent;
pub use error::AgentError;
