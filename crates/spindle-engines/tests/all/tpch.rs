//! TPC-H on real databases: the answers to its 22 queries are the right ones, a changed row is noticed, its refresh
//! functions add and remove what they should, what takes too long is cancelled, and what is written to temporary files
//! is counted.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use spindle_engines::sql::{
    Purpose, RunningServer, ServerKind, ServerRequest, ServerStop, create_and_load, server,
};
use spindle_layout::TreeDirectories;
use spindle_workload::sql::tpch::answers::{Agreement, QueryAnswer};
use spindle_workload::sql::tpch::{Parameters, TpchVersion};
use spindle_workload::sql::{KeptAnswer, SqlConnection, SqlWorkload, Tpch};
use spindle_workload::{Acknowledged, CheckError, Client, SessionError};

const ANSWERS: &str = include_str!("data/tpch-answers-0.01.txt");

pub fn right_answer(query: u8) -> QueryAnswer {
    let begin = format!("== {query}\n");
    let (_, rest) = ANSWERS.split_once(&begin).expect("it is in the file");
    QueryAnswer::read(rest.split("== ").next().unwrap_or(rest))
}

fn workload(scale: f64, parameters: Parameters, refresh: bool) -> Tpch {
    Tpch {
        version: TpchVersion::H,
        scale,
        queries: TpchVersion::H.queries().collect(),
        refresh,
        parameters,
        query_limit: None,
        kept: None,
        seed: 7,
    }
}

fn request(kind: ServerKind, scale: f64) -> ServerRequest {
    ServerRequest {
        settings: Default::default(),
        // Where another MariaDB than that of PATH is to be tested, or a MySQL.
        bin_dir: (kind == ServerKind::MariaDb)
            .then(|| std::env::var_os("SPINDLE_MARIADB_BIN_DIR").map(Into::into))
            .flatten(),
        // Everything fits, or a query that looks up row by row takes hours at scale 1.
        buffer_cache_bytes: (64 << 20).max((3e9 * scale) as u64),
        data_bytes: (1.6e9 * scale) as u64,
        clients: 2,
        io: None,
        database: None,
    }
}

/// Whether there is no such server to test with; says so.
fn is_missing(kind: ServerKind) -> bool {
    match server(kind).examine(&request(kind, 0.01)) {
        Ok(_) => false,
        Err(error) => {
            spindle_harness::skip(error);
            true
        }
    }
}

/// MySQL, too, is tested as MariaDB.
fn is_mysql(kind: ServerKind) -> bool {
    let found = server(kind).examine(&request(kind, 0.01));
    found.is_ok_and(|found| found.version.starts_with("MySQL"))
}

/// A separate database, loaded and started; ended and removed when it goes out of scope.
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
        let request = request(kind, workload.scale);
        let server = server(kind);
        create_and_load(server, &request, &directories, workload, &Arc::default()).unwrap();
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
        let _ = self.running.stop(ServerStop::Kill);
    }
}

/// The queries whose answer is not the right one, with the differences.
fn wrong_answers(
    workload: &Tpch,
    connection: &mut dyn SqlConnection,
    right: impl Fn(u8) -> QueryAnswer,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for query in 1..=22 {
        let right = right(query);
        let sql = workload.query(query, 0, connection.dialect());
        // Whatever it is told, an empty answer has no columns.
        let found = QueryAnswer::ask(connection, &sql, right.columns());
        let found = found.unwrap_or_else(|error| panic!("query {query}: {error}\n{sql}"));
        if let Agreement::Wrong(differences) = found.compare(&right) {
            wrong.push(format!("query {query}: {differences}"));
        }
    }
    wrong
}

/// What SQLite answers to the drawn parameters of the power run that another database was asked.
pub fn answers_of_sqlite(of: &[KeptAnswer]) -> Vec<QueryAnswer> {
    let workload = workload(0.01, Parameters::Random, false);
    let loaded = Loaded::of(ServerKind::Sqlite, &workload);
    let mut connection = loaded.connect(&workload);
    let mut answer = |kept: &KeptAnswer| {
        let sql = workload.query(kept.query, 0, connection.dialect());
        QueryAnswer::ask(&mut *connection, &sql, kept.answer.columns()).unwrap()
    };
    of.iter().map(&mut answer).collect()
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
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    answers_are_right_and_a_changed_row_is_noticed(ServerKind::Postgres);
}

