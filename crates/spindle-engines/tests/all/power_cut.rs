//! Power cuts without a virtual machine: the database runs on a disk of memory that logs what dm-log-writes would, and
//! the log is replayed as a recorded one is. With honoured flushes nothing may be lost; the control, which ignores
//! them, must lose, and so must commits that do not wait; and the check must see a single commit that is gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spindle_engines::kernel::{
    Commit, InitialLoad, InstanceSettings, KernelEngine, KernelSettings, Shutdown, Storage,
    WriteSync, create_and_load_on, files_of,
};
use spindle_engines::power_cut::{
    AcknowledgedCommits, Broken, PowerCutSurvey, Promises, start_noted_clients, survey,
};
use spindle_io::real::{RealEnv, block_on};
use spindle_io::sim::DiskImage;
use spindle_io::{BlockDevice, Completion, Env, IoOutcome, Limits, Operation, Request};
use spindle_layout::DatabaseShape;
use spindle_layout::power_cut::{
    AddressMap, Content, Cut, CutKind, LoggedRequest, Notes, Replay, WriteLog, draw_cuts, mark,
};
use spindle_workload::driver::Behaviour;
use spindle_workload::{OltpMix, OltpMixSettings, Workload};

const CLIENTS: usize = 3;
/// Transactions of a recording.
const TRANSACTIONS: u64 = 400;
const CUTS: usize = 60;

/// A disk of memory with a write cache. Its log is that of dm-log-writes: a write appears with the flush that covers
/// it.
struct Disk {
    /// It makes single writes durable by itself.
    has_fua: bool,
    image: Mutex<DiskImage>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    entries: Vec<LoggedRequest>,
    unflushed: Vec<LoggedRequest>,
}

impl Disk {
    fn of(image: DiskImage, has_fua: bool) -> Arc<Disk> {
        Arc::new(Disk {
            has_fua,
            image: Mutex::new(image),
            log: Mutex::default(),
        })
    }

    fn write(&self, first_byte: u64, bytes: Vec<u8>, is_durable: bool) {
        self.image
            .lock()
            .unwrap()
            .write(first_byte as usize, &bytes);
        let is_fua = is_durable && self.has_fua;
        let entry = LoggedRequest {
            is_flush: false,
            is_durable: is_fua,
            first_byte,
            content: Content::of(bytes),
            mark: None,
        };
        let mut log = self.log.lock().unwrap();
        if is_fua {
            log.entries.push(entry);
            return;
        }
        log.unflushed.push(entry);
        drop(log);
        // Without FUA the system makes a durable write of a write and a flush.
        if is_durable {
            self.flush();
        }
    }

    fn flush(&self) {
        let mut log = self.log.lock().unwrap();
        let covered = std::mem::take(&mut log.unflushed);
        log.entries.extend(covered);
        log.entries.push(LoggedRequest {
            is_flush: true,
            is_durable: false,
            first_byte: 0,
            content: Content::Zeros(0),
            mark: None,
        });
    }

    fn mark(&self, mark: String) {
        let mut log = self.log.lock().unwrap();
        log.entries.push(LoggedRequest {
            is_flush: false,
            is_durable: false,
            first_byte: 0,
            content: Content::Zeros(0),
            mark: Some(mark),
        });
    }

    fn into_log(self: Arc<Disk>) -> WriteLog {
        self.flush();
        let mut log = self.log.lock().unwrap();
        WriteLog {
            entries: std::mem::take(&mut log.entries),
        }
    }
}

/// A database file: a part of the disk.
struct Part {
    disk: Arc<Disk>,
    first_byte: u64,
    bytes: u64,
}

impl BlockDevice for Part {
    fn name(&self) -> &str {
        "a part of a disk of memory"
    }

    fn limits(&self) -> Limits {
        Limits {
            capacity_bytes: self.bytes,
            alignment_bytes: 512,
            atomic_write_bytes: 512,
        }
    }

    fn submit(&self, request: Request) -> Completion {
        let at = self.first_byte + request.offset;
        let mut operation = request.operation;
        match &mut operation {
            Operation::Read(into) => {
                let mut from = at as usize;
                for hold in into {
                    self.disk.image.lock().unwrap().read(from, hold);
                    from += hold.len();
                }
            }
            Operation::Write { from, durable, .. } => {
                let bytes: Vec<u8> = from.iter().flat_map(|hold| hold.iter().copied()).collect();
                self.disk.write(at, bytes, *durable);
            }
            Operation::Flush => self.disk.flush(),
        }
        Completion::ready(IoOutcome {
            result: Ok(()),
            operation,
        })
    }
}

