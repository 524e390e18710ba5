//! InnoDB, in MariaDB and MySQL. What one of the two does not have is not asked of it: MariaDB's
//! `innodb_flush_log_at_trx_commit = 3`, MySQL's `innodb_doublewrite = DETECT_ONLY` and its redo log that can be
//! disabled.

use std::collections::BTreeMap;

use super::table::{
    INNODB_ATOMIC, INNODB_BINLOG, INNODB_BINLOG_SYNC, INNODB_COMMIT_FLUSHED, INNODB_COMMIT_LATER,
    INNODB_DETECT_ONLY, INNODB_IN_MEMORY, INNODB_NO_DOUBLEWRITE, INNODB_NO_FSYNC,
    INNODB_NO_FSYNC_CACHE, INNODB_NO_FSYNC_UNKNOWN, INNODB_NO_REDO, INNODB_NOSYNC,
    INNODB_OTHER_ENGINE, INNODB_TABLES_ELSEWHERE, INNODB_TABLES_UNSAFE, INNODB_UNKNOWN,
    INNODB_WHOLE_PAGES,
};
use super::{CommitStorage, Promise, Reason, SettingsInForce, is_off, is_on, setting, tables};

/// Variables that decide.
pub const ASKED: [&str; 9] = [
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_log_at_timeout",
    "innodb_doublewrite",
    "innodb_flush_method",
    "innodb_page_size",
    "log_bin",
    "sync_binlog",
    "default_storage_engine",
    // A status variable of MySQL's.
    "innodb_redo_log_enabled",
];

/// A table and its storage engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableIn {
    /// Its name.
    pub name: String,
    /// The storage engine, in small letters; empty when the server does not tell.
    pub engine: String,
}

/// InnoDB's page when the server does not tell.
const PAGE_BYTES: u64 = 16384;
/// What `innodb_flush_log_at_timeout` is when the server does not tell, seconds.
const TIMEOUT_S: u64 = 1;

/// What these variables keep, of tables that are not known.
pub fn promise(settings: &SettingsInForce, storage: &CommitStorage) -> Promise {
    let with_default = default_engine(settings).into_iter().collect();
    promise_beside_tables(settings, storage).with(with_default)
}

/// The same beside what is said of the tables themselves ([`of_tables`]).
pub fn promise_beside_tables(settings: &SettingsInForce, storage: &CommitStorage) -> Promise {
    let reasons = [
        Some(commit(settings)),
        double_write(settings, storage),
        flush_method(settings, storage),
        binary_log(settings, storage),
        of_redo(settings),
    ];
    Promise::of(reasons.into_iter().flatten().collect()).and(storage.promise())
}

fn of<'a>(settings: &'a SettingsInForce, name: &str) -> &'a str {
    settings.get(name).map_or("not told", String::as_str)
}

fn reason(settings: &SettingsInForce, line: &super::PromiseLine, name: &str) -> Reason {
    Reason::of(line, setting(name, of(settings, name)))
}

fn commit(settings: &SettingsInForce) -> Reason {
    let name = "innodb_flush_log_at_trx_commit";
    match of(settings, name) {
        "1" | "3" => reason(settings, &INNODB_COMMIT_FLUSHED, name),
        "0" | "2" => {
            let timeout_s = of(settings, "innodb_flush_log_at_timeout").parse();
            let timeout_s: u64 = timeout_s.unwrap_or(TIMEOUT_S).max(1);
            let back_ms = timeout_s.checked_mul(1000);
            reason(settings, &INNODB_COMMIT_LATER, name).back(back_ms)
        }
        _ => reason(settings, &INNODB_UNKNOWN, name),
    }
}

fn double_write(settings: &SettingsInForce, storage: &CommitStorage) -> Option<Reason> {
    let name = "innodb_doublewrite";
    let page_bytes = of(settings, "innodb_page_size")
        .parse()
        .unwrap_or(PAGE_BYTES);
    let line = match of(settings, name) {
        value if is_on(value) || value == "detect_and_recover" => return None,
        "detect_only" => &INNODB_DETECT_ONLY,
        value if is_off(value) && storage.is_zfs() => &INNODB_WHOLE_PAGES,
        value if is_off(value) && storage.atomic_write_bytes() >= page_bytes => &INNODB_ATOMIC,
        value if is_off(value) => &INNODB_NO_DOUBLEWRITE,
        _ => &INNODB_UNKNOWN,
    };
    Some(reason(settings, line, name))
}

