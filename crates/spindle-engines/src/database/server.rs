//! A server's database as an [`Engine`]: made and loaded in golden directories, copied file by file.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_io::Env;
use spindle_layout::{GoldenTree, GroupedFile, RawFile, TreeDirectories, TreeImage};
use spindle_workload::sql::SqlWorkload;

use crate::EngineError;
use crate::engine::{Answer, Engine, FoundServer, KeepError, PutBackBy, Restored, RunningEngine};
use crate::registry::server;
use crate::sql::{Purpose, ServerKind, ServerRequest, SqlUnderTest, load_into};

/// A database of a server that Spindle starts, with a workload.
pub struct ServerDatabase {
    /// Which server.
    pub kind: ServerKind,
    /// What is asked of it.
    pub request: ServerRequest,
    /// What it is loaded with, and what clients do.
    pub workload: Arc<dyn SqlWorkload>,
}

/// Where the files of an image go.
pub struct TreeSite {
    /// Its directories, which are there and empty.
    pub directories: TreeDirectories,
    /// Those of files that it shares its blocks with, if it does.
    pub originals: Option<TreeDirectories>,
    /// Datafiles on raw devices.
    pub raw: Vec<RawFile>,
    /// Datafiles in disk groups, whose names there begin with `prefix`.
    pub grouped: Vec<GroupedFile>,
    /// Names of no other database's files begin so.
    pub prefix: String,
}

impl Engine for ServerDatabase {
    type Home = TreeDirectories;
    type Golden = GoldenTree;
    type Site = TreeSite;
    type Image = TreeImage;

    fn examine(&self) -> Result<Option<FoundServer>, EngineError> {
        let server = server(self.kind);
        let found = server.examine(&self.request)?;
        let dumps = self.workload.dumps();
        for (_, dump) in &dumps {
            server.examine_dump(&self.request, dump)?;
        }
        Ok(Some(found))
    }

    fn create(&self, home: &TreeDirectories) -> Result<(), EngineError> {
        server(self.kind).create(&self.request, home)
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
        let TreeSite {
            directories,
            originals,
            raw,
            grouped,
            prefix,
        } = site;
        Ok(match originals {
            Some(originals) => TreeImage::provision_clones(golden, directories, originals)?,
            None if grouped.is_empty() => TreeImage::provision_on(golden, directories, &raw)?,
            None => TreeImage::provision_in_groups(golden, directories, &grouped, &prefix)?,
        })
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
    ) -> Answer<'a, Result<Arc<dyn RunningEngine>, EngineError>> {
        Box::pin(async move {
            let started = server(self.kind).start(&self.request, home, Purpose::Trial)?;
            let workload = Arc::clone(&self.workload);
            let under_test = SqlUnderTest::new(started, workload, home.clone());
            Ok(Arc::new(under_test) as Arc<dyn RunningEngine>)
        })
    }
}
