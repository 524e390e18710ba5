//! Workloads with keys in the simulated world: one seed is one history, and a power cut at any I/O of a run, or an I/O
//! that fails, leaves what the workload's check wants, none that was promised missing, with every table and index as
//! the checks of their structure want them.

mod careless;
mod junk;
mod scenario;
pub mod tpcb;
pub mod tpcc;

use std::sync::Arc;

use spindle_engines::engine::RunningEngine;
use spindle_engines::kernel::{
    InitialLoad, KernelEngine, KernelSettings, KernelUnderTest, Storage, WriteSync,
    create_and_load_on, files_of,
};
use spindle_io::sim::{DiskImage, DiskTiming, IoFault, Lasts, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_layout::DatabaseShape;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{Acknowledged, Workload};

use crate::small;
use careless::Careless;

const CLIENTS: usize = 3;
/// Undo that goes round meanwhile.
const UNDO_BLOCKS: u64 = 96;
const MILLISECOND_NS: u64 = 1_000_000;

/// What a database is told, and what it stands on.
#[derive(Clone)]
struct Machine {
    settings: KernelSettings,
    timing: DiskTiming,
    clients: usize,
    /// By which it is drawn what happens.
    seed: u64,
}

impl Default for Machine {
    fn default() -> Machine {
        let mut settings = small::settings(WriteSync::Dsync);
        settings.instance.checkpoint_interval_ns = 20 * MILLISECOND_NS;
        Machine {
            settings: KernelSettings {
                block_bytes: 2048,
                buffer_cache_bytes: 48 * 2048,
                log_buffer_bytes: 32 << 10,
                ..settings
            },
            timing: DiskTiming::default(),
            clients: CLIENTS,
            seed: 5,
        }
    }
}

impl Machine {
    fn shape(&self, workload: &dyn Workload) -> DatabaseShape {
        let block_bytes = self.settings.block_bytes;
        DatabaseShape {
            undo_bytes: UNDO_BLOCKS * block_bytes as u64,
            ..files_of(workload, self.clients, block_bytes, 2, 3, 256 << 10)
        }
    }
}

/// Control file, log files, undo, datafiles.
type Images = Vec<DiskImage>;

/// The disks of a world.
struct Disks(Vec<Arc<SimDisk>>);

impl Disks {
    fn new(world: &World, images: &Images, timing: DiskTiming) -> Disks {
        let disk = |(number, image): (usize, &DiskImage)| {
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
fn made(workload: &Arc<dyn Workload>, machine: &Machine) -> Images {
    let shape = machine.shape(&**workload);
    let sizes = [shape.control_bytes].into_iter().chain(shape.redo_bytes);
    let sizes = sizes.chain([shape.undo_bytes]).chain(shape.data_bytes);
    let images = sizes
        .map(|bytes| DiskImage::zeroed(bytes as usize))
        .collect();
    let mut world = World::new(1);
    let disks = Disks::new(&world, &images, machine.timing);
    let (env, clients): (Arc<dyn Env>, _) = (world.env(), machine.clients);
    let (storage, workload) = (disks.storage(), Arc::clone(workload));
    let settings = machine.settings.clone();
    let loaded = world.run(async move {
        let load = InitialLoad {
            workload: &*workload,
            database: 7,
            clients,
            interrupted: &false.into(),
        };
        create_and_load_on(&env, &storage, &settings, load).await
    });
    loaded.unwrap().unwrap();
    disks.after(PowerCut::LoseAll)
}

/// A workload, what each client does of it, and the database that it begins with.
struct Story {
    workload: Arc<dyn Workload>,
    /// Transactions of each client, where the workload itself does not say.
    transactions: Option<u64>,
    machine: Machine,
    images: Images,
    /// The planted bug.
    is_careless: bool,
}

/// What goes wrong in a run.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The power is cut at this I/O.
    PowerCut(u64),
    /// This I/O fails.
    FailedIo(IoFault),
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
        Story::on(Machine::default(), workload, transactions)
    }

    fn on(machine: Machine, workload: Arc<dyn Workload>, transactions: Option<u64>) -> Story {
        Story {
            images: made(&workload, &machine),
            workload,
            transactions,
            machine,
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

    /// Clients do all they have to, unless something goes wrong before.
    fn run(&self, fault: Option<Fault>) -> Left {
        let mut world = World::new(self.machine.seed);
        let disks = Disks::new(&world, &self.images, self.machine.timing);
        let (env, storage): (Arc<dyn Env>, _) = (world.env(), disks.storage());
        let (workload, settings) = (Arc::clone(&self.workload), self.machine.settings.clone());
        let clients: Arc<Latch<Option<Arc<Running>>>> = Arc::default();
        let (begun, is_careless) = (Arc::clone(&clients), self.is_careless);
        let behaviour = Behaviour {
            clients: self.machine.clients,
            transactions: self.transactions,
            ..Behaviour::default()
        };
        match fault {
            Some(Fault::PowerCut(io)) => world.cut_power_at_io(io),
            Some(Fault::FailedIo(fault)) => world.fail_io(fault),
            None => {}
        }
        let may_fail = matches!(fault, Some(Fault::FailedIo(_)));
        let ended = world.run(async move {
            let engine = match KernelEngine::start_on(&env, &storage, &settings, &*workload).await {
                Ok(engine) => Arc::new(engine),
                Err(_) if may_fail => return,
                Err(error) => panic!("{error}"),
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
            while !(running.is_finished() || may_fail && running.failure().is_some()) {
                env.sleep(MILLISECOND_NS).await;
            }
            if !may_fail {
                assert_eq!((running.failure(), running.first_error()), (None, None));
            }
        });
        match (ended, fault) {
            (Ok(()), None | Some(Fault::FailedIo(_))) => {}
            (Err(Stop::PowerCut { .. }), Some(Fault::PowerCut(_))) => {}
            (other, _) => panic!("{other:?}"),
        }
        let promised = match &*clients.lock() {
            Some(running) => running.acknowledged(),
            None => vec![Acknowledged::default(); self.machine.clients],
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
        let disks = Disks::new(&world, images, self.machine.timing);
        let (env, storage): (Arc<dyn Env>, _) = (world.env(), disks.storage());
        let (workload, settings) = (Arc::clone(&self.workload), self.machine.settings.clone());
        let found = world.run(async move {
            let engine = KernelEngine::start_on(&env, &storage, &settings, &*workload).await;
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

    /// Cuts the power at every I/O of the run, or at one of `every`.
    fn cut_everywhere(&self, ios: u64, every: usize) -> Cuts {
        let cut = |io| {
            (
                Fault::PowerCut(io),
                [PowerCut::LoseAll, PowerCut::Damage(io)],
            )
        };
        self.tried(ios, every, cut)
    }

    /// Has one I/O of `every` fail, and cuts the power when the clients have ended.
    fn fail_some(&self, ios: u64, every: usize, lasts: Lasts) -> Cuts {
        let fail = |io| {
            let fault = IoFault {
                io,
                lasts,
                seed: io,
            };
            let cuts = [PowerCut::LoseAll, PowerCut::Damage(io)];
            (Fault::FailedIo(fault), cuts)
        };
        self.tried(ios, every, fail)
    }

    fn tried(
        &self,
        ios: u64,
        every: usize,
        fault_at: impl Fn(u64) -> (Fault, [PowerCut; 2]),
    ) -> Cuts {
        let mut cuts = Cuts::default();
        for io in (1..ios).step_by(every) {
            let (fault, damages) = fault_at(io);
            let left = self.run(Some(fault));
            for cut in damages {
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

    /// Fails one I/O of `every` in two ways: it alone, and all that follow on the same disk.
    fn fail_everywhere(&self, ios: u64, every: usize) -> Cuts {
        let mut cuts = self.fail_some(ios, every, Lasts::Once);
        let for_ever = self.fail_some(ios, every, Lasts::ForEver);
        cuts.said.extend(for_ever.said);
        cuts.wrong.extend(for_ever.wrong);
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
