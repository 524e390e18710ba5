//! An existing PostgreSQL, or a database that speaks its protocol. Everything is done in Spindle's own schema, whose
//! comment is its token, or in its own databases, which are in [`super::template`]. What such a server does not know of
//! PostgreSQL's views is not known then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use spindle_workload::sql::{Ours, SqlConnection};
use spindle_workload::{Complaint, SessionError};

use super::Postgres;
use super::connection::PostgresConnection;
use super::counts::Statistics;
use super::encryption::connect;
use super::kept::promise_of;
use super::waits::{WaitSampler, Whose};
use super::{hindrances, prepared, sessions, survey, template};
use crate::EngineError;
use crate::engine::{Counters, EngineCounts, EngineWait, Housekeeping, SegmentSize};
use crate::promise::{CommitStorage, Promise};
use crate::sql::reader::{ReadOnly, Reader};
use crate::sql::survey::ServerSurvey;
use crate::sql::tls;
use crate::sql::{
    Address, Copying, ForeignServer, FoundServer, Password, Purpose, RunningServer, Schema,
    SchemaGone, SchemaKind, ServerHome, ServerStop, UNTOLD,
};

/// What a server is asked of its settings: what matters to storage.
const SETTINGS: &str = "select name, current_setting(name) from pg_settings where name in ('shared_buffers', \
     'effective_io_concurrency', 'io_method', 'debug_io_direct', 'fsync', 'synchronous_commit', 'full_page_writes', \
     'wal_sync_method', 'max_wal_size', 'checkpoint_timeout', 'data_checksums', 'wal_level', \
     'synchronous_standby_names', 'autovacuum') order by name";
/// The directory that it works in comes first; a user who may not see it sees where tablespaces are.
const DIRECTORIES: &str = "select setting from pg_settings where name = 'data_directory' union all \
     select setting || '/pg_wal' from pg_settings where name = 'data_directory' union all \
     select pg_tablespace_location(oid) from pg_tablespace where pg_tablespace_location(oid) <> ''";
/// What its program is called.
const PROGRAMS: [&str; 2] = ["postgres", "postmaster"];
/// Another transaction may hold what is to be dropped, but not indefinitely.
pub(super) const PATIENCE: &str = "set lock_timeout = '60s'";
/// Begins to read: changes are refused, texts are as the standard has them, and waits are short.
const READ_ONLY: &str = "begin transaction read only; set local standard_conforming_strings = on; \
     set local statement_timeout = '60s'; set local lock_timeout = '5s'";
/// What is said where a server accepts no proof of the password.
const TOLD: &str = "the server asks for the password as it is written";
/// How long a server that starts is waited for; [`LOOK`] is how often it is asked.
const STARTING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);
/// The version that a server is taken for that does not tell.
const OLDEST: u32 = 13;

impl ForeignServer for Postgres {
    fn look(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<FoundServer, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let mut connection = connect(address, password, "spindle").map_err(refused)?;
        let version = text(&mut connection, "select version()").map_err(refused)?;
        let come = || connect(address, password, "spindle");
        sessions::check_kept(&mut connection, come).map_err(refused)?;
        hindrances::check(&mut connection, address)?;
        let may = "select (has_database_privilege(current_database(), 'CREATE') or coalesce((select rolcreatedb or rolsuper \
                   from pg_roles where rolname = current_user), false))::int";
        // A server that does not know the question will refuse when a schema is made.
        if number(&mut connection, may) == Ok(Some(0)) {
            let database = address.database.as_deref().unwrap_or_default();
            return Err(EngineError::unavailable(format!(
                "{address}: the user {0} may make no schema there; as its owner: grant create on database \"{database}\" to \
                 \"{0}\"; or as a superuser: alter role \"{0}\" createdb",
                address.user
            )));
        }
        let mut settings = Vec::new();
        let mut notes = Vec::new();
        let encryption = connection.encryption();
        notes.extend(encryption.map(|version| tls::described(&address.encryption, &version)));
        if connection.told_password() {
            notes.push(TOLD.to_owned());
        }
        let asked = connection.ask(SETTINGS, &mut |row| {
            let (name, value) = (row.text(0)?, row.text(1)?);
            if !value.is_empty() {
                settings.push(format!("{name} = {value}"));
            }
            Ok(())
        });
        if asked.is_err() {
            notes.push("this server does not tell its settings".to_owned());
        }
        let limits = hindrances::limits(&mut connection).into_iter();
        notes.extend(limits.map(|limit| format!("{}: {}", limit.setting, limit.effect())));
        let major = major_of(&mut connection);
        let statistics = Statistics::new(connection, major);
        notes.push(match statistics.is_ok_and(|told| told.io().is_some()) {
            true => "its counts are of the whole server, other users included".to_owned(),
            false => UNTOLD.to_owned(),
        });
        Ok(FoundServer {
            version: version.unwrap_or_else(|| "a server of an unknown version".to_owned()),
            settings,
            notes,
        })
    }

