//! The machine as results know it, from what the system said of it. Both are written in the same words; the test below
//! fails when one of them has a word more. [`super::replay`] calls it.

use spindle_result::machine as recorded;
use spindle_system::machine::Machine;

/// What results keep of a machine.
pub(super) fn recorded(machine: &Machine) -> recorded::Machine {
    let document = serde_json::to_value(machine).expect("plain data becomes JSON");
    serde_json::from_value(document).expect("results read what the system says")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use spindle_system::block_device::DiskFacts;
    use spindle_system::calibrated::CalibratedLimits;
    use spindle_system::machine::{DataPath, FileSystem};
    use spindle_system::{DeviceNumber, SystemTree};

    use super::*;

    /// A result tells a machine in the words in which the journal does, in the same order, whatever is known.
    #[test]
    fn a_machine_is_written_in_results_as_in_the_journal() {
        let tree = SystemTree::default();
        let mut machine = Machine::capture(&tree, &[Path::new("/").to_owned()]);
        let number = DeviceNumber { major: 8, minor: 1 };
        let device = |stands_on| DiskFacts {
            number,
            name: "sda1".to_owned(),
            partition_of: Some("sda".to_owned()),
            vendor: Some("ACME".to_owned()),
            model: Some("0001".to_owned()),
            size_bytes: Some(1 << 40),
            rotational: Some(false),
            scheduler: Some("none".to_owned()),
            read_ahead_kib: Some(128),
            write_cache: Some("write back".to_owned()),
            nr_requests: Some(256),
            nomerges: Some(0),
            logical_sector_bytes: Some(512),
            physical_sector_bytes: Some(4096),
            fua: Some(true),
            discard_max_bytes: Some(0),
            atomic_write_max_bytes: Some(0),
            loop_backing_file: Some("/image".to_owned()),
            loop_direct_io: Some(true),
            loop_file_device: Some("sda".to_owned()),
            stands_on,
        };
        machine.data_paths.push(DataPath {
            path: "/srv".to_owned(),
            file_system: Some(FileSystem {
                kind: "xfs".to_owned(),
                mount_point: "/srv".to_owned(),
                options: "rw,noatime".to_owned(),
                source: "/dev/sda1".to_owned(),
                device: number,
                size_bytes: Some(1 << 40),
                free_bytes: Some(1 << 30),
            }),
            device: Some(device(vec![device(Vec::new())])),
            device_unknown_because: Some("it is not".to_owned()),
            calibrated: Some(CalibratedLimits {
                at: machine.captured_at,
                iops: 1e4,
                mb_per_s: Some(1e3),
                latency_us: Some(80.0),
                write_percent: 30,
            }),
        });
        let noted = serde_json::to_string(&machine).unwrap();
        let recorded = recorded(&machine);
        assert_eq!(serde_json::to_string(&recorded).unwrap(), noted);
        let again: recorded::Machine = serde_json::from_str(&noted).unwrap();
        assert_eq!(again, recorded);
    }
}
