//! What a case and the best did in the rounds that both ran, where these are not all rounds of each. Ratios are of
//! them, while the mean of a case is of all its own: side by side the two do not seem to agree.

use std::collections::BTreeSet;

use super::mean::mean_of;
use super::{Case, Measure, RunResult, Trial};

/// Means over the rounds that a case and the best of its load level both ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommonRounds {
    /// How many rounds both ran, 1 or more.
    pub rounds: usize,
    /// What the two are compared by.
    pub measure: Measure,
    /// Of the case: transactions per minute, or the 99th percentile in milliseconds.
    pub own: f64,
    /// The same of the best.
    pub of_best: f64,
}

impl CommonRounds {
    /// `None` for the best itself, for one without figures, and where both ran the same rounds.
    pub fn of(result: &RunResult, case: &Case) -> Option<CommonRounds> {
        let mut rankings = result.rankings.iter();
        let ranking = rankings.find(|ranking| ranking.load == case.id.load)?;
        let best = result.case(&ranking.best_case())?;
        let rounds = |case: &Case| -> BTreeSet<u32> {
            let trials = case.trials.iter();
            trials.map(|trial| trial.round).collect()
        };
        let (own, of_best) = (rounds(case), rounds(best));
        if own == of_best || !case.is_compared() {
            return None;
        }
        let common: BTreeSet<u32> = own.intersection(&of_best).copied().collect();
        let figure = |trial: &Trial| match ranking.measure {
            Measure::Throughput => trial.tpm,
            Measure::P99 => trial.latency_us.p99 / 1e3,
        };
        let mean = |case: &Case| {
            let trials = case.trials.iter();
            mean_of(
                trials
                    .filter(|trial| common.contains(&trial.round))
                    .map(figure),
            )
        };
        Some(CommonRounds {
            rounds: common.len(),
            measure: ranking.measure,
            own: mean(case)?,
            of_best: mean(best)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};
    use super::*;

    #[test]
    fn figures_of_the_rounds_of_both_agree_with_their_ratio() {
        let record = sample::record(&[
            ("best", &[200.0, 200.0, 200.0, 400.0, 400.0]),
            ("fewer", &[100.0, 100.0, 100.0]),
            ("all", &[150.0; 5]),
        ]);
        let result = build(&record).unwrap();
        let [best, fewer, all] =
            [0, 1, 2].map(|case| CommonRounds::of(&result, &result.cases[case]));
        let common = CommonRounds {
            rounds: 3,
            measure: Measure::Throughput,
            own: 100.0,
            of_best: 200.0,
        };
        assert_eq!((best, fewer, all), (None, Some(common), None));
        let verdict = result.verdicts.iter().find(|of| of.cases.b == "fewer");
        assert!((verdict.unwrap().ratio - common.of_best / common.own).abs() < 1e-9);
        assert_eq!(result.cases[0].tpm.unwrap().mean, 280.0);
    }
}
