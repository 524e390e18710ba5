//! TPC-H on real databases: the answers to its 22 queries are the right ones, a changed row is noticed, and its refresh
//! functions add and remove what they should.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::sql::{
    Purpose, RunningServer, ServerKind, ServerRequest, Stop, create_and_load, server,
};
use spindle_layout::TreeDirectories;
use spindle_workload::sql::tpch::answers::Answer;
use spindle_workload::sql::tpch::{Parameters, Version};
use spindle_workload::sql::{SqlConnection, SqlWorkload, Tpch};
use spindle_workload::{Acknowledged, Client, SessionError};

const ANSWERS: &str = include_str!("data/tpch-answers-0.01.txt");

fn right_answer(query: u8) -> Answer {
    let begin = format!("== {query}\n");
    let (_, rest) = ANSWERS.split_once(&begin).expect("it is in the file");
    Answer::read(rest.split("== ").next().unwrap_or(rest))
}

fn workload(scale: f64, parameters: Parameters, refresh: bool) -> Tpch {
    Tpch {
        version: Version::H,
        scale,
        queries: Version::H.queries().collect(),
        refresh,
        parameters,
        query_limit: None,
        seed: 7,
    }
}

fn request(scale: f64) -> ServerRequest {
    ServerRequest {
        settings: Default::default(),
        bin_dir: None,
        buffer_cache_bytes: 64 << 20,
        data_bytes: (1.6e9 * scale) as u64,
        clients: 2,
        io: None,
    }
}

/// Whether there is no such server to test with; says so.
fn is_missing(kind: ServerKind) -> bool {
    match server(kind).examine(&request(0.01)) {
        Ok(_) => false,
        Err(error) => {
            eprintln!("skipped: {error}");
            true
        }
    }
}

/// A database of its own, loaded and started; ended and removed when it goes out of scope.
struct Loaded {
    running: Arc<dyn RunningServer>,
    _directory: tempfile::TempDir,
}

impl Loaded {
    fn of(kind: ServerKind, workload: &Tpch) -> Loaded {
        let directory = tempfile::tempdir().unwrap();
        // A server's user may come to it.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).unwrap();
        let directories = TreeDirectories::within(|_| directory.path().to_path_buf());
        directories.make().unwrap();
        let request = request(workload.scale);
        let server = server(kind);
        create_and_load(server, &request, &directories, workload).unwrap();
        let running = server
            .start(&request, &directories, Purpose::Trial)
            .unwrap();
        Loaded {
            running,
            _directory: directory,
        }
    }

    fn connect(&self, workload: &Tpch) -> Box<dyn SqlConnection> {
        let mut connection = self.running.connect().unwrap();
        let statements = workload.statements(connection.dialect());
        connection.prepare(&statements).unwrap();
        connection
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.running.stop(Stop::Kill);
    }
}

/// The queries whose answer is not the right one, with the differences.
fn wrong_answers(
    workload: &Tpch,
    connection: &mut dyn SqlConnection,
    right: impl Fn(u8) -> Answer,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for query in 1..=22 {
        let right = right(query);
        let sql = workload.query(query, 0, connection.dialect());
        // Whatever it is told, an empty answer has no columns.
        let found = Answer::ask(connection, &sql, right.columns());
        let found = found.unwrap_or_else(|error| panic!("query {query}: {error}\n{sql}"));
        if let Err(differences) = found.compare(&right) {
            wrong.push(format!("query {query}: {differences}"));
        }
    }
    wrong
}

fn answers_are_right_and_a_changed_row_is_noticed(kind: ServerKind) {
    if is_missing(kind) {
        return;
    }
    let workload = workload(0.01, Parameters::Validation, false);
    let loaded = Loaded::of(kind, &workload);
    let mut connection = loaded.connect(&workload);
    let wrong = wrong_answers(&workload, &mut *connection, right_answer);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(
        workload.check(&mut *connection, &[]),
        Ok("15000 orders, as many as there should be".to_owned())
    );

    // One dollar more in one of 60175 rows.
    let planted = "update lineitem set l_extendedprice = l_extendedprice + 1 \
                   where l_orderkey = 1 and l_linenumber = 1";
    connection.run(planted).unwrap();
    let wrong = wrong_answers(&workload, &mut *connection, right_answer);
    assert!(wrong.iter().any(|said| said.starts_with("query 1:")));
}

#[test]
fn answers_on_sqlite_are_right_and_a_changed_row_is_noticed() {
    answers_are_right_and_a_changed_row_is_noticed(ServerKind::Sqlite);
}

#[test]
fn answers_on_postgres_are_right_and_a_changed_row_is_noticed() {
    answers_are_right_and_a_changed_row_is_noticed(ServerKind::Postgres);
}

#[test]
fn answers_on_mariadb_are_right_and_a_changed_row_is_noticed() {
    answers_are_right_and_a_changed_row_is_noticed(ServerKind::MariaDb);
}

