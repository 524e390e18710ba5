//! Loading ends when it is interrupted, long before the last row, and nothing goes on working on the files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use spindle_engines::kernel::{InitialLoad, WriteSync, create_and_load, files_of};
use spindle_engines::sql::{self, ServerKind, ServerRequest, server};
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::{Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::TreeDirectories;

use spindle_workload::sql::RowsInSql;
use spindle_workload::{
    Acknowledged, Checker, Client, LoadedTable, Loader, OltpMix, OltpMixSettings, TableSpec, Txn,
    Workload,
};

use crate::small;

/// The rows after which the load is interrupted.
const ROWS: u64 = 100;
const DATA_BYTES: u64 = 16 << 20;

/// The workload, whose load is interrupted at a row.
struct Interrupting {
    row: u64,
    mix: OltpMix,
    filled: Arc<AtomicU64>,
    interrupted: Arc<AtomicBool>,
}

impl Interrupting {
    fn at_row(row: u64) -> Interrupting {
        Interrupting {
            row,
            mix: OltpMix {
                data_bytes: DATA_BYTES,
                clients: 1,
                settings: OltpMixSettings {
                    read_percent: 20,
                    row_operations: 4,
                },
            },
            filled: Arc::default(),
            interrupted: Arc::default(),
        }
    }
}

impl Workload for Interrupting {
    fn name(&self) -> &'static str {
        self.mix.name()
    }

    fn tables(&self) -> Vec<TableSpec> {
        self.mix.tables()
    }

    fn loader(&self, table: usize, first: u64) -> Loader<'_> {
        let mut load = self.mix.loader(table, first);
        Box::new(move |row, bytes| {
            if self.filled.fetch_add(1, Ordering::Relaxed) == self.row {
                self.interrupted.store(true, Ordering::Relaxed);
            }
            load(row, bytes);
        })
    }

    fn replaced_bytes(&self, table: usize, row_bytes: usize) -> usize {
        self.mix.replaced_bytes(table, row_bytes)
    }

    fn next(&self, client: &mut Client, tables: &[LoadedTable]) -> Txn {
        self.mix.next(client, tables)
    }

    fn checker(&self, acknowledged: Vec<Acknowledged>) -> Arc<dyn Checker> {
        self.mix.checker(acknowledged)
    }
}

/// Loads the embedded database. How it ended, and how many rows were made.
fn load(workload: &Interrupting) -> (Result<(), EngineError>, u64) {
    let place = tempfile::tempdir().unwrap();
    let settings = small::settings(WriteSync::Dsync);
    let shape = files_of(workload, 1, settings.block_bytes, 2, 3, 1 << 20);
    let files = small::create(&shape, place.path());
    let env: Arc<dyn Env> = RealEnv::new(1);
    let path = small::path(Caching::Buffered, Method::Sync);
    let loaded = create_and_load(
        &env,
        &files,
        path,
        &settings,
        InitialLoad {
            workload,
            database: 7,
            clients: 1,
            interrupted: &workload.interrupted,
        },
    );
    (block_on(loaded), workload.filled.load(Ordering::Relaxed))
}

#[test]
fn the_embedded_database_ends_its_load() {
    let (whole, all) = load(&Interrupting::at_row(u64::MAX));
    whole.unwrap();
    let (ended, filled) = load(&Interrupting::at_row(ROWS));
    let kind = ended.as_ref().map_err(EngineError::kind);
    assert_eq!(kind, Err(ErrorKind::Interrupted), "{ended:?}");
    assert!(filled < all / 2, "{filled} of {all} rows were made");
}

#[test]
fn a_server_ends_its_load() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("made");
    std::fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    let workload = Arc::new(Interrupting::at_row(ROWS));
    let request = ServerRequest {
        settings: BTreeMap::new(),
        bin_dir: None,
        buffer_cache_bytes: 1 << 20,
        data_bytes: DATA_BYTES,
        clients: 1,
        io: None,
        database: None,
    };
    let ended = sql::create_and_load(
        server(ServerKind::Sqlite),
        &request,
        &directories,
        &RowsInSql::new(Arc::clone(&workload) as Arc<dyn Workload>, 7),
        &workload.interrupted,
    );
    assert_eq!(ended.unwrap_err().to_string(), "interrupted");
    assert_eq!(workload.filled.load(Ordering::Relaxed), ROWS + 1);
}
