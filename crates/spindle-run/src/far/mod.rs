//! This program on another machine, for as long as this side listens: brought there and started by `ssh`, talked to by
//! the pipes of that one connection, with nothing left of it however it ends. Each use has its own messages;
//! [`protocol`] has the common ones. [`machine`] is this side, [`other_side`] that one. `ssh` brings the program there,
//! `pipes` carries what it is sent and what it says, [`clock`] converts times there to times here. Agents and load
//! machines are built on it.

pub mod clock;
mod error;
pub mod machine;
pub mod other_side;
mod pipes;
pub mod protocol;
mod ssh;

pub use error::FarError;
pub use machine::FarMachine;
pub use ssh::MachineAccess;
