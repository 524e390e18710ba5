//! What a row costs as the table grows, with a cache that soon holds a small part of it. The embedded database beside
//! itself with a tenth of the rows: a row more costs what a level more of its trees costs, and memory stays what it is.

use std::path::Path;

use super::embedded::{self, Loaded};
use crate::figures::{Figure, Figures, Goal};
use crate::{Pace, QUICK};

const CACHE_BYTES: u64 = 64 << 20;
const MIB: f64 = (1 << 20) as f64;
/// Of an index of two numbers about so many entries lie in a leaf, and so many leaves below a branch.
const ENTRIES_PER_NODE: f64 = 200.0;
/// What the database may take beside its cache, bytes.
const OVERHEAD_BYTES_MAX: f64 = 64.0 * MIB;
/// Load by load, a rate differs so much from the next that nothing can be said of less.
const NOISE: f64 = 0.9;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let is_quick = pace.pairs <= QUICK.pairs;
    let sizes: &[u64] = if is_quick {
        &[2_000, 20_000]
    } else {
        &[100_000, 1_000_000, 10_000_000]
    };
    grow(sizes, directory, figures);
}

/// Up to a hundred million rows: half an hour and 50 GB of disk.
pub fn longer(_: Pace, directory: &Path, figures: &mut Figures) {
    grow(&[10_000_000, 100_000_000], directory, figures);
}

fn grow(sizes: &[u64], directory: &Path, figures: &mut Figures) {
    let mut before: Option<(u64, f64)> = None;
    for rows in sizes.iter().copied() {
        let Loaded {
            took, memory_bytes, ..
        } = embedded::load(directory, rows, CACHE_BYTES);
        let rate = rows as f64 / took.as_secs_f64();
        let what = format!("junk, {rows} rows, rows/s");
        figures.add(match before {
            None => Figure::alone(what, std::iter::once(rate), None),
            Some((fewer, of_fewer)) => {
                let goal = NOISE * levels(fewer) / levels(rows);
                let peer = format!("itself, {fewer} rows");
                Figure::of_pairs(what, &peer, &[(rate, of_fewer)], Goal::AtLeast(goal))
            }
        });
        let beyond = memory_bytes - CACHE_BYTES as f64;
        figures.add(Figure::alone(
            format!(
                "memory beside {} MiB of cache, MiB",
                CACHE_BYTES as f64 / MIB
            ),
            std::iter::once(beyond / MIB),
            Some(Goal::AtMost(OVERHEAD_BYTES_MAX / MIB)),
        ));
        before = Some((rows, rate));
    }
}

/// Levels of each index.
fn levels(rows: u64) -> f64 {
    (rows as f64).log(ENTRIES_PER_NODE).ceil()
}
