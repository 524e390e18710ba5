//! Whether figures that were noted can be those of a trial. A journal without checksums may hold any number, and code
//! that draws or divides figures does not check again.

use serde::Serialize;
use serde_json::Value;

use super::{ClientAudit, SystemSeries, TimeUse, Trial};

/// Beyond all that a trial counts, in any unit: 10 PB, or 300 years in microseconds. Sums of such figures are still
/// numbers.
const MOST: f64 = 1e16;

/// More than any machine does: transactions in a second.
const PER_SECOND_MAX: f64 = 1e12;

const NO_THROUGHPUT: &str = "no run has such a throughput";

/// Shares are sums and differences of rounded figures.
const TOLERANCE: f64 = 0.01;

/// Less than any trial is measured for, seconds.
const LEAST_MEASURED_S: f64 = 1e-6;

/// Whether there can be this many transactions in a second.
pub fn is_rate(per_s: f64) -> bool {
    (0.0..=PER_SECOND_MAX).contains(&per_s)
}

/// What is wrong with the figures of a trial, to follow "line 3: "; `None` where any trial might have them.
pub fn impossible_trial(trial: &Trial) -> Option<String> {
    let told = |what: &str| Some(what.to_owned());
    if !is_rate(trial.tpm / 60.0) {
        return told(NO_THROUGHPUT);
    }
    impossible_figure(&without_excess(trial)).or_else(|| {
        let clients = trial.audit.clients.iter();
        match trial.measured_s < LEAST_MEASURED_S {
            true => told("no trial is measured for so short a time"),
            false if !has_rates(trial) => told(NO_THROUGHPUT),
            false if !has_shares(trial) => told("no share is above the whole"),
            false if !clients.into_iter().all(adds_up) => told("there were fewer clients"),
            false => None,
        }
    })
}

/// The trial with nothing below zero that may be: earlier versions noted by how much the accounts were beyond the whole
/// as a negative `other`.
fn without_excess(trial: &Trial) -> Trial {
    let mut trial = trial.clone();
    let parts = trial.figures.response_time.iter_mut();
    for part in parts.flat_map(|time| &mut time.parts) {
        if part.part == TimeUse::Unaccounted {
            part.us = part.us.abs();
        }
    }
    trial
}

/// Whether shares are of the whole, and no more.
fn has_shares(trial: &Trial) -> bool {
    let cpu = trial.cpu.iter();
    let of_processors =
        cpu.flat_map(|cpu| [cpu.user, cpu.system, cpu.iowait, cpu.idle].map(|share| share / 100.0));
    let steps = trial.capacity.iter().flat_map(|of| &of.steps);
    let late = steps.map(|step| step.late_share);
    let of_cache = trial.cache.iter().map(|cache| cache.filled_at_end);
    let mut shares = of_processors
        .chain(late)
        .chain(of_cache)
        .chain(trial.audit.page_cache_share);
    shares.all(|share| share <= 1.0 + TOLERANCE)
}

/// Whether transactions, of all kinds and of each, can have been committed in the measured time.
fn has_rates(trial: &Trial) -> bool {
    let kinds = trial.kinds.iter().map(|kind| kind.transactions);
    let mut counts = kinds.chain([trial.transactions]);
    counts.all(|count| is_rate(count as f64 / trial.measured_s))
}

/// What is wrong with figures sampled beside a trial; `None` where nothing is.
pub fn impossible_series(series: &SystemSeries) -> Option<String> {
    let is_within = |value: f32| f64::from(value.abs()) <= MOST;
    let is_wrong = |value: &Option<f32>| value.is_some_and(|value| !is_within(value));
    let mut columns = series.columns.iter();
    let wrong = columns.find(|column| column.values.iter().any(is_wrong))?;
    Some(format!("{} has samples that no system has", wrong.name))
}

/// The first figure in something noted that is out of its range, in words; `None` where none is.
pub fn impossible_figure(of: &impl Serialize) -> Option<String> {
    let value = serde_json::to_value(of).ok()?;
    first_out_of_range(&value, &mut Vec::new())
}

fn first_out_of_range<'a>(value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::INFINITY);
            let is_right = (0.0..=MOST).contains(&number);
            (!is_right).then(|| format!("{} cannot be {number:e}", path.join(".")))
        }
        Value::Array(values) => {
            let mut values = values.iter();
            values.find_map(|value| first_out_of_range(value, path))
        }
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            path.push(key);
            let wrong = first_out_of_range(value, path);
            path.pop();
            wrong
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// Clients that connect, think or have nothing to do are some of all.
fn adds_up(audit: &ClientAudit) -> bool {
    let ClientAudit {
        clients,
        in_transactions,
        deferring,
        thinking,
        idle,
        away,
        ..
    } = audit;
    // Rounding, and clients that come and go, leave some room.
    let most = 2.0 * *clients as f64 + 1.0;
    [in_transactions, deferring, thinking, idle, away]
        .iter()
        .all(|part| **part <= most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResponseTime, SystemColumn, TimePart, sample};

    #[test]
    fn figures_have_ranges() {
        let good = sample::trial(1, 600.0);
        assert_eq!(impossible_trial(&good), None);
        let wrong = |change: fn(&mut Trial)| {
            let mut trial = good.clone();
            change(&mut trial);
            impossible_trial(&trial).unwrap_or_default()
        };
        let told = wrong(|trial| trial.latency_us.mean = -5_000.0);
        assert_eq!(told, "latency_us.mean cannot be -5e3");
        let told = wrong(|trial| trial.cpu.as_mut().unwrap().user = 120.0);
        assert_eq!(told, "no share is above the whole");
        let told = wrong(|trial| trial.measured_s = 0.0);
        assert_eq!(told, "no trial is measured for so short a time");
        let told = wrong(|trial| trial.transactions = 1e14 as u64);
        assert_eq!(told, "no run has such a throughput");
        let told = wrong(|trial| trial.space[0].bytes = u64::MAX);
        assert!(told.starts_with("space.bytes cannot be"), "{told}");
    }

    #[test]
    fn only_what_was_left_over_in_earlier_versions_is_below_zero() {
        let with = |part: &str| {
            let mut trial = sample::trial(1, 600.0);
            let (part, us) = (part.into(), -3.0);
            trial.response_time = Some(ResponseTime {
                mean_us: 900.0,
                parts: vec![TimePart { part, us }],
                excess_us: 0.0,
            });
            impossible_trial(&trial)
        };
        assert_eq!(with("other"), None);
        assert!(with("user CPU").is_some());
    }

    #[test]
    fn samples_are_finite() {
        let with = |value: f32| {
            impossible_series(&SystemSeries {
                interval_ms: 1_000,
                columns: vec![SystemColumn {
                    name: "dirty_mib".into(),
                    values: vec![Some(1.0), None, Some(value)],
                }],
            })
        };
        assert_eq!(with(-2.5), None);
        for value in [f32::INFINITY, f32::NAN, 1e30] {
            assert!(with(value).is_some_and(|told| told.contains("dirty_mib")));
        }
    }
}
