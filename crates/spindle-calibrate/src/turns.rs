//! Flushes of a file in turns: how a write is made durable, who is asked for it, how long it takes, and what the disks
//! count meanwhile. Other programs flush as well, and what the disks count is for whomever. So each few flushes are
//! followed by as much time without, and what is counted in that time is others'. Called by `honesty`.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

/// Flushes of a turn, at most and at least; the time after which the least is enough.
const FLUSHES: (u64, u64) = (100, 10);
const TURN_TIME: Duration = Duration::from_millis(100);
/// Flushes between two times without.
const FLUSHES_OF_A_SPELL: u64 = 5;
/// The part of the flushes below which disks did not receive them.
pub(crate) const IGNORED_SHARE: f64 = 0.5;
/// One writer waits for each flush, and others only add to what is counted: a flush for which nothing is counted was
/// ignored. From this part of them on, and at least this many, it is no accident of counting.
const MISSED: (f64, u64) = (0.05, 3);
/// How long a disk that counted nothing may still take to count.
const LATE_COUNT: Duration = Duration::from_micros(500);
/// A flush that is acknowledged this many times sooner, in every turn, cannot have reached the same disk.
pub(crate) const SUSPECT_TIMES: f64 = 3.0;
/// More flushes by others than this part of our own make the counters of the disks uncertain.
const OTHERS_SHARE: f64 = 0.1;
/// Where more than this part of the flushes meet one of another program, those that are ignored now and then may go
/// unseen. At this part, where one in ten is ignored, enough of them are still seen to reach `MISSED`.
const MET_SHARE: f64 = 0.2;
const WRITE_BYTES: u64 = 8 << 10;
const PART_BYTES: u64 = 512 << 10;

/// What was made durable since the start, by the counters of the disks; `None` when they do not tell.
pub(crate) type Count<'a> = &'a dyn Fn() -> Option<u64>;

/// What the turns of one way of flushing came to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Turns {
    pub(crate) medians_us: Vec<f64>,
    pub(crate) flushes: u64,
    /// What the disks counted meanwhile, for whomever.
    pub(crate) counted: Option<u64>,
    /// Flushes for which they counted nothing, not even a flush of another program.
    pub(crate) missed: u64,
    /// What they counted in the times without, which together are as long.
    pub(crate) of_others: u64,
    /// Of the times without, each as long as a flush: in how many they counted something.
    pub(crate) met_others: u64,
    /// Of each spell: what was counted more than in the time without, over its flushes.
    pub(crate) own_shares: Vec<f64>,
}

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncBy {
    Fdatasync,
    Fsync,
    /// The file is open so that each write is.
    Dsync,
}

impl SyncBy {
    pub(crate) const ALL: [SyncBy; 3] = [SyncBy::Fdatasync, SyncBy::Fsync, SyncBy::Dsync];

    pub(crate) fn name(self) -> &'static str {
        match self {
            SyncBy::Fdatasync => "fdatasync",
            SyncBy::Fsync => "fsync",
            SyncBy::Dsync => "O_DSYNC",
        }
    }

    /// What a file is to be opened with.
    fn flags(self) -> OFlags {
        match self {
            SyncBy::Fdatasync | SyncBy::Fsync => OFlags::empty(),
            SyncBy::Dsync => OFlags::DSYNC,
        }
    }
}

/// Who is asked: `rustix` calls the kernel itself, whatever library was loaded before the C library, which the standard
/// library calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Kernel,
    Library,
}

impl Caller {
    fn open(self, file: &File, way: SyncBy) -> std::io::Result<File> {
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
    fn flush(self, file: &File, way: SyncBy) -> std::io::Result<()> {
        match (self, way) {
            (_, SyncBy::Dsync) => Ok(()),
            (Caller::Library, SyncBy::Fdatasync) => file.sync_data(),
            (Caller::Library, SyncBy::Fsync) => file.sync_all(),
            (Caller::Kernel, SyncBy::Fdatasync) => Ok(rustix::fs::fdatasync(file)?),
            (Caller::Kernel, SyncBy::Fsync) => Ok(rustix::fs::fsync(file)?),
        }
    }
}

impl Turns {
    /// One turn more: writes through the page cache and makes each write durable. The flush is timed; where there is
    /// none, the write.
    ///
    /// # Errors
    /// A write or a flush failed.
    pub(crate) fn take(
        &mut self,
        file: &File,
        way: SyncBy,
        caller: Caller,
        count: Count<'_>,
    ) -> std::io::Result<()> {
        let file = caller.open(file, way)?;
        let mut block = vec![0; WRITE_BYTES as usize];
        let mut times_ns = Vec::new();
        let mut flushing = Duration::ZERO;
        let mut done = 0;
        while done < FLUSHES.1 || (done < FLUSHES.0 && flushing < TURN_TIME) {
            let (before, began) = (count(), Instant::now());
            let mut so_far = before;
            for _ in 0..FLUSHES_OF_A_SPELL {
                block[..8].copy_from_slice(&(times_ns.len() as u64 + 1).to_le_bytes());
                let writing = Instant::now();
                file.write_all_at(&block, done * WRITE_BYTES % PART_BYTES)?;
                let flushing = Instant::now();
                caller.flush(&file, way)?;
                let asked = if way == SyncBy::Dsync {
                    writing
                } else {
                    flushing
                };
                times_ns.push(asked.elapsed().as_nanos() as u64);
                done += 1;
                let now = count_after(so_far, count);
                self.missed += u64::from(now.is_some() && now == so_far);
                so_far = now;
            }
            let lasted = began.elapsed();
            flushing += lasted;
            self.count_spell(before.zip(so_far), lasted, count);
        }
        times_ns.sort_unstable();
        self.medians_us
            .push(times_ns[times_ns.len() / 2] as f64 / 1000.0);
        self.flushes += done;
        Ok(())
    }

