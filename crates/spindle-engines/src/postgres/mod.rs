//! PostgreSQL: an installed server, run on its own cluster that lies in the layout's directories. `programs` finds
//! it, `settings` has it check what the experiment sets, `cluster` is its files, `stream`, `wire`, `values` and
//! `connection` the client, `temporary` what its queries spill, `restore` loads dumps, `copied` makes a cluster of
//! another's files, whose `control` file it reads, `running` is a server at work with `counts` and `waits`. `foreign`
//! is an existing one, `encryption` the way to it, `sessions` what it keeps of them. `prepared` are transactions that
//! outlive theirs, `hindrances` what keeps a run from its end.

mod cluster;
mod connection;
mod control;
mod copied;
mod counts;
mod encryption;
mod foreign;
mod hindrances;
mod kept;
mod prepared;
mod programs;
mod restore;
mod running;
mod sessions;
mod settings;
mod stream;
mod survey;
mod template;
mod temporary;
mod values;
mod verify;
mod waits;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_layout::TreeDirectories;
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::Dump;
use spindle_text::vocabulary;
use spindle_workload::sql::Dialect;

use crate::EngineError;
use crate::sql::{
    ComparableSettings, FoundServer, Purpose, RunningServer, Server, ServerIo, ServerRequest,
    ServerRoom, ServerStop,
};
use cluster::Cluster;
use programs::Programs;
use running::RunningPostgres;
use settings::PostgresSettings;

/// Memory of the server beside its buffer cache, about: shared structures and its own processes.
const SERVER_BYTES: u64 = 64 << 20;
/// Of the process that serves a connection, about: its own pages, its page tables of the buffer cache, `work_mem` once.
const CONNECTION_BYTES: u64 = 10 << 20;
/// An empty cluster, and room for what vacuum has not cleared yet.
const CLUSTER_BYTES: u64 = 64 << 20;

/// PostgreSQL.
pub struct Postgres;

impl Server for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["postgresql"]
    }

    fn file_words(&self) -> &'static [(FileKind, &'static str)] {
        &[(FileKind::Redo, vocabulary::POSTGRES.log)]
    }

    fn comparisons(&self) -> &'static [ComparableSettings] {
        &[
            ComparableSettings {
                word: "log",
                says: "full page images and compression of the write-ahead log",
                asks: "what do full page images and compression of the write-ahead log cost",
                settings: &[
                    ("settings.full_page_writes", &["on", "off"]),
                    ("settings.wal_compression", &["off", "on"]),
                ],
            },
            ComparableSettings {
                word: "flush",
                says: "how the write-ahead log is flushed",
                asks: "which way of flushing the write-ahead log is faster",
                settings: &[("settings.wal_sync_method", &["fdatasync", "open_datasync"])],
            },
        ]
    }

    fn examine(&self, request: &ServerRequest) -> Result<FoundServer, EngineError> {
        let programs = Programs::find(request)?;
        let settings = PostgresSettings::of(request, &programs)?;
        settings.check(&programs)?;
        let mut notes = settings.notes.clone();
        notes.extend(programs.user.as_ref().map(|user| {
            format!(
                "PostgreSQL refuses to run as root: its files belong to the user {0}, and it runs as {0}",
                user.name
            )
        }));
        Ok(FoundServer {
            version: programs.version.clone(),
            settings: settings.described(&programs),
            notes,
        })
    }

    fn examine_dump(
        &self,
        request: &ServerRequest,
        dump: &Dump,
    ) -> Result<Vec<String>, EngineError> {
        let programs = Programs::find(request)?;
        match dump.form.is_of_files() {
            true => copied::examine(&programs, &PostgresSettings::of(request, &programs)?, dump),
            false => restore::examine(&programs, dump).map(|()| Vec::new()),
        }
    }

    fn check_setting(&self, name: &str, value: &str) -> Result<(), EngineError> {
        settings::check_setting(&name.to_lowercase(), value.trim())
    }

    fn check_io(&self, io: ServerIo, _: bool) -> Result<(), EngineError> {
        settings::check_io(io)
    }

    fn placed_kinds(&self) -> &'static [FileKind] {
        &[FileKind::Index, FileKind::Redo, FileKind::Temp]
    }

    fn shapes_files(&self, setting: &str) -> bool {
        settings::shapes_files(setting)
    }

    fn room(&self, request: &ServerRequest) -> ServerRoom {
        let redo_bytes = settings::wal_bytes(request);
        ServerRoom {
            own_bytes: CLUSTER_BYTES,
            redo_bytes,
            // The log is cut back when a checkpoint has ended, so there may be half as much again.
            growth_bytes: request.data_bytes / 2 + redo_bytes / 2,
        }
    }

    fn overhead_bytes(&self, request: &ServerRequest) -> u64 {
        SERVER_BYTES + u64::from(request.clients) * CONNECTION_BYTES
    }

    fn create(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<(), EngineError> {
        let programs = Programs::find(request)?;
        let settings = PostgresSettings::of(request, &programs)?;
        let cluster = Cluster::of(directories)?;
        cluster.create(&settings, &programs)?;
        let running = RunningPostgres::start(cluster, &settings, programs, Purpose::Load)?;
        let mut connection = running.connect_client()?;
        running.create_tablespaces(&mut connection)?;
        drop(connection);
        running.stop(ServerStop::Clean)
    }

    fn adopt(
        &self,
        request: &ServerRequest,
        dump: &Dump,
        directories: &TreeDirectories,
        interrupted: &AtomicBool,
    ) -> Result<(), EngineError> {
        let programs = Programs::find(request)?;
        let settings = PostgresSettings::of(request, &programs)?;
        let cluster = Cluster::of(directories)?;
        let looked = copied::look(&programs, &settings, dump)?;
        cluster.take(dump, &looked, &programs, interrupted)?;
        copied::open_up(&programs, &settings, (&cluster, &looked), dump, interrupted)?;
        cluster.note_database(copied::TEMPLATE, &programs)?;
        let running =
            RunningPostgres::start(cluster.clone(), &settings, programs.clone(), Purpose::Load)?;
        let mut connection = running.connect_client()?;
        let database = copied::database(&mut connection, request.database.as_deref(), dump)?;
        running.create_tablespaces(&mut connection)?;
        drop(connection);
        running.stop(ServerStop::Clean)?;
        cluster.note_database(&database, &programs)
    }

    fn start(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError> {
        let programs = Programs::find(request)?;
        let settings = PostgresSettings::of(request, &programs)?;
        let cluster = Cluster::of(directories)?;
        let running = RunningPostgres::start(cluster, &settings, programs, purpose)?;
        Ok(Arc::new(running))
    }

    fn verify(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<String, EngineError> {
        verify::verify(self, request, directories)
    }
}
