//! Space that is used again or grows, in the simulated world: rows and entries that come and go, rows that come home,
//! transactions larger than the undo file, the cache and the log files; across restarts, too.

use std::panic::catch_unwind;
use std::sync::Arc;

use spindle_io::sim::{DiskImage, DiskTiming, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_kernel::block::heap::{self, RowKind};
use spindle_kernel::block::{self, BlockAddress, RowVersion};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Index, IndexKey, IndexShape, Instance, KernelError, KernelSettings,
    KeyPart, PlantedFault, RowId, Session, Shutdown, Storage, Table, TableShape, create_database,
};

const BLOCK_BYTES: usize = 2048;
const ROWS: u64 = 6000;
const ROW_BYTES: usize = 100;
/// Each of the two log files.
const LOG_BYTES: usize = 256 << 10;
const UNDO_BLOCKS: usize = 12;

fn settings(planted: Option<PlantedFault>) -> KernelSettings {
    KernelSettings {
        planted,
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 64 * BLOCK_BYTES as u64,
        log_buffer_bytes: 32 << 10,
        ..KernelSettings::default()
    }
}

/// The disks of a database with room for this many extents of 1 MiB.
struct Disks(Vec<Arc<SimDisk>>);

impl Disks {
    fn blank(extents: usize) -> Vec<DiskImage> {
        let sizes = [
            CONTROL_FILE_BYTES as usize,
            LOG_BYTES,
            LOG_BYTES,
            UNDO_BLOCKS * BLOCK_BYTES,
            (extents << 20) + 2 * BLOCK_BYTES,
        ];
        sizes.map(DiskImage::zeroed).to_vec()
    }

    fn new(world: &World, images: &[DiskImage]) -> Disks {
        let disk = |(number, image): (usize, &DiskImage)| {
            let timing = DiskTiming::default();
            SimDisk::new(world.env(), number as u64, image.clone(), 512, timing)
        };
        Disks(images.iter().enumerate().map(disk).collect())
    }

    fn storage(&self) -> Storage {
        let device = |index: usize| Arc::clone(&self.0[index]) as Arc<dyn BlockDevice>;
        Storage {
            control: device(0),
            redo: vec![device(1), device(2)],
            undo: device(3),
            data: vec![device(4)],
            double_write: None,
            temp: Vec::new(),
        }
    }

    fn after(&self, cut: PowerCut) -> Vec<DiskImage> {
        self.0.iter().map(|disk| disk.image_after(cut)).collect()
    }
}

/// A database with a table of rows whose first number is 1, on files of this many extents.
pub fn made(extents: usize) -> Vec<DiskImage> {
    let mut world = World::new(1);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, &Disks::blank(extents)));
    let storage = disks.storage();
    let made = world.run(async move {
        create_database(&env, &storage, &settings(None), 4711, 8).await?;
        let instance = Instance::startup(&env, &storage, &settings(None)).await?;
        let fill = |_, row: &mut Vec<u8>| row[..8].copy_from_slice(&1u64.to_le_bytes());
        instance.create_table("rows", ROW_BYTES, ROWS, fill).await?;
        instance.shutdown(Shutdown::Normal).await
    });
    made.unwrap().unwrap();
    disks.after(PowerCut::LoseAll)
}

/// Starts the database on `images` and plays, up to the I/O at which the power is cut if there is one.
pub fn play<F: Future<Output = Result<(), KernelError>>>(
    images: &[DiskImage],
    cut_at: Option<u64>,
    play: impl FnOnce(Instance) -> F + 'static,
) -> (Vec<DiskImage>, u64) {
    play_with(images, None, cut_at, play)
}

/// The same with a planted bug.
fn play_with<F: Future<Output = Result<(), KernelError>>>(
    images: &[DiskImage],
    planted: Option<PlantedFault>,
    cut_at: Option<u64>,
    play: impl FnOnce(Instance) -> F + 'static,
) -> (Vec<DiskImage>, u64) {
    let mut world = World::new(7);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, images));
    let storage = disks.storage();
    if let Some(io) = cut_at {
        world.cut_power_at_io(io);
    }
    let ended = world.run(async move {
        let instance = Instance::startup(&env, &storage, &settings(planted)).await?;
        play(instance).await
    });
    match (ended, cut_at) {
        (Ok(played), _) => played.unwrap(),
        (Err(Stop::PowerCut { .. }), Some(_)) => {}
        (Err(stop), _) => panic!("{stop}"),
    }
    (disks.after(PowerCut::LoseAll), world.io_count())
}

