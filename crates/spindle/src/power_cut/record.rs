//! Recording a case: its layout is made on logged devices, the database runs on it, and every acknowledged commit is
//! marked in the log. What the replay needs to know is in a [`CutRecording`]; the log itself is on the log device.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_engines::kernel::{InitialLoad, KernelEngine, Shutdown, create_and_load};
use spindle_engines::power_cut::{AcknowledgedCommits, start_noted_clients};
use spindle_io::Env;
use spindle_io::real::device_mapper::MapperMessages;
use spindle_io::real::{RealEnv, block_on, facts};
use spindle_layout::power_cut::{AddressMap, mark};
use spindle_layout::{
    DatabaseFiles, Facts, FileManager, LayoutError, Ledger, Place, PlacementTarget, Provision,
    ProvisionPlan, create_file,
};
use spindle_system::DeviceNumber;
use spindle_system::SystemTree;
use spindle_workload::Workload;
use spindle_workload::driver::Behaviour;

use super::case::{CLIENTS, CutCase};
use super::error::PowerCutError;
use super::logged_device::{LoggedDevice, Slice};
use spindle_run::layout_targets::target_of;

/// Transactions of a recording.
const TRANSACTIONS: u64 = 300;
/// Longest time that clients may take for them; a recording may be shorter then.
const TIME_MAX: Duration = Duration::from_secs(60);
/// The number by which the files of the database know each other.
const DATABASE: u64 = 0x50_0C07;

/// A case that was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CutRecording {
    /// The case's key.
    pub case: String,
    /// Where its log begins on the log device.
    pub log_first_byte: u64,
    /// The volumes that hold the database, on the logged device.
    pub volumes: Vec<AddressMap>,
}

/// Records a case on `origin`, with its log on `log`; `run` names what is made meanwhile. Once `interrupted`, it fails,
/// or ends early.
pub fn record(
    case: &CutCase,
    [origin, log]: [Slice; 2],
    ledgers: &Path,
    run: &str,
    seed: u64,
    interrupted: &AtomicBool,
) -> Result<CutRecording, PowerCutError> {
    let tree = SystemTree::default();
    let ledger = Arc::new(Ledger::begin(ledgers, run, &tree)?);
    let log_first_byte = log.first_byte;
    let parts = case.spec.devices.len();
    let name = format!("spindle-{run}");
    let slices = [origin, log];
    let logged = LoggedDevice::make(&ledger, &tree, &name, slices, parts, case.device_bytes())?;
    let specs = [case.spec_on(&logged.parts())];
    let plan = ProvisionPlan::of(&specs, &Facts::gather(&specs, &tree), run);
    let provision = Provision::carry_out(&plan, Arc::clone(&ledger), &tree, &mut |_| {})?;
    let recorded = match &provision.layouts()[0] {
        Ok(layout) => record_on(case, &layout.target, &logged, seed, interrupted),
        Err(error) => Err(case.not_made(error.to_string())),
    };
    // The logged devices with it: the log is complete then.
    let left = provision.teardown();
    let volumes = recorded?;
    if !left.is_empty() {
        return Err(PowerCutError::Left {
            what: left.join("; "),
        });
    }
    Ok(CutRecording {
        case: case.key(),
        log_first_byte,
        volumes,
    })
}

/// Runs the database on a layout that was made. Returns where its volumes lie.
fn record_on(
    case: &CutCase,
    made: &PlacementTarget,
    logged: &LoggedDevice<'_>,
    seed: u64,
    interrupted: &AtomicBool,
) -> Result<Vec<AddressMap>, PowerCutError> {
    let target = target_of(&case.spec, case.disk_group.as_ref(), made)
        .map_err(|reason| case.not_made(reason.to_string()))?;
    let volumes: Vec<String> = match &target {
        PlacementTarget::Directory(directory) => {
            let facts = facts::file_system(directory)?;
            vec![format!("{}:{}", facts.device_major, facts.device_minor)]
        }
        devices => {
            let numbers = devices.paths().into_iter().map(device_number);
            numbers.collect::<Result<_, _>>()?
        }
    };
    let volumes = logged.maps(&volumes)?;
    let files = case.files_on(&target)?;
    make_files(case, &files, interrupted)?;
    block_on(run_database(
        case,
        &files,
        &logged.name(),
        seed,
        interrupted,
    ))?;
    Ok(volumes)
}

fn device_number(path: &Path) -> Result<String, PowerCutError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| PowerCutError::system("examine", path, source))?;
    let number = DeviceNumber::of_stat(metadata.rdev());
    Ok(format!("{}:{}", number.major, number.minor))
}

/// Makes the database's files as a run would; regions of raw devices already exist.
fn make_files(
    case: &CutCase,
    files: &DatabaseFiles,
    interrupted: &AtomicBool,
) -> Result<(), PowerCutError> {
    let manager = match case.io.method.identifies_files() {
        true => FileManager::Odm,
        false => FileManager::Plain,
    };
    for ((_, place), bytes) in files.named().iter().zip(case.file_sizes()) {
        if !matches!(place, Place::Region { .. }) {
            create_file(manager, place, bytes, |_, piece| {
                piece.fill(0);
                match interrupted.load(Ordering::Relaxed) {
                    true => Err(LayoutError::Interrupted),
                    false => Ok(()),
                }
            })?;
        }
    }
    Ok(())
}

async fn run_database(
    case: &CutCase,
    files: &DatabaseFiles,
    logged: &str,
    seed: u64,
    interrupted: &AtomicBool,
) -> Result<(), PowerCutError> {
    let env: Arc<dyn Env> = RealEnv::new(seed);
    let workload: Arc<dyn Workload> = Arc::new(case.workload());
    let (settings, [data, redo]) = (case.settings(), case.paths());
    let load = InitialLoad {
        workload: &*workload,
        database: DATABASE,
        clients: CLIENTS,
        interrupted,
    };
    create_and_load(&env, files, data, &settings, load).await?;
    let engine = KernelEngine::start(&env, files, data, redo, &settings, &*workload).await?;
    let engine = Arc::new(engine);
    let promised = promises_marked_on(logged)?;
    let noted = promised.note();
    noted.map_err(|error| PowerCutError::Clients(error.to_string()))?;
    let behaviour = Behaviour {
        clients: CLIENTS,
        ..Behaviour::default()
    };
    let mut running = start_noted_clients(&engine, &env, &workload, behaviour, promised);
    let began = Instant::now();
    while running.committed() < TRANSACTIONS
        && began.elapsed() < TIME_MAX
        && running.failure().is_none()
        && !interrupted.load(Ordering::Relaxed)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stopped = running.stop().await;
    drop(running);
    let engine = Arc::into_inner(engine).expect("all sessions have ended");
    let down = engine.stop(Shutdown::Abort).await;
    stopped.map_err(|error| PowerCutError::Clients(error.to_string()))?;
    down?;
    Ok(())
}

/// What clients are promised, marked in the log of the logged device as it is promised.
fn promises_marked_on(logged: &str) -> Result<Arc<AcknowledgedCommits>, PowerCutError> {
    let control = Path::new("/dev/mapper/control");
    let mapper =
        MapperMessages::open().map_err(|source| PowerCutError::system("open", control, source))?;
    let logged = logged.to_owned();
    Ok(AcknowledgedCommits::new(CLIENTS, move |acknowledged| {
        let message = format!("mark {}", mark(acknowledged));
        let sent = mapper.send(&logged, &message);
        sent.map_err(|error| EngineError::failed(format!("cannot mark the log of {logged}"), error))
    }))
}
