//! Copies of the tables of one database of Spindle's own in another, made by the server: a loaded database, and the one
//! that trials work in.

use spindle_workload::sql::SqlConnection;
use spindle_workload::{Complaint, SessionError};

use super::connection::{MariaDbConnection, TOKEN};
use super::foreign::texts;

/// What was loaded is taken as it is: rows of a table that refers to a later one, zeros of counting columns, dates that
/// a stricter mode refuses.
const AS_IT_IS: &str =
    "set foreign_key_checks = 0, unique_checks = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'";

/// What a database has that [`copy`] leaves out; `None`: nothing.
pub(super) fn not_copied(
    connection: &mut MariaDbConnection,
    database: &str,
) -> Result<Option<String>, SessionError> {
    let asked = format!(
        "select distinct lower(table_type) from information_schema.tables \
         where table_schema = '{database}' and table_type <> 'BASE TABLE' \
         union select 'trigger' from information_schema.triggers where trigger_schema = '{database}' \
         union select lower(routine_type) from information_schema.routines where routine_schema = '{database}' \
         union select 'event' from information_schema.events where event_schema = '{database}'"
    );
    let found = texts(connection, &asked)?;
    Ok((!found.is_empty())
        .then(|| format!("objects of other kinds than tables: {}", found.join(", "))))
}

/// Copies the tables of the database `loaded` into the one that `connection` has come to.
pub(super) fn copy(connection: &mut MariaDbConnection, loaded: &str) -> Result<(), SessionError> {
    connection.run(AS_IT_IS)?;
    let tables = texts(
        connection,
        &format!(
            "select table_name from information_schema.tables \
             where table_schema = '{loaded}' and table_name <> '{TOKEN}' order by 1"
        ),
    )?;
    for table in tables {
        copy_table(connection, loaded, &table)?;
    }
    Ok(())
}

fn copy_table(
    connection: &mut MariaDbConnection,
    loaded: &str,
    table: &str,
) -> Result<(), SessionError> {
    let of = format!("{loaded}.{}", quoted(table));
    let mut made = String::new();
    // `create table ... like` would leave out foreign keys.
    connection.ask(&format!("show create table {of}"), &mut |row| {
        made = row.text(1)?;
        Ok(())
    })?;
    connection.run(&made)?;
    // Computed columns take no values.
    let columns = texts(
        connection,
        &format!(
            "select column_name from information_schema.columns where table_schema = '{loaded}' and table_name = {} \
             and coalesce(generation_expression, '') = '' order by ordinal_position",
            text_of(table)
        ),
    )?;
    let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    let columns = columns.join(", ");
    let table = quoted(table);
    connection.run(&format!(
        "insert into {table} ({columns}) select {columns} from {of}"
    ))?;
    connection.ask(&format!("analyze table {table}"), &mut |_| Ok(()))
}

/// Ends this user's sessions that have come to a database.
pub(super) fn end_sessions(
    connection: &mut MariaDbConnection,
    database: &str,
) -> Result<(), SessionError> {
    let asked = format!(
        "select cast(id as char) from information_schema.processlist where db = '{database}' \
         and user = substring_index(user(), '@', 1) and id <> connection_id()"
    );
    for id in texts(connection, &asked)? {
        match connection.run(&format!("kill {id}")) {
            Err(error) if error.complaint() == Some(Complaint::NoSuchSession) => {}
            done => done?,
        }
    }
    Ok(())
}

/// Drops the tables of a database but for one. A drop of the database that waits in vain has dropped some of them, and
/// the one left is to tell whose it is.
pub(super) fn drop_others(
    connection: &mut MariaDbConnection,
    database: &str,
    kept: &str,
) -> Result<(), SessionError> {
    let asked = format!(
        "select table_name from information_schema.tables where table_schema = '{database}' \
         and table_type = 'BASE TABLE' and table_name <> '{kept}'"
    );
    for table in texts(connection, &asked)? {
        match connection.run(&format!("drop table {database}.{}", quoted(&table))) {
            // Another may refer to it: the drop of the database knows the order.
            Ok(())
            | Err(
                SessionError::Refused(_) | SessionError::Failed(_) | SessionError::Rejected { .. },
            ) => {}
            delayed => return delayed,
        }
    }
    Ok(())
}

/// A name as SQL has it.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as SQL has it.
fn text_of(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(quoted("a`b"), "`a``b`");
        assert_eq!(text_of(r"a'b\c"), r"'a''b\\c'");
    }
}
