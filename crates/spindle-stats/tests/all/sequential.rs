//! Are verdicts honest on machines that are not: with noise that hangs together, drift and two speeds? And do they stay
//! so when the rounds themselves say when to stop? Thousands of synthetic experiments, all from fixed seeds; for each
//! check a planted fault shows that it can fail. What `make soak` says of real runs is in `docs/soak.md`.

use crate::machine::{Chance, Experiment, Machine};
use spindle_stats::{
    CaseRounds, Comparison, Family, Looks, ROUNDS_MIN, Standard, Verdict, compare_by,
    compare_paired, pairs, rank, rounds_to_find,
};

const MARGIN: f64 = 0.03;
const ROUNDS_MAX: u32 = 30;
/// The chance of a false winner that is promised.
const PROMISED: f64 = 0.05;
/// Shares of intervals that hold the truth: what "95 %" may mean.
const COVERED: std::ops::RangeInclusive<f64> = 0.93..=0.97;
const EXPERIMENTS: u32 = 2_000;

/// A plan of `rounds = "auto"`, or what is planted in its stead.
#[derive(Clone, Copy)]
struct Plan {
    margin: f64,
    precision: f64,
    stop: fn(&Plan, &[f64], &[f64]) -> bool,
    looks: Looks,
}

impl Plan {
    fn auto(precision: f64) -> Plan {
        Plan {
            margin: MARGIN,
            precision,
            stop: |plan, a, b| {
                let cases = [a, b].map(named);
                let family = Family::of(&cases, plan.standard()).unwrap();
                family.is_settled(0, 1, plan.precision)
            },
            looks: Looks::EveryRound,
        }
    }

    fn standard(&self) -> Standard {
        Standard {
            looks: self.looks,
            ..Standard::fixed(self.margin)
        }
    }

    fn compare(&self, a: &[f64], b: &[f64]) -> Comparison {
        compare_by(a, b, self.standard()).unwrap()
    }

    /// Measures two cases with this plan; `None` for the number of rounds when the most of them did not suffice.
    fn measure(
        &self,
        machine: Machine,
        ratio: f64,
        chance: &mut Chance,
    ) -> (Comparison, Option<u32>) {
        let speeds = [1_000.0 * ratio, 1_000.0];
        let mut experiment = Experiment::new(machine, &speeds, chance);
        for round in 1..=ROUNDS_MAX {
            experiment.run_round(chance);
            let [a, b] = &experiment.cases[..] else {
                unreachable!("there are two cases")
            };
            if (self.stop)(self, a, b) {
                return (self.compare(a, b), Some(round));
            }
        }
        (
            self.compare(&experiment.cases[0], &experiment.cases[1]),
            None,
        )
    }
}

fn named(values: &[f64]) -> CaseRounds {
    CaseRounds {
        name: String::new(),
        values: (1..).zip(values.iter().copied()).collect(),
        ..CaseRounds::default()
    }
}

fn is_winner(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Faster | Verdict::Slower)
}

fn holds(comparison: &Comparison, truth: f64) -> bool {
    let (low, high) = comparison.ci95.expect("two rounds or more");
    low <= truth && truth <= high
}

/// Share of `experiments` in which something happens.
fn share(seed: u64, experiments: u32, mut event: impl FnMut(&mut Chance) -> bool) -> f64 {
    let mut chance = Chance::new(seed);
    let happened = (0..experiments).filter(|_| event(&mut chance)).count();
    happened as f64 / f64::from(experiments)
}

/// Noise from a quarter of the precision that is asked for to four times as much.
fn any_noise(precision: f64, chance: &mut Chance) -> f64 {
    precision / 4.0 * 16_f64.powf(chance.uniform())
}

fn fixed(machine: Machine, ratio: f64, rounds: u32, chance: &mut Chance) -> Comparison {
    let speeds = [1_000.0 * ratio, 1_000.0];
    let mut experiment = Experiment::new(machine, &speeds, chance);
    (0..rounds).for_each(|_| experiment.run_round(chance));
    compare_paired(&experiment.cases[0], &experiment.cases[1], 0.0).unwrap()
}

#[test]
fn a_fixed_plan_is_honest_on_every_machine() {
    for (seed, machine) in (100..).zip(Machine::ALL) {
        for rounds in [3, 5, 10] {
            let false_winners = share(seed, EXPERIMENTS, |chance| {
                is_winner(&fixed(machine, 1.0, rounds, chance))
            });
            assert!(
                false_winners <= PROMISED + slack(PROMISED),
                "{machine:?}, {rounds} rounds: {false_winners}"
            );
        }
    }
}

