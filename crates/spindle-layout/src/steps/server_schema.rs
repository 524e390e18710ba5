//! A schema on an existing server, noted so that `clean` finds it. The program makes it itself, and it alone can come
//! to the server: the code that undoes a ledger brings along what drops schemas.

use std::fmt;

use super::error::StepError;
use super::site::{SchemaGone, Site, Undone};
use crate::record::ServerSchema;

impl fmt::Debug for ServerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSchema")
            .field("title", &self.title)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for ServerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ledgers of version 0.2.0 and older name it without saying that it is a schema.
        let what = if self.title.starts_with("the ") {
            ""
        } else {
            "the schema "
        };
        write!(f, "{what}{}", self.title)
    }
}

impl ServerSchema {
    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let Some(drop_schema) = site.drop_schema else {
            return Err(StepError::Schema {
                reason: "only `spindle clean` can connect to its server".to_owned(),
            });
        };
        Ok(match drop_schema(self)? {
            SchemaGone::Dropped => Undone::Removed,
            SchemaGone::WasNot => Undone::WasNot,
            SchemaGone::NotOurs => Undone::NotOurs("it is another one of that name".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::{Cleaned, clean};
    use crate::ledger::Ledger;
    use crate::steps::DropSchema;
    use spindle_system::SystemTree;

    #[test]
    fn what_drops_schemas_decides_what_becomes_of_their_entries() {
        let directory = tempfile::tempdir().unwrap();
        let tree = SystemTree::default();
        let noted = |run: &str| {
            let ledger = Ledger::begin(directory.path(), run, &tree).unwrap();
            let schema = ServerSchema {
                title: format!("{run} on a server"),
                access: "open sesame".to_owned(),
            };
            ledger.note(Some("there"), schema.into()).unwrap();
        };
        for run in ["dropped", "gone", "others", "unreachable"] {
            noted(run);
        }
        let drop_schema: DropSchema = |schema| {
            assert_eq!(schema.access, "open sesame");
            match schema.title.split_once(' ') {
                Some(("dropped", _)) => Ok(SchemaGone::Dropped),
                Some(("gone", _)) => Ok(SchemaGone::WasNot),
                Some(("others", _)) => Ok(SchemaGone::NotOurs),
                _ => Err(StepError::Schema {
                    reason: "it does not answer".to_owned(),
                }),
            }
        };
        let cleaned = clean(directory.path(), &tree, false, Some(drop_schema)).unwrap();
        let of = |run: &str| cleaned.iter().find(|cleaned| cleaned.run == run).unwrap();
        assert_eq!(of("dropped").removed, ["the schema dropped on a server"]);
        assert!(of("gone").removed.is_empty() && of("gone").left.is_empty());
        assert!(of("others").not_ours[0].contains("another one of that name"));
        assert!(of("unreachable").left[0].contains("it does not answer"));
        assert!(!format!("{cleaned:?}").contains("sesame"));
        // Nothing drops what could not be reached, and what was another's may still be there: both are told again.
        let again = clean(directory.path(), &tree, false, None).unwrap();
        let runs: Vec<&str> = again.iter().map(|cleaned| cleaned.run.as_str()).collect();
        assert_eq!(runs, ["others", "unreachable"]);
        let is_told = |cleaned: &Cleaned| cleaned.left[0].contains("spindle clean");
        assert!(again.iter().all(is_told), "{again:?}");
    }
}
