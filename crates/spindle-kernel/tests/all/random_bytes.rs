//! Any bytes as what is read from the devices of a database: what the fuzz target does, with bytes from seeds.

#[path = "../../../../fuzz/bodies/kernel_blocks.rs"]
mod kernel_blocks;
#[path = "../../../../fuzz/bodies/mutation.rs"]
mod mutation;

#[test]
fn blocks_redo_and_control_files_are_read_or_refused() {
    mutation::each_case(&kernel_blocks::beginnings(), 40_000, kernel_blocks::run);
}
