//! Does a warm-up that ends by itself end in time, and not too early? Throughput that rises to its level at many
//! speeds, with noise that hangs together and machines with two speeds; all from fixed seeds. A warm-up of a fixed
//! length beside it shows what would be lost.

use crate::machine::Chance;
use spindle_stats::{STEADY_SAMPLES_MIN, steady_after};

const SERIES: u32 = 400;
/// Twelve times the fewest samples, as a minute is of five seconds.
const SAMPLES_MAX: usize = 12 * STEADY_SAMPLES_MIN;
/// A measured time is four times the shortest warm-up.
const MEASURED: usize = 4 * STEADY_SAMPLES_MIN;
/// By so much the mean over the measured time may be off because it began too early.
const BIAS_MAX: f64 = 0.02;

/// Noise of 10 % in each sample, most of it shared with the sample before.
struct Throughput {
    /// Samples in which the missing half of the throughput shrinks to a third; 0: nothing is missing.
    rise: f64,
    /// How much slower the slow one of two speeds is, which change every 50 samples or so.
    slow_mode: f64,
}

impl Throughput {
    fn missing(&self, index: usize) -> f64 {
        match self.rise {
            0.0 => 0.0,
            rise => 0.5 * (-(index as f64) / rise).exp(),
        }
    }

    /// Mean of what is missing in a time measured from this sample on.
    fn bias_from(&self, begin: usize) -> f64 {
        let measured = begin..begin + MEASURED;
        measured.map(|index| self.missing(index)).sum::<f64>() / MEASURED as f64
    }

    /// The sample at which a warm-up that ends by itself would end, if it does.
    fn settles_at(&self, chance: &mut Chance) -> Option<usize> {
        let (mut noise, mut is_slow) = (0.0, false);
        let mut samples = Vec::new();
        while samples.len() < SAMPLES_MAX {
            for _ in 0..10 {
                noise = 0.7 * noise + 0.07 * chance.normal();
                is_slow ^= chance.uniform() < 0.02;
                let mode = if is_slow { self.slow_mode } else { 0.0 };
                samples.push(1_000.0 * (1.0 - self.missing(samples.len()) - mode + noise));
            }
            if steady_after(&samples).is_some() {
                return Some(samples.len());
            }
        }
        None
    }
}

/// Share of the series that settle, and the mean of what is missing in the time that is then measured.
fn settling(seed: u64, throughput: &Throughput) -> (f64, f64) {
    let mut chance = Chance::new(seed);
    let ends: Vec<usize> = (0..SERIES)
        .filter_map(|_| throughput.settles_at(&mut chance))
        .collect();
    let biases = ends.iter().map(|&end| throughput.bias_from(end));
    let bias = biases.sum::<f64>() / ends.len() as f64;
    (ends.len() as f64 / f64::from(SERIES), bias)
}

#[test]
fn what_is_steady_settles_on_every_machine() {
    for (seed, slow_mode) in [(1, 0.0), (2, 0.1), (3, 0.3)] {
        let throughput = Throughput {
            rise: 0.0,
            slow_mode,
        };
        let (settled, _) = settling(seed, &throughput);
        assert!(settled >= 0.98, "slow mode {slow_mode}: {settled}");
    }
}

#[test]
fn what_rises_is_waited_for() {
    for (seed, rise) in [(11, 20.0), (12, 40.0), (13, 80.0)] {
        let throughput = Throughput {
            rise,
            slow_mode: 0.0,
        };
        let (settled, bias) = settling(seed, &throughput);
        assert!(settled >= 0.95, "rise {rise}: {settled}");
        assert!(bias <= BIAS_MAX, "rise {rise}: {bias}");
    }
    // A fixed warm-up of the shortest length begins too early at the slowest of them.
    let slow = Throughput {
        rise: 80.0,
        slow_mode: 0.0,
    };
    assert!(slow.bias_from(STEADY_SAMPLES_MIN) > BIAS_MAX);
}

#[test]
fn what_rises_to_the_end_never_settles() {
    let throughput = Throughput {
        rise: 1_000.0,
        slow_mode: 0.0,
    };
    let samples: Vec<f64> = (0..SAMPLES_MAX)
        .map(|index| 1_000.0 * (1.0 - throughput.missing(index)))
        .collect();
    let lengths = (STEADY_SAMPLES_MIN..SAMPLES_MAX).step_by(10);
    let settled = lengths.filter(|&length| steady_after(&samples[..length]).is_some());
    assert_eq!(settled.count(), 0);
}
