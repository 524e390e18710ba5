//! Queries over whole tables, in the simulated world: answers against a model, in memory and spilled, by one process
//! and by slaves; a failed I/O ends the query alone; after a power cut in the middle of one nothing of it is left.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_io::sim::{DiskImage, DiskTiming, IoFault, Lasts, PowerCut, SimDisk, Stop, World};
use spindle_io::sync::Latch;
use spindle_io::{BlockDevice, Env};
use spindle_kernel::{
    AnswerRow, CONTROL_FILE_BYTES, GroupOrder, Instance, InstanceSettings, KernelError,
    KernelQuery, KernelSettings, KeyPart, QueryShape, RowFilter, Shutdown, Storage, WaitEvent, ask,
    create_database,
};

const MIB: usize = 1 << 20;
const ROWS: u64 = 8_000;
const ROW_BYTES: usize = 60;
/// What a row is grouped by: one of many, and one of few.
const MANY: KeyPart = KeyPart {
    offset: 0,
    bytes: 4,
};
const FEW: KeyPart = KeyPart {
    offset: 4,
    bytes: 1,
};
const AMOUNT: KeyPart = KeyPart {
    offset: 5,
    bytes: 3,
};
/// Disks: control file, three of redo, undo, two of data, then those of temp.
const TEMP_DISK: usize = 7;

fn row(number: u64) -> Vec<u8> {
    let mut rng = seeded_rng(9, number);
    let mut row = vec![0; ROW_BYTES];
    rng.fill_bytes(&mut row);
    let many = (rng.next_u64() % 3_000) as u32;
    row[..4].copy_from_slice(&many.to_be_bytes());
    row[4] %= 7;
    row
}

pub(crate) fn settings(sort_area_bytes: u64) -> KernelSettings {
    KernelSettings {
        block_bytes: 2048,
        buffer_cache_bytes: 256 << 10,
        log_buffer_bytes: 32 << 10,
        instance: InstanceSettings {
            sort_area_bytes,
            // Nothing else is written meanwhile.
            checkpoint_interval_ns: u64::MAX / 2,
            ..InstanceSettings::default()
        },
        ..KernelSettings::default()
    }
}

pub(crate) type Images = Vec<DiskImage>;

/// A world with the disks of a database.
pub(crate) struct Scene {
    pub(crate) world: World,
    disks: Vec<Arc<SimDisk>>,
    sort_area_bytes: u64,
}

impl Scene {
    pub(crate) fn on(images: &Images, sort_area_bytes: u64) -> Scene {
        let world = World::new(3);
        let disk = |(number, image): (usize, &DiskImage)| {
            let timing = DiskTiming::default();
            SimDisk::new(world.env(), number as u64, image.clone(), 512, timing)
        };
        Scene {
            disks: images.iter().enumerate().map(disk).collect(),
            world,
            sort_area_bytes,
        }
    }

    pub(crate) fn storage(&self) -> Storage {
        let disks = self.disks.iter();
        let devices: Vec<_> = disks
            .map(|disk| Arc::clone(disk) as Arc<dyn BlockDevice>)
            .collect();
        Storage {
            control: Arc::clone(&devices[0]),
            redo: devices[1..4].to_vec(),
            undo: Arc::clone(&devices[4]),
            data: devices[5..TEMP_DISK].to_vec(),
            double_write: None,
            temp: devices[TEMP_DISK..].to_vec(),
        }
    }

    pub(crate) fn start(&mut self) -> Arc<Instance> {
        let env: Arc<dyn Env> = self.world.env();
        let (storage, settings) = (self.storage(), settings(self.sort_area_bytes));
        let started = async move { Instance::startup(&env, &storage, &settings).await };
        Arc::new(self.world.run(started).unwrap().unwrap())
    }

    fn ask(&mut self, instance: &Arc<Instance>, query: KernelQuery) -> Result<Asked, KernelError> {
        self.world.run(asked(Arc::clone(instance), query)).unwrap()
    }

    /// Ends as databases end, which finds temporary segments that are not free.
    pub(crate) fn stop(&mut self, instance: Arc<Instance>) {
        let instance = Arc::into_inner(instance).unwrap();
        let stopped = self.world.run(instance.shutdown(Shutdown::Normal));
        stopped.unwrap().unwrap();
    }

    pub(crate) fn after(&self, cut: PowerCut) -> Images {
        self.disks
            .iter()
            .map(|disk| disk.image_after(cut))
            .collect()
    }
}

/// An answer: each row's bytes, or a group's key and counters.
type Rows = Vec<(Vec<u8>, Vec<u64>)>;

#[derive(Debug, PartialEq)]
struct Asked {
    rows: Rows,
    spilled_bytes: u64,
}

async fn asked(instance: Arc<Instance>, query: KernelQuery) -> Result<Asked, KernelError> {
    let (table, mut session) = (instance.table("sales")?, instance.session());
    let mut rows = Rows::new();
    let take = |answer: AnswerRow<'_>| match answer {
        AnswerRow::Group { key, counters } => rows.push((key.to_vec(), counters.to_vec())),
        AnswerRow::Row(row) => rows.push((row.to_vec(), Vec::new())),
    };
    ask(&mut session, &table, &Arc::new(query), take).await?;
    Ok(Asked {
        rows,
        spilled_bytes: session.take_temporary_bytes(),
    })
}

