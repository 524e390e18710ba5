//! A comparison of runs for programs. What each field holds is described in `docs/compare.md`, for machines in
//! `docs/compare.schema.json`; a field that goes away or changes its meaning there is a breaking change for readers.

use serde::Serialize;

use super::{
    CaseCall, CaseComparison, CompareOptions, ComparedRun, Conclusion, Difference, Judgement,
    Noise, Orderings, RunComparison, sees,
};
use spindle_result::{LoadLevel, Measure, Verdict, noise};

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

/// All that a call of `spindle compare` found.
#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    outcome: Conclusion,
    threshold: f64,
    across_machines: bool,
    across_settings: bool,
    before: Run<'a>,
    before_runs: Vec<Run<'a>>,
    comparisons: Vec<ComparisonDocument<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    directory: &'a str,
    started_at: &'a str,
    headline: &'a str,
    noise: Vec<String>,
}

#[derive(Serialize)]
struct ComparisonDocument<'a> {
    now: Run<'a>,
    now_runs: Vec<Run<'a>>,
    outcome: Conclusion,
    machines: &'a [Difference],
    experiments: &'a [Difference],
    cases: Vec<Case<'a>>,
    orderings: &'a [Orderings],
}

#[derive(Serialize)]
struct Case<'a> {
    layout: &'a str,
    workload: &'a str,
    #[serde(flatten)]
    load: LoadLevel,
    status: &'static str,
    is_regression: bool,
    reason: Option<&'a str>,
    verdict: Option<Verdict>,
    measure: Option<Measure>,
    before: Option<f64>,
    now: Option<f64>,
    ratio: Option<f64>,
    ci95: Option<(f64, f64)>,
    p_value: Option<f64>,
    sees: Option<f64>,
    runs: Option<[usize; 2]>,
    noise: Option<Noise>,
    differences: &'a [Difference],
}

/// The first side beside each of the others, indented, ended by a line feed. A side has one run or more.
pub fn json(
    before: &[ComparedRun<'_>],
    others: &[(Vec<ComparedRun<'_>>, RunComparison)],
    options: &CompareOptions,
) -> String {
    let comparisons = others.iter().map(|(now, comparison)| ComparisonDocument {
        now: run(now[0]),
        now_runs: runs(now),
        outcome: comparison.outcome(),
        machines: &comparison.machines,
        experiments: &comparison.experiments,
        cases: comparison.cases.iter().map(case).collect(),
        orderings: &comparison.orderings,
    });
    let document = Document {
        format: FORMAT_VERSION,
        outcome: Conclusion::of_all(others.iter().map(|(_, comparison)| comparison.outcome())),
        threshold: options.threshold,
        across_machines: options.across_machines,
        across_settings: options.across_settings,
        before: run(before[0]),
        before_runs: runs(before),
        comparisons: comparisons.collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("a comparison holds only strings, numbers and lists");
    text.push('\n');
    text
}

fn runs<'a>(sides: &[ComparedRun<'a>]) -> Vec<Run<'a>> {
    sides.iter().map(|side| run(*side)).collect()
}

fn run(side: ComparedRun<'_>) -> Run<'_> {
    Run {
        directory: side.name,
        started_at: side.started_at,
        headline: &side.result.headline,
        noise: noise(side.result),
    }
}

fn case(case: &CaseComparison) -> Case<'_> {
    let mut told = Case {
        layout: &case.id.layout,
        workload: &case.workload,
        load: case.id.load,
        status: "missing",
        is_regression: false,
        reason: None,
        verdict: None,
        measure: None,
        before: None,
        now: None,
        ratio: None,
        ci95: None,
        p_value: None,
        sees: None,
        runs: None,
        noise: None,
        differences: &[],
    };
    match &case.judgement {
        Judgement::Missing {
            reason,
            is_regression,
        } => {
            told.reason = Some(reason);
            told.is_regression = *is_regression;
        }
        Judgement::Compared {
            measure,
            before,
            after,
            speed,
            runs,
            noise,
            differences,
            call,
        } => {
            told.differences = differences;
            (told.runs, told.noise) = (Some(*runs), *noise);
            told.measure = Some(*measure);
            (told.before, told.now) = (Some(*before), Some(*after));
            (told.ratio, told.ci95, told.p_value) = (Some(speed.ratio), speed.ci95, speed.p_value);
            told.sees = sees(speed).filter(|_| !case.has_too_few());
            match call {
                CaseCall::Called {
                    verdict,
                    is_regression,
                } => {
                    told.status = "judged";
                    (told.verdict, told.is_regression) = (Some(*verdict), *is_regression);
                }
                CaseCall::Refused => told.status = "not_judged",
            }
        }
    }
    told
}