#[test]
fn answers_on_mariadb_are_right_and_a_changed_row_is_noticed() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    answers_are_right_and_a_changed_row_is_noticed(ServerKind::MariaDb);
}

/// The standard's own answers, at scale 1.
fn answers_at_scale_1_are_those_of_the_standard(kind: ServerKind) {
    if is_missing(kind) {
        return;
    }
    let workload = workload(1.0, Parameters::Validation, false);
    let loaded = Loaded::of(kind, &workload);
    let mut connection = loaded.connect(&workload);
    let of_standard = |query| match query {
        // Clause 2.4.17.5; the copy that the crate has is three hundredths less.
        17 => QueryAnswer::read("avg_yearly\n348406.05\n"),
        _ => QueryAnswer::of_standard(query).expect("it has one to each"),
    };
    let mut wrong = wrong_answers(&workload, &mut *connection, of_standard);
    // In the crate's copy the keys of this answer are cut short; scale 0.01 has it whole.
    wrong.retain(|said| !said.starts_with("query 11:"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// Each loads a gigabyte and takes minutes, so `make soak` asks for them (`-- --ignored`).

#[test]
#[ignore = "loads a gigabyte: make soak"]
fn answers_at_scale_1_on_sqlite_are_those_of_the_standard() {
    answers_at_scale_1_are_those_of_the_standard(ServerKind::Sqlite);
}

#[test]
#[ignore = "loads a gigabyte: make soak"]
fn answers_at_scale_1_on_postgres_are_those_of_the_standard() {
    answers_at_scale_1_are_those_of_the_standard(ServerKind::Postgres);
}

#[test]
#[ignore = "loads a gigabyte: make soak"]
fn answers_at_scale_1_on_mariadb_are_those_of_the_standard() {
    answers_at_scale_1_are_those_of_the_standard(ServerKind::MariaDb);
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
    let missing = "there are 14999 orders, not 15000".to_owned();
    assert_eq!(said, Err(CheckError::Lost(missing)));
}

#[test]
fn refresh_functions_on_sqlite_do_what_they_should() {
    refresh_functions_do_what_they_should(ServerKind::Sqlite);
}

#[test]
fn refresh_functions_on_postgres_do_what_they_should() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    refresh_functions_do_what_they_should(ServerKind::Postgres);
}

#[test]
fn refresh_functions_on_mariadb_do_what_they_should() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    refresh_functions_do_what_they_should(ServerKind::MariaDb);
}

#[test]
fn what_takes_too_long_is_cancelled_and_temporary_space_is_counted() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for kind in [
        ServerKind::Sqlite,
        ServerKind::Postgres,
        ServerKind::MariaDb,
    ] {
        if is_missing(kind) {
            continue;
        }
        let workload = workload(0.01, Parameters::Validation, false);
        let loaded = Loaded::of(kind, &workload);
        what_takes_too_long_is_cancelled_and_the_next_is_not(&mut *loaded.connect(&workload));
        if is_mysql(kind) {
            let connection = &mut *loaded.connect(&workload);
            connection.watch_temporary_space().unwrap();
            assert_eq!(temporary_bytes_of(connection, SORT), None);
            continue;
        }
        temporary_space_is_counted(kind, &mut *loaded.connect(&workload));
        let connection = &mut *loaded.connect(&workload);
        match kind {
            ServerKind::Sqlite => intermediate_results_of_sqlite_count(connection),
            ServerKind::Postgres => {
                temporary_space_of_postgres_is_what_it_counts_itself(connection)
            }
            ServerKind::MariaDb => {}
        }
        if kind != ServerKind::Postgres {
            what_a_client_changes_is_no_temporary_space(connection);
        }
    }
}

/// Sorts some four megabytes.
const SORT: &str =
    "select l_comment, l_orderkey, l_linenumber from lineitem order by l_comment, l_orderkey";

fn set(connection: &mut dyn SqlConnection, settings: &[&str]) {
    for setting in settings {
        connection.run(setting).unwrap();
    }
}

/// What a query has written to temporary files.
fn temporary_bytes_of(connection: &mut dyn SqlConnection, sql: &str) -> Option<u64> {
    connection.temporary_bytes();
    connection.ask(sql, &mut |_| Ok(())).unwrap();
    connection.temporary_bytes()
}

