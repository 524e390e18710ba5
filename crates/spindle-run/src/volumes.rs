//! Thin volumes that databases lie on and that are put back to a snapshot before each trial. While that is done nothing
//! on them may be open.

use std::collections::{BTreeMap, BTreeSet};

use spindle_layout::steps::StepError;

use super::database_error::DatabaseError;
use super::layout_targets::LayoutTargets;
use super::own_directories::OwnDirectories;

/// Keeps the volumes beneath some images, now that every database on them is loaded. Returns those that cannot be kept,
/// with the reason.
pub(super) fn keep<'a>(
    beneath: impl Iterator<Item = &'a Vec<usize>>,
    directories: &mut OwnDirectories,
    targets: &LayoutTargets,
    note: &mut dyn FnMut(&str),
) -> BTreeMap<usize, String> {
    let volumes: BTreeSet<usize> = beneath.flatten().copied().collect();
    let mut lost = BTreeMap::new();
    for volume in volumes {
        note("keeping a thin volume by a snapshot");
        if let Err(error) = on_volume(volume, directories, targets, LayoutTargets::keep) {
            lost.insert(volume, error.to_string());
        }
    }
    lost
}

/// Puts the volumes beneath an image back to what was kept.
pub(super) fn roll_back(
    volumes: &[usize],
    directories: &mut OwnDirectories,
    targets: &LayoutTargets,
) -> Result<(), DatabaseError> {
    for volume in volumes {
        on_volume(*volume, directories, targets, LayoutTargets::roll_back)?;
    }
    Ok(())
}

fn on_volume(
    volume: usize,
    directories: &mut OwnDirectories,
    targets: &LayoutTargets,
    work: impl FnOnce(&LayoutTargets, usize) -> Result<(), StepError>,
) -> Result<(), DatabaseError> {
    let place = targets.mounted_at(volume);
    let work = || work(targets, volume).map_err(DatabaseError::from);
    directories.without(place, work)
}
