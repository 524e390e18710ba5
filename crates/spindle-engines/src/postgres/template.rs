//! Databases of Spindle's own on an existing PostgreSQL: one that is loaded, and copies of it that trials work in
//! (`CREATE DATABASE ... TEMPLATE`, https://www.postgresql.org/docs/current/sql-createdatabase.html). A database is
//! marked by the statement that makes it, in its connection limit, and by its comment, which must follow: what bears
//! neither is not ours.

use std::time::{Duration, Instant};

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::foreign::{PATIENCE, major_of, number, text};
use super::prepared;
use super::survey::quoted;
use crate::EngineError;
use crate::sql::survey::texts;
use crate::sql::{Address, Copying, Schema, SchemaGone, SchemaKind};

/// The first version that is told how it copies (`strategy`), and the first that is told to share blocks.
const TELLS_STRATEGY: u32 = 15;
const CLONES: u32 = 18;
/// Connection limits from here on limit nothing.
const NO_LIMIT: u32 = 1 << 30;
/// How long sessions that were told to end are waited for; [`LOOK`] is how often they are looked for.
const ENDING: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// May make databases; where this one lies; whether this user may put databases there; settings of this one.
const ASKED: &str = "select (r.rolsuper or r.rolcreatedb)::int, t.spcname::text, \
     (t.spcname = 'pg_default' or has_tablespace_privilege(t.oid, 'CREATE'))::int, \
     (select count(*) from pg_db_role_setting s where s.setdatabase = d.oid and s.setrole in (0, r.oid)) \
     from pg_database d join pg_tablespace t on t.oid = d.dattablespace, pg_roles r \
     where d.datname = current_database() and r.rolname = current_user";
/// What a new database is to have as this one has it; of the views of later versions only what exists.
const ALIKE: &str = "select format('encoding %L lc_collate %L lc_ctype %L', pg_encoding_to_char(d.encoding), d.datcollate, d.datctype) \
     || case to_jsonb(d)->>'datlocprovider' \
        when 'i' then format(' locale_provider icu icu_locale %L', coalesce(to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale')) \
        when 'b' then format(' locale_provider builtin builtin_locale %L', to_jsonb(d)->>'datlocale') else '' end \
     || case t.spcname when 'pg_default' then '' else format(' tablespace %I', t.spcname) end \
     from pg_database d join pg_tablespace t on t.oid = d.dattablespace where d.datname = current_database()";

/// See [`crate::sql::ForeignServer::may_copy`].
pub(super) fn may_copy(
    connection: &mut PostgresConnection,
    address: &Address,
    copying: Copying,
) -> Result<(), EngineError> {
    let refused = |why: String| Err(EngineError::unavailable(why));
    let version = text(connection, "select version()").ok().flatten();
    let version = version.unwrap_or_else(|| "a server of an unknown version".to_owned());
    if !version.starts_with("PostgreSQL ") {
        return refused(format!("{version} is not known to copy databases"));
    }
    if let Err(error) = text(connection, ALIKE) {
        return refused(format!("{version} is not known to copy databases: {error}"));
    }
    let mut told = None;
    connection.ask(ASKED, &mut |row| {
        told = Some((row.int(0)?, row.text(1)?, row.int(2)?, row.int(3)?));
        Ok(())
    })?;
    let user = quoted(&address.user);
    let database = quoted(address.database.as_deref().unwrap_or_default());
    match told {
        None | Some((0, ..)) => refused(format!(
            "the user {0} may make no database there; as a superuser: alter role {user} createdb",
            address.user
        )),
        Some((_, place, 0, _)) => refused(format!(
            "the user {} may make no database on the tablespace {place}; as its owner: grant create on tablespace {} to {user}",
            address.user,
            quoted(&place)
        )),
        Some((.., 1..)) => refused(format!(
            "the database {database} has settings (alter database ... set), which a new one would not have"
        )),
        Some(_) if copying == Copying::Cloned && major_of(connection) < CLONES => refused(format!(
            "file_copy_method = clone came with PostgreSQL {CLONES}"
        )),
        Some(_) => Ok(()),
    }
}

/// Makes an empty database like that of the address.
pub(super) fn make(
    connection: &mut PostgresConnection,
    schema: &Schema,
) -> Result<(), SessionError> {
    let alike = text(connection, ALIKE)?.unwrap_or_default();
    create(connection, schema, &format!("template template0 {alike}"))
}

/// Makes a database with what is in a loaded one. All of it is on the disks then: the server copies files, between two
/// checkpoints. To copy through its log instead would leave as much again for the first checkpoint of a trial.
pub(super) fn copy(
    connection: &mut PostgresConnection,
    loaded: &Schema,
    schema: &Schema,
    copying: Copying,
) -> Result<&'static str, SessionError> {
    if copying == Copying::Cloned {
        connection.run("set file_copy_method = 'clone'")?;
    }
    let strategy = match major_of(connection) {
        TELLS_STRATEGY.. => " strategy file_copy",
        _ => "",
    };
    let options = format!("template {}{strategy}", loaded.name);
    let created = create(connection, schema, &options);
    created.map_err(|error| with_those_there(connection, &loaded.name, error))?;
    Ok(match copying {
        Copying::Copied => {
            "database dropped and made again from its loaded template, in the server"
        }
        Copying::Cloned => {
            "database dropped and made again from its loaded template, in the server, sharing its blocks \
             (file_copy_method = clone)"
        }
    })
}

