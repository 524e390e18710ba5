//! Transactions that were prepared and not ended (`PREPARE TRANSACTION`). They outlive their session, keep their locks,
//! and keep what they have touched from being copied and dropped.

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use crate::sql::SchemaKind;

/// Those of this database, and the schemas of what they have touched, which nothing but their locks tells.
const TOUCHED: &str = "select gid from (select p.gid, p.owner, n.nspname from pg_prepared_xacts p \
     join pg_locks x on x.locktype = 'transactionid' and x.transactionid = p.transaction \
     join pg_locks l on l.virtualtransaction = x.virtualtransaction and l.locktype = 'relation' \
     and l.database in (0, (select oid from pg_database where datname = current_database())) \
     join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace \
     where p.database = current_database()) as touched where true";

/// The names of those that are left in what is Spindle's own.
fn left(
    connection: &mut dyn SqlConnection,
    kind: SchemaKind,
    name: &str,
) -> Result<Vec<String>, SessionError> {
    match kind {
        SchemaKind::Database => gids(
            connection,
            &format!("select gid from pg_prepared_xacts where database = {name}"),
        ),
        SchemaKind::Schema => gids(
            connection,
            &format!("{TOUCHED} group by gid having bool_or(nspname = {name})"),
        ),
    }
}

/// Those of them that touched nothing else, and are this user's.
fn left_alone(
    connection: &mut dyn SqlConnection,
    kind: SchemaKind,
    name: &str,
) -> Result<Vec<String>, SessionError> {
    match kind {
        SchemaKind::Database => left(connection, kind, name),
        SchemaKind::Schema => gids(
            connection,
            &format!(
                "{TOUCHED} and owner = current_user group by gid having bool_or(nspname = {name}) \
                 and bool_and(nspname in ({name}, 'pg_catalog', 'pg_toast'))"
            ),
        ),
    }
}

fn gids(connection: &mut dyn SqlConnection, asked: &str) -> Result<Vec<String>, SessionError> {
    let mut left = Vec::new();
    connection.ask(asked, &mut |row| {
        left.push(row.text(0)?);
        Ok(())
    })?;
    Ok(left)
}

/// That a load leaves none behind in the database or the schema that it works in.
///
/// # Errors
/// The name of one.
pub(super) fn check(
    connection: &mut dyn SqlConnection,
    kind: SchemaKind,
) -> Result<(), SessionError> {
    let name = match kind {
        SchemaKind::Database => "current_database()",
        SchemaKind::Schema => "current_schema()",
    };
    // A server that does not know the question has none.
    let left = left(connection, kind, name).unwrap_or_default();
    match left.first() {
        None => Ok(()),
        Some(name) => Err(SessionError::Failed(format!(
            "the load leaves the prepared transaction '{name}' open, which would keep its locks in every trial: end it \
             with COMMIT PREPARED"
        ))),
    }
}

/// Undoes those in what is to be dropped, in a session of its database. One that touched what is others', too, stays.
pub(super) fn undo_all(connection: &mut dyn SqlConnection, kind: SchemaKind, name: &str) {
    let left = left_alone(connection, kind, &format!("'{name}'"));
    for name in left.unwrap_or_default() {
        // Where it cannot be undone, the drop says so.
        let _ = connection.run(&format!("rollback prepared '{}'", name.replace('\'', "''")));
    }
}