fn workload() -> Arc<dyn Workload> {
    Arc::new(OltpMix {
        data_bytes: 1 << 20,
        clients: CLIENTS as u64,
        settings: OltpMixSettings {
            read_percent: 20,
            row_operations: 4,
        },
    })
}

fn settings(commit: Commit, write_sync: WriteSync) -> KernelSettings {
    KernelSettings {
        block_bytes: 4096,
        buffer_cache_bytes: 512 << 10,
        log_buffer_bytes: 64 << 10,
        checkpoint_progress_ns: 20_000_000,
        instance: InstanceSettings {
            checkpoint_interval_ns: 20_000_000,
            commit,
            write_sync,
            ..InstanceSettings::default()
        },
        ..KernelSettings::default()
    }
}

fn shape() -> DatabaseShape {
    DatabaseShape {
        undo_bytes: 1 << 20,
        ..files_of(&*workload(), CLIENTS, 4096, 2, 3, 512 << 10)
    }
}

fn disk_bytes() -> u64 {
    shape().total_bytes()
}

/// The files of the database, one after the other on the disk.
fn storage(disk: &Arc<Disk>) -> Storage {
    let shape = shape();
    let mut next = 0;
    let mut part = |bytes: u64| {
        let part = Part {
            disk: Arc::clone(disk),
            first_byte: next,
            bytes,
        };
        next += bytes;
        Arc::new(part) as Arc<dyn BlockDevice>
    };
    Storage {
        control: part(shape.control_bytes),
        redo: shape.redo_bytes.iter().map(|bytes| part(*bytes)).collect(),
        undo: part(shape.undo_bytes),
        data: shape.data_bytes.iter().map(|bytes| part(*bytes)).collect(),
        double_write: None,
        temp: Vec::new(),
    }
}

/// Loads the database, lets clients run, and returns the disk's log.
fn record(settings: &KernelSettings, has_fua: bool) -> WriteLog {
    let env: Arc<dyn Env> = RealEnv::new(11);
    let disk = Disk::of(DiskImage::zeroed(disk_bytes() as usize), has_fua);
    let (storage, workload) = (storage(&disk), workload());
    block_on(async {
        let never = std::sync::atomic::AtomicBool::new(false);
        create_and_load_on(
            &env,
            &storage,
            settings,
            InitialLoad {
                workload: &*workload,
                database: 5,
                clients: CLIENTS,
                interrupted: &never,
            },
        )
        .await
        .unwrap();
        let engine = KernelEngine::start_on(&env, &storage, settings, &*workload).await;
        let engine = Arc::new(engine.unwrap());
        let paper = Arc::clone(&disk);
        let ledger = AcknowledgedCommits::new(CLIENTS, move |numbers| {
            paper.mark(mark(numbers));
            Ok(())
        });
        ledger.note().unwrap();
        let behaviour = Behaviour {
            clients: CLIENTS,
            ..Behaviour::default()
        };
        let mut running = start_noted_clients(&engine, &env, &workload, behaviour, ledger);
        while running.committed() < TRANSACTIONS && running.failure().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        running.stop().await.unwrap();
        drop(running);
        let engine = Arc::into_inner(engine).unwrap();
        engine.stop(Shutdown::Abort).await.unwrap();
    });
    drop(storage);
    disk.into_log()
}

