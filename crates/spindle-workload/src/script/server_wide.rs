//! What works on the whole server or on the whole database without a name that says so: functions by what they are
//! known to do, and maintenance of all tables there are. [`super::beyond`] asks.

use super::places::{Token, tokens};
use crate::sql::Dialect;

/// Functions that work on the whole server: sessions of others, its files, settings, logs and statistics.
const OF_SERVER: [&str; 21] = [
    "lo_export",
    "pg_backup_start",
    "pg_backup_stop",
    "pg_cancel_backend",
    "pg_create_restore_point",
    "pg_drop_replication_slot",
    "pg_file_rename",
    "pg_file_unlink",
    "pg_file_write",
    "pg_promote",
    "pg_reload_conf",
    "pg_replication_origin_drop",
    "pg_replication_slot_advance",
    "pg_rotate_logfile",
    "pg_start_backup",
    "pg_stat_statements_reset",
    "pg_stop_backup",
    "pg_switch_wal",
    "pg_terminate_backend",
    "pg_wal_replay_pause",
    "pg_wal_replay_resume",
];
/// What makes or changes large objects, which belong to no schema, and what others decode from the log.
const OF_DATABASE: [&str; 11] = [
    "lo_creat",
    "lo_create",
    "lo_from_bytea",
    "lo_import",
    "lo_put",
    "lo_truncate",
    "lo_truncate64",
    "lo_unlink",
    "lowrite",
    "pg_import_system_collations",
    "pg_logical_emit_message",
];
/// What makes slots and origins of replication.
const OF_REPLICATION: [&str; 4] = [
    "pg_create_physical_replication_slot",
    "pg_create_logical_replication_slot",
    "pg_copy_logical_replication_slot",
    "pg_replication_origin_create",
];
/// Engines of MariaDB and MySQL whose rows lie elsewhere.
const ENGINES_ELSEWHERE: [&str; 6] = ["connect", "federated", "federatedx", "ndb", "s3", "spider"];
/// Options of `vacuum`, `analyze` and `cluster` without brackets.
const OPTIONS: [&str; 4] = ["full", "freeze", "verbose", "analyze"];

/// Whether a name is that of a function that works on the whole server, or that opens another connection.
pub(super) fn is_of_server(name: &str) -> bool {
    let name = last_part(name);
    OF_SERVER.contains(&name) || name.starts_with("dblink") || name.starts_with("pg_stat_reset")
}

/// Whether a name is that of a function that changes what belongs to the whole database.
pub(super) fn is_of_database(name: &str) -> bool {
    OF_DATABASE.contains(&last_part(name))
}

/// Whether a name is that of a function that makes something for replication.
pub(super) fn is_of_replication(name: &str) -> bool {
    OF_REPLICATION.contains(&last_part(name))
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Whether sessions of others in a database of PostgreSQL hear of it.
pub(super) fn is_heard(words: &[&str]) -> bool {
    words.first() == Some(&"notify") || words.iter().any(|word| last_part(word) == "pg_notify")
}

/// Whether a statement makes a table whose rows lie elsewhere.
pub(super) fn makes_rows_elsewhere(words: &[&str], dialect: Dialect) -> bool {
    let is_engine = |pair: &[&str]| pair[0] == "engine" && ENGINES_ELSEWHERE.contains(&pair[1]);
    match (dialect, words) {
        (Dialect::Postgres, ["create", "foreign", "table", ..] | ["import", "foreign", ..]) => true,
        (Dialect::MariaDb, ["create" | "alter", ..]) => words.windows(2).any(is_engine),
        _ => false,
    }
}

/// Whether a statement of PostgreSQL works on every table of the database.
pub(super) fn works_on_all_tables(sql: &str) -> bool {
    let tokens = tokens(sql, Dialect::Postgres);
    let mut rest = tokens.iter().skip(1).peekable();
    if rest.next_if_eq(&&Token::Sign('(')).is_some() {
        // Options have no brackets within.
        rest.by_ref().find(|token| **token == Token::Sign(')'));
    }
    let mut names = rest.filter_map(Token::name);
    match tokens.first().and_then(Token::name) {
        Some("vacuum" | "analyze" | "analyse" | "cluster") => {
            names.all(|name| OPTIONS.contains(&name))
        }
        Some("reindex") => matches!(names.next(), Some("schema" | "database" | "system")),
        Some("alter") => {
            let names: Vec<&str> = names.collect();
            let all = ["all", "in", "tablespace"];
            names.windows(all.len()).any(|next| next == all)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maintenance_of_all_tables_is_seen() {
        for sql in [
            "VACUUM",
            "vacuum full verbose",
            "vacuum (full, analyze off)",
            "analyze;",
            "analyze (verbose)",
            "cluster",
            "cluster verbose",
            "reindex database shop",
            "reindex (verbose) system shop",
            "reindex schema concurrently public",
            "alter table all in tablespace a owned by bob set tablespace b",
            "alter index all in tablespace a set tablespace b",
        ] {
            assert!(works_on_all_tables(sql), "{sql}");
        }
        for sql in [
            "vacuum t",
            "vacuum full t",
            "vacuum (full, verbose) t, u",
            "analyze t (a, b)",
            "cluster t using i",
            "reindex table t",
            "alter table t set tablespace b",
            "explain analyze select 1",
            "select 1",
        ] {
            assert!(!works_on_all_tables(sql), "{sql}");
        }
    }
}
