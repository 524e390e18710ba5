//! Small records for the tests of this module: throughput is given, everything else is plain and unremarkable.

use serde_json::{Value, json};
use spindle_text::rate::Rate;

use super::experiment::ExperimentRecord;
use super::{
    Arrivals, Audit, CaseId, CaseRecord, CaseStatus, Conditions, CpuMicroseconds, CpuShares,
    IoCounts, Latency, Layout, LoadLevel, PageCache, Restore, RunRecord, SampledTrial,
    SegmentSpace, SystemColumn, SystemSeries, Trial, TrialFigures,
};

/// One direct layout per `(name, tpm of round 1, 2, ...)`, under `oltp_mix` with 8 clients, without any warning.
pub fn record(cases: &[(&str, &[f64])]) -> RunRecord {
    let planned_rounds = cases.iter().map(|(_, tpm)| tpm.len()).max().unwrap_or(0);
    let case = |(index, (_, tpm)): (usize, &(&str, &[f64]))| CaseRecord {
        layout: index,
        load: LoadLevel::of(8),
        outcome: CaseStatus::Measured,
        set_aside: Vec::new(),
        trials: (1..)
            .zip(*tpm)
            .map(|(round, &tpm)| trial(round, tpm))
            .collect(),
    };
    RunRecord {
        experiment: experiment(&[]),
        workload: "oltp_mix".to_owned(),
        machine: None,
        margin: 0.03,
        planned_rounds: planned_rounds as u32,
        auto: None,
        noise_check: None,
        matrix: None,
        is_quick: false,
        memory_budget_bytes: None,
        own_cost: None,
        layouts: cases.iter().map(|(name, _)| layout(name)).collect(),
        cases: cases.iter().enumerate().map(case).collect(),
        series: Vec::new(),
        phases: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The experiment `sample`, with these sections instead of its own.
pub fn experiment(sections: &[(&str, Value)]) -> ExperimentRecord {
    let mut document = json!({
        "name": "sample",
        "database": { "engine": "kernel", "size_bytes": 256 << 20 },
        "workload": { "clients": [8], "transactions": { "kind": "oltp_mix" } },
        "plan": { "warmup_ms": 2_000, "measure_ms": 5_000 },
        "layouts": [],
    });
    for (name, section) in sections {
        document[*name] = section.clone();
    }
    document.try_into().expect("an experiment")
}

/// Two layouts, `quick` and `slow`, in a closed loop in which `slow` does 500 transactions a second, and at each of
/// these parts of it. At the last one `slow` falls behind.
pub fn with_rates(parts: &[&str]) -> RunRecord {
    let closed: [(&str, &[f64]); 2] = [("quick", &[60e3, 60.1e3, 59.9e3]), ("slow", &[30e3; 3])];
    let mut record = record(&closed);
    for part in parts {
        let rate = Rate::parse(part).expect("a part");
        for layout in 0..closed.len() {
            let mut case = record.cases[layout].clone();
            case.load.rate = Some(rate);
            let is_slow = layout == 1;
            for trial in &mut case.trials {
                let rate_per_s = rate.per_s(Some(500.0)).expect("the slowest is known");
                trial.tpm = rate_per_s * 60.0;
                trial.latency_us.p99 =
                    if is_slow { 2_000.0 } else { 1_000.0 } + f64::from(trial.round);
                trial.arrivals = Some(Arrivals {
                    is_recorded: false,
                    rate_per_s,
                    delay_us: trial.latency_us,
                    backlog: 0,
                    is_overloaded: is_slow && parts.last() == Some(part),
                });
            }
            record.cases.push(case);
        }
    }
    record
}

fn layout(name: &str) -> Layout {
    Layout {
        name: name.to_owned(),
        path: ".".to_owned(),
        caching: PageCache::Direct,
        method: "sync".into(),
        engine: None,
        price: None,
        description: "files on ext4, direct, one by one".to_owned(),
        emulated: Vec::new(),
        not_direct: None,
        notes: Vec::new(),
        database: None,
        stack: Vec::new(),
    }
}

/// Adds what the system did in the trials of a layout: columns, each with its only value.
pub fn system(record: &mut RunRecord, layout: usize, columns: &[(&str, f64)]) {
    record.series.push(SampledTrial {
        case: CaseId::new(&record.layouts[layout].name, 8),
        round: 1,
        interval_ms: 1000,
        tps: vec![1.0],
        system: SystemSeries {
            interval_ms: 1000,
            columns: columns
                .iter()
                .map(|(name, value)| SystemColumn {
                    name: (*name).into(),
                    values: vec![Some(*value as f32)],
                })
                .collect(),
        },
    });
}

/// What both sides counted in a trial.
const COUNTS: IoCounts = IoCounts {
    reads: 100,
    writes: 50,
    read_bytes: 819_200,
    write_bytes: 409_600,
};

/// A plain trial with this throughput.
pub fn trial(round: u32, tpm: f64) -> Trial {
    Trial {
        round,
        position: 1,
        figures: TrialFigures {
            tpm,
            transactions: (tpm / 12.0) as u64,
            retries: 0,
            deadlocks: 0,
            errors: 0,
            reconnects: 0,
            kinds: Vec::new(),
            rows: None,
            statements: Vec::new(),
            queries: None,
            cache: None,
            measured_s: 5.0,
            read_iops: Some(20.0),
            write_iops: Some(10.0),
            kib_per_s: Some(240.0),
            latency_us: Latency {
                p50: 900.0,
                p95: 2_000.0,
                p99: 3_000.0,
                max: 9_000.0,
                mean: 1_000.0,
            },
            waits: Vec::new(),
            cpu: Some(CpuShares {
                user: 10.0,
                system: 20.0,
                iowait: 30.0,
                idle: 40.0,
            }),
            cpu_us_per_transaction: Some(CpuMicroseconds {
                user: 50.0,
                system: 90.0,
            }),
            memory: None,
            audit: Audit {
                dirty_bytes_at_end: Some(0),
                dirty_buffer_bytes_at_end: Some(65_536),
                cached_pages_at_end: Some(0),
                ..Audit::of_counts(Some(COUNTS), Some(COUNTS))
            },
            check: "5000 rows agree with the ledger".to_owned(),
            space: vec![SegmentSpace {
                segment: "accounts".to_owned(),
                extents: 256,
                bytes: 256 << 20,
            }],
            warnings: Vec::new(),
            promise: super::Promise::default(),
            warm_up: None,
            io_calls: None,
            arrivals: None,
            deferred: None,
            capacity: None,
            response_time: None,
            io: None,
        },
        restore: Restore {
            method: "copy changed blocks".to_owned(),
            changed_blocks: 12,
            verified: true,
            duration_ms: 8,
        },
        conditions: Conditions::default(),
    }
}
