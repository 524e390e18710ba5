//! A database on an existing server as an [`Engine`]: a schema of Spindle's own, or a database. It is put back by a
//! copy that the server makes of a loaded one, or by loading it again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use spindle_io::Env;
use spindle_workload::sql::{Dialect, SqlWorkload};

use crate::EngineError;
use crate::engine::{
    Engine, EngineFuture, FoundServer, KeepError, PutBackBy, Restored, RunningEngine,
};
use crate::registry::remote_server;
use crate::sql::foreign::{copy_again, load_into, reload};
use crate::sql::{Address, Copying, ForeignServer, Purpose, Schema, Scheme, SqlUnderTest};

/// A database on a server that runs already, with a workload.
pub struct RemoteDatabase {
    /// The server.
    pub address: Address,
    /// The environment variable that its password is in, if it says one.
    pub password_env: Option<String>,
    /// What it is loaded with, and what clients do.
    pub workload: Arc<dyn SqlWorkload>,
}

/// What was loaded once.
#[derive(Debug, Default)]
pub struct LoadedSchema {
    /// A database, and how it is copied; `None`: each image is loaded by itself.
    pub copied: Option<(Schema, Copying)>,
    /// To be told with each restore.
    pub warnings: Vec<String>,
}

/// What trials work in, and what it is put back to.
pub struct RemoteImage {
    /// What trials work in.
    pub schema: Schema,
    loaded: Arc<LoadedSchema>,
}

impl RemoteDatabase {
    fn server(&self) -> &'static dyn ForeignServer {
        remote_server(self.address.scheme)
    }

    /// That no statement of the workload leaves what is to be made there: asked before it is made.
    ///
    /// # Errors
    /// `Unavailable`: the first that does, and where it stands.
    pub fn check_statements(&self, schema: &Schema) -> Result<(), EngineError> {
        let others = self.server().others(schema)?;
        let dialect = match self.address.scheme {
            Scheme::Postgres => Dialect::Postgres,
            Scheme::MySql => Dialect::MariaDb,
        };
        let beyond = self.workload.beyond(dialect, schema.ours(), &others);
        beyond.map_or(Ok(()), |reason| Err(EngineError::unavailable(reason)))
    }

    /// What there is in a loaded database that its copy would not have, in words.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn not_copied(&self, loaded: &Schema) -> Result<Option<String>, EngineError> {
        self.server().not_copied(loaded)
    }

    /// Comes to a database that another process of the trial looks at, for clients alone: nothing is counted here.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn join(&self, home: &Schema) -> Result<Arc<dyn RunningEngine>, EngineError> {
        let opened = self.server().open(home, Purpose::Load)?;
        let under_test = SqlUnderTest::remote(opened, Arc::clone(&self.workload));
        Ok(Arc::new(under_test))
    }
}

impl Engine for RemoteDatabase {
    type Home = Schema;
    type Golden = LoadedSchema;
    type Site = Schema;
    type Image = RemoteImage;

    fn examine(&self) -> Result<Option<FoundServer>, EngineError> {
        let password = self.address.find_password(self.password_env.as_deref())?;
        let found = self.server().look(&self.address, password.as_ref());
        found.map(Some)
    }

    fn create(&self, home: &Schema) -> Result<(), EngineError> {
        self.server().make(home)
    }

    /// What is loaded is to be copied: no session connects to it from then on.
    fn load(&self, home: &Schema, interrupted: &Arc<AtomicBool>) -> Result<(), EngineError> {
        load_into(self.server(), home, &*self.workload, interrupted)?;
        self.server().close(home)
    }

    /// Makes nothing on the server yet: every image is put back before it is used.
    fn snapshot(
        &self,
        golden: &Arc<LoadedSchema>,
        schema: Schema,
    ) -> Result<RemoteImage, KeepError> {
        let loaded = Arc::clone(golden);
        Ok(RemoteImage { schema, loaded })
    }

    fn restore(
        &self,
        image: &mut RemoteImage,
        _: PutBackBy,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Restored, KeepError> {
        let began = Instant::now();
        let (server, schema) = (self.server(), &image.schema);
        let method = match &image.loaded.copied {
            Some((loaded, copying)) => copy_again(server, (loaded, schema), *copying, interrupted)?,
            None => {
                reload(server, schema, &*self.workload, interrupted)?;
                "schema dropped, made and loaded again"
            }
        };
        Ok(Restored {
            method,
            changed_blocks: 0,
            // Nothing is left of its earlier contents.
            is_verified: true,
            took: began.elapsed(),
            warnings: image.loaded.warnings.clone(),
        })
    }

    fn start<'a>(
        &'a self,
        home: &'a Schema,
        _: &'a Arc<dyn Env>,
    ) -> EngineFuture<'a, Result<Arc<dyn RunningEngine>, EngineError>> {
        Box::pin(async move {
            let opened = self.server().open(home, Purpose::Trial)?;
            let under_test = SqlUnderTest::remote(opened, Arc::clone(&self.workload));
            Ok(Arc::new(under_test) as Arc<dyn RunningEngine>)
        })
    }
}
