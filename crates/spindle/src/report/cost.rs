//! What the instrument itself takes, in words: processor time of a transaction without storage, and memory. Printed with
//! every run, because a benchmark that is dear measures itself.

use crate::result::{Case, Memory, RunResult};

/// What Spindle itself costs, beside what a transaction took in the fastest case; `None` when it was not measured.
pub fn own_cost(result: &RunResult) -> Option<String> {
    let cpu = result.own_cost?.cpu_us_per_transaction;
    let cost_us = cpu.user + cpu.system;
    let mut text = format!(
        "Spindle's own cost: {cost_us:.0} us of CPU a transaction (one client, devices of memory)"
    );
    if let Some((case, latency_us)) = fastest(result) {
        text += &format!(
            ", {:.1} % of the {:.2} ms that one took in the fastest case ({}, {} clients)",
            100.0 * cost_us / latency_us,
            latency_us / 1e3,
            case.layout,
            case.clients
        );
    }
    Some(text)
}

/// The case of the highest throughput, and the mean time of a transaction there, in microseconds.
fn fastest(result: &RunResult) -> Option<(&Case, f64)> {
    let compared = result.cases.iter().filter(|case| case.is_compared());
    let tpm = |case: &Case| case.tpm.map_or(0.0, |tpm| tpm.mean);
    let case = compared.max_by(|a, b| tpm(a).total_cmp(&tpm(b)))?;
    let sum: f64 = case.trials.iter().map(|trial| trial.latency_us.mean).sum();
    Some((case, sum / case.trials.len() as f64))
}

/// What memory the database took in the trial that took most; `None` when no trial knows.
pub fn memory(result: &RunResult) -> Option<String> {
    let trials = result.cases.iter().flat_map(|case| &case.trials);
    let known: Vec<Memory> = trials.filter_map(|trial| trial.memory).collect();
    let most = |figure: fn(&Memory) -> u64| known.iter().map(figure).max();
    Some(format!(
        "Its memory at most: {} MiB of buffer cache as configured, {:.1} MiB for the rest of the instance, {} KiB a session",
        most(|memory| memory.buffer_cache_bytes)? >> 20,
        most(|memory| memory.instance_bytes)? as f64 / f64::from(1 << 20),
        most(|memory| memory.session_bytes)?.div_ceil(1024),
    ))
}
