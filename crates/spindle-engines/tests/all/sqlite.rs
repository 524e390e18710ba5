//! SQLite as a database under test: loaded, worked on, killed, put back, looked through.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, ServerIo, ServerKind, ServerRequest, ServerStop, SqlUnderTest, create_and_load, server,
};
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::Caching;
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{GoldenTree, TreeDirectories, TreeImage, Verify};
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::{RowsInSql, SqlWorkload, Value};
use spindle_workload::{
    Acknowledged, OltpMix, OltpMixSettings, RedoStress, SessionError, Slob, SlobSettings, Workload,
};

use crate::progress::wait_for;
use crate::promise::{must_name, storage};
use spindle_engines::promise::Keeps;

const CLIENTS: u32 = 3;
/// Set in the process that is to be killed, to the directory of its database.
const VICTIM: &str = "SPINDLE_TEST_SQLITE_VICTIM";

fn request(settings: &[(&str, &str)]) -> ServerRequest {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    ServerRequest {
        settings: settings.iter().map(owned).collect::<BTreeMap<_, _>>(),
        bin_dir: None,
        buffer_cache_bytes: 1 << 20,
        data_bytes: 2 << 20,
        clients: CLIENTS,
        io: None,
        database: None,
    }
}

fn oltp_mix() -> Arc<dyn SqlWorkload> {
    in_sql(OltpMix {
        data_bytes: 2 << 20,
        clients: CLIENTS.into(),
        settings: OltpMixSettings {
            read_percent: 40,
            row_operations: 5,
        },
    })
}

fn in_sql(workload: impl Workload + 'static) -> Arc<dyn SqlWorkload> {
    Arc::new(RowsInSql::new(Arc::new(workload), 7))
}

fn directories(place: &Path, name: &str) -> TreeDirectories {
    let root = place.join(name);
    std::fs::create_dir(&root).unwrap();
    let directories = TreeDirectories::within(|_| root.clone());
    directories.make().unwrap();
    directories
}

fn under_test(
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &Arc<dyn SqlWorkload>,
) -> Arc<SqlUnderTest> {
    let started = server(ServerKind::Sqlite).start(request, directories, Purpose::Trial);
    let workload = Arc::clone(workload);
    Arc::new(SqlUnderTest::new(
        started.unwrap(),
        workload,
        directories.clone(),
    ))
}

/// Lets the clients work for a while; their transactions, and what the check says then.
fn work(
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &Arc<dyn SqlWorkload>,
) -> (u64, Result<String, EngineError>) {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let engine = under_test(request, directories, workload);
    let behaviour = Behaviour {
        clients: CLIENTS as usize,
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    std::thread::sleep(Duration::from_millis(400));
    wait_for(&running, 20);
    assert!(
        engine.counters().counts().expect("counted").data.writes > 0,
        "the system counts for clients"
    );
    block_on(running.stop()).unwrap();
    let check = block_on(engine.check(running.acknowledged()));
    block_on(engine.stop()).unwrap();
    (running.committed(), check)
}

#[test]
fn a_transaction_that_comes_too_late_to_write_lets_the_other_come_to_its_end() {
    let place = tempfile::tempdir().unwrap();
    let directories = directories(place.path(), "made");
    let (kind, request) = (server(ServerKind::Sqlite), request(&[]));
    kind.create(&request, &directories).unwrap();
    let running = kind.start(&request, &directories, Purpose::Trial).unwrap();
    let mut writes = running.connect().unwrap();
    writes.run("create table t (a integer)").unwrap();
    writes.begin().unwrap();
    writes.run("insert into t values (1)").unwrap();
    let mut late = running.connect().unwrap();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        writes.commit().unwrap();
    });
    // As often as a client tries. SQLite waits for none of them, as they have read already.
    let is_done = (0..100).any(|_| {
        late.begin_reading().unwrap();
        late.ask("select * from t", &mut |_| Ok(())).unwrap();
        let inserted = late.run("insert into t values (2)");
        let done = inserted.and_then(|()| late.commit());
        assert!(
            matches!(done, Ok(()) | Err(SessionError::Retry(_))),
            "{done:?}"
        );
        late.rollback().unwrap();
        done.is_ok()
    });
    assert!(is_done);
    writer.join().unwrap();
    running.stop(ServerStop::Kill).unwrap();
}

#[test]
fn the_workloads_of_rows_run_on_it_and_their_checks_pass() {
    let slob = in_sql(Slob {
        data_bytes: 1 << 20,
        block_bytes: 8192,
        clients: CLIENTS.into(),
        settings: SlobSettings {
            update_percent: 50,
            scan_percent: 50,
            scan_blocks: 8,
            work_unit: 8,
            redo_stress: RedoStress::Heavy,
            hotspot: None,
        },
    });
    for workload in [oltp_mix(), slob] {
        for settings in [
            &[][..],
            &[("journal_mode", "delete"), ("page_size", "8192")],
        ] {
            let place = tempfile::tempdir().unwrap();
            let (request, made) = (request(settings), directories(place.path(), "made"));
            let sqlite = server(ServerKind::Sqlite);
            create_and_load(sqlite, &request, &made, &*workload, &Arc::default()).unwrap();
            let (committed, check) = work(&request, &made, &workload);
            assert!(committed > 0 && check.is_ok(), "{committed} {check:?}");
            sqlite.verify(&request, &made).unwrap();
        }
    }
}

