//! TPC-H on the embedded database: the answers of its plans are the right ones, from memory and from temporary
//! segments, and those of SQLite to other parameters; a changed row is noticed; refresh functions do what they should.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_engines::kernel::{
    InitialLoad, KernelEngine, KernelSession, KernelSettings, Shutdown, WriteSync, create_and_load,
    files_of,
};
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, FileDevice, Method, Queue, RealEnv, block_on};
use spindle_io::{Env, disk_group};
use spindle_layout::{DatabaseFiles, DatabaseShape, FileManager, KnownDevice, Place, create_file};
use spindle_workload::sql::tpch::answers::{Agreement, QueryAnswer};
use spindle_workload::sql::tpch::{Parameters, TpchVersion};
use spindle_workload::sql::{KeptAnswer, Tpch};
use spindle_workload::{
    Acknowledged, CheckError, Client, ClientSession, IndexOf, Keyed, RowOperation, SessionError,
    Workload, driver,
};

use crate::small;
use crate::tpch::{answers_of_sqlite, right_answer};

const BLOCK_BYTES: usize = 8192;
/// Of each disk of the group; raw device and disks are sparse files.
const DISK_BYTES: u64 = 512 << 20;
const LINEITEM: usize = 7;
const ORDERS: usize = 6;

fn workload(scale: f64, parameters: Parameters, refresh: bool, slaves: u32) -> Arc<dyn Workload> {
    let tpch = Tpch {
        version: TpchVersion::H,
        scale,
        queries: TpchVersion::H.queries().collect(),
        refresh,
        parameters,
        query_limit: None,
        kept: Some(Arc::default()),
        seed: 7,
    };
    Arc::from(tpch.in_plans(1, slaves))
}

fn settings(sort_area_bytes: u64) -> KernelSettings {
    let mut settings = small::settings(WriteSync::Dsync);
    settings.instance.sort_area_bytes = sort_area_bytes;
    KernelSettings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 16 << 20,
        log_buffer_bytes: 64 * BLOCK_BYTES,
        ..settings
    }
}

/// A database with its workload, ended in order, which finds temporary segments that are not free.
struct Loaded {
    engine: Option<Arc<KernelEngine>>,
    workload: Arc<dyn Workload>,
    client: Client,
}

impl Loaded {
    fn of(workload: Arc<dyn Workload>, sort_area_bytes: u64) -> Loaded {
        let env: Arc<dyn Env> = RealEnv::new(1);
        let shape = files_of(&*workload, 1, BLOCK_BYTES, 2, 3, 64 << 20);
        let settings = settings(sort_area_bytes);
        let started = KernelEngine::in_memory(&env, &shape, &settings, &*workload, 1);
        Loaded::running(block_on(started).unwrap(), &workload)
    }

    fn running(engine: KernelEngine, workload: &Arc<dyn Workload>) -> Loaded {
        Loaded {
            engine: Some(Arc::new(engine)),
            workload: Arc::clone(workload),
            client: Client {
                number: 0,
                clients: 1,
                changes: 0,
                rng: seeded_rng(1, 0),
            },
        }
    }

    fn connect(&self) -> KernelSession {
        self.engine.as_ref().unwrap().connector()()
    }

    /// Carries out all that the client does; the answers, and the bytes that were spilled.
    fn carry_out(&mut self) -> (Vec<KeptAnswer>, u64) {
        let mut session = self.connect();
        let (mut spilled_bytes, mut last) = (0, 0);
        for _ in 0..self.workload.transactions(0, 1).unwrap() {
            let txn = self.workload.next(&mut self.client, &[]);
            let kind = txn.kind() + 1;
            let done = block_on(session.execute(&txn.operations[0]));
            done.unwrap_or_else(|error| panic!("query {kind}: {error}"));
            block_on(session.commit()).unwrap();
            spilled_bytes += session.temporary_bytes().unwrap();
            last = last.max(txn.number);
        }
        self.client.changes = last;
        (self.workload.kept_answers(), spilled_bytes)
    }

    fn check(&self) -> Result<String, CheckError> {
        let acknowledged = vec![Acknowledged::up_to(self.client.changes)];
        let mut session = self.connect();
        block_on(driver::check(&mut session, &*self.workload, acknowledged))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let engine = self.engine.take().and_then(Arc::into_inner);
        let stopped = engine.map(|engine| block_on(engine.stop(Shutdown::Normal)));
        if !std::thread::panicking() {
            stopped.expect("no session is left").unwrap();
        }
    }
}

/// The queries whose answer is not the right one, with the differences.
fn wrong(answers: &[KeptAnswer], right: impl Fn(u8) -> QueryAnswer) -> Vec<String> {
    assert_eq!(answers.len(), 22);
    let judge = |kept: &KeptAnswer| {
        let Agreement::Wrong(differences) = kept.answer.compare(&right(kept.query)) else {
            return None;
        };
        Some(format!("query {}: {differences}", kept.query))
    };
    answers.iter().filter_map(judge).collect()
}

