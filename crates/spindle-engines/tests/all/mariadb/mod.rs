//! MariaDB as a database under test, with the server that is installed: loaded, worked on, killed, put back, looked
//! through. Without one these tests say so and do nothing. More kills, in minutes: `SPINDLE_KILLS=30 cargo test -p
//! spindle-engines --test all mariadb::killed_under_load`. Another installation, of MySQL for one:
//! `SPINDLE_MARIADB_BIN_DIR=/opt/mysql/bin`.

mod client;
mod hindrances;
mod kept;
mod raw;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{
    Purpose, RunningServer, ServerIo, ServerKind, ServerRequest, ServerStop, SqlUnderTest,
    create_and_load, server,
};
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::{Caching, Method};
use spindle_io::real::{RealEnv, block_on};
use spindle_layout::{GoldenTree, TreeDirectories, TreeImage, Verify};
use spindle_workload::driver::{Behaviour, Running};
use spindle_workload::sql::{RowsInSql, SqlConnection, SqlWorkload};
use spindle_workload::{
    Acknowledged, CheckError, OltpMix, OltpMixSettings, RedoStress, Slob, SlobSettings, Workload,
};

use crate::progress::wait_for;

const CLIENTS: u32 = 3;
/// The directory of the programs to test, where PATH does not name it.
const BIN_DIR: &str = "SPINDLE_MARIADB_BIN_DIR";
/// Set in the process that is to be killed, to the directory of its database.
const VICTIM: &str = "SPINDLE_TEST_MARIADB_VICTIM";

fn request(settings: &[(&str, &str)]) -> ServerRequest {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    let mut settings: BTreeMap<String, String> = settings.iter().map(owned).collect();
    // Small, so that copies are quick.
    let redo_size = match *IS_MYSQL {
        true => "innodb_redo_log_capacity",
        false => "innodb_log_file_size",
    };
    settings
        .entry(redo_size.to_owned())
        .or_insert("8M".to_owned());
    request_of(settings)
}

/// Whether the programs to test are MySQL's.
static IS_MYSQL: LazyLock<bool> = LazyLock::new(|| {
    let found = server(ServerKind::MariaDb).examine(&request_of(BTreeMap::new()));
    found.is_ok_and(|found| found.version.starts_with("MySQL"))
});

fn request_of(settings: BTreeMap<String, String>) -> ServerRequest {
    ServerRequest {
        settings,
        bin_dir: std::env::var_os(BIN_DIR).map(PathBuf::from),
        // Less than InnoDB takes: it gets the least that the server starts with.
        buffer_cache_bytes: 1 << 20,
        data_bytes: 8 << 20,
        clients: CLIENTS,
        io: None,
        database: None,
    }
}

/// Whether there is no server to test with; says so.
fn is_missing() -> bool {
    match server(ServerKind::MariaDb).examine(&request(&[])) {
        Ok(_) => false,
        Err(error) => {
            spindle_harness::skip(error);
            true
        }
    }
}

/// A directory that the server's user may come to, and that no process works in when the test ends.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new() -> Ground {
        let place = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).unwrap();
        Ground(place)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Directories for one database.
    fn directories(&self, name: &str) -> TreeDirectories {
        let root = self.path().join(name);
        std::fs::create_dir(&root).unwrap();
        let directories = TreeDirectories::within(|_| root.clone());
        directories.make().unwrap();
        directories
    }

    /// Processes that work in it.
    fn workers(&self) -> Vec<PathBuf> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .map(|entry| entry.path())
            .filter(|path| {
                let works_in = std::fs::read_link(path.join("cwd"));
                works_in.is_ok_and(|directory| directory.starts_with(self.path()))
            })
            .collect()
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.workers(), [""; 0].map(PathBuf::from));
        }
    }
}

