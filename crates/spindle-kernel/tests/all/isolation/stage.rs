//! A small simulated database with one table, and clients upon it.

use std::future::Future;
use std::sync::Arc;

use spindle_io::env::LocalFuture;
use spindle_io::sim::{DiskImage, DiskTiming, PowerCut, SimDisk, Stop, World};
use spindle_io::{BlockDevice, Env, Join};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, InstanceSettings, KernelSettings, RowId, Shutdown, Storage,
    Table, create_database,
};

const BLOCK_BYTES: usize = 2048;
const LOG_BUFFER_BYTES: usize = 32 << 10;
/// Transactions at once, at most.
const TRANSACTIONS: usize = 32;

/// Bytes of the disks: control file, log files, undo, data.
pub type Images = Vec<DiskImage>;

/// Settings for a database in which everything is scarce.
pub fn settings(lock_timeout_ns: u64) -> KernelSettings {
    KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 24 * BLOCK_BYTES as u64,
        write_batch_blocks: 8,
        log_buffer_bytes: LOG_BUFFER_BYTES,
        log_write_bytes_max: 8 << 10,
        instance: InstanceSettings {
            checkpoint_interval_ns: 20_000_000,
            lock_timeout_ns,
            ..InstanceSettings::default()
        },
        ..KernelSettings::default()
    }
}

/// A running instance in its world.
#[derive(Clone)]
pub struct Stage {
    pub env: Arc<dyn Env>,
    pub instance: Arc<Instance>,
    pub table: Arc<Table>,
}

impl Stage {
    /// Starts a client.
    pub fn spawn<F: Future<Output = ()> + 'static>(
        &self,
        name: &str,
        client: impl FnOnce(Stage) -> F + Send + 'static,
    ) -> Join {
        let stage = self.clone();
        let start = Box::new(move || Box::pin(client(stage)) as LocalFuture);
        self.env.spawn(name, start)
    }

    /// Rowid of a loaded row.
    pub fn row(&self, number: u64) -> RowId {
        self.table.row_id(number)
    }
}

struct Disks(Vec<Arc<SimDisk>>);

impl Disks {
    fn new(world: &World, images: &Images) -> Disks {
        let disk = |(number, image): (usize, &DiskImage)| {
            let timing = DiskTiming::default();
            SimDisk::new(world.env(), number as u64, image.clone(), 512, timing)
        };
        Disks(images.iter().enumerate().map(disk).collect())
    }

    fn storage(&self) -> Storage {
        let device = |index: usize| Arc::clone(&self.0[index]) as Arc<dyn BlockDevice>;
        Storage {
            control: device(0),
            redo: vec![device(1), device(2), device(3)],
            undo: device(4),
            data: vec![device(5)],
            double_write: None,
            temp: Vec::new(),
        }
    }

    fn after(&self, cut: PowerCut) -> Images {
        self.0.iter().map(|disk| disk.image_after(cut)).collect()
    }
}

/// Makes the database with a table of `rows` rows of `row_bytes` zeros.
pub fn loaded(settings: &KernelSettings, row_bytes: usize, rows: u64) -> Images {
    let log_bytes = (8 << 10) + 6 * LOG_BUFFER_BYTES + (16 << 10);
    let (undo_bytes, data_bytes) = (80 * BLOCK_BYTES, (1 << 20) + 2 * BLOCK_BYTES);
    let control_bytes = CONTROL_FILE_BYTES as usize;
    let blank = [
        control_bytes,
        log_bytes,
        log_bytes,
        log_bytes,
        undo_bytes,
        data_bytes,
    ];
    let mut world = World::new(1);
    let env: Arc<dyn Env> = world.env();
    let disks = Disks::new(&world, &blank.map(DiskImage::zeroed).to_vec());
    let (storage, settings) = (disks.storage(), settings.clone());
    world
        .run(async move {
            create_database(&env, &storage, &settings, 4711, TRANSACTIONS)
                .await
                .unwrap();
            let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
            let zero = |_, row: &mut Vec<u8>| row.fill(0);
            instance
                .create_table("rows", row_bytes, rows, zero)
                .await
                .unwrap();
            instance.shutdown(Shutdown::Normal).await.unwrap();
        })
        .unwrap();
    disks.after(PowerCut::LoseAll)
}

/// Starts the instance on `images`, carries out `play` and shuts down; the power is cut at I/O `cut_at` if that comes
/// first. Returns what `play` returned, unless there was a cut, and the disks.
pub fn play<T: 'static, F: Future<Output = T>>(
    seed: u64,
    settings: &KernelSettings,
    images: &Images,
    cut_at: Option<u64>,
    play: impl FnOnce(Stage) -> F + 'static,
) -> (Option<T>, Images) {
    let mut world = World::new(seed);
    if let Some(io) = cut_at {
        world.cut_power_at_io(io);
    }
    let env: Arc<dyn Env> = world.env();
    let disks = Disks::new(&world, images);
    let (storage, settings) = (disks.storage(), settings.clone());
    let played = world.run(async move {
        let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
        let table = instance.table("rows").unwrap();
        let instance = Arc::new(instance);
        let stage = Stage {
            env,
            instance: Arc::clone(&instance),
            table,
        };
        let outcome = play(stage).await;
        let instance = Arc::into_inner(instance).expect("clients have ended");
        instance.shutdown(Shutdown::Normal).await.unwrap();
        outcome
    });
    match played {
        Ok(outcome) => (Some(outcome), disks.after(PowerCut::LoseAll)),
        Err(Stop::PowerCut { .. }) => (None, disks.after(PowerCut::Damage(seed))),
        Err(stop) => panic!("seed {seed}: {stop}"),
    }
}
