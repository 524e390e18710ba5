//! A server at work: connected to through its socket, watched by one connection that looks at its waits and one that
//! asks for its counts.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use spindle_text::load_file::Dump;
use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::cluster::{Cluster, INDEX_TABLESPACE, PORT, SUPERUSER};
use super::connection::{Backends, PostgresConnection};
use super::counts::Statistics;
use super::hindrances::lift_limits;
use super::kept::promise_of;
use super::programs::Programs;
use super::restore;
use super::settings::PostgresSettings;
use super::stream::Stream;
use super::waits::{WaitSampler, Whose};
use super::wire::Login;
use crate::EngineError;
use crate::engine::{
    CacheCounts, Counters, EngineCounts, EngineWait, Housekeeping, SegmentSize, ThreadOf,
};
use crate::promise::{CommitStorage, Promise};
use crate::sql::child_server::{ChildServer, Habits};
use crate::sql::encryption::ChannelBinding;
use crate::sql::{Purpose, RunningServer, SchemaKind, ServerStop};

/// Recovery from a crash takes as long as its redo is long.
const START_LIMIT: Duration = Duration::from_secs(1800);
const START_LOOK: Duration = Duration::from_millis(10);
/// "Fast" and "immediate" shutdown (https://www.postgresql.org/docs/current/server-shutdown.html). The postmaster, as
/// PostgreSQL calls a server's first process, itself kills what has not ended five seconds after it said so.
const HABITS: Habits = Habits {
    name: "PostgreSQL",
    in_order: Signal::INT,
    at_once: Signal::QUIT,
    at_once_limit: Duration::from_secs(15),
    error_mark: None,
};

/// The way to a server's socket. A socket's path may be no longer than 107 bytes (unix(7)), and a layout's may be any:
/// it is reached through the open directory.
struct Access {
    run: File,
    login: Login,
}

impl Access {
    fn to(cluster: &Cluster, programs: &Programs) -> Result<Access, EngineError> {
        let path = cluster.run();
        let run = programs.as_server(|| File::open(&path))?;
        Ok(Access {
            run: run.map_err(|error| {
                EngineError::failed(format!("opening {}", path.display()), error)
            })?,
            login: Login {
                user: SUPERUSER.to_owned(),
                password: Some(cluster.password(programs)?),
                database: cluster.database(programs)?,
                application: "spindle".to_owned(),
                channel_binding: ChannelBinding::Disable,
            },
        })
    }

    fn connect(&self, backends: Option<&Backends>) -> Result<PostgresConnection, SessionError> {
        let directory = PathBuf::from(format!("/proc/self/fd/{}", self.run.as_raw_fd()));
        let socket = directory.join(format!(".s.PGSQL.{PORT}"));
        let stream = Stream::to_socket(&socket)?;
        PostgresConnection::connect(stream, &self.login, backends.cloned())
    }
}

/// A server at work.
pub(super) struct RunningPostgres {
    /// Before the server, so that nothing is connected when it is dropped.
    sampler: WaitSampler,
    counters: Statistics,
    access: Access,
    backends: Backends,
    postmaster: ChildServer,
    cluster: Cluster,
    programs: Programs,
    purpose: Purpose,
    is_stopped: Mutex<bool>,
}

impl RunningPostgres {
    /// Starts a cluster where it is, and waits until it takes connections.
    ///
    /// # Errors
    /// `Failed`; no process is left.
    pub fn start(
        cluster: Cluster,
        settings: &PostgresSettings,
        programs: Programs,
        purpose: Purpose,
    ) -> Result<RunningPostgres, EngineError> {
        cluster.make_ready(settings, purpose, &programs)?;
        let access = Access::to(&cluster, &programs)?;
        let postmaster = start_postmaster(&cluster, &programs)?;
        let first = wait_until_ready(&access, &postmaster)?;
        let counters = Statistics::new(first, programs.major)?;
        let sampler = WaitSampler::start(access.connect(None)?, Whose::All);
        let sampler = sampler.map_err(|error| {
            EngineError::failed("starting the thread that looks at waits", error)
        })?;
        Ok(RunningPostgres {
            sampler,
            counters,
            access,
            backends: Backends::default(),
            postmaster,
            cluster,
            programs,
            purpose,
            is_stopped: Mutex::new(false),
        })
    }

