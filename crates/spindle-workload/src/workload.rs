//! What every workload offers, whichever it is.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use spindle_io::sync::Latch;
use spindle_query::RowLayout;

use crate::answer::KeptAnswer;
use crate::session::SessionError;
use crate::session::Txn;

/// Length of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLength {
    /// This many bytes.
    Bytes(usize),
    /// One row fills a block.
    WholeBlock,
}

/// Size of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSize {
    /// As many rows as fill this many bytes of blocks.
    Bytes(u64),
    /// This many rows.
    Rows(u64),
}

/// A table that the workload wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSpec {
    /// Its name.
    pub name: &'static str,
    /// Length of its rows.
    pub row: RowLength,
    /// How large it is when loaded.
    pub size: TableSize,
}

/// An index of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name.
    pub name: &'static str,
    /// No two rows may have the same key.
    pub is_unique: bool,
    /// The parts of the row that make the key, in order: where each begins, and its length, bytes.
    pub key: &'static [(u16, u16)],
}

impl IndexSpec {
    /// Length of a key, bytes.
    pub fn key_bytes(&self) -> u64 {
        self.key.iter().map(|(_, bytes)| u64::from(*bytes)).sum()
    }
}

/// What clients add to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inserts {
    /// Which table.
    pub table: usize,
    /// Rows, of all clients together.
    pub rows: u64,
    /// Length of each, bytes.
    pub row_bytes: usize,
    /// Rows that a transaction adds.
    pub rows_per_transaction: u64,
}

/// A table as the engine made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedTable {
    /// Rows it was loaded with.
    pub rows: u64,
    /// Blocks they fill.
    pub blocks: u64,
    /// Length of each, bytes.
    pub row_bytes: usize,
}

/// One client's place in the workload.
pub struct Client {
    /// Its number, from 0.
    pub number: usize,
    /// Clients there are.
    pub clients: usize,
    /// Transactions that change something it has begun.
    pub changes: u64,
    /// Its own chance.
    pub rng: Xoshiro256PlusPlus,
}

/// How long the person at a terminal takes over one transaction; 0 without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalTimes {
    /// Before it, to key it in, nanoseconds.
    pub keying_ns: u64,
    /// After it, to think about the answer, nanoseconds.
    pub thinking_ns: u64,
}

/// What a client was promised of its transactions that have a number, when it had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Number of the last whose commit returned.
    pub last: u64,
    /// How many failed for good: refused, or cut off, in which case it is unknown whether it was committed. Their
    /// numbers are not used again.
    pub failed: u64,
}

impl Acknowledged {
    /// All transactions up to `last`, none of which failed.
    pub fn up_to(last: u64) -> Acknowledged {
        Acknowledged { last, failed: 0 }
    }
}

/// Makes the next row, given its number and random bytes, as many as the table's rows may have.
pub type Loader<'a> = Box<dyn FnMut(u64, &mut Vec<u8>) + 'a>;

/// What clients do.
pub trait Workload: Send + Sync {
    /// The name in the experiment file.
    fn name(&self) -> &'static str;

    /// The tables, in the order by which operations name them.
    fn tables(&self) -> Vec<TableSpec>;

    /// The columns of a table, for the database's dictionary; `None`: its rows are bytes. The longest row of these
    /// columns is the table's, and keys of its indexes are some of them.
    fn columns(&self, _table: usize) -> Option<RowLayout> {
        None
    }

    /// The indexes of a table; the workload's transactions name them by their places here.
    fn indexes(&self, _table: usize) -> &'static [IndexSpec] {
        &[]
    }

    /// What clients add to tables, at most.
    fn inserts(&self) -> Vec<Inserts> {
        Vec::new()
    }

    /// The kinds of transactions, in the order of [`Txn::kind`].
    fn kinds(&self) -> Vec<String> {
        vec!["transaction".to_owned()]
    }

    /// Transactions that one of this many clients carries out before it ends, where the workload itself says so.
    fn transactions(&self, _client: usize, _clients: usize) -> Option<u64> {
        None
    }

    /// Answers that clients were given, where they are kept.
    fn kept_answers(&self) -> Vec<KeptAnswer> {
        Vec::new()
    }

    /// What queries of all clients may have in temporary segments at once, bytes.
    fn temp_bytes(&self) -> u64 {
        0
    }

    /// Makes the rows of a table one after the other, from row `first` on; they may differ in length, up to the
    /// table's.
    fn loader(&self, table: usize, first: u64) -> Loader<'_>;

    /// How many bytes of a table's rows, of `row_bytes` each, updates replace; they follow the counters.
    fn replaced_bytes(&self, table: usize, row_bytes: usize) -> usize;

    /// The client's next transaction.
    fn next(&self, client: &mut Client, tables: &[LoadedTable]) -> Txn;

    /// Whether clients put transactions of this kind off for others to carry out. Those have no number.
    fn is_deferred(&self, _kind: usize) -> bool {
        false
    }

    /// How long the person at the client's terminal takes over a transaction of this kind.
    fn terminal_times(&self, _kind: usize, _client: &mut Client) -> TerminalTimes {
        TerminalTimes::default()
    }

    /// A check of the whole database after a run; `acknowledged` has, for each client, what it was promised.
    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker>;
}

/// Says whether anything was lost, when every row has been looked at in one share or another.
pub trait Checker: Send + Sync {
    /// A share of the rows, none of them seen yet.
    fn share(&self) -> Box<dyn SeenRows>;

    /// What was found in the shares that have ended, in words.
    ///
    /// # Errors
    /// See [`CheckError`].
    fn finish(&self) -> Result<String, CheckError>;
}

/// What one session has seen of its share of the rows.
pub trait SeenRows: Send {
    /// Takes a row into account.
    fn row(&mut self, table: usize, bytes: &[u8]);

    /// All rows of the share have been seen.
    fn end(self: Box<Self>);
}

/// What a workload's check counts, of a share of the rows or of all.
pub trait Tally: Clone + Send + Sync + 'static {
    /// Takes a row into account.
    fn row(&mut self, table: usize, bytes: &[u8]);

    /// Takes into account what another has seen.
    fn add(&mut self, other: Self);

    /// What was found, in words.
    ///
    /// # Errors
    /// See [`CheckError`].
    fn finish(&self) -> Result<String, CheckError>;
}

/// The check that counts so, beginning with what has seen nothing.
pub fn checker_of(nothing: impl Tally) -> Arc<dyn Checker> {
    let whole = Arc::new(Latch::new(nothing.clone()));
    Arc::new(Tallied { nothing, whole })
}

struct Tallied<T> {
    nothing: T,
    whole: Arc<Latch<T>>,
}

struct TallyOfShare<T> {
    seen: T,
    whole: Arc<Latch<T>>,
}

impl<T: Tally> Checker for Tallied<T> {
    fn share(&self) -> Box<dyn SeenRows> {
        Box::new(TallyOfShare {
            seen: self.nothing.clone(),
            whole: Arc::clone(&self.whole),
        })
    }

    fn finish(&self) -> Result<String, CheckError> {
        self.whole.lock().finish()
    }
}

impl<T: Tally> SeenRows for TallyOfShare<T> {
    fn row(&mut self, table: usize, bytes: &[u8]) {
        self.seen.row(table, bytes);
    }

    fn end(self: Box<Self>) {
        self.whole.lock().add(self.seen);
    }
}

/// Why a check after a run does not find what it must.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The database could not be read: whether something is lost is not known.
    #[error(transparent)]
    Unread(#[from] SessionError),
    /// Something is missing, or should not be there: what, in words.
    #[error("{0}")]
    Lost(String),
}
