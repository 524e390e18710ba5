//! Synthetic experiments whose truth is known: are the verdicts honest, and do they still find what is there?
//!
//! An A/A experiment measures the same thing under several names, so every winner it names is false. A/A experiments
//! alone would be passed by a program that never decides anything; experiments with a true difference catch that one.
//! For each check a planted fault shows that it can fail. All noise comes from fixed seeds: a run is repeatable, and the
//! slack below only says how far an honest program may be from its nominal rate by the luck of the seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_stats::{
    CaseRounds, Estimate, Pair, Standard, Verdict, compare_paired, estimate_mean, pairs, rank,
};

const MARGIN: f64 = 0.03;
const NO_MARGIN: f64 = 0.0;

/// The chance of a false winner that a 95 % interval allows.
const NOMINAL_RATE: f64 = 0.05;
const SERIES: u32 = 8_000;
const EXPERIMENTS: u32 = 5_000;

/// Three standard deviations of the share of `trials` that come out false when each does so with the chance `rate`
/// (binomial): an honest program is further off for about one seed in 370.
fn slack(rate: f64, trials: u32) -> f64 {
    3.0 * (rate * (1.0 - rate) / f64::from(trials)).sqrt()
}

struct Noise(Xoshiro256PlusPlus);

impl Noise {
    fn new(seed: u64) -> Self {
        Noise(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller ("A note on the generation of random normal deviates", 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A noise level between 0.5 % and 10 %, any order of magnitude as likely as another.
    fn level(&mut self) -> f64 {
        0.005 * 20_f64.powf(self.uniform())
    }

    /// 3 to 10 rounds.
    fn rounds(&mut self) -> usize {
        3 + (self.uniform() * 8.0) as usize
    }

    /// Values of one case for each speed in `speeds`: lognormal noise of `level` in each trial, and 20 % in each round
    /// as a whole, as a machine has it that is shared with others.
    fn experiment(&mut self, speeds: &[f64], level: f64, rounds: usize) -> Vec<Vec<f64>> {
        let mut cases = vec![Vec::with_capacity(rounds); speeds.len()];
        for _ in 0..rounds {
            let round = 1_000.0 * (0.2 * self.normal()).exp();
            for (case, speed) in cases.iter_mut().zip(speeds) {
                case.push(speed * round * (level * self.normal()).exp());
            }
        }
        cases
    }

    fn pair(&mut self, ratio: f64, level: f64, rounds: usize) -> (Vec<f64>, Vec<f64>) {
        let mut cases = self.experiment(&[ratio, 1.0], level, rounds).into_iter();
        (cases.next().unwrap(), cases.next().unwrap())
    }
}

fn verdict(a: &[f64], b: &[f64], margin: f64) -> Verdict {
    compare_paired(a, b, margin).unwrap().verdict
}

/// Share of `trials` in which `event` happens, each with noise of its own.
fn share(seed: u64, trials: u32, mut event: impl FnMut(&mut Noise) -> bool) -> f64 {
    let mut noise = Noise::new(seed);
    let happened = (0..trials).filter(|_| event(&mut noise)).count();
    happened as f64 / f64::from(trials)
}

fn is_winner(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

/// Planted fault: the normal quantile where Student's t belongs, as if three rounds told the spread exactly.
fn verdict_by_normal_quantile(a: &[f64], b: &[f64]) -> Verdict {
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (a / b).ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half_width = 1.96 * (variance / n).sqrt();
    verdict_excluding_zero(mean - half_width, mean + half_width)
}

/// Planted fault: the rounds of the two cases are not paired, so what slowed a whole round counts as noise of each.
fn verdict_unpaired(a: &[f64], b: &[f64]) -> Verdict {
    let ends = |values: &[f64]| {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let Estimate { mean, ci95 } = estimate_mean(&logs).unwrap();
        (mean, ci95.unwrap().1 - mean)
    };
    let ((a_mean, a_half), (b_mean, b_half)) = (ends(a), ends(b));
    let half_width = a_half.hypot(b_half);
    verdict_excluding_zero(a_mean - b_mean - half_width, a_mean - b_mean + half_width)
}

fn verdict_excluding_zero(low: f64, high: f64) -> Verdict {
    if low > 0.0 {
        Verdict::Faster
    } else if high < 0.0 {
        Verdict::Slower
    } else {
        Verdict::Undecided
    }
}

/// No slack: the nominal rate is 5 %, and the series that fall in the draw only take from it.
#[test]
fn equal_cases_get_a_winner_in_at_most_5_percent() {
    let false_winners = share(1, SERIES, |noise| {
        let (level, rounds) = (noise.level(), noise.rounds());
        let (a, b) = noise.pair(1.0, level, rounds);
        is_winner(verdict(&a, &b, MARGIN))
    });
    assert!(false_winners <= NOMINAL_RATE, "{false_winners}");
    // Well below the nominal rate, but not nothing: a program that never decides is caught here too.
    assert!(false_winners >= 0.02, "{false_winners}");
}

/// Where nothing is a draw, the rate is the nominal one at every number of rounds.
#[test]
fn without_a_margin_the_rate_is_the_nominal_one() {
    for rounds in 3..=10 {
        let false_winners = share(rounds as u64, SERIES, |noise| {
            let level = noise.level();
            let (a, b) = noise.pair(1.0, level, rounds);
            is_winner(verdict(&a, &b, NO_MARGIN))
        });
        let distance = (false_winners - NOMINAL_RATE).abs();
        assert!(
            distance <= slack(NOMINAL_RATE, SERIES),
            "{rounds} rounds: {false_winners}"
        );
    }
}

#[test]
fn the_normal_quantile_is_caught() {
    let false_winners = share(3, SERIES, |noise| {
        let level = noise.level();
        let (a, b) = noise.pair(1.0, level, 3);
        is_winner(verdict_by_normal_quantile(&a, &b))
    });
    // The truth is 18.9 %: the chance of Student's t with 2 degrees of freedom beyond 1.96.
    assert!(
        false_winners > NOMINAL_RATE + slack(NOMINAL_RATE, SERIES),
        "{false_winners}"
    );
}

#[test]
fn intervals_hold_the_true_ratio_in_95_percent() {
    let covered = share(4, SERIES, |noise| {
        let (level, rounds) = (noise.level(), noise.rounds());
        let (a, b) = noise.pair(1.37, level, rounds);
        let (low, high) = compare_paired(&a, &b, MARGIN).unwrap().ci95.unwrap();
        low <= 1.37 && 1.37 <= high
    });
    assert!((0.93..=0.97).contains(&covered), "{covered}");
}

/// Share of experiments that find the truth, of a difference of 10 % under 1 % noise in 5 rounds.
fn found(judge: impl Fn(&[f64], &[f64]) -> Verdict) -> f64 {
    share(5, SERIES, |noise| {
        let (a, b) = noise.pair(1.10, 0.01, 5);
        judge(&a, &b) == Verdict::Faster
    })
}

#[test]
fn a_true_difference_is_found() {
    let paired = found(|a, b| verdict(a, b, MARGIN));
    assert!(paired > 0.99, "{paired}");
}

#[test]
fn an_unpaired_comparison_is_caught() {
    let unpaired = found(verdict_unpaired);
    assert!(unpaired < 0.5, "{unpaired}");
}

fn named(cases: Vec<Vec<f64>>) -> Vec<CaseRounds> {
    let named = cases.into_iter().enumerate().map(|(index, values)| {
        let values = (1..).zip(values).collect();
        CaseRounds {
            name: format!("case {index}"),
            values,
        }
    });
    named.collect()
}

/// Share of experiments with cases of these speeds in which `headline` calls a winner.
fn headlines(
    seed: u64,
    speeds: &[f64],
    margin: f64,
    headline: fn(&[CaseRounds], f64) -> Option<usize>,
) -> f64 {
    share(seed, EXPERIMENTS, |noise| {
        let (level, rounds) = (noise.level(), noise.rounds());
        let cases = named(noise.experiment(speeds, level, rounds));
        headline(&cases, margin).is_some()
    })
}

fn winner(cases: &[CaseRounds], margin: f64) -> Option<usize> {
    rank(cases, Standard::fixed(margin)).unwrap().winner
}

/// Planted fault: "the best is faster than another one" taken for a headline.
fn faster_than_another(cases: &[CaseRounds], margin: f64) -> Option<usize> {
    let ranking = rank(cases, Standard::fixed(margin)).unwrap();
    let mut verdicts = ranking.verdicts.iter();
    verdicts
        .any(|pair| pair.comparison.verdict == Verdict::Faster)
        .then_some(ranking.best)
}

/// Planted fault: every other case beaten, but each at the full 5 % that a verdict allows.
fn faster_than_all(cases: &[CaseRounds], margin: f64) -> Option<usize> {
    let ranking = rank(cases, Standard::fixed(margin)).unwrap();
    let mut verdicts = ranking.verdicts.iter();
    verdicts
        .all(|pair| pair.comparison.verdict == Verdict::Faster)
        .then_some(ranking.best)
}

#[test]
fn six_equal_cases_get_a_headline_in_at_most_5_percent() {
    for margin in [MARGIN, NO_MARGIN] {
        let false_headlines = headlines(6, &[1.0; 6], margin, winner);
        assert!(
            false_headlines <= NOMINAL_RATE,
            "{margin}: {false_headlines}"
        );
        let planted = headlines(6, &[1.0; 6], margin, faster_than_another);
        assert!(
            planted > NOMINAL_RATE + slack(NOMINAL_RATE, EXPERIMENTS),
            "{margin}: {planted}"
        );
    }
}

/// Two best cases are equal and all others so slow that both surely beat them: what is left is one comparison, which
/// either of the two may win at 5 % / 6. Without a margin that rate is reached, so an honest program is near it.
#[test]
fn two_equal_best_cases_get_a_headline_in_no_more_than_their_share_of_5_percent() {
    let speeds = [1.0, 1.0, 1e-2, 1e-4, 1e-6, 1e-8];
    let rate = 2.0 * NOMINAL_RATE / speeds.len() as f64;
    let with_margin = headlines(7, &speeds, MARGIN, winner);
    assert!(with_margin <= rate, "{with_margin}");
    let without = headlines(7, &speeds, NO_MARGIN, winner);
    let band = rate - slack(rate, EXPERIMENTS)..=rate + slack(rate, EXPERIMENTS);
    assert!(band.contains(&without), "{without}");
    let planted = headlines(7, &speeds, NO_MARGIN, faster_than_all);
    assert!(planted > *band.end(), "{planted}");
}

/// One case is 30 % faster than five equal ones, under 2 % noise: nearly always found in the 3 rounds of an ordinary
/// experiment, and always in 5.
#[test]
fn a_true_winner_is_named() {
    let mut speeds = [1.0; 6];
    speeds[4] = 1.3;
    for (rounds, at_least) in [(3, 0.9), (5, 0.99)] {
        let named_it = share(8, EXPERIMENTS, |noise| {
            let cases = named(noise.experiment(&speeds, 0.02, rounds));
            winner(&cases, MARGIN) == Some(4)
        });
        assert!(named_it > at_least, "{rounds} rounds: {named_it}");
    }
}

/// Experiments that are looked at pair by pair.
const PAIRED_EXPERIMENTS: u32 = 2_000;

/// Share of experiments with cases of these speeds in which a pair of the first `equal` ones is told apart: among all pairs, and
/// by what each pair says alone.
fn false_differences(seed: u64, speeds: &[f64], equal: usize, margin: f64) -> (f64, f64) {
    let mut alone = 0;
    let among_all = share(seed, PAIRED_EXPERIMENTS, |noise| {
        let (level, rounds) = (noise.level(), noise.rounds());
        let cases = named(noise.experiment(speeds, level, rounds));
        let mut pairs = pairs(&cases, Standard::fixed(margin)).unwrap();
        pairs.retain(|pair| pair.b < equal);
        let is_told = |verdict: fn(&Pair) -> Verdict| pairs.iter().map(verdict).any(is_winner);
        alone += u32::from(is_told(|pair| pair.alone.verdict));
        is_told(|pair| pair.verdict)
    });
    (among_all, f64::from(alone) / f64::from(PAIRED_EXPERIMENTS))
}

/// Among all pairs of an experiment a false difference is named in 5 % of experiments at most, whether all cases are equal or
/// others differ so much that they are told apart first and leave the rest the weakest correction. Of few rounds, pairs that
/// look sure by luck are seldom the same ones, so that without a margin the rate is near the bound.
#[test]
fn among_all_pairs_equal_cases_are_told_apart_in_at_most_5_percent() {
    const APART: [f64; 5] = [1.0, 1.0, 1.0, 1e-3, 1e-6];
    let bound = NOMINAL_RATE + slack(NOMINAL_RATE, PAIRED_EXPERIMENTS);
    for (speeds, equal) in [(&[1.0; 5], 5), (&APART, 3)] {
        let (with_margin, _) = false_differences(9, speeds, equal, MARGIN);
        assert!(with_margin <= NOMINAL_RATE, "{equal}: {with_margin}");
        let (without, planted) = false_differences(9, speeds, equal, NO_MARGIN);
        assert!(without <= bound, "{equal}: {without}");
        assert!(planted > bound, "{equal}: uncorrected {planted}");
    }
}

#[test]
fn true_differences_are_found_among_all_pairs() {
    let speeds = [1.0, 1.3, 1.69, 2.2];
    let all_found = share(10, PAIRED_EXPERIMENTS / 4, |noise| {
        let cases = named(noise.experiment(&speeds, 0.02, 5));
        let pairs = pairs(&cases, Standard::fixed(MARGIN)).unwrap();
        pairs.iter().all(|pair| pair.verdict == Verdict::Slower)
    });
    assert!(all_found > 0.99, "{all_found}");
}
