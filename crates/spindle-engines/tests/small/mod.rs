//! A small database of the embedded engine on real files, and its workload.

use std::path::Path;
use std::sync::Arc;

use spindle_engines::kernel::{
    AccessPath, IoMethod, KernelEngine, Settings, WriteSync, create_and_load, files_of,
};
use spindle_io::Env;
use spindle_io::real::create::create_plain;
use spindle_layout::DatabasePaths;
use spindle_workload::{OltpMix, Workload};

pub const CLIENTS: usize = 4;

pub fn workload() -> Arc<dyn Workload> {
    Arc::new(OltpMix {
        data_bytes: 4 << 20,
        clients: CLIENTS as u64,
        read_percent: 20,
        row_operations: 4,
    })
}

pub fn settings(write_sync: WriteSync) -> Settings {
    Settings {
        block_bytes: 4096,
        buffer_cache_bytes: 1 << 20,
        log_buffer_bytes: 64 << 10,
        checkpoint_interval_ns: 200_000_000,
        write_sync,
        ..Settings::default()
    }
}

pub fn path(direct: bool, method: IoMethod) -> AccessPath {
    AccessPath {
        direct,
        method,
        fixed_buffers: false,
    }
}

pub fn paths(directory: &Path) -> DatabasePaths {
    let numbered = |name: &str, count: usize| {
        (1..=count)
            .map(|n| directory.join(format!("{name}{n}")))
            .collect()
    };
    DatabasePaths {
        control: directory.join("control"),
        redo: numbered("redo", 3),
        undo: directory.join("undo"),
        data: numbered("data", 2),
        double_write: None,
    }
}

/// Makes the files and loads the database.
pub async fn load(env: &Arc<dyn Env>, directory: &Path) -> DatabasePaths {
    let workload = workload();
    let settings = settings(WriteSync::Dsync);
    let sizes = files_of(&*workload, CLIENTS, settings.block_bytes, 2, 3, 1 << 20);
    let paths = paths(directory);
    let create =
        |path: &Path, bytes: u64| create_plain(path, bytes, |_, piece| piece.fill(0x5A)).unwrap();
    create(&paths.control, sizes.control_bytes);
    create(&paths.undo, sizes.undo_bytes);
    paths
        .redo
        .iter()
        .zip(&sizes.redo_bytes)
        .for_each(|(path, bytes)| create(path, *bytes));
    paths
        .data
        .iter()
        .zip(&sizes.data_bytes)
        .for_each(|(path, bytes)| create(path, *bytes));
    let plain = path(false, IoMethod::Sync);
    create_and_load(env, &paths, plain, &settings, &*workload, 7, CLIENTS)
        .await
        .unwrap();
    paths
}

pub async fn start(
    env: &Arc<dyn Env>,
    paths: &DatabasePaths,
    data: AccessPath,
    write_sync: WriteSync,
) -> Arc<KernelEngine> {
    let (settings, workload) = (settings(write_sync), workload());
    let redo = path(false, IoMethod::Sync);
    let engine = KernelEngine::start(env, paths, data, redo, &settings, &*workload);
    Arc::new(engine.await.unwrap())
}
