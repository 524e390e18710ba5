//! The client: every type of value, there and back; what errors become; loading.

use spindle_engines::sql::ServerStop;
use spindle_workload::sql::{LoadPart, SqlConnection, Value};
use spindle_workload::{Complaint, SessionError};

use super::home::{Home, is_installed, postgres, request, start};

type Connection = Box<dyn SqlConnection>;

/// A server without tables, and what to do on two connections to it.
fn on_a_server(work: impl FnOnce(&mut Connection, &mut Connection)) {
    if !is_installed() {
        return;
    }
    let home = Home::new();
    let request = request(&[]);
    let directories = home.directories("empty");
    postgres().create(&request, &directories).unwrap();
    let server = start(&request, &directories);
    work(
        &mut server.connect().unwrap(),
        &mut server.connect().unwrap(),
    );
    server.stop(ServerStop::Kill).unwrap();
}

const COLUMNS: [&str; 14] = [
    "k", "i2", "i4", "i8", "f4", "f8", "n", "n0", "t", "v", "c", "b", "d", "ts",
];
const TABLE: &str = "create table kinds (k bigint primary key, i2 smallint, i4 int, i8 bigint, f4 real, \
    f8 double precision, n numeric(15, 2), n0 numeric, t text, v varchar(20), c char(4), b bytea, d date, ts timestamp)";

fn rows() -> Vec<Vec<Value<'static>>> {
    let row = |k: i64, sign: i64, text: &'static str, bytes: &'static [u8]| {
        vec![
            Value::Int(k),
            Value::Int(sign * 32_767),
            Value::Int(sign * 2_147_483_647),
            Value::Int(sign * i64::MAX),
            Value::Float(sign as f64 * 0.5),
            Value::Float(sign as f64 * 1e300),
            Value::cents(sign * 123_456_789_012_345),
            Value::Decimal {
                digits: sign * 1_000_000,
                scale: 5,
            },
            Value::text(text),
            Value::text(text),
            Value::text("abcd"),
            Value::bytes(bytes),
            Value::Date((sign * 40_000) as i32),
            Value::Timestamp(sign * 1_700_000_000_123_456),
        ]
    };
    let mut nothing = vec![Value::Null; COLUMNS.len()];
    nothing[0] = Value::Int(3);
    vec![
        row(1, 1, "Grüße, \"x\"\n\t\\", &[0, 1, 255, b'\\', 0]),
        row(2, -1, "", &[]),
        nothing,
    ]
}

fn read_back(connection: &mut Connection) -> Vec<Vec<Value<'static>>> {
    let mut found = Vec::new();
    let asked = "select * from kinds order by k".to_owned();
    connection.prepare(&[asked]).unwrap();
    connection
        .query(0, &[], &mut |row| {
            let mut values = Vec::new();
            for column in 0..COLUMNS.len() {
                values.push(match row.value(column)? {
                    Value::Text(text) => Value::Text(text.into_owned().into()),
                    Value::Bytes(bytes) => Value::Bytes(bytes.into_owned().into()),
                    Value::Null => Value::Null,
                    Value::Int(number) => Value::Int(number),
                    Value::Float(number) => Value::Float(number),
                    Value::Decimal { digits, scale } => Value::Decimal { digits, scale },
                    Value::Date(day) => Value::Date(day),
                    Value::Timestamp(moment) => Value::Timestamp(moment),
                });
            }
            assert!(row.value(COLUMNS.len()).is_err());
            found.push(values);
            Ok(())
        })
        .unwrap();
    found
}

#[test]
fn every_type_of_value_goes_there_and_comes_back() {
    on_a_server(|connection, _| {
        connection.run(TABLE).unwrap();
        let places: Vec<String> = (1..=COLUMNS.len()).map(|n| format!("${n}")).collect();
        let insert = format!("insert into kinds values ({})", places.join(", "));
        connection.prepare(&[insert]).unwrap();
        for row in rows() {
            assert_eq!(connection.execute(0, &row), Ok(1));
        }
        assert_eq!(read_back(connection), rows());

        connection.run("delete from kinds").unwrap();
        let part = LoadPart {
            table: "kinds",
            columns: &COLUMNS,
            rows: Box::new(|sink| rows().iter().try_for_each(|row| sink.row(row))),
        };
        assert_eq!(connection.load(&part), Ok(3));
        assert_eq!(read_back(connection), rows());

        // The server's own arithmetic on them, so that reading and writing cannot be wrong alike.
        connection
            .ask(
                "select n::text, d::text, ts::text, encode(b, 'hex'), n0::text, avg(n) over () from kinds order by k",
                &mut |row| {
                    if row.text(0).is_ok_and(|text| text.starts_with('1')) {
                        assert_eq!(row.text(0)?, "1234567890123.45");
                        assert_eq!(row.text(1)?, "2079-07-08");
                        assert_eq!(row.text(2)?, "2023-11-14 22:13:20.123456");
                        assert_eq!(row.text(3)?, "0001ff5c00");
                        assert_eq!(row.text(4)?, "10.00000");
                        assert_eq!(row.float(5)?, 0.0);
                    }
                    Ok(())
                },
            )
            .unwrap();
    });
}

