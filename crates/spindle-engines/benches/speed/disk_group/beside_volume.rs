//! A disk group beside LVM's stripes over the same four disks, and beside one raw disk of the same size. It needs
//! device-mapper, so it runs in a virtual machine (`scripts/test-vm`), this very program inside it. The machine
//! emulates its processor: only ratios between figures of the same run mean anything. What is shown is how much longer
//! or shorter the way through the database's own striping is than the way through the kernel's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_io::disk_group::Striping;
use spindle_io::env::seeded_rng;
use spindle_io::real::{Caching, Queue, block_on};
use spindle_io::{Arena, BlockDevice, Request, Submission};
use spindle_layout::KnownDevice;
use spindle_layout::tool::Tools;

use rand_xoshiro::rand_core::RngCore;

use super::Group;
use crate::figures::{Figure, Figures};
use crate::random_io::{Kind, Load, Reached};
use crate::{Pace, QUICK};

/// The argument with which this program knows that it is inside.
pub const IN_VIRTUAL_MACHINE: &str = "--in-virtual-machine";

const DISKS: usize = 4;
/// Each of the four disks is cut in two: one half for the group, the other for LVM.
const HALF_MIB: u64 = 48;
const DISK_MIB: u64 = 2 * HALF_MIB + 8;
const FILE_BYTES: u64 = 128 << 20;
const ONE_DISK_MIB: u64 = 160;
const STRIPE_KIB: u64 = 1024;
const BLOCK_BYTES: u64 = 8192;
/// The machine has one processor.
const CLIENTS: u64 = 4;
const LIMIT_S: u64 = 900;
const KINDS: [Kind; 2] = [Kind::Read, Kind::Write];

/// What a measurement in the machine found, of one kind of I/O in one round: per second, and nanoseconds of each.
#[derive(Serialize, Deserialize)]
struct Round {
    is_read: bool,
    group: (f64, f64),
    volume: (f64, f64),
    disk: (f64, f64),
}

pub fn run(pace: Pace, _: &Path, figures: &mut Figures) {
    let rounds = match in_the_machine(pace) {
        Ok(rounds) => rounds,
        Err(reason) => {
            let what = "a disk group beside LVM's stripes, in a virtual machine".to_owned();
            eprintln!("  {reason}");
            return figures.add(Figure::alone(what, std::iter::empty(), None));
        }
    };
    for kind in KINDS {
        let rounds = || {
            rounds
                .iter()
                .filter(|round| round.is_read == (kind == Kind::Read))
        };
        for (peer, of) in [
            (
                "LVM stripes, same disks",
                (|round| round.volume) as fn(&Round) -> (f64, f64),
            ),
            ("one raw disk", |round| round.disk),
        ] {
            let pairs = |one: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
                rounds()
                    .map(|round| (one(round.group), one(of(round))))
                    .collect()
            };
            let rates = pairs(|(per_second, _)| per_second);
            let what = format!("{}/s of a group of 4 disks, emulated", kind.name());
            figures.add(Figure::of_pairs(what, peer, &rates, None));
            let costs = pairs(|(_, cpu_ns)| cpu_ns / 1e3);
            let what = format!("CPU us per I/O, the same {}, emulated", kind.name());
            figures.add(Figure::of_pairs(what, peer, &costs, None));
        }
    }
}

