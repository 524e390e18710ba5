//! Replays of logs: what a replay leaves in the tables is what the load left that was logged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{ServerKind, SqlUnderTest};
use spindle_experiment::{Changes, Experiment};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::sql::{Dialect, SqlConnection, Value};
use spindle_workload::{MadeFor, Transactions};
use tempfile::TempDir;

use super::all_of;
use crate::server_by_url::scene::{PASSWORD, Scene, told};

const SCHEMA: &str =
    "create table accounts (id integer primary key, balance integer not null, owner varchar(80));
insert into accounts values (1, 100, 'ann'), (2, 100, 'bob'), (3, 100, 'eve');
create table said (n integer primary key, about varchar(200));
";
/// The time in the load in which nothing happens.
const PAUSE: Duration = Duration::from_millis(1_300);

/// A load of two sessions, whose end depends on the order of each session's statements.
fn load(scene: &Scene) {
    let connect = || scene.server().0.connect().unwrap();
    let (mut first, mut second) = (connect(), connect());
    let run = |connection: &mut Box<dyn SqlConnection>, sql: &str| connection.run(sql).unwrap();
    let texts = [
        "update accounts set balance = balance * 2 + $1 where id = $2",
        "insert into said values ($1, $2)",
        "select balance from accounts where id = $1",
    ];
    first.prepare(&texts.map(str::to_owned)).unwrap();
    for number in 0..20 {
        first.begin().unwrap();
        let (amount, account) = (Value::Int(number % 7), Value::Int(1 + number % 2));
        first.execute(0, &[amount, account.clone()]).unwrap();
        let about =
            Value::Text(format!("it's number {number}, \"quoted\"; \\ é\n-- and a line").into());
        first.execute(1, &[Value::Int(number), about]).unwrap();
        first.query(2, &[account], &mut |_| Ok(())).unwrap();
        match number % 5 {
            4 => first.rollback().unwrap(),
            _ => first.commit().unwrap(),
        }
        run(
            &mut second,
            "update accounts set balance = 3 * balance % 10007 where id = 3",
        );
        if number == 10 {
            std::thread::sleep(PAUSE);
        }
    }
    run(&mut second, "insert into said values (1000, 'a; b')");
    second
        .run("insert into said values (1000, 'again')")
        .unwrap_err();
    // PostgreSQL undoes the whole transaction, MariaDB the statement that failed.
    run(&mut second, "begin");
    run(&mut second, "update accounts set owner = 'nobody'");
    let _ = second.run("insert into said values (1000, 'again')");
    run(&mut second, "commit");
    // Never committed.
    run(&mut second, "begin");
    run(&mut second, "delete from said");
    drop(second);
}

/// All rows of the tables.
fn rows(scene: &Scene) -> Vec<String> {
    let mut rows = scene.ask("select concat_ws(' ', id, balance, owner) from accounts order by id");
    rows.extend(scene.ask("select concat_ws(' ', n, about) from said order by n"));
    rows
}

fn make(scene: &Scene) {
    for statement in SCHEMA.split(";\n").filter(|each| !each.is_empty()) {
        scene.run(statement);
    }
}

/// What a replay of an imported experiment took and left.
struct Replayed {
    rows: Vec<String>,
    committed: u64,
    errors: u64,
    at_work: Duration,
    late: u64,
}

fn replay(scene: &Scene, experiment: &Path, dialect: Dialect) -> Replayed {
    scene.run("drop table accounts, said");
    make(scene);
    let read = Experiment::read_changed(experiment, Changes::default());
    let experiment = read.unwrap_or_else(|error| panic!("{error:?}"));
    let Transactions::Replay(_) = &experiment.workload.transactions else {
        panic!("{:?}", experiment.workload.transactions);
    };
    let clients = experiment.workload.clients[0];
    let made_for = MadeFor {
        data_bytes: 8 << 20,
        block_bytes: 8 << 10,
        clients: u64::from(clients),
        seed: 7,
        dialect: Some(dialect),
    };
    let made = experiment.workload.transactions.settings().make(&made_for);
    let (server, directories) = scene.server();
    let engine = SqlUnderTest::new(server, made.in_sql(7), directories);
    let env: Arc<dyn Env> = RealEnv::new(1);
    let mut running = engine.start_clients(&env, experiment.workload.behaviour(clients));
    while !running.is_finished() {
        std::thread::sleep(Duration::from_millis(1));
    }
    block_on(running.stop()).unwrap();
    assert_eq!(running.failure(), None);
    let (began_ns, ended_ns) = running.at_work_ns().unwrap();
    Replayed {
        rows: rows(scene),
        committed: running.committed(),
        errors: running.errors(),
        at_work: Duration::from_nanos(ended_ns - began_ns),
        late: running.delays().count(),
    }
}

