//! What a run may leave on an existing server, and does not: transactions that were prepared and not ended, and what
//! belongs to the whole server.

use std::time::Duration;

use spindle_engines::sql::foreign::reload;
use spindle_engines::sql::{
    Purpose, RunningServer, SchemaGone, SchemaKind, Scheme, ServerStop, remote_server,
};

use spindle_workload::sql::Dialect;

use super::home::{Home, is_installed, place_on, request};
use crate::loads::workload;

fn prepared(running: &dyn RunningServer) -> Vec<String> {
    let mut left = Vec::new();
    let mut connection = running.connect().unwrap();
    let asked = connection.ask("select gid from pg_prepared_xacts", &mut |row| {
        left.push(row.text(0)?);
        Ok(())
    });
    asked.unwrap();
    left
}

#[test]
fn nothing_of_a_load_and_its_trials_stays_on_an_existing_server() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[("max_prepared_transactions", "4")]);
    let (directories, running) = home.started(&request);
    let mut others = running.connect().unwrap();
    others.run("create table theirs (a integer)").unwrap();
    others
        .run("begin; insert into theirs values (1); prepare transaction 'theirs'")
        .unwrap();
    let server = remote_server(Scheme::Postgres);
    for kind in [SchemaKind::Schema, SchemaKind::Database] {
        let schema = place_on(&directories, kind, "spindle_test_1");
        let schema = schema.with_password().unwrap();
        let loaded = |load: &str| {
            let workload = workload(Dialect::Postgres, load, "select 1;");
            reload(server, &schema, &*workload, &std::sync::Arc::default())
        };
        let told = loaded("select 1;\ncreate role ann;")
            .unwrap_err()
            .to_string();
        assert!(
            told.contains("load.sql:2:1: this belongs to the whole server"),
            "{told}"
        );
        let left = "create table t (a integer); begin; insert into t values (1); prepare transaction 'ours';";
        let told = loaded(left).unwrap_err().to_string();
        assert!(
            told.contains("prepared transaction 'ours' open"),
            "{kind:?}: {told}"
        );
        // It is undone, and a trial may leave one, too.
        loaded("create table t (a integer);").unwrap();
        assert_eq!(prepared(&*running), ["theirs"], "{kind:?}");
        let opened = server.open(&schema, Purpose::Trial).unwrap();
        let mut connection = opened.connect().unwrap();
        connection
            .run("begin; insert into t values (1); prepare transaction 'ours'")
            .unwrap();
        drop(connection);
        opened.stop(ServerStop::Kill).unwrap();
        if kind == SchemaKind::Schema {
            // One that touched what is others', too, is theirs to end: until then the schema cannot go.
            others
                .run(
                    "begin; insert into theirs values (2); lock table spindle_test_1.t in access share mode; \
                     prepare transaction 'both'",
                )
                .unwrap();
            std::thread::scope(|scope| {
                let dropped = scope.spawn(|| server.drop_schema(&schema).unwrap());
                std::thread::sleep(Duration::from_secs(2));
                assert!(!dropped.is_finished());
                others.run("commit prepared 'both'").unwrap();
                assert_eq!(dropped.join().unwrap(), SchemaGone::Dropped);
            });
        } else {
            assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
        }
        assert_eq!(prepared(&*running), ["theirs"], "{kind:?}");
    }
    let mut roles = 0;
    let asked = others.ask("select 1 from pg_roles where rolname = 'ann'", &mut |_| {
        roles += 1;
        Ok(())
    });
    asked.unwrap();
    assert_eq!(roles, 0);
    drop(others);
    running.stop(ServerStop::Kill).unwrap();
}
