//! Several runs of each side: how the ratio of two sides is known when each run adds something of its own, and how many
//! runs find a loss of a given size.
//!
//! Two levels: the logarithm of a round is that of its side, plus what its run adds (new files, another hour), plus the
//! round's own noise. Only runs average out what runs add, so a run counts with the mean of its rounds, and an interval
//! rests on the spread of these means (T. Kalibera, R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013,
//! section 6).

use statrs::distribution::StudentsT;

use crate::interval::{Moments, quantile};
use crate::power::MAX_ROUNDS;
use crate::unpaired::{self, compare_unpaired_among};
use crate::{ROUNDS_TO_JUDGE, Side, StatsError, UnpairedRatio};

/// Two sides of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunsRatio {
    /// Geometric mean of the runs of `a` over that of `b`.
    pub ratio: UnpairedRatio,
    /// How far runs of one side differ; `None` where each side is a single run.
    pub noise: Option<RunNoise>,
    /// There are as many values as a verdict needs: runs of one side, or rounds of each where each side is one run.
    pub is_enough: bool,
}

/// The chance of finding the loss that the number of runs is made for.
const POWER: f64 = 0.975;

/// How far runs differ that should be equal: standard deviations of logarithms, 0.02 is about 2 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunNoise {
    /// What a run adds to all its rounds, their own noise taken out.
    pub between_runs: f64,
    /// Of a round within its run; `None` where every run has a single round.
    pub between_rounds: Option<f64>,
    /// Of the mean of a run: both together.
    of_means: f64,
    /// Degrees of freedom of `of_means`.
    freedom: u32,
    /// Comparisons whose intervals hold together.
    comparisons: u32,
}

impl RunNoise {
    /// The fewest runs a side that tell a `loss` of speed (0.05 for 5 %) from none in 95 of 100 comparisons, as long as
    /// these; at most [`MAX_ROUNDS`], which stands for "that many or more". `None` unless the loss is above 0 and
    /// below 1.
    ///
    /// The least `n` with `sqrt(n / 2) d / s >= t(1 - 0.025 / m) + t(0.975)`, `d` the logarithm of the loss, `s` the
    /// spread of the means and `m` the comparisons. Both quantiles have the degrees of freedom of `s`, which pays for
    /// that it is an estimate (C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the
    /// variance", Annals of Mathematical Statistics 16, 1945), or those of the comparison to come if they are fewer.
    /// The second quantile allows for runs that are not as normal as the formula takes them (`tests/all/runs.rs`).
    pub fn runs_to_find(&self, loss: f64) -> Option<u32> {
        if !(loss > 0.0 && loss < 1.0) {
            return None;
        }
        let logarithm = (-loss).ln_1p().abs();
        let upper_share = 1.0 - 0.025 / f64::from(self.comparisons);
        let finds = |runs: &u32| {
            let values = self.freedom.min(2 * runs - 2) + 1;
            let wanted = quantile(values, upper_share) + quantile(values, POWER);
            (f64::from(*runs) / 2.0).sqrt() * logarithm >= wanted * self.of_means
        };
        (ROUNDS_TO_JUDGE..MAX_ROUNDS)
            .find(finds)
            .or(Some(MAX_ROUNDS))
    }
}

