//! What the database of a trial keeps when the power goes: its settings in force, asked of it, on what lies beneath its
//! files.

use std::collections::BTreeSet;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use spindle_engines::engine::RunningEngine;
use spindle_engines::promise::CommitStorage;
use spindle_engines::promise::storage::Between;
use spindle_layout::place_of;
use spindle_system::flush_functions::libraries_that_flush;
use spindle_system::{Beneath, SystemTree};

use super::protocol::{TrialDatabase, file_paths};
use spindle_result::{Promise, PromiseReason};
use spindle_text::file_kind::FileKind;

/// The promise of the database of a trial, which runs.
pub(super) fn promise_of(engine: &dyn RunningEngine, database: &TrialDatabase) -> Promise {
    let tree = SystemTree::default();
    let mut storage = storage_of(database, &tree);
    storage.between = between(&tree, &engine.counters().processes());
    let promise = engine.promise(&storage);
    let reasons = promise.reasons.into_iter().map(|reason| PromiseReason {
        what: reason.what,
        keeps: reason.keeps,
        loses: reason.loses,
        effect: reason.effect,
        source: reason.source,
    });
    Promise {
        keeps: promise.keeps,
        back_ms: promise.back_ms,
        reasons: reasons.collect(),
    }
}

/// What lies beneath the files that a commit needs, each place once.
fn storage_of(database: &TrialDatabase, tree: &SystemTree) -> CommitStorage {
    let mut places: Vec<Beneath> = Vec::new();
    for path in paths_of(database) {
        let beneath = Beneath::of(tree, &path);
        if !places.contains(&beneath) {
            places.push(beneath);
        }
    }
    CommitStorage {
        places,
        between: Vec::new(),
    }
}

/// Libraries that may answer for the kernel, in the processes of a server or, without one, in this process.
fn between(tree: &SystemTree, servers: &[u32]) -> Vec<Between> {
    let own = [std::process::id()];
    let processes = match servers {
        [] => &own[..],
        servers => servers,
    };
    let found = processes
        .iter()
        .flat_map(|process| match libraries_that_flush(tree, *process) {
            Ok(libraries) => libraries.into_iter().map(Between::Library).collect(),
            Err(_) => vec![Between::Hidden(*process)],
        });
    let found: BTreeSet<Between> = found.collect();
    found.into_iter().collect()
}

/// A server's directories without that of temporary files, and the devices that its datafiles lie on.
fn paths_of(database: &TrialDatabase) -> BTreeSet<PathBuf> {
    let TrialDatabase::Server(server) = database else {
        return file_paths(database);
    };
    let directories = &server.directories;
    let named = directories.named().into_iter();
    let needed = named.filter(|(kind, _)| *kind != FileKind::Temp);
    let mut paths: BTreeSet<PathBuf> = needed.map(|(_, path)| path.to_owned()).collect();
    for file in directories.files().unwrap_or_default() {
        if let Ok(Some(place)) = place_of(&file) {
            paths.extend(place.paths().into_iter().map(Path::to_path_buf));
        } else if is_device(&file) {
            paths.insert(file);
        }
    }
    paths
}

fn is_device(path: &Path) -> bool {
    let found = std::fs::metadata(path);
    found.is_ok_and(|found| found.file_type().is_block_device())
}
