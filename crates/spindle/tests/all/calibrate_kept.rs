//! What `spindle calibrate` found of a device stands beside the figures of a later run on it, and of no other.

use std::fs;

use serde_json::Value;

use crate::calibrate::beside_others;
use crate::end_to_end::Place;

const EXPERIMENT: &str = r#"
name = "beside"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
log_file_size = "2MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "200ms"
measure = "600ms"
rounds = 2
[[layout]]
name = "direct"
io = { caching = "direct" }
"#;

const SAYS: &str = "that spindle calibrate found";

#[test]
fn a_run_is_set_beside_the_limits_of_its_device() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let _shared = beside_others();
    let place = Place::empty();
    fs::write(place.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let calibrate = |more: &[&str]| {
        let what = ["calibrate", ".", "--no-metadata", "--size", "16MiB"];
        let ended = place.output(&[&what[..], more].concat());
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let point =
        "--time 10s --run advanced --matrix point --num-small 2 --num-large 0 --duration 1s";
    let told = calibrate(&point.split(' ').collect::<Vec<_>>());
    assert!(
        told.contains("not kept for later runs: --run measures fixed points"),
        "{told}"
    );
    // A busy machine takes longer to find its limit, and what else reads may look like a cache for a while.
    let mut told = String::new();
    for time in ["30s", "2m", "5m"] {
        told = calibrate(&["--time", time]);
        let is_passing = |reason| told.contains(&format!("not kept for later runs: {reason}"));
        if !["the time ended", "a cache answered"]
            .into_iter()
            .any(is_passing)
        {
            break;
        }
    }
    if !told.contains("the limits are kept for later runs") {
        spindle_harness::skip(format_args!("no device to know again: {told}"));
        return;
    }
    let kept = place.ledger().join("calibrations.json");
    let before = fs::read_to_string(&kept).unwrap();
    let run = |out: &str| {
        let ended = place.output(&["run", "experiment.toml", "--out", out]);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        let page = fs::read_to_string(place.path().join(out).join("report.html")).unwrap();
        (String::from_utf8(ended.stdout).unwrap(), page)
    };
    let (told, page) = run("beside");
    assert!(told.contains(SAYS) && page.contains(SAYS), "{told}");
    let machine = fs::read_to_string(place.path().join("beside/machine.json")).unwrap();
    let machine: Value = serde_json::from_str(&machine).unwrap();
    assert!(machine["data_paths"][0]["calibrated"]["iops"].is_number());
    // The same name and size, another device.
    let mut all: Value = serde_json::from_str(&before).unwrap();
    all[0]["device"]["hardware"] = serde_json::json!(["another"]);
    all[0]["device"]["device"]["boot_id"] = "another".into();
    fs::write(&kept, all.to_string()).unwrap();
    let (told, page) = run("other");
    assert!(!told.contains(SAYS) && !page.contains(SAYS), "{told}");
}
