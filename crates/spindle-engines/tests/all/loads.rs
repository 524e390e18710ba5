//! What a load makes is there in a trial, or the load is refused with the place: nothing passes it and fails later.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spindle_engines::ErrorKind;
use spindle_engines::sql::{Server, ServerKind, ServerRequest, ServerStop, create_and_load};
use spindle_text::load_file::LoadFile;
use spindle_text::section::TextFile;
use spindle_workload::sql::{Dialect, SqlWorkload};
use spindle_workload::{MadeFor, ScriptSettings, WorkloadSettings};

use crate::sql_workloads::{Loaded, databases, empty, request};

fn file(name: &str, text: &str) -> TextFile {
    TextFile {
        name: name.to_owned(),
        weight: 1,
        text: text.to_owned(),
    }
}

fn settings(load: &str, script: &str) -> ScriptSettings {
    ScriptSettings {
        scripts: vec![file("script.sql", script)],
        load: vec![LoadFile::Text(file("load.sql", load))],
        check: Vec::new(),
        define: BTreeMap::new(),
    }
}

fn made_for(dialect: Dialect) -> MadeFor {
    MadeFor {
        data_bytes: 64 << 20,
        block_bytes: 8 << 10,
        clients: 1,
        seed: 7,
        dialect: Some(dialect),
    }
}

pub fn workload(dialect: Dialect, load: &str, script: &str) -> Arc<dyn SqlWorkload> {
    let settings = settings(load, script);
    let made_for = made_for(dialect);
    assert_eq!(settings.check(&made_for), [], "{load}");
    settings.make(&made_for).in_sql(7)
}

/// What is told of a load that fails.
fn told(server: &dyn Server, request: &ServerRequest, load: &str, script: &str) -> String {
    let (_place, directories) = empty();
    let workload = workload(server.dialect(), load, script);
    let loaded = create_and_load(server, request, &directories, &*workload, &Arc::default());
    loaded.expect_err(load).to_string()
}

#[test]
fn what_only_the_session_of_the_load_has_is_told_when_it_is_loaded() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let request = request(server);
        let temporary = "create temporary table t (a integer);";
        let said = told(server, &request, temporary, "select a from t;");
        assert!(said.contains("script.sql:1:1: "), "{kind:?}: {said}");
        let open = "create table t (a integer);\nbegin;\ninsert into t values (1);";
        let said = told(server, &request, open, "select a from t;");
        assert!(
            said.contains("load.sql:2:1: ")
                || (kind == ServerKind::MariaDb && said.contains("load.sql:3:1: ")),
            "{kind:?}: {said}"
        );
        assert!(said.contains("COMMIT is missing"), "{kind:?}: {said}");
        let elsewhere = match kind {
            ServerKind::Postgres => {
                "create schema app; set search_path = app; create table t (a integer);"
            }
            ServerKind::MariaDb => "create database app; use app; create table t (a integer);",
            ServerKind::Sqlite => continue,
        };
        let said = told(server, &request, elsewhere, "select a from t;");
        assert!(said.contains("script.sql:1:1: "), "{kind:?}: {said}");
    }
}

/// Written as the database's own client takes them.
#[test]
fn bodies_with_semicolons_are_loaded() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    const TABLES: &str = "create table t (a integer);\ncreate table seen (a integer);\n";
    for (kind, server) in databases() {
        let bodies = match kind {
            ServerKind::Postgres => {
                "create function note() returns trigger language plpgsql as $$ begin insert into seen values (new.a); \
                 return new; end $$;\n\
                 create trigger note after insert on t for each row execute function note();\n"
            }
            ServerKind::MariaDb => {
                "DELIMITER //\n\
                 create trigger note after insert on t for each row begin insert into seen values (new.a); end//\n\
                 create procedure add_one() begin insert into t values (1); end //\n\
                 DELIMITER ;\ncall add_one();\n"
            }
            ServerKind::Sqlite => {
                "create trigger note after insert on t begin insert into seen values (new.a); select 1; end;\n"
            }
        };
        let load = format!("{TABLES}{bodies}insert into t values (2);");
        let script = "select a from seen where a = 2;";
        let loaded = Loaded::with(server, &*workload(server.dialect(), &load, script));
        let mut connection = loaded.server.connect().unwrap();
        let mut seen = Vec::new();
        let asked = connection.ask("select a from seen order by a", &mut |row| {
            seen.push(row.int(0)?);
            Ok(())
        });
        asked.unwrap();
        let wanted: &[i64] = match kind {
            ServerKind::MariaDb => &[1, 2],
            ServerKind::Postgres | ServerKind::Sqlite => &[2],
        };
        assert_eq!(seen, wanted, "{kind:?}");
        drop(connection);
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

#[test]
fn a_prepared_transaction_that_a_load_leaves_is_told() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let mut request = request(server);
        let left = match kind {
            ServerKind::Postgres => {
                let setting = ("max_prepared_transactions".to_owned(), "2".to_owned());
                request.settings.extend([setting]);
                "create table t (a integer);\nbegin; insert into t values (1); prepare transaction 'left';"
            }
            ServerKind::MariaDb => {
                "create table t (a integer);\nxa start 'left'; insert into t values (1); xa end 'left'; xa prepare 'left';"
            }
            ServerKind::Sqlite => continue,
        };
        let said = told(server, &request, left, "select a from t;");
        assert!(said.contains("prepared transaction"), "{kind:?}: {said}");
    }
}