fn oltp_mix() -> Arc<dyn SqlWorkload> {
    in_sql(OltpMix {
        data_bytes: 8 << 20,
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

fn started(request: &ServerRequest, directories: &TreeDirectories) -> Arc<dyn RunningServer> {
    let started = server(ServerKind::MariaDb).start(request, directories, Purpose::Trial);
    started.unwrap_or_else(|error| panic!("{error}"))
}

fn start_clients(engine: &Arc<SqlUnderTest>) -> Running {
    let env: Arc<dyn Env> = RealEnv::new(std::process::id().into());
    let behaviour = Behaviour {
        clients: CLIENTS as usize,
        ..Behaviour::default()
    };
    engine.start_clients(&env, behaviour)
}

/// Lets the clients work for a while; their transactions, and what the check says then.
fn work(
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &Arc<dyn SqlWorkload>,
) -> (u64, Result<String, EngineError>) {
    let running_server = started(request, directories);
    let engine = SqlUnderTest::new(running_server, Arc::clone(workload), directories.clone());
    let engine = Arc::new(engine);
    let mut running = start_clients(&engine);
    wait_for(&running, 100);
    assert!(engine.counters().session_threads().len() >= CLIENTS as usize);
    std::thread::sleep(Duration::from_millis(200));
    let counts = engine.counters().counts().expect("it tells");
    assert!(counts.redo.write_bytes > 0, "{counts:?}");
    assert!(counts.data.read_bytes > 0, "{counts:?}");
    let waited = |event: &str| {
        let waits = engine.counters().session_waits().into_iter();
        let mut waits = waits.filter(|wait| wait.event.contains(event));
        waits.any(|wait| wait.count > 0 && wait.total_ns > 0)
    };
    assert!(
        waited("(log file sync)"),
        "{:?}",
        engine.counters().session_waits()
    );
    // MySQL does not time what it reads of the system tablespace.
    let of_system_tablespace =
        request.settings.get("innodb_file_per_table") == Some(&"OFF".to_owned());
    assert!(waited("(db file sequential read)") || *IS_MYSQL && of_system_tablespace);
    block_on(running.stop()).unwrap();
    let check = block_on(engine.check(running.acknowledged()));
    assert!(
        engine
            .counters()
            .segments()
            .iter()
            .any(|segment| segment.bytes > 1 << 20)
    );
    assert_eq!(engine.counters().failure(), None);
    block_on(engine.stop()).unwrap();
    (running.committed(), check)
}

#[test]
fn the_workloads_of_rows_run_on_it_and_their_checks_pass() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let slob = in_sql(Slob {
        data_bytes: 8 << 20,
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
    let several_files = [
        ("innodb_page_size", "8192"),
        ("innodb_file_per_table", "OFF"),
        (
            "innodb_data_file_path",
            "ibdata1:12M;ibdata2:12M:autoextend",
        ),
    ];
    for (workload, settings) in [(oltp_mix(), &[][..]), (slob, &several_files)] {
        let ground = Ground::new();
        let (request, made) = (request(settings), ground.directories("made"));
        let mariadb = server(ServerKind::MariaDb);
        mariadb.examine(&request).unwrap();
        create_and_load(mariadb, &request, &made, &*workload, &Arc::default()).unwrap();
        let (committed, check) = work(&request, &made, &workload);
        assert!(committed > 0 && check.is_ok(), "{committed} {check:?}");
        let found = mariadb.verify(&request, &made).unwrap();
        assert!(found.contains("nothing wrong in"), "{found}");
    }
}

#[test]
fn every_access_path_that_it_has_starts() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (mut request, made) = (request(&[]), ground.directories("made"));
    let mariadb = server(ServerKind::MariaDb);
    mariadb.create(&request, &made).unwrap();
    for caching in [Caching::Buffered, Caching::Direct] {
        for method in [Method::Slaves, Method::Async, Method::Libaio] {
            request.io = Some(ServerIo {
                caching: Some(caching),
                method: Some(method),
                slaves: 4,
            });
            // Which of the two kinds there is depends on how the server was built, and on the kernel.
            match mariadb.examine(&request) {
                Ok(_) => started(&request, &made).stop(ServerStop::Clean).unwrap(),
                Err(error) if error.kind() != ErrorKind::Failed => eprintln!("not here: {error}"),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_lost_change_is_found() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, made) = (request(&[]), ground.directories("made"));
    let workload = oltp_mix();
    create_and_load(
        server(ServerKind::MariaDb),
        &request,
        &made,
        &*workload,
        &Arc::default(),
    )
    .unwrap();
    let running = started(&request, &made);
    let mut connection = running.connect().unwrap();
    workload
        .check(&mut *connection, &[0, 0, 0].map(Acknowledged::up_to))
        .unwrap();
    let missed = workload
        .check(&mut *connection, &[0, 5, 0].map(Acknowledged::up_to))
        .unwrap_err()
        .to_string();
    assert!(missed.contains("client 1 was promised 5"), "{missed}");
    drop(connection);
    running.stop(ServerStop::Clean).unwrap();
    // And a damaged page by the server's own checker.
    let table = made.data.join("spindle/accounts.ibd");
    let file = std::fs::OpenOptions::new().write(true).open(table).unwrap();
    file.write_all_at(&[0xA5; 4096], 6 * 16384 + 2000).unwrap();
    let damaged = server(ServerKind::MariaDb).verify(&request, &made);
    assert!(damaged.is_err(), "{damaged:?}");
}

#[test]
fn what_it_does_not_take_is_refused_before_anything_runs() {
    if is_missing() {
        return;
    }
    let refused = |request: &ServerRequest| match server(ServerKind::MariaDb).examine(request) {
        Err(error) if error.kind() != ErrorKind::Failed => error.to_string(),
        other => panic!("{other:?}"),
    };
    let unknown = refused(&request(&[("innodb_flush_metod", "fsync")]));
    assert!(
        unknown.contains("did you mean innodb_flush_method?"),
        "{unknown}"
    );
    // What the server would take for another by its first letters.
    assert!(refused(&request(&[("innodb_doublew", "OFF")])).contains("has no setting"));
    let value = refused(&request(&[("innodb_flush_method", "sometimes")]));
    // MySQL's help does not list the values.
    let lists = value.contains("O_DIRECT_NO_FSYNC");
    assert!(
        value.contains("sometimes") && (lists || *IS_MYSQL),
        "{value}"
    );
    let all = refused(&request(&[
        ("innodb_flush_metod", "fsync"),
        ("innodb_doublewrte", "off"),
        ("innodb_flush_method", "sometimes"),
        ("innodb_read_io_threads", "400"),
    ]));
    assert!(all.lines().count() >= 3, "{all}");
    assert!(all.contains("metod") && all.contains("doublewrte") && all.contains("sometimes"));
    assert!(refused(&request(&[("innodb_read_io_threads", "400")])).contains("64"));
    assert!(refused(&request(&[("innodb_doublewrite", "maybe")])).contains("maybe"));
    let mut elsewhere = request(&[]);
    elsewhere.bin_dir = Some(PathBuf::from("/nowhere/bin"));
    assert!(refused(&elsewhere).contains("neither mariadbd nor mysqld"));
}

#[test]
fn a_server_that_is_too_old_is_told_by_its_version() {
    let place = tempfile::tempdir().unwrap();
    for (name, version, expected) in [
        (
            "mariadbd",
            "mariadbd  Ver 10.3.39-MariaDB for Linux",
            "MariaDB 10.3.39 is too old",
        ),
        (
            "mysqld",
            "mysqld  Ver 5.7.44 for Linux on x86_64",
            "MySQL 5.7.44 is too old",
        ),
        ("mysqld", "nothing", "does not tell its version"),
    ] {
        let bin_dir = place.path().join(version.replace(' ', "-"));
        std::fs::create_dir(&bin_dir).unwrap();
        let program = bin_dir.join(name);
        let script = format!("#!/bin/sh\necho '{version}'\n");
        spindle_harness::write_program(&program, &script);
        let mut request = request(&[]);
        request.bin_dir = Some(bin_dir);
        let answer = server(ServerKind::MariaDb).examine(&request).unwrap_err();
        assert!(answer.to_string().contains(expected), "{answer}");
    }
}

#[test]
fn a_value_that_only_a_start_finds_wrong_is_told_with_the_servers_words() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, made) = (
        request(&[("innodb_page_size", "5000")]),
        ground.directories("made"),
    );
    let failed = server(ServerKind::MariaDb).create(&request, &made);
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("page"), "{failed}");
}

#[test]
fn a_directory_that_the_servers_user_may_not_enter_is_named() {
    if is_missing() || !rustix::process::geteuid().is_root() {
        return;
    }
    let closed = tempfile::tempdir().unwrap();
    let mine_alone = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(closed.path(), mine_alone).unwrap();
    let directories = TreeDirectories::within(|_| closed.path().to_owned());
    directories.make().unwrap();
    let refused = server(ServerKind::MariaDb).create(&request(&[]), &directories);
    let refused = refused.unwrap_err().to_string();
    let named = format!("{} is closed to it", closed.path().display());
    assert!(refused.contains(&named), "{refused}");
}

#[test]
fn no_file_knows_where_it_lies() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, made) = (request(&[]), ground.directories("made"));
    create_and_load(
        server(ServerKind::MariaDb),
        &request,
        &made,
        &*oltp_mix(),
        &Arc::default(),
    )
    .unwrap();
    let path = made.data.parent().unwrap().to_str().unwrap().to_owned();
    let log = made.temp.join("spindle.log");
    for file in made.files().unwrap() {
        let bytes = std::fs::read(&file).unwrap();
        let knows = bytes
            .windows(path.len())
            .any(|part| part == path.as_bytes());
        // MySQL notes where undo was, and looks where it is told that it is.
        let is_dictionary = *IS_MYSQL && file.ends_with("mysql.ibd");
        assert!(!knows || file == log || is_dictionary, "{}", file.display());
    }
}

