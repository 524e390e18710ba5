//! Do flushes arrive, in each way that there is? Three witnesses: what the kernel shows of the layers beneath, the
//! counters of the disks, and the time that a flush takes beside one on the storage beneath. Nothing can be faster than
//! the device it writes to. Flushes are timed in turns, and the slowest turn of the one is compared with the fastest of
//! the other. So a load that comes and goes does not falsify the answer. The kernel is asked directly, and through the
//! C library, where a preloaded library may stand in between.

use std::fs::File;

use spindle_system::SystemTree;

use crate::below::Below;
use crate::error::CalibrateError;
use crate::figures::Trust;
use crate::result::{Control, Honesty};
use crate::turns::{Caller, IGNORED_SHARE, SUSPECT_TIMES, SyncBy, Turns, times_sooner};
use crate::witness::Witness;

/// Turns of each.
const TURNS: usize = 3;
/// The part of the flushes that disks must have counted to have received them.
const ARRIVED_SHARE: f64 = 0.9;

/// What is beside a target.
pub(crate) struct Beside<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: String,
    /// Named by a person, who knows that it is the disk beneath.
    pub(crate) is_given: bool,
}

/// All that was measured.
#[derive(Debug, Default)]
struct Measured {
    /// In each way, by calls of the kernel.
    kernel: Vec<(SyncBy, Turns)>,
    /// The same through the C library.
    library: Vec<(SyncBy, Turns)>,
    /// What the library was seen to ignore.
    ignored_by_library: Option<SyncBy>,
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
    let all = || SyncBy::ALL.map(|way| (way, none())).to_vec();
    let mut measured = Measured {
        kernel: all(),
        library: all(),
        ..Measured::default()
    };
    let mut others_us = Vec::new();
    for _ in 0..TURNS {
        for (way, turns) in &mut measured.kernel {
            turns.take(file, *way, Caller::Kernel, &count)?;
        }
        for (way, turns) in &mut measured.library {
            turns.take(file, *way, Caller::Library, &count)?;
        }
        if let Some(beside) = beside {
            let mut other = Turns::default();
            other.take(beside.file, SyncBy::Fdatasync, Caller::Kernel, &|| None)?;
            others_us.extend(other.medians_us);
        }
    }
    for ((way, turns), (_, kernel)) in measured.library.iter().zip(&measured.kernel) {
        // What the kernel itself does not do in this way is no fault of the library's.
        let mut by_kernel = none();
        for _ in 0..TURNS {
            if turns.is_ignored_beside(kernel) {
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
            .fdatasync()
            .medians_us
            .iter()
            .copied()
            .zip(others_us)
            .collect();
        (control_of(beside.path.clone(), turns_us), beside.is_given)
    });
    let (trust, because) = judge(below, &measured);
    let fdatasync = measured.fdatasync();
    let (flushes, counted_by_disks) = (fdatasync.flushes, fdatasync.counted);
    Ok(Honesty {
        target: target.to_owned(),
        trust,
        because,
        beneath: below.layers.clone(),
        flushes,
        counted_by_disks,
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
        flushes: Vec::new(),
    }
}

/// What the layers alone decide.
fn of_layers(below: &Below) -> Option<(Trust, String)> {
    if let Some(what) = &below.memory {
        let says = format!("it is memory ({what}): nothing of it outlives a power cut");
        return Some((Trust::Memory, says));
    }
    if let Some(part) = &below.memory_part {
        let says = format!(
            "a part of it is memory ({part}), which is lost when the power goes: only what a mirror holds besides outlives \
             that"
        );
        return Some((Trust::Memory, says));
    }
    let set = below.set_to_ignore.as_ref()?;
    Some((
        Trust::Ignored,
        format!("{set}: do not trust it with commits"),
    ))
}

impl Measured {
    /// The way that databases use most, by calls of the kernel.
    fn fdatasync(&self) -> &Turns {
        let mut kernel = self.kernel.iter();
        let found = kernel.find(|(way, _)| *way == SyncBy::Fdatasync);
        &found.expect("each way is tried").1
    }

    /// Whose counters they are.
    fn disks(&self) -> &str {
        let all = "the disks of this machine together";
        self.disks.as_deref().unwrap_or(all)
    }

    /// What the disks did not count though the kernel was asked, in words; `None` where nothing is missing.
    fn lost(&self) -> Option<String> {
        let disks = self.disks();
        let is_lost = |turns: &Turns| turns.share().is_some_and(|share| share < IGNORED_SHARE);
        let (lost, rest): (Vec<_>, Vec<_>) =
            self.kernel.iter().partition(|(_, turns)| is_lost(turns));
        let says = |turns: &Turns| {
            let counted = turns.counted.unwrap_or(0);
            format!("{counted} for {} flushes", turns.flushes)
        };
        match (lost.first(), rest.first()) {
            (Some((_, turns)), None) => Some(format!("{disks} counted {}", says(turns))),
            (Some((way, turns)), Some((other, others))) => Some(format!(
                "{disks} counted {} by {}, and {} by {}",
                says(turns),
                way.name(),
                says(others),
                other.name()
            )),
            (None, _) => {
                let (way, turns) = self.kernel.iter().find(|(_, turns)| turns.has_missed())?;
                let (missed, flushes, way) = (turns.missed, turns.flushes, way.name());
                Some(format!(
                    "{disks} counted nothing for {missed} of {flushes} flushes by {way}"
                ))
            }
        }
    }

    /// What other programs flushed, where these flushes may be hidden among it.
    fn hidden_by(&self) -> Option<u64> {
        let all = self.kernel.iter().chain(&self.library);
        let mut uncertain = all
            .map(|(_, turns)| turns)
            .filter(|turns| turns.is_uncertain());
        let others = uncertain.clone().map(|turns| turns.of_others).max()?;
        // Most arrive, perhaps: those that do not are seen only where others leave them alone.
        if uncertain.clone().any(Turns::is_crowded) {
            return Some(others);
        }
        let is_own = |turns: &Turns, least| turns.own_share().is_some_and(|share| share >= least);
        // What is done in one way may be ignored in another.
        let is_told = is_own(self.fdatasync(), ARRIVED_SHARE)
            && uncertain.all(|turns| is_own(turns, IGNORED_SHARE));
        (!is_told).then_some(others)
    }
}

fn not_commits(says: &str) -> (Trust, String) {
    (
        Trust::Ignored,
        format!("{says}: do not trust it with commits"),
    )
}

/// Flushes that the disks did not count.
fn of_uncounted(below: &Below, says: &str) -> (Trust, String) {
    match (&below.hidden, below.may_be_remote) {
        (Some(hidden), true) => (
            Trust::Unknown,
            format!(
                "{says}: {hidden} may be kept by another machine, which cannot be seen from here"
            ),
        ),
        (Some(hidden), false) => not_commits(&format!(
            "{says}: {hidden} ignores them, or keeps its files on another machine"
        )),
        (None, _) => not_commits(says),
    }
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
    if let Some((control, true)) = suspect {
        let says = format!("it {}; if that is the disk beneath it", control.says);
        return (
            Trust::Ignored,
            format!("{says}, do not trust it with commits"),
        );
    }
    if let Some(says) = measured.lost() {
        return of_uncounted(below, &says);
    }
    let (disks, fdatasync) = (measured.disks(), measured.fdatasync());
    let (flushes, counted) = (fdatasync.flushes, fdatasync.counted.unwrap_or(0));
    if let Some(way) = measured.ignored_by_library {
        return not_commits(&format!(
            "the kernel carries flushes out, but the C library does not ask it to ({}): a preloaded library (LD_PRELOAD, \
             /etc/ld.so.preload) ignores them",
            way.name()
        ));
    }
    if let Some(others) = measured.hidden_by() {
        let says = "whether all of these flushes are among them cannot be told: try again when the disk is less busy";
        return (
            Trust::Unknown,
            format!(
                "{disks} counted {counted} for {flushes} flushes, and {others} of other programs in as much time; {says}"
            ),
        );
    }
    let has_arrived = |turns: &Turns| turns.share().is_some_and(|share| share >= ARRIVED_SHARE);
    if measured.kernel.iter().all(|(_, turns)| has_arrived(turns)) {
        let says = format!("{disks} counted {counted} for {flushes} flushes");
        let further = "what a disk or its host does with them cannot be seen from here";
        return (Trust::Arrives, format!("{says}; {further}"));
    }
    match (suspect, &measured.control) {
        (Some((control, _)), _) => not_commits(&format!("it {}, beneath it", control.says)),
        (None, Some(_)) => (
            Trust::Unknown,
            "the counters of its disks do not tell, and it is not clearly faster than what lies beneath".to_owned(),
        ),
        (None, None) => (
            Trust::Unknown,
            "the counters of its disks do not tell, and there is nothing to compare it with: name a directory on the disk \
             beneath by --control"
                .to_owned(),
        ),
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
            own_shares: counted
                .map(|counted| counted as f64 / 100.0)
                .into_iter()
                .collect(),
            ..Turns::default()
        }
    }

    fn by_kernel(turns: Turns) -> Vec<(SyncBy, Turns)> {
        SyncBy::ALL.map(|way| (way, turns.clone())).to_vec()
    }

    /// What disks counted of them, beside a control.
    fn measured(counted: Option<u64>, control: Option<(f64, bool)>) -> Measured {
        Measured {
            kernel: by_kernel(turns(counted)),
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
        let says = |control| judge(&below, &measured(None, control)).1;
        assert!(says(Some((120.0, false))).contains("not clearly faster"));
        assert!(says(None).contains("nothing to compare it with"));
        assert_eq!(with(None, Some((1e4, false))), Trust::Ignored);
    }

    /// Others flushed as well: what was counted in all, of it in the times without, and one's own share.
    fn beside_others(counted: u64, of_others: u64, own_share: f64) -> Turns {
        Turns {
            of_others,
            own_shares: vec![0.0, own_share, 40.0],
            ..turns(Some(counted))
        }
    }

    #[test]
    fn one_way_that_the_kernel_ignores_is_named() {
        let below = Below::default();
        for (index, ignored) in SyncBy::ALL.into_iter().enumerate() {
            let mut found = measured(Some(100), None);
            found.kernel[index].1 = turns(Some(4));
            let (trust, says) = judge(&below, &found);
            assert_eq!(trust, Trust::Ignored, "{says}");
            let part = format!("counted 4 for 100 flushes by {}", ignored.name());
            assert!(says.contains(&part), "{says}");
            // Hidden among what others flush, it is not said to arrive.
            found.kernel[index].1 = beside_others(1203, 1180, 0.0);
            assert_eq!(judge(&below, &found).0, Trust::Unknown);
        }
    }

    #[test]
    fn flushes_that_are_ignored_now_and_then_are_named() {
        let below = Below::default();
        let with = |flushes, missed| {
            let mut found = measured(None, None);
            found.kernel = by_kernel(Turns {
                flushes,
                missed,
                // Two are counted for each that arrives.
                counted: Some(2 * (flushes - missed)),
                ..turns(None)
            });
            judge(&below, &found)
        };
        for (flushes, missed) in [(300, 150), (300, 100), (300, 30), (30, 3)] {
            let (trust, says) = with(flushes, missed);
            assert_eq!(trust, Trust::Ignored, "{missed} of {flushes}");
            let part = format!("nothing for {missed} of {flushes} flushes");
            assert!(says.contains(&part), "{says}");
        }
        for (flushes, missed) in [(300, 0), (300, 4), (30, 2)] {
            assert_eq!(with(flushes, missed).0, Trust::Arrives, "{missed}");
        }
    }

    #[test]
    fn what_others_flush_counts_for_nobody_else() {
        let below = Below::default();
        let mut found = measured(None, Some((1e4, false)));
        found.kernel = by_kernel(beside_others(1203, 1180, 0.0));
        let (trust, says) = judge(&below, &found);
        assert_eq!(trust, Trust::Unknown);
        assert!(says.contains("1180 of other programs"), "{says}");
        found.kernel = by_kernel(beside_others(300, 200, 1.0));
        assert_eq!(judge(&below, &found).0, Trust::Arrives);
        // A library that ignores them hides behind others as well.
        found.library = vec![(SyncBy::Fsync, beside_others(300, 310, 0.0))];
        assert_eq!(judge(&below, &found).0, Trust::Unknown);
        found.library = vec![(SyncBy::Fsync, beside_others(300, 200, 1.0))];
        assert_eq!(judge(&below, &found).0, Trust::Arrives);
        // Most are counted, but one that is ignored now and then would be hidden.
        for (met_others, trust) in [(90, Trust::Unknown), (10, Trust::Arrives)] {
            found.kernel = by_kernel(Turns {
                met_others,
                ..beside_others(300, 200, 1.0)
            });
            assert_eq!(judge(&below, &found).0, trust, "{met_others}");
        }
        // Fewer than were asked for, others' among them: none of these can be hidden.
        found.kernel = by_kernel(beside_others(30, 30, 0.0));
        assert_eq!(judge(&below, &found).0, Trust::Ignored);
    }

    #[test]
    fn a_library_in_between_is_named() {
        let below = Below::default();
        let mut found = measured(Some(100), None);
        found.ignored_by_library = Some(SyncBy::Fsync);
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
        let part = Below {
            memory_part: Some("tmpfs on /m".to_owned()),
            ..Below::default()
        };
        let (trust_of_part, says) = judge(&part, &measured(Some(100), None));
        assert_eq!(trust_of_part, Trust::Memory);
        assert!(
            says.contains("a part of it is memory (tmpfs on /m)"),
            "{says}"
        );
        let set = Below {
            set_to_ignore: Some("nobarrier".to_owned()),
            ..Below::default()
        };
        assert_eq!(trust(&set, &measured(Some(100), None)), Trust::Ignored);
    }
}
