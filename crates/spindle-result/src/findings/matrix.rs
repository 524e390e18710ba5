//! Each cause planted on each engine, and every kind asked of it: the right one is named, and no other. A facts has the
//! waits under the engine's own names, as its runs record them.

use super::super::{
    ClientAudit, ClientProcessors, IoCounts, IoPerTransaction, PageCache, QueryRun, Trial,
};
use super::KINDS;
use super::kind::AtLoad;
use super::stage::Stage;

/// What an engine's sessions wait for, under the names that it gives.
struct Engine {
    name: &'static str,
    read: &'static str,
    log: &'static [&'static str],
    /// Other transactions' locks.
    lock: &'static str,
    /// Waits are seen in samples.
    is_sampled: bool,
}

const ENGINES: [Engine; 4] = [
    Engine {
        name: "the embedded database",
        read: "db file sequential read",
        log: &["log file sync", "log buffer space"],
        lock: "enq: TX - row lock contention",
        is_sampled: false,
    },
    Engine {
        name: "SQLite",
        read: "read of the database (db file sequential read)",
        log: &[
            "sync of the log (log file sync)",
            "write of the log (log file parallel write)",
        ],
        lock: "busy: another writes (enq: TX - contention)",
        is_sampled: true,
    },
    Engine {
        name: "PostgreSQL",
        read: "DataFileRead (db file sequential read)",
        log: &[
            "WALSync (log file sync)",
            "LWLock:WALWrite (log file sync)",
            "WALWrite (log file parallel write)",
        ],
        lock: "Lock:transactionid (enq: TX - row lock contention)",
        is_sampled: true,
    },
    Engine {
        name: "MariaDB",
        read: "innodb_data_file read (db file sequential read)",
        log: &["stage/sql/Commit (log file sync)"],
        lock: "innodb_row_lock (enq: TX - row lock contention)",
        is_sampled: false,
    },
];

/// A quarter each for processor, reads, log and locks, on a machine with nothing remarkable.
fn plain(engine: &Engine) -> Vec<(&'static str, f64)> {
    let mut parts = vec![("user CPU", 25.0), (engine.read, 30.0), (engine.lock, 20.0)];
    let each = 25.0 / engine.log.len() as f64;
    parts.extend(engine.log.iter().map(|name| (*name, each)));
    parts
}

fn quiet_machine(stage: Stage) -> Stage {
    stage.system(&[
        ("other_programs_cpu_percent", 2.0),
        ("cpu_steal_percent", 0.5),
        ("cpu_throttled_percent", 0.0),
        ("device_utilisation_percent", 50.0),
        ("device_queue_requests", 1.0),
        ("device_reads_per_s", 400.0),
        ("device_writes_per_s", 100.0),
        ("device_read_time_us", 1_000.0),
        ("writers_waiting_for_file_lock", 0.1),
    ])
}

/// 1,000 transactions of 100 us a trial with ten reads each, of which the session sees what the parts say.
fn facts(engine: &Engine, parts: &[(&str, f64)]) -> Stage {
    let (events, is_sampled) = ((engine.read, 10_000), engine.is_sampled);
    let stage = Stage::new().parts(parts).waits(events.0, events.1, 1.0);
    quiet_machine(stage).trials(|trial| {
        trial.transactions = 1_000;
        trial
            .waits
            .iter_mut()
            .for_each(|wait| wait.sampled = is_sampled);
        trial.audit.tool = trial.audit.tool.map(|tool| IoCounts {
            reads: 10_000,
            ..tool
        });
        trial.audit.clients = Some(all_served());
    })
}

fn all_served() -> ClientAudit {
    ClientAudit {
        clients: 4,
        in_transactions: 4.0,
        deferring: 0.0,
        thinking: 0.0,
        idle: 0.0,
        away: 0.0,
        open_at_end: 4,
        longest_open_s: 0.01,
        got_a_turn: 4,
        fewest: 240,
        most: 260,
    }
}

/// Devices write twice what the database does.
fn twice() -> IoPerTransaction {
    IoPerTransaction {
        reads: Some(10.0),
        writes: Some(2.0),
        read_bytes: Some(81_920.0),
        written_bytes: Some(16_384.0),
        device_read_bytes: Some(81_920.0),
        device_written_bytes: Some(32_768.0),
        write_amplification: Some(2.0),
    }
}

/// Changes an existing figure of the system.
fn set(mut stage: Stage, column: &str, mean: f64) -> Stage {
    let found = stage
        .case
        .system
        .iter_mut()
        .find(|it| it.name.name() == column);
    found.expect("a quiet machine has it").mean = mean;
    stage
}

