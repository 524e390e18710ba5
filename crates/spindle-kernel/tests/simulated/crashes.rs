//! Every crash of a run from one run: what each disk holds at each I/O is noted, and later damaged and recovered, on
//! threads (each recovery is a world of its own).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spindle_io::sim::{DiskMoment, PowerCut};
use spindle_kernel::block::{self, BlockAddress};
use spindle_kernel::probe::{self, Probe};

use super::{
    BLOCK_BYTES, DATAFILES, Images, SESSIONS, Scenario, UNDO_DISK, loaded, recover_and_check,
    run_observed,
};

/// The first transaction of every session.
pub const FIRST: [u64; SESSIONS] = [1; SESSIONS];
const THREADS: usize = 2;

/// The disks at one I/O, and what had been promised by then.
pub struct CrashPoint {
    pub io: u64,
    pub promised: [u64; SESSIONS],
    disks: Vec<DiskMoment>,
    /// Recovery was rolling back.
    pub in_roll_back: bool,
}

impl CrashPoint {
    /// What a crash here leaves.
    pub fn after(&self, cut: PowerCut) -> Images {
        let images = self.disks.iter().map(|disk| disk.image_after(cut));
        images.collect()
    }
}

/// Words of a panic.
fn words(panic: Box<dyn std::any::Any + Send>) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| words.to_string()));
    format!("panic: {}", words.unwrap_or_default())
}

/// Runs the scenario once and returns every point at which it can crash.
pub fn crash_points(scenario: Scenario) -> Result<Vec<CrashPoint>, String> {
    points_of(scenario, &loaded(scenario))
}

/// The points of a start on `images` that has nothing to do but to recover, and of the shutdown after it.
pub fn recovery_points(scenario: Scenario, images: &Images) -> Result<Vec<CrashPoint>, String> {
    let idle = Scenario {
        transactions: 0,
        ..scenario
    };
    points_of(idle, images)
}

fn points_of(scenario: Scenario, images: &Images) -> Result<Vec<CrashPoint>, String> {
    let points: Arc<Mutex<Vec<CrashPoint>>> = Arc::default();
    let noted = Arc::clone(&points);
    let rolling_back = || probe::hits(Probe::RollBackBegun) - probe::hits(Probe::RollBackEnded);
    // A crash of another world on this thread may have left one roll-back without an end.
    let before = rolling_back();
    let observer = Box::new(move |io, disks: &super::Disks, promised| {
        noted.lock().unwrap().push(CrashPoint {
            io,
            promised,
            disks: disks.moment(),
            in_roll_back: rolling_back() > before,
        });
    });
    let ran = catch_unwind(AssertUnwindSafe(|| {
        run_observed(scenario, images, scenario.seed, FIRST, None, Some(observer))
    }));
    let (_, promised, _, _) = ran.map_err(words)?;
    assert_eq!(promised, [scenario.transactions; SESSIONS]);
    Ok(std::mem::take(&mut points.lock().unwrap()))
}

/// Recovers, and makes of a panic a loss.
pub fn recovered(
    scenario: Scenario,
    images: &Images,
    promised: [u64; SESSIONS],
) -> Result<Images, String> {
    let checked = catch_unwind(AssertUnwindSafe(|| {
        recover_and_check(scenario, images, promised)
    }));
    let (_, images) = checked.map_err(words)??;
    Ok(images)
}

/// Blocks of the datafiles that are neither whole nor never written.
pub fn torn_blocks(images: &Images) -> usize {
    let mut bytes = [0; BLOCK_BYTES];
    let mut torn = 0;
    for (file, image) in images[UNDO_DISK..UNDO_DISK + DATAFILES].iter().enumerate() {
        for block in 0..image.capacity_bytes() / BLOCK_BYTES {
            image.read(block * BLOCK_BYTES, &mut bytes);
            let address = BlockAddress {
                file: file as u16,
                block: block as u32,
            };
            let is_written = bytes.iter().any(|&byte| byte != 0);
            torn += usize::from(is_written && block::verify(&bytes, address).is_err());
        }
    }
    torn
}

