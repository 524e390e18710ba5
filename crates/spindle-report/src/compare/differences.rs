//! What differs between two runs besides their figures: the machine and its settings, and what the experiments ask for.
//! Everything that a run notes counts, unless it is named here as something that may differ.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::Side;
use crate::facts::facts;
use spindle_result::RunResult;

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

/// Words in the path of a machine's setting by which it may differ: moments, loads, names and numbers that a boot or a
/// run deals out, places, and what was measured of storage.
const FREE_OF_MACHINE: [&str; 14] = [
    "captured_at",
    "calibrated",
    "load",
    "free_bytes",
    "path",
    "mount_point",
    "source",
    "device_unknown_because",
    "number",
    "name",
    "partition_of",
    "loop_backing_file",
    "major",
    "minor",
];

/// Where the system has its device nodes.
const DEVICES: &str = "/dev";
/// Options of a mount whose values are dealt out when something is mounted or made, or are places: numbers of
/// subvolumes, directories of containers, open files and processes.
const FREE_OPTIONS: [&str; 8] = [
    "subvolid", "subvol", "lowerdir", "upperdir", "workdir", "fd", "pgrp", "pipe_ino",
];

/// What a machine calls its memory.
const MEMORY: [&str; 1] = ["memory_bytes"];
/// Two memories that differ by less than this are of one size: kernels keep a little more or less for themselves.
const MEMORY_TOLERANCE: f64 = 0.01;

/// Settings of the workload by which cases are matched, or that do not change what a client does.
const FREE_OF_WORKLOAD: [&str; 2] = ["clients", "levels"];
/// Settings of a layout that only name it or its place; what lies there is the machine's to tell.
const FREE_OF_LAYOUT: [&str; 4] = ["name", "path", "redo_path", "candidate"];
/// Settings of the plan that change what a trial is.
const OF_PLAN: [&str; 3] = ["warmup_ms", "measure_ms", "interleave_ms"];