fn are_right(answers: &[KeptAnswer], right: impl Fn(u8) -> QueryAnswer) {
    let wrong = wrong(answers, right);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn answers_are_right_from_memory_and_from_temporary_segments() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (sort_area_bytes, slaves, spills) in [(16 << 20, 1, false), (128 << 10, 3, true)] {
        let workload = workload(0.01, Parameters::Validation, false, slaves);
        let mut loaded = Loaded::of(workload, sort_area_bytes);
        let (answers, spilled_bytes) = loaded.carry_out();
        are_right(&answers, right_answer);
        assert_eq!(spilled_bytes > 0, spills, "{spilled_bytes}");
        loaded.client.changes = 0;
        assert_eq!(
            loaded.check().unwrap(),
            "15000 orders, as many as there should be"
        );
    }
}

#[test]
fn a_changed_row_is_noticed() {
    let mut loaded = Loaded::of(workload(0.01, Parameters::Validation, false, 2), 16 << 20);
    let mut session = loaded.connect();
    // One dollar more in one of 60175 rows: keys are turned over in their highest bit.
    let key = [
        &(1_u64 ^ 1 << 63).to_be_bytes()[..],
        &(1_u32 ^ 1 << 31).to_be_bytes(),
    ]
    .concat();
    let mut edit = |row: &mut Vec<u8>| {
        // Three keys of eight bytes, a number of four, the quantity, and then the price.
        let price: [u8; 8] = row[36..44].try_into().unwrap();
        row[36..44].copy_from_slice(&(u64::from_be_bytes(price) + 100).to_be_bytes());
    };
    let primary = IndexOf {
        table: LINEITEM,
        index: 0,
    };
    assert!(block_on(session.update(primary, &key, &mut edit)).unwrap());
    block_on(session.commit()).unwrap();
    drop(session);
    let (answers, _) = loaded.carry_out();
    let wrong = wrong(&answers, right_answer);
    assert!(wrong.iter().any(|said| said.starts_with("query 1:")));
}

#[test]
fn answers_to_drawn_parameters_are_those_of_sqlite() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let mut loaded = Loaded::of(workload(0.01, Parameters::Random, false, 2), 1 << 20);
    let (answers, _) = loaded.carry_out();
    let of_sqlite = answers_of_sqlite(&answers);
    // Where values are equal, the order is anyone's.
    let sorted = |answer: &QueryAnswer| {
        let mut rows = answer.rows.clone();
        rows.sort();
        QueryAnswer { rows }
    };
    let answers: Vec<KeptAnswer> = answers
        .into_iter()
        .map(|kept| KeptAnswer {
            answer: sorted(&kept.answer),
            ..kept
        })
        .collect();
    are_right(&answers, |query| sorted(&of_sqlite[usize::from(query) - 1]));
}

#[test]
fn refresh_functions_do_what_they_should_and_a_lost_order_is_noticed() {
    let mut loaded = Loaded::of(workload(0.01, Parameters::Random, true, 2), 4 << 20);
    loaded.carry_out();
    let said = loaded.check();
    assert_eq!(said.unwrap(), "15000 orders, as many as there should be");
    let mut session = loaded.connect();
    let removed = |number: u64| (number ^ 1 << 63).to_be_bytes();
    let primary = IndexOf {
        table: ORDERS,
        index: 0,
    };
    let found = block_on(session.get(primary, &removed(39))).unwrap();
    assert_eq!(found, None, "RF2 takes the first fifteen orders away");
    assert!(block_on(session.delete(primary, &removed(64))).unwrap());
    block_on(session.commit()).unwrap();
    drop(session);
    assert_eq!(
        loaded.check().unwrap_err().to_string(),
        "there are 14999 orders, not 15000"
    );
}

/// The files of a shape in a disk group of two files.
fn in_disk_group(shape: &DatabaseShape, place: &Path) -> DatabaseFiles {
    let disks = ["disk1", "disk2"].map(|name| place.join(name));
    let member = |disk: &PathBuf| {
        File::create(disk).unwrap().set_len(DISK_BYTES).unwrap();
        let device = FileDevice::open(disk, Caching::Buffered, Queue::sync()).unwrap();
        disk_group::Disk {
            name: disk.file_name().unwrap().to_str().unwrap().to_owned(),
            failure_group: None,
            device: Arc::new(device),
        }
    };
    let members = disks.iter().map(member).collect();
    let options = disk_group::DiskGroupOptions {
        allocation_unit_bytes: 1 << 20,
        redundancy: disk_group::Redundancy::External,
        ..disk_group::DiskGroupOptions::default()
    };
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(async {
        let made = disk_group::DiskGroup::create(&env, "data", members, options).await;
        made.unwrap().dismount().await.unwrap();
    });
    let known = disks
        .each_ref()
        .map(|disk| KnownDevice::look(disk).unwrap());
    files(shape, |name, bytes| Place::GroupFile {
        disks: known.to_vec(),
        file: name.to_owned(),
        bytes,
        fine_stripes: false,
        preferred_failure_group: None,
    })
}

