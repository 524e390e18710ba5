//! Disk groups of real files: every method of I/O, direct, with a clock that nobody simulates.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spindle_io::disk_group::{
    Disk, DiskGroup, DiskGroupError, DiskGroupOptions, GroupFinding, Redundancy, Striping, Template,
};
use spindle_io::real::facts::{self, DirectProbe};
use spindle_io::real::{
    Caching, FileDevice, FileError, Queue, RealEnv, RingConfig, SlavePool, block_on,
};
use spindle_io::{Arena, BlockDevice, Env, Operation, Request, Submission};

const MIB: u64 = 1 << 20;
const BLOCK: usize = 8192;

fn methods() -> Vec<Queue> {
    let mut methods = vec![Queue::sync(), Queue::slaves(SlavePool::new(2).unwrap())];
    match facts::io_uring_available() {
        Ok(()) => methods.push(Queue::uring(Arc::new(RingConfig::new()))),
        Err(reason) => spindle_harness::skip(format_args!("io_uring, {reason}")),
    }
    methods
}

/// Files that become disks, and are gone with the test.
struct Files {
    directory: tempfile::TempDir,
    caching: Caching,
}

impl Files {
    fn new(count: usize, mib: u64) -> Files {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let direct = facts::direct_probe(directory.path());
        let caching = match direct {
            Ok(DirectProbe::Direct) => Caching::Direct,
            _ => Caching::Buffered,
        };
        for number in 0..count {
            let file = std::fs::File::create(directory.path().join(format!("d{number}"))).unwrap();
            file.set_len(mib * MIB).unwrap();
        }
        Files { directory, caching }
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("d{number}"))
    }

    fn device(&self, number: usize, method: &Queue) -> Arc<dyn BlockDevice> {
        Arc::new(FileDevice::open(&self.path(number), self.caching, method.clone()).unwrap())
    }

    fn disk(&self, number: usize, method: &Queue) -> Disk {
        Disk {
            name: format!("d{number}"),
            failure_group: None,
            device: self.device(number, method),
        }
    }

    fn disks(&self, numbers: std::ops::Range<usize>, method: &Queue) -> Vec<Disk> {
        numbers.map(|number| self.disk(number, method)).collect()
    }

    fn devices(
        &self,
        numbers: impl Iterator<Item = usize>,
        method: &Queue,
    ) -> Vec<Arc<dyn BlockDevice>> {
        numbers.map(|number| self.device(number, method)).collect()
    }
}

fn options(redundancy: Redundancy) -> DiskGroupOptions {
    DiskGroupOptions {
        allocation_unit_bytes: MIB,
        redundancy,
        identity: None,
    }
}

fn byte_of(block: u64, version: u64) -> u8 {
    (block * 7 + version * 101 + 1) as u8
}

fn begin_write(
    file: &Arc<dyn BlockDevice>,
    arena: &Arc<Arena>,
    block: u64,
    version: u64,
) -> spindle_io::Completion {
    let mut hold = arena.allocate().unwrap().try_write_hold().unwrap();
    hold.fill(byte_of(block, version));
    let from = vec![hold.share(BLOCK)];
    file.submit(Request::write(
        block * BLOCK as u64,
        from,
        true,
        Submission::Batched,
    ))
}

async fn read(file: &Arc<dyn BlockDevice>, arena: &Arc<Arena>, block: u64) -> u8 {
    let hold = arena.allocate().unwrap().try_write_hold().unwrap();
    let outcome = file
        .submit(Request::read(
            block * BLOCK as u64,
            vec![hold],
            Submission::Alone,
        ))
        .await;
    outcome.result.unwrap();
    let Operation::Read(into) = outcome.operation else {
        panic!("a read comes back as a read")
    };
    assert!(
        into[0].iter().all(|byte| *byte == into[0][0]),
        "block {block} is torn"
    );
    into[0][0]
}

/// The whole life of a group, with each method.
#[test]
fn a_group_of_files_lives() {
    for method in methods() {
        let files = Files::new(5, 24);
        let env: Arc<dyn Env> = RealEnv::new(1);
        block_on(async {
            let disks = files.disks(0..4, &method);
            let group = DiskGroup::create(&env, "data", disks, options(Redundancy::Normal))
                .await
                .unwrap();
            let template = Template {
                striping: Striping::Fine,
                redundancy: None,
            };
            let creation = group.begin_file("users", 10 * MIB, template).await.unwrap();
            let arena = Arena::new(BLOCK, 64).unwrap();
            let (filling, blocks) = (creation.device(), 10 * MIB / BLOCK as u64);
            for first in (0..blocks).step_by(32) {
                let under_way: Vec<_> = (first..first + 32)
                    .map(|block| begin_write(&filling, &arena, block, 1))
                    .collect();
                for write in under_way {
                    assert_eq!(write.await.result, Ok(()), "{}", method.method());
                }
            }
            creation.commit().await.unwrap();
            drop(filling);
            group.dismount().await.unwrap();

            let group = DiskGroup::mount(&env, &files.devices((0..4).rev(), &method))
                .await
                .unwrap();
            let file = group.open_file("users").unwrap();
            for block in 0..blocks {
                assert_eq!(read(&file, &arena, block).await, byte_of(block, 1));
            }
            let in_use = FileDevice::open(&files.path(0), files.caching, Queue::sync());
            assert!(
                matches!(in_use, Err(FileError::InUse { .. })),
                "the group holds its disks' locks"
            );
            group.add_disks(vec![files.disk(4, &method)]).await.unwrap();
            assert!(group.rebalance(2).await.unwrap().extents > 0);
            group.drop_disk("d1").await.unwrap();
            assert_eq!(group.rebalance(4).await.unwrap().disks_removed, 1);
            let report = group.check().await.unwrap();
            assert_eq!(report.findings, []);
            for block in 0..blocks {
                assert_eq!(read(&file, &arena, block).await, byte_of(block, 1));
            }
            drop(file);
            group.dismount().await.unwrap();
            let dropped = DiskGroup::mount(&env, &files.devices(1..2, &method))
                .await
                .err()
                .unwrap();
            assert!(
                dropped.to_string().contains("has been dropped from it"),
                "{dropped}"
            );
        });
    }
}