async fn set_all(session: &mut Session, table: &Table, to: u64) -> Result<(), KernelError> {
    for row in 0..ROWS {
        let row: RowId = table.row_id(row);
        let set = |bytes: &mut [u8]| bytes[..8].copy_from_slice(&to.to_le_bytes());
        session.update_row(row, 0..ROW_BYTES, set).await?;
    }
    Ok(())
}

/// How many rows have each number.
async fn seen(session: &mut Session, table: &Table) -> Result<Vec<(u64, u64)>, KernelError> {
    let mut counts = std::collections::BTreeMap::new();
    session
        .scan(table, 0, u64::MAX, |_, row| {
            let number = u64::from_le_bytes(row[..8].try_into().unwrap());
            *counts.entry(number).or_default() += 1;
        })
        .await?;
    Ok(counts.into_iter().collect())
}

fn undo_extents(instance: &Instance) -> usize {
    let segments = instance.segments();
    let undo = segments.iter().find(|segment| segment.name == "undo");
    undo.unwrap().extents
}

#[test]
fn a_transaction_may_be_larger_than_undo_file_cache_and_log() {
    let images = made(6);
    let (images, _) = play(&images, None, |instance| async move {
        let table = instance.table("rows")?;
        let (mut writer, mut reader) = (instance.session(), instance.session());
        assert_eq!(undo_extents(&instance), 1);
        set_all(&mut writer, &table, 2).await?;
        assert!(undo_extents(&instance) > 1, "undo did not grow");
        // Whose undo is in the new extents.
        assert_eq!(seen(&mut reader, &table).await?, [(1, ROWS)]);
        assert_eq!(seen(&mut writer, &table).await?, [(2, ROWS)]);
        writer.rollback().await?;
        assert_eq!(seen(&mut writer, &table).await?, [(1, ROWS)]);
        let grown = undo_extents(&instance);
        set_all(&mut writer, &table, 3).await?;
        writer.commit().await?;
        assert_eq!(undo_extents(&instance), grown, "it is used again");
        drop((writer, reader));
        instance.shutdown(Shutdown::Normal).await
    });
    play(&images, None, |instance| async move {
        let table = instance.table("rows")?;
        assert!(undo_extents(&instance) > 1, "it was forgotten");
        let mut session = instance.session();
        assert_eq!(seen(&mut session, &table).await?, [(3, ROWS)]);
        Ok(())
    });
}

#[test]
fn undo_that_grew_untold_is_lost_to_a_new_table() {
    let planted = Some(PlantedFault::UndoGrownUntold);
    play_with(&made(6), planted, None, |instance| async move {
        let table = instance.table("rows")?;
        let mut writer = instance.session();
        set_all(&mut writer, &table, 2).await?;
        instance.checkpoint().await?;
        // Gets the extent that undo took, too.
        instance
            .create_table("other", ROW_BYTES, ROWS, |_, _| {})
            .await?;
        writer.rollback().await.unwrap_err();
        Ok(())
    });
}

#[test]
fn such_a_transaction_is_rolled_back_after_a_crash() {
    let images = made(6);
    let all = |instance: Instance| async move {
        let table = instance.table("rows")?;
        let mut session = instance.session();
        set_all(&mut session, &table, 2).await?;
        session.commit().await
    };
    let (_, ios) = play(&images, None, all);
    // Late: most of it is in the datafiles, and its first redo has been written over.
    let (images, _) = play(&images, Some(ios * 9 / 10), all);
    play(&images, None, |instance| async move {
        assert_eq!(instance.recovery().rolled_back, 1);
        let table = instance.table("rows")?;
        let mut session = instance.session();
        assert_eq!(seen(&mut session, &table).await?, [(1, ROWS)]);
        Ok(())
    });
}

