//! Consistent reads in the simulated world: clients move amounts between accounts while others add them all up.
//! Whatever a statement sees was there at one moment, so the sum is always the same; or the statement says that it
//! cannot know any more. Planted bugs must break it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::{LocalFuture, seeded_rng};
use spindle_io::sim::{DiskImage, DiskTiming, SimDisk, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Commit, Instance, InstanceSettings, KernelError, KernelSettings,
    PlantedFault, RowId, Session, Shutdown, Storage, Table, create_database,
};

const BLOCK_BYTES: usize = 2048;
const ACCOUNTS: u64 = 600;
const ROW_BYTES_MAX: usize = 300;
/// Of each account at the beginning.
const AMOUNT: i64 = 100;

#[derive(Clone, Copy)]
struct Plan {
    seed: u64,
    clients: u64,
    transfers: u64,
    scans: u64,
    /// Accounts that are inserted instead of loaded, in blocks that they fill: they migrate when they grow.
    inserted: bool,
    undo_blocks: usize,
    commit: Commit,
    planted: Option<PlantedFault>,
}

impl Plan {
    fn plain(seed: u64) -> Plan {
        Plan {
            seed,
            clients: 4,
            transfers: 60,
            scans: 12,
            inserted: false,
            undo_blocks: 300,
            commit: Commit::Wait,
            planted: None,
        }
    }

    /// So little undo that what a scan needs is often gone.
    fn little_undo(seed: u64) -> Plan {
        Plan {
            undo_blocks: 14,
            transfers: 150,
            ..Plan::plain(seed)
        }
    }

    fn settings(&self) -> KernelSettings {
        KernelSettings {
            block_bytes: BLOCK_BYTES,
            buffer_cache_bytes: 60 * BLOCK_BYTES as u64,
            write_batch_blocks: 8,
            log_buffer_bytes: 32 << 10,
            instance: InstanceSettings {
                checkpoint_interval_ns: 50_000_000,
                lock_timeout_ns: 8_000_000,
                commit: self.commit,
                ..InstanceSettings::default()
            },
            planted: self.planted,
            ..KernelSettings::default()
        }
    }
}

/// What came of a plan.
#[derive(Debug, Default)]
struct Outcome {
    sums: Vec<i64>,
    too_old: Vec<KernelError>,
    /// Undo records applied for readers.
    applied: u64,
}

fn storage(world: &World, plan: Plan) -> Storage {
    let log = 4 << 20;
    let undo = (2 + plan.undo_blocks) * BLOCK_BYTES;
    let data = (4 << 20) + 2 * BLOCK_BYTES;
    let disk = |(number, bytes): (usize, usize)| {
        let (image, timing) = (DiskImage::zeroed(bytes), DiskTiming::default());
        SimDisk::new(world.env(), number as u64, image, 512, timing) as Arc<dyn BlockDevice>
    };
    let mut disks = [CONTROL_FILE_BYTES as usize, log, log, undo, data]
        .into_iter()
        .enumerate()
        .map(disk);
    let mut next = || disks.next().unwrap();
    Storage {
        control: next(),
        redo: vec![next(), next()],
        undo: next(),
        data: vec![next()],
        double_write: None,
        temp: Vec::new(),
    }
}

fn amount(row: &[u8]) -> i64 {
    i64::from_le_bytes(row[..8].try_into().unwrap())
}

/// An account's row: its amount, its number, and as much more as `chance` says.
fn row(amount: i64, account: u64, chance: u64) -> Vec<u8> {
    let mut row = vec![0xEE; 16 + chance as usize % (ROW_BYTES_MAX - 16)];
    row[..8].copy_from_slice(&amount.to_le_bytes());
    row[8..16].copy_from_slice(&account.to_le_bytes());
    row
}

