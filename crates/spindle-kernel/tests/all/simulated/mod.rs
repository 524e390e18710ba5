//! A small database in the simulated world, a workload whose every acknowledged effect can be computed afresh, and the
//! check that after a crash exactly those effects are there.

pub mod crashes;
pub mod drawn;
pub mod failures;
pub mod live;
mod method;
pub mod reached;
mod words;

use std::sync::Arc;

use spindle_io::Env;
use spindle_io::env::{LocalFuture, seeded_rng};
use spindle_io::sim::{DiskImage, DiskMoment, DiskTiming, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::{Latch, timeout};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, InstanceSettings, KernelError, KernelSettings, PlantedFault,
    Result, RowId, Session, Shutdown, Storage, Switches, Table, TornBlocks, WriteSync,
    create_database, double_write_bytes,
};

pub use method::Method;
use reached::Work;

/// Most sessions of a scenario.
pub const SESSIONS: usize = 8;
/// A scenario that has not ended after so much virtual time never will.
const ENDLESS_NS: u64 = 600 * 1_000_000_000;

/// How a scenario differs from the plain one.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub seed: u64,
    pub sessions: usize,
    pub transactions: u64,
    pub block_bytes: usize,
    pub row_bytes: usize,
    pub line_bytes_max: usize,
    pub note_bytes_max: usize,
    pub accounts: u64,
    /// Blocks of the history that the lines of it can be in.
    pub history_blocks: u64,
    /// Blocks that the notes can be in.
    pub note_blocks: u64,
    pub undo_blocks: usize,
    pub datafiles: usize,
    pub datafile_extents: usize,
    pub method: Method,
    pub write_sync: WriteSync,
    pub torn_blocks: TornBlocks,
    pub writers: u32,
    pub planted: Option<PlantedFault>,
    pub checkpoint_interval_ns: u64,
    pub checkpoint_progress_ns: u64,
    pub checkpoint_lag_bytes: Option<u64>,
    /// Log files of the ring, 2 or 3.
    pub log_files: usize,
    pub cache_blocks: u64,
    pub write_batch_blocks: usize,
    pub log_buffer_bytes: usize,
    /// LGWR's pieces.
    pub log_write_bytes_max: usize,
    /// Length of each log file.
    pub log_file_bytes: usize,
    pub lock_timeout_ns: u64,
    /// Service time of a write to a datafile.
    pub data_write_ns: u64,
    /// Service time of a write to the control file.
    pub control_write_ns: u64,
    pub data_read_ns: u64,
    /// I/Os that a datafile's disk serves at the same time.
    pub data_at_once: usize,
    pub log_timing: DiskTiming,
    /// Atomic write unit of every disk, unless blocks are never to be torn.
    pub atomic_bytes: u32,
    /// Rare behaviour of the kernel that is to happen often.
    pub switches: Switches,
    /// The first accounts, of which half of all changes choose: the fewer, the more sessions wait for each other.
    pub hot_accounts: u64,
    /// Accounts that a transaction changes, at most.
    pub changes_max: u64,
    /// Every transaction adds all accounts up.
    pub audits: bool,
    /// Accounts are changed in the order of their numbers, so that no deadlock is possible.
    pub in_order: bool,
    /// Rows that each transaction puts into a table with indexes; 0: there is no such table.
    pub words: usize,
}

