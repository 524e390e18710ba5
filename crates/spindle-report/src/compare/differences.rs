//! What differs between two runs apart from their figures: the machine and its settings, and what the experiments ask
//! for. Everything that a run notes counts, unless it is named here as something that may differ.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use super::ComparedRun;
use crate::facts::{Fact, facts, facts_of_machine};
use spindle_result::machine::{Busy, DataPath, DiskFacts, FileSystem, Machine};
use spindle_result::{Layout, RunResult};

/// A setting that is not the same in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which, as a path into `machine.json` or `experiment.json`.
    pub setting: String,
    /// In the first run.
    pub before: String,
    /// In the other.
    pub after: String,
    /// The runs in which it is so, where a side has several; empty for one run beside another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<String>,
}

/// Where the system has its device nodes.
const DEVICES: &str = "/dev";
/// Options of a mount whose values are dealt out when something is mounted or made, or are places: numbers of
/// subvolumes, directories of containers, open files and processes.
const FREE_OPTIONS: [&str; 8] = [
    "subvolid", "subvol", "lowerdir", "upperdir", "workdir", "fd", "pgrp", "pipe_ino",
];

/// Two memories that differ by less than this are of one size: kernels keep a little more or less for themselves.
const MEMORY_TOLERANCE: f64 = 0.01;