/// What `differs` between the first of all runs and each other one, of its own side or of the other.
pub(crate) fn of_all(
    before: &[Side<'_>],
    after: &[Side<'_>],
    differs: impl Fn(&RunResult, &RunResult) -> Vec<Difference>,
) -> Vec<Difference> {
    let others: Vec<&Side<'_>> = before.iter().skip(1).chain(after).collect();
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
    without(&result.machine, &FREE_OF_MACHINE)
}

/// What differs in the machines and their settings.
pub(crate) fn of_machines(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let mut differences = differences(&lasting_facts(a), &lasting_facts(b));
    differences.retain(|difference| !is_same_memory(difference));
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

fn is_same_memory(difference: &Difference) -> bool {
    let bytes = |text: &str| text.parse::<f64>().ok();
    match (bytes(&difference.before), bytes(&difference.after)) {
        (Some(before), Some(after)) => {
            MEMORY.contains(&difference.setting.as_str())
                && (before - after).abs() <= MEMORY_TOLERANCE * before.max(after)
        }
        _ => false,
    }
}

/// What differs in workload and plan, which all cases share.
pub(crate) fn of_experiments(a: &RunResult, b: &RunResult) -> Vec<Difference> {
    let settings = |result: &RunResult| {
        let mut settings = without(&result.experiment["workload"], &FREE_OF_WORKLOAD);
        for key in OF_PLAN {
            if let Some(value) = result.experiment["plan"].get(key) {
                settings.insert(format!("plan.{key}"), value.to_string());
            }
        }
        settings
    };
    differences(&settings(a), &settings(b))
}

/// What differs in the layout of that name.
pub(crate) fn of_layouts(a: &RunResult, b: &RunResult, layout: &str) -> Vec<Difference> {
    let settings = |result: &RunResult| {
        let layouts = result.experiment["layouts"].as_array();
        let layout = layouts.into_iter().flatten().find(|other| {
            let name = other.get("name").and_then(Value::as_str);
            name == Some(layout)
        });
        layout.map_or_else(BTreeMap::new, |layout| without(layout, &FREE_OF_LAYOUT))
    };
    differences(&settings(a), &settings(b))
}

/// The scalars of a document by their paths, without those whose path has a word in `free`. What is null is left out: a
/// setting that an older version does not know is as good as one that is not set.
fn without(document: &Value, free: &[&str]) -> BTreeMap<String, String> {
    let is_free = |path: &str| path.split(['.', ' ']).any(|word| free.contains(&word));
    let known = facts(document).into_iter();
    known
        .filter(|fact| !is_free(&fact.path))
        .filter_map(|fact| Some((fact.path, lasting(&fact.value?)?)))
        .collect()
}

/// What of a value stays the same for as long as the machine does. The system deals out names and numbers of devices
/// again at each boot and each attachment, and what a device is stands in facts of its own (model, size, scheduler).
/// `None` for a value that is such a number.
fn lasting(value: &str) -> Option<String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_device_number = value
        .split_once(':')
        .is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    if is_device_number {
        return None;
    }
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
    Some(options.collect::<Vec<String>>().join(","))
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
    use serde_json::json;

    use super::*;

    #[test]
    fn places_and_moments_may_differ_and_settings_not() {
        let machine = |kernel: &str, at: &str, options: &str, running: u32| {
            let document = json!({
                "captured_at": at,
                "kernel_release": kernel,
                "processor": { "model": "x", "turbo": null },
                "load": { "running_tasks": running },
                "data_paths": [{ "path": at, "file_system": { "kind": "ext4", "options": options, "free_bytes": running }, "calibrated": { "at": at } }],
            });
            without(&document, &FREE_OF_MACHINE)
        };
        let before = machine("6.1", "today", "rw", 3);
        assert_eq!(differences(&before, &machine("6.1", "later", "rw", 9)), []);
        let found = differences(&before, &machine("6.2", "later", "rw,noatime", 9));
        let settings: Vec<&str> = found.iter().map(|one| one.setting.as_str()).collect();
        assert_eq!(
            settings,
            ["data_paths 1.file_system.options", "kernel_release"]
        );
        assert_eq!(
            (found[1].before.as_str(), found[1].after.as_str()),
            ("6.1", "6.2")
        );
    }

    /// Identifiers that change while the machine does not: device numbers wherever they stand, names of device nodes,
    /// what a mount deals out. What a device is made of does count.
    #[test]
    fn what_the_system_deals_out_anew_is_no_difference() {
        let machine = |number: &str, node: &str, sub: u32, scheduler: &str| {
            let document = json!({ "data_paths": [{
                "file_system": {
                    "device": number,
                    "options": format!("rw,noatime,logdev={node},subvolid={sub},subvol=/run-{sub}"),
                },
                "device": {
                    "number": number, "scheduler": scheduler, "journal": node,
                    "stands_on": [{ "number": number, "shares": number, "scheduler": scheduler }],
                },
            }] });
            without(&document, &FREE_OF_MACHINE)
        };
        let before = machine("7:2", "/dev/loop2", 256, "none");
        let later = machine("259:14", "/dev/nvme1n1", 311, "none");
        assert_eq!(differences(&before, &later), []);
        let other = differences(&before, &machine("7:2", "/dev/loop2", 256, "bfq"));
        assert_eq!(other.len(), 2);
        let layout = |devices: &[&str]| without(&json!({ "devices": devices }), &FREE_OF_LAYOUT);
        let two = layout(&["/dev/loop3", "/dev/loop4"]);
        assert_eq!(differences(&two, &layout(&["/dev/loop7", "/dev/sdb"])), []);
        assert_eq!(differences(&two, &layout(&["/dev/loop3"])).len(), 1);
    }

    #[test]
    fn a_setting_of_one_run_only_differs_and_one_that_is_null_does_not() {
        let settings = |document: Value| without(&document, &[]);
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
        let memory = |before: u64, after: u64| {
            is_same_memory(&Difference {
                setting: "memory_bytes".to_owned(),
                before: before.to_string(),
                after: after.to_string(),
                runs: Vec::new(),
            })
        };
        assert!(memory(8 << 30, (8 << 30) - 4096));
        assert!(!memory(8 << 30, 7 << 30));
    }
}
