//! What each kind of workload says of itself, beside its settings: how a trial of it goes, how much data it brings,
//! what it refuses, and how it is made.

use std::sync::Arc;

use spindle_text::load_file::LoadFile;
use spindle_text::section::SettingsRefusal;

use super::SqlWorkload;
use super::dialect::Dialect;
use super::rows::RowsInSql;
use crate::workload::Workload;

/// The database that a workload is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeFor {
    /// Loaded data, bytes.
    pub data_bytes: u64,
    /// Size of a block, bytes.
    pub block_bytes: u64,
    /// Most clients there will be.
    pub clients: u64,
    /// Where the rows start from.
    pub seed: u64,
    /// What it speaks; `None` of the embedded database, which speaks no SQL.
    pub dialect: Option<Dialect>,
}

/// How a trial goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialPace {
    /// Transactions follow each other until the time is over.
    Timed,
    /// It ends when a given amount has been done.
    Counted,
    /// It ends when all that was recorded has been done, and begins each thing when the record says.
    Recorded,
    /// It ends when each stream has asked its queries, one after the other.
    Streams,
}

/// The data of a workload that says itself how much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Bytes, about.
    pub bytes: u64,
    /// It is loaded before the clients begin; else they insert it.
    pub is_loaded: bool,
}

/// A workload that only inserts rows, until there are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsInserted {
    /// Rows, of all clients together.
    pub rows: u64,
    /// Rows of a transaction.
    pub rows_per_transaction: u64,
}

/// A workload, made for a database.
pub enum MadeWorkload {
    /// Of row operations, which every engine can do.
    Rows(Box<dyn Workload>),
    /// In SQL.
    Sql(Arc<dyn SqlWorkload>),
    /// Of row operations for the embedded database, and in SQL with its own statements.
    Both(Box<dyn Workload>, Arc<dyn SqlWorkload>),
}

impl MadeWorkload {
    /// As the embedded database carries it out; `None` when it exists in SQL only.
    pub fn of_rows(self) -> Option<Box<dyn Workload>> {
        match self {
            MadeWorkload::Rows(rows) | MadeWorkload::Both(rows, _) => Some(rows),
            MadeWorkload::Sql(_) => None,
        }
    }

    /// As a database that speaks SQL carries it out; rows are drawn from `seed`.
    pub fn in_sql(self, seed: u64) -> Arc<dyn SqlWorkload> {
        match self {
            MadeWorkload::Rows(rows) => Arc::new(RowsInSql::new(Arc::from(rows), seed)),
            MadeWorkload::Sql(workload) | MadeWorkload::Both(_, workload) => workload,
        }
    }
}

/// The settings of a workload, and what follows from them.
pub trait WorkloadSettings {
    /// Makes it.
    fn make(&self, made_for: &MadeFor) -> MadeWorkload;

    /// How a trial of it goes.
    fn pace(&self) -> TrialPace {
        TrialPace::Timed
    }

    /// Its data, when it says itself how much there is.
    fn data(&self) -> Option<Data> {
        None
    }

    /// Whether it exists in SQL only.
    fn is_in_sql(&self) -> bool {
        self.data().is_some()
    }

    /// All that is wrong with its settings for a database of this size.
    fn check(&self, _: &MadeFor) -> Vec<SettingsRefusal> {
        Vec::new()
    }

    /// Whether its transactions change nothing, and so write no redo.
    fn only_reads(&self) -> bool {
        false
    }

    /// Transactions that are due in a second by what was recorded; `None` where they follow each other.
    fn recorded_rate_per_s(&self) -> Option<f64> {
        None
    }

    /// Rows that a transaction locks at once, apart from the ledger's.
    fn locked_rows(&self) -> u32 {
        0
    }

    /// What a bulk load inserts; `None` of other workloads.
    fn bulk_load(&self) -> Option<RowsInserted> {
        None
    }

    /// Processes of the embedded database that carry out a transaction of a client side by side.
    fn processes(&self) -> u32 {
        1
    }

    /// Sessions at a load level.
    fn sessions(&self, clients: u32) -> u32 {
        clients
    }

    /// Files that make its tables and fill them; the key that names them is `load`.
    fn loaded_from(&self) -> &[LoadFile] {
        &[]
    }

    /// Whether clients put some of their transactions off for others to carry out.
    fn puts_off(&self) -> bool {
        false
    }

    /// Bytes of a server's files that its database is copied from; 0 where it is loaded.
    fn copied_bytes(&self) -> u64 {
        let dumps = self.loaded_from().iter().filter_map(LoadFile::as_dump);
        let copied = dumps.filter(|dump| dump.form.is_of_files());
        copied.map(|dump| dump.bytes).sum()
    }

    /// The key by which its clients pause between transactions, if they do.
    fn pause_key(&self) -> Option<&'static str> {
        None
    }

    /// The key by which it asks for procedures of the database, if it does.
    fn procedure_key(&self) -> Option<&'static str> {
        None
    }
}

/// Refuses `room_for` where the database grows by itself.
pub(super) fn refused_room(made_for: &MadeFor, is_given: bool) -> Option<SettingsRefusal> {
    (is_given && made_for.dialect.is_some()).then(|| SettingsRefusal {
        keys: &["room_for"],
        title: "room_for does not apply to a database that speaks SQL".to_owned(),
        label: "it grows by itself".to_owned(),
        help: "leave room_for out: it sizes the datafiles of the embedded database",
        shown: None,
    })
}
