//! Do flushes arrive? Three witnesses: what the kernel shows of the layers beneath, the counters of the disks, and the
//! time that a flush takes beside one on the storage beneath. Nothing can be faster than the device it writes to.
//! Flushes are timed in turns, and the slowest turn of the one is compared with the fastest of the other, so that a
//! load that comes and goes makes no liar of anybody. The kernel is asked directly, and through the C library, where a
//! preloaded library may stand in between.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
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
/// A flush that is acknowledged this many times sooner, in every turn, cannot have reached the same disk.
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
#[derive(Debug, Default, Clone)]
struct Turns {
    medians_us: Vec<f64>,
    flushes: u64,
    counted: Option<u64>,
}

/// All that was measured.
#[derive(Debug, Default)]
struct Measured {
    /// `fdatasync` by calls of the kernel.
    kernel: Turns,
    /// In each way, through the C library.
    library: Vec<(Way, Turns)>,
    /// What the library was seen to ignore.
    ignored_by_library: Option<Way>,
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
    let none = || Turns {
        counted: count().map(|_| 0),
        ..Turns::default()
    };
    let mut measured = Measured {
        kernel: none(),
        library: Way::ALL.map(|way| (way, none())).to_vec(),
        ..Measured::default()
    };
    let mut others_us = Vec::new();
    for _ in 0..TURNS {
        let fdatasync = Way::Fdatasync;
        measured
            .kernel
            .take(file, fdatasync, Caller::Kernel, &count)?;
        for (way, turns) in &mut measured.library {
            turns.take(file, *way, Caller::Library, &count)?;
        }
        if let Some(beside) = beside {
            let mut other = Turns::default();
            other.take(beside.file, fdatasync, Caller::Kernel, &|| None)?;
            others_us.extend(other.medians_us);
        }
    }
    for (way, turns) in &measured.library {
        // What the kernel itself does not do in this way is no fault of the library's.
        let mut by_kernel = none();
        for _ in 0..TURNS {
            if turns.is_ignored_beside(&measured.kernel) {
                by_kernel.take(file, *way, Caller::Kernel, &count)?;
            }
        }
        if by_kernel.flushes > 0 && turns.is_ignored_beside(&by_kernel) {
            measured.ignored_by_library.get_or_insert(*way);
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

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Fdatasync,
    Fsync,
    /// The file is open so that each write is.
    Dsync,
}

impl Way {
    const ALL: [Way; 3] = [Way::Fdatasync, Way::Fsync, Way::Dsync];

    fn name(self) -> &'static str {
        match self {
            Way::Fdatasync => "fdatasync",
            Way::Fsync => "fsync",
            Way::Dsync => "O_DSYNC",
        }
    }

    /// What a file is to be opened with.
    fn flags(self) -> OFlags {
        match self {
            Way::Fdatasync | Way::Fsync => OFlags::empty(),
            Way::Dsync => OFlags::DSYNC,
        }
    }
}

/// Who is asked: `rustix` calls the kernel itself, whatever library was loaded before the C library, which the standard
/// library calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Kernel,
    Library,
}

impl Caller {
    fn open(self, file: &File, way: Way) -> std::io::Result<File> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match self {
            Caller::Library => OpenOptions::new()
                .write(true)
                .custom_flags(way.flags().bits() as i32)
                .open(path),
            Caller::Kernel => {
                let flags = OFlags::WRONLY | OFlags::CLOEXEC | way.flags();
                Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
            }
        }
    }

    /// Makes what was written to `file` durable.
    fn flush(self, file: &File, way: Way) -> std::io::Result<()> {
        match (self, way) {
            (_, Way::Dsync) => Ok(()),
            (Caller::Library, Way::Fdatasync) => file.sync_data(),
            (Caller::Library, Way::Fsync) => file.sync_all(),
            (Caller::Kernel, Way::Fdatasync) => Ok(rustix::fs::fdatasync(file)?),
            (Caller::Kernel, Way::Fsync) => Ok(rustix::fs::fsync(file)?),
        }
    }
}

