//! Golden copies of a run: which shape of database a layout needs, where its golden copy goes, and having the engine
//! load it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_engines::EngineError;
use spindle_engines::kernel::{self};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{DatabaseFiles, Golden, Kept, Shape};

use super::DatabaseError;
use crate::grounds::Grounds;
use crate::observe::SystemFiles;
use crate::observe::cgroup::GroupLimits;
use crate::observe::sampler::MemoryState;
use crate::trial::protocol::{double_write_bytes_of, engine_path, settings_of, workload_of};
use spindle_experiment::{AccessPath, Caching, Database, Experiment, Method};

/// A golden copy in `directory`, loaded.
pub(super) fn make(
    experiment: &Experiment,
    database: &Database,
    shape: &Shape,
    directory: &Path,
    interrupted: &Arc<AtomicBool>,
) -> Result<Arc<Golden>, DatabaseError> {
    let loading = Golden::create_unless(directory, shape, experiment.seed, interrupted)?;
    load(experiment, database, loading.files(), interrupted)?;
    Ok(loading.seal(kept(experiment, shape))?)
}

/// Has the engine make and load the database in the golden copy's files.
fn load(
    experiment: &Experiment,
    database: &Database,
    files: &DatabaseFiles,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let env: Arc<dyn Env> = RealEnv::new(experiment.seed);
    let workload = workload_of(&experiment.workload, database);
    let path = AccessPath {
        caching: Caching::Buffered,
        method: Method::Sync,
        slaves: 0,
    };
    let clients = clients_max(experiment);
    // What trials ask of their devices is not asked of the golden copy's; it is shut down in order.
    let settings = kernel::Settings {
        torn_blocks: kernel::TornBlocks::Images,
        ..settings_of(database)
    };
    let path = engine_path(path, database, None);
    let load = kernel::Load {
        workload: &*workload,
        database: experiment.seed,
        clients,
        interrupted,
    };
    block_on(kernel::create_and_load(&env, files, path, &settings, load))
}

/// Golden copies in memory take at most this part of it, counted without what trials may have: a database that lives on
/// the page cache, for want of a memory budget, is to notice nothing.
const MEMORY_SHARE: u64 = 4;

/// Whether a golden copy can be kept in memory.
fn kept(experiment: &Experiment, shape: &Shape) -> Kept {
    let files = SystemFiles::default();
    let available = MemoryState::read(&files).map_or(0, |memory| memory.available_bytes);
    let allowed = GroupLimits::read(&files).memory_bytes;
    let layouts = 0..experiment.layouts.len();
    let budgets = layouts.map(|layout| experiment.database_of(layout).memory_bytes);
    kept_in(
        available.min(allowed.unwrap_or(u64::MAX)),
        budgets.max().unwrap_or(0),
        shape.total_bytes(),
    )
}

fn kept_in(available_bytes: u64, budget_bytes: u64, golden_bytes: u64) -> Kept {
    match is_kept_in_memory(available_bytes, budget_bytes, golden_bytes) {
        true => Kept::InMemory,
        false => Kept::OnDisk,
    }
}

/// Whether a golden copy is kept in memory when so much is there and trials may have so much of it.
pub(crate) fn is_kept_in_memory(
    available_bytes: u64,
    budget_bytes: u64,
    golden_bytes: u64,
) -> bool {
    golden_bytes <= available_bytes.saturating_sub(budget_bytes) / MEMORY_SHARE
}

/// The sizes of a layout's files.
pub(crate) fn shape_of(experiment: &Experiment, database: &Database) -> Shape {
    // Layouts that differ only in their writers share their files.
    let layouts = 0..experiment.layouts.len();
    let writers = layouts.map(|layout| experiment.database_of(layout).writers);
    let writers = writers.max().unwrap_or(database.writers);
    let shape = kernel::files_of(
        &*workload_of(&experiment.workload, database),
        clients_max(experiment),
        database.block_size_bytes as usize,
        database.datafiles as usize,
        database.log_files as usize,
        database.log_file_size_bytes,
    );
    Shape {
        double_write_bytes: double_write_bytes_of(database, writers),
        ..shape
    }
}

/// The highest load level.
fn clients_max(experiment: &Experiment) -> usize {
    experiment
        .workload
        .clients
        .iter()
        .copied()
        .max()
        .unwrap_or(1) as usize
}

/// Where golden copies go: beside the data of the first layout that is a directory; else where the experiment says, or
/// where the run was started.
pub(crate) fn golden_place(
    experiment: &Experiment,
    wanted: &[usize],
    grounds: &Grounds,
) -> Result<PathBuf, DatabaseError> {
    let is_there =
        |layout: &&usize| !grounds.is_made(**layout) && experiment.layouts[**layout].made.is_none();
    let path = match (&experiment.plan.golden_path, wanted.iter().find(is_there)) {
        (Some(path), _) => path.as_path(),
        (None, Some(layout)) => &experiment.layouts[*layout].path,
        (None, None) => Path::new("."),
    };
    path.canonicalize().map_err(|error| DatabaseError::Place {
        path: path.to_path_buf(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_trials_may_need_is_left_to_them() {
        assert_eq!(kept_in(9 << 30, 1 << 30, 2 << 30), Kept::InMemory);
        assert_eq!(kept_in(9 << 30, 1 << 30, (2 << 30) + 1), Kept::OnDisk);
        assert_eq!(kept_in(1 << 30, 2 << 30, 1), Kept::OnDisk);
        assert_eq!(kept_in(0, 0, 1), Kept::OnDisk);
    }
}
