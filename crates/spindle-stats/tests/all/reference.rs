//! The arithmetic against independent reference values: SciPy, NumPy and statsmodels answered in `reference.json`; how
//! to make that file again is written in `reference.py`.

use serde::Deserialize;
use spindle_stats::{
    LatencyHistogram, Looks, Standard, compare_by, compare_paired, estimate_mean, holm,
    rounds_to_find, steady_after, trend,
};

#[derive(Deserialize)]
struct Reference {
    margin: f64,
    t_quantiles: Vec<f64>,
    means: Vec<Mean>,
    pairs: Vec<Pair>,
    latencies: Latencies,
    trends: Vec<LineOfRounds>,
    holm: Vec<Adjusted>,
    steady_states: Vec<Series>,
    rounds_to_find: Vec<ToFind>,
    looked_at_after_every_round: Vec<Ratios>,
}

#[derive(Deserialize)]
struct LineOfRounds {
    rounds: Vec<u32>,
    values: Vec<f64>,
    factor_per_round: f64,
    ci95: (f64, f64),
    p_value: f64,
}

#[derive(Deserialize)]
struct Adjusted {
    p_values: Vec<f64>,
    adjusted: Vec<f64>,
}

#[derive(Deserialize)]
struct Series {
    samples: Vec<f64>,
    steady_after: Option<usize>,
}

#[derive(Deserialize)]
struct ToFind {
    difference: f64,
    spread: f64,
    rounds: u32,
}

#[derive(Deserialize)]
struct Ratios {
    values: Vec<f64>,
    ci: (f64, f64),
}

#[derive(Deserialize)]
struct Mean {
    values: Vec<f64>,
    mean: f64,
    ci95: (f64, f64),
}

#[derive(Deserialize)]
struct Pair {
    a: Vec<f64>,
    b: Vec<f64>,
    ratio: f64,
    ci95: (f64, f64),
    p_value: f64,
    rounds_needed: Option<u32>,
}

#[derive(Deserialize)]
struct Latencies {
    values_ns: Vec<u64>,
    percentiles_ns: std::collections::BTreeMap<String, f64>,
    mean_ns: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference.json")).expect("reference.json is well formed")
}

/// Fails unless `actual` is within `tolerance` of `expected`, relative to it.
#[track_caller]
fn assert_close(actual: f64, expected: f64, tolerance: f64) {
    assert!(
        (actual - expected).abs() <= tolerance * expected.abs(),
        "{actual} is not {expected}"
    );
}

/// Agreement of two correct double-precision computations that take different ways.
const ROUNDING: f64 = 1e-9;

#[test]
fn t_quantiles() {
    let quantiles = reference().t_quantiles;
    assert_eq!(quantiles.len(), 999);
    for (index, quantile) in quantiles.into_iter().enumerate() {
        // As many zeros and ones as make the wanted degrees of freedom: their standard deviation is known.
        let count = index + 2;
        let values: Vec<f64> = (0..count).map(|i| (i % 2) as f64).collect();
        let (n, ones) = (count as f64, (count / 2) as f64);
        let standard_deviation = (ones * (n - ones) / (n * (n - 1.0))).sqrt();
        let (low, high) = estimate_mean(&values).unwrap().ci95.unwrap();
        let half_width = (high - low) / 2.0;
        assert_close(
            half_width,
            quantile * standard_deviation / n.sqrt(),
            ROUNDING,
        );
    }
}

#[test]
fn means_and_their_intervals() {
    for expected in reference().means {
        let estimate = estimate_mean(&expected.values).unwrap();
        let (low, high) = estimate.ci95.unwrap();
        assert_close(estimate.mean, expected.mean, ROUNDING);
        assert_close(low, expected.ci95.0, ROUNDING);
        assert_close(high, expected.ci95.1, ROUNDING);
    }
}

#[test]
fn paired_ratios_and_their_intervals() {
    let reference = reference();
    for expected in reference.pairs {
        let comparison = compare_paired(&expected.a, &expected.b, reference.margin).unwrap();
        let (low, high) = comparison.ci95.unwrap();
        assert_close(comparison.ratio, expected.ratio, ROUNDING);
        assert_close(low, expected.ci95.0, ROUNDING);
        assert_close(high, expected.ci95.1, ROUNDING);
        assert_close(comparison.p_value.unwrap(), expected.p_value, ROUNDING);
        assert_eq!(comparison.rounds_needed, expected.rounds_needed);
    }
}

#[test]
fn percentiles_of_latencies() {
    let Latencies {
        values_ns,
        percentiles_ns,
        mean_ns,
    } = reference().latencies;
    let mut histogram = LatencyHistogram::new();
    for latency_ns in values_ns {
        histogram.record_ns(latency_ns);
    }
    for (percent, expected_ns) in percentiles_ns {
        let percent: f64 = percent.parse().unwrap();
        let actual_ns = histogram.percentile_us(percent) * 1_000.0;
        assert!(
            actual_ns >= expected_ns,
            "p{percent} is shorter than in truth"
        );
        assert_close(actual_ns, expected_ns, 1e-3);
    }
    assert_close(histogram.mean_us() * 1_000.0, mean_ns, 1e-3);
}

#[test]
fn lines_through_rounds() {
    for expected in reference().trends {
        let values = expected.rounds.into_iter().zip(expected.values).collect();
        let trend = trend(&values).unwrap().unwrap();
        assert_close(trend.factor_per_round, expected.factor_per_round, ROUNDING);
        assert_close(trend.ci95.0, expected.ci95.0, ROUNDING);
        assert_close(trend.ci95.1, expected.ci95.1, ROUNDING);
        assert_close(trend.p_value, expected.p_value, 1e-7);
    }
}

#[test]
fn p_values_of_many_tests() {
    for expected in reference().holm {
        let adjusted = holm(&expected.p_values);
        assert_eq!(adjusted.len(), expected.adjusted.len());
        for (actual, expected) in adjusted.into_iter().zip(expected.adjusted) {
            assert_close(actual, expected, ROUNDING);
        }
    }
}

#[test]
fn steady_states() {
    let series = reference().steady_states;
    let some = |is_steady: bool| {
        let mut series = series.iter();
        series.any(|expected| expected.steady_after.is_some() == is_steady)
    };
    assert!(some(true) && some(false), "both answers are asked for");
    for expected in &series {
        assert_eq!(steady_after(&expected.samples), expected.steady_after);
    }
}

/// The sum of two quantiles is one round off at most.
#[test]
fn rounds_that_find_a_difference() {
    for expected in reference().rounds_to_find {
        let rounds = rounds_to_find(expected.difference, expected.spread).unwrap();
        assert!(
            rounds.abs_diff(expected.rounds) <= 1,
            "{rounds} is not {}",
            expected.rounds
        );
    }
}

#[test]
fn intervals_of_rounds_that_were_looked_at() {
    let standard = Standard {
        looks: Looks::EveryRound,
        ..Standard::fixed(0.03)
    };
    for expected in reference().looked_at_after_every_round {
        let ones = vec![1.0; expected.values.len()];
        let ci = compare_by(&expected.values, &ones, standard).unwrap().ci95;
        let (low, high) = ci.unwrap();
        assert_close(low, expected.ci.0, ROUNDING);
        assert_close(high, expected.ci.1, ROUNDING);
    }
}
