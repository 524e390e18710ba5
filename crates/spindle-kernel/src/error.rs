//! What can go wrong in the database, in words.

use spindle_io::{Fault, IoError};
use spindle_query::{RowLayout, RowLayoutError};

use crate::block::{BlockAddress, RowId};

/// Result of a database operation.
pub type Result<T> = std::result::Result<T, KernelError>;

/// Why an operation of the database failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// A device refused an I/O.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A datafile does not give a block, or several from there on; other blocks can be read, and this one may be later.
    #[error("block {address} cannot be read: {error}")]
    UnreadableBlock {
        /// The block, the first of those asked for.
        address: BlockAddress,
        /// What the datafile's device says.
        error: IoError,
    },
    /// A block read from a datafile is not what was written there: it is reported, never served.
    #[error("block {address} of {device} is damaged: {reason}")]
    DamagedBlock {
        /// Where the block should be.
        address: BlockAddress,
        /// The datafile.
        device: String,
        /// Which check failed.
        reason: String,
    },
    /// Redo read in recovery is not what was written: nothing after it can be rolled forward.
    #[error(
        "redo in {device} is damaged at sequence {sequence}, position {position}: {reason}; restore the log file, or the \
         whole database from a copy"
    )]
    DamagedRedo {
        /// The log file.
        device: String,
        /// Its sequence number.
        sequence: u32,
        /// Position of the record, or of the batch, that is not as it should be.
        position: u64,
        /// What is wrong.
        reason: String,
    },
    /// The control file is damaged or belongs to something else.
    #[error("control file {device}: {reason}")]
    ControlFile {
        /// The control file.
        device: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A device is too small or too coarse for what it shall hold.
    #[error("{device}: {reason}")]
    Storage {
        /// The device.
        device: String,
        /// What does not fit.
        reason: String,
    },
    /// Memory for the buffer cache or the log buffer is not available.
    #[error("no memory for {what}: {reason}")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// The system's own words.
        reason: String,
    },
    /// Loading a table was interrupted. The table is not made.
    #[error("interrupted")]
    LoadInterrupted,
    /// A row stayed locked by another transaction for longer than the lock timeout.
    #[error(
        "row {row} stayed locked by another transaction for {waited_ms} ms; roll back and try again"
    )]
    LockTimeout {
        /// The row.
        row: RowId,
        /// How long the session waited.
        waited_ms: u64,
    },
    /// The transaction would have waited for a row whose holder waits, by way of others or not, for this transaction:
    /// as ORA-00060. It keeps its changes and locks; until it is rolled back the others wait for it.
    #[error(
        "deadlock: row {row} is locked by a transaction that waits for this one (the circle: {}); roll back and try again",
        circle(transactions)
    )]
    Deadlock {
        /// The row.
        row: RowId,
        /// The transactions of the circle, each waiting for the next and the last for the first, which is this one. A
        /// transaction is named by its slot (upper 32 bits) and how often that has been used.
        transactions: Vec<u64>,
    },
    /// Running transactions have all blocks of the undo segment, and the datafiles have no room for another extent of
    /// it.
    #[error(
        "the undo segment is full: running transactions have all of its {undo_blocks} blocks, and the datafiles have no \
         room for another extent of it; commit more often, or make the files larger"
    )]
    UndoFull {
        /// Blocks it has.
        undo_blocks: usize,
    },
    /// The undo that a statement needs to see the rows as they were when it began has been used again.
    #[error(
        "snapshot too old: row {row} has changed since the statement began {ran_ms} ms ago, and the undo of that change has \
         been used again. Roll back and try again with statements that read less, or make the undo segment larger \
         (it has {undo_blocks} blocks)"
    )]
    SnapshotTooOld {
        /// The row.
        row: RowId,
        /// How long the statement had run.
        ran_ms: u64,
        /// Blocks of the undo segment.
        undo_blocks: usize,
    },
    /// The tablespace has no room for another extent.
    #[error(
        "tablespace {tablespace} is full: segment {segment} needs an extent of {extent_blocks} blocks"
    )]
    TablespaceFull {
        /// The tablespace.
        tablespace: &'static str,
        /// The segment that wanted to grow.
        segment: String,
        /// Size of the extent, blocks.
        extent_blocks: u32,
    },
    /// The temporary tablespace has no room for another extent: as ORA-01652. The query has ended, and its space is
    /// free.
    #[error(
        "the temporary tablespace is full: all of its {extents} extents are in use. Let fewer queries run at once, or \
         give sorts more memory (sort_area)"
    )]
    TempFull {
        /// Extents it has.
        extents: usize,
    },
    /// A tempfile refused an I/O. The query has ended; the database is as it was.
    #[error("a temporary segment cannot be used: {error}")]
    TempIo {
        /// What the tempfile's device says.
        error: IoError,
    },
    /// A query took longer than it may. It has ended, and its temporary segments are free.
    #[error("the query took longer than it may, and was cancelled")]
    QueryTooLong,
    /// A plan of a query that cannot be carried out.
    #[error(transparent)]
    Query(#[from] spindle_query::QueryError),
    /// A query slave ended without an answer.
    #[error("a query slave ended without an answer")]
    SlaveLost,
    /// The rowid names no row.
    #[error("there is no row at {row}")]
    NoSuchRow {
        /// The rowid.
        row: RowId,
    },
    /// A change of bytes beyond the end of a row.
    #[error("row {row} has {row_bytes} bytes: bytes up to {end} cannot be changed in it")]
    RowTooShort {
        /// The row.
        row: RowId,
        /// Its length.
        row_bytes: usize,
        /// Where the change would have ended.
        end: usize,
    },
    /// A row longer than its table allows.
    #[error(
        "a row of {row_bytes} bytes is too long: table {table} was made for up to {row_bytes_max}"
    )]
    RowTooLong {
        /// The table.
        table: String,
        /// The row's length.
        row_bytes: usize,
        /// The longest allowed.
        row_bytes_max: usize,
    },
    /// A table of rows that a block has no room for, or of none.
    #[error(
        "table {table} cannot be made: its rows may have 1 to {row_bytes_max} bytes in blocks of this size, not {row_bytes}"
    )]
    RowsTooLong {
        /// The table.
        table: String,
        /// Length of its longest rows.
        row_bytes: usize,
        /// The longest allowed.
        row_bytes_max: usize,
    },
    /// An index of keys that a block has no room for, or of none.
    #[error(
        "index {index} cannot be made: its keys may have 1 to {key_bytes_max} bytes in blocks of this size, not {key_bytes}"
    )]
    KeysTooLong {
        /// The index.
        index: String,
        /// Length of its longest keys.
        key_bytes: usize,
        /// The longest allowed.
        key_bytes_max: usize,
    },
    /// A key or values that do not fit the columns of a table.
    #[error("table {table}: {error}")]
    Columns {
        /// The table.
        table: String,
        /// What does not fit.
        error: RowLayoutError,
    },
    /// The dictionary has no columns of the table: only its bytes can be read and written.
    #[error("table {table} has no columns in the dictionary: its rows are bytes")]
    NoColumns {
        /// The table.
        table: String,
    },
    /// A plan of a query takes a table for other columns than the dictionary has of it.
    #[error("a plan takes table {table} for other columns than it has: {columns}")]
    OtherColumns {
        /// The table.
        table: String,
        /// Its columns.
        columns: RowLayout,
    },
    /// A key that is given as bytes of the row, for a table that has columns.
    #[error("index {index}: table {table} has columns, so the key must be given as some of them")]
    KeyOfBytes {
        /// The index.
        index: String,
        /// The table.
        table: String,
    },
    /// The table is not in the data dictionary.
    #[error("there is no table `{name}`")]
    NoSuchTable {
        /// The name asked for.
        name: String,
    },
    /// The table has no index of that name.
    #[error("table {table} has no index `{name}`")]
    NoSuchIndex {
        /// The table.
        table: String,
        /// The name asked for.
        name: String,
    },
    /// Another row has the key: as ORA-00001. The transaction is what it was before the statement.
    #[error("unique index {index} has this key already")]
    DuplicateKey {
        /// The index.
        index: String,
    },
    /// A row ends before the last part of a key begins.
    #[error("a row of {row_bytes} bytes is too short to have a key in index {index}")]
    NoKey {
        /// The index.
        index: String,
        /// The row's length.
        row_bytes: usize,
    },
    /// Bytes of a key cannot be changed in place.
    #[error("row {row}: the bytes belong to the key of index {index}; replace the whole row")]
    KeyInPlace {
        /// The row.
        row: RowId,
        /// The index.
        index: String,
    },
    /// A block of a table is not what the map of free space says, or a migrated row not where its home says.
    #[error("table {table} is damaged at block {address}: {reason}")]
    DamagedTable {
        /// The table.
        table: String,
        /// Where it was noticed.
        address: BlockAddress,
        /// What is wrong.
        reason: String,
    },
    /// An index is not what it should be, or does not fit its table.
    #[error("index {index} is damaged at block {address}: {reason}")]
    DamagedIndex {
        /// The index.
        index: String,
        /// Where it was noticed.
        address: BlockAddress,
        /// What is wrong.
        reason: String,
    },
    /// More sessions change data at once than the transaction table has slots for.
    #[error("all {slots} slots of the transaction table are taken")]
    TransactionTableFull {
        /// Slots there are.
        slots: usize,
    },
    /// A roll-back failed halfway, or a change of a row and its indexes did: what is left of the transaction can be
    /// neither added to nor committed.
    #[error("a change of this transaction, or its roll-back, failed halfway: roll back")]
    RollBackUnfinished,
    /// The instance stopped because it could not keep its promises any longer.
    #[error("the instance was aborted: {reason}")]
    Aborted {
        /// The first failure.
        reason: String,
        /// Of which kind it was.
        fault: Fault,
    },
    /// The instance is being shut down.
    #[error("the instance is shutting down")]
    ShuttingDown,
}

impl KernelError {
    /// What kind of fault of a device is behind it.
    pub fn fault(&self) -> Fault {
        match self {
            KernelError::Io(error)
            | KernelError::UnreadableBlock { error, .. }
            | KernelError::TempIo { error } => error.fault,
            KernelError::Aborted { fault, .. } => *fault,
            _ => Fault::Other,
        }
    }
}

/// Transactions as "slot.wrap", in the order of their waits, back to the first.
fn circle(transactions: &[u64]) -> String {
    let name = |id: &u64| format!("{}.{}", id >> 32, *id as u32);
    let names: Vec<_> = transactions
        .iter()
        .chain(transactions.first())
        .map(name)
        .collect();
    names.join(" -> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_names_the_row_and_the_circle() {
        let address = BlockAddress { file: 1, block: 7 };
        let error = KernelError::Deadlock {
            row: RowId { address, slot: 3 },
            transactions: vec![4 << 32 | 9, 1],
        };
        let said = error.to_string();
        assert!(said.contains("row 1.7.3 is locked"), "{said}");
        assert!(said.contains("(the circle: 4.9 -> 0.1 -> 4.9)"), "{said}");
    }
}
