//! The database of a run on an existing server: a schema of the run's own, or databases, noted in the ledger before
//! they are made, put back before every trial, dropped at the end. One way for all servers of a run: a copy that the
//! server makes of what was loaded once, or loading again.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spindle_engines::sql::foreign::{copy_again, make_and_load, reload};
use spindle_engines::sql::{Copying, ForeignServer, Schema, SchemaGone, SchemaKind, remote_server};
use spindle_engines::{EngineError, ErrorKind};
use spindle_experiment::{DatabaseSpec, Experiment, RemoteSpec, RestoreBy};
use spindle_layout::Ledger;
use spindle_layout::ledger::EntryNumber;
use spindle_layout::steps::ServerSchema;
use spindle_system::SystemTree;
use spindle_workload::sql::SqlWorkload;

use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use spindle_result::Restore;

/// How existing servers put their tables back before each trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// They copy what was loaded once.
    Copy(Copying),
    /// It is loaded again.
    Reload {
        /// Why there is no copy, where one was wanted.
        why: Option<String>,
    },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Copy(Copying::Copied) => f.write_str("a copy made in the server"),
            Way::Copy(Copying::Cloned) => f.write_str("a clone made in the server"),
            Way::Reload { .. } => f.write_str("loading again"),
        }
    }
}

/// The way of an experiment, by what its servers let this user do; a server that cannot be asked has no say. Changes
/// nothing.
pub fn way_of(experiment: &Experiment) -> Way {
    let copying = match experiment.plan.restore {
        RestoreBy::Reload => return Way::Reload { why: None },
        // One that cannot has its layouts skipped.
        RestoreBy::Reflink => return Way::Copy(Copying::Cloned),
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
            return Way::Reload {
                why: Some(format!("{name}: {error}")),
            };
        }
    }
    Way::Copy(copying)
}

/// Whether a server copies databases for this user.
pub(super) fn may_copy(remote: &RemoteSpec, copying: Copying) -> Result<(), EngineError> {
    let address = &remote.address;
    // A password that is not found is told when the server is looked at.
    let password = address.find_password(remote.password_env.as_deref());
    let password = password.map_err(|error| EngineError::failed(address, error.to_string()))?;
    remote_server(address.scheme).may_copy(address, password.as_ref(), copying)
}

/// A schema or a database of the run's own, noted in the ledger.
struct Noted {
    schema: Schema,
    number: EntryNumber,
    ledger: Arc<Ledger>,
}

impl Noted {
    fn new(schema: Schema, layout: &str, ledger: &Arc<Ledger>) -> Result<Noted, DatabaseError> {
        let number = ledger.note(Some(layout), record_of(&schema).into())?;
        Ok(Noted {
            schema,
            number,
            ledger: Arc::clone(ledger),
        })
    }

    /// What could not be made or filled: should it be there all the same, its token knows it.
    fn undone(self, error: EngineError) -> DatabaseError {
        match self.server().drop_schema(&self.schema) {
            Ok(_) => match self.ledger.gone(self.number) {
                Ok(()) => error.into(),
                Err(error) => error.into(),
            },
            // `spindle clean` tries again.
            Err(_) => error.into(),
        }
    }

    fn server(&self) -> &'static dyn ForeignServer {
        remote_server(self.schema.address.scheme)
    }

    /// Drops it. Returns what could not be dropped, in words.
    fn remove(self) -> Option<String> {
        let record = record_of(&self.schema);
        match drop_by(&self.schema) {
            Ok(SchemaGone::NotOurs) => {
                Some(format!("{record} was left: it is no longer this run's"))
            }
            Ok(SchemaGone::Dropped | SchemaGone::WasNot) => {
                let noted = self.ledger.gone(self.number);
                noted.err().map(|error| error.to_string())
            }
            Err(reason) => Some(format!(
                "{record} was left: {reason}. When its server is there again: spindle clean"
            )),
        }
    }
}

/// What a layout has on its server.
pub(super) struct OwnSchema {
    /// What trials work in.
    worked_in: Noted,
    /// What that is a copy of, and how it is copied; `None`: it is loaded again.
    loaded: Option<(Noted, Copying)>,
    workload: Arc<dyn SqlWorkload>,
    /// To be told with each restore.
    warnings: Vec<String>,
}

