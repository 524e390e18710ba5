//! `spindle history`: the runs of one question in order of time, and where each case changed its level
//! ([`spindle_stats::change_points`]), with what differs in the machines of the runs beside the change.

mod json;
mod text;

use spindle_result::{CaseId, Measure, RunResult};
use spindle_stats::{HISTORY_MIN, StatsError, change_points};

use crate::compare::{ComparedRun, Difference, differences, figures};

pub use json::json;
pub use text::render;

/// What runs below a directory have become over time.
pub struct Histories<'a> {
    /// One for each question that enough runs ask, the one of the first run first.
    pub histories: Vec<History<'a>>,
    /// Runs of other questions.
    pub left_out: Vec<ComparedRun<'a>>,
}

/// The runs of one question.
pub struct History<'a> {
    /// The runs in order of time.
    pub runs: Vec<ComparedRun<'a>>,
    /// The cases that enough of them have.
    pub cases: Vec<CaseHistory>,
}

/// The index of a run, and the mean of a case in it.
pub type RunMean = (usize, f64);

/// A case over the runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseHistory {
    /// Which case.
    pub id: CaseId,
    /// What is looked at.
    pub measure: Measure,
    /// The runs that have figures of it, as indices, and the mean of each: transactions per minute or microseconds.
    pub values: Vec<RunMean>,
    /// How far a run lies from its level: a standard deviation, 0.02 is about 2 %; `None` where that cannot be known.
    pub noise: Option<f64>,
    /// Where it changed.
    pub changes: Vec<Change>,
}

/// A change of level between two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The last run of the old level and the first of the new one, as indices.
    pub runs: [usize; 2],
    /// How fast it is on the new level over how fast it was: below 1 is slower.
    pub ratio: f64,
    /// Its interval, 95 % for all cases and all places where they could have changed.
    pub ci95: (f64, f64),
    /// What differs in the machines of the two runs.
    pub machines: Vec<Difference>,
}

impl History<'_> {
    /// Whether any case changed.
    pub fn has_changes(&self) -> bool {
        self.cases.iter().any(|case| !case.changes.is_empty())
    }
}

/// The histories of these runs, whatever their order.
///
/// # Errors
/// A figure that has no ratio, which only a journal changed by hand can hold.
pub fn histories<'a>(runs: &[ComparedRun<'a>]) -> Result<Histories<'a>, StatsError> {
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| (a.started_at, a.name).cmp(&(b.started_at, b.name)));
    let mut groups: Vec<Vec<ComparedRun<'a>>> = Vec::new();
    for run in runs {
        let mut known = groups.iter_mut();
        match known.find(|group| is_one_question(group[0].result, run.result)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let (long, short): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|group| group.len() >= HISTORY_MIN);
    let histories = long.into_iter().map(history);
    Ok(Histories {
        histories: histories.collect::<Result<Vec<History<'a>>, StatsError>>()?,
        left_out: short.into_iter().flatten().collect(),
    })
}

/// Whether two runs ask the same: the same experiment, workload, plan and layouts.
fn is_one_question(a: &RunResult, b: &RunResult) -> bool {
    let names = |result: &RunResult| -> Vec<String> {
        let layouts = result.layouts.iter();
        layouts.map(|layout| layout.name.clone()).collect()
    };
    let layouts = names(a);
    a.experiment.name() == b.experiment.name()
        && a.workload == b.workload
        && layouts == names(b)
        && differences::of_experiments(a, b).is_empty()
        && layouts
            .iter()
            .all(|layout| differences::of_layouts(a, b, layout).is_empty())
}

fn history(runs: Vec<ComparedRun<'_>>) -> Result<History<'_>, StatsError> {
    let mut ids: Vec<&CaseId> = Vec::new();
    for case in runs.iter().flat_map(|run| &run.result.cases) {
        if !ids.contains(&&case.id) {
            ids.push(&case.id);
        }
    }
    let known: Vec<(CaseId, Measure, Vec<RunMean>)> = ids
        .into_iter()
        .filter_map(|id| {
            let (measure, values) = values_of(&runs, id)?;
            (values.len() >= HISTORY_MIN).then(|| (id.clone(), measure, values))
        })
        .collect();
    let histories = known.len() as u32;
    let cases = known
        .into_iter()
        .map(|(id, measure, values)| case_history(&runs, id, measure, values, histories));
    Ok(History {
        cases: cases.collect::<Result<Vec<CaseHistory>, StatsError>>()?,
        runs,
    })
}

/// The mean of a case in each run that has figures of it; `None` where none has.
fn values_of(runs: &[ComparedRun<'_>], id: &CaseId) -> Option<(Measure, Vec<RunMean>)> {
    let of_run = |(index, run): (usize, &ComparedRun<'_>)| {
        let (measure, rounds) = figures(run.result.case(id)?).ok()?;
        // The same mean of logarithms by which runs are compared.
        let logs: f64 = rounds.iter().map(|value| value.ln()).sum();
        Some((measure, index, (logs / rounds.len() as f64).exp()))
    };
    let found: Vec<_> = runs.iter().enumerate().filter_map(of_run).collect();
    let measure = found.first()?.0;
    let alike = found.into_iter().filter(|(other, ..)| *other == measure);
    let values = alike.map(|(_, index, value)| (index, value));
    Some((measure, values.collect()))
}

fn case_history(
    runs: &[ComparedRun<'_>],
    id: CaseId,
    measure: Measure,
    values: Vec<RunMean>,
    histories: u32,
) -> Result<CaseHistory, StatsError> {
    let speeds = values.iter().map(|(_, value)| match measure {
        Measure::Throughput => *value,
        // The shorter time is the faster.
        Measure::P99 => 1e6 / value,
    });
    let levels = change_points(&speeds.collect::<Vec<f64>>(), histories)?;
    let changes = levels.changes.iter().map(|change| {
        let beside = [values[change.at - 1].0, values[change.at].0];
        Change {
            runs: beside,
            ratio: change.ratio,
            ci95: change.ci95,
            machines: differences::of_machines(runs[beside[0]].result, runs[beside[1]].result),
        }
    });
    let changes = changes.collect();
    Ok(CaseHistory {
        id,
        measure,
        values,
        noise: levels.noise,
        changes,
    })
}
