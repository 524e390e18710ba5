//! Taking away what dead runs left: for each ledger that no process holds, its entries in reverse. What is no longer
//! ours is left alone, and said; what cannot be removed now (a mount in use) stays in the ledger for the next time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ledger::{self, ENDING, Ledger, LedgerEntry, LedgerError};
use crate::record::Record;
use crate::steps::{DropSchema, Site, Undone};
use spindle_system::SystemTree;

/// What was done about one ledger.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// The run.
    pub run: String,
    /// The ledger.
    pub ledger: PathBuf,
    /// Whether the run is still going on, and was left alone.
    pub alive: bool,
    /// What was removed, or would be.
    pub removed: Vec<String>,
    /// What exists but is no longer the run's, and was left alone, with the reason.
    pub not_ours: Vec<String>,
    /// What could not be removed, with the reason; it stays in the ledger.
    pub left: Vec<String>,
}

/// Removes what dead runs left, by the ledgers in `directory`; with `dry_run`, only says what would be. Schemas on
/// servers are dropped by `drop_schema`; they stay where there is none. Errors: the directory cannot be read. A ledger
/// that cannot be understood is reported as left.
pub fn clean(
    directory: &Path,
    tree: &SystemTree,
    dry_run: bool,
    drop_schema: Option<DropSchema>,
) -> Result<Vec<Cleaned>, LedgerError> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(LedgerError::System {
                action: "list the directory of",
                path: directory.to_owned(),
                source,
            });
        }
    };
    let mut ledgers: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    ledgers.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    ledgers.sort();
    Ok(ledgers
        .iter()
        .map(|path| clean_one(path, tree, dry_run, drop_schema, NotOurs::Stays))
        .collect())
}

/// As [`clean`], for the ledger of one run only; `None` when it has none. Errors: [`LedgerError::BadRunId`].
pub fn clean_run(
    directory: &Path,
    run: &str,
    tree: &SystemTree,
    drop_schema: Option<DropSchema>,
) -> Result<Option<Cleaned>, LedgerError> {
    let path = ledger::path_of(directory, run)?;
    let clean = || clean_one(&path, tree, false, drop_schema, NotOurs::Forgotten);
    Ok(path.exists().then(clean))
}

/// What the ledgers in `directory` say that a living process has made, last made first, in words. For a process that is
/// about to end without taking it away: nothing is locked or changed, and what cannot be read is left out.
pub fn made_by(directory: &Path, pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let ledgers = entries.map(|entry| entry.path());
    let ledgers = ledgers.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    let replayed = ledgers.filter_map(|path| {
        let file = ledger::open_own(&path, std::fs::OpenOptions::new().read(true)).ok()?;
        ledger::replay(&path, &file).ok()
    });
    replayed
        .filter(|replayed| replayed.heading.pid == pid)
        .flat_map(|replayed| replayed.entries.into_iter().rev())
        .map(|entry| entry.record.describe())
        .collect()
}

fn clean_one(
    path: &Path,
    tree: &SystemTree,
    dry_run: bool,
    drop_schema: Option<DropSchema>,
    not_ours: NotOurs,
) -> Cleaned {
    let mut cleaned = Cleaned {
        run: ledger::run_of(path),
        ledger: path.to_owned(),
        ..Cleaned::default()
    };
    if dry_run {
        match Ledger::peek(path) {
            Ok(None) => cleaned.alive = path.exists(),
            Ok(Some(entries)) => {
                let described = in_order(entries).map(|entry| entry.record.describe());
                cleaned.removed = described.collect();
            }
            Err(error) => cleaned.left.push(error.to_string()),
        }
        return cleaned;
    }
    match Ledger::take_over(path) {
        Ok(None) => cleaned.alive = path.exists(),
        Err(error) => cleaned.left.push(error.to_string()),
        Ok(Some(ledger)) => {
            let undone = undo_all(&ledger, tree, drop_schema, not_ours, |_| true);
            cleaned.removed = undone.removed;
            cleaned.not_ours = undone.not_ours;
            cleaned.left = undone.left;
        }
    }
    cleaned
}

/// What becomes of the entry of something that exists but is no longer the run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOurs {
    /// It stays in the ledger, and is said again each time until the thing is gone.
    Stays,
    /// It is said once: the run continues, and needs its own ledger.
    Forgotten,
}

/// What undoing came to, in words.
#[derive(Debug, Default)]
pub(crate) struct UndoneAll {
    pub removed: Vec<String>,
    pub not_ours: Vec<String>,
    pub left: Vec<String>,
}

/// Removes all that the ledger of a living run still names. Returns what could not be removed, or was no longer
/// the run's, in words.
pub fn undo_everything(ledger: &Ledger, tree: &SystemTree) -> Vec<String> {
    let undone = undo_all(ledger, tree, None, NotOurs::Forgotten, |_| true);
    [undone.left, undone.not_ours].concat()
}

/// The order in which entries are undone: what was made last goes first. Only the nodes by which a run writes to its
/// devices, also while it gives them back, go after all else.
fn in_order(entries: Vec<LedgerEntry>) -> impl Iterator<Item = LedgerEntry> {
    let is_nodes = |entry: &LedgerEntry| matches!(entry.record, Record::MadeNodes(_));
    let (nodes, others): (Vec<LedgerEntry>, Vec<LedgerEntry>) =
        entries.into_iter().rev().partition(is_nodes);
    others.into_iter().chain(nodes)
}

/// Undoes the entries of a ledger that `chosen` picks, last made first. When one fails, what it stands on is not
/// touched: the earlier entries of its layout, and what layouts share.
pub(crate) fn undo_all(
    ledger: &Ledger,
    tree: &SystemTree,
    drop_schema: Option<DropSchema>,
    not_ours: NotOurs,
    chosen: impl Fn(&LedgerEntry) -> bool,
) -> UndoneAll {
    let mut undone = UndoneAll::default();
    let site = match ledger.tools() {
        Ok(tools) => Site {
            tree: tree.clone(),
            tools,
            boot_id: ledger.heading().boot_id.clone(),
            is_of_living_run: ledger.is_of_living_run(),
            is_going_on: not_ours == NotOurs::Forgotten,
            last_touched: ledger.last_touched(),
            nodes: ledger.nodes(),
            drop_schema,
            emptied: Default::default(),
        },
        Err(error) => {
            undone.left.push(error.to_string());
            return undone;
        }
    };
    let mut stuck: BTreeSet<Option<String>> = BTreeSet::new();
    for entry in in_order(ledger.entries()).filter(chosen) {
        let stands_on_nothing_stuck = match &entry.layout {
            None => stuck.is_empty(),
            Some(_) => !stuck.contains(&entry.layout),
        };
        let what = entry.record.describe();
        if !stands_on_nothing_stuck {
            undone
                .left
                .push(format!("{what}: left, because what stands on it is"));
            continue;
        }
        match entry.record.undo(&site) {
            Ok(Undone::Removed) => undone.removed.push(what),
            Ok(Undone::RemovedBut(stays)) => undone.removed.push(format!("{what}; {stays}")),
            Ok(Undone::WasNot) => {}
            Ok(Undone::NotOurs(reason)) => {
                undone
                    .not_ours
                    .push(format!("{what}: left alone, {reason}"));
                if not_ours == NotOurs::Stays {
                    continue;
                }
            }
            Err(error) => {
                undone.left.push(format!("{what}: {error}"));
                stuck.insert(entry.layout);
                continue;
            }
        }
        if let Err(error) = ledger.gone(entry.number) {
            undone.left.push(error.to_string());
        }
    }
    undone
}
