//! Schemas of the run's own on existing servers, or databases: noted in the ledger before they are made, dropped at the
//! end. One way to put them back for all servers of a run: a copy that the server makes of what was loaded once, or
//! loading again.

use std::fmt;
use std::sync::Arc;

use spindle_engines::database::RemoteDatabase;
use spindle_engines::sql::{Copying, Schema, SchemaGone, SchemaKind, remote_server};
use spindle_engines::{EngineError, ErrorKind};
use spindle_experiment::{DatabaseSpec, Experiment, RemoteSpec, RestoreBy};
use spindle_layout::Ledger;
use spindle_layout::ledger::EntryNumber;
use spindle_layout::record::ServerSchema;
use spindle_layout::steps::StepError;

use crate::database_error::DatabaseError;

/// How existing servers put their tables back before each trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPutBack {
    /// They copy what was loaded once.
    Copy(Copying),
    /// It is loaded again.
    Reload {
        /// Why there is no copy, where one was wanted.
        why: Option<String>,
    },
}

impl fmt::Display for ServerPutBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerPutBack::Copy(Copying::Copied) => f.write_str("a copy made in the server"),
            ServerPutBack::Copy(Copying::Cloned) => f.write_str("a clone made in the server"),
            ServerPutBack::Reload { .. } => f.write_str("loading again"),
        }
    }
}

/// The way of an experiment, by what its servers let this user do; a server that cannot be asked has no say. Changes
/// nothing.
pub fn way_of(experiment: &Experiment) -> ServerPutBack {
    let copying = match experiment.plan.restore {
        RestoreBy::Reload => return ServerPutBack::Reload { why: None },
        // One that cannot has its layouts skipped.
        RestoreBy::Reflink => return ServerPutBack::Copy(Copying::Cloned),
        RestoreBy::Copy | RestoreBy::Snapshot => Copying::Copied,
    };
    for layout in experiment.candidates() {
        let DatabaseSpec::Remote(remote) = &experiment.database_of(layout).spec else {
            continue;
        };
        if let Err(error) = may_copy(remote, copying)
            && error.kind() == ErrorKind::Unavailable
        {
            let name = &experiment.layouts[layout].name;
            return ServerPutBack::Reload {
                why: Some(format!("{name}: {error}")),
            };
        }
    }
    ServerPutBack::Copy(copying)
}

/// Why an existing server cannot be measured, in words; `None`: it can, or the layout has none. Changes nothing there.
pub fn refusal_of(experiment: &Experiment, layout: usize) -> Option<String> {
    let DatabaseSpec::Remote(remote) = &experiment.database_of(layout).spec else {
        return None;
    };
    let address = &remote.address;
    let password = address.find_password(remote.password_env.as_deref());
    let found = password
        .and_then(|password| remote_server(address.scheme).look(address, password.as_ref()));
    let kind = match way_of(experiment) {
        ServerPutBack::Copy(_) => SchemaKind::Database,
        ServerPutBack::Reload { .. } => SchemaKind::Schema,
    };
    let fits = found.and_then(|_| check_statements(experiment, layout, remote, kind));
    fits.err().map(|error| error.to_string())
}

/// The engine that makes and loads the database of a layout on an existing server.
pub(crate) fn engine(experiment: &Experiment, layout: usize, spec: &RemoteSpec) -> RemoteDatabase {
    let size_bytes = experiment.database_of(layout).size_bytes;
    let workload = &experiment.workload;
    RemoteDatabase {
        address: spec.address.clone(),
        password_env: spec.password_env.clone(),
        workload: workload.in_sql(size_bytes, spec.address.kind(), experiment.seed),
    }
}

/// That no statement of the workload leaves what a layout would have on its server.
///
/// # Errors
/// `Unavailable`: the first that does; others when the server cannot be asked.
fn check_statements(
    experiment: &Experiment,
    layout: usize,
    spec: &RemoteSpec,
    kind: SchemaKind,
) -> Result<(), EngineError> {
    let schema = Schema {
        address: spec.address.clone(),
        password_variable: spec.password_env.clone(),
        password: None,
        kind,
        name: String::new(),
        token: String::new(),
    };
    engine(experiment, layout, spec).check_statements(&schema.with_password()?)
}

/// Whether a server copies databases for this user.
pub(crate) fn may_copy(remote: &RemoteSpec, copying: Copying) -> Result<(), EngineError> {
    let address = &remote.address;
    // A password that is not found is told when the server is looked at.
    let password = address.find_password(remote.password_env.as_deref());
    let password = password.map_err(|error| EngineError::failed(address, error))?;
    remote_server(address.scheme).may_copy(address, password.as_ref(), copying)
}

/// Schemas and databases of the run's own, noted in the ledger.
pub(super) struct NotedSchemas {
    ledger: Arc<Ledger>,
    noted: Vec<(Schema, EntryNumber)>,
}

