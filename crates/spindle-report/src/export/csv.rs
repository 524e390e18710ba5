//! A row for each finished trial (RFC 4180). What is not known is an empty field.

use spindle_result::{Case, RunResult, Trial};
use spindle_text::cell;

/// A figure of a trial under its name.
pub(super) struct CsvColumn {
    pub(super) name: &'static str,
    pub(super) value: fn(&Trial) -> Option<f64>,
}

const fn column(name: &'static str, value: fn(&Trial) -> Option<f64>) -> CsvColumn {
    CsvColumn { name, value }
}

/// Which trial a row is of; the figures follow.
const KEYS: [&str; 6] = [
    "experiment",
    "started_at",
    "layout",
    "workload",
    "clients",
    "case_status",
];

/// The figures, in order. The table of trials has the same: `rows`.
pub(super) const COLUMNS: [CsvColumn; 38] = [
    column("round", |trial| Some(trial.round.into())),
    column("position", |trial| Some(trial.position.into())),
    column("tpm", |trial| Some(trial.tpm)),
    column("nopm", |trial| trial.nopm()),
    column("transactions", |trial| Some(trial.transactions as f64)),
    column("retries", |trial| Some(trial.retries as f64)),
    column("deadlocks", |trial| Some(trial.deadlocks as f64)),
    column("errors", |trial| Some(trial.errors as f64)),
    column("reconnects", |trial| Some(trial.reconnects as f64)),
    column("measured_s", |trial| Some(trial.measured_s)),
    column("read_iops", |trial| trial.read_iops),
    column("write_iops", |trial| trial.write_iops),
    column("kib_per_s", |trial| trial.kib_per_s),
    column("latency_p50_us", |trial| Some(trial.latency_us.p50)),
    column("latency_p95_us", |trial| Some(trial.latency_us.p95)),
    column("latency_p99_us", |trial| Some(trial.latency_us.p99)),
    column("latency_max_us", |trial| Some(trial.latency_us.max)),
    column("latency_mean_us", |trial| Some(trial.latency_us.mean)),
    column("cpu_user_percent", |trial| Some(trial.cpu?.user)),
    column("cpu_system_percent", |trial| Some(trial.cpu?.system)),
    column("cpu_iowait_percent", |trial| Some(trial.cpu?.iowait)),
    column("cpu_idle_percent", |trial| Some(trial.cpu?.idle)),
    column("cpu_user_us_per_transaction", |trial| {
        Some(trial.cpu_us_per_transaction?.user)
    }),
    column("cpu_system_us_per_transaction", |trial| {
        Some(trial.cpu_us_per_transaction?.system)
    }),
    column("instance_bytes", |trial| {
        Some(trial.memory?.instance_bytes as f64)
    }),
    column("session_bytes", |trial| {
        Some(trial.memory?.session_bytes as f64)
    }),
    column("program_read_bytes", |trial| {
        Some(trial.audit.tool?.read_bytes as f64)
    }),
    column("program_write_bytes", |trial| {
        Some(trial.audit.tool?.write_bytes as f64)
    }),
    column("device_read_bytes", |trial| {
        Some(trial.audit.device?.read_bytes as f64)
    }),
    column("device_write_bytes", |trial| {
        Some(trial.audit.device?.write_bytes as f64)
    }),
    column("page_cache_share", |trial| trial.audit.page_cache_share),
    column("warm_up_s", |trial| Some(trial.warm_up?.duration_s)),
    column("rate_per_s", |trial| Some(trial.arrivals?.rate_per_s)),
    column("capacity_per_s", |trial| {
        Some(trial.capacity.as_ref()?.rate_per_s)
    }),
    column("begin_delay_p99_us", |trial| {
        Some(trial.arrivals?.delay_us.p99)
    }),
    column("backlog", |trial| Some(trial.arrivals?.backlog as f64)),
    column("response_time_mean_us", |trial| {
        Some(trial.response_time.as_ref()?.mean_us)
    }),
    column("temporary_bytes", |trial| {
        Some(trial.queries.as_ref()?.temporary_bytes? as f64)
    }),
];

/// All finished trials of a run, those of failed cases as well. The columns of waits, and of the parts of the response
/// time, are those that any trial of the run has.
pub fn csv(result: &RunResult, started_at: &str) -> String {
    let waits = names(result, |trial| {
        trial.waits.iter().map(|wait| wait.event.name()).collect()
    });
    let parts = names(result, |trial| {
        let time = trial.response_time.iter();
        time.flat_map(|time| &time.parts)
            .map(|part| part.part.name())
            .collect()
    });
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let header = KEYS.iter().map(|key| (*key).to_owned());
    let figures = COLUMNS.iter().map(|column| column.name.to_owned());
    let of_waits = waits
        .iter()
        .flat_map(|event| ["count", "total_us"].map(|what| format!("wait {event} {what}")));
    let of_parts = parts.iter().map(|part| format!("response_time {part} us"));
    let promise = ["keeps", "may_lose_ms"].map(str::to_owned);
    let header = header
        .chain(figures)
        .chain(of_waits)
        .chain(of_parts)
        .chain(promise);
    write(
        &mut writer,
        header.map(|name| cell::harmless(&name)).collect(),
    );
    for case in &result.cases {
        for trial in &case.trials {
            let mut row = keys(result, started_at, case);
            let figures = COLUMNS.iter().map(|column| (column.value)(trial));
            row.extend(figures.map(field));
            row.extend(waits.iter().flat_map(|event| wait_of(trial, event)));
            row.extend(parts.iter().map(|part| part_of(trial, part)));
            row.push(trial.promise.keeps.word().to_owned());
            row.push(field(trial.promise.back_ms.map(|ms| ms as f64)));
            write(&mut writer, row);
        }
    }
    let text = writer.into_inner().expect("memory takes all");
    String::from_utf8(text).expect("every field is text")
}

fn write(writer: &mut ::csv::Writer<Vec<u8>>, row: Vec<String>) {
    let written = writer.write_record(row);
    written.expect("every row is as long as the header, and memory takes all");
}

/// Names that any trial has, in the order in which they are met.
fn names<'a>(result: &'a RunResult, of: impl Fn(&'a Trial) -> Vec<&'a str>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for name in result
        .cases
        .iter()
        .flat_map(|case| &case.trials)
        .flat_map(of)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn keys(result: &RunResult, started_at: &str, case: &Case) -> Vec<String> {
    vec![
        cell::harmless(result.experiment.name()),
        cell::harmless(started_at),
        cell::harmless(&case.id.layout),
        cell::harmless(&result.workload),
        case.id.load.clients.to_string(),
        case.outcome.status().to_owned(),
    ]
}

fn field(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn wait_of(trial: &Trial, event: &str) -> [String; 2] {
    let wait = trial.waits.iter().find(|wait| wait.event.name() == event);
    [
        field(wait.map(|wait| wait.count as f64)),
        field(wait.map(|wait| wait.total_us)),
    ]
}

fn part_of(trial: &Trial, part: &str) -> String {
    let mut parts = trial.response_time.iter().flat_map(|time| &time.parts);
    field(
        parts
            .find(|other| other.part.name() == part)
            .map(|part| part.us),
    )
}
