//! Clients that only read, of a database that the cache just does not hold: nothing is dirty, so nobody waits for a
//! writer, however many there are. With one client each wait once took 12 ms, and with eight they were 85 % of all
//! time.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::engine::Counters;
use spindle_engines::kernel::{
    InitialLoad, KernelEngine, KernelSettings, Shutdown, create_and_load, files_of,
};
use spindle_io::Env;
use spindle_io::real::{Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_kernel::WaitEvent;
use spindle_layout::DatabaseFiles;
use spindle_workload::driver::{self, Behaviour};
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

use crate::small;

const CLIENTS_MAX: usize = 8;
const TRANSACTIONS: u64 = 5_000;
const BUFFERS: u64 = 2_555;
/// A few blocks fewer than there is data.
const CACHE_BYTES: u64 = BUFFERS * 8192;

fn workload() -> Arc<dyn Workload> {
    Arc::new(OltpMix {
        data_bytes: 20 << 20,
        clients: CLIENTS_MAX as u64,
        settings: OltpMixSettings {
            read_percent: 100,
            row_operations: 10,
        },
    })
}

fn settings() -> KernelSettings {
    KernelSettings {
        block_bytes: 8192,
        buffer_cache_bytes: CACHE_BYTES,
        ..KernelSettings::default()
    }
}

fn load(env: &Arc<dyn Env>, directory: &Path) -> DatabaseFiles {
    let (workload, settings) = (workload(), settings());
    let block_bytes = settings.block_bytes;
    let shape = files_of(&*workload, CLIENTS_MAX, block_bytes, 1, 2, 16 << 20);
    let files = small::create(&shape, directory);
    let plain = small::path(Caching::Buffered, Method::Sync);
    let never = std::sync::atomic::AtomicBool::new(false);
    let loaded = create_and_load(
        env,
        &files,
        plain,
        &settings,
        InitialLoad {
            workload: &*workload,
            database: 7,
            clients: CLIENTS_MAX,
            interrupted: &never,
        },
    );
    block_on(loaded).unwrap();
    files
}

/// Reads of blocks, and waits for a writer, of this many clients.
fn reads_and_waits(env: &Arc<dyn Env>, files: &DatabaseFiles, clients: usize) -> Option<[u64; 2]> {
    let (workload, settings) = (workload(), settings());
    let data = small::path(Caching::Direct, Method::Async);
    let redo = small::path(Caching::Buffered, Method::Sync);
    let engine = KernelEngine::start(env, files, data, redo, &settings, &*workload);
    let engine = match block_on(engine) {
        Ok(engine) => Arc::new(engine),
        Err(error) => {
            spindle_harness::skip(format_args!("no direct I/O through a ring: {error}"));
            return None;
        }
    };
    let behaviour = Behaviour {
        clients,
        ..Behaviour::default()
    };
    let tables = engine.tables();
    let mut running = driver::start(env, &workload, &tables, behaviour, engine.connector());
    while running.committed() < TRANSACTIONS {
        assert_eq!(running.failure(), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    block_on(running.stop()).unwrap();
    let totals = engine.session_waits();
    let of = |event: WaitEvent| totals.iter().find(|total| total.event == event.name());
    let counts = [WaitEvent::DbFileSequentialRead, WaitEvent::FreeBufferWaits]
        .map(|event| of(event).map_or(0, |total| total.count));
    let engine = Arc::into_inner(engine).expect("every client has gone");
    block_on(engine.stop(Shutdown::Abort)).unwrap();
    Some(counts)
}

#[test]
fn clients_that_read_never_wait_for_a_free_buffer() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let env: Arc<dyn Env> = RealEnv::new(3);
    let files = load(&env, directory.path());
    for clients in [1, CLIENTS_MAX] {
        let Some([reads, waits]) = reads_and_waits(&env, &files, clients) else {
            return;
        };
        assert!(
            reads > BUFFERS,
            "{reads} reads: no buffer was ever used for another block"
        );
        assert_eq!(
            waits, 0,
            "{clients} clients waited for a writer, and nothing is dirty"
        );
    }
}