fn temporary_space_is_counted(kind: ServerKind, connection: &mut dyn SqlConnection) {
    let (little, enough): (&[&str], &[&str]) = match kind {
        ServerKind::Sqlite => (
            &["pragma cache_size = 10"],
            &["pragma cache_size = -262144"],
        ),
        ServerKind::Postgres => (&["set work_mem = '64kB'"], &["set work_mem = '256MB'"]),
        ServerKind::MariaDb => (
            &["set sort_buffer_size = 32768"],
            &["set sort_buffer_size = 268435456"],
        ),
    };
    assert_eq!(
        connection.temporary_bytes(),
        None,
        "nobody has asked it to watch"
    );
    connection.watch_temporary_space().unwrap();
    set(connection, little);
    let spilled = temporary_bytes_of(connection, SORT);
    let sorted = 2_000_000..30_000_000;
    assert!(
        spilled.is_some_and(|bytes| sorted.contains(&bytes)),
        "{kind:?}: {spilled:?}"
    );
    set(connection, enough);
    assert_eq!(temporary_bytes_of(connection, SORT), Some(0), "{kind:?}");
}

fn what_a_client_changes_is_no_temporary_space(connection: &mut dyn SqlConnection) {
    connection.watch_temporary_space().unwrap();
    let changes = "update region set r_comment = 'changed' where r_regionkey = 1";
    connection.run(changes).unwrap();
    let written = connection.temporary_bytes();
    assert_eq!(written, None, "changes were written, too");
    let small = "select count(*) from region";
    assert_eq!(temporary_bytes_of(connection, small), Some(0));
}

fn intermediate_results_of_sqlite_count(connection: &mut dyn SqlConnection) {
    connection.watch_temporary_space().unwrap();
    let distinct = "select count(*) from \
                    (select distinct l_comment, l_shipinstruct, l_extendedprice from lineitem)";
    let written = temporary_bytes_of(connection, distinct);
    assert!(
        written.is_some_and(|bytes| bytes > 1_000_000),
        "{written:?}"
    );
}

fn temporary_space_of_postgres_is_what_it_counts_itself(connection: &mut dyn SqlConnection) {
    let number = |connection: &mut dyn SqlConnection, sql: &str| {
        let mut number = 0;
        let asked = connection.ask(sql, &mut |row| {
            number = row.int(0)?;
            Ok(())
        });
        asked.unwrap();
        number
    };
    let version = "select current_setting('server_version_num')::int8";
    if number(connection, version) < 150_000 {
        // Its statistics are late by as much as they like.
        return;
    }
    let counted = |connection: &mut dyn SqlConnection| {
        connection.run("select pg_stat_force_next_flush()").unwrap();
        number(
            connection,
            "select temp_bytes from pg_stat_database where datname = current_database()",
        )
    };
    connection.watch_temporary_space().unwrap();
    // Sorts and hash joins of parallel workers, too.
    set(
        connection,
        &[
            "set work_mem = '64kB'",
            "set min_parallel_table_scan_size = 0",
            "set parallel_setup_cost = 0",
            "set parallel_tuple_cost = 0",
        ],
    );
    let join = "select count(*) from lineitem join orders on l_orderkey = o_orderkey + 0";
    // Files that workers share are removed by whoever is last: it takes some joins to see each of them be that.
    for sql in [&[SORT][..], &[join; 20]].concat() {
        let before = counted(connection);
        let told = temporary_bytes_of(connection, sql);
        let of_server = counted(connection) - before;
        assert!(of_server > 100_000, "{of_server}");
        assert_eq!(told, Some(of_server.unsigned_abs()), "{sql}");
    }
}

fn what_takes_too_long_is_cancelled_and_the_next_is_not(connection: &mut dyn SqlConnection) {
    let limit = Duration::from_millis(500);
    connection.limit_statement(Some(limit)).unwrap();
    // MySQL multiplies where rows are only counted.
    let endless = "select sum(a.l_quantity + b.l_quantity + c.l_quantity) from lineitem a, lineitem b, lineitem c";
    // On a busy machine the short one may take too long as well, and not each time.
    let is_carried_out = (0..10).any(|_| {
        let cancelled = connection.ask(endless, &mut |_| Ok(()));
        assert!(
            matches!(cancelled, Err(SessionError::Refused(_))),
            "{cancelled:?}"
        );
        let next = connection.ask("select count(*) from nation", &mut |_| Ok(()));
        assert!(
            matches!(next, Ok(()) | Err(SessionError::Refused(_))),
            "{next:?}"
        );
        next.is_ok()
    });
    assert!(is_carried_out, "the limit is still that of the one before");
}
