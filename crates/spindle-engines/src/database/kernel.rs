//! The embedded database as an [`Engine`]: made and loaded in golden files, copied block by block.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_io::Env;
use spindle_io::real::{AccessPath, Caching, Method, RealEnv, block_on};
use spindle_kernel::{KernelSettings, Shutdown, TornBlocks};
use spindle_layout::{ChangedBlocks, DatabaseFiles, Golden, Image, ImageSpec, LayoutError, Verify};
use spindle_workload::Workload;

use crate::EngineError;
use crate::engine::{
    Engine, EngineFuture, FoundServer, KeepError, PutBackBy, Restored, RunningEngine,
};
use crate::kernel::{
    self, Delay, InitialLoad, IoSettings, KernelEngine, KernelUnderTest, OpenStorage,
};
use crate::spec::KernelSpec;

/// What the golden copy is loaded by, whatever trials use.
const LOADED_BY: AccessPath = AccessPath {
    caching: Caching::Buffered,
    method: Method::Sync,
    slaves: 0,
};

/// The embedded database with a workload.
pub struct KernelDatabase {
    /// What it is told.
    pub spec: KernelSpec,
    /// The access path of its datafiles.
    pub io: AccessPath,
    /// How much longer the I/O of all files but redo takes.
    pub delay: Option<Delay>,
    /// How much longer that of redo takes.
    pub redo_delay: Option<Delay>,
    /// What it is loaded with, and what clients do.
    pub workload: Arc<dyn Workload>,
    /// The most clients there will be at once.
    pub clients: usize,
    /// The number by which its files know each other.
    pub number: u64,
}

/// An image of the embedded database.
pub struct BlockImage {
    image: Image,
    /// What was written since it was put back; `None` when that is not known.
    changed: Option<ChangedBlocks>,
}

impl BlockImage {
    /// Its files.
    pub fn files(&self) -> &DatabaseFiles {
        self.image.files()
    }

    /// It was written to; `None` when it is not known where.
    pub fn written(&mut self, changed: Option<ChangedBlocks>) {
        self.changed = changed;
    }
}

impl KernelDatabase {
    /// The settings by which it is loaded: what trials ask of their devices is not asked of the golden copy's. It is
    /// shut down in order.
    fn loading(&self) -> (IoSettings, KernelSettings) {
        let mut settings = self.spec.settings();
        settings.instance.torn_blocks = TornBlocks::Images;
        (self.spec.io(LOADED_BY, None), settings)
    }

    fn load_of<'a>(&'a self, interrupted: &'a AtomicBool) -> InitialLoad<'a> {
        InitialLoad {
            workload: &*self.workload,
            database: self.number,
            clients: self.clients,
            interrupted,
        }
    }
}

impl Engine for KernelDatabase {
    type Home = DatabaseFiles;
    type Golden = Golden;
    type Site = ImageSpec;
    type Image = BlockImage;

    fn examine(&self) -> Result<Option<FoundServer>, EngineError> {
        let redo = self.spec.redo_access_path(self.io);
        for path in [self.io, redo] {
            let available = path.method.available();
            available.map_err(|why| EngineError::unavailable(why.to_string()))?;
        }
        Ok(None)
    }

    fn create(&self, home: &DatabaseFiles) -> Result<(), EngineError> {
        let env: Arc<dyn Env> = RealEnv::new(self.number);
        let (io, settings) = self.loading();
        block_on(async {
            let open = OpenStorage::open(home, io, settings.block_bytes).await?;
            let never = AtomicBool::new(false);
            let made = kernel::create(&env, &open.storage, &settings, self.load_of(&never));
            made.await?;
            open.close().await;
            Ok(())
        })
    }

    fn load(&self, home: &DatabaseFiles, interrupted: &Arc<AtomicBool>) -> Result<(), EngineError> {
        let env: Arc<dyn Env> = RealEnv::new(self.number);
        let (io, settings) = self.loading();
        block_on(async {
            let open = OpenStorage::open(home, io, settings.block_bytes).await?;
            let load = self.load_of(interrupted);
            let loaded = kernel::load(&env, &open.storage, &settings, load).await?;
            Ok(loaded.shutdown(Shutdown::Normal).await?)
        })
    }

    fn snapshot(&self, golden: &Arc<Golden>, site: ImageSpec) -> Result<BlockImage, KeepError> {
        Ok(BlockImage {
            image: Image::provision(golden, site)?,
            changed: Some(ChangedBlocks::new()),
        })
    }

    fn restore(
        &self,
        of: &mut BlockImage,
        by: PutBackBy,
        _: &Arc<AtomicBool>,
    ) -> Result<Restored, KeepError> {
        let changed = of.changed.take();
        let restored = match by {
            PutBackBy::Volume(verify, began) => of
                .image
                .rolled_back(changed.as_ref(), verify, began)?
                .into(),
            PutBackBy::Itself(verify) => put_back(&of.image, changed.as_ref(), verify)?,
        };
        of.changed = Some(ChangedBlocks::new());
        Ok(restored)
    }

    fn start<'a>(
        &'a self,
        home: &'a DatabaseFiles,
        env: &'a Arc<dyn Env>,
    ) -> EngineFuture<'a, Result<Arc<dyn RunningEngine>, EngineError>> {
        Box::pin(async move {
            let (spec, workload) = (&self.spec, &self.workload);
            let data = spec.io(self.io, self.delay);
            let redo = spec.io(spec.redo_access_path(self.io), self.redo_delay);
            let settings = spec.settings();
            let started = KernelEngine::start(env, home, data, redo, &settings, &**workload);
            let under_test = KernelUnderTest::new(env, started.await?, Arc::clone(workload));
            Ok(Arc::new(under_test) as Arc<dyn RunningEngine>)
        })
    }
}

/// Puts an image back by its list; every block of it when the list missed one.
fn put_back(
    image: &Image,
    listed: Option<&ChangedBlocks>,
    verify: Verify,
) -> Result<Restored, LayoutError> {
    match image.restore(listed, verify) {
        Err(missed @ LayoutError::RestoreMissed { .. }) => {
            let mut restored = Restored::from(image.restore(None, verify)?);
            let warning = format!("restored a second time, block by block: {missed}");
            restored.warnings.insert(0, warning);
            Ok(restored)
        }
        report => Ok(report?.into()),
    }
}
