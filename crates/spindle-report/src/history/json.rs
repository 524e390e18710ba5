//! Histories for programs. What each field holds is described in `docs/history.md`, for machines in
//! `docs/history.schema.json`.

use serde::Serialize;

use super::{CaseHistory, Histories, History};
use crate::compare::{ComparedRun, Difference};
use spindle_result::{LoadLevel, Measure};

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    below: &'a str,
    histories: Vec<OneHistory<'a>>,
    left_out: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct OneHistory<'a> {
    experiment: &'a str,
    workload: &'a str,
    runs: Vec<Run<'a>>,
    cases: Vec<Case<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    directory: &'a str,
    started_at: &'a str,
}

#[derive(Serialize)]
struct Case<'a> {
    layout: &'a str,
    #[serde(flatten)]
    load: LoadLevel,
    measure: Measure,
    values: Vec<Option<f64>>,
    noise: Option<f64>,
    changes: Vec<Change<'a>>,
}

#[derive(Serialize)]
struct Change<'a> {
    before: Run<'a>,
    now: Run<'a>,
    ratio: f64,
    ci95: (f64, f64),
    machines: &'a [Difference],
}

/// Histories as one JSON object, indented, ended by a line feed.
pub fn json(histories: &Histories<'_>, below: &str) -> String {
    let document = Document {
        format: FORMAT_VERSION,
        below,
        histories: histories.histories.iter().map(history).collect(),
        left_out: histories.left_out.iter().map(run).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("a history holds only strings, numbers and lists");
    text.push('\n');
    text
}

fn history<'a>(history: &'a History<'a>) -> OneHistory<'a> {
    let first = history.runs[0].result;
    OneHistory {
        experiment: first.experiment.name(),
        workload: &first.workload,
        runs: history.runs.iter().map(run).collect(),
        cases: history
            .cases
            .iter()
            .map(|one| case(one, &history.runs))
            .collect(),
    }
}

fn run<'a>(side: &'a ComparedRun<'a>) -> Run<'a> {
    Run {
        directory: side.name,
        started_at: side.started_at,
    }
}

fn case<'a>(case: &'a CaseHistory, runs: &'a [ComparedRun<'a>]) -> Case<'a> {
    let mut values = vec![None; runs.len()];
    for (index, value) in &case.values {
        values[*index] = Some(*value);
    }
    let changes = case.changes.iter().map(|change| Change {
        before: run(&runs[change.runs[0]]),
        now: run(&runs[change.runs[1]]),
        ratio: change.ratio,
        ci95: change.ci95,
        machines: &change.machines,
    });
    Case {
        layout: &case.id.layout,
        load: case.id.load,
        measure: case.measure,
        values,
        noise: case.noise,
        changes: changes.collect(),
    }
}
