//! A run of six access paths over three rounds, one of which this machine could not run. The figures are invented, but
//! of the size that a small virtual machine gives, and disturbed a little from round to round.

use serde_json::{Value, json};
use spindle_result::machine::{Machine, MachineSettings, Processor};
use spindle_result::{
    Audit, CaseId, CaseRecord, CaseStatus, Conditions, CpuMicroseconds, CpuShares, IoCounts,
    Latency, Layout, LoadLevel, Memory, OwnCost, PageCache, Phase, Promise, Restore, RunRecord,
    RunResult, SampledTrial, SegmentSpace, SystemSeries, Trial, TrialFigures, TrialTimes, Wait,
    Warning,
};

/// Block size of the fixture's database.
const BLOCK_BYTES: u64 = 8_192;
/// Measured time of a trial.
const MEASURED_S: f64 = 5.0;
/// Time that one sample of throughput covers.
const INTERVAL_MS: u64 = 100;

/// What distinguishes one access path of the fixture.
struct Path {
    name: &'static str,
    caching: PageCache,
    method: &'static str,
    description: &'static str,
    tpm: f64,
    /// Share of reads answered by the page cache.
    cached: f64,
    redo_write_ms: f64,
    read_ms: f64,
    system_percent: f64,
}

const PATHS: [Path; 6] = [
    Path {
        name: "buffered, sync",
        caching: PageCache::Buffered,
        method: "sync",
        description: "files on ext4 through the page cache, one DBWR that writes block by block",
        tpm: 31_400.0,
        cached: 0.78,
        redo_write_ms: 0.31,
        read_ms: 0.052,
        system_percent: 41.0,
    },
    Path {
        name: "buffered, 8 slaves",
        caching: PageCache::Buffered,
        method: "slaves",
        description: "files on ext4 through the page cache, one DBWR with 8 I/O slaves",
        tpm: 48_900.0,
        cached: 0.77,
        redo_write_ms: 0.36,
        read_ms: 0.061,
        system_percent: 52.0,
    },
    Path {
        name: "direct, sync",
        caching: PageCache::Direct,
        method: "sync",
        description: "files on ext4 without the page cache, one DBWR that writes block by block",
        tpm: 34_200.0,
        cached: 0.0,
        redo_write_ms: 0.28,
        read_ms: 0.11,
        system_percent: 28.0,
    },
    Path {
        name: "direct, 8 slaves",
        caching: PageCache::Direct,
        method: "slaves",
        description: "files on ext4 without the page cache, one DBWR with 8 I/O slaves",
        tpm: 58_700.0,
        cached: 0.0,
        redo_write_ms: 0.33,
        read_ms: 0.12,
        system_percent: 37.0,
    },
    Path {
        name: "direct, async",
        caching: PageCache::Direct,
        method: "async",
        description: "files on ext4 without the page cache, one DBWR that submits batches through io_uring",
        tpm: 60_300.0,
        cached: 0.0,
        redo_write_ms: 0.3,
        read_ms: 0.12,
        system_percent: 31.0,
    },
    Path {
        name: "odm <registered & shared>",
        caching: PageCache::Direct,
        method: "odm",
        description: "preallocated files identified once, io_uring with registered files and buffers",
        tpm: 62_000.0,
        cached: 0.0,
        redo_write_ms: 0.29,
        read_ms: 0.11,
        system_percent: 29.0,
    },
];

/// Position of the access path that the fixture's machine refuses.
pub const SKIPPED: usize = 4;

/// How much faster or slower than usual a case ran in a round: a slow second round, and a little noise.
fn disturbance(case: usize, round: u32) -> f64 {
    const NOISE: [f64; 7] = [0.004, -0.009, 0.011, -0.002, 0.007, -0.006, 0.001];
    let whole_round = if round == 2 { 0.93 } else { 1.0 };
    whole_round * (1.0 + NOISE[(case * 3 + round as usize * 2) % NOISE.len()])
}

