//! A server's database as an [`Engine`]: made and loaded in golden directories, copied file by file.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_io::Env;
use spindle_layout::{GoldenTree, TreeDirectories, TreeImage, TreeSite};
use spindle_workload::sql::SqlWorkload;

use crate::EngineError;
use crate::engine::{
    Engine, EngineFuture, FoundServer, KeepError, PutBackBy, Restored, RunningEngine,
};
use crate::registry::server;
use crate::sql::{Purpose, ServerKind, ServerRequest, SqlUnderTest, create, load_into};

/// A database of a server that Spindle starts, with a workload.
pub struct ServerDatabase {
    /// Which server.
    pub kind: ServerKind,
    /// What is asked of it.
    pub request: ServerRequest,
    /// What it is loaded with, and what clients do.
    pub workload: Arc<dyn SqlWorkload>,
}

impl Engine for ServerDatabase {
    type Home = TreeDirectories;
    type Golden = GoldenTree;
    type Site = TreeSite;
    type Image = TreeImage;

    fn examine(&self) -> Result<Option<FoundServer>, EngineError> {
        let server = server(self.kind);
        let mut found = server.examine(&self.request)?;
        let dumps = self.workload.dumps();
        for (_, dump) in &dumps {
            for brought in server.examine_dump(&self.request, dump)? {
                let name = |setting: &str| setting.split(" = ").next().map(str::to_owned);
                found
                    .settings
                    .retain(|setting| name(setting) != name(&brought));
                found.settings.push(brought);
            }
        }
        Ok(Some(found))
    }

    fn create(&self, home: &TreeDirectories) -> Result<(), EngineError> {
        create(server(self.kind), &self.request, home, &*self.workload)
    }

    fn load(
        &self,
        home: &TreeDirectories,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<(), EngineError> {
        let server = server(self.kind);
        load_into(server, &self.request, home, &*self.workload, interrupted)
    }

    fn snapshot(&self, golden: &Arc<GoldenTree>, site: TreeSite) -> Result<TreeImage, KeepError> {
        Ok(TreeImage::provision(golden, site)?)
    }

    fn restore(
        &self,
        image: &mut TreeImage,
        by: PutBackBy,
        _: &Arc<AtomicBool>,
    ) -> Result<Restored, KeepError> {
        let report = match by {
            PutBackBy::Volume(verify, began) => image.rolled_back(verify, began)?,
            PutBackBy::Itself(verify) => image.restore(verify)?,
        };
        Ok(report.into())
    }

    fn start<'a>(
        &'a self,
        home: &'a TreeDirectories,
        _: &'a Arc<dyn Env>,
    ) -> EngineFuture<'a, Result<Arc<dyn RunningEngine>, EngineError>> {
        Box::pin(async move {
            let started = server(self.kind).start(&self.request, home, Purpose::Trial)?;
            let workload = Arc::clone(&self.workload);
            let under_test = SqlUnderTest::new(started, workload, home.clone());
            Ok(Arc::new(under_test) as Arc<dyn RunningEngine>)
        })
    }
}
