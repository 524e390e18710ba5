//! Recordings as a whole: how they are read, dealt out, and what is wrong with those that are none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_io::sync::Latch;

use super::lanes::deal_out;
use super::recording::{Recorded, RecordedStep, Recording, SessionHead};
use super::workload::ReplayWorkload;
use super::{clients_at_once, inlined};
use crate::driver::{Behaviour, start_work};
use crate::script::own_data::OwnData;
use crate::session::SessionError;
use crate::sql::connection::{LoadPart, SqlConnection, Visit};
use crate::sql::pause::Pauses;
use crate::sql::timed::StatementTimes;
use crate::sql::{Dialect, SqlWork, SqlWorkload, Value};
use crate::workload::Client;

const HEAD: &str = r#"{"format":"spindle recording","version":1,"database":"postgres","texts":1,"sessions":2,"transactions":3,"statements":5,"duration_us":900}"#;
const LINES: [&str; 6] = [
    r#"{"text":"update t set n = n + $1 where id = $2"}"#,
    r#"{"session":{"from_us":0,"to_us":500,"transactions":2}}"#,
    r#"[0,[[0,"begin"],[10,0,["1",null]],[20,"commit"]]]"#,
    r#"[400,[[0,"select 1"]]]"#,
    r#"{"session":{"from_us":300,"to_us":900,"transactions":1}}"#,
    r#"[300,[[0,0,["2","7"]]]]"#,
];

fn read(text: &str) -> Result<Recording, String> {
    let read = Recording::of_bytes("recording.jsonl", text.as_bytes().to_vec());
    read.map_err(|error| error.to_string())
}

fn whole() -> String {
    format!("{HEAD}\n{}\n", LINES.join("\n"))
}

#[test]
fn a_recording_is_read_session_by_session() {
    let recording = read(&whole()).unwrap();
    assert_eq!(recording.kinds, ["select", "transaction", "update"]);
    let (first, next) = recording.transaction(0, 0).unwrap();
    let steps = vec![
        RecordedStep::Text(0, "begin".to_owned()),
        RecordedStep::Prepared(10, 0, vec![Some("1".to_owned()), None]),
        RecordedStep::Text(20, "commit".to_owned()),
    ];
    assert_eq!(first, Recorded(0, steps));
    let (second, end) = recording.transaction(0, next).unwrap();
    assert_eq!(second.0, 400);
    assert_eq!(recording.transaction(0, end), None);
    assert_eq!(recording.transaction(2, 0), None);
}

#[test]
fn what_is_no_recording_is_told_with_its_line() {
    let with = |from: &str, to: &str| {
        let text = whole();
        assert!(text.contains(from), "{from}");
        read(&text.replacen(from, to, 1)).unwrap_err()
    };
    for (from, to, told) in [
        (
            "spindle recording",
            "another thing",
            ":1: no spindle recording",
        ),
        (
            "\"version\":1",
            "\"version\":2",
            ":1: no spindle recording of version 1",
        ),
        ("\"texts\":1", "\"texts\":501", ":1: more than 500 texts"),
        ("\"texts\":1", "\"texts\":2", ":3: a text belongs here"),
        (
            "\"transactions\":2",
            "\"transactions\":3",
            ":6: this is no transaction",
        ),
        (
            "\"sessions\":2",
            "\"sessions\":3",
            ":8: not as many sessions",
        ),
        ("[400,", "[-1,", ":5: this is no transaction"),
        (
            "[0,0,[\"2\"",
            "[0,1,[\"2\"",
            ":7: a statement whose text is not above",
        ),
        (
            "[0,[[0,\"begin\"],",
            "[450,[[0,\"begin\"],",
            ":5: a transaction that begins before",
        ),
        (
            "[[0,\"select 1\"]]",
            "[]",
            ":5: a transaction without statements",
        ),
        (
            "\"from_us\":300,\"to_us\":900",
            "\"from_us\":300,\"to_us\":1",
            ":6: a session that begins",
        ),
        ("[\"2\",\"7\"]]]]\n", "", ":7: the file ends within"),
    ] {
        let found = with(from, to);
        assert!(found.contains(told), "{from}: {found}");
    }
    assert!(read("").unwrap_err().contains(":1: the file ends"));
    assert!(read("\u{0}\n").is_err());
}

