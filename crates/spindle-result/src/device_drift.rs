//! Whether the devices themselves stayed as they were: what the probes before the trials found, round by round. It
//! matters whatever the verdicts say, because they are about these devices on this day.

use std::collections::BTreeMap;

use spindle_stats::median;
use spindle_stats::trend;
use spindle_text::quantity::time;

use super::{DeviceProbe, ProbedTimes, RunResult};

/// The slowest round's time over the quickest one's that is worth a word.
const UNSTEADY_RATIO: f64 = 1.5;
/// A drift of less than this over the whole run is none that matters.
const DRIFT_MIN: f64 = 0.10;
/// A line through the rounds comes about by chance in fewer runs than this.
const FALSE_DRIFT_CHANCE: f64 = 0.05;

/// One kind of request.
type RequestKind = (&'static str, fn(&DeviceProbe) -> Option<ProbedTimes>);
const KINDS: [RequestKind; 2] = [
    ("direct read", |probe| probe.read),
    ("durable write", |probe| probe.write),
];

/// What is to be said, for reads and for writes.
pub(super) fn warnings(result: &RunResult) -> Vec<String> {
    KINDS
        .into_iter()
        .filter_map(|(name, of)| told(name, &of_rounds(result, of)))
        .collect()
}

/// For each round the middle of its trials' times, microseconds, each beside what is usual for its layout; so layouts
/// on slow and on quick devices count alike, and a missing trial moves nothing.
fn of_rounds(
    result: &RunResult,
    of: fn(&DeviceProbe) -> Option<ProbedTimes>,
) -> BTreeMap<u32, f64> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut usual_us = Vec::new();
    for case in &result.cases {
        let known = case.trials.iter().filter_map(|trial| {
            let times = of(&trial.conditions.probe?)?;
            Some((trial.round, times.median_us))
        });
        let known: Vec<(u32, f64)> = known.collect();
        let Some(usual) = median(known.iter().map(|of| of.1)).filter(|us| *us > 0.0) else {
            continue;
        };
        usual_us.push(usual);
        for (round, us) in known {
            rounds.entry(round).or_default().push(us / usual);
        }
    }
    let Some(usual_us) = median(usual_us.into_iter()) else {
        return BTreeMap::new();
    };
    let middles = rounds
        .into_iter()
        .filter_map(|(round, shares)| Some((round, usual_us * median(shares.into_iter())?)));
    middles.filter(|(_, us)| *us > 0.0).collect()
}

fn told(name: &str, rounds: &BTreeMap<u32, f64>) -> Option<String> {
    let quickest = rounds.values().copied().reduce(f64::min)?;
    let slowest = rounds.values().copied().reduce(f64::max)?;
    let span = format!("a {name} took {} to {}", time(quickest), time(slowest));
    let trend = trend(rounds).ok().flatten();
    let steps = f64::from(rounds.keys().last()? - rounds.keys().next()?);
    let drift = trend.filter(|trend| {
        let whole = (trend.factor_per_round.ln() * steps).abs();
        trend.p_value <= FALSE_DRIFT_CHANCE && whole >= (1.0 + DRIFT_MIN).ln()
    });
    if let Some(drift) = drift {
        let (word, percent) = match drift.factor_per_round >= 1.0 {
            true => ("slower", 100.0 * (drift.factor_per_round - 1.0)),
            false => ("faster", 100.0 * (1.0 - drift.factor_per_round)),
        };
        return Some(format!(
            "The devices became {word} by {percent:.1} % from round to round, whatever ran on them: {span}, by the probes before \
             the trials. Repeat the run when they are steady."
        ));
    }
    (slowest / quickest >= UNSTEADY_RATIO).then(|| {
        format!(
            "The speed of the devices changed: {span} from one round to another, by the probes before the trials. \
             Small differences in this run may not repeat."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};
    use super::*;

    /// Two layouts whose devices wrote in this many microseconds in each round, the second ten times as slow.
    fn texts(write_us: &[f64]) -> Vec<String> {
        let tpm = vec![100.0; write_us.len()];
        let mut record = sample::record(&[("a", &tpm), ("b", &tpm)]);
        for (case, factor) in record.cases.iter_mut().zip([1.0, 10.0]) {
            for (trial, us) in case.trials.iter_mut().zip(write_us) {
                let times = ProbedTimes {
                    requests: 24,
                    median_us: us * factor,
                    mean_us: us * factor,
                };
                trial.conditions.probe = Some(DeviceProbe {
                    read: None,
                    write: Some(times),
                    took_ms: 1,
                });
            }
        }
        warnings(&build(&record).unwrap())
    }

    #[test]
    fn a_device_that_becomes_slower_is_told() {
        let texts = texts(&[100.0, 111.0, 119.0, 131.0, 140.0, 152.0]);
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert!(
            texts[0].starts_with("The devices became slower by 8."),
            "{texts:?}"
        );
    }

    #[test]
    fn one_that_jumps_is_told_and_one_that_stays_is_not() {
        let jumps = texts(&[100.0, 210.0, 105.0, 190.0, 98.0, 101.0]);
        assert!(
            jumps[0].starts_with("The speed of the devices changed"),
            "{jumps:?}"
        );
        assert!(texts(&[100.0, 108.0, 95.0, 103.0, 99.0, 104.0]).is_empty());
        assert!(texts(&[100.0]).is_empty());
    }
}
