//! What a run observes apart from its databases: how fast a device is before a trial, and what the system did during
//! it, as columns over time. What the system says, `spindle_system` reads. Nothing here is called on a path that is
//! being measured.

pub mod device_probe;
pub mod series;