/// A database with a table, and this many mebibytes of temporary tablespace.
fn made(temp_mib: usize) -> Images {
    let sizes = [
        CONTROL_FILE_BYTES as usize,
        MIB,
        MIB,
        MIB,
        MIB,
        3 * MIB,
        3 * MIB,
    ];
    let temp = [temp_mib * MIB / 2; 2];
    let images = sizes
        .iter()
        .chain(&temp)
        .map(|bytes| DiskImage::zeroed(*bytes));
    let mut scene = Scene::on(&images.collect(), MIB as u64);
    let env: Arc<dyn Env> = scene.world.env();
    let (storage, settings) = (scene.storage(), settings(MIB as u64));
    let make = async move {
        create_database(&env, &storage, &settings, 5, 8).await?;
        let instance = Instance::startup(&env, &storage, &settings).await?;
        let fill = |number, bytes: &mut Vec<u8>| *bytes = row(number);
        instance
            .create_table("sales", ROW_BYTES, ROWS, fill)
            .await?;
        instance.shutdown(Shutdown::Normal).await
    };
    scene.world.run(make).unwrap().unwrap();
    scene.after(PowerCut::LoseAll)
}

fn query(plan: QueryShape, slaves: usize) -> KernelQuery {
    KernelQuery {
        filter: None,
        plan,
        slaves,
    }
}

fn groups(key: KeyPart, order: GroupOrder) -> QueryShape {
    QueryShape::Aggregate {
        key: vec![key],
        sums: vec![AMOUNT],
        order,
    }
}