#[test]
fn a_lost_change_is_found() {
    let place = tempfile::tempdir().unwrap();
    let (request, made, workload) = (request(&[]), directories(place.path(), "made"), oltp_mix());
    create_and_load(
        server(ServerKind::Sqlite),
        &request,
        &made,
        &*workload,
        &Arc::default(),
    )
    .unwrap();
    let started = server(ServerKind::Sqlite).start(&request, &made, Purpose::Trial);
    let started = started.unwrap();
    let mut connection = started.connect().unwrap();
    workload
        .check(&mut *connection, &[0, 0, 0].map(Acknowledged::up_to))
        .unwrap();
    let missed = workload
        .check(&mut *connection, &[0, 5, 0].map(Acknowledged::up_to))
        .unwrap_err()
        .to_string();
    assert!(missed.contains("client 1 was promised 5"), "{missed}");
    connection
        .run("update accounts set balance = balance + 1 where id = 7")
        .unwrap();
    let wrong = workload
        .check(&mut *connection, &[0, 0, 0].map(Acknowledged::up_to))
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("by 1 in sum"), "{wrong}");
    drop(connection);
    started.stop(ServerStop::Clean).unwrap();
}

#[test]
fn every_value_comes_back() {
    let place = tempfile::tempdir().unwrap();
    let (request, made) = (request(&[]), directories(place.path(), "made"));
    let sqlite = server(ServerKind::Sqlite);
    sqlite.create(&request, &made).unwrap();
    let started = sqlite.start(&request, &made, Purpose::Trial).unwrap();
    let mut connection = started.connect().unwrap();
    connection
        .run("create table v (n integer, t text, b blob, d numeric, f real, x integer)")
        .unwrap();
    let statements = [
        "insert into v values ($1, $2, $3, $4, $5, $6)".to_owned(),
        "select n, t, b, d, f, x from v".to_owned(),
        "insert into v (x) values ('a') returning no_such_column".to_owned(),
    ];
    assert!(matches!(
        connection.prepare(&statements),
        Err(SessionError::Failed(_))
    ));
    connection.prepare(&statements[..2]).unwrap();
    let values = [
        Value::Int(-5),
        Value::text("it's"),
        Value::bytes(&[0, 255]),
        Value::cents(-1234),
        Value::Float(0.5),
        Value::Null,
    ];
    connection.begin().unwrap();
    assert_eq!(connection.execute(0, &values).unwrap(), 1);
    connection.commit().unwrap();
    let rows = connection.query(1, &[], &mut |row| {
        assert_eq!(row.int(0)?, -5);
        assert_eq!(row.text(1)?, "it's");
        assert_eq!(row.value(2)?, Value::bytes(&[0, 255]));
        assert_eq!(row.decimal(3, 2)?, -1234);
        assert_eq!(row.float(4)?, 0.5);
        assert!(row.is_null(5)?);
        assert!(row.int(1).is_err());
        Ok(())
    });
    assert_eq!(rows.unwrap(), 1);
    drop(connection);
    started.stop(ServerStop::Kill).unwrap();
}

#[test]
fn what_it_does_not_understand_is_refused_before_anything_runs() {
    let sqlite = server(ServerKind::Sqlite);
    let refused = |request: &ServerRequest| match sqlite.examine(request) {
        Err(error) if error.kind() == ErrorKind::RefusedSetting => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(&request(&[("journal_mod", "wal")])).contains("journal_mode"));
    assert!(refused(&request(&[("synchronous", "sometimes")])).contains("off, normal, full"));
    assert!(refused(&request(&[("mmap_size", "much")])).contains("whole number"));
    let mut direct = request(&[]);
    direct.io = Some(ServerIo {
        caching: Some(Caching::Direct),
        method: None,
        slaves: 0,
    });
    assert!(refused(&direct).contains("leave io out"));
}

#[test]
fn a_database_is_put_back_and_starts_again() {
    let place = tempfile::tempdir().unwrap();
    let (request, workload) = (request(&[]), oltp_mix());
    let golden = directories(place.path(), "golden");
    create_and_load(
        server(ServerKind::Sqlite),
        &request,
        &golden,
        &*workload,
        &Arc::default(),
    )
    .unwrap();
    let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
    let image = TreeImage::provision(&golden, directories(place.path(), "image")).unwrap();
    for verify in [Verify::Changed, Verify::Full] {
        let (committed, check) = work(&request, image.directories(), &workload);
        assert!(committed > 0);
        check.unwrap();
        assert!(image.restore(verify).unwrap().changed_blocks > 0);
        assert_eq!(image.restore(Verify::Full).unwrap().changed_blocks, 0);
    }
}

