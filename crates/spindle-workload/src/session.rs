//! A transaction as data, and the connection that carries it out. Engines implement [`ClientSession`]; workloads never
//! see an engine.

use std::future::Future;
use std::ops::Range;

use crate::keyed::{Procedure, ProcedureCall};
use crate::query::TableQuery;

/// A change of some bytes of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Adds to the little-endian 64-bit number at an offset.
    Add {
        /// Where in the row.
        offset: usize,
        /// How much.
        amount: i64,
    },
    /// Puts bytes at an offset.
    Put {
        /// Where in the row.
        offset: usize,
        /// What.
        bytes: Vec<u8>,
    },
}

impl Edit {
    /// First byte changed and the one after the last.
    pub fn range(&self) -> Range<usize> {
        match self {
            Edit::Add { offset, .. } => *offset..offset + 8,
            Edit::Put { offset, bytes } => *offset..offset + bytes.len(),
        }
    }

    /// Carries the change out on `part`, which holds the row's bytes from `start` on.
    pub fn apply(&self, part: &mut [u8], start: usize) {
        let range = self.range();
        let target = &mut part[range.start - start..range.end - start];
        match self {
            Edit::Add { amount, .. } => {
                let number = i64::from_le_bytes((&*target).try_into().expect("eight bytes"));
                target.copy_from_slice(&number.wrapping_add(*amount).to_le_bytes());
            }
            Edit::Put { bytes, .. } => target.copy_from_slice(bytes),
        }
    }
}

/// One step of a transaction. Tables and rows are numbers: the table's place in the workload's list, the row's number
/// as loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowOperation {
    /// Read one row.
    Read {
        /// Which table.
        table: usize,
        /// Which row.
        row: u64,
    },
    /// Change one row.
    Update {
        /// Which table.
        table: usize,
        /// Which row.
        row: u64,
        /// How.
        edits: Vec<Edit>,
    },
    /// Add rows, one by one, to a table to which the workload adds rows.
    Insert {
        /// Which table.
        table: usize,
        /// The first row.
        first: Vec<u8>,
        /// How many, 1 at least.
        rows: u64,
        /// Where in a row its counters begin: 64-bit numbers, the highest byte first, that are one more in each row
        /// than in the one before.
        counters: &'static [usize],
    },
    /// Carry out a procedure; no step of its transaction comes after it.
    Call(ProcedureCall),
    /// Ask a query over a whole table.
    Query(TableQuery),
    /// Read every row of adjacent blocks.
    Scan {
        /// Which table.
        table: usize,
        /// First block, counted over the table.
        first_block: u64,
        /// How many.
        blocks: u64,
    },
}

impl RowOperation {
    /// Makes the next row to be added of the one before.
    pub fn count_on(row: &mut [u8], counters: &[usize]) {
        for offset in counters {
            let counter = &mut row[*offset..*offset + 8];
            let number = u64::from_be_bytes((&*counter).try_into().expect("eight bytes"));
            counter.copy_from_slice(&number.wrapping_add(1).to_be_bytes());
        }
    }
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Txn {
    /// The steps, in order; a commit follows.
    pub operations: Vec<RowOperation>,
    /// For a transaction that changes something, its number among the client's (the first is 1); else 0.
    pub number: u64,
}

impl Txn {
    /// A transaction that is one procedure.
    pub fn call(procedure: impl Procedure + 'static, number: u64) -> Txn {
        Txn {
            operations: vec![RowOperation::Call(ProcedureCall::new(procedure))],
            number,
        }
    }

    /// Which kind it is.
    pub fn kind(&self) -> usize {
        match &self.operations[..] {
            [RowOperation::Call(call)] => call.procedure().kind(),
            [RowOperation::Query(query)] => query.kind,
            _ => 0,
        }
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Another transaction was in the way: roll back and try again.
    #[error("{0}")]
    Retry(String),
    /// This transaction and others waited for each other: roll back, so that they can continue, and try again.
    #[error("{0}")]
    Deadlock(String),
    /// The database refused this transaction for a reason that trying again does not change; others may continue.
    #[error("{0}")]
    Refused(String),
    /// The connection is gone, and what became of the transaction is not known.
    #[error("{0}")]
    Lost(String),
    /// Its device or its file system is full, so that it cannot continue.
    #[error("{0}")]
    NoRoom(String),
    /// A server does not accept a statement or a session, and its code says why.
    #[error("{text}")]
    Rejected {
        /// What its code says.
        complaint: Complaint,
        /// What the server says, for people.
        text: String,
    },
    /// The database cannot continue, or did something it must not.
    #[error("{0}")]
    Failed(String),
}

/// What the code of a server's error says: a class of SQLSTATE, or numbers of MariaDB and MySQL. SQLite has one code
/// for what is wrong with a statement, and tells the rest in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Complaint {
    /// A statement is written wrongly.
    Syntax,
    /// The type of a parameter is not known.
    ParameterType,
    /// A statement names what is not there, or asks of it what it cannot do.
    Names,
    /// A right is missing.
    Right,
    /// None of the rules for connections lets this one in.
    NotLetIn,
    /// The server starts, recovers or stops.
    StartsOrStops,
    /// The session that was to be ended has ended.
    NoSuchSession,
}

impl SessionError {
    /// That a server does not accept something.
    pub fn rejected(complaint: Complaint, text: impl Into<String>) -> SessionError {
        let text = text.into();
        SessionError::Rejected { complaint, text }
    }

