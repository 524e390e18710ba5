//! TPC-H at scale 1: making the rows and copying them into the tables beside making them alone and `psql`'s `\copy` alone; and
//! the times of the 22 queries, one stream, beside those that `psql` tells with `\timing`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use spindle_engines::engine::Engine;
use spindle_engines::sql::{Purpose, ServerKind, server};
use spindle_io::Env;
use spindle_io::real::{RealEnv, block_on};
use spindle_workload::SessionError;
use spindle_workload::driver::Behaviour;
use spindle_workload::sql::tpch::{KINDS, Parameters, Version};
use spindle_workload::sql::{Dialect, LoadPart, RowSink, SqlWorkload, Tpch, Value};

use super::{Private, program_of_postgres};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal, median};

const QUERIES: usize = 22;
/// Rows, indexes and some room.
const DATA_BYTES: u64 = 2 << 30;
const LOADERS: usize = 2;
/// Each takes about as long as a load, or as the 22 queries.
const PAIRS_MAX: usize = 3;
const TABLES: [&str; 8] = [
    "lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region",
];

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    let Some(request) = Private::request(LOADERS, DATA_BYTES) else {
        return;
    };
    let Some(psql) = program_of_postgres("psql") else {
        eprintln!("  skipped: psql is not installed");
        return;
    };
    let scale = if pace.pairs > 2 { 1.0 } else { 0.01 };
    let workload = || Tpch {
        version: Version::H,
        scale,
        queries: (1..=QUERIES as u8).collect(),
        refresh: false,
        parameters: Parameters::Validation,
        query_limit: None,
        seed: 1,
    };
    let pairs = pace.pairs.min(PAIRS_MAX);
    let directories = Private::directories(directory);
    let postgres = server(ServerKind::Postgres);
    let created = postgres.create(&request, &directories);
    created.expect("a cluster");
    let loading = Private::start(&request, directories.clone(), Purpose::Load);
    loads(&loading, &psql, directory, &workload(), pairs, figures);
    loading.end();
    let private = Private::start(&request, directories, Purpose::Trial);
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

fn queries(
    private: &Private,
    psql: &Path,
    directory: &Path,
    workload: &dyn Fn() -> Tpch,
    pairs: usize,
    figures: &mut Figures,
) {
    // In the order of the power run.
    let script = directory.join("queries.sql");
    let order = order_of(&workload());
    let texts = order.iter().map(|&query| {
        let text = workload().query(query, 0, Dialect::Postgres);
        format!("{text};\n")
    });
    let text: String = ["\\timing on\n".to_owned()]
        .into_iter()
        .chain(texts)
        .collect();
    std::fs::write(&script, text).expect("the script");
    let engine = private.engine(workload());
    let ours = || ours(&engine);
    let theirs = || told(private, psql, &script, &order);
    // Both once, so that everything is in memory.
    ours();
    theirs();
    let measured: Vec<_> = (0..pairs).map(|_| (ours(), theirs())).collect();
    let sum = |times: &BTreeMap<u8, f64>| times.values().sum::<f64>();
    let sums: Vec<(f64, f64)> = measured.iter().map(|(a, b)| (sum(a), sum(b))).collect();
    figures.add(Figure::of_pairs(
        "PostgreSQL TPC-H, 22 queries, ms".to_owned(),
        "psql \\timing",
        &sums,
        None,
    ));
    let apart = |ratio: f64| 100.0 * (ratio - 1.0).abs();
    let ratio = |of: &dyn Fn(&BTreeMap<u8, f64>) -> f64| {
        median(measured.iter().map(|(a, b)| of(a) / of(b))).expect("there are pairs")
    };
    figures.add(Figure::alone(
        "the 22 queries' sum is apart from psql's by, %".to_owned(),
        [apart(ratio(&sum))].into_iter(),
        Some(Goal::AtMost(1.0)),
    ));
    let each = order
        .iter()
        .map(|query| apart(ratio(&|times| times[query])));
    figures.add(Figure::alone(
        "a query's time is apart from psql's by, median, %".to_owned(),
        each,
        Some(Goal::AtMost(1.0)),
    ));
}

/// The queries by number, in the order in which one stream asks them.
fn order_of(workload: &Tpch) -> Vec<u8> {
    let mut client = spindle_workload::Client {
        number: 0,
        clients: 1,
        changes: 0,
        rng: spindle_io::env::seeded_rng(1, 0),
    };
    let next = |_| workload.next(&mut client).kind() as u8 + 1;
    (0..QUERIES).map(next).collect()
}

/// Milliseconds of each query, as our clients' histograms have them.
fn ours(engine: &Arc<dyn Engine>) -> BTreeMap<u8, f64> {
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
    let of = |(place, _): (usize, _)| (place as u8 + 1, kinds[place].latencies.max_us() / 1e3);
    KINDS[..QUERIES].iter().enumerate().map(of).collect()
}

/// The same, as psql tells them.
fn told(private: &Private, psql: &Path, script: &Path, order: &[u8]) -> BTreeMap<u8, f64> {
    let script = script.display().to_string();
    let said = carry_out(private, psql, &["-o", "/dev/null", "-f", &script]);
    let times = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once("Time: ")?;
        rest.split(' ').next()?.parse::<f64>().ok()
    });
    let times: BTreeMap<u8, f64> = order.iter().copied().zip(times).collect();
    assert_eq!(times.len(), QUERIES, "psql said {said}");
    times
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
