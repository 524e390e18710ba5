//! The fault model, kind by kind.

use std::collections::BTreeSet;

use super::*;
use crate::arena::Arena;
use crate::device::{Operation, Submission};
use crate::sim::executor::World;
use crate::sim::fault::{IoFault, Lasts};

const BLOCK_BYTES: usize = 1024;

/// A disk of four blocks, its world, and memory for its I/Os.
struct Bench {
    world: World,
    disk: Arc<SimDisk>,
    arena: Arc<Arena>,
}

impl Bench {
    fn with(atomic_write_bytes: u32, timing: DiskTiming) -> Bench {
        let world = World::new(7);
        let image = DiskImage::zeroed(4 * BLOCK_BYTES);
        let disk = SimDisk::new(world.env(), 0, image, atomic_write_bytes, timing);
        let arena = Arena::new(BLOCK_BYTES, 64).unwrap();
        Bench { world, disk, arena }
    }

    fn new() -> Bench {
        Bench::with(512, DiskTiming::default())
    }

    fn write(&self, block: usize, fill: u8, durable: bool) -> Request {
        let frame = self.arena.allocate().unwrap();
        frame.try_write().unwrap().fill(fill);
        let hold = frame.try_read_hold().unwrap();
        let offset = (block * BLOCK_BYTES) as u64;
        Request::write(offset, vec![hold], durable, Submission::Batched)
    }

    fn read(&self, block: usize) -> Request {
        let hold = self.arena.allocate().unwrap().try_write_hold().unwrap();
        let offset = (block * BLOCK_BYTES) as u64;
        Request::read(offset, vec![hold], Submission::Alone)
    }

    /// Has each request end before the next is submitted.
    fn one_by_one(&mut self, requests: Vec<Request>) -> Vec<IoOutcome> {
        let disk = Arc::clone(&self.disk);
        let all = async move {
            let mut outcomes = Vec::new();
            for request in requests {
                outcomes.push(disk.submit(request).await);
            }
            outcomes
        };
        self.world.run(all).unwrap()
    }

    fn fail(&self, io: u64, lasts: Lasts, seed: u64) {
        self.world.fail_io(IoFault { io, lasts, seed });
    }

    /// First bytes of the four blocks, as a read finds them.
    fn found(&mut self) -> [u8; 4] {
        let reads = (0..4).map(|block| self.read(block)).collect();
        let outcomes = self.one_by_one(reads);
        let first = |outcome: &IoOutcome| match &outcome.operation {
            Operation::Read(into) => into[0][0],
            _ => unreachable!(),
        };
        std::array::from_fn(|block| first(&outcomes[block]))
    }

    fn left(&self, cut: PowerCut) -> [u8; 4] {
        blocks(&self.disk.image_after(cut))
    }
}

fn blocks(image: &DiskImage) -> [u8; 4] {
    let mut bytes = [0; 4 * BLOCK_BYTES];
    image.read(0, &mut bytes);
    std::array::from_fn(|block| bytes[block * BLOCK_BYTES])
}

fn two_writes(durable: bool, flush: bool) -> Bench {
    let mut bench = Bench::new();
    let mut requests = vec![bench.write(0, 1, durable), bench.write(1, 2, durable)];
    if flush {
        requests.push(Request::flush());
    }
    bench.one_by_one(requests);
    bench
}

#[test]
fn only_flushed_or_durable_writes_survive() {
    let lost = |durable, flush| two_writes(durable, flush).left(PowerCut::LoseAll);
    assert_eq!(lost(false, false), [0; 4]);
    assert_eq!(lost(false, true), [1, 2, 0, 0]);
    assert_eq!(lost(true, false), [1, 2, 0, 0]);
    assert_eq!(
        two_writes(false, false).left(PowerCut::KeepAll),
        [1, 2, 0, 0]
    );
}

