//! What keeps a run from its end on an existing server is told before anything is made there; limits of time hold for
//! clients alone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_engines::database::RemoteDatabase;
use spindle_engines::engine::Engine;
use spindle_engines::sql::foreign::copy_again;
use spindle_engines::sql::{
    Copying, Purpose, RunningServer, Schema, SchemaGone, SchemaKind, Scheme, ServerStop,
    remote_server,
};
use spindle_layout::TreeDirectories;
use spindle_workload::SessionError;
use spindle_workload::sql::Dialect;

use super::home::{Home, is_installed, place_on, request, start, workload};

fn place(directories: &TreeDirectories, kind: SchemaKind, name: &str) -> Schema {
    let schema = place_on(directories, kind, name);
    schema.with_password().unwrap()
}

/// What a look, a survey and one that would keep results there say.
fn said_of(schema: &Schema) -> [String; 3] {
    let server = remote_server(Scheme::Postgres);
    let password = schema.password.as_ref();
    let looked = server.look(&schema.address, password);
    let written = server.writer(&schema.address, password).map(drop);
    let survey = server.survey(&schema.address, password).unwrap();
    let missing = survey.rights.into_iter().filter_map(|right| right.missing);
    [
        looked.map_or_else(|error| error.to_string(), |found| found.notes.join("\n")),
        missing.collect::<Vec<_>>().join("\n"),
        written.map_or_else(|error| error.to_string(), |()| String::new()),
    ]
}

#[test]
fn nobody_comes_to_a_loaded_database_and_who_is_there_is_named() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let loaded = place(&directories, SchemaKind::Database, "spindle_test_1_loaded");
    let copy = place(&directories, SchemaKind::Database, "spindle_test_1");
    let server = remote_server(Scheme::Postgres);
    let engine = RemoteDatabase {
        address: loaded.address.clone(),
        password_env: None,
        workload: workload(),
    };
    engine.create(&loaded).unwrap();
    // As a program's that looks at every database there is.
    let before = server.open(&loaded, Purpose::Load).unwrap();
    let watching = before.connect().unwrap();
    engine.load(&loaded, &Arc::default()).unwrap();
    let refused = before.connect().map(drop).unwrap_err().to_string();
    assert!(refused.contains("not currently accepting"), "{refused}");
    let copied = || {
        copy_again(
            server,
            (&loaded, &copy),
            Copying::Copied,
            &AtomicBool::new(false),
        )
    };
    let told = copied().unwrap_err().to_string();
    let names = "of \"spindle\" (spindle_test_1_loaded)";
    assert!(told.contains(names), "{told}");
    assert!(
        told.contains("; sessions of spindle_test_1_loaded: "),
        "{told}"
    );
    drop(watching);
    copied().unwrap();
    // One in what trials work in is named, too.
    let trial = server.open(&copy, Purpose::Load).unwrap();
    let mut theirs = trial.connect().unwrap();
    theirs.run("set application_name = 'theirs'").unwrap();
    let told = server.drop_schema(&copy).unwrap_err().to_string();
    assert!(told.contains("of \"spindle\" (theirs)"), "{told}");
    drop(theirs);
    assert_eq!(server.drop_schema(&copy).unwrap(), SchemaGone::Dropped);
    assert_eq!(server.drop_schema(&loaded).unwrap(), SchemaGone::Dropped);
    running.stop(ServerStop::Kill).unwrap();
}