async fn make_accounts(instance: &Instance, plan: Plan) -> Vec<RowId> {
    let rows = if plan.inserted { 0 } else { ACCOUNTS };
    let table = instance
        .create_table("accounts", ROW_BYTES_MAX, rows, |account, bytes| {
            *bytes = row(AMOUNT, account, 40);
        })
        .await
        .unwrap();
    let mut session = instance.session();
    let mut ids = Vec::new();
    for account in 0..ACCOUNTS {
        ids.push(if plan.inserted {
            let short = row(AMOUNT, account, 40);
            session.insert_row(&table, &short).await.unwrap()
        } else {
            table.row_id(account)
        });
        session.commit().await.unwrap();
    }
    ids
}

/// Moves amounts, in place or with rows of another length; some transactions are rolled back.
async fn client(session: &mut Session, table: &Table, ids: &[RowId], plan: Plan, me: u64) {
    let mut rng = seeded_rng(plan.seed, 100 + me);
    for turn in 0..plan.transfers {
        let moved = (rng.next_u64() % 50) as i64;
        let (from, to) = (rng.next_u64() % ACCOUNTS, rng.next_u64() % ACCOUNTS);
        let chance = rng.next_u64();
        let done = async {
            change(session, table, ids, from, -moved, chance).await?;
            change(session, table, ids, to, moved, chance >> 16).await
        };
        match done.await {
            Err(KernelError::Deadlock { .. } | KernelError::LockTimeout { .. }) => {
                session.rollback().await.unwrap();
            }
            Ok(()) if turn % 7 == 6 => session.rollback().await.unwrap(),
            done => {
                done.unwrap();
                session.commit().await.unwrap();
            }
        }
    }
}

async fn change(
    session: &mut Session,
    table: &Table,
    ids: &[RowId],
    account: u64,
    moved: i64,
    chance: u64,
) -> Result<(), KernelError> {
    let id = ids[account as usize];
    // Locks the row, so that what is read next is the latest.
    session
        .update_row(id, 0..8, |bytes| {
            let sum = amount(bytes) + moved;
            bytes.copy_from_slice(&sum.to_le_bytes());
        })
        .await?;
    if chance.is_multiple_of(2) {
        let is = session.read_row(id, amount).await?;
        let replaced = row(is, account, chance >> 8);
        session.replace_row(table, id, &replaced).await?;
    }
    Ok(())
}

