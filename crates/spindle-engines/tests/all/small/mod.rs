//! A small database of the embedded engine on real files, and its workload.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::{
    InitialLoad, InstanceSettings, IoSettings, KernelEngine, KernelSettings, WriteSync,
    create_and_load, files_of,
};
use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method};
use spindle_layout::{DatabaseFiles, DatabaseShape, Place};
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

pub const CLIENTS: usize = 4;

pub fn workload() -> Arc<dyn Workload> {
    Arc::new(OltpMix {
        data_bytes: 4 << 20,
        clients: CLIENTS as u64,
        settings: OltpMixSettings {
            read_percent: 20,
            row_operations: 4,
        },
    })
}

pub fn settings(write_sync: WriteSync) -> KernelSettings {
    KernelSettings {
        block_bytes: 4096,
        buffer_cache_bytes: 1 << 20,
        log_buffer_bytes: 64 << 10,
        instance: InstanceSettings {
            checkpoint_interval_ns: 200_000_000,
            write_sync,
            ..InstanceSettings::default()
        },
        ..KernelSettings::default()
    }
}

pub fn path(caching: Caching, method: Method) -> IoSettings {
    IoSettings::of(AccessPath {
        slaves: if method.has_slaves() { 2 } else { 0 },
        ..AccessPath::new(caching, method)
    })
}

fn shape() -> DatabaseShape {
    let block_bytes = settings(WriteSync::Dsync).block_bytes;
    files_of(&*workload(), CLIENTS, block_bytes, 2, 3, 1 << 20)
}

pub fn files(directory: &Path) -> DatabaseFiles {
    DatabaseFiles::in_directory(&shape(), directory)
}

/// Makes the files and loads the database.
pub async fn load(env: &Arc<dyn Env>, directory: &Path) -> DatabaseFiles {
    let (workload, settings, shape) = (workload(), settings(WriteSync::Dsync), shape());
    let files = create(&shape, directory);
    let plain = path(Caching::Buffered, Method::Sync);
    let never = std::sync::atomic::AtomicBool::new(false);
    create_and_load(
        env,
        &files,
        plain,
        &settings,
        InitialLoad {
            workload: &*workload,
            database: 7,
            clients: CLIENTS,
            interrupted: &never,
        },
    )
    .await
    .unwrap();
    files
}

/// Makes the files of a database, all of them written.
pub fn create(shape: &DatabaseShape, directory: &Path) -> DatabaseFiles {
    let files = DatabaseFiles::in_directory(shape, directory);
    let create = |place: &Place, bytes: u64| {
        std::fs::write(place.path(), vec![0x5A; bytes as usize]).unwrap();
    };
    create(&files.control, shape.control_bytes);
    create(&files.undo, shape.undo_bytes);
    let redo = files.redo.iter().zip(&shape.redo_bytes);
    redo.for_each(|(place, bytes)| create(place, *bytes));
    let data = files.data.iter().zip(&shape.data_bytes);
    data.for_each(|(place, bytes)| create(place, *bytes));
    files
}

pub async fn start(
    env: &Arc<dyn Env>,
    files: &DatabaseFiles,
    data: IoSettings,
    write_sync: WriteSync,
) -> Arc<KernelEngine> {
    let (settings, workload) = (settings(write_sync), workload());
    let redo = path(Caching::Buffered, Method::Sync);
    let engine = KernelEngine::start(env, files, data, redo, &settings, &*workload);
    Arc::new(engine.await.unwrap())
}
