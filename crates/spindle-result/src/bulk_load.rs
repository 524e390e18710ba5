//! Bulk loads: seconds, rows per second, and both over time. Called when a case is built.

use super::mean::mean_of;
use super::{BulkLoad, LoadStep, SampledTrial, SystemFigure, Trial};

/// The time of a load is shown in this many parts.
const PARTS: usize = 10;
/// One part would say what the whole says.
const PARTS_MIN: usize = 2;

/// The means of a case's trials; `None` of other workloads. `series` are the trials that were sampled.
pub(super) fn of_case(trials: &[Trial], series: &[&SampledTrial]) -> Option<BulkLoad> {
    let loads: Option<Vec<(&Trial, u64)>> = trials
        .iter()
        .map(|trial| Some((trial, trial.rows?)))
        .collect();
    let loads = loads?;
    let (_, rows) = *loads.first()?;
    let samples = loads.iter().filter_map(|&(trial, rows)| {
        let sampled = series.iter().find(|sampled| sampled.round == trial.round);
        Some(Samples::of(trial, rows, sampled?))
    });
    let rate = |&(trial, rows): &(&Trial, u64)| rows as f64 / trial.measured_s;
    Some(BulkLoad {
        rows,
        seconds: mean_of(trials.iter().map(|trial| trial.measured_s))?,
        rows_per_s: mean_of(loads.iter().map(rate))?,
        over_time: over_time(&samples.collect::<Vec<Samples>>()),
    })
}

/// The samples of one trial.
struct Samples<'a> {
    /// From the first row to the last commit, seconds.
    length_s: f64,
    /// Rows of a transaction.
    rows_each: f64,
    sampled: &'a SampledTrial,
}

impl<'a> Samples<'a> {
    fn of(trial: &Trial, rows: u64, sampled: &'a SampledTrial) -> Samples<'a> {
        Samples {
            length_s: trial.measured_s - trial.flush_s().unwrap_or(0.0),
            rows_each: rows as f64 / trial.transactions.max(1) as f64,
            sampled,
        }
    }

    /// Rows per second between two moments: the mean of the samples, by the time that each covers there.
    fn rows_per_s(&self, from_s: f64, to_s: f64) -> f64 {
        let interval_s = self.sampled.interval_ms as f64 / 1e3;
        let covered = |index: usize| {
            let begin_s = index as f64 * interval_s;
            (to_s.min(begin_s + interval_s) - from_s.max(begin_s)).max(0.0)
        };
        let tps = self.sampled.tps.iter().enumerate();
        let (sum, time_s) = tps.fold((0.0, 0.0), |(sum, time_s), (index, tps)| {
            (sum + tps * covered(index), time_s + covered(index))
        });
        match time_s > 0.0 {
            true => self.rows_each * sum / time_s,
            false => 0.0,
        }
    }

    /// Space at a moment.
    fn segments_mib(&self, at_s: f64) -> Option<f64> {
        let system = &self.sampled.system;
        let values = system.column(&SystemFigure::SegmentsMib)?;
        let sample = (at_s * 1e3 / system.interval_ms as f64).ceil() as usize;
        let sample = sample.clamp(1, values.len().max(1));
        values.get(sample - 1).copied().flatten().map(f64::from)
    }
}

fn over_time(trials: &[Samples<'_>]) -> Vec<LoadStep> {
    let fewest = trials.iter().map(|trial| trial.sampled.tps.len()).min();
    let parts = fewest.unwrap_or(0).min(PARTS);
    if parts < PARTS_MIN {
        return Vec::new();
    }
    let part = |number: usize| {
        let share = |number: usize| number as f64 / parts as f64;
        let mean = |of: &dyn Fn(&Samples<'_>) -> f64| mean_of(trials.iter().map(of));
        let space: Option<Vec<f64>> = trials
            .iter()
            .map(|trial| trial.segments_mib(trial.length_s * share(number + 1)))
            .collect();
        Some(LoadStep {
            end_s: mean(&|trial| trial.length_s * share(number + 1))?,
            rows_per_s: mean(&|trial| {
                let at_s = |number| trial.length_s * share(number);
                trial.rows_per_s(at_s(number), at_s(number + 1))
            })?,
            segments_mib: space.and_then(|space| mean_of(space.into_iter())),
        })
    };
    (0..parts).filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CaseId, SystemColumn, SystemSeries, sample};
    use super::*;

    fn sampled(round: u32, tps: &[f64], mib: &[f32]) -> SampledTrial {
        SampledTrial {
            case: CaseId::new("a", 8),
            round,
            interval_ms: 500,
            tps: tps.to_vec(),
            system: SystemSeries {
                interval_ms: 1000,
                columns: vec![SystemColumn {
                    name: SystemFigure::SegmentsMib,
                    values: mib.iter().copied().map(Some).collect(),
                }],
            },
        }
    }

    /// A trial of two seconds, with a hundred rows in each of its commits.
    fn trial(round: u32, commits: u64) -> Trial {
        let mut trial = sample::trial(round, 1.0);
        trial.transactions = commits;
        trial.rows = Some(100 * commits);
        trial.measured_s = 2.0;
        trial
    }

    #[test]
    fn rows_and_space_are_told_over_time() {
        let trials = [trial(1, 10), trial(2, 20)];
        let series = [
            sampled(1, &[8.0, 6.0, 4.0, 2.0], &[1.0, 3.0]),
            sampled(2, &[16.0, 12.0, 8.0, 4.0], &[3.0, 5.0]),
        ];
        let series: Vec<&SampledTrial> = series.iter().collect();
        let load = of_case(&trials, &series).expect("rows were inserted");
        assert_eq!(
            (load.rows, load.seconds, load.rows_per_s),
            (1000, 2.0, 750.0)
        );
        let rates: Vec<f64> = load.over_time.iter().map(|part| part.rows_per_s).collect();
        assert_eq!(rates, [1200.0, 900.0, 600.0, 300.0]);
        let ends: Vec<f64> = load.over_time.iter().map(|part| part.end_s).collect();
        assert_eq!(ends, [0.5, 1.0, 1.5, 2.0]);
        let space: Vec<f64> = load
            .over_time
            .iter()
            .filter_map(|part| part.segments_mib)
            .collect();
        assert_eq!(space, [2.0, 2.0, 4.0, 4.0]);
    }

    #[test]
    fn the_last_sample_counts_for_the_time_that_was_left() {
        let mut trials = [trial(1, 12)];
        trials[0].measured_s = 1.2;
        let series = sampled(1, &[12.0, 12.0, 30.0], &[]);
        let load = of_case(&trials, &[&series]).expect("rows were inserted");
        // A fifth of a second of 3000 rows/s, a fifth of 1200.
        let last = load.over_time.last().expect("three parts").rows_per_s;
        assert!((last - 2100.0).abs() < 1.0, "{last}");
        assert_eq!(load.over_time[0].segments_mib, None);
    }

    #[test]
    fn other_workloads_have_none_and_one_sample_has_no_course() {
        assert_eq!(of_case(&[sample::trial(1, 1.0)], &[]), None);
        let load = of_case(&[trial(1, 10)], &[&sampled(1, &[5.0], &[1.0])]);
        assert_eq!(load.expect("rows were inserted").over_time, []);
    }
}
