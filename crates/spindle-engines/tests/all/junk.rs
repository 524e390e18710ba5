//! `junk` on the embedded database: clients load it together, its check looks at rows and indexes, and finds what is
//! missing or too much.

use std::sync::Arc;

use spindle_engines::kernel::{InitialLoad, OpenStorage};
use spindle_engines::kernel::{
    KernelEngine, KernelSettings, KernelUnderTest, Shutdown, WriteSync, create_and_load_on,
    files_of,
};
use spindle_engines::{EngineError, engine::RunningEngine};
use spindle_io::Env;
use spindle_io::real::{Caching, Method, RealEnv, block_on};
use spindle_kernel::{Instance, RowId, Session};
use spindle_layout::DatabaseFiles;
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::{Acknowledged, MadeFor, Transactions, Workload, WorkloadKind};

use crate::small;

const CLIENTS: usize = 4;
const ROWS: u64 = 3000;
const COMMIT_EVERY: u64 = 10;

pub fn workload(rows: u64, commit_every: u64) -> Arc<dyn Workload> {
    let Transactions::Junk(mut junk) = WorkloadKind::Junk.defaults() else {
        panic!("the kind of junk is junk");
    };
    junk.rows = rows;
    junk.commit_every = commit_every as u32;
    let made_for = MadeFor {
        data_bytes: 0,
        block_bytes: 8192,
        clients: CLIENTS as u64,
        seed: 0,
        dialect: None,
    };
    let made = Transactions::Junk(junk).settings().make(&made_for);
    Arc::from(made.of_rows().expect("the embedded database has junk"))
}

fn settings(block_bytes: usize) -> KernelSettings {
    KernelSettings {
        block_bytes,
        log_buffer_bytes: 16 * block_bytes,
        ..small::settings(WriteSync::Dsync)
    }
}

/// A database on plain files, as large as is reckoned for it.
struct Scene {
    _directory: tempfile::TempDir,
    files: DatabaseFiles,
    env: Arc<dyn Env>,
    workload: Arc<dyn Workload>,
    settings: KernelSettings,
}

impl Scene {
    fn new(block_bytes: usize, commit_every: u64) -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let (workload, settings) = (workload(ROWS, commit_every), settings(block_bytes));
        let shape = files_of(&*workload, CLIENTS, block_bytes, 2, 3, 8 << 20);
        let scene = Scene {
            files: small::create(&shape, directory.path()),
            _directory: directory,
            env: RealEnv::new(1),
            workload,
            settings,
        };
        let opened = scene.open();
        let load = InitialLoad {
            workload: &*scene.workload,
            database: 7,
            clients: CLIENTS,
            interrupted: &false.into(),
        };
        block_on(create_and_load_on(
            &scene.env,
            &opened.storage,
            &scene.settings,
            load,
        ))
        .unwrap();
        block_on(opened.close());
        scene
    }

    fn open(&self) -> OpenStorage {
        let path = small::path(Caching::Buffered, Method::Sync);
        block_on(OpenStorage::open(
            &self.files,
            path,
            self.settings.block_bytes,
        ))
        .unwrap()
    }

    fn start(&self) -> Arc<dyn RunningEngine> {
        let path = small::path(Caching::Buffered, Method::Sync);
        let (env, workload) = (&self.env, Arc::clone(&self.workload));
        let started = KernelEngine::start(env, &self.files, path, path, &self.settings, &*workload);
        let engine = block_on(started).unwrap();
        Arc::new(KernelUnderTest::new(env, engine, workload))
    }

    /// All clients insert all they have to.
    fn load(&self, engine: &Arc<dyn RunningEngine>) -> Running {
        let behaviour = Behaviour {
            clients: CLIENTS,
            ..Behaviour::default()
        };
        let mut running = engine.start_clients(&self.env, behaviour);
        while !running.is_finished() {
            std::thread::yield_now();
        }
        block_on(running.stop()).unwrap();
        running
    }

    /// Changes rows behind the workload's back, and says what its check finds.
    fn after<F>(&self, promised: &[Acknowledged], change: F) -> Result<String, EngineError>
    where
        F: AsyncFnOnce(&Instance, &mut Session, Vec<(RowId, Vec<u8>)>),
    {
        let opened = self.open();
        block_on(async {
            let instance = Instance::startup(&self.env, &opened.storage, &self.settings)
                .await
                .unwrap();
            let mut session = instance.session();
            let mut rows = Vec::new();
            let table = instance.table("junk").unwrap();
            let note = |row, bytes: &[u8]| rows.push((row, bytes.to_vec()));
            session.scan(&table, 0, u64::MAX, note).await.unwrap();
            rows.sort();
            change(&instance, &mut session, rows).await;
            session.commit().await.unwrap();
            drop(session);
            instance.shutdown(Shutdown::Normal).await.unwrap();
            opened.close().await;
        });
        let engine = self.start();
        let found = block_on(engine.check(promised.to_vec()));
        block_on(engine.stop()).unwrap();
        found
    }
}

#[test]
fn clients_load_it_together_and_its_check_finds_what_is_wrong() {
    let scene = Scene::new(4096, COMMIT_EVERY);
    let engine = scene.start();
    let running = scene.load(&engine);
    let each = ROWS / COMMIT_EVERY / CLIENTS as u64;
    let promised = running.acknowledged();
    assert_eq!(promised, vec![Acknowledged::up_to(each); CLIENTS]);
    assert_eq!((running.retries(), running.errors()), (0, 0));
    drop(running);
    let said = block_on(engine.check(promised.clone())).unwrap();
    let wanted = "3000 rows, those of whole commits; index junk_c1_c2 (c1, c2): 3000 entries in";
    assert!(said.starts_with(wanted), "{said}");
    assert!(
        said.contains("; index junk_c3_c4 (c3, c4): 3000 entries in"),
        "{said}"
    );
    let segments = engine.counters().segments();
    let size = |name: &str| segments.iter().find(|of| of.name == name).unwrap().bytes;
    assert!(size("junk") > ROWS * 190 && size("junk_c1_c2") > ROWS * 16);
    block_on(engine.stop()).unwrap();

    let found = scene.after(&promised, async |_, _, _| {});
    assert_eq!(found.unwrap(), said, "nothing was changed");
    let without_one = scene.after(&promised, async |instance, session, rows| {
        let table = instance.table("junk").unwrap();
        session.delete_row(&table, rows[17].0).await.unwrap();
    });
    let told = without_one.unwrap_err().to_string();
    assert!(told.contains("not those of whole commits"), "{told}");
    let with_another_key = scene.after(&promised, async |instance, session, mut rows| {
        let table = instance.table("junk").unwrap();
        let (row, bytes) = &mut rows[17];
        bytes[16] = 1;
        session.replace_row(&table, *row, bytes).await.unwrap();
    });
    let told = with_another_key.unwrap_err().to_string();
    assert!(told.contains("do not agree"), "{told}");
}

#[test]
fn the_files_are_large_enough_for_every_block_size_and_commit() {
    for (block_bytes, commit_every) in [(2048, 1), (2048, 3000), (8192, 100), (32768, 700)] {
        let scene = Scene::new(block_bytes, commit_every);
        let engine = scene.start();
        let running = scene.load(&engine);
        let promised = running.acknowledged();
        assert_eq!(running.errors(), 0, "{:?}", running.first_error());
        drop(running);
        let checked = block_on(engine.check(promised));
        checked.unwrap_or_else(|loss| panic!("{block_bytes} {commit_every}: {loss}"));
        block_on(engine.stop()).unwrap();
    }
}
