//! The database of a run on an existing server: a schema of the run's own, noted in the ledger before it is made,
//! loaded anew before every trial, dropped at the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spindle_engines::sql::foreign::reload;
use spindle_engines::sql::{Schema, remote_server};
use spindle_experiment::RemoteSpec;
use spindle_layout::Ledger;
use spindle_layout::ledger::EntryNumber;
use spindle_layout::steps::{SchemaGone, ServerSchema};
use spindle_system::SystemTree;
use spindle_workload::sql::SqlWorkload;

use super::replay::RunState;
use super::restored::{DatabaseError, Restored};
use spindle_result::Restore;

/// A schema of the run's own, noted in the ledger.
pub(super) struct OwnSchema {
    schema: Schema,
    number: EntryNumber,
    ledger: Arc<Ledger>,
}

impl OwnSchema {
    /// Makes the schema of a layout, empty. `note` hears what is being done.
    pub fn make(
        state: &RunState,
        (layout, spec): (usize, &RemoteSpec),
        ledger: &Arc<Ledger>,
        note: &mut dyn FnMut(&str),
    ) -> Result<OwnSchema, DatabaseError> {
        let address = &spec.address;
        let token = SystemTree::default()
            .random_uuid()
            .ok_or_else(|| DatabaseError::Target("the kernel gives no random number".to_owned()))?;
        let schema = Schema {
            address: address.clone(),
            password_variable: spec.password_env.clone(),
            password: None,
            name: name_of(&state.run, layout + 1),
            token: token.trim().to_owned(),
        };
        let schema = schema.with_password();
        let schema = schema.map_err(|error| DatabaseError::Target(error.to_string()))?;
        note(&format!("making the schema {} on {address}", schema.name));
        let name = &state.experiment.layouts[layout].name;
        let number = ledger.note(Some(name), record_of(&schema).into())?;
        let server = remote_server(address.scheme);
        if let Err(error) = server.make(&schema) {
            // Should it have been made all the same, the token knows it.
            if server.drop_schema(&schema).is_ok() {
                ledger.gone(number)?;
            }
            return Err(error.into());
        }
        Ok(OwnSchema {
            schema,
            number,
            ledger: Arc::clone(ledger),
        })
    }

    /// What it is, and where.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Drops its tables, and makes and loads them again.
    pub fn reload(
        &self,
        workload: &dyn SqlWorkload,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Restored, DatabaseError> {
        let began = Instant::now();
        let server = remote_server(self.schema.address.scheme);
        reload(server, &self.schema, workload, interrupted)?;
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

    /// Drops it. Returns what could not be dropped, in words; `spindle clean` tries again.
    pub fn remove(self) -> Option<String> {
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
