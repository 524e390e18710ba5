//! `performance_schema` of MariaDB.

use spindle_engines::sql::ServerKind;
use spindle_workload::sql::{Dialect, Value};

use super::{Chance, all_of, carry_out, covers};
use crate::server_by_url::scene::{PASSWORD, Scene, told};

const ITEMS: u64 = 2_000;
const TRANSACTIONS: u64 = 400;
const SCHEMA: &str = "create table digits (d integer);
insert into digits values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
create table items (id integer primary key, code varchar(40) not null unique, price integer, about varchar(100));
insert into items select n, concat('item ', n), n % 50, repeat('x', 80) from (
  select 1000 * e.d + 100 * c.d + 10 * b.d + a.d as n from digits a, digits b, digits c, digits e where e.d < 2) as numbers;
create table orders (id bigint auto_increment primary key, item integer not null, state varchar(20));
analyze table items, orders;
";

/// Texts and prepared statements, of one session that stays and one that ends.
fn load(scene: &Scene) -> Box<dyn spindle_workload::sql::SqlConnection> {
    let mut chance = Chance(7);
    let mut stays = scene.server().0.connect().unwrap();
    let mut ends = scene.server().0.connect().unwrap();
    let texts = ["select price, about from items where id = $1".to_owned()];
    stays.prepare(&texts).unwrap();
    ends.prepare(&texts).unwrap();
    for number in 0..TRANSACTIONS {
        let item = chance.below(ITEMS);
        let key = [Value::Int(item as i64)];
        stays.query(0, &key, &mut |_| Ok(())).unwrap();
        if number % 20 == 0 {
            ends.query(0, &key, &mut |_| Ok(())).unwrap();
        }
        let run = [
            "begin".to_owned(),
            format!("update items set price = price + 1 where id = {item}"),
            format!("insert into orders (item, state) values ({item}, 'it''s new')"),
            "commit".to_owned(),
            format!("select id from items where code = 'item {item}'"),
        ];
        run.iter().for_each(|sql| stays.run(sql).unwrap());
    }
    stays
}

#[test]
fn a_mix_of_digests_and_prepared_statements_is_carried_out() {
    let settings = [("performance_schema", "ON")];
    let Some(scene) = Scene::with(ServerKind::MariaDb, &settings) else {
        return;
    };
    for statement in SCHEMA.split(";\n").filter(|each| !each.is_empty()) {
        scene.run(statement);
    }
    scene.run(&format!(
        "create user lab@localhost identified by '{PASSWORD}'"
    ));
    scene.run("grant select on *.* to lab@localhost");
    for table in [
        "events_statements_summary_by_digest",
        "events_statements_summary_global_by_event_name",
    ] {
        scene.run(&format!("truncate table performance_schema.{table}"));
    }
    let stays = load(&scene);
    scene.run("create table other (a integer)");
    let database = scene.ask("select database()").pop().unwrap();
    let socket = scene.socket("spindle.sock");
    let url = format!(
        "mysql://lab:{PASSWORD}@localhost/{database}?socket={}",
        socket.display()
    );
    scene.write("schema.sql", SCHEMA);
    let command = ["import", "performance_schema", &url, "--load", "schema.sql"];
    let imported = scene.spindle(&command);
    assert!(imported.status.success(), "{}", told(&imported));
    let said = String::from_utf8(imported.stdout).unwrap();
    println!("{said}");
    covers(&said, 88.0);
    assert!(
        said.contains("the server tells their number only"),
        "{said}"
    );
    drop(stays);
    let directory = scene.place.path().join("imported");
    let files = all_of(&directory);
    println!("{files}");
    assert!(!files.contains(PASSWORD), "{files}");
    for part in ["UPDATE", "INSERT", "price, about", "`code`"] {
        assert!(files.contains(part), "{part}: {files}");
    }
    let experiment = directory.join("experiment.toml");
    let plan = scene.spindle(&["plan", experiment.to_str().unwrap()]);
    assert!(plan.status.success(), "{}", told(&plan));
    carry_out(&scene, &experiment, Dialect::MariaDb, TRANSACTIONS);
    // Without prepared statements of open sessions far less is covered.
    let again = scene.spindle(&[&command[..], &["--out", "again"]].concat());
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(!said.contains("price, about"), "{said}");
}
