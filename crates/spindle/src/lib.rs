//! Spindle: runs the same database workload on every storage layout a person is considering, and says which is faster.

pub mod experiment;
pub mod observe;
pub mod report;
pub mod result;
pub mod table;
