//! What Spindle itself costs: the experiment's workload, one client, on a small database whose devices are memory.
//! Storage costs nothing there, so the processor time of a transaction is that of clients, database and bookkeeping.
//! Measured once a run, before the trials, in its own process; what it says of a trial is a share, not a
//! correction.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spindle_engines::EngineError;
use spindle_engines::kernel::KernelEngine;
use spindle_io::Env;
use spindle_io::real::RealEnv;
use spindle_io::real::facts::ProcessorTime;
use spindle_workload::driver::{Behaviour, Running};

use spindle_experiment::{DatabaseSpec, Experiment, KernelSpec, WorkloadChoice};
use spindle_result::{CpuMicroseconds, OwnCost};

/// Most data that is loaded, bytes: enough for a cache that misses, and made in a tenth of a second.
const DATA_BYTES_MAX: u64 = 32 << 20;
/// The buffer cache has this many blocks at least, whatever its share of the data.
const CACHE_BLOCKS_MIN: u64 = 128;
const LOG_FILE_BYTES_MAX: u64 = 16 << 20;
const LOG_FILES_MAX: u32 = 3;
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURE: Duration = Duration::from_millis(1000);
/// Interval between checks whether a client with a fixed amount of work has done it.
const FINISHED_LOOK: Duration = Duration::from_millis(5);

/// What to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnCostTask {
    /// Where everything random starts from.
    pub seed: u64,
    /// Loaded data, bytes.
    pub size_bytes: u64,
    /// The experiment's database, made small.
    pub database: KernelSpec,
    /// The experiment's workload.
    pub workload: WorkloadChoice,
}

impl OwnCostTask {
    /// The task for an experiment: its database with as large a part of the data in the buffer cache as there. `None`
    /// for a server: what that costs is in its own processes, and they are counted. `None`, too, where one transaction
    /// inserts more than a small database holds.
    pub fn of(experiment: &Experiment) -> Option<OwnCostTask> {
        let DatabaseSpec::Kernel(spec) = &experiment.database.spec else {
            return None;
        };
        let workload = WorkloadChoice {
            transactions: (experiment.workload.transactions.clone()).within(DATA_BYTES_MAX)?,
            ..experiment.workload.clone()
        };
        let mut database = spec.clone();
        let size_bytes = experiment.database.size_bytes.min(DATA_BYTES_MAX);
        let part = size_bytes as f64 / experiment.database.size_bytes as f64;
        let memory = &mut database.memory;
        let cache_bytes = (memory.buffer_cache_bytes as f64 * part) as u64;
        memory.buffer_cache_bytes =
            cache_bytes.max(CACHE_BLOCKS_MIN * database.files.block_size_bytes);
        database.files.datafiles = 1;
        database.files.log_file_size_bytes =
            database.files.log_file_size_bytes.min(LOG_FILE_BYTES_MAX);
        database.files.log_files = database.files.log_files.min(LOG_FILES_MAX);
        Some(OwnCostTask {
            seed: experiment.seed,
            size_bytes,
            database,
            workload,
        })
    }
}

/// Carries the task out. Error: why the database could not work, in words.
pub async fn measure(task: &OwnCostTask) -> Result<OwnCost, EngineError> {
    let env: Arc<dyn Env> = RealEnv::new(task.seed);
    let database = &task.database;
    let workload: Arc<dyn spindle_workload::Workload> =
        Arc::from(task.workload.of_rows(task.size_bytes, database, task.seed));
    let settings = database.settings();
    let shape = database.shape(&*workload, 1, database.instance.writers);
    let engine = KernelEngine::in_memory(&env, &shape, &settings, &*workload, 1);
    let engine = Arc::new(engine.await?);
    let behaviour = Behaviour {
        clients: 1,
        ..Behaviour::default()
    };
    let is_counted = task.workload.transactions.are_counted();
    let mut begun = (env.now(), ProcessorTime::now(), 0);
    let mut running = engine.start_clients(&env, &workload, behaviour);
    if !is_counted {
        env.sleep(WARM_UP.as_nanos() as u64).await;
        begun = (env.now(), ProcessorTime::now(), running.committed());
    }
    let (began_ns, cpu, committed) = begun;
    running.measure(true);
    match is_counted {
        true => wait_for_all(&env, &running).await,
        false => wait_for_one(&env, &running, committed).await?,
    }
    if let Some(reason) = running.failure() {
        return Err(reason.into());
    }
    let cpu = ProcessorTime::now() - cpu;
    let transactions = running.committed() - committed;
    let measured_s = (env.now() - began_ns) as f64 / 1e9;
    running.stop().await?;
    let each_us = |time: Duration| time.as_secs_f64() * 1e6 / transactions as f64;
    Ok(OwnCost {
        cpu_us_per_transaction: CpuMicroseconds {
            user: each_us(cpu.user),
            system: each_us(cpu.system),
        },
        transactions,
        measured_s,
        data_bytes: task.size_bytes,
        buffer_cache_bytes: database.memory.buffer_cache_bytes,
    })
}

