//! A run of the size that people look at: six layouts that Spindle made, at several loads, with everything that a
//! result can say. Figures are invented, of the size that the published comparison of raw devices and file systems
//! reports.

use spindle_experiment::Experiment;
use spindle_result::machine::{
    Busy, DataPath, DiskFacts, FileSystem, Machine, MachineSettings, Processor, Virtualisation,
};
use spindle_result::{
    Attribution, Audit, Case, CaseId, CaseRecord, CaseStatus, Conditions, CpuMicroseconds,
    CpuShares, Drift, Finding, IoCounts, KindOfTransaction, Latency, LoadLevel, Measure,
    NoiseFloor, PartDifference, Promise, RankedCase, RatioEstimate, ResponseTime, Restore,
    RunRecord, RunResult, SampledTrial, SegmentSpace, Stopping, SystemColumn, SystemMean,
    SystemSeries, TimePart, TimeUse, Trial, TrialFigures, Verdict, Wait, WarmUp, Warning, build,
};
use spindle_run::description::describe;

const EXPERIMENT: &str = r#"
name = "raw-or-filesystem"
[database]
size = "4GiB"
buffer_cache = "256MiB"
datafiles = 8
[plan]
warmup = "30s"
measure = "60s"
[[layout]]
name = "xfs, buffered"
devices = ["/dev/disk/by-id/nvme-ACME_0001"]
filesystem = { type = "xfs", mount = "noatime" }
io = { caching = "buffered", method = "slaves", slaves = 40 }
database = { writers = 1 }
placement = { redo = "redo" }
[[layout]]
name = "xfs, direct, 40 slaves"
devices = ["/dev/disk/by-id/nvme-ACME_0001"]
filesystem = { type = "xfs", mount = "noatime" }
io = { caching = "direct", method = "slaves", slaves = 40 }
database = { writers = 1 }
placement = { redo = "redo" }
[[layout]]
name = "xfs on LVM, direct, async"
devices = ["/dev/disk/by-id/nvme-ACME_0002", "/dev/disk/by-id/nvme-ACME_0003"]
volume = { stripes = 2 }
filesystem = { type = "xfs" }
io = { caching = "direct", method = "async" }
placement = { redo = "redo" }
[[layout]]
name = "disk group <normal & mirrored>"
devices = ["/dev/sdb", "/dev/sdc", "/dev/sdd", "/dev/sde", "/dev/sdf", "/dev/sdg"]
diskgroup = { redundancy = "normal" }
io = { method = "async" }
[[layout]]
name = "raw, sync"
devices = ["/dev/disk/by-id/nvme-ACME_0005"]
raw = true
io = { method = "sync" }
placement = { redo = "redo" }
[[layout]]
name = "raw, async"
devices = ["/dev/disk/by-id/nvme-ACME_0005"]
raw = true
io = { method = "async" }
placement = { redo = "redo" }
[[layout]]
name = "redo"
devices = ["/dev/disk/by-id/nvme-ACME_0004"]
raw = true
candidate = false
"#;

/// Transactions per minute of each candidate with few clients.
const TPM: [f64; 6] = [16_650.0, 21_097.0, 29_300.0, 29_120.0, 24_400.0, 31_961.0];

/// How large a run is.
#[derive(Clone, Copy)]
pub struct Extent<'a> {
    /// Load levels.
    pub clients: &'a [u32],
    /// Rounds.
    pub rounds: u32,
    /// Samples of each trial, one a second.
    pub samples: usize,
}

/// What people look at.
pub const USUAL: Extent<'_> = Extent {
    clients: &[16, 50, 150],
    rounds: 5,
    samples: 300,
};

/// A number from 0 to 1 that is the same for the same arguments.
fn noise(numbers: [u64; 4]) -> f64 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for number in numbers {
        state = (state ^ number).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state ^= state >> 29;
    }
    (state >> 11) as f64 / (1_u64 << 53) as f64
}

fn tpm(layout: usize, clients: u32) -> f64 {
    let scaling = [0.9, 1.02, 1.06, 1.05, 1.02, 1.106][layout];
    match clients {
        0..32 => TPM[layout] * 0.72,
        32..100 => TPM[layout],
        _ => TPM[layout] * scaling,
    }
}