/// Compares the runs of two sides; each run holds the values of its rounds. One of several `comparisons` whose
/// intervals hold together in 95 of 100 cases, as in [`compare_unpaired_among`].
///
/// With several runs a side the values are the mean logarithms of the runs, and the interval is Welch's. A side of one
/// run has no known spread: it is taken to be that of the other side, with its degrees of freedom. Where each side is a
/// single run, the values are its rounds, and what changed between the runs is part of the ratio.
///
/// # Errors
/// [`StatsError::NoValues`] when a side or one of its runs is empty, [`StatsError::NotPositive`] for a value that is
/// zero, negative, infinite or not a number.
pub fn compare_runs(
    a: &[Vec<f64>],
    b: &[Vec<f64>],
    comparisons: u32,
) -> Result<RunsRatio, StatsError> {
    let comparisons = comparisons.max(1);
    if let ([a], [b]) = (a, b) {
        return Ok(RunsRatio {
            ratio: compare_unpaired_among(a, b, comparisons)?,
            noise: None,
            is_enough: a.len().min(b.len()) >= ROUNDS_TO_JUDGE as usize,
        });
    }
    let (logs_a, logs_b) = (log_rounds(a, Side::A)?, log_rounds(b, Side::B)?);
    let (side_a, side_b) = (of_means(&logs_a)?, of_means(&logs_b)?);
    let spread = match (side_a.standard_deviation, side_b.standard_deviation) {
        (Some(known), None) | (None, Some(known)) => {
            let inverse = 1.0 / f64::from(side_a.count) + 1.0 / f64::from(side_b.count);
            let freedom = f64::from(side_a.count.max(side_b.count) - 1);
            let students_t = StudentsT::new(0.0, 1.0, freedom).ok();
            Some((known * inverse.sqrt(), students_t.filter(|_| known > 0.0)))
        }
        _ => unpaired::spread(&side_a, &side_b),
    };
    let difference = side_a.mean - side_b.mean;
    Ok(RunsRatio {
        ratio: unpaired::ratio_of(difference, spread, comparisons),
        noise: Some(noise(&[(side_a, logs_a), (side_b, logs_b)], comparisons)),
        is_enough: side_a.count.max(side_b.count) >= ROUNDS_TO_JUDGE,
    })
}

fn log_rounds(runs: &[Vec<f64>], side: Side) -> Result<Vec<Moments>, StatsError> {
    let of_run = |run: &Vec<f64>| unpaired::log_moments(run, side);
    runs.iter().map(of_run).collect()
}

fn of_means(runs: &[Moments]) -> Result<Moments, StatsError> {
    let means: Vec<f64> = runs.iter().map(|run| run.mean).collect();
    Moments::of(&means).ok_or(StatsError::NoValues)
}

