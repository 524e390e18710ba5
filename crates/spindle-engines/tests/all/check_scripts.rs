//! Check scripts: what is a loss to them, and which of them cannot judge.

use std::collections::BTreeMap;

use spindle_engines::sql::{Server, ServerKind, ServerStop};
use spindle_text::load_file::LoadFile;
use spindle_workload::ScriptSettings;
use spindle_workload::sql::SqlConnection;

use crate::scripts::{file, made, refused};
use crate::sql_workloads::{Loaded, databases};

#[test]
fn the_order_of_rows_is_no_loss_and_a_check_that_never_answers_twice_alike_is_refused() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let tables = "create table turned (id integer primary key, n integer);\n\
                  insert into turned values (1, 1), (2, 2), (3, 3);";
    let checked = |check: &str, server: &dyn Server| {
        let settings = ScriptSettings {
            scripts: vec![file("x.sql", 1, "select 1;")],
            load: vec![LoadFile::Text(file("tables.sql", 1, tables))],
            check: vec![file("check.sql", 1, check)],
            define: BTreeMap::new(),
        };
        made(&settings, server.dialect(), 1)
    };
    for (kind, server) in databases() {
        let workload = checked("select n from turned order by n / 10;", server);
        let loaded = Loaded::with(server, &*workload);
        let mut connection = loaded.server.connect().unwrap();
        let answer = |connection: &mut dyn SqlConnection| workload.check(connection, &[]);
        for change in [
            "update turned set n = 4 - n",
            "update turned set n = n + 0 where id = 1",
        ] {
            connection.run(change).unwrap();
            assert!(answer(&mut *connection).is_ok(), "{kind:?}: {change}");
        }
        connection
            .run("update turned set n = 2 where id = 1")
            .unwrap();
        assert!(answer(&mut *connection).is_err(), "{kind:?}");
        loaded.server.stop(ServerStop::Kill).unwrap();

        let random = if kind == ServerKind::MariaDb {
            "rand()"
        } else {
            "random()"
        };
        let workload = checked(
            &format!("select 1;\nselect id, {random} from turned;"),
            server,
        );
        let told = refused(server, &*workload);
        assert!(
            told.contains("check.sql:2:1: asked twice, it gives two answers"),
            "{kind:?}: {told}"
        );
    }
}
