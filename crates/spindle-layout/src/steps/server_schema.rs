//! A schema on a server that somebody else runs, noted so that `clean` finds it. The program makes it itself, and it alone can
//! come to the server: whoever undoes a ledger brings along what drops schemas.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Site, StepError, Undone};

/// A schema that a run has made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSchema {
    /// Which, and where, for people.
    pub title: String,
    /// All that the program needs to come to it, in the program's words. There may be a password in it: it is for the ledger,
    /// which this user alone can read, and shown nowhere.
    pub access: String,
}

/// Drops a schema, if it is there and the run's.
///
/// # Errors
/// Why it could not be, for people.
pub type DropSchema = fn(&ServerSchema) -> Result<SchemaGone, String>;

/// What became of a schema that was to be dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaGone {
    /// It is gone.
    Dropped,
    /// There was none.
    WasNot,
    /// There is another one of the name.
    NotOurs,
}

impl fmt::Debug for ServerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSchema")
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ServerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema {}", self.title)
    }
}

impl ServerSchema {
    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let Some(drop_schema) = site.drop_schema else {
            return Err(StepError::Schema {
                reason: "only `spindle clean` can come to its server".to_owned(),
            });
        };
        match drop_schema(self) {
            Ok(SchemaGone::Dropped) => Ok(Undone::Removed),
            Ok(SchemaGone::WasNot) => Ok(Undone::WasNot),
            Ok(SchemaGone::NotOurs) => {
                Ok(Undone::NotOurs("it is another one of that name".to_owned()))
            }
            Err(reason) => Err(StepError::Schema { reason }),
        }
    }
}
