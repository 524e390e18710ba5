//! Several rates of arrivals: each is a load level, and parts of a maximum follow from closed loops that come first.

use serde_json::Value;
use spindle_report::table::{self, Style};
use spindle_result::{build, sample};

use crate::end_to_end::{Place, assert_valid};

/// Small, with two layouts; the rates follow.
const EXPERIMENT: &str = r#"
name = "rates"
[database]
size = "8MiB"
buffer_cache = "1MiB"
memory = "8MiB"
datafiles = 2
log_file_size = "2MiB"
[plan]
quiet = "0s"
warmup = "200ms"
measure = "600ms"
rounds = 2
[[layout]]
name = "sync"
[[layout]]
name = "async"
io = { method = "async" }
[workload]
clients = 4
"#;

fn place(rate: &str) -> Place {
    Place::new(&format!("{EXPERIMENT}rate = {rate}\n"))
}

fn run(place: &Place) -> String {
    let output = place.output(&["run", "experiment.toml", "--out", "out"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said + &String::from_utf8_lossy(&output.stdout)
}

/// Layout, rate as it is spelled and rate of the first trial of each case.
fn cases(result: &Value) -> Vec<(String, String, Option<f64>)> {
    let cases = result["cases"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    cases
        .map(|case| {
            let arrivals = &case["trials"][0]["arrivals"];
            assert_eq!(case["clients"], 4, "{case:#}");
            (
                text(&case["layout"]),
                text(&case["rate"]),
                arrivals["rate_per_s"].as_f64(),
            )
        })
        .collect()
}

#[test]
fn each_rate_of_a_list_is_measured_on_each_layout() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = place("[\"50/s\", \"100/s\"]");
    let plan = place.output(&["plan", "experiment.toml"]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("8 trials (4 cases, 2 rounds)"), "{plan}");
    assert!(
        plan.contains("a case for each rate of arrivals: 50/s, 100/s"),
        "{plan}"
    );
    let said = run(&place);
    assert!(
        said.contains("Latency over load: oltp_mix, 4 clients"),
        "{said}"
    );
    assert!(
        said.contains("fixed rates of 50 and 100 a second"),
        "{said}"
    );
    let result = place.result();
    assert_valid(&result);
    let case = |layout: &str, rate: f64| (layout.to_owned(), format!("{rate}/s"), Some(rate));
    let expected = [
        case("sync", 50.0),
        case("async", 50.0),
        case("sync", 100.0),
        case("async", 100.0),
    ];
    assert_eq!(cases(&result), expected);
    let rankings = result["rankings"].as_array().unwrap().iter();
    let rankings = rankings.map(|ranking| (&ranking["rate"], &ranking["measure"]));
    let rankings: Vec<String> = rankings.map(|(rate, of)| format!("{rate} {of}")).collect();
    assert_eq!(rankings, ["\"50/s\" \"p99\"", "\"100/s\" \"p99\""]);
    for report in ["report.md", "report.html"] {
        let report = std::fs::read_to_string(place.path().join("out").join(report)).unwrap();
        assert!(report.contains("Latency over load: oltp_mix, 4 clients"));
    }
    let series = place
        .path()
        .join("out/series/layout2-clients4-100ps-round2.csv");
    assert!(series.exists());
}

#[test]
fn parts_of_the_slowest_are_fixed_by_closed_loops_that_come_first() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = place("[\"20%\", \"40%\"]");
    let plan = place.output(&["plan", "experiment.toml"]);
    let plan = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(plan.contains("12 trials (6 cases, 2 rounds)"), "{plan}");
    assert!(
        plan.contains("First come 2 rounds of the cases without"),
        "{plan}"
    );
    let said = run(&place);
    assert!(
        said.contains("is slowest without a rate at 4 clients"),
        "{said}"
    );

    let journal = place.journal();
    let of = |name: &str| {
        let events = journal.iter().enumerate();
        let places = events.filter(|(_, event)| event["event"] == name);
        places.collect::<Vec<(usize, &Value)>>()
    };
    let known = of("slowest_known");
    assert_eq!(known.len(), 1);
    let (at, per_s) = (known[0].0, known[0].1["per_s"].as_f64().unwrap());
    let finished = of("trial_finished");
    assert_eq!(finished.len(), 12);
    for (place, event) in &finished {
        assert_eq!(event["rate"].is_null(), *place < at, "{event}");
    }
    let closed = |layout: usize| {
        let trials = finished.iter().map(|(_, event)| *event);
        let of_layout = trials.filter(|event| event["layout"] == layout && event["rate"].is_null());
        let tpm = of_layout.map(|event| event["trial"]["tpm"].as_f64().unwrap());
        tpm.sum::<f64>() / 2.0 / 60.0
    };
    let slowest = closed(0).min(closed(1));
    assert!((per_s / slowest - 1.0).abs() < 1e-9, "{per_s} {slowest}");

    for (_, spelled, rate_per_s) in cases(&place.result()) {
        let part = match spelled.as_str() {
            "" => None,
            "20%" => Some(0.2),
            "40%" => Some(0.4),
            other => panic!("{other}"),
        };
        // Three figures: half of the last of 1.00 is half a per cent.
        let is_part = |(rate, part): (f64, f64)| (rate / (part * per_s) - 1.0).abs() < 0.0051;
        match rate_per_s.zip(part) {
            Some(both) => assert!(is_part(both), "{spelled}: {rate_per_s:?} of {per_s}"),
            None => assert_eq!(rate_per_s, part, "{spelled}"),
        }
    }
}

#[test]
fn a_run_that_goes_on_keeps_its_rates() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let place = place("[\"20%\"]");
    run(&place);
    let path = place.path().join("out/journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // As if it had been killed right after the rates were known.
    let known = text
        .lines()
        .position(|line| line.contains("slowest_known"))
        .unwrap();
    let kept: Vec<&str> = text.lines().take(known + 1).collect();
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    std::fs::remove_file(place.path().join("out/result.json")).unwrap();
    let before = kept[known].to_owned();
    let output = place.output(&["resume", "out"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let known: Vec<String> = std::fs::read_to_string(&path)
        .unwrap()
        .lines()
        .filter(|line| line.contains("slowest_known"))
        .map(str::to_owned)
        .collect();
    assert_eq!(known, [before]);
    assert_eq!(
        place.result()["cases"][3]["trials"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn people_see_the_curve_and_a_verdict_for_each_rate() {
    let result = build(&sample::with_rates(&["30%", "60%", "90%"])).unwrap();
    let style = Style {
        width: 100,
        colour: false,
    };
    insta::assert_snapshot!("rates_table", table::render(&result, style));
    insta::assert_snapshot!("rates_markdown", spindle_report::markdown(&result, &[]));
    let page = spindle_report::html(&result, &[]);
    assert!(
        page.contains("Lines end where a layout falls behind"),
        "{page}"
    );
}