/// The standard's own answers, at scale 1: minutes, so `make soak` asks for them (`-- --ignored`).
#[test]
#[ignore = "loads a gigabyte"]
fn answers_at_scale_1_are_those_of_the_standard() {
    let workload = workload(1.0, Parameters::Validation, false);
    for kind in [
        ServerKind::Sqlite,
        ServerKind::Postgres,
        ServerKind::MariaDb,
    ] {
        if is_missing(kind) {
            continue;
        }
        let loaded = Loaded::of(kind, &workload);
        let mut connection = loaded.connect(&workload);
        let of_standard = |query| match query {
            // Clause 2.4.17.5; the copy that the crate has is three hundredths less.
            17 => Answer::read("avg_yearly\n348406.05\n"),
            _ => Answer::of_standard(query).expect("it has one to each"),
        };
        let mut wrong = wrong_answers(&workload, &mut *connection, of_standard);
        // In the crate's copy the keys of this answer are cut short; scale 0.01 has it whole.
        wrong.retain(|said| !said.starts_with("query 11:"));
        assert!(wrong.is_empty(), "{kind:?}: {}", wrong.join("\n"));
    }
}

/// Carries out what a client does, from its first transaction to its last.
fn carry_out(workload: &Tpch, connection: &mut dyn SqlConnection) -> u64 {
    let mut client = Client {
        number: 0,
        clients: 1,
        changes: 0,
        rng: rand_xoshiro::rand_core::SeedableRng::seed_from_u64(1),
    };
    let mut acknowledged = 0;
    for _ in 0..workload.transactions(0, 1).unwrap() {
        let transaction = workload.next(&mut client);
        transaction.run(connection).unwrap();
        acknowledged = acknowledged.max(transaction.number());
    }
    acknowledged
}

fn refresh_functions_do_what_they_should(kind: ServerKind) {
    if is_missing(kind) {
        return;
    }
    let workload = workload(0.01, Parameters::Random, true);
    let loaded = Loaded::of(kind, &workload);
    let mut connection = loaded.connect(&workload);
    let number = |connection: &mut dyn SqlConnection, sql: &str| {
        let mut number = 0;
        let asked = connection.ask(sql, &mut |row| {
            number = row.int(0)?;
            Ok(())
        });
        asked.unwrap();
        number
    };
    let removed = "select count(*) from orders where o_orderkey <= 39 and o_orderkey % 32 < 8";
    let added = "select count(*) from orders where o_orderkey % 32 between 8 and 15";
    let lines_added =
        "select count(distinct l_orderkey) from lineitem where l_orderkey % 32 between 8 and 15";
    assert_eq!(number(&mut *connection, removed), 15);
    let last = carry_out(&workload, &mut *connection);
    assert_eq!(last, 24);
    for (sql, wanted) in [(removed, 0), (added, 15), (lines_added, 15)] {
        assert_eq!(number(&mut *connection, sql), wanted, "{sql}");
    }
    assert!(
        workload
            .check(&mut *connection, &[Acknowledged::up_to(last)])
            .is_ok()
    );

    connection
        .run("delete from orders where o_orderkey = 40")
        .unwrap();
    let said = workload.check(&mut *connection, &[Acknowledged::up_to(last)]);
    assert_eq!(said, Err("there are 14999 orders, not 15000".to_owned()));
}

#[test]
fn refresh_functions_on_sqlite_do_what_they_should() {
    refresh_functions_do_what_they_should(ServerKind::Sqlite);
}

#[test]
fn refresh_functions_on_postgres_do_what_they_should() {
    refresh_functions_do_what_they_should(ServerKind::Postgres);
}

#[test]
fn refresh_functions_on_mariadb_do_what_they_should() {
    refresh_functions_do_what_they_should(ServerKind::MariaDb);
}

#[test]
fn a_query_that_takes_too_long_is_cancelled_and_the_next_is_not() {
    for kind in [
        ServerKind::Sqlite,
        ServerKind::Postgres,
        ServerKind::MariaDb,
    ] {
        if !is_missing(kind) {
            what_takes_too_long_is_cancelled(kind);
        }
    }
}

fn what_takes_too_long_is_cancelled(kind: ServerKind) {
    let workload = workload(0.01, Parameters::Validation, false);
    let loaded = Loaded::of(kind, &workload);
    let mut connection = loaded.connect(&workload);
    connection
        .limit_statement(Some(Duration::from_millis(50)))
        .unwrap();
    let endless = "select count(*) from lineitem a, lineitem b, lineitem c";
    let cancelled = connection.ask(endless, &mut |_| Ok(()));
    assert!(
        matches!(cancelled, Err(SessionError::Refused(_))),
        "{cancelled:?}"
    );
    connection
        .ask("select count(*) from nation", &mut |_| Ok(()))
        .unwrap();
}
