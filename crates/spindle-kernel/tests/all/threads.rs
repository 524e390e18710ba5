//! The database on real threads and files: clients, writers and readers at once over every access path, with a cache
//! and log files so small that everyone waits for everyone; and devices that fail, which must end in an error for
//! all, never in a hang or a lie.
#![allow(clippy::disallowed_methods)] // It lives in the real world.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;

use crate::files::{Bank, CLIENTS, Files, WHOLE, Way, get, methods, watched};
use spindle_io::real::{Caching, RealEnv, block_on};
use spindle_io::sync::Latch;
use spindle_io::{
    BlockDevice, Completion, Env, IoError, IoFailure, IoOutcome, Limits, Operation, Request,
};
use spindle_kernel::{Instance, KernelError, Shutdown, Storage, WaitEvent, WriteSync};

/// What clients wait for when the log is small.
const SCARCE: [WaitEvent; 2] = [
    WaitEvent::LogFileSwitchCheckpoint,
    WaitEvent::LogBufferSpace,
];
const NONE_YET: [u64; CLIENTS] = [0; CLIENTS];

/// Runs every client for `count` transactions, or until it gets an error, with a reader beside them; `meanwhile` runs
/// too. Returns what was acknowledged and the errors.
fn run_clients(
    bank: &Bank,
    first: [u64; CLIENTS],
    count: u64,
    meanwhile: impl FnOnce(&[AtomicU64; CLIENTS]),
) -> ([u64; CLIENTS], Vec<KernelError>) {
    let acknowledged: [AtomicU64; CLIENTS] = first.map(AtomicU64::new);
    let errors = Latch::new(Vec::new());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|me| {
                let mut client = bank.client(me, first[me]);
                let (acknowledged, errors) = (&acknowledged[me], &errors);
                scope.spawn(move || {
                    if let Err(error) = client.run(count, acknowledged) {
                        errors.lock().push(error);
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| read_wholes(bank, &ended));
        meanwhile(&acknowledged);
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        ended.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    (
        acknowledged.map(AtomicU64::into_inner),
        errors.lock().clone(),
    )
}

/// A reader sees committed versions of rows only, one by one and in a scan: their halves make a whole. In a scan of
/// all, the points that transactions moved between accounts make nothing together.
fn read_wholes(bank: &Bank, ended: &AtomicBool) {
    let mut session = bank.instance.session();
    let whole = |row: &[u8]| {
        assert_eq!(
            get(row, 0) + get(row, 8),
            WHOLE,
            "an uncommitted row was read"
        )
    };
    block_on(async {
        let mut turn = 0;
        while !ended.load(Ordering::Acquire) {
            turn += 1;
            // The hot accounts, where the changes are.
            for account in 0..40 {
                let row = bank.accounts.row_id(account);
                if has_ended(session.read_row(row, whole).await) {
                    return;
                }
            }
            let scanned = session
                .scan(&bank.accounts, turn % 300, 24, |_, row| whole(row))
                .await;
            if has_ended(scanned) {
                return;
            }
            if turn % 20 == 0 {
                let mut points = 0;
                let count = |_, row: &[u8]| points += get(row, 16);
                let scanned = session.scan(&bank.accounts, 0, u64::MAX, count).await;
                if scanned.is_ok() {
                    assert_eq!(points, 0, "the scan saw a part of a transaction");
                }
                if has_ended(scanned) {
                    return;
                }
            }
        }
    });
}

/// Undo is scarce here, and too old a snapshot no reason to stop reading.
fn has_ended(read: Result<(), KernelError>) -> bool {
    !matches!(read, Ok(()) | Err(KernelError::SnapshotTooOld { .. }))
}

fn count(bank: &Bank, event: WaitEvent) -> u64 {
    let totals = bank.instance.wait_events();
    totals
        .iter()
        .find(|total| total.event == event)
        .unwrap()
        .count
}

fn ways(method: &'static str) -> impl Iterator<Item = Way> {
    let kinds = [
        (Caching::Buffered, WriteSync::Dsync, 1),
        (Caching::Buffered, WriteSync::Checkpoint, 3),
        (Caching::Direct, WriteSync::Dsync, 3),
        (Caching::Direct, WriteSync::Checkpoint, 1),
    ];
    kinds
        .into_iter()
        .map(move |(caching, write_sync, writers)| Way {
            method,
            caching,
            write_sync,
            writers,
        })
}

/// Runs clients to their end, stops one way, checks; again, stopped in the middle.
fn stress(way: Way, waits: &[AtomicU64; SCARCE.len()]) {
    let files = Files::new();
    let Some(bank) = files.create(way) else {
        return;
    };
    let (acknowledged, errors) = run_clients(&bank, NONE_YET, 100, |_| {});
    assert_eq!(errors, [], "{way:?}");
    assert_eq!(acknowledged, [100; CLIENTS]);
    assert_eq!(bank.check(acknowledged), acknowledged);
    for (sum, event) in waits.iter().zip(SCARCE) {
        sum.fetch_add(count(&bank, event), Ordering::Relaxed);
    }
    assert!(
        bank.instance.statistics().log_switches > 2,
        "the log files wrap"
    );
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();

    let bank = files.start(way).unwrap();
    assert_eq!(bank.instance.recovery().redo_bytes, 0, "shut down in order");
    assert_eq!(bank.check(acknowledged), acknowledged);
    block_on(bank.instance.shutdown(Shutdown::Abort)).unwrap();
}

/// Stops the instance while every client is busy.
fn stop_in_the_middle(way: Way, how: Shutdown) {
    let files = Files::new();
    let Some(mut bank) = files.create(way) else {
        return;
    };
    let mut last = NONE_YET;
    for _ in 0..2 {
        let acknowledged: [AtomicU64; CLIENTS] = last.map(AtomicU64::new);
        std::thread::scope(|scope| {
            let mut clients = Vec::new();
            for (me, acknowledged) in acknowledged.iter().enumerate() {
                let mut client = bank.client(me, last[me]);
                clients.push(scope.spawn(move || {
                    let error = client.run(u64::MAX, acknowledged).unwrap_err();
                    let stopped = matches!(
                        error,
                        KernelError::Aborted { .. } | KernelError::ShuttingDown
                    );
                    assert!(stopped, "{error}");
                }));
            }
            while acknowledged
                .iter()
                .zip(last)
                .any(|(now, last)| now.load(Ordering::Acquire) < last + 20)
            {
                std::thread::yield_now();
            }
            block_on(bank.instance.shutdown(how)).unwrap();
            clients
                .into_iter()
                .for_each(|client| client.join().unwrap());
        });
        bank = files.start(way).unwrap();
        last = bank.check(acknowledged.map(AtomicU64::into_inner));
    }
}

#[test]
fn every_access_path_under_stress() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let waits: Arc<[AtomicU64; SCARCE.len()]> = Arc::default();
    for method in methods() {
        for way in ways(method) {
            let waits = Arc::clone(&waits);
            watched(format!("{way:?}"), move || stress(way, &waits));
        }
    }
    for (sum, event) in waits.iter().zip(SCARCE) {
        assert!(
            sum.load(Ordering::Relaxed) > 0,
            "nobody had {}",
            event.name()
        );
    }
}

#[test]
fn an_instance_stopped_under_load_recovers() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    for method in methods() {
        for (way, how) in ways(method).zip([Shutdown::Abort, Shutdown::Normal].into_iter().cycle())
        {
            watched(format!("{way:?}, {how:?}"), move || {
                stop_in_the_middle(way, how)
            });
        }
    }
}

/// With room for redo it is buffers that run out: every block of a table is changed, by a cache of a third of it.
#[test]
fn sessions_wait_for_free_buffers_and_get_them() {
    let waited = Arc::new(AtomicU64::new(0));
    for method in methods() {
        for way in ways(method) {
            let waits = Arc::clone(&waited);
            watched(format!("{way:?}"), move || {
                let files = Files::with_log_bytes(8 << 20);
                let Some(bank) = files.create(way) else {
                    return;
                };
                std::thread::scope(|scope| {
                    for me in 0..4 {
                        let (accounts, mut session) = (&bank.accounts, bank.instance.session());
                        scope.spawn(move || {
                            block_on(async {
                                for row in (me..accounts.loaded_rows()).step_by(4) {
                                    let row = accounts.row_id(row);
                                    session
                                        .update_row(row, 0..8, |bytes| bytes.fill(9))
                                        .await
                                        .unwrap();
                                }
                                session.rollback().await.unwrap();
                            })
                        });
                    }
                });
                waits.fetch_add(count(&bank, WaitEvent::FreeBufferWaits), Ordering::Relaxed);
                bank.check(NONE_YET);
                block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
            });
        }
    }
    assert!(
        waited.load(Ordering::Relaxed) > 0,
        "nobody waited for a free buffer"
    );
}

/// Rows that [`deadlocking_client`]s lock in any order.
const DEADLOCK_ROWS: u64 = 6;

/// Adds 1 to the points of some rows, in random order, in each of `count` transactions. Returns how often it was the
/// victim of a deadlock.
fn deadlocking_client(bank: &Bank, me: u64, count: u64) -> u64 {
    let mut rng = seeded_rng(5, me);
    let mut session = bank.instance.session();
    let mut deadlocks = 0;
    for _ in 0..count {
        let rows = [(); 3].map(|()| bank.accounts.row_id(rng.next_u64() % DEADLOCK_ROWS));
        block_on(async {
            'again: loop {
                for row in rows {
                    let add = |bytes: &mut [u8]| {
                        bytes.copy_from_slice(&(get(bytes, 0) + 1).to_le_bytes());
                    };
                    match session.update_row(row, 16..24, add).await {
                        Ok(()) => {}
                        Err(KernelError::Deadlock { .. }) => {
                            deadlocks += 1;
                            session.rollback().await.unwrap();
                            continue 'again;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                break session.commit().await.unwrap();
            }
        });
    }
    deadlocks
}

/// The lock timeout is beyond the watch: a circle of waits that nobody sees is a hang.
#[test]
fn deadlocks_are_broken_and_everybody_goes_on() {
    watched("deadlocks".to_string(), || {
        let (way, files) = (Way::plain("sync"), Files::new());
        let bank = files.create(way).unwrap();
        block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
        let mut settings = way.settings();
        settings.instance.lock_timeout_ns = 3_600_000_000_000;
        let env: Arc<dyn Env> = RealEnv::new(9);
        let storage = files.open(way).unwrap();
        let instance = block_on(Instance::startup(&env, &storage, &settings)).unwrap();
        let bank = Bank::of(instance).unwrap();
        let told: u64 = std::thread::scope(|scope| {
            let bank = &bank;
            let start = |me| scope.spawn(move || deadlocking_client(bank, me, 200));
            let clients: Vec<_> = (0..CLIENTS as u64).map(start).collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        });
        println!("{told} deadlocks");
        assert!(told > 0, "nobody was in a deadlock");
        let statistics = bank.instance.statistics();
        assert_eq!((statistics.deadlocks, statistics.rollbacks), (told, told));
        let mut points = 0;
        let mut session = bank.instance.session();
        for row in 0..DEADLOCK_ROWS {
            let row = bank.accounts.row_id(row);
            points += block_on(session.read_row(row, |row| get(row, 16))).unwrap();
        }
        assert_eq!(points, 3 * 200 * CLIENTS as i64);
        drop(session);
        block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
    });
}

/// What a broken device refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Reads,
    Writes,
    Flushes,
}

/// A fault that devices share: after some healthy I/Os of a kind, every later one is refused.
struct Fault {
    refuses: Refuses,
    healthy: AtomicU64,
    refused: AtomicU64,
    /// It does not refuse, it panics.
    panics: AtomicBool,
}

/// A device with a fault.
struct Broken {
    inner: Arc<dyn BlockDevice>,
    fault: Arc<Fault>,
}

impl Fault {
    fn strikes(&self, operation: &Operation) -> bool {
        let kind = match operation {
            Operation::Read(_) => Refuses::Reads,
            Operation::Write { .. } => Refuses::Writes,
            Operation::Flush => Refuses::Flushes,
        };
        let one_less = |healthy: u64| healthy.checked_sub(1);
        let strikes = kind == self.refuses
            && self
                .healthy
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less)
                .is_err();
        self.refused.fetch_add(u64::from(strikes), Ordering::AcqRel);
        assert!(
            !(strikes && self.panics.load(Ordering::Acquire)),
            "planned by a test"
        );
        strikes
    }
}

impl BlockDevice for Broken {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        if !self.fault.strikes(&request.operation) {
            return self.inner.submit(request);
        }
        let error = IoError::from(IoFailure {
            device: self.name().to_string(),
            operation: "I/O",
            offset: request.offset,
            bytes: request.bytes(),
            reason: "the test broke this device".to_string(),
            fault: spindle_io::Fault::Other,
        });
        Completion::ready(IoOutcome {
            result: Err(error),
            operation: request.operation,
        })
    }
}

