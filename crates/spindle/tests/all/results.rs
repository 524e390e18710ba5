//! `show`, `export`, `compare`, `history` and `list`: what people read as snapshots, what programs read by its rules,
//! and exit codes.

mod history;
pub(crate) mod journals;
mod openmetrics_text;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use journals::Run;
use serde_json::{Value, json};
use spindle_report::compare::{self, CompareOptions, ComparedRun};
use spindle_report::table::Style;
use spindle_report::{export, show};
use spindle_result::{
    Arrivals, Attribution, CaseStatus, Finding, LoadLevel, RankedCase, RatioEstimate, ResponseTime,
    RunResult, TimePart, build,
};

use crate::report::fixture::{self, change_experiment};

const AT: &str = "2026-01-01T12:00:00Z";

fn result() -> RunResult {
    build(&fixture::record()).expect("the fixture is consistent")
}

fn plain(width: u16) -> Style {
    Style {
        width,
        colour: false,
    }
}

/// The fixture's result with all that a run may come to know.
fn full_result() -> RunResult {
    let mut result = result();
    let names: Vec<String> = result
        .layouts
        .iter()
        .map(|layout| layout.name.clone())
        .collect();
    let estimate = |ratio: f64| RatioEstimate {
        ratio,
        ci95: Some((ratio - 0.02, ratio + 0.02)),
    };
    result.rankings[0].places = vec![
        RankedCase {
            keeps: spindle_result::Keeps::default(),
            layout: names[5].clone(),
            place: 1,
            of_best: None,
        },
        RankedCase {
            keeps: spindle_result::Keeps::default(),
            layout: names[3].clone(),
            place: 1,
            of_best: Some(estimate(0.95)),
        },
        RankedCase {
            keeps: spindle_result::Keeps::default(),
            layout: names[1].clone(),
            place: 3,
            of_best: Some(estimate(0.79)),
        },
    ];
    let part = |part: &str, us: f64| TimePart {
        part: part.into(),
        us,
    };
    for (index, case) in result.cases.iter_mut().enumerate() {
        if index == fixture::SKIPPED {
            continue;
        }
        let slow = (6 - index) as f64;
        case.response_time = Some(ResponseTime {
            mean_us: 2_010.0 * slow,
            excess_us: 0.0,
            parts: vec![
                part("db file sequential read", 1_200.0 * slow),
                part("log file sync", 500.0 * slow),
                part("user CPU", 330.0 * slow),
                part("run queue", 20.0 * slow),
                part("other", -40.0 * slow),
            ],
        });
    }
    result.attributions = vec![Attribution {
        load: LoadLevel::of(8),
        slower: names[0].clone(),
        faster: names[5].clone(),
        difference_us: 9_800.0,
        ci95_us: None,
        parts: Vec::new(),
        sentence:
            "buffered, sync is slower by 9.8 ms per transaction: +6.1 ms db file sequential read"
                .to_owned(),
    }];
    result.findings = vec![Finding {
        kind: "double buffering".to_owned(),
        layouts: vec![names[0].clone(), names[1].clone()],
        clients: vec![8],
        cases: Vec::new(),
        text: "the same blocks lie in the buffer cache and in the page cache".to_owned(),
        evidence: vec!["78 % of the bytes read came from the page cache".to_owned()],
        remedy: "direct I/O, and the memory to the buffer cache".to_owned(),
    }];
    result
}

// show

#[test]
fn a_run_is_shown_from_the_answer_down() {
    let shown = |width| show::render_result(&full_result(), &fixture::record(), plain(width));
    insta::assert_snapshot!("show_of_120_columns", shown(120));
    insta::assert_snapshot!("show_of_80_columns", shown(80));
}

#[test]
fn a_run_without_more_than_figures_is_shown_without_empty_titles() {
    let mut bare = result();
    bare.findings.clear();
    bare.rankings
        .iter_mut()
        .for_each(|ranking| ranking.places.clear());
    let shown = show::render_result(&bare, &fixture::record(), plain(120));
    for absent in ["Ranking", "Where the time", "Why they differ", "finding:"] {
        assert!(!shown.contains(absent), "{absent}:\n{shown}");
    }
    assert!(shown.contains("Throughput over the measured time"));
}

