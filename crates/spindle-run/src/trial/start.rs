//! Starting the database of a trial, or coming to one that another process of the trial looks at.

use std::sync::Arc;

use spindle_engines::EngineError;
use spindle_engines::database::{KernelDatabase, RemoteDatabase, ServerDatabase};
use spindle_engines::engine::{Engine, RunningEngine};
use spindle_io::Env;

use super::protocol::{Task, TrialDatabase};

/// Starts the database of a trial.
pub(super) async fn start(
    task: &Task,
    env: &Arc<dyn Env>,
) -> Result<Arc<dyn RunningEngine>, EngineError> {
    let (workload, size_bytes) = (&task.workload, task.size_bytes);
    let in_sql = |kind| workload.in_sql(size_bytes, kind, task.data_seed);
    match &task.database {
        TrialDatabase::Kernel(kernel) => {
            let engine = KernelDatabase {
                spec: kernel.spec.clone(),
                io: kernel.io,
                delay: kernel.delay,
                redo_delay: kernel.redo_delay,
                workload: Arc::from(workload.of_rows(size_bytes, &kernel.spec, task.data_seed)),
                clients: workload.connections(task.clients) as usize,
                number: task.data_seed,
            };
            engine.start(&kernel.files, env).await
        }
        TrialDatabase::Server(of) => {
            let engine = ServerDatabase {
                kind: of.kind,
                request: of.request.clone(),
                workload: in_sql(of.kind),
            };
            engine.start(&of.directories, env).await
        }
        TrialDatabase::Remote(schema) => {
            let engine = RemoteDatabase {
                address: schema.address.clone(),
                password_env: schema.password_variable.clone(),
                workload: in_sql(schema.address.kind()),
            };
            engine.start(schema, env).await
        }
    }
}

/// Comes to the existing server of a trial for its clients alone.
pub(super) fn join(task: &Task) -> Result<Arc<dyn RunningEngine>, EngineError> {
    let TrialDatabase::Remote(schema) = &task.database else {
        return Err(EngineError::refused(
            "several load machines need an existing server (`url`)",
        ));
    };
    let kind = schema.address.kind();
    let workload = &task.workload;
    let engine = RemoteDatabase {
        address: schema.address.clone(),
        password_env: schema.password_variable.clone(),
        workload: workload.in_sql(task.size_bytes, kind, task.data_seed),
    };
    engine.join(schema)
}
