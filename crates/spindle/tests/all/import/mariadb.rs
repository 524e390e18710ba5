//! `performance_schema` of MariaDB.

use std::path::Path;
use std::time::Duration;

use spindle_engines::sql::ServerKind;
use spindle_workload::sql::{Dialect, SqlConnection, Value};

use super::{Chance, Taken, all_of, carry_out, covers, make_weights_wrong};
use crate::server_by_url::scene::{PASSWORD, Scene, told};

const ITEMS: u64 = 20_000;
const TRANSACTIONS: u64 = 2_000;
/// Of the mix. Which script is next is drawn: so many make chance small.
const DRAWN: u64 = 10_000;
/// A busy server clears away behind earlier changes at any time, and counts that, too.
const LOOKS_MAX: u32 = 3;
const SCHEMA: &str = "create table items (id integer primary key, code varchar(40) not null unique, price decimal(10, 2), \
about varchar(200));
insert into items select seq, concat('item ', seq), seq % 500, repeat(md5(seq), 4) from seq_1_to_20000;
create table stock (item integer primary key, n integer not null);
insert into stock select seq, 100 from seq_1_to_20000;
create table orders (id bigint auto_increment primary key, item integer not null, placed date, state varchar(20));
insert into orders (item, placed, state) select 1 + seq % 20000, date '2026-01-01' + interval seq % 300 day, \
if(seq % 10 = 0, 'it''s new', 'sent') from seq_1_to_20000;
create table user (id bigint primary key, item integer, name varchar(40));
insert into user select seq, seq, concat('mark ', seq % 7) from seq_1_to_5000;
analyze table items, stock, orders, user;
";
/// What is prepared by the session that stays.
const PREPARED: &str = "select price, about from items where id = $1";
/// What is not taken.
const OTHERS: [&str; 6] = [
    "select sleep(0)",
    "do release_lock('none')",
    "set sql_mode = 'ANSI_QUOTES'",
    "select count(*) from information_schema.tables",
    "select count(*) from items where about like '%zz%'",
    "create table if not exists items (id integer)",
];
/// What a server knows, but for statistics.
const KNOWN: &str = "select md5(group_concat(line order by line)) from (\
    select concat_ws(' ', table_name, create_time, table_rows) as line from information_schema.tables \
    where table_schema = database() \
    union all select concat_ws(' ', host, user, priv) from mysql.global_priv \
    union all select concat_ws(' ', variable_name, variable_value) from information_schema.global_variables \
    where variable_name not like 'gtid%' \
    union all select concat_ws(' ', id, item, name) from user union all select concat_ws(' ', item, n) from stock) as known";
/// How often the tables of the load were used.
const OF_LOAD: &str = "select cast(sum(count_star) as char) from performance_schema.events_statements_summary_by_digest \
    where schema_name = database() and digest_text regexp 'items|stock|orders' and digest_text not like '%_schema%'";
/// Blocks of the pool that were read and written, and the end of the log.
const COUNTERS: &str = "select concat_ws(' ', \
    max(if(variable_name = 'INNODB_BUFFER_POOL_READ_REQUESTS', variable_value, 0)), \
    max(if(variable_name = 'INNODB_BUFFER_POOL_WRITE_REQUESTS', variable_value, 0)), \
    max(if(variable_name = 'INNODB_LSN_CURRENT', variable_value, 0))) from information_schema.global_status";

fn make(scene: &Scene) {
    for statement in SCHEMA.split(";\n").filter(|each| !each.is_empty()) {
        scene.run(statement);
    }
}

