//! Every crash of a run from one run: what each disk holds at each I/O is noted, and later damaged and recovered, on
//! threads (each recovery is a separate world).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spindle_io::sim::{DiskMoment, PowerCut};
use spindle_kernel::block::{self, BlockAddress};
use spindle_kernel::probe::{self, Probe};
use spindle_kernel::{CONTROL_FILE_BYTES, first_free_blocks};

use super::drawn::Trace;
use super::{Images, SESSIONS, Scenario, UNDO_DISK, loaded, recover_and_check, run, run_observed};

/// The first transaction of every session.
pub const FIRST: [u64; SESSIONS] = [1; SESSIONS];
const THREADS: usize = 2;

/// A crash: at which I/O, and what the power cut does to the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    pub io: u64,
    pub cut: PowerCut,
}

/// As in the soak's option `--crash`.
impl fmt::Display for Crash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cut {
            PowerCut::LoseAll => write!(formatter, "{}/lose", self.io),
            PowerCut::KeepAll => write!(formatter, "{}/keep", self.io),
            PowerCut::Damage(seed) => write!(formatter, "{}/{seed}", self.io),
            PowerCut::Misdirect(seed) => write!(formatter, "{}/misdirect-{seed}", self.io),
        }
    }
}

impl FromStr for Crash {
    type Err = String;
    fn from_str(text: &str) -> Result<Crash, String> {
        let wrong = || format!("`{text}` is no crash: IO/lose, IO/keep or IO/SEED, as in 812/5");
        let (io, cut) = text.split_once('/').ok_or_else(wrong)?;
        let cut = match cut {
            "lose" => PowerCut::LoseAll,
            "keep" => PowerCut::KeepAll,
            seed => {
                let digits = seed.strip_prefix("misdirect-");
                let number = digits.unwrap_or(seed).parse().map_err(|_| wrong())?;
                match digits {
                    Some(_) => PowerCut::Misdirect(number),
                    None => PowerCut::Damage(number),
                }
            }
        };
        let io = io.parse().map_err(|_| wrong())?;
        Ok(Crash { io, cut })
    }
}

/// What was lost, and how: a crash of the run, each further one of the recovery from the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub seed: u64,
    pub crashes: Vec<Crash>,
    pub words: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {}", self.seed)?;
        for (depth, crash) in self.crashes.iter().enumerate() {
            let of = ["I/O", "I/O of recovery"][depth.min(1)];
            write!(formatter, ", crash at {of} {crash}")?;
        }
        write!(formatter, ": {}", self.words)
    }
}

/// Crashes as told, recovers and checks.
pub fn repeat(scenario: Scenario, crashes: &[Crash]) -> Result<(), String> {
    let (images, promised) = quietly(|| {
        let mut images = loaded(scenario);
        let mut promised = None;
        for crash in crashes {
            let what = if promised.is_none() {
                scenario
            } else {
                scenario.idle()
            };
            let (disks, so_far, _, _) = run(what, &images, what.seed, FIRST, Some(crash.io));
            promised.get_or_insert(so_far);
            images = disks.after(crash.cut);
        }
        (images, promised.unwrap_or_default())
    })?;
    let after = recovered(scenario, &images, promised)?;
    nothing_torn(scenario, &after)
}

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

/// Makes an error of a panic.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| words.to_string()));
        format!("panic: {}", words.unwrap_or_default())
    })
}

/// Runs the scenario once and returns every point at which it can crash.
pub fn crash_points(scenario: Scenario) -> Result<Vec<CrashPoint>, String> {
    let every = |_| true;
    Ok(points_of(scenario, &loaded(scenario), every)?.0)
}

/// The points of a start on `images` that has nothing to do but to recover, and of the shutdown after it.
pub fn recovery_points(scenario: Scenario, images: &Images) -> Result<Vec<CrashPoint>, String> {
    Ok(points_of(scenario.idle(), images, |_| true)?.0)
}