#[test]
fn undo_that_finds_no_room_says_so_and_the_transaction_is_rolled_back() {
    // The table takes one of them.
    let images = made(1);
    play(&images, None, |instance| async move {
        let table = instance.table("rows")?;
        let mut session = instance.session();
        let error = set_all(&mut session, &table, 2).await.unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("the datafiles have no room for another extent"),
            "{told}"
        );
        session.rollback().await?;
        assert_eq!(seen(&mut session, &table).await?, [(1, ROWS)]);
        Ok(())
    });
}

#[test]
fn a_new_block_is_not_read_before_its_first_row() {
    play(&made(6), None, |instance| async move {
        let (table, mut session) = (instance.table("rows")?, instance.session());
        let mut row = vec![0; ROW_BYTES];
        row[..8].copy_from_slice(&2u64.to_le_bytes());
        session.insert_row(&table, &row).await?;
        let before = instance.statistics();
        for _ in 1..400 {
            session.insert_row(&table, &row).await?;
        }
        session.commit().await?;
        let reads = instance.statistics().physical_read_ios - before.physical_read_ios;
        assert!(reads < 5, "{reads} reads");
        // The last of the loaded blocks has room for some of them, and keeps what it holds.
        assert_eq!(seen(&mut session, &table).await?, [(1, ROWS), (2, 400)]);
        Ok(())
    });
}

/// Rows of a queue: a number, the highest byte first, and bytes up to `ROW_BYTES`.
fn numbered(number: u64, length: usize) -> Vec<u8> {
    let mut row = vec![0x3C; length];
    row[..8].copy_from_slice(&number.to_be_bytes());
    row
}

async fn open(instance: &Instance) -> Result<(Arc<Table>, Arc<Index>), KernelError> {
    let table = instance.table("queue")?;
    let index = table.index("queue_number")?;
    Ok((table, index))
}

/// A database with an empty table, and an index of its numbers.
fn with_queue() -> Vec<DiskImage> {
    with_queue_on(6)
}

/// The same on files of this many extents.
fn with_queue_on(extents: usize) -> Vec<DiskImage> {
    let (images, _) = play(&made(extents), None, |instance| async move {
        let table = instance.create_table("queue", 300, 0, |_, _| {}).await?;
        let key = [KeyPart {
            offset: 0,
            bytes: 8,
        }];
        instance
            .create_index(&table, "queue_number", true, IndexKey::Bytes(&key))
            .await?;
        instance.shutdown(Shutdown::Normal).await
    });
    images
}

/// Puts rows in at the end of the queue, and takes as many from its beginning, each ten in a transaction.
async fn turn_over(
    instance: &Instance,
    numbers: std::ops::Range<u64>,
    behind: u64,
) -> Result<(), KernelError> {
    let (table, index) = open(instance).await?;
    let mut session = instance.session();
    for number in numbers {
        session.insert_row(&table, &numbered(number, 100)).await?;
        if let Some(oldest) = number.checked_sub(behind) {
            let key = oldest.to_be_bytes();
            assert!(session.delete_by_key(&table, &index, &key).await?);
        }
        if number % 10 == 9 {
            session.commit().await?;
        }
    }
    session.commit().await
}

async fn shapes(instance: &Instance) -> Result<(TableShape, IndexShape), KernelError> {
    let (table, index) = open(instance).await?;
    let mut session = instance.session();
    let of_index = session.check_index(&table, &index).await?;
    Ok((session.check_table(&table).await?, of_index))
}

/// Lets a queue of 200 rows move on by 600 rows in each of this many lives of the instance, each of which ends by a
/// power cut; what the table and its index are made of after each.
fn lives(planted: Option<PlantedFault>, count: u64) -> Vec<(TableShape, IndexShape)> {
    let mut images = with_queue();
    let seen = Arc::new(Latch::new(Vec::new()));
    for life in 0..count {
        let told = Arc::clone(&seen);
        (images, _) = play_with(&images, planted, None, move |instance| async move {
            turn_over(&instance, life * 600..(life + 1) * 600, 200).await?;
            let shapes = shapes(&instance).await?;
            told.lock().push(shapes);
            Ok(())
        });
    }
    let seen = seen.lock();
    seen.clone()
}

