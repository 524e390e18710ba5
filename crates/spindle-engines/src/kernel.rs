//! The embedded database as a database under test: opens its files on an access path, loads a workload's tables, and
//! gives the workload its sessions. What others wait for here is boxed: crates above would compile the whole database
//! again for each future of it that they poll.

mod counters;
mod files;
mod on_devices;
mod session;
mod under_test;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use spindle_io::real::Delay;
use spindle_io::real::{AccessPath, Caching, DelayedDevice, MemoryDevice, Queue, RingConfig};
use spindle_io::{BlockDevice, Env};
pub use spindle_kernel::{
    BLOCK_BYTES_DEFAULT, BUFFER_CACHE_BYTES_DEFAULT, Commit, InstanceSettings, KernelSettings,
    SampledWaits, Shutdown, Storage, TornBlocks, WriteSync, double_write_bytes,
};
use spindle_kernel::{
    IndexKey, Instance, KernelError, KeyPart, RecoveryReport, RowsOf, StatisticsSnapshot,
    create_database,
};
use spindle_layout::{DatabaseFiles, DatabaseShape, OpenedFile, Opening, Place};
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{IndexSpec, LoadedTable, Workload};

use crate::EngineError;
use crate::engine::{EngineFuture, Written};
pub use files::files_of;
use files::row_shape;
pub(crate) use on_devices::datafiles;
pub use on_devices::{OpenStorage, create_and_load_on};
pub use session::KernelSession;
pub use under_test::KernelUnderTest;

/// Slots of the transaction table beyond the clients'.
const SPARE_TRANSACTIONS: usize = 8;

/// How blocks travel between the database and its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoSettings {
    /// How they are read and written.
    pub path: AccessPath,
    /// Ask for fixed buffers where the method has them.
    pub fixed_buffers: bool,
    /// How much longer each I/O takes than on the device itself.
    pub delay: Delay,
}

impl IoSettings {
    /// An access path with nothing else asked for.
    pub fn of(path: AccessPath) -> IoSettings {
        IoSettings {
            path,
            fixed_buffers: false,
            delay: Delay::default(),
        }
    }
}

/// What an access path needs apart from files, and says afterwards.
struct AccessPathParts {
    io: IoSettings,
    queue: Queue,
}

impl AccessPathParts {
    fn new(io: IoSettings) -> Result<AccessPathParts, EngineError> {
        let queue = io
            .path
            .open()
            .map_err(|error| EngineError::failed("starting I/O slaves", error))?;
        Ok(AccessPathParts { io, queue })
    }

    async fn open(
        &self,
        place: &Place,
        files: &mut OpenFiles,
    ) -> Result<Arc<dyn BlockDevice>, EngineError> {
        let caching = self.io.path.caching;
        let block_bytes = Some(files.block_bytes);
        let opening = &mut files.opening;
        let file = opening.open(place, caching, self.queue.clone(), block_bytes);
        let file = file.await?;
        let device = match file.is_in_group() {
            // Its disks are delayed.
            true => Arc::clone(&file.device),
            false => self.delayed(Arc::clone(&file.device)),
        };
        files.list.push(OpenFile {
            place: place.clone(),
            file,
            device: Arc::clone(&device),
        });
        Ok(device)
    }

    fn delayed(&self, device: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
        let delay = self.io.delay;
        if delay.is_none() {
            return device;
        }
        Arc::new(DelayedDevice::new(device, delay, &self.queue))
    }
}

struct OpenFile {
    place: Place,
    /// Counts what reaches the system.
    file: OpenedFile,
    /// What the database uses: the file, delayed or not.
    device: Arc<dyn BlockDevice>,
}

struct OpenFiles {
    block_bytes: u64,
    opening: Opening,
    list: Vec<OpenFile>,
}

/// Sessions that check a database together past the page cache: enough to keep a device and two processors at work. One
/// reads through the page cache: the system reads ahead for each, megabytes that cannot be given back, and a memory
/// budget may hold no more.
const DIRECT_CHECKERS: u64 = 4;

/// The embedded database, running.
pub struct KernelEngine {
    instance: Instance,
    tables: Vec<Arc<spindle_kernel::Table>>,
    files: OpenFiles,
    redo_files: usize,
    rings: Vec<Arc<RingConfig>>,
    settings: KernelSettings,
    /// Sessions that check the database together.
    checkers: u64,
}

