//! TPC-H at scale 1: making the rows and copying them into the tables beside making them alone and `psql`'s `\copy`
//! alone; and the times of the 22 queries beside those that `psql` tells with `\timing`, each query by both in turn.

use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use spindle_engines::engine::RunningEngine;
use spindle_engines::sql::{Purpose, ServerKind, server};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::SessionError;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::tpch::{Parameters, TpchVersion};
use spindle_workload::sql::{Dialect, LoadPart, RowSink, SqlWorkload, Tpch, Value};

use super::ratios::Ratios;
use super::server_time::{ServerTimes, Timed};
use super::{CACHE_BYTES, Private, program_of_postgres};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal, median};

const QUERIES: RangeInclusive<u8> = 1..=22;
/// Rows, indexes and some room.
const DATA_BYTES: u64 = 2 << 30;
const LOADERS: usize = 2;
/// Each takes about as long as two loads.
const LOAD_PAIRS_MAX: usize = 3;
/// Of each query; the 22 take half a minute each time. The interval of a median leaves out two on each side.
const QUERY_PAIRS: usize = 12;
/// How far the time of a query may be from psql's.
const APART_MAX_PERCENT: f64 = 1.0;
const TABLES: [&str; 8] = [
    "lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region",
];

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let Some(request) = Private::request(ServerKind::Postgres, LOADERS, CACHE_BYTES, DATA_BYTES)
    else {
        return;
    };
    let Some(psql) = program_of_postgres("psql") else {
        eprintln!("  skipped: psql is not installed");
        return;
    };
    let is_quick = pace.pairs <= 2;
    let scale = if is_quick { 0.01 } else { 1.0 };
    let workload = |queries| Tpch {
        version: TpchVersion::H,
        scale,
        queries,
        refresh: false,
        parameters: Parameters::Validation,
        query_limit: None,
        kept: None,
        seed: 1,
    };
    let pairs = pace.pairs.min(LOAD_PAIRS_MAX);
    let directories = Private::directories(directory);
    let postgres = server(ServerKind::Postgres);
    let created = postgres.create(&request, &directories);
    created.expect("a cluster");
    let loading = Private::start(
        ServerKind::Postgres,
        &request,
        directories.clone(),
        Purpose::Load,
    );
    let all = workload(QUERIES.collect());
    loads(&loading, &psql, directory, &all, pairs, figures);
    loading.end();
    let private = Private::start(ServerKind::Postgres, &request, directories, Purpose::Trial);
    let pairs = if is_quick { pairs } else { QUERY_PAIRS };
    queries(&private, &psql, directory, &workload, pairs, figures);
}

fn loads(
    private: &Private,
    psql: &Path,
    directory: &Path,
    workload: &Tpch,
    pairs: usize,
    figures: &mut Figures,
) {
    let dialect = Dialect::Postgres;
    let mut connection = private.running.connect().expect("a connection");
    for statement in workload.create_tables(dialect) {
        connection.run(&statement).expect("a table");
    }
    let parts = workload.load_parts(dialect);
    load(private, &parts);
    let file = |table: &str| directory.join(format!("{table}.copy"));
    let each = |what: &(dyn Fn(&str) -> String + Sync)| {
        at_once(TABLES.len(), |table| {
            carry_out(private, psql, &["-c", &what(TABLES[table])]);
        });
    };
    let copy = |table: &str, way: &str| format!("\\copy {table} {way} '{}'", file(table).display());
    each(&|table| copy(table, "to"));
    let mut timed = |work: &dyn Fn()| {
        for table in TABLES {
            let emptied = connection.run(&format!("truncate {table}"));
            emptied.expect("an empty table");
        }
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64()
    };
    let measured: Vec<(f64, f64)> = (0..pairs)
        .map(|_| {
            let copy_s = timed(&|| each(&|table| copy(table, "from")));
            let began = Instant::now();
            make(&parts);
            let make_s = began.elapsed().as_secs_f64();
            (timed(&|| load(private, &parts)), copy_s.max(make_s))
        })
        .collect();
    for table in TABLES {
        std::fs::remove_file(file(table)).expect("our own file");
    }
    figures.add(Figure::of_pairs(
        "PostgreSQL TPC-H rows made and copied, s".to_owned(),
        "the slower of the two",
        &measured,
        Goal::AtMost(1.15),
    ));
    let running = &private.running;
    let settled = running.before_indexes(&mut *connection);
    settled.expect("what comes before indexes");
    for statement in workload.create_indexes(dialect) {
        connection.run(&statement).expect("an index");
    }
    let loaded = running.after_load(&mut *connection);
    loaded.expect("what comes after loading");
}

/// Carries out pieces of work, two at once, each next one by who is free.
fn at_once(pieces: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LOADERS {
            scope.spawn(|| {
                loop {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces {
                        return;
                    }
                    work(piece);
                }
            });
        }
    });
}

fn load(private: &Private, parts: &[LoadPart]) {
    at_once(parts.len(), |part| {
        let mut connection = private.running.connect().expect("a connection");
        connection.load(&parts[part]).expect("the rows are copied");
    });
}

/// Looks at every value, as a client library must.
#[derive(Default)]
struct Looking {
    bytes: usize,
}

impl RowSink for Looking {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        let bytes = values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 8,
        });
        self.bytes += bytes.sum::<usize>();
        Ok(())
    }
}

fn make(parts: &[LoadPart]) {
    at_once(parts.len(), |part| {
        let mut looking = Looking::default();
        (parts[part].rows)(&mut looking).expect("nothing is refused");
        std::hint::black_box(looking.bytes);
    });
}