/// The experiment of a run of this extent.
pub fn experiment(extent: Extent<'_>) -> Experiment {
    let sets = [
        format!("workload.clients={:?}", extent.clients),
        format!("plan.rounds={}", extent.rounds),
    ];
    Experiment::parse("raw-or-filesystem.toml", EXPERIMENT, &sets).expect("the experiment is right")
}

/// The run as its journal would give it.
pub fn record(extent: Extent<'_>) -> RunRecord {
    let experiment = experiment(extent);
    let layouts = experiment.layouts.len();
    let mut cases = Vec::new();
    let mut series = Vec::new();
    for layout in 0..TPM.len() {
        for &clients in extent.clients {
            let rounds = 1..=extent.rounds;
            cases.push(CaseRecord {
                layout,
                load: LoadLevel::of(clients),
                outcome: CaseStatus::Measured,
                set_aside: Vec::new(),
                trials: rounds
                    .clone()
                    .map(|round| trial(layout, clients, round))
                    .collect(),
            });
            let name = experiment.layouts[layout].name.as_str();
            let samples = extent.samples;
            series.extend(rounds.map(|round| sampled((layout, name), clients, round, samples)));
        }
    }
    RunRecord {
        experiment: serde_json::to_value(&experiment)
            .and_then(TryInto::try_into)
            .expect("results read what experiments write"),
        workload: "oltp_mix".to_owned(),
        machine: Some(machine()),
        margin: 0.03,
        planned_rounds: extent.rounds,
        auto: None,
        noise_check: None,
        matrix: None,
        is_quick: false,
        memory_budget_bytes: Some(1 << 30),
        own_cost: None,
        layouts: (0..layouts).map(|index| describe(&experiment, index)).collect(),
        cases,
        series,
        phases: Vec::new(),
        warnings: vec![
            Warning { text: "Other programs used 7 % of the processors on average: results are noisier than they need be.".to_owned() },
            Warning { text: "The governor of processor 3 was `powersave`: set it to `performance`.".to_owned() },
        ],
    }
}

fn machine() -> Machine {
    let text = |text: &str| text.to_owned();
    let device = DiskFacts {
        name: text("nvme0n1"),
        model: Some(text("ACME 0001")),
        size_bytes: Some(960_197_124_096),
        rotational: Some(false),
        scheduler: Some(text("none")),
        read_ahead_kib: Some(128),
        nr_requests: Some(1023),
        write_cache: Some(text("write through")),
        ..DiskFacts::default()
    };
    let place = DataPath {
        path: text("/mnt/nvme"),
        file_system: Some(FileSystem {
            kind: text("xfs"),
            options: text("rw,noatime"),
            free_bytes: Some(800_000_000_000),
            ..FileSystem::default()
        }),
        device: Some(device),
        ..DataPath::default()
    };
    Machine {
        captured_at: text("2026-01-01T12:00:00Z"),
        host: text("db1"),
        distribution: text("Debian GNU/Linux 13 (trixie)"),
        kernel_release: text("6.18.0"),
        processor: Processor {
            model: text("AMD EPYC 9354P"),
            logical_processors: Some(16),
            cores: Some(8),
            governor: Some(text("performance")),
            ..Processor::default()
        },
        memory_bytes: Some(68_719_476_736),
        swap_bytes: Some(0),
        virtualisation: Virtualisation {
            hypervisor_flag: Some(false),
            product: None,
        },
        settings: MachineSettings {
            transparent_huge_pages: Some(text("madvise")),
            vm_dirty_ratio_percent: Some(20),
            vm_dirty_background_ratio_percent: Some(10),
            ..MachineSettings::default()
        },
        load: Busy {
            averages: Some([0.08, 0.12, 0.1]),
            ..Busy::default()
        },
        data_paths: vec![place],
        ..Machine::default()
    }
}