/// Imports a log, and sees that its replay leaves what the load left; what the import said.
fn check(scene: &Scene, form: &str, log: &Path, dialect: Dialect, left: &[String]) -> String {
    let log = log.to_str().unwrap();
    let command = ["import", form, log, "--out", form, "--load", "schema.sql"];
    let imported = scene.spindle(&command);
    assert!(imported.status.success(), "{}", told(&imported));
    let said = String::from_utf8(imported.stdout).unwrap();
    println!("{said}");
    let directory = scene.place.path().join(form);
    let files = all_of(&directory);
    for secret in [PASSWORD, "identified", "4711"] {
        assert!(!files.to_lowercase().contains(secret), "{secret}: {files}");
    }
    assert!(said.contains("may tell passwords"), "{said}");
    let experiment = directory.join("experiment.toml");
    let plan = scene.spindle(&["plan", experiment.to_str().unwrap()]);
    assert!(plan.status.success(), "{}", told(&plan));

    let kept = replay(scene, &experiment, dialect);
    assert_eq!(kept.rows, left);
    assert!(
        kept.at_work >= PAUSE - Duration::from_millis(1_001),
        "{:?}",
        kept.at_work
    );
    assert_eq!(kept.late, kept.committed);
    let text = fs::read_to_string(&experiment).unwrap();
    let faster = text.replace("speed = 1.0", "speed = 2.0");
    assert_ne!(faster, text);
    fs::write(&experiment, faster).unwrap();
    let twice = replay(scene, &experiment, dialect);
    assert_eq!(twice.rows, left);
    assert!(
        twice.at_work >= (PAUSE - Duration::from_millis(1_001)) / 2,
        "{:?}",
        twice.at_work
    );
    assert_eq!(
        (twice.committed, twice.errors, twice.late),
        (kept.committed, kept.errors, kept.late)
    );
    let at_once = text.replace("times = \"kept\"", "times = \"ignored\"");
    fs::write(&experiment, at_once).unwrap();
    let ignored = replay(scene, &experiment, dialect);
    assert_eq!(ignored.rows, left);
    assert_eq!(
        (ignored.committed, ignored.errors),
        (kept.committed, kept.errors)
    );

    // A recording that lacks a statement leaves something else.
    let recording = directory.join("recording.jsonl");
    let text = fs::read_to_string(&recording).unwrap();
    fs::write(&recording, text.replacen("3 * balance", "4 * balance", 1)).unwrap();
    assert_ne!(replay(scene, &experiment, dialect).rows, left);
    fs::write(&recording, &text[..text.len() - 10]).unwrap();
    let broken = scene.spindle(&["plan", experiment.to_str().unwrap()]);
    assert!(
        told(&broken).contains("recording.jsonl:"),
        "{}",
        told(&broken)
    );
    said
}

/// A directory that a server may write logs to, under any user.
fn log_directory() -> TempDir {
    let logs = tempfile::tempdir().unwrap();
    fs::set_permissions(logs.path(), fs::Permissions::from_mode(0o777)).unwrap();
    logs
}

/// The files of a directory of logs with their lengths.
fn lengths(logs: &Path) -> Vec<(PathBuf, u64)> {
    let files = fs::read_dir(logs).unwrap().flatten();
    let mut files: Vec<_> = files
        .map(|file| (file.path(), file.metadata().unwrap().len()))
        .collect();
    files.sort();
    files
}

/// What was logged behind these lengths, as a file for each.
fn tails(scene: &Scene, lengths: &[(PathBuf, u64)]) -> Vec<PathBuf> {
    let tail = |(log, length): &(PathBuf, u64)| {
        let bytes = fs::read(log).unwrap();
        let tail = scene.place.path().join(log.file_name().unwrap());
        fs::write(&tail, &bytes[*length as usize..]).unwrap();
        tail
    };
    lengths.iter().map(tail).collect()
}

#[test]
fn what_postgresql_logged_is_replayed() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let logs = log_directory();
    let settings = [
        ("logging_collector", "on"),
        ("log_destination", "csvlog,jsonlog"),
        ("log_directory", logs.path().to_str().unwrap()),
        ("log_filename", "load.log"),
        ("log_file_mode", "0644"),
        ("log_min_duration_statement", "0"),
        ("log_disconnections", "on"),
    ];
    let Some(scene) = Scene::with(ServerKind::Postgres, &settings) else {
        return;
    };
    make(&scene);
    scene.write("schema.sql", SCHEMA);
    let before = lengths(logs.path());
    scene.run(&format!("create role lab password '{PASSWORD}'"));
    load(&scene);
    scene.run("copy said to stdout");
    let left = rows(&scene);
    // The collector writes by itself.
    scene.ask("select 'the last'");
    wait_for_last(&before);
    for log in tails(&scene, &before) {
        let form = match log.extension().and_then(|end| end.to_str()) {
            Some("csv") => "csvlog",
            Some("json") => "jsonlog",
            _ => continue,
        };
        let said = check(&scene, form, &log, Dialect::Postgres, &left);
        for part in [
            "failed when they were recorded",
            "COPY",
            "not ended in the log",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

fn wait_for_last(logs: &[(PathBuf, u64)]) {
    let is_there = |(log, _): &(PathBuf, u64)| {
        let is_read = log.extension().is_some_and(|end| end != "log");
        !is_read || fs::read_to_string(log).unwrap().contains("'the last'")
    };
    let began = Instant::now();
    while !logs.iter().all(is_there) {
        assert!(began.elapsed() < Duration::from_secs(60), "{logs:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_mariadb_logged_is_replayed() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let logs = log_directory();
    let path = |name: &str| logs.path().join(name).to_str().unwrap().to_owned();
    let (slow, general) = (path("slow.log"), path("general.log"));
    let settings = [
        ("slow_query_log", "1"),
        ("long_query_time", "0"),
        ("slow_query_log_file", &*slow),
        ("general_log", "1"),
        ("general_log_file", &*general),
        ("log_output", "FILE"),
    ];
    let Some(scene) = Scene::with(ServerKind::MariaDb, &settings) else {
        return;
    };
    make(&scene);
    scene.write("schema.sql", SCHEMA);
    let before = lengths(logs.path());
    // The general log tells the time with the first statement of a second.
    std::thread::sleep(Duration::from_millis(1_100));
    scene.run(&format!(
        "create user lab@localhost identified by '{PASSWORD}'"
    ));
    load(&scene);
    let left = rows(&scene);
    for log in tails(&scene, &before) {
        let form = match log.file_stem().and_then(|name| name.to_str()) {
            Some("slow") => "slowlog",
            _ => "generallog",
        };
        check(&scene, form, &log, Dialect::MariaDb, &left);
    }
}