impl Scenario {
    pub fn plain(seed: u64) -> Scenario {
        Scenario {
            seed,
            sessions: 3,
            transactions: 8,
            block_bytes: 2048,
            row_bytes: 48,
            line_bytes_max: 120,
            // Of the longest one block takes two, and there are three.
            note_bytes_max: 900,
            accounts: 3000,
            history_blocks: 32,
            note_blocks: 32,
            undo_blocks: 40,
            datafiles: 2,
            datafile_extents: 3,
            method: Method::Async,
            write_sync: WriteSync::Dsync,
            torn_blocks: TornBlocks::Images,
            writers: 1,
            planted: None,
            checkpoint_interval_ns: 20_000_000,
            checkpoint_progress_ns: 3_000_000,
            checkpoint_lag_bytes: None,
            log_files: 3,
            cache_blocks: 32,
            write_batch_blocks: 8,
            log_buffer_bytes: 32 << 10,
            log_write_bytes_max: 8 << 10,
            log_file_bytes: (8 << 10) + 6 * (32 << 10) + (16 << 10),
            lock_timeout_ns: 6_000_000,
            data_write_ns: DiskTiming::default().write_ns,
            control_write_ns: DiskTiming::default().write_ns,
            data_read_ns: DiskTiming::default().read_ns,
            data_at_once: DiskTiming::default().at_once,
            log_timing: DiskTiming::default(),
            atomic_bytes: 512,
            switches: Switches::OFF,
            hot_accounts: 200,
            changes_max: 4,
            audits: false,
            in_order: false,
            words: 0,
        }
    }

    /// With indexes whose nodes are split, tidied and reclaimed.
    pub fn indexed(seed: u64) -> Scenario {
        Scenario {
            words: 12,
            datafile_extents: 5,
            undo_blocks: 80,
            accounts: 400,
            changes_max: 2,
            ..Scenario::plain(seed)
        }
    }

    /// Transactions that together have more undo than the undo file takes.
    pub fn grown(seed: u64) -> Scenario {
        Scenario {
            sessions: 4,
            transactions: 6,
            undo_blocks: 12,
            changes_max: 200,
            hot_accounts: 1000,
            in_order: true,
            ..Scenario::plain(seed)
        }
    }

    /// Long enough to go round the log ring, with sessions that deadlock and a cache that DBWR cannot keep clean.
    pub fn long(seed: u64) -> Scenario {
        Scenario {
            transactions: 14,
            checkpoint_interval_ns: 30_000_000,
            cache_blocks: 16,
            data_write_ns: 1_000_000,
            hot_accounts: 4,
            changes_max: 6,
            ..Scenario::plain(seed)
        }
    }

    /// DBWR and CKPT are never more than a few kibibytes of redo behind.
    pub fn close_behind(seed: u64) -> Scenario {
        Scenario {
            transactions: 12,
            checkpoint_lag_bytes: Some(32 << 10),
            checkpoint_progress_ns: 500_000,
            cache_blocks: 24,
            hot_accounts: 5,
            ..Scenario::plain(seed)
        }
    }

    /// More redo than the ring holds, while CKPT notes one position.
    pub fn fast_redo(seed: u64) -> Scenario {
        Scenario {
            transactions: 200,
            cache_blocks: 256,
            data_write_ns: 20_000_000,
            log_files: 2,
            control_write_ns: 400_000_000,
            hot_accounts: 1000,
            ..Scenario::plain(seed)
        }
    }

    /// The same with nothing to do but to recover.
    pub fn idle(self) -> Scenario {
        Scenario {
            transactions: 0,
            ..self
        }
    }

    /// What is promised when every client has come to its end, having begun with these transactions.
    pub fn promised_after(&self, first: [u64; SESSIONS]) -> [u64; SESSIONS] {
        let mut promised = first.map(|number| number - 1);
        for last in &mut promised[..self.sessions] {
            *last += self.transactions;
        }
        promised
    }

    fn settings(&self) -> KernelSettings {
        KernelSettings {
            block_bytes: self.block_bytes,
            buffer_cache_bytes: self.cache_blocks * self.block_bytes as u64,
            instance: InstanceSettings {
                writers: self.writers,
                write_sync: self.write_sync,
                torn_blocks: self.torn_blocks,
                checkpoint_interval_ns: self.checkpoint_interval_ns,
                lock_timeout_ns: self.lock_timeout_ns,
                ..InstanceSettings::default()
            },
            write_batch_blocks: self.write_batch_blocks,
            log_buffer_bytes: self.log_buffer_bytes,
            log_write_bytes_max: self.log_write_bytes_max,
            checkpoint_progress_ns: self.checkpoint_progress_ns,
            checkpoint_lag_bytes: self.checkpoint_lag_bytes,
            planted: self.planted,
            switches: self.switches,
            ..KernelSettings::default()
        }
    }
}

