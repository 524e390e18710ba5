//! SQLite. `fullfsync` and `checkpoint_fullfsync` mean something on macOS only; `mmap_size` changes how pages are read,
//! and `locking_mode` who may come: none of them changes what is flushed.

use super::table::{
    SQLITE_DELETE_EXTRA, SQLITE_DELETE_FULL, SQLITE_JOURNAL_NORMAL, SQLITE_KEPT_JOURNAL,
    SQLITE_NO_JOURNAL, SQLITE_OFF, SQLITE_UNKNOWN, SQLITE_WAL_FULL, SQLITE_WAL_NORMAL,
};
use super::{CommitStorage, Promise, Reason, SettingsInForce, setting};

/// Pragmas that decide.
pub const ASKED: [&str; 2] = ["journal_mode", "synchronous"];

/// Stands among settings when a client attaches another database, whose pragmas are others.
pub const ATTACH: &str = "attach";

/// What these pragmas keep.
pub fn promise(settings: &SettingsInForce, storage: &CommitStorage) -> Promise {
    let of = |name: &str| settings.get(name).map_or("not told", String::as_str);
    let (journal, synchronous) = (of("journal_mode"), of("synchronous"));
    let both = format!("journal_mode = {journal}, synchronous = {synchronous}");
    let synchronous = match synchronous {
        "0" | "no" | "false" => "off",
        "1" | "on" | "yes" | "true" => "normal",
        "2" => "full",
        "3" => "extra",
        word => word,
    };
    let reason = match (journal, synchronous) {
        ("off" | "memory", "off" | "normal" | "full" | "extra") => {
            Reason::of(&SQLITE_NO_JOURNAL, both)
        }
        ("wal" | "delete" | "truncate" | "persist", "off") => Reason::of(&SQLITE_OFF, both),
        ("wal", "normal") => Reason::of(&SQLITE_WAL_NORMAL, both).back(storage.write_back_ms()),
        ("wal", "full" | "extra") => Reason::of(&SQLITE_WAL_FULL, both),
        ("delete" | "truncate" | "persist", "normal") => Reason::of(&SQLITE_JOURNAL_NORMAL, both),
        ("delete", "full") => {
            Reason::of(&SQLITE_DELETE_FULL, both).back(storage.commit_interval_ms())
        }
        ("delete", "extra") => Reason::of(&SQLITE_DELETE_EXTRA, both),
        ("truncate" | "persist", "full" | "extra") => Reason::of(&SQLITE_KEPT_JOURNAL, both),
        _ => Reason::of(&SQLITE_UNKNOWN, both),
    };
    let attached = settings.get(ATTACH).map(|value| setting(ATTACH, value));
    let attached = attached.map(|what| Reason::of(&SQLITE_UNKNOWN, what));
    let reasons = [Some(reason), attached].into_iter().flatten();
    Promise::of(reasons.collect()).and(storage.promise())
}
