//! What clients did and saw, to be judged by `checker`: transactions that append unique values to rows which hold
//! lists, read rows and scan. Lists make the order of versions visible, which is the idea of Elle (K. Kingsbury, P.
//! Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB 2020): whoever reads `[3, 1, 7]`
//! has seen three versions and who came before whom.

use std::collections::BTreeMap;
use std::fmt;

/// A row.
pub type Key = u64;
/// What is appended; no two appends of a history have the same.
pub type Value = u32;
/// A place in the one order of everything that clients did: a later call has a greater number.
pub type Moment = u64;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its commit returned.
    Committed,
    /// It was rolled back, or its commit was never called.
    RolledBack,
    /// The power was cut in its commit: it is there whole, or not at all.
    Unknown,
}

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Added a value to the end of a row's list.
    Append(Key, Value),
    /// Saw these rows in one statement: one row read, or several scanned.
    Read {
        /// When the statement was called.
        called: Moment,
        /// Each row with its list.
        rows: Vec<(Key, Vec<Value>)>,
    },
}

/// A transaction, as its client knows it.
#[derive(Debug, Clone)]
pub struct Transaction {
    pub client: usize,
    pub steps: Vec<Step>,
    pub ending: Ending,
    /// When its commit was called and when it was over (returned, or cut short); 0 if never.
    pub commit_called: Moment,
    pub commit_over: Moment,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct History {
    pub transactions: Vec<Transaction>,
    /// What was there when all was over; rows that are not named are empty.
    pub last: BTreeMap<Key, Vec<Value>>,
    now: Moment,
}

impl History {
    /// The next moment.
    pub fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// A transaction begins; it counts as rolled back until more is known.
    pub fn begin(&mut self, client: usize) -> usize {
        self.transactions.push(Transaction {
            client,
            steps: Vec::new(),
            ending: Ending::RolledBack,
            commit_called: 0,
            commit_over: 0,
        });
        self.transactions.len() - 1
    }

    /// The transaction's commit is called.
    pub fn call_commit(&mut self, transaction: usize) {
        let called = self.tick();
        let transaction = &mut self.transactions[transaction];
        transaction.commit_called = called;
        transaction.ending = Ending::Unknown;
    }

    /// The transaction's commit has returned.
    pub fn committed(&mut self, transaction: usize) {
        let over = self.tick();
        let transaction = &mut self.transactions[transaction];
        transaction.commit_over = over;
        transaction.ending = Ending::Committed;
    }

    /// The power was cut: what becomes of commits that were under way is settled before anyone looks again.
    pub fn power_cut(&mut self) {
        let over = self.tick();
        for transaction in &mut self.transactions {
            if transaction.ending == Ending::Unknown && transaction.commit_over == 0 {
                transaction.commit_over = over;
            }
        }
    }
}

/// What must not happen. The names of G0 to G1c are those of A. Adya, "Weak Consistency: A Generalized Theory and
/// Optimistic Implementations for Distributed Transactions", MIT 1999 (chapter 3), and of Adya, Liskov and O'Neil,
/// "Generalized Isolation Level Definitions", ICDE 2000: together they are what PL-2, read committed, forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A circle of transactions, each of which wrote over the last.
    G0WriteCycle,
    /// A value of a transaction that was rolled back was read.
    G1aAbortedRead,
    /// A value was read that was not its transaction's last to that row.
    G1bIntermediateRead,
    /// A circle of transactions, each of which wrote over the last or read from it.
    G1cCircularFlow,
    /// A committed value is not there in the end.
    LostAppend,
    /// A value was read that nobody ever wrote to this row.
    ThinAir,
    /// A value is in a list twice.
    Duplicate,
    /// A transaction did not see its own appends as the end of the list.
    OwnWriteUnseen,
    /// A list was read that is not a beginning of the row's last list: versions in another order, or one that vanished.
    OtherOrder,
    /// A statement did not see what was committed before, or before something that it did see.
    OldView,
}

/// Something that must not happen, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    pub kind: Kind,
    /// For people.
    pub evidence: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.kind, self.evidence)
    }
}
