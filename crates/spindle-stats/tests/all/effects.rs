//! Effects of the factors of a matrix, on synthetic experiments whose truth is known: of equal cases at most one
//! experiment of 20 calls any effect, and any interaction, on quiet and awkward machines and with cases of unlike
//! noise; and effects that are there are found by fewer rounds than pairs take.

use spindle_stats::{
    CaseRounds, Comparison, Effects, Family, LevelMatrix, Standard, Verdict, effects,
};

use super::machine::{Chance, Machine, measured, named};

const EXPERIMENTS: u32 = 1_000;
const PROMISED: f64 = 0.05;

/// Three standard deviations of a share of [`EXPERIMENTS`]: the luck of the seed.
fn most(rate: f64) -> f64 {
    rate + 3.0 * (rate * (1.0 - rate) / f64::from(EXPERIMENTS)).sqrt()
}

fn share(seed: u64, mut event: impl FnMut(&mut Chance) -> bool) -> f64 {
    let mut chance = Chance::new(seed);
    let happened = (0..EXPERIMENTS).filter(|_| event(&mut chance)).count();
    happened as f64 / f64::from(EXPERIMENTS)
}

/// All combinations of this many levels of each factor.
fn full(levels: &[usize]) -> LevelMatrix {
    let mut cells = vec![Vec::new()];
    for count in levels {
        let longer = |cell: &Vec<usize>| {
            let cell = cell.clone();
            (0..*count).map(move |level| [cell.clone(), vec![level]].concat())
        };
        cells = cells.iter().flat_map(longer).collect();
    }
    LevelMatrix {
        cells,
        is_fraction: false,
    }
}

fn half_of_five() -> LevelMatrix {
    let mut cells = full(&[2; 5]).cells;
    cells.retain(|cell| cell.iter().sum::<usize>().is_multiple_of(2));
    LevelMatrix {
        cells,
        is_fraction: true,
    }
}

fn matrices() -> [LevelMatrix; 4] {
    [
        full(&[2, 2]),
        full(&[3, 2]),
        full(&[2, 2, 2]),
        half_of_five(),
    ]
}

fn told(cases: &[CaseRounds], matrix: &LevelMatrix) -> Effects {
    effects(cases, matrix, Standard::fixed(0.0)).unwrap()
}

fn misses(comparison: &Comparison, truth: f64) -> bool {
    let (low, high) = comparison.ci95.expect("two rounds or more");
    !(low..=high).contains(&truth)
}

/// Of equal cases: whether any effect, and any interaction, is called.
fn called(cases: &[CaseRounds], matrix: &LevelMatrix) -> (bool, bool) {
    let told = told(cases, matrix);
    (
        told.effects
            .iter()
            .any(|effect| misses(&effect.comparison, 1.0)),
        told.interactions
            .iter()
            .any(|both| misses(&both.comparison, 1.0)),
    )
}

/// In which share of experiments of equal cases any effect is called, and any interaction.
fn shares(
    seed: u64,
    matrix: &LevelMatrix,
    mut run: impl FnMut(&mut Chance) -> Vec<CaseRounds>,
) -> (f64, f64) {
    let mut interactions = 0;
    let effects = share(seed, |chance| {
        let called = called(&run(chance), matrix);
        interactions += u32::from(called.1);
        called.0
    });
    (effects, f64::from(interactions) / f64::from(EXPERIMENTS))
}

/// What breaks the promise, in words.
fn beyond((effects, interactions): (f64, f64), what: String) -> Option<String> {
    let is_kept = effects <= most(PROMISED) && interactions <= most(PROMISED);
    (!is_kept).then(|| format!("{what}: effects in {effects}, interactions in {interactions}"))
}