/// The surviving bytes of every disk of the database.
pub type Images = Vec<DiskImage>;

/// What was promised: per session, the number of the last transaction whose commit returned.
pub type Acknowledged = Arc<Latch<[u64; SESSIONS]>>;

/// Datafiles begin at this disk: undo's, then the others, and after them the double write's areas.
pub const UNDO_DISK: usize = 4;

/// The disks of one world.
#[derive(Clone)]
pub struct Disks {
    disks: Vec<Arc<SimDisk>>,
    env: Arc<dyn Env>,
}

impl Disks {
    fn new(world: &World, scenario: Scenario, images: &Images) -> Disks {
        let disk = |(number, image): (usize, &DiskImage)| {
            let timing = match number {
                0 => DiskTiming {
                    write_ns: scenario.control_write_ns,
                    ..DiskTiming::default()
                },
                1..UNDO_DISK => scenario.log_timing,
                _ => DiskTiming {
                    read_ns: scenario.data_read_ns,
                    write_ns: scenario.data_write_ns,
                    at_once: scenario.data_at_once,
                    ..DiskTiming::default()
                },
            };
            let unit_bytes = match scenario.torn_blocks {
                TornBlocks::Atomic => scenario.block_bytes as u32,
                _ => scenario.atomic_bytes,
            };
            let (number, image) = (number as u64, image.clone());
            SimDisk::new(world.env(), number, image, unit_bytes, timing)
        };
        Disks {
            disks: images.iter().enumerate().map(disk).collect(),
            env: world.env(),
        }
    }

    /// The devices of the database, by the scenario's method.
    fn storage(&self, scenario: Scenario) -> Storage {
        let device = |disk: &Arc<SimDisk>| scenario.method.device(&self.env, disk);
        let (data, areas) = self.disks[UNDO_DISK + 1..].split_at(scenario.datafiles);
        let is_written_twice = scenario.torn_blocks == TornBlocks::DoubleWrite;
        Storage {
            control: device(&self.disks[0]),
            redo: self.disks[1..=scenario.log_files]
                .iter()
                .map(device)
                .collect(),
            undo: device(&self.disks[UNDO_DISK]),
            data: data.iter().map(device).collect(),
            double_write: is_written_twice.then(|| device(&areas[0])),
            temp: Vec::new(),
        }
    }

    pub fn after(&self, cut: PowerCut) -> Images {
        self.disks
            .iter()
            .map(|disk| disk.image_after(cut))
            .collect()
    }

    pub fn moment(&self) -> Vec<DiskMoment> {
        self.disks.iter().map(|disk| disk.moment()).collect()
    }
}

fn blank(scenario: Scenario) -> Images {
    let log = scenario.log_file_bytes;
    let undo = scenario.undo_blocks * scenario.block_bytes;
    // A header, a map, and the extents.
    let data = (scenario.datafile_extents << 20) + 2 * scenario.block_bytes;
    let mut sizes = vec![CONTROL_FILE_BYTES as usize, log, log, log, undo];
    sizes.extend(std::iter::repeat_n(data, scenario.datafiles));
    sizes.push(double_write_bytes(scenario.block_bytes, scenario.writers as usize) as usize);
    sizes.into_iter().map(DiskImage::zeroed).collect()
}

/// Creates and loads the database, shuts it down, and pulls the plug: what is left must be whole.
pub fn loaded(scenario: Scenario) -> Images {
    load(scenario).0
}

