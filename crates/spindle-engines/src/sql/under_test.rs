//! A server with a workload loaded, as an [`RunningEngine`].

use std::fs::File;
use std::sync::Arc;

use spindle_io::Env;
use spindle_layout::TreeDirectories;
use spindle_workload::Acknowledged;
use spindle_workload::driver::{self, Behaviour, Running};
use spindle_workload::sql::pause::Pauses;
use spindle_workload::sql::timed::StatementTimes;
use spindle_workload::sql::{KeptAnswer, SqlWork, SqlWorkload};

use super::{RunningServer, ServerStop};
use crate::EngineError;
use crate::engine::{Counters, EngineFuture, RunningEngine, Written};
use crate::promise::scripts::words;
use crate::promise::{CommitStorage, Promise};

/// A server at work and the workload that it was loaded for.
pub struct SqlUnderTest {
    server: Arc<dyn RunningServer>,
    workload: Arc<dyn SqlWorkload>,
    /// `None`: a server that runs already.
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
    pub fn remote(server: Arc<dyn RunningServer>, workload: Arc<dyn SqlWorkload>) -> SqlUnderTest {
        SqlUnderTest {
            server,
            workload,
            directories: None,
        }
    }

    /// Flushes what the server has written and the page cache has not.
    fn flush_files(&self) -> Result<(), EngineError> {
        let Some(directories) = &self.directories else {
            return Ok(());
        };
        for path in directories.files()? {
            // What the server has removed meanwhile needs no flush.
            if let Ok(file) = File::open(&path) {
                let flushed = file.sync_data();
                let what = || format!("flushing {}", path.display());
                flushed.map_err(|error| EngineError::failed(what(), error))?;
            }
        }
        Ok(())
    }
}

impl RunningEngine for SqlUnderTest {
    fn counters(&self) -> &dyn Counters {
        &*self.server
    }

    fn kept_answers(&self) -> Vec<KeptAnswer> {
        self.workload.kept_answers()
    }

    fn promise(&self, storage: &CommitStorage) -> Promise {
        // A server that takes no connection promises nothing.
        let dialect = self.server.connect().map(|connection| connection.dialect());
        let sent = dialect.map(|dialect| self.workload.sent_with(&words(dialect), dialect));
        self.server.promise(storage, &sent.unwrap_or_default())
    }

    fn start_clients(&self, env: &Arc<dyn Env>, behaviour: Behaviour) -> Running {
        let server = Arc::clone(&self.server);
        let work = SqlWork {
            workload: Arc::clone(&self.workload),
            connect: Box::new(move || server.connect()),
            env: Arc::clone(env),
            times: StatementTimes::default(),
            pauses: Pauses::default(),
        };
        driver::start_work(env, Arc::new(work), behaviour)
    }

    fn check(
        &self,
        acknowledged: Vec<Acknowledged>,
    ) -> EngineFuture<'_, Result<String, EngineError>> {
        Box::pin(async move {
            let mut connection = self.server.connect_unlimited()?;
            Ok(self.workload.check(&mut *connection, &acknowledged)?)
        })
    }

    fn flush(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async { self.flush_files() })
    }

    fn stop(self: Arc<Self>) -> EngineFuture<'static, Result<Written, EngineError>> {
        Box::pin(async move {
            self.server.stop(ServerStop::Kill)?;
            Ok(Vec::new())
        })
    }
}