/// Every cause, planted: the kind that must be named, and the facts.
fn causes(engine: &Engine) -> Vec<(&'static str, Stage)> {
    let same = || facts(engine, &plain(engine));
    let log: Vec<(&str, f64)> = engine
        .log
        .iter()
        .map(|name| (*name, 70.0 / engine.log.len() as f64))
        .chain([("user CPU", 15.0), (engine.read, 15.0)])
        .collect();
    let queue: Vec<(&str, f64)> = engine
        .log
        .iter()
        .map(|name| (*name, 25.0 / engine.log.len() as f64))
        .chain([(engine.lock, 65.0), ("user CPU", 10.0)])
        .collect();
    let contended = [(engine.lock, 80.0), ("user CPU", 15.0), (engine.read, 5.0)];
    let busy = [
        ("user CPU", 50.0),
        ("system CPU", 20.0),
        ("run queue", 20.0),
        (engine.read, 10.0),
    ];
    let reading = [(engine.read, 80.0), ("user CPU", 20.0)];
    // 10 reads in 100 ms: 8 ms each, of which the device takes one.
    let slow = [(engine.read, 80_000.0), ("user CPU", 20_000.0)];
    let saturated = set(facts(engine, &reading), "device_utilisation_percent", 99.0);
    let mut buffered = same().trials(|trial| trial.audit.page_cache_share = Some(0.5));
    buffered.layout.caching = PageCache::Buffered;
    let mut held = same().trials(|trial| {
        trial.audit.page_cache_share = Some(0.0);
        trial.audit.page_cache_bytes_at_end = Some(20 << 20);
    });
    held.layout.caching = PageCache::Buffered;
    vec![
        ("log writes dominate", facts(engine, &log)),
        ("log writes dominate", facts(engine, &queue)),
        ("locks dominate", facts(engine, &contended)),
        (
            "CPU-bound",
            facts(engine, &busy).trials(|trial| {
                let cpu = trial.cpu.as_mut().expect("the sample knows it");
                (cpu.user, cpu.system) = (75.0, 22.0);
            }),
        ),
        (
            "device saturated",
            set(saturated, "device_queue_requests", 12.0),
        ),
        ("throttled", facts(engine, &slow)),
        ("throttled", set(same(), "cpu_throttled_percent", 40.0)),
        (
            "noisy neighbour",
            set(same(), "other_programs_cpu_percent", 30.0),
        ),
        ("double buffering", buffered),
        ("double buffering", held),
        (
            "writers serialised on a file",
            set(same(), "writers_waiting_for_file_lock", 2.0),
        ),
        (
            "write amplification",
            same().trials(|trial| trial.io = Some(twice())),
        ),
        (
            "client-bound",
            same().trials(|trial| {
                trial.audit.client_processors = Some(ClientProcessors {
                    running: 0.2,
                    waiting: 0.5,
                });
            }),
        ),
        (
            "clients starve",
            same().trials(|trial| {
                let starving = ClientAudit {
                    got_a_turn: 1,
                    fewest: 0,
                    ..all_served()
                };
                trial.audit.clients = Some(starving);
            }),
        ),
    ]
}

fn named(stage: &Stage) -> Vec<&'static str> {
    let seen = KINDS.iter().filter(|kind| stage.look(kind).is_some());
    seen.map(|kind| kind.name).collect()
}

#[test]
fn a_planted_cause_is_named_and_no_other() {
    for engine in &ENGINES {
        for (number, (cause, stage)) in causes(engine).iter().enumerate() {
            let what = format!("{cause} (cause {number}) planted on {}", engine.name);
            assert_eq!(named(stage), [*cause], "{what}");
        }
        let plain = facts(engine, &plain(engine));
        assert_eq!(named(&plain), [""; 0], "nothing planted on {}", engine.name);
    }
}

/// Words that say on which side of a verdict a case stands.
const AHEAD: [&str; 3] = ["ahead", "faster than the others", "lead over"];
const BEHIND: [&str; 4] = ["behind", "closer to the others", "catch up", "slower than"];
const ALIKE: [&str; 3] = ["hardly matters", "no difference", "do not differ"];

/// Every kind, in words for every side of a verdict, of every cause on every engine.
#[test]
fn no_words_of_a_finding_speak_against_the_side_on_which_its_case_stands() {
    let against = [
        (AtLoad::Ahead, [&BEHIND[..], &ALIKE].concat()),
        (AtLoad::Behind, [&AHEAD[..], &ALIKE].concat()),
        (AtLoad::Between, [&AHEAD[..], &BEHIND, &ALIKE].concat()),
        (AtLoad::Open, [&AHEAD[..], &BEHIND, &ALIKE].concat()),
        (AtLoad::Alike, [&AHEAD[..], &BEHIND].concat()),
    ];
    for engine in &ENGINES {
        for (_, stage) in causes(engine) {
            for (kind, (at_load, words)) in KINDS
                .iter()
                .flat_map(|kind| against.iter().map(move |side| (kind, side)))
            {
                for text in [stage.said(kind, *at_load), kind.remedy] {
                    let lower = text.to_lowercase();
                    let wrong = words.iter().find(|word| lower.contains(**word));
                    assert_eq!(wrong, None, "{at_load:?}, {}: {text}", kind.name);
                }
            }
        }
    }
}

