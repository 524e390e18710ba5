//! What a running server is found to keep when the power goes: its settings in force, also those that a role has of its
//! own.

use spindle_engines::promise::{CommitStorage, Keeps, Promise};
use spindle_engines::sql::{Purpose, SchemaKind, Scheme, ServerStop, remote_server};

use super::home::{Home, is_installed, place_on, postgres, request, start};
use crate::promise::{must_name, storage};

fn promise_with(home: &Home, name: &str, settings: &[(&str, &str)]) -> Promise {
    let request = request(settings);
    let directories = home.directories(name);
    postgres().create(&request, &directories).unwrap();
    let running = start(&request, &directories);
    let promise = running.promise(&storage(&directories.data), &[]);
    running.stop(ServerStop::Kill).unwrap();
    promise
}

#[test]
fn a_weaker_setting_is_named_in_what_is_kept() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let strong = promise_with(&home, "strong", &[]);
    must_name(&strong, "fsync = on", Keeps::EveryCommit, None);
    must_name(
        &strong,
        "wal_sync_method = fdatasync",
        Keeps::EveryCommit,
        None,
    );
    let later = [("synchronous_commit", "off"), ("wal_writer_delay", "50ms")];
    let later = promise_with(&home, "later", &later);
    must_name(
        &later,
        "synchronous_commit = off",
        Keeps::AllButTheLast,
        Some(150),
    );
    let torn = promise_with(&home, "torn", &[("full_page_writes", "off")]);
    must_name(&torn, "full_page_writes = off", Keeps::MayBeDamaged, None);
    let never = promise_with(&home, "never", &[("fsync", "off")]);
    must_name(&never, "fsync = off", Keeps::MayBeDamaged, None);
}

/// What is in the catalogue counts, wherever a load script made it; temporary tables are nobody else's.
#[test]
fn unlogged_tables_are_named_in_what_is_kept() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let promise = || running.promise(&storage(&directories.data), &[]);
    let is_named = |promise: &Promise| {
        let mut reasons = promise.reasons.iter();
        reasons.any(|reason| reason.what.starts_with("unlogged"))
    };
    let mut session = running.connect().unwrap();
    for sql in [
        "create table kept (id int primary key)",
        "create temporary table passing (id int)",
        "create unlogged table parent (id int) partition by range (id)",
        "create table child partition of parent for values from (0) to (9)",
    ] {
        session.run(sql).unwrap();
    }
    let before = promise();
    assert!(!is_named(&before), "{before:?}");
    for sql in [
        "create schema other",
        "create unlogged table other.hits (id int generated always as identity primary key)",
        "create unlogged table part partition of parent for values from (9) to (19)",
    ] {
        session.run(sql).unwrap();
    }
    must_name(
        &promise(),
        "unlogged: other.hits, part",
        Keeps::Nothing,
        None,
    );
    running.stop(ServerStop::Kill).unwrap();
}

/// The file says on; the role says off.
#[test]
fn what_a_role_has_of_its_own_is_in_force_for_its_clients() {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let mut session = running.connect().unwrap();
    session
        .run("alter role spindle set synchronous_commit = off")
        .unwrap();
    let promise = running.promise(&storage(&directories.data), &[]);
    must_name(
        &promise,
        "synchronous_commit = off",
        Keeps::AllButTheLast,
        Some(600),
    );

    let schema = place_on(&directories, SchemaKind::Schema, "spindle_test_2");
    let schema = schema.with_password().unwrap();
    let foreign = remote_server(Scheme::Postgres);
    foreign.make(&schema).unwrap();
    let opened = foreign.open(&schema, Purpose::Trial).unwrap();
    let promise = opened.promise(&CommitStorage::default(), &[]);
    must_name(
        &promise,
        "synchronous_commit = off",
        Keeps::AllButTheLast,
        Some(600),
    );
    // With the setting mended, only the server's disks are left to be asked after.
    session
        .run("alter role spindle reset synchronous_commit")
        .unwrap();
    assert_eq!(
        opened.promise(&CommitStorage::default(), &[]).keeps,
        Keeps::Unknown
    );
    opened.stop(ServerStop::Kill).unwrap();
    running.stop(ServerStop::Kill).unwrap();
}

/// Neither a function's own setting nor a transaction's is in force for a fresh session.
#[test]
fn what_clients_set_is_in_what_is_kept() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let what = "synchronous_commit = off (set by the workload)";
    let promise = |sent: &[String]| running.promise(&storage(&directories.data), sent);
    let is_named = |promise: &Promise| promise.reasons.iter().any(|reason| reason.what == what);
    let sent = ["set local synchronous_commit = off".to_owned()];
    must_name(&promise(&sent), what, Keeps::AllButTheLast, Some(600));
    let before = promise(&[]);
    assert!(!is_named(&before), "{before:?}");
    let mut session = running.connect().unwrap();
    for function in [
        "create function quick() returns int language sql set synchronous_commit = 'off' as 'select 1'",
        "create procedure quick() language plpgsql as \
         $$ begin perform set_config('synchronous_commit', 'off', true); end $$",
    ] {
        session.run(function).unwrap();
        must_name(&promise(&[]), what, Keeps::AllButTheLast, Some(600));
        session.run("drop routine quick()").unwrap();
        let after = promise(&[]);
        assert!(!is_named(&after), "{after:?}");
    }
    running.stop(ServerStop::Kill).unwrap();
}
