//! Any bytes in the metadata of a disk group: what the fuzz target does, with bytes from seeds.

#[path = "../../../../fuzz/bodies/disk_group.rs"]
mod disk_group;
#[path = "../../../../fuzz/bodies/mutation.rs"]
mod mutation;

#[test]
fn altered_metadata_are_read_or_refused() {
    mutation::each_case(&disk_group::beginnings(), 400, disk_group::run);
}
