//! Several runs a side: in synthetic runs in which each run adds something of its own (file systems made again), equal
//! sides are seldom called different, and a planted loss is found with as many runs as were announced. A wrong rule,
//! all rounds of all runs thrown together, fails the same check.

use spindle_stats::{UnpairedRatio, compare_runs, compare_unpaired_among};

use crate::machine::{Chance, Experiment, Machine};

const ROUNDS: u32 = 5;
/// What two cases of a run share and do not: the second is made on other files.
const CASES: usize = 2;
/// Standard deviation of what a run adds to a case.
const OF_RUNS: f64 = 0.02;

/// What may judge: two sides, each a list of runs, as one of this many comparisons.
type Rule = fn(&[Vec<f64>], &[Vec<f64>], u32) -> UnpairedRatio;

fn by_runs(a: &[Vec<f64>], b: &[Vec<f64>], comparisons: u32) -> UnpairedRatio {
    compare_runs(a, b, comparisons).unwrap().ratio
}

fn by_rounds(a: &[Vec<f64>], b: &[Vec<f64>], comparisons: u32) -> UnpairedRatio {
    compare_unpaired_among(&a.concat(), &b.concat(), comparisons).unwrap()
}

/// The rounds of each case of one run.
fn run(machine: Machine, speed: f64, chance: &mut Chance) -> Vec<Vec<f64>> {
    let speeds: Vec<f64> = (0..CASES)
        .map(|_| speed * (OF_RUNS * chance.normal()).exp())
        .collect();
    let mut experiment = Experiment::new(machine, &speeds, chance);
    (0..ROUNDS).for_each(|_| experiment.run_round(chance));
    experiment.cases
}

/// This many more runs of a side; each case has a list of runs.
fn add(side: &mut [Vec<Vec<f64>>], runs: u32, machine: Machine, speed: f64, chance: &mut Chance) {
    for _ in 0..runs {
        for (of_case, rounds) in side.iter_mut().zip(run(machine, speed, chance)) {
            of_case.push(rounds);
        }
    }
}

fn side(runs: u32, machine: Machine, speed: f64, chance: &mut Chance) -> Vec<Vec<Vec<f64>>> {
    let mut side = vec![Vec::new(); CASES];
    add(&mut side, runs, machine, speed, chance);
    side
}

/// Of this many comparisons of equal sides, those that call a case faster or slower.
fn false_calls(rule: Rule, runs: (u32, u32), machine: Machine, comparisons: u32) -> u32 {
    let mut chance = Chance::new(70);
    let is_false = |_: &u32| {
        let before = side(runs.0, machine, 1.0, &mut chance);
        let after = side(runs.1, machine, 1.0, &mut chance);
        let mut cases = before.iter().zip(&after);
        cases.any(|(before, after)| {
            let (low, high) = rule(after, before, CASES as u32).ci95.unwrap();
            low > 1.0 || high < 1.0
        })
    };
    (0..comparisons).filter(is_false).count() as u32
}

#[test]
fn equal_sides_are_seldom_called_different_and_the_wrong_rule_is_caught() {
    for machine in [Machine::QUIET, Machine::WANDERING, Machine::AWKWARD] {
        for runs in [(3, 3), (5, 5), (1, 4), (4, 2)] {
            let right = false_calls(by_runs, runs, machine, 200);
            assert!(right <= 17, "{machine:?}, {runs:?}: {right} of 200");
        }
        let wrong = false_calls(by_rounds, (5, 5), machine, 200);
        assert!(wrong > 17, "the wrong rule passed: {wrong} of 200");
    }
}

/// Of this many experiments, those that find a loss of `loss` in the first case: three runs a side say how many are
/// needed, and the rest is added.
fn found(rule: Rule, loss: f64, machine: Machine, experiments: u32) -> (u32, u32) {
    let mut chance = Chance::new(71);
    let (mut found, mut announced) = (0, 0);
    for _ in 0..experiments {
        let mut before = side(3, machine, 1.0, &mut chance);
        let mut after = side(3, machine, 1.0 - loss, &mut chance);
        let pilot = compare_runs(&after[0], &before[0], CASES as u32).unwrap();
        let runs = pilot.noise.unwrap().runs_to_find(loss).unwrap();
        announced += runs;
        add(&mut before, runs - 3, machine, 1.0, &mut chance);
        add(&mut after, runs - 3, machine, 1.0 - loss, &mut chance);
        let (_, high) = rule(&after[0], &before[0], CASES as u32).ci95.unwrap();
        found += u32::from(high < 1.0);
    }
    (found, announced / experiments)
}

#[test]
fn a_loss_is_found_with_as_many_runs_as_were_announced() {
    for machine in [Machine::QUIET, Machine::WANDERING, Machine::AWKWARD] {
        let (found, announced) = found(by_runs, 0.05, machine, 1_000);
        assert!(
            found >= 950,
            "{machine:?}: {found} of 1000 with {announced} runs"
        );
    }
}
