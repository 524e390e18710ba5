//! The guard before machines that are described in `fixtures.txt`, and before tables of random bytes.

mod fixtures;
mod machine;
mod random;
mod stacks;