fn files_open_in(process: u32) -> Vec<PathBuf> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let files = files.map(|file| std::fs::read_link(file.unwrap().path()));
    files.map_while(Result::ok).collect()
}

#[test]
fn a_database_is_put_back_and_starts_again() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, workload) = (request(&[]), oltp_mix());
    let golden = ground.directories("golden");
    create_and_load(
        server(ServerKind::MariaDb),
        &request,
        &golden,
        &*workload,
        &Arc::default(),
    )
    .unwrap();
    let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
    let image = TreeImage::provision(&golden, ground.directories("image")).unwrap();
    let copy = started(&request, image.directories());
    let opened = files_open_in(copy.processes()[0]);
    assert!(opened.iter().any(|file| file.ends_with("ibdata1")));
    let of_golden = |file: &&PathBuf| file.starts_with(ground.path().join("golden"));
    assert_eq!(opened.iter().find(of_golden), None);
    copy.stop(ServerStop::Clean).unwrap();
    for verify in [Verify::Changed, Verify::Full] {
        let (committed, check) = work(&request, image.directories(), &workload);
        assert!(committed > 0);
        check.unwrap();
        assert!(image.restore(verify).unwrap().changed_blocks > 0);
        assert_eq!(image.restore(Verify::Full).unwrap().changed_blocks, 0);
    }
}

