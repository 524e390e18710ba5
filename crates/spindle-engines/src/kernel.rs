//! The embedded database as a database under test: opens its files on an access path, loads a workload's tables, and
//! gives the workload its sessions.

mod counters;
mod on_devices;
mod under_test;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use spindle_io::real::Delay;
use spindle_io::real::{AccessPath, Caching, DelayedDevice, MemoryDevice, Queue, RingConfig};
use spindle_io::{BlockDevice, Env};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, KernelError, RecoveryReport, StatisticsSnapshot, create_database,
    row_bytes_max, table_blocks,
};
pub use spindle_kernel::{
    Commit, InstanceSettings, SampledWaits, Settings, Shutdown, Storage, TornBlocks, WriteSync,
    double_write_bytes,
};
use spindle_layout::{DatabaseFiles, OpenedFile, Opening, Place, Shape};
use spindle_workload::{
    Edit, Operation, RowLength, Session, SessionError, Share, Table, TableSize, TableSpec, Workload,
};

use crate::EngineError;
pub(crate) use on_devices::datafiles;
pub use on_devices::{OpenStorage, create_and_load_on};
pub use under_test::KernelUnderTest;

/// Undo at least, bytes: small enough to stay out of the way.
const UNDO_BYTES_MIN: u64 = 16 << 20;
/// Undo blocks for each client: one it writes to, and as many again that wait to be used anew.
const UNDO_BLOCKS_PER_CLIENT: u64 = 8;
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

/// The files, but for double write areas, that a workload's database takes for `clients` clients, with `datafiles`
/// datafiles and `log_files` log files of `log_file_bytes`.
pub fn files_of(
    workload: &dyn Workload,
    clients: usize,
    block_bytes: usize,
    datafiles: usize,
    log_files: usize,
    log_file_bytes: u64,
) -> Shape {
    let blocks: u64 = workload
        .tables()
        .iter()
        .map(|spec| {
            let (row_bytes, rows) = row_shape(spec, block_bytes);
            table_blocks(block_bytes, row_bytes, rows)
        })
        .sum();
    // Extents are dealt out file by file: one may get an extent of every table more than another. Block 0 is the
    // header.
    let extent_blocks = table_blocks(block_bytes, 1, 1);
    let extents_per_file =
        (blocks / extent_blocks).div_ceil(datafiles as u64) + workload.tables().len() as u64;
    let data_bytes = (extents_per_file * extent_blocks + 1) * block_bytes as u64;
    Shape {
        block_bytes: block_bytes as u64,
        control_bytes: CONTROL_FILE_BYTES,
        redo_bytes: vec![log_file_bytes / block_bytes as u64 * block_bytes as u64; log_files],
        undo_bytes: UNDO_BYTES_MIN
            .max(clients as u64 * UNDO_BLOCKS_PER_CLIENT * block_bytes as u64),
        data_bytes: vec![data_bytes; datafiles],
        double_write_bytes: 0,
    }
}

/// Row length and number of rows of a table.
fn row_shape(spec: &TableSpec, block_bytes: usize) -> (usize, u64) {
    let row_bytes = match spec.row {
        RowLength::Bytes(bytes) => bytes,
        RowLength::WholeBlock => row_bytes_max(block_bytes),
    };
    let rows = match spec.size {
        TableSize::Rows(rows) => rows,
        TableSize::Bytes(bytes) => {
            let per_block =
                spindle_kernel::block::heap::slots_per_block(block_bytes, row_bytes) as u64;
            (bytes / block_bytes as u64).max(1) * per_block
        }
    };
    (row_bytes, rows)
}

/// What an access path needs besides files, and says afterwards.
struct Means {
    io: IoSettings,
    queue: Queue,
}