/// The files of a shape one after the other on a plain file that stands in for a raw device.
fn on_raw_device(shape: &DatabaseShape, place: &Path) -> DatabaseFiles {
    let path = place.join("raw");
    File::create(&path)
        .unwrap()
        .set_len(2 * DISK_BYTES)
        .unwrap();
    let device = KnownDevice::look(&path).unwrap();
    let mut next = 0;
    files(shape, |_, bytes| {
        let first_byte = next;
        next += bytes.next_multiple_of(1 << 20);
        Place::Region {
            device: device.clone(),
            first_byte,
            bytes,
        }
    })
}

/// The files of a shape, each made where `place` says for a name and a size.
fn files(shape: &DatabaseShape, mut place: impl FnMut(&str, u64) -> Place) -> DatabaseFiles {
    let mut make = |name: &str, bytes: u64| {
        let place = place(name, bytes);
        let zeros = |_, piece: &mut [u8]| {
            piece.fill(0);
            Ok(())
        };
        create_file(FileManager::Plain, &place, bytes, zeros).unwrap();
        place
    };
    let mut all = |kind: &str, sizes: &[u64]| {
        let named = sizes.iter().enumerate();
        named
            .map(|(number, bytes)| make(&format!("{kind}{number}"), *bytes))
            .collect::<Vec<_>>()
    };
    DatabaseFiles {
        control: all("control", &[shape.control_bytes]).remove(0),
        redo: all("redo", &shape.redo_bytes),
        undo: all("undo", &[shape.undo_bytes]).remove(0),
        data: all("data", &shape.data_bytes),
        double_write: None,
        temp: all("temp", &shape.temp_bytes),
    }
}

#[test]
fn answers_are_right_on_a_raw_device_and_in_a_disk_group() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for on_blocks in [on_raw_device, in_disk_group] {
        let place = tempfile::tempdir().unwrap();
        let env: Arc<dyn Env> = RealEnv::new(1);
        let workload = workload(0.01, Parameters::Validation, false, 2);
        let shape = files_of(&*workload, 1, BLOCK_BYTES, 2, 3, 8 << 20);
        let (files, settings) = (on_blocks(&shape, place.path()), settings(128 << 10));
        let path = small::path(Caching::Buffered, Method::Sync);
        let load = InitialLoad {
            workload: &*workload,
            database: 3,
            clients: 1,
            interrupted: &AtomicBool::new(false),
        };
        block_on(create_and_load(&env, &files, path, &settings, load)).unwrap();
        let started = KernelEngine::start(&env, &files, path, path, &settings, &*workload);
        let mut loaded = Loaded::running(block_on(started).unwrap(), &workload);
        let (answers, spilled_bytes) = loaded.carry_out();
        are_right(&answers, right_answer);
        assert!(spilled_bytes > 0);
    }
}

#[test]
fn a_query_that_takes_too_long_is_cancelled() {
    let tpch = Tpch {
        version: TpchVersion::D,
        scale: 0.01,
        queries: vec![13],
        refresh: false,
        parameters: Parameters::Validation,
        query_limit: Some(std::time::Duration::from_nanos(1)),
        kept: None,
        seed: 7,
    };
    let mut loaded = Loaded::of(Arc::from(tpch.in_plans(1, 2)), 1 << 20);
    let txn = loaded.workload.next(&mut loaded.client, &[]);
    let mut session = loaded.connect();
    let RowOperation::Call(_) = &txn.operations[0] else {
        panic!("a query is a procedure")
    };
    let cancelled = block_on(session.execute(&txn.operations[0]));
    assert!(
        matches!(cancelled, Err(SessionError::Refused(_))),
        "{cancelled:?}"
    );
}

/// The standard's own answers, at scale 1.
#[test]
#[ignore = "loads a gigabyte: make soak"]
fn answers_at_scale_1_on_the_embedded_database_are_those_of_the_standard() {
    let mut loaded = Loaded::of(workload(1.0, Parameters::Validation, false, 2), 64 << 20);
    let (answers, _) = loaded.carry_out();
    let of_standard = |query| match query {
        // Clause 2.4.17.5; the copy that the crate has is three hundredths less.
        17 => QueryAnswer::read("avg_yearly\n348406.05\n"),
        _ => QueryAnswer::of_standard(query).expect("it has one to each"),
    };
    let mut wrong = wrong(&answers, of_standard);
    // In the crate's copy the keys of this answer are cut short; scale 0.01 has it whole.
    wrong.retain(|said| !said.starts_with("query 11:"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
