//! Runs as a level above rounds: in synthetic experiments in which each run adds something of its own to the ratio, the
//! interval of the runs' means holds the truth as often as it says; the interval over all rounds, a wrong rule, does
//! not.

use spindle_stats::{
    CaseRounds, Comparison, Family, Looks, Standard, Verdict, compare_paired, rounds_per_run,
    variance_parts,
};

use crate::machine::{Chance, Experiment, Machine};

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

/// The most rounds of a run whose rounds say themselves when they suffice.
const ROUNDS_MAX: u32 = 20;
const PRECISION: f64 = 0.03;

/// Two cases in runs of `rounds = "auto"`: each run ends when the pair is settled by the rounds of that run alone, and
/// adds something of its own to the ratio. Judged by the runs.
fn auto_in_runs(machine: Machine, truth: f64, of_runs: f64, chance: &mut Chance) -> Comparison {
    let every_round = Standard {
        looks: Looks::EveryRound,
        ..Standard::fixed(0.0)
    };
    let mut cases = [CaseRounds::default(), CaseRounds::default()];
    for run in 1..=RUNS as u32 {
        let speeds = [truth * (of_runs * chance.normal()).exp(), 1.0];
        let mut experiment = Experiment::new(machine, &speeds, chance);
        let is_settled = |values: &[Vec<f64>]| {
            let named = |values: &Vec<f64>| CaseRounds {
                values: (1..).zip(values.iter().copied()).collect(),
                ..CaseRounds::default()
            };
            let of_run = [named(&values[0]), named(&values[1])];
            let family = Family::of(&of_run, every_round).unwrap();
            family.is_settled(0, 1, PRECISION)
        };
        for round in 1..=ROUNDS_MAX {
            experiment.run_round(chance);
            if is_settled(&experiment.cases) || round == ROUNDS_MAX {
                break;
            }
        }
        let first = (run - 1) * ROUNDS_MAX + 1;
        for (case, values) in cases.iter_mut().zip(experiment.cases) {
            for (round, value) in (first..).zip(values) {
                case.values.insert(round, value);
                case.runs.insert(round, run);
            }
        }
    }
    let family = Family::of(&cases, Standard::fixed(0.0)).unwrap();
    family.compare(0, 1)
}

/// Where each run stops by itself its mean is still one of its own, so the interval of the runs' means needs no more
/// room for that the rounds were looked at. A fixed number of rounds is not wanted.
#[test]
fn runs_that_stop_by_themselves_hold_the_truth_as_often_as_they_say() {
    const OF_EACH: u32 = 1_000;
    let slack = 3.0 * (0.05 * 0.95 / f64::from(OF_EACH)).sqrt();
    let mut all = 0.0;
    let machines = [
        Machine::QUIET,
        Machine::WANDERING,
        Machine::DRIFTING,
        Machine::AWKWARD,
    ];
    for (seed, machine) in (40..).zip(machines) {
        for of_runs in [0.0, 0.05] {
            let mut chance = Chance::new(seed);
            let (mut false_winners, mut missed) = (0, 0);
            for _ in 0..OF_EACH {
                let noise = PRECISION / 4.0 * 16_f64.powf(chance.uniform());
                let machine = Machine { noise, ..machine };
                let equal = auto_in_runs(machine, 1.0, of_runs, &mut chance).verdict;
                let is_winner = matches!(equal, Verdict::Faster | Verdict::Slower);
                false_winners += u32::from(is_winner);
                let unlike = auto_in_runs(machine, 1.1, of_runs, &mut chance);
                let (low, high) = unlike.ci95.unwrap();
                missed += u32::from(!(low..=high).contains(&1.1));
            }
            let share = |count: u32| f64::from(count) / f64::from(OF_EACH);
            assert!(
                share(false_winners) <= 0.05 + slack && share(missed) <= 0.05 + slack,
                "{machine:?}, {of_runs}: {} false, {} missed",
                share(false_winners),
                share(missed)
            );
            all += share(missed) / 8.0;
        }
    }
    // Of all together the luck of the seed is small, and an interval that is never wrong is too wide.
    assert!((0.04..=0.06).contains(&all), "{all}");
}

/// The most runs of a plan that repeats them until the pair is settled, and what a run costs in rounds.
const RUNS_MAX: u32 = 40;
const RUN_COST: f64 = 5.0;

/// What a plan of `runs = "auto"` came to: its comparison, runs and their rounds.
struct ByRuns {
    comparison: Comparison,
    runs: u32,
    rounds: usize,
}

