//! What clients do to a database. A [`Workload`] says which tables there are, makes transactions (plain data), and
//! checks afterwards that nothing was lost; [`driver`] runs clients that execute them on a [`ClientSession`] of
//! whatever engine. A new workload is one file here, with its settings, and one line in the list of `kinds`.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod answer;
mod arrivals;
pub mod capacity;
pub mod driver;
mod dss;
mod keyed;
mod kinds;
mod ledger;
mod oltp_mix;
mod query;
pub mod replay;
mod script;
mod session;
mod slob;
pub mod sql;
mod workload;

pub use arrivals::{ArrivalSettings, Arrivals, Schedule, Spacing};
pub use dss::DssSettings;
pub use keyed::{Ended, IndexOf, Keyed, Procedure, ProcedureCall, StepFuture, TakeRow};
pub use kinds::{Transactions, WorkloadKind};
pub use oltp_mix::{OltpMix, OltpMixSettings};
pub use query::{AnswerJudge, RightAnswer, RowField, TableQuery, TableQueryPlan};
pub use replay::{ReplaySettings, Times};
pub use script::{ScriptSettings, leaves_database};
pub use session::{ClientSession, Complaint, Edit, RowOperation, SessionError, TableShare, Txn};
pub use slob::{Hotspot, RedoStress, Slob, SlobSettings};
pub use sql::kind::{Data, MadeFor, MadeWorkload, TrialPace, WorkloadSettings};
pub use workload::{
    Acknowledged, CheckError, Checker, Client, IndexSpec, Inserts, LoadedTable, Loader, RowLength,
    SeenRows, TableSize, TableSpec, Tally, TerminalTimes, Workload, checker_of,
};