#[test]
fn sessions_are_dealt_to_clients_that_are_free() {
    let session = |from_us, to_us| SessionHead {
        from_us,
        to_us,
        transactions: 1,
    };
    let sessions = [
        session(0, 10),
        session(5, 20),
        session(12, 13),
        session(30, 40),
    ];
    assert_eq!(clients_at_once(&sessions), 2);
    assert_eq!(deal_out(&sessions, 2), [vec![0, 2, 3], vec![1]]);
    assert_eq!(deal_out(&sessions, 1), [vec![0, 1, 2, 3]]);
    assert_eq!(
        deal_out(&sessions, 4)
            .iter()
            .filter(|lane| lane.is_empty())
            .count(),
        2
    );
}

#[test]
fn parameters_are_put_in_their_places_outside_of_quotes() {
    let values = [Some("it's".to_owned()), None];
    for (text, made) in [
        ("select $1, $2", "select 'it''s', null"),
        (
            "select '$1', \"$1\", a$1, $$ $1 $$, $x$ $1 $x$ -- $1\n, $1",
            "select '$1', \"$1\", a$1, $$ $1 $$, $x$ $1 $x$ -- $1\n, 'it''s'",
        ),
        ("select /* $1 */ é$ $1", "select /* $1 */ é$ 'it''s'"),
        ("$", "$"),
        (
            r"select E'it\'s $1', e'\\', $1, name'$1', E'\",
            r"select E'it\'s $1', e'\\', 'it''s', name'$1', E'\",
        ),
        (
            "select E'a' -- b\n'\\' $1', E'a', '\\'$1, E'a'\n -- b\n'\\' $1', $1",
            "select E'a' -- b\n'\\' $1', E'a', '\\''it''s', E'a'\n -- b\n'\\' $1', 'it''s'",
        ),
    ] {
        assert_eq!(inlined(text, &values).as_deref(), Some(made));
    }
    assert_eq!(inlined("select $3", &values), None);
    assert_eq!(inlined("select $0", &values), None);
}

/// A database that notes what it is asked.
#[derive(Clone, Default)]
struct Noting(Arc<Latch<Vec<String>>>);

impl Noting {
    fn note(&self, sql: &str) -> Result<(), SessionError> {
        self.0.lock().push(sql.to_owned());
        Ok(())
    }
}

impl SqlConnection for Noting {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn prepare_what_can(
        &mut self,
        _: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        Ok(Vec::new())
    }

    fn in_transaction(&self) -> bool {
        false
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        self.note(sql)
    }

