//! Histories of simulated runs: several clients append to few rows, read and scan, deadlock, roll back; the power is
//! cut in the middle of most runs, and they go on after recovery. Nothing that read committed forbids is found, and
//! planted faults are.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::sync::Latch;
use spindle_kernel::probe::{self, Probe};
use spindle_kernel::{KernelError, KernelSettings, PlantedFault, Result, RowId, Session};

use super::checker::{Scans, judge};
use super::history::{History, Key, Kind, Step, Value};
use super::stage::{self, Images, Stage};

/// What scans promise today.
const SCANS: Scans = Scans::OneMoment;

const SEEDS: u64 = 200;
const CLIENTS: usize = 5;
/// Transactions of each client, before and after the cut.
const TRANSACTIONS: u64 = 8;
/// Rows with lists; they lie apart, two in a block, so that not all are in the cache.
const KEYS: u64 = 80;
const ROWS_APART: u64 = 2;
/// A row holds how many values it has, and this many at most.
const VALUES_MAX: usize = 100;
const ROW_BYTES: usize = 4 + 4 * VALUES_MAX;
/// Blocks that the rows are in.
const BLOCKS: u64 = 40;
/// By turns: short enough to end waits, and long enough that they end by themselves.
const LOCK_TIMEOUTS_NS: [u64; 2] = [2_000_000, 6_000_000];

/// The rare paths that the runs must have reached.
const RARE: [Probe; 4] = [
    Probe::DeadlockBroken,
    Probe::LockTimeout,
    Probe::FreeBufferWait,
    Probe::RollBackBegun,
];

fn number(bytes: &[u8], place: usize) -> u32 {
    u32::from_le_bytes(bytes[4 * place..4 * place + 4].try_into().unwrap())
}

/// The list that a row holds.
fn list(bytes: &[u8]) -> Vec<Value> {
    (1..=number(bytes, 0) as usize)
        .map(|place| number(bytes, place))
        .collect()
}

/// Adds to the list that a row holds; false when it is full.
fn push(bytes: &mut [u8], value: Value) -> bool {
    let count = number(bytes, 0) as usize + 1;
    let fits = count <= VALUES_MAX;
    if fits {
        bytes[..4].copy_from_slice(&(count as u32).to_le_bytes());
        bytes[4 * count..4 * count + 4].copy_from_slice(&value.to_le_bytes());
    }
    fits
}

/// One client at work.
struct Client {
    stage: Stage,
    session: Session,
    history: Arc<Latch<History>>,
    rng: Xoshiro256PlusPlus,
    me: usize,
    /// Rows it chooses from most of the time, as all do: few, for many conflicts.
    hot_keys: u64,
    transaction: usize,
}

impl Client {
    fn draw(&mut self, below: u64) -> u64 {
        self.rng.next_u64() % below
    }

    fn draw_key(&mut self) -> Key {
        let among = [self.hot_keys, self.hot_keys, KEYS][self.draw(3) as usize];
        self.draw(among)
    }

    fn row(&self, key: Key) -> RowId {
        self.stage.row(key * ROWS_APART)
    }

    fn note(&self, step: Step) {
        let mut history = self.history.lock();
        history.transactions[self.transaction].steps.push(step);
    }

    async fn run(mut self) {
        for _ in 0..TRANSACTIONS {
            self.transaction = self.history.lock().begin(self.me);
            let done = self.steps().await;
            let gives_up = self.draw(6) == 0;
            match done {
                Ok(()) if !gives_up => {
                    self.history.lock().call_commit(self.transaction);
                    self.session.commit().await.unwrap();
                    self.history.lock().committed(self.transaction);
                }
                Ok(())
                | Err(
                    KernelError::Deadlock { .. }
                    | KernelError::LockTimeout { .. }
                    | KernelError::SnapshotTooOld { .. },
                ) => {
                    self.session.rollback().await.unwrap();
                }
                Err(error) => panic!("client {}: {error}", self.me),
            }
        }
    }