    fn survey(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerSurvey, EngineError> {
        survey::survey(address, password, SETTINGS)
    }

    fn home(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerHome, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let mut connection = connect(address, password, "spindle").map_err(refused)?;
        let mut home = ServerHome::of_programs(&PROGRAMS);
        // Others that speak the protocol have none to tell.
        let _ = connection.ask(DIRECTORIES, &mut |row| {
            home.directories.push(row.text(0)?.into());
            Ok(())
        });
        Ok(home)
    }

    fn may_copy(
        &self,
        address: &Address,
        password: Option<&Password>,
        copying: Copying,
    ) -> Result<(), EngineError> {
        let asked = |error| EngineError::failed(address, &error);
        let mut connection = connect(address, password, "spindle").map_err(asked)?;
        template::may_copy(&mut connection, address, copying)?;
        match sessions::others_reached(&mut connection, address, password) {
            Some(Err(error)) => Err(EngineError::unavailable(format!(
                "no other database is reached at {address} ({error}), as behind a pool of connections that knows one"
            ))),
            _ => Ok(()),
        }
    }

    fn copy(
        &self,
        loaded: &Schema,
        schema: &Schema,
        copying: Copying,
    ) -> Result<&'static str, EngineError> {
        let copied = come_to_server(schema)
            .and_then(|mut connection| template::copy(&mut connection, loaded, schema, copying));
        copied.map_err(|error| failed("copying", schema, &error))
    }

    fn end_sessions(&self, schema: &Schema) -> Result<(), EngineError> {
        let ended = come_to_server(schema)
            .and_then(|mut connection| template::end_sessions(&mut connection, schema));
        ended.map_err(|error| failed("ending sessions of", schema, &error))
    }

    fn reader(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<Box<dyn Reader>, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let connection = connect(address, password, "spindle import").map_err(refused)?;
        let begin = READ_ONLY;
        Ok(Box::new(ReadOnly { connection, begin }))
    }

    fn writer(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<Box<dyn SqlConnection>, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let mut connection = connect(address, password, "spindle export").map_err(refused)?;
        hindrances::check_writable(&mut connection, address)?;
        Ok(Box::new(connection))
    }

    fn close(&self, loaded: &Schema) -> Result<(), EngineError> {
        let closed = come_to_server(loaded)
            .and_then(|mut connection| template::close(&mut connection, loaded));
        closed.map_err(|error| failed("closing", loaded, &error))
    }

    fn make(&self, schema: &Schema) -> Result<(), EngineError> {
        let failed = |error: SessionError| failed("making", schema, &error);
        if schema.kind == SchemaKind::Database {
            let mut connection = come_to_server(schema).map_err(failed)?;
            return template::make(&mut connection, schema).map_err(failed);
        }
        let mut connection = come_unlimited(schema).map_err(failed)?;
        let Schema { name, token, .. } = schema;
        let made = connection
            .begin()
            .and_then(|()| connection.run(&format!("create schema {name}")))
            .and_then(|()| connection.run(&format!("comment on schema {name} is '{token}'")))
            .and_then(|()| connection.commit());
        made.map_err(|error| failed(with_what_is_needed(error)))?;
        let path =
            come_unlimited(schema).and_then(|mut inside| sessions::check_path(&mut inside, name));
        path.map_err(|error| {
            // It was made just now, and nothing is in it.
            let _ = connection.run(&format!("drop schema {name}"));
            failed(error)
        })
    }

    fn drop_schema(&self, schema: &Schema) -> Result<SchemaGone, EngineError> {
        let failed = |error| failed("dropping", schema, &error);
        if schema.kind == SchemaKind::Database {
            let mut connection = once_up(|| come_to_server(schema), STARTING).map_err(failed)?;
            return template::drop_database(&mut connection, schema, || come_unlimited(schema))
                .map_err(failed);
        }
        let mut connection = once_up(|| come_unlimited(schema), STARTING).map_err(failed)?;
        let name = &schema.name;
        let asked = format!(
            "select coalesce(obj_description(oid, 'pg_namespace'), '') from pg_namespace where nspname = '{name}'"
        );
        match text(&mut connection, &asked).map_err(failed)? {
            None => return Ok(SchemaGone::WasNot),
            Some(token) if token != schema.token => return Ok(SchemaGone::NotOurs),
            Some(_) => {}
        }
        // A server that does not know it waits as long as it takes.
        let _ = connection.run(PATIENCE);
        prepared::undo_all(&mut connection, SchemaKind::Schema, name);
        let dropped = connection.run(&format!("drop schema {name} cascade"));
        dropped.map_err(failed)?;
        Ok(SchemaGone::Dropped)
    }

