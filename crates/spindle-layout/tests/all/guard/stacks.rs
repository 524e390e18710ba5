//! Stacks of devices drawn by bytes from seeds, before the guard: what the fuzz target does. The same seeds in every
//! run; `SPINDLE_FUZZ_CASES` asks for more of them.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use super::drawn_stacks;

/// No stack takes more choices.
const CHOICES: usize = 64;

#[test]
fn the_guard_agrees_with_an_oracle_about_drawn_stacks() {
    let cases = std::env::var("SPINDLE_FUZZ_CASES").map_or(150, |text| text.parse().unwrap());
    let (mut free, mut used) = (0, 0);
    for seed in 0..cases {
        let mut choices = [0; CHOICES];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut choices);
        let (more_free, more_used) = drawn_stacks::run(&choices);
        free += more_free;
        used += more_used;
    }
    assert!(
        free > cases / 10 && used > cases / 10,
        "{free} free, {used} used"
    );
}
