//! Logs as a whole, those of strangers among them: what is taken, what is left out and counted, and what is never
//! written.

use std::io::Cursor;

use spindle_workload::sql::Dialect;

use super::super::error::NothingToReplay;
use super::lines::Lines;
use super::recorder::{Made, Recorder};
use super::wording::{Effect, judge};
use super::{general, postgres, slow};

fn read_as(form: &str, log: &[u8]) -> Result<Made, NothingToReplay> {
    let dialect = match form {
        "csv" | "json" => Dialect::Postgres,
        _ => Dialect::MariaDb,
    };
    let mut recorder = Recorder::new(dialect, None);
    let mut lines = Lines::new(Cursor::new(log));
    let read = match form {
        "csv" => postgres::read_csv(&mut lines, &mut recorder),
        "json" => postgres::read_json(&mut lines, &mut recorder),
        "slow" => slow::read(&mut lines, &mut recorder),
        _ => general::read(&mut lines, &mut recorder),
    };
    read.unwrap();
    recorder.finish()
}

/// The lines of a recording but for the first.
fn lines_of(made: &Made) -> Vec<String> {
    let mut file = Vec::new();
    made.write(&mut file).unwrap();
    let text = String::from_utf8(file).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// A record of a csvlog.
fn csv(ms: u64, session: &str, severity: &str, message: &str, detail: &str) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    format!(
        "2026-11-24 09:00:00.{ms:03} UTC,\"ann\",\"shop\",7,\"[local]\",{session},1,\"SELECT\",2026-11-24 08:00:00 UTC,3/4,0,{severity},00000,{},{},,,,,,,,\"psql\",\"client backend\",,0\n",
        quoted(message),
        quoted(detail)
    )
}

