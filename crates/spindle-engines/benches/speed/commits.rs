//! Group commit, and what one commit costs beside the least that could be done: overwriting as many bytes of a file
//! that was written before, and flushing it.

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::kernel::{KernelEngine, Shutdown};
use spindle_io::real::{RealEnv, block_on};
use spindle_io::{Arena, Env};
use spindle_workload::{ClientSession, Edit, OltpMix, OltpMixSettings, RowOperation};

use crate::Pace;
use crate::database::{DIRECT, Database, read_everything, work, written};
use crate::figures::{Figure, Figures, Goal};

const CLIENTS: [usize; 4] = [1, 8, 64, 256];
const LOG_BYTES: u64 = 64 << 20;
/// Rows that the single client updates in turn: few blocks, so that their images are soon in the redo and not measured.
const ROWS: u64 = 1000;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let clients = CLIENTS[CLIENTS.len() - 1];
    let workload = OltpMix {
        data_bytes: 32 << 20,
        clients: clients as u64,
        settings: OltpMixSettings {
            read_percent: 0,
            row_operations: 1,
        },
    };
    let database = Database::create(directory, Arc::new(workload), clients, 64 << 20, LOG_BYTES);
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = database.start(&env, DIRECT);
    read_everything(&engine, &*database.workload, clients);
    one(pace, directory, &engine, figures);
    let mut before = 0.0;
    for clients in CLIENTS {
        let done = work(&env, &engine, &database.workload, clients, pace);
        let grouped = done.statistics.commits as f64 / done.statistics.redo_writes.max(1) as f64;
        let what = format!("commits per log write, clients: {clients}");
        // Each more than with fewer clients.
        let goal = (before > 0.0).then_some(Goal::AtLeast(before));
        figures.add(Figure::alone(what, std::iter::once(grouped), goal));
        before = (grouped * 100.0).ceil() / 100.0;
    }
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).expect("the database stops");
}

fn one(pace: Pace, directory: &Path, engine: &Arc<KernelEngine>, figures: &mut Figures) {
    let beside = directory.join("beside");
    written(&beside, LOG_BYTES);
    let file = File::options()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&beside)
        .expect("direct I/O works here");
    let mut pairs = Vec::new();
    let mut bytes = 512;
    for _ in 0..pace.pairs {
        let before = engine.statistics();
        let ours_us = commit(engine, pace.measure / 2);
        let done = engine.statistics() - before;
        let write_bytes = (done.redo_bytes + done.redo_wastage_bytes) / done.redo_writes.max(1);
        bytes = write_bytes.next_multiple_of(512) as usize;
        pairs.push((ours_us, overwrite(&file, bytes, pace.measure / 2)));
    }
    let name = format!("overwrite {bytes} B, fdatasync");
    let what = "us per row updated and committed, 1 client".to_owned();
    figures.add(Figure::of_pairs(what, &name, &pairs, Goal::AtMost(1.6)));
}

/// Mean time of a transaction of one small update, microseconds.
fn commit(engine: &Arc<KernelEngine>, measure: Duration) -> f64 {
    let mut session = engine.connector()();
    mean_us(measure, |count| {
        let operation = RowOperation::Update {
            table: 0,
            row: count % ROWS,
            edits: vec![Edit::Put {
                offset: 64,
                bytes: count.to_le_bytes().to_vec(),
            }],
        };
        block_on(async {
            session.execute(&operation).await.expect("a row is updated");
            session.commit().await.expect("and committed");
        });
    })
}

/// Mean time of an overwrite and its flush, from front to back of the file, microseconds.
fn overwrite(file: &File, bytes: usize, measure: Duration) -> f64 {
    let arena = Arena::new(bytes, 1).expect("memory for a write");
    let frame = arena.allocate().expect("the arena has a frame");
    let buffer = frame.try_write_hold().expect("the frame is ours");
    mean_us(measure, |count| {
        let offset = count * bytes as u64 % (LOG_BYTES - bytes as u64);
        file.write_all_at(&buffer, offset / 512 * 512)
            .expect("a write");
        file.sync_data().expect("a flush");
    })
}

fn mean_us(measure: Duration, mut step: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < measure {
        step(count);
        count += 1;
    }
    began.elapsed().as_secs_f64() * 1e6 / count as f64
}
