//! What `[workload]` says of the data, for `[database]`, which is read before it.

use spindle_workload::{Data, Transactions, WorkloadKind};

use super::reader::keys_asked_by;

/// What a workload says of the data, and which workload it is.
#[derive(Clone, Copy)]
pub(super) struct OfWorkload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The data, if it says itself how much there is.
    pub data: Option<Data>,
    /// Bytes of a server's files that it is copied from; 0 when it is loaded.
    pub copied_bytes: u64,
}

impl Default for OfWorkload {
    fn default() -> OfWorkload {
        OfWorkload {
            kind: WorkloadKind::OltpMix,
            data: None,
            copied_bytes: 0,
        }
    }
}

impl OfWorkload {
    /// The keys that say so, in full.
    pub fn keys(&self) -> impl Iterator<Item = String> + use<> {
        let keys = keys_of(self.kind).into_iter();
        let keys = ["kind"].into_iter().chain(keys);
        keys.map(|key| format!("workload.{key}"))
    }
}

/// The keys of a kind of workload.
pub(super) fn keys_of(kind: WorkloadKind) -> Vec<&'static str> {
    keys_asked_by(|reader| Transactions::read(kind, reader))
}
