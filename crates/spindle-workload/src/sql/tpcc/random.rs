//! Chance as TPC-C draws it (revision 5.11, clauses 2.1.6, 4.3.2 and 4.3.3).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;

/// The stream of chance of the constants, apart from those of rows.
const CONSTANT_STREAM: u64 = u64::MAX;
/// Syllables of last names (clause 4.3.2.3).
const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];
/// Characters of random texts: 64, so that one draw gives ten.
const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+";
/// Last names there are.
pub const LAST_NAMES: u64 = 1000;

/// A whole number from `least` to `most`, each as likely.
pub fn uniform(rng: &mut Xoshiro256PlusPlus, least: u64, most: u64) -> u64 {
    least + rng.next_u64() % (most - least + 1)
}

/// A number from 0 on, below 1, each as likely.
pub fn fraction(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether something happens that happens in `percent` of 100 cases.
pub fn happens(rng: &mut Xoshiro256PlusPlus, percent: u64) -> bool {
    uniform(rng, 1, 100) <= percent
}

/// A non-uniform number from `least` to `most`: `NURand(a, least, most)` of clause 2.1.6, with the constant `c`.
fn non_uniform(rng: &mut Xoshiro256PlusPlus, a: u64, c: u64, least: u64, most: u64) -> u64 {
    let either = uniform(rng, 0, a) | uniform(rng, least, most);
    (either + c) % (most - least + 1) + least
}

/// The constants `C` of non-uniform numbers, one for each range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    last_name: u64,
    customer: u64,
    item: u64,
}

impl Constants {
    /// Those of the load, and those of the run: the last names' lie 65 to 119 apart, but neither 96 nor 112 (clause
    /// 2.1.6.1).
    pub fn of(seed: u64) -> (Constants, Constants) {
        let mut rng = seeded_rng(seed, CONSTANT_STREAM);
        let (customer, item) = (uniform(&mut rng, 0, 1023), uniform(&mut rng, 0, 8191));
        let load = uniform(&mut rng, 0, 255 - 119);
        let apart = loop {
            let apart = uniform(&mut rng, 65, 119);
            if apart != 96 && apart != 112 {
                break apart;
            }
        };
        let with = |last_name| Constants {
            last_name,
            customer,
            item,
        };
        (with(load), with(load + apart))
    }

    /// The number of a last name, below `count`.
    pub fn last_name(&self, rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
        non_uniform(rng, 255, self.last_name, 0, count - 1)
    }

    /// A customer of a district, from 1.
    pub fn customer(&self, rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
        non_uniform(rng, 1023, self.customer, 1, count)
    }

    /// An item, from 1.
    pub fn item(&self, rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
        non_uniform(rng, 8191, self.item, 1, count)
    }
}

/// A last name: the syllables of its number's three digits.
pub fn last_name(number: u64) -> String {
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

/// A text of `least` to `most` letters and digits.
pub fn text(rng: &mut Xoshiro256PlusPlus, least: u64, most: u64) -> String {
    let length = uniform(rng, least, most) as usize;
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let mut bits = rng.next_u64();
        for _ in 0..(length - text.len()).min(10) {
            text.push(char::from(LETTERS[(bits & 63) as usize]));
            bits >>= 6;
        }
    }
    text
}

/// A text of this many digits.
pub fn digits(rng: &mut Xoshiro256PlusPlus, length: usize) -> String {
    let digit = |_| char::from(b'0' + uniform(rng, 0, 9) as u8);
    (0..length).map(digit).collect()
}

/// Data of an item or of stock: 26 to 50 characters, with `ORIGINAL` somewhere in one of ten (clause 4.3.3.1).
pub fn data(rng: &mut Xoshiro256PlusPlus) -> String {
    const ORIGINAL: &str = "ORIGINAL";
    let mut data = text(rng, 26, 50);
    if happens(rng, 10) {
        let place = uniform(rng, 0, (data.len() - ORIGINAL.len()) as u64) as usize;
        data.replace_range(place..place + ORIGINAL.len(), ORIGINAL);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_the_standards() {
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn constants_of_run_and_load_are_apart_as_they_must_be() {
        for seed in 0..2000 {
            let (load, run) = Constants::of(seed);
            let apart = run.last_name - load.last_name;
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112);
            assert!(run.last_name <= 255);
            assert_eq!((run.customer, run.item), (load.customer, load.item));
        }
    }

    #[test]
    fn non_uniform_numbers_keep_to_their_range_and_prefer_some() {
        let mut rng = seeded_rng(1, 1);
        let (_, run) = Constants::of(1);
        let mut drawn = vec![0u32; 3001];
        for _ in 0..300_000 {
            drawn[run.customer(&mut rng, 3000) as usize] += 1;
        }
        assert_eq!(drawn[0], 0);
        // With one number as likely as another each would be drawn 100 times, and hardly one 150 times.
        let often = drawn.iter().filter(|count| **count > 150).count();
        assert!((200..1500).contains(&often), "{often}");
    }

    #[test]
    fn one_in_ten_is_original() {
        let mut rng = seeded_rng(3, 1);
        let all: Vec<String> = (0..10_000).map(|_| data(&mut rng)).collect();
        assert!(all.iter().all(|data| (26..=50).contains(&data.len())));
        let original = all.iter().filter(|data| data.contains("ORIGINAL")).count();
        // Four standard errors.
        assert!((880..1120).contains(&original), "{original}");
    }
}