/// Adds all accounts up.
async fn reader(session: &mut Session, table: &Table, plan: Plan, outcome: &Latch<Outcome>) {
    for _ in 0..plan.scans {
        let mut seen: Vec<(u64, i64)> = Vec::new();
        let scanned = session
            .scan(table, 0, 200, |_, bytes| {
                let account = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
                seen.push((account, amount(bytes)));
            })
            .await;
        match scanned {
            Ok(()) => {
                seen.sort_unstable();
                let accounts = seen.iter().map(|(account, _)| *account);
                assert!(accounts.eq(0..ACCOUNTS), "every account is there, once");
                let sum = seen.iter().map(|(_, amount)| amount).sum();
                outcome.lock().sums.push(sum);
            }
            Err(error @ KernelError::SnapshotTooOld { .. }) => outcome.lock().too_old.push(error),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A new database, running.
async fn started(env: &Arc<dyn Env>, storage: &Storage, settings: &KernelSettings) -> Instance {
    let made = create_database(env, storage, settings, 1, 8).await;
    made.unwrap();
    Instance::startup(env, storage, settings).await.unwrap()
}

fn run(plan: Plan) -> Outcome {
    let mut world = World::new(plan.seed);
    let env: Arc<dyn Env> = world.env();
    let storage = storage(&world, plan);
    let outcome: Arc<Latch<Outcome>> = Arc::default();
    let result = Arc::clone(&outcome);
    world
        .run(async move {
            let settings = plan.settings();
            let instance = started(&env, &storage, &settings).await;
            let ids = Arc::new(make_accounts(&instance, plan).await);
            let table = instance.table("accounts").unwrap();
            let instance = Arc::new(instance);
            let mut joins = Vec::new();
            for me in 0..plan.clients {
                let (instance, table, ids) =
                    (Arc::clone(&instance), Arc::clone(&table), Arc::clone(&ids));
                let start = Box::new(move || {
                    Box::pin(async move {
                        let mut session = instance.session();
                        client(&mut session, &table, &ids, plan, me).await;
                    }) as LocalFuture
                });
                joins.push(env.spawn(&format!("client{me}"), start));
            }
            reader(&mut instance.session(), &table, plan, &result).await;
            for join in joins {
                join.ended().await.unwrap();
            }
            reader(
                &mut instance.session(),
                &table,
                Plan { scans: 1, ..plan },
                &result,
            )
            .await;
            result.lock().applied = instance.statistics().undo_records_applied;
            let instance = Arc::into_inner(instance).unwrap();
            instance.shutdown(Shutdown::Normal).await.unwrap();
        })
        .unwrap();
    std::mem::take(&mut *outcome.lock())
}

fn is_right(sum: &i64) -> bool {
    *sum == ACCOUNTS as i64 * AMOUNT
}

#[test]
fn a_scan_sees_one_moment() {
    for seed in 0..20 {
        let plan = Plan {
            inserted: seed % 2 == 1,
            commit: [Commit::Wait, Commit::NoWait][seed as usize / 2 % 2],
            ..Plan::plain(seed)
        };
        let outcome = run(plan);
        assert_eq!(outcome.sums.len() as u64, plan.scans + 1, "{outcome:?}");
        assert!(
            outcome.sums.iter().all(is_right),
            "seed {seed}: {outcome:?}"
        );
        assert!(
            outcome.applied > 0,
            "seed {seed}: nothing was read from undo"
        );
    }
}

#[test]
fn undo_used_again_is_told_and_no_wrong_row_served() {
    let mut told = 0;
    for seed in 0..20 {
        let outcome = run(Plan::little_undo(seed));
        assert!(
            outcome.sums.iter().all(is_right),
            "seed {seed}: {outcome:?}"
        );
        told += outcome.too_old.len();
        for error in outcome.too_old {
            let said = error.to_string();
            assert!(said.contains("snapshot too old: row 1."), "{said}");
            assert!(said.contains("(it has "), "{said}");
        }
    }
    println!("{told} scans were told that their snapshot is too old");
    assert!(told > 0, "no snapshot was too old");
}

/// All rows as a session sees them, by a scan and one by one.
async fn seen(session: &mut Session, table: &Table) -> Vec<(RowId, Vec<u8>)> {
    let mut rows = Vec::new();
    session
        .scan(table, 0, 20, |row, bytes| rows.push((row, bytes.to_vec())))
        .await
        .unwrap();
    rows.sort_unstable();
    for (row, bytes) in &rows {
        let alone = session.read_row(*row, <[u8]>::to_vec).await.unwrap();
        assert_eq!(alone, *bytes);
    }
    rows
}

#[test]
fn a_transaction_sees_its_own_changes_and_others_see_them_when_it_has_committed() {
    let plan = Plan::plain(1);
    let mut world = World::new(1);
    let env: Arc<dyn Env> = world.env();
    let storage = storage(&world, plan);
    let story = async move {
        let settings = plan.settings();
        let instance = started(&env, &storage, &settings).await;
        let table = instance
            .create_table("rows", 1000, 0, |_, _| {})
            .await
            .unwrap();
        let (mut mine, mut other) = (instance.session(), instance.session());
        let mut ids = Vec::new();
        for number in 0..4 {
            ids.push(mine.insert_row(&table, &[number; 300]).await.unwrap());
        }
        assert_eq!(seen(&mut other, &table).await, []);
        let missing = other.read_row(ids[0], |_| ()).await;
        assert_eq!(missing, Err(KernelError::NoSuchRow { row: ids[0] }));
        mine.commit().await.unwrap();
        let before = seen(&mut other, &table).await;
        assert_eq!(before.len(), 4);

        // Grown until it migrates, and again; patched there; shrunk; deleted; another in its place.
        for ending in [false, true] {
            let longest = vec![7; 1000];
            mine.replace_row(&table, ids[0], &longest).await.unwrap();
            mine.replace_row(&table, ids[1], &longest).await.unwrap();
            mine.update_row(ids[0], 990..1000, |bytes| bytes.fill(8))
                .await
                .unwrap();
            let too_far = mine.update_row(ids[0], 990..1001, |_| ()).await;
            assert!(matches!(too_far, Err(KernelError::RowTooShort { .. })));
            let too_long = mine.insert_row(&table, &[0; 1001]).await;
            assert!(matches!(too_long, Err(KernelError::RowTooLong { .. })));
            mine.replace_row(&table, ids[1], &[6; 5]).await.unwrap();
            mine.delete_row(&table, ids[2]).await.unwrap();
            let fifth = mine.insert_row(&table, &[5; 50]).await.unwrap();
            let mut now = vec![
                (ids[0], [&[7; 990][..], &[8; 10]].concat()),
                (ids[1], vec![6; 5]),
                (ids[3], vec![3; 300]),
                (fifth, vec![5; 50]),
            ];
            now.sort_unstable();
            assert_eq!(seen(&mut mine, &table).await, now);
            assert_eq!(seen(&mut other, &table).await, before);
            if ending {
                mine.commit().await.unwrap();
                assert_eq!(seen(&mut other, &table).await, now);
                mine.delete_row(&table, ids[0]).await.unwrap();
                mine.commit().await.unwrap();
                assert_eq!(seen(&mut other, &table).await.len(), 3);
            } else {
                mine.rollback().await.unwrap();
                assert_eq!(seen(&mut other, &table).await, before);
                assert_eq!(seen(&mut mine, &table).await, before);
            }
        }
        instance.shutdown(Shutdown::Normal).await.unwrap();
    };
    world.run(story).unwrap();
}

/// True when some seed shows the fault, by a wrong sum or a panic.
fn is_caught(plan: impl Fn(u64) -> Plan, fault: PlantedFault) -> bool {
    (0..20).any(|seed| {
        let plan = Plan {
            planted: Some(fault),
            ..plan(seed)
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| run(plan)));
        !outcome.is_ok_and(|outcome| outcome.sums.iter().all(is_right))
    })
}

#[test]
fn planted_bugs_are_caught() {
    assert!(is_caught(Plan::plain, PlantedFault::ScanSeesLatest));
    assert!(is_caught(
        Plan::little_undo,
        PlantedFault::OverwrittenUndoServed
    ));
}

#[test]
fn undo_that_leads_back_to_itself_is_told_as_damage() {
    let plan = Plan {
        planted: Some(PlantedFault::UndoInCircle),
        ..Plan::plain(1)
    };
    let mut world = World::new(1);
    let env: Arc<dyn Env> = world.env();
    let storage = storage(&world, plan);
    let story = async move {
        let settings = plan.settings();
        let instance = started(&env, &storage, &settings).await;
        let ids = make_accounts(&instance, plan).await;
        let (mut writer, mut reader) = (instance.session(), instance.session());
        let change = |bytes: &mut [u8]| bytes[0] ^= 1;
        writer.update_row(ids[5], 0..8, change).await.unwrap();
        let read = reader.read_row(ids[5], amount).await;
        let damaged = read.unwrap_err();
        let KernelError::DamagedBlock {
            address, reason, ..
        } = &damaged
        else {
            panic!("{damaged}")
        };
        assert_eq!(*address, ids[5].address);
        assert!(reason.contains("leads back to itself"), "{damaged}");
        assert_eq!(reader.read_row(ids[6], amount).await.unwrap(), AMOUNT);
        writer.commit().await.unwrap();
        drop((writer, reader));
        instance.shutdown(Shutdown::Normal).await.unwrap();
    };
    world.run(story).unwrap();
}