#[test]
fn killed_under_load_it_keeps_what_it_acknowledged() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let kills = std::env::var("SPINDLE_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let ground = Ground::new();
    let (request, workload) = (request(&[]), oltp_mix());
    let golden = ground.directories("golden");
    let mariadb = server(ServerKind::MariaDb);
    create_and_load(mariadb, &request, &golden, &*workload, &Arc::default()).unwrap();
    let golden = GoldenTree::seal(golden, &Arc::default()).unwrap();
    let image = TreeImage::provision(&golden, ground.directories("image")).unwrap();
    let mut acknowledged_in_all = 0;
    for kill in 0..kills {
        let running_server = started(&request, image.directories());
        let under_test = SqlUnderTest::new(
            Arc::clone(&running_server),
            Arc::clone(&workload),
            image.directories().clone(),
        );
        let engine = Arc::new(under_test);
        let mut running = start_clients(&engine);
        wait_for(&running, 20 + 97 * kill % 400);
        running_server.stop(ServerStop::Kill).unwrap();
        let lost = block_on(running.stop());
        assert!(lost.is_err(), "the clients noticed nothing");
        assert!(engine.counters().failure().is_some());
        let promised = running.acknowledged();
        acknowledged_in_all += promised.iter().map(|promised| promised.last).sum::<u64>();

        let again = started(&request, image.directories());
        let mut connection = again.connect().unwrap();
        let kept = kept(&mut *connection);
        for (client, (kept, promised)) in kept.iter().zip(&promised).enumerate() {
            assert!(
                *kept >= promised.last,
                "kill {kill}, client {client}: {kept} of {promised:?}"
            );
        }
        workload.check(&mut *connection, &promised).unwrap();
        drop(connection);
        again.stop(ServerStop::Clean).unwrap();
        mariadb.verify(&request, image.directories()).unwrap();
        image.restore(Verify::Full).unwrap();
    }
    assert!(acknowledged_in_all > 0, "the clients did nothing");
    println!("{kills} kills, {acknowledged_in_all} commits acknowledged before them");
}

