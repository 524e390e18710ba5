//! What a running server is found to keep when the power goes, by its settings in force.

use spindle_engines::promise::{Keeps, Promise};
use spindle_engines::sql::{ServerKind, ServerStop, server};

use super::{Ground, is_missing, request, started};
use crate::promise::{must_name, storage};

fn promise_with(ground: &Ground, name: &str, settings: &[(&str, &str)]) -> Promise {
    let request = request(settings);
    let directories = ground.directories(name);
    let created = server(ServerKind::MariaDb).create(&request, &directories);
    created.unwrap();
    let running = started(&request, &directories);
    let promise = running.promise(&storage(&directories.data), &[]);
    running.stop(ServerStop::Kill).unwrap();
    promise
}

#[test]
fn a_weaker_setting_is_named_in_what_is_kept() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let commit = "innodb_flush_log_at_trx_commit";
    let strong = promise_with(&ground, "strong", &[]);
    must_name(&strong, &format!("{commit} = 1"), Keeps::EveryCommit, None);
    let weaker = [
        (commit, "2"),
        ("innodb_flush_log_at_timeout", "3"),
        ("innodb_doublewrite", "OFF"),
    ];
    let weaker = promise_with(&ground, "weaker", &weaker);
    must_name(
        &weaker,
        &format!("{commit} = 2"),
        Keeps::AllButTheLast,
        Some(3_000),
    );
    must_name(
        &weaker,
        "innodb_doublewrite = off",
        Keeps::MayBeDamaged,
        None,
    );
    let logged = [
        ("log_bin", "binlog"),
        ("server_id", "1"),
        ("sync_binlog", "10"),
    ];
    let logged = promise_with(&ground, "logged", &logged);
    must_name(&logged, "sync_binlog = 10", Keeps::AllButTheLast, None);
}

#[test]
fn tables_outside_innodb_are_named_in_what_is_kept() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let request = request(&[]);
    let directories = ground.directories("tables");
    let created = server(ServerKind::MariaDb).create(&request, &directories);
    created.unwrap();
    let running = started(&request, &directories);
    let promise = || running.promise(&storage(&directories.data), &[]);
    let is_named = |promise: &Promise| {
        let mut reasons = promise.reasons.iter();
        reasons.any(|reason| reason.what.starts_with("engine"))
    };
    let mut session = running.connect().unwrap();
    for sql in [
        "create table kept (id int primary key)",
        "create view seen as select * from kept",
        "create temporary table passing (id int) engine = memory",
    ] {
        session.run(sql).unwrap();
    }
    let before = promise();
    assert!(!is_named(&before), "{before:?}");
    for (engine, keeps) in [
        ("myisam", Keeps::MayBeDamaged),
        ("memory", Keeps::Nothing),
        ("aria", Keeps::MayBeDamaged),
    ] {
        let create = format!("create table in_{engine} (id int) engine = {engine}");
        session.run(&create).unwrap();
        let what = format!("engine = {engine}: in_{engine}");
        must_name(&promise(), &what, keeps, None);
    }
    running.stop(ServerStop::Kill).unwrap();
}

/// What is given back at once counts as well, and what a procedure sets.
#[test]
fn what_clients_set_is_in_what_is_kept() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let request = request(&[]);
    let directories = ground.directories("set");
    let created = server(ServerKind::MariaDb).create(&request, &directories);
    created.unwrap();
    let running = started(&request, &directories);
    let set = ["set global innodb_flush_log_at_trx_commit = 0".to_owned()];
    let what =
        |value: u8| format!("innodb_flush_log_at_trx_commit = {value} (set by the workload)");
    let promise = |sent: &[String]| running.promise(&storage(&directories.data), sent);
    must_name(&promise(&set), &what(0), Keeps::AllButTheLast, Some(1_000));
    let mut session = running.connect().unwrap();
    let body = "create procedure quick() begin set global innodb_flush_log_at_trx_commit = 2; end";
    session.run(body).unwrap();
    must_name(&promise(&[]), &what(2), Keeps::AllButTheLast, Some(1_000));
    running.stop(ServerStop::Kill).unwrap();
}