/// Puts broken devices in the place of those whose file names begin with `which`.
fn break_devices(storage: &Storage, which: &str, fault: &Arc<Fault>) -> Storage {
    let wrap = |device: &Arc<dyn BlockDevice>| {
        let name = PathBuf::from(device.name());
        let is_it = name
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with(which);
        let (inner, fault) = (Arc::clone(device), Arc::clone(fault));
        if is_it {
            Arc::new(Broken { inner, fault }) as Arc<dyn BlockDevice>
        } else {
            inner
        }
    };
    Storage {
        control: wrap(&storage.control),
        redo: storage.redo.iter().map(wrap).collect(),
        undo: wrap(&storage.undo),
        data: storage.data.iter().map(wrap).collect(),
        double_write: None,
        temp: Vec::new(),
    }
}

/// Starts the instance on devices of which some break after `healthy` I/Os of a kind.
fn start_broken(
    files: &Files,
    way: Way,
    which: &str,
    refuses: Refuses,
    healthy: u64,
) -> (Bank, Arc<Fault>) {
    let fault = Arc::new(Fault {
        refuses,
        healthy: AtomicU64::new(u64::MAX),
        refused: AtomicU64::new(0),
        panics: AtomicBool::new(false),
    });
    let storage = break_devices(&files.open(way).unwrap(), which, &fault);
    let env: Arc<dyn Env> = RealEnv::new(9);
    let instance = block_on(Instance::startup(&env, &storage, &way.settings())).unwrap();
    let bank = Bank::of(instance).unwrap();
    fault.healthy.store(healthy, Ordering::Release);
    (bank, fault)
}

