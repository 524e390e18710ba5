//! The embedded database as an [`RunningEngine`].

use std::sync::Arc;

use spindle_io::Env;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::sql::KeptAnswer;
use spindle_workload::{Acknowledged, Workload};

use super::{KernelEngine, Shutdown};
use crate::engine::{Counters, EngineFuture, RunningEngine, Written};
use crate::{EngineError, ErrorKind};

/// The embedded database with the workload that it was loaded for.
pub struct KernelUnderTest {
    env: Arc<dyn Env>,
    engine: Arc<KernelEngine>,
    workload: Arc<dyn Workload>,
}

impl KernelUnderTest {
    /// The database, running, and its workload.
    pub fn new(
        env: &Arc<dyn Env>,
        engine: KernelEngine,
        workload: Arc<dyn Workload>,
    ) -> KernelUnderTest {
        KernelUnderTest {
            env: Arc::clone(env),
            engine: Arc::new(engine),
            workload,
        }
    }
}

impl RunningEngine for KernelUnderTest {
    fn counters(&self) -> &dyn Counters {
        &*self.engine
    }

    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running {
        self.engine.start_clients(env, &self.workload, behaviour)
    }

    fn check(
        &self,
        acknowledged: Vec<Acknowledged>,
    ) -> EngineFuture<'_, Result<String, EngineError>> {
        let connect = self.engine.connector();
        Box::pin(async move {
            let (env, workload, sessions) = (&self.env, &self.workload, self.engine.checkers);
            let mut session = connect();
            let rows = driver::check_together(env, workload, &acknowledged, sessions, connect);
            Ok(rows.await? + &session.check_structure().await?)
        })
    }

    fn kept_answers(&self) -> Vec<KeptAnswer> {
        self.workload.kept_answers()
    }

    fn flush(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        self.engine.flush()
    }

    fn stop(self: Arc<Self>) -> EngineFuture<'static, Result<Written, EngineError>> {
        Box::pin(async move {
            let engine = Arc::into_inner(self).and_then(|this| Arc::into_inner(this.engine));
            let engine = engine.ok_or_else(|| {
                EngineError::new(ErrorKind::Failed, "a client outlived its trial")
            })?;
            engine.stop(Shutdown::Abort).await
        })
    }
}