#[test]
fn damage_loses_writes_in_any_order() {
    let bench = two_writes(false, false);
    let seen: BTreeSet<[u8; 4]> = (0..64)
        .map(|seed| bench.left(PowerCut::Damage(seed)))
        .collect();
    let expected = [[0, 0, 0, 0], [0, 2, 0, 0], [1, 0, 0, 0], [1, 2, 0, 0]];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

/// A durable write in flight when the power goes off.
fn in_flight(atomic_write_bytes: u32, asks: bool) -> Bench {
    let mut bench = Bench::with(atomic_write_bytes, DiskTiming::default());
    let mut request = bench.write(2, 3, true);
    if asks {
        request = request.atomic();
    }
    bench.world.cut_power_at_io(1);
    let disk = Arc::clone(&bench.disk);
    let ended = bench.world.run(async move { disk.submit(request).await });
    assert!(ended.is_err());
    bench
}

#[test]
fn what_is_in_flight_is_kept_when_all_is() {
    assert_eq!(in_flight(512, false).left(PowerCut::KeepAll), [0, 0, 3, 0]);
    assert_eq!(in_flight(512, false).left(PowerCut::LoseAll), [0; 4]);
}

#[test]
fn a_write_within_the_atomic_unit_is_never_torn() {
    let torn = |unit: u32, asks: bool| {
        let bench = in_flight(unit, asks);
        let image = |seed| bench.disk.image_after(PowerCut::Damage(seed));
        (0..64).any(|seed| {
            let mut bytes = [0; BLOCK_BYTES];
            image(seed).read(2 * BLOCK_BYTES, &mut bytes);
            bytes[0] != bytes[BLOCK_BYTES - 1]
        })
    };
    assert!(torn(512, true));
    assert!(!torn(1024, true) && !torn(4096, true));
    assert!(torn(4096, false), "it must be asked for");
}

#[test]
fn misdirected_writes_land_whole_on_other_blocks() {
    let bench = in_flight(512, false);
    let seen: BTreeSet<[u8; 4]> = (0..200)
        .map(|seed| bench.left(PowerCut::Misdirect(seed)))
        .collect();
    for block in 0..4 {
        assert!(
            seen.iter().any(|left| left[block] == 3),
            "never in block {block}"
        );
    }
    assert!(seen.iter().all(|left| left.iter().sum::<u8>() <= 3));
}

#[test]
fn a_failed_read_is_told_and_the_next_one_succeeds() {
    let mut bench = two_writes(true, false);
    bench.fail(3, Lasts::Once, 1);
    let outcomes = bench.one_by_one(vec![bench.read(0), bench.read(0)]);
    let error = outcomes[0].result.as_ref().unwrap_err();
    assert_eq!(
        error.to_string(),
        "read of 1024 bytes at byte 0 of disk0: the simulated disk was told to fail"
    );
    assert_eq!(outcomes[1].result, Ok(()));
    let failed = FailedIo {
        disk: 0,
        kind: IoKind::Read,
    };
    assert_eq!(bench.world.failed_io(), Some(failed));
}

#[test]
fn what_fails_for_ever_is_of_one_kind() {
    let mut bench = Bench::new();
    bench.fail(1, Lasts::ForEver, 1);
    let requests = vec![
        bench.write(0, 1, true),
        bench.read(0),
        Request::flush(),
        bench.write(1, 1, false),
    ];
    let outcomes = bench.one_by_one(requests);
    let failed: Vec<bool> = outcomes.iter().map(|it| it.result.is_err()).collect();
    assert_eq!(failed, [true, false, true, true]);
}

#[test]
fn a_failed_write_is_old_new_or_torn_and_not_stable() {
    let (mut read, mut left) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..64 {
        let mut bench = Bench::new();
        bench.one_by_one(vec![bench.write(0, 1, true)]);
        bench.fail(2, Lasts::Once, seed);
        let outcome = bench.one_by_one(vec![bench.write(0, 2, true)]);
        assert!(outcome[0].result.is_err());
        let mut bytes = [0; BLOCK_BYTES];
        bench
            .disk
            .image_after(PowerCut::KeepAll)
            .read(0, &mut bytes);
        read.insert([bytes[0], bytes[512]]);
        left.insert(bench.left(PowerCut::LoseAll)[0]);
    }
    let all = [[1, 1], [1, 2], [2, 1], [2, 2]];
    assert_eq!(read.into_iter().collect::<Vec<_>>(), all);
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_flush_after_a_failed_one_says_yes_to_what_is_lost() {
    let mut seen = BTreeSet::new();
    for seed in 0..64 {
        let mut bench = two_writes(false, false);
        bench.fail(3, Lasts::Once, seed);
        let outcomes = bench.one_by_one(vec![Request::flush(), Request::flush()]);
        assert!(outcomes[0].result.is_err() && outcomes[1].result.is_ok());
        let found = bench.found()[0];
        seen.insert((found, bench.left(PowerCut::LoseAll)[0]));
    }
    // Lost at once, read until the power cut, stable after all.
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [(0, 0), (1, 0), (1, 1)]
    );
}

#[test]
fn a_busy_disk_makes_others_wait() {
    let took_ns = |at_once: usize| {
        let timing = DiskTiming {
            jitter_ns: 0,
            at_once,
            ..DiskTiming::default()
        };
        let mut bench = Bench::with(512, timing);
        let reads: Vec<Request> = (0..8).map(|step| bench.read(step % 4)).collect();
        let (disk, env) = (Arc::clone(&bench.disk), bench.world.env());
        let all = async move {
            let under_way: Vec<_> = reads.into_iter().map(|read| disk.submit(read)).collect();
            for completion in under_way {
                completion.await.result.unwrap();
            }
            env.now()
        };
        bench.world.run(all).unwrap()
    };
    let one_ns = DiskTiming::default().read_ns;
    assert_eq!([1, 2, 8].map(took_ns), [8 * one_ns, 4 * one_ns, one_ns]);
}

#[test]
fn decay_changes_what_is_read_and_what_is_stable() {
    let mut bench = two_writes(true, false);
    bench.disk.decay(0, 0x10);
    assert_eq!(bench.found(), [0x11, 2, 0, 0]);
    assert_eq!(bench.left(PowerCut::LoseAll), [0x11, 2, 0, 0]);
}