    async fn steps(&mut self) -> Result<()> {
        for _ in 0..2 + self.draw(6) {
            match self.draw(9) {
                0..4 => self.append().await?,
                4..7 => self.read().await?,
                7 => self.scan().await?,
                _ => {
                    let pause_ns = self.draw(1_000_000);
                    self.stage.env.sleep(pause_ns).await;
                }
            }
        }
        Ok(())
    }

    /// Appends to a row. Noted before it is done, for after a power cut nobody can tell how far it came.
    async fn append(&mut self) -> Result<()> {
        let key = self.draw_key();
        let value = self.history.lock().tick() as Value;
        self.note(Step::Append(key, value));
        let fits = Cell::new(true);
        let row = self.row(key);
        let push = |bytes: &mut [u8]| fits.set(push(bytes, value));
        self.session.update_row(row, 0..ROW_BYTES, push).await?;
        assert!(fits.get(), "row {key} is full: make VALUES_MAX larger");
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        let key = self.draw_key();
        let called = self.history.lock().tick();
        let values = self.session.read_row(self.row(key), list).await?;
        let rows = vec![(key, values)];
        self.note(Step::Read { called, rows });
        Ok(())
    }

    async fn scan(&mut self) -> Result<()> {
        // The first blocks, where the hot rows are, or any.
        let first = self.draw(2) * self.draw(BLOCKS);
        let blocks = 2 + self.draw(14);
        let called = self.history.lock().tick();
        let mut lists = BTreeMap::new();
        let table = Arc::clone(&self.stage.table);
        self.session
            .scan(&table, first, blocks, |row, bytes| {
                lists.insert(row, list(bytes));
            })
            .await?;
        let keys = (0..KEYS).filter_map(|key| Some((key, lists.remove(&self.row(key))?)));
        let rows = keys.collect();
        self.note(Step::Read { called, rows });
        Ok(())
    }
}

/// Lets every client run to its end; when `ends`, takes the last look.
async fn perform(stage: Stage, history: Arc<Latch<History>>, seed: u64, ends: bool) {
    let hot_keys = 3 + seed % 9;
    let joins: Vec<_> = (0..CLIENTS)
        .map(|me| {
            let history = Arc::clone(&history);
            stage.spawn(&format!("client{me}"), move |stage| {
                let client = Client {
                    session: stage.instance.session(),
                    stage,
                    history,
                    rng: seeded_rng(seed, me as u64),
                    me,
                    hot_keys,
                    transaction: 0,
                };
                client.run()
            })
        })
        .collect();
    for join in joins {
        join.ended().await.unwrap();
    }
    if ends {
        let mut session = stage.instance.session();
        for key in 0..KEYS {
            let row = stage.row(key * ROWS_APART);
            let values = session.read_row(row, list).await.unwrap();
            history.lock().last.insert(key, values);
        }
    }
}

/// One run: the clients until the power is cut, if it is, and again after recovery.
fn run(seed: u64, planted: Option<PlantedFault>, images: &Images) -> History {
    let settings = KernelSettings {
        planted,
        ..stage::settings(LOCK_TIMEOUTS_NS[seed as usize % 2])
    };
    let history = Arc::new(Latch::new(History::default()));
    let mut rng = seeded_rng(seed, u64::MAX);
    // One run in four ends the first part in peace.
    let cut_at = (!seed.is_multiple_of(4)).then(|| 60 + rng.next_u64() % 300);
    let first = Arc::clone(&history);
    let (ended, images) = stage::play(seed, &settings, images, cut_at, move |stage| {
        perform(stage, first, 2 * seed, false)
    });
    if ended.is_none() {
        history.lock().power_cut();
    }
    let second = Arc::clone(&history);
    stage::play(!seed, &settings, &images, None, move |stage| {
        perform(stage, second, 2 * seed + 1, true)
    });
    std::mem::take(&mut *history.lock())
}

