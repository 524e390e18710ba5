//! An existing MariaDB or MySQL, or a database that speaks its protocol. All that is done there is done in a
//! database of Spindle's own, with a table that holds its token. What the user may not see is not known then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spindle_workload::sql::connection::Visit;
use spindle_workload::sql::{Ours, SqlConnection, Value};
use spindle_workload::{Complaint, SessionError};

use super::MariaDb;
use super::connection::{Access, MariaDbConnection, READ_ONLY, TOKEN};
use super::hindrances::{self, LIFT_LIMITS};
use super::kept::{Where, promise_of};
use super::monitor::Monitor;
use super::prepared::Prepared;
use super::tables::quoted;
use super::{survey, tables};
use crate::EngineError;
use crate::engine::{Counters, EngineCounts, EngineWait, SegmentSize};
use crate::promise::{CommitStorage, Promise};
use crate::sql::reader::{ReadOnly, Reader};
use crate::sql::survey::ServerSurvey;
use crate::sql::tls;
use crate::sql::{
    Address, Copying, ForeignServer, FoundServer, Password, Purpose, RunningServer, Schema,
    SchemaGone, ServerHome, ServerStop, UNTOLD,
};

/// What a server is asked of its settings: what matters to storage.
const SETTINGS: &str = "show global variables where variable_name in ('innodb_buffer_pool_size', 'innodb_flush_method', \
     'innodb_data_file_buffering', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_use_native_aio', \
     'innodb_page_size', 'innodb_log_file_size', 'innodb_redo_log_capacity', 'innodb_io_capacity', \
     'innodb_read_io_threads', 'innodb_write_io_threads', 'log_bin', 'sync_binlog', 'local_infile')";
/// The directory that it works in comes first; others may be told relative to it.
const DIRECTORIES: &str = "show global variables where variable_name in ('datadir', 'innodb_data_home_dir', \
     'innodb_log_group_home_dir') and value like '/%'";
/// What its program is called.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];
/// Another transaction may hold what is to be dropped, but not indefinitely.
const PATIENCE: &str = "set lock_wait_timeout = 60";
/// Column of an answer to `XA RECOVER` with the name.
const XA_NAME: usize = 3;
/// A server that is silent for this long when it is looked at or changed is given up.
const SILENCE: Duration = Duration::from_secs(120);
/// Where a session is that has left a database of people's.
const OUTSIDE: &str = "information_schema";

impl ForeignServer for MariaDb {
    fn look(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<FoundServer, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let access = Access::foreign(address, password, address.database.as_deref());
        let mut connection = come_for(&access).map_err(refused)?;
        let mut version = String::new();
        let asked = "select concat(version(), ' (', @@version_comment, ')')";
        let told = connection.ask(asked, &mut |row| {
            version = row.text(0)?;
            Ok(())
        });
        told.map_err(refused)?;
        hindrances::check(&mut connection, address)?;
        let mut settings = Vec::new();
        let mut notes = Vec::new();
        notes.extend(encryption_of(&mut connection, address));
        let asked = connection.ask(SETTINGS, &mut |row| {
            let (name, value) = (row.text(0)?, row.text(1)?);
            settings.push(format!("{name} = {value}"));
            Ok(())
        });
        if asked.is_err() {
            notes.push("this server does not tell its settings".to_owned());
        }
        let limits = hindrances::limits(&mut connection).into_iter();
        notes.extend(limits.map(|limit| format!("{}: {}", limit.setting, limit.effect())));
        let monitor = Monitor::new(&access);
        notes.push(
            match monitor.is_ok_and(|monitor| monitor.counts().is_some()) {
                true => {
                    "its counts and waits are of the whole server, other users included".to_owned()
                }
                false => UNTOLD.to_owned(),
            },
        );
        Ok(FoundServer {
            version,
            settings,
            notes,
        })
    }

    fn survey(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerSurvey, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let access = Access::foreign(address, password, address.database.as_deref());
        let mut connection = come_for(&access).map_err(refused)?;
        let encryption = encryption_of(&mut connection, address);
        survey::survey(&mut connection, address, encryption, SETTINGS)
    }

