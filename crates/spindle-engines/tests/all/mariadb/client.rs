//! What goes through a connection: values, errors.

use std::time::Duration;

use spindle_engines::ErrorKind;
use spindle_engines::sql::{ServerKind, ServerStop, server};
use spindle_workload::sql::{LoadPart, SqlConnection, Value};
use spindle_workload::{Complaint, SessionError};

use super::{Ground, is_missing, request, started};

/// Every kind of value, and texts and bytes that are hard to carry.
fn values() -> Vec<Vec<Value<'static>>> {
    let every_byte: Vec<u8> = (0..=255).collect();
    vec![
        vec![
            Value::Int(i64::MIN),
            Value::text("it's a \\ tab\t, a line\n, \\N and ümlaut"),
            Value::Bytes(every_byte.into()),
            Value::cents(-1234),
            Value::Float(-0.125),
            Value::Date(10_561),
            Value::Timestamp(951_782_399_000_001),
        ],
        vec![Value::Null; 7],
        vec![
            Value::Int(i64::MAX),
            Value::text(""),
            Value::bytes(b"\\N"),
            Value::cents(5),
            Value::Float(1e300),
            Value::Date(-1),
            Value::Timestamp(0),
        ],
    ]
}

const COLUMNS: [&str; 7] = ["n", "t", "b", "d", "f", "day", "at"];

fn all_rows(connection: &mut dyn SqlConnection, prepared: bool) -> Vec<Vec<Value<'static>>> {
    let mut found = Vec::new();
    let mut visit = |row: &dyn spindle_workload::sql::SqlRow| {
        let owned = |column| -> Result<Value<'static>, SessionError> {
            Ok(match row.value(column)? {
                Value::Text(text) => Value::Text(text.into_owned().into()),
                Value::Bytes(bytes) => Value::Bytes(bytes.into_owned().into()),
                Value::Int(number) => Value::Int(number),
                Value::Float(number) => Value::Float(number),
                Value::Decimal { digits, scale } => Value::Decimal { digits, scale },
                Value::Date(day) => Value::Date(day),
                Value::Timestamp(at) => Value::Timestamp(at),
                Value::Null => Value::Null,
            })
        };
        found.push((0..7).map(owned).collect::<Result<_, _>>()?);
        Ok(())
    };
    if prepared {
        let rows = connection.query(1, &[], &mut visit).unwrap();
        assert_eq!(rows, 3);
    } else {
        let sql = "select n, t, b, d, f, day, at from v order by id";
        connection.ask(sql, &mut visit).unwrap();
    }
    found
}