fn trial(layout: usize, clients: u32, round: u32) -> Trial {
    let seed = [layout as u64, u64::from(clients), u64::from(round), 0];
    let tpm = tpm(layout, clients) * (1.0 + 0.03 * (noise(seed) - 0.5));
    let measured_s = 60.0;
    let transactions = (tpm / 60.0 * measured_s) as u64;
    let response_us = f64::from(clients) * 60e6 / tpm;
    let (reads, writes) = (transactions * 5, transactions * 4);
    let counts = IoCounts {
        reads,
        writes,
        read_bytes: reads * 8_192,
        write_bytes: writes * 8_192,
    };
    let wait = |event: &str, count: u64, us: f64| Wait {
        event: event.into(),
        count,
        total_us: us * transactions as f64,
        mean_us: us * transactions as f64 / count as f64,
        sampled: false,
    };
    let response_time = response_time(layout, response_us);
    let mut waits: Vec<Wait> = response_time
        .parts
        .iter()
        .filter(|part| matches!(part.part, TimeUse::Wait(_)))
        .map(|part| wait(part.part.name(), transactions * 2, part.us))
        .collect();
    waits.push(wait(
        "log file parallel write",
        transactions / 3,
        response_us * 0.05,
    ));
    waits.push(wait(
        "db file parallel write",
        writes / 16,
        response_us * 0.3,
    ));
    Trial {
        round,
        position: (layout as u32 * 2 + round) % 6 + 1,
        figures: TrialFigures {
            tpm,
            transactions,
            retries: 0,
            deadlocks: 0,
            errors: 0,
            reconnects: 0,
            kinds: kinds(transactions, response_us),
            rows: None,
            statements: Vec::new(),
            queries: None,
            cache: None,
            measured_s,
            read_iops: Some(reads as f64 / measured_s),
            write_iops: Some(writes as f64 / measured_s),
            kib_per_s: Some((reads + writes) as f64 * 8.0 / measured_s),
            latency_us: Latency {
                p50: response_us * 0.8,
                p95: response_us * 2.1,
                p99: response_us * (2.9 + 0.4 * layout as f64),
                max: response_us * 11.0,
                mean: response_us,
            },
            waits,
            cpu: Some(CpuShares {
                user: 44.0,
                system: 20.0 + 3.0 * (6 - layout) as f64,
                iowait: 9.0,
                idle: 9.0,
            }),
            cpu_us_per_transaction: Some(CpuMicroseconds {
                user: response_us * 0.05,
                system: response_us * 0.04,
            }),
            memory: None,
            audit: Audit::of_counts(Some(counts), Some(counts)),
            check: "5000 rows agree with the ledger".to_owned(),
            space: vec![SegmentSpace {
                segment: "accounts".to_owned(),
                extents: 4_096,
                bytes: 4 << 30,
            }],
            warnings: Vec::new(),
            promise: Promise::default(),
            warm_up: Some(WarmUp {
                duration_s: 34.0,
                is_settled: true,
            }),
            arrivals: None,
            deferred: None,
            capacity: None,
            response_time: Some(response_time),
            io: None,
            io_calls: None,
        },
        restore: Restore {
            method: "changed blocks copied back in place".to_owned(),
            changed_blocks: writes / 3,
            verified: true,
            duration_ms: 740,
        },
        conditions: Conditions::default(),
    }
}

/// Two kinds of transactions, one shorter and more frequent than the other.
fn kinds(transactions: u64, mean_us: f64) -> Vec<KindOfTransaction> {
    let kind = |kind: &str, share: f64, us: f64| KindOfTransaction {
        kind: kind.to_owned(),
        transactions: (share * transactions as f64) as u64,
        latency_us: Latency {
            p50: us * 0.8,
            p95: us * 2.1,
            p99: us * 3.3,
            max: us * 11.0,
            mean: us,
        },
    };
    vec![
        kind("order status", 0.6, mean_us * 0.6),
        kind("new order with a long name", 0.4, mean_us * 1.6),
    ]
}

/// Buffered layouts spend more on system CPU and free buffer waits; parts add up to the whole.
fn response_time(layout: usize, mean_us: f64) -> ResponseTime {
    let buffered = if layout == 0 { 1.0 } else { 0.0 };
    let mut parts = vec![
        ("db file sequential read", 0.46 - 0.10 * buffered),
        ("log file sync", 0.16),
        ("free buffer waits", 0.02 + 0.09 * buffered),
        ("user CPU", 0.12 - 0.03 * buffered),
        ("system CPU", 0.07 + 0.11 * buffered),
        ("buffer busy waits", 0.04),
        ("enq: TX - row lock contention", 0.03),
        ("run queue", 0.03),
        ("latch: cache buffers chains", 0.01),
    ];
    let accounted: f64 = parts.iter().map(|(_, share)| share).sum();
    parts.push(("other", 1.0 - accounted));
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let part = |(part, share): (&str, f64)| TimePart {
        part: part.into(),
        us: share * mean_us,
    };
    ResponseTime {
        mean_us,
        parts: parts.into_iter().map(part).collect(),
        excess_us: 0.0,
    }
}

