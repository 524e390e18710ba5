//! Kinds of workloads of transactions that exist in SQL only: their keys, and what they need of the engine.

use serde::{Deserialize, Serialize};
use spindle_engines::sql::ServerKind;
use spindle_workload::sql::Mix;

use super::super::database::Engine;
use super::super::error::ExperimentError;
use super::super::reader::Reader;
use super::{Transactions, Workload, WorkloadKind};

/// Settings of `tpcb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tpcb {
    /// Branches, each with 100,000 accounts; 1 to 20,000.
    pub scale: u32,
    /// Transactions select an account and change nothing.
    pub select_only: bool,
}

/// Settings of `tpcc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tpcc {
    /// Warehouses, 1 to 10,000.
    pub warehouses: u32,
    /// A transaction is one call of a procedure of the database.
    pub procedures: bool,
    /// Shares of the kinds of transactions.
    pub mix: Mix,
}

/// Settings of `junk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Junk {
    /// Rows that are inserted in a trial, 1 to 10,000,000,000; rounded up to whole commits of every client.
    pub rows: u64,
    /// Rows between two commits, 1 to 1,000,000.
    pub commit_every: u32,
    /// A procedure of the database inserts them.
    pub procedure: bool,
}

impl Tpcb {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Tpcb, ExperimentError> {
        Ok(Tpcb {
            scale: reader.number("scale", 10, 1..=20_000),
            select_only: reader.flag("select_only", false),
        })
    }
}

impl Tpcc {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Tpcc, ExperimentError> {
        Ok(Tpcc {
            warehouses: reader.number("warehouses", 10, 1..=10_000),
            procedures: reader.flag("procedures", false),
            mix: read_mix(reader)?,
        })
    }
}

fn read_mix(reader: &mut Reader<'_>) -> Result<Mix, ExperimentError> {
    let mut table = reader.section("mix");
    let mut share = |key, default| match reader.has("mix") {
        // A kind that is left out of a mix does not take place.
        true => table.number(key, 0, 0..=100),
        false => table.number(key, default, 0..=100),
    };
    let mix = Mix {
        new_order: share("new_order", Mix::STANDARD.new_order),
        payment: share("payment", Mix::STANDARD.payment),
        order_status: share("order_status", Mix::STANDARD.order_status),
        delivery: share("delivery", Mix::STANDARD.delivery),
        stock_level: share("stock_level", Mix::STANDARD.stock_level),
    };
    table.finish();
    let sum = mix.sum();
    if sum != 100 {
        return Err(reader.conflict(
            &["mix"],
            format!("the shares of mix add up to {sum}"),
            "they are percentages: 100 in sum",
            "the standard's mix is { new_order = 45, payment = 43, order_status = 4, delivery = 4, stock_level = 4 }; \
             a kind left out does not take place",
        ));
    }
    Ok(mix)
}

impl Junk {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Junk, ExperimentError> {
        Ok(Junk {
            rows: reader.number("rows", 1_000_000, 1..=10_000_000_000),
            commit_every: reader.number("commit_every", 100, 1..=1_000_000),
            procedure: reader.flag("procedure", false),
        })
    }
}

/// Refuses a workload that the engine cannot do, and keys that mean nothing to it.
pub(super) fn check(
    reader: &Reader<'_>,
    workload: &Workload,
    engine: Engine,
) -> Result<(), ExperimentError> {
    let kind = workload.kind();
    let is_of_rows = matches!(kind, WorkloadKind::OltpMix | WorkloadKind::Slob);
    if engine == Engine::Kernel && !is_of_rows {
        return Err(reader.conflict(
            &["kind"],
            format!("kind = \"{kind}\" means nothing to engine = \"kernel\""),
            "the embedded database speaks no SQL",
            "choose another engine in [database]: \"sqlite\", \"postgres\", \"mariadb\"; the embedded database has \
             \"oltp_mix\" and \"slob\"",
        ));
    }
    if engine == Engine::Kernel && workload.reconnect {
        return Err(reader.conflict(
            &["reconnect"],
            "reconnect means nothing to engine = \"kernel\"",
            "the embedded database has no connections to lose",
            "leave it out, or choose another engine: \"sqlite\", \"postgres\", \"mariadb\"",
        ));
    }
    let procedure_key = match &workload.transactions {
        Transactions::Tpcc(tpcc) if tpcc.procedures => Some("procedures"),
        Transactions::Junk(junk) if junk.procedure => Some("procedure"),
        _ => None,
    };
    if let (Engine::Server(ServerKind::Sqlite), Some(key)) = (engine, procedure_key) {
        return Err(reader.conflict(
            &[key],
            format!("{key} = true means nothing to engine = \"sqlite\""),
            "SQLite has no procedures",
            format!("leave {key} out: the client carries out the statements itself"),
        ));
    }
    Ok(())
}
