//! MariaDB.

use std::sync::Arc;

use spindle_layout::TreeDirectories;
use spindle_workload::sql::Dialect;

use crate::sql::{FoundServer, Purpose, RunningServer, Server, ServerError, ServerRequest};

/// MariaDB.
pub struct MariaDb;

impl Server for MariaDb {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn examine(&self, _: &ServerRequest) -> Result<FoundServer, ServerError> {
        Err(ServerError::Unavailable(
            "MariaDB is not built yet".to_owned(),
        ))
    }

    fn shapes_files(&self, _: &str) -> bool {
        true
    }

    fn room_bytes(&self, _: &ServerRequest) -> u64 {
        0
    }

    fn overhead_bytes(&self, _: &ServerRequest) -> u64 {
        0
    }

    fn create(&self, request: &ServerRequest, _: &TreeDirectories) -> Result<(), ServerError> {
        self.examine(request).map(|_| ())
    }

    fn start(
        &self,
        request: &ServerRequest,
        _: &TreeDirectories,
        _: Purpose,
    ) -> Result<Arc<dyn RunningServer>, ServerError> {
        Err(self
            .examine(request)
            .map_or_else(|error| error, |_| unreachable!()))
    }

    fn verify(&self, request: &ServerRequest, _: &TreeDirectories) -> Result<String, ServerError> {
        self.examine(request).map(|found| found.version)
    }
}