    fn others(&self, schema: &Schema) -> Result<Vec<String>, EngineError> {
        let found =
            come_to_server(schema).and_then(|mut connection| others(&mut connection, schema));
        found.map_err(|error| failed("looking beside", schema, &error))
    }

    fn open(
        &self,
        schema: &Schema,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError> {
        let failed = |error| failed("coming to", schema, &error);
        let watch = match purpose {
            Purpose::Load => None,
            Purpose::Trial => {
                let mut counting = come_unlimited(schema).map_err(failed)?;
                let major = major_of(&mut counting);
                let looking = come_unlimited(schema).map_err(failed)?;
                let sampler = WaitSampler::start(looking, Whose::Own).map_err(|error| {
                    EngineError::failed("starting the thread that looks at waits", error)
                })?;
                Some(Watch {
                    sampler,
                    // It may not tell them.
                    counters: Statistics::new(counting, major).ok(),
                })
            }
        };
        Ok(Arc::new(ForeignPostgres {
            watch: Mutex::new(watch),
            schema: schema.clone(),
        }))
    }
}

/// An error of a server that says neither what a right is nor that a name is taken, with what a run needs.
fn with_what_is_needed(error: SessionError) -> SessionError {
    match error {
        SessionError::Failed(text) => SessionError::Failed(format!(
            "{text}; a run needs create schema and comment on schema in one transaction"
        )),
        other => other,
    }
}

fn failed(what: &str, schema: &Schema, error: &SessionError) -> EngineError {
    let kind = match schema.kind {
        SchemaKind::Schema => "schema",
        SchemaKind::Database => "database",
    };
    let what = format!("{what} the {kind} {} on {}", schema.name, schema.address);
    EngineError::failed(what, error)
}

/// Comes to work in a schema, made or not, or in a database that is made. Sessions bear its name, by which they and
/// their waits are known.
fn come_to(schema: &Schema) -> Result<PostgresConnection, SessionError> {
    let Schema { address, name, .. } = schema;
    let password = schema.password.as_ref();
    if schema.kind == SchemaKind::Database {
        let address = Address {
            database: Some(name.clone()),
            ..address.clone()
        };
        return connect(&address, password, name);
    }
    let mut connection = connect(address, password, name)?;
    connection.run(&format!("set search_path = {name}"))?;
    Ok(connection)
}

/// The same for sessions that measure nothing: no limit of time ends what they do.
fn come_unlimited(schema: &Schema) -> Result<PostgresConnection, SessionError> {
    let mut connection = come_to(schema)?;
    hindrances::lift_limits(&mut connection);
    Ok(connection)
}

/// The same for the database of the address. Sessions bear the schema's name, too.
fn come_to_server(schema: &Schema) -> Result<PostgresConnection, SessionError> {
    let mut connection = connect(&schema.address, schema.password.as_ref(), &schema.name)?;
    hindrances::lift_limits(&mut connection);
    Ok(connection)
}

/// Comes again while a server says that it starts. It does so after a crash, which ends a trial: what the run has there
/// would be left for want of a moment.
fn once_up<T>(
    come: impl Fn() -> Result<T, SessionError>,
    patience: Duration,
) -> Result<T, SessionError> {
    let begin = Instant::now();
    loop {
        match come() {
            Err(error)
                if error.complaint() == Some(Complaint::StartsOrStops)
                    && begin.elapsed() < patience =>
            {
                std::thread::sleep(LOOK);
            }
            decided => return decided,
        }
    }
}

/// Those of the database of the address; a database of Spindle's own has no others.
fn others(
    connection: &mut dyn SqlConnection,
    schema: &Schema,
) -> Result<Vec<String>, SessionError> {
    let mut found = Vec::new();
    let asked = format!(
        "select lower(nspname::text) from pg_catalog.pg_namespace where nspname not in ('{}', 'pg_catalog', \
         'information_schema') and nspname !~ '^pg_t'",
        schema.name
    );
    if schema.kind == SchemaKind::Schema {
        connection.ask(&asked, &mut |row| {
            found.push(row.text(0)?);
            Ok(())
        })?;
    }
    Ok(found)
}

/// The text of the first row; `None` without rows.
pub(super) fn text(
    connection: &mut PostgresConnection,
    sql: &str,
) -> Result<Option<String>, SessionError> {
    let mut answer = None;
    connection.ask(sql, &mut |row| {
        answer = Some(row.text(0)?);
        Ok(())
    })?;
    Ok(answer)
}

pub(super) fn number(
    connection: &mut PostgresConnection,
    sql: &str,
) -> Result<Option<i64>, SessionError> {
    let mut answer = None;
    connection.ask(sql, &mut |row| {
        answer = Some(row.int(0)?);
        Ok(())
    })?;
    Ok(answer)
}

pub(super) fn major_of(connection: &mut PostgresConnection) -> u32 {
    let asked = "select current_setting('server_version_num')::int8 / 10000";
    let major = number(connection, asked).ok().flatten();
    major.map_or(OLDEST, |major| major.unsigned_abs() as u32)
}

/// What observes a server during a trial.
struct Watch {
    sampler: WaitSampler,
    counters: Option<Statistics>,
}

/// A schema to work in.
struct ForeignPostgres {
    /// `None` while it is loaded, and when it is over.
    watch: Mutex<Option<Watch>>,
    schema: Schema,
}

impl ForeignPostgres {
    fn ask<T: Default>(&self, of: impl FnOnce(&Watch) -> T) -> T {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.as_ref().map(of).unwrap_or_default()
    }