impl Turns {
    /// One turn more: writes through the page cache and makes each write durable. The flush is timed; where there is
    /// none, the write.
    fn take(
        &mut self,
        file: &File,
        way: Way,
        caller: Caller,
        count: &dyn Fn() -> Option<u64>,
    ) -> std::io::Result<()> {
        let file = caller.open(file, way)?;
        let (before, began) = (count(), Instant::now());
        let mut block = vec![0; WRITE_BYTES as usize];
        let mut times_ns = Vec::new();
        let mut done = 0;
        while done < FLUSHES.1 || (done < FLUSHES.0 && began.elapsed() < TURN_TIME) {
            block[..8].copy_from_slice(&(began.elapsed().as_nanos() as u64).to_le_bytes());
            let writing = Instant::now();
            file.write_all_at(&block, done * WRITE_BYTES % PART_BYTES)?;
            let flushing = Instant::now();
            caller.flush(&file, way)?;
            let asked = if way == Way::Dsync { writing } else { flushing };
            times_ns.push(asked.elapsed().as_nanos() as u64);
            done += 1;
        }
        times_ns.sort_unstable();
        self.medians_us
            .push(times_ns[times_ns.len() / 2] as f64 / 1000.0);
        self.flushes += done;
        let counted = count()
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before));
        self.counted = self.counted.zip(counted).map(|(all, more)| all + more);
        Ok(())
    }
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
    if let Some(way) = measured.ignored_by_library {
        return not_commits(&format!(
            "the kernel carries flushes out, but the C library does not ask it to ({}): a preloaded library (LD_PRELOAD, \
             /etc/ld.so.preload) ignores them",
            way.name()
        ));
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

    /// Whether flushes are lost that arrive when the kernel itself is asked.
    fn is_ignored_beside(&self, by_kernel: &Turns) -> bool {
        match (self.share(), by_kernel.share()) {
            (Some(own), Some(kernel)) => own < IGNORED_SHARE && kernel >= IGNORED_SHARE,
            _ => {
                let turns = self.medians_us.iter().copied();
                let turns: Vec<_> = turns.zip(by_kernel.medians_us.iter().copied()).collect();
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

    /// 100 flushes that took 100 us.
    fn turns(counted: Option<u64>) -> Turns {
        Turns {
            medians_us: vec![100.0; 3],
            flushes: 100,
            counted,
        }
    }

    /// What disks counted of them, beside a control.
    fn measured(counted: Option<u64>, control: Option<(f64, bool)>) -> Measured {
        Measured {
            kernel: turns(counted),
            control: control
                .map(|(us, is_given)| (control_of("c".to_owned(), vec![(100.0, us); 3]), is_given)),
            disks: Some("sda".to_owned()),
            ..Measured::default()
        }
    }

    fn trust(below: &Below, measured: &Measured) -> Trust {
        judge(below, measured).0
    }

    #[test]
    fn counters_decide_and_without_them_the_control() {
        let below = Below::default();
        let with = |counted, control| trust(&below, &measured(counted, control));
        assert_eq!(with(Some(100), None), Trust::Arrives);
        // A slow file system beside it makes no liar of what reached the disk.
        assert_eq!(with(Some(100), Some((1e4, false))), Trust::Arrives);
        assert_eq!(with(Some(100), Some((1e4, true))), Trust::Ignored);
        assert_eq!(with(Some(3), None), Trust::Ignored);
        assert_eq!(with(None, None), Trust::Unknown);
        assert_eq!(with(None, Some((120.0, false))), Trust::Unknown);
        assert_eq!(with(None, Some((1e4, false))), Trust::Ignored);
    }

    #[test]
    fn a_library_in_between_is_named() {
        let below = Below::default();
        let mut found = measured(Some(100), None);
        found.ignored_by_library = Some(Way::Fsync);
        let (trust, says) = judge(&below, &found);
        assert_eq!(trust, Trust::Ignored);
        assert!(
            says.contains("(fsync)") && says.contains("LD_PRELOAD"),
            "{says}"
        );
    }

    #[test]
    fn what_the_kernel_does_not_do_either_is_no_fault_of_a_library() {
        assert!(turns(Some(0)).is_ignored_beside(&turns(Some(100))));
        assert!(!turns(Some(0)).is_ignored_beside(&turns(Some(0))));
        assert!(!turns(Some(90)).is_ignored_beside(&turns(Some(100))));
        let mut quick = turns(None);
        quick.medians_us = vec![0.0; 3];
        assert!(quick.is_ignored_beside(&turns(None)));
        assert!(!turns(None).is_ignored_beside(&turns(None)));
    }

    #[test]
    fn another_machine_is_not_accused() {
        let below = Below {
            hidden: Some("nfs4 on /m".to_owned()),
            may_be_remote: true,
            ..Below::default()
        };
        assert_eq!(trust(&below, &measured(Some(0), None)), Trust::Unknown);
        let fuse = Below {
            may_be_remote: false,
            ..below
        };
        assert_eq!(trust(&fuse, &measured(Some(0), None)), Trust::Ignored);
    }

    #[test]
    fn memory_and_settings_decide_alone() {
        let memory = Below {
            memory: Some("zram0".to_owned()),
            ..Below::default()
        };
        assert_eq!(trust(&memory, &measured(Some(100), None)), Trust::Memory);
        let set = Below {
            set_to_ignore: Some("nobarrier".to_owned()),
            ..Below::default()
        };
        assert_eq!(trust(&set, &measured(Some(100), None)), Trust::Ignored);
    }
}
