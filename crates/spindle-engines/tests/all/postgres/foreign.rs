//! A schema on an existing server: made once, known by its token, loaded again as often as one likes.

use spindle_engines::sql::foreign::reload;
use spindle_engines::sql::{
    Purpose, Schema, SchemaGone, SchemaKind, Scheme, ServerStop, remote_server,
};

use super::home::{Home, is_installed, place_on, request, workload};

#[test]
fn a_schema_is_dropped_only_by_its_token() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let (directories, running) = home.started(&request);
    let schema = place_on(&directories, SchemaKind::Schema, "spindle_test_1");
    let server = remote_server(Scheme::Postgres);
    let without = server.make(&schema).unwrap_err().to_string();
    assert!(
        without.contains("asks for a password, and there is none"),
        "{without}"
    );
    let schema = schema.with_password().unwrap();
    let found = server
        .look(&schema.address, schema.password.as_ref())
        .unwrap();
    assert!(found.version.starts_with("PostgreSQL"), "{found:?}");
    assert!(
        found.settings.contains(&"fsync = on".to_owned()),
        "{found:?}"
    );
    server.make(&schema).unwrap();
    let twice = server.make(&schema).unwrap_err().to_string();
    assert!(twice.contains("already exists"), "{twice}");
    let others = Schema {
        token: "theirs".to_owned(),
        ..schema.clone()
    };
    assert_eq!(server.drop_schema(&others).unwrap(), SchemaGone::NotOurs);
    let refused = reload(server, &others, &*workload(), &std::sync::Arc::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("not this run's"), "{refused}");
    for _ in 0..2 {
        reload(server, &schema, &*workload(), &std::sync::Arc::default()).unwrap();
        let opened = server.open(&schema, Purpose::Trial).unwrap();
        let mut connection = opened.connect().unwrap();
        let found = workload().check(&mut *connection, &[]);
        assert!(found.is_ok(), "{found:?}");
        // It would be in the way of itself, had it not gone with the schema.
        connection
            .run("create table more as select 1 as n")
            .unwrap();
        let segments = opened.segments();
        assert!(
            segments.iter().any(|segment| segment.name == "more"),
            "{segments:?}"
        );
        opened.stop(ServerStop::Kill).unwrap();
    }
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::Dropped);
    assert_eq!(server.drop_schema(&schema).unwrap(), SchemaGone::WasNot);
    running.stop(ServerStop::Kill).unwrap();
}