/// MariaDB from 11.0 on may have no such variable any more: whatever it does instead flushes.
fn flush_method(settings: &SettingsInForce, storage: &CommitStorage) -> Option<Reason> {
    let name = "innodb_flush_method";
    let line = match settings.get(name).map(String::as_str) {
        None | Some("fsync" | "o_dsync" | "o_direct" | "") => return None,
        Some("nosync" | "littlesync") => &INNODB_NOSYNC,
        Some("o_direct_no_fsync") => match storage.has_volatile_cache() {
            Some(true) => &INNODB_NO_FSYNC_CACHE,
            Some(false) => &INNODB_NO_FSYNC,
            None => &INNODB_NO_FSYNC_UNKNOWN,
        },
        Some(_) => &INNODB_UNKNOWN,
    };
    Some(reason(settings, line, name))
}

fn binary_log(settings: &SettingsInForce, storage: &CommitStorage) -> Option<Reason> {
    match of(settings, "log_bin") {
        value if is_off(value) => return None,
        value if is_on(value) => {}
        _ => return Some(reason(settings, &INNODB_UNKNOWN, "log_bin")),
    }
    // With 3, InnoDB itself flushes what has been committed.
    let by_itself = of(settings, "innodb_flush_log_at_trx_commit") == "3";
    Some(match of(settings, "sync_binlog").parse::<u64>() {
        _ if by_itself => return None,
        Ok(1) => reason(settings, &INNODB_BINLOG_SYNC, "sync_binlog"),
        // Every few groups of commits, however long that takes; with 0 as the system writes back.
        Ok(every) => {
            let back_ms = storage.write_back_ms().filter(|_| every == 0);
            reason(settings, &INNODB_BINLOG, "sync_binlog").back(back_ms)
        }
        Err(_) => reason(settings, &INNODB_UNKNOWN, "sync_binlog"),
    })
}

fn of_redo(settings: &SettingsInForce) -> Option<Reason> {
    let enabled = settings.get("innodb_redo_log_enabled")?;
    let line = match enabled.as_str() {
        value if is_on(value) => return None,
        value if is_off(value) => &INNODB_NO_REDO,
        _ => &INNODB_UNKNOWN,
    };
    Some(reason(settings, line, "innodb_redo_log_enabled"))
}

fn default_engine(settings: &SettingsInForce) -> Option<Reason> {
    let name = "default_storage_engine";
    let line = match of(settings, name) {
        "innodb" => return None,
        "not told" => &INNODB_UNKNOWN,
        _ => &INNODB_OTHER_ENGINE,
    };
    Some(reason(settings, line, name))
}

/// What the tables of these engines keep; `None` when the server does not tell. `create table` and `alter table` may
/// name another engine than the default.
pub fn of_tables(told: Option<&[TableIn]>) -> Vec<Reason> {
    let Some(told) = told else {
        return vec![Reason::of(&INNODB_UNKNOWN, "tables that are not told")];
    };
    let mut engines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for table in told {
        engines.entry(&table.engine).or_default().push(&table.name);
    }
    let reasons = engines.iter().filter_map(|(engine, names)| {
        let line = match *engine {
            "innodb" => return None,
            "memory" | "heap" | "blackhole" => &INNODB_IN_MEMORY,
            "myisam" | "mrg_myisam" | "aria" | "csv" | "archive" => &INNODB_TABLES_UNSAFE,
            _ => &INNODB_TABLES_ELSEWHERE,
        };
        let engine = match *engine {
            "" => "not told",
            engine => engine,
        };
        Some(Reason::of(
            line,
            tables(&format!("engine = {engine}"), names),
        ))
    });
    reasons.collect()
}
