//! Chance in scripts: the generator and the distributions of pgbench, and its functions that scatter numbers without
//! chance. What has a seed gives the very numbers that pgbench gives (pgbench.c and pg_prng.c of PostgreSQL 15 say what
//! is calculated; a test compares the two).

/// xoroshiro128** of Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Random {
    state: [u64; 2],
}

impl Random {
    /// Filled from a seed by SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
    /// 2014).
    pub fn seeded(mut seed: u64) -> Random {
        let mut next = || {
            seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = seed;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        let state = [next(), next()];
        // A state of zeros would stay one.
        match state {
            [0, 0] => Random { state: [1, 1] },
            state => Random { state },
        }
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        let [first, second] = self.state;
        let mixed = second ^ first;
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.state = [
            first.rotate_left(24) ^ mixed ^ (mixed << 16),
            mixed.rotate_left(37),
        ];
        value
    }

    /// A number from 0 to `last`.
    fn up_to(&mut self, last: u64) -> u64 {
        if last == 0 {
            return 0;
        }
        loop {
            let value = self.next() >> last.leading_zeros();
            if value <= last {
                return value;
            }
        }
    }

    /// A number from 0 on and below 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 12) as f64 / (1u64 << 52) as f64
    }

    /// A number from `least` to `most`, each as likely.
    pub fn uniform(&mut self, least: i64, most: i64) -> i64 {
        least.wrapping_add(self.up_to(most.wrapping_sub(least) as u64) as i64)
    }

    /// A number from `least` to `most`, the likelier the nearer to `least`.
    pub fn exponential(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        at_share(least, most, share)
    }

    /// A number from `least` to `most`, the likelier the nearer to their middle: a normal distribution that ends
    /// `parameter` standard deviations from it.
    pub fn gaussian(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        let deviation = loop {
            // Box and Muller's transform.
            let length = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
            let angle = std::f64::consts::TAU * (1.0 - self.fraction());
            let deviation = length * angle.sin();
            if (-parameter..parameter).contains(&deviation) {
                break deviation;
            }
        };
        at_share(least, most, (deviation + parameter) / (2.0 * parameter))
    }

    /// A number from `least` to `most`: the k-th of them with a likelihood that falls as k to the power of
    /// `-parameter` (Devroye, "Non-Uniform Random Variate Generation", 1986, pages 550 and 551).
    pub fn zipfian(&mut self, least: i64, most: i64, parameter: f64) -> i64 {
        let count = most - least + 1;
        if count <= 1 {
            return least;
        }
        let power = parameter - 1.0;
        let two = 2f64.powf(power);
        loop {
            let (first, second) = (self.fraction(), self.fraction());
            let rank = first.powf(-1.0 / power).floor();
            let next = (1.0 + 1.0 / rank).powf(power);
            let is_taken = second * rank * (next - 1.0) / (two - 1.0) <= next / two;
            if is_taken && rank <= count as f64 {
                return least.wrapping_add(rank as i64 - 1);
            }
        }
    }
}

/// The number at a share, from 0 on and below 1, of the way.
fn at_share(least: i64, most: i64, share: f64) -> i64 {
    least.wrapping_add(((most - least + 1) as f64 * share) as i64)
}

/// FNV-1a of a number's eight bytes (http://www.isthe.com/chongo/tech/comp/fnv/).
pub(super) fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01B3;
    let start = BASIS ^ seed as u64;
    let bytes = value.to_le_bytes();
    let hash = bytes.iter().fold(start, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    });
    hash as i64
}

/// MurmurHash2 of a number (https://github.com/aappleby/smhasher).
pub(super) fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mut key = (value as u64).wrapping_mul(FACTOR);
    key = (key ^ (key >> SHIFT)).wrapping_mul(FACTOR);
    let mut hash = ((seed as u64 ^ FACTOR.wrapping_mul(8)) ^ key).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Where `value`, taken modulo `size`, is in a permutation of the numbers below `size`, which the seed chooses.
