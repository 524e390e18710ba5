//! The embedded database as an [`Engine`].

use std::borrow::Cow;
use std::sync::Arc;

use spindle_io::Env;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::{Acknowledged, Workload};

use super::{KernelEngine, Shutdown, WaitTotal};
use crate::engine::{
    Answer, Counters, Engine, EngineCounts, EngineWait, Housekeeping, SegmentSize, Written,
};
use crate::error::lost;
use crate::promise::{self, Promise, Storage};
use crate::{EngineError, ErrorKind};

/// The embedded database with the workload that it was loaded for.
pub struct KernelUnderTest {
    engine: Arc<KernelEngine>,
    workload: Arc<dyn Workload>,
}

impl KernelUnderTest {
    /// The database, running, and its workload.
    pub fn new(engine: KernelEngine, workload: Arc<dyn Workload>) -> KernelUnderTest {
        KernelUnderTest {
            engine: Arc::new(engine),
            workload,
        }
    }
}

fn waits(totals: Vec<WaitTotal>) -> Vec<EngineWait> {
    let wait = |total: WaitTotal| EngineWait {
        event: Cow::Borrowed(total.event.name()),
        count: total.count,
        total_ns: total.total_ns,
        sampled: total.sampled,
    };
    totals.into_iter().map(wait).collect()
}

impl Counters for KernelUnderTest {
    fn counts(&self) -> EngineCounts {
        self.engine.counts()
    }

    fn waits(&self) -> Vec<EngineWait> {
        waits(self.engine.wait_events())
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        waits(self.engine.session_wait_events())
    }

    fn housekeeping(&self) -> Housekeeping {
        let counters = self.engine.statistics();
        Housekeeping {
            checkpoints: counters.checkpoint_positions,
            log_switches: counters.log_switches,
        }
    }

    fn dirty_bytes(&self) -> u64 {
        self.engine.dirty_bytes()
    }

    fn failure(&self) -> Option<EngineError> {
        self.engine.failure().map(EngineError::from)
    }

    fn segments(&self) -> Vec<SegmentSize> {
        let segments = self.engine.segments().into_iter();
        let size = |segment: spindle_kernel::SegmentSpace| SegmentSize {
            name: segment.name,
            extents: segment.extents as u64,
            bytes: segment.bytes,
        };
        segments.map(size).collect()
    }

    fn promise(&self, storage: &Storage) -> Promise {
        promise::kernel::promise(self.engine.settings(), storage)
    }

    fn warnings(&self) -> Vec<String> {
        let dropped = self.engine.fixed_buffers_dropped().into_iter();
        dropped
            .map(|reason| format!("fixed buffers were dropped: {reason}"))
            .collect()
    }
}

impl Engine for KernelUnderTest {
    fn counters(&self) -> &dyn Counters {
        self
    }

    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running {
        let connect = self.engine.connector();
        let tables = self.engine.tables();
        driver::start(env, &self.workload, &tables, behaviour, connect)
    }

    fn check(&self, acknowledged: Vec<Acknowledged>) -> Answer<'_, Result<String, EngineError>> {
        let mut session = self.engine.connector()();
        Box::pin(async move {
            let checked = driver::check(&mut session, &*self.workload, acknowledged).await;
            checked.map_err(lost)
        })
    }

    fn flush(&self) -> Answer<'_, Result<(), EngineError>> {
        Box::pin(async { self.engine.flush().await })
    }

    fn stop(self: Arc<Self>) -> Answer<'static, Result<Written, EngineError>> {
        Box::pin(async move {
            let engine = Arc::into_inner(self).and_then(|this| Arc::into_inner(this.engine));
            let engine = engine.ok_or_else(|| {
                EngineError::new(ErrorKind::Failed, "a client outlived its trial")
            })?;
            engine.stop(Shutdown::Abort).await
        })
    }
}