/// Waits until the client has carried out all it has to, or has failed.
async fn wait_for_all(env: &Arc<dyn Env>, running: &Running) {
    while !running.is_finished() {
        env.sleep(FINISHED_LOOK.as_nanos() as u64).await;
    }
}

/// Lets the measured time pass, and then as much again at most until a transaction has ended in it.
async fn wait_for_one(
    env: &Arc<dyn Env>,
    running: &Running,
    committed: u64,
) -> Result<(), EngineError> {
    for _ in 0..2 {
        env.sleep(MEASURE.as_nanos() as u64).await;
        if let Some(reason) = running.failure() {
            return Err(reason.into());
        }
        if running.committed() > committed {
            return Ok(());
        }
    }
    Err(EngineError::other(format!(
        "not one transaction ended in {} s",
        2 * MEASURE.as_secs()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_io::real::block_on;

    fn task(database: &str, workload: &str) -> OwnCostTask {
        let text =
            format!("[database]\n{database}\n[workload]\n{workload}\n[[layout]]\nname = \"a\"\n");
        OwnCostTask::of(&Experiment::parse("x.toml", &text, &[]).unwrap()).unwrap()
    }

    #[test]
    fn the_small_database_keeps_the_share_of_the_cache() {
        let small = task("size = \"320MiB\"\nbuffer_cache = \"80MiB\"", "clients = 8");
        assert_eq!(small.size_bytes, 32 << 20);
        assert_eq!(small.database.memory.buffer_cache_bytes, 8 << 20);
        let tiny = task("size = \"10GiB\"\nbuffer_cache = \"64MiB\"", "clients = 8");
        assert_eq!(tiny.database.memory.buffer_cache_bytes, 1 << 20);
    }

    #[test]
    fn rows_to_be_inserted_are_as_many_as_a_small_database_holds() {
        let junk = |rows: &str| task("", &format!("kind = \"junk\"\n{rows}"));
        let cost = block_on(measure(&junk("rows = 3000"))).unwrap();
        assert_eq!(cost.transactions, 30);
        let many = junk("rows = 50000000\ncommit_every = 10000");
        let cost = block_on(measure(&many)).unwrap();
        assert_eq!(cost.transactions, 11, "{cost:?}");
        let text =
            "[workload]\nkind = \"junk\"\ncommit_every = 1000000\n[[layout]]\nname = \"a\"\n";
        let experiment = Experiment::parse("x.toml", text, &[]).unwrap();
        assert_eq!(OwnCostTask::of(&experiment), None);
    }

    #[test]
    fn every_workload_costs_something_and_little() {
        for workload in [
            "clients = 8",
            "kind = \"slob\"\nclients = [4, 64]\nthink_time = \"1s\"",
        ] {
            let task = task("size = \"320MiB\"\nbuffer_cache = \"32MiB\"", workload);
            let cost = block_on(measure(&task)).unwrap();
            let each_us = cost.cpu_us_per_transaction;
            // A thousand times what it is on a small machine would be a mistake of units.
            assert!(
                (1.0..100_000.0).contains(&(each_us.user + each_us.system)),
                "{cost:?}"
            );
            assert!(cost.transactions > 0 && cost.measured_s > 0.9, "{cost:?}");
        }
    }
}
