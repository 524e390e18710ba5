//! At which level the variance of a comparison is: within trials, between trials, or between runs that were made again
//! (files, file systems, another hour). Repetition narrows an interval only at the level where the variance is, or
//! above.
//!
//! The parts are those of T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013), section 6:
//! with `S_i^2` the variance of means at level `i` within one of level `i + 1`, averaged, and `n_i` repetitions at
//! level `i`, `T_1^2 = S_1^2` and `T_i^2 = S_i^2 - S_(i-1)^2 / n_(i-1)`, none below zero. Their section 8 gives the
//! repetitions that make an interval narrowest for its time: `n_i = sqrt(c_(i+1) / c_i * T_i^2 / T_(i+1)^2)`, `c_i`
//! being the cost of one more at level `i`.

use crate::interval::{self, Moments};

/// The most rounds that are ever recommended.
const ROUNDS_MAX: f64 = 100.0;

/// Measured times that are recommended, seconds. In less than one, a trial measures how it begins.
const LENGTHS_S: [f64; 7] = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0];
/// The fewest rounds of a plan that is recommended.
const ROUNDS_MIN: f64 = 6.0;

/// Standard deviations of the logarithm of a ratio, by level; 0.02 is about 2 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceParts {
    /// Within trials: a trial twice as long has less of it.
    pub within: f64,
    /// Between the trials of a run; more rounds average it out.
    pub trials: f64,
    /// Between runs; only more runs average it out. `None` with a single run.
    pub runs: Option<f64>,
}

/// The parts of a ratio's variance: `runs` holds for each run the logarithms of the ratio, one for each round, and
/// `within_variance` the part of one such logarithm's variance that comes from within its trials (0 when it is not
/// known, which leaves it to the trials). `None` unless some run has two rounds.
pub fn variance_parts(runs: &[Vec<f64>], within_variance: f64) -> Option<VarianceParts> {
    let moments: Vec<Moments> = runs.iter().filter_map(|run| Moments::of(run)).collect();
    let inner: Vec<f64> = moments
        .iter()
        .filter_map(|run| run.standard_deviation)
        .map(|deviation| deviation * deviation)
        .collect();
    let between_trials = mean(&inner)?;
    let within = within_variance.min(between_trials);
    let of_runs = (moments.len() > 1).then(|| {
        let means: Vec<f64> = moments.iter().map(|run| run.mean).collect();
        let deviation = Moments::of(&means).and_then(|of| of.standard_deviation);
        let inverse: Vec<f64> = moments
            .iter()
            .map(|run| 1.0 / f64::from(run.count))
            .collect();
        let by_trials = between_trials * mean(&inverse).unwrap_or(0.0);
        (deviation.unwrap_or(0.0).powi(2) - by_trials)
            .max(0.0)
            .sqrt()
    });
    Some(VarianceParts {
        within: within.sqrt(),
        trials: (between_trials - within).sqrt(),
        runs: of_runs,
    })
}

/// How many rounds a run should have so that the interval is narrowest for its time, when a run costs `run_s` on top of
/// its rounds and a round `round_s`; `None` where only one run is known. Without any variance between runs, as many as
/// possible.
pub fn rounds_per_run(parts: &VarianceParts, run_s: f64, round_s: f64) -> Option<u32> {
    let runs = parts.runs?;
    let of_rounds = parts.within.powi(2) + parts.trials.powi(2);
    let rounds = (run_s / round_s * of_rounds / runs.powi(2)).sqrt();
    match rounds.is_nan() {
        true => None,
        false => Some(rounds.ceil().clamp(1.0, ROUNDS_MAX) as u32),
    }
}

/// How a plan spends its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanPace {
    /// Measured time of a trial, seconds.
    pub measured_s: f64,
    /// What a round of two trials takes in all, seconds.
    pub round_s: f64,
    /// Rounds.
    pub rounds: u32,
}

/// A measured time of trials, and what it would do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialLength {
    /// Measured time of a trial, seconds.
    pub measured_s: f64,
    /// How wide the interval would be in the same time, as a part of how wide it is.
    pub width: f64,
}

