//! Existing servers. Spindle connects to one as any client does, makes its own schema there, or databases, and
//! touches nothing else: it neither starts nor stops nor sets anything. A schema bears a token, by which it is known as
//! ours before it is dropped. It is put back by loading it again, or by a copy that the server makes of a loaded one.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
pub use spindle_layout::steps::SchemaGone;
use spindle_workload::sql::{Ours, SqlConnection, SqlWorkload};

use super::address::{Address, Password, Scheme};
use super::reader::Reader;
use super::survey::ServerSurvey;
use super::{FoundServer, Purpose, RunningServer, ServerStop, load};
use crate::{EngineError, ErrorKind};

/// What is said of a server whose counts the user may not see, or that has none.
pub(crate) const UNTOLD: &str =
    "this server does not tell what it reads and writes: that is unknown";
/// What is said of a server that would have the password itself where others may listen.
pub(crate) const NOT_TOLD: &str = "the server asks for the password as it is written, and others may listen: the connection \
     is neither encrypted nor within this machine, so it was not told. Let the server encrypt, or take a proof";
/// Interval between checks of a copy whether it is to stop.
const LOOK: Duration = Duration::from_millis(10);

/// What is made on a server. Of MariaDB and MySQL, where schemas are databases, both are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchemaKind {
    /// A schema in the database of the address.
    #[default]
    Schema,
    /// A database, which the server can copy.
    Database,
}

/// How a server copies a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// All of it is written again.
    Copied,
    /// Its files share the blocks of the original.
    Cloned,
}

/// A schema of Spindle's own on an existing server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// The server, and the user who connects to it.
    pub address: Address,
    /// The environment variable in which its password is; `None`: where the server's own clients look for it.
    pub password_variable: Option<String>,
    /// The password; `None`: there is none, or it is still to be looked for.
    pub password: Option<Password>,
    /// What it is.
    #[serde(default)]
    pub kind: SchemaKind,
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// By which it is known as this one and no other of the name.
    pub token: String,
}

/// What is where.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.ours() {
            Ours::Schema => "schema",
            Ours::Database | Ours::Server => "database",
        };
        write!(f, "the {what} {} on {}", self.name, self.address)
    }
}

impl Schema {
    /// How much of its server it is.
    pub fn ours(&self) -> Ours {
        match (self.address.scheme, self.kind) {
            (Scheme::MySql, _) | (Scheme::Postgres, SchemaKind::Database) => Ours::Database,
            (Scheme::Postgres, SchemaKind::Schema) => Ours::Schema,
        }
    }

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

/// Where a server is on its own machine, for an agent that observes it there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerHome {
    /// The directories that its files are in, the first the one it works in; empty where it does not tell this user.
    pub directories: Vec<PathBuf>,
    /// The names that its program may have.
    pub programs: Vec<String>,
}