/// As [`loaded`], with the world it was done in.
pub fn load(scenario: Scenario) -> (Images, World) {
    let mut world = World::new(scenario.seed);
    let env: Arc<dyn Env> = world.env();
    let disks = Disks::new(&world, scenario, &blank(scenario));
    let storage = disks.storage(scenario);
    let settings = KernelSettings {
        planted: None,
        ..scenario.settings()
    };
    world
        .run(async move {
            create_database(&env, &storage, &settings, 4711, 8)
                .await
                .unwrap();
            let instance = Instance::startup(&env, &storage, &settings).await.unwrap();
            let zero = |_, row: &mut Vec<u8>| row[..16].fill(0);
            instance
                .create_table("accounts", scenario.row_bytes, scenario.accounts, zero)
                .await
                .unwrap();
            instance
                .create_table("ledger", scenario.row_bytes, SESSIONS as u64, zero)
                .await
                .unwrap();
            instance
                .create_table("history", scenario.line_bytes_max, 0, zero)
                .await
                .unwrap();
            make_notes(&instance, scenario).await;
            if scenario.words > 0 {
                words::make(&instance).await;
            }
            instance.shutdown(Shutdown::Normal).await.unwrap();
        })
        .unwrap();
    (disks.after(PowerCut::LoseAll), world)
}

/// A note for each session, short, in one block.
async fn make_notes(instance: &Instance, scenario: Scenario) {
    let notes = instance
        .create_table("notes", scenario.note_bytes_max, 0, |_, _| {})
        .await
        .unwrap();
    let mut session = instance.session();
    for me in 0..SESSIONS {
        let row = session
            .insert_row(&notes, &note(scenario, me, 0))
            .await
            .unwrap();
        assert_eq!(row, note_id(&notes, me));
    }
    session.commit().await.unwrap();
}

fn note_id(notes: &Table, me: usize) -> RowId {
    RowId {
        address: notes.block(0).unwrap(),
        slot: me as u16,
    }
}

/// What a session's note says after a transaction: of any length.
fn note(scenario: Scenario, me: usize, number: u64) -> Vec<u8> {
    use rand_xoshiro::rand_core::RngCore;
    let mut rng = seeded_rng(scenario.seed ^ 0x4E07E, (me as u64) << 32 | number);
    let length = match number {
        0 => 16,
        _ => 1 + rng.next_u64() as usize % scenario.note_bytes_max,
    };
    let mut note = vec![me as u8; length];
    rng.fill_bytes(&mut note[1..]);
    note
}

/// The changes of one transaction: accounts and what is added to each, together nothing.
fn effects(scenario: Scenario, session: usize, number: u64) -> Vec<(u64, i64)> {
    use rand_xoshiro::rand_core::RngCore;
    let mut rng = seeded_rng(scenario.seed, (session as u64) << 32 | number);
    let mut effects: Vec<_> = (0..1 + rng.next_u64() % scenario.changes_max)
        .map(|_| {
            let among = [scenario.hot_accounts, scenario.accounts][(rng.next_u64() % 2) as usize];
            (rng.next_u64() % among, (rng.next_u64() % 1000) as i64 - 500)
        })
        .collect();
    effects[0].1 -= effects.iter().map(|(_, amount)| amount).sum::<i64>();
    if scenario.in_order {
        effects.sort_unstable();
    }
    effects
}

fn get(row: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(row[at..at + 8].try_into().unwrap())
}

fn add(bytes: &mut [u8], amount: i64) {
    let sum = get(bytes, 0) + amount;
    bytes.copy_from_slice(&sum.to_le_bytes());
}

/// One transaction: the accounts, a line of history in, the line of three transactions ago out, the note, the ledger. A
/// deadlock, a lock timeout or a snapshot too old rolls back and tries again.
async fn transact(
    instance: &Instance,
    session: &mut Session,
    scenario: Scenario,
    me: usize,
    number: u64,
) -> Result<()> {
    loop {
        match attempt(instance, session, scenario, me, number).await {
            Err(
                KernelError::Deadlock { .. }
                | KernelError::LockTimeout { .. }
                | KernelError::SnapshotTooOld { .. },
            ) => {
                session.rollback().await?;
            }
            result => return result,
        }
    }
}