/// The process that is killed: works until then, and tells on its output what was acknowledged.
#[test]
#[ignore = "a process that another test starts and kills"]
fn victim() {
    let Some(root) = std::env::var_os(VICTIM) else {
        return;
    };
    let made = TreeDirectories::within(|_| root.clone().into());
    let env: Arc<dyn Env> = RealEnv::new(std::process::id().into());
    let engine = under_test(&request(&[]), &made, &oltp_mix());
    let behaviour = Behaviour {
        clients: CLIENTS as usize,
        ..Behaviour::default()
    };
    let running = engine.start_clients(&env, behaviour);
    loop {
        let promised: Vec<u64> = running.acknowledged().iter().map(|of| of.last).collect();
        println!("acknowledged {promised:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn killed_under_load_it_keeps_what_it_acknowledged() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let kills = std::env::var("SPINDLE_KILLS").map_or(30, |kills| kills.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let (request, workload) = (request(&[]), oltp_mix());
    let golden = directories(place.path(), "golden");
    let sqlite = server(ServerKind::Sqlite);
    create_and_load(sqlite, &request, &golden, &*workload, &Arc::default()).unwrap();
    let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
    let image = TreeImage::provision(&golden, directories(place.path(), "image")).unwrap();
    let mut acknowledged_in_all = 0;
    for kill in 0..kills {
        let mut victim = spindle_harness::child!(victim)
            .env(VICTIM, place.path().join("image"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300 + 37 * kill % 400));
        victim.kill().unwrap();
        let output = String::from_utf8(victim.wait_with_output().unwrap().stdout).unwrap();
        let told = output
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("acknowledged ["));
        let told = told
            .and_then(|list| list.strip_suffix(']'))
            .unwrap_or("0, 0, 0");
        let promised: Vec<u64> = told
            .split(", ")
            .map(|number| number.parse().unwrap())
            .collect();
        acknowledged_in_all += promised.iter().sum::<u64>();

        let started = sqlite
            .start(&request, image.directories(), Purpose::Trial)
            .unwrap();
        let mut connection = started.connect().unwrap();
        let kept = kept(&mut *connection);
        for (client, (kept, promised)) in kept.iter().zip(&promised).enumerate() {
            assert!(
                kept >= promised,
                "kill {kill}, client {client}: {kept} of {promised}"
            );
        }
        let all: Vec<Acknowledged> = kept.iter().copied().map(Acknowledged::up_to).collect();
        workload.check(&mut *connection, &all).unwrap();
        drop(connection);
        started.stop(ServerStop::Clean).unwrap();
        sqlite.verify(&request, image.directories()).unwrap();
        image.restore(Verify::Full).unwrap();
    }
    println!("{kills} kills, {acknowledged_in_all} commits acknowledged before them");
    assert!(acknowledged_in_all > 0, "the victims did nothing");
}

/// Each client's transactions that the database has.
fn kept(connection: &mut dyn spindle_workload::sql::SqlConnection) -> Vec<u64> {
    let mut kept = Vec::new();
    let asked = connection.ask("select number from ledger order by id", &mut |row| {
        kept.push(row.int(0)?.unsigned_abs());
        Ok(())
    });
    asked.unwrap();
    kept
}

#[test]
fn a_weaker_pragma_is_named_in_what_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let storage = storage(place.path());
    let interval_ms = storage.commit_interval_ms();
    for (journal_mode, synchronous, told, keeps, back_ms) in [
        ("wal", "full", "2", Keeps::EveryCommit, None),
        (
            "wal",
            "normal",
            "1",
            Keeps::AllButTheLast,
            storage.write_back_ms(),
        ),
        ("delete", "full", "2", Keeps::AllButTheLast, interval_ms),
        ("delete", "extra", "3", Keeps::EveryCommit, None),
        ("truncate", "full", "2", Keeps::EveryCommit, None),
        ("delete", "normal", "1", Keeps::MayBeDamaged, None),
        ("memory", "full", "2", Keeps::MayBeDamaged, None),
        ("wal", "off", "0", Keeps::MayBeDamaged, None),
    ] {
        let settings = [("journal_mode", journal_mode), ("synchronous", synchronous)];
        let request = request(&settings);
        let directories = directories(place.path(), &format!("{journal_mode}-{synchronous}"));
        let sqlite = server(ServerKind::Sqlite);
        sqlite.create(&request, &directories).unwrap();
        let running = sqlite
            .start(&request, &directories, Purpose::Trial)
            .unwrap();
        let what = format!("journal_mode = {journal_mode}, synchronous = {told}");
        must_name(&running.promise(&storage, &[]), &what, keeps, back_ms);
        running.stop(ServerStop::Kill).unwrap();
    }
}