/// The measured time by which the interval of one run would be narrowest, when the run takes as long as it took.
/// Variance within trials falls as they grow; variance between them and the other time of a trial stay. `None` when the
/// time is too short for any.
pub fn best_trial_length(parts: &VarianceParts, pace: PlanPace) -> Option<TrialLength> {
    let whole_s = pace.round_s * f64::from(pace.rounds);
    let besides_s = pace.round_s - 2.0 * pace.measured_s;
    let half_width = |measured_s: f64, rounds: f64| {
        let within = parts.within.powi(2) * pace.measured_s / measured_s;
        let spread = (within + parts.trials.powi(2)) / rounds;
        interval::quantile(rounds as u32, 0.975) * spread.sqrt()
    };
    let now = half_width(pace.measured_s, f64::from(pace.rounds.max(2)));
    let lengths = LENGTHS_S.into_iter().filter_map(|measured_s| {
        let rounds = (whole_s / (besides_s + 2.0 * measured_s)).floor();
        let width = half_width(measured_s, rounds.max(2.0)) / now;
        (rounds >= ROUNDS_MIN && width.is_finite()).then_some(TrialLength { measured_s, width })
    });
    lengths.min_by(|a, b| a.width.total_cmp(&b.width))
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_is_found_where_it_is() {
        // Rounds agree within runs, runs do not.
        let runs = [
            vec![0.10, 0.11, 0.09],
            vec![-0.10, -0.09, -0.11],
            vec![0.0, 0.01, -0.01],
        ];
        let parts = variance_parts(&runs, 0.0).unwrap();
        assert!((parts.trials - 0.01).abs() < 1e-9, "{parts:?}");
        assert!((parts.runs.unwrap() - 0.1).abs() < 0.001, "{parts:?}");
        assert_eq!(rounds_per_run(&parts, 60.0, 60.0), Some(1));
        // And the other way round.
        let runs = [vec![0.1, -0.1, 0.0], vec![0.1, 0.0, -0.1]];
        let parts = variance_parts(&runs, 0.0).unwrap();
        assert_eq!((parts.runs, parts.trials), (Some(0.0), 0.1));
        assert_eq!(rounds_per_run(&parts, 60.0, 60.0), Some(100));
    }

    #[test]
    fn trials_are_as_long_as_their_own_variance_asks() {
        let pace = PlanPace {
            measured_s: 5.0,
            round_s: 12.0,
            rounds: 10,
        };
        let best = |within: f64, trials: f64, pace: PlanPace| {
            let parts = VarianceParts {
                within,
                trials,
                runs: None,
            };
            best_trial_length(&parts, pace)
        };
        // What differs from trial to trial wants many: 30 of 1 s in the time of 10 of 5 s.
        let many = best(0.0, 0.05, pace).unwrap();
        assert_eq!(many.measured_s, 1.0);
        let by_hand = (interval::quantile(30, 0.975) / 30_f64.sqrt())
            / (interval::quantile(10, 0.975) / 10_f64.sqrt());
        assert!((many.width - by_hand).abs() < 1e-9, "{many:?}");
        // What differs within them wants long ones: less of the time is lost besides.
        let long = best(
            0.05,
            0.0,
            PlanPace {
                round_s: 20.0,
                rounds: 30,
                ..pace
            },
        )
        .unwrap();
        assert!(long.measured_s > 5.0 && long.width < 1.0, "{long:?}");
        // Three rounds are too few for any other plan but one of shorter trials.
        let few = best(0.05, 0.0, PlanPace { rounds: 3, ..pace }).unwrap();
        assert!(few.measured_s <= 2.0, "{few:?}");
        assert_eq!(
            best(
                0.05,
                0.05,
                PlanPace {
                    round_s: 10.5,
                    rounds: 1,
                    ..pace
                }
            ),
            None
        );
        assert_eq!(best(0.0, 0.0, pace), None, "without any noise");
    }

    #[test]
    fn one_run_has_no_variance_between_runs_that_anybody_knows() {
        let parts = variance_parts(&[vec![0.1, -0.1, 0.0]], 0.0036).unwrap();
        assert_eq!(parts.runs, None);
        assert!((parts.within - 0.06).abs() < 1e-9 && (parts.trials - 0.08).abs() < 1e-9);
        assert_eq!(rounds_per_run(&parts, 1.0, 1.0), None);
        assert_eq!(variance_parts(&[vec![0.1], vec![0.2]], 0.0), None);
        let more_within = variance_parts(&[vec![0.1, -0.1, 0.0]], 1.0).unwrap();
        assert_eq!((more_within.within, more_within.trials), (0.1, 0.0));
    }
}