const SLOW: &str = "mariadbd, Version: 10.11.6-MariaDB (Debian). started with:
Tcp port: 0  Unix socket: /run/x.sock
Time\t\t    Id Command\tArgument
# Time: 261124  9:00:00
# User@Host: ann[ann] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.250000  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1
# Rows_affected: 0  Bytes_sent: 60
use shop;
SET timestamp=1795510800;
select 'a
# b';
# User@Host: ann[ann] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1
SET timestamp=1795510800;
set autocommit=0;
# User@Host: ann[ann] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1
SET timestamp=1795510801;
delete from t;
# User@Host: ann[ann] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1
SET timestamp=1795510802;
COMMIT;
# User@Host: ann[ann] @ localhost []
# Thread_id: 5  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1
SET timestamp=1795510802;
# administrator command: Quit;
";
const MYSQL_SLOW: &str = "# Time: 2026-11-24T09:00:01.500000Z
# User@Host: ann[ann] @ localhost []  Id:     8
# Query_time: 0.500000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
use shop;
SET timestamp=1795510801;
select 1;
# Time: 2026-11-24T09:00:01.750000Z
# User@Host: ann[ann] @ localhost []  Id:     8
# Query_time: 0.250000  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 0
SET timestamp=1795510801;
select 2;
";
const GENERAL: &str = "261124  9:00:00\t     5 Connect\tann@localhost on shop using Socket
\t\t     5 Query\tbegin
\t\t     6 Connect\tbob@localhost on shop using TCP/IP
261124  9:00:01\t     5 Prepare\tinsert into t values (?)
\t\t     5 Execute\tinsert into t values ('a
b')
\t\t     6 Query\tSET PASSWORD = 'sesame'
\t\t     5 Query\tcommit
\t\t     5 Quit\t
";

#[test]
fn what_postgresql_logs_becomes_transactions_with_their_moments() {
    let log = [
        csv(
            100,
            "s.1",
            "LOG",
            "duration: 0.100 ms  parse <unnamed>: select 1",
            "",
        ),
        csv(
            110,
            "s.1",
            "LOG",
            "duration: 10.000 ms  execute <unnamed>: select $1, $2 -- \"x\"\nfrom t",
            "parameters: $1 = 'it''s', $2 = NULL",
        ),
        csv(150, "s.2", "LOG", "statement: BEGIN;", ""),
        csv(151, "s.2", "LOG", "duration: 1.000 ms", ""),
        csv(
            200,
            "s.1",
            "LOG",
            "duration: 5.000 ms  execute s1: select $1, $2",
            "Parameters: $1 = '1', $2 = '2'",
        ),
        csv(
            210,
            "s.1",
            "LOG",
            "duration: 5.000 ms  execute s1: select $1, $2",
            "",
        ),
        csv(300, "s.2", "LOG", "statement: update t set a = 1", ""),
        csv(301, "s.2", "ERROR", "no such column", ""),
        csv(
            302,
            "s.2",
            "LOG",
            "duration: 0.500 ms  statement: commit",
            "",
        ),
        csv(
            303,
            "s.2",
            "LOG",
            "duration: 0.500 ms  statement: begin; select 1; end",
            "",
        ),
    ]
    .concat();
    let made = read_as("csv", log.as_bytes()).unwrap();
    assert_eq!(
        lines_of(&made),
        [
            r#"{"text":"select $1, $2 -- \"x\"\nfrom t"}"#,
            r#"{"text":"select $1, $2"}"#,
            r#"{"session":{"from_us":0,"to_us":100000,"transactions":2}}"#,
            r#"[0,[[0,0,["it's",null]]]]"#,
            r#"[95000,[[0,1,["1","2"]]]]"#,
            r#"{"session":{"from_us":50000,"to_us":203000,"transactions":2}}"#,
            r#"[50000,[[0,"begin"],[151500,"rollback"]]]"#,
            r#"[202500,[[0,"begin; select 1; end"]]]"#,
        ]
    );
    let left: Vec<u64> = made.left.values().copied().collect();
    assert_eq!(
        (left, made.clients, &*made.database),
        (vec![1, 1], 2, "shop")
    );
    let json = r#"{"timestamp":"2026-11-24 09:00:00.110 UTC","dbname":"shop","session_id":"s.1","error_severity":"LOG","message":"duration: 10.000 ms  execute x: select $1","detail":"Parameters: $1 = '1'"}"#;
    let made = read_as("json", format!("{json}\n").as_bytes()).unwrap();
    assert_eq!(lines_of(&made)[2], r#"[0,[[0,0,["1"]]]]"#);
}

#[test]
fn what_mariadb_and_mysql_log_becomes_transactions() {
    let made = read_as("slow", SLOW.as_bytes()).unwrap();
    let session = r#"{"session":{"from_us":0,"to_us":2000100,"transactions":2}}"#;
    let lines = [
        session,
        r##"[0,[[0,"select 'a\n# b'"]]]"##,
        r#"[1000000,[[0,"begin"],[0,"delete from t"],[1000000,"commit"]]]"#,
    ];
    assert_eq!(lines_of(&made), lines);
    let made = read_as("slow", MYSQL_SLOW.as_bytes()).unwrap();
    assert_eq!(
        lines_of(&made)[1..],
        [r#"[0,[[0,"select 1"]]]"#, r#"[500000,[[0,"select 2"]]]"#]
    );
    let made = read_as("general", GENERAL.as_bytes()).unwrap();
    let transaction =
        r#"[0,[[0,"begin"],[1000000,"insert into t values ('a\nb')"],[1000000,"commit"]]]"#;
    assert_eq!(lines_of(&made)[1..], [transaction]);
    assert_eq!(made.left.values().sum::<u64>(), 1);
}

#[test]
fn broken_logs_are_read_as_far_as_they_are_whole() {
    let good = |ms| {
        csv(
            ms,
            "s.1",
            "LOG",
            "duration: 1.000 ms  statement: select 1",
            "",
        )
    };
    let half = &good(2)[..80];
    for (broken, reason) in [
        (format!("{half}\n").into_bytes(), "no"),
        (b"a,b\n".to_vec(), "not as many columns"),
        (b"\"\n".to_vec(), "no record"),
        (vec![b'x', 0, b'\n'], "a zero byte"),
        (vec![0xff, b'\n'], "not UTF-8"),
        (vec![b'x'; 17 << 20], "longer than"),
        (
            good(3).replace("2026-11-24 09", "x").into_bytes(),
            "no time",
        ),
        (
            good(3).replace("1.000 ms", "x ms").into_bytes(),
            "no number",
        ),
    ] {
        let mut log = good(1).into_bytes();
        log.extend(&broken);
        if broken.last() != Some(&b'\n') {
            log.push(b'\n');
        }
        log.extend(good(4).into_bytes());
        let made = read_as("csv", &log).unwrap();
        assert_eq!(
            (made.head.transactions, made.skipped.count),
            (2, 1),
            "{reason}"
        );
        let (line, why) = made.skipped.first.unwrap();
        assert!(line == 2 && why.contains(reason), "{line}: {why}");
    }
    let cut = [good(1).as_bytes(), half.as_bytes()].concat();
    let made = read_as("csv", &cut).unwrap();
    assert_eq!((made.head.transactions, made.skipped.count), (1, 1));
}

/// Whatever the bytes: an error or a recording, never a panic.
#[test]
fn any_bytes_are_read_or_refused() {
    let csv = [csv(
        1,
        "s",
        "LOG",
        "duration: 1.0 ms  execute x: select $1",
        "parameters: $1 = 'a'",
    )]
    .concat();
    let json = r#"{"timestamp":"2026-11-24 09:00:00.110 UTC","error_severity":"LOG","message":"statement: begin"}"#;
    let mut chance: u64 = 7;
    let mut below = |end: usize| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (chance >> 33) as usize % end
    };
    for (form, log) in [
        ("csv", &*csv),
        ("json", json),
        ("slow", SLOW),
        ("slow", MYSQL_SLOW),
        ("general", GENERAL),
    ] {
        for _ in 0..400 {
            let mut bytes = log.as_bytes().to_vec();
            for _ in 0..1 + below(6) {
                let place = below(bytes.len());
                let other = b"\0\n'\"\\#$;\xff\t ,0"[below(13)];
                match below(3) {
                    0 => bytes[place] = other,
                    1 => bytes.insert(place, other),
                    _ => bytes.truncate(place + 1),
                }
            }
            if let Ok(made) = read_as(form, &bytes) {
                lines_of(&made);
            }
        }
    }
}

#[test]
fn nothing_that_tells_a_password_is_taken() {
    for text in [
        "alter user ann password 'sesame'",
        "ALTER /* x */ ROLE ann WITH ENCRYPTED PASSWORD 'sesame'",
        "select 1; create user ann password 'sesame'",
        "/* a */ -- b\n create role ann",
        "create user ann identified by 'sesame'",
        "grant all on *.* to ann identified by 'sesame'",
        "set password = 'sesame'",
        "set password for ann = password('sesame')",
        "select 'a\\'; alter user ann identified by ''sesame'''",
        "explain create user ann",
        "create user mapping for ann server x options (password 'sesame')",
        "create server x foreign data wrapper y options (password 'sesame')",
        "create subscription x connection 'password=sesame' publication y",
        "do $$ begin execute 'alter user ann password ''sesame'''; end $$",
        "/*!50000 alter user ann identified by 'sesame' */",
        "change master to master_password = 'sesame'",
    ] {
        for dialect in [Dialect::Postgres, Dialect::MariaDb] {
            let reason = judge(text, dialect).expect_err(text);
            assert!(!reason.contains("sesame"));
        }
    }
}

#[test]
fn what_reaches_beyond_the_database_is_left_out() {
    for (text, dialect) in [
        ("copy t to program 'rm'", Dialect::Postgres),
        ("select \"pg_read_file\"('/etc/passwd')", Dialect::Postgres),
        (
            "select pg_catalog.pg_terminate_backend(1)",
            Dialect::Postgres,
        ),
        (
            "create function f() returns int language c as 'x'",
            Dialect::Postgres,
        ),
        ("create extension x", Dialect::Postgres),
        ("alter system set x = 1", Dialect::Postgres),
        ("set role ann", Dialect::Postgres),
        ("drop database shop", Dialect::Postgres),
        ("select 1 into outfile '/x'", Dialect::MariaDb),
        ("select 1--1 into outfile '/x'", Dialect::MariaDb),
        ("select 1 /*!into outfile '/x'*/", Dialect::MariaDb),
        ("select load_file('/x')", Dialect::MariaDb),
        ("set global x = 1", Dialect::MariaDb),
        ("set @@global.x = 1", Dialect::MariaDb),
        ("prepare s from 'x'", Dialect::MariaDb),
        ("kill 5", Dialect::MariaDb),
        (
            "create table t (a int) data directory = '/x'",
            Dialect::MariaDb,
        ),
        (
            "begin not atomic execute immediate concat('select 1 into out', 'file ''/x''''); end",
            Dialect::MariaDb,
        ),
        ("begin not atomic set global x = 1", Dialect::MariaDb),
        (
            "set @a = 1, @@global.general_log_file = '/x'",
            Dialect::MariaDb,
        ),
        ("set autocommit = 0, global x = 1", Dialect::MariaDb),
        ("set names utf8, @@global.x = 1", Dialect::MariaDb),
        (
            "create table t (a int) engine = 'FEDERATED' connection = 'mysql://ann:sesame@h/d/t'",
            Dialect::MariaDb,
        ),
        (
            "create table t (a int) engine = connect table_type = csv",
            Dialect::MariaDb,
        ),
        ("alter table t engine = 'SPIDER'", Dialect::MariaDb),
        ("set standard_conforming_strings = off", Dialect::Postgres),
        (
            "select query_to_xml_and_xmlschema('select 1', true, false, '')",
            Dialect::Postgres,
        ),
        ("select lo_from_bytea(4242, 'x')", Dialect::Postgres),
        (
            "select U&\"lo!005fexport\" uescape '!' (1, '/x')",
            Dialect::Postgres,
        ),
        ("select 'open", Dialect::Postgres),
        ("", Dialect::Postgres),
    ] {
        assert!(judge(text, dialect).is_err(), "{text}");
    }
    for (text, effect) in [
        ("start transaction read only", Effect::Begins),
        (
            "begin isolation level repeatable read, read write",
            Effect::Begins,
        ),
        ("set autocommit = 0", Effect::Autocommit(false)),
        ("create table t (a int) engine = InnoDB", Effect::Statement),
        ("END", Effect::Commits),
        ("rollback work", Effect::RollsBack),
        ("rollback to savepoint a", Effect::Statement),
        (
            "update users set password = 'x' where name = 'a;b'",
            Effect::Statement,
        ),
        ("with a as (select 1) select * from a", Effect::Statement),
        ("create temp table t (a int)", Effect::Statement),
        ("set search_path = shop", Effect::Statement),
    ] {
        assert_eq!(
            judge(text, Dialect::Postgres).unwrap().effects,
            [effect],
            "{text}"
        );
    }
    assert_eq!(
        judge("select $1, $12, $$ $99 $$", Dialect::Postgres)
            .unwrap()
            .parameters,
        12
    );
}
