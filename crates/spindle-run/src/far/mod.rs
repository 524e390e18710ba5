//! This program on another machine, for as long as this side listens: brought there and started by `ssh`, talked to by
//! the pipes of that one connection, with nothing left of it however it ends. What it is there for, its own words say:
//! [`protocol`] has what is said besides, [`machine`] this side, [`other_side`] that one, `ssh` how it is brought
//! there, `pipes` what goes to it and comes from it, [`clock`] how times there become times here. Agents and load
//! machines are made of it.

pub mod clock;
mod error;
pub mod machine;
pub mod other_side;
mod pipes;
pub mod protocol;
mod ssh;

pub use error::FarError;
pub use machine::FarMachine;
pub use ssh::Way;
