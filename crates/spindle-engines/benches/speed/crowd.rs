//! A thousand sessions beside a hundred on one database that is bound by its writers: the crowd waits longer, and does
//! as much at nearly the same price. Nobody is woken in vain: what a transaction costs in wake-ups stands beside it.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::{IoSettings, Shutdown};
use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

use crate::Pace;
use crate::database::{Database, work};
use crate::figures::{Figure, Figures, Goal};

const MANY: usize = 1_000;
const FEW: usize = 100;
const CACHE_BYTES: u64 = 64 << 20;
const LOG_BYTES: u64 = 256 << 20;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let workload: Arc<dyn Workload> = Arc::new(OltpMix {
        data_bytes: 512 << 20,
        clients: MANY as u64,
        settings: OltpMixSettings {
            read_percent: 40,
            row_operations: 8,
        },
    });
    let database = Database::create(directory, workload, MANY, CACHE_BYTES, LOG_BYTES);
    let path = IoSettings::of(AccessPath::new(Caching::Direct, Method::Async));
    // A transaction of a thousand takes up to a second: the measured time begins when many have ended.
    let pace = Pace {
        warm_up: 2 * pace.measure,
        ..pace
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, path);
    let one = |sessions| {
        let done = work(&env, &engine, &database.workload, sessions, pace);
        [
            done.transactions / done.seconds,
            done.cpu_us / done.transactions,
            done.sleeps / done.transactions,
        ]
    };
    // Until the cache is full of changes.
    one(FEW);
    let pairs: Vec<_> = (0..pace.pairs).map(|_| (one(MANY), one(FEW))).collect();
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
    for (number, (what, goal)) in [
        ("transactions/s", Some(Goal::AtLeast(0.9))),
        ("processor us/transaction", Some(Goal::AtMost(1.3))),
        ("wake-ups/transaction", None),
    ]
    .into_iter()
    .enumerate()
    {
        let pairs: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(many, few)| (many[number], few[number]))
            .collect();
        let what = format!("{what}, {MANY} sessions");
        figures.add(Figure::of_pairs(
            what,
            &format!("{FEW} sessions"),
            &pairs,
            goal,
        ));
    }
}
