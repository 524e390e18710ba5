//! What says which case, and which two: the only keys by which parts of a result are brought together. The workload is
//! no part of them, because it is the same for all cases of a run.

use serde::{Deserialize, Serialize};

use super::LoadLevel;

/// A case of a run: a layout at a load level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CaseId {
    /// Name of the layout, unique in the run.
    pub layout: String,
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
}

impl CaseId {
    /// The case of this layout at this load level.
    pub fn new(layout: &str, load: impl Into<LoadLevel>) -> CaseId {
        CaseId {
            layout: layout.to_owned(),
            load: load.into(),
        }
    }
}

/// Two cases at the same load level, of which something is said of the first beside the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CasePair {
    /// Load level of both.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// Name of the layout that it is said of.
    pub a: String,
    /// Name of the layout that it is compared with.
    pub b: String,
}

impl CasePair {
    /// Two cases beside each other; the load level is that of the first, as only cases of one level are compared.
    pub fn of(a: &CaseId, b: &CaseId) -> CasePair {
        CasePair {
            load: a.load,
            a: a.layout.clone(),
            b: b.layout.clone(),
        }
    }

    /// The case that it is said of.
    pub fn first(&self) -> CaseId {
        CaseId::new(&self.a, self.load)
    }

    /// The case that it is compared with.
    pub fn second(&self) -> CaseId {
        CaseId::new(&self.b, self.load)
    }

    /// The same two the other way round.
    pub fn turned(&self) -> CasePair {
        CasePair {
            load: self.load,
            a: self.b.clone(),
            b: self.a.clone(),
        }
    }
}