#[test]
fn a_table_in_memory_is_refused_where_the_server_starts_again() {
    for (kind, server) in databases() {
        if kind == ServerKind::MariaDb {
            let load = "select 1;\ncreate table t (a integer) engine = memory;";
            let said = told(server, &request(server), load, "select a from t;");
            assert!(
                said.contains("load.sql:2:1: ") && said.contains("is empty"),
                "{said}"
            );
        }
    }
}

#[test]
fn what_no_restore_puts_back_is_refused_with_its_place() {
    for (dialect, statement) in [
        (Dialect::Postgres, "create tablespace t location '/x';"),
        (Dialect::MariaDb, "set global max_connections = 50;"),
        (Dialect::Sqlite, "attach database 'x.db' as x;"),
    ] {
        let settings = settings(&format!("select 1;\n {statement}"), "select 1;");
        let refusal = settings.check(&made_for(dialect)).remove(0);
        let shown = refusal.shown.expect("the place is known");
        assert_eq!((shown.name.as_str(), shown.span.start), ("load.sql", 11));
    }
}

#[test]
fn everything_that_postgres_keeps_in_its_files_is_there_after_the_load() {
    for (kind, server) in databases() {
        if kind != ServerKind::Postgres {
            continue;
        }
        let load = "create unlogged table u as select generate_series(1, 10) as a;
            create sequence s; select nextval('s');
            create materialized view m as select count(*) as n from u;
            create table o as select lo_from_bytea(0, 'abc') as l;
            create role ann; grant select on u to ann;
            create table kept (a aclitem); insert into kept values ('ann=r/spindle');
            create publication p for table kept;";
        let workload = workload(
            Dialect::Postgres,
            load,
            "select a, relacl from kept, pg_class limit 1;",
        );
        let loaded = Loaded::with(server, &*workload);
        let mut connection = loaded.server.connect().unwrap();
        let asked = "select (select count(*) from u) || ' ' || nextval('s') || ' ' || (select n from m) || ' ' || \
                     (select length(lo_get(l)) from o) || ' ' || has_table_privilege('ann', 'u', 'select')";
        let mut found = String::new();
        let answer = connection.ask(asked, &mut |row| {
            found = row.text(0)?;
            Ok(())
        });
        answer.unwrap();
        assert_eq!(found, "10 2 10 3 true");
        // A type without a binary form, and a number that is too large, which the server tells.
        workload.prepare(&mut *connection).unwrap();
        assert_eq!(connection.query_unread(0, &[]), Ok(1));
        let large = "select a from u where a = $1".to_owned();
        connection.prepare(&[large]).unwrap();
        let large = [spindle_workload::sql::Value::Int(5_000_000_000)];
        let said = connection.query_unread(0, &large).unwrap_err().to_string();
        assert!(said.contains("out of range for type integer"), "{said}");
        drop(connection);
        loaded.server.stop(ServerStop::Kill).unwrap();
    }
}

/// A statement that never ends: the server works, or waits for another.
#[test]
fn a_load_that_waits_for_its_server_ends_when_it_is_interrupted() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for (kind, server) in databases() {
        let statement = match kind {
            ServerKind::Postgres => "select pg_sleep(1000);",
            ServerKind::MariaDb => "select sleep(1000);",
            ServerKind::Sqlite => {
                "with recursive n(a) as (select 1 union all select a + 1 from n) select max(a) from n;"
            }
        };
        let load = format!("create table t (a integer);\n{statement}");
        let workload = workload(server.dialect(), &load, "select a from t;");
        let (_place, directories) = empty();
        let interrupted: Arc<AtomicBool> = Arc::default();
        let after = Arc::clone(&interrupted);
        let interrupting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(3));
            after.store(true, Ordering::Relaxed);
        });
        let request = request(server);
        let loaded = create_and_load(server, &request, &directories, &*workload, &interrupted);
        let error = loaded.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{kind:?}: {error}");
        interrupting.join().unwrap();
    }
}

#[test]
fn postgres_is_told_that_a_statement_has_no_rows_for_it() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let mut found = databases().into_iter();
    let Some((_, server)) = found.find(|(kind, _)| *kind == ServerKind::Postgres) else {
        return;
    };
    let load = workload(
        Dialect::Postgres,
        "create table t (a integer);",
        "select a from t;",
    );
    let loaded = Loaded::with(server, &*load);
    let mut connection = loaded.server.connect().unwrap();
    let error = connection.run("copy t from stdin").unwrap_err();
    assert!(
        error.to_string().contains("COPY has no rows here"),
        "{error}"
    );
    connection.run("insert into t values (1)").unwrap();
    drop(connection);
    loaded.server.stop(ServerStop::Kill).unwrap();
}
