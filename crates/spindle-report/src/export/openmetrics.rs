//! Samples in the text format of OpenMetrics 1.0 (<https://github.com/prometheus/OpenMetrics>,
//! specification/OpenMetrics.md): gauges and summaries in base units (seconds, bytes, ratios), labelled with layout,
//! workload, clients and, where the plan has several, rate. They have no timestamps: they are of a whole run.

use std::fmt::Write as _;

use spindle_result::{Case, Latency, LoadLevel, RunResult, Verdict};

/// A family of metrics that has one sample for each case.
struct Family {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&Case) -> Option<f64>,
}

const FAMILIES: [Family; 5] = [
    Family {
        name: "spindle_throughput_transactions_per_second",
        unit: "transactions_per_second",
        help: "Transactions committed per second, mean of the rounds.",
        value: |case| Some(case.tpm?.mean / 60.0),
    },
    Family {
        name: "spindle_reads_per_second",
        unit: "",
        help: "Reads per second that the database issued, mean of the rounds.",
        value: |case| case.summary()?.read_iops,
    },
    Family {
        name: "spindle_writes_per_second",
        unit: "",
        help: "Writes per second that the database issued, redo included, mean of the rounds.",
        value: |case| case.summary()?.write_iops,
    },
    Family {
        name: "spindle_io_bytes_per_second",
        unit: "bytes_per_second",
        help: "Bytes per second that the database read and wrote, mean of the rounds.",
        value: |case| Some(case.summary()?.kib_per_s? * 1024.0),
    },
    Family {
        name: "spindle_trials",
        unit: "",
        help: "Finished trials.",
        value: |case| Some(case.trials.len() as f64),
    },
];

/// The measured cases of a run, and its verdicts.
pub fn openmetrics(result: &RunResult, started_at: &str) -> String {
    let mut text = String::new();
    begin(&mut text, "spindle_run", "info", "", "The run.");
    let labels = [
        ("experiment", result.experiment.name()),
        ("started_at", started_at),
        ("headline", &result.headline),
    ];
    sample(&mut text, "spindle_run_info", &labels, 1.0);
    for family in &FAMILIES {
        begin(&mut text, family.name, "gauge", family.unit, family.help);
        for case in measured(result) {
            if let Some(value) = (family.value)(case) {
                sample(
                    &mut text,
                    family.name,
                    &labels_of(result, case).as_labels(),
                    value,
                );
            }
        }
    }
    intervals(&mut text, result);
    latencies(&mut text, result);
    waits(&mut text, result);
    ratios(&mut text, result);
    pairs(&mut text, result);
    text.push_str("# EOF\n");
    text
}

fn measured(result: &RunResult) -> impl Iterator<Item = &Case> {
    result.cases.iter().filter(|case| case.is_compared())
}

fn begin(text: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {}", escaped(help));
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    let labels: Vec<String> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
        .collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}

/// Backslash, line feed and quotation mark, as the format's `escaped-string` wants them.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"")
}

/// The labels of a case.
struct Labels<'a> {
    layout: &'a str,
    workload: &'a str,
    clients: String,
    rate: Option<String>,
}

impl Labels<'_> {
    fn as_labels(&self) -> Vec<(&str, &str)> {
        let mut labels = vec![
            ("layout", self.layout),
            ("workload", self.workload),
            ("clients", &*self.clients),
        ];
        labels.extend(self.rate.as_deref().map(|rate| ("rate", rate)));
        labels
    }
}

fn labels_of<'a>(result: &'a RunResult, case: &'a Case) -> Labels<'a> {
    Labels {
        layout: &case.id.layout,
        workload: &result.workload,
        clients: case.id.load.clients.to_string(),
        rate: case.id.load.rate.map(|rate| rate.to_string()),
    }
}

/// Both ends of the interval of throughput.
fn intervals(text: &mut String, result: &RunResult) {
    let name = "spindle_throughput_interval_transactions_per_second";
    let help = "Ends of the 95 % interval of spindle_throughput_transactions_per_second.";
    begin(text, name, "gauge", "transactions_per_second", help);
    for case in measured(result) {
        let Some((low, high)) = case.tpm.and_then(|tpm| tpm.ci95) else {
            continue;
        };
        for (end, value) in [("low", low), ("high", high)] {
            let labels = labels_of(result, case);
            let labels = [&labels.as_labels()[..], &[("end", end)]].concat();
            sample(text, name, &labels, value / 60.0);
        }
    }
}

