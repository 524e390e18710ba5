//! What cannot be done is said in words, and nothing is left running.

use std::os::unix::fs::PermissionsExt;

use spindle_engines::ErrorKind;
use spindle_engines::sql::{ServerIo, ServerStop, create_and_load};
use spindle_io::real::{Caching, Method};
use spindle_workload::SessionError;

use super::home::{Home, is_installed, postgres, request, start, workload};

fn refusal(settings: &[(&str, &str)]) -> String {
    match postgres().examine(&request(settings)) {
        Err(error) if error.kind() == ErrorKind::RefusedSetting => error.to_string(),
        other => panic!("{settings:?}: {other:?}"),
    }
}

fn mistake(settings: &[(&str, &str)]) -> String {
    match postgres().examine(&request(settings)) {
        Err(error) if error.kind() == ErrorKind::MisspeltSetting => error.to_string(),
        other => panic!("{settings:?}: {other:?}"),
    }
}

#[test]
fn settings_are_judged_by_the_server_before_anything_runs() {
    if !is_installed() {
        return;
    }
    let reason = mistake(&[("wal_sync_metod", "fsync")]);
    assert!(
        reason.contains("did you mean \"wal_sync_method\"?"),
        "{reason}"
    );
    let reason = mistake(&[("wal_level", "replcia")]);
    assert!(reason.ends_with("did you mean \"replica\"?"), "{reason}");
    let reason = mistake(&[
        ("wal_sync_metod", "fsync"),
        ("fsnyc", "off"),
        ("wal_level", "replcia"),
        ("checkpoint_completion_target", "7"),
        ("full_page_writes", "on"),
    ]);
    assert_eq!(reason.lines().count(), 4, "{reason}");
    for part in ["fsnyc", "wal_sync_metod", "replica", "completion_target"] {
        assert_eq!(reason.lines().filter(|line| line.contains(part)).count(), 1);
    }
    let reason = refusal(&[("shared_buffers", "64MB")]);
    assert!(reason.contains("buffer_cache in [database]"), "{reason}");
    mistake(&[("work_mem", "much")]);
    let clients = request(&[]).clients;
    let reason = mistake(&[("max_connections", &(clients + 1).to_string())]);
    assert!(
        reason.contains("need ") && reason.contains("is too small"),
        "{reason}"
    );
    let enough = (clients + 2).to_string();
    assert!(
        postgres()
            .examine(&request(&[("max_connections", &enough)]))
            .is_ok()
    );
    mistake(&[("checkpoint_completion_target", "7")]);
    let reason = mistake(&[("wal_sync_method", "never")]);
    assert!(reason.contains("Available values: fsync"), "{reason}");
    let reason = mistake(&[("data_checksums", "perhaps")]);
    assert!(reason.contains("allowed: on, off"), "{reason}");
    let reason = refusal(&[("port", "5433")]);
    assert!(reason.contains("not the experiment's to set"), "{reason}");
    let found = postgres()
        .examine(&request(&[("full_page_writes", "off")]))
        .unwrap();
    assert!(found.version.starts_with("PostgreSQL "), "{found:?}");
    assert!(
        found
            .settings
            .contains(&"full_page_writes = off".to_owned())
    );
    assert!(found.settings.contains(&"fsync = on".to_owned()));
}

/// A directory with programs that say they are of some version, and take every setting.
fn programs_of(home: &Home, version: &str) -> std::path::PathBuf {
    let bin_dir = home.path().join(format!("bin-{version}"));
    std::fs::create_dir(&bin_dir).unwrap();
    for program in ["postgres", "initdb"] {
        let path = bin_dir.join(program);
        let script = format!("#!/bin/sh\necho \"{program} (PostgreSQL) {version}\"\n");
        spindle_harness::write_program(&path, &script);
    }
    bin_dir
}

#[test]
fn versions_are_told_what_they_lack() {
    let home = Home::new();
    let examine = |version: &str, setting: Option<(&str, &str)>, io: Option<ServerIo>| {
        let mut asked = request(setting.as_slice());
        let bin_dir = home.path().join(format!("bin-{version}"));
        if !bin_dir.exists() {
            programs_of(&home, version);
        }
        asked.bin_dir = Some(bin_dir);
        asked.io = io;
        postgres()
            .examine(&asked)
            .map_err(|error| error.to_string())
    };
    let io = |caching, method| {
        Some(ServerIo {
            caching,
            method,
            slaves: 4,
        })
    };
    let many = Some(ServerIo {
        caching: None,
        method: Some(Method::Slaves),
        slaves: 64,
    });
    let slaves = Some(Method::Slaves);
    for (version, setting, io, said) in [
        ("12.22", None, None, "PostgreSQL 13 or newer is needed"),
        (
            "15.1",
            Some(("io_method", "worker")),
            None,
            "io_method needs PostgreSQL 18; this is PostgreSQL 15.1",
        ),
        (
            "15.1",
            Some(("debug_io_direct", "data")),
            None,
            "needs PostgreSQL 16",
        ),
        (
            "15.1",
            None,
            io(Some(Caching::Direct), None),
            "needs PostgreSQL 16",
        ),
        ("17.2", None, io(None, slaves), "needs PostgreSQL 18"),
        (
            "17.2",
            None,
            io(None, Some(Method::Async)),
            "needs PostgreSQL 18",
        ),
        (
            "18.0",
            None,
            io(None, Some(Method::Libaio)),
            "knows no libaio",
        ),
        ("18.0", None, many, "at most 32"),
    ] {
        let refused = examine(version, setting, io).unwrap_err();
        assert!(refused.contains(said), "{version}: {refused}");
    }
    let found = examine(
        "15.1",
        None,
        io(Some(Caching::Buffered), Some(Method::Sync)),
    )
    .unwrap();
    assert!(!found.settings.iter().any(|line| line.contains("io_method")));
    let found = examine("18.0", None, io(Some(Caching::Direct), slaves)).unwrap();
    for line in [
        "debug_io_direct = data,wal",
        "io_method = worker",
        "io_workers = 4",
    ] {
        assert!(found.settings.contains(&line.to_owned()), "{found:?}");
    }

    let mut nowhere = request(&[]);
    nowhere.bin_dir = Some(home.path().join("nowhere"));
    let refused = postgres().examine(&nowhere).unwrap_err().to_string();
    assert!(
        refused.contains("there is no PostgreSQL server in"),
        "{refused}"
    );
}

