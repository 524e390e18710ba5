//! The tests of this crate that need more than one of its modules, in one program: it is built and linked once.

mod data_directory;
mod guard;
mod known_device;
mod provision;
mod random_bytes;
mod restore;
mod server_in_group;
mod server_on_raw;
mod volumes;