/// Three standard deviations of a share of [`EXPERIMENTS`]: the luck of the seed.
fn slack(rate: f64) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(EXPERIMENTS)).sqrt()
}

#[test]
fn a_fixed_plan_covers_the_truth_over_all_machines() {
    let mut machines = Machine::ALL.iter().cycle();
    let covered = share(200, 5 * EXPERIMENTS, |chance| {
        let machine = *machines.next().expect("a cycle has no end");
        let rounds = 3 + chance.below(13) as u32;
        holds(&fixed(machine, 1.37, rounds, chance), 1.37)
    });
    assert!(COVERED.contains(&covered), "{covered}");
}

/// Planted fault: the cases of a round always in the same order, on a machine that drifts.
#[test]
fn an_order_that_is_always_the_same_is_caught() {
    let machine = Machine {
        is_shuffled: false,
        ..Machine::DRIFTING
    };
    let false_winners = share(300, EXPERIMENTS, |chance| {
        is_winner(&fixed(machine, 1.0, 10, chance))
    });
    assert!(false_winners > 2.0 * PROMISED, "{false_winners}");
}

#[test]
fn stopping_when_settled_names_no_more_false_winners() {
    for (seed, machine) in (400..).zip(Machine::ALL) {
        let plan = Plan {
            margin: 0.0,
            ..Plan::auto(0.03)
        };
        let false_winners = share(seed, EXPERIMENTS, |chance| {
            let noise = any_noise(plan.precision, chance);
            let machine = Machine { noise, ..machine };
            is_winner(&plan.measure(machine, 1.0, chance).0)
        });
        assert!(false_winners <= PROMISED, "{machine:?}: {false_winners}");
    }
}

/// The noise at which the rule for stopping does the most harm, without a margin that would make some of it a draw.
#[test]
fn even_the_worst_noise_names_no_more_false_winners() {
    let plan = Plan {
        margin: 0.0,
        ..Plan::auto(0.03)
    };
    for (seed, noise) in (500..).zip([0.025, 0.03, 0.035, 0.042]) {
        let machine = Machine {
            noise,
            ..Machine::QUIET
        };
        let false_winners = share(seed, 2 * EXPERIMENTS, |chance| {
            is_winner(&plan.measure(machine, 1.0, chance).0)
        });
        assert!(
            false_winners <= PROMISED + slack(PROMISED) / 2.0,
            "{noise}: {false_winners}"
        );
    }
}

/// Planted fault: stop as soon as the ordinary 95 % interval tells the cases apart.
#[test]
fn stopping_at_the_first_success_is_caught() {
    let plan = Plan {
        margin: 0.0,
        precision: 0.03,
        looks: Looks::Once,
        stop: |_, a, b| {
            a.len() >= ROUNDS_MIN as usize && is_winner(&compare_paired(a, b, 0.0).unwrap())
        },
    };
    let false_winners = share(600, EXPERIMENTS, |chance| {
        is_winner(&plan.measure(Machine::QUIET, 1.0, chance).0)
    });
    assert!(false_winners > 2.0 * PROMISED, "{false_winners}");
}

#[test]
fn intervals_cover_the_truth_after_stopping_when_settled() {
    let truths = [1.0, 1.02, 1.05, 1.1, 1.3, 2.0];
    let mut all = 0.0;
    for (seed, machine) in (700..).zip(Machine::ALL) {
        let plan = Plan::auto(0.03);
        let mut experiment = 0;
        let covered = share(seed, EXPERIMENTS, |chance| {
            let noise = any_noise(plan.precision, chance);
            let truth = truths[experiment % truths.len()];
            experiment += 1;
            let machine = Machine { noise, ..machine };
            holds(&plan.measure(machine, truth, chance).0, truth)
        });
        assert!(covered >= *COVERED.start(), "{machine:?}: {covered}");
        all += covered / Machine::ALL.len() as f64;
    }
    assert!(COVERED.contains(&all), "{all}");
}

/// Planted fault: intervals for 95 % as if the number of rounds had been fixed, and no second look.
#[test]
fn intervals_that_forget_the_stopping_are_caught() {
    let plan = Plan {
        looks: Looks::Once,
        stop: |plan, a, b| {
            let ends = compare_paired(a, b, 0.0).unwrap();
            a.len() >= 3
                && ends
                    .ci95
                    .is_some_and(|(_, high)| high <= ends.ratio * (1.0 + plan.precision))
        },
        ..Plan::auto(0.03)
    };
    let machine = Machine {
        noise: 0.035,
        ..Machine::QUIET
    };
    let covered = share(800, EXPERIMENTS, |chance| {
        holds(&plan.measure(machine, 1.0, chance).0, 1.0)
    });
    assert!(covered < *COVERED.start(), "{covered}");
}