fn a_write_that_fails_aborts_the_instance(
    way: Way,
    which: &'static str,
    refuses: Refuses,
    healthy: u64,
) {
    let files = Files::new();
    let Some(bank) = files.create(way) else {
        return;
    };
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();

    let (bank, _) = start_broken(&files, way, which, refuses, healthy);
    let (acknowledged, errors) = run_clients(&bank, NONE_YET, u64::MAX, |_| {});
    assert_eq!(errors.len(), CLIENTS, "every client hears of it");
    for error in &errors {
        let KernelError::Aborted { reason, .. } = error else {
            panic!("{error}")
        };
        assert!(reason.contains("the test broke this device"), "{reason}");
        assert!(reason.contains(which), "{reason}");
    }
    assert!(bank.instance.failure().is_some());
    let stopped = block_on(bank.instance.shutdown(Shutdown::Normal));
    assert!(
        matches!(stopped, Err(KernelError::Aborted { .. })),
        "no checkpoint was made"
    );

    let bank = files.start(way).unwrap();
    let found = bank.check(acknowledged);
    let (acknowledged, errors) = run_clients(&bank, found, 5, |_| {});
    assert_eq!(errors, []);
    assert_eq!(bank.check(acknowledged), acknowledged);
    block_on(bank.instance.shutdown(Shutdown::Abort)).unwrap();
}