/// `size` is more than 0.
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::seeded(seed as u64);
    let size = size as u64;
    let mut value = value as u64 % size;
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let scatter = |value: u64, factor: u64, flip: u64| {
        let mixed = (value.wrapping_mul(factor) ^ flip) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    for _ in 0..6 {
        // The lower and the upper part of the range overlap; each is a power of two long.
        let (factor, flip) = ((random.next() & mask) | 1, random.next() & mask);
        if value <= mask {
            value = scatter(value, factor, flip);
        }
        let (factor, flip) = ((random.next() & mask) | 1, random.next() & mask);
        let from_end = size - 1 - value;
        if from_end <= mask {
            value = size - 1 - scatter(from_end, factor, flip);
        }
        value = (value + random.up_to(size - 1)) % size;
    }
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_permutations_are_those_of_pgbench() {
        // What pgbench 15 gives.
        assert_eq!(hash_fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!(hash_murmur2(10, 5432), -5_817_877_081_768_721_676);
        let permuted: Vec<i64> = (0..10).map(|value| permute(value, 10, 5432)).collect();
        let mut sorted = permuted.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..10).collect::<Vec<i64>>());
        assert_eq!(permute(7, 1, 1), 0);
        assert_eq!(
            [
                permute(0, 1000, 5432),
                permute(7, 10, 5432),
                permute(-1, 3, 9)
            ],
            [609, 4, 0]
        );
        assert_eq!(
            permute(123_456_789, 9_000_000_000_000_000_000, 42),
            5_543_576_387_225_670_474
        );
    }

    #[test]
    fn every_distribution_stays_within_its_bounds_and_reaches_them() {
        let mut random = Random::seeded(3);
        for draw in [
            (|random: &mut Random| random.uniform(-3, 5)) as fn(&mut Random) -> i64,
            |random| random.exponential(-3, 5, 2.5),
            |random| random.gaussian(-3, 5, 2.5),
            |random| random.zipfian(-3, 5, 1.2),
        ] {
            let drawn: Vec<i64> = (0..20_000).map(|_| draw(&mut random)).collect();
            assert_eq!(drawn.iter().min(), Some(&-3));
            assert_eq!(drawn.iter().max(), Some(&5));
        }
        assert_eq!(random.uniform(i64::MIN, i64::MIN), i64::MIN);
        assert_eq!(random.zipfian(4, 4, 2.0), 4);
        // The ends of what whole numbers there are.
        for (least, most) in [(i64::MIN, -2), (1, i64::MAX), (i64::MIN, i64::MIN + 3)] {
            for parameter in [2.0, 2.5, 900.0] {
                let drawn = [
                    random.zipfian(least, most, parameter),
                    random.gaussian(least, most, parameter),
                    random.exponential(least, most, parameter),
                ];
                assert!(
                    drawn.iter().all(|drawn| (least..=most).contains(drawn)),
                    "{least}..={most}: {drawn:?}"
                );
            }
        }
    }

    #[test]
    fn likelihoods_are_those_of_the_distributions() {
        const DRAWN: u32 = 200_000;
        let mut random = Random::seeded(11);
        let mut share = |draw: &mut dyn FnMut(&mut Random) -> i64| {
            let hits = (0..DRAWN).filter(|_| draw(&mut random) == 1).count();
            hits as f64 / f64::from(DRAWN)
        };
        // Of 10 numbers: the documented densities of pgbench.
        let exponential = (1.0 - (-0.5f64).exp()) / (1.0 - (-5f64).exp());
        assert!((share(&mut |random| random.exponential(1, 10, 5.0)) - exponential).abs() < 0.01);
        let zipfian = 1.0 / (1..=10).map(|k| f64::from(k).powf(-1.5)).sum::<f64>();
        assert!((share(&mut |random| random.zipfian(1, 10, 1.5)) - zipfian).abs() < 0.01);
        assert!((share(&mut |random| random.uniform(1, 10)) - 0.1).abs() < 0.01);
        // The middle one of 3 spans the middle third of 5 deviations: erf(5 / 3 / sqrt 2).
        assert!((share(&mut |random| random.gaussian(0, 2, 2.5)) - 0.605).abs() < 0.02);
    }
}
