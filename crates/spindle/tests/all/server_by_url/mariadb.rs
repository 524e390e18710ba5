//! MariaDB.

use spindle_engines::sql::{
    Address, Purpose, Schema, SchemaGone, SchemaKind, Scheme, ServerKind, ServerStop, remote_server,
};
use spindle_workload::sql::{SqlConnection, Value};

use super::port::Port;
use super::scene::{PASSWORD, Scene, told};

const EXPERIMENT: &str = r#"
[database]
engine = "mariadb"
size = "4MiB"
[workload]
clients = 2
[plan]
quiet = "0s"
warmup = "100ms"
measure = "800ms"
rounds = 1
"#;
const DATABASES: &str =
    "select schema_name from information_schema.schemata where schema_name like 'spindle\\_%'";

#[test]
fn an_existing_server_is_measured_and_left_as_it_was() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(scene) = Scene::of(ServerKind::MariaDb) else {
        return;
    };
    scene.run(&format!("create user lab identified by '{PASSWORD}'"));
    scene.run("grant all on `spindle\\_%`.* to lab");
    scene.run("create database theirs");
    scene.run("create table theirs.numbers (n int)");
    scene.run("insert into theirs.numbers values (1), (2), (3)");
    let port = Port::before(&scene.socket("spindle.sock"));
    let layout = |name: &str, password: &str, port: u16| {
        format!(
            "[[layout]]\nname = \"{name}\"\ndatabase = {{ url = \"mysql://lab:{password}@127.0.0.1:{port}\" }}\n"
        )
    };
    let layouts = [
        layout("there", PASSWORD, port.number),
        layout("wrong", "guessed", port.number),
        layout("nobody", PASSWORD, 1),
    ];
    scene.write(
        "experiment.toml",
        &format!("{EXPERIMENT}{}", layouts.concat()),
    );
    let run = scene.spindle(&["run", "experiment.toml", "--out", "out"]);
    // Two of three could not be measured.
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    let result = scene.result("out");
    let case = &result["cases"][0];
    assert_eq!(case["status"], "measured", "{case}");
    let trial = &case["trials"][0];
    assert!(trial["transactions"].as_u64().unwrap() > 0, "{trial}");
    assert!(trial["cpu"].is_null(), "{trial}");
    let check = trial["check"].as_str().unwrap();
    assert!(check.contains("agree with the ledger"), "{check}");
    let method = trial["restore"]["method"].as_str().unwrap();
    assert!(method.contains("copied again from loaded ones"), "{method}");
    assert!(trial["write_iops"].as_f64().unwrap() > 0.0, "{trial}");
    // The user may not see what the server times.
    let waits = trial["waits"].to_string();
    assert!(waits.contains("row lock contention"), "{waits}");
    assert!(!waits.contains("log file sync"), "{waits}");
    let space = trial["space"].as_array().unwrap();
    assert!(!space.is_empty());
    assert!(space.iter().all(|of| of["segment"] != "spindle_token"));
    let description = result["layouts"][0]["description"].as_str().unwrap();
    assert!(
        description.contains("innodb_buffer_pool_size = 8388608"),
        "{description}"
    );
    let wrong = result["cases"][1].to_string();
    assert!(wrong.contains("mysql://lab@127.0.0.1:"), "{wrong}");
    assert!(wrong.contains("Access denied"), "{wrong}");
    let nobody = result["cases"][2].to_string();
    assert!(nobody.contains("mysql://lab@127.0.0.1:1: "), "{nobody}");
    scene.assert_no_password_in("out");
    assert_eq!(scene.ask(DATABASES), [""; 0]);
    assert!(scene.ledgers().is_empty());
    without_rights(&scene, &port);
    prepared(&scene, &port);
    let run = scene.begin(&[
        "run",
        "experiment.toml",
        "--out",
        "killed",
        "--set",
        "plan.measure=30s",
    ]);
    let at_work = format!(
        "{DATABASES} and schema_name not like '%\\_loaded' and exists (select 1 from information_schema.processlist where user = 'lab' and db = schema_name limit 2, 1)"
    );
    let mut run = scene.wait_while(run, &at_work);
    run.kill().unwrap();
    run.wait().unwrap();
    // The loaded one, and its copy.
    assert_eq!(scene.ask(DATABASES).len(), 2);
    let clean = scene.spindle(&["clean"]);
    let said = String::from_utf8_lossy(&clean.stdout);
    assert!(clean.status.success(), "{said}");
    assert_eq!(scene.ask(DATABASES), [""; 0]);
    assert_eq!(
        scene.ask("select cast(count(*) as char) from theirs.numbers"),
        ["3"]
    );
}

/// A user who may make no database is told which right is missing.
fn without_rights(scene: &Scene, port: &Port) {
    scene.run(&format!("create user poor identified by '{PASSWORD}'"));
    let schema = schema_of("poor", port);
    let refused = remote_server(Scheme::MySql).make(&schema).unwrap_err();
    let told = refused.to_string();
    assert!(
        told.contains("making the database spindle_test_1 on mysql://poor@"),
        "{told}"
    );
    let grant = "as an administrator: grant all on `spindle\\_%`.* to 'poor'@'%'";
    assert!(told.contains(grant), "{told}");
}

fn schema_of(user: &str, port: &Port) -> Schema {
    let url = format!("mysql://{user}:{PASSWORD}@127.0.0.1:{}", port.number);
    let schema = Schema {
        address: Address::parse(&url).unwrap(),
        password_variable: None,
        password: None,
        kind: SchemaKind::Database,
        name: "spindle_test_1".to_owned(),
        token: "ours".to_owned(),
    };
    schema.with_password().unwrap()
}

/// What a trial has prepared and not ended goes with it. What others have prepared stays, and is named where it keeps a
/// database from being dropped.
fn prepared(scene: &Scene, port: &Port) {
    let schema = schema_of("lab", port);
    let server = remote_server(Scheme::MySql);
    server.make(&schema).unwrap();
    scene.run("create table spindle_test_1.t (a integer)");
    let prepare = |connection: &mut dyn SqlConnection, name: &str| {
        for sql in [
            format!("xa start '{name}'"),
            "insert into spindle_test_1.t values (1)".to_owned(),
            format!("xa end '{name}'"),
            format!("xa prepare '{name}'"),
        ] {
            connection.run(&sql).unwrap();
        }
    };
    prepare(&mut *scene.server().0.connect().unwrap(), "theirs");
    let opened = server.open(&schema, Purpose::Trial).unwrap();
    let mut connection = opened.connect().unwrap();
    prepare(&mut *connection, "ours");
    let left = opened
        .check_ended(&mut *connection)
        .unwrap_err()
        .to_string();
    assert!(
        left.contains("prepared transaction 'ours' is left open"),
        "{left}"
    );
    drop(connection);
    opened.stop(ServerStop::Kill).unwrap();
    assert_eq!(open_on(scene), ["theirs"]);
    scene.run("set global innodb_lock_wait_timeout = 1");
    let told = server.drop_schema(&schema).unwrap_err().to_string();
    assert!(
        told.contains("may be in the way: theirs; look whose"),
        "{told}"
    );
    scene.run("xa rollback 'theirs'");
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
}

/// The names of prepared transactions.
fn open_on(scene: &Scene) -> Vec<String> {
    let mut open = Vec::new();
    let mut connection = scene.server().0.connect().unwrap();
    let asked = connection.ask("xa recover", &mut |row| {
        open.push(match row.value(3)? {
            Value::Bytes(name) => String::from_utf8_lossy(&name).into_owned(),
            _ => row.text(3)?,
        });
        Ok(())
    });
    asked.unwrap();
    open
}