/// Writers that sessions wait for are the embedded database's own.
#[test]
fn writers_that_cannot_keep_up_are_named_alone() {
    let parts = [
        ("free buffer waits", 60.0),
        ("db file sequential read", 20.0),
        ("user CPU", 20.0),
    ];
    let stage = facts(&ENGINES[0], &parts).waits("db file parallel write", 100, 9e6);
    assert_eq!(named(&stage), ["DBWR cannot keep up"]);
}

/// As seen on a machine on which others built programs: the run queue is theirs, and of what is left the log has most.
#[test]
fn a_cause_is_named_where_other_programs_take_the_processors() {
    let busy = |stage: Stage| {
        let stage = stage.trials(|trial| {
            let cpu = trial.cpu.as_mut().expect("the sample knows it");
            (cpu.user, cpu.system) = (90.0, 10.0);
        });
        set(stage, "other_programs_cpu_percent", 88.0)
    };
    for engine in &ENGINES {
        let log = (engine.log[0], 28.0);
        let parts = [
            ("run queue", 53.0),
            log,
            (engine.read, 17.0),
            ("user CPU", 2.0),
        ];
        let stage = busy(facts(engine, &parts));
        let both = ["noisy neighbour", "log writes dominate"];
        assert_eq!(named(&stage), both, "{}", engine.name);
        let parts = [("run queue", 60.0), ("user CPU", 30.0), (engine.read, 10.0)];
        let stage = busy(facts(engine, &parts));
        assert_eq!(
            named(&stage),
            ["noisy neighbour", "CPU-bound"],
            "{}",
            engine.name
        );
    }
}

/// PostgreSQL with its data in the page cache that it went through unasked, and the embedded database with most of the
/// budget in the buffer cache.
#[test]
fn what_the_page_cache_holds_beside_the_buffer_cache_is_seen() {
    for (engine, caching, share, mib) in [
        (2, PageCache::OfTheServer, 0.0, 14),
        (0, PageCache::Buffered, 0.0, 3),
    ] {
        let engine = &ENGINES[engine];
        let mut stage = facts(engine, &plain(engine)).trials(|trial| {
            trial.audit.page_cache_share = Some(share);
            trial.audit.page_cache_bytes_at_end = Some(mib << 20);
        });
        stage.layout.caching = caching;
        assert_eq!(named(&stage), ["double buffering"], "{}", engine.name);
    }
}

/// A ring of redo logs is the embedded database's own.
#[test]
fn a_log_that_waits_for_checkpoints_is_named_alone() {
    let parts = [
        ("log file switch (checkpoint incomplete)", 50.0),
        ("log file sync", 30.0),
        ("user CPU", 20.0),
    ];
    let stage = facts(&ENGINES[0], &parts);
    assert_eq!(named(&stage), ["checkpoints hold up the log"]);
}

/// Sorts with little memory, on every engine whose queries have temporary files.
#[test]
fn queries_that_spill_are_named_by_that_alone() {
    let events = [
        (0, "direct path write temp", "direct path read temp"),
        (
            2,
            "BufFileWrite (direct path write temp)",
            "BufFileRead (direct path read temp)",
        ),
        (
            3,
            "io_cache write (direct path write temp)",
            "io_cache read (direct path read temp)",
        ),
    ];
    for (engine, write, read) in events {
        let engine = &ENGINES[engine];
        let parts = [
            (write, 30.0),
            (read, 10.0),
            (engine.read, 35.0),
            ("user CPU", 25.0),
        ];
        let asked = |trial: &mut Trial| {
            trial.queries = Some(QueryRun {
                times: Vec::new(),
                geometric_mean_s: None,
                power: None,
                throughput: None,
                temporary_bytes: None,
            });
        };
        let stage = facts(engine, &parts).trials(asked);
        assert_eq!(named(&stage), ["temporary segments"], "{}", engine.name);
    }
}

#[test]
fn every_kind_has_a_cause_that_is_planted() {
    let mut planted: Vec<&str> = causes(&ENGINES[0])
        .iter()
        .map(|(cause, _)| *cause)
        .collect();
    planted.extend([
        "DBWR cannot keep up",
        "checkpoints hold up the log",
        "temporary segments",
    ]);
    for kind in KINDS {
        assert!(planted.contains(&kind.name), "{}", kind.name);
    }
}
