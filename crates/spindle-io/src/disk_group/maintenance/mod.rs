//! What is done with a group while it is used: disks that join and leave; spreading files evenly again; looking
//! whether everything is as it should be.

pub(crate) mod check;
pub(crate) mod membership;
pub(crate) mod plan;
pub(crate) mod rebalance;
pub(crate) mod view;
