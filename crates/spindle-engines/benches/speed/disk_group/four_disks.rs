//! What four disks in a group bring beside one of them alone. The disks are slow on purpose: each makes one I/O after
//! the other, of this many milliseconds, as a disk with one arm does. So it is the group's spreading that is measured,
//! and neither the processors nor the device of this machine.

use std::sync::Arc;

use spindle_io::disk_group::Striping;
use spindle_io::real::{Delay, DelayedDevice, MemoryDevice, Queue, SlavePool};
use spindle_io::{BlockDevice, Submission};

use super::{Group, MEMBER_OVERHEAD_BYTES};
use crate::Pace;
use crate::figures::{Figure, Figures, Goal};
use crate::random_io::{Kind, Load};

const DISKS: u64 = 4;
const FILE_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u64 = 8192;
/// Of one I/O: at most 500 a second.
const SERVICE_US: u64 = 2000;
/// Enough that a disk seldom has nothing to do when they pick disks at random: with N clients four such disks are busy
/// N / (N + 3) of the time if their times vary, more if they do not. One disk is always busy.
const CLIENTS: u64 = 64;

pub fn run(pace: Pace, figures: &mut Figures) {
    let one = disk(FILE_BYTES);
    let members = (0..DISKS).map(|_| disk(FILE_BYTES / DISKS + MEMBER_OVERHEAD_BYTES));
    let group = Group::of(members, Striping::Coarse, FILE_BYTES);
    for kind in [Kind::Read, Kind::Write] {
        let load = Load {
            kind,
            block_bytes: BLOCK_BYTES,
            clients: CLIENTS,
            submission: Submission::Batched,
            within_bytes: FILE_BYTES,
        };
        let rate = |device: &_| load.run(device, pace.measure).per_second;
        let pairs: Vec<(f64, f64)> = (0..pace.pairs)
            .map(|_| (rate(&group.file), rate(&one)))
            .collect();
        let what = format!(
            "{}/s of 4 disks of 2 ms in a group, clients: {CLIENTS}",
            kind.name()
        );
        figures.add(Figure::of_pairs(
            what,
            "one of them alone",
            &pairs,
            Goal::AtLeast(3.6),
        ));
    }
}

/// A disk with one slave, which waits and then makes the I/O.
fn disk(bytes: u64) -> Arc<dyn BlockDevice> {
    let delay = Delay {
        read_us: SERVICE_US,
        write_us: SERVICE_US,
        flush_us: 0,
    };
    let one_at_a_time = Queue::slaves(SlavePool::new(1).expect("the system has a thread"));
    let memory = MemoryDevice::new("memory", bytes);
    Arc::new(DelayedDevice::new(memory, delay, &one_at_a_time))
}
