//! What lies beneath the devices of layouts, where it weakens the answer: loop devices over files, whose page cache
//! answers instead of a device, or which share one disk.

use std::collections::{BTreeMap, BTreeSet};

use super::machine::DiskFacts;
use super::wording::listed;
use super::{Case, RunResult};

/// Loop devices that read and write their files through the page cache.
pub(super) fn page_cache(result: &RunResult) -> Option<String> {
    let through_cache = loops(result).filter(|(_, device)| device.loop_direct_io == Some(false));
    let (layouts, devices): (Vec<&str>, BTreeSet<&str>) = through_cache
        .map(|(case, device)| (case.id.layout.as_str(), device.name.as_str()))
        .unzip();
    let (first, layouts) = (devices.first()?, once_each(layouts));
    let lie = if layouts.len() == 1 { "lies" } else { "lie" };
    let devices_are = match devices.len() {
        1 => format!("a loop device ({first}) whose file is"),
        _ => format!("loop devices ({}) whose files are", joined(&devices)),
    };
    Some(format!(
        "{} {lie} on {devices_are} not opened with direct I/O. So the machine's page cache answers reads beneath them, \
         whatever the layout asks for. Attach them with `losetup --direct-io=on`, and run again.",
        listed(&layouts)
    ))
}

/// Several loop devices whose files lie on one disk.
pub(super) fn one_disk(result: &RunResult) -> Option<String> {
    let mut disks: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, device) in loops(result) {
        if let Some(disk) = &device.loop_file_device {
            disks.entry(disk).or_default().insert(&device.name);
        }
    }
    let (disk, devices) = disks.into_iter().find(|(_, devices)| devices.len() > 1)?;
    Some(format!(
        "The files of {} lie on one disk ({disk}). The run compares what layouts make of it, and shows no difference \
         between devices.",
        joined(&devices)
    ))
}

/// Every case that is compared, with the loop device that its files lie on.
fn loops(result: &RunResult) -> impl Iterator<Item = (&Case, &DiskFacts)> {
    let compared = result.cases.iter().filter(|case| case.is_compared());
    compared.filter_map(|case| {
        let place = result.place_of(result.layout_of(case)?)?;
        let device = place.device.as_ref()?;
        device.loop_backing_file.as_ref()?;
        Some((case, device))
    })
}

fn once_each(names: Vec<&str>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let mut names = names;
    names.retain(|name| seen.insert(*name));
    names
}

fn joined(names: &BTreeSet<&str>) -> String {
    listed(&names.iter().copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::machine::{DataPath, Machine};
    use super::super::{build, sample};
    use super::*;

    /// Two layouts in directories on a loop device each.
    fn result(direct_io: bool, disks: [&str; 2]) -> RunResult {
        let mut record = sample::record(&[("a, 1", &[100.0; 3]), ("b", &[90.0; 3])]);
        record.layouts[0].path = "mnt/a".to_owned();
        record.layouts[1].path = "/srv/mnt/b".to_owned();
        let place = |(index, disk): (usize, &str)| DataPath {
            path: ["/srv/mnt/a", "/srv/mnt/b"][index].to_owned(),
            device: Some(DiskFacts {
                name: format!("loop{index}"),
                loop_backing_file: Some("/image".to_owned()),
                loop_direct_io: Some(direct_io),
                loop_file_device: Some(disk.to_owned()),
                ..DiskFacts::default()
            }),
            ..DataPath::default()
        };
        record.machine = Some(Machine {
            data_paths: disks.into_iter().enumerate().map(place).collect(),
            ..Machine::default()
        });
        build(&record).unwrap()
    }

    #[test]
    fn a_page_cache_beneath_loop_devices_is_warned_of() {
        let told = page_cache(&result(false, ["vda", "vdb"])).expect("told");
        let begin = "\"a, 1\" and b lie on loop devices (loop0 and loop1) whose files are not opened with direct I/O.";
        assert!(told.starts_with(begin), "{told}");
        assert_eq!(page_cache(&result(true, ["vda", "vdb"])), None);
    }

    #[test]
    fn loop_devices_on_one_disk_are_warned_of() {
        let told = one_disk(&result(true, ["vda", "vda"])).expect("told");
        let begin = "The files of loop0 and loop1 lie on one disk (vda).";
        assert!(told.starts_with(begin), "{told}");
        assert_eq!(one_disk(&result(true, ["vda", "vdb"])), None);
        let warnings = result(false, ["vda", "vda"]).warnings;
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}