    /// What the server's code says, if it says anything that decides something.
    pub fn complaint(&self) -> Option<Complaint> {
        match self {
            SessionError::Rejected { complaint, .. } => Some(*complaint),
            _ => None,
        }
    }

    /// Whether there is no connection any more, or none yet; another try may find one.
    pub fn is_lost(&self) -> bool {
        matches!(self, SessionError::Lost(_)) || self.complaint() == Some(Complaint::StartsOrStops)
    }

    /// The same, of a statement that stands at a place; not of what only delays a transaction.
    #[must_use]
    pub fn at(self, place: &str) -> SessionError {
        self.reworded(|text| format!("{place}: {text}"))
    }

    /// The same, with the line of the statement that is meant, where `position` is a character of it, from 1 on. The
    /// first line is where the statement begins, and goes without saying.
    #[must_use]
    pub fn at_position(self, sql: &str, position: usize) -> SessionError {
        let before = sql.chars().take(position.saturating_sub(1));
        match 1 + before.filter(|letter| *letter == '\n').count() {
            1 => self,
            line => self.reworded(|text| format!("{text}, in line {line} of the statement")),
        }
    }

    fn reworded(self, words: impl Fn(String) -> String) -> SessionError {
        match self {
            SessionError::Refused(text) => SessionError::Refused(words(text)),
            SessionError::NoRoom(text) => SessionError::NoRoom(words(text)),
            SessionError::Failed(text) => SessionError::Failed(words(text)),
            SessionError::Rejected { complaint, text } => {
                SessionError::rejected(complaint, words(text))
            }
            other => other,
        }
    }
}

/// One of equal parts of a table: all of them together are the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableShare {
    part: u64,
    parts: u64,
}

impl TableShare {
    /// All of it.
    pub const WHOLE: TableShare = TableShare { part: 0, parts: 1 };

    /// Part number `part`, from 0 on, of `parts`.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn new(part: u64, parts: u64) -> TableShare {
        assert!(part < parts, "part {part} of {parts}");
        TableShare { part, parts }
    }

    /// Which of `count` things, blocks say, are in it.
    pub fn of(self, count: u64) -> Range<u64> {
        let first =
            |part: u64| (u128::from(count) * u128::from(part) / u128::from(self.parts)) as u64;
        first(self.part)..first(self.part + 1)
    }
}

/// A connection to a database under test.
pub trait ClientSession {
    /// Carries out one step in the current transaction, beginning one if there is none.
    fn execute(
        &mut self,
        operation: &RowOperation,
    ) -> impl Future<Output = Result<(), SessionError>>;

    /// Ends the transaction; its changes are promised when this returns.
    fn commit(&mut self) -> impl Future<Output = Result<(), SessionError>>;

    /// Bytes that its queries have written to temporary segments since this was asked last; `None` where that is not
    /// known.
    fn temporary_bytes(&mut self) -> Option<u64> {
        None
    }

    /// Undoes the transaction.
    fn rollback(&mut self) -> impl Future<Output = Result<(), SessionError>>;

    /// Calls `visit` with the bytes of every row in a share of a table.
    fn visit(
        &mut self,
        table: usize,
        share: TableShare,
        visit: &mut dyn FnMut(&[u8]),
    ) -> impl Future<Output = Result<(), SessionError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_long_statement_has_its_line() {
        let error = || SessionError::rejected(Complaint::Syntax, "no");
        let sql = "select ä\n  from t\n  whre id = 1";
        let told = |position| {
            error()
                .at_position(sql, position)
                .at("s.sql:7:1")
                .to_string()
        };
        assert_eq!(told(0), "s.sql:7:1: no");
        assert_eq!(told(8), "s.sql:7:1: no");
        assert_eq!(told(12), "s.sql:7:1: no, in line 2 of the statement");
        assert_eq!(told(25), "s.sql:7:1: no, in line 3 of the statement");
        assert_eq!(told(900), "s.sql:7:1: no, in line 3 of the statement");
    }

    #[test]
    fn shares_are_the_whole_and_do_not_overlap() {
        for (count, parts) in [(0, 3), (2, 3), (10, 1), (10, 3), (u64::MAX, 7)] {
            let mut next = 0;
            for part in 0..parts {
                let share = TableShare::new(part, parts).of(count);
                assert_eq!(share.start, next);
                next = share.end;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn edits_change_the_bytes_they_name() {
        let mut part = vec![0; 12];
        Edit::Add {
            offset: 10,
            amount: -1,
        }
        .apply(&mut part, 8);
        assert_eq!(part, [0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0]);
        Edit::Put {
            offset: 8,
            bytes: vec![7],
        }
        .apply(&mut part, 8);
        assert_eq!(part[0], 7);
    }
}