/// "Twice the precision" is what a plan says it finds once it is reached.
#[test]
fn a_difference_of_twice_the_precision_is_found() {
    let plan = Plan::auto(0.025);
    for (seed, machine) in (900..).zip([Machine::QUIET, Machine::WANDERING, Machine::DRIFTING]) {
        let (mut settled, mut found) = (0, 0);
        let mut chance = Chance::new(seed);
        for _ in 0..EXPERIMENTS {
            let noise = any_noise(plan.precision, &mut chance);
            let (comparison, rounds) =
                plan.measure(Machine { noise, ..machine }, 1.05, &mut chance);
            if rounds.is_some() {
                settled += 1;
                found += u32::from(comparison.verdict == Verdict::Faster);
            }
        }
        let share = f64::from(found) / f64::from(settled);
        assert!(settled > EXPERIMENTS / 3, "{machine:?}: {settled} settled");
        assert!(share >= 0.95, "{machine:?}: {share} of {settled}");
    }
}

/// A fixed plan of as many rounds as are said to find 5 %.
#[test]
fn the_rounds_that_are_said_to_find_a_difference_find_it() {
    for (seed, noise) in (1_000..).zip([0.01, 0.02, 0.03, 0.05]) {
        let machine = Machine {
            noise,
            ..Machine::QUIET
        };
        let spread = noise * std::f64::consts::SQRT_2;
        let rounds = rounds_to_find(0.05, spread).unwrap();
        let found = |rounds| {
            share(seed, EXPERIMENTS, |chance| {
                fixed(machine, 1.05, rounds, chance).verdict == Verdict::Faster
            })
        };
        let (enough, half) = (found(rounds), found(rounds.div_ceil(2)));
        assert!(
            enough >= 0.95 - slack(0.95),
            "{noise}, {rounds} rounds: {enough}"
        );
        assert!(
            half < 0.95 - slack(0.95),
            "{noise}: half of {rounds} rounds: {half}"
        );
    }
}

/// What is plainly different takes the fewest rounds there are, however noisy.
#[test]
fn a_plain_difference_is_settled_early() {
    let plan = Plan::auto(0.01);
    let mut rounds_sum = 0;
    let mut chance = Chance::new(1_100);
    for _ in 0..200 {
        let (comparison, rounds) = plan.measure(Machine::WANDERING, 2.0, &mut chance);
        assert_eq!(comparison.verdict, Verdict::Faster);
        rounds_sum += rounds.expect("settled");
    }
    assert!(rounds_sum < 200 * (ROUNDS_MIN + 1), "{rounds_sum}");
}

/// Six equal cases, each measured until its pair with the best is settled: at most one experiment of 20 calls anything
/// different, at noise that stops early as at noise that does not.
#[test]
fn of_six_equal_cases_that_stop_when_settled_nothing_is_called_different() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    const SIX_EXPERIMENTS: u32 = 250;
    let standard = Plan::auto(0.03).standard();
    let standard = Standard {
        margin: 0.0,
        ..standard
    };
    for (seed, machine) in (1_200..).zip([Machine::QUIET, Machine::WANDERING, Machine::TWO_MODES]) {
        let told = share(seed, SIX_EXPERIMENTS, |chance| {
            let noise = any_noise(0.03, chance);
            let machine = Machine { noise, ..machine };
            let mut experiment = Experiment::new(machine, &[1_000.0; 6], chance);
            let mut cases: Vec<CaseRounds> = Vec::new();
            for _ in 0..ROUNDS_MAX {
                experiment.run_round(chance);
                cases = experiment
                    .cases
                    .iter()
                    .map(|values| named(values))
                    .collect();
                let best = rank(&cases, standard).unwrap().best;
                let family = Family::of(&cases, standard).unwrap();
                let mut others = (0..cases.len()).filter(|other| *other != best);
                if others.all(|other| family.is_settled(best, other, 0.03)) {
                    break;
                }
            }
            let pairs = pairs(&cases, standard).unwrap();
            pairs.iter().any(|pair| is_winner(&pair.comparison))
        });
        let slack = 3.0 * (PROMISED * (1.0 - PROMISED) / f64::from(SIX_EXPERIMENTS)).sqrt();
        assert!(told <= PROMISED + slack, "{machine:?}: {told}");
    }
}
