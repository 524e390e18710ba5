//! What the mapping of a disk group costs: the same random single-block I/Os to a device of memory, bare and as a file of a
//! group of four. Memory costs the same in both, so the difference is the group's.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::disk_group::{Disk, DiskGroup, Options, Redundancy, Striping, Template};
use spindle_io::env::seeded_rng;
use spindle_io::real::facts::ProcessorTime;
use spindle_io::real::{MemoryDevice, RealEnv, block_on};
use spindle_io::{Arena, BlockDevice, Env, Operation, ReadHold, Request, Submission, WriteHold};

use crate::Pace;
use crate::figures::{Figure, Figures, Goal, median};

/// Small enough to lie in the processor's caches for the most part: misses would be all that is measured.
const FILE_BYTES: u64 = 8 << 20;
const DISKS: u64 = 4;
/// Small, so that copying it hides as little as can be.
const BLOCK_BYTES: u64 = 512;
const GOAL_NS: f64 = 150.0;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Read,
    Write,
}

pub fn run(pace: Pace, _: &Path, figures: &mut Figures) {
    let bare: Arc<dyn BlockDevice> = MemoryDevice::new("bare", FILE_BYTES);
    for (kind, striping, what) in [
        (Kind::Read, Striping::Coarse, "read, coarse stripes"),
        (Kind::Read, Striping::Fine, "read, fine stripes"),
        (Kind::Write, Striping::Coarse, "write, coarse stripes"),
    ] {
        let (_group, file) = group(striping);
        let pairs: Vec<(f64, f64)> = (0..pace.pairs)
            .map(|_| (cost_ns(&file, kind, pace), cost_ns(&bare, kind, pace)))
            .collect();
        let mapping: Vec<f64> = pairs.iter().map(|(ours, bare)| ours - bare).collect();
        let of_all = median(pairs.iter().map(|(ours, _)| *ours)).unwrap_or(0.0);
        let what = format!(
            "ns of mapping per I/O in a disk group: {what} ({of_all:.0} with the device of memory)"
        );
        figures.add(Figure::alone(
            what,
            mapping.into_iter(),
            Some(Goal::AtMost(GOAL_NS)),
        ));
    }
}

fn group(striping: Striping) -> (DiskGroup, Arc<dyn BlockDevice>) {
    let env: Arc<dyn Env> = RealEnv::new(1);
    let disk = |number: u64| Disk {
        name: format!("d{number}"),
        failure_group: None,
        device: MemoryDevice::new(&format!("memory {number}"), FILE_BYTES / DISKS + (16 << 20)),
    };
    let options = Options {
        allocation_unit_bytes: 1 << 20,
        redundancy: Redundancy::External,
        identity: None,
    };
    block_on(async {
        let group = DiskGroup::create(&env, "bench", (0..DISKS).map(disk).collect(), options)
            .await
            .expect("a group of memory can be made");
        let template = Template {
            striping,
            redundancy: None,
        };
        let creation = group
            .begin_file("file", FILE_BYTES, template)
            .await
            .expect("it has room");
        creation.commit().await.expect("memory does not fail");
        let file = group.open_file("file").expect("it was committed");
        (group, file)
    })
}

/// Processor time of one I/O, nanoseconds, of a single thread beside which the process does nothing. The buffer goes round.
fn cost_ns(device: &Arc<dyn BlockDevice>, kind: Kind, pace: Pace) -> f64 {
    const BATCH: u64 = 4096;
    let arena = Arena::new(BLOCK_BYTES as usize, 1).expect("memory for a block");
    let frame = arena.allocate().expect("the arena has a frame");
    let mut chance = seeded_rng(3, 0);
    let blocks = FILE_BYTES / BLOCK_BYTES;
    let (mut into, mut from): (Vec<WriteHold>, Vec<ReadHold>) = (Vec::new(), Vec::new());
    match kind {
        Kind::Read => into.push(frame.try_write_hold().expect("the frame is ours")),
        Kind::Write => from.push(frame.try_read_hold().expect("the frame is ours")),
    }
    let (began, cpu_before, mut count) = (Instant::now(), ProcessorTime::now(), 0);
    while began.elapsed() < pace.measure / 2 {
        for _ in 0..BATCH {
            let offset = chance.next_u64() % blocks * BLOCK_BYTES;
            let request = match kind {
                Kind::Read => Request::read(offset, std::mem::take(&mut into), Submission::Alone),
                Kind::Write => {
                    Request::write(offset, std::mem::take(&mut from), false, Submission::Alone)
                }
            };
            let outcome = device
                .submit(request)
                .already()
                .expect("memory is done within submit");
            outcome.result.expect("memory does not fail");
            match outcome.operation {
                Operation::Read(back) => into = back,
                Operation::Write { from: back, .. } => from = back,
                Operation::Flush => unreachable!("nothing is flushed here"),
            }
        }
        count += BATCH;
    }
    let cpu = (ProcessorTime::now() - cpu_before).total();
    cpu.as_secs_f64() * 1e9 / count as f64
}
