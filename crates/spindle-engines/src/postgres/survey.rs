//! A look at an existing PostgreSQL, for [`Survey`].

use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::encryption::connect;
use super::settings::in_force;
use crate::EngineError;
use crate::promise::{self, Storage};
use crate::sql::survey::{LARGEST, Right, Survey, clock, number, round_trip, texts, volumes};
use crate::sql::{Address, Password, tls};

/// Nothing that follows may change anything.
const READ_ONLY: &str = "set default_transaction_read_only = on";
const TIME: &str = "select (extract(epoch from clock_timestamp()) * 1000000)::int8";
const CACHE: &str = "select pg_size_bytes(current_setting('shared_buffers'))";
const EXTENSIONS: &str = "select extname || ' ' || extversion from pg_extension order by 1";

/// Looks at a server; `settings` asks for those that matter to storage.
pub(super) fn survey(
    address: &Address,
    password: Option<&Password>,
    settings: &str,
) -> Result<Survey, EngineError> {
    let refused = |error| EngineError::unavailable(format!("{address}: {error}"));
    let mut connection = connect(address, password, "spindle doctor").map_err(refused)?;
    let encryption = connection.encryption();
    let encryption = encryption.map(|version| tls::described(&address.encryption, &version));
    connection.run(READ_ONLY).map_err(refused)?;
    let version = texts(&mut connection, "select version()").pop();
    let mut told = Vec::new();
    // One that does not know the question has none to tell.
    let _ = connection.ask(settings, &mut |row| {
        told.push(format!("{} = {}", row.text(0)?, row.text(1)?));
        Ok(())
    });
    let in_force = in_force(&mut connection);
    Ok(Survey {
        version: version.unwrap_or_else(|| "a server of an unknown version".to_owned()),
        encryption,
        settings: told,
        promise: promise::postgres::promise(&in_force, &Storage { places: Vec::new() }),
        extensions: texts(&mut connection, EXTENSIONS),
        cache_bytes: number(&mut connection, CACHE).and_then(|bytes| bytes.try_into().ok()),
        databases: volumes(&mut connection, &databases()),
        tables: volumes(&mut connection, &tables()),
        rights: rights(&mut connection, address),
        round_trip: round_trip(&mut connection).map_err(refused)?,
        clock: clock(&mut connection, TIME),
    })
}

/// A database's size is told to who may connect to it, or may see all statistics.
fn databases() -> String {
    format!(
        "select datname::text, case when has_database_privilege(oid, 'CONNECT') \
         or pg_has_role('pg_read_all_stats', 'MEMBER') then pg_database_size(oid) end \
         from pg_database where not datistemplate order by 2 desc nulls last, 1 limit {LARGEST}"
    )
}

fn tables() -> String {
    format!(
        "select n.nspname || '.' || c.relname, pg_total_relation_size(c.oid) \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' \
         order by 2 desc, 1 limit {LARGEST}"
    )
}

fn rights(connection: &mut PostgresConnection, address: &Address) -> Vec<Right> {
    let user = quoted(&address.user);
    let database = quoted(address.database.as_deref().unwrap_or_default());
    let create = "select has_database_privilege(current_database(), 'CREATE')";
    let databases =
        "select (rolsuper or rolcreatedb)::int from pg_roles where rolname = current_user";
    let monitor = "select pg_has_role('pg_monitor', 'MEMBER')";
    let left = "select current_setting('max_connections')::int8 - count(*) from pg_stat_activity \
                where backend_type = 'client backend'";
    let mut has = |sql: &str| number(connection, sql) == Some(1);
    let rights = vec![
        Right {
            what: "may make a schema in this database",
            without: "no run is possible",
            missing: (!has(create))
                .then(|| format!("grant create on database {database} to {user}")),
        },
        Right {
            what: "may make databases",
            without: "a run loads its data again before each trial",
            missing: (!has(databases)).then(|| format!("alter role {user} createdb")),
        },
        Right {
            what: "may see what others wait for",
            without: "waits of background processes are not told",
            missing: (!has(monitor)).then(|| format!("grant pg_monitor to {user}")),
        },
        Right {
            what: "has room for more connections",
            without: "a run of more than a few clients fails",
            missing: (number(connection, left) < Some(8))
                .then(|| "raise max_connections, and restart the server".to_owned()),
        },
    ];
    rights
}

/// A name as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
