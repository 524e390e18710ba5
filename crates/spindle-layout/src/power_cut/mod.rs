//! Power cuts on real parts: the writes of a layout's device as dm-log-writes recorded them ([`WriteLog`]), what had
//! been promised at each of them ([`Notes`]), where a volume's bytes lie on that device ([`AddressMap`]), and what the
//! layout's devices would hold had the power gone at some moment ([`Replay`]). Everything here is pure: no device is
//! opened. The program records, and recovers the database on what comes out.

mod address_map;
mod log;
mod notes;
mod replay;

pub use address_map::{AddressMap, DeviceTables, MapError};
pub use log::{Content, LogError, LoggedRequest, WriteLog};
pub use notes::{Notes, mark};
pub use replay::{Cut, CutKind, Replay, draw_cuts};