/// The spread of both sides together, each about its own mean.
fn noise(sides: &[(Moments, Vec<Moments>); 2], comparisons: u32) -> RunNoise {
    let pooled = |moments: &mut dyn Iterator<Item = &Moments>| {
        let (mut squares, mut freedom) = (0.0, 0);
        for one in moments {
            let of_one = one.count - 1;
            squares += f64::from(of_one) * one.standard_deviation.unwrap_or(0.0).powi(2);
            freedom += of_one;
        }
        (freedom > 0).then(|| (squares / f64::from(freedom), freedom))
    };
    let means = pooled(&mut sides.iter().map(|(means, _)| means));
    let (of_means, freedom) = means.expect("one side has two runs or more");
    let runs = || sides.iter().flat_map(|(_, runs)| runs);
    let rounds = pooled(&mut runs()).map(|(variance, _)| variance);
    let inverse: f64 = runs().map(|run| 1.0 / f64::from(run.count)).sum();
    let by_rounds = rounds.unwrap_or(0.0) * inverse / runs().count() as f64;
    RunNoise {
        between_runs: (of_means - by_rounds).max(0.0).sqrt(),
        between_rounds: rounds.map(f64::sqrt),
        of_means: of_means.sqrt(),
        freedom,
        comparisons,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_welchs_of_the_means_of_runs() {
        let a = [vec![100.0, 102.0], vec![110.0, 111.0], vec![95.0, 96.0]];
        let b = [vec![90.0, 91.0], vec![99.0, 99.0], vec![88.0, 92.0]];
        let mean = |run: &Vec<f64>| (run[0] * run[1]).sqrt();
        let means = |runs: &[Vec<f64>]| runs.iter().map(mean).collect::<Vec<f64>>();
        let by_means = compare_unpaired_among(&means(&a), &means(&b), 2).unwrap();
        let by_runs = compare_runs(&a, &b, 2).unwrap();
        let ((low, high), (also_low, also_high)) =
            (by_means.ci95.unwrap(), by_runs.ratio.ci95.unwrap());
        assert!((low - also_low).abs() < 1e-9 && (high - also_high).abs() < 1e-9);
        assert!(by_runs.is_enough);
    }

    #[test]
    fn a_single_run_borrows_the_spread_of_the_other_side() {
        let many = [vec![100.0], vec![104.0], vec![98.0]];
        let one = [vec![100.0, 100.0]];
        let forth = compare_runs(&many, &one, 1).unwrap();
        let back = compare_runs(&one, &many, 1).unwrap();
        let ((low, high), (also_low, also_high)) =
            (forth.ratio.ci95.unwrap(), back.ratio.ci95.unwrap());
        assert!((low * also_high - 1.0).abs() < 1e-9 && (high * also_low - 1.0).abs() < 1e-9);
        let logs: Vec<f64> = many.iter().map(|run| run[0].ln()).collect();
        let deviation = Moments::of(&logs).unwrap().standard_deviation.unwrap();
        let half_width = quantile(3, 0.975) * deviation * (1.0_f64 + 1.0 / 3.0).sqrt();
        assert!(((high / low).ln() / 2.0 - half_width).abs() < 1e-9);
    }

    #[test]
    fn a_run_each_is_compared_by_its_rounds() {
        let (a, b) = ([vec![1.0, 1.1, 1.2]], [vec![1.0, 1.0, 1.1]]);
        let runs = compare_runs(&a, &b, 1).unwrap();
        let by_rounds = compare_unpaired_among(&a[0], &b[0], 1).unwrap();
        assert_eq!(runs.ratio, by_rounds);
        assert_eq!((runs.noise, runs.is_enough), (None, true));
        let few = compare_runs(&[vec![1.0, 1.1]], &b, 1).unwrap();
        assert!(!few.is_enough);
        let two = [vec![1.0; 5], vec![1.1; 5]];
        assert!(!compare_runs(&two, &two, 1).unwrap().is_enough);
    }

    #[test]
    fn more_noise_and_finer_losses_take_more_runs() {
        let noise = |of_means, freedom| RunNoise {
            between_runs: of_means,
            between_rounds: None,
            of_means,
            freedom,
            comparisons: 1,
        };
        let runs = |of_means, freedom, loss| noise(of_means, freedom).runs_to_find(loss).unwrap();
        assert!(runs(0.03, 4, 0.05) > runs(0.02, 4, 0.05));
        assert!(runs(0.03, 4, 0.02) > runs(0.03, 4, 0.05));
        assert!(
            runs(0.03, 4, 0.05) > runs(0.03, 40, 0.05),
            "an estimate costs"
        );
        assert_eq!(runs(0.0, 4, 0.05), ROUNDS_TO_JUDGE);
        assert_eq!(runs(10.0, 4, 0.001), MAX_ROUNDS);
        for nothing in [0.0, 1.0, f64::NAN] {
            assert_eq!(noise(0.1, 4).runs_to_find(nothing), None);
        }
        // By hand: 2 (2.776 + 2.776)^2 (0.02 / 0.0513)^2 = 9.4.
        assert_eq!(runs(0.02, 4, 0.05), 10);
    }

    #[test]
    fn equal_runs_have_no_noise_and_empty_ones_are_refused() {
        let runs = [vec![5.0, 5.0], vec![5.0, 5.0], vec![5.0, 5.0]];
        let equal = compare_runs(&runs, &runs, 1).unwrap();
        assert_eq!(equal.ratio.ci95, Some((1.0, 1.0)));
        assert_eq!(equal.noise.unwrap().between_runs, 0.0);
        let one = compare_runs(&runs[..1], &runs, 1).unwrap();
        assert_eq!(one.ratio.ci95, Some((1.0, 1.0)));
        assert_eq!(compare_runs(&[], &runs, 1), Err(StatsError::NoValues));
        let empty = [vec![], vec![1.0]];
        assert_eq!(compare_runs(&empty, &runs, 1), Err(StatsError::NoValues));
    }
}
