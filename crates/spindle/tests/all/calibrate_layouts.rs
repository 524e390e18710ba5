//! `spindle calibrate FILE.toml`: what the layouts of an experiment stand on is made, measured side by side and
//! removed; mistakes make nothing.

use std::fs;

use serde_json::Value;

use crate::calibrate::beside_others;
use crate::end_to_end::Place;

const EXPERIMENT: &str = r#"
name = "layouts"
[database]
size = "8MiB"
buffer_cache = "1MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[[layout]]
name = "here, direct"
io = { caching = "direct" }
[[layout]]
name = "here, buffered"
io = { caching = "buffered" }
[[layout]]
name = "raw"
devices = [{ file = "disk.img", size = "64MiB" }]
raw = true
[[layout]]
name = "raw, slaves"
devices = [{ file = "disk.img", size = "64MiB" }]
raw = true
io = { method = "slaves" }
[[layout]]
name = "group"
devices = [{ file = "a.img", size = "64MiB" }, { file = "b.img", size = "64MiB" }]
diskgroup = { allocation_unit = "1MiB", redundancy = "external" }
"#;

fn place() -> Place {
    let place = Place::empty();
    fs::write(place.path().join("layouts.toml"), EXPERIMENT).unwrap();
    place
}

/// What is below the place and in the ledgers.
fn names(place: &Place) -> Vec<String> {
    let of = |path: &std::path::Path| {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = of(place.path())
        .chain(of(place.ledger()).filter(|name| name.ends_with(".jsonl")))
        .collect();
    names.sort();
    names
}

#[test]
fn the_layouts_of_an_experiment_are_measured_side_by_side_and_removed() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let place = place();
    let usual = ["--flushes", "--time", "10s", "--quiet"];
    let ended = place.output(&[&["calibrate", "layouts.toml", "--json"], &usual[..]].concat());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let layouts = found["layouts"].as_array().unwrap();
    let names_of = |of: &Value| of["names"].as_array().unwrap().clone();
    let all: Vec<Vec<Value>> = layouts.iter().map(names_of).collect();
    assert_eq!(
        all,
        [
            vec!["here, direct", "here, buffered"],
            vec!["raw", "raw, slaves"],
            vec!["group"]
        ],
        "each storage once"
    );
    for of in layouts {
        let found = &of["found"];
        assert!(
            found["flushes"][0]["p99_us"].as_f64().unwrap() > 0.0,
            "{of}"
        );
    }
    let group = &layouts[2];
    assert_eq!(group["found"]["targets"].as_array().unwrap().len(), 2);
    assert!(group["storage"].as_str().unwrap().contains("disk group"));
    assert_eq!(names(&place), ["layouts.toml"], "nothing is left");
}

#[test]
fn what_is_read_of_a_made_layout_is_measured_too() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let place = place();
    let arguments = [
        "calibrate",
        "layouts.toml",
        "--only",
        "raw",
        "--size",
        "16MiB",
    ];
    let more = [
        "--time",
        "10s",
        "--caching",
        "buffered",
        "--out",
        "measured",
    ];
    let ended = place.output(&[arguments, more].concat());
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(
        told.contains("== raw: ") && told.contains("fdatasync p99"),
        "{told}"
    );
    let measured = place.path().join("measured");
    assert!(measured.join("layout-1/report.html").exists());
    let kept = fs::read(measured.join("result.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let of_raw = &kept["layouts"][0]["found"];
    assert!(of_raw["maximum_iops"]["point"]["iops"].as_f64().unwrap() > 0.0);
    assert_eq!(names(&place), ["layouts.toml", "measured"]);
}

#[test]
fn mistakes_make_nothing() {
    let place = place();
    let missing = "[[layout]]\nname = \"busy\"\ndevices = [\"/dev/nothing-of-ours\"]\nraw = true\n";
    let with_missing = format!("{EXPERIMENT}{missing}");
    fs::write(place.path().join("missing-device.toml"), with_missing).unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["missing.toml"], "missing.toml"),
        (&["layouts.toml", "."], "the only target"),
        (&["layouts.toml", "--only", "other"], "other"),
        (&["layouts.toml", "--emulate"], "not for an experiment file"),
        (
            &["layouts.toml", "--erase", "S1", "--write-percent", "1"],
            "not for an experiment file",
        ),
        (&["layouts.toml", "--set", "no.such=1"], "no.such"),
        (&[".", "--only", "raw"], "for an experiment file"),
        (&["missing-device.toml", "--time", "10s"], "layout busy"),
    ];
    let before = names(&place);
    for (arguments, part) in cases {
        let ended = place.output(&[&["calibrate", "--no-metadata"], arguments].concat());
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert_eq!(names(&place), before, "{arguments:?}");
    }
}