fn loaded() -> Images {
    let settings = stage::settings(LOCK_TIMEOUTS_NS[1]);
    stage::loaded(&settings, ROW_BYTES, KEYS * ROWS_APART)
}

/// What many runs came to.
#[derive(Debug, Default)]
struct Sum {
    transactions: usize,
    dependencies: usize,
    /// How often each of [`RARE`] was reached.
    rare: [u64; RARE.len()],
    anomalies: Vec<String>,
}

/// Judges the runs of every seed that `next` gives.
fn judge_all(next: &AtomicU64, images: &Images) -> Sum {
    let mut sum = Sum::default();
    let before = RARE.map(probe::hits);
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= SEEDS {
            break;
        }
        let history = run(seed, None, images);
        let judgement = judge(&history, SCANS);
        sum.transactions += history.transactions.len();
        sum.dependencies += judgement.dependencies;
        let told = judgement.anomalies.iter();
        sum.anomalies
            .extend(told.map(|anomaly| format!("seed {seed}: {anomaly}")));
    }
    sum.rare = std::array::from_fn(|rare| probe::hits(RARE[rare]) - before[rare]);
    sum
}

#[test]
fn histories_hold_nothing_that_read_committed_forbids() {
    let images = loaded();
    let next = AtomicU64::new(0);
    let sums = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| judge_all(&next, &images)));
        threads.map(|thread| thread.join().unwrap())
    });
    for sum in &sums {
        println!("{RARE:?}: {sum:?}");
        assert!(sum.anomalies.is_empty(), "{}", sum.anomalies.join("\n"));
    }
    for (rare, probe) in RARE.iter().enumerate() {
        let reached = sums.iter().any(|sum| sum.rare[rare] > 0);
        assert!(reached, "{probe:?} was not reached");
    }
    let dependencies: usize = sums.iter().map(|sum| sum.dependencies).sum();
    assert!(dependencies as u64 > 20 * SEEDS);
}

/// Faults that make of a history one that is not read committed, and what must be found.
const HARMFUL: [(PlantedFault, &[Kind]); 7] = [
    (
        PlantedFault::DirtyRead,
        &[
            Kind::G1aAbortedRead,
            Kind::G1bIntermediateRead,
            Kind::G1cCircularFlow,
        ],
    ),
    (
        PlantedFault::RowLockReleasedEarly,
        &[Kind::G0WriteCycle, Kind::LostAppend, Kind::OtherOrder],
    ),
    (PlantedFault::ScanSeesLatest, &[Kind::OldView]),
    // These bring back what was rolled back: at once, and after a crash.
    (PlantedFault::UndoNotApplied, &[Kind::G1aAbortedRead]),
    (PlantedFault::UndoSkipped, &[Kind::G1aAbortedRead]),
    (PlantedFault::UndoChainCut, &[Kind::G1aAbortedRead]),
    (PlantedFault::AcknowledgeBeforeFlush, &[Kind::LostAppend]),
];

#[test]
fn planted_faults_are_found_in_histories() {
    let images = loaded();
    for (fault, kinds) in HARMFUL {
        let mut missing = kinds.to_vec();
        for seed in 0..4 * SEEDS {
            if missing.is_empty() {
                break;
            }
            // A fault may bring a client down; what counts here is what the checker says.
            let history = catch_unwind(AssertUnwindSafe(|| run(seed, Some(fault), &images)));
            let Ok(history) = history else { continue };
            for anomaly in judge(&history, SCANS).anomalies {
                if missing.contains(&anomaly.kind) {
                    println!("{fault:?}, seed {seed}: {anomaly}");
                    missing.retain(|kind| *kind != anomaly.kind);
                }
            }
        }
        assert!(missing.is_empty(), "{fault:?} did not lead to {missing:?}");
    }
}
