//! What transactions do to each other, in the simulated world: deadlocks are found, at once and no others.

mod deadlocks;
mod stage;