#[test]
fn a_queue_takes_no_more_space_as_it_moves_on() {
    let lives = lives(None, 5);
    println!("{lives:?}");
    let (first_table, first_index) = lives[0];
    for (table, index) in &lives[1..] {
        assert!(table.blocks <= first_table.blocks + 2, "{table:?}");
        let used = |of: &IndexShape| of.nodes + of.free_blocks;
        assert!(used(index) <= used(&first_index) + 4, "{index:?}");
    }
}

#[test]
fn what_the_map_is_not_told_of_is_found_or_shows() {
    let caught = catch_unwind(|| lives(Some(PlantedFault::RoomUntold), 2));
    let told = caught.expect_err("the check says so");
    let told = told.downcast_ref::<String>().unwrap();
    assert!(told.contains("the map says Some(Full)"), "{told}");

    let planted = Some(PlantedFault::UseUntold);
    play_with(&with_queue(), planted, None, |instance| async move {
        // None of these goes.
        turn_over(&instance, 0..30, u64::MAX).await?;
        let told = shapes(&instance).await.unwrap_err().to_string();
        assert!(told.contains("the map says Some(Untold)"), "{told}");
        Ok(())
    });

    let of_leaves = lives(Some(PlantedFault::EmptyLeafUntold), 2);
    let is_untold = |index: &IndexShape| index.emptied_told < index.emptied;
    assert!(of_leaves.iter().any(|(_, index)| is_untold(index)));
}

#[test]
fn leaves_emptied_before_a_restart_are_used_again() {
    let used = |planted| {
        let (images, _) = play_with(&with_queue(), planted, None, |instance| async move {
            let (table, index) = open(&instance).await?;
            let mut session = instance.session();
            for number in 0..1000 {
                session.insert_row(&table, &numbered(number, 20)).await?;
            }
            session.commit().await?;
            for number in 100..1000u64 {
                let key = number.to_be_bytes();
                assert!(session.delete_by_key(&table, &index, &key).await?);
            }
            session.commit().await
        });
        let told = Arc::new(Latch::new(None));
        let used = Arc::clone(&told);
        play_with(&images, planted, None, |instance| async move {
            let (table, _) = open(&instance).await?;
            let mut session = instance.session();
            for number in 10_000..10_900 {
                session.insert_row(&table, &numbered(number, 20)).await?;
            }
            session.commit().await?;
            let (_, index) = shapes(&instance).await?;
            *used.lock() = Some(index.nodes + index.free_blocks);
            Ok(())
        });
        told.lock().unwrap_or(0)
    };
    let (again, untold) = (used(None), used(Some(PlantedFault::EmptyLeafUntold)));
    println!("{again} blocks, {untold} where the map is not told");
    assert!(again + 3 < untold);
}

#[test]
fn what_a_rolled_back_load_took_is_used_again() {
    let load = |instance: Instance, rows: std::ops::Range<u64>| async move {
        let (table, _) = open(&instance).await?;
        let mut session = instance.session();
        for number in rows {
            session.insert_row(&table, &numbered(number, 200)).await?;
        }
        Ok::<_, KernelError>((instance, session))
    };
    let (images, _) = play(&with_queue(), None, move |instance| async move {
        let (instance, mut session) = load(instance, 0..800).await?;
        session.rollback().await?;
        let first = shapes(&instance).await?.0;
        let (instance, session) = load(instance, 1000..1800).await?;
        // Neither committed nor rolled back: recovery will.
        std::mem::forget(session);
        instance.checkpoint().await?;
        let table = instance.table("queue")?;
        let mut checks = instance.session();
        let second = checks.check_table(&table).await?;
        assert!(second.blocks <= first.blocks + 2, "{first:?}, {second:?}");
        Ok(())
    });
    play(&images, None, move |instance| async move {
        assert_eq!(instance.recovery().rolled_back, 1);
        let first = shapes(&instance).await?.0;
        assert_eq!(first.with_room, first.blocks, "all of it is free");
        let (instance, mut session) = load(instance, 2000..2800).await?;
        session.commit().await?;
        let second = shapes(&instance).await?.0;
        assert!(second.blocks <= first.blocks + 2, "{first:?}, {second:?}");
        Ok(())
    });
}

