//! A run as rows of tables: what `spindle export --to` writes into PostgreSQL. The tables are in `schema.sql` beside
//! this file, a field of a row is a column there, and `docs/export.md` describes them. A change of the tables is a new
//! version.

use serde_json::{Map, Value, json};

use super::csv::COLUMNS;
use crate::compare::differences::lasting_facts;
use spindle_result::{Case, LoadLevel, RunResult, SampledTrial, StoredRun, Trial};

/// The statements that make the tables.
pub const SCHEMA: &str = include_str!("schema.sql");
/// Version of the tables.
pub const SCHEMA_VERSION: i64 = 2;

/// A run in rows.
pub struct ExportRows {
    /// By which the run is known, wherever its directory is.
    pub run: String,
    /// What makes its machine another one than others: text of a JSON object, always the same for the same machine.
    pub machine_facts: String,
    /// The row of the machine, but for `machine`, its key.
    pub machine: Value,
    /// The row of the run, but for `machine`.
    pub of_run: Value,
    /// Names of tables and their rows, in an order in which they can be written.
    pub tables: Vec<(&'static str, Vec<Value>)>,
}

/// The rows of a run; `directory` is where it lies.
pub fn rows(stored: &StoredRun, directory: &str) -> ExportRows {
    let result = &stored.result;
    let facts: Map<String, Value> = lasting_facts(result)
        .into_iter()
        .map(|(path, value)| (path, Value::String(value)))
        .collect();
    let machine = result.machine.as_ref();
    let run = stored.id.clone();
    ExportRows {
        machine_facts: Value::Object(facts.clone()).to_string(),
        machine: json!({
            "host": machine.map(|machine| &machine.host),
            "distribution": machine.map(|machine| &machine.distribution),
            "kernel_release": machine.map(|machine| &machine.kernel_release),
            "processor": machine.map(|machine| &machine.processor.model),
            "memory_bytes": machine.and_then(|machine| machine.memory_bytes),
            "facts": facts,
        }),
        of_run: json!({
            "run": run,
            "experiment": result.experiment.name(),
            "workload": result.workload,
            "started_at": stored.started_at,
            "is_finished": stored.is_finished,
            "spindle_version": machine.map(|machine| &machine.spindle_version),
            "directory": directory,
            "headline": result.headline,
            "settings": result.experiment.document(),
        }),
        tables: vec![
            ("cases", cases(result, &run)),
            ("trials", of_trials(result, &run, trial)),
            ("waits", of_trials(result, &run, waits)),
            ("series", series(result, &stored.record.series, &run)),
            ("verdicts", verdicts(result, &run)),
            ("findings", findings(result, &run)),
            ("warnings", warnings(result, &run)),
        ],
        run,
    }
}

fn cases(result: &RunResult, run: &str) -> Vec<Value> {
    result
        .cases
        .iter()
        .map(|one| case(result, one, run))
        .collect()
}

fn case(result: &RunResult, case: &Case, run: &str) -> Value {
    let layout = result.layout_of(case);
    let price = layout.and_then(|layout| layout.price.as_deref());
    let summary = case.summary();
    json!({
        "run": run,
        "layout": case.id.layout,
        "clients": case.id.load.clients,
        "rate": rate(case.id.load),
        "status": case.outcome.status(),
        "reason": case.outcome.reason(),
        "path": layout.map(|layout| &layout.path),
        "caching": layout.map(|layout| layout.caching),
        "method": layout.map(|layout| &layout.method),
        "engine": layout.and_then(|layout| layout.engine.as_ref()),
        "description": layout.map(|layout| &layout.description),
        "keeps": case.promise.keeps.word(),
        "price_per_month": price.map(|price| price.hundredths_per_month as f64 / 100.0),
        "currency": price.map(|price| &price.currency),
        "trials": case.trials.len(),
        "tpm": case.tpm.map(|tpm| tpm.mean),
        "tpm_low": case.tpm.and_then(|tpm| Some(tpm.ci95?.0)),
        "tpm_high": case.tpm.and_then(|tpm| Some(tpm.ci95?.1)),
        "latency_p50_us": summary.as_ref().map(|of| of.p50_ms * 1e3),
        "latency_p95_us": summary.as_ref().map(|of| of.p95_ms * 1e3),
        "latency_p99_us": summary.as_ref().map(|of| of.p99_ms * 1e3),
        "capacity_per_s": case.capacity().map(|capacity| capacity.rate_per_s),
    })
}

/// The rate of a load level, as the experiment file spells it; nothing where the plan has no several.
fn rate(load: LoadLevel) -> String {
    load.rate.map(|rate| rate.to_string()).unwrap_or_default()
}

/// Rows that each trial has, with the fields that say which trial it is.
fn of_trials(
    result: &RunResult,
    run: &str,
    of: impl Fn(&Trial, &Map<String, Value>) -> Vec<Value>,
) -> Vec<Value> {
    let mut rows = Vec::new();
    for case in &result.cases {
        for trial in &case.trials {
            rows.extend(of(trial, &which(run, case, trial.round)));
        }
    }
    rows
}

fn which(run: &str, case: &Case, round: u32) -> Map<String, Value> {
    let which = json!({
        "run": run, "layout": case.id.layout, "clients": case.id.load.clients,
        "rate": rate(case.id.load), "round": round,
    });
    match which {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The figures of the CSV, under the same names.
fn trial(trial: &Trial, which: &Map<String, Value>) -> Vec<Value> {
    let mut row = which.clone();
    for column in &COLUMNS {
        let value = (column.value)(trial);
        row.insert(column.name.to_owned(), value.map_or(Value::Null, number));
    }
    row.insert("keeps".to_owned(), trial.promise.keeps.word().into());
    vec![Value::Object(row)]
}

/// A figure; a whole number without a fraction, which columns of whole numbers want.
fn number(value: f64) -> Value {
    /// Beyond, not every whole number is a float.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    match value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        true => Value::from(value as i64),
        false => Value::from(value),
    }
}

/// A row for each event; those of one name are one.
fn waits(trial: &Trial, which: &Map<String, Value>) -> Vec<Value> {
    let mut events: Vec<(&str, u64, f64)> = Vec::new();
    for wait in &trial.waits {
        let name = wait.event.name();
        match events.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, count, total_us)) => {
                *count += wait.count;
                *total_us += wait.total_us;
            }
            None => events.push((name, wait.count, wait.total_us)),
        }
    }
    let row = |(event, count, total_us): (&str, u64, f64)| {
        let mut row = which.clone();
        row.insert("event".to_owned(), event.into());
        row.insert("count".to_owned(), count.into());
        row.insert("total_us".to_owned(), total_us.into());
        Value::Object(row)
    };
    events.into_iter().map(row).collect()
}

