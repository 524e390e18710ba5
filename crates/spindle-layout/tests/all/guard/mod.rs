//! The guard before machines that are described in `fixtures.txt`, before drawn stacks of devices, and before tables of
//! random bytes.

#[path = "../../../../../fuzz/bodies/stacks.rs"]
mod drawn_stacks;
mod fixtures;
mod machine;
mod random;
mod stacks;
