//! How fast the rows of TPC-H are made, beside `tpchgen-cli`, which has the same generators, where it is found: by
//! `TPCHGEN_CLI` or in PATH. Both make scale 1 with as many threads as there are processors and throw it away; by
//! turns, medians of the pairs. `cargo bench -p spindle-workload --bench tpch`.

// A bench times the machine that it runs on.
#![allow(clippy::disallowed_methods)]

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use spindle_workload::SessionError;
use spindle_workload::sql::tpch::{Parameters, TpchVersion};
use spindle_workload::sql::{LoadPart, RowSink, SqlWorkload, Tpch, Value};

const PAIRS: usize = 5;

/// Counts rows, and looks at every value as a client library must.
#[derive(Default)]
struct Counting {
    rows: u64,
    bytes: u64,
}

impl RowSink for Counting {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        self.rows += 1;
        let bytes = values.iter().map(|value| match value {
            Value::Text(text) => text.len(),
            _ => 8,
        });
        self.bytes += bytes.sum::<usize>() as u64;
        Ok(())
    }
}

/// Rows made and seconds taken.
fn ours(parts: &[LoadPart], threads: usize) -> (u64, f64) {
    let (next, rows, bytes) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut sink = Counting::default();
                    (part.rows)(&mut sink).expect("nothing can be refused");
                    rows.fetch_add(sink.rows, Ordering::Relaxed);
                    bytes.fetch_add(sink.bytes, Ordering::Relaxed);
                }
            });
        }
    });
    std::hint::black_box(bytes.into_inner());
    (rows.into_inner(), began.elapsed().as_secs_f64())
}

/// Seconds that the peer takes; `None` when there is none.
fn theirs(program: &str, threads: usize) -> Option<f64> {
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(["-s", "1", "--stdout", "--num-threads", &threads.to_string()]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let ended = status.ok().filter(|status| status.success());
    ended.map(|_| began.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let workload = Tpch {
        version: TpchVersion::H,
        scale: 1.0,
        queries: Vec::new(),
        refresh: false,
        parameters: Parameters::Random,
        query_limit: None,
        kept: None,
        seed: 1,
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let program = std::env::var("TPCHGEN_CLI").unwrap_or_else(|_| "tpchgen-cli".to_owned());
    let parts = workload.load_parts(spindle_workload::sql::Dialect::Postgres);
    // Makes the text that comments are cut from, a second once in a process, which the peer pays in each run.
    let text = Instant::now();
    tpchgen::text::TextPool::get_or_init_default();
    let text_s = text.elapsed().as_secs_f64();
    let (mut own, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (rows, seconds) = ours(&parts, threads);
        let with_text = seconds + text_s;
        own.push(with_text);
        match theirs(&program, threads) {
            Some(peer) => {
                println!("{rows} rows: {with_text:.2} s, tpchgen-cli {peer:.2} s");
                ratios.push(with_text / peer);
            }
            None => println!("{rows} rows: {with_text:.2} s; {program} was not found"),
        }
    }
    println!(
        "generation of scale 1, {threads} threads: {:.2} s, text included ({text_s:.2} s)",
        median(own)
    );
    if !ratios.is_empty() {
        println!(
            "beside tpchgen-cli to /dev/null: {:.2} x its time (goal: at most 1)",
            median(ratios)
        );
    }
}