#[test]
fn equal_cases_have_no_effects_on_any_machine() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let mut broken = Vec::new();
    for (seed, matrix) in (400..).zip(matrices()) {
        for machine in Machine::ALL {
            for rounds in [3, 8] {
                let speeds = vec![1_000.0; matrix.cells.len()];
                let told = shares(seed, &matrix, |chance| {
                    measured(machine, &speeds, rounds, chance)
                });
                let cells = matrix.cells.len();
                broken.extend(beyond(
                    told,
                    format!("{cells} cells, {machine:?}, {rounds} rounds"),
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Standard deviations of the noise of the cells: some are many times as noisy as the others.
fn patterns(cells: usize) -> Vec<Vec<f64>> {
    let noisy = |count: usize, times: f64| {
        (0..cells)
            .map(|cell| if cell < count { 0.02 * times } else { 0.02 })
            .collect()
    };
    vec![
        noisy(1, 4.0),
        noisy(1, 100.0),
        noisy(2, 10.0),
        noisy(cells / 2, 4.0),
        noisy(cells - 1, 10.0),
        (0..cells)
            .map(|cell| 0.1 / f64::from(1_u32 << cell.min(20)))
            .collect(),
    ]
}

fn with_noise(noise: &[f64], rounds: u32, chance: &mut Chance) -> Vec<CaseRounds> {
    let of_case = |noise: &f64| {
        (0..rounds)
            .map(|_| (noise * chance.normal()).exp())
            .collect()
    };
    named(noise.iter().map(of_case).collect())
}

#[test]
fn cells_of_unlike_noise_make_no_effects() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let mut broken = Vec::new();
    for (seed, matrix) in (500..).zip(matrices()) {
        for (number, noise) in patterns(matrix.cells.len()).iter().enumerate() {
            for rounds in [3, 10] {
                let told = shares(seed, &matrix, |chance| with_noise(noise, rounds, chance));
                broken.extend(beyond(
                    told,
                    format!(
                        "{} cells, pattern {number}, {rounds} rounds",
                        matrix.cells.len()
                    ),
                ));
            }
        }
    }
    assert!(
        broken.is_empty(),
        "{}",
        broken.join(
            "
"
        )
    );
}

/// The wrong rule: each effect by the interval of a pair alone. The same check catches it.
#[test]
fn effects_each_by_itself_break_the_promise() {
    let matrix = half_of_five();
    let told = shares(600, &matrix, |chance| {
        measured(Machine::QUIET, &[1_000.0; 16], 5, chance)
    });
    assert_eq!(beyond(told, String::new()), None);
    let alone = share(600, |chance| {
        let cases = measured(Machine::QUIET, &[1_000.0; 16], 5, chance);
        let told = effects(&cases, &matrix, Standard::fixed(0.0)).unwrap();
        let mut alone = told.effects.iter().map(|effect| effect.comparison.p_value);
        alone.any(|p_value| p_value.is_some_and(|p_value| p_value <= PROMISED))
    });
    assert!(alone > most(PROMISED), "{alone}");
}

/// One factor of three makes 6 % under 2 % noise: its effect is found where the pairs that differ in it are not.
#[test]
fn an_effect_is_known_better_than_any_pair() {
    let matrix = full(&[2, 2, 2]);
    let speed = |cell: &Vec<usize>| 1_000.0 * 1.06_f64.powi(cell[0] as i32);
    let speeds: Vec<f64> = matrix.cells.iter().map(speed).collect();
    let (mut by_pair, mut right) = (0, 0);
    let by_effect = share(700, |chance| {
        let cases = measured(Machine::QUIET, &speeds, 4, chance);
        let pair = Family::of(&cases, Standard::fixed(0.0))
            .unwrap()
            .compare(4, 0);
        by_pair += u32::from(pair.verdict == Verdict::Faster);
        let told = effects(&cases, &matrix, Standard::fixed(0.0)).unwrap();
        let truths = [1.06, 1.0, 1.0];
        let mut of_factors = told.effects.iter().zip(truths);
        right += u32::from(of_factors.all(|(effect, truth)| !misses(&effect.comparison, truth)));
        told.effects[0].comparison.verdict == Verdict::Faster
    });
    let share_of = |count: u32| f64::from(count) / f64::from(EXPERIMENTS);
    assert!(
        by_effect > 0.8 && share_of(by_pair) < 0.4,
        "{by_effect}, {}",
        share_of(by_pair)
    );
    assert!(
        1.0 - share_of(right) <= most(PROMISED),
        "{}",
        share_of(right)
    );
}