fn load(connection: &mut dyn SqlConnection, chance: &mut Chance) {
    connection.prepare(&[PREPARED.to_owned()]).unwrap();
    let mut item = || 1 + chance.below(ITEMS);
    for number in 0..TRANSACTIONS {
        let (key, other) = (item(), item());
        let sent = match number % 20 {
            0..7 => vec![
                "begin".to_owned(),
                format!("update stock set n = n - 1 where item = {key}"),
                format!(
                    "insert into orders (item, placed, state) values ({other}, date(now()), 'sent')"
                ),
                format!(
                    "insert into user (id, item, name) values ({}, {key}, 'mark 1'), ({}, {other}, 'mark 2')",
                    1_000_000 + 2 * number,
                    1_000_001 + 2 * number
                ),
                "commit".to_owned(),
            ],
            7..12 => vec![format!(
                "select price, about from items where id = {key} /* of a page */"
            )],
            12..16 => {
                let key = [Value::Int(key as i64)];
                connection.query(0, &key, &mut |_| Ok(())).unwrap();
                continue;
            }
            16 => vec![format!(
                "select sum(price) from items where id between {key} and {}",
                key + 19
            )],
            17 => vec![format!(
                "select id, price from items where id in ({key}, {other}, 7)"
            )],
            _ => vec![format!("select price from items where code = 'item {key}'")],
        };
        sent.iter().for_each(|sql| connection.run(sql).unwrap());
    }
}

/// What was read, written and logged since the server began, when it does nothing more.
fn counters(scene: &Scene) -> [f64; 3] {
    let look = || scene.ask(COUNTERS).pop().unwrap();
    let mut before = look();
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let now = look();
        if now == before {
            let mut numbers = now.split(' ').map(|number| number.parse().unwrap());
            return std::array::from_fn(|_| numbers.next().unwrap());
        }
        before = now;
    }
}

/// What was taken by the load that `act` brings, of so many transactions.
fn taken(scene: &Scene, transactions: u64, act: impl FnOnce()) -> Taken {
    let before = counters(scene);
    act();
    let after = counters(scene);
    let each = |place: usize| (after[place] - before[place]) / transactions as f64;
    Taken {
        reads: each(0),
        writes: each(1),
        log_bytes: each(2),
    }
}

/// A server that counts statements, and a user `lab` who may read. A look at its tables is held, from before there were
/// any: what is to be cleared away behind changes would come in the one load or in the other.
fn counting() -> Option<(Scene, Box<dyn SqlConnection>)> {
    let settings = [
        ("performance_schema_digests_size", "1000"),
        ("performance_schema_max_digest_length", "1024"),
        ("performance_schema_max_sql_text_length", "1024"),
        (
            "performance_schema_max_prepared_statements_instances",
            "100",
        ),
        // Nobody else is to write.
        ("innodb_stats_auto_recalc", "0"),
    ];
    let scene = Scene::with(ServerKind::MariaDb, &settings)?;
    scene.run("update performance_schema.setup_instruments set enabled = 'YES', timed = 'YES' where name like 'statement/%'");
    consume(&scene, "events_statements_current", "YES");
    scene.run(&format!(
        "create user lab@localhost identified by '{PASSWORD}'"
    ));
    let mut held = scene.server().0.connect().unwrap();
    held.run("start transaction with consistent snapshot")
        .unwrap();
    make(&scene);
    Some((scene, held))
}

/// The load that the mix comes near to: the one given, or the same once more, if the server did other work meanwhile.
fn near(scene: &Scene, mut planted: Taken, experiment: &Path) -> Taken {
    for _ in 0..LOOKS_MAX {
        make_anew(scene);
        let mixed = taken(scene, DRAWN, || {
            carry_out(scene, experiment, Dialect::MariaDb, DRAWN);
        });
        if planted.is_near(&mixed) {
            return planted;
        }
        println!("{planted:?} and {mixed:?}");
        make_anew(scene);
        let mut connection = scene.server().0.connect().unwrap();
        planted = taken(scene, TRANSACTIONS, || {
            load(&mut *connection, &mut Chance(7));
        });
    }
    panic!("the mix came near in none of {LOOKS_MAX} looks");
}

/// All loads begin with the same tables.
fn make_anew(scene: &Scene) {
    scene.run("drop table items, stock, orders, user");
    make(scene);
}

fn forget(scene: &Scene) {
    for table in [
        "events_statements_summary_by_digest",
        "events_statements_summary_global_by_event_name",
        "prepared_statements_instances",
    ] {
        scene.run(&format!("truncate table performance_schema.{table}"));
    }
}

