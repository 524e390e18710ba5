//! What says which case, and which two: the only keys by which parts of a result are brought together. The workload is
//! no part of them, because it is the same for all cases of a run.

use serde::{Deserialize, Serialize};

/// A case of a run: a layout at a load level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseId {
    /// Name of the layout, unique in the run.
    pub layout: String,
    /// Load level: sessions that work at the same time, 1 or more.
    pub clients: u32,
}

impl CaseId {
    /// The case of this layout at this load level.
    pub fn new(layout: &str, clients: u32) -> CaseId {
        CaseId {
            layout: layout.to_owned(),
            clients,
        }
    }
}

/// Two cases at the same load level, of which something is said of the first beside the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CasePair {
    /// Load level of both.
    pub clients: u32,
    /// Name of the layout that it is said of.
    pub a: String,
    /// Name of the layout that it is compared with.
    pub b: String,
}

impl CasePair {
    /// Two cases beside each other; the load level is that of the first, as only cases of one level are compared.
    pub fn of(a: &CaseId, b: &CaseId) -> CasePair {
        CasePair {
            clients: a.clients,
            a: a.layout.clone(),
            b: b.layout.clone(),
        }
    }

    /// The case that it is said of.
    pub fn first(&self) -> CaseId {
        CaseId::new(&self.a, self.clients)
    }

    /// The case that it is compared with.
    pub fn second(&self) -> CaseId {
        CaseId::new(&self.b, self.clients)
    }

    /// The same two the other way round.
    pub fn turned(&self) -> CasePair {
        CasePair {
            clients: self.clients,
            a: self.b.clone(),
            b: self.a.clone(),
        }
    }
}