/// Runs the scenario on `images` and returns the points at the I/Os that are wanted, and the history.
pub fn points_of(
    scenario: Scenario,
    images: &Images,
    wanted: impl Fn(u64) -> bool + Send + 'static,
) -> Result<(Vec<CrashPoint>, Trace), String> {
    let points: Arc<Mutex<Vec<CrashPoint>>> = Arc::default();
    let noted = Arc::clone(&points);
    let rolling_back = || probe::hits(Probe::RollBackBegun) - probe::hits(Probe::RollBackEnded);
    // A crash of another world on this thread may have left one roll-back without an end.
    let before = rolling_back();
    let observer = Box::new(move |io, disks: &super::Disks, promised| {
        if !wanted(io) {
            return;
        }
        noted.lock().unwrap().push(CrashPoint {
            io,
            promised,
            disks: disks.moment(),
            in_roll_back: rolling_back() > before,
        });
    });
    let (_, promised, world, _) =
        quietly(|| run_observed(scenario, images, scenario.seed, FIRST, None, Some(observer)))?;
    assert_eq!(promised, scenario.promised_after(FIRST));
    let mut trace = Trace::default();
    trace.add(&world);
    Ok((std::mem::take(&mut points.lock().unwrap()), trace))
}

/// Runs the scenario twice, which must be the same history, and returns the points at about `count` of its I/Os.
pub fn counted_points(
    scenario: Scenario,
    images: &Images,
    count: u64,
) -> Result<(Vec<CrashPoint>, Trace), String> {
    let (_, first) = points_of(scenario, images, |_| false)?;
    let step = first.ios.div_ceil(count);
    let phase = scenario.seed % step;
    let (points, second) = points_of(scenario, images, move |io| io % step == phase)?;
    if first != second {
        return Err(format!("two histories: {first:?} and {second:?}"));
    }
    Ok((points, second))
}

/// Recovers, and makes of a panic a loss.
pub fn recovered(
    scenario: Scenario,
    images: &Images,
    promised: [u64; SESSIONS],
) -> Result<Images, String> {
    let (_, images) = quietly(|| recover_and_check(scenario, images, promised))??;
    Ok(images)
}

/// Blocks of the datafiles that are neither whole nor never written. Where a crash came while an extent was made,
/// blocks that no segment has may be so.
pub fn torn_blocks(scenario: Scenario, images: &Images) -> usize {
    let block_bytes = scenario.block_bytes;
    let zeros = vec![0; block_bytes];
    let mut bytes = zeros.clone();
    let mut control = vec![0; CONTROL_FILE_BYTES as usize];
    images[0].read(0, &mut control);
    let first_free = first_free_blocks(&control).unwrap_or_default();
    let mut torn = 0;
    for (file, image) in images[UNDO_DISK..=UNDO_DISK + scenario.datafiles]
        .iter()
        .enumerate()
    {
        let blocks = image.capacity_bytes() / block_bytes;
        let owned = first_free.get(file).map_or(blocks, |first| *first as usize);
        for block in 0..owned {
            image.read(block * block_bytes, &mut bytes);
            let address = BlockAddress {
                file: file as u16,
                block: block as u32,
            };
            torn += usize::from(bytes != zeros && block::verify(&bytes, address).is_err());
        }
    }
    torn
}

fn nothing_torn(scenario: Scenario, images: &Images) -> Result<(), String> {
    match torn_blocks(scenario, images) {
        0 => Ok(()),
        torn => Err(format!("{torn} blocks are torn for good")),
    }
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
    /// The earliest loss.
    pub loss: Option<Loss>,
}

impl Sweep {
    /// Adds what came of others; the earlier loss stays.
    pub fn add(&mut self, other: Sweep) {
        self.recoveries += other.recoveries;
        self.repaired += other.repaired;
        self.image_later += other.image_later;
        self.restored += other.restored;
        self.in_roll_back += other.in_roll_back;
        self.loss = self.loss.take().or(other.loss);
    }
}

/// Crashes at every point, with `cuts(io)`, until something is lost.
pub fn sweep(
    scenario: Scenario,
    points: &[CrashPoint],
    cuts: impl Fn(u64) -> Vec<PowerCut> + Sync,
) -> Sweep {
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Sweep::default()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(point) = points.get(at) else {
                break;
            };
            let look = at.is_multiple_of(LOOK_EVERY);
            let outcome = crash_at(scenario, point, &cuts(point.io), look);
            if outcome.loss.is_some() {
                next.store(points.len(), Ordering::Relaxed);
            }
            total.lock().unwrap().add(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(work);
        }
    });
    total.into_inner().unwrap()
}

