//! Do flushes arrive? Three witnesses: what the kernel shows of the layers beneath, the counters of the disks, and the
//! time that a flush takes beside one on the storage beneath. Nothing can be faster than the device it writes to.
//! Flushes are timed in turns, and the slowest turn of the one is compared with the fastest of the other, so that a
//! load that comes and goes makes no liar of anybody. The kernel is asked directly, and through the C library, where a
//! preloaded library may stand in between.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use spindle_system::SystemTree;

use crate::below::Below;
use crate::error::CalibrateError;
use crate::result::{Control, Honesty, Trust};
use crate::witness::Witness;

/// Turns of each.
const TURNS: usize = 3;
/// Flushes of a turn, at most and at least; the time after which the least is enough.
const FLUSHES: (u64, u64) = (100, 10);
const TURN_TIME: Duration = Duration::from_millis(100);
/// A flush that is acknowledged so many times sooner, in every turn, cannot have reached the same disk.
const SUSPECT_TIMES: f64 = 3.0;
/// The part of the flushes that disks must have counted to have received them, and below which they did not.
const ARRIVED_SHARE: f64 = 0.9;
const IGNORED_SHARE: f64 = 0.5;
const WRITE_BYTES: u64 = 8 << 10;
const PART_BYTES: u64 = 512 << 10;

/// What is beside a target.
pub(crate) struct Beside<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: String,
    /// Named by a person, who knows that it is the disk beneath.
    pub(crate) is_given: bool,
}

/// What the turns of one way of flushing came to.
#[derive(Debug, Default)]
struct Turns {
    medians_us: Vec<f64>,
    flushes: u64,
    counted: Option<u64>,
}

/// All that was measured.
#[derive(Debug, Default)]
struct Measured {
    /// By calls of the kernel, and through the C library.
    kernel: Turns,
    library: Turns,
    control: Option<(Control, bool)>,
    /// Whose counters; `None` for all disks of the machine.
    disks: Option<String>,
}

/// Flushes the file of a target in turns, beside a control where there is one, and judges.
///
/// # Errors
/// A write or a flush failed.
pub(crate) fn examine(
    target: &str,
    below: &Below,
    file: &File,
    beside: Option<&Beside<'_>>,
) -> Result<Honesty, CalibrateError> {
    let tree = SystemTree::default();
    let witness = Witness::of(&tree, below.disks.as_deref());
    let count = || witness.as_ref().and_then(|witness| witness.count(&tree));
    let mut measured = Measured::default();
    let mut others_us = Vec::new();
    for turns in [&mut measured.kernel, &mut measured.library] {
        turns.counted = count().map(|_| 0);
    }
    for _ in 0..TURNS {
        let ways: [(&mut Turns, Flush); 2] = [
            (&mut measured.kernel, by_kernel),
            (&mut measured.library, File::sync_data),
        ];
        for (turns, flush) in ways {
            let before = count();
            let (median_us, flushes) = turn(file, flush)?;
            let counted = count()
                .zip(before)
                .map(|(after, before)| after.saturating_sub(before));
            turns.medians_us.push(median_us);
            turns.flushes += flushes;
            turns.counted = turns.counted.zip(counted).map(|(all, more)| all + more);
        }
        if let Some(beside) = beside {
            others_us.push(turn(beside.file, by_kernel)?.0);
        }
    }
    measured.disks = witness.and_then(|witness| witness.names);
    measured.control = beside.map(|beside| {
        let turns_us = measured
            .kernel
            .medians_us
            .iter()
            .copied()
            .zip(others_us)
            .collect();
        (control_of(beside.path.clone(), turns_us), beside.is_given)
    });
    let (trust, because) = judge(below, &measured);
    Ok(Honesty {
        target: target.to_owned(),
        trust,
        because,
        beneath: below.layers.clone(),
        flushes: measured.kernel.flushes,
        counted_by_disks: measured.kernel.counted,
        control: measured.control.map(|(control, _)| control),
        control_because: String::new(),
    })
}

/// What is known of a target that is only read.
pub(crate) fn unwritten(target: &str, below: &Below) -> Honesty {
    let (trust, because) = of_layers(below).unwrap_or((
        Trust::Unknown,
        "it is only read, so flushes were not tried: name a directory on it".to_owned(),
    ));
    Honesty {
        target: target.to_owned(),
        trust,
        because,
        beneath: below.layers.clone(),
        flushes: 0,
        counted_by_disks: None,
        control: None,
        control_because: "it is only read".to_owned(),
    }
}

