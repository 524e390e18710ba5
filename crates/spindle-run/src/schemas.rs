//! The databases of a run on existing servers: for each address a schema of the run's own, noted in the ledger
//! before it is made, loaded anew before every trial, dropped at the end. Layouts with the same address share one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use spindle_engines::EngineError;
use spindle_engines::sql::foreign::reload;
use spindle_engines::sql::{Address, ForeignServer, Schema, foreign_server};
use spindle_layout::Ledger;
use spindle_layout::ledger::EntryNumber;
use spindle_layout::steps::{SchemaGone, ServerSchema};
use spindle_workload::sql::SqlWorkload;

use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use super::schedule::order_of_making;
use crate::trial::protocol::sql_workload_of;
use spindle_result::Restore;

/// Where the kernel makes identities that no two have.
const UUID: &str = "/proc/sys/kernel/random/uuid";

/// The schemas of a run.
pub struct Schemas {
    made: Vec<(Schema, EntryNumber)>,
    of_layout: BTreeMap<usize, usize>,
    workload: Arc<dyn SqlWorkload>,
    ledger: Arc<Ledger>,
    /// Ends loading.
    interrupted: Arc<AtomicBool>,
}

impl Schemas {
    /// Makes the schemas of the layouts `wanted`, empty. `note` hears what is being done. Returns the layouts that
    /// cannot have theirs, with the reason.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        ledger: &Arc<Ledger>,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Schemas, Vec<(usize, String)>), DatabaseError> {
        let experiment = &state.experiment;
        let mut schemas = Schemas {
            made: Vec::new(),
            of_layout: BTreeMap::new(),
            workload: sql_workload_of(&experiment.workload, &experiment.database, experiment.seed),
            ledger: Arc::clone(ledger),
            interrupted: Arc::clone(interrupted),
        };
        let mut failed = Vec::new();
        for layout in order_of_making(state, wanted) {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            match schemas.schema_for(state, layout, note) {
                Ok(made) => _ = schemas.of_layout.insert(layout, made),
                Err(error @ DatabaseError::Ledger(_)) => return Err(error),
                Err(error) => failed.push((layout, error.to_string())),
            }
        }
        failed.sort_by_key(|(layout, _)| *layout);
        Ok((schemas, failed))
    }

    /// The schema of a layout, made if no other layout has made it.
    fn schema_for(
        &mut self,
        state: &RunState,
        layout: usize,
        note: &mut dyn FnMut(&str),
    ) -> Result<usize, DatabaseError> {
        let database = state.experiment.database_of(layout);
        let (Some(server), Some(address)) = (&database.server, database.address()) else {
            return Err(DatabaseError::Ground("it has no url".to_owned()));
        };
        let mut made = self.made.iter();
        if let Some(there) = made.position(|(schema, _)| schema.address == *address) {
            return Ok(there);
        }
        let token = std::fs::read_to_string(UUID).map_err(|error| DatabaseError::Place {
            path: UUID.into(),
            error,
        })?;
        let schema = Schema {
            address: address.clone(),
            password_variable: server.password_env.clone(),
            password: None,
            name: name_of(&state.run, layout + 1),
            token: token.trim().to_owned(),
        };
        let schema = schema.with_password();
        let schema = schema.map_err(|error| DatabaseError::Ground(error.to_string()))?;
        note(&format!("making the schema {} on {address}", schema.name));
        let number = self.ledger.note(
            Some(&state.experiment.layouts[layout].name),
            record_of(&schema).into(),
        )?;
        if let Err(error) = server_of(address)?.make(&schema) {
            // Should it have been made all the same, the token knows it.
            if server_of(address)?.drop_schema(&schema).is_ok() {
                self.ledger.gone(number)?;
            }
            return Err(error.into());
        }
        self.made.push((schema, number));
        Ok(self.made.len() - 1)
    }

    /// The schema of a layout.
    pub fn schema(&self, layout: usize) -> &Schema {
        &self.made[self.of_layout[&layout]].0
    }

    /// Drops a layout's tables, and makes and loads them again.
    pub fn restore(&self, layout: usize) -> Result<Restored, DatabaseError> {
        let schema = self.schema(layout);
        let began = Instant::now();
        let server = server_of(&schema.address)?;
        reload(server, schema, &*self.workload, &self.interrupted)?;
        Ok(Restored {
            restore: Restore {
                method: "schema dropped, made and loaded again".to_owned(),
                changed_blocks: 0,
                // Nothing is left of what was there before.
                verified: true,
                duration_ms: began.elapsed().as_millis() as u64,
            },
            warnings: Vec::new(),
        })
    }

    /// Drops them all. Returns what could not be dropped, in words; `spindle clean` tries again.
    pub fn remove(self) -> Vec<String> {
        let mut leftovers = Vec::new();
        for (schema, number) in self.made {
            let record = record_of(&schema);
            match drop_by(&schema) {
                Ok(SchemaGone::NotOurs) => {
                    leftovers.push(format!("{record} was left: it is no longer this run's"));
                }
                Ok(SchemaGone::Dropped | SchemaGone::WasNot) => {
                    let noted = self.ledger.gone(number);
                    leftovers.extend(noted.err().map(|error| error.to_string()));
                }
                Err(reason) => leftovers.push(format!(
                    "{record} was left: {reason}. When its server is there again: spindle clean"
                )),
            }
        }
        leftovers
    }
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
    let server = server_of(&schema.address).map_err(|error| error.to_string())?;
    server
        .drop_schema(schema)
        .map_err(|error| error.to_string())
}

fn record_of(schema: &Schema) -> ServerSchema {
    ServerSchema {
        title: format!("{} on {}", schema.name, schema.address),
        access: serde_json::to_string(&schema.to_be_kept()).expect("plain data becomes JSON"),
    }
}

fn server_of(address: &Address) -> Result<&'static dyn ForeignServer, EngineError> {
    foreign_server(address.kind).ok_or_else(|| {
        EngineError::unavailable(format!(
            "{address}: such a server cannot be measured by url"
        ))
    })
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