/// Opens the files of a database: log files on one access path, everything else on another.
async fn open(
    places: &DatabaseFiles,
    data: IoSettings,
    redo: IoSettings,
    block_bytes: usize,
) -> Result<Opened, EngineError> {
    let mut files = OpenFiles {
        block_bytes: block_bytes as u64,
        opening: Opening::with_disk_delay(data.delay),
        list: Vec::new(),
    };
    let (data_means, redo_means) = (AccessPathParts::new(data)?, AccessPathParts::new(redo)?);
    let mut redo_devices = Vec::new();
    for place in &places.redo {
        redo_devices.push(redo_means.open(place, &mut files).await?);
    }
    let control = data_means.open(&places.control, &mut files).await?;
    let undo = data_means.open(&places.undo, &mut files).await?;
    let mut data = Vec::new();
    for place in &places.data {
        data.push(data_means.open(place, &mut files).await?);
    }
    let double_write = match &places.double_write {
        Some(place) => Some(data_means.open(place, &mut files).await?),
        None => None,
    };
    let mut temp = Vec::new();
    for place in &places.temp {
        temp.push(data_means.open(place, &mut files).await?);
    }
    let storage = Storage {
        control,
        redo: redo_devices,
        undo,
        data,
        double_write,
        temp,
    };
    let rings = [&data_means, &redo_means]
        .into_iter()
        .filter(|means| means.io.fixed_buffers)
        .filter_map(|means| means.queue.ring().cloned())
        .collect();
    Ok(Opened {
        storage,
        files,
        rings,
    })
}

struct Opened {
    storage: Storage,
    files: OpenFiles,
    rings: Vec<Arc<RingConfig>>,
}

/// What a new database is loaded with.
#[derive(Clone, Copy)]
pub struct InitialLoad<'a> {
    /// Its tables and rows.
    pub workload: &'a dyn Workload,
    /// The number by which the database's files know each other.
    pub database: u64,
    /// The most clients that will work on it.
    pub clients: usize,
    /// Ends the load early, with an error, when it is set.
    pub interrupted: &'a AtomicBool,
}

/// Makes the database in files that exist, loads the workload's tables and shuts it down: the state every trial starts
/// from.
pub fn create_and_load<'a>(
    env: &'a Arc<dyn Env>,
    places: &'a DatabaseFiles,
    path: IoSettings,
    settings: &'a KernelSettings,
    load: InitialLoad<'a>,
) -> EngineFuture<'a, Result<(), EngineError>> {
    Box::pin(async move {
        let opened = open(places, path, path, settings.block_bytes).await?;
        create_and_load_on(env, &opened.storage, settings, load).await
    })
}

/// Makes an empty database on its devices.
pub(crate) async fn create(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &KernelSettings,
    load: InitialLoad<'_>,
) -> Result<(), EngineError> {
    let transactions = load.clients + SPARE_TRANSACTIONS;
    Ok(create_database(env, storage, settings, load.database, transactions).await?)
}

/// Starts an empty database, loads the workload's tables and makes their indexes.
pub(crate) async fn load(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &KernelSettings,
    load: InitialLoad<'_>,
) -> Result<Instance, EngineError> {
    let instance = Instance::startup(env, storage, settings).await?;
    for (number, spec) in load.workload.tables().iter().enumerate() {
        let (row_bytes, rows) = row_shape(spec, settings.block_bytes);
        let fill = load.workload.loader(number, 0);
        let is_interrupted = || load.interrupted.load(Ordering::Relaxed);
        let columns = load.workload.columns(number);
        let of = columns.map_or(RowsOf::Bytes(row_bytes), RowsOf::Columns);
        let table = instance
            .create_table_unless(spec.name, of, rows, fill, is_interrupted)
            .await?;
        for index in load.workload.indexes(number) {
            if is_interrupted() {
                return Err(KernelError::LoadInterrupted.into());
            }
            create_index(&instance, &table, index).await?;
        }
    }
    Ok(instance)
}

/// Makes an index, of columns where its table has them.
async fn create_index(
    instance: &Instance,
    table: &spindle_kernel::Table,
    index: &IndexSpec,
) -> Result<(), EngineError> {
    let Some(layout) = table.columns() else {
        let part = |&(offset, bytes): &(u16, u16)| KeyPart { offset, bytes };
        let parts: Vec<KeyPart> = index.key.iter().map(part).collect();
        let key = IndexKey::Bytes(&parts);
        instance
            .create_index(table, index.name, index.is_unique, key)
            .await?;
        return Ok(());
    };
    let columns = layout.key_columns(index.key.iter().copied());
    let columns = columns.map_err(|error| KernelError::Columns {
        table: table.name().to_owned(),
        error,
    })?;
    let names = layout.names(&columns);
    let key = IndexKey::Columns(&names);
    instance
        .create_index(table, index.name, index.is_unique, key)
        .await?;
    Ok(())
}

/// Devices of memory for the files of a database.
fn memory_storage(shape: &DatabaseShape) -> Storage {
    let device = |name: &str, bytes: u64| MemoryDevice::new(name, bytes) as Arc<dyn BlockDevice>;
    let devices =
        |name: &str, sizes: &[u64]| sizes.iter().map(|bytes| device(name, *bytes)).collect();
    Storage {
        control: device("control file in memory", shape.control_bytes),
        redo: devices("log file in memory", &shape.redo_bytes),
        undo: device("undo in memory", shape.undo_bytes),
        data: devices("datafile in memory", &shape.data_bytes),
        double_write: (shape.double_write_bytes > 0)
            .then(|| device("double write in memory", shape.double_write_bytes)),
        temp: devices("tempfile in memory", &shape.temp_bytes),
    }
}

