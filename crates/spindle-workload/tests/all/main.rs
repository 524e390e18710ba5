//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod capacity;
mod clients;
mod deferred;
mod open_loop;
mod starving;