#[test]
fn a_mix_comes_near_to_the_load_that_was_counted() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some((scene, _held)) = counting() else {
        return;
    };
    let database = scene.ask("select database()").pop().unwrap();
    let socket = scene.socket("spindle.sock");
    let url = format!(
        "mysql://lab:{PASSWORD}@localhost/{database}?socket={}",
        socket.display()
    );
    rights_that_are_missing(&scene, &url, &database);

    forget(&scene);
    let mut connection = scene.server().0.connect().unwrap();
    let planted = taken(&scene, TRANSACTIONS, || {
        load(&mut *connection, &mut Chance(7));
    });
    OTHERS.iter().for_each(|other| scene.run(other));
    export(&scene);
    scene.write("schema.sql", SCHEMA);
    let before = (scene.ask(KNOWN), scene.ask(OF_LOAD));
    let command = ["import", "performance_schema", &url, "--load", "schema.sql"];
    let imported = scene.spindle(&command);
    assert!(imported.status.success(), "{}", told(&imported));
    // What an import asks is not counted for the load.
    assert_eq!((scene.ask(KNOWN), scene.ask(OF_LOAD)), before);
    let said = String::from_utf8(imported.stdout).unwrap();
    println!("{said}");
    covers(&said, 97.0);
    for left in ["sleep", "neither select nor", "about` like", "of itself"] {
        assert!(said.to_lowercase().contains(left), "{left}: {said}");
    }
    assert!(said.contains("values of items.code, items.id"), "{said}");
    let directory = scene.place.path().join("imported");
    let files = all_of(&directory);
    println!("{files}");
    assert!(!files.contains(PASSWORD) && !files.to_lowercase().contains("sleep"));
    let experiment = directory.join("experiment.toml");
    let plan = scene.spindle(&["plan", experiment.to_str().unwrap()]);
    assert!(plan.status.success(), "{}", told(&plan));

    drop(connection);
    let planted = near(&scene, planted, &experiment);
    of_file(&scene, &url);
    sessions_that_have_ended(&scene, &command);
    histograms_are_enough(&scene, &url);
    parameters_hit_rows(&scene, &url);
    if spindle_harness::is_thorough() {
        make_weights_wrong(&experiment);
        scene.run("delete from user where id > 5000");
        let wrong = taken(&scene, TRANSACTIONS, || {
            carry_out(&scene, &experiment, Dialect::MariaDb, TRANSACTIONS);
        });
        assert!(!planted.is_near(&wrong), "{planted:?} and {wrong:?}");
    }
}

fn consume(scene: &Scene, what: &str, whether: &str) {
    scene.run(&format!(
        "update performance_schema.setup_consumers set enabled = '{whether}' where name = '{what}'"
    ));
}

/// What the user may not see, and what the server does not count, is told with what helps.
fn rights_that_are_missing(scene: &Scene, url: &str, database: &str) {
    let import = |of: &str, url: &str| {
        let refused = scene.spindle(&["import", of, url]);
        assert!(!refused.status.success(), "{refused:?}");
        assert!(!scene.place.path().join("imported").exists());
        told(&refused)
    };
    let grant = format!("grant select on `{database}`.* to 'lab'@'localhost'");
    let said = import("performance_schema", url);
    assert!(said.contains(&grant), "{said}");
    scene.run(&grant);
    let said = import("performance_schema", url);
    let grant = "grant select on performance_schema.* to 'lab'@'localhost'";
    assert!(said.contains(grant), "{said}");
    scene.run(grant);
    consume(scene, "statements_digest", "NO");
    let said = import("performance_schema", url);
    assert!(said.contains("where name = 'statements_digest'"), "{said}");
    consume(scene, "statements_digest", "YES");
    let said = import("performance_schema", &url.replace(PASSWORD, "wrong"));
    assert!(said.contains("Access denied"), "{said}");
    let said = import(
        "performance_schema",
        &url.replace(&format!("/{database}?"), "?"),
    );
    assert!(said.contains("names no database"), "{said}");
    let said = import("pg_stat_statements", url);
    assert!(said.contains("another kind of server"), "{said}");
}