    fn home(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerHome, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let access = Access::foreign(address, password, address.database.as_deref());
        let mut connection = come_for(&access).map_err(refused)?;
        let mut home = ServerHome::of_programs(&PROGRAMS);
        // Others that speak the protocol have none to tell.
        let _ = connection.ask(DIRECTORIES, &mut |row| {
            home.directories.push(row.text(1)?.into());
            Ok(())
        });
        Ok(home)
    }

    fn may_copy(
        &self,
        _: &Address,
        _: Option<&Password>,
        copying: Copying,
    ) -> Result<(), EngineError> {
        match copying {
            // A user who may make one database of a run may make two.
            Copying::Copied => Ok(()),
            Copying::Cloned => Err(EngineError::unavailable(
                "MariaDB and MySQL cannot make tables that share blocks with others",
            )),
        }
    }

    fn not_copied(&self, loaded: &Schema) -> Result<Option<String>, EngineError> {
        let found = come_to_server(loaded)
            .and_then(|mut connection| tables::not_copied(&mut connection, &loaded.name));
        found.map_err(|error| failed("looking at", loaded, &error))
    }

    fn copy(
        &self,
        loaded: &Schema,
        schema: &Schema,
        _: Copying,
    ) -> Result<&'static str, EngineError> {
        self.make(schema)?;
        let connected = access_to(schema).connect();
        let copied = connected.and_then(|connection| {
            let mut connection = MariaDbConnection::new(connection, None);
            lift_limits(&mut connection);
            tables::copy(&mut connection, &loaded.name)
        });
        copied.map_err(|error| failed("copying", schema, &error))?;
        Ok("tables dropped and copied again from loaded ones, in the server")
    }

    fn end_sessions(&self, schema: &Schema) -> Result<(), EngineError> {
        let ended = come_to_server(schema)
            .and_then(|mut connection| tables::end_sessions(&mut connection, &schema.name));
        ended.map_err(|error| failed("ending sessions of", schema, &error))
    }

    fn reader(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<Box<dyn Reader>, EngineError> {
        let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
        let access = Access::foreign(address, password, None);
        let connection = come_for(&access).map_err(refused)?;
        let begin = READ_ONLY;
        Ok(Box::new(OutsideReader {
            reader: ReadOnly { connection, begin },
            database: address.database.clone(),
        }))
    }

    fn make(&self, schema: &Schema) -> Result<(), EngineError> {
        let failed = |error: SessionError| failed("making", schema, &error);
        let mut connection = come_to_server(schema).map_err(failed)?;
        let Schema { name, token, .. } = schema;
        let mut refused = Ok(());
        for sql in [
            // Texts compare as bytes, as in the other databases.
            format!("create database {name} character set utf8mb4 collate utf8mb4_bin"),
            format!("create table {name}.{TOKEN} (token varchar(64) primary key)"),
            format!("insert into {name}.{TOKEN} values ('{token}')"),
        ] {
            refused = connection.run(&sql);
            if refused.is_err() {
                break;
            }
        }
        refused.map_err(|error| match error {
            SessionError::Rejected {
                complaint: complaint @ Complaint::Right,
                text,
            } => {
                let grant = survey::grant_for_runs(&mut connection, &schema.address);
                let advice = format!("{text}; as an administrator: {grant}");
                failed(SessionError::rejected(complaint, advice))
            }
            error => failed(error),
        })
    }

    fn drop_schema(&self, schema: &Schema) -> Result<SchemaGone, EngineError> {
        let failed = |error| failed("dropping", schema, &error);
        let mut connection = come_to_server(schema).map_err(failed)?;
        let name = &schema.name;
        let databases = texts(
            &mut connection,
            &format!(
                "select schema_name from information_schema.schemata where schema_name = '{name}'"
            ),
        );
        if databases.map_err(failed)?.is_empty() {
            return Ok(SchemaGone::WasNot);
        }
        let tables = texts(
            &mut connection,
            &format!(
                "select table_name from information_schema.tables where table_schema = '{name}'"
            ),
        );
        let tables = tables.map_err(failed)?;
        let is_ours = match tables.iter().any(|table| table == TOKEN) {
            true => {
                let tokens = texts(
                    &mut connection,
                    &format!("select token from {name}.{TOKEN}"),
                );
                let tokens = tokens.map_err(failed)?;
                // Without a token it was about to get one, and has nothing else in it.
                tokens.iter().all(|token| *token == schema.token)
                    && (!tokens.is_empty() || tables.len() == 1)
            }
            false => tables.is_empty(),
        };
        if !is_ours {
            return Ok(SchemaGone::NotOurs);
        }
        // One may be filling it just now, for a run that was killed.
        tables::end_sessions(&mut connection, name).map_err(failed)?;
        connection.run(PATIENCE).map_err(failed)?;
        let dropped = tables::drop_others(&mut connection, name, TOKEN)
            .and_then(|()| connection.run(&format!("drop database {name}")));
        dropped.map_err(|error| failed(with_those_in_the_way(&mut connection, error)))?;
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
        let access = access_to(schema);
        let monitor = match purpose {
            Purpose::Load => None,
            Purpose::Trial => {
                let monitor = Monitor::new(&access);
                Some(monitor.map_err(|error| failed("coming to", schema, &error))?)
            }
        };
        Ok(Arc::new(ForeignMariaDb {
            access,
            monitor: Mutex::new(monitor),
            prepared: Prepared::default(),
            schema: schema.clone(),
        }))
    }
}

