//! What the layouts of a run need of databases: layouts that need the same share one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spindle_layout::{FileManager, Placement, Shape, check_space};

use super::DatabaseError;
use super::golden::shape_of;
use crate::grounds::Grounds;
use spindle_experiment::{Experiment, PutBack};

/// What a layout's database is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub shape: Shape,
    /// Directories are those in which the run's own are.
    pub placement: Placement,
    pub manager: FileManager,
    pub put_back: PutBack,
}

impl Wanted {
    /// What a layout needs; or why it cannot be had.
    pub fn by(
        experiment: &Experiment,
        layout: usize,
        grounds: &Grounds,
    ) -> Result<Wanted, DatabaseError> {
        let placement = grounds
            .placement(experiment, layout)
            .map_err(DatabaseError::Ground)?;
        let shape = shape_of(experiment, &experiment.database_of(layout));
        // A file manager has nothing to do where there is no file system.
        let manager = if placement.directories(&shape).is_empty() {
            FileManager::Plain
        } else {
            manager_of(experiment, layout)
        };
        Ok(Wanted {
            shape,
            placement,
            manager,
            put_back: experiment.put_back(layout),
        })
    }

    /// Bytes that it takes in each directory: what shares blocks with originals takes as much again when it is
    /// overwritten.
    pub fn directories(&self) -> BTreeMap<PathBuf, u64> {
        let mut directories = self.placement.directories(&self.shape);
        if self.put_back == PutBack::Clones {
            directories.values_mut().for_each(|bytes| *bytes *= 2);
        }
        directories
    }
}

/// Refuses before anything is written when a place has too little room for what will be made there. Directories that
/// Spindle made hold one layout, which fails alone.
pub(super) fn check_room(
    experiment: &Experiment,
    layouts: &[usize],
    grounds: &Grounds,
    golden_place: &Path,
) -> Result<(), DatabaseError> {
    let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let mut goldens: Vec<Shape> = Vec::new();
    let mut images: Vec<Wanted> = Vec::new();
    for &layout in layouts {
        let Ok(image) = Wanted::by(experiment, layout, grounds) else {
            continue;
        };
        if !goldens.contains(&image.shape) {
            *needed.entry(golden_place.to_path_buf()).or_default() += image.shape.total_bytes();
            goldens.push(image.shape.clone());
        }
        if !images.contains(&image) && !grounds.is_made(layout) {
            for (place, bytes) in image.directories() {
                *needed.entry(place).or_default() += bytes;
            }
        }
        images.push(image);
    }
    for (place, bytes) in needed {
        check_space(&place, bytes)?;
    }
    Ok(())
}

fn manager_of(experiment: &Experiment, layout: usize) -> FileManager {
    match experiment.layouts[layout].io.method.identifies_files() {
        true => FileManager::Odm,
        false => FileManager::Plain,
    }
}
