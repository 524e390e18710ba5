//! A `[[layout]]` section: one candidate of the comparison. `made` reads what Spindle is to make for it: devices, and
//! what becomes of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_engines::sql::{Address, ServerIo};

mod disk_group;
mod made;
mod placement;
mod price;

pub use disk_group::{DiskGroupSpec, Redundancy, Striping, StripingByKind};
pub use made::{MadeLayout, specs_of};
#[cfg(test)]
pub(crate) use placement::note_kinds;
pub use placement::{PlacedOn, PlacementSpec};
pub use price::Price;

pub(super) use made::{SAY_WHAT_IS_MADE, keys_of_tables};

use spindle_text::section::{Key, Keys, Section};
use spindle_text::settings;

use super::access_path::{AccessPath, Caching, Method, read_access_path};
use super::database::{
    Database, DatabaseEngine, DatabaseSpec, SAME_IN_EVERY_CASE, SharedDatabase, which_it_is,
};
use super::document::DocumentTable;
use super::doubts::anywhere;
use super::reader::Reader;
use super::server::server_io;
use crate::limit::{Delay, Rates, read_delay, read_limit};

/// One candidate: a place and an access path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Its name in the table and the verdict, unique in the experiment.
    pub name: String,
    /// An existing directory on the file system to be tested, as written; relative to where the program was started.
    pub path: PathBuf,
    /// What Spindle makes for it, in place of `path`; `None` when it is an existing directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<MadeLayout>,
    /// Which files lie elsewhere.
    #[serde(default)]
    pub placement: PlacementSpec,
    /// Whether it is measured; one that is not holds files of others.
    #[serde(default = "yes")]
    pub candidate: bool,
    /// Name of the layout that this one is once more, for the noise check; `None` for those of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// How datafiles are read and written.
    pub io: AccessPath,
    /// What of that is asked of a server; `None`: it does as it likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_io: Option<ServerIo>,
    /// What each of its devices is held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Rates>,
    /// How much longer its I/O takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The database of this layout's cases: the shared settings with this layout's own in place.
    pub(super) database: Database,
}

fn yes() -> bool {
    true
}

settings! {
    /// What is said of a layout in one word each.
    pub(crate) struct LayoutSettings {
        /// A directory on the file system to be tested; or Spindle makes the layout, see below.
        path: Option<PathBuf> = directory("path", "`\".\"`"),
        /// Whether it is measured; one that is not holds files of others.
        candidate: bool = flag("candidate", true),
    }
}

/// The other keys of a layout, for the reference: a name, a price, and tables.
pub(crate) fn note_tables<K: Keys>(keys: &mut K) {
    const TABLE: &str = "a table, see below";
    for (name, default, allowed, says) in [
        (
            "name",
            "none: required",
            "1 to 100 characters on one line, all of them visible, no space first or last, unique",
            "what tables and verdicts call it",
        ),
        (
            "price",
            "none",
            "such as `\"551 USD/month\"`; per `hour`, `month` or `year`",
            "what the layout costs. With a price for each, reports tell what a million transactions cost, and which \
             layouts another dominates",
        ),
        (
            "io",
            "`{ caching = \"buffered\", method = \"sync\" }`",
            TABLE,
            "how datafiles are read and written",
        ),
        ("placement", "`{}`", TABLE, "files that lie elsewhere"),
        (
            "limit",
            "none",
            TABLE,
            "what each device of the layout is held to: emulates an array's limit",
        ),
        (
            "delay",
            "none",
            TABLE,
            "how much longer each I/O of the layout takes: emulates a slower disk; beneath it (dm-delay) where that can \
             be",
        ),
        (
            "database",
            "`{}`",
            "a table",
            "settings of `[database]` that are different in this layout",
        ),
        (
            "devices",
            "none",
            "a list of paths and tables, see below",
            "block devices, best by `/dev/disk/by-id/...`, and files that stand in for devices",
        ),
        (
            "filesystem",
            "none",
            "a type, or a table, see below",
            "a file system is made on the device or the volume, and mounted",
        ),
        (
            "diskgroup",
            "none",
            TABLE,
            "the devices become a disk group, as ASM makes it",
        ),
        (
            "volume",
            "none",
            TABLE,
            "a logical volume (LVM) over all devices, below `raw` or `filesystem`",
        ),
    ] {
        keys.noted(Key { name, says }, default, allowed);
    }
}

impl Layout {
    /// The existing server, if it is one.
    pub fn address(&self) -> Option<&Address> {
        self.database.address()
    }

