//! Servers that speak PostgreSQL's protocol and are none: what they do not know is not known, what a run needs is told,
//! and nobody waits for ever for one that forgets to answer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use spindle_engines::sql::{Address, Schema, SchemaKind, Scheme, remote_server};

/// Types by their numbers (pg_type.dat).
const INT8: u32 = 20;
const TEXT: u32 = 25;
/// A question has so many parts: Parse, Describe, Bind, Execute.
const PARTS: i64 = 4;
/// Such a server is given up after 20 s, twice.
const LIMIT: Duration = Duration::from_secs(100);

/// What a server answers to a question; `None`: an error.
enum Answer {
    Number(i64),
    Text(&'static str),
    Nothing,
}

type Answers = Arc<dyn Fn(&str) -> Option<Answer> + Send + Sync>;

/// A server of this test, on a port of its own.
fn planted(answers: Answers, forgets: bool) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            std::thread::spawn(move || {
                // A client that goes ends it.
                let _ = serve(stream, &*answers, forgets);
            });
        }
    });
    let url = format!("postgres://ann@127.0.0.1:{port}/lab?sslmode=disable");
    Address::parse(&url).unwrap()
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[tag][..], &length, body].concat()
}

fn body_of(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn serve(
    mut stream: TcpStream,
    answers: &dyn Fn(&str) -> Option<Answer>,
    forgets: bool,
) -> std::io::Result<()> {
    body_of(&mut stream)?;
    let hello = [
        message(b'R', &[0; 4]),
        message(b'K', &[0, 0, 0, 7, 0, 0, 0, 0]),
        message(b'Z', b"I"),
    ];
    stream.write_all(&hello.concat())?;
    let mut asked = String::new();
    let mut out = Vec::new();
    let mut is_wrong = false;
    loop {
        let mut tag = [0];
        stream.read_exact(&mut tag)?;
        let body = body_of(&mut stream)?;
        let sql = |from: usize| {
            let words = body[from..].split(|byte| *byte == 0).next();
            String::from_utf8_lossy(words.unwrap_or_default()).into_owned()
        };
        match tag[0] {
            b'X' => return Ok(()),
            b'P' => {
                let name = body.iter().position(|byte| *byte == 0).unwrap_or(0);
                asked = sql(name + 1);
                is_wrong = answers(&asked).is_none();
                out.extend(match is_wrong {
                    true => message(b'E', b"C58000\0Mwhat is this?\0\0"),
                    false => message(b'1', b""),
                });
            }
            b'Q' => {
                is_wrong = answers(&sql(0)).is_none();
                out.extend(match is_wrong {
                    true => message(b'E', b"C58000\0Mwhat is this?\0\0"),
                    false => message(b'C', b"OK\0"),
                });
            }
            b'D' | b'B' | b'E' if !is_wrong => {
                out.extend(part(tag[0], answers(&asked).unwrap_or(Answer::Nothing)));
            }
            _ => {}
        }
        if matches!(tag[0], b'Q' | b'S') {
            if !(is_wrong && forgets) {
                out.extend(message(b'Z', b"I"));
            }
            stream.write_all(&out)?;
            (out, is_wrong) = (Vec::new(), false);
        }
    }
}

/// What is said to Describe, Bind and Execute.
fn part(tag: u8, answer: Answer) -> Vec<u8> {
    let (of, value) = match answer {
        Answer::Number(number) => (INT8, number.to_string().into_bytes()),
        Answer::Text(text) => (TEXT, text.as_bytes().to_vec()),
        Answer::Nothing => (TEXT, Vec::new()),
    };
    match tag {
        b'D' => {
            let column = [&b"\0\x01c\0\0\0\0\0\0\0"[..], &of.to_be_bytes(), &[0; 8]].concat();
            [message(b't', &[0, 0]), message(b'T', &column)].concat()
        }
        b'B' => message(b'2', b""),
        _ => {
            let length = (value.len() as u32).to_be_bytes();
            let row = [&[0, 1][..], &length, &value].concat();
            [message(b'D', &row), message(b'C', b"SELECT 1\0")].concat()
        }
    }
}

/// Knows its version, the number 1, and no more.
fn knows_little(sql: &str) -> Option<Answer> {
    match sql {
        "select version()" => Some(Answer::Text("Planted 1.0")),
        "select 1" => Some(Answer::Number(1)),
        "rollback" | "begin transaction read only" => Some(Answer::Nothing),
        _ => None,
    }
}

#[test]
fn what_a_server_does_not_tell_is_not_known_and_not_missing() {
    let address = planted(Arc::new(knows_little), false);
    let survey = remote_server(Scheme::Postgres).survey(&address, None);
    let survey = survey.unwrap();
    assert_eq!(survey.version, "Planted 1.0");
    assert!(survey.settings.is_empty() && survey.tables.is_empty());
    assert_eq!(survey.cache_bytes, None);
    assert!(survey.clock.is_none());
    assert_eq!(survey.rights.len(), 7);
    for right in survey.rights {
        assert!(!right.is_told && right.missing.is_none(), "{right:?}");
    }
}

#[test]
fn a_server_that_forgets_to_be_ready_again_is_not_waited_for() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let address = planted(Arc::new(knows_little), true);
    let began = Instant::now();
    let survey = remote_server(Scheme::Postgres).survey(&address, None);
    assert_eq!(survey.unwrap().version, "Planted 1.0");
    assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
}

