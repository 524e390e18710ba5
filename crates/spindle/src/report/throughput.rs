//! Throughput over time, prepared for drawing: the sampled trials of one workload and load level in one unit.

use std::num::NonZeroUsize;
use std::time::Duration;

use spindle_stats::TimeSeries;

use crate::result::{Ranking, SampledTrial};

/// Samples that the moving average spans, as in the published charts of I/O rates over a run.
pub(super) const AVERAGED_SAMPLES: NonZeroUsize = NonZeroUsize::new(10).expect("ten is not zero");

/// One trial over time, in transactions per minute.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    /// Index of its layout.
    pub(super) layout: usize,
    /// Its round, from 1.
    pub(super) round: u32,
    /// The samples themselves.
    pub(super) samples: TimeSeries,
    /// Their moving average over [`AVERAGED_SAMPLES`].
    pub(super) averages: TimeSeries,
}

/// The lines of one workload and load level, by layout and round. Trials without samples are left out.
pub(super) fn lines(series: &[SampledTrial], ranking: &Ranking) -> Vec<Line> {
    let mut lines: Vec<Line> = series
        .iter()
        .filter(|trial| trial.workload == ranking.workload && trial.clients == ranking.clients)
        .filter(|trial| !trial.tps.is_empty())
        .map(line)
        .collect();
    lines.sort_by_key(|line| (line.layout, line.round));
    lines
}

fn line(trial: &SampledTrial) -> Line {
    let per_minute = trial.tps.iter().map(|tps| tps * 60.0).collect();
    let samples = TimeSeries::from_samples(Duration::from_millis(trial.interval_ms), per_minute);
    Line {
        layout: trial.layout,
        round: trial.round,
        averages: samples.moving_average(AVERAGED_SAMPLES),
        samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::SystemSeries;

    fn trial(layout: usize, clients: u32, round: u32, tps: &[f64]) -> SampledTrial {
        SampledTrial {
            layout,
            workload: "oltp_mix".to_owned(),
            clients,
            round,
            interval_ms: 500,
            tps: tps.to_vec(),
            system: SystemSeries::default(),
        }
    }

    #[test]
    fn lines_are_of_one_load_in_order_and_per_minute() {
        let ranking = Ranking {
            workload: "oltp_mix".to_owned(),
            clients: 8,
            best: "a".to_owned(),
            winner: None,
            tied: Vec::new(),
            places: Vec::new(),
        };
        let series = [
            trial(1, 8, 1, &[1.0, 3.0]),
            trial(0, 64, 1, &[9.0]),
            trial(0, 8, 2, &[2.0]),
            trial(0, 8, 1, &[4.0]),
            trial(2, 8, 1, &[]),
        ];
        let lines = lines(&series, &ranking);
        let order: Vec<_> = lines.iter().map(|line| (line.layout, line.round)).collect();
        assert_eq!(order, [(0, 1), (0, 2), (1, 1)]);
        assert_eq!(lines[2].samples.samples(), [60.0, 180.0]);
        assert_eq!(lines[2].averages.samples(), [60.0, 120.0]);
        assert_eq!(lines[2].samples.step(), Duration::from_millis(500));
    }
}