impl ServerHome {
    /// One with these programs, whose directories are not known.
    pub(crate) fn of_programs(programs: &[&str]) -> ServerHome {
        ServerHome {
            directories: Vec::new(),
            programs: programs.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

/// One kind of existing server. It keeps nothing between calls.
pub trait ForeignServer: Send + Sync {
    /// Looks at a server: what it is, what it says of its settings, and whether a schema may be made there. Changes
    /// nothing.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn look(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<FoundServer, EngineError>;

    /// Looks at a server before anything is planned for it: what it is, what is in it, what this user may do there.
    /// Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn survey(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerSurvey, EngineError>;

    /// Asks a server where it is on its own machine. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn home(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<ServerHome, EngineError>;

    /// Whether this user can have databases copied there so. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`: why not, in words, with what would help; other kinds when the server cannot be asked.
    fn may_copy(
        &self,
        address: &Address,
        password: Option<&Password>,
        copying: Copying,
    ) -> Result<(), EngineError>;

    /// What there is in a loaded database that its copy would not have, in words.
    ///
    /// # Errors
    /// [`EngineError`]; so for the others.
    fn not_copied(&self, _loaded: &Schema) -> Result<Option<String>, EngineError> {
        Ok(None)
    }

    /// Lets no new session connect to a database that is loaded to be copied, where that would keep it from being
    /// copied.
    fn close(&self, _loaded: &Schema) -> Result<(), EngineError> {
        Ok(())
    }

    /// Makes a database with its token that has the content of a loaded one. Returns how that was done, in words.
    fn copy(
        &self,
        loaded: &Schema,
        schema: &Schema,
        copying: Copying,
    ) -> Result<&'static str, EngineError>;

    /// Ends what sessions of this user still do in a schema, by its name: those of a process that was killed, too,
    /// which the server does not miss before it answers them.
    fn end_sessions(&self, schema: &Schema) -> Result<(), EngineError>;

    /// Connects to a server to read from it. Names in questions to MariaDB and MySQL have their database before them:
    /// statements are prepared in that of the address, and questions are asked outside of it.
    ///
    /// # Errors
    /// `Unavailable`, in words.
    fn reader(
        &self,
        address: &Address,
        password: Option<&Password>,
    ) -> Result<Box<dyn Reader>, EngineError>;

    /// Connects to a server to keep results there.
    ///
    /// # Errors
    /// `Refused`: no results are kept in such a server. `Unavailable`, in words.
    fn writer(
        &self,
        address: &Address,
        _password: Option<&Password>,
    ) -> Result<Box<dyn SqlConnection>, EngineError> {
        Err(EngineError::refused(format!(
            "{address}: results are kept in PostgreSQL only"
        )))
    }

    /// Makes a schema with its token and nothing in it.
    ///
    /// # Errors
    /// [`EngineError`], also when there is one of the name.
    fn make(&self, schema: &Schema) -> Result<(), EngineError>;

    /// Drops a schema with all that is in it, if it exists and is ours.
    fn drop_schema(&self, schema: &Schema) -> Result<SchemaGone, EngineError>;

    /// The schemas or databases there that are not Spindle's, in small letters, where such a schema is to be or is.
    fn others(&self, schema: &Schema) -> Result<Vec<String>, EngineError>;

    /// Connects to a schema to work in it.
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
    drop_own(server, schema)?;
    server.make(schema)?;
    load_into(server, schema, workload, interrupted)
}

/// Drops a database and makes it again as a copy of a loaded one. Ends early, with an error, once `interrupted`.
/// Returns how that was done, in words.
///
/// # Errors
/// See [`EngineError`].
pub fn copy_again(
    server: &dyn ForeignServer,
    (loaded, schema): (&Schema, &Schema),
    copying: Copying,
    interrupted: &AtomicBool,
) -> Result<&'static str, EngineError> {
    drop_own(server, schema)?;
    std::thread::scope(|scope| {
        let copied = scope.spawn(|| server.copy(loaded, schema, copying));
        while !copied.is_finished() {
            if interrupted.load(Ordering::Relaxed) {
                // It ends by itself if it cannot be ended.
                let _ = server.end_sessions(schema);
            }
            std::thread::sleep(LOOK);
        }
        let copied = copied
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        copied.map_err(|error| match interrupted.load(Ordering::Relaxed) {
            true => EngineError::new(ErrorKind::Interrupted, error.to_string()),
            false => error,
        })
    })
}

/// Drops a schema of this run, if it exists.
fn drop_own(server: &dyn ForeignServer, schema: &Schema) -> Result<(), EngineError> {
    match server.drop_schema(schema)? {
        SchemaGone::Dropped | SchemaGone::WasNot => Ok(()),
        SchemaGone::NotOurs => Err(EngineError::failed(
            format!("making {schema} again"),
            "there is another one of the name, which is not this run's",
        )),
    }
}

/// Loads a schema that exists and is empty.
pub(crate) fn load_into(
    server: &dyn ForeignServer,
    schema: &Schema,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    let running = server.open(schema, Purpose::Load)?;
    let loaded = load::load(&*running, workload, interrupted);
    if loaded.is_err() && interrupted.load(Ordering::Relaxed) {
        // What is under way would keep the schema from being dropped. It ends by itself if it cannot be ended.
        let _ = server.end_sessions(schema);
    }
    // The first error is the one to tell.
    loaded.and(running.stop(ServerStop::Clean))
}
