//! A `[[layout]]` section: one candidate of the comparison.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::access_path::{AccessPath, Caching, Method};
use super::database::{Database, SAME_IN_EVERY_CASE};
use super::document::Table;
use super::error::ExperimentError;
use super::limit::{Delay, Limit};
use super::reader::Reader;

/// Layout keys of the design that a later version will understand.
const LATER: [&str; 6] = [
    "devices",
    "raw",
    "filesystem",
    "volume",
    "diskgroup",
    "share",
];

/// One candidate: a place and an access path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Its name in the table and the verdict, unique in the experiment.
    pub name: String,
    /// An existing directory on the file system to be tested, as written; relative to where the program was started.
    pub path: PathBuf,
    /// How datafiles are read and written.
    pub io: AccessPath,
    /// What each of its devices is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// How much longer its I/O takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
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
        reader.not_built_yet(&LATER, "path = \"DIRECTORY\", an existing directory")?;
        let name = reader.name("name")?;
        let path = reader
            .directory("path")?
            .unwrap_or_else(|| PathBuf::from("."));
        let default_io = AccessPath::new(Caching::Buffered, Method::Sync);
        let mut io_reader = reader.section("io")?;
        let io = AccessPath::read(&mut io_reader, default_io)?;
        let (limit, delay) = (Limit::read(reader)?, Delay::read(reader)?);
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
            io,
            limit,
            delay,
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
