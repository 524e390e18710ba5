//! Runs as a level above rounds: in synthetic experiments in which each run adds something of its own to the ratio, the interval
//! of the runs' means holds the truth as often as it says; the interval over all rounds, a wrong rule, does not.

use spindle_stats::{compare_paired, variance_parts};

use crate::machine::Chance;

const RUNS: usize = 3;
const ROUNDS: usize = 5;
const EXPERIMENTS: usize = 4_000;

/// Logarithms of the ratio of two equal cases: for each run its rounds.
fn experiment(chance: &mut Chance, of_runs: f64, of_rounds: f64) -> Vec<Vec<f64>> {
    let run = |chance: &mut Chance| {
        let of_run = of_runs * chance.normal();
        let round = |_| of_run + of_rounds * chance.normal();
        (0..ROUNDS).map(round).collect()
    };
    (0..RUNS).map(|_| run(chance)).collect()
}

/// Whether the 95 % interval of these logarithms leaves out the true ratio, which is 1.
fn misses(logs: &[f64]) -> bool {
    let a: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
    let comparison = compare_paired(&a, &vec![1.0; a.len()], 0.0).unwrap();
    let (low, high) = comparison.ci95.unwrap();
    low > 1.0 || high < 1.0
}

fn means(runs: &[Vec<f64>]) -> Vec<f64> {
    let mean = |run: &Vec<f64>| run.iter().sum::<f64>() / run.len() as f64;
    runs.iter().map(mean).collect()
}

#[test]
fn an_interval_of_runs_holds_the_truth_and_one_of_rounds_does_not() {
    let mut chance = Chance::new(37);
    for (of_runs, of_rounds) in [(0.0, 0.03), (0.05, 0.03), (0.10, 0.01)] {
        let (mut by_runs, mut by_rounds) = (0, 0);
        for _ in 0..EXPERIMENTS {
            let runs = experiment(&mut chance, of_runs, of_rounds);
            by_runs += usize::from(misses(&means(&runs)));
            by_rounds += usize::from(misses(&runs.concat()));
        }
        let percent = |count: usize| 100.0 * count as f64 / EXPERIMENTS as f64;
        // Five in a hundred, and three standard errors.
        assert!(percent(by_runs) < 6.1, "{of_runs}: {}", percent(by_runs));
        if of_runs > 0.0 {
            assert!(
                percent(by_rounds) > 25.0,
                "the wrong rule passed: {}",
                percent(by_rounds)
            );
        }
    }
}

#[test]
fn the_parts_of_the_variance_are_found() {
    let mut chance = Chance::new(38);
    let (mut runs, mut trials) = (0.0, 0.0);
    for _ in 0..EXPERIMENTS {
        let parts = variance_parts(&experiment(&mut chance, 0.05, 0.03), 0.0).unwrap();
        runs += parts.runs.unwrap().powi(2) / EXPERIMENTS as f64;
        trials += parts.trials.powi(2) / EXPERIMENTS as f64;
    }
    // Parts below zero are called zero, which moves that of the runs a little up.
    assert!((runs.sqrt() - 0.05).abs() < 0.003, "{}", runs.sqrt());
    assert!((trials.sqrt() - 0.03).abs() < 0.001, "{}", trials.sqrt());
}