#[test]
fn every_value_comes_back() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, made) = (request(&[]), ground.directories("made"));
    server(ServerKind::MariaDb).create(&request, &made).unwrap();
    let running = started(&request, &made);
    let mut connection = running.connect().unwrap();
    let table = "create table v (id bigint primary key auto_increment, n bigint, t varchar(100), b varbinary(256), \
                 d decimal(12, 2), f double, day date, at datetime(6))";
    connection.run(table).unwrap();
    let statements = [
        "insert into v (n, t, b, d, f, day, at) values ($1, $2, $3, $4, $5, $6, $7)".to_owned(),
        "select n, t, b, d, f, day, at from v order by id".to_owned(),
        "select cast($2 - $1 - $1 as signed), sum(n) from v where n > $1".to_owned(),
        "update v set n = n where id = $1".to_owned(),
    ];
    let wrong = connection.prepare(&["select nothing from nowhere".to_owned()]);
    assert!(matches!(wrong, Err(SessionError::Failed(_))), "{wrong:?}");
    let rejected = connection.run("selct 1").unwrap_err();
    assert_eq!(
        rejected.complaint(),
        Some(Complaint::Syntax),
        "{rejected:?}"
    );
    connection.prepare(&statements).unwrap();
    connection.begin().unwrap();
    for row in values() {
        assert_eq!(connection.execute(0, &row).unwrap(), 1);
    }
    connection.commit().unwrap();
    assert_eq!(all_rows(&mut *connection, true), values());
    assert_eq!(all_rows(&mut *connection, false), values());
    // A parameter that stands twice, and a sum that a decimal carries.
    let parameters = [Value::Int(2), Value::Int(10)];
    let asked = connection.query(2, &parameters, &mut |row| {
        assert_eq!(row.int(0)?, 6);
        assert_eq!(row.int(1)?, i64::MAX);
        Ok(())
    });
    assert_eq!(asked.unwrap(), 1);
    // A row that is found and not changed was found.
    assert_eq!(connection.execute(3, &[Value::Int(1)]).unwrap(), 1);

    connection.run("delete from v").unwrap();
    let part = |columns: &'static [&'static str]| LoadPart {
        table: "v",
        columns,
        rows: Box::new(|sink| values().iter().try_for_each(|row| sink.row(row))),
    };
    assert_eq!(connection.load(&part(&COLUMNS)).unwrap(), 3);
    assert_eq!(all_rows(&mut *connection, true), values());
    // What a load would leave out or change is an error.
    let swapped = ["t", "n", "b", "d", "f", "day", "at"];
    let refused = connection.load(&part(Box::leak(Box::new(swapped))));
    assert!(
        matches!(refused, Err(SessionError::Failed(_))),
        "{refused:?}"
    );
    connection.run("select 1").unwrap();
    drop(connection);
    running.stop(ServerStop::Clean).unwrap();
}

#[test]
fn errors_are_told_apart() {
    if is_missing() {
        return;
    }
    let ground = Ground::new();
    let (request, made) = (request(&[]), ground.directories("made"));
    server(ServerKind::MariaDb).create(&request, &made).unwrap();
    let running = started(&request, &made);
    let connect = || running.connect().unwrap();
    let (mut one, mut other) = (connect(), connect());
    one.run("create table t (id int primary key, n int not null)")
        .unwrap();
    one.run("insert into t values (1, 1), (2, 2)").unwrap();
    let twice = one.run("insert into t values (1, 1)");
    assert!(matches!(twice, Err(SessionError::Refused(_))), "{twice:?}");
    // Each has what the other wants.
    one.begin().unwrap();
    one.run("update t set n = 3 where id = 1").unwrap();
    other.begin().unwrap();
    other.run("update t set n = 3 where id = 2").unwrap();
    let (first, second) = std::thread::scope(|scope| {
        let waits = scope.spawn(|| one.run("update t set n = 4 where id = 2"));
        std::thread::sleep(Duration::from_millis(200));
        let second = other.run("update t set n = 4 where id = 1");
        (waits.join().unwrap(), second)
    });
    let both = [first, second];
    assert!(
        both.iter()
            .any(|result| matches!(result, Err(SessionError::Deadlock(_)))),
        "{both:?}"
    );
    one.rollback().unwrap();
    other.rollback().unwrap();
    other.run("set innodb_lock_wait_timeout = 1").unwrap();
    one.begin().unwrap();
    one.run("update t set n = 3 where id = 1").unwrap();
    let waited = other.run("update t set n = 4 where id = 1");
    assert!(matches!(waited, Err(SessionError::Retry(_))), "{waited:?}");
    assert!(!one.is_closed());
    running.stop(ServerStop::Kill).unwrap();
    let lost = one.run("select 1");
    assert!(matches!(lost, Err(SessionError::Lost(_))), "{lost:?}");
    assert!(one.is_closed());
    assert!(matches!(running.connect(), Err(SessionError::Lost(_))));
    let failure = running.failure().unwrap();
    assert_eq!(failure.kind(), ErrorKind::ServerGone);
    let failure = failure.to_string();
    assert!(
        failure.contains("the server has ended (signal: 9"),
        "{failure}"
    );
}