// export

#[test]
fn csv_has_a_row_for_each_trial() {
    let text = export::csv(&full_result(), AT);
    insta::assert_snapshot!(
        "export_csv",
        text.lines().take(4).collect::<Vec<_>>().join("\n")
    );
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|other| other == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    let result = full_result();
    let trials: Vec<_> = result
        .cases
        .iter()
        .flat_map(|case| case.trials.iter().map(move |trial| (case, trial)))
        .collect();
    assert_eq!(rows.len(), trials.len());
    for (row, (case, trial)) in rows.iter().zip(trials) {
        assert_eq!(row[column("layout")], case.id.layout);
        assert_eq!(row[column("tpm")].parse::<f64>().unwrap(), trial.tpm);
        let waited = row[column("wait log file sync total_us")]
            .parse::<f64>()
            .unwrap();
        let wait = trial
            .waits
            .iter()
            .find(|wait| wait.event.name() == "log file sync");
        assert_eq!(waited, wait.unwrap().total_us);
        assert_eq!(&row[column("rate_per_s")], "", "not known is empty");
    }
}

#[test]
fn openmetrics_keep_to_the_specification() {
    let mut result = full_result();
    result.layouts[0].name = "with \"quotes\" and \\ and\nlines".to_owned();
    result.cases[0].id.layout = result.layouts[0].name.clone();
    let families = openmetrics_text::families(&export::openmetrics(&result, AT)).unwrap();
    assert!(families.len() >= 9);
    for family in families {
        assert!(family.samples > 0, "{}", family.name);
    }
    insta::assert_snapshot!(
        "export_openmetrics",
        export::openmetrics(&full_result(), AT)
    );
}

#[test]
fn faults_in_openmetrics_are_seen() {
    let right = export::openmetrics(&result(), AT);
    assert!(openmetrics_text::families(&right).is_ok());
    let sample = right
        .lines()
        .find(|line| line.starts_with("spindle_trials{"))
        .unwrap();
    for (what, wrong) in [
        ("no end", right.replace("# EOF\n", "")),
        ("text after the end", right.clone() + "\n"),
        (
            "a sample twice",
            right.replace(sample, &format!("{sample}\n{sample}")),
        ),
        (
            "an unknown type",
            right.replace("spindle_trials gauge", "spindle_trials number"),
        ),
        (
            "a unit that is not in the name",
            right.replace(
                "# UNIT spindle_wait_seconds seconds",
                "# UNIT spindle_wait_seconds ms",
            ),
        ),
        (
            "a quotation mark",
            right.replace("buffered, sync", "buffered \" sync"),
        ),
        (
            "a backslash",
            right.replace("buffered, sync", "buffered \\, sync"),
        ),
        ("no number", right.replace(sample, &format!("{sample}x"))),
        (
            "a family in two places",
            right.replace("# EOF", "# HELP spindle_trials again\n# EOF"),
        ),
        (
            "a quantile of a gauge",
            right.replace("spindle_trials{", "spindle_trials{quantile=\"1\","),
        ),
        (
            "a sample of another family",
            right.replace("spindle_trials{", "spindle_trial{"),
        ),
    ] {
        assert_ne!(wrong, right, "{what}");
        assert!(openmetrics_text::families(&wrong).is_err(), "{what}");
    }
}

// compare

const OPTIONS: CompareOptions = CompareOptions {
    threshold: 0.05,
    across_machines: false,
    across_settings: false,
};

fn side<'a>(name: &'a str, result: &'a RunResult) -> ComparedRun<'a> {
    ComparedRun {
        name,
        started_at: AT,
        result,
    }
}

