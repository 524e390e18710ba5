//! A candidate as results know it: what it is called, how its blocks travel, and what the run says of it, so that
//! nothing has to be read from the experiment again.

use std::fmt;

use serde::{Deserialize, Serialize};
pub use spindle_text::price::Price;

use super::words::open_words;

/// How it is said that direct I/O was asked for and the file system buffered it all the same.
pub const NOT_DIRECT_HERE: &str = "not direct here";

open_words! {
    /// How blocks are read and written: `sync`, `slaves`, `async`, `libaio` or `odm`.
    AccessMethod:
    /// The server chooses it itself.
    OfTheServer => "server's",
}

/// Whether blocks pass through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageCache {
    /// They do.
    Buffered,
    /// They do not.
    Direct,
    /// The server decides.
    #[serde(rename = "server's")]
    OfTheServer,
}

impl fmt::Display for PageCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            PageCache::Buffered => "buffered",
            PageCache::Direct => "direct",
            PageCache::OfTheServer => "server's",
        })
    }
}

/// One candidate: where the database stood and how its blocks were read and written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Name from the experiment file, unique in it; what it was found to lie on may stand behind it.
    pub name: String,
    /// Directory or device that held the datafiles.
    pub path: String,
    /// Whether blocks passed through the page cache.
    pub caching: PageCache,
    /// How they were read and written.
    pub method: AccessMethod,
    /// What it costs; `None`: the experiment does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Box<Price>>,
    /// The database, with its version, as it calls itself; `None` for the embedded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The whole layout, in words.
    pub description: String,
    /// How the devices were made slower than they are, such as "limited by Spindle (500 reads/s)" or "delayed by
    /// Spindle (read 5 ms)"; empty when they were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emulated: Vec<String>,
    /// Why its I/O is not direct here, where direct I/O was asked for and the file system buffers it all the same: such
    /// as "tmpfs keeps files in memory".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_direct: Option<String>,
    /// What else was found about the layout on this machine.
    pub notes: Vec<String>,
    /// The settings of its database that findings weigh; `None` for an existing server, and in the results of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseFacts>,
    /// Its parts from the files down to the devices, those of a row side by side; empty in the results of older
    /// versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Vec<StackPart>>,
}

impl Layout {
    /// That direct I/O was asked for and not had, in words.
    pub fn not_direct_note(&self) -> Option<String> {
        let why = self.not_direct.as_ref()?;
        Some(format!("{NOT_DIRECT_HERE}: {why}"))
    }

    /// All that was found about it on this machine, in words.
    pub fn all_notes(&self) -> Vec<String> {
        let notes = self.notes.iter().cloned();
        notes.chain(self.not_direct_note()).collect()
    }
}

/// What a layout's database was set up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseFacts {
    /// DBWR processes of the embedded database; `None` for a server, which has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writers: Option<u32>,
    /// Datafiles of the embedded database; `None` for a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datafiles: Option<u32>,
    /// Its cache, bytes.
    pub buffer_cache_bytes: u64,
}

/// One part of a layout: what it is, and more about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackPart {
    /// What kind of part.
    pub kind: StackKind,
    /// Such as `8 datafiles`, `xfs` or `sdb`.
    pub title: String,
    /// More, in words; may be empty.
    pub detail: String,
}

/// What a part of a layout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackKind {
    /// Files of the database.
    Files,
    /// The access path.
    AccessPath,
    /// A file system, a disk group, an existing directory or server.
    FileSystem,
    /// A volume.
    Volume,
    /// A device.
    Device,
}