/// Cuts the power over and over; what was found for each cut. `promised` says what had been
/// acknowledged then, and what was in the end.
fn cut(
    log: &WriteLog,
    settings: &KernelSettings,
    kinds: &[CutKind],
    promised: impl Fn(&Notes, Cut) -> [Vec<u64>; 2],
) -> Vec<(Cut, Result<PowerCutSurvey, Broken>)> {
    let notes = Notes::of(log);
    let (first, last) = notes.running().expect("the workload ran");
    let mut replay = Replay::new(log, vec![AddressMap::linear(0, disk_bytes())]);
    let cuts = draw_cuts(first, last, kinds, CUTS, 1);
    cuts.into_iter()
        .map(|cut| {
            let image = replay.after(cut).remove(0);
            let env: Arc<dyn Env> = RealEnv::new(1);
            let (storage, workload) = (storage(&Disk::of(image, false)), workload());
            let [acknowledged, in_the_end] = promised(&notes, cut);
            let promises = Promises {
                acknowledged: &acknowledged,
                in_the_end: &in_the_end,
            };
            let found = survey(&env, &storage, settings, &*workload, promises);
            let found = block_on(found).expect("this machine has what a recovery takes");
            (cut, found)
        })
        .collect()
}

const HONEST: [CutKind; 2] = [CutKind::InOrder, CutKind::Scattered];

fn as_promised(notes: &Notes, cut: Cut) -> [Vec<u64>; 2] {
    [notes.acknowledged(cut.entries), notes.in_the_end()].map(<[u64]>::to_vec)
}

#[test]
fn with_honoured_flushes_nothing_is_lost() {
    let ways = [
        (WriteSync::Dsync, false),
        (WriteSync::Dsync, true),
        (WriteSync::Checkpoint, false),
    ];
    for (write_sync, has_fua) in ways {
        let settings = settings(Commit::Wait, write_sync);
        let log = record(&settings, has_fua);
        let found = cut(&log, &settings, &HONEST, as_promised);
        let mut torn: BTreeMap<CutKind, u64> = BTreeMap::new();
        let mut redo_bytes = 0;
        for (cut, survey) in found {
            let survey = survey.unwrap_or_else(|broken| panic!("{cut:?}: {broken}"));
            assert_eq!(survey.lost, 0, "{cut:?}");
            *torn.entry(cut.kind).or_default() += survey.torn_blocks;
            redo_bytes += survey.redo_bytes;
        }
        assert!(redo_bytes > 0, "nothing had to be recovered");
        assert_eq!(torn[&CutKind::InOrder], 0, "whole writes tear no block");
        if write_sync == WriteSync::Checkpoint {
            assert!(torn[&CutKind::Scattered] > 0, "no block was ever torn");
        }
    }
}

#[test]
fn a_device_that_ignores_flushes_shows_loss() {
    let settings = settings(Commit::Wait, WriteSync::Dsync);
    let log = record(&settings, false);
    let found = cut(&log, &settings, &[CutKind::FlushesIgnored], as_promised);
    let harmed = |(_, survey): &&(Cut, Result<PowerCutSurvey, Broken>)| !matches!(survey, Ok(it) if it.lost == 0);
    let harmed = found.iter().filter(harmed).count();
    assert!(harmed > CUTS / 2, "{harmed} of {CUTS} cuts did harm");
}

#[test]
fn commits_that_do_not_wait_are_lost_and_nothing_else_is() {
    let settings = settings(Commit::NoWait, WriteSync::Dsync);
    let log = record(&settings, false);
    let found = cut(&log, &settings, &HONEST, as_promised);
    let lost = found.into_iter().map(|(cut, survey)| {
        survey
            .unwrap_or_else(|broken| panic!("{cut:?}: {broken}"))
            .lost
    });
    assert!(lost.sum::<u64>() > 0, "no commit was ever lost");
}

#[test]
fn one_commit_that_is_gone_is_seen() {
    let settings = settings(Commit::Wait, WriteSync::Dsync);
    let log = record(&settings, false);
    // Promised to one client: two more than it had heard of, of which the database may have one.
    let more = |notes: &Notes, cut| {
        let [mut acknowledged, in_the_end] = as_promised(notes, cut);
        acknowledged[0] += 2;
        [acknowledged, in_the_end]
    };
    for (cut, survey) in cut(&log, &settings, &HONEST, more) {
        assert!(survey.unwrap().lost >= 1, "{cut:?}");
    }
    // And one that nobody can have made.
    let none = |_: &Notes, _| [vec![0; CLIENTS], vec![0; CLIENTS]];
    let found = cut(&log, &settings, &[CutKind::InOrder], none);
    let unheard_of =
        |survey: &Result<PowerCutSurvey, Broken>| matches!(survey, Err(Broken::Wrong(_)));
    assert!(found.iter().any(|(_, survey)| unheard_of(survey)));
}