/// As the server's own client writes it, without what clients ask when they connect.
fn export(scene: &Scene) {
    let columns = [
        "schema_name",
        "digest_text",
        "count_star",
        "sum_timer_wait",
        "sum_rows_affected",
        "sum_rows_sent",
        "sum_rows_examined",
    ];
    let fields = columns.map(|column| format!("coalesce({column}, 'NULL')"));
    let asked = format!(
        "select concat_ws('\t', {}) from performance_schema.events_statements_summary_by_digest \
         where schema_name = database() and digest_text not like '%@%' or digest is null",
        fields.join(", ")
    );
    let lines = scene.ask(&asked).join("\n");
    let head = columns.join("\t").to_uppercase();
    scene.write("counted.tsv", &format!("{head}\n{lines}\n"));
}

/// A file has no prepared statements. Without a server there are no values.
fn of_file(scene: &Scene, url: &str) {
    let command = [
        "import",
        "performance_schema",
        "counted.tsv",
        "--out",
        "of-file",
    ];
    let without = scene.spindle(&command);
    assert_eq!(without.status.code(), Some(1));
    assert!(
        told(&without).contains("--statistics URL"),
        "{}",
        told(&without)
    );
    assert!(!scene.place.path().join("of-file").exists());
    let with = scene.spindle(&[&command[..], &["--statistics", url]].concat());
    assert!(with.status.success(), "{}", told(&with));
    covers(&String::from_utf8(with.stdout).unwrap(), 97.0);
}

/// The server has forgotten their texts: the import says how many calls that were.
fn sessions_that_have_ended(scene: &Scene, command: &[&str]) {
    for (whether, why, out) in [
        ("YES", "those of open sessions only", "ended"),
        ("NO", "'events_statements_current'", "not-counted"),
    ] {
        consume(scene, "events_statements_current", whether);
        let ended = scene.spindle(&[command, &["--out", out]].concat());
        let said = String::from_utf8(ended.stdout).unwrap();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("prepared statements of any database"),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
    }
}

/// Where histograms hold values, no rows are read.
fn histograms_are_enough(scene: &Scene, url: &str) {
    forget(scene);
    for statement in [
        "set global histogram_type = 'JSON_HB'",
        "analyze table items persistent for all",
        "grant select on mysql.column_stats to lab@localhost",
        "select id from items where price = 7",
        "select id from items where code = 'item 5'",
    ] {
        scene.run(statement);
    }
    let imported = scene.spindle(&["import", "performance_schema", url, "--out", "histograms"]);
    assert!(imported.status.success(), "{}", told(&imported));
    let said = String::from_utf8(imported.stdout).unwrap();
    println!("{said}");
    assert!(!said.contains("Read from rows"), "{said}");
    assert!(said.contains("all that its histogram holds"), "{said}");
    let files = all_of(&scene.place.path().join("histograms"));
    assert!(files.contains("'item 1', "), "{files}");
}

/// Of keys of several columns, and of bytes, all values are found in rows.
fn parameters_hit_rows(scene: &Scene, url: &str) {
    for statement in [
        "create table customers (w integer, d integer, c integer, id binary(16) not null unique, primary key (w, d, c))",
        "insert into customers select 1 + seq div 6000, 1 + seq div 600 % 10, 1 + seq % 600, unhex(md5(seq)) \
         from seq_0_to_29999",
        "analyze table customers",
    ] {
        scene.run(statement);
    }
    forget(scene);
    scene.run("select c from customers where w = 1 and d = 2 and c = 3");
    scene.run("select c from customers where id = x'cfcd208495d565ef66e7dff9f98764da'");
    scene.run("select c from customers where w = 5 and d = 10 and c in (7, 8, 9, 600)");
    let imported = scene.spindle(&["import", "performance_schema", url, "--out", "hits"]);
    assert!(imported.status.success(), "{}", told(&imported));
    let experiment = scene.place.path().join("hits/experiment.toml");
    let asked = "select cast(sum(sum_rows_sent) / sum(count_star) as char) from \
                 performance_schema.events_statements_summary_global_by_event_name where event_name = 'statement/com/Execute'";
    forget(scene);
    carry_out(scene, &experiment, Dialect::MariaDb, 400);
    let rows: f64 = scene.ask(asked).pop().unwrap().parse().unwrap();
    // What clients ask when they connect tells a row, too; of each four values one script finds four rows.
    assert!((1.2..=2.5).contains(&rows), "{rows} rows of a call");
}
