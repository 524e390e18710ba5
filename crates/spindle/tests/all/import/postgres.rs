//! `pg_stat_statements`.

use std::path::Path;

use spindle_engines::sql::ServerKind;
use spindle_workload::sql::{Dialect, SqlConnection, Value};

use super::{Chance, Taken, all_of, carry_out, covers, make_weights_wrong};
use crate::server_by_url::scene::{PASSWORD, Scene, told};

const ITEMS: u64 = 20_000;
const TRANSACTIONS: u64 = 2_000;
const SCHEMA: &str = "create table items (id integer primary key, code text not null unique, price numeric(10, 2), about text);
insert into items select n, 'item ' || n, n % 500, repeat(md5(n::text), 4) from generate_series(1, 20000) as n;
create table stock (item integer primary key, n integer not null);
insert into stock select n, 100 from generate_series(1, 20000) as n;
create table orders (id bigint generated always as identity primary key, item integer not null, placed date, state text);
insert into orders (item, placed, state) select 1 + n % 20000, date '2026-01-01' + n % 300,
  case when n % 10 = 0 then 'it''s :new' else 'sent' end from generate_series(1, 20000) as n;
create table marks (id bigint primary key, item integer, said text);
insert into marks select n, n, 'mark ' || n % 7 from generate_series(1, 5000) as n;
vacuum analyze;
";
/// Statements of the load; the first three are one transaction.
const LOAD: [&str; 6] = [
    "update stock set n = n - $1 where item = $2",
    "insert into orders (item, placed, state) values ($1, $2, $3)",
    "insert into marks (id, item, said) values ($1, $2, $3)",
    "select price, about from items /* a comment; with :odd things $1 */ where id = $1",
    "select id, price from items where id between $1 and $2 order by id",
    "select price from items where code = $1",
];
/// What is not taken.
const OTHERS: [&str; 9] = [
    "do $x$ begin perform 1; end $x$",
    "select pg_sleep(0)",
    "select set_config('work_mem', '5MB', false)",
    "set work_mem = '4MB'",
    "select * from pg_class limit 1",
    "with gone as (delete from marks where id = -1 returning id) select pg_advisory_unlock_all() from gone",
    "explain select 1",
    "select count(*) from items where about like '%zz%'",
    "create table if not exists items (id integer)",
];
/// What a server knows, but for statistics.
const CATALOGUE: &str = "select md5(string_agg(line, '|' order by line)) from (\
    select 'class ' || concat_ws(' ', oid, relname, relowner, relfilenode, relacl::text) from pg_class \
    union all select 'role ' || t::text from pg_authid t \
    union all select 'procedure ' || concat_ws(' ', oid, proname) from pg_proc \
    union all select 'setting ' || concat_ws(' ', name, setting) from pg_settings where source <> 'session' \
    union all select 'row ' || t::text from marks t union all select 'row ' || t::text from stock t) as known (line)";

fn load(connection: &mut dyn SqlConnection, chance: &mut Chance) {
    let mut item = || Value::Int(1 + chance.below(ITEMS) as i64);
    for number in 0..TRANSACTIONS {
        let key = item();
        match number % 20 {
            0..7 => {
                connection.begin().unwrap();
                let key = Value::Int(1_000_000 + number as i64);
                let day = Value::Date(20_500);
                let parameters = [
                    vec![Value::Int(1), item()],
                    vec![item(), day, Value::text("sent")],
                    vec![key, item(), Value::text("mark 1")],
                ];
                for (statement, parameters) in parameters.iter().enumerate() {
                    connection.execute(statement, parameters).unwrap();
                }
                connection.commit().unwrap();
            }
            7..16 => _ = connection.query(3, &[key], &mut |_| Ok(())).unwrap(),
            16..18 => {
                let Value::Int(first) = key else { continue };
                let range = [Value::Int(first), Value::Int(first + 19)];
                connection.query(4, &range, &mut |_| Ok(())).unwrap();
            }
            _ => {
                let Value::Int(code) = key else { continue };
                let code = Value::Text(format!("item {code}").into());
                connection.query(5, &[code], &mut |_| Ok(())).unwrap();
            }
        }
    }
}

/// What was taken since the statistics were forgotten, and from this place of the log on.
fn taken(scene: &Scene, from: &str) -> Taken {
    let asked = format!(
        "select concat_ws(' ', sum(shared_blks_hit + shared_blks_read), sum(shared_blks_dirtied), \
         pg_current_wal_insert_lsn() - '{from}'::pg_lsn) from pg_stat_statements \
         where query ~* '(items|stock|orders|marks)' and query !~* 'pg_'"
    );
    let told = scene.ask(&asked).pop().unwrap();
    let numbers: Vec<f64> = told
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let each = |number: f64| number / TRANSACTIONS as f64;
    Taken {
        reads: each(numbers[0]),
        writes: each(numbers[1]),
        log_bytes: each(numbers[2]),
    }
}

fn make(scene: &Scene) {
    for statement in SCHEMA.split(";\n").filter(|each| !each.is_empty()) {
        scene.run(statement);
    }
}

/// Forgets what was counted; the place of the log.
fn begin(scene: &Scene) -> String {
    scene.run("checkpoint");
    scene.ask("select pg_stat_statements_reset()::text");
    scene
        .ask("select pg_current_wal_insert_lsn()::text")
        .pop()
        .unwrap()
}

