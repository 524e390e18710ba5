//! How few rounds may name a winner, and what finds more in the same time: the variances of all cases taken together
//! from three rounds on, or each pair's own from five rounds on. Synthetic experiments of which the truth is known,
//! with noise that is normal and noise that is not; the study is told in
//! `docs/decisions/0036-intervals-that-hold-together.md`.

use super::machine::{Chance, Machine, measured, named};
use spindle_stats::{CaseRounds, ROUNDS_TO_JUDGE, Standard, Verdict, compare_paired, pairs, rank};

const EXPERIMENTS: u32 = 1_000;
const PROMISED: f64 = 0.05;
const CASES: usize = 6;

/// Three standard deviations of a share of [`EXPERIMENTS`]: the luck of the seed.
fn slack(rate: f64) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(EXPERIMENTS)).sqrt()
}

fn share(seed: u64, mut event: impl FnMut(&mut Chance) -> bool) -> f64 {
    let mut chance = Chance::new(seed);
    let happened = (0..EXPERIMENTS).filter(|_| event(&mut chance)).count();
    happened as f64 / f64::from(EXPERIMENTS)
}

fn is_called(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

fn is_anything_called(cases: &[CaseRounds]) -> bool {
    let pairs = pairs(cases, Standard::fixed(0.0)).unwrap();
    let mut verdicts = pairs.iter().map(|pair| pair.comparison.verdict);
    verdicts.any(is_called)
}

/// The rival that was weighed: each pair's own variance, of five rounds or more, corrected by Bonferroni.
fn is_found_by_own_variances(cases: &[CaseRounds], best: usize) -> bool {
    const ROUNDS_OF_RIVAL: usize = 5;
    let values = |case: usize| cases[case].values.values().copied().collect::<Vec<f64>>();
    let pairs = (CASES * (CASES - 1) / 2) as f64;
    cases[0].values.len() >= ROUNDS_OF_RIVAL
        && (0..CASES).filter(|other| *other != best).all(|other| {
            let alone = compare_paired(&values(best), &values(other), 0.0).unwrap();
            alone.ratio > 1.0 && alone.p_value.unwrap() * pairs <= PROMISED
        })
}

/// Six equal cases, on every machine: at most one experiment of 20 calls anything different.
#[test]
fn six_equal_cases_are_honest_on_every_machine() {
    for (seed, machine) in (100..).zip(Machine::ALL) {
        for rounds in [3, 8] {
            let told = share(seed, |chance| {
                is_anything_called(&measured(machine, &[1_000.0; CASES], rounds, chance))
            });
            let most = PROMISED + slack(PROMISED);
            assert!(told <= most, "{machine:?}, {rounds} rounds: {told}");
        }
    }
}

/// One case is faster than five others by 20 %, or by 8 %, under 2 % noise. At no number of rounds does the rival find
/// more, and up to five it finds next to nothing.
#[test]
fn variances_taken_together_find_more_in_the_same_time() {
    for (seed, ahead) in [(200, 1.2), (201, 1.08)] {
        let mut speeds = [1_000.0; CASES];
        speeds[2] *= ahead;
        for rounds in [3, 5, 10] {
            let mut by_rival = 0;
            let together = share(seed, |chance| {
                let cases = measured(Machine::QUIET, &speeds, rounds, chance);
                by_rival += u32::from(is_found_by_own_variances(&cases, 2));
                rank(&cases, Standard::fixed(0.0)).unwrap().winner == Some(2)
            });
            let by_rival = f64::from(by_rival) / f64::from(EXPERIMENTS);
            println!("{ahead} x, {rounds} rounds: together {together}, each its own {by_rival}");
            assert!(
                together >= by_rival,
                "{ahead}, {rounds}: {together} {by_rival}"
            );
            let is_enough = (rounds, ahead) == (3, 1.2);
            assert!(
                !is_enough || together > 0.8 && by_rival == 0.0,
                "{together}"
            );
        }
    }
}

/// Known differences of 5 % under 1 % noise are found between each neighbours of six in ten rounds.
#[test]
fn differences_of_5_percent_are_found_among_six() {
    let speeds: Vec<f64> = (0..CASES)
        .map(|case| 1_000.0 * 1.05_f64.powi(case as i32))
        .collect();
    let machine = Machine {
        noise: 0.01,
        ..Machine::QUIET
    };
    let all_found = share(300, |chance| {
        let cases = measured(machine, &speeds, 10, chance);
        let pairs = pairs(&cases, Standard::fixed(0.03)).unwrap();
        pairs
            .iter()
            .all(|pair| pair.comparison.verdict == Verdict::Slower)
    });
    assert!(all_found > 0.95, "{all_found}");
}

/// A machine that has two speeds in turn, as luck wills, and little noise besides: nothing like a normal distribution.
/// Two rounds agree by luck in one experiment of eight, which no interval of two rounds can know: this is why three are
/// wanted.
#[test]
fn two_rounds_of_a_machine_with_two_speeds_agree_by_luck() {
    let machine = Machine {
        noise: 0.001,
        slow_mode: 0.2,
        mode_change: 0.5,
        ..Machine::QUIET
    };
    let excludes_one = |rounds: u32| {
        share(400, |chance| {
            let cases = measured(machine, &[1_000.0; 2], rounds, chance);
            let pair = pairs(&cases, Standard::fixed(0.0)).unwrap()[0].comparison;
            assert!(rounds >= ROUNDS_TO_JUDGE || !is_called(pair.verdict));
            let (low, high) = pair.ci95.unwrap();
            low > 1.0 || high < 1.0
        })
    };
    let (of_two, of_three) = (excludes_one(2), excludes_one(ROUNDS_TO_JUDGE));
    assert!(of_two > 2.0 * PROMISED, "{of_two}");
    assert!(of_three <= PROMISED + slack(PROMISED), "{of_three}");
}

/// What one value of a kind of noise is, as a logarithm.
type Noise = fn(&mut Chance) -> f64;

/// Noise with heavy tails (Student's t with 2 degrees of freedom) and noise that only slows (the logarithm of an
/// exponential): three rounds stay honest.
#[test]
fn noise_that_is_not_normal_makes_no_false_winners() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let heavy = |chance: &mut Chance| {
        let squares = chance.normal().powi(2) + chance.normal().powi(2);
        0.02 * chance.normal() / (squares / 2.0).sqrt()
    };
    let only_slows = |chance: &mut Chance| 0.1 * chance.uniform().ln();
    let kinds: [(&str, Noise); 2] = [("heavy", heavy), ("slows", only_slows)];
    for (seed, (name, noise)) in (500..).zip(kinds) {
        for (cases, rounds) in [(2, 3), (2, 5), (CASES, 3), (CASES, 5), (CASES, 10)] {
            let told = share(seed, |chance| {
                let mut case = || (0..rounds).map(|_| 1_000.0 * noise(chance).exp()).collect();
                is_anything_called(&named((0..cases).map(|_| case()).collect()))
            });
            let most = PROMISED + slack(PROMISED);
            assert!(
                told <= most,
                "{name}, {cases} cases, {rounds} rounds: {told}"
            );
        }
    }
}
