//! The embedded database on devices that are open already, whatever they are: recorded ones, disk groups, files opened
//! by [`OpenStorage`]. Nothing is counted or listed as written for it; trials use [`KernelEngine::start`].

use std::sync::Arc;

use spindle_io::{BlockDevice, Env};
use spindle_kernel::{Instance, Shutdown, Storage};
use spindle_layout::{DatabaseFiles, Opening};
use spindle_workload::Workload;

use super::{
    InitialLoad, IoSettings, KernelEngine, KernelSettings, OpenFiles, create, load, open, tables_of,
};
use crate::EngineError;
use crate::engine::EngineFuture;

/// The files of a database, open as its devices.
pub struct OpenStorage {
    /// The devices.
    pub storage: Storage,
    opening: Opening,
}

impl OpenStorage {
    /// Opens the files of a database, all on one access path.
    pub fn open(
        places: &DatabaseFiles,
        path: IoSettings,
        block_bytes: usize,
    ) -> EngineFuture<'_, Result<OpenStorage, EngineError>> {
        Box::pin(async move {
            let opened = open(places, path, path, block_bytes).await?;
            Ok(OpenStorage {
                storage: opened.storage,
                opening: opened.files.opening,
            })
        })
    }

    /// Closes them, after the database was stopped.
    pub async fn close(self) {
        drop(self.storage);
        // What a dismount of a disk group leaves undone, the next mount does.
        let _ = self.opening.close().await;
    }
}

/// Makes the database on its devices, loads the workload's tables and shuts it down, as [`super::create_and_load`]
/// does.
pub fn create_and_load_on<'a>(
    env: &'a Arc<dyn Env>,
    storage: &'a Storage,
    settings: &'a KernelSettings,
    of: InitialLoad<'a>,
) -> EngineFuture<'a, Result<(), EngineError>> {
    Box::pin(async move {
        create(env, storage, settings, of).await?;
        let instance = load(env, storage, settings, of).await?;
        Ok(instance.shutdown(Shutdown::Normal).await?)
    })
}

impl KernelEngine {
    /// Starts the database on its devices, recovering it if need be.
    pub fn start_on<'a>(
        env: &'a Arc<dyn Env>,
        storage: &'a Storage,
        settings: &'a KernelSettings,
        workload: &'a dyn Workload,
    ) -> EngineFuture<'a, Result<KernelEngine, EngineError>> {
        Box::pin(async move {
            let instance = Instance::startup(env, storage, settings).await?;
            KernelEngine::of_instance(instance, settings, workload)
        })
    }

    /// A running instance that has no files to count or to list.
    pub(super) fn of_instance(
        instance: Instance,
        settings: &KernelSettings,
        workload: &dyn Workload,
    ) -> Result<KernelEngine, EngineError> {
        Ok(KernelEngine {
            tables: tables_of(&instance, workload)?,
            instance,
            files: OpenFiles {
                block_bytes: settings.block_bytes as u64,
                opening: Opening::new(),
                list: Vec::new(),
            },
            redo_files: 0,
            rings: Vec::new(),
            settings: settings.clone(),
            checkers: 1,
        })
    }
}

/// Datafiles of a database by the numbers that its block addresses bear: undo's is 0.
pub(crate) fn datafiles(storage: &Storage) -> impl Iterator<Item = &Arc<dyn BlockDevice>> {
    std::iter::once(&storage.undo).chain(&storage.data)
}