/// Lets no new session connect to a loaded database: the server copies none while there is a session. An existing
/// session stays, and is reported when it is in the way. So it is where the server does not let this user close the
/// database.
pub(super) fn close(
    connection: &mut PostgresConnection,
    loaded: &Schema,
) -> Result<(), SessionError> {
    match connection.run(&format!(
        "alter database {} allow_connections false",
        loaded.name
    )) {
        Err(error) if error.is_lost() => Err(error),
        _ => Ok(()),
    }
}

/// Why a database can be neither copied nor dropped, with the sessions that exist.
fn with_those_there(
    connection: &mut PostgresConnection,
    name: &str,
    error: SessionError,
) -> SessionError {
    let SessionError::Failed(text) = error else {
        return error;
    };
    let asked = format!(
        "select format('%s of \"%s\"', pid, usename) || coalesce(format(' (%s)', nullif(application_name, '')), '') \
         || coalesce(' from ' || host(client_addr), '') from pg_stat_activity \
         where datname = '{name}' and pid <> pg_backend_pid() order by pid"
    );
    let there = texts(connection, &asked);
    SessionError::Failed(match there.is_empty() {
        true => text,
        false => format!(
            "{text}; sessions of {name}: {}. End them, and keep what connects to every database away from those of spindle",
            there.join(", ")
        ),
    })
}

fn create(
    connection: &mut PostgresConnection,
    schema: &Schema,
    options: &str,
) -> Result<(), SessionError> {
    let Schema { name, token, .. } = schema;
    let mark = mark_of(token);
    connection.run(&format!(
        "create database {name} {options} connection limit {mark}"
    ))?;
    connection.run(&format!("comment on database {name} is '{token}'"))
}

/// Drops a database with all that is in it, if it exists and is ours. No other user's session is ended for it: while
/// there is one, the server refuses. `come` connects to it.
pub(super) fn drop_database(
    connection: &mut PostgresConnection,
    schema: &Schema,
    come: impl FnOnce() -> Result<PostgresConnection, SessionError>,
) -> Result<SchemaGone, SessionError> {
    // One may be making it just now, for a run that was killed.
    end_sessions(connection, schema)?;
    let Schema { name, token, .. } = schema;
    let asked = format!(
        "select coalesce(shobj_description(oid, 'pg_database'), ''), datconnlimit::int8 from pg_database where datname = '{name}'"
    );
    let mut found = None;
    connection.ask(&asked, &mut |row| {
        found = Some((row.text(0)?, row.int(1)?));
        Ok(())
    })?;
    match found {
        None => return Ok(SchemaGone::WasNot),
        Some((comment, _)) if comment == *token => {}
        Some((comment, limit)) if comment.is_empty() && limit == i64::from(mark_of(token)) => {
            // A drop that does not come to its end takes the limit away.
            connection.run(&format!("comment on database {name} is '{token}'"))?;
        }
        Some(_) => return Ok(SchemaGone::NotOurs),
    }
    if has_prepared(connection, name)? {
        // It may be closed.
        let _ = connection.run(&format!("alter database {name} allow_connections true"));
        prepared::undo_all(&mut come()?, SchemaKind::Database, name);
    }
    connection.run(PATIENCE)?;
    let dropped = connection.run(&format!("drop database {name}"));
    dropped.map_err(|error| with_those_there(connection, name, error))?;
    Ok(SchemaGone::Dropped)
}

/// Whether a prepared transaction keeps a database from being dropped: it is undone in the database alone.
fn has_prepared(connection: &mut PostgresConnection, name: &str) -> Result<bool, SessionError> {
    let asked = format!("select count(*) from pg_prepared_xacts where database = '{name}'");
    Ok(number(connection, &asked)? > Some(0))
}

/// Ends this user's sessions that bear the schema's name, and waits until they have ended.
pub(super) fn end_sessions(
    connection: &mut PostgresConnection,
    schema: &Schema,
) -> Result<(), SessionError> {
    let asked = format!(
        "select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity \
         where application_name = '{}' and usename = session_user and pid <> pg_backend_pid()) as ended",
        schema.name
    );
    let began = Instant::now();
    while number(connection, &asked)?.unwrap_or(0) > 0 {
        if began.elapsed() > ENDING {
            return Err(SessionError::Failed(format!(
                "sessions of {} do not end",
                schema.name
            )));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// The connection limit that a database with this token has from the beginning: one that limits nothing (FNV-1a of the
/// token, http://www.isthe.com/chongo/tech/comp/fnv/).
fn mark_of(token: &str) -> u32 {
    let hash = token.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    NO_LIMIT | (hash % NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_connection_limits_that_limit_nothing() {
        for token in ["", "a", "b", "6f1ed002-ab59-5b0c-9a5b-1c1a4f0ad4d4"] {
            let mark = mark_of(token);
            assert!(
                mark >= NO_LIMIT && i32::try_from(mark).is_ok(),
                "{token}: {mark}"
            );
        }
        assert_ne!(mark_of("a"), mark_of("b"));
    }
}