/// A sweep looks for torn blocks at every n-th of its points.
const LOOK_EVERY: usize = 16;

/// Crashes at one point, with each of `cuts`, until something is lost; looks for torn blocks before and after if asked
/// to.
pub fn crash_at(scenario: Scenario, point: &CrashPoint, cuts: &[PowerCut], look: bool) -> Sweep {
    let mut outcome = Sweep::default();
    for &cut in cuts {
        let images = point.after(cut);
        let torn = if look {
            torn_blocks(scenario, &images)
        } else {
            0
        };
        outcome.recoveries += 1;
        let [later, copied] = [Probe::ImageCameLater, Probe::TornBlockRestored].map(probe::hits);
        let after = recovered(scenario, &images, point.promised);
        outcome.image_later += usize::from(probe::hits(Probe::ImageCameLater) > later);
        outcome.restored += usize::from(probe::hits(Probe::TornBlockRestored) > copied);
        let whole = after.and_then(|after| match look {
            true => nothing_torn(scenario, &after),
            false => Ok(()),
        });
        if let Err(words) = whole {
            outcome.loss = Some(Loss {
                seed: scenario.seed,
                crashes: vec![Crash { io: point.io, cut }],
                words,
            });
            break;
        }
        if torn > 0 {
            outcome.repaired += 1;
            probe::hit(Probe::TornBlockRepaired);
        }
    }
    outcome
}

/// Crashes at every `step`-th point, and then up to three times in the recovery from that, until something is lost.
pub fn sweep_recoveries(scenario: Scenario, points: &[CrashPoint], step: usize) -> Sweep {
    let mut total = Sweep::default();
    for point in points.iter().step_by(step) {
        crash_recovery(scenario, point, 14, &mut total);
        if total.loss.is_some() {
            break;
        }
    }
    total
}

/// Crashes at the point, and in the recovery from that at about `crashes` I/Os, three deep, until something is lost.
pub fn crash_recovery(scenario: Scenario, point: &CrashPoint, crashes: usize, total: &mut Sweep) {
    let first = PowerCut::Damage(point.io);
    let mut so_far = vec![Crash {
        io: point.io,
        cut: first,
    }];
    let mut images = point.after(first);
    for depth in 1..=3 {
        let mut lost = |words, last: Option<Crash>| {
            total.loss = Some(Loss {
                seed: scenario.seed,
                crashes: so_far.iter().copied().chain(last).collect(),
                words,
            });
        };
        let again = match recovery_points(scenario, &images) {
            Ok(again) => again,
            Err(words) => return lost(words, None),
        };
        for crash in again.iter().step_by(again.len().div_ceil(crashes)) {
            let cut = PowerCut::Damage(crash.io);
            if let Err(words) = recovered(scenario, &crash.after(cut), point.promised) {
                return lost(words, Some(Crash { io: crash.io, cut }));
            }
            total.recoveries += 1;
            if crash.in_roll_back {
                total.in_roll_back += 1;
                probe::hit(Probe::RollBackCrashed);
            }
        }
        // The last crash of those that interrupt a roll-back, if any does: it leaves most behind.
        let deeper = again.iter().rfind(|crash| crash.in_roll_back);
        let deeper = deeper.unwrap_or(&again[again.len() / 2]);
        let cut = PowerCut::Damage(point.io ^ depth);
        images = deeper.after(cut);
        so_far.push(Crash { io: deeper.io, cut });
    }
}

/// The images with one bit changed in the middle of a block of the first data file, each block in another byte of its
/// rows.
pub fn with_flipped_bit(scenario: Scenario, images: &Images, block: usize) -> Images {
    let mut images = images.clone();
    let (image, at) = (
        &mut images[UNDO_DISK + 1],
        block * scenario.block_bytes + 1000 + block % 48,
    );
    let mut byte = [0];
    image.read(at, &mut byte);
    image.write(at, &[byte[0] ^ 4]);
    images
}
