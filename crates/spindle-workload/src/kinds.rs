//! Which workloads there are. A new one is its file or folder, and a line here: its word in the experiment file, what
//! it is, and its settings.

use serde::{Deserialize, Serialize};
use spindle_text::section::{Keys, Listing, Section};
use spindle_text::words;

use crate::dss::DssSettings;
use crate::oltp_mix::OltpMixSettings;
use crate::replay::ReplaySettings;
use crate::script::ScriptSettings;
use crate::slob::SlobSettings;
use crate::sql::kind::{RowsInserted, TrialPace, WorkloadSettings};
use crate::sql::tpcc::TpccSettings;
use crate::sql::tpch::{Queries, TpcdSettings, TpchSettings, TpchVersion};
use crate::sql::{Junk, Tpcb};

macro_rules! workloads {
    ($($(#[doc = $says:literal])+ $variant:ident = $word:literal, $settings:ty;)+) => {
        words! {
            /// The kind of workload.
            pub enum WorkloadKind {
                $($(#[doc = $says])+ $variant = $word,)+
            }
        }

        /// The settings of each kind of workload.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Transactions {
            $($(#[doc = $says])+ #[serde(rename = $word)] $variant($settings),)+
        }

        impl Transactions {
            /// Reads the settings of a kind.
            pub fn read<K: Keys>(kind: WorkloadKind, keys: &mut K) -> Transactions {
                match kind {
                    $(WorkloadKind::$variant => Transactions::$variant(Section::read(keys)),)+
                }
            }

            /// Which kind it is.
            pub fn kind(&self) -> WorkloadKind {
                match self {
                    $(Transactions::$variant(_) => WorkloadKind::$variant,)+
                }
            }

            /// The key of a setting that no reader gives.
            pub fn outside(&self) -> Option<&'static str> {
                match self {
                    $(Transactions::$variant(settings) => settings.outside(),)+
                }
            }

            /// What follows from the settings.
            pub fn settings(&self) -> &dyn WorkloadSettings {
                match self {
                    $(Transactions::$variant(settings) => settings,)+
                }
            }
        }
    };
}

workloads! {
    /// Short transactions of reads and updates at random rows, as in the HP/Oracle study of raw devices.
    OltpMix = "oltp_mix", OltpMixSettings;
    /// SLOB: random single-block reads and updates, one row per block.
    Slob = "slob", SlobSettings;
    /// TPC-H: 22 queries, and functions that refresh the data.
    Tpch = "tpch", TpchSettings;
    /// TPC-D, its ancestor: 17 queries.
    Tpcd = "tpcd", TpcdSettings;
    /// TPC-B, as `pgbench` has it.
    Tpcb = "tpcb", Tpcb;
    /// TPC-C.
    Tpcc = "tpcc", TpccSettings;
    /// Your own SQL: files in the language of `pgbench`, the benchmark that comes with PostgreSQL.
    Script = "script", ScriptSettings;
    /// What a server's sessions did, from its log.
    Replay = "replay", ReplaySettings;
    /// Rows inserted one by one, as in the study of ASM and LVM.
    Junk = "junk", Junk;
    /// Decision support: scans, groups and sorts that are larger than memory.
    Dss = "dss", DssSettings;
}

impl Transactions {
    /// Whether trials end after a number of transactions, and not after a time.
    pub fn are_counted(&self) -> bool {
        self.settings().pace() != TrialPace::Timed
    }

    /// Whether trials end when each stream has asked its queries.
    pub fn ask_queries(&self) -> bool {
        self.settings().pace() == TrialPace::Streams
    }

    /// What a bulk load inserts; `None` of other workloads.
    pub fn bulk_load(&self) -> Option<RowsInserted> {
        self.settings().bulk_load()
    }

    /// The same with no more rows to insert, or of its own tables, than about `bytes` hold; `None` when one transaction
    /// inserts more.
    pub fn within(self, bytes: u64) -> Option<Transactions> {
        match self {
            Transactions::Junk(junk) => junk.within(bytes).map(Transactions::Junk),
            Transactions::Tpch(TpchSettings(queries)) => {
                Some(Transactions::Tpch(TpchSettings(queries.within(bytes))))
            }
            Transactions::Tpcd(TpcdSettings(queries)) => {
                Some(Transactions::Tpcd(TpcdSettings(queries.within(bytes))))
            }
            other => Some(other),
        }
    }

    /// The queries of a benchmark of the TPC, and whose they are.
    pub fn queries(&self) -> Option<(TpchVersion, &Queries)> {
        match self {
            Transactions::Tpch(TpchSettings(queries)) => Some((TpchVersion::H, queries)),
            Transactions::Tpcd(TpcdSettings(queries)) => Some((TpchVersion::D, queries)),
            _ => None,
        }
    }
}

impl WorkloadKind {
    /// Its settings, each at its default.
    pub fn defaults(self) -> Transactions {
        Transactions::read(self, &mut Listing::default())
    }
}
