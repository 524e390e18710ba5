//! Random single-block reads through a buffer cache far smaller than the data, beside fio on the same file.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::Shutdown;
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::{RedoStress, Slob, SlobSettings, Workload};

use crate::database::{BLOCK_BYTES, DIRECT, Database, work};
use crate::figures::{Figure, Figures, Goal};
use crate::{Pace, fio};

const SESSIONS: [usize; 3] = [1, 8, 32];
const CACHE_BYTES: u64 = 16 << 20;

/// SLOB as its author runs it: 64 blocks a transaction.
pub fn slob(update_percent: u32, clients: usize) -> Arc<dyn Workload> {
    Arc::new(Slob {
        data_bytes: 1 << 30,
        block_bytes: BLOCK_BYTES as u64,
        clients: clients as u64,
        settings: SlobSettings {
            update_percent,
            scan_percent: 0,
            scan_blocks: 16,
            work_unit: 64,
            redo_stress: RedoStress::Lite,
            hotspot: None,
        },
    })
}

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    if !fio::is_here() {
        return figures.add(Figure::alone(
            "reads, beside fio".to_owned(),
            std::iter::empty(),
            Some(Goal::AtLeast(0.9)),
        ));
    }
    let clients = SESSIONS[SESSIONS.len() - 1];
    let database = Database::create(directory, slob(0, clients), clients, CACHE_BYTES, 16 << 20);
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, DIRECT);
    for sessions in SESSIONS {
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..pace.pairs {
            let ours = work(&env, &engine, &database.workload, sessions, pace);
            let peer = fio::reads(database.data(), sessions, pace.measure);
            let reads = ours.counts.data.reads as f64;
            rates.push((reads / ours.seconds, peer.per_second));
            costs.push((ours.cpu_us / reads, peer.cpu_us));
        }
        let name = format!("fio psync, jobs: {sessions}");
        let what = format!("physical reads/s, sessions: {sessions}");
        figures.add(Figure::of_pairs(what, &name, &rates, Goal::AtLeast(0.9)));
        let what = format!("CPU us per physical read, sessions: {sessions}");
        figures.add(Figure::of_pairs(what, &name, &costs, Goal::AtMost(1.5)));
    }
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
}