fn sampled(
    (layout, name): (usize, &str),
    clients: u32,
    round: u32,
    samples: usize,
) -> SampledTrial {
    let level = tpm(layout, clients) / 60.0;
    let seed = |index: usize, what: u64| {
        let place = (layout as u64) << 32 | u64::from(clients) << 16 | u64::from(round);
        noise([place, index as u64, what, 7])
    };
    let phase = 40 + 7 * layout + 11 * round as usize;
    let is_checkpoint = |index: usize| (index + phase).is_multiple_of(90);
    let dips = |index: usize| (index + phase) % 90 > 78;
    let rate = |index: usize| {
        let dip = if dips(index) { 0.72 } else { 1.0 };
        (level * dip * (0.86 + 0.28 * seed(index, 1))).round()
    };
    let column = |name: &str, value: &dyn Fn(usize) -> Option<f32>| SystemColumn {
        name: name.into(),
        values: (0..samples).map(value).collect(),
    };
    let around = |middle: f64, what: u64| {
        move |index: usize| Some((middle * (0.8 + 0.4 * seed(index, what))) as f32)
    };
    let dirty = if layout == 0 { 400.0 } else { 2.0 };
    SampledTrial {
        case: CaseId::new(name, clients),
        round,
        interval_ms: 1_000,
        tps: (0..samples).map(rate).collect(),
        system: SystemSeries {
            interval_ms: 1_000,
            columns: vec![
                column("device_reads_per_s", &around(level * 5.0, 2)),
                column("device_writes_per_s", &around(level * 4.0, 3)),
                column("device_flushes_per_s", &around(level * 0.3, 4)),
                column("device_read_mib_per_s", &around(level * 5.0 / 128.0, 5)),
                column("device_written_mib_per_s", &around(level * 4.0 / 128.0, 6)),
                column("device_merged_reads_per_s", &around(12.0, 7)),
                column("device_merged_writes_per_s", &around(90.0, 8)),
                column("device_queue", &around(4.0 + 3.0 * layout as f64, 9)),
                column("device_read_time_us", &around(400.0, 10)),
                column("device_write_time_us", &around(250.0, 11)),
                column(
                    "device_utilisation_percent",
                    &around(70.0 + 4.0 * layout as f64, 12),
                ),
                column("page_cache_mib", &around(600.0, 13)),
                column("dirty_mib", &around(dirty, 14)),
                column("writeback_mib", &around(dirty / 9.0, 15)),
                column("context_switches_per_s", &around(level * 30.0, 16)),
                column("run_queue", &around(3.0, 17)),
                column("cpu_user_percent", &around(44.0, 18)),
                column("cpu_system_percent", &around(30.0, 19)),
                column("cpu_iowait_percent", &around(9.0, 20)),
                column("cpu_steal_percent", &around(0.4, 21)),
                column("other_programs_cpu_percent", &around(2.0, 22)),
                column("cpu_throttled_percent", &around(0.1, 23)),
                column("cpu_pressure_percent", &around(5.0, 24)),
                column("memory_pressure_percent", &around(0.2, 25)),
                column("sampler_cpu_percent", &around(0.3, 26)),
                column("io_pressure_percent", &|index| {
                    (index % 50 > 3).then(|| 20.0 + 10.0 * seed(index, 27) as f32)
                }),
                column("checkpoints", &|index| {
                    Some(f32::from(u8::from(is_checkpoint(index))))
                }),
            ],
        },
    }
}