#[test]
fn a_failed_write_or_flush_aborts_and_loses_nothing_acknowledged() {
    for (number, method) in methods().enumerate() {
        let healthy = 3 + 7 * number as u64;
        for (which, refuses, write_sync) in [
            ("redo", Refuses::Writes, WriteSync::Dsync),
            ("data", Refuses::Writes, WriteSync::Dsync),
            ("undo", Refuses::Writes, WriteSync::Checkpoint),
            ("data", Refuses::Flushes, WriteSync::Checkpoint),
            ("control", Refuses::Writes, WriteSync::Dsync),
        ] {
            let way = Way {
                write_sync,
                ..Way::plain(method)
            };
            watched(format!("{way:?}, {which} {refuses:?}"), move || {
                a_write_that_fails_aborts_the_instance(way, which, refuses, healthy);
            });
        }
    }
}

#[test]
fn a_process_that_panics_takes_the_instance_down_and_nobody_hangs() {
    for (which, process) in [("redo", "lgwr"), ("data", "dbw0"), ("control", "ckpt")] {
        watched(format!("a panic of {process}"), move || {
            let (way, files) = (Way::plain("sync"), Files::new());
            let bank = files.create(way).unwrap();
            block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
            let (bank, fault) = start_broken(&files, way, which, Refuses::Writes, u64::MAX);
            fault.panics.store(true, Ordering::Release);
            fault.healthy.store(5, Ordering::Release);
            let (acknowledged, errors) = run_clients(&bank, NONE_YET, u64::MAX, |_| {});
            assert_eq!(errors.len(), CLIENTS);
            for error in errors {
                let said = error.to_string();
                assert!(
                    said.contains(&format!("process {process} panicked: planned by a test")),
                    "{said}"
                );
            }
            let _ = block_on(bank.instance.shutdown(Shutdown::Abort));
            files.start(way).unwrap().check(acknowledged);
        });
    }
}

