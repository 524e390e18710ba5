//! A disk group of four files beside one file of the same size, on the same file system, both direct: what the group
//! costs on a real device.

use std::path::Path;
use std::sync::Arc;

use spindle_io::disk_group::Striping;
use spindle_io::real::{Caching, FileDevice, Queue};
use spindle_io::{BlockDevice, Submission};

use super::{Group, MEMBER_OVERHEAD_BYTES};
use crate::Pace;
use crate::database::written;
use crate::figures::{Figure, Figures, Goal};
use crate::random_io::{Kind, Load};

const DISKS: u64 = 4;
const FILE_BYTES: u64 = 512 << 20;
const BLOCK_BYTES: u64 = 8192;
const CLIENTS: u64 = 8;

pub fn run(pace: Pace, directory: &Path, figures: &mut Figures) {
    // All of them written: what was never written is read and mapped at another cost.
    let file = |name: String, bytes| -> Arc<dyn BlockDevice> {
        let path = directory.join(name);
        written(&path, bytes);
        let device = FileDevice::open(&path, Caching::Direct, Queue::sync());
        Arc::new(device.expect("direct I/O works here"))
    };
    let one = file("one".to_owned(), FILE_BYTES);
    let disk_bytes = FILE_BYTES / DISKS + MEMBER_OVERHEAD_BYTES;
    let disks = (0..DISKS).map(|number| file(format!("disk{number}"), disk_bytes));
    let group = Group::of(disks, Striping::Coarse, FILE_BYTES);
    for kind in [Kind::Read, Kind::Write] {
        let load = Load {
            kind,
            block_bytes: BLOCK_BYTES,
            clients: CLIENTS,
            submission: Submission::Alone,
            within_bytes: FILE_BYTES,
        };
        let pairs: Vec<_> = (0..pace.pairs)
            .map(|_| {
                let run = |device: &_| load.run(device, pace.measure);
                (run(&group.file), run(&one))
            })
            .collect();
        let of = |one: fn(&crate::random_io::Reached) -> f64| -> Vec<(f64, f64)> {
            pairs
                .iter()
                .map(|(ours, peer)| (one(ours), one(peer)))
                .collect()
        };
        let what = format!(
            "{}/s of a group of 4 files, clients: {CLIENTS}",
            kind.name()
        );
        let rates = of(|reached| reached.per_second);
        figures.add(Figure::of_pairs(
            what,
            "one file",
            &rates,
            Goal::AtLeast(0.9),
        ));
        let what = format!("CPU us per I/O, the same {}", kind.name());
        let costs = of(|reached| reached.cpu_ns / 1e3);
        figures.add(Figure::of_pairs(
            what,
            "one file",
            &costs,
            Goal::AtMost(1.1),
        ));
    }
}