    /// What the disks counted from before a spell to its end, and count in as much time without.
    fn count_spell(&mut self, counted: Option<(u64, u64)>, lasted: Duration, count: Count<'_>) {
        let without = |after: u64| {
            let (mut so_far, mut met) = (after, 0);
            for _ in 0..FLUSHES_OF_A_SPELL {
                std::thread::sleep(lasted / FLUSHES_OF_A_SPELL as u32);
                let now = count()?;
                met += u64::from(now != so_far);
                so_far = now;
            }
            Some((so_far.saturating_sub(after), met))
        };
        let spell = counted.and_then(|(before, after)| {
            let with = after.saturating_sub(before);
            let (others, met) = without(after)?;
            Some((with, others, met))
        });
        let Some((with, others, met)) = spell else {
            self.counted = None;
            return;
        };
        self.met_others += met;
        self.counted = self.counted.map(|counted| counted + with);
        self.of_others += others;
        let own = (with as f64 - others as f64) / FLUSHES_OF_A_SPELL as f64;
        self.own_shares.push(own);
    }

    /// What the disks counted over the flushes, others' included; `None` without counters.
    pub(crate) fn share(&self) -> Option<f64> {
        Some(self.counted? as f64 / self.flushes.max(1) as f64)
    }

    /// The same without what others flushed: the median of the spells, as others come and go.
    pub(crate) fn own_share(&self) -> Option<f64> {
        self.counted?;
        let mut shares = self.own_shares.clone();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    }

    /// Whether others flushed so much that the counters may hide that these flushes were ignored.
    pub(crate) fn is_uncertain(&self) -> bool {
        let flushes = self.flushes.max(1) as f64;
        self.counted.is_some() && self.of_others as f64 / flushes > OTHERS_SHARE
    }

    /// Whether so many flushes meet those of others that some may be ignored unseen.
    pub(crate) fn is_crowded(&self) -> bool {
        let flushes = self.flushes.max(1) as f64;
        self.counted.is_some() && self.met_others as f64 / flushes > MET_SHARE
    }

    /// Whether some of the flushes are ignored, now and then.
    pub(crate) fn has_missed(&self) -> bool {
        let (part, least) = MISSED;
        self.counted.is_some()
            && self.missed >= least
            && self.missed as f64 >= self.flushes as f64 * part
    }

    /// Whether flushes are lost that arrive when the kernel itself is asked.
    pub(crate) fn is_ignored_beside(&self, by_kernel: &Turns) -> bool {
        match (self.share(), by_kernel.own_share()) {
            (Some(_), Some(_)) if self.has_missed() && !by_kernel.has_missed() => true,
            (Some(own), Some(kernel)) => own < IGNORED_SHARE && kernel >= IGNORED_SHARE,
            _ => {
                let turns = self.medians_us.iter().copied();
                let turns: Vec<_> = turns.zip(by_kernel.medians_us.iter().copied()).collect();
                times_sooner(&turns) >= SUSPECT_TIMES
            }
        }
    }
}

/// What is counted after a flush; where that is no more than before, a moment later.
fn count_after(before: Option<u64>, count: Count<'_>) -> Option<u64> {
    let now = count();
    if now.is_some() && now == before {
        std::thread::sleep(LATE_COUNT);
        return count();
    }
    now
}

/// The fastest of the second over the slowest of the first.
pub(crate) fn times_sooner(turns: &[(f64, f64)]) -> f64 {
    let slowest_us = turns.iter().map(|turn| turn.0).fold(0.0, f64::max);
    let fastest_us = turns
        .iter()
        .map(|turn| turn.1)
        .fold(f64::INFINITY, f64::min);
    // A flush that does nothing takes less than the clock tells.
    fastest_us / slowest_us.max(0.1)
}