impl KernelEngine {
    /// Starts the database on its files, recovering it if need be.
    pub fn start<'a>(
        env: &'a Arc<dyn Env>,
        places: &'a DatabaseFiles,
        data: IoSettings,
        redo: IoSettings,
        settings: &'a KernelSettings,
        workload: &'a dyn Workload,
    ) -> EngineFuture<'a, Result<KernelEngine, EngineError>> {
        Box::pin(async move {
            let Opened {
                storage,
                files,
                rings,
            } = open(places, data, redo, settings.block_bytes).await?;
            let instance = Instance::startup(env, &storage, settings).await?;
            for ring in &rings {
                instance
                    .arenas()
                    .into_iter()
                    .for_each(|arena| ring.register(arena));
            }
            Ok(KernelEngine {
                tables: tables_of(&instance, workload)?,
                instance,
                files,
                redo_files: places.redo.len(),
                rings,
                settings: settings.clone(),
                checkers: match data.path.caching {
                    Caching::Direct => DIRECT_CHECKERS,
                    Caching::Buffered => 1,
                },
            })
        })
    }

    /// Makes and starts a database on devices of memory, to find what it costs without storage. It has no files: there
    /// are no I/O counts, and nothing is listed as written. Its end is its shutdown.
    pub fn in_memory<'a>(
        env: &'a Arc<dyn Env>,
        shape: &'a DatabaseShape,
        settings: &'a KernelSettings,
        workload: &'a dyn Workload,
        clients: usize,
    ) -> EngineFuture<'a, Result<KernelEngine, EngineError>> {
        Box::pin(async move {
            let storage = memory_storage(shape);
            let of = InitialLoad {
                workload,
                database: 1,
                clients,
                interrupted: &AtomicBool::new(false),
            };
            create(env, &storage, settings, of).await?;
            let instance = load(env, &storage, settings, of).await?;
            KernelEngine::of_instance(instance, settings, workload)
        })
    }

    /// The tables as the workload wants to know them.
    pub fn tables(&self) -> Vec<LoadedTable> {
        let describe = |table: &Arc<spindle_kernel::Table>| LoadedTable {
            rows: table.loaded_rows(),
            blocks: table.loaded_blocks(),
            row_bytes: table.row_bytes(),
        };
        self.tables.iter().map(describe).collect()
    }

    /// The settings that it runs with.
    pub fn settings(&self) -> &KernelSettings {
        &self.settings
    }

    /// What makes sessions, to be handed to clients.
    pub fn connector(self: &Arc<Self>) -> impl Fn() -> KernelSession + Send + Sync + 'static {
        let engine = Arc::clone(self);
        move || KernelSession::new(engine.instance.session(), engine.tables.clone())
    }

    /// Starts clients that carry the workload's transactions out.
    pub fn start_clients(
        self: &Arc<Self>,
        env: &Arc<dyn Env>,
        workload: &Arc<dyn Workload>,
        behaviour: Behaviour,
    ) -> Running {
        driver::start(env, workload, &self.tables(), behaviour, self.connector())
    }

    /// Database counters so far.
    pub fn statistics(&self) -> StatisticsSnapshot {
        self.instance.statistics()
    }

    /// What recovery did at the start.
    pub fn recovery(&self) -> RecoveryReport {
        self.instance.recovery()
    }

    /// Flushes every datafile: what `write_sync = "checkpoint"` leaves for later.
    pub fn flush(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async {
            for file in &self.files.list {
                let flushed = file.device.submit(spindle_io::Request::flush()).await;
                flushed.result.map_err(KernelError::from)?;
            }
            Ok(())
        })
    }

    /// Stops the database. Returns, for each file, the numbers of the blocks written since the start.
    pub fn stop(self, how: Shutdown) -> EngineFuture<'static, Result<Written, EngineError>> {
        Box::pin(async move {
            self.instance.shutdown(how).await?;
            let OpenFiles { list, opening, .. } = self.files;
            let written = |open: &OpenFile| {
                let blocks = open.file.written.iter().flat_map(|of| of.written());
                (open.place.clone(), blocks.collect())
            };
            let written = list.iter().map(written).collect();
            drop(list);
            // What a dismount leaves undone, because something still holds a file, the next mount does.
            let _ = opening.close().await;
            Ok(written)
        })
    }
}

/// The tables of a workload, in its order.
fn tables_of(
    instance: &Instance,
    workload: &dyn Workload,
) -> Result<Vec<Arc<spindle_kernel::Table>>, EngineError> {
    let specs = workload.tables().into_iter();
    let tables: Result<Vec<_>, _> = specs.map(|spec| instance.table(spec.name)).collect();
    Ok(tables?)
}
