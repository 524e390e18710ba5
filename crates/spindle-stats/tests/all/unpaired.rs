//! Welch's interval against SciPy, whose answers are in `unpaired.json`; how to make that file again is written in
//! `unpaired.py`. And that the interval covers the truth as often as it says, with a planted fault that does not.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use serde::Deserialize;
use spindle_stats::{compare_paired, compare_unpaired};

#[derive(Deserialize)]
struct Reference {
    pairs: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    a: Vec<f64>,
    b: Vec<f64>,
    ratio: f64,
    ci95: (f64, f64),
    p_value: f64,
}

/// Fails unless two correct double-precision computations that take different ways agree.
#[track_caller]
fn assert_close(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() <= 1e-9 * expected.abs(),
        "{actual} is not {expected}"
    );
}

#[test]
fn ratios_and_intervals_are_scipys() {
    let reference: Reference =
        serde_json::from_str(include_str!("unpaired.json")).expect("unpaired.json is well formed");
    assert!(reference.pairs.len() >= 8);
    for expected in reference.pairs {
        let actual = compare_unpaired(&expected.a, &expected.b).unwrap();
        let (low, high) = actual.ci95.unwrap();
        assert_close(actual.ratio, expected.ratio);
        assert_close(low, expected.ci95.0);
        assert_close(high, expected.ci95.1);
        assert_close(actual.p_value.unwrap(), expected.p_value);
    }
}

/// A standard normal number: the sum of twelve uniform ones, less six, which is near enough for coverage.
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let uniform = |random: &mut Xoshiro256PlusPlus| random.next_u64() as f64 / u64::MAX as f64;
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// How often the interval that `compare` gives two equal cases of unequal noise holds 1.
fn coverage(compare: impl Fn(&[f64], &[f64]) -> (f64, f64)) -> f64 {
    const RUNS: u32 = 4_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut covered = 0;
    for _ in 0..RUNS {
        let mut values = |noise: f64| -> Vec<f64> {
            (0..5)
                .map(|_| (noise * normal(&mut random)).exp())
                .collect()
        };
        let (a, b) = (values(0.02), values(0.08));
        let (low, high) = compare(&a, &b);
        covered += u32::from(low <= 1.0 && 1.0 <= high);
    }
    f64::from(covered) / f64::from(RUNS)
}

#[test]
fn the_interval_covers_the_truth_in_95_of_100_runs() {
    let welch = coverage(|a, b| compare_unpaired(a, b).unwrap().ci95.unwrap());
    assert!((0.93..=0.97).contains(&welch), "{welch}");
}

#[test]
fn an_interval_that_forgets_the_noise_of_one_run_is_caught() {
    let forgetful = coverage(|a, b| {
        let mean_b = b.iter().map(|value| value.ln()).sum::<f64>() / b.len() as f64;
        let constant = vec![mean_b.exp(); a.len()];
        compare_paired(a, &constant, 0.0).unwrap().ci95.unwrap()
    });
    assert!(forgetful < 0.8, "{forgetful}");
}
