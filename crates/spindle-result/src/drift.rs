//! Whether cases became slower or faster from round to round, in throughput or, at a fixed rate, in the time of their
//! transactions. Pairing takes a common drift out of the verdicts; it is told all
//! the same, because it says that the machine, or the layout, does not stay as it is.

use spindle_stats::{StatsError, Trend, holm, trend};

use super::fixed_rate::measure_of;
use super::judge::rounds_of;
use super::{Case, Drift, Measure};

/// A drift is listed when it would come about by chance in fewer runs than this, all cases of a run together.
const FALSE_DRIFT_CHANCE: f64 = 0.05;

/// The cases that drift.
pub(super) fn drifts(cases: &[Case]) -> Result<Vec<Drift>, StatsError> {
    let mut trends: Vec<(&Case, Trend)> = Vec::new();
    for case in cases.iter().filter(|case| case.is_compared()) {
        if let Some(trend) = trend(&rounds_of(case).values)? {
            trends.push((case, trend));
        }
    }
    let p_values: Vec<f64> = trends.iter().map(|(_, trend)| trend.p_value).collect();
    let drifts = trends.into_iter().zip(holm(&p_values));
    let sure = drifts.filter(|(_, p_value)| *p_value <= FALSE_DRIFT_CHANCE);
    Ok(sure
        .map(|((case, trend), p_value)| drift(case, &trend, p_value))
        .collect())
}

/// The drift of what people know the case by: where speed is the inverse of a time, that time moves the other way.
fn drift(case: &Case, trend: &Trend, p_value: f64) -> Drift {
    let measure = measure_of(&[case]);
    let percent = |factor: f64| 100.0 * (factor - 1.0);
    let (low, high) = trend.ci95;
    let (percent_per_round, ci95) = match measure {
        Measure::Throughput => (
            percent(trend.factor_per_round),
            (percent(low), percent(high)),
        ),
        Measure::P99 => (
            percent(1.0 / trend.factor_per_round),
            (percent(1.0 / high), percent(1.0 / low)),
        ),
    };
    Drift {
        case: case.id.clone(),
        measure,
        percent_per_round,
        ci95,
        p_value,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};

    const STEADY: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
    const FALLING: [f64; 6] = [100.0, 98.1, 96.0, 94.2, 92.0, 90.3];

    #[test]
    fn a_case_that_falls_from_round_to_round_is_told() {
        let result = build(&sample::record(&[("a", &STEADY), ("b", &FALLING)])).unwrap();
        let [drift] = &result.drifts[..] else {
            panic!("{:?}", result.drifts)
        };
        assert_eq!(drift.case.layout, "b");
        assert!((drift.percent_per_round + 2.0).abs() < 0.1, "{drift:?}");
        assert!(drift.ci95.0 < -1.9 && drift.ci95.1 > -2.2);
        let warnings = &result.warnings;
        assert!(
            warnings
                .iter()
                .any(|warning| warning.text.starts_with("b: its throughput fell by 2.0 %")),
            "{warnings:?}"
        );
    }

    #[test]
    fn what_looks_like_drift_in_one_of_many_is_none() {
        // p = 0.019 alone.
        let weak: [f64; 6] = [100.0, 100.9, 100.6, 101.6, 101.2, 101.9];
        let drifts = |cases: &[(&str, &[f64])]| build(&sample::record(cases)).unwrap().drifts.len();
        assert_eq!(drifts(&[("a", &weak)]), 1);
        assert_eq!(drifts(&[("a", &weak), ("b", &STEADY), ("c", &STEADY)]), 0);
        assert_eq!(drifts(&[("b", &FALLING[..3])]), 0);
    }
}
