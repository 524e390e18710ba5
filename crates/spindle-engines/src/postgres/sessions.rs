//! Whether what answers keeps sessions, lets them work in a schema, and reaches other databases. Pools of connections
//! and databases that only speak the protocol may not: what is made would then lie where it changes what is others'.

use std::collections::BTreeSet;
use std::time::Duration;

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::encryption::connect;
use crate::sql::survey::{number, texts};
use crate::sql::{Address, Password};

/// Other databases; not templates, as a session that copies one must be alone there.
const OTHERS: &str = "select datname::text from pg_database where datallowconn and not datistemplate \
     and datname <> current_database() and has_database_privilege(oid, 'CONNECT') order by datname <> 'postgres', 1 limit 3";
/// Number of looks, where a process is not the one that the server told of.
const LOOKS: u32 = 10;
/// A server that a session has for itself answers within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const PROCESS: &str = "select pg_backend_pid()::int8";
const SCHEMA: &str = "select coalesce(current_schema()::text, 'no schema')";

/// That statements of one connection, which is in no transaction, come to one process. Where something answers in the
/// server's place, they may come to several: then there is no session. Whether it tells. `come` connects again.
///
/// # Errors
/// To how many they come.
pub(super) fn check_kept<E>(
    connection: &mut PostgresConnection,
    come: impl FnOnce() -> Result<PostgresConnection, E>,
) -> Result<bool, SessionError> {
    let told = i64::from(connection.process_id());
    let mut seen = BTreeSet::new();
    for _ in 0..LOOKS {
        // Others that speak the protocol may have no such processes.
        let Some(process) = number(connection, PROCESS) else {
            return Ok(false);
        };
        if process == told {
            return Ok(true);
        }
        seen.insert(process);
    }
    if let (1, Ok(other)) = (seen.len(), come()) {
        seen.extend(beside_another(connection, other)?);
    }
    match seen.len() {
        1 => Ok(true),
        processes => Err(none_kept(&format!(
            "{LOOKS} statements of one connection came to {processes} processes of servers"
        ))),
    }
}

/// The process that a connection comes to while another is in a transaction. A pool that has only one to serve gives it
/// the same process each time. `None` where the other gets no process.
///
/// # Errors
/// It comes to none meanwhile.
fn beside_another(
    connection: &mut PostgresConnection,
    mut other: PostgresConnection,
) -> Result<Option<i64>, SessionError> {
    other.answer_within(Some(PATIENCE))?;
    if other.begin().is_err() || number(&mut other, PROCESS).is_none() {
        return Ok(None);
    }
    connection.answer_within(Some(PATIENCE))?;
    let process = number(connection, PROCESS);
    let _ = other.rollback();
    connection.answer_within(None)?;
    match process {
        None => Err(none_kept(
            "one connection waits while another is in a transaction",
        )),
        process => Ok(process),
    }
}

fn none_kept(seen: &str) -> SessionError {
    SessionError::Failed(format!(
        "what answers there keeps no sessions: {seen}. A run needs a schema to itself and a search path that stays: give \
         the address of one server behind it, or have the pool keep sessions"
    ))
}

/// That a session works in its schema.
///
/// # Errors
/// Where it works.
pub(super) fn check_path(
    connection: &mut PostgresConnection,
    name: &str,
) -> Result<(), SessionError> {
    // A server that does not know the question is trusted.
    match texts(connection, SCHEMA).pop() {
        Some(found) if found != name => Err(SessionError::Failed(format!(
            "its sessions work in {found}, whatever their search_path: a run cannot work in the schema that it makes there"
        ))),
        _ => Ok(()),
    }
}

/// Whether other databases of a server are reached at an address as its own is, or why not: a pool of connections may
/// know one only. `None` where there are none that this user may connect to.
pub(super) fn others_reached(
    connection: &mut PostgresConnection,
    address: &Address,
    password: Option<&Password>,
) -> Option<Result<(), SessionError>> {
    let mut found = None;
    for name in texts(connection, OTHERS) {
        let address = Address {
            database: Some(name),
            ..address.clone()
        };
        let reached = connect(&address, password, "spindle").map(drop);
        if reached.is_ok() {
            return Some(reached);
        }
        found = Some(reached);
    }
    found
}