    /// Connects a client, as what it is.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn connect_client(&self) -> Result<PostgresConnection, SessionError> {
        let connection = self.access.connect(Some(&self.backends))?;
        Ok(connection.with_log(self.cluster.log(&self.programs)))
    }

    /// Makes the cluster's tablespaces. Errors: see [`Cluster::create_tablespaces`].
    pub fn create_tablespaces(
        &self,
        connection: &mut PostgresConnection,
    ) -> Result<(), EngineError> {
        self.cluster.create_tablespaces(connection, &self.programs)
    }
}

fn start_postmaster(cluster: &Cluster, programs: &Programs) -> Result<ChildServer, EngineError> {
    let log = cluster.open_log(programs)?;
    let again = log.try_clone();
    let again = again.map_err(|error| EngineError::failed("opening the server's log", error))?;
    let mut command = programs.command_of_thread("postgres");
    command.arg("-D").arg(cluster.data());
    command.stdout(again).stderr(log);
    let program = programs.path("postgres");
    ChildServer::start(
        &HABITS,
        command,
        &program,
        &cluster.data(),
        cluster.log(programs),
    )
}

fn wait_until_ready(
    access: &Access,
    postmaster: &ChildServer,
) -> Result<PostgresConnection, EngineError> {
    let began = Instant::now();
    loop {
        if let Some(reason) = postmaster.ended() {
            return Err(EngineError::failed("starting PostgreSQL", reason));
        }
        match access.connect(None) {
            Ok(connection) => return Ok(connection),
            // It is not there yet, or recovers.
            Err(error) if error.is_lost() && began.elapsed() > START_LIMIT => {
                return Err(EngineError::failed("starting PostgreSQL", error));
            }
            Err(error) if error.is_lost() => std::thread::sleep(START_LOOK),
            Err(error) => return Err(error.into()),
        }
    }
}

impl Counters for RunningPostgres {
    fn counts(&self) -> Option<EngineCounts> {
        self.counters.io()
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.sampler.waits(false)
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.sampler.waits(true)
    }

    fn waits_are_sampled(&self) -> bool {
        true
    }

    fn housekeeping(&self) -> Option<Housekeeping> {
        self.counters.housekeeping()
    }

    fn cache(&self) -> Option<CacheCounts> {
        self.counters.cache()
    }

    fn failure(&self) -> Option<EngineError> {
        self.postmaster.ended()
    }

    fn segments(&self) -> Vec<SegmentSize> {
        self.counters.segments()
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.postmaster.process_id()]
    }

    fn session_threads(&self) -> Vec<ThreadOf> {
        let backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = backends.iter().map(|id| ThreadOf {
            process_id: *id,
            thread_id: *id,
        });
        threads.collect()
    }

    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise {
        promise_of(self.connect_client(), SchemaKind::Database, storage, sent)
    }
}

impl RunningServer for RunningPostgres {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        Ok(Box::new(self.connect_client()?))
    }

    fn connect_unlimited(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let mut connection = self.connect_client()?;
        lift_limits(&mut connection);
        Ok(Box::new(connection))
    }

    fn restore(&self, dump: &Dump, interrupted: &AtomicBool) -> Result<(), EngineError> {
        let to = (&self.access.run, &self.access.login);
        restore::restore(&self.programs, to, dump, interrupted)
    }

    fn before_indexes(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        connection.run(&format!("set default_tablespace = {INDEX_TABLESPACE}"))?;
        Ok(())
    }

    fn check_ended(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        Ok(super::prepared::check(connection, SchemaKind::Database)?)
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        connection.run("vacuum (analyze)")?;
        connection.run("checkpoint")?;
        Ok(())
    }

    fn stop(&self, how: ServerStop) -> Result<(), EngineError> {
        let mut is_stopped = self
            .is_stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_stopped, true) {
            return Ok(());
        }
        self.sampler.stop();
        self.counters.stop();
        self.postmaster.stop(how)?;
        // A server for loading flushes nothing itself.
        match (how, self.purpose) {
            (ServerStop::Clean, Purpose::Load) => self.cluster.flush(&self.programs),
            _ => Ok(()),
        }
    }
}