/// Finds a byte in a file and changes it, behind the group's back.
fn corrupt(path: &Path, byte: u8) {
    let bytes = std::fs::read(path).unwrap();
    let block = vec![byte; BLOCK];
    let at = bytes
        .windows(BLOCK)
        .step_by(BLOCK)
        .position(|window| window == block)
        .unwrap()
        * BLOCK;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&[byte ^ 0x55], at as u64 + 100).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn a_check_names_file_extent_and_disks() {
    let files = Files::new(3, 16);
    let env: Arc<dyn Env> = RealEnv::new(1);
    block_on(async {
        let disks = files.disks(0..3, &Queue::sync());
        let group = DiskGroup::create(&env, "data", disks, options(Redundancy::High))
            .await
            .unwrap();
        let creation = group
            .begin_file("users", 2 * MIB, Template::default())
            .await
            .unwrap();
        let arena = Arena::new(BLOCK, 4).unwrap();
        begin_write(&creation.device(), &arena, 150, 3)
            .await
            .result
            .unwrap();
        creation.commit().await.unwrap();
        group.dismount().await.unwrap();
        corrupt(&files.path(1), byte_of(150, 3));
        let group = DiskGroup::mount(&env, &files.devices(0..3, &Queue::sync()))
            .await
            .unwrap();
        let findings = group.check().await.unwrap().findings;
        let [
            GroupFinding::CopiesDiffer {
                file,
                extent,
                at,
                disks,
            },
        ] = &findings[..]
        else {
            panic!("{findings:?}")
        };
        assert_eq!(
            (&**file, *extent, *at),
            ("users", 1, 150 * BLOCK as u64 + 100)
        );
        assert_eq!((disks[0].len(), &disks[1][..]), (2, &["d1".to_owned()][..]));
    });
}

/// Threads write and read while extents are moved under them.
#[test]
fn threads_work_while_extents_move() {
    for method in methods() {
        let files = Files::new(4, 24);
        let env: Arc<dyn Env> = RealEnv::new(1);
        let group = block_on(async {
            let disks = files.disks(0..3, &method);
            let group = DiskGroup::create(&env, "data", disks, options(Redundancy::Normal))
                .await
                .unwrap();
            group
                .begin_file("users", 12 * MIB, Template::default())
                .await
                .unwrap()
                .commit()
                .await
                .unwrap();
            group
        });
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..4u64)
            .map(|client| {
                let (file, stop) = (group.open_file("users").unwrap(), Arc::clone(&stop));
                let work = async move {
                    let arena = Arena::new(BLOCK, 4).unwrap();
                    let blocks: Vec<u64> = (0..12).map(|extent| extent * 128 + client).collect();
                    let mut version = 1;
                    while !stop.load(Ordering::Relaxed) || version < 4 {
                        for block in &blocks {
                            begin_write(&file, &arena, *block, version)
                                .await
                                .result
                                .unwrap();
                        }
                        for block in &blocks {
                            assert_eq!(read(&file, &arena, *block).await, byte_of(*block, version));
                        }
                        version += 1;
                    }
                };
                env.spawn("client", Box::new(move || Box::pin(work)))
            })
            .collect();
        block_on(async {
            group.add_disks(vec![files.disk(3, &method)]).await.unwrap();
            group.rebalance(3).await.unwrap();
            group.drop_disk("d0").await.unwrap();
            group.rebalance(2).await.unwrap();
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.ended().await.expect("no client finds a wrong block");
            }
            assert_eq!(
                group.check().await.unwrap().findings,
                [],
                "{}",
                method.method()
            );
            let units = group.describe().files[0].allocation_units.clone();
            assert_eq!(units, [(1, 8), (2, 8), (3, 8)]);
            let refused = group.open_file("nobody").err().unwrap();
            assert!(matches!(refused, DiskGroupError::NoSuchFile { .. }));
        });
    }
}