/// Two cases in runs that are repeated until the pair is settled by its runs. `rounds` of each run, or as many as the
/// variances ask for after three runs.
fn runs_until_settled(
    machine: Machine,
    truth: f64,
    of_runs: f64,
    rounds: Option<u32>,
    chance: &mut Chance,
) -> ByRuns {
    let standard = Standard {
        looks: Looks::EveryRound,
        ..Standard::fixed(0.0)
    };
    let mut cases = [CaseRounds::default(), CaseRounds::default()];
    let mut logs: Vec<Vec<f64>> = Vec::new();
    for run in 1..=RUNS_MAX {
        let estimated = || {
            let parts = variance_parts(&logs, 0.0).filter(|_| run > 3);
            let best = parts.and_then(|parts| rounds_per_run(&parts, RUN_COST, 1.0));
            best.map_or(3, |best| best.min(ROUNDS_MAX))
        };
        let of_run = rounds.unwrap_or_else(estimated);
        let speeds = [truth * (of_runs * chance.normal()).exp(), 1.0];
        let mut experiment = Experiment::new(machine, &speeds, chance);
        (0..of_run).for_each(|_| experiment.run_round(chance));
        let [a, b] = &experiment.cases[..] else {
            unreachable!("two cases")
        };
        logs.push(a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect());
        let first = (run - 1) * ROUNDS_MAX + 1;
        for (case, values) in cases.iter_mut().zip(experiment.cases) {
            for (round, value) in (first..).zip(values) {
                case.values.insert(round, value);
                case.runs.insert(round, run);
            }
        }
        let family = Family::of(&cases, standard).unwrap();
        if family.is_settled(0, 1, PRECISION) {
            break;
        }
    }
    let family = Family::of(&cases, standard).unwrap();
    ByRuns {
        comparison: family.compare(0, 1),
        runs: logs.len() as u32,
        rounds: logs.iter().map(Vec::len).sum(),
    }
}

/// Runs that are repeated until a pair is settled are rounds of another kind: the intervals hold the truth as often.
#[test]
fn runs_that_are_repeated_until_settled_hold_the_truth_as_often_as_they_say() {
    const OF_EACH: u32 = 400;
    let slack = 3.0 * (0.05 * 0.95 / f64::from(OF_EACH)).sqrt();
    for (seed, machine) in (50..).zip([Machine::QUIET, Machine::WANDERING, Machine::AWKWARD]) {
        for rounds in [Some(2), None] {
            for of_runs in [0.0, 0.05] {
                let mut chance = Chance::new(seed);
                let (mut false_winners, mut missed) = (0, 0);
                for _ in 0..OF_EACH {
                    let noise = PRECISION / 4.0 * 16_f64.powf(chance.uniform());
                    let machine = Machine { noise, ..machine };
                    let equal = runs_until_settled(machine, 1.0, of_runs, rounds, &mut chance);
                    let verdict = equal.comparison.verdict;
                    false_winners +=
                        u32::from(verdict != Verdict::Undecided && verdict != Verdict::Draw);
                    let unlike = runs_until_settled(machine, 1.1, of_runs, rounds, &mut chance);
                    let (low, high) = unlike.comparison.ci95.unwrap();
                    missed += u32::from(!(low..=high).contains(&1.1));
                }
                let share = |count: u32| f64::from(count) / f64::from(OF_EACH);
                assert!(
                    share(false_winners) <= 0.05 + slack && share(missed) <= 0.05 + slack,
                    "{machine:?}, {rounds:?}, {of_runs}: {} false, {} missed",
                    share(false_winners),
                    share(missed)
                );
            }
        }
    }
}

/// The plan repeats at the level where the variance is: luck of runs takes runs of few rounds, noise of rounds runs of
/// many.
#[test]
fn runs_have_the_rounds_that_their_variance_asks_for() {
    let mut chance = Chance::new(60);
    let mut mean_of = |of_runs: f64, noise: f64| {
        let machine = Machine {
            noise,
            ..Machine::QUIET
        };
        let all = (0..100).map(|_| runs_until_settled(machine, 1.0, of_runs, None, &mut chance));
        let all: Vec<ByRuns> = all.collect();
        let rounds = all.iter().map(|it| it.rounds as f64 / f64::from(it.runs));
        rounds.sum::<f64>() / all.len() as f64
    };
    let (lucky, noisy) = (mean_of(0.05, 0.005), mean_of(0.01, 0.05));
    assert!(lucky < 2.5 && noisy > 5.0, "{lucky} {noisy}");
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
