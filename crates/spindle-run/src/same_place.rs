//! Whether a resumed run stands where it stood: on the same devices, and in directories of the same file systems. The
//! machine may have been restarted since, with other names for its disks, or without a mount. Only the runner asks.

use std::path::PathBuf;

use spindle_experiment::Experiment;
use spindle_layout::RecordedDevice;
use spindle_layout::plan::LookedAt;
use spindle_system::SystemTree;

use super::layout_targets::TargetError;
use spindle_system::machine::{DataPath, FileSystem, Machine};

/// The devices of `looked_at` that are not in the journal yet.
pub fn not_recorded(looked_at: &LookedAt, recorded: &[RecordedDevice]) -> Vec<RecordedDevice> {
    let tree = SystemTree::default();
    let is_new = |path: &PathBuf| recorded.iter().all(|device| device.path() != path);
    let new = looked_at.iter().filter(|(path, _)| is_new(path));
    new.map(|(path, appearance)| RecordedDevice::of(&tree, path, *appearance))
        .collect()
}

/// The devices that a run looked at, as they appear now.
///
/// # Errors
/// [`TargetError::Changed`]: a path leads to another one, or to none.
pub fn devices(recorded: &[RecordedDevice]) -> Result<LookedAt, TargetError> {
    let tree = SystemTree::default();
    let now = recorded.iter().map(|device| {
        let found = device.find(&tree);
        let found = found.map_err(|refusal| TargetError::Changed(refusal.to_string()));
        Ok((device.path().to_owned(), found?))
    });
    now.collect()
}

/// Whether trials on the two cannot be compared.
pub fn is_another_machine(before: &Machine, now: &Machine) -> bool {
    before.kernel_release != now.kernel_release
        || before.processor != now.processor
        || before.host != now.host
}

/// Compares the file systems of the directories that the experiment names.
///
/// # Errors
/// [`TargetError::Changed`]: one is of another type, or mounted elsewhere.
pub fn directories(
    experiment: &Experiment,
    before: &Machine,
    now: &Machine,
) -> Result<(), TargetError> {
    let named = experiment.layouts.iter();
    let named = named.filter(|layout| layout.made.is_none() && layout.address().is_none());
    for layout in named {
        let Ok(path) = layout.path.canonicalize() else {
            continue;
        };
        let path = path.display().to_string();
        let of = |machine: &Machine| {
            let mut paths = machine.data_paths.iter();
            let found = paths.find(|found: &&DataPath| found.path == path)?;
            found.file_system.clone()
        };
        let (Some(before), Some(now)) = (of(before), of(now)) else {
            continue;
        };
        let is_same = before.kind == now.kind && before.mount_point == now.mount_point;
        if !is_same {
            let text = |of: &FileSystem| format!("{} mounted at {}", of.kind, of.mount_point);
            return Err(TargetError::Changed(format!(
                "{path} was in {} when the run began and is in {} now; mount what is missing, then resume, or begin a \
                 new run",
                text(&before),
                text(&now)
            )));
        }
    }
    Ok(())
}