/// What `differs` between the first of all runs and each other one, on either side.
pub(crate) fn of_all(
    before: &[ComparedRun<'_>],
    after: &[ComparedRun<'_>],
    differs: impl Fn(&RunResult, &RunResult) -> Vec<Difference>,
) -> Vec<Difference> {
    let others: Vec<&ComparedRun<'_>> = before.iter().skip(1).chain(after).collect();
    let mut all: Vec<Difference> = Vec::new();
    for other in &others {
        let run = (others.len() > 1).then(|| other.name.to_owned());
        for mut one in differs(before[0].result, other.result) {
            let known = all.iter_mut().find(|known| {
                (&known.setting, &known.before, &known.after)
                    == (&one.setting, &one.before, &one.after)
            });
            match known {
                Some(known) => known.runs.extend(run.clone()),
                None => {
                    one.runs.extend(run.clone());
                    all.push(one);
                }
            }
        }
    }
    all
}

/// What makes a machine, with its settings, another one than others.
pub(crate) fn lasting_facts(result: &RunResult) -> BTreeMap<String, String> {
    let machine = result.machine.as_ref().map(lasting_of_machine);
    settings(facts_of_machine(machine.as_ref()))
}

/// A machine without what may differ: moments, loads, names and numbers that a boot or a run deals out, places, and
/// what was measured of storage.
fn lasting_of_machine(machine: &Machine) -> Machine {
    let places = machine.data_paths.iter();
    Machine {
        captured_at: String::new(),
        load: Busy::default(),
        data_paths: places.map(lasting_of_place).collect(),
        ..machine.clone()
    }
}

fn lasting_of_place(place: &DataPath) -> DataPath {
    let of_file_system = |files: &FileSystem| FileSystem {
        mount_point: String::new(),
        source: String::new(),
        device: String::new(),
        free_bytes: None,
        ..files.clone()
    };
    DataPath {
        file_system: place.file_system.as_ref().map(of_file_system),
        device: place.device.as_ref().map(lasting_of_device),
        ..DataPath::default()
    }
}

fn lasting_of_device(device: &DiskFacts) -> DiskFacts {
    DiskFacts {
        number: String::new(),
        name: String::new(),
        partition_of: None,
        loop_backing_file: None,
        loop_file_device: None,
        stands_on: device.stands_on.iter().map(lasting_of_device).collect(),
        ..device.clone()
    }
}

/// What differs in the machines and their settings.
pub(crate) fn of_machines(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let of = |result: &RunResult, other: &RunResult| {
        let machine = result.machine.as_ref()?;
        let places = machine.data_paths.iter();
        let shared = places.filter(|place| !is_of_others_only(result, other, place));
        Some(lasting_of_machine(&Machine {
            data_paths: shared.cloned().collect(),
            ..machine.clone()
        }))
    };
    let (mut before, after) = (of(a, b), of(b, a));
    if let (Some(before), Some(after)) = (&mut before, &after)
        && is_same_memory(before.memory_bytes, after.memory_bytes)
    {
        before.memory_bytes = after.memory_bytes;
    }
    let [before, after] = [before, after].map(|machine| facts_of_machine(machine.as_ref()));
    let mut differences = differences(&settings(before), &settings(after));
    let budget = |result: &RunResult| match result.memory_budget_bytes {
        Some(_) => "held",
        None => "not held",
    };
    if budget(a) != budget(b) {
        differences.push(Difference {
            setting: "memory budget of each case".to_owned(),
            before: budget(a).to_owned(),
            after: budget(b).to_owned(),
            runs: Vec::new(),
        });
    }
    differences
}

/// Whether a layout may lie in a place, whose path is absolute. The layout's is as it was written.
fn lies_in(layout: &Layout, place: &DataPath) -> bool {
    let (path, place) = (Path::new(&layout.path), Path::new(&place.path));
    let named = path.components().filter(|part| *part != Component::CurDir);
    let named: PathBuf = named.collect();
    match path.is_absolute() {
        true => named == place,
        false => place.ends_with(named),
    }
}

/// Whether only layouts lie in a place that the other run does not have: nothing there is compared.
fn is_of_others_only(result: &RunResult, other: &RunResult, place: &DataPath) -> bool {
    let layouts = result.layouts.iter();
    let mut there = layouts.filter(|layout| lies_in(layout, place)).peekable();
    let is_in_both = |layout: &Layout| other.layouts.iter().any(|of| of.name == layout.name);
    there.peek().is_some() && !there.any(is_in_both)
}

fn is_same_memory(before: Option<u64>, after: Option<u64>) -> bool {
    before.zip(after).is_some_and(|(before, after)| {
        before.abs_diff(after) as f64 <= MEMORY_TOLERANCE * before.max(after) as f64
    })
}

/// What differs in workload and plan, which all cases share.
pub(crate) fn of_experiments(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let settings_of = |result: &RunResult| {
        let asked = result.experiment.facts();
        let mut settings = settings(facts(&asked.workload.settings));
        let plan = &asked.plan;
        let of_plan = [
            ("plan.warmup_ms", Some(plan.warmup_ms)),
            ("plan.measure_ms", Some(plan.measure_ms)),
            ("plan.interleave_ms", plan.interleave_ms),
        ];
        let known = of_plan.into_iter();
        settings.extend(known.filter_map(|(name, ms)| Some((name.to_owned(), ms?.to_string()))));
        settings
    };
    differences(&settings_of(a), &settings_of(b))
}

/// What differs in the layout of that name.
pub(crate) fn of_layouts(a: &RunResult, b: &RunResult, layout: &str) -> Vec<Difference> {
    let settings_of = |result: &RunResult| {
        let mut layouts = result.experiment.facts().layouts.iter();
        let layout = layouts.find(|other| other.name == layout);
        layout.map_or_else(BTreeMap::new, |layout| settings(facts(&layout.settings)))
    };
    differences(&settings_of(a), &settings_of(b))
}

/// The settings by their paths. What is not known is left out: a setting that an older version does not know is as good
/// as one that is not set.
fn settings(facts: Vec<Fact>) -> BTreeMap<String, String> {
    let known = facts.into_iter();
    known
        .filter_map(|fact| Some((fact.path, lasting(&fact.value?))))
        .collect()
}

/// What of a value stays the same for as long as the machine does. The system assigns device names again at each boot
/// and attachment. What a device is stands in separate facts (model, size, scheduler).
fn lasting(value: &str) -> String {
    let options = value.split(',').filter_map(|option| {
        let option = option.trim();
        let (key, value) = option.split_once('=').unwrap_or(("", option));
        let is_free = FREE_OPTIONS.contains(&key);
        let is_device = Path::new(value).starts_with(DEVICES);
        match (is_free, is_device, key) {
            (true, ..) => None,
            (_, true, "") => Some("a device".to_owned()),
            (_, true, key) => Some(format!("{key}=a device")),
            _ => Some(option.to_owned()),
        }
    });
    options.collect::<Vec<String>>().join(",")
}

fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<Difference> {
    const NOT_SET: &str = "not set";
    let all: BTreeMap<&String, ()> = before
        .keys()
        .chain(after.keys())
        .map(|key| (key, ()))
        .collect();
    let of = |settings: &BTreeMap<String, String>, key: &String| {
        let value = settings.get(key);
        match value.map(String::as_str) {
            None => NOT_SET.to_owned(),
            Some("") => "none".to_owned(),
            Some(value) => value.to_owned(),
        }
    };
    all.into_keys()
        .map(|key| Difference {
            setting: key.clone(),
            before: of(before, key),
            after: of(after, key),
            runs: Vec::new(),
        })
        .filter(|difference| difference.before != difference.after)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spindle_result::machine::CalibratedLimits;
    use spindle_result::{build, sample};

    use super::*;

    fn result(machine: Machine) -> RunResult {
        let mut record = sample::record(&[("direct", &[100.0, 100.0])]);
        record.machine = Some(machine);
        build(&record).unwrap()
    }

    /// A machine in which everything that may differ has this word or number.
    fn machine(word: &str, number: u32) -> Machine {
        let word = || word.to_owned();
        let numbers = || format!("{number}:{number}");
        let device = |stands_on| DiskFacts {
            number: numbers(),
            name: word(),
            partition_of: Some(word()),
            scheduler: Some("none".to_owned()),
            loop_backing_file: Some(word()),
            loop_file_device: Some(word()),
            stands_on,
            ..DiskFacts::default()
        };
        let options =
            format!("rw,noatime,logdev=/dev/loop{number},subvolid={number},subvol=/run-{number}");
        Machine {
            captured_at: word(),
            kernel_release: "6.1".to_owned(),
            memory_bytes: Some((8 << 30) + u64::from(number)),
            load: Busy {
                averages: Some([f64::from(number); 3]),
                running_tasks: Some(number),
                steal_percent_since_boot: Some(f64::from(number)),
            },
            data_paths: vec![DataPath {
                path: word(),
                file_system: Some(FileSystem {
                    kind: "ext4".to_owned(),
                    mount_point: word(),
                    options,
                    source: word(),
                    device: numbers(),
                    size_bytes: None,
                    free_bytes: Some(number.into()),
                }),
                device: Some(device(vec![device(Vec::new())])),
                device_unknown_because: Some(word()),
                calibrated: Some(CalibratedLimits {
                    at: word(),
                    ..CalibratedLimits::default()
                }),
            }],
            ..Machine::default()
        }
    }

    #[test]
    fn a_candidate_more_makes_no_other_machine() {
        let place = |path: &str, kind: &str| DataPath {
            path: path.to_owned(),
            file_system: Some(FileSystem {
                kind: kind.to_owned(),
                ..FileSystem::default()
            }),
            ..DataPath::default()
        };
        let with = |layouts: &[(&str, &str, &str)]| {
            let trials: Vec<(&str, &[f64])> = layouts
                .iter()
                .map(|(name, ..)| (*name, &[100.0, 100.0][..]))
                .collect();
            let mut record = sample::record(&trials);
            for (layout, (_, path, _)) in record.layouts.iter_mut().zip(layouts) {
                (*path).clone_into(&mut layout.path);
            }
            record.machine = Some(Machine {
                data_paths: layouts
                    .iter()
                    .map(|(_, path, kind)| place(path, kind))
                    .collect(),
                ..Machine::default()
            });
            build(&record).unwrap()
        };
        let one = with(&[("a", "/a", "ext4")]);
        let two = with(&[("b", "/b", "xfs"), ("a", "/a", "ext4")]);
        assert_eq!(of_machines(&one, &two), []);
        assert_eq!(of_machines(&two, &one), []);
        let mut relative = two.clone();
        relative.layouts[0].path = "./b".to_owned();
        assert_eq!(of_machines(&one, &relative), []);
        let moved = with(&[("b", "/b", "xfs"), ("a", "/a", "btrfs")]);
        assert_eq!(of_machines(&one, &moved).len(), 1);
    }

    #[test]
    fn moments_places_and_what_the_system_deals_out_anew_are_no_difference() {
        let (before, later) = (result(machine("a", 3)), result(machine("b", 9)));
        assert_eq!(of_machines(&before, &later), []);
        let places = lasting_facts(&before);
        let places = places.keys().filter(|key| key.starts_with("data_paths"));
        assert_eq!(
            places.collect::<Vec<_>>(),
            [
                "data_paths 1.device.scheduler",
                "data_paths 1.device.stands_on 1.scheduler",
                "data_paths 1.device.stands_on 1.stands_on",
                "data_paths 1.file_system.kind",
                "data_paths 1.file_system.options",
            ]
        );
    }

    #[test]
    fn settings_of_a_machine_may_not_differ() {
        let mut later = machine("b", 9);
        later.kernel_release = "6.2".to_owned();
        later.data_paths[0].file_system.as_mut().unwrap().options = "rw".to_owned();
        let device = later.data_paths[0].device.as_mut().unwrap();
        device.stands_on[0].scheduler = Some("bfq".to_owned());
        let found = of_machines(&result(machine("a", 3)), &result(later));
        let settings: Vec<&str> = found.iter().map(|one| one.setting.as_str()).collect();
        assert_eq!(
            settings,
            [
                "data_paths 1.device.stands_on 1.scheduler",
                "data_paths 1.file_system.options",
                "kernel_release"
            ]
        );
        let (before, after) = (found[1].before.as_str(), found[1].after.as_str());
        assert_eq!((before, after), ("rw,noatime,logdev=a device", "rw"));
        let (before, after) = (found[2].before.as_str(), found[2].after.as_str());
        assert_eq!((before, after), ("6.1", "6.2"));
    }

    #[test]
    fn a_layout_differs_by_what_it_is_and_not_by_where_it_lies() {
        let result = |path: &str, devices: &[&str]| {
            let layout = json!({
                "name": "direct", "path": path, "devices": devices, "database": { "redo_path": path },
            });
            let mut record = sample::record(&[("direct", &[100.0, 100.0])]);
            record.experiment = sample::experiment(&[("layouts", json!([layout]))]);
            build(&record).unwrap()
        };
        let two = result("a", &["/dev/loop3", "/dev/loop4"]);
        let other = result("b", &["/dev/loop7", "/dev/sdb"]);
        assert_eq!(of_layouts(&two, &other, "direct"), []);
        let one = of_layouts(&two, &result("a", &["/dev/loop3"]), "direct");
        assert_eq!(one.len(), 1, "{one:?}");
    }

    #[test]
    fn experiments_differ_by_workload_and_the_length_of_trials_and_not_by_load_levels() {
        let result = |clients: u32, think_time_ms: u64, interleave_ms: Option<u64>| {
            let workload =
                json!({ "clients": [clients], "think_time_ms": think_time_ms, "transactions": {} });
            let plan = json!({ "warmup_ms": 1, "measure_ms": 2, "interleave_ms": interleave_ms, "rounds": clients });
            let mut record = sample::record(&[("direct", &[100.0, 100.0])]);
            record.experiment = sample::experiment(&[("workload", workload), ("plan", plan)]);
            build(&record).unwrap()
        };
        let before = result(8, 0, None);
        assert_eq!(of_experiments(&before, &result(16, 0, None)), []);
        let found = of_experiments(&before, &result(16, 5, Some(300)));
        let told = found.iter().map(|one| {
            let (before, after) = (&one.before, &one.after);
            format!("{}: {before} -> {after}", one.setting)
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "plan.interleave_ms: not set -> 300",
                "think_time_ms: 0 -> 5"
            ]
        );
    }

    #[test]
    fn a_setting_of_one_run_only_differs_and_one_that_is_null_does_not() {
        let settings = |document: Value| settings(facts(&document));
        let (old, new) = (json!({ "a": 1 }), json!({ "a": 1, "rate": null }));
        assert_eq!(differences(&settings(old.clone()), &settings(new)), []);
        let rate = json!({ "a": 1, "rate": 500 });
        assert_eq!(
            differences(&settings(old), &settings(rate)),
            [Difference {
                setting: "rate".to_owned(),
                before: "not set".to_owned(),
                after: "500".to_owned(),
                runs: Vec::new(),
            }]
        );
    }

    #[test]
    fn memory_that_differs_by_a_page_is_the_same() {
        let is_same = |before, after| is_same_memory(Some(before), Some(after));
        assert!(is_same(8 << 30, (8 << 30) - 4096));
        assert!(!is_same(8 << 30, 7 << 30));
        assert!(!is_same_memory(None, Some(1)));
    }
}