async fn attempt(
    instance: &Instance,
    session: &mut Session,
    scenario: Scenario,
    me: usize,
    number: u64,
) -> Result<()> {
    let accounts = instance.table("accounts")?;
    for (account, amount) in effects(scenario, me, number) {
        let row = accounts.row_id(account);
        session
            .update_row(row, 0..8, |bytes| add(bytes, amount))
            .await?;
        session
            .update_row(row, 8..16, |bytes| add(bytes, 1))
            .await?;
    }
    if scenario.audits {
        let mut sum = 0;
        session
            .scan(&accounts, 0, accounts.loaded_blocks(), |_, row| {
                sum += get(row, 0)
            })
            .await?;
        assert_eq!(sum, 0, "a scan by session {me} saw a part of a transaction");
    }
    let history = instance.table("history")?;
    let line_bytes = 16 + number as usize * 29 % (scenario.line_bytes_max - 16);
    let mut line = vec![0xAB; line_bytes];
    line[..8].copy_from_slice(&(me as i64).to_le_bytes());
    line[8..16].copy_from_slice(&(number as i64).to_le_bytes());
    session.insert_row(&history, &line).await?;
    let mut lines: Vec<Vec<(u64, RowId)>> = vec![Vec::new(); scenario.sessions];
    session
        .scan(&history, 0, scenario.history_blocks, |row, bytes| {
            lines[get(bytes, 0) as usize].push((get(bytes, 8) as u64, row));
        })
        .await?;
    for (other, lines) in lines.iter_mut().enumerate() {
        lines.sort_unstable();
        // What the others have committed at one moment.
        let last = lines.last().map_or(0, |(number, _)| *number);
        let expected = last.saturating_sub(2).max(1)..=last;
        assert!(
            other == me || lines.iter().map(|(number, _)| *number).eq(expected),
            "a scan by session {me} saw of session {other} the lines {lines:?}"
        );
    }
    if let Some((_, row)) = lines[me].iter().find(|(line, _)| line + 3 == number) {
        session.delete_row(&history, *row).await?;
    }
    if scenario.words > 0 {
        words::attempt(instance, session, scenario, me, number).await?;
    }
    let notes = instance.table("notes")?;
    session
        .replace_row(&notes, note_id(&notes, me), &note(scenario, me, number))
        .await?;
    let ledger = instance.table("ledger")?;
    session
        .update_row(ledger.row_id(me as u64), 0..8, |bytes| {
            bytes.copy_from_slice(&number.to_le_bytes())
        })
        .await
}

/// A client: transactions one after the other, now and then one that is rolled back first.
async fn client(
    instance: Arc<Instance>,
    scenario: Scenario,
    me: usize,
    first: u64,
    acknowledged: Acknowledged,
) {
    let mut session = instance.session();
    for number in first..first + scenario.transactions {
        if (number + me as u64).is_multiple_of(4) {
            let given_up = Scenario {
                seed: scenario.seed ^ 1,
                ..scenario
            };
            transact(&instance, &mut session, given_up, me, number)
                .await
                .unwrap();
            session.rollback().await.unwrap();
        }
        transact(&instance, &mut session, scenario, me, number)
            .await
            .unwrap();
        session.commit().await.unwrap();
        acknowledged.lock()[me] = number;
    }
}

/// Called at each I/O with its number, the disks and what was acknowledged.
pub type Observer = Box<dyn FnMut(u64, &Disks, [u64; SESSIONS]) + Send>;

/// Starts the instance on `images` and lets every client run; the power is cut at I/O `cut_at` if that comes first.
/// Returns the disks, what was acknowledged, the I/Os made and whether the power was cut.
pub fn run(
    scenario: Scenario,
    images: &Images,
    world_seed: u64,
    first: [u64; SESSIONS],
    cut_at: Option<u64>,
) -> (Disks, [u64; SESSIONS], World, bool) {
    run_observed(scenario, images, world_seed, first, cut_at, None)
}