    fn ask(&mut self, _: &str, _: Visit<'_>) -> Result<(), SessionError> {
        Ok(())
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.note("begin")
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.note("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.note("rollback")
    }

    fn execute(&mut self, _: usize, _: &[Value<'_>]) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn query(&mut self, _: usize, _: &[Value<'_>], _: Visit<'_>) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn load(&mut self, _: &LoadPart) -> Result<u64, SessionError> {
        Ok(0)
    }

    fn pause(&mut self, time: Duration) {
        let minutes = (time.as_secs_f64() / 60.0).round();
        if minutes > 0.0 {
            self.0.lock().push(format!("{minutes} minutes"));
        }
    }

    fn is_closed(&self) -> bool {
        false
    }
}

/// A recording with one transaction that begins after an hour and takes two.
fn of_hours() -> Recording {
    let head = HEAD.replace(
        "\"texts\":1,\"sessions\":2,\"transactions\":3,\"statements\":5",
        "\"texts\":0,\"sessions\":1,\"transactions\":1,\"statements\":3",
    );
    let head = head.replace("\"duration_us\":900", "\"duration_us\":10800000000");
    let session = r#"{"session":{"from_us":3600000000,"to_us":10800000000,"transactions":1}}"#;
    let steps = r#"[3600000000,[[0,"begin"],[3600000000,"select 1"],[7200000000,"commit"]]]"#;
    read(&format!("{head}\n{session}\n{steps}\n")).unwrap()
}

#[test]
fn a_speed_of_two_halves_when_transactions_begin_and_when_their_statements_do() {
    for (speed, due_us, noted) in [
        (
            Some(1.0),
            Some(3_600_000_000),
            &["begin", "60 minutes", "select 1", "120 minutes", "commit"][..],
        ),
        (
            Some(2.0),
            Some(1_800_000_000),
            &["begin", "30 minutes", "select 1", "60 minutes", "commit"],
        ),
        (None, None, &["begin", "select 1", "commit"]),
    ] {
        let data = OwnData::read(&[], &[], &BTreeMap::new(), Dialect::Postgres);
        let data = data.unwrap_or_else(|(_, mistake)| panic!("{}", mistake.message));
        let workload = ReplayWorkload::new(of_hours(), data, speed);
        let transaction = workload.next(&mut Client {
            number: 0,
            clients: 1,
            changes: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(1),
        });
        assert_eq!(transaction.due_us(), due_us);
        let mut database = Noting::default();
        transaction.run(&mut database).unwrap();
        assert_eq!(*database.0.lock(), noted);
    }
}

#[test]
fn a_transaction_that_pauses_ends_when_its_client_is_to_stop() {
    // Its second statement comes after an hour.
    let head = HEAD.replace(
        "\"texts\":1,\"sessions\":2,\"transactions\":3,\"statements\":5",
        "\"texts\":0,\"sessions\":1,\"transactions\":1,\"statements\":3",
    );
    let head = head.replace("\"duration_us\":900", "\"duration_us\":3600000000");
    let session = r#"{"session":{"from_us":0,"to_us":3600000000,"transactions":1}}"#;
    let steps = r#"[0,[[0,"begin"],[3600000000,"select 1"],[3600000000,"commit"]]]"#;
    let recording = read(&format!("{head}\n{session}\n{steps}\n")).unwrap();
    let data = OwnData::read(&[], &[], &BTreeMap::new(), Dialect::Postgres);
    let data = data.unwrap_or_else(|(_, mistake)| panic!("{}", mistake.message));
    let (env, database): (Arc<dyn Env>, _) = (RealEnv::new(1), Noting::default());
    let connection = database.clone();
    let work = SqlWork {
        workload: Arc::new(ReplayWorkload::new(recording, data, Some(1.0))),
        connect: Box::new(move || Ok(Box::new(connection.clone()))),
        env: Arc::clone(&env),
        times: StatementTimes::default(),
        pauses: Pauses::default(),
    };
    let behaviour = Behaviour {
        clients: 1,
        ..Behaviour::default()
    };
    let mut running = start_work(&env, Arc::new(work), behaviour);
    while database.0.lock().is_empty() {
        block_on(env.sleep(1_000_000));
    }
    block_on(running.stop()).unwrap();
    assert_eq!(*database.0.lock(), ["begin", "select 1", "commit"]);
}

/// Prepared texts have their parameters in their places: a setting's name may be one.
#[test]
fn what_sessions_sent_is_found_by_its_words() {
    let text = whole()
        .replace(
            "update t set n = n + $1 where id = $2",
            "select Set_Config($1, $2, true)",
        )
        .replace(r#"["1",null]"#, r#"["synchronous_commit","off"]"#)
        .replace("select 1", "begin;\\nSET local synchronous_commit = 0");
    let recording = read(&text).unwrap();
    let sent = recording.sent_with(&["synchronous_commit", "set_config"]);
    assert_eq!(
        sent,
        [
            "begin;\nSET local synchronous_commit = 0",
            "select Set_Config('2', '7', true)",
            "select Set_Config('synchronous_commit', 'off', true)",
        ]
    );
    assert!(recording.sent_with(&["journal_mode"]).is_empty());
}
