//! What transactions do to each other and see of each other, in the simulated world: deadlocks are found, at once and
//! no others; histories of many transactions, through crashes, hold nothing that read committed forbids.

mod anomalies;
mod checker;
mod deadlocks;
mod histories;
mod history;
mod stage;
