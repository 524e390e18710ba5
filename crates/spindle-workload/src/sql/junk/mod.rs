//! The bulk load of the study of ASM and LVM (Oracle 10g R2 on Red Hat 4): rows inserted one by one into a table with a
//! primary key and a unique key, a commit every `commit_every`. A transaction is the rows of one commit. The client
//! inserts them itself, or calls a procedure that does, as the study's PL/SQL loop did; it calls once for each commit,
//! so that commits are counted alike.

mod check;
mod in_rows;
mod statements;

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::section::SettingsRefusal;
use spindle_text::settings;

use super::connection::SqlConnection;
use super::dialect::Dialect;
use super::value::Value;
use super::{SqlTransaction, SqlWorkload};
use crate::session::SessionError;
use crate::sql::kind::{Data, MadeFor, MadeWorkload, RowsInserted, TrialPace, WorkloadSettings};
use crate::workload::{Acknowledged, CheckError, Client};
use statements::{CALL, INSERT};

/// Characters of `c6`, which is as wide as its type, and of `c7`: rows of about 200 bytes.
const C6_LENGTH: usize = 100;
const C7_LENGTH: usize = 56;
/// Bytes of a row in the table and both keys, about.
const ROW_BYTES: u64 = 320;

/// Rows for which the embedded database's control file can list the extents, whatever the block size and however many
/// clients leave blocks of indexes half empty: 450 bytes each, in 21,000 extents of 8 MiB.
const EMBEDDED_ROWS_MAX: u64 = 300_000_000;

settings! {
    /// The workload.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Junk {
        /// Rows that all clients insert together; rounded up to whole commits of each client. On the embedded database
        /// 300,000,000 at most.
        rows: u64 = number("rows", 1_000_000, 1..=10_000_000_000),
        /// Rows between two commits.
        commit_every: u32 = number("commit_every", 100, 1..=1_000_000),
        /// A procedure of the database inserts the rows of a commit, as the study's loop did; it is called once for
        /// each commit. Not with SQLite nor the embedded database.
        procedure: bool = flag("procedure", false),
    }
}

impl WorkloadSettings for Junk {
    fn make(&self, _: &MadeFor) -> MadeWorkload {
        MadeWorkload::Both(Box::new(in_rows::JunkInRows(*self)), Arc::new(*self))
    }

    fn is_in_sql(&self) -> bool {
        false
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        if made_for.dialect.is_some() || self.rows <= EMBEDDED_ROWS_MAX {
            return Vec::new();
        }
        vec![SettingsRefusal {
            keys: &["rows"],
            title: format!("the embedded database has no room for {} rows", self.rows),
            label: format!("at most {EMBEDDED_ROWS_MAX} with engine = \"kernel\""),
            help: "set fewer rows, or choose another engine: its control file lists about 20,000 extents of at most 8 MiB",
            shown: None,
        }]
    }

    fn locked_rows(&self) -> u32 {
        // And a key in each index.
        3 * self.commit_every
    }

    fn bulk_load(&self) -> Option<RowsInserted> {
        Some(RowsInserted {
            rows: self.rows,
            rows_per_transaction: u64::from(self.commit_every),
        })
    }

    fn pace(&self) -> TrialPace {
        TrialPace::Counted
    }

    fn data(&self) -> Option<Data> {
        Some(Data {
            bytes: self.rows * ROW_BYTES,
            is_loaded: false,
        })
    }

    fn procedure_key(&self) -> Option<&'static str> {
        self.procedure.then_some("procedure")
    }
}

impl SqlWorkload for Junk {
    fn name(&self) -> &'static str {
        "junk"
    }

    fn kinds(&self) -> Vec<String> {
        vec!["commit".to_owned()]
    }

    fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        let procedure = self.procedure.then(|| statements::procedure(dialect));
        [statements::table(dialect)]
            .into_iter()
            .chain(procedure.flatten())
            .collect()
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        statements::all(self.procedure)
    }

    fn transactions(&self, _: usize, clients: usize) -> Option<u64> {
        Some(self.commits(clients))
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        let mut letter = || char::from(b'a' + (client.rng.next_u64() % 26) as u8);
        let c6 = (0..C6_LENGTH).map(|_| letter()).collect();
        let c7 = (0..C7_LENGTH).map(|_| letter()).collect();
        client.changes += 1;
        Box::new(Commit {
            junk: *self,
            client: client.number,
            number: client.changes,
            c6,
            c7,
        })
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        check::check(connection, u64::from(self.commit_every), acknowledged)
    }
}

impl Junk {
    /// The same with no more rows than about `bytes` hold; `None` when those of one commit are more.
    pub(crate) fn within(self, bytes: u64) -> Option<Junk> {
        let rows = self.rows.min(bytes / ROW_BYTES);
        (u64::from(self.commit_every) <= rows).then_some(Junk { rows, ..self })
    }

    /// Commits of each of this many clients.
    fn commits(&self, clients: usize) -> u64 {
        let commits = self.rows.div_ceil(u64::from(self.commit_every));
        commits.div_ceil(clients as u64)
    }
}

/// The rows of one commit.
struct Commit {
    junk: Junk,
    client: usize,
    number: u64,
    c6: String,
    c7: String,
}

impl SqlTransaction for Commit {
    fn number(&self) -> u64 {
        self.number
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let rows = i64::from(self.junk.commit_every);
        let first = (self.number as i64 - 1) * rows + 1;
        let client = Value::Int(self.client as i64);
        let (c6, c7) = (Value::text(&self.c6), Value::text(&self.c7));
        if self.junk.procedure {
            let parameters = [Value::Int(first), Value::Int(rows), client, c6, c7];
            return connection.execute(CALL, &parameters).map(drop);
        }
        connection.begin()?;
        let mut parameters = [Value::Int(first), client, c6, c7];
        for row in first..first + rows {
            parameters[0] = Value::Int(row);
            connection.execute(INSERT, &parameters)?;
        }
        connection.commit()
    }
}