fn failed(what: &str, schema: &Schema, error: &SessionError) -> EngineError {
    EngineError::failed(format!("{what} {schema}"), error)
}

fn access_to(schema: &Schema) -> Access {
    Access::foreign(
        &schema.address,
        schema.password.as_ref(),
        Some(&schema.name),
    )
}

/// Connects to a server, and to no database of it.
fn come_to_server(schema: &Schema) -> Result<MariaDbConnection, SessionError> {
    let access = Access::foreign(&schema.address, schema.password.as_ref(), None);
    let mut connection = come_for(&access)?;
    lift_limits(&mut connection);
    Ok(connection)
}

/// No limit of time ends what this session does: it measures nothing.
fn lift_limits(connection: &mut MariaDbConnection) {
    // Others that speak the protocol may know no such limits.
    let _ = connection.run(LIFT_LIMITS);
}

fn come_for(access: &Access) -> Result<MariaDbConnection, SessionError> {
    let connection = access.connect_for(SILENCE)?;
    Ok(MariaDbConnection::new(connection, None))
}

/// The databases that this user sees beside that one.
fn others(
    connection: &mut dyn SqlConnection,
    schema: &Schema,
) -> Result<Vec<String>, SessionError> {
    let mut found = Vec::new();
    let asked = format!(
        "select lower(schema_name) from information_schema.schemata where schema_name not in ('{}', \
         'information_schema')",
        schema.name
    );
    connection.ask(&asked, &mut |row| {
        found.push(row.text(0)?);
        Ok(())
    })?;
    Ok(found)
}

/// What an encrypted connection is, as the server tells it.
fn encryption_of(connection: &mut MariaDbConnection, address: &Address) -> Option<String> {
    let mut words = Vec::new();
    let asked = "show session status where variable_name in ('Ssl_version', 'Ssl_cipher')";
    let told = connection.ask(asked, &mut |row| {
        words.push((row.text(0)?, row.text(1)?));
        Ok(())
    });
    told.ok()?;
    let of = |name: &str| {
        let found = words.iter().find(|(word, _)| word == name)?;
        Some(found.1.as_str()).filter(|word| !word.is_empty())
    };
    let version = format!("{}, {}", of("Ssl_version")?, of("Ssl_cipher")?);
    Some(tls::described(&address.encryption, &version))
}

/// The first column of an answer.
pub(super) fn texts(
    connection: &mut MariaDbConnection,
    sql: &str,
) -> Result<Vec<String>, SessionError> {
    texts_of(connection, sql, 0)
}

/// Why a database cannot be dropped, with the transactions that may be in the way.
fn with_those_in_the_way(connection: &mut MariaDbConnection, error: SessionError) -> SessionError {
    // Not everyone may ask.
    let open = texts_of(connection, "xa recover", XA_NAME).unwrap_or_default();
    match open.is_empty() {
        true => error,
        false => SessionError::Failed(format!(
            "{error}; prepared transactions are open on this server, which outlive their sessions and may be in the way: {}; \
             look whose they are, end them with XA COMMIT or XA ROLLBACK, then run spindle clean",
            open.join(", ")
        )),
    }
}

