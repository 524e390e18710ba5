//! What keeps a run from its end on an existing server is told before anything is made there; limits of time hold for
//! clients alone.

use spindle_engines::sql::{
    Address, Purpose, Schema, SchemaGone, SchemaKind, Scheme, ServerStop, remote_server,
};

use super::{Ground, IS_MYSQL, is_missing, request, started};
use spindle_engines::sql::{ServerKind, server};

const PASSWORD: &str = "open-sesame-4711";

#[test]
fn limits_and_a_server_that_takes_no_changes_are_told() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let request = request(&[]);
    let directories = ground.directories("made");
    server(ServerKind::MariaDb)
        .create(&request, &directories)
        .unwrap();
    let running = started(&request, &directories);
    let run = |sql: &str| running.connect().unwrap().run(sql).unwrap();
    run(&format!("create user lab identified by '{PASSWORD}'"));
    run("grant all on `spindle\\_%`.* to lab");
    let (limit, sleep) = match *IS_MYSQL {
        true => ("max_execution_time = 300", "select sleep(1)"),
        false => ("max_statement_time = 0.3", "select sleep(1)"),
    };
    run(&format!("set global {limit}"));
    run("set global wait_timeout = 600");
    let socket = directories.data.join("spindle.sock");
    let url = format!(
        "mysql://lab:{PASSWORD}@localhost?socket={}",
        socket.display()
    );
    let schema = Schema {
        address: Address::parse(&url).unwrap(),
        password_variable: None,
        password: None,
        kind: SchemaKind::Database,
        name: "spindle_test_1".to_owned(),
        token: "ours".to_owned(),
    };
    let schema = schema.with_password().unwrap();
    let password = schema.password.as_ref();
    let server = remote_server(Scheme::MySql);
    let found = server.look(&schema.address, password).unwrap();
    let word = limit.split(' ').next().unwrap();
    for said in [
        word,
        "wait_timeout = 600: it ends a session that pauses longer",
    ] {
        assert!(
            found.notes.iter().any(|note| note.starts_with(said)),
            "{found:?}"
        );
    }
    let survey = server.survey(&schema.address, password).unwrap();
    assert_eq!(survey.limits.len(), 2, "{survey:?}");
    server.make(&schema).unwrap();
    let opened = server.open(&schema, Purpose::Load).unwrap();
    let slept = |is_limited: bool| {
        let mut told = 1;
        let connected = match is_limited {
            true => opened.connect(),
            false => opened.connect_unlimited(),
        };
        let asked = connected.unwrap().ask(sleep, &mut |row| {
            told = row.int(0)?;
            Ok(())
        });
        asked.is_ok() && told == 0
    };
    assert!(!slept(true));
    assert!(slept(false));
    opened.stop(ServerStop::Clean).unwrap();
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
    run("set global read_only = on");
    let refused = server
        .look(&schema.address, password)
        .unwrap_err()
        .to_string();
    let why = "nothing can be written there, as read_only is on, which a replica has: give the address of its primary";
    assert!(refused.contains(why), "{refused}");
    let survey = server.survey(&schema.address, password).unwrap();
    let missing = survey
        .rights
        .iter()
        .find_map(|right| right.missing.as_deref());
    assert!(missing.unwrap().starts_with(why), "{survey:?}");
    running.stop(ServerStop::Kill).unwrap();
}