/// The result of a run, with everything that a result can say.
pub fn result(record: &RunRecord) -> RunResult {
    let mut result = build(record).expect("the showcase is consistent");
    result.cases.iter_mut().for_each(explain);
    let layouts = result.layouts.clone();
    let name = |layout: usize| layouts[layout].name.clone();
    let estimate = |ratio: f64, half: f64| RatioEstimate {
        ratio,
        ci95: Some((ratio - half, ratio + half)),
    };
    for verdict in &mut result.verdicts {
        verdict.p99 = Some(estimate(0.9 / verdict.ratio, 0.04));
        verdict.cpu = Some(estimate(0.97, 0.02));
    }
    for ranking in &mut result.rankings {
        let best = RankedCase {
            keeps: spindle_result::Keeps::default(),
            layout: ranking.best.clone(),
            place: 1,
            of_best: None,
        };
        let verdicts = result.verdicts.iter();
        let mut others: Vec<_> = verdicts
            .filter(|verdict| verdict.cases.load == ranking.load)
            .collect();
        others.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let others = others
            .iter()
            .enumerate()
            .map(|(index, verdict)| RankedCase {
                keeps: spindle_result::Keeps::default(),
                layout: verdict.cases.b.clone(),
                place: if verdict.verdict == Verdict::Draw {
                    1
                } else {
                    index as u32 + 2
                },
                of_best: Some(RatioEstimate {
                    ratio: 1.0 / verdict.ratio,
                    ci95: verdict.ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
                }),
            });
        ranking.places = std::iter::once(best).chain(others).collect();
    }
    let clients: Vec<u32> = result
        .rankings
        .iter()
        .map(|ranking| ranking.load.clients)
        .collect();
    result.noise = clients
        .iter()
        .map(|&clients| NoiseFloor {
            case: CaseId::new(&name(0), clients),
            again: format!("{} (again)", name(0)),
            ratio: estimate(1.002, 0.007),
            floor: 0.009,
        })
        .collect();
    result.drifts = vec![Drift {
        case: CaseId::new(&name(2), clients[0]),
        measure: Measure::Throughput,
        percent_per_round: -0.8,
        ci95: (-1.2, -0.4),
        p_value: 0.004,
    }];
    result.stopping = Some(Stopping {
        precision: 0.03,
        rounds_max: 30,
        trials: 90,
        trials_of_fixed_plan: 540,
        saved_s: 40_500.0,
        is_finished: true,
        reached: None,
        least_known: None,
        runs: 1,
        ended_by_time_ms: None,
        runs_max: None,
    });
    result.attributions = clients
        .iter()
        .map(|&clients| attribution(&name(0), &name(5), clients))
        .collect();
    result.findings = findings(&name(0), &name(4), &clients);
    result
}

fn explain(case: &mut Case) {
    case.response_time = case
        .trials
        .first()
        .and_then(|trial| trial.response_time.clone());
    case.system = vec![SystemMean {
        name: "device_utilisation_percent".into(),
        mean: 81.0,
        max: 97.0,
    }];
}

fn attribution(slower: &str, faster: &str, clients: u32) -> Attribution {
    let part = |part: &str, us: f64, explanation: Option<&str>| PartDifference {
        part: part.into(),
        us,
        ci95_us: None,
        explanation: explanation.map(str::to_owned),
    };
    Attribution {
        load: LoadLevel::of(clients),
        slower: slower.to_owned(),
        faster: faster.to_owned(),
        difference_us: 9_800.0,
        ci95_us: None,
        parts: vec![
            part("db file sequential read", 6_100.0, None),
            part(
                "system CPU",
                2_200.0,
                Some("copying through the page cache"),
            ),
            part("free buffer waits", 1_500.0, None),
        ],
        sentence: format!(
            "{slower} is slower than {faster} by 9.8 ms per transaction: +6.1 ms `db file sequential read`, +2.2 ms system CPU \
             (copying through the page cache), +1.5 ms `free buffer waits`."
        ),
    }
}

fn findings(buffered: &str, synchronous: &str, clients: &[u32]) -> Vec<Finding> {
    let finding = |kind: &str, layout: &str, text: &str, evidence: &[&str], remedy: &str| Finding {
        kind: kind.to_owned(),
        layouts: vec![layout.to_owned()],
        clients: clients.to_vec(),
        cases: Vec::new(),
        text: text.to_owned(),
        evidence: evidence.iter().map(|&text| text.to_owned()).collect(),
        remedy: remedy.to_owned(),
    };
    vec![
        finding(
            "double buffering",
            buffered,
            "Blocks are kept twice, in the buffer cache and in the page cache.",
            &[
                "58 % of the bytes read came from the page cache.",
                "The page cache held 612 MiB of the datafiles.",
            ],
            "Use direct I/O, and give the memory to the buffer cache.",
        ),
        finding(
            "DBWR cannot keep up",
            synchronous,
            "Sessions wait until the database writer has freed a buffer.",
            &[
                "`free buffer waits`: 1.5 ms of each transaction.",
                "One DBWR that writes block by block was writing 97 % of the time.",
            ],
            "Use asynchronous I/O, or more writers (database.writers).",
        ),
    ]
}