#[test]
fn a_mix_comes_near_to_the_load_that_was_counted() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let settings = [
        ("shared_preload_libraries", "pg_stat_statements"),
        // Nobody else is to write.
        ("autovacuum", "off"),
        ("bgwriter_lru_maxpages", "0"),
        ("checkpoint_timeout", "1h"),
    ];
    let Some(scene) = Scene::with(ServerKind::Postgres, &settings) else {
        return;
    };
    make(&scene);
    scene.run(&format!("create role lab login password '{PASSWORD}'"));
    scene.run("grant pg_read_all_stats, pg_read_all_data to lab");
    let socket = scene.socket(".s.PGSQL.5432");
    let socket = socket.parent().unwrap().display();
    let url = format!("postgres://lab:{PASSWORD}@localhost/postgres?host={socket}");
    let without = scene.spindle(&["import", "pg_stat_statements", &url]);
    assert!(
        told(&without).contains("create extension"),
        "{}",
        told(&without)
    );
    scene.run("create extension pg_stat_statements");

    let from = begin(&scene);
    let mut connection = scene.server().0.connect().unwrap();
    connection.prepare(&LOAD.map(str::to_owned)).unwrap();
    load(&mut *connection, &mut Chance(7));
    let planted = taken(&scene, &from);
    OTHERS.iter().for_each(|other| scene.run(other));
    let exported = "select concat_ws(',', '\"' || replace(query, '\"', '\"\"') || '\"', calls, total_exec_time, rows) \
                    from pg_stat_statements order by calls desc";
    let lines = scene.ask(exported).join("\n");
    scene.write(
        "counted.csv",
        &format!("query,calls,total_exec_time,rows\n{lines}\n"),
    );

    scene.write("schema.sql", SCHEMA);
    let before = scene.ask(CATALOGUE);
    let imported = scene.spindle(&["import", "pg_stat_statements", &url, "--load", "schema.sql"]);
    assert!(imported.status.success(), "{}", told(&imported));
    assert_eq!(scene.ask(CATALOGUE), before);
    let said = String::from_utf8(imported.stdout).unwrap();
    println!("{said}");
    covers(&said, 97.0);
    // What an import asks is counted by the server, and known for what it is.
    let own = "from pg_stat_statements where query like '%lock_timeout%'";
    let marked = "position('/* spindle */' in query) > 0";
    let asked =
        format!("select (count(*) > 0 and bool_and({marked}))::text {own} and query like 'set%'");
    assert_eq!(scene.ask(&asked), ["true"]);
    for left in [
        "pg_sleep",
        "do $x$",
        "set_config",
        "neither select nor",
        "about like",
    ] {
        assert!(said.to_lowercase().contains(left), "{left}: {said}");
    }
    let directory = scene.place.path().join("imported");
    let files = all_of(&directory);
    println!("{files}");
    assert!(
        !files.contains(PASSWORD) && !files.contains("pg_sleep"),
        "{files}"
    );
    let experiment = directory.join("experiment.toml");
    let plan = scene.spindle(&["plan", experiment.to_str().unwrap()]);
    assert!(plan.status.success(), "{}", told(&plan));

    // Both begin with the same files.
    drop(connection);
    scene.run("drop table items, stock, orders, marks");
    make(&scene);
    let from = begin(&scene);
    carry_out(&scene, &experiment, Dialect::Postgres, TRANSACTIONS);
    let mixed = taken(&scene, &from);
    assert!(planted.is_near(&mixed), "{planted:?} and {mixed:?}");
    of_file(&scene, &url);
    in_a_schema(&scene, &url);
    if spindle_harness::is_thorough() {
        wrong_weights_show(&scene, &experiment, &planted);
    }
}

/// Names without a schema are found where the database looks for them, and types wherever they are.
fn in_a_schema(scene: &Scene, url: &str) {
    for statement in [
        "create schema app",
        "create type app.mood as enum ('glad', 'sad')",
        "create table app.things (id integer primary key, v integer, m app.mood)",
        "insert into app.things select n, n % 10, case n % 2 when 0 then 'glad' else 'sad' end::app.mood \
         from generate_series(1, 1000) as n",
        "analyze app.things",
        "alter database postgres set search_path = app, public",
        "select pg_stat_statements_reset()",
        "select v from things where id = 5",
        "select count(*) from things where m = 'glad' and v = 3",
        "select m from app.things where id = 7",
    ] {
        scene.run(statement);
    }
    let command = ["import", "pg_stat_statements", url, "--out", "in-schema"];
    let imported = scene.spindle(&command);
    assert!(imported.status.success(), "{}", told(&imported));
    let files = all_of(&scene.place.path().join("in-schema"));
    assert!(files.contains("search_path = \"app, public\""), "{files}");
    assert!(
        files.contains("app.mood") && !files.contains("::mood"),
        "{files}"
    );
    scene.run("alter database postgres reset search_path");
    // As PostgreSQL's documentation has it: a schema for each user.
    scene.run("create schema lab authorization lab");
    let command = ["import", "pg_stat_statements", url, "--out", "of-user"];
    let imported = scene.spindle(&command);
    assert!(imported.status.success(), "{}", told(&imported));
    let files = all_of(&scene.place.path().join("of-user"));
    assert!(
        files.contains("search_path = \"lab, public\""),
        "{}",
        told(&imported)
    );
}

/// The comparison finds a mix whose transactions are too many.
fn wrong_weights_show(scene: &Scene, experiment: &Path, planted: &Taken) {
    make_weights_wrong(experiment);
    scene.run("delete from marks where id > 5000");
    let from = begin(scene);
    carry_out(scene, experiment, Dialect::Postgres, TRANSACTIONS);
    let wrong = taken(scene, &from);
    assert!(!planted.is_near(&wrong), "{planted:?} and {wrong:?}");
}

/// From a file there are no parameters, unless a server is named for them.
fn of_file(scene: &Scene, url: &str) {
    let command = [
        "import",
        "pg_stat_statements",
        "counted.csv",
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
    let again = scene.spindle(&[&command[..], &["--statistics", url]].concat());
    assert!(
        told(&again).contains("is there already"),
        "{}",
        told(&again)
    );
}
