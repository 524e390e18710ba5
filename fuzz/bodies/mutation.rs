//! Bytes for the tests that have no fuzzer: beginnings that make sense, changed here and there. The same seed gives the
//! same bytes. `SPINDLE_FUZZ_CASES` says how many there are to be.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes that are awkward for who reads text, and for who reads numbers.
const AWKWARD: &[u8] = b"\0\x01\x7f\x80\xff\n\"'[]{}=.,-#\\ 09eEinf";

struct Chance(u64);

impl Chance {
    /// SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// One of the beginnings, changed in up to eight places.
pub fn mutated(beginnings: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut chance = Chance(seed);
    let mut bytes = beginnings[chance.below(beginnings.len())].clone();
    for _ in 0..chance.below(9) {
        let at = chance.below(bytes.len() + 1);
        let length = chance.below(17);
        let end = (at + length).min(bytes.len());
        match chance.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.insert(at, AWKWARD[chance.below(AWKWARD.len())]),
            3 => bytes[at..end]
                .iter_mut()
                .for_each(|byte| *byte = chance.next() as u8),
            4 => {
                let copied = bytes[at..end].to_vec();
                let to = chance.below(bytes.len() + 1);
                bytes.splice(to..to, copied);
            }
            _ if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            _ => {}
        }
    }
    bytes
}

/// Runs `body` on the beginnings as they are, and on `cases` changed ones, or as many as `SPINDLE_FUZZ_CASES` says.
/// When one fails, its seed is said.
pub fn each_case(beginnings: &[Vec<u8>], cases: u64, body: impl Fn(&[u8])) {
    let asked = std::env::var("SPINDLE_FUZZ_CASES").ok();
    let cases = asked.map_or(cases, |text| text.parse().expect("a number of cases"));
    let attempt = |what: &dyn Debug, bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(bytes))) {
            eprintln!("it failed on {what:?}: {}", bytes.escape_ascii());
            resume_unwind(panic);
        }
    };
    for (number, beginning) in beginnings.iter().enumerate() {
        attempt(&("beginning", number), beginning);
    }
    for seed in 0..cases {
        attempt(&("seed", seed), &mutated(beginnings, seed));
    }
}
