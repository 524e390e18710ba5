//! A `[[layout]]` section: one candidate of the comparison. `made` reads what Spindle is to make for it: devices, and what
//! becomes of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod disk_group;
mod made;

pub use disk_group::{DiskGroup, Redundancy};
pub use made::Made;
pub(super) use made::keys_of_tables;

use super::access_path::{AccessPath, Caching, Method};
use super::database::{Database, SAME_IN_EVERY_CASE};
use super::document::Table;
use super::error::ExperimentError;
use super::reader::Reader;

/// Layout keys of the design that a later version will understand.
const LATER: [&str; 2] = ["limit", "delay"];

/// One candidate: a place and an access path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Its name in the table and the verdict, unique in the experiment.
    pub name: String,
    /// An existing directory on the file system to be tested, as written; relative to where the program was started.
    pub path: PathBuf,
    /// What Spindle makes for it, in the place of `path`; `None` when it is a directory that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// How datafiles are read and written.
    pub io: AccessPath,
    /// The database of this layout's cases: the shared settings with this layout's own in place.
    pub(super) database: Database,
}

impl Layout {
    /// Reads a layout. `shared` is what `[database]` says: the settings and the table they were read from.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        shared: &Database,
        shared_table: &Table,
    ) -> Result<Layout, ExperimentError> {
        reader.not_built_yet(&LATER, "the devices as fast as they are")?;
        let name = reader.name("name")?;
        let path = reader
            .directory("path")?
            .unwrap_or_else(|| PathBuf::from("."));
        let made = Made::read(reader, name.unwrap_or_default())?;
        let default_io = AccessPath::new(Caching::Buffered, Method::Sync);
        let mut io_reader = reader.section("io")?;
        let io = AccessPath::read(&mut io_reader, default_io)?;
        let database = read_database(&reader.section("database")?, shared, shared_table)?;
        reader.finish()?;
        let Some(name) = name else {
            return Err(reader.conflict(
                &["name"],
                "a layout has no name",
                "name is missing",
                "every layout needs a name of its own, by which tables and verdicts call it",
            ));
        };
        if io.method == Method::Slaves && database.writers > 1 {
            return Err(io_reader.conflict(
                &["method"],
                format!(
                    "layout {name:?} has I/O slaves and {} writers",
                    database.writers
                ),
                "I/O slaves serve a single DBWR, as in Oracle",
                "add database = { writers = 1 } to this layout",
            ));
        }
        Ok(Layout {
            name: name.to_owned(),
            path,
            made,
            io,
            database,
        })
    }
}

/// Reads the database of a layout: what its own table says, and for the rest what `[database]` says.
fn read_database(
    own: &Reader<'_>,
    shared: &Database,
    shared_table: &Table,
) -> Result<Database, ExperimentError> {
    for (key, compared) in SAME_IN_EVERY_CASE {
        if own.has(key) {
            return Err(own.conflict(
                &[key],
                format!("{key} must be equal in every case"),
                "not allowed in a layout",
                format!("layouts that differ in it would compare {compared}: set {key} once, in [database]"),
            ));
        }
    }
    let merged = shared_table.overridden_by(own.table());
    Database::read(&mut own.over(&merged), Some(shared.memory_bytes))
}