/// What came of many crashes.
#[derive(Default)]
pub struct Sweep {
    pub recoveries: usize,
    /// Crashes that left a torn block, which recovery repaired, among those looked at.
    pub repaired: usize,
    /// Recoveries that met a torn block before its image.
    pub image_later: usize,
    /// Recoveries that restored a torn block from the double write area.
    pub restored: usize,
    /// Recoveries that were crashed while they rolled back.
    pub in_roll_back: usize,
    /// The earliest loss, in words.
    pub loss: Option<String>,
}

/// Crashes at every point, with `cuts(io)`, until something is lost.
pub fn sweep(
    scenario: Scenario,
    points: &[CrashPoint],
    cuts: impl Fn(u64) -> Vec<PowerCut> + Sync,
) -> Sweep {
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Sweep::default()));
    let work = || {
        while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = crash_at(scenario, point, &cuts(point.io));
            let mut total = total.lock().unwrap();
            total.recoveries += outcome.recoveries;
            total.repaired += outcome.repaired;
            total.image_later += outcome.image_later;
            total.restored += outcome.restored;
            if let Some(loss) = outcome.loss {
                total.loss.get_or_insert(loss);
                next.store(points.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    total.into_inner().unwrap()
}

/// Whole datafiles are looked at for torn blocks at every so many I/Os.
const LOOK_EVERY: u64 = 16;

fn crash_at(scenario: Scenario, point: &CrashPoint, cuts: &[PowerCut]) -> Sweep {
    let mut outcome = Sweep::default();
    for &cut in cuts {
        let images = point.after(cut);
        let look = point.io.is_multiple_of(LOOK_EVERY);
        let torn = if look { torn_blocks(&images) } else { 0 };
        outcome.recoveries += 1;
        let [later, copied] = [Probe::ImageCameLater, Probe::TornBlockRestored].map(probe::hits);
        let found = recovered(scenario, &images, point.promised);
        outcome.image_later += usize::from(probe::hits(Probe::ImageCameLater) > later);
        outcome.restored += usize::from(probe::hits(Probe::TornBlockRestored) > copied);
        let loss = match found {
            Ok(after) if look && torn_blocks(&after) > 0 => "a block is torn for good".to_string(),
            Ok(_) => {
                outcome.repaired += usize::from(torn > 0);
                continue;
            }
            Err(loss) => loss,
        };
        let (seed, io) = (scenario.seed, point.io);
        outcome.loss = Some(format!("seed {seed}, crash at I/O {io}, {cut:?}: {loss}"));
        break;
    }
    outcome
}

/// Crashes at every `step`-th point, and then up to three times in the recovery from that, until something is lost.
pub fn sweep_recoveries(scenario: Scenario, points: &[CrashPoint], step: usize) -> Sweep {
    let mut total = Sweep::default();
    for point in points.iter().step_by(step) {
        if let Err(loss) = crash_recovery(scenario, point, &mut total) {
            total.loss = Some(format!("seed {}: {loss}", scenario.seed));
            break;
        }
    }
    total
}

fn crash_recovery(scenario: Scenario, point: &CrashPoint, total: &mut Sweep) -> Result<(), String> {
    let mut images = point.after(PowerCut::Damage(point.io));
    for depth in 1..=3 {
        let again = recovery_points(scenario, &images)?;
        for crash in again.iter().step_by(3) {
            let left = crash.after(PowerCut::Damage(crash.io));
            total.recoveries += 1;
            total.in_roll_back += usize::from(crash.in_roll_back);
            recovered(scenario, &left, point.promised).map_err(|loss| {
                let (first, io) = (point.io, crash.io);
                format!("crash at I/O {first}, {depth} deep at I/O {io} of recovery: {loss}")
            })?;
        }
        // The last crash of those that interrupt a roll-back, if any does: it leaves most behind.
        let deeper = again.iter().rfind(|crash| crash.in_roll_back);
        let deeper = deeper.unwrap_or(&again[again.len() / 2]);
        images = deeper.after(PowerCut::Damage(point.io ^ depth));
    }
    Ok(())
}

/// The images with one bit changed in the middle of a block of the first data file, each block in another byte of its rows.
pub fn with_flipped_bit(images: &Images, block: usize) -> Images {
    let mut images = images.clone();
    let (image, at) = (
        &mut images[UNDO_DISK + 1],
        block * BLOCK_BYTES + 1000 + block % 48,
    );
    let mut byte = [0];
    image.read(at, &mut byte);
    image.write(at, &[byte[0] ^ 4]);
    images
}