/// The text of the fixture beside itself after `change`, and whether it has a regression and is judged.
fn compared(change: impl FnOnce(&mut RunResult), options: CompareOptions) -> (String, bool, bool) {
    let before = result();
    let mut after = result();
    change(&mut after);
    let (before, after) = ([side("runs/before", &before)], [side("runs/after", &after)]);
    let comparison = compare::compare(&before, &after, &options).unwrap();
    let text = compare::render(&before, &after, &comparison, &options, plain(120));
    (text, comparison.has_regression(), comparison.is_judged())
}

fn slow_down(result: &mut RunResult, case: usize, factor: f64) {
    for trial in &mut result.cases[case].trials {
        trial.tpm *= factor;
    }
}

fn change_machine(result: &mut RunResult) {
    let machine = result.machine.as_mut().expect("the fixture's");
    machine.kernel_release = "6.12.0".to_owned();
    machine.settings.transparent_huge_pages = Some("always".to_owned());
}

#[test]
fn equal_runs_have_no_regression() {
    let (_, has_regression, is_judged) = compared(|_| {}, OPTIONS);
    assert_eq!((has_regression, is_judged), (false, true));
}

#[test]
fn a_slower_case_is_a_regression_and_a_faster_one_is_none() {
    let (text, has_regression, is_judged) = compared(
        |after| {
            slow_down(after, 0, 0.7);
            slow_down(after, 1, 1.6);
            after.cases[2].outcome = CaseStatus::Skipped {
                reason: "the device is gone".to_owned(),
            };
        },
        OPTIONS,
    );
    assert_eq!((has_regression, is_judged), (true, true));
    insta::assert_snapshot!("compare_with_a_regression", text);
}

#[test]
fn a_case_that_broke_off_is_a_regression() {
    let fail = |after: &mut RunResult| {
        after.cases[3].outcome = CaseStatus::Failed {
            reason: "the disk is full".to_owned(),
        };
    };
    let (text, has_regression, _) = compared(fail, OPTIONS);
    assert!(has_regression);
    assert!(text.contains("now failed: the disk is full"), "{text}");
}

#[test]
fn machines_that_differ_are_named_and_nothing_is_called() {
    let change = |after: &mut RunResult| {
        change_machine(after);
        slow_down(after, 0, 0.7);
    };
    let (text, has_regression, is_judged) = compared(change, OPTIONS);
    assert_eq!((has_regression, is_judged), (false, false));
    insta::assert_snapshot!("compare_of_machines_that_differ", text);
    let across = CompareOptions {
        across_machines: true,
        ..OPTIONS
    };
    let (text, has_regression, is_judged) = compared(change, across);
    assert_eq!((has_regression, is_judged), (true, true));
    assert!(text.contains("differ, as was said"), "{text}");
}

#[test]
fn settings_that_differ_are_named_and_nothing_is_called() {
    let writers = json!([{ "name": "direct, sync", "database": { "writers": 4 } }]);
    let change = |after: &mut RunResult| {
        change_experiment(after, "/workload/transactions/read_percent", json!(90));
        change_experiment(after, "/layouts", writers.clone());
    };
    let (text, has_regression, is_judged) = compared(change, OPTIONS);
    assert_eq!((has_regression, is_judged), (false, false));
    insta::assert_snapshot!("compare_of_settings_that_differ", text);
    let across = CompareOptions {
        across_settings: true,
        ..OPTIONS
    };
    assert!(compared(change, across).2);
    // What one layout asks for is no matter of the others.
    let of_one = |after: &mut RunResult| {
        change_experiment(after, "/layouts", writers.clone());
        slow_down(after, 2, 0.5);
    };
    let (text, has_regression, is_judged) = compared(of_one, OPTIONS);
    assert_eq!((has_regression, is_judged), (false, true), "{text}");
}

#[test]
fn one_round_judges_nothing() {
    let before = result();
    let mut after = result();
    for case in &mut after.cases {
        case.trials.truncate(1);
        slow_down_all(&mut case.trials);
    }
    let (before, after) = ([side("a", &before)], [side("b", &after)]);
    let comparison = compare::compare(&before, &after, &OPTIONS).unwrap();
    assert!(!comparison.has_regression() && !comparison.is_judged());
}