/// As [`run`], with an observer of every I/O.
pub fn run_observed(
    scenario: Scenario,
    images: &Images,
    world_seed: u64,
    first: [u64; SESSIONS],
    cut_at: Option<u64>,
    observer: Option<Observer>,
) -> (Disks, [u64; SESSIONS], World, bool) {
    let mut world = World::new(world_seed);
    let env: Arc<dyn Env> = world.env();
    let disks = Disks::new(&world, scenario, images);
    let storage = disks.storage(scenario);
    let acknowledged: Acknowledged = Arc::new(Latch::new(first.map(|number| number - 1)));
    let promises = Arc::clone(&acknowledged);
    if let Some(io) = cut_at {
        world.cut_power_at_io(io);
    }
    if let Some(mut observer) = observer {
        let (disks, promises) = (disks.clone(), Arc::clone(&acknowledged));
        world.observe_io(move |io| {
            let promised = *promises.lock();
            observer(io, &disks, promised);
        });
    }
    let result = world.run(in_time(Arc::clone(&env), async move {
        let instance = Instance::startup(&env, &storage, &scenario.settings())
            .await
            .unwrap();
        let instance = Arc::new(instance);
        let mut joins = Vec::new();
        for (me, first) in first.into_iter().enumerate().take(scenario.sessions) {
            let (instance, promises) = (Arc::clone(&instance), Arc::clone(&promises));
            let start = Box::new(move || {
                Box::pin(client(instance, scenario, me, first, promises)) as LocalFuture
            });
            joins.push(env.spawn(&format!("client{me}"), start));
        }
        for join in joins {
            join.ended().await.unwrap();
        }
        let instance = Arc::into_inner(instance).unwrap();
        instance.shutdown(Shutdown::Normal).await.unwrap();
    }));
    let cut = match result {
        Ok(()) => false,
        Err(Stop::PowerCut { .. }) => true,
        Err(stop) => panic!("{stop}"),
    };
    let promised = *acknowledged.lock();
    Work::note(&world);
    (disks, promised, world, cut)
}

/// Recovers the database on `images` and compares every row with what the transactions that it says it has must have
/// done. Returns, per session, the last transaction found, and the images after a clean shutdown.
pub fn recover_and_check(
    scenario: Scenario,
    images: &Images,
    acknowledged: [u64; SESSIONS],
) -> std::result::Result<([u64; SESSIONS], Images), String> {
    let (found, images, _) = recover(scenario, images, acknowledged)?;
    Ok((found, images))
}

/// As [`recover_and_check`], with the world it was done in.
pub fn recover(
    scenario: Scenario,
    images: &Images,
    acknowledged: [u64; SESSIONS],
) -> std::result::Result<([u64; SESSIONS], Images, World), String> {
    let mut world = World::new(scenario.seed ^ 0xC0FFEE);
    let env: Arc<dyn Env> = world.env();
    let disks = Disks::new(&world, scenario, images);
    let storage = disks.storage(scenario);
    let settings = scenario.settings();
    let found = world
        .run(in_time(Arc::clone(&env), async move {
            let instance = Instance::startup(&env, &storage, &settings)
                .await
                .map_err(|error| error.to_string())?;
            let found = check(&instance, scenario, acknowledged).await?;
            instance
                .shutdown(Shutdown::Normal)
                .await
                .map_err(|error| error.to_string())?;
            Ok::<_, String>(found)
        }))
        .map_err(|stop| stop.to_string())??;
    Work::note(&world);
    Ok((found, disks.after(PowerCut::LoseAll), world))
}

/// Runs `main`, which must come to its end.
async fn in_time<T>(env: Arc<dyn Env>, main: impl Future<Output = T>) -> T {
    let ended = timeout(&*env, ENDLESS_NS, main).await;
    ended.expect("the scenario ends within ten minutes of virtual time")
}

