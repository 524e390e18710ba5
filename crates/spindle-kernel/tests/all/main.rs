//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod catalogue;
mod consistent_reads;
mod crash;
mod damage;
mod drawn;
mod failures;
mod files;
mod invariants;
mod isolation;
mod joins;
mod pace;
mod plans;
mod queries;
mod random_bytes;
mod reading;
#[allow(dead_code)] // The soak shares it and uses the rest.
mod simulated;
mod space;
mod threads;
mod trees;