#[test]
fn a_wrong_password_is_refused() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.directories("made");
    postgres().create(&request, &directories).unwrap();
    std::fs::write(directories.data.join("password"), "guessed\n").unwrap();
    let refused = postgres().start(&request, &directories, spindle_engines::sql::Purpose::Trial);
    let refused = refused.err().expect("the password is wrong").to_string();
    assert!(
        refused.contains("password authentication failed"),
        "{refused}"
    );
    assert_eq!(home.processes(), []);
}

#[test]
fn a_directory_that_the_server_cannot_get_to_is_named() {
    if !is_installed() || !rustix::process::geteuid().is_root() {
        spindle_harness::skip("only root's servers run as another user");
        return;
    }
    let home = Home::new();
    let closed = home.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let directories = home.directories("closed/made");
    let refused = postgres().create(&request(&[]), &directories);
    let refused = refused.unwrap_err().to_string();
    let named = closed.canonicalize().unwrap().display().to_string();
    assert!(
        refused.contains(&format!("{named} is closed to it")),
        "{refused}"
    );
}

#[test]
fn a_server_that_cannot_start_says_why() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let asked = request(&[]);
    let directories = home.directories("made");
    create_and_load(
        postgres(),
        &asked,
        &directories,
        &*workload(),
        &std::sync::Arc::default(),
    )
    .unwrap();
    std::fs::write(directories.data.join("cluster/global/pg_control"), "").unwrap();
    let refused = postgres().start(&asked, &directories, spindle_engines::sql::Purpose::Trial);
    let refused = refused.err().expect("it cannot start").to_string();
    assert!(refused.contains("pg_control"), "{refused}");
    assert_eq!(home.processes(), []);
}

#[test]
fn a_server_that_dies_is_lost_and_tells_why() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.loaded("made", &request);
    let server = start(&request, &directories);
    let mut connection = server.connect().unwrap();
    assert_eq!(server.failure(), None);
    home.kill();
    let lost = connection.run("select 1");
    assert!(matches!(lost, Err(SessionError::Lost(_))), "{lost:?}");
    assert!(connection.is_closed());
    let began = std::time::Instant::now();
    while server.failure().is_none() {
        assert!(began.elapsed() < super::PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let failure = server.failure().unwrap();
    assert_eq!(failure.kind(), ErrorKind::ServerGone);
    let failure = failure.to_string();
    assert!(failure.contains("has ended"), "{failure}");
    assert!(failure.contains("ready to accept connections"), "{failure}");
    assert!(matches!(server.connect(), Err(SessionError::Lost(_))));
    assert!(server.stop(ServerStop::Clean).is_err());
}

/// The process that is killed: it starts a server and waits.
#[test]
#[ignore = "a process that another test starts and kills"]
fn the_process_whose_server_must_not_outlive_it() {
    let Ok(directory) = std::env::var("SPINDLE_POSTGRES_TEST_DIRECTORY") else {
        return;
    };
    let top = std::path::PathBuf::from(directory);
    let directories = spindle_layout::TreeDirectories::within(|_| top.clone());
    let _server = start(&request(&[]), &directories);
    println!("started");
    std::thread::sleep(super::PATIENCE);
}

#[test]
fn a_server_ends_with_the_process_that_started_it() {
    use std::io::{BufRead, BufReader};
    if !is_installed() {
        return;
    }
    let home = Home::new();
    home.loaded("made", &request(&[]));
    let mut child = spindle_harness::child!(the_process_whose_server_must_not_outlive_it)
        .env("SPINDLE_POSTGRES_TEST_DIRECTORY", home.path().join("made"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let started = lines.any(|line| line.is_ok_and(|line| line.contains("started")));
    let running = home.processes().len();
    // SIGKILL: it can do nothing about it.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(started && running > 3, "{running} processes");
    let began = std::time::Instant::now();
    while !home.processes().is_empty() {
        assert!(
            began.elapsed() < super::PATIENCE,
            "the server is still there"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