/// Whether what was acknowledged before a kill is there after it.
fn survives_a_kill(
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &Arc<dyn SqlWorkload>,
) -> Result<String, CheckError> {
    let running_server = started(request, directories);
    let engine = SqlUnderTest::new(
        Arc::clone(&running_server),
        Arc::clone(workload),
        directories.clone(),
    );
    let mut running = start_clients(&Arc::new(engine));
    wait_for(&running, 500);
    running_server.stop(ServerStop::Kill).unwrap();
    let _ = block_on(running.stop());
    let again = started(request, directories);
    let mut connection = again.connect().unwrap();
    let found = workload.check(&mut *connection, &running.acknowledged());
    drop(connection);
    again.stop(ServerStop::Clean).unwrap();
    found
}

#[test]
fn a_promise_that_is_not_kept_is_found() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let request = request(&[("innodb_flush_log_at_trx_commit", "0")]);
    let (made, workload) = (ground.directories("made"), oltp_mix());
    create_and_load(
        server(ServerKind::MariaDb),
        &request,
        &made,
        &*workload,
        &Arc::default(),
    )
    .unwrap();
    // Once a second redo is written all the same: a kill may come just then.
    let mut kills = (0..5).map(|_| survives_a_kill(&request, &made, &workload));
    let lost = kills.find_map(Result::err);
    assert!(lost.unwrap().to_string().contains("was promised"));
}

/// Each client's transactions that the database has.
fn kept(connection: &mut dyn SqlConnection) -> Vec<u64> {
    let mut kept = Vec::new();
    let asked = connection.ask("select number from ledger order by id", &mut |row| {
        kept.push(row.int(0)?.unsigned_abs());
        Ok(())
    });
    asked.unwrap();
    kept
}

/// The process that is killed: starts a server, tells its number, and waits.
#[test]
#[ignore = "a process that another test starts and kills"]
fn victim() {
    let Some(root) = std::env::var_os(VICTIM) else {
        return;
    };
    let made = TreeDirectories::within(|_| root.clone().into());
    let running = started(&request(&[]), &made);
    println!("\nserver {}", running.processes()[0]);
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let made = ground.directories("made");
    server(ServerKind::MariaDb)
        .create(&request(&[]), &made)
        .unwrap();
    let mut victim = spindle_harness::child!(victim)
        .env(VICTIM, ground.path().join("made"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let told = lines
        .map_while(Result::ok)
        .find(|line| line.starts_with("server "));
    assert!(told.is_some(), "the victim started no server");
    assert_eq!(ground.workers().len(), 1);
    victim.kill().unwrap();
    victim.wait().unwrap();
    let began = Instant::now();
    while !ground.workers().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "it lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
    // And what it left starts again.
    started(&request(&[]), &made)
        .stop(ServerStop::Clean)
        .unwrap();
}
