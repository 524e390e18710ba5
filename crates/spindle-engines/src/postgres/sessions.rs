//! Whether what answers keeps sessions, and lets them work in a schema. Pools of connections and databases that only
//! speak the protocol may not: what is made would then lie where it changes what is others'.

use std::collections::BTreeSet;

use spindle_workload::SessionError;

use super::connection::PostgresConnection;
use crate::sql::survey::{number, texts};

/// So often it is looked, where a process is not the one that the server told of.
const LOOKS: u32 = 10;
const PROCESS: &str = "select pg_backend_pid()::int8";
const SCHEMA: &str = "select coalesce(current_schema()::text, 'no schema')";

/// That statements of one connection come to one process. Where something answers in the server's place, they may come
/// to several: then there is no session. Whether it tells.
///
/// # Errors
/// To how many they come.
pub(super) fn check_kept(connection: &mut PostgresConnection) -> Result<bool, SessionError> {
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
    match seen.len() {
        1 => Ok(true),
        processes => Err(SessionError::Failed(format!(
            "what answers there keeps no sessions: {LOOKS} statements of one connection came to {processes} processes \
             of servers. A run needs a schema to itself and a search path that stays: give the address of one server \
             behind it, or have the pool keep sessions"
        ))),
    }
}

/// That a session works in its schema.
///
/// # Errors
/// Where it works.
pub(super) fn check_path(
    connection: &mut PostgresConnection,
    name: &str,
) -> Result<(), SessionError> {
    // Who does not know the question is taken at its word.
    match texts(connection, SCHEMA).pop() {
        Some(found) if found != name => Err(SessionError::Failed(format!(
            "its sessions work in {found}, whatever their search_path: a run cannot work in the schema that it makes there"
        ))),
        _ => Ok(()),
    }
}
