//! `junk`, the bulk load of a study: 200 bytes a row, a primary key and a unique key, a commit on stable storage every
//! 100 rows, by one loader. The embedded database beside others that make the same table with the same keys on the same
//! file system, and beside the floor: appending the bytes of the rows, with a flush every 100. In each round all of
//! them load in turn, each into an empty table. The embedded database is called as a library, as SQLite and LMDB are;
//! PostgreSQL and MariaDB run a loop of their own, inside a procedure.

mod embedded;
mod grown;
mod libraries;
mod servers;

use std::path::Path;
use std::time::Duration;

use crate::figures::{Figure, Figures, Goal};
use crate::{Pace, QUICK};

pub use grown::{longer as as_it_grows_longer, run as as_it_grows};

const ROWS: u64 = 1_000_000;
const ROWS_QUICK: u64 = 10_000;
/// Rows between two commits.
const COMMIT_EVERY: u32 = 100;
/// Of each database that has one of its own; the page cache serves the others.
const CACHE_BYTES: u64 = 256 << 20;
/// Each round takes a minute or two.
const ROUNDS_MAX: usize = 3;
/// Letters of the two text columns.
const C6: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv";
const C7: &str = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcd";

/// Something that loads rows.
trait Loader {
    fn name(&self) -> &'static str;

    /// What the embedded database is to reach, in its rows a second.
    fn goal(&self) -> f64;

    /// Loads this many rows into an empty table; the time until the last commit has returned.
    fn load(&mut self, rows: u64) -> Duration;
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let is_quick = pace.pairs <= QUICK.pairs;
    let rows = if is_quick { ROWS_QUICK } else { ROWS };
    let mut peers: Vec<Box<dyn Loader>> = vec![
        Box::new(libraries::Sqlite::new(directory)),
        Box::new(libraries::Lmdb::new(directory)),
        Box::new(libraries::Floor::new(directory)),
    ];
    peers.extend(servers::found(directory, rows));
    let per_second = |took: Duration| rows as f64 / took.as_secs_f64();
    let mut ours = Vec::new();
    let mut theirs: Vec<Vec<f64>> = vec![Vec::new(); peers.len()];
    for round in 0..pace.pairs.min(ROUNDS_MAX) {
        let loaded = embedded::load(directory, rows, CACHE_BYTES);
        eprintln!("  round {round}: {:.0} rows/s", per_second(loaded.took));
        for (peer, rates) in peers.iter_mut().zip(&mut theirs) {
            rates.push(per_second(peer.load(rows)));
            eprintln!("    {}: {:.0}", peer.name(), rates[round]);
        }
        ours.push(loaded);
    }
    for (peer, rates) in peers.iter().zip(&theirs) {
        let rates = rates.iter().copied();
        let pairs: Vec<(f64, f64)> = ours
            .iter()
            .map(|of| per_second(of.took))
            .zip(rates)
            .collect();
        figures.add(Figure::of_pairs(
            format!("junk, {rows} rows, 1 loader, rows/s"),
            peer.name(),
            &pairs,
            Goal::AtLeast(peer.goal()),
        ));
    }
    let costs = ours.iter().map(|of| of.cpu_us / rows as f64);
    figures.add(Figure::alone(
        "processor us of such a row".to_owned(),
        costs,
        None,
    ));
}
