//! Space that is used again or grows, in the simulated world: transactions larger than the undo file, the cache and the
//! log files.

use std::sync::Arc;

use spindle_io::sim::{DiskImage, DiskTiming, PowerCut, SimDisk, Stop, World};
use spindle_io::{BlockDevice, Env};
use spindle_kernel::{
    CONTROL_FILE_BYTES, Instance, KernelError, RowId, Session, Settings, Shutdown, Storage, Table,
    create_database,
};

const BLOCK_BYTES: usize = 2048;
const ROWS: u64 = 6000;
const ROW_BYTES: usize = 100;
/// Each of the two log files.
const LOG_BYTES: usize = 256 << 10;
const UNDO_BLOCKS: usize = 12;

fn settings() -> Settings {
    Settings {
        block_bytes: BLOCK_BYTES,
        buffer_cache_bytes: 64 * BLOCK_BYTES as u64,
        log_buffer_bytes: 32 << 10,
        ..Settings::default()
    }
}

/// The disks of a database with room for so many extents of 1 MiB.
struct Disks(Vec<Arc<SimDisk>>);

impl Disks {
    fn blank(extents: usize) -> Vec<DiskImage> {
        let sizes = [
            CONTROL_FILE_BYTES as usize,
            LOG_BYTES,
            LOG_BYTES,
            UNDO_BLOCKS * BLOCK_BYTES,
            (extents << 20) + BLOCK_BYTES,
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

/// A database with a table of rows whose first number is 1, on files of so many extents.
fn made(extents: usize) -> Vec<DiskImage> {
    let mut world = World::new(1);
    let (env, disks): (Arc<dyn Env>, _) = (world.env(), Disks::new(&world, &Disks::blank(extents)));
    let storage = disks.storage();
    let made = world.run(async move {
        create_database(&env, &storage, &settings(), 4711, 8).await?;
        let instance = Instance::startup(&env, &storage, &settings()).await?;
        let fill = |_, row: &mut Vec<u8>| row[..8].copy_from_slice(&1u64.to_le_bytes());
        instance.create_table("rows", ROW_BYTES, ROWS, fill).await?;
        instance.shutdown(Shutdown::Normal).await
    });
    made.unwrap().unwrap();
    disks.after(PowerCut::LoseAll)
}

/// Starts the database on `images` and plays, up to the I/O at which the power is cut if there is one.
fn play<F: Future<Output = Result<(), KernelError>>>(
    images: &[DiskImage],
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
        let instance = Instance::startup(&env, &storage, &settings()).await?;
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