type Flush = fn(&File) -> std::io::Result<()>;

/// `rustix` calls the kernel itself, whatever library was loaded before the C library.
fn by_kernel(file: &File) -> std::io::Result<()> {
    Ok(rustix::fs::fdatasync(file)?)
}

/// Writes through the page cache and flushes, again and again: the median time of a flush, microseconds, and how many.
fn turn(file: &File, flush: Flush) -> std::io::Result<(f64, u64)> {
    let began = Instant::now();
    let mut block = vec![0; WRITE_BYTES as usize];
    let mut times_ns = Vec::new();
    let mut done = 0;
    while done < FLUSHES.1 || (done < FLUSHES.0 && began.elapsed() < TURN_TIME) {
        block[..8].copy_from_slice(&(began.elapsed().as_nanos() as u64).to_le_bytes());
        file.write_all_at(&block, done * WRITE_BYTES % PART_BYTES)?;
        let asked = Instant::now();
        flush(file)?;
        times_ns.push(asked.elapsed().as_nanos() as u64);
        done += 1;
    }
    times_ns.sort_unstable();
    Ok((times_ns[times_ns.len() / 2] as f64 / 1000.0, done))
}

/// What the turns say: pairs of median times of a flush, of the target and of the control, microseconds.
fn control_of(path: String, turns: Vec<(f64, f64)>) -> Control {
    let times_sooner = times_sooner(&turns);
    let is_suspect = times_sooner >= SUSPECT_TIMES;
    let says = match is_suspect {
        true => format!("acknowledges a flush {times_sooner:.0} times sooner than {path}"),
        false => format!("acknowledges a flush not clearly sooner than {path}"),
    };
    Control {
        path,
        times_sooner,
        is_suspect,
        says,
        turns_us: turns,
    }
}

/// The fastest of the second over the slowest of the first.
fn times_sooner(turns: &[(f64, f64)]) -> f64 {
    let slowest_us = turns.iter().map(|turn| turn.0).fold(0.0, f64::max);
    let fastest_us = turns
        .iter()
        .map(|turn| turn.1)
        .fold(f64::INFINITY, f64::min);
    // A flush that does nothing takes less than the clock tells.
    fastest_us / slowest_us.max(0.1)
}

/// What the layers alone decide.
fn of_layers(below: &Below) -> Option<(Trust, String)> {
    if let Some(what) = &below.memory {
        let says = format!("it is memory ({what}): nothing of it outlives a power cut");
        return Some((Trust::Memory, says));
    }
    let set = below.set_to_ignore.as_ref()?;
    Some((
        Trust::Ignored,
        format!("{set}: do not trust it with commits"),
    ))
}

/// What all witnesses say together.
fn judge(below: &Below, measured: &Measured) -> (Trust, String) {
    if let Some(decided) = of_layers(below) {
        return decided;
    }
    let suspect = measured
        .control
        .as_ref()
        .filter(|(control, _)| control.is_suspect);
    let not_commits = |says: &str| {
        (
            Trust::Ignored,
            format!("{says}: do not trust it with commits"),
        )
    };
    if let Some((control, true)) = suspect {
        let says = format!("it {}; if that is the disk beneath it", control.says);
        return (
            Trust::Ignored,
            format!("{says}, do not trust it with commits"),
        );
    }
    let share = measured.kernel.share();
    let (flushes, counted) = (
        measured.kernel.flushes,
        measured.kernel.counted.unwrap_or(0),
    );
    let disks = match &measured.disks {
        Some(names) => names.clone(),
        None => "the disks of this machine together".to_owned(),
    };
    if share.is_some_and(|share| share < IGNORED_SHARE) {
        let says = format!("{disks} counted {counted} for {flushes} flushes");
        return match (&below.hidden, below.may_be_remote) {
            (Some(hidden), true) => (
                Trust::Unknown,
                format!(
                    "{says}: {hidden} may be kept by another machine, which cannot be seen from here"
                ),
            ),
            (Some(hidden), false) => not_commits(&format!(
                "{says}: {hidden} ignores them, or keeps its files on another machine"
            )),
            (None, _) => not_commits(&says),
        };
    }
    if measured.library_ignores() {
        return not_commits(
            "the kernel carries flushes out, but the C library does not ask it to: a preloaded library (LD_PRELOAD, \
             /etc/ld.so.preload) ignores them",
        );
    }
    if share.is_some_and(|share| share >= ARRIVED_SHARE) {
        let says = format!("{disks} counted {counted} for {flushes} flushes");
        let further = "what a disk or its host does with them cannot be seen from here";
        return (Trust::Arrives, format!("{says}; {further}"));
    }
    match suspect {
        Some((control, _)) => not_commits(&format!("it {}, beneath it", control.says)),
        None => (
            Trust::Unknown,
            "the counters of its disks do not tell, and it is not clearly faster than what lies beneath".to_owned(),
        ),
    }
}