/// The run as its journal would give it.
pub fn record() -> RunRecord {
    let rounds = [1, 2, 3];
    let cases: Vec<CaseRecord> = (0..PATHS.len())
        .map(|case| CaseRecord {
            layout: case,
            load: LoadLevel::of(8),
            outcome: outcome(case),
            set_aside: Vec::new(),
            trials: match case {
                SKIPPED => Vec::new(),
                _ => rounds.map(|round| trial(case, round)).to_vec(),
            },
        })
        .collect();
    let measured = (0..PATHS.len()).filter(|&case| case != SKIPPED);
    RunRecord {
        experiment: json!({
            "name": "six-access-paths",
            "database": {
                "engine": "kernel", "size_bytes": 256 << 20, "block_size_bytes": 8192, "buffer_cache_bytes": 16 << 20,
            },
            "workload": { "clients": [8], "transactions": { "kind": "oltp_mix", "read_percent": 40 } },
            "plan": { "warmup_ms": 2000, "measure_ms": 5000, "rounds": 3 },
            "layouts": [],
        })
        .try_into()
        .expect("an experiment"),
        workload: "oltp_mix".to_owned(),
        machine: Some(machine()),
        margin: 0.03,
        planned_rounds: 3,
        auto: None,
        noise_check: None,
        matrix: None,
        is_quick: false,
        memory_budget_bytes: None,
        own_cost: Some(OwnCost {
            cpu_us_per_transaction: CpuMicroseconds { user: 24.6, system: 9.7 },
            transactions: 22_500,
            measured_s: 1.0,
            data_bytes: 32 << 20,
            buffer_cache_bytes: 2 << 20,
        }),
        layouts: PATHS.iter().map(layout).collect(),
        series: measured.flat_map(|case| rounds.map(|round| sampled(case, round))).collect(),
        cases,
        phases: vec![Phase {
            what: "loading the database".to_owned(),
            ms: 9_300,
        }],
        warnings: vec![Warning {
            text: "Other programs used 7 % of the processors on average: results are noisier than they need be.".to_owned(),
        }],
    }
}

/// Puts another value into the experiment of a result, at the path of a JSON pointer.
pub fn change_experiment(result: &mut RunResult, pointer: &str, value: Value) {
    let mut document = result.experiment.document().clone();
    *document.pointer_mut(pointer).expect("it is there") = value;
    result.experiment = document.try_into().expect("an experiment");
}

fn machine() -> Machine {
    Machine {
        host: "vm".to_owned(),
        kernel_release: "6.1.0".to_owned(),
        processor: Processor {
            model: "AMD EPYC".to_owned(),
            logical_processors: Some(2),
            ..Processor::default()
        },
        memory_bytes: Some(4 << 30),
        settings: MachineSettings {
            transparent_huge_pages: Some("madvise".to_owned()),
            ..MachineSettings::default()
        },
        ..Machine::default()
    }
}

fn outcome(case: usize) -> CaseStatus {
    match case {
        SKIPPED => CaseStatus::Skipped {
            reason: "io_uring is disabled on this machine (kernel.io_uring_disabled = 2)"
                .to_owned(),
        },
        _ => CaseStatus::Measured,
    }
}

fn layout(path: &Path) -> Layout {
    Layout {
        name: path.name.to_owned(),
        path: "/srv/spindle".to_owned(),
        caching: path.caching,
        method: path.method.into(),
        engine: None,
        price: None,
        description: path.description.to_owned(),
        emulated: Vec::new(),
        not_direct: None,
        notes: Vec::new(),
        database: None,
        stack: Vec::new(),
    }
}