/// Rows that fill a block, of which one grows, and comes home when another has gone; what is left there.
fn homecoming(planted: Option<PlantedFault>) -> Result<TableShape, KernelError> {
    let told = Arc::new(Latch::new(None));
    let shape = Arc::clone(&told);
    play_with(&with_queue(), planted, None, |instance| async move {
        let (table, index) = open(&instance).await?;
        let mut session = instance.session();
        let mut rows = Vec::new();
        for number in 0..14 {
            rows.push(session.insert_row(&table, &numbered(number, 100)).await?);
        }
        session.commit().await?;
        for (number, row) in (2..).zip(&rows[2..5]) {
            let grown = numbered(number, 280);
            session.replace_row(&table, *row, &grown).await?;
        }
        session.commit().await?;
        assert!(session.check_table(&table).await?.migrated > 1);
        for row in &rows[6..] {
            session.delete_row(&table, *row).await?;
        }
        session.commit().await?;
        // Replaced by a shorter row, by one of another length, and by one of the same length.
        let shorter = numbered(2, 50);
        session.replace_row(&table, rows[2], &shorter).await?;
        let key = 3u64.to_be_bytes();
        session
            .update_by_key(&table, &index, &key, |row| row.truncate(270))
            .await?;
        let key = 4u64.to_be_bytes();
        session
            .update_by_key(&table, &index, &key, |row| row[50] = 1)
            .await?;
        session.commit().await?;
        let read = session.read_row(rows[4], <[u8]>::to_vec).await?;
        assert_eq!((read.len(), read[50]), (280, 1));
        *shape.lock() = Some(session.check_table(&table).await);
        Ok(())
    });
    told.lock().take().unwrap()
}

#[test]
fn migrated_rows_come_home_when_there_is_room() {
    assert_eq!(homecoming(None).unwrap().migrated, 0);
    let told = homecoming(Some(PlantedFault::LeftRowKept)).unwrap_err();
    assert!(told.to_string().contains("do not agree"), "{told}");
}

async fn delete_all(
    session: &mut Session,
    table: &Table,
    rows: &[RowId],
) -> Result<(), KernelError> {
    for row in rows {
        session.delete_row(table, *row).await?;
    }
    Ok(())
}

#[test]
fn when_the_datafiles_are_full_blocks_behind_one_of_locked_room_are_tried() {
    play(&made(2), None, |instance| async move {
        let table = instance.create_table("full", 300, 0, |_, _| {}).await?;
        let mut filler = instance.session();
        let mut rows = Vec::new();
        let full = |error| matches!(error, KernelError::TablespaceFull { .. });
        loop {
            match filler.insert_row(&table, &[7; 300]).await {
                Ok(row) => rows.push(row),
                Err(error) => break assert!(full(error)),
            }
            if rows.len() % 10 == 0 {
                filler.commit().await?;
            }
        }
        filler.commit().await?;
        let mut blocks = rows.chunk_by(|row, next| row.address == next.address);
        let (locked, free) = (blocks.next().unwrap(), blocks.next().unwrap());
        let (mut holder, mut session) = (instance.session(), instance.session());
        delete_all(&mut holder, &table, locked).await?;
        delete_all(&mut session, &table, free).await?;
        session.commit().await?;
        for row in free {
            let put = session.insert_row(&table, &[8; 300]).await?;
            assert_eq!(put.address, row.address);
        }
        let error = session.insert_row(&table, &[8; 300]).await.unwrap_err();
        assert!(full(error), "nobody has room that is not locked");
        holder.commit().await?;
        let put = session.insert_row(&table, &[8; 300]).await?;
        assert_eq!(put.address, locked[0].address);
        session.commit().await?;
        session.check_table(&table).await.map(drop)
    });
}

