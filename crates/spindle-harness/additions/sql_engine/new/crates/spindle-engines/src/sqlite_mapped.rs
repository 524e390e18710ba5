//! SQLite with its database mapped into memory, whatever the experiment says.

use std::sync::Arc;

use spindle_layout::TreeDirectories;
use spindle_text::file_kind::FileKind;
use spindle_text::load_file::Dump;
use spindle_workload::sql::Dialect;

use crate::EngineError;
use crate::sql::{
    ComparableSettings, FoundServer, Purpose, RunningServer, Server, ServerIo, ServerRequest,
    ServerRoom,
};
use crate::sqlite::Sqlite;

/// It.
pub struct SqliteMapped;

fn mapped(request: &ServerRequest) -> ServerRequest {
    let mut request = request.clone();
    let bytes = (2 * request.data_bytes).to_string();
    request.settings.insert("mmap_size".to_owned(), bytes);
    request
}

impl Server for SqliteMapped {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn is_library(&self) -> bool {
        true
    }

    fn file_words(&self) -> &'static [(FileKind, &'static str)] {
        Sqlite.file_words()
    }

    fn comparisons(&self) -> &'static [ComparableSettings] {
        Sqlite.comparisons()
    }

    fn examine(&self, request: &ServerRequest) -> Result<FoundServer, EngineError> {
        let mut found = Sqlite.examine(&mapped(request))?;
        found.version.push_str(", mapped");
        Ok(found)
    }

    fn examine_dump(
        &self,
        request: &ServerRequest,
        dump: &Dump,
    ) -> Result<Vec<String>, EngineError> {
        Sqlite.examine_dump(&mapped(request), dump)
    }

    fn check_setting(&self, name: &str, value: &str) -> Result<(), EngineError> {
        Sqlite.check_setting(name, value)
    }

    fn check_io(&self, io: ServerIo, is_on_devices: bool) -> Result<(), EngineError> {
        Sqlite.check_io(io, is_on_devices)
    }

    fn placed_kinds(&self) -> &'static [FileKind] {
        &[]
    }

    fn shapes_files(&self, setting: &str) -> bool {
        Sqlite.shapes_files(setting)
    }

    fn room(&self, request: &ServerRequest) -> ServerRoom {
        Sqlite.room(request)
    }

    fn overhead_bytes(&self, request: &ServerRequest) -> u64 {
        Sqlite.overhead_bytes(request)
    }

    fn create(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<(), EngineError> {
        Sqlite.create(&mapped(request), directories)
    }

    fn start(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
        purpose: Purpose,
    ) -> Result<Arc<dyn RunningServer>, EngineError> {
        Sqlite.start(&mapped(request), directories, purpose)
    }

    fn verify(
        &self,
        request: &ServerRequest,
        directories: &TreeDirectories,
    ) -> Result<String, EngineError> {
        Sqlite.verify(&mapped(request), directories)
    }
}