#[test]
fn a_server_that_keeps_no_sessions_is_refused_before_anything_is_made() {
    for (processes, is_refused) in [(2, true), (1, false)] {
        let next = AtomicI64::new(0);
        let address = planted(
            Arc::new(move |sql: &str| match sql {
                "select pg_backend_pid()::int8" => Some(Answer::Number(
                    1000 + next.fetch_add(1, Ordering::Relaxed) / PARTS % processes,
                )),
                sql => knows_little(sql),
            }),
            false,
        );
        let looked = remote_server(Scheme::Postgres).look(&address, None);
        match is_refused {
            true => {
                let told = looked.expect_err("it keeps no sessions").to_string();
                assert!(told.contains("keeps no sessions"), "{told}");
                assert!(told.contains("came to 2 processes"), "{told}");
            }
            false => assert_eq!(looked.unwrap().version, "Planted 1.0"),
        }
    }
}

#[test]
fn a_pool_that_has_only_one_to_serve_is_seen_through() {
    // Calls since a transaction began: it is in the process that the other connection had.
    let since = AtomicI64::new(-1);
    let address = planted(
        Arc::new(move |sql: &str| match sql {
            "begin" => {
                since.store(0, Ordering::Relaxed);
                Some(Answer::Nothing)
            }
            "select pg_backend_pid()::int8" => {
                let is_begun = since.load(Ordering::Relaxed) >= 0;
                let asked = if is_begun {
                    since.fetch_add(1, Ordering::Relaxed)
                } else {
                    0
                };
                Some(Answer::Number(1000 + asked / PARTS))
            }
            sql => knows_little(sql),
        }),
        false,
    );
    let looked = remote_server(Scheme::Postgres).look(&address, None);
    let told = looked.expect_err("it keeps no sessions").to_string();
    assert!(told.contains("keeps no sessions"), "{told}");
}

#[test]
fn a_server_whose_sessions_work_elsewhere_is_refused_and_nothing_stays() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let address = planted(
        Arc::new(move |sql: &str| {
            if sql.contains(" schema ") {
                hears.lock().unwrap().push(sql.to_owned());
            }
            match sql {
                sql if sql.contains("current_schema()") => Some(Answer::Text("public")),
                _ => Some(Answer::Nothing),
            }
        }),
        false,
    );
    let schema = Schema {
        address,
        password_variable: None,
        password: None,
        kind: SchemaKind::Schema,
        name: "spindle_test_1".to_owned(),
        token: "ours".to_owned(),
    };
    let told = remote_server(Scheme::Postgres).make(&schema).unwrap_err();
    let told = told.to_string();
    assert!(told.contains("its sessions work in public"), "{told}");
    assert_eq!(
        *heard.lock().unwrap(),
        [
            "create schema spindle_test_1",
            "comment on schema spindle_test_1 is 'ours'",
            "drop schema spindle_test_1"
        ]
    );
}