    /// Reads a layout. `shared` is what `[database]` says. Its name is empty where it has none.
    pub(super) fn read(reader: &mut Reader<'_>, shared: &SharedDatabase<'_>) -> Layout {
        let name = reader.name("name");
        note_tables(reader);
        let LayoutSettings { path, candidate } = Section::read(reader);
        let path = path.unwrap_or_else(|| PathBuf::from("."));
        let mut made = MadeLayout::read(reader, name.unwrap_or_default());
        let placement = PlacementSpec::read(reader);
        let is_raw = made.as_ref().is_some_and(MadeLayout::is_raw);
        let default_caching = if is_raw {
            Caching::Direct
        } else {
            Caching::Buffered
        };
        let default_io = AccessPath::new(default_caching, Method::Sync);
        let mut io_reader = reader.section("io");
        let io = read_access_path(&mut io_reader, default_io);
        let server_io = match shared.database.engine() {
            DatabaseEngine::Kernel => None,
            DatabaseEngine::Server(kind) => {
                let of_layout = reader.keys(SAY_WHAT_IS_MADE);
                let of_server = which_it_is(&reader.section("database"));
                let given = [&of_layout[..], &of_server].concat();
                server_io(&io_reader, io, kind, given, is_raw)
            }
        };
        let (limit, delay) = (read_limit(reader), read_delay(reader));
        let price = price::read(reader);
        if let Some(made) = &mut made {
            made.spec.delay = delay;
        }
        let own = reader.section("database");
        let database = read_database(&own, shared);
        reader.finish();
        if let Some(address) = database.address() {
            check_remote(reader, address, candidate);
        }
        if name.is_none() {
            refuse_nameless(reader);
        }
        if is_raw && io.caching == Caching::Buffered {
            refuse_buffered(&io_reader, reader.keys(SAY_WHAT_IS_MADE));
        }
        check_slaves(&io_reader, io, &own, &database.spec);
        Layout {
            name: name.unwrap_or_default().to_owned(),
            path,
            made,
            placement,
            candidate,
            price,
            repeats: None,
            io,
            server_io,
            limit,
            delay,
            database,
        }
    }
}

fn refuse_nameless(reader: &Reader<'_>) {
    let refused = reader.conflict(
        &["name"],
        "a layout has no name",
        "name is missing",
        "every layout needs its own name: tables and verdicts use it",
    );
    reader.note(refused.given(reader.keys(["name"])));
}

/// Refuses buffered I/O of raw devices; `which_it_is` are the keys that say what the layout is.
fn refuse_buffered<const COUNT: usize>(reader: &Reader<'_>, which_it_is: [String; COUNT]) {
    let refused = reader.conflict(
        &["caching"],
        "raw devices and disk groups are never buffered",
        "\"direct\" is what they imply",
        "leave caching out",
    );
    reader.note(refused.given(which_it_is));
}

/// Refuses I/O slaves for several writers.
fn check_slaves(reader: &Reader<'_>, io: AccessPath, database: &Reader<'_>, spec: &DatabaseSpec) {
    if let DatabaseSpec::Kernel(kernel) = spec
        && io.method == Method::Slaves
        && kernel.instance.writers > 1
    {
        let refused = reader.conflict(
            &["method"],
            format!(
                "I/O slaves cannot be used with {} writers",
                kernel.instance.writers
            ),
            "they serve a single DBWR, as in Oracle",
            "add database = { writers = 1 } to this layout",
        );
        reader.note(refused.given(which_it_is(database)));
    }
}

/// Refuses what cannot be used of an existing server: whatever says what it stands on, and how it reads and writes.
fn check_remote(reader: &Reader<'_>, address: &Address, candidate: bool) {
    for key in reader.set_besides(&["name", "candidate", "database", "price"]) {
        reader.refuse(
            &[key],
            format!("{key} is set for an existing server, {address}"),
            "Spindle controls neither its storage nor how it does I/O",
            format!(
                "leave {key} out: compare servers that stand on different storage, each by its url"
            ),
        );
    }
    if !candidate {
        reader.refuse(
            &["candidate"],
            "an existing server cannot hold another layout's files",
            "candidate = false does not apply to it",
            "leave candidate out, or the layout",
        );
    }
}

/// Reads the database of a layout: what its own table says, and for the rest what `[database]` says.
fn read_database(own: &Reader<'_>, shared: &SharedDatabase<'_>) -> Database {
    for (key, compared) in SAME_IN_EVERY_CASE {
        if own.has(key) {
            let refused = own.conflict(
                &[key],
                format!("{key} must be equal in every case"),
                "not allowed in a layout",
                format!("layouts that differ in it would compare {compared}: set {key} once, in [database]"),
            );
            // It may have been meant for [database].
            let is_missing = shared.table.get(key).is_none();
            own.note(refused.doubting(is_missing.then(|| anywhere(key))));
        }
    }
    let is_own = |key: &str| SAME_IN_EVERY_CASE.iter().all(|(same, _)| *same != key);
    let mut entries = own.table().entries.clone();
    entries.retain(|entry| is_own(&entry.key));
    let mut merged = shared.table.overridden_by(&DocumentTable { entries });
    // A layout's settings of a server are added to the shared ones.
    if let (Some(shared), Some(own)) = (shared.table.get("settings"), own.table().get("settings")) {
        merged = merged.overridden_by(&shared.merged_with(own, "settings"));
    }
    Database::read(&mut own.over(&merged), shared.inherited)
}