/// The series of trials that count.
fn series(result: &RunResult, series: &[SampledTrial], run: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    for sampled in series {
        let case = result.case(&sampled.case);
        let trial = case.and_then(|case| {
            let mut trials = case.trials.iter();
            trials.find(|trial| trial.round == sampled.round)
        });
        if let (Some(case), Some(_)) = (case, trial) {
            let mut row = which(run, case, sampled.round);
            row.extend(summed_up(sampled));
            rows.push(Value::Object(row));
        }
    }
    rows
}

fn summed_up(sampled: &SampledTrial) -> Map<String, Value> {
    let tps = &sampled.tps;
    let count = tps.len() as f64;
    let mean = (!tps.is_empty()).then(|| tps.iter().sum::<f64>() / count);
    let deviation = mean.filter(|_| tps.len() > 1).map(|mean| {
        let squares: f64 = tps.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1.0)).sqrt()
    });
    let fields = json!({
        "interval_ms": sampled.interval_ms,
        "samples": tps.len(),
        "tps_mean": mean,
        "tps_deviation": deviation,
        "tps_min": tps.iter().copied().reduce(f64::min),
        "tps_max": tps.iter().copied().reduce(f64::max),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn verdicts(result: &RunResult, run: &str) -> Vec<Value> {
    let row = |pair: &spindle_result::Pair| {
        json!({
            "run": run,
            "clients": pair.cases.load.clients,
            "rate": rate(pair.cases.load),
            "a": pair.cases.a,
            "b": pair.cases.b,
            "verdict": pair.verdict,
            "ratio": pair.ratio,
            "ratio_low": pair.ci95.map(|(low, _)| low),
            "ratio_high": pair.ci95.map(|(_, high)| high),
            "rounds": pair.rounds,
            "p_value": pair.p_value_of_all,
        })
    };
    result.pairs.iter().map(row).collect()
}

fn findings(result: &RunResult, run: &str) -> Vec<Value> {
    let row = |(number, finding): (usize, &spindle_result::Finding)| {
        json!({
            "run": run,
            "number": number + 1,
            "kind": finding.kind,
            "layouts": finding.layouts,
            "clients": finding.clients,
            "finding": finding.text,
            "remedy": finding.remedy,
        })
    };
    result.findings.iter().enumerate().map(row).collect()
}

fn warnings(result: &RunResult, run: &str) -> Vec<Value> {
    let row = |(number, warning): (usize, &spindle_result::Warning)| {
        let number = number + 1;
        json!({ "run": run, "number": number, "warning": warning.text })
    };
    result.warnings.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spindle_result::{CaseId, Finding, SystemSeries, Wait, Warning, sample};

    use super::*;

    /// Names of the columns of a table.
    fn columns(table: &str) -> BTreeSet<String> {
        let begin = format!("create table {table} (\n");
        let (_, rest) = SCHEMA.split_once(&begin).expect(table);
        let (body, _) = rest.split_once("\n);").unwrap();
        let names = body
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let constraints = ["primary", "foreign"];
        names
            .filter(|name| !constraints.contains(name))
            .map(str::to_owned)
            .collect()
    }

    fn keys(row: &Value) -> BTreeSet<String> {
        row.as_object().unwrap().keys().cloned().collect()
    }

    /// A run with something for each table.
    fn sample() -> StoredRun {
        let cases: [(&str, &[f64]); 2] = [("fast", &[3.0, 3.1, 2.9]), ("slow", &[2.0, 2.1, 1.9])];
        let mut record = sample::record(&cases);
        let wait = Wait {
            event: "log file sync".into(),
            count: 2,
            total_us: 800.0,
            mean_us: 400.0,
            sampled: false,
        };
        record.cases[0].trials[0].waits = vec![wait.clone(), wait];
        record.series.push(SampledTrial {
            case: CaseId::new("fast", 8),
            round: 1,
            interval_ms: 500,
            tps: vec![0.04, 0.06],
            system: SystemSeries::default(),
        });
        record.warnings.push(Warning {
            text: "it was a busy day".to_owned(),
        });
        let at = "2026-01-01T12:00:00.5Z";
        let mut stored = StoredRun::of("here".as_ref(), "made-up", at, true, record).unwrap();
        stored.result.findings.push(Finding {
            kind: "double buffering".to_owned(),
            layouts: vec!["fast".to_owned()],
            cases: Vec::new(),
            clients: vec![8],
            text: "blocks lie in two caches".to_owned(),
            evidence: Vec::new(),
            remedy: "direct I/O".to_owned(),
        });
        stored
    }

    #[test]
    fn waits_of_one_event_are_one_row_and_a_series_is_summed_up() {
        let rows = rows(&sample(), "here");
        let of = |name: &str| {
            let mut tables = rows.tables.iter();
            &tables.find(|(table, _)| *table == name).unwrap().1
        };
        assert_eq!(of("waits").len(), 1);
        assert_eq!(
            (&of("waits")[0]["count"], &of("waits")[0]["total_us"]),
            (&4.into(), &1600.0.into())
        );
        let series = &of("series")[0];
        let mean = series["tps_mean"].as_f64().unwrap();
        assert!((mean - 0.05).abs() < 1e-12, "{series}");
        assert_eq!(rows.run, "made-up 2026-01-01T12:00:00.5Z");
    }

    #[test]
    fn every_field_is_a_column_and_every_column_a_field() {
        let rows = rows(&sample(), "/srv/runs/made-up");
        let with_machine = |row: &Value| {
            let mut keys = keys(row);
            keys.insert("machine".to_owned());
            keys
        };
        assert_eq!(with_machine(&rows.machine), columns("machines"));
        assert_eq!(with_machine(&rows.of_run), columns("runs"));
        for (table, rows) in &rows.tables {
            for row in rows {
                assert_eq!(keys(row), columns(table), "{table}");
            }
            assert!(!rows.is_empty(), "{table}");
        }
    }

    #[test]
    fn whole_numbers_have_no_fraction() {
        assert_eq!(number(30_861.0).to_string(), "30861");
        assert_eq!(number(0.5).to_string(), "0.5");
        assert_eq!(number(f64::NAN), Value::Null);
    }
}
