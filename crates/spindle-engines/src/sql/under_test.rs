//! A server with a workload loaded, as an [`Engine`].

use std::fs::File;
use std::sync::Arc;

use spindle_io::Env;
use spindle_layout::TreeDirectories;
use spindle_workload::Acknowledged;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::sql::{SqlWork, SqlWorkload};

use super::{RunningServer, Stop};
use crate::engine::{
    Answer, Engine, EngineCounts, EngineWait, Housekeeping, SegmentSize, ThreadOf, Written,
};
use crate::promise::{Promise, Storage};

/// A server at work and the workload that it was loaded for.
pub struct SqlUnderTest {
    server: Arc<dyn RunningServer>,
    workload: Arc<dyn SqlWorkload>,
    /// `None`: an existing server.
    directories: Option<TreeDirectories>,
}

impl SqlUnderTest {
    /// The server, running on its directories, and its workload.
    pub fn new(
        server: Arc<dyn RunningServer>,
        workload: Arc<dyn SqlWorkload>,
        directories: TreeDirectories,
    ) -> SqlUnderTest {
        SqlUnderTest {
            server,
            workload,
            directories: Some(directories),
        }
    }

    /// An existing server, come to, and its workload.
    pub fn foreign(server: Arc<dyn RunningServer>, workload: Arc<dyn SqlWorkload>) -> SqlUnderTest {
        SqlUnderTest {
            server,
            workload,
            directories: None,
        }
    }

    /// Flushes what the server has written and the page cache has not.
    fn flush_files(&self) -> Result<(), String> {
        let Some(directories) = &self.directories else {
            return Ok(());
        };
        let files = directories.files().map_err(|error| error.to_string())?;
        for path in files {
            // What the server has removed meanwhile needs no flush.
            if let Ok(file) = File::open(&path) {
                let flushed = file.sync_data();
                flushed.map_err(|error| format!("flushing {}: {error}", path.display()))?;
            }
        }
        Ok(())
    }
}

impl Engine for SqlUnderTest {
    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running {
        let server = Arc::clone(&self.server);
        let work = SqlWork {
            workload: Arc::clone(&self.workload),
            connect: Box::new(move || server.connect()),
        };
        driver::start_work(env, Arc::new(work), behaviour)
    }

    fn check(&self, acknowledged: Vec<Acknowledged>) -> Answer<'_, Result<String, String>> {
        Box::pin(async move {
            let connected = self.server.connect();
            let mut connection = connected.map_err(|error| error.to_string())?;
            self.workload.check(&mut *connection, &acknowledged)
        })
    }

    fn counts(&self) -> EngineCounts {
        self.server.counts()
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.server.waits()
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.server.session_waits()
    }

    fn waits_are_sampled(&self) -> bool {
        self.server.waits_are_sampled()
    }

    fn housekeeping(&self) -> Housekeeping {
        self.server.housekeeping()
    }

    fn dirty_bytes(&self) -> u64 {
        self.server.dirty_bytes()
    }

    fn failure(&self) -> Option<String> {
        self.server.failure()
    }

    fn segments(&self) -> Vec<SegmentSize> {
        self.server.segments()
    }

    fn processes(&self) -> Vec<u32> {
        self.server.processes()
    }

    fn is_foreign(&self) -> bool {
        self.directories.is_none()
    }

    fn session_threads(&self) -> Vec<ThreadOf> {
        self.server.session_threads()
    }

    fn promise(&self, storage: &Storage) -> Promise {
        self.server.promise(storage)
    }

    fn warnings(&self) -> Vec<String> {
        self.server.warnings()
    }

    fn flush(&self) -> Answer<'_, Result<(), String>> {
        Box::pin(async { self.flush_files() })
    }

    fn stop(self: Arc<Self>) -> Answer<'static, Result<Written, String>> {
        Box::pin(async move {
            let stopped = self.server.stop(Stop::Kill);
            stopped.map_err(|error| error.to_string())?;
            Ok(Vec::new())
        })
    }
}