#[test]
fn a_failed_read_is_told_and_everything_goes_on_when_it_is_over() {
    for method in methods() {
        watched(method.to_string(), move || {
            let (way, files) = (Way::plain(method), Files::new());
            let Some(bank) = files.create(way) else {
                return;
            };
            block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
            let (bank, broken) = start_broken(&files, way, "data", Refuses::Reads, 40);
            // Clients roll back as soon as they can, and try again.
            let (acknowledged, errors) = run_clients(&bank, NONE_YET, 20, |_| {
                while broken.refused.load(Ordering::Acquire) < 100 {
                    std::thread::yield_now();
                }
                broken.healthy.store(u64::MAX, Ordering::Release);
            });
            assert_eq!(errors, []);
            assert_eq!(
                bank.instance.failure(),
                None,
                "a read that fails is the session's trouble"
            );
            bank.check(acknowledged);
            block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
        });
    }
}

#[test]
fn a_transaction_outlives_a_read_that_fails_in_its_middle() {
    watched("a read that fails".to_string(), || {
        let (way, files) = (Way::plain("sync"), Files::new());
        let bank = files.create(way).unwrap();
        block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
        let (bank, broken) = start_broken(&files, way, "data", Refuses::Reads, u64::MAX);
        block_on(async {
            let mut session = bank.instance.session();
            let row = bank.accounts.row_id(17);
            session
                .update_row(row, 0..8, |bytes| bytes.fill(1))
                .await
                .unwrap();
            // Clean and cold, the row's block goes out of the cache.
            bank.instance.checkpoint().await.unwrap();
            let mut other = bank.instance.session();
            for _ in 0..3 {
                other
                    .scan(&bank.accounts, 100, 230, |_, _| {})
                    .await
                    .unwrap();
            }
            broken.healthy.store(0, Ordering::Release);
            session.rollback().await.unwrap_err();
            assert!(
                session.in_transaction(),
                "its lock and its undo are still its own"
            );
            let unfinished = Err(KernelError::RollBackUnfinished);
            assert_eq!(session.commit().await, unfinished);
            assert_eq!(session.update_row(row, 0..8, |_| ()).await, unfinished);
            broken.healthy.store(u64::MAX, Ordering::Release);
            session.rollback().await.unwrap();
            let halves = other.read_row(row, |row| get(row, 0) + get(row, 8)).await;
            assert_eq!(halves, Ok(WHOLE));
            // The lock is free again.
            other
                .update_row(row, 0..8, |bytes| bytes.fill(2))
                .await
                .unwrap();
            other.rollback().await.unwrap();
        });
        bank.check(NONE_YET);
        block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
    });
}

