//! TPC-B, as PostgreSQL's `pgbench` has it, so that the two can be compared: its tables with its row widths, and its
//! transaction of seven round trips (`pgbench -M prepared`), or the select alone (`pgbench -S`). History rows also
//! carry their client and number, by which a lost transaction shows. Never called an official result.

mod check;
mod in_rows;
mod tables;
mod transaction;

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::section::SettingsRefusal;
use spindle_text::settings;

use super::connection::{LoadPart, SqlConnection};
use super::dialect::Dialect;
use super::{SqlTransaction, SqlWorkload};
use crate::sql::kind::{Data, MadeFor, MadeWorkload, WorkloadSettings, refused_room};
use crate::workload::{Acknowledged, CheckError, Client, Workload};
use transaction::{Select, TpcbTransaction};

/// Rows for each branch, as in TPC-B 1.3 and `pgbench`.
const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 100_000;
/// Amounts lie within this distance of 0.
const DELTA_MAX: u64 = 5000;
/// Bytes of a branch with its accounts, tellers and keys, about.
const BRANCH_BYTES: u64 = 15 << 20;
/// Transactions for which there is room by default.
const ROOM_FOR: u64 = 1_000_000;

settings! {
    /// The workload.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Tpcb {
        /// Branches, each with 10 tellers and 100,000 accounts.
        scale: u32 = number("scale", 10, 1..=20_000),
        /// Transactions select one account and change nothing, as with `pgbench -S`.
        select_only: bool = flag("select_only", false),
        /// Transactions of a trial for whose rows the embedded database makes room; one that needs more ends the
        /// trial. Other databases grow by themselves.
        room_for: u64 = number("room_for", ROOM_FOR, 1_000..=10_000_000_000),
    }
}

impl Tpcb {
    /// This many branches.
    pub fn new(scale: u32, select_only: bool) -> Tpcb {
        Tpcb {
            scale,
            select_only,
            room_for: ROOM_FOR,
        }
    }

    /// As the embedded database carries it out, with this many accounts in each branch: 100,000, or fewer for tests.
    pub fn in_rows(self, accounts: u64) -> Box<dyn Workload> {
        Box::new(in_rows::TpcbInRows {
            tpcb: self,
            accounts,
        })
    }

    /// Bytes that this many branches take when they are loaded, about.
    pub fn loaded_bytes(scale: u32) -> u64 {
        u64::from(scale) * BRANCH_BYTES
    }
}

impl Tpcb {
    /// What its transactions are called.
    fn kind_word(&self) -> &'static str {
        match self.select_only {
            true => "select",
            false => "transaction",
        }
    }
}

/// A transaction's inputs.
enum Drawn {
    Select(Select),
    Transaction(TpcbTransaction),
}

impl Tpcb {
    /// The client's next transaction, whatever carries it out; each branch has this many accounts.
    fn draw(&self, client: &mut Client, accounts: u64) -> Drawn {
        let scale = u64::from(self.scale);
        let mut drawn = |count: u64| (client.rng.next_u64() % count) as i64;
        let account = drawn(scale * accounts) + 1;
        if self.select_only {
            return Drawn::Select(Select { account });
        }
        let branch = drawn(scale) + 1;
        let teller = drawn(scale * TELLERS) + 1;
        let delta = drawn(2 * DELTA_MAX + 1) - DELTA_MAX as i64;
        client.changes += 1;
        Drawn::Transaction(TpcbTransaction {
            account,
            branch,
            teller,
            delta,
            client: client.number,
            number: client.changes,
        })
    }
}

impl WorkloadSettings for Tpcb {
    fn make(&self, _: &MadeFor) -> MadeWorkload {
        MadeWorkload::Both(self.in_rows(ACCOUNTS), Arc::new(*self))
    }

    fn is_in_sql(&self) -> bool {
        false
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        let room = refused_room(made_for, self.room_for != ROOM_FOR);
        room.into_iter().collect()
    }

    fn locked_rows(&self) -> u32 {
        4
    }

    fn data(&self) -> Option<Data> {
        Some(Data {
            bytes: Tpcb::loaded_bytes(self.scale),
            is_loaded: true,
        })
    }
}

impl SqlWorkload for Tpcb {
    fn name(&self) -> &'static str {
        "tpcb"
    }

    fn kinds(&self) -> Vec<String> {
        vec![self.kind_word().to_owned()]
    }

    fn create_tables(&self, dialect: Dialect) -> Vec<String> {
        tables::create(dialect)
    }

    fn load_parts(&self, _: Dialect) -> Vec<LoadPart> {
        tables::load_parts(u64::from(self.scale))
    }

    fn create_indexes(&self, dialect: Dialect) -> Vec<String> {
        tables::add_keys(dialect)
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        transaction::statements()
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        match self.draw(client, ACCOUNTS) {
            Drawn::Select(select) => Box::new(select),
            Drawn::Transaction(transaction) => Box::new(transaction),
        }
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, CheckError> {
        check::check(connection, acknowledged)
    }
}
