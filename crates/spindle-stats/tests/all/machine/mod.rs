//! A machine that does not measure the same thing twice alike, for synthetic experiments: each trial has noise of its
//! own, and the machine beneath drifts, is slow for a while (noise of neighbouring trials is correlated), or goes back
//! and forth between two speeds. Trials run one after the other, those of a round in random order, as the runner has
//! them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_stats::CaseRounds;

/// Everything random, from a seed.
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Chance(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller ("A note on the generation of random normal deviates", 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// One of the values below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.uniform() * end as f64) as usize
    }
}

/// What a machine is like. All but the last two in logarithms of throughput: 0.02 is about 2 %.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// Standard deviation of each trial's own noise.
    pub noise: f64,
    /// Standard deviation of what the machine adds to neighbouring trials alike (a Markov process, correlation 0.7 from
    /// one trial to the next).
    pub wander: f64,
    /// What is lost from each trial to the next.
    pub drift: f64,
    /// How much slower the slow mode is.
    pub slow_mode: f64,
    /// Chance that the mode changes from one trial to the next.
    pub mode_change: f64,
    /// Trials of a round in random order; `false` is a fault.
    pub is_shuffled: bool,
}

const WANDER_CORRELATION: f64 = 0.7;

impl Machine {
    pub const QUIET: Machine = Machine {
        noise: 0.02,
        wander: 0.0,
        drift: 0.0,
        slow_mode: 0.0,
        mode_change: 0.0,
        is_shuffled: true,
    };
    pub const WANDERING: Machine = Machine {
        wander: 0.04,
        ..Machine::QUIET
    };
    pub const DRIFTING: Machine = Machine {
        drift: 0.01,
        ..Machine::QUIET
    };
    pub const TWO_MODES: Machine = Machine {
        slow_mode: 0.2,
        mode_change: 0.1,
        ..Machine::QUIET
    };
    /// All of it at once.
    pub const AWKWARD: Machine = Machine {
        wander: 0.03,
        drift: 0.005,
        slow_mode: 0.1,
        mode_change: 0.1,
        ..Machine::QUIET
    };
    pub const ALL: [Machine; 5] = [
        Machine::QUIET,
        Machine::WANDERING,
        Machine::DRIFTING,
        Machine::TWO_MODES,
        Machine::AWKWARD,
    ];
}

/// An experiment under way: as many cases as `speeds`.
pub struct Experiment<'a> {
    machine: Machine,
    speeds: &'a [f64],
    wander: f64,
    drifted: f64,
    is_slow: bool,
    /// One list of values for each case.
    pub cases: Vec<Vec<f64>>,
}

impl<'a> Experiment<'a> {
    pub fn new(machine: Machine, speeds: &'a [f64], chance: &mut Chance) -> Self {
        Experiment {
            machine,
            speeds,
            wander: machine.wander * chance.normal(),
            drifted: 0.0,
            is_slow: chance.uniform() < 0.5,
            cases: vec![Vec::new(); speeds.len()],
        }
    }

    /// One more trial of every case.
    pub fn run_round(&mut self, chance: &mut Chance) {
        let mut order: Vec<usize> = (0..self.speeds.len()).collect();
        if self.machine.is_shuffled {
            for last in (1..order.len()).rev() {
                order.swap(last, chance.below(last + 1));
            }
        }
        for case in order {
            let value = self.speeds[case] * self.trial(chance).exp();
            self.cases[case].push(value);
        }
    }

    fn trial(&mut self, chance: &mut Chance) -> f64 {
        let fresh = (1.0 - WANDER_CORRELATION * WANDER_CORRELATION).sqrt();
        self.wander =
            WANDER_CORRELATION * self.wander + fresh * self.machine.wander * chance.normal();
        self.drifted -= self.machine.drift;
        if chance.uniform() < self.machine.mode_change {
            self.is_slow = !self.is_slow;
        }
        let mode = if self.is_slow {
            -self.machine.slow_mode
        } else {
            0.0
        };
        self.wander + self.drifted + mode + self.machine.noise * chance.normal()
    }
}

/// Cases with these values in rounds 1, 2, ..., none of which needs a name.
pub fn named(cases: Vec<Vec<f64>>) -> Vec<CaseRounds> {
    let named = cases.into_iter().map(|values| CaseRounds {
        name: String::new(),
        values: (1..).zip(values).collect(),
        ..CaseRounds::default()
    });
    named.collect()
}

/// What a number of rounds on a machine gives for cases of these speeds.
pub fn measured(
    machine: Machine,
    speeds: &[f64],
    rounds: u32,
    chance: &mut Chance,
) -> Vec<CaseRounds> {
    let mut experiment = Experiment::new(machine, speeds, chance);
    (0..rounds).for_each(|_| experiment.run_round(chance));
    named(experiment.cases)
}
