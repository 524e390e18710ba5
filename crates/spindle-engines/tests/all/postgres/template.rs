//! Databases on an existing server: marked from the beginning, copied from a loaded one, dropped only by their marks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spindle_engines::ErrorKind;
use spindle_engines::database::RemoteDatabase;
use spindle_engines::engine::Engine;
use spindle_engines::sql::foreign::copy_again;
use spindle_engines::sql::{
    Copying, Purpose, SchemaGone, SchemaKind, Scheme, ServerStop, remote_server,
};
use spindle_workload::sql::Dialect;

use super::home::{Home, is_installed, place_on, request, workload};

#[test]
fn a_database_is_copied_from_a_loaded_one_and_dropped_only_by_its_marks() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let schema = |name: &str| {
        let schema = place_on(&directories, SchemaKind::Database, name);
        schema.with_password().unwrap()
    };
    let (loaded, copy) = (schema("spindle_test_1_loaded"), schema("spindle_test_1"));
    let server = remote_server(Scheme::Postgres);
    let password = loaded.password.as_ref();
    server
        .may_copy(&loaded.address, password, Copying::Copied)
        .unwrap();
    let engine = RemoteDatabase {
        address: loaded.address.clone(),
        password_env: None,
        workload: workload(),
    };
    engine.create(&loaded).unwrap();
    engine.load(&loaded, &Arc::default()).unwrap();
    for _ in 0..2 {
        let how = copy_again(
            server,
            (&loaded, &copy),
            Copying::Copied,
            &AtomicBool::new(false),
        );
        assert!(how.unwrap().contains("template"));
        let opened = server.open(&copy, Purpose::Trial).unwrap();
        let mut connection = opened.connect().unwrap();
        let found = workload().check(&mut *connection, &[]);
        assert!(found.is_ok(), "{found:?}");
        // It would be in the way of itself, had it not gone with the database.
        connection
            .run("create table more as select 1 as n")
            .unwrap();
        let segments = opened.segments();
        assert!(
            segments.iter().any(|segment| segment.name == "more"),
            "{segments:?}"
        );
        opened.stop(ServerStop::Kill).unwrap();
    }
    // A copy that is interrupted leaves nothing.
    let interrupted = copy_again(
        server,
        (&loaded, &copy),
        Copying::Copied,
        &AtomicBool::new(true),
    );
    if let Err(error) = interrupted {
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
        assert_eq!(server.drop_schema(&copy).unwrap(), SchemaGone::WasNot);
        server.make(&copy).unwrap();
    }
    let mut session = running.connect().unwrap();
    for (change, gone) in [
        (
            "comment on database spindle_test_1 is 'theirs'",
            SchemaGone::NotOurs,
        ),
        (
            "comment on database spindle_test_1 is null",
            SchemaGone::Dropped,
        ),
    ] {
        session.run(change).unwrap();
        assert_eq!(server.drop_schema(&copy).unwrap(), gone, "{change}");
    }
    // Whose limit is another, and who has no comment, is another's.
    session.run("create database spindle_test_1").unwrap();
    assert_eq!(server.drop_schema(&copy).unwrap(), SchemaGone::NotOurs);
    session.run("drop database spindle_test_1").unwrap();
    server.make(&copy).unwrap();
    assert_eq!(server.drop_schema(&copy).unwrap(), SchemaGone::Dropped);
    assert_eq!(server.drop_schema(&loaded).unwrap(), SchemaGone::Dropped);
    assert_eq!(server.drop_schema(&loaded).unwrap(), SchemaGone::WasNot);
    running.stop(ServerStop::Kill).unwrap();
}

/// What is under way would keep the schema, and the run would wait for it.
#[test]
fn an_interrupted_load_leaves_nothing_at_work_on_an_existing_server() {
    if !spindle_harness::is_long_or_skip() || !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let schema = place_on(&directories, SchemaKind::Schema, "spindle_test_2");
    let schema = schema.with_password().unwrap();
    let load = "create table t (a integer);\nselect pg_sleep(1000) from t right join generate_series(1, 2) on true;";
    let engine = RemoteDatabase {
        address: schema.address.clone(),
        password_env: None,
        workload: crate::loads::workload(Dialect::Postgres, load, "select a from t;"),
    };
    engine.create(&schema).unwrap();
    let interrupted: Arc<AtomicBool> = Arc::default();
    let after = Arc::clone(&interrupted);
    let interrupting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        after.store(true, Ordering::Relaxed);
    });
    let error = engine.load(&schema, &interrupted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    interrupting.join().unwrap();
    let server = remote_server(Scheme::Postgres);
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
    running.stop(ServerStop::Kill).unwrap();
}
