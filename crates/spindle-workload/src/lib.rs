//! What clients do to a database. A [`Workload`] says which tables there are, makes transactions (plain data), and
//! checks afterwards that nothing was lost; [`driver`] runs clients that execute them on a [`Session`] of whatever
//! engine. A new workload is one file here, and one line in the list of the experiment file.

mod arrivals;
pub mod driver;
mod ledger;
mod oltp_mix;
mod session;
mod slob;
pub mod sql;
mod workload;

pub use arrivals::{Arrivals, Schedule, Spacing};
pub use oltp_mix::OltpMix;
pub use session::{Edit, Operation, Session, SessionError, Txn};
pub use slob::{Hotspot, RedoStress, Slob};
pub use workload::{
    Acknowledged, Checker, Client, RowLength, Table, TableSize, TableSpec, Workload,
};