#[test]
fn many_rows_come_in_by_copy_and_out_again() {
    on_a_server(|connection, _| {
        connection
            .run("create table many (k bigint, filler text)")
            .unwrap();
        const ROWS: i64 = 20_000;
        let part = LoadPart {
            table: "many",
            columns: &["k", "filler"],
            rows: Box::new(|sink| {
                let long = "x".repeat(300);
                (0..ROWS).try_for_each(|k| sink.row(&[Value::Int(k), Value::text(&long)]))
            }),
        };
        assert_eq!(connection.load(&part), Ok(ROWS as u64));
        connection
            .prepare(&["select k, filler from many where k >= $1 order by k".to_owned()])
            .unwrap();
        let mut next = 0;
        let rows = connection.query(0, &[Value::Int(0)], &mut |row| {
            assert_eq!(row.int(0)?, next);
            assert_eq!(row.text(1)?.len(), 300);
            next += 1;
            Ok(())
        });
        assert_eq!((rows, next), (Ok(ROWS as u64), ROWS));

        // A part that breaks off leaves nothing, and the connection is of use.
        let broken = LoadPart {
            table: "many",
            columns: &["k", "filler"],
            rows: Box::new(|sink| {
                sink.row(&[Value::Int(-1), Value::Null])?;
                Err(SessionError::Failed("no more".to_owned()))
            }),
        };
        assert_eq!(
            connection.load(&broken),
            Err(SessionError::Failed("no more".to_owned()))
        );
        connection
            .ask("select count(*) from many", &mut |row| {
                assert_eq!(row.int(0)?, ROWS);
                Ok(())
            })
            .unwrap();
    });
}

#[test]
fn errors_of_the_server_are_told_apart() {
    on_a_server(|one, other| {
        let setup =
            "create table pair (k int primary key, n int); insert into pair values (1, 0), (2, 0)";
        one.run(setup).unwrap();
        let refused = one.run("insert into pair values (1, 1)");
        assert!(
            matches!(refused, Err(SessionError::Refused(_))),
            "{refused:?}"
        );
        let failed = one.run("select 1 / 0");
        assert!(matches!(failed, Err(SessionError::Failed(_))), "{failed:?}");
        for (wrong, complaint) in [
            ("selct 1", Complaint::Syntax),
            ("select * from nowhere", Complaint::Names),
        ] {
            let rejected = one.run(wrong).unwrap_err();
            assert_eq!(rejected.complaint(), Some(complaint), "{rejected:?}");
        }

        one.limit_statement(Some(std::time::Duration::from_millis(20)))
            .unwrap();
        let refused = one.run("select pg_sleep(10)");
        assert!(
            matches!(refused, Err(SessionError::Refused(_))),
            "{refused:?}"
        );
        one.limit_statement(None).unwrap();

        // A statement failed in the transaction: its commit must not seem to be one.
        one.begin().unwrap();
        one.run("select 1 / 0").unwrap_err();
        assert!(matches!(one.commit(), Err(SessionError::Failed(_))));
        one.rollback().unwrap();

        for connection in [&mut *one, &mut *other] {
            connection.begin().unwrap();
            connection
                .run("set transaction isolation level repeatable read")
                .unwrap();
            connection
                .ask("select sum(n) from pair", &mut |_| Ok(()))
                .unwrap();
        }
        one.run("update pair set n = 1 where k = 1").unwrap();
        one.commit().unwrap();
        let retry = other.run("update pair set n = 2 where k = 1");
        assert!(matches!(retry, Err(SessionError::Retry(_))), "{retry:?}");
        other.rollback().unwrap();

        for (connection, k) in [(&mut *one, 1), (&mut *other, 2)] {
            connection.begin().unwrap();
            connection
                .run(&format!("update pair set n = 3 where k = {k}"))
                .unwrap();
        }
        let results = std::thread::scope(|scope| {
            let first = scope.spawn(|| one.run("update pair set n = 4 where k = 2"));
            let second = other.run("update pair set n = 4 where k = 1");
            if second.is_err() {
                other.rollback().unwrap();
            }
            [first.join().unwrap(), second]
        });
        let deadlocks = results
            .iter()
            .filter(|result| matches!(result, Err(SessionError::Deadlock(_))));
        assert_eq!(deadlocks.count(), 1, "{results:?}");
        one.rollback().unwrap();
        other.rollback().unwrap();

        let mut id = 0;
        other
            .ask("select pg_backend_pid()", &mut |row| {
                id = row.int(0)?;
                Ok(())
            })
            .unwrap();
        assert!(!other.is_closed());
        one.ask(&format!("select pg_terminate_backend({id})"), &mut |_| {
            Ok(())
        })
        .unwrap();
        let lost = other.run("select 1");
        assert!(matches!(lost, Err(SessionError::Lost(_))), "{lost:?}");
        assert!(other.is_closed());
    });
}