fn slow_down_all(trials: &mut [spindle_result::Trial]) {
    for trial in trials {
        trial.tpm *= 0.1;
    }
}

#[test]
fn at_a_fixed_rate_the_time_of_transactions_is_compared() {
    let mut before = result();
    for case in &mut before.cases {
        for trial in &mut case.trials {
            trial.arrivals = Some(Arrivals {
                is_recorded: false,
                rate_per_s: 500.0,
                delay_us: trial.latency_us,
                backlog: 0,
                is_overloaded: false,
            });
        }
    }
    let mut after = before.clone();
    for trial in &mut after.cases[0].trials {
        trial.latency_us.p99 *= 2.0;
    }
    // As little throughput as that is no matter: all kept the rate.
    slow_down(&mut after, 1, 0.9);
    let (before, after) = ([side("a", &before)], [side("b", &after)]);
    let comparison = compare::compare(&before, &after, &OPTIONS).unwrap();
    let text = compare::render(&before, &after, &comparison, &OPTIONS, plain(120));
    assert!(comparison.has_regression());
    insta::assert_snapshot!("compare_at_a_fixed_rate", text);
}

/// The fixture as this many runs, each with something of its own: all cases are faster or slower by it.
fn several(speeds: &[f64], change: impl Fn(&mut RunResult)) -> Vec<RunResult> {
    let run = |speed: &f64| {
        let mut run = result();
        for case in 0..run.cases.len() {
            slow_down(&mut run, case, *speed);
        }
        change(&mut run);
        run
    };
    speeds.iter().map(run).collect()
}

fn sides<'a>(names: &[&'a str], results: &'a [RunResult]) -> Vec<ComparedRun<'a>> {
    let named = names.iter().zip(results);
    named.map(|(name, result)| side(name, result)).collect()
}

/// Sides of three runs that differ by what each run adds, `change` applied to each of now.
fn three_a_side(change: impl Fn(&mut RunResult), options: CompareOptions) -> (String, Value) {
    let (before, after) = (
        several(&[1.0, 1.06, 0.95], |_| {}),
        several(&[1.02, 0.96, 1.07], change),
    );
    let before = sides(
        &["runs/before-1", "runs/before-2", "runs/before-3"],
        &before,
    );
    let after = sides(&["runs/now-1", "runs/now-2", "runs/now-3"], &after);
    let comparison = compare::compare(&before, &after, &options).unwrap();
    let text = compare::render(&before, &after, &comparison, &options, plain(120));
    let told = compare::json(&before, &[(after, comparison)], &options);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(schema_errors(&told), Vec::<String>::new());
    (text, told)
}

#[test]
fn several_runs_a_side_know_the_noise_between_runs_and_how_many_would_do() {
    let slower = |after: &mut RunResult| slow_down(after, 0, 0.6);
    let (text, told) = three_a_side(slower, OPTIONS);
    insta::assert_snapshot!("compare_several_runs_a_side", text);
    assert_eq!(told["outcome"], "regression");
    let case = &told["comparisons"][0]["cases"][0];
    assert_eq!(case["verdict"], "slower");
    assert_eq!(case["runs"], json!([3, 3]));
    let noise = &case["noise"];
    assert!(noise["between_runs"].as_f64().unwrap() > 0.0, "{noise}");
    assert!(noise["runs_needed"].as_u64().unwrap() >= 3, "{noise}");
    assert_eq!(told["before_runs"].as_array().unwrap().len(), 3);
    let now = &told["comparisons"][0]["now_runs"];
    assert_eq!(now[2]["directory"], "runs/now-3");
    // Equal sides: nothing regressed, and whether it would have been seen is said by the exit code.
    let (_, told) = three_a_side(|_| {}, OPTIONS);
    assert_ne!(told["outcome"], "regression");
}

