//! What a type can forbid needs no `unreachable!`: each that is left is listed, with what makes it impossible.

use std::collections::BTreeMap;

use crate::sources::{code, product};

/// File, how many, and why no type forbids it.
const ALLOWED: [(&str, usize, &str); 12] = [
    (
        "spindle-calibrate/src/unit.rs",
        1,
        "arithmetic of the same function",
    ),
    (
        "spindle-experiment/src/reader.rs",
        1,
        "TOML: a document is a table, and keys are set in nodes",
    ),
    (
        "spindle-io/src/device.rs",
        2,
        "a device gives back what was submitted; an I/O that has ended has no follower",
    ),
    (
        "spindle-io/src/disk_group/file/mirrored_write.rs",
        1,
        "its caller passes on writes only, whole",
    ),
    (
        "spindle-io/src/disk_group/file/pieces.rs",
        1,
        "flushes go to disks, not to extents",
    ),
    (
        "spindle-kernel/src/processes/dbwr.rs",
        1,
        "a device gives back what was submitted",
    ),
    (
        "spindle-kernel/src/temp/run.rs",
        1,
        "every block of a run has a checksum",
    ),
    (
        "spindle-workload/src/script/program.rs",
        1,
        "places that the same reader noted",
    ),
    (
        "spindle-workload/src/sql/tpcc/terms.rs",
        1,
        "arithmetic of the same function",
    ),
    (
        "spindle-workload/src/sql/tpch/in_plans/tables.rs",
        1,
        "values are the generators'",
    ),
    (
        "spindle/src/cli/calibrate_layouts.rs",
        1,
        "layouts hand disks over; the runner makes groups of them",
    ),
    (
        "spindle-workload/src/sql/tpch/queries/mod.rs",
        1,
        "texts of the same folder, and a test writes all",
    ),
];

#[test]
fn only_what_no_type_forbids_is_called_unreachable() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for source in product() {
        let count = code(&source.text).matches("unreachable!").count();
        if count > 0 {
            let path = source.path.trim_start_matches("crates/").to_owned();
            found.insert(path, count);
        }
    }
    let allowed = ALLOWED.map(|(path, count, _)| (path.to_owned(), count));
    assert_eq!(
        found,
        BTreeMap::from(allowed),
        "let a type forbid it, or say here why none does"
    );
}
