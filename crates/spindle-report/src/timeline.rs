//! The sampled trials of one workload and load level, and the round of theirs that is drawn.

use std::num::NonZeroUsize;
use std::time::Duration;

use spindle_stats::TimeSeries;

use spindle_result::{Case, Ranking, RunResult, SampledTrial, SystemFigure};

/// Samples that the moving average spans, as in the published charts of I/O rates over a run.
pub(super) const AVERAGED_SAMPLES: NonZeroUsize = NonZeroUsize::new(10).expect("ten is not zero");

/// The sampled trials of a load, by layout and round.
pub(super) struct Timeline<'a> {
    /// Trials that have samples.
    pub(super) trials: Vec<&'a SampledTrial>,
    /// The round to be drawn: the one in which throughput was nearest to the means of the cases. All layouts are shown
    /// in the same round, as they then shared whatever the machine was doing.
    pub(super) typical_round: u32,
}

impl<'a> Timeline<'a> {
    /// The trials of a ranking's load; `None` when none was sampled.
    pub(super) fn of(
        result: &RunResult,
        series: &'a [SampledTrial],
        ranking: &Ranking,
    ) -> Option<Timeline<'a>> {
        let of_load = series
            .iter()
            .filter(|trial| trial.case.load == ranking.load);
        let mut trials: Vec<&SampledTrial> =
            of_load.filter(|trial| !trial.tps.is_empty()).collect();
        trials.sort_by_key(|trial| (result.layout_number(&trial.case.layout), trial.round));
        let cases: Vec<&Case> = result.cases_at(ranking.load).collect();
        let rounds = trials.iter().map(|trial| trial.round);
        let typical_round = rounds.min_by(|a, b| {
            let [a, b] = [*a, *b].map(|round| distance(&cases, &trials, round));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        })?;
        Some(Timeline {
            trials,
            typical_round,
        })
    }

    /// The trials of the round that is drawn.
    pub(super) fn typical(&self) -> impl Iterator<Item = &'a SampledTrial> + '_ {
        let trials = self.trials.iter().copied();
        trials.filter(|trial| trial.round == self.typical_round)
    }

    /// Rounds of which there are samples, in order.
    pub(super) fn rounds(&self) -> Vec<u32> {
        let mut rounds: Vec<u32> = self.trials.iter().map(|trial| trial.round).collect();
        rounds.sort_unstable();
        rounds.dedup();
        rounds
    }
}

/// How little a round stands for all: how many layouts it lacks, then how far throughput was from the means.
fn distance(cases: &[&Case], trials: &[&SampledTrial], round: u32) -> (usize, f64) {
    let sampled = trials.iter().filter(|trial| trial.round == round).count();
    let off = cases.iter().filter_map(|case| {
        let trial = case.trials.iter().find(|trial| trial.round == round)?;
        Some((trial.tpm / case.tpm?.mean).ln().abs())
    });
    (cases.len().saturating_sub(sampled), off.sum())
}

/// Throughput of a trial in transactions per minute, to the nearest: of a sample's time no more is known.
pub(super) fn per_minute(trial: &SampledTrial) -> TimeSeries {
    let per_minute = trial.tps.iter().map(|tps| (tps * 60.0).round()).collect();
    TimeSeries::from_samples(Duration::from_millis(trial.interval_ms), per_minute)
}

/// Values with the seconds at which they stand: in the middle of the time that each covers.
pub(super) fn over_time(interval_ms: u64, values: &[f64]) -> Vec<(f64, f64)> {
    let seconds = |index: usize| (index as f64 + 0.5) * interval_ms as f64 / 1e3;
    let values = values.iter().enumerate();
    values
        .map(|(index, value)| (seconds(index), *value))
        .collect()
}

/// Time that the samples of a trial cover, in seconds.
pub(super) fn duration_s(trial: &SampledTrial) -> f64 {
    trial.tps.len() as f64 * trial.interval_ms as f64 / 1e3
}

/// Samples in which a trial completed checkpoints; none when they were not counted.
pub(super) fn checkpoints(trial: &SampledTrial) -> Vec<usize> {
    let column = trial
        .system
        .column(&SystemFigure::Checkpoints)
        .unwrap_or_default();
    let counted = column.iter().enumerate();
    counted
        .filter(|(_, count)| count.is_some_and(|count| count > 0.0))
        .map(|(index, _)| index)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{CaseId, SystemColumn, SystemSeries};

    fn trial(layout: &str, clients: u32, round: u32, tps: &[f64]) -> SampledTrial {
        SampledTrial {
            case: CaseId::new(layout, clients),
            round,
            interval_ms: 500,
            tps: tps.to_vec(),
            system: SystemSeries {
                interval_ms: 500,
                columns: vec![SystemColumn {
                    name: SystemFigure::Checkpoints,
                    values: vec![Some(0.0), None, Some(2.0)],
                }],
            },
        }
    }

    #[test]
    fn rates_are_per_minute_and_stand_in_the_middle_of_their_time() {
        let trial = trial("a", 8, 1, &[1.0, 3.0]);
        let series = per_minute(&trial);
        assert_eq!(series.samples(), [60.0, 180.0]);
        assert_eq!(
            over_time(500, series.samples()),
            [(0.25, 60.0), (0.75, 180.0)]
        );
        assert_eq!(duration_s(&trial), 1.0);
    }

    #[test]
    fn checkpoints_are_the_samples_that_completed_one() {
        assert_eq!(checkpoints(&trial("a", 8, 1, &[1.0])), [2]);
    }

    #[test]
    fn a_round_that_lacks_a_layout_is_not_typical() {
        let trials = [
            trial("a", 8, 1, &[1.0]),
            trial("a", 8, 2, &[1.0]),
            trial("b", 8, 2, &[1.0]),
        ];
        let trials: Vec<&SampledTrial> = trials.iter().collect();
        assert_eq!(distance(&[], &trials, 1), (0, 0.0));
        let case = Case {
            id: CaseId::new("a", 8),
            outcome: spindle_result::CaseStatus::Measured,
            promise: spindle_result::Promise::default(),
            set_aside: Vec::new(),
            trials: Vec::new(),
            tpm: None,
            nopm: None,
            load: None,
            response_time: None,
            system: Vec::new(),
        };
        assert_eq!(distance(&[&case, &case], &trials, 1).0, 1);
        assert_eq!(distance(&[&case, &case], &trials, 2).0, 0);
    }
}