#[test]
fn runs_of_a_side_that_differ_are_named_and_nothing_is_called() {
    let mut before = several(&[1.0, 1.02, 0.98], |_| {});
    change_machine(&mut before[1]);
    let after = several(&[1.0, 1.01, 0.99], |_| {});
    let before = sides(&["b1", "b2", "b3"], &before);
    let after = sides(&["n1", "n2", "n3"], &after);
    let comparison = compare::compare(&before, &after, &OPTIONS).unwrap();
    assert!(!comparison.is_judged());
    let text = compare::render(&before, &after, &comparison, &OPTIONS, plain(120));
    assert!(
        text.contains("  kernel_release: 6.1.0 -> 6.12.0 (b2)\n"),
        "{text}"
    );
}

#[test]
fn a_case_that_broke_off_in_one_of_the_runs_is_a_regression() {
    let before = several(&[1.0, 1.02, 0.98], |_| {});
    let mut after = several(&[1.0, 1.01, 0.99], |_| {});
    after[1].cases[3].outcome = CaseStatus::Failed {
        reason: "the disk is full".to_owned(),
    };
    let names = ["1", "2", "3"];
    let told = |before: &[RunResult], after: &[RunResult]| {
        let (before, after) = (sides(&names, before), sides(&names, after));
        let comparison = compare::compare(&before, &after, &OPTIONS).unwrap();
        let text = compare::render(&before, &after, &comparison, &OPTIONS, plain(120));
        (comparison.has_regression(), text)
    };
    let (has_regression, text) = told(&before, &after);
    assert!(has_regression);
    let reason = "now in 1 of 3 runs failed: the disk is full";
    assert!(text.contains(reason), "{text}");
    // It broke off before, too: the runs that have it are compared.
    assert!(!told(&after, &after).0);
}

fn schema_errors(document: &Value) -> Vec<String> {
    let schema =
        serde_json::from_str(include_str!("../../../../docs/compare.schema.json")).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors = validator.iter_errors(document);
    errors
        .map(|error| error.instance_path().to_string())
        .collect()
}

