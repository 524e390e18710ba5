//! Transactions that were prepared by `XA` and not ended. They outlive their session and keep their locks. The server
//! tells neither who prepared one nor what it touched, so sessions of Spindle remember theirs, and end no other.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use crate::EngineError;

/// A server notices with a delay that a session has ended, and gives its transactions up then.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(50);

/// Those that sessions of one server have prepared and not ended, as their texts name them.
#[derive(Clone, Default)]
pub(super) struct Prepared {
    names: Arc<Mutex<BTreeSet<String>>>,
}

impl Prepared {
    /// Learns from statements that were carried out.
    pub fn learn(&self, sql: &str) {
        for statement in sql.split(';') {
            let Some((verb, name)) = xa(statement) else {
                continue;
            };
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            if verb.eq_ignore_ascii_case("prepare") {
                names.insert(name.to_owned());
            } else if ["commit", "rollback"].contains(&verb.to_ascii_lowercase().as_str()) {
                names.remove(name);
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().cloned().collect()
    }

    /// That a load has left none behind.
    ///
    /// # Errors
    /// The name of one.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.names().first() {
            None => Ok(()),
            Some(name) => Err(EngineError::failed(
                "loading",
                format!(
                    "the prepared transaction {name} is left open, which would keep its locks in every trial: end it \
                     with XA COMMIT"
                ),
            )),
        }
    }

    /// Undoes those that are left, whose sessions have ended or are about to.
    pub fn undo_all<C: SqlConnection>(&self, connect: impl FnOnce() -> Result<C, SessionError>) {
        let names = self.names();
        if names.is_empty() {
            return;
        }
        // A server that is gone is reported when the database is dropped.
        let Ok(mut connection) = connect() else {
            return;
        };
        for name in names {
            let undo = format!("xa rollback {name}");
            for _ in 0..LOOKS {
                if connection.run(&undo).is_ok() {
                    self.learn(&undo);
                    break;
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Whether there are statements of `XA` in a text.
pub(super) fn has_xa(sql: &str) -> bool {
    sql.split(';').any(|statement| xa(statement).is_some())
}

/// The verb and the transaction's name of a statement of `XA`.
fn xa(statement: &str) -> Option<(&str, &str)> {
    let (first, rest) = statement.trim().split_once(char::is_whitespace)?;
    let (verb, name) = rest.trim_start().split_once(char::is_whitespace)?;
    let name = name.trim();
    let at = name.len().saturating_sub(ONE_PHASE.len());
    let name = match name.get(at..) {
        Some(end) if end.eq_ignore_ascii_case(ONE_PHASE) => name[..at].trim_end(),
        _ => name,
    };
    first.eq_ignore_ascii_case("xa").then_some((verb, name))
}

const ONE_PHASE: &str = "one phase";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_prepared_and_not_ended_is_remembered() {
        let prepared = Prepared::default();
        prepared.learn("xa start 'a'; insert into t values (1); xa end 'a'; XA PREPARE 'a'");
        prepared.learn("xa prepare 'b','of it',7");
        prepared.learn("xa  prepare  'c'");
        prepared.learn("select 'xa prepare'; xa recover");
        assert_eq!(prepared.names(), ["'a'", "'b','of it',7", "'c'"]);
        prepared.learn("xa commit 'a'");
        prepared.learn("Xa Rollback 'c' ;");
        prepared.learn("xa commit 'd' ONE PHASE");
        assert_eq!(prepared.names(), ["'b','of it',7"]);
        assert!(has_xa("select 1; xa end 'a'") && !has_xa("select exact from xa"));
        let told = prepared.check().unwrap_err().to_string();
        assert!(told.contains("'b','of it',7 is left open"), "{told}");
    }
}