fn sort() -> QueryShape {
    QueryShape::Sort { key: vec![AMOUNT] }
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The right answer.
fn model(query: &KernelQuery) -> Rows {
    let bytes = |row: &[u8], part: KeyPart| {
        let start = usize::from(part.offset);
        row[start..start + usize::from(part.bytes)].to_vec()
    };
    let counts = |row: &Vec<u8>| match &query.filter {
        Some(filter) => filter.range.contains(&number(&bytes(row, filter.number))),
        None => true,
    };
    let rows = (0..ROWS).map(row).filter(counts);
    match &query.plan {
        QueryShape::Sort { key } => {
            let mut rows: Vec<Vec<u8>> = rows.collect();
            rows.sort_by_key(|row| (bytes(row, key[0]), row.clone()));
            rows.into_iter().map(|row| (row, Vec::new())).collect()
        }
        QueryShape::Aggregate { key, order, .. } => {
            let mut groups: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
            for row in rows {
                let key = key.iter().flat_map(|part| bytes(&row, *part)).collect();
                let counters = groups.entry(key).or_insert_with(|| vec![0, 0]);
                counters[0] += 1;
                counters[1] += number(&bytes(&row, AMOUNT));
            }
            let mut groups: Rows = groups.into_iter().collect();
            if *order == GroupOrder::LargestSum {
                groups.sort_by_key(|(key, counters)| (!counters[1], key.clone()));
            }
            groups
        }
    }
}

fn waits(instance: &Instance, event: WaitEvent) -> u64 {
    let totals = instance.session_wait_events();
    totals
        .iter()
        .find(|total| total.event == event)
        .unwrap()
        .count
}

#[test]
fn answers_are_those_of_a_model_in_memory_and_spilled() {
    let images = made(40);
    let queries = [
        query(groups(FEW, GroupOrder::Key), 1),
        query(groups(MANY, GroupOrder::Key), 1),
        query(groups(MANY, GroupOrder::LargestSum), 3),
        query(sort(), 1),
        query(sort(), 2),
        KernelQuery {
            filter: Some(RowFilter {
                number: FEW,
                range: 0..=4,
            }),
            ..query(sort(), 3)
        },
        query(
            QueryShape::Aggregate {
                key: Vec::new(),
                sums: vec![AMOUNT],
                order: GroupOrder::Key,
            },
            2,
        ),
    ];
    // So little that runs are merged, and partitions partitioned, more than once; and more than all of it takes.
    for (sort_area_bytes, spills) in [(16 << 10, true), (64 << 10, true), (8 << 20, false)] {
        let mut scene = Scene::on(&images, sort_area_bytes);
        let instance = scene.start();
        for query in &queries {
            let asked = scene.ask(&instance, query.clone()).unwrap();
            assert_eq!(
                asked.rows,
                model(query),
                "{query:?} in {sort_area_bytes} bytes"
            );
            let is_small =
                matches!(&query.plan, QueryShape::Aggregate { key, .. } if key != &[MANY]);
            assert_eq!(asked.spilled_bytes > 0, spills && !is_small, "{query:?}");
        }
        let statistics = instance.statistics();
        assert_eq!(statistics.temp_write_bytes > 0, spills);
        assert!(statistics.temp_read_bytes <= statistics.temp_write_bytes);
        let written = waits(&instance, WaitEvent::DirectPathWriteTemp);
        assert_eq!(written, statistics.temp_write_ios);
        assert_eq!(
            waits(&instance, WaitEvent::DirectPathReadTemp),
            statistics.temp_read_ios
        );
        scene.stop(instance);
    }
}

/// The I/Os of a query, from the first to the last, and when it was done.
fn ios(images: &Images, query: &KernelQuery) -> (u64, u64) {
    let mut scene = Scene::on(images, 16 << 10);
    let instance = scene.start();
    let before = scene.world.io_count();
    scene.ask(&instance, query.clone()).unwrap();
    (before + 1, scene.world.io_count())
}

/// Every n-th I/O, so that a test takes a few seconds.
fn some_of((first, last): (u64, u64)) -> impl Iterator<Item = u64> {
    let usual = (last - first) as usize / 40;
    (first..=last).step_by(spindle_harness::stride(usual.max(1)))
}

#[test]
fn one_seed_is_one_history() {
    let images = made(40);
    let history = || {
        let mut scene = Scene::on(&images, 16 << 10);
        let instance = scene.start();
        scene
            .ask(&instance, query(groups(MANY, GroupOrder::Key), 3))
            .unwrap();
        (scene.world.io_count(), scene.world.trace_hash())
    };
    assert_eq!(history(), history());
}

#[test]
fn a_failed_io_ends_the_query_and_nothing_else() {
    let images = made(40);
    for asked in [
        query(sort(), 2),
        query(groups(MANY, GroupOrder::LargestSum), 1),
    ] {
        let mut told = BTreeMap::new();
        for io in some_of(ios(&images, &asked)) {
            let mut scene = Scene::on(&images, 16 << 10);
            let instance = scene.start();
            scene.world.fail_io(IoFault {
                io,
                lasts: Lasts::Once,
                seed: 1,
            });
            let error = scene
                .ask(&instance, asked.clone())
                .expect_err("an I/O of it failed");
            let words = error.to_string();
            let kind = match error {
                KernelError::TempIo { .. } => "temporary segment",
                KernelError::UnreadableBlock { .. } => "table",
                other => panic!("I/O {io}: {other}"),
            };
            assert!(words.contains("cannot be"), "{words}");
            *told.entry(kind).or_insert(0) += 1;
            let again = scene.ask(&instance, asked.clone()).unwrap();
            assert_eq!(again.rows, model(&asked), "after I/O {io} failed");
            scene.stop(instance);
        }
        assert_eq!(told.len(), 2, "{told:?}");
    }
}

#[test]
fn a_power_cut_in_a_query_leaves_nothing_of_it() {
    let images = made(40);
    let asked_for = query(groups(MANY, GroupOrder::Key), 2);
    for io in some_of(ios(&images, &asked_for)) {
        let mut scene = Scene::on(&images, 16 << 10);
        let instance = scene.start();
        scene.world.cut_power_at_io(io);
        let ended = scene.world.run(asked(instance, asked_for.clone()));
        assert!(matches!(ended, Err(Stop::PowerCut { .. })));
        let mut scene = Scene::on(&scene.after(PowerCut::Damage(io)), 16 << 10);
        let instance = scene.start();
        // As much as the temporary tablespace holds.
        let asked = scene.ask(&instance, asked_for.clone()).unwrap();
        assert_eq!(
            asked.rows,
            model(&asked_for),
            "after a power cut at I/O {io}"
        );
        scene.stop(instance);
    }
}

#[test]
fn what_is_read_from_a_tempfile_is_what_was_written_there_or_an_error() {
    let images = made(40);
    let mut scene = Scene::on(&images, 16 << 10);
    let instance = scene.start();
    let shared: Arc<Latch<Vec<Arc<SimDisk>>>> = Arc::new(Latch::new(scene.disks.clone()));
    let mut ios = 0;
    // Every block of a tempfile decays while the runs are written.
    scene.world.observe_io(move |_| {
        ios += 1;
        if ios > 300 {
            let disks = shared.lock();
            for block in 0..32 {
                disks[TEMP_DISK].decay(block * 2048 + 100, 4);
            }
        }
    });
    let error = scene
        .ask(&instance, query(sort(), 1))
        .expect_err("blocks decayed");
    assert!(matches!(error, KernelError::DamagedBlock { .. }), "{error}");
    scene.stop(instance);
}

#[test]
fn a_full_temporary_tablespace_ends_the_query() {
    let images = made(1);
    let mut scene = Scene::on(&images, 16 << 10);
    let instance = scene.start();
    let error = scene
        .ask(&instance, query(sort(), 2))
        .expect_err("it has no room");
    let words = error.to_string();
    assert!(
        words.starts_with("the temporary tablespace is full"),
        "{words}"
    );
    let few = query(groups(FEW, GroupOrder::Key), 2);
    let asked = scene.ask(&instance, few.clone()).unwrap();
    assert_eq!(asked.rows, model(&few));
    scene.stop(instance);
}