    fn count<T: Default>(&self, of: impl FnOnce(&Statistics) -> T) -> T {
        self.ask(|watch| watch.counters.as_ref().map(of).unwrap_or_default())
    }
}

impl Counters for ForeignPostgres {
    fn counts(&self) -> Option<EngineCounts> {
        self.count(Statistics::io)
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.ask(|watch| watch.sampler.waits(false))
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.ask(|watch| watch.sampler.waits(true))
    }

    fn waits_are_sampled(&self) -> bool {
        true
    }

    fn housekeeping(&self) -> Option<Housekeeping> {
        self.count(Statistics::housekeeping)
    }

    fn segments(&self) -> Vec<SegmentSize> {
        self.count(Statistics::segments)
    }

    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise {
        promise_of(come_to(&self.schema), self.schema.kind, storage, sent)
    }
}

impl RunningServer for ForeignPostgres {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        Ok(Box::new(come_to(&self.schema)?))
    }

    fn connect_unlimited(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        Ok(Box::new(come_unlimited(&self.schema)?))
    }

    fn ours(&self) -> Ours {
        self.schema.ours()
    }

    fn others(&self, connection: &mut dyn SqlConnection) -> Result<Vec<String>, EngineError> {
        Ok(others(connection, &self.schema)?)
    }

    fn check_ended(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        Ok(prepared::check(connection, self.schema.kind)?)
    }

    /// Only what is in the schema; a checkpoint would be the whole server's.
    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        let mut tables = Vec::new();
        let asked = "select quote_ident(relname) from pg_class where relkind = 'r' \
                     and relnamespace = current_schema()::regnamespace order by 1";
        connection.ask(asked, &mut |row| {
            tables.push(row.text(0)?);
            Ok(())
        })?;
        for table in tables {
            // Others that speak the protocol have nothing to vacuum.
            if connection
                .run(&format!("vacuum (analyze) {table}"))
                .is_err()
            {
                connection.run(&format!("analyze {table}"))?;
            }
        }
        Ok(())
    }

    /// Spindle goes; the server stays.
    fn stop(&self, _: ServerStop) -> Result<(), EngineError> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        *watch = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_server_that_starts_is_waited_for_and_one_that_is_gone_is_not() {
        let starting = || {
            let says = "the database system is in recovery mode (SQLSTATE 57P03)";
            SessionError::rejected(Complaint::StartsOrStops, says)
        };
        let asked = Cell::new(0);
        let come = || {
            asked.set(asked.get() + 1);
            match asked.get() {
                3 => Ok(()),
                _ => Err(starting()),
            }
        };
        assert_eq!(once_up(come, STARTING), Ok(()));
        assert_eq!(asked.get(), 3);
        let refused: Result<(), _> = once_up(|| Err(starting()), Duration::ZERO);
        assert_eq!(refused, Err(starting()));
        let gone = || Err(SessionError::Lost("Connection refused".to_owned()));
        let begin = Instant::now();
        let refused: Result<(), _> = once_up(gone, STARTING);
        assert_eq!(refused, gone());
        assert!(begin.elapsed() < STARTING);
    }
}
