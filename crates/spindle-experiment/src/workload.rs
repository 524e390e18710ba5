//! The `[workload]` section: what the clients do, and how many of them there are.
//!
//! Each kind of workload has its own keys and its own `read`; a key of one kind used with another is told where it
//! belongs.

mod in_sql;

use serde::{Deserialize, Serialize};
use spindle_text::words;
use spindle_workload::sql;
pub use spindle_workload::sql::tpch::Parameters;
pub use spindle_workload::{Arrivals, Hotspot, RedoStress, Spacing};

use super::database::Database;
use super::error::ExperimentError;
use super::reader::{Reader, keys_asked_by};
use spindle_text::quantity::{MIB, TIB, size_text};

pub use in_sql::{Junk, Tpcb, Tpcc};
pub use sql::Mix;

words! {
    /// The kind of workload.
    pub enum WorkloadKind {
        /// Short transactions of reads and updates at random rows, as in the HP/Oracle study of raw devices.
        OltpMix = "oltp_mix",
        /// SLOB: random single-block reads and updates, one row per block.
        Slob = "slob",
        /// TPC-H: 22 queries, and functions that refresh the data.
        Tpch = "tpch",
        /// TPC-D, its ancestor: 17 queries.
        Tpcd = "tpcd",
        /// TPC-B, as `pgbench` has it.
        Tpcb = "tpcb",
        /// TPC-C.
        Tpcc = "tpcc",
        /// Rows inserted one by one, as in the study of ASM and LVM.
        Junk = "junk",
    }
}

impl WorkloadKind {
    /// The words of those whose trials end when so much has been done, and not after a time.
    pub(super) fn counted() -> Vec<&'static str> {
        [WorkloadKind::Tpch, WorkloadKind::Tpcd, WorkloadKind::Junk]
            .map(WorkloadKind::as_str)
            .to_vec()
    }
}

/// What the clients do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Load levels: numbers of clients, each 1 to 4096 and each a case of its own.
    pub clients: Vec<u32>,
    /// Pause of a client after each transaction, up to 1 h.
    pub think_time_ms: u64,
    /// Transactions that arrive at a rate, whatever the database makes of them; `None`: a client begins one when it has
    /// ended the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// A client whose connection is lost connects anew; else that ends the trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconnect: bool,
    /// Share of transactions that may fail for good before the trial counts as failed, percent.
    #[serde(default = "error_limit_percent")]
    pub error_limit_percent: f64,
    /// The kind of workload and its settings.
    pub transactions: Transactions,
}

/// What `error_limit` is when it is left out, percent.
const ERROR_LIMIT_PERCENT: f64 = 1.0;
/// And for queries: one that is cancelled is shown among the others.
const ERROR_LIMIT_OF_QUERIES_PERCENT: f64 = 100.0;

fn error_limit_percent() -> f64 {
    ERROR_LIMIT_PERCENT
}

fn read_arrivals(reader: &mut Reader<'_>) -> Result<Option<Arrivals>, ExperimentError> {
    let rate_per_s = reader.rate_per_s("rate", 0.01..=10_000_000.0);
    let spacing = reader.optional_word("arrivals");
    match (rate_per_s, spacing) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(reader.conflict(
            &["arrivals"],
            "arrivals is set and rate is not",
            "without a rate each client begins a transaction when it has ended the last",
            "set rate = \"500/s\" beside it, or leave arrivals out",
        )),
        (Some(_), _) if reader.has("think_time") => Err(reader.conflict(
            &["rate", "think_time"],
            "rate and think_time are both set",
            "one of the two says when a client begins its next transaction",
            "leave one out: with a rate, transactions begin when they are due and a client is free",
        )),
        (Some(rate_per_s), spacing) => Ok(Some(Arrivals {
            rate_per_s,
            spacing: spacing.unwrap_or(Spacing::Poisson),
        })),
    }
}

/// The settings of each kind of workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Transactions {
    /// Short transactions of reads and updates at random rows.
    OltpMix(OltpMix),
    /// SLOB.
    Slob(Slob),
    /// TPC-H.
    Tpch(Queries),
    /// TPC-D.
    Tpcd(Queries),
    /// TPC-B.
    Tpcb(Tpcb),
    /// TPC-C.
    Tpcc(Tpcc),
    /// Rows inserted one by one.
    Junk(Junk),
}

impl Transactions {
    /// The settings of a workload of queries.
    pub fn queries(&self) -> Option<&Queries> {
        match self {
            Transactions::Tpch(queries) | Transactions::Tpcd(queries) => Some(queries),
            _ => None,
        }
    }

    /// Whether trials end when so many transactions have been carried out, and not after a time.
    pub fn are_counted(&self) -> bool {
        self.queries().is_some() || matches!(self, Transactions::Junk(_))
    }
}

/// Settings of `oltp_mix`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OltpMix {
    /// Share of row operations that only read; the rest are updates. 0 to 100.
    pub read_percent: u32,
    /// Row operations in a transaction, 1 to 1000.
    pub row_operations: u32,
}

