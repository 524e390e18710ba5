//! TPC-B, as PostgreSQL's `pgbench` has it, so that the two can be compared: its tables with its row widths, and its
//! transaction of seven round trips (`pgbench -M prepared`), or the select alone (`pgbench -S`). History rows carry
//! their client and number besides, by which a lost transaction shows. Never called an official result.

mod check;
mod tables;
mod transaction;

use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use serde::{Deserialize, Serialize};
use spindle_text::settings;

use super::connection::{LoadPart, SqlConnection};
use super::dialect::Dialect;
use super::{SqlTransaction, SqlWorkload};
use crate::sql::kind::{Data, Ground, Kind, Made};
use crate::workload::{Acknowledged, Client};
use transaction::{Select, TpcbTransaction};

/// Rows for each branch, as in TPC-B 1.3 and `pgbench`.
const TELLERS: u64 = 10;
const ACCOUNTS: u64 = 100_000;
/// Amounts lie within so much of 0.
const DELTA_MAX: u64 = 5000;
/// Bytes of a branch with its accounts, tellers and keys, about.
const BRANCH_BYTES: u64 = 15 << 20;

settings! {
    /// The workload.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Tpcb {
        /// Branches, each with 10 tellers and 100,000 accounts.
        scale: u32 = number("scale", 10, 1..=20_000),
        /// Transactions select one account and change nothing, as with `pgbench -S`.
        select_only: bool = flag("select_only", false),
    }
}

impl Tpcb {
    /// Bytes that so many branches take when they are loaded, about.
    pub fn loaded_bytes(scale: u32) -> u64 {
        u64::from(scale) * BRANCH_BYTES
    }
}

impl Kind for Tpcb {
    fn make(&self, _: &Ground) -> Made {
        Made::Sql(Arc::new(*self))
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
        let kind = if self.select_only {
            "select"
        } else {
            "transaction"
        };
        vec![kind.to_owned()]
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
        let scale = u64::from(self.scale);
        let mut drawn = |count: u64| (client.rng.next_u64() % count) as i64;
        let account = drawn(scale * ACCOUNTS) + 1;
        if self.select_only {
            return Box::new(Select { account });
        }
        let branch = drawn(scale) + 1;
        let teller = drawn(scale * TELLERS) + 1;
        let delta = drawn(2 * DELTA_MAX + 1) - DELTA_MAX as i64;
        client.changes += 1;
        Box::new(TpcbTransaction {
            account,
            branch,
            teller,
            delta,
            client: client.number,
            number: client.changes,
        })
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        acknowledged: &[Acknowledged],
    ) -> Result<String, String> {
        check::check(connection, acknowledged)
    }
}
