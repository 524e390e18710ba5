//! Workloads with keys in the simulated world: one seed is one history, and a power cut at any I/O of a run, or an I/O
//! that fails, leaves what the workload's check wants, none that was promised missing, with every table and index as
//! the checks of their structure want them.

mod careless;
mod junk;
mod tpcb;
mod tpcc;

use std::sync::Arc;

use spindle_engines::engine::RunningEngine;
use spindle_engines::kernel::{
    KernelEngine, KernelUnderTest, Load, Settings, Storage, WriteSync, create_and_load_on, files_of,
};
use spindle_io::sim::{DiskImage, DiskTiming, IoFault, Lasts, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_layout::Shape;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{Acknowledged, Workload};

use crate::small;
use careless::Careless;

const CLIENTS: usize = 3;
/// Undo that goes round meanwhile.
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
            temp: Vec::new(),
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

/// A workload, what each client does of it, and the database that it begins with.
struct Story {
    workload: Arc<dyn Workload>,
    /// Transactions of each client, where the workload itself does not say.
    transactions: Option<u64>,
    images: Images,
    /// The planted bug.
    is_careless: bool,
}

/// What is left of a run.
struct Left {
    disks: Disks,
    promised: Vec<Acknowledged>,
    ios: u64,
    trace: u64,
}

/// What power cuts have shown.
#[derive(Debug, Default)]
struct Cuts {
    /// What each check said that found nothing wrong.
    said: Vec<String>,
    /// What was wrong, and after which cut.
    wrong: Vec<String>,
}

impl Story {
    fn new(workload: Arc<dyn Workload>, transactions: Option<u64>) -> Story {
        Story {
            images: made(&workload),
            workload,
            transactions,
            is_careless: false,
        }
    }

    /// The same with the planted bug.
    fn careless(self) -> Story {
        Story {
            is_careless: true,
            ..self
        }
    }

    /// Clients do all they have to, unless the power is cut at an I/O before.
    fn run(&self, cut_at: Option<u64>) -> Left {
        self.run_with(cut_at, None)
    }

    /// The same with an I/O that fails: then clients may end early, and the start may fail.
    fn run_with(&self, cut_at: Option<u64>, fault: Option<IoFault>) -> Left {
        let mut world = World::new(5);
        let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, &self.images));
        let (storage, workload) = (disks.storage(), Arc::clone(&self.workload));
        let clients: Arc<Latch<Option<Arc<Running>>>> = Arc::default();
        let (begun, transactions) = (Arc::clone(&clients), self.transactions);
        let is_careless = self.is_careless;
        if let Some(io) = cut_at {
            world.cut_power_at_io(io);
        }
        if let Some(fault) = fault {
            world.fail_io(fault);
        }
        let ended = world.run(async move {
            let engine = KernelEngine::start_on(&env, &storage, &settings(), &*workload).await;
            let engine = match engine {
                Err(_) if fault.is_some() => return,
                engine => Arc::new(engine.unwrap()),
            };
            let behaviour = Behaviour {
                clients: CLIENTS,
                transactions,
                ..Behaviour::default()
            };
            let (connect, tables) = (engine.connector(), engine.tables());
            let running = match is_careless {
                false => driver::start(&env, &workload, &tables, behaviour, connect),
                true => driver::start(&env, &workload, &tables, behaviour, move || {
                    Careless(connect())
                }),
            };
            let running = Arc::new(running);
            *begun.lock() = Some(Arc::clone(&running));
            while !running.is_finished() {
                env.sleep(MILLISECOND_NS).await;
            }
            if fault.is_none() {
                assert_eq!((running.failure(), running.first_error()), (None, None));
            }
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
    fn recovered(&self, images: &Images, promised: Vec<Acknowledged>) -> Result<String, String> {
        let mut world = World::new(9);
        let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, images));
        let (storage, workload) = (disks.storage(), Arc::clone(&self.workload));
        let found = world.run(async move {
            let engine = KernelEngine::start_on(&env, &storage, &settings(), &*workload).await;
            let engine = KernelUnderTest::new(&env, engine.unwrap(), workload);
            engine.check(promised).await
        });
        found.unwrap().map_err(|error| error.to_string())
    }

    /// The whole run, after it was shown that it is the same each time.
    fn whole(&self) -> Left {
        let (whole, again) = (self.run(None), self.run(None));
        assert_eq!((whole.ios, whole.trace), (again.ios, again.trace));
        whole
    }

    /// Cuts the power at every I/O of the run, or at every so many.
    fn cut_everywhere(&self, ios: u64, every: usize) -> Cuts {
        let mut cuts = Cuts::default();
        for io in (1..ios).step_by(every) {
            let left = self.run(Some(io));
            for cut in [PowerCut::LoseAll, PowerCut::Damage(io)] {
                let images = left.disks.after(cut);
                match self.recovered(&images, left.promised.clone()) {
                    Ok(said) => cuts.said.push(said),
                    Err(loss) => cuts.wrong.push(format!("{cut:?} at I/O {io}: {loss}")),
                }
            }
        }
        println!(
            "{ios} I/Os, {} power cuts",
            cuts.said.len() + cuts.wrong.len()
        );
        cuts
    }

    /// Fails every so many I/Os of the run, each in two ways: it alone, and all that follow on the same disk.
    fn fail_everywhere(&self, ios: u64, every: usize) -> Cuts {
        let mut cuts = Cuts::default();
        for io in (1..ios).step_by(every) {
            for lasts in [Lasts::Once, Lasts::ForEver] {
                let fault = IoFault {
                    io,
                    lasts,
                    seed: io,
                };
                let left = self.run_with(None, Some(fault));
                for cut in [PowerCut::LoseAll, PowerCut::Damage(io)] {
                    let images = left.disks.after(cut);
                    match self.recovered(&images, left.promised.clone()) {
                        Ok(said) => cuts.said.push(said),
                        Err(loss) => cuts.wrong.push(format!("{cut:?} after {fault:?}: {loss}")),
                    }
                }
            }
        }
        println!(
            "{ios} I/Os, {} recoveries after one has failed",
            cuts.said.len() + cuts.wrong.len()
        );
        cuts
    }

    /// What the check says when each client was promised one transaction more.
    fn with_more_promised(&self, left: &Left) -> String {
        let more = left.promised.iter().map(|promised| Acknowledged {
            last: promised.last + 1,
            ..*promised
        });
        let images = left.disks.after(PowerCut::LoseAll);
        self.recovered(&images, more.collect()).unwrap_err()
    }
}