/// Settings of `slob`, after those of its `slob.conf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slob {
    /// Share of operations that update (`UPDATE_PCT`), 0 to 100.
    pub update_percent: u32,
    /// Share of reading operations that scan the scan table (`SCAN_PCT`), 0 to 100.
    pub scan_percent: u32,
    /// Blocks of the scan table (`SCAN_TABLE_SZ`), 1 to 16777216.
    pub scan_blocks: u32,
    /// Blocks touched by one operation (`WORK_UNIT`), 1 to 10000.
    pub work_unit: u32,
    /// Redo made by an update (`REDO_STRESS`).
    pub redo_stress: RedoStress,
    /// Part of a client's data that is visited more often than the rest (`DO_HOTSPOT`); none when absent.
    pub hotspot: Option<Hotspot>,
}

/// Settings of `tpch` and `tpcd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Size of the data: 1 is about a gigabyte of text. 0.01 to 10000.
    pub scale: f64,
    /// The queries that are asked, by number, in the order of the file.
    pub queries: Vec<u32>,
    /// Whether the refresh functions run.
    pub refresh: bool,
    /// A query that takes longer is cancelled and counted as an error, 100 ms to 1 h.
    pub query_limit_ms: u64,
    /// Where their parameters come from.
    pub parameters: Parameters,
}

/// What a unit of scale takes in a database, tables and indexes together, about.
const BYTES_PER_SCALE: f64 = 1.6e9;

impl Queries {
    fn read(reader: &mut Reader<'_>, kind: WorkloadKind) -> Result<Queries, ExperimentError> {
        let most = if kind == WorkloadKind::Tpcd { 17 } else { 22 };
        let scale = reader.scale("scale", 1.0, 0.01..=10_000.0);
        let queries = match reader.has("queries") {
            true => reader.numbers("queries", 1, 1..=most),
            false => {
                reader.numbers("queries", 1, 1..=most);
                (1..=most).collect()
            }
        };
        Ok(Queries {
            scale,
            queries,
            refresh: reader.flag("refresh", false),
            query_limit_ms: reader.duration_ms("query_limit", 600_000, 100..=3_600_000),
            parameters: reader.word("parameters", Parameters::Random),
        })
    }

    /// Bytes of the loaded database, about.
    pub fn data_bytes(&self) -> u64 {
        (self.scale * BYTES_PER_SCALE) as u64
    }

    /// Keys that mean nothing to streams of queries.
    fn check(reader: &Reader<'_>, kind: WorkloadKind) -> Result<(), ExperimentError> {
        for key in ["think_time", "rate", "arrivals"] {
            if reader.has(key) {
                return Err(reader.conflict(
                    &[key],
                    format!("{key} means nothing to kind = \"{kind}\""),
                    "a stream asks its next query when it has the answer to the last",
                    "leave it out",
                ));
            }
        }
        Ok(())
    }
}

/// The data of a workload that says itself how much there is.
#[derive(Clone, Copy)]
pub(super) struct DataOfWorkload {
    /// Bytes, about.
    pub bytes: u64,
    /// It is there before the clients begin; else they insert it.
    pub is_loaded: bool,
}

/// The data of a workload; `None` when `database.size` says how much there is.
pub(super) fn data_of(reader: &Reader<'_>) -> Result<Option<DataOfWorkload>, ExperimentError> {
    // Read in a copy: the keys are looked at when the whole section is.
    let mut reader = reader.over(reader.table());
    let kind = reader.word("kind", WorkloadKind::OltpMix);
    let bytes = match kind {
        WorkloadKind::Tpch | WorkloadKind::Tpcd => Queries::read(&mut reader, kind)?.data_bytes(),
        WorkloadKind::OltpMix | WorkloadKind::Slob => return Ok(None),
        WorkloadKind::Tpcb => sql::Tpcb::loaded_bytes(Tpcb::read(&mut reader)?.scale),
        WorkloadKind::Tpcc => sql::Tpcc::loaded_bytes(Tpcc::read(&mut reader)?.warehouses),
        WorkloadKind::Junk => sql::Junk::rows_bytes(Junk::read(&mut reader)?.rows),
    };
    Ok(Some(DataOfWorkload {
        bytes,
        is_loaded: kind != WorkloadKind::Junk,
    }))
}

impl Workload {
    /// The kind of workload.
    pub fn kind(&self) -> WorkloadKind {
        match self.transactions {
            Transactions::OltpMix(_) => WorkloadKind::OltpMix,
            Transactions::Slob(_) => WorkloadKind::Slob,
            Transactions::Tpch(_) => WorkloadKind::Tpch,
            Transactions::Tpcd(_) => WorkloadKind::Tpcd,
            Transactions::Tpcb(_) => WorkloadKind::Tpcb,
            Transactions::Tpcc(_) => WorkloadKind::Tpcc,
            Transactions::Junk(_) => WorkloadKind::Junk,
        }
    }

