//! `junk` in the simulated world: one seed is one history, and a power cut at any I/O of the load leaves whole commits,
//! none that was promised missing, with both indexes as their structure check wants them.

use std::sync::Arc;

use spindle_engines::engine::Engine;
use spindle_engines::kernel::{
    KernelEngine, KernelUnderTest, Load, Settings, Storage, WriteSync, create_and_load_on, files_of,
};
use spindle_io::sim::{DiskImage, DiskTiming, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_layout::Shape;
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::{Acknowledged, Workload};

use crate::{junk, small};

const CLIENTS: usize = 3;
const ROWS: u64 = 240;
const COMMIT_EVERY: u64 = 8;
/// Undo that goes round while the rows are inserted.
const UNDO_BLOCKS: u64 = 96;
const MILLISECOND_NS: u64 = 1_000_000;

fn settings() -> Settings {
    Settings {
        block_bytes: 2048,
        buffer_cache_bytes: 48 * 2048,
        log_buffer_bytes: 32 << 10,
        checkpoint_interval_ns: 20 * MILLISECOND_NS,
        ..small::settings(WriteSync::Dsync)
    }
}

fn shape(workload: &dyn Workload) -> Shape {
    let block_bytes = settings().block_bytes;
    Shape {
        undo_bytes: UNDO_BLOCKS * block_bytes as u64,
        ..files_of(workload, CLIENTS, block_bytes, 2, 3, 256 << 10)
    }
}

/// Control file, log files, undo, datafiles.
type Images = Vec<DiskImage>;

/// The disks of a world.
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
        let mut devices = self.0.iter();
        let mut next =
            || Arc::clone(devices.next().expect("a disk for each file")) as Arc<dyn BlockDevice>;
        Storage {
            control: next(),
            redo: (0..3).map(|_| next()).collect(),
            undo: next(),
            data: (0..2).map(|_| next()).collect(),
            double_write: None,
        }
    }

    fn after(&self, cut: PowerCut) -> Images {
        self.0.iter().map(|disk| disk.image_after(cut)).collect()
    }
}

/// The database before the first row.
fn made(workload: &Arc<dyn Workload>) -> Images {
    let shape = shape(&**workload);
    let sizes = [shape.control_bytes].into_iter().chain(shape.redo_bytes);
    let sizes = sizes.chain([shape.undo_bytes]).chain(shape.data_bytes);
    let images = sizes
        .map(|bytes| DiskImage::zeroed(bytes as usize))
        .collect();
    let mut world = World::new(1);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, &images));
    let (storage, workload) = (disks.storage(), Arc::clone(workload));
    let loaded = world.run(async move {
        let load = Load {
            workload: &*workload,
            database: 7,
            clients: CLIENTS,
            interrupted: &false.into(),
        };
        create_and_load_on(&env, &storage, &settings(), load).await
    });
    loaded.unwrap().unwrap();
    disks.after(PowerCut::LoseAll)
}

async fn started(
    env: &Arc<dyn Env>,
    storage: &Storage,
    workload: Arc<dyn Workload>,
) -> KernelUnderTest {
    let engine = KernelEngine::start_on(env, storage, &settings(), &*workload).await;
    KernelUnderTest::new(env, engine.unwrap(), workload)
}

/// What is left of a load.
struct Left {
    disks: Disks,
    promised: Vec<Acknowledged>,
    ios: u64,
    trace: u64,
}

/// Clients insert all they have to, unless the power is cut at an I/O before.
fn load(workload: &Arc<dyn Workload>, images: &Images, cut_at: Option<u64>) -> Left {
    let mut world = World::new(5);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, images));
    let (storage, workload) = (disks.storage(), Arc::clone(workload));
    let clients: Arc<Latch<Option<Arc<Running>>>> = Arc::default();
    let begun = Arc::clone(&clients);
    if let Some(io) = cut_at {
        world.cut_power_at_io(io);
    }
    let ended = world.run(async move {
        let engine = started(&env, &storage, workload).await;
        let behaviour = Behaviour {
            clients: CLIENTS,
            ..Behaviour::default()
        };
        let running = Arc::new(engine.start_clients(&env, behaviour));
        *begun.lock() = Some(Arc::clone(&running));
        while !running.is_finished() {
            env.sleep(MILLISECOND_NS).await;
        }
        assert_eq!(running.failure(), None);
    });
    match (ended, cut_at) {
        (Ok(()), None) | (Err(Stop::PowerCut { .. }), Some(_)) => {}
        (other, _) => panic!("{other:?}"),
    }
    let promised = match &*clients.lock() {
        Some(running) => running.acknowledged(),
        None => vec![Acknowledged::default(); CLIENTS],
    };
    Left {
        promised,
        ios: world.io_count(),
        trace: world.trace_hash(),
        disks,
    }
}

/// What the check says of the database after recovery.
fn recovered(
    workload: &Arc<dyn Workload>,
    images: &Images,
    promised: Vec<Acknowledged>,
) -> Result<String, String> {
    let mut world = World::new(9);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, images));
    let (storage, workload) = (disks.storage(), Arc::clone(workload));
    let found = world.run(async move {
        let engine = started(&env, &storage, workload).await;
        engine.check(promised).await
    });
    found.unwrap().map_err(|error| error.to_string())
}

#[test]
fn one_seed_is_one_history_and_no_crash_loses_a_commit() {
    let workload = junk::workload(ROWS, COMMIT_EVERY);
    let images = made(&workload);
    let whole = load(&workload, &images, None);
    let again = load(&workload, &images, None);
    assert_eq!((whole.ios, whole.trace), (again.ios, again.trace));
    let each = ROWS / COMMIT_EVERY / CLIENTS as u64;
    assert_eq!(whole.promised, vec![Acknowledged::up_to(each); CLIENTS]);
    let (mut cuts, mut partial) = (0, 0);
    for io in 1..whole.ios {
        let left = load(&workload, &images, Some(io));
        for cut in [PowerCut::LoseAll, PowerCut::Damage(io)] {
            let images = left.disks.after(cut);
            let said = recovered(&workload, &images, left.promised.clone());
            let said = said.unwrap_or_else(|loss| panic!("{cut:?} at I/O {io}: {loss}"));
            cuts += 1;
            partial += u64::from(!said.starts_with("0 rows") && !said.starts_with("240 rows"));
        }
    }
    println!(
        "{} I/Os, {cuts} power cuts, {partial} in the middle of the rows",
        whole.ios
    );
    assert!(partial > 10, "{partial} of {cuts}");
    let more = vec![Acknowledged::up_to(each + 1); CLIENTS];
    let images = whole.disks.after(PowerCut::LoseAll);
    let told = recovered(&workload, &images, more).unwrap_err();
    assert!(told.contains("was promised 11 commits"), "{told}");
}
