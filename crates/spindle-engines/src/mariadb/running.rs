//! A server at work.

use std::fs::File;
use std::sync::atomic::AtomicBool;

use spindle_text::load_file::Dump;
use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::connection::{Access, MariaDbConnection};
use super::hindrances::LIFT_LIMITS;
use super::kept::{Where, promise_of};
use super::monitor::{Monitor, cache};
use super::tables::quoted;
use crate::EngineError;
use crate::engine::{CacheCounts, Counters, EngineCounts, EngineWait, SegmentSize, ThreadOf};
use crate::promise::{CommitStorage, Promise};
use crate::sql::child_server::ChildServer;
use crate::sql::{RunningServer, ServerStop};

/// Restores a dump.
type Restore = Box<dyn Fn(&Dump, &AtomicBool) -> Result<(), EngineError> + Send + Sync>;

/// A server at work. It ends when this is dropped.
pub(super) struct RunningMariaDb {
    process: ChildServer,
    access: Access,
    /// The database that its sessions are in.
    database: String,
    monitor: Monitor,
    restore: Restore,
    /// Of its datafiles, held as long as it runs.
    _devices: Vec<File>,
}

impl RunningMariaDb {
    /// A server that takes connections.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn new(
        process: ChildServer,
        access: Access,
        database: String,
        restore: Restore,
        devices: Vec<File>,
    ) -> Result<RunningMariaDb, EngineError> {
        let monitor = Monitor::new(&access)?;
        Ok(RunningMariaDb {
            process,
            access,
            database,
            monitor,
            restore,
            _devices: devices,
        })
    }

    /// Has the server look through every table and index of the workload's database; what was found, in words.
    ///
    /// # Errors
    /// `Failed`: something is wrong with one.
    pub fn check_tables(&self) -> Result<String, EngineError> {
        let tables = self.monitor.tables(&self.database)?;
        let mut connection = self.connect()?;
        let mut wrong = Vec::new();
        for table in &tables {
            let check = format!("check table {} extended", quoted(table));
            let asked = connection.ask(&check, &mut |row| {
                let (kind, text) = (row.text(2)?, row.text(3)?);
                if (kind.as_str(), text.as_str()) != ("status", "OK") {
                    wrong.push(format!("{table}: {kind}: {text}"));
                }
                Ok(())
            });
            if let Err(error) = asked {
                // A server that finds a page damaged may end itself.
                let reason = self.failure().unwrap_or_else(|| error.into());
                return Err(EngineError::failed(format!("check table {table}"), reason));
            }
        }
        match wrong.is_empty() {
            true => Ok(format!(
                "check table found nothing wrong in {} tables",
                tables.len()
            )),
            false => Err(EngineError::failed("check table", wrong.join("; "))),
        }
    }
}

impl Counters for RunningMariaDb {
    fn counts(&self) -> Option<EngineCounts> {
        self.monitor.counts()
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.monitor.found().waits()
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.monitor.found().session_waits()
    }

    fn cache(&self) -> Option<CacheCounts> {
        cache(&self.monitor.found())
    }

    fn dirty_bytes(&self) -> Option<u64> {
        let found = self.monitor.found();
        found.told("innodb_buffer_pool_bytes_dirty")
    }

    fn failure(&self) -> Option<EngineError> {
        self.process.ended()
    }

    fn segments(&self) -> Vec<SegmentSize> {
        self.monitor.segments(&self.database)
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process.process_id()]
    }

    fn session_threads(&self) -> Vec<ThreadOf> {
        let threads = self.monitor.session_threads().into_iter();
        let of_server = |thread_id| ThreadOf {
            process_id: self.process.process_id(),
            thread_id,
        };
        threads.map(of_server).collect()
    }

    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise {
        promise_of(self.connect(), Where::Server, storage, sent)
    }
}

impl RunningServer for RunningMariaDb {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let process_id = Some(self.process.process_id());
        let connection = MariaDbConnection::new(self.access.connect()?, process_id);
        Ok(Box::new(connection.reached_by(&self.access)))
    }

    fn connect_unlimited(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let mut connection = self.connect()?;
        connection.run(LIFT_LIMITS)?;
        Ok(connection)
    }

    fn restore(&self, dump: &Dump, interrupted: &AtomicBool) -> Result<(), EngineError> {
        (self.restore)(dump, interrupted)
    }

    fn check_ended(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        let mut left = 0;
        connection.ask("xa recover", &mut |_| {
            left += 1;
            Ok(())
        })?;
        match left {
            0 => Ok(()),
            _ => Err(EngineError::failed(
                "loading",
                "a prepared transaction is left open, which would keep its locks in every trial: end it with XA COMMIT",
            )),
        }
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        for table in self.monitor.tables(&self.database)? {
            connection.ask(
                &format!("analyze table {}", quoted(&table)),
                &mut |_| Ok(()),
            )?;
        }
        Ok(())
    }

    fn stop(&self, how: ServerStop) -> Result<(), EngineError> {
        self.process.stop(how)
    }
}