/// Transaction times: the quantiles are means of the rounds' own, count and sum are of all rounds.
fn latencies(text: &mut String, result: &RunResult) {
    let name = "spindle_transaction_seconds";
    let help = "Time of a transaction, from its begin (at a fixed rate from its intended begin) to the end of its commit.";
    begin(text, name, "summary", "seconds", help);
    type QuantileOf = fn(&Latency) -> f64;
    let quantiles: [(&str, QuantileOf); 3] = [
        ("0.5", |latency| latency.p50),
        ("0.95", |latency| latency.p95),
        ("0.99", |latency| latency.p99),
    ];
    for case in measured(result) {
        let labels = labels_of(result, case);
        let labels = &labels.as_labels()[..];
        for (quantile, of) in quantiles {
            let values = case.trials.iter().map(|trial| of(&trial.latency_us) / 1e6);
            let mean = values.sum::<f64>() / case.trials.len() as f64;
            let labels = [labels, &[("quantile", quantile)]].concat();
            sample(text, name, &labels, mean);
        }
        let transactions = case.trials.iter().map(|trial| trial.transactions as f64);
        sample(text, &format!("{name}_count"), labels, transactions.sum());
        let times = case.trials.iter();
        let times = times.map(|trial| trial.latency_us.mean / 1e6 * trial.transactions as f64);
        sample(text, &format!("{name}_sum"), labels, times.sum());
    }
}

/// Wait events, all rounds together.
fn waits(text: &mut String, result: &RunResult) {
    let name = "spindle_wait_seconds";
    let help = "Time that sessions and background processes waited for an event, in all rounds.";
    begin(text, name, "summary", "seconds", help);
    for case in measured(result) {
        let labels = labels_of(result, case);
        for event in case.wait_events() {
            let (count, total_us) = case.total_wait(|it| it == event);
            let labels = [&labels.as_labels()[..], &[("event", event.name())]].concat();
            sample(text, &format!("{name}_count"), &labels, count as f64);
            sample(text, &format!("{name}_sum"), &labels, total_us / 1e6);
        }
    }
}

/// The best of each workload and load against every other, with the interval and the verdict.
fn ratios(text: &mut String, result: &RunResult) {
    let name = "spindle_comparison_ratio";
    let help = "Throughput of layout a over that of layout b, at a fixed rate the 99th percentile of the transaction time of b \
                over that of a; the label estimate is mean, low or high (95 % interval).";
    begin(text, name, "gauge", "ratio", help);
    for comparison in &result.verdicts {
        let between = Between {
            layouts: [&comparison.cases.a, &comparison.cases.b],
            workload: &result.workload,
            load: comparison.cases.load,
            verdict: comparison.verdict,
        };
        between.samples(text, name, comparison.ratio, comparison.ci95);
    }
}

/// Every case of each workload and load beside every other, with the verdict that allows for all pairs.
fn pairs(text: &mut String, result: &RunResult) {
    let name = "spindle_pair_ratio";
    let help = "The same of every pair of layouts; the verdict is corrected for all pairs of the workload and load level, the \
                interval is that of the pair alone.";
    begin(text, name, "gauge", "ratio", help);
    for pair in &result.pairs {
        let between = Between {
            layouts: [&pair.cases.a, &pair.cases.b],
            workload: &result.workload,
            load: pair.cases.load,
            verdict: pair.verdict,
        };
        between.samples(text, name, pair.ratio, pair.ci95);
    }
}

/// What a ratio is between, and what is said of it.
struct Between<'a> {
    layouts: [&'a str; 2],
    workload: &'a str,
    load: LoadLevel,
    verdict: Verdict,
}

impl Between<'_> {
    fn samples(&self, text: &mut String, name: &str, ratio: f64, ci95: Option<(f64, f64)>) {
        let (clients, verdict) = (self.load.clients.to_string(), self.verdict.to_string());
        let rate = self.load.rate.map(|rate| rate.to_string());
        let mut estimates = vec![("mean", ratio)];
        if let Some((low, high)) = ci95 {
            estimates.extend([("low", low), ("high", high)]);
        }
        for (estimate, value) in estimates {
            let mut labels = vec![
                ("a", self.layouts[0]),
                ("b", self.layouts[1]),
                ("workload", self.workload),
                ("clients", &clients),
                ("verdict", &verdict),
                ("estimate", estimate),
            ];
            labels.extend(rate.as_deref().map(|rate| ("rate", rate)));
            sample(text, name, &labels, value);
        }
    }
}
