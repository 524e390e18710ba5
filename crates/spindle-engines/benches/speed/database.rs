//! Databases for the benches, on files as trials have them, and clients that work on them for a while.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use spindle_engines::engine::Counters;
use spindle_engines::engine::EngineCounts;
use spindle_engines::kernel::{
    Delay, InitialLoad, IoSettings, KernelEngine, KernelSettings, create_and_load, files_of,
};
use spindle_io::Env;
use spindle_io::env::seeded_rng;
use spindle_io::real::FileError;
use spindle_io::real::create::create_plain;
use spindle_io::real::facts::{self, ProcessorTime};
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_kernel::StatisticsSnapshot;
use spindle_layout::DatabaseFiles;
use spindle_workload::driver::{self, Behaviour};
use spindle_workload::{Acknowledged, Workload};

use rand_xoshiro::rand_core::RngCore;

use crate::Pace;

pub const BLOCK_BYTES: usize = 8192;
pub const DIRECT: IoSettings = IoSettings {
    path: AccessPath {
        caching: Caching::Direct,
        method: Method::Sync,
        slaves: 0,
    },
    fixed_buffers: false,
    delay: Delay {
        read_us: 0,
        write_us: 0,
        flush_us: 0,
    },
};

/// A database on files.
pub struct Database {
    pub files: DatabaseFiles,
    pub settings: KernelSettings,
    pub workload: Arc<dyn Workload>,
}

impl Database {
    /// Makes the files, all of them written, and loads the workload's tables.
    pub fn create(
        directory: &Path,
        workload: Arc<dyn Workload>,
        clients: usize,
        cache_bytes: u64,
        log_file_bytes: u64,
    ) -> Database {
        let settings = KernelSettings {
            block_bytes: BLOCK_BYTES,
            buffer_cache_bytes: cache_bytes,
            log_buffer_bytes: 1 << 20,
            ..KernelSettings::default()
        };
        let shape = files_of(&*workload, clients, BLOCK_BYTES, 1, 3, log_file_bytes);
        let files = DatabaseFiles::in_directory(&shape, directory);
        written(files.control.path(), shape.control_bytes);
        written(files.undo.path(), shape.undo_bytes);
        written(files.data[0].path(), shape.data_bytes[0]);
        for (place, bytes) in files.redo.iter().zip(&shape.redo_bytes) {
            written(place.path(), *bytes);
        }
        let env: Arc<dyn Env> = RealEnv::new(1);
        let never = std::sync::atomic::AtomicBool::new(false);
        let loaded = create_and_load(
            &env,
            &files,
            DIRECT,
            &settings,
            InitialLoad {
                workload: &*workload,
                database: 1,
                clients,
                interrupted: &never,
            },
        );
        block_on(loaded).expect("the database can be loaded");
        Database {
            files,
            settings,
            workload,
        }
    }

    pub fn start(&self, env: &Arc<dyn Env>, path: IoSettings) -> Arc<KernelEngine> {
        self.start_as(env, path, path)
    }

    /// The same with another path for redo.
    pub fn start_as(
        &self,
        env: &Arc<dyn Env>,
        data: IoSettings,
        redo: IoSettings,
    ) -> Arc<KernelEngine> {
        let workload = &*self.workload;
        let engine = KernelEngine::start(env, &self.files, data, redo, &self.settings, workload);
        Arc::new(block_on(engine).expect("the database starts"))
    }

    pub fn data(&self) -> &Path {
        self.files.data[0].path()
    }
}

/// A file of random bytes.
pub fn written(path: &Path, bytes: u64) {
    let mut rng = seeded_rng(2, bytes);
    let filled = create_plain(path, bytes, |_, piece| {
        rng.fill_bytes(piece);
        Ok::<(), FileError>(())
    });
    filled.expect("the file can be made");
}

/// Reads every row, so that a cache large enough holds them all.
pub fn read_everything(engine: &Arc<KernelEngine>, workload: &dyn Workload, clients: usize) {
    let mut session = engine.connector()();
    let check = driver::check(
        &mut session,
        workload,
        vec![Acknowledged::default(); clients],
    );
    block_on(check).expect("nothing is lost");
}

/// What clients did in the measured time.
#[derive(Clone, Copy)]
pub struct Done {
    pub seconds: f64,
    pub transactions: f64,
    pub counts: EngineCounts,
    pub statistics: StatisticsSnapshot,
    /// Processor time of the whole process, microseconds.
    pub cpu_us: f64,
    /// How often its threads went to sleep, and so were woken.
    pub sleeps: f64,
}

/// Lets clients work.
pub fn work(
    env: &Arc<dyn Env>,
    engine: &Arc<KernelEngine>,
    workload: &Arc<dyn Workload>,
    clients: usize,
    pace: Pace,
) -> Done {
    let behaviour = Behaviour {
        clients,
        ..Behaviour::default()
    };
    let tables = engine.tables();
    let mut running = driver::start(env, workload, &tables, behaviour, engine.connector());
    std::thread::sleep(pace.warm_up);
    let moment = || {
        let counts = engine.counts().expect("the database counts");
        let statistics = engine.statistics();
        (
            Instant::now(),
            running.committed(),
            counts,
            statistics,
            ProcessorTime::now(),
            facts::sleeps(),
        )
    };
    let began = moment();
    std::thread::sleep(pace.measure);
    let ended = moment();
    block_on(running.stop()).expect("no client fails");
    Done {
        seconds: (ended.0 - began.0).as_secs_f64(),
        transactions: (ended.1 - began.1) as f64,
        counts: EngineCounts {
            data: ended.2.data - began.2.data,
            redo: ended.2.redo - began.2.redo,
            ..EngineCounts::default()
        },
        statistics: ended.3 - began.3,
        cpu_us: (ended.4 - began.4).total().as_secs_f64() * 1e6,
        sleeps: (ended.5 - began.5) as f64,
    }
}