/// The fixture beside itself after each of `changes`, as JSON.
fn as_json(changes: &[fn(&mut RunResult)], options: &CompareOptions) -> Value {
    let before = result();
    let others: Vec<RunResult> = changes
        .iter()
        .map(|change| {
            let mut after = result();
            change(&mut after);
            after
        })
        .collect();
    let before = [side("runs/before", &before)];
    let comparisons: Vec<_> = others
        .iter()
        .map(|after| {
            let after = vec![side("runs/after", after)];
            let comparison = compare::compare(&before, &after, options).unwrap();
            (after, comparison)
        })
        .collect();
    let text = compare::json(&before, &comparisons, options);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn comparisons_as_json_follow_the_documented_schema() {
    let slower = |after: &mut RunResult| {
        slow_down(after, 0, 0.7);
        after.cases[1].outcome = CaseStatus::Failed {
            reason: "the disk is full".to_owned(),
        };
    };
    let differs = |after: &mut RunResult| {
        let odd = json!([{ "name": "direct, sync", "odd": 1 }]);
        change_experiment(after, "/layouts", odd);
    };
    let other_database =
        |after: &mut RunResult| change_experiment(after, "/database/engine", json!("mariadb"));
    let told = as_json(&[slower, differs, other_database], &OPTIONS);
    assert_eq!(schema_errors(&told), Vec::<String>::new());
    assert_eq!(told["outcome"], "regression");
    let [first, second, third] = &told["comparisons"].as_array().unwrap()[..] else {
        panic!("{told}")
    };
    let case = |comparison: &Value, index: usize| comparison["cases"][index].clone();
    assert_eq!(
        (
            case(first, 0)["verdict"].clone(),
            case(first, 0)["is_regression"].clone()
        ),
        (json!("slower"), json!(true))
    );
    assert!((case(first, 0)["ratio"].as_f64().unwrap() - 0.7).abs() < 1e-9);
    assert_eq!(case(first, 1)["status"], "missing");
    assert_eq!(case(first, 1)["reason"], "now failed: the disk is full");
    assert_eq!(second["outcome"], "too_imprecise");
    assert_eq!(case(second, 2)["status"], "not_judged");
    assert_eq!(case(second, 2)["differences"][0]["setting"], "odd");
    assert_eq!(third["orderings"][0]["engines"][1], "mariadb");
}

#[test]
fn the_schema_of_comparisons_rejects_wrong_ones() {
    type Fault = fn(&mut Value);
    let faults: [(&str, Fault); 6] = [
        ("", |told| told["mood"] = "good".into()),
        ("/outcome", |told| told["outcome"] = "fine".into()),
        ("/before_runs", |told| told["before_runs"] = json!([])),
        ("/comparisons", |told| told["comparisons"] = json!([])),
        ("/comparisons/0/cases/0", |told| {
            told["comparisons"][0]["cases"][0]["verdict"] = Value::Null;
        }),
        ("/comparisons/0/cases/0/ratio", |told| {
            told["comparisons"][0]["cases"][0]["ratio"] = (-1).into();
        }),
    ];
    for (place, plant) in faults {
        let mut wrong = as_json(&[|_| {}], &OPTIONS);
        assert_eq!(schema_errors(&wrong), Vec::<String>::new());
        plant(&mut wrong);
        let errors = schema_errors(&wrong);
        assert!(
            errors.iter().any(|error| error == place),
            "{place:?}: {errors:?}"
        );
    }
}

// The program.

fn spindle(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn words(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn runs_are_compared_with_exit_codes_for_scripts() {
    let place = tempfile::tempdir().unwrap();
    let run = |name: &str, run: Run<'_>| run.write(&place.path().join("runs").join(name));
    run("before", Run::default());
    run(
        "same",
        Run {
            at: "2026-01-02T12:00:00Z",
            ..Run::default()
        },
    );
    run(
        "slow",
        Run {
            speed_of_second: 0.8,
            ..Run::default()
        },
    );
    for (slow, same, at) in [
        ("slow-2", "same-2", "2026-01-03T12:00:00Z"),
        ("slow-3", "same-3", "2026-01-04T12:00:00Z"),
    ] {
        for (name, speed_of_second) in [(slow, 0.8), (same, Run::default().speed_of_second)] {
            run(
                name,
                Run {
                    at,
                    speed_of_second,
                    ..Run::default()
                },
            );
        }
    }
    run(
        "other",
        Run {
            sets: &["workload.read_percent=90"],
            ..Run::default()
        },
    );
    run(
        "short",
        Run {
            rounds: 1,
            ..Run::default()
        },
    );
    let compare = |runs: &[&str]| {
        let arguments = [&["compare"], runs].concat();
        let output = spindle(&place.path().join("runs"), &arguments);
        (code(&output), words(&output))
    };
    // Three rounds of this noise do not show 5 %, but 40 %.
    let (status, text) = compare(&["before", "same"]);
    assert_eq!(status, Some(4), "{text}");
    assert!(text.contains("known well enough to see 5 %"), "{text}");
    assert_eq!(
        compare(&["before", "same", "--threshold", "40%"]).0,
        Some(0)
    );
    assert_eq!(compare(&["before", "slow"]).0, Some(1));
    // A run named twice on a side is no second run.
    let (status, text) = compare(&["before", "before", "--", "slow"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("before and before are one run"), "{text}");
    assert_eq!(compare(&["before", "same", "slow"]).0, Some(1));
    assert_eq!(
        compare(&["before", "slow", "--threshold", "60%"]).0,
        Some(0)
    );
    assert_eq!(compare(&["before", "other"]).0, Some(3));
    assert_eq!(
        compare(&["before", "other", "--across-settings"]).0,
        Some(4)
    );
    assert_eq!(compare(&["before", "short"]).0, Some(3));
    assert_eq!(compare(&["before"]).0, Some(2));
    assert_eq!(compare(&["before", "none"]).0, Some(2));
    for (other, status, outcome) in [
        ("same", 4, "too_imprecise"),
        ("slow", 1, "regression"),
        ("other", 3, "nothing_judged"),
    ] {
        let (ended, text) = compare(&["before", other, "--format", "json"]);
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(ended, Some(status));
        assert_eq!(told["outcome"], outcome);
        assert_eq!(told["comparisons"][0]["now"]["directory"], other);
    }
    let (status, text) = compare(&["before", "same", "--", "slow", "slow-2", "slow-3"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("2 runs beside 3 runs"), "{text}");
    assert_eq!(
        compare(&["before", "--", "same", "same-2", "same-3"]).0,
        Some(0)
    );
    assert_eq!(compare(&["--", "before", "same"]).0, Some(2));
    let (status, text) = compare(&["before", "--", "same", "--threshold", "5%"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("--threshold comes after `--`"), "{text}");
    assert_eq!(compare(&["before", "--", "none"]).0, Some(2));
    let (status, text) = compare(&["before", "slow", "--threshold", "5"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("a percentage with its sign"), "{text}");
}

#[test]
fn runs_are_listed_whatever_became_of_them() {
    let place = tempfile::tempdir().unwrap();
    let empty = spindle(place.path(), &["list"]);
    assert_eq!(
        (code(&empty), words(&empty).as_str()),
        (
            Some(0),
            "There is no run below runs. `spindle run FILE` makes one.\n"
        )
    );
    let runs = place.path().join("runs");
    Run::default().write(&runs.join("first"));
    Run {
        at: "2026-01-03T12:00:00Z",
        rounds: 1,
        ..Run::default()
    }
    .write(&runs.join("deep/er/second"));
    Run::default().write(&runs.join("third"));
    let journal = runs.join("third/journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replacen("layout_examined", "lunch_eaten", 1)).unwrap();
    fs::create_dir(runs.join("no-run")).unwrap();
    let listed = spindle(place.path(), &["list"]);
    assert_eq!(code(&listed), Some(0));
    insta::assert_snapshot!("list", words(&listed));
    let below_nothing = spindle(place.path(), &["list", "elsewhere"]);
    assert_eq!(code(&below_nothing), Some(2));
    assert!(words(&below_nothing).contains("elsewhere"));
}

#[test]
fn what_is_no_run_is_said_and_nothing_is_written() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    Run::default().write(&run);
    let before = fs::read_dir(&run).unwrap().count();
    for arguments in [
        &["show", "run"][..],
        &["export", "run", "--format", "csv"],
        &["export", "run", "--format", "json"],
        &["export", "run", "--format", "openmetrics"],
        &["compare", "run", "run", "--threshold", "40%"],
    ] {
        let output = spindle(place.path(), arguments);
        assert_eq!(code(&output), Some(0), "{}", words(&output));
    }
    assert_eq!(fs::read_dir(&run).unwrap().count(), before);

    fs::create_dir(place.path().join("foreign")).unwrap();
    fs::write(
        place.path().join("foreign/journal.jsonl"),
        "{\"note\": 1}\n",
    )
    .unwrap();
    fs::create_dir(place.path().join("empty")).unwrap();
    let mut said = String::new();
    for (directory, wanted) in [("foreign", 1), ("empty", 2), ("none", 2)] {
        let output = spindle(place.path(), &["show", directory]);
        assert_eq!(code(&output), Some(wanted));
        said += &words(&output);
    }
    insta::assert_snapshot!("no_runs", said);
}

#[test]
fn a_shown_run_ends_with_its_warnings() {
    let place = tempfile::tempdir().unwrap();
    Run {
        rounds: 2,
        ..Run::default()
    }
    .write(&place.path().join("run"));
    let output = spindle(place.path(), &["show", "run"]);
    insta::assert_snapshot!("show_of_a_directory", words(&output));
}