/// One column of an answer.
fn texts_of(
    connection: &mut MariaDbConnection,
    sql: &str,
    column: usize,
) -> Result<Vec<String>, SessionError> {
    let mut answers = Vec::new();
    connection.ask(sql, &mut |row| {
        answers.push(match row.value(column)? {
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => row.text(column)?,
        });
        Ok(())
    })?;
    Ok(answers)
}

/// Reads, and is in no database while it asks: `performance_schema` counts each statement for the database that its
/// session is in, without comments, and so would take these for load. Entering one is no statement.
struct OutsideReader {
    reader: ReadOnly<MariaDbConnection>,
    /// In which statements are prepared.
    database: Option<String>,
}

impl Reader for OutsideReader {
    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.reader.ask(sql, visit)
    }

    fn check(&mut self, statements: &[String]) -> Result<(), SessionError> {
        let Some(database) = &self.database else {
            return self.reader.check(statements);
        };
        self.reader.within(|connection| {
            connection.enter(database)?;
            let checked = connection.prepare(statements);
            let left = connection.enter(OUTSIDE);
            checked.and(left)
        })
    }
}

/// A database to work in.
struct ForeignMariaDb {
    access: Access,
    /// `None` while it is loaded, and when it is over.
    monitor: Mutex<Option<Monitor>>,
    /// What its sessions have prepared and not ended.
    prepared: Prepared,
    schema: Schema,
}

impl ForeignMariaDb {
    fn ask<T: Default>(&self, of: impl FnOnce(&Monitor) -> T) -> T {
        let monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        monitor.as_ref().map(of).unwrap_or_default()
    }
}

impl Counters for ForeignMariaDb {
    fn counts(&self) -> Option<EngineCounts> {
        self.ask(Monitor::counts)
    }

    fn waits(&self) -> Vec<EngineWait> {
        self.ask(|monitor| monitor.found().waits())
    }

    fn session_waits(&self) -> Vec<EngineWait> {
        self.ask(|monitor| monitor.found().session_waits())
    }

    fn segments(&self) -> Vec<SegmentSize> {
        let mut segments = self.ask(|monitor| monitor.tables_with_sizes(&self.schema.name));
        segments.retain(|segment| segment.name != TOKEN);
        segments
    }

    fn promise(&self, storage: &CommitStorage, sent: &[String]) -> Promise {
        promise_of(self.connect(), Where::Database, storage, sent)
    }
}

impl RunningServer for ForeignMariaDb {
    fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let connection = MariaDbConnection::new(self.access.connect()?, None);
        let connection = connection.reached_by(&self.access);
        Ok(Box::new(connection.remembering(self.prepared.clone())))
    }

    fn connect_unlimited(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let mut connection = self.connect()?;
        // Others that speak the protocol may know no such limits.
        let _ = connection.run(LIFT_LIMITS);
        Ok(connection)
    }

    fn check_ended(&self, _: &mut dyn SqlConnection) -> Result<(), EngineError> {
        self.prepared.check()
    }

    fn ours(&self) -> Ours {
        self.schema.ours()
    }

    fn others(&self, connection: &mut dyn SqlConnection) -> Result<Vec<String>, EngineError> {
        Ok(others(connection, &self.schema)?)
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), EngineError> {
        let mut tables = Vec::new();
        let asked = format!(
            "select table_name from information_schema.tables where table_schema = '{}'",
            self.schema.name
        );
        connection.ask(&asked, &mut |row| {
            tables.push(row.text(0)?);
            Ok(())
        })?;
        for table in tables {
            connection.ask(
                &format!("analyze table {}", quoted(&table)),
                &mut |_| Ok(()),
            )?;
        }
        Ok(())
    }

    /// Spindle goes; the server stays.
    fn stop(&self, _: ServerStop) -> Result<(), EngineError> {
        let mut monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        *monitor = None;
        self.prepared.undo_all(|| come_to_server(&self.schema));
        Ok(())
    }
}

impl Drop for ForeignMariaDb {
    fn drop(&mut self) {
        self.prepared.undo_all(|| come_to_server(&self.schema));
    }
}
