//! One trial: a database started on one access path, worked on for a while, measured, checked and thrown away. A trial
//! runs in its own process, so that memory can be held to a budget, processor time is the database's alone, and
//! whatever happens to it the run continues. [`protocol`] is what the two processes say to each other, [`worker`] the
//! process that measures, `start` what is started for it, `measurement` what it measures when, `watching` its progress,
//! [`load`] where its clients are, `times_of_kinds` how long transactions took, `heartbeat` whether it stood still,
//! `counter_snapshot` what it counts, `aftermath` what is left, `page_cache` what that holds of its files, `query_run`
//! what became of queries, [`response_time`] what became of a transaction's time, [`series_recorder`] what the system
//! did meanwhile, [`own_cost`] what Spindle itself costs, measured in the same way, [`limit_probe`] whether a limit
//! holds, `limit_check` whether it held, `open_loop` what a trial needs whose load arrives at a rate, `outside` what
//! can be told of existing servers, `turns` what one needs that is measured by turns; [`supervisor`] the side that
//! starts the process and listens. Only the run calls the supervisor.

mod aftermath;
mod capacity;
mod channel;
mod clients;
pub(crate) mod counter_snapshot;
mod heartbeat;
mod limit_check;
pub mod limit_probe;
pub mod load;
mod measurement;
mod open_loop;
pub(crate) mod outside;
pub mod own_cost;
mod page_cache;
mod promise;
pub mod protocol;
mod query_run;
pub mod response_time;
pub mod series_recorder;
mod start;
pub mod supervisor;
mod times_of_kinds;
mod turns;
mod watching;
pub mod worker;