impl OwnSchema {
    /// Makes the schema of a layout, empty; or a database, and loads it, for others to be copied from. `note` hears
    /// what is being done.
    pub fn make(
        state: &RunState,
        (layout, spec, way): (usize, &RemoteSpec, &Way),
        ledger: &Arc<Ledger>,
        workload: Arc<dyn SqlWorkload>,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<OwnSchema, DatabaseError> {
        let name = name_of(&state.run, layout + 1);
        let title = &state.experiment.layouts[layout].name;
        let mut warnings = Vec::new();
        if let Way::Copy(copying) = way {
            let loaded = schema_of(spec, format!("{name}_loaded"), SchemaKind::Database)?;
            note(&format!(
                "loading the database {} on {}",
                loaded.name, loaded.address
            ));
            let loaded = Noted::new(loaded, title, ledger)?;
            let server = loaded.server();
            let filled = make_and_load(server, &loaded.schema, &*workload, interrupted);
            match filled.and_then(|()| server.not_copied(&loaded.schema)) {
                Ok(None) => {
                    let schema = schema_of(spec, name, SchemaKind::Database)?;
                    return Ok(OwnSchema {
                        worked_in: Noted::new(schema, title, ledger)?,
                        loaded: Some((loaded, *copying)),
                        workload,
                        warnings,
                    });
                }
                Ok(Some(left_out)) => {
                    warnings.push(format!(
                        "loaded again, not copied in the server: the workload has {left_out}"
                    ));
                    warnings.extend(loaded.remove());
                }
                Err(error) => return Err(loaded.undone(error)),
            }
        }
        let schema = schema_of(spec, name, SchemaKind::Schema)?;
        note(&format!(
            "making the schema {} on {}",
            schema.name, schema.address
        ));
        let made = Noted::new(schema, title, ledger)?;
        match made.server().make(&made.schema) {
            Ok(()) => Ok(OwnSchema {
                worked_in: made,
                loaded: None,
                workload,
                warnings,
            }),
            Err(error) => Err(made.undone(error)),
        }
    }

    /// What trials work in.
    pub fn schema(&self) -> &Schema {
        &self.worked_in.schema
    }

    /// Puts it back: drops it, and makes it again with what was loaded.
    pub fn restore(&self, interrupted: &Arc<AtomicBool>) -> Result<Restored, DatabaseError> {
        let began = Instant::now();
        let (server, schema) = (self.worked_in.server(), self.schema());
        let method = match &self.loaded {
            Some((loaded, copying)) => {
                copy_again(server, (&loaded.schema, schema), *copying, interrupted)?
            }
            None => {
                reload(server, schema, &*self.workload, interrupted)?;
                "schema dropped, made and loaded again"
            }
        };
        Ok(Restored {
            restore: Restore {
                method: method.to_owned(),
                changed_blocks: 0,
                // Nothing is left of what was there before.
                verified: true,
                duration_ms: began.elapsed().as_millis() as u64,
            },
            warnings: self.warnings.clone(),
        })
    }

    /// Drops all of it. Returns what could not be dropped, in words; `spindle clean` tries again.
    pub fn remove(self) -> Vec<String> {
        // A copy that is still being made holds what it is made of.
        let worked_in = self.worked_in.remove();
        let loaded = self.loaded.and_then(|(loaded, _)| loaded.remove());
        worked_in.into_iter().chain(loaded).collect()
    }
}

/// A schema to be made, with a token drawn for it.
fn schema_of(spec: &RemoteSpec, name: String, kind: SchemaKind) -> Result<Schema, DatabaseError> {
    let token = SystemTree::default()
        .random_uuid()
        .ok_or_else(|| DatabaseError::Target("the kernel gives no random number".to_owned()))?;
    let schema = Schema {
        address: spec.address.clone(),
        password_variable: spec.password_env.clone(),
        password: None,
        kind,
        name,
        token: token.trim().to_owned(),
    };
    let schema = schema.with_password();
    schema.map_err(|error| DatabaseError::Target(error.to_string()))
}

/// Drops a schema that a ledger names.
///
/// # Errors
/// Why it could not be, for people.
pub fn drop_recorded(record: &ServerSchema) -> Result<SchemaGone, String> {
    let schema: Schema = serde_json::from_str(&record.access)
        .map_err(|error| format!("its ledger is of another version of Spindle: {error}"))?;
    let schema = schema.with_password();
    drop_by(&schema.map_err(|error| error.to_string())?)
}

fn drop_by(schema: &Schema) -> Result<SchemaGone, String> {
    let dropped = remote_server(schema.address.scheme).drop_schema(schema);
    dropped.map_err(|error| error.to_string())
}

fn record_of(schema: &Schema) -> ServerSchema {
    ServerSchema {
        title: format!("{} on {}", schema.name, schema.address),
        access: serde_json::to_string(&schema.to_be_kept()).expect("plain data becomes JSON"),
    }
}

/// A name that people know Spindle by, and that no other run has.
fn name_of(run: &str, number: usize) -> String {
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
    use spindle_engines::sql::Address;

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
