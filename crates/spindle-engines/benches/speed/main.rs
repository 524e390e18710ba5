//! Is the embedded database fast enough not to measure itself? Each figure stands beside its peer, measured in the same
//! run: ours and the peer in turn, several pairs, medians. `cargo bench -p spindle-engines --bench speed [-- NAME ...]`
//! runs all or the named of: reads, updates, cache, accounting, invariants, hits, crowd, commits, disk_group, volume,
//! restore, junk, junk_grown, postgres, scripts, tpcc, tpcc_embedded, tpch, plans; and `junk_long` when it is named.
//! `--check` ends with 1 when a goal is missed, `--quick` takes moments and proves only that the benches work. Takes
//! 8 GB in the target directory while it runs, and leaves the results in `target/bench/`.
#![allow(clippy::disallowed_methods)] // It lives in the real world.

mod cache_hits;
mod commits;
mod crowd;
mod database;
mod disk_group;
mod figures;
mod fio;
mod junk;
mod machine;
mod memory;
mod postgres;
mod private_server;
mod random_io;
mod reads;
mod restore;
mod updates;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use figures::Figures;

/// How long and how often.
#[derive(Clone, Copy)]
struct Pace {
    warm_up: Duration,
    measure: Duration,
    pairs: usize,
}

const FULL: Pace = Pace {
    warm_up: Duration::from_millis(300),
    measure: Duration::from_millis(2500),
    pairs: 5,
};
const QUICK: Pace = Pace {
    warm_up: Duration::from_millis(50),
    measure: Duration::from_millis(200),
    pairs: 2,
};

type Bench = fn(Pace, &Path, &mut Figures);

const BENCHES: [(&str, Bench); 19] = [
    ("reads", reads::run),
    ("updates", updates::run),
    ("cache", memory::cache),
    ("accounting", memory::accounting),
    ("invariants", memory::invariants),
    ("hits", cache_hits::run),
    ("crowd", crowd::run),
    ("commits", commits::run),
    ("disk_group", disk_group::run),
    ("volume", disk_group::beside_volume),
    ("restore", restore::run),
    ("junk", junk::run),
    ("junk_grown", junk::as_it_grows),
    ("postgres", postgres::beside_pgbench),
    ("scripts", postgres::scripts_beside_pgbench),
    ("tpcc", postgres::beside_tpcc),
    ("tpcc_embedded", postgres::tpcc_beside_procedures),
    ("tpch", postgres::beside_psql),
    ("plans", postgres::plans_beside_sql),
];

/// Those that run only when they are named: `make bench-long`.
const LONG: [(&str, Bench); 1] = [("junk_long", junk::as_it_grows_longer)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let is_name = |word: &str| !word.starts_with('-');
    let all = !arguments.iter().any(|argument| is_name(argument));
    let pace = if has("--quick") { QUICK } else { FULL };
    if has(disk_group::IN_VIRTUAL_MACHINE) {
        disk_group::in_virtual_machine(pace);
        return ExitCode::SUCCESS;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let mut figures = Figures::default();
    let usual = BENCHES.into_iter().filter(|(name, _)| all || has(name));
    let long = LONG.into_iter().filter(|(name, _)| has(name));
    for (name, bench) in usual.chain(long) {
        eprintln!("{name} ...");
        let directory = place.path().join(name);
        std::fs::create_dir(&directory).expect("a directory for the bench");
        bench(pace, &directory, &mut figures);
        std::fs::remove_dir_all(&directory).expect("the bench's directory goes");
    }
    print!("{}", figures.table());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../bench");
    println!("{}", figures.save(&directory).display());
    if has("--check") && !figures.all_met() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