/// The same query by us and by psql, in turn: each time in its own session, which has everything in memory.
fn queries(
    private: &Private,
    psql: &Path,
    directory: &Path,
    workload: &dyn Fn(Vec<u8>) -> Tpch,
    pairs: usize,
    figures: &mut Figures,
) {
    let script = directory.join("query.sql");
    let mut server = ServerTimes::watch(private);
    let measured: Vec<Vec<(Timed, Timed)>> = QUERIES
        .map(|query| {
            let text = workload(vec![query]).query(query, 0, Dialect::Postgres);
            std::fs::write(&script, format!("\\timing on\n{text};\n")).expect("the script");
            let engine = private.engine(workload(vec![query]));
            let ours = || ours_ms(&engine, query);
            let theirs = || told_ms(private, psql, &script);
            ours();
            theirs();
            let pair = |number: usize| {
                // A B, B A, A B, ...: what gets slower or faster with time favours neither.
                if number.is_multiple_of(2) {
                    let first = server.time(&text, ours);
                    return (first, server.time(&text, theirs));
                }
                let first = server.time(&text, theirs);
                (server.time(&text, ours), first)
            };
            (0..pairs).map(pair).collect()
        })
        .collect();
    add_queries(&measured, figures);
}

/// How far the clients' times are apart: both against the server's own time of the same execution, which says whether
/// they time the same; and against each other, with an interval, which says what single executions of this machine can
/// tell.
fn add_queries(measured: &[Vec<(Timed, Timed)>], figures: &mut Figures) {
    let mut beyond = Vec::new();
    let mut with_1 = 0;
    for (query, pairs) in QUERIES.zip(measured) {
        let (ours, theirs) = (
            beyond_server(pairs.iter().map(|(ours, _)| ours)),
            beyond_server(pairs.iter().map(|(_, theirs)| theirs)),
        );
        let ratios = Ratios::of(&client_ms(pairs));
        with_1 += usize::from(ratios.hold_1());
        let psql = pairs.iter().map(|(_, theirs)| theirs.client_ms);
        let psql_ms = median(psql).expect("there are pairs");
        eprintln!(
            "  Q{query}: {ratios} x psql's {psql_ms:.1} ms; beyond the server's own time: ours {ours:.3} %, psql's {theirs:.3} %"
        );
        beyond.push((ours, theirs));
    }
    eprintln!(
        "  1 is in the interval of {with_1} of {} queries",
        beyond.len()
    );
    let sums: Vec<(f64, f64)> = (0..measured[0].len())
        .map(|pair| {
            let of_pair = measured.iter().map(|pairs| pairs[pair]);
            of_pair.fold((0.0, 0.0), |(a, b), (ours, theirs)| {
                (a + ours.client_ms, b + theirs.client_ms)
            })
        })
        .collect();
    figures.add(Figure::of_pairs(
        "PostgreSQL TPC-H, 22 queries, ms".to_owned(),
        "psql \\timing",
        &sums,
        None,
    ));
    let mut worst = |what: &str, values: Vec<f64>| {
        let worst = values.into_iter().map(f64::abs).fold(0.0, f64::max);
        let goal = Some(Goal::AtMost(APART_MAX_PERCENT));
        figures.add(Figure::alone(what.to_owned(), [worst].into_iter(), goal));
    };
    worst(
        "of 22 queries, worst: ours beyond server's, %",
        beyond.iter().map(|(ours, _)| *ours).collect(),
    );
    worst(
        "of 22 queries, worst: ours from psql's, %",
        beyond.iter().map(|(ours, theirs)| ours - theirs).collect(),
    );
}

fn client_ms(pairs: &[(Timed, Timed)]) -> Vec<(f64, f64)> {
    let clients = pairs.iter();
    clients
        .map(|(ours, theirs)| (ours.client_ms, theirs.client_ms))
        .collect()
}

/// By how many percent a client's times go beyond the server's own, median.
fn beyond_server<'a>(timed: impl Iterator<Item = &'a Timed>) -> f64 {
    let ratios = timed.map(|timed| timed.client_ms / timed.server_ms);
    100.0 * (median(ratios).expect("there are pairs") - 1.0)
}

/// Milliseconds of a query, as our client's histogram has them, within 0.1 %.
fn ours_ms(engine: &Arc<dyn RunningEngine>, query: u8) -> f64 {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let behaviour = Behaviour {
        clients: 1,
        ..Behaviour::default()
    };
    let mut running = engine.start_clients(&env, behaviour);
    running.measure(true);
    while !running.is_finished() {
        assert_eq!(running.failure(), None);
        std::thread::sleep(Duration::from_millis(5));
    }
    let kinds = running.by_kind();
    block_on(running.stop()).expect("the client ends");
    kinds[usize::from(query) - 1].latencies.mean_us() / 1e3
}

/// The same, as psql tells them.
fn told_ms(private: &Private, psql: &Path, script: &Path) -> f64 {
    let script = script.display().to_string();
    let said = carry_out(private, psql, &["-o", "/dev/null", "-f", &script]);
    let told = said
        .split_once("Time: ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    told.unwrap_or_else(|| panic!("psql said {said}"))
}

fn carry_out(private: &Private, psql: &Path, arguments: &[&str]) -> String {
    let output = Command::new(psql)
        .env("PGPASSWORD", private.password())
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "spindle"])
        .args(["-d", "postgres", "-h"])
        .arg(private.socket_directory())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("psql runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