async fn check(
    instance: &Instance,
    scenario: Scenario,
    acknowledged: [u64; SESSIONS],
) -> std::result::Result<[u64; SESSIONS], String> {
    let words = |error: KernelError| error.to_string();
    let mut session = instance.session();
    let ledger = instance.table("ledger").map_err(words)?;
    let mut found = [0; SESSIONS];
    for (me, last) in found.iter_mut().enumerate() {
        *last = session
            .read_row(ledger.row_id(me as u64), |row| get(row, 0) as u64)
            .await
            .map_err(words)?;
        if !(acknowledged[me]..=acknowledged[me] + 1).contains(last) {
            return Err(format!(
                "session {me}: transaction {} was acknowledged, the ledger says {last}",
                acknowledged[me]
            ));
        }
    }
    let mut expected = vec![(0, 0); scenario.accounts as usize];
    for (me, last) in found.iter().enumerate() {
        for (account, amount) in (1..=*last).flat_map(|number| effects(scenario, me, number)) {
            expected[account as usize].0 += amount;
            expected[account as usize].1 += 1;
        }
    }
    let accounts = instance.table("accounts").map_err(words)?;
    for (account, expected) in expected.iter().enumerate() {
        let row = accounts.row_id(account as u64);
        let is = session
            .read_row(row, |row| (get(row, 0), get(row, 8)))
            .await
            .map_err(words)?;
        if is != *expected {
            return Err(format!(
                "account {account} has {is:?}, the transactions found make {expected:?}"
            ));
        }
    }
    check_history(instance, scenario, &mut session, found).await?;
    for name in ["accounts", "ledger", "history", "notes"] {
        let table = instance.table(name).map_err(words)?;
        session.check_table(&table).await.map_err(words)?;
    }
    check_notes(instance, &mut session, scenario, found).await?;
    if scenario.words > 0 {
        words::check(instance, &mut session, scenario, found).await?;
    }
    Ok(found)
}

async fn check_history(
    instance: &Instance,
    scenario: Scenario,
    session: &mut Session,
    found: [u64; SESSIONS],
) -> std::result::Result<(), String> {
    let history = instance
        .table("history")
        .map_err(|error| error.to_string())?;
    let mut lines = Vec::new();
    let seen = session
        .scan(&history, 0, scenario.history_blocks, |_, row| {
            lines.push((get(row, 0), get(row, 8)))
        })
        .await;
    seen.map_err(|error| error.to_string())?;
    lines.sort_unstable();
    let mut expected = Vec::new();
    for (me, &last) in found.iter().enumerate() {
        expected.extend(
            (last.saturating_sub(2).max(1)..=last).map(|number| (me as i64, number as i64)),
        );
    }
    if lines == expected {
        Ok(())
    } else {
        Err(format!("history has {lines:?}, expected {expected:?}"))
    }
}

/// Every note is what its session's last transaction wrote, read by its rowid, and scanned once.
async fn check_notes(
    instance: &Instance,
    session: &mut Session,
    scenario: Scenario,
    found: [u64; SESSIONS],
) -> std::result::Result<(), String> {
    let words = |error: KernelError| error.to_string();
    let notes = instance.table("notes").map_err(words)?;
    let mut scanned = Vec::new();
    session
        .scan(&notes, 0, scenario.note_blocks, |row, bytes| {
            scanned.push((row, bytes.to_vec()))
        })
        .await
        .map_err(words)?;
    scanned.sort_unstable();
    let mut expected = Vec::new();
    for (me, &last) in found.iter().enumerate() {
        let (row, written) = (note_id(&notes, me), note(scenario, me, last));
        let is = session.read_row(row, <[u8]>::to_vec).await.map_err(words)?;
        if is != written {
            let (is, written) = (is.len(), written.len());
            return Err(format!(
                "note {me} has {is} bytes, not the {written} of transaction {last}"
            ));
        }
        expected.push((row, written));
    }
    if scanned == expected {
        Ok(())
    } else {
        let rows: Vec<_> = scanned.iter().map(|(row, _)| row).collect();
        Err(format!("the notes scanned are {rows:?}"))
    }
}