impl Means {
    fn new(io: IoSettings) -> Result<Means, EngineError> {
        let queue = io
            .path
            .open()
            .map_err(|error| EngineError::failed("starting I/O slaves", error))?;
        Ok(Means { io, queue })
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
    settings: Settings,
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
    let (data_means, redo_means) = (Means::new(data)?, Means::new(redo)?);
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
    let storage = Storage {
        control,
        redo: redo_devices,
        undo,
        data,
        double_write,
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
pub struct Load<'a> {
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
pub async fn create_and_load(
    env: &Arc<dyn Env>,
    places: &DatabaseFiles,
    path: IoSettings,
    settings: &Settings,
    load: Load<'_>,
) -> Result<(), EngineError> {
    let opened = open(places, path, path, settings.block_bytes).await?;
    create_and_load_on(env, &opened.storage, settings, load).await
}

/// Makes the database on its devices, starts it, and loads the workload's tables.
async fn create(
    env: &Arc<dyn Env>,
    storage: &Storage,
    settings: &Settings,
    load: Load<'_>,
) -> Result<Instance, EngineError> {
    let transactions = load.clients + SPARE_TRANSACTIONS;
    create_database(env, storage, settings, load.database, transactions).await?;
    let instance = Instance::startup(env, storage, settings).await?;
    for (number, spec) in load.workload.tables().iter().enumerate() {
        let (row_bytes, rows) = row_shape(spec, settings.block_bytes);
        let fill = |row, bytes: &mut Vec<u8>| load.workload.fill(number, row, bytes);
        let is_interrupted = || load.interrupted.load(Ordering::Relaxed);
        instance
            .create_table_unless(spec.name, row_bytes, rows, fill, is_interrupted)
            .await?;
    }
    Ok(instance)
}

/// Devices of memory for the files of a database.
fn memory_storage(shape: &Shape) -> Storage {
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
    }
}

impl KernelEngine {
    /// Starts the database on its files, recovering it if need be.
    pub async fn start(
        env: &Arc<dyn Env>,
        places: &DatabaseFiles,
        data: IoSettings,
        redo: IoSettings,
        settings: &Settings,
        workload: &dyn Workload,
    ) -> Result<KernelEngine, EngineError> {
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
    }

    /// Makes and starts a database on devices of memory, to find what it costs without storage. It has no files: there
    /// are no I/O counts, and nothing is listed as written. Its end is its shutdown.
    pub async fn in_memory(
        env: &Arc<dyn Env>,
        shape: &Shape,
        settings: &Settings,
        workload: &dyn Workload,
        clients: usize,
    ) -> Result<KernelEngine, EngineError> {
        let storage = memory_storage(shape);
        let load = Load {
            workload,
            database: 1,
            clients,
            interrupted: &AtomicBool::new(false),
        };
        let instance = create(env, &storage, settings, load).await?;
        KernelEngine::of_instance(instance, settings, workload)
    }

    /// The tables as the workload wants to know them.
    pub fn tables(&self) -> Vec<Table> {
        let describe = |table: &Arc<spindle_kernel::Table>| Table {
            rows: table.loaded_rows(),
            blocks: table.loaded_blocks(),
            row_bytes: table.row_bytes(),
        };
        self.tables.iter().map(describe).collect()
    }

    /// The settings that it runs with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What makes sessions, to be handed to clients.
    pub fn connector(self: &Arc<Self>) -> impl Fn() -> KernelSession + Send + Sync + 'static {
        let engine = Arc::clone(self);
        move || KernelSession {
            session: engine.instance.session(),
            tables: engine.tables.clone(),
        }
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
    pub async fn flush(&self) -> Result<(), EngineError> {
        for file in &self.files.list {
            let flushed = file.device.submit(spindle_io::Request::flush()).await;
            flushed.result.map_err(KernelError::from)?;
        }
        Ok(())
    }

    /// Stops the database. Returns, for each file, the numbers of the blocks written since the start.
    pub async fn stop(self, how: Shutdown) -> Result<Vec<(Place, Vec<u64>)>, EngineError> {
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

/// A session of the embedded database.
pub struct KernelSession {
    session: spindle_kernel::Session,
    tables: Vec<Arc<spindle_kernel::Table>>,
}

fn session_error(error: KernelError) -> SessionError {
    match error {
        KernelError::Deadlock { .. } => SessionError::Deadlock(error.to_string()),
        KernelError::LockTimeout { .. } | KernelError::SnapshotTooOld { .. } => {
            SessionError::Retry(error.to_string())
        }
        _ => SessionError::Failed(error.to_string()),
    }
}

impl Session for KernelSession {
    async fn execute(&mut self, operation: &Operation) -> Result<(), SessionError> {
        let done = match operation {
            Operation::Read { table, row } => {
                let row_id = self.tables[*table].row_id(*row);
                let found = self
                    .session
                    .read_row(row_id, own_number)
                    .await
                    .map_err(session_error)?;
                return check_own_number(*row, found);
            }
            Operation::Update { table, row, edits } => {
                let start = edits
                    .iter()
                    .map(|edit| edit.range().start)
                    .min()
                    .unwrap_or(0);
                let end = edits.iter().map(|edit| edit.range().end).max().unwrap_or(0);
                let apply =
                    |part: &mut [u8]| edits.iter().for_each(|edit: &Edit| edit.apply(part, start));
                self.session
                    .update_row(self.tables[*table].row_id(*row), start..end, apply)
                    .await
            }
            Operation::Scan {
                table,
                first_block,
                blocks,
            } => {
                self.session
                    .scan(&self.tables[*table], *first_block, *blocks, |_, _| {})
                    .await
            }
        };
        done.map_err(session_error)
    }

    async fn commit(&mut self) -> Result<(), SessionError> {
        self.session.commit().await.map_err(session_error)
    }

    async fn rollback(&mut self) -> Result<(), SessionError> {
        self.session.rollback().await.map_err(session_error)
    }

    async fn visit(
        &mut self,
        table: usize,
        share: Share,
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), SessionError> {
        let table = Arc::clone(&self.tables[table]);
        let Range { start, end } = share.of(table.loaded_blocks());
        self.session
            .scan(&table, start, end - start, |_, bytes| visit(bytes))
            .await
            .map_err(session_error)
    }
}

/// Rows of the workloads begin with their own number.
fn own_number(row: &[u8]) -> u64 {
    u64::from_le_bytes(
        row[..8]
            .try_into()
            .expect("rows are longer than eight bytes"),
    )
}

fn check_own_number(expected: u64, found: u64) -> Result<(), SessionError> {
    if expected == found {
        Ok(())
    } else {
        Err(SessionError::Failed(format!(
            "row {expected} was read and is row {found}"
        )))
    }
}