impl Turns {
    /// The part of the flushes that the disks counted; `None` without counters.
    fn share(&self) -> Option<f64> {
        Some(self.counted? as f64 / self.flushes.max(1) as f64)
    }
}

impl Measured {
    /// Whether flushes that the kernel carries out are lost before they come to it.
    fn library_ignores(&self) -> bool {
        match self.library.share() {
            Some(share) => share < IGNORED_SHARE,
            None => {
                let turns = self.library.medians_us.iter().copied();
                let turns: Vec<_> = turns.zip(self.kernel.medians_us.iter().copied()).collect();
                times_sooner(&turns) >= SUSPECT_TIMES
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sooner_in_every_turn_is_suspect() {
        let suspect =
            |turns: &[(f64, f64)]| control_of("disk".to_owned(), turns.to_vec()).is_suspect;
        assert!(suspect(&[(2.0, 90.0), (3.0, 2000.0), (2.0, 95.0)]));
        assert!(!suspect(&[(90.0, 2700.0), (91.0, 90.0), (88.0, 92.0)]));
        assert!(!suspect(&[(90.0, 100.0)]));
    }

    /// Of 100 flushes that took 100 us, what disks counted, beside a control.
    fn measured(counted: Option<(u64, u64)>, control: Option<(f64, bool)>) -> Measured {
        let turns = |counted| Turns {
            medians_us: vec![100.0; 3],
            flushes: 100,
            counted,
        };
        Measured {
            kernel: turns(counted.map(|both| both.0)),
            library: turns(counted.map(|both| both.1)),
            control: control
                .map(|(us, is_given)| (control_of("c".to_owned(), vec![(100.0, us); 3]), is_given)),
            disks: Some("sda".to_owned()),
        }
    }

    fn trust(below: &Below, measured: &Measured) -> Trust {
        judge(below, measured).0
    }

    #[test]
    fn counters_decide_and_without_them_the_control() {
        let below = Below::default();
        let with = |counted, control| trust(&below, &measured(counted, control));
        assert_eq!(with(Some((100, 100)), None), Trust::Arrives);
        // A slow file system beside it makes no liar of what reached the disk.
        assert_eq!(with(Some((100, 100)), Some((1e4, false))), Trust::Arrives);
        assert_eq!(with(Some((100, 100)), Some((1e4, true))), Trust::Ignored);
        assert_eq!(with(Some((3, 3)), None), Trust::Ignored);
        assert_eq!(with(None, None), Trust::Unknown);
        assert_eq!(with(None, Some((120.0, false))), Trust::Unknown);
        assert_eq!(with(None, Some((1e4, false))), Trust::Ignored);
    }

    #[test]
    fn a_library_in_between_is_named() {
        let below = Below::default();
        let (trust, says) = judge(&below, &measured(Some((100, 0)), None));
        assert_eq!(trust, Trust::Ignored);
        assert!(says.contains("LD_PRELOAD"), "{says}");
        let mut untold = measured(None, None);
        untold.library.medians_us = vec![0.0; 3];
        assert_eq!(self::trust(&below, &untold), Trust::Ignored);
    }

    #[test]
    fn another_machine_is_not_accused() {
        let below = Below {
            hidden: Some("nfs4 on /m".to_owned()),
            may_be_remote: true,
            ..Below::default()
        };
        assert_eq!(trust(&below, &measured(Some((0, 0)), None)), Trust::Unknown);
        let fuse = Below {
            may_be_remote: false,
            ..below
        };
        assert_eq!(trust(&fuse, &measured(Some((0, 0)), None)), Trust::Ignored);
    }

    #[test]
    fn memory_and_settings_decide_alone() {
        let memory = Below {
            memory: Some("zram0".to_owned()),
            ..Below::default()
        };
        assert_eq!(
            trust(&memory, &measured(Some((100, 100)), None)),
            Trust::Memory
        );
        let set = Below {
            set_to_ignore: Some("nobarrier".to_owned()),
            ..Below::default()
        };
        assert_eq!(
            trust(&set, &measured(Some((100, 100)), None)),
            Trust::Ignored
        );
    }
}
