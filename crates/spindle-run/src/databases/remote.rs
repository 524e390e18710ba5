//! Schemas on existing servers: one for each server, which all its layouts share, put back by a copy of what was loaded
//! once, or loaded again.

use std::sync::Arc;

use spindle_engines::EngineError;
use spindle_engines::database::{LoadedSchema, RemoteDatabase, RemoteImage};
use spindle_engines::engine::Engine;
use spindle_engines::sql::{Address, Schema, SchemaKind, remote_server};
use spindle_experiment::RemoteSpec;
use spindle_system::{DeviceNumber, SystemTree};

use super::recipe::{Making, Recipe, Store};
use crate::database_error::DatabaseError;
use crate::schemas::{ServerPutBack, name_of};

/// A layout's schema: the same for all layouts on its server.
#[derive(Debug, PartialEq)]
pub(super) struct ServerSchema {
    address: Address,
    password_env: Option<String>,
}

impl ServerSchema {
    pub(super) fn of(spec: &RemoteSpec) -> ServerSchema {
        ServerSchema {
            address: spec.address.clone(),
            password_env: spec.password_env.clone(),
        }
    }

    /// A schema to be made, with a token drawn for it.
    fn schema(&self, name: String, kind: SchemaKind) -> Result<Schema, DatabaseError> {
        let token = SystemTree::default()
            .random_uuid()
            .map_err(|error| EngineError::unavailable(error.to_string()))
            .map_err(DatabaseError::Target)?;
        let schema = Schema {
            address: self.address.clone(),
            password_variable: self.password_env.clone(),
            password: None,
            kind,
            name,
            token,
        };
        let schema = schema.with_password();
        schema.map_err(DatabaseError::Target)
    }
}

impl Recipe for ServerSchema {
    type Engine = RemoteDatabase;

    fn golden(
        &self,
        engine: &RemoteDatabase,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<Arc<LoadedSchema>, DatabaseError> {
        let mut golden = LoadedSchema::default();
        let name = name_for(making);
        let ServerPutBack::Copy(copying) = making.way else {
            engine.check_statements(&self.schema(name, SchemaKind::Schema)?)?;
            return Ok(Arc::new(golden));
        };
        let loaded = self.schema(format!("{name}_loaded"), SchemaKind::Database)?;
        engine.check_statements(&loaded)?;
        (making.note)(&format!(
            "loading the database {} on {}",
            loaded.name, loaded.address
        ));
        store.schemas.note(&loaded, making.name())?;
        let filled = engine
            .create(&loaded)
            .and_then(|()| engine.load(&loaded, &store.interrupted))
            .and_then(|()| engine.not_copied(&loaded));
        match filled {
            Ok(None) => golden.copied = Some((loaded, *copying)),
            Ok(Some(left_out)) => {
                golden.warnings.push(format!(
                    "loaded again, not copied in the server: the workload has {left_out}"
                ));
                golden.warnings.extend(store.schemas.drop_last());
            }
            Err(error) => return Err(store.schemas.undo(error)),
        }
        Ok(Arc::new(golden))
    }

    fn site(
        &self,
        golden: &LoadedSchema,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<Schema, DatabaseError> {
        let name = name_for(making);
        if golden.copied.is_some() {
            let schema = self.schema(name, SchemaKind::Database)?;
            store.schemas.note(&schema, making.name())?;
            return Ok(schema);
        }
        let schema = self.schema(name, SchemaKind::Schema)?;
        (making.note)(&format!("making {schema}"));
        store.schemas.note(&schema, making.name())?;
        match remote_server(schema.address.scheme).make(&schema) {
            Ok(()) => Ok(schema),
            Err(error) => Err(store.schemas.undo(error)),
        }
    }

    fn home(image: &RemoteImage) -> Schema {
        image.schema.clone()
    }

    fn devices(&self, _: &Schema) -> Vec<DeviceNumber> {
        Vec::new()
    }
}

/// The name of what is made for a layout.
fn name_for(making: &Making<'_>) -> String {
    name_of(&making.state.run, making.layout + 1)
}