#[test]
fn a_homecoming_that_failed_halfway_cannot_be_committed() {
    play(&with_queue_on(3), None, |instance| async move {
        let (table, _) = open(&instance).await?;
        let (mut session, mut filler) = (instance.session(), instance.session());
        let mut rows = Vec::new();
        for number in 0..14 {
            rows.push(session.insert_row(&table, &numbered(number, 100)).await?);
        }
        for (number, row) in (2..).zip(&rows[2..5]) {
            let grown = numbered(number, 280);
            session.replace_row(&table, *row, &grown).await?;
        }
        session.commit().await?;
        delete_all(&mut session, &table, &rows[6..]).await?;
        session.commit().await?;
        // One undo block for it, and all others for another.
        let step = |bytes: &mut [u8]| bytes[0] = bytes[0].wrapping_add(1);
        session.update_row(rows[0], 50..51, step).await?;
        let others = set_all(&mut filler, &*instance.table("rows")?, 2).await;
        assert!(matches!(others, Err(KernelError::UndoFull { .. })));
        session.rollback().await?;
        let mut halfway = 0;
        'blocks: for steps in 1.. {
            for _ in 0..steps {
                if session.update_row(rows[0], 50..51, step).await.is_err() {
                    break 'blocks;
                }
            }
            let home = session.replace_row(&table, rows[4], &numbered(4, 50)).await;
            if home.is_err() && session.commit().await.is_err() {
                halfway += 1;
            }
            session.rollback().await?;
            session.check_table(&table).await?;
        }
        assert!(halfway > 0, "of two steps the second finds no room");
        Ok(())
    });
}

#[test]
fn rows_of_no_bytes_leave_room_too() {
    play(&made(6), None, |instance| async move {
        let table = instance.create_table("marks", 20, 0, |_, _| {}).await?;
        let mut session = instance.session();
        let mut rows = Vec::new();
        for _ in 0..400 {
            rows.push(session.insert_row(&table, &[]).await?);
        }
        session.commit().await?;
        delete_all(&mut session, &table, &rows).await?;
        session.commit().await?;
        let shape = session.check_table(&table).await?;
        assert_eq!(shape.with_room, shape.blocks, "deleted");
        for _ in 0..800 {
            session.insert_row(&table, &[]).await?;
        }
        session.rollback().await?;
        let shape = session.check_table(&table).await?;
        assert_eq!(shape.with_room, shape.blocks, "rolled back");
        Ok(())
    });
}

/// What is read of the rows of a block that a program with bad intentions has written.
#[test]
fn addresses_and_transactions_that_there_are_not_are_reported() {
    let first = RowId {
        address: BlockAddress { file: 1, block: 2 },
        slot: 0,
    };
    let nowhere = |file, block| BlockAddress { file, block };
    let to = |address| RowId { address, slot: 1 }.to_bytes();
    let by = |slot: u64, undo_block| RowVersion {
        transaction: slot << 32 | u64::from(u32::MAX),
        undo_block,
        undo_offset: 40,
    };
    let mut images = made(6);
    let mut bytes = vec![0; BLOCK_BYTES];
    let at = first.address.block as usize * BLOCK_BYTES;
    images[4].read(at, &mut bytes);
    let forward = RowKind::Forward;
    for (slot, address) in [(0, nowhere(65534, 7)), (1, nowhere(1, u32::MAX))] {
        heap::put_row(&mut bytes, slot, forward, RowVersion::LOADED, &to(address));
    }
    let put = |bytes: &mut [u8], slot, version| {
        heap::put_row(bytes, slot, RowKind::Row, version, &[0; ROW_BYTES]);
    };
    put(&mut bytes, 2, by(60_000, first.address));
    // One of the first slots of the transaction table is in use when they are read.
    for slot in 0..4 {
        let (other, beyond) = (nowhere(65534, 7), nowhere(0, u32::MAX));
        put(&mut bytes, 3 + slot, by(u64::from(slot), other));
        put(&mut bytes, 7 + slot, by(u64::from(slot), beyond));
    }
    block::seal(&mut bytes);
    images[4].write(at, &bytes);
    play(&images, None, move |instance| async move {
        let table = instance.table("rows")?;
        assert_eq!(table.row_id(0), first);
        let (mut writer, mut reader) = (instance.session(), instance.session());
        let set = |bytes: &mut [u8]| bytes[0] = 9;
        writer.update_row(table.row_id(100), 0..1, set).await?;
        let mut refused = Vec::new();
        for slot in 0..11 {
            let row = RowId { slot, ..first };
            match reader.read_row(row, |_| ()).await {
                Ok(()) => {}
                Err(KernelError::DamagedBlock { .. }) => refused.push(slot),
                Err(other) => return Err(other),
            }
        }
        println!("{refused:?}");
        assert!(refused.starts_with(&[0, 1, 2]) && refused.len() == 5);
        Ok(())
    });
}