/// A trial of an access path.
pub fn trial(case: usize, round: u32) -> Trial {
    let path = &PATHS[case];
    let tpm = path.tpm * disturbance(case, round);
    let transactions = (tpm / 60.0 * MEASURED_S) as u64;
    let (reads, writes) = (transactions * 5, transactions * 4);
    let per_second = |count: u64| count as f64 / MEASURED_S;
    let median_us = 8.0 * 60e6 / tpm;
    Trial {
        round,
        position: (case as u32 + round * 2) % 6 + 1,
        figures: TrialFigures {
            tpm,
            transactions,
            retries: u64::from(round) - 1,
            deadlocks: 0,
            errors: 0,
            reconnects: 0,
            kinds: Vec::new(),
            rows: None,
            statements: Vec::new(),
            queries: None,
            cache: None,
            measured_s: MEASURED_S,
            read_iops: Some(per_second(reads)),
            write_iops: Some(per_second(writes)),
            kib_per_s: Some(per_second((reads + writes) * BLOCK_BYTES / 1_024)),
            latency_us: Latency {
                p50: median_us * 0.8,
                p95: median_us * 2.1,
                p99: median_us * 3.4,
                max: median_us * 11.0,
                mean: median_us,
            },
            waits: vec![
                wait("db file sequential read", reads, path.read_ms),
                wait("log file sync", transactions, path.redo_write_ms * 1.4),
                wait(
                    "log file parallel write",
                    transactions / 3,
                    path.redo_write_ms,
                ),
                wait("db file parallel write", writes / 16, 2.4),
            ],
            cpu: Some(CpuShares {
                user: 14.0,
                system: path.system_percent,
                iowait: 80.0 - path.system_percent,
                idle: 6.0,
            }),
            cpu_us_per_transaction: Some(CpuMicroseconds {
                user: 180.0,
                system: 20_000.0 * path.system_percent / (tpm / 60.0),
            }),
            memory: Some(Memory {
                buffer_cache_bytes: 16 << 20,
                instance_bytes: (3 << 20) + (case as u64) * 40_960,
                session_bytes: 41_000 + 512 * u64::from(round),
            }),
            audit: audit(case, round, reads, writes),
            check: "5000 rows agree with the ledger".to_owned(),
            space: vec![SegmentSpace {
                segment: "accounts".to_owned(),
                extents: 256,
                bytes: 256 << 20,
            }],
            warnings: Vec::new(),
            promise: Promise::default(),
            warm_up: None,
            io_calls: None,
            arrivals: None,
            deferred: None,
            capacity: None,
            response_time: None,
            io: None,
        },
        restore: Restore {
            method: "changed blocks copied back in place".to_owned(),
            changed_blocks: writes / 3,
            verified: true,
            duration_ms: 740,
        },
        conditions: Conditions {
            times: Some(times(case)),
            ..Conditions::default()
        },
    }
}

/// Where the time of a trial went: the restore takes longer from path to path.
fn times(case: usize) -> TrialTimes {
    let (restore_ms, check_ms) = (700 + 40 * case as u64, 1_300);
    TrialTimes {
        restore_ms,
        quiet_ms: 120,
        probe_ms: 60,
        start_ms: 90,
        warm_up_ms: 2_000,
        measured_ms: 5_000,
        flush_ms: 30,
        check_ms,
        stop_ms: 40,
        whole_ms: restore_ms + check_ms + 7_440,
    }
}

/// Counts that agree but for the page cache, and one round of one case in which something else wrote.
fn audit(case: usize, round: u32, reads: u64, writes: u64) -> Audit {
    let tool = IoCounts {
        reads,
        writes,
        read_bytes: reads * BLOCK_BYTES,
        write_bytes: writes * BLOCK_BYTES,
    };
    let device_reads = (reads as f64 * (1.0 - PATHS[case].cached)) as u64;
    let device_writes = if (case, round) == (2, 3) {
        writes * 4 / 3
    } else {
        writes
    };
    let device = IoCounts {
        reads: device_reads,
        writes: device_writes,
        read_bytes: device_reads * BLOCK_BYTES,
        write_bytes: device_writes * BLOCK_BYTES,
    };
    Audit {
        dirty_bytes_at_end: Some(0),
        dirty_buffer_bytes_at_end: Some(case as u64 * 16 * BLOCK_BYTES),
        cached_pages_at_end: (PATHS[case].caching == PageCache::Direct).then_some(0),
        ..Audit::of_counts(Some(tool), Some(device))
    }
}

fn wait(event: &str, count: u64, mean_ms: f64) -> Wait {
    Wait {
        event: event.into(),
        count,
        total_us: count as f64 * mean_ms * 1e3,
        mean_us: mean_ms * 1e3,
        sampled: false,
    }
}

/// Throughput that wavers by a tenth and dips once, when a checkpoint runs.
fn sampled(case: usize, round: u32) -> SampledTrial {
    let level = PATHS[case].tpm * disturbance(case, round) / 60.0;
    let samples = (MEASURED_S * 1e3) as u64 / INTERVAL_MS;
    let sample = |index: u64| {
        let waver = ((index * 7 + case as u64 * 5 + u64::from(round) * 3) % 11) as f64 / 50.0 - 0.1;
        let dip = if (22 + u64::from(round)..26 + u64::from(round)).contains(&index) {
            0.6
        } else {
            1.0
        };
        level * (1.0 + waver) * dip
    };
    SampledTrial {
        case: CaseId::new(PATHS[case].name, 8),
        round,
        interval_ms: INTERVAL_MS,
        tps: (0..samples).map(sample).collect(),
        system: SystemSeries::default(),
    }
}
