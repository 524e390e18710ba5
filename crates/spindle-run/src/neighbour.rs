//! Who else used the devices of a case during a trial. Programs on the machine of an existing server are not looked at:
//! where its files are is not known here.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use spindle_result::Neighbour;
use spindle_system::SystemTree;
use spindle_system::neighbours::{OtherPrograms, disks_beneath};
use spindle_system::processes::program_of;
use spindle_text::plain;

use crate::trial::protocol::{TrialDatabase, file_paths};

/// What other programs have done until now; those that this run started are none.
pub fn others() -> OtherPrograms {
    OtherPrograms::look(&SystemTree::default(), std::process::id())
}

/// The program that used the devices of a database most since an earlier look.
pub fn since(earlier: &OtherPrograms, database: &TrialDatabase) -> Option<Neighbour> {
    let tree = SystemTree::default();
    let places = one_of_each_device(database);
    if places.is_empty() {
        return None;
    }
    let disks = places
        .iter()
        .flat_map(|place| disks_beneath(&tree, place))
        .collect();
    let busiest = others().busiest_on(&disks, earlier, &tree)?;
    let program = program_of(&tree, busiest.process_id).unwrap_or_default();
    let program = String::from_utf8_lossy(&program);
    Some(Neighbour {
        program: plain::one_line(&program).into_owned(),
        process_id: busiest.process_id,
        read_bytes_per_s: busiest.read_bytes_per_s,
        written_bytes_per_s: busiest.written_bytes_per_s,
    })
}

/// A file of the database on each of its file systems, and each of its devices.
fn one_of_each_device(database: &TrialDatabase) -> Vec<PathBuf> {
    let known = file_paths(database).into_iter().filter_map(|path| {
        let found = std::fs::metadata(&path).ok()?;
        Some(((found.dev(), found.rdev()), path))
    });
    let places: BTreeMap<_, _> = known.collect();
    places.into_values().collect()
}