#[test]
fn what_keeps_commits_and_changes_from_their_end_is_told_before_the_load() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[("synchronous_standby_names", "ANY 1 (s1, s2)")]);
    let (directories, running) = home.started(&request);
    let schema = place(&directories, SchemaKind::Schema, "spindle_test_1");
    let [looked, missing, _] = said_of(&schema);
    let waits = "commits wait for standbys (synchronous_standby_names = ANY 1 (s1, s2)), and 0 of 1 answer: have them \
                 connect, or wait for none: alter role \"spindle\" set synchronous_commit = local";
    assert!(looked.ends_with(waits), "{looked}");
    assert_eq!(missing, waits);
    let run = |sql: &str| {
        let mut session = running.connect().unwrap();
        session.run("set synchronous_commit = local").unwrap();
        session.run(sql).unwrap();
    };
    run("alter role spindle set synchronous_commit = local");
    let [looked, missing, written] = said_of(&schema);
    assert_eq!((&*missing, &*written), ("", ""), "{looked}");
    run("alter role spindle set default_transaction_read_only = on");
    let off = "default_transaction_read_only is on: alter role \"spindle\" set default_transaction_read_only = off";
    for said in said_of(&schema) {
        assert!(said.ends_with(off), "{said}");
    }
    let mut session = running.connect().unwrap();
    for sql in [
        "set default_transaction_read_only = off",
        "alter role spindle reset default_transaction_read_only",
    ] {
        session.run(sql).unwrap();
    }
    drop(session);
    running.stop(ServerStop::Clean).unwrap();
    // It has no primary, and waits for one.
    std::fs::write(directories.data.join("cluster/standby.signal"), "").unwrap();
    let running = start(&request, &directories);
    let schema = place(&directories, SchemaKind::Schema, "spindle_test_1");
    for said in said_of(&schema) {
        assert!(said.ends_with("give the address of its primary"), "{said}");
    }
    running.stop(ServerStop::Kill).unwrap();
}

#[test]
fn statements_that_leave_a_schema_are_told_before_it_is_made() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    running
        .connect()
        .unwrap()
        .run("create schema shop")
        .unwrap();
    let told = |kind, load: &str| {
        let schema = place(&directories, kind, "spindle_test_1");
        let engine = RemoteDatabase {
            address: schema.address.clone(),
            password_env: None,
            workload: crate::loads::workload(Dialect::Postgres, load, "select 1;"),
        };
        let checked = engine.check_statements(&schema);
        checked.map_err(|error| error.to_string())
    };
    let writes = "insert into t values (1);\ninsert into shop.t values (1);";
    let refused = told(SchemaKind::Schema, writes).unwrap_err();
    assert!(
        refused.starts_with("load.sql:2:1: the name says where it is"),
        "{refused}"
    );
    assert_eq!(told(SchemaKind::Database, writes), Ok(()));
    let reads = "create table t as select * from shop.t;";
    assert_eq!(told(SchemaKind::Schema, reads), Ok(()));
    let of_server = told(SchemaKind::Database, "create role ann;").unwrap_err();
    assert!(
        of_server.contains("belongs to the whole server"),
        "{of_server}"
    );
    running.stop(ServerStop::Kill).unwrap();
}

#[test]
fn limits_of_time_end_what_clients_do_and_nothing_else() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[("lock_timeout", "7s")]);
    let (directories, running) = home.started(&request);
    let run = |sql: &str| running.connect().unwrap().run(sql).unwrap();
    for name in ["statement_timeout", "idle_in_transaction_session_timeout"] {
        run(&format!("alter role spindle set {name} = '300ms'"));
    }
    let sleep = |connect: &dyn Fn() -> Box<dyn spindle_workload::sql::SqlConnection>| {
        connect().ask("select 'slept' from pg_sleep(1)", &mut |_| Ok(()))
    };
    let is_ended = |server: &Arc<dyn RunningServer>| {
        let ended = sleep(&|| server.connect().unwrap());
        assert!(matches!(ended, Err(SessionError::Refused(_))), "{ended:?}");
        assert_eq!(sleep(&|| server.connect_unlimited().unwrap()), Ok(()));
    };
    is_ended(&running);
    let schema = place(&directories, SchemaKind::Schema, "spindle_test_1");
    let server = remote_server(Scheme::Postgres);
    let found = server
        .look(&schema.address, schema.password.as_ref())
        .unwrap();
    for said in [
        "statement_timeout = 300ms: it ends a statement that takes longer, in the clients' sessions: load and checks have \
         no such limit",
        "lock_timeout = 7s: it ends a statement that waits longer for a lock",
        "idle_in_transaction_session_timeout = 300ms: it ends a session",
    ] {
        assert!(
            found.notes.iter().any(|note| note.starts_with(said)),
            "{found:?}"
        );
    }
    let survey = server
        .survey(&schema.address, schema.password.as_ref())
        .unwrap();
    assert_eq!(survey.limits.len(), 3, "{survey:?}");
    server.make(&schema).unwrap();
    is_ended(&server.open(&schema, Purpose::Trial).unwrap());
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
    running.stop(ServerStop::Kill).unwrap();
}
