//! The workloads that may be asked for without a file: those that every engine has, and whose trials take a time. A new
//! one is a line in [`READY`].

use std::fmt;

use spindle_workload::WorkloadKind;

const MIB: u64 = 1 << 20;

/// A workload that may be asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadyWorkload {
    /// Which one.
    pub kind: WorkloadKind,
    /// What its clients do, for people who choose.
    pub says: &'static str,
    /// The key that says how much data there is, and the bytes of one of them, about; `None`: `database.size` does.
    pub unit: Option<(&'static str, u64)>,
    /// More transactions than the embedded database carries out in a second, where they add rows: it makes room for the
    /// rows of those that its trials may reach.
    pub per_s_max: Option<u64>,
}

/// All of them, the default first.
pub const READY: [ReadyWorkload; 4] = [
    ReadyWorkload {
        kind: WorkloadKind::OltpMix,
        says: "short transactions, 40 % reads and 60 % updates at random rows",
        unit: None,
        per_s_max: None,
    },
    ReadyWorkload {
        kind: WorkloadKind::Tpcb,
        says: "TPC-B, as pgbench has it",
        unit: Some(("scale", 16 * MIB)),
        per_s_max: Some(50_000),
    },
    ReadyWorkload {
        kind: WorkloadKind::Tpcc,
        says: "TPC-C: orders of a wholesaler",
        unit: Some(("warehouses", 100 * MIB)),
        per_s_max: Some(20_000),
    },
    ReadyWorkload {
        kind: WorkloadKind::Slob,
        says: "SLOB: single blocks read and updated at random",
        unit: None,
        per_s_max: None,
    },
];

impl ReadyWorkload {
    /// The one that is taken unless another is asked for.
    pub fn by_default() -> &'static ReadyWorkload {
        &READY[0]
    }

    /// The one of this word.
    pub fn of_word(word: &str) -> Option<&'static ReadyWorkload> {
        READY.iter().find(|ready| ready.kind.as_str() == word)
    }
}

impl fmt::Display for ReadyWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}