#[test]
fn a_damaged_block_is_reported_and_never_served() {
    let (way, files) = (Way::plain("async"), Files::new());
    let Some(bank) = files.create(way) else {
        return;
    };
    let row = bank.accounts.row_id(1234);
    let intact = bank.accounts.row_id(0);
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
    let file = files.path(&format!("data{}", row.address.file - 1));
    let offset = u64::from(row.address.block) * way.settings().block_bytes as u64;
    crate::files::overwrite(&file, offset + 700, b"damage");

    let bank = files.start(way).unwrap();
    block_on(async {
        let mut session = bank.instance.session();
        for _ in 0..2 {
            let error = session.read_row(row, |_| ()).await.unwrap_err();
            let KernelError::DamagedBlock {
                address,
                device,
                reason,
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(
                (*address, device.as_str()),
                (row.address, file.to_str().unwrap())
            );
            assert!(reason.contains("checksum"), "{reason}");
        }
        let scanned = session.scan(&bank.accounts, 0, u64::MAX, |seen, _| {
            assert_ne!(seen.address, row.address)
        });
        assert!(matches!(
            scanned.await,
            Err(KernelError::DamagedBlock { .. })
        ));
        session.update_row(row, 0..8, |_| ()).await.unwrap_err();
        session.rollback().await.unwrap();
        session.read_row(intact, |_| ()).await.unwrap();
    });
    assert_eq!(bank.instance.failure(), None);
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
}

#[test]
fn files_of_different_times_are_told_apart() {
    let (way, files) = (Way::plain("sync"), Files::new());
    let bank = files.create(way).unwrap();
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
    let kept = ["control", "redo0", "redo1", "undo"];
    for name in kept {
        std::fs::copy(files.path(name), files.path(&format!("{name}.old"))).unwrap();
    }
    let bank = files.start(way).unwrap();
    let (_, errors) = run_clients(&bank, NONE_YET, 20, |_| {});
    assert_eq!(errors, []);
    block_on(bank.instance.shutdown(Shutdown::Normal)).unwrap();
    for name in kept {
        std::fs::copy(files.path(&format!("{name}.old")), files.path(name)).unwrap();
    }
    // The maps of free space are read first.
    let said = match files.start(way) {
        Err(error) => error.to_string(),
        Ok(bank) => {
            let mut session = bank.instance.session();
            let scanned = block_on(session.scan(&bank.accounts, 0, u64::MAX, |_, _| {}));
            let said = scanned.unwrap_err().to_string();
            drop(session);
            block_on(bank.instance.shutdown(Shutdown::Abort)).unwrap();
            said
        }
    };
    assert!(said.contains("not of one time"), "{said}");
}