impl NotedSchemas {
    /// None yet.
    pub(super) fn new(ledger: &Arc<Ledger>) -> NotedSchemas {
        NotedSchemas {
            ledger: Arc::clone(ledger),
            noted: Vec::new(),
        }
    }

    /// Notes one that is about to be made for a layout.
    pub(super) fn note(&mut self, schema: &Schema, layout: &str) -> Result<(), DatabaseError> {
        let number = self.ledger.note(Some(layout), record_of(schema).into())?;
        self.noted.push((schema.clone(), number));
        Ok(())
    }

    /// The last one could not be made or filled: should it be there all the same, its token knows it.
    pub(super) fn undo(&mut self, error: EngineError) -> DatabaseError {
        let Some((schema, number)) = self.noted.pop() else {
            return error.into();
        };
        match remote_server(schema.address.scheme).drop_schema(&schema) {
            Ok(_) => match self.ledger.gone(number) {
                Ok(()) => error.into(),
                Err(error) => error.into(),
            },
            // `spindle clean` tries again.
            Err(_) => error.into(),
        }
    }

    /// Drops the last one. Returns what could not be dropped, in words.
    pub(super) fn drop_last(&mut self) -> Option<String> {
        let (schema, number) = self.noted.pop()?;
        let record = record_of(&schema);
        match drop_by(&schema) {
            Ok(SchemaGone::NotOurs) => {
                Some(format!("{record} was left: it is no longer this run's"))
            }
            Ok(SchemaGone::Dropped | SchemaGone::WasNot) => {
                let noted = self.ledger.gone(number);
                noted.err().map(|error| error.to_string())
            }
            Err(reason) => Some(format!(
                "{record} was left: {reason}. When its server is there again: spindle clean"
            )),
        }
    }

    /// Drops all of them, the last first: a copy that is still being made holds what it is made of. Returns what could
    /// not be dropped, in words; `spindle clean` tries again.
    pub(super) fn remove(mut self) -> Vec<String> {
        self.drop_all()
    }

    fn drop_all(&mut self) -> Vec<String> {
        let mut leftovers = Vec::new();
        while !self.noted.is_empty() {
            leftovers.extend(self.drop_last());
        }
        leftovers
    }
}

impl Drop for NotedSchemas {
    fn drop(&mut self) {
        // Left by an error that is to be told already: what stays is in the ledger.
        let _ = self.drop_all();
    }
}

/// Drops a schema that a ledger names.
///
/// # Errors
/// [`StepError::Schema`].
pub fn drop_recorded(record: &ServerSchema) -> Result<SchemaGone, StepError> {
    let failed = |reason: String| StepError::Schema { reason };
    let schema: Schema = serde_json::from_str(&record.access).map_err(|error| {
        failed(format!(
            "its ledger is of another version of Spindle: {error}"
        ))
    })?;
    let dropped = schema.with_password().and_then(|schema| drop_by(&schema));
    dropped.map_err(|error| failed(error.to_string()))
}

fn drop_by(schema: &Schema) -> Result<SchemaGone, EngineError> {
    remote_server(schema.address.scheme).drop_schema(schema)
}

fn record_of(schema: &Schema) -> ServerSchema {
    ServerSchema {
        title: schema.to_string(),
        access: serde_json::to_string(&schema.to_be_kept()).expect("plain data becomes JSON"),
    }
}

/// A name that people know Spindle by, and that no other run has.
pub(super) fn name_of(run: &str, number: usize) -> String {
    let plain = |character: char| match character {
        'a'..='z' | '0'..='9' => character,
        'A'..='Z' => character.to_ascii_lowercase(),
        _ => '_',
    };
    let run: String = run.chars().map(plain).collect();
    format!("spindle_{run}_{number}")
}

#[cfg(test)]
mod tests {
    use spindle_engines::sql::{Address, SchemaKind};

    use super::*;

    #[test]
    fn names_are_plain_words_of_every_dialect() {
        let name = name_of("20261122-015911-4711", 2);
        assert_eq!(name, "spindle_20261122_015911_4711_2");
    }

    #[test]
    fn a_ledger_keeps_a_password_only_if_it_stood_in_the_experiment_file() {
        let of = |url: &str, password: &str| {
            let schema = Schema {
                address: Address::parse(url).unwrap(),
                password_variable: None,
                password: Some(spindle_engines::sql::Password::new(password)),
                kind: SchemaKind::Schema,
                name: "spindle_1".to_owned(),
                token: "t".to_owned(),
            };
            record_of(&schema)
        };
        let written = of("postgres://ann:secret@h/d", "secret");
        assert!(written.access.contains("secret"));
        assert!(!written.to_string().contains("secret"));
        assert!(!format!("{written:?}").contains("secret"));
        assert!(!of("postgres://ann@h/d", "secret").access.contains("secret"));
    }
}
