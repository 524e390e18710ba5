//! The devices of a database.

use std::sync::Arc;

use spindle_io::BlockDevice;

/// The datafile of the undo tablespace.
pub(crate) const UNDO_FILE: u16 = 0;

/// The devices of a database.
#[derive(Clone)]
pub struct Storage {
    /// The control file, at least [`crate::CONTROL_FILE_BYTES`] long.
    pub control: Arc<dyn BlockDevice>,
    /// The online log files, at least two.
    pub redo: Vec<Arc<dyn BlockDevice>>,
    /// The undo tablespace's datafile.
    pub undo: Arc<dyn BlockDevice>,
    /// The data tablespace's datafiles, at least one.
    pub data: Vec<Arc<dyn BlockDevice>>,
    /// The areas of [`crate::TornBlocks::DoubleWrite`], [`crate::double_write_bytes`] long; looked at by every recovery
    /// when there.
    pub double_write: Option<Arc<dyn BlockDevice>>,
    /// The tempfiles of the temporary tablespace, perhaps none. What is in them is of no use to the next start.
    pub temp: Vec<Arc<dyn BlockDevice>>,
}

impl Storage {
    /// The datafile of a number that the database has: 0 is undo's.
    pub(crate) fn datafile(&self, file: u16) -> &Arc<dyn BlockDevice> {
        let found = self.find_datafile(file);
        found.expect("a block that was read is in a datafile")
    }

    /// The datafile of any number.
    pub(crate) fn find_datafile(&self, file: u16) -> Option<&Arc<dyn BlockDevice>> {
        self.datafiles().nth(usize::from(file))
    }

    /// The tempfile of a number; tempfiles are numbered on from the datafiles.
    pub(crate) fn tempfile(&self, file: u16) -> &Arc<dyn BlockDevice> {
        &self.temp[usize::from(file) - 1 - self.data.len()]
    }

    /// All datafiles, undo's first.
    pub(crate) fn datafiles(&self) -> impl Iterator<Item = &Arc<dyn BlockDevice>> {
        std::iter::once(&self.undo).chain(&self.data)
    }
}
