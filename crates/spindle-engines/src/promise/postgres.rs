//! PostgreSQL. Its settings are asked of a session like those of the clients: a role or a database may set
//! `synchronous_commit` for itself.

use super::table::{
    POSTGRES_COMMIT_OFF, POSTGRES_FSYNC_OFF, POSTGRES_ON, POSTGRES_PAGES_ATOMIC,
    POSTGRES_PAGES_OFF, POSTGRES_PAGES_ZFS, POSTGRES_UNKNOWN, POSTGRES_UNLOGGED, POSTGRES_WAL_SYNC,
};
use super::{CommitStorage, Promise, Reason, SettingsInForce, is_off, is_on, setting, tables};

/// Settings that decide.
pub const ASKED: [&str; 5] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_writer_delay",
];

/// PostgreSQL's page, unless it was built otherwise.
const PAGE_BYTES: u64 = 8192;
/// How long a commit that is not waited for may stay in memory (`wal-async-commit`): this many times
/// `wal_writer_delay`.
const DELAYS: u64 = 3;

/// What these settings keep.
pub fn promise(settings: &SettingsInForce, storage: &CommitStorage) -> Promise {
    let of = |name: &str| settings.get(name).map_or("not told", String::as_str);
    let reason = |line, name: &str| Reason::of(line, setting(name, of(name)));
    let fsync = match of("fsync") {
        value if is_off(value) => reason(&POSTGRES_FSYNC_OFF, "fsync"),
        value if is_on(value) => reason(&POSTGRES_ON, "fsync"),
        _ => reason(&POSTGRES_UNKNOWN, "fsync"),
    };
    let commit = match of("synchronous_commit") {
        value if is_off(value) => {
            let delay_ms = duration_ms(of("wal_writer_delay"));
            let back_ms = delay_ms.and_then(|delay_ms| delay_ms.checked_mul(DELAYS));
            reason(&POSTGRES_COMMIT_OFF, "synchronous_commit").back(back_ms)
        }
        "local" | "remote_write" | "remote_apply" => reason(&POSTGRES_ON, "synchronous_commit"),
        value if is_on(value) => reason(&POSTGRES_ON, "synchronous_commit"),
        _ => reason(&POSTGRES_UNKNOWN, "synchronous_commit"),
    };
    let pages = match of("full_page_writes") {
        value if is_off(value) && storage.is_zfs() => {
            Some(reason(&POSTGRES_PAGES_ZFS, "full_page_writes"))
        }
        value if is_off(value) && storage.atomic_write_bytes() >= PAGE_BYTES => {
            Some(reason(&POSTGRES_PAGES_ATOMIC, "full_page_writes"))
        }
        value if is_off(value) => Some(reason(&POSTGRES_PAGES_OFF, "full_page_writes")),
        value if is_on(value) => None,
        _ => Some(reason(&POSTGRES_UNKNOWN, "full_page_writes")),
    };
    let method = match of("wal_sync_method") {
        "fdatasync" | "fsync" | "open_datasync" | "open_sync" => {
            reason(&POSTGRES_WAL_SYNC, "wal_sync_method")
        }
        _ => reason(&POSTGRES_UNKNOWN, "wal_sync_method"),
    };
    let reasons = [Some(fsync), Some(commit), pages, Some(method)];
    Promise::of(reasons.into_iter().flatten().collect()).and(storage.promise())
}

/// What the tables keep of which these are unlogged; `None` when the server does not tell.
pub fn of_tables(unlogged: Option<&[String]>) -> Vec<Reason> {
    match unlogged {
        None => vec![Reason::of(&POSTGRES_UNKNOWN, "tables that are not told")],
        Some([]) => Vec::new(),
        Some(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            vec![Reason::of(&POSTGRES_UNLOGGED, tables("unlogged", &names))]
        }
    }
}

/// What is known when the server does not tell its functions (`None`), which may set something.
pub fn of_functions(told: Option<&[String]>) -> Vec<Reason> {
    let not_told = || Reason::of(&POSTGRES_UNKNOWN, "functions that are not told");
    told.is_none().then(not_told).into_iter().collect()
}

/// A time as PostgreSQL writes it; a number alone is in milliseconds, as `wal_writer_delay` is.
fn duration_ms(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.trim().parse().ok()?;
    match text[digits.len()..].trim() {
        "" | "ms" => Some(number),
        "s" => number.checked_mul(1000),
        "min" => number.checked_mul(60_000),
        _ => None,
    }
}