/// Runs this program in a virtual machine with five disks. Error: why it cannot.
fn in_the_machine(pace: Pace) -> Result<Vec<Round>, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/test-vm");
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(script);
    command.args(["--if-able", "--time-limit", &LIMIT_S.to_string()]);
    for mib in [DISK_MIB; DISKS].iter().chain(&[ONE_DISK_MIB]) {
        command.args(["--disk", &format!("{mib}M")]);
    }
    command.arg(program).arg(IN_VIRTUAL_MACHINE);
    if pace.pairs == QUICK.pairs {
        command.arg("--quick");
    }
    let output = command
        .output()
        .map_err(|error| format!("test-vm: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let found = said
        .lines()
        .find_map(|line| line.strip_prefix(IN_VIRTUAL_MACHINE));
    match found {
        Some(rounds) => serde_json::from_str(rounds).map_err(|error| error.to_string()),
        None => Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// The measurement itself, on the disks that the virtual machine has.
pub fn in_virtual_machine(pace: Pace) {
    let disks = std::env::var("SPINDLE_TEST_DISKS").expect("started by scripts/test-vm");
    let disks: Vec<PathBuf> = disks.split(' ').map(PathBuf::from).collect();
    let (four, one) = disks.split_at(DISKS);
    let tools = Tools::new();
    let halves: Vec<[PathBuf; 2]> = four.iter().map(|disk| halve(&tools, disk)).collect();
    let group = Group::of(
        halves.iter().map(|[first, _]| device(first)),
        Striping::Coarse,
        FILE_BYTES,
    );
    let seconds: Vec<&PathBuf> = halves.iter().map(|[_, second]| second).collect();
    let volume = device(&striped_volume(&tools, &seconds));
    let disk = device(&one[0]);
    for device in [&group.file, &volume, &disk] {
        fill(device);
    }
    let mut rounds = Vec::new();
    for _ in 0..pace.pairs {
        for kind in KINDS {
            let load = Load {
                kind,
                block_bytes: BLOCK_BYTES,
                clients: CLIENTS,
                submission: Submission::Alone,
                within_bytes: FILE_BYTES,
            };
            let run = |device| {
                let Reached { per_second, cpu_ns } = load.run(device, pace.measure);
                (per_second, cpu_ns)
            };
            rounds.push(Round {
                is_read: kind == Kind::Read,
                group: run(&group.file),
                volume: run(&volume),
                disk: run(&disk),
            });
        }
    }
    let rounds = serde_json::to_string(&rounds).expect("numbers");
    println!("{IN_VIRTUAL_MACHINE}{rounds}");
}

fn device(path: &Path) -> Arc<dyn BlockDevice> {
    let known = KnownDevice::look(path).expect("a disk is there");
    let device = known.open(Caching::Direct, Queue::sync());
    Arc::new(device.expect("a disk can be opened"))
}

/// Cuts a disk in two partitions.
fn halve(tools: &Tools, disk: &Path) -> [PathBuf; 2] {
    let disk = disk.to_str().expect("the name of a disk");
    let sectors = HALF_MIB * 2048;
    let script =
        format!("printf 'size={sectors}\\nsize={sectors}\\n' | sfdisk --quiet --label gpt {disk}");
    tools.run("sh", &["-c", &script]).expect("the disk is cut");
    [1, 2].map(|number| PathBuf::from(format!("{disk}{number}")))
}

/// A volume striped over the partitions, as wide as the allocation units of the group.
fn striped_volume(tools: &Tools, partitions: &[&PathBuf]) -> PathBuf {
    let paths: Vec<&str> = partitions.iter().filter_map(|path| path.to_str()).collect();
    let config = "backup{backup=0 archive=0} activation{monitoring=0}";
    let lvm = |arguments: &[&str]| {
        let arguments = [arguments, &["--quiet", "--config", config]].concat();
        tools.run("lvm", &arguments).expect("lvm does it");
    };
    lvm(&[&["vgcreate", "bench"], &paths[..]].concat());
    let stripes = [
        "--stripes",
        &DISKS.to_string(),
        "--stripesize",
        &format!("{STRIPE_KIB}k"),
    ];
    let size = format!("{}b", FILE_BYTES);
    lvm(&[
        &["lvcreate", "--yes", "--name", "data", "--size", &size][..],
        &stripes,
        &["bench"],
    ]
    .concat());
    PathBuf::from("/dev/bench/data")
}

/// Random bytes everywhere: the disks are files that take no space before they are written.
fn fill(device: &Arc<dyn BlockDevice>) {
    const PIECE_BYTES: u64 = 1 << 20;
    let arena = Arena::new(PIECE_BYTES as usize, 1).expect("memory for a piece");
    let frame = arena.allocate().expect("the arena has a frame");
    seeded_rng(5, 0).fill_bytes(&mut frame.try_write().expect("nobody else has it"));
    for offset in (0..FILE_BYTES).step_by(PIECE_BYTES as usize) {
        let from = vec![frame.try_read_hold().expect("nobody writes it")];
        let request = Request::write(offset, from, false, Submission::Alone);
        let ended = device.submit(request).already();
        ended
            .unwrap_or_else(block_on)
            .result
            .expect("a disk does not fail");
    }
}
