//! The run's own directories, one in each place that its databases lie in: noted in the ledger before they are made,
//! and removed with all that is Spindle's in them.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_layout::ledger::EntryNumber;
use spindle_layout::record::RunDirectory;
use spindle_layout::{DataDirectory, LayoutError, Ledger, LedgerError};

/// Why a directory cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum OwnDirectoryError {
    /// It, or what a killed run left there.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// It could not be noted.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The run's directory in each place.
pub struct OwnDirectories {
    /// No directory when it was let go with a volume that could not be put back. No number when another place leads to
    /// the same directory, which is noted there.
    directories: BTreeMap<PathBuf, (Option<DataDirectory>, Option<EntryNumber>)>,
    run: String,
    ledger: Arc<Ledger>,
}

impl OwnDirectories {
    /// None yet.
    pub fn new(run: &str, ledger: &Arc<Ledger>) -> OwnDirectories {
        OwnDirectories {
            directories: BTreeMap::new(),
            run: run.to_owned(),
            ledger: Arc::clone(ledger),
        }
    }

    /// Makes the run's directory in a place, noted before it exists; for the layout of that name alone, if it is given.
    pub fn make(&mut self, place: &Path, layout: Option<&str>) -> Result<(), OwnDirectoryError> {
        if self.directories.contains_key(place) {
            return Ok(());
        }
        if let Some(directory) = self.same_as(place) {
            let seen = directory.seen_from(place)?;
            self.directories
                .insert(place.to_path_buf(), (Some(seen), None));
            return Ok(());
        }
        // Left by this run when it was killed.
        if let Some(leftover) = DataDirectory::leftover(place, &self.run)? {
            leftover.remove()?;
        }
        let noted = RunDirectory {
            parent: place.to_path_buf(),
            run: self.run.clone(),
        };
        let number = self.ledger.note(layout, noted.into())?;
        let directory = match DataDirectory::create(place, &self.run) {
            Ok(directory) => directory,
            Err(error) => {
                // It was not made, so nothing needs to look for it.
                self.ledger.gone(number)?;
                return Err(error.into());
            }
        };
        self.directories
            .insert(place.to_path_buf(), (Some(directory), Some(number)));
        Ok(())
    }

    /// The run's directory in a place that is this one, too, though its path is another: a bind mount leads there.
    fn same_as(&self, place: &Path) -> Option<&DataDirectory> {
        let identity = |of: &Path| {
            let found = of.metadata().ok()?;
            Some((found.dev(), found.ino()))
        };
        let wanted = identity(place)?;
        let is_same = |(other, _): &(&PathBuf, _)| identity(other) == Some(wanted);
        let (_, (directory, _)) = self.directories.iter().find(is_same)?;
        directory.as_ref()
    }

    /// The run's directory in a place where it was made.
    ///
    /// # Panics
    /// When it was not, or was let go.
    pub fn of(&self, place: &Path) -> &DataDirectory {
        let (directory, _) = &self.directories[place];
        directory
            .as_ref()
            .expect("volumes are put back only after all images are made")
    }

    /// Removes directories that were made in these, when what they were made for came to nothing: their room and their
    /// numbers are for the next.
    pub fn take_back(&self, made: &[PathBuf]) {
        let own = || self.directories.values().filter_map(|(of, _)| of.as_ref());
        for directory in made {
            let parent = own().find(|of| directory.parent() == Some(of.path()));
            // There is an error to be told already. What stays goes with the run.
            let _ = parent.map(|of| of.take_back(directory));
        }
    }

    /// Lets go of the directory in `place` while `work` does something to what is beneath it, and takes it up again.
    pub fn without<E: From<LayoutError>>(
        &mut self,
        place: Option<&Path>,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut directory = place.and_then(|place| self.directories.get_mut(place));
        if let Some((directory, _)) = &mut directory
            && let Some(directory) = directory.take()
        {
            directory.let_go();
        }
        work()?;
        if let (Some(place), Some((directory, _))) = (place, directory) {
            *directory = DataDirectory::leftover(place, &self.run)?;
        }
        Ok(())
    }

    /// Takes them all away. Returns what could not be, in words.
    pub fn remove(mut self) -> Vec<String> {
        self.take_away()
    }

    fn take_away(&mut self) -> Vec<String> {
        let mut leftovers = Vec::new();
        for (_, (directory, number)) in std::mem::take(&mut self.directories) {
            let Some(number) = number else {
                continue;
            };
            let Some(directory) = directory else {
                // It goes with its volume.
                let noted = self.ledger.gone(number);
                leftovers.extend(noted.err().map(|error| error.to_string()));
                continue;
            };
            let path = directory.path().display().to_string();
            match directory.remove() {
                Ok(removal) if removal.foreign.is_empty() => {
                    let noted = self.ledger.gone(number);
                    leftovers.extend(noted.err().map(|error| error.to_string()));
                }
                Ok(removal) => {
                    let foreign: Vec<String> = removal
                        .foreign
                        .iter()
                        .map(|path| path.display().to_string())
                        .collect();
                    leftovers.push(format!(
                        "{path} was left: it holds what is not ours: {}",
                        foreign.join(", ")
                    ));
                }
                Err(error) => leftovers.push(format!("{path} was left: {error}")),
            }
        }
        leftovers
    }
}

impl Drop for OwnDirectories {
    fn drop(&mut self) {
        // Left by an error that is to be told already: what stays is in the ledger.
        let _ = self.take_away();
    }
}

#[cfg(test)]
mod tests {
    use spindle_system::SystemTree;

    use super::*;

    #[test]
    fn two_ways_to_one_place_share_the_directory_there() {
        let scratch = tempfile::tempdir().unwrap();
        let (place, way) = (scratch.path().join("place"), scratch.path().join("way"));
        std::fs::create_dir(&place).unwrap();
        std::os::unix::fs::symlink(&place, &way).unwrap();
        let ledgers = scratch.path().join("ledgers");
        let ledger = Arc::new(Ledger::begin(&ledgers, "run-1", &SystemTree::default()).unwrap());
        let mut directories = OwnDirectories::new("run-1", &ledger);
        directories.make(&place, None).unwrap();
        directories.make(&way, None).unwrap();
        let image = directories.of(&way).make_image_directory(1).unwrap();
        assert!(image.starts_with(&way), "{}", image.display());
        assert!(directories.of(&place).path().join("image-1").exists());
        assert_eq!(directories.remove(), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    }
}
