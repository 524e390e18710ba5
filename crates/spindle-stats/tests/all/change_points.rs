//! Histories of runs: flat ones are called changed in 5 of 100 at most, whatever their length and their tails; a shift
//! is found where it is, and its interval holds it. A wrong rule, the best place judged as if it were the only one,
//! fails the same check.

use spindle_stats::{change_points, compare_unpaired};

use crate::machine::Chance;

const HISTORIES: u32 = 1_000;
const NOISE: f64 = 0.015;

/// How far a run is off, in units of the noise.
type Tails = fn(&mut Chance) -> f64;

fn normal(chance: &mut Chance) -> f64 {
    chance.normal()
}

/// Student's t with five degrees of freedom: now and then a run is far off.
fn heavy(chance: &mut Chance) -> f64 {
    let squares: f64 = (0..5).map(|_| chance.normal().powi(2)).sum();
    chance.normal() / (squares / 5.0).sqrt()
}

/// Runs that are slower by `loss` from each of `places` on, and as fast as before from the next.
fn history(
    runs: usize,
    places: &[usize],
    loss: f64,
    tails: Tails,
    chance: &mut Chance,
) -> Vec<f64> {
    let run = |run: usize| {
        let changes = places.iter().filter(|place| **place <= run).count();
        let level = if changes % 2 == 1 { 1.0 - loss } else { 1.0 };
        level * (NOISE * tails(chance)).exp()
    };
    (0..runs).map(run).collect()
}

/// Whether a rule calls a history changed.
type Rule = fn(&[f64]) -> bool;

fn right(values: &[f64]) -> bool {
    !change_points(values, 1).unwrap().changes.is_empty()
}

/// Each place judged as if it were the only one.
fn wrong(values: &[f64]) -> bool {
    (2..values.len() - 1).any(|place| {
        let (before, after) = values.split_at(place);
        let (low, high) = compare_unpaired(after, before).unwrap().ci95.unwrap();
        low > 1.0 || high < 1.0
    })
}

/// False changes of this many flat histories, in per cent.
fn false_percent(rule: Rule, runs: usize, tails: Tails) -> f64 {
    let mut chance = Chance::new(72);
    let flat = (0..HISTORIES).filter(|_| rule(&history(runs, &[], 0.0, tails, &mut chance)));
    100.0 * flat.count() as f64 / f64::from(HISTORIES)
}

#[test]
fn flat_histories_are_seldom_called_changed_and_the_wrong_rule_is_caught() {
    for tails in [normal, heavy] {
        for runs in [4, 6, 12, 30, 100] {
            let found = false_percent(right, runs, tails);
            assert!(found <= 5.0, "{runs} runs: {found} %");
        }
    }
    let found = false_percent(wrong, 30, normal);
    assert!(found > 20.0, "the wrong rule passed: {found} %");
}

/// Several cases share the 5 %.
#[test]
fn flat_cases_of_one_history_are_seldom_called_changed_together() {
    let mut chance = Chance::new(73);
    let is_false = |_: &u32| {
        let mut cases = (0..6).map(|_| history(20, &[], 0.0, normal, &mut chance));
        cases.any(|values| !change_points(&values, 6).unwrap().changes.is_empty())
    };
    let found = (0..HISTORIES).filter(is_false).count();
    assert!(found <= 50, "{found} of {HISTORIES}");
}

/// What became of histories of 20 runs with a shift of 5 %: found within a run of its place and nowhere else; found at
/// all; and the interval holds it.
#[test]
fn a_shift_of_five_percent_is_found_where_it_is() {
    let mut chance = Chance::new(74);
    let (mut exact, mut held, mut called) = (0, 0, 0);
    for _ in 0..HISTORIES {
        let place = 4 + chance.below(13);
        let values = history(20, &[place], 0.05, normal, &mut chance);
        let changes = change_points(&values, 1).unwrap().changes;
        let near = changes.iter().find(|change| change.at.abs_diff(place) <= 1);
        exact += u32::from(near.is_some() && changes.len() == 1);
        if let Some(change) = near {
            called += 1;
            let (low, high) = change.ci95;
            held += u32::from((low..=high).contains(&0.95));
        }
    }
    assert!(exact >= 950, "{exact} of {HISTORIES}");
    assert!(
        f64::from(held) >= 0.95 * f64::from(called),
        "{held} of {called}"
    );
}

/// A shift and, later, its end.
#[test]
fn a_loss_that_was_mended_is_two_changes() {
    let mut chance = Chance::new(75);
    let is_found = |_: &u32| {
        let values = history(30, &[10, 20], 0.05, normal, &mut chance);
        let changes = change_points(&values, 1).unwrap().changes;
        let at: Vec<usize> = changes.iter().map(|change| change.at).collect();
        matches!(at.as_slice(), [a, b] if a.abs_diff(10) <= 1 && b.abs_diff(20) <= 1)
    };
    let found = (0..HISTORIES).filter(is_found).count();
    assert!(found >= 900, "{found} of {HISTORIES}");
}