    /// Reads the workload section.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        database: &Database,
    ) -> Result<Workload, ExperimentError> {
        let kind = reader.word("kind", WorkloadKind::OltpMix);
        let is_of_queries = matches!(kind, WorkloadKind::Tpch | WorkloadKind::Tpcd);
        if is_of_queries {
            Queries::check(reader, kind)?;
        }
        let (clients, error_limit) = match is_of_queries {
            true => (1, ERROR_LIMIT_OF_QUERIES_PERCENT),
            false => (8, ERROR_LIMIT_PERCENT),
        };
        let workload = Workload {
            clients: reader.numbers("clients", clients, 1..=4096),
            think_time_ms: reader.duration_ms("think_time", 0, 0..=3_600_000),
            arrivals: read_arrivals(reader)?,
            reconnect: reader.flag("reconnect", false),
            error_limit_percent: reader.percent("error_limit", error_limit, 0.0..=100.0),
            transactions: match kind {
                WorkloadKind::OltpMix => Transactions::OltpMix(OltpMix::read(reader)?),
                WorkloadKind::Slob => Transactions::Slob(Slob::read(reader, database)?),
                WorkloadKind::Tpch => Transactions::Tpch(Queries::read(reader, kind)?),
                WorkloadKind::Tpcd => Transactions::Tpcd(Queries::read(reader, kind)?),
                WorkloadKind::Tpcb => Transactions::Tpcb(Tpcb::read(reader)?),
                WorkloadKind::Tpcc => Transactions::Tpcc(Tpcc::read(reader)?),
                WorkloadKind::Junk => Transactions::Junk(Junk::read(reader)?),
            },
        };
        reader.finish();
        in_sql::check(reader, &workload, database.engine)?;
        Ok(workload)
    }
}

impl OltpMix {
    fn read(reader: &mut Reader<'_>) -> Result<OltpMix, ExperimentError> {
        Ok(OltpMix {
            read_percent: reader.number("read_percent", 40, 0..=100),
            row_operations: reader.number("row_operations", 5, 1..=1000),
        })
    }
}

impl Slob {
    fn read(reader: &mut Reader<'_>, database: &Database) -> Result<Slob, ExperimentError> {
        let slob = Slob {
            update_percent: reader.number("update_percent", 10, 0..=100),
            scan_percent: reader.number("scan_percent", 0, 0..=100),
            scan_blocks: reader.number("scan_blocks", 128, 1..=1 << 24),
            work_unit: reader.number("work_unit", 64, 1..=10_000),
            redo_stress: reader.word("redo_stress", RedoStress::Lite),
            hotspot: read_hotspot(reader)?,
        };
        slob.check(reader, database)?;
        Ok(slob)
    }

    fn check(&self, reader: &Reader<'_>, database: &Database) -> Result<(), ExperimentError> {
        let data = size_text(database.size_bytes);
        let scan_bytes = u64::from(self.scan_blocks) * database.block_size_bytes;
        if scan_bytes > database.size_bytes {
            return Err(reader.conflict(
                &["scan_blocks"],
                format!(
                    "a scan table of {} is larger than the data, {data}",
                    size_text(scan_bytes)
                ),
                format!(
                    "at most {}",
                    database.size_bytes / database.block_size_bytes
                ),
                "set fewer scan_blocks or a larger database.size",
            ));
        }
        let hotspot_end_bytes = self
            .hotspot
            .as_ref()
            .map_or(0, |hotspot| hotspot.offset_bytes + hotspot.size_bytes);
        if hotspot_end_bytes > database.size_bytes {
            return Err(reader.conflict(
                &["hotspot"],
                format!(
                    "the hot spot ends at {}, past the data, {data}",
                    size_text(hotspot_end_bytes)
                ),
                "offset + size must lie within the data",
                "make the hot spot smaller, or set a larger database.size",
            ));
        }
        Ok(())
    }
}

fn read_hotspot(reader: &mut Reader<'_>) -> Result<Option<Hotspot>, ExperimentError> {
    let mut table = reader.section("hotspot");
    let hotspot = Hotspot {
        size_bytes: table.size("size", 8 * MIB, MIB..=TIB),
        offset_bytes: table.size("offset", 16 * MIB, 0..=TIB),
        every: table.number("every", 3, 1..=1000),
    };
    table.finish();
    Ok(reader.has("hotspot").then_some(hotspot))
}

/// The keys of each kind of workload, for telling a key of one used with another where it belongs.
pub(super) fn keys_by_kind(database: &Database) -> [(WorkloadKind, Vec<&'static str>); 6] {
    let tpch = WorkloadKind::Tpch;
    [
        (WorkloadKind::OltpMix, keys_asked_by(OltpMix::read)),
        (
            WorkloadKind::Slob,
            keys_asked_by(|reader| Slob::read(reader, database)),
        ),
        // Those of `tpcd`, too.
        (tpch, keys_asked_by(|reader| Queries::read(reader, tpch))),
        (WorkloadKind::Tpcb, keys_asked_by(Tpcb::read)),
        (WorkloadKind::Tpcc, keys_asked_by(Tpcc::read)),
        (WorkloadKind::Junk, keys_asked_by(Junk::read)),
    ]
}
