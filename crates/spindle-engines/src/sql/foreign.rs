//! Existing servers. Spindle comes to one as any client does, makes a schema of its own there (a database, where
//! schemas are databases), and touches nothing else: it neither starts nor stops nor sets anything. A schema bears a
//! token, by which it is known as ours before it is dropped.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
pub use spindle_layout::steps::SchemaGone;
use spindle_workload::sql::SqlWorkload;

use super::address::{Address, Password};
use super::survey::Survey;
use super::{FoundServer, Purpose, RunningServer, Stop, load};
use crate::EngineError;

/// A schema of Spindle's own on an existing server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The server, and as whom to come to it.
    pub address: Address,
    /// The environment variable in which its password is; `None`: where the server's own clients look for it.
    pub password_variable: Option<String>,
    /// The password; `None`: there is none, or it is still to be looked for.
    pub password: Option<Password>,
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// By which it is known as this one and no other of the name.
    pub token: String,
}

impl Schema {
    /// With the password, looked for where it may be.
    ///
    /// # Errors
    /// See [`Address::find_password`].
    pub fn with_password(mut self) -> Result<Schema, EngineError> {
        if self.password.is_none() {
            let named = self.password_variable.as_deref();
            self.password = self.address.find_password(named)?;
        }
        Ok(self)
    }

    /// As it may lie in a file of this user's: with the password only if that stood in a file already.
    pub fn to_be_kept(&self) -> Schema {
        Schema {
            password: self.address.password.clone(),
            ..self.clone()
        }
    }
}

/// One kind of existing server. It keeps nothing between calls.
pub trait ForeignServer: Send + Sync {
    /// Looks at a server: what it is, what it says of its settings, and whether a schema may be made there. Changes
    /// nothing.
    ///
    /// # Errors
    /// `Unavailable`, for people.
    fn look(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<FoundServer, EngineError>;

    /// Looks at a server before anything is planned for it: what it is, what is in it, what this user may do there.
    /// Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, for people.
    fn survey(&self, address: &Address, password: Option<&Password>)
    -> Result<Survey, EngineError>;

    /// Makes a schema with its token and nothing in it.
    ///
    /// # Errors
    /// [`EngineError`], also when there is one of the name; so for the others.
    fn make(&self, schema: &Schema) -> Result<(), EngineError>;

    /// Drops a schema with all that is in it, if it is there and ours.
    fn drop_schema(&self, schema: &Schema) -> Result<SchemaGone, EngineError>;

    /// Comes to a schema to work in it.
    fn open(
        &self,
        schema: &Schema,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError>;
}

/// Drops a schema and makes and loads it again: the state every trial starts from. Ends early, with an error, once
/// `interrupted`.
///
/// # Errors
/// See [`EngineError`].
pub fn reload(
    server: &dyn ForeignServer,
    schema: &Schema,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    if server.drop_schema(schema)? == SchemaGone::NotOurs {
        return Err(EngineError::failed(
            format!(
                "making the schema {} on {} again",
                schema.name, schema.address
            ),
            "there is another one of the name, which is not this run's",
        ));
    }
    server.make(schema)?;
    let running = server.open(schema, Purpose::Load)?;
    let loaded = load::load(&*running, workload, interrupted);
    // The first error is the one to tell.
    loaded.and(running.stop(Stop::Clean))
}
