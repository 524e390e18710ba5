//! Any bytes on a device before the guard, and as a log of writes: what the fuzz targets do, with bytes from seeds.

#[path = "../../../../fuzz/bodies/guard.rs"]
mod guard;
#[path = "../../../../fuzz/bodies/mutation.rs"]
mod mutation;
#[path = "../../../../fuzz/bodies/write_log.rs"]
mod write_log;

#[test]
fn a_device_that_holds_anything_is_never_taken_for_empty() {
    if spindle_layout::tool::find("blkid").is_none() {
        spindle_harness::skip("the guard before random bytes needs blkid (package util-linux)");
        return;
    }
    mutation::each_case(&guard::beginnings(), 100, guard::run);
}

#[test]
fn a_log_of_writes_is_read_or_refused() {
    mutation::each_case(&write_log::beginnings(), 20_000, write_log::run);
}
