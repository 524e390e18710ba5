//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod delayed_device;
mod disk_group;
mod planted_race;
mod random_bytes;
mod real_device;
mod real_facts;
mod real_threads;
