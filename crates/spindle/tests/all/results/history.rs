//! `spindle history`: what people read, what programs read, and which runs are one history.

use serde_json::Value;
use spindle_report::compare::ComparedRun;
use spindle_report::history;
use spindle_result::RunResult;

use super::journals::Run;
use super::{change_machine, code, plain, several, spindle, words};
use crate::report::fixture::change_experiment;

const DAYS: [&str; 8] = [
    "2026-01-01T12:00:00Z",
    "2026-01-02T12:00:00Z",
    "2026-01-03T12:00:00Z",
    "2026-01-04T12:00:00Z",
    "2026-01-05T12:00:00Z",
    "2026-01-06T12:00:00Z",
    "2026-01-07T12:00:00Z",
    "2026-01-08T12:00:00Z",
];
/// Runs of which the last three are slower by a tenth.
const SPEEDS: [f64; 8] = [1.0, 1.01, 0.995, 1.005, 0.998, 0.9, 0.905, 0.895];
const NAMES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];

/// Eight runs, on another kernel and scheduler from the sixth on.
fn eight() -> Vec<RunResult> {
    let mut runs = several(&SPEEDS, |_| {});
    runs[5..].iter_mut().for_each(change_machine);
    runs
}

fn sides(results: &[RunResult]) -> Vec<ComparedRun<'_>> {
    let side = |(index, result)| ComparedRun {
        name: NAMES[index],
        started_at: DAYS[index],
        result,
    };
    results.iter().enumerate().map(side).collect()
}

fn schema_errors(document: &Value) -> Vec<String> {
    let schema = include_str!("../../../../../docs/history.schema.json");
    let schema = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|error| error.instance_path().to_string())
        .collect()
}

#[test]
fn changes_are_told_with_what_differs_beside_them() {
    let results = eight();
    let mut runs = sides(&results);
    // They come in any order.
    runs.reverse();
    let found = history::histories(&runs).unwrap();
    insta::assert_snapshot!("history", history::render(&found, "runs", plain(120)));
    let told: Value = serde_json::from_str(&history::json(&found, "runs")).unwrap();
    assert_eq!(schema_errors(&told), Vec::<String>::new());
    let case = &told["histories"][0]["cases"][0];
    assert_eq!(case["values"].as_array().unwrap().len(), 8);
    let change = &case["changes"][0];
    assert_eq!(
        (&change["before"]["directory"], &change["now"]["directory"]),
        (&"r5".into(), &"r6".into())
    );
    assert_eq!(change["machines"][0]["after"], "6.12.0");
    let ratio = change["ratio"].as_f64().unwrap();
    assert!((0.88..0.92).contains(&ratio), "{ratio}");
}

#[test]
fn the_schema_of_histories_rejects_wrong_ones() {
    type Fault = fn(&mut Value);
    let faults: [(&str, Fault); 4] = [
        ("", |told| told["mood"] = "good".into()),
        ("/histories/0/runs", |told| {
            told["histories"][0]["runs"] = serde_json::json!([]);
        }),
        ("/histories/0/cases/0/measure", |told| {
            told["histories"][0]["cases"][0]["measure"] = "speed".into();
        }),
        ("/histories/0/cases/0/changes/0/ratio", |told| {
            told["histories"][0]["cases"][0]["changes"][0]["ratio"] = 0.into();
        }),
    ];
    let results = eight();
    let found = history::histories(&sides(&results)).unwrap();
    for (place, plant) in faults {
        let mut wrong: Value = serde_json::from_str(&history::json(&found, "runs")).unwrap();
        plant(&mut wrong);
        let errors = schema_errors(&wrong);
        assert!(
            errors.iter().any(|error| error == place),
            "{place:?}: {errors:?}"
        );
    }
}

#[test]
fn runs_of_other_questions_are_no_part_of_a_history() {
    let mut results = eight();
    for other in &mut results[..3] {
        change_experiment(other, "/workload/transactions/read_percent", 90.into());
    }
    let runs = sides(&results);
    let found = history::histories(&runs).unwrap();
    assert_eq!((found.histories.len(), found.left_out.len()), (1, 3));
    assert_eq!(found.histories[0].runs.len(), 5);
    let text = history::render(&found, "runs", plain(120));
    assert!(
        text.contains("Left out, as fewer than 4 runs ask the same:\n  r1"),
        "{text}"
    );
}

#[test]
fn the_runs_below_a_directory_are_a_history() {
    let place = tempfile::tempdir().unwrap();
    let history = |arguments: &[&str]| {
        let output = spindle(place.path(), &[&["history"], arguments].concat());
        (code(&output), words(&output))
    };
    let (status, text) = history(&[]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("No history below runs: 4 runs"), "{text}");
    for (index, speed) in SPEEDS.into_iter().enumerate() {
        let run = Run {
            at: DAYS[index],
            speed_of_second: speed,
            ..Run::default()
        };
        run.write(&place.path().join("runs/nightly").join(NAMES[index]));
    }
    let unfinished = Run {
        rounds: 1,
        ..Run::default()
    };
    unfinished.write(&place.path().join("runs/broken-off"));
    let (status, text) = history(&[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("between runs/nightly/r5"), "{text}");
    assert!(
        text.contains("broken-off: left out, as it is not finished"),
        "{text}"
    );
    let output = spindle(place.path(), &["history", "runs", "--format", "json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema_errors(&told), Vec::<String>::new());
    assert_eq!(history(&["elsewhere"]).0, Some(2));
    assert_eq!(history(&["--format", "xml"]).0, Some(2));
}
