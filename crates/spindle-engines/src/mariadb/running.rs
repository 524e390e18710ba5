//! A server at work.

use std::fs::File;
use std::time::Duration;

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::connection::{Access, DATABASE, MariaDbConnection};
use super::monitor::{Monitor, counts};
use super::process::Process;
use super::settings::in_force;
use crate::engine::{EngineCounts, EngineWait, Housekeeping, SegmentSize, ThreadOf};
use crate::promise::{self, Promise, Storage};
use crate::sql::{RunningServer, ServerError, Stop};

/// How long a server may take to end in order: it writes all that is changed, and purges.
const STOP_PATIENCE: Duration = Duration::from_secs(1800);

/// A server at work. It ends when this is dropped.
pub(super) struct RunningMariaDb {
    process: Process,
    access: Access,
    monitor: Monitor,
    /// Of its datafiles, held as long as it runs.
    _devices: Vec<File>,
}

impl RunningMariaDb {
    /// A server that takes connections.
    ///
    /// # Errors
    /// [`ServerError::Session`].
    pub fn new(
        process: Process,
        access: Access,
        devices: Vec<File>,
    ) -> Result<RunningMariaDb, ServerError> {
        let monitor = Monitor::new(&access)?;
        Ok(RunningMariaDb {
            process,
            access,
            monitor,
            _devices: devices,
        })
    }

    /// Has the server look through every table and index of the workload's database; what was found, for people.
    ///
    /// # Errors
    /// [`ServerError::Failed`]: something is wrong with one.
    pub fn check_tables(&self) -> Result<String, ServerError> {
        let tables = self.monitor.tables(DATABASE)?;
        let mut connection = self.connect()?;
        let mut wrong = Vec::new();
        for table in &tables {
            let asked = connection.ask(&format!("check table `{table}` extended"), &mut |row| {
                let (kind, text) = (row.text(2)?, row.text(3)?);
                if (kind.as_str(), text.as_str()) != ("status", "OK") {
                    wrong.push(format!("{table}: {kind}: {text}"));
                }
                Ok(())
            });
            if let Err(error) = asked {
                // A server that finds a page damaged may end itself.
                let words = self.failure().unwrap_or_else(|| error.to_string());
                return Err(ServerError::failed(format!("check table {table}"), words));
            }
        }
        match wrong.is_empty() {
            true => Ok(format!(
                "check table found nothing wrong in {} tables",
                tables.len()
            )),
            false => Err(ServerError::failed("check table", wrong.join("; "))),
        }
    }
}

impl RunningServer for RunningMariaDb {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        Ok(Box::new(MariaDbConnection::new(
            self.access.connect()?,
            Some(self.process.id()),
        )))
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), ServerError> {
        for table in self.monitor.tables(DATABASE)? {
            connection.ask(&format!("analyze table `{table}`"), &mut |_| Ok(()))?;
        }
        Ok(())
    }

    fn counts(&self) -> EngineCounts {
        counts(&self.monitor.found())
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.monitor.found().waits()
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.monitor.found().session_waits()
    }

    fn housekeeping(&self) -> Housekeeping {
        // InnoDB's checkpoints come all the time and are not counted.
        Housekeeping::default()
    }

    fn dirty_bytes(&self) -> u64 {
        self.monitor
            .found()
            .number("innodb_buffer_pool_bytes_dirty")
    }

    fn failure(&self) -> Option<String> {
        self.process.last_words()
    }

    fn segments(&self) -> Vec<SegmentSize> {
        self.monitor.segments(DATABASE)
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process.id()]
    }

    fn session_threads(&self) -> Vec<ThreadOf> {
        let threads = self.monitor.session_threads().into_iter();
        let of_server = |thread_id| ThreadOf {
            process_id: self.process.id(),
            thread_id,
        };
        threads.map(of_server).collect()
    }

    fn promise(&self, storage: &Storage) -> Promise {
        let told = self.connect().map(|mut session| in_force(&mut *session));
        promise::innodb::promise(&told.unwrap_or_default(), storage)
    }

    fn stop(&self, how: Stop) -> Result<(), ServerError> {
        if how == Stop::Kill {
            self.process.kill();
            return Ok(());
        }
        self.process.terminate();
        match self.process.wait(STOP_PATIENCE) {
            Some(status) if status.success() => Ok(()),
            Some(_) => {
                let words = self.process.last_words().unwrap_or_default();
                Err(ServerError::failed("stopping the server", words))
            }
            None => {
                self.process.kill();
                let reason = "it did not end in half an hour";
                Err(ServerError::failed("stopping the server", reason))
            }
        }
    }
}
