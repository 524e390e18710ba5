//! Logs as a whole, those of strangers among them: what is taken, what is left out and counted, and what is never
//! written.

use std::io::Cursor;

use spindle_workload::sql::Dialect;

use super::super::error::NothingToReplay;
use super::lines::Lines;
use super::recorder::{FinishedRecording, Recorder};
use super::wording::{TransactionEffect, judge};
use super::{general, postgres, slow};

fn read_as(form: &str, log: &[u8]) -> Result<FinishedRecording, NothingToReplay> {
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
fn lines_of(made: &FinishedRecording) -> Vec<String> {
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

/// Statements of one session, each so many milliseconds after the one before, as a server logs them.
fn session_of(form: &str, statements: &[&str]) -> Vec<String> {
    let log: String = match form {
        "csv" => (0..)
            .zip(statements)
            .map(|(ms, text)| {
                csv(
                    ms,
                    "s.1",
                    "LOG",
                    &format!("duration: 0.000 ms  statement: {text}"),
                    "",
                )
            })
            .collect(),
        _ => statements
            .iter()
            .map(|text| format!("261124  9:00:00\t     5 Query\t{text}\n"))
            .collect(),
    };
    let made = read_as(form, log.as_bytes()).unwrap();
    let lines = lines_of(&made);
    let transactions = lines.iter().filter(|line| line.starts_with('['));
    let texts = |line: &String| {
        let (_, steps): (u64, Vec<(u64, String)>) = serde_json::from_str(line).unwrap();
        let texts: Vec<String> = steps.into_iter().map(|(_, text)| text).collect();
        texts.join("; ")
    };
    transactions.map(texts).collect()
}

#[test]
fn what_ends_a_transaction_is_never_left_out() {
    for form in ["csv", "general"] {
        for (statements, transactions) in [
            (
                &[
                    "begin",
                    "update a",
                    "commit and chain",
                    "update b",
                    "rollback",
                ][..],
                &["begin; update a; commit", "begin; update b; rollback"][..],
            ),
            (
                &[
                    "start transaction read only",
                    "select 1",
                    "rollback and chain",
                    "select 2",
                    "commit",
                ],
                &[
                    "start transaction read only; select 1; rollback",
                    "start transaction read only; select 2; commit",
                ],
            ),
            (
                &["begin", "update a", "commit and no chain", "update b"],
                &["begin; update a; commit", "update b"],
            ),
            // What is left out for another reason ends it, too.
            (
                &["begin", "update a", "grant x to y; commit", "update b"],
                &["begin; update a; commit", "update b"],
            ),
        ] {
            assert_eq!(
                session_of(form, statements),
                transactions,
                "{form}: {statements:?}"
            );
        }
    }
}

#[test]
fn what_is_prepared_is_committed_or_rolled_back_there() {
    let kept = "begin; update a; commit";
    let undone = "begin; update a; rollback";
    let alone = "update b";
    for (form, statements, transactions) in [
        (
            "csv",
            &[
                "begin",
                "update a",
                "prepare transaction 'x'",
                "update b",
                "commit prepared 'x'",
            ][..],
            [kept, alone],
        ),
        (
            "csv",
            &[
                "begin",
                "update a",
                "PREPARE TRANSACTION 'x'",
                "update b",
                "ROLLBACK PREPARED 'x'",
            ],
            [undone, alone],
        ),
        (
            "csv",
            &[
                "begin",
                "update a",
                "prepare transaction 'x'",
                "rollback prepared 'y'",
                "update b",
            ],
            [kept, alone],
        ),
        (
            "general",
            &[
                "xa start 'x','y',1",
                "update a",
                "xa end 'x','y',1",
                "xa prepare 'x','y',1",
                "xa commit 'x','y',1",
                "update b",
            ],
            [kept, alone],
        ),
        (
            "general",
            &[
                "xa start 'x'",
                "update a",
                "xa end 'x'",
                "xa prepare 'x'",
                "xa rollback 'x'",
                "update b",
            ],
            [undone, alone],
        ),
        (
            "general",
            &[
                "xa begin 'x'",
                "update a",
                "xa end 'x'",
                "xa commit 'x' one phase",
                "update b",
            ],
            [kept, alone],
        ),
        (
            "general",
            &[
                "xa begin 'x'",
                "update a",
                "xa end 'x'",
                "xa rollback 'x'",
                "update b",
            ],
            [undone, alone],
        ),
    ] {
        assert_eq!(
            session_of(form, statements),
            transactions,
            "{form}: {statements:?}"
        );
    }
}

#[test]
fn names_of_prepared_transactions_have_all_their_parts() {
    let two = [
        "xa start 0x61,0x01,0x1",
        "update a",
        "xa end 0x61,0x01,0x1",
        "xa prepare 0x61,0x01,0x1",
        "xa start 0x61,0x02,0x1",
        "update b",
        "xa end 0x61,0x02,0x1",
        "xa prepare 0x61,0x02,0x1",
        "xa rollback 0x61,0x02,0x1",
        "xa commit 0x61,0x01,0x1",
    ];
    let transactions = ["begin; update a; commit", "begin; update b; rollback"];
    assert_eq!(session_of("general", &two), transactions);
    let marked = [
        "begin",
        "update a",
        "prepare transaction 'x' /* trace='1' */",
        "rollback prepared 'x' /* trace='2' */",
    ];
    assert_eq!(session_of("csv", &marked), ["begin; update a; rollback"]);
}

#[test]
fn a_commit_that_failed_has_undone_its_transaction() {
    let log = |ms, text: &str| {
        csv(
            ms,
            "s.1",
            "LOG",
            &format!("duration: 0.000 ms  statement: {text}"),
            "",
        )
    };
    let failed = csv(3, "s.1", "ERROR", "could not serialize access", "")
        .replace(",,,,,,,,\"psql\"", ",,,,,\"commit\",,,\"psql\"");
    let log = [
        log(1, "begin"),
        log(2, "update a"),
        failed,
        log(4, "begin"),
        log(5, "update b"),
        log(6, "commit"),
    ];
    let made = read_as("csv", log.concat().as_bytes()).unwrap();
    let lines = lines_of(&made).join("\n");
    assert!(
        lines.contains(r#""update a"],[1000,"rollback"]"#),
        "{lines}"
    );
    assert!(lines.contains(r#""update b"],[2000,"commit"]"#), "{lines}");
}

#[test]
fn what_mariadb_commits_implicitly_is_committed() {
    for (statements, transactions) in [
        (
            &[
                "begin",
                "update a",
                "grant x on y to z",
                "update b",
                "rollback",
            ][..],
            &["begin; update a; commit", "update b"][..],
        ),
        (
            &["begin", "update a", "truncate c", "update b", "rollback"],
            &["begin; update a; commit", "truncate c", "update b"],
        ),
        (
            &["begin", "create temporary table t (a int)", "rollback"],
            &["begin; create temporary table t (a int); rollback"],
        ),
        (
            &[
                "begin",
                "update a",
                "commit and chain no release",
                "update b",
                "commit",
            ],
            &["begin; update a; commit", "begin; update b; commit"],
        ),
        // It was on already.
        (
            &["begin", "update a", "set autocommit = 1", "rollback"],
            &["begin; update a; rollback"],
        ),
        (
            &["set autocommit = 0", "update a; update b", "rollback"],
            &["begin; update a; update b; rollback"],
        ),
        (
            &[
                "set autocommit = 0",
                "update a",
                "commit; update b",
                "update c",
                "rollback",
            ],
            &["begin; update a; commit", "begin; update c; rollback"],
        ),
    ] {
        assert_eq!(
            session_of("general", statements),
            transactions,
            "{statements:?}"
        );
    }
}

#[test]
fn autocommit_is_known_however_it_is_set() {
    for off in [
        "set autocommit=0",
        "set session autocommit = off",
        "SET LOCAL autocommit = FALSE",
        "set @@session.autocommit=0",
        "set @@autocommit = 0",
        "set sql_mode = 'ANSI', autocommit = 0",
        "set names utf8mb4, session autocommit = 0",
        "set autocommit = 0; select 1",
    ] {
        assert_eq!(
            session_of("general", &[off, "update a", "rollback"]),
            ["begin; update a; rollback"],
            "{off}"
        );
    }
    for other in [
        "set global autocommit = 0",
        "set @@global.autocommit = 0",
        "set @x = 0",
    ] {
        let transactions = session_of("general", &[other, "update a", "rollback"]);
        assert!(
            transactions.contains(&"update a".to_owned()),
            "{other}: {transactions:?}"
        );
    }
}

#[test]
fn parameters_that_may_be_shortened_are_no_values() {
    let log = |value: &str| {
        let detail = format!("parameters: $1 = '{value}', $2 = '7'");
        let execute = csv(
            1,
            "s.1",
            "LOG",
            "duration: 0.100 ms  execute x: select $1, $2",
            &detail,
        );
        let other = csv(
            2,
            "s.1",
            "LOG",
            "duration: 0.100 ms  statement: select 1",
            "",
        );
        read_as("csv", [execute, other].concat().as_bytes()).unwrap()
    };
    let whole = log("12345");
    assert_eq!((whole.head.statements, whole.left.len()), (2, 0));
    let shortened = log("12345...");
    assert_eq!((shortened.head.statements, shortened.left.len()), (1, 1));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_log() {
    let log = csv(
        1,
        "s.1",
        "LOG",
        "duration: 0.100 ms  statement: select 1",
        "",
    );
    let made = read_as("csv", format!("\u{feff}{log}").as_bytes()).unwrap();
    assert_eq!((made.head.statements, made.skipped.count), (1, 0));
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
            "not a number",
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
        assert!(
            line == 2 && why.to_string().contains(reason),
            "{line}: {why}"
        );
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
            let left = judge(text, dialect).expect_err(text);
            assert!(!left.reason.contains("sesame"));
        }
    }
}

#[test]
fn what_reaches_beyond_the_database_is_left_out() {
    use TransactionEffect::{Autocommit, Begins, Commits, RollsBack, Statement};

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
        ("select E'a'\n'\\'', lo_import('/x') --'", Dialect::Postgres),
        (
            "select E'a' -- x\n'\\'', lo_import('/x') --'",
            Dialect::Postgres,
        ),
        (
            "select 'a'::text @@E'\\'', pg_read_file($$/x$$), 'a'::text @@E'\\''",
            Dialect::Postgres,
        ),
        ("select name'\\', lo_import('/x') --'", Dialect::Postgres),
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
        ("start transaction read only", Begins),
        ("begin isolation level repeatable read, read write", Begins),
        ("set autocommit = 0", Autocommit(false)),
        ("create table t (a int) engine = InnoDB", Statement),
        ("END", Commits { chains: false }),
        ("commit and no chain", Commits { chains: false }),
        ("end work and chain", Commits { chains: true }),
        ("rollback work", RollsBack { chains: false }),
        ("abort and chain", RollsBack { chains: true }),
        ("select chain from t", Statement),
        ("set session autocommit = ON", Autocommit(true)),
        ("set @@session.autocommit = 0", Autocommit(false)),
        ("SET @@autocommit := false", Autocommit(false)),
        ("rollback to savepoint a", Statement),
        (
            "update users set password = 'x' where name = 'a;b'",
            Statement,
        ),
        ("with a as (select 1) select * from a", Statement),
        ("create temp table t (a int)", Statement),
        ("set search_path = shop", Statement),
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
