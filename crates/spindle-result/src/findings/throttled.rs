//! The machine could do more than it is allowed to: a control group's limit, or a delay, holds processors or I/O back.

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use crate::{OracleEvent, SystemFigure, UsedLimit};

/// Of the measured time, all processors together.
const CPU_MIN_PERCENT: f64 = 5.0;
const READ: OracleEvent = OracleEvent::DbFileSequentialRead;
/// A read that takes the session this many times as long as the device was held up before it got there.
const TIMES_MIN: f64 = 5.0;
/// The same where the experiment itself asks for a limit or a delay.
const TIMES_MIN_EMULATED: f64 = 2.0;
/// And at least this long, in microseconds: shorter ones are scheduling.
const WAIT_MIN_US: f64 = 1_000.0;
/// A busy device has its own queue.
const UTILISATION_MAX_PERCENT: f64 = 60.0;
/// Share of a transaction's time.
const SHARE_MIN: f64 = 0.20;
/// The same of waits for writes, where a write takes several requests and a file system's journal.
const WRITES_SHARE_MIN: f64 = 0.40;
/// A write of the log is several requests with gaps between them, and who waits for it needs a processor again. A
/// device that is busy for less than this part of the waits does not cause them.
const IDLE_TIMES_MIN: f64 = 4.0;
/// Where processors are scarce, those who write wait for them.
const PROCESSORS_MAX_PERCENT: f64 = 80.0;
const READS_MIN: u64 = 100;
/// A limit is used up when each trial used at least this share of it: requests do not come at an even pace.
const USED_MIN: f64 = 0.90;

pub(super) const KIND: FindingKind = FindingKind {
    name: "throttled",
    text: "A limit or a delay holds the database back, not its device or its processors.",
    words: None,
    remedy: "Look for a limit on processors or I/O of this control group, those above it (cpu.max, io.max, blkio.throttle), the \
             container or the virtual machine, and for a setting that delays commits; keep it only if your own hardware \
             will have it, too.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    processors(facts)
        .or_else(|| limit(facts))
        .or_else(|| reads(facts))
        .or_else(|| writes(facts))
}

/// A limit on processor time was reached.
pub(super) fn processors(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let percent = facts.mean(&SystemFigure::CpuThrottledPercent)?;
    (percent >= CPU_MIN_PERCENT).then(|| Sighting {
        weight: (percent / 100.0).min(1.0),
        evidence: format!(
            "a limit on processor time kept the database from running for {percent:.0} % of the time, all processors together"
        ),
    })
}

/// A limit that the experiment sets is used up, and sessions wait for something.
fn limit(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let trials = facts.case.trials.iter();
    let used: Option<Vec<UsedLimit>> = trials.map(|trial| trial.audit.nearest_limit).collect();
    let used = used?;
    let least = used
        .iter()
        .min_by(|one, other| one.share().total_cmp(&other.share()))?;
    let share = facts.share_off_processors().unwrap_or(1.0);
    let is_seen = least.share() >= USED_MIN && share >= SHARE_MIN;
    is_seen.then(|| Sighting {
        weight: share,
        evidence: format!(
            "the device did {least} that the experiment allows, in the trial that used least of them"
        ),
    })
}

/// Reads that take the session much longer than the device, which has nothing to do meanwhile.
fn reads(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let count = reads_counted(facts)?;
    let share = facts.share_of_waits(&READ)?;
    let transactions: u64 = facts.case.trials.iter().map(|it| it.transactions).sum();
    let blocked_us = share * facts.own_us()? * transactions as f64;
    let session_us = blocked_us / count.max(1) as f64;
    let device_us = facts.mean(&SystemFigure::DeviceReadTimeUs)?;
    let utilisation_percent = facts.mean(&SystemFigure::DeviceUtilisationPercent)?;
    let times_min = match facts.layout.emulated.is_empty() {
        true => TIMES_MIN,
        false => TIMES_MIN_EMULATED,
    };
    let is_seen = count >= READS_MIN
        && share >= SHARE_MIN
        && session_us >= WAIT_MIN_US.max(times_min * device_us)
        && utilisation_percent <= UTILISATION_MAX_PERCENT;
    is_seen.then(|| Sighting {
        weight: share,
        evidence: format!(
            "a single-block read takes the session {:.1} ms and the device {:.2} ms, which is busy {utilisation_percent:.0} % \
             of the time{}",
            session_us / 1e3,
            device_us / 1e3,
            asked_for(facts)
        ),
    })
}

/// Sessions wait most of the time for writes of the log, or for what those who write must write first, and no device is
/// at work meanwhile.
fn writes(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let share = facts.share(|part| part.is_wait(is_write))?;
    let waited_us = share * facts.own_us()?;
    let utilisation_percent = facts.mean(&SystemFigure::DeviceUtilisationPercent)?;
    let is_seen = share >= WRITES_SHARE_MIN
        && waited_us >= WAIT_MIN_US
        && utilisation_percent * IDLE_TIMES_MIN <= 100.0 * share
        && facts.busy_percent()? <= PROCESSORS_MAX_PERCENT;
    is_seen.then(|| Sighting {
        weight: share,
        evidence: format!(
            "a transaction waits {:.0} % of its time for writes, {:.1} ms, and the busiest device has a request for \
             {utilisation_percent:.0} % of the time{}",
            100.0 * share,
            waited_us / 1e3,
            asked_for(facts)
        ),
    })
}

fn is_write(event: &OracleEvent) -> bool {
    matches!(
        event,
        OracleEvent::LogFileParallelWrite
            | OracleEvent::LogFileSync
            | OracleEvent::LogFileSwitchCheckpoint
            | OracleEvent::FreeBufferWaits
    )
}

/// What the experiment itself asks for, as the end of a sentence.
fn asked_for(facts: &CaseFacts<'_>) -> String {
    let emulated = facts.layout.emulated.iter();
    emulated
        .map(|emulated| format!("; the experiment asks for it: {emulated}"))
        .collect()
}

/// Reads of single blocks: as many as there were waits, or, where those were seen in samples, reads of the database,
/// which not every server tells.
fn reads_counted(facts: &CaseFacts<'_>) -> Option<u64> {
    if facts.case.is_sampled(|wait| *wait.nearest() == READ) {
        let trials = facts.case.trials.iter();
        trials.map(|trial| Some(trial.audit.tool?.reads)).sum()
    } else {
        Some(facts.case.total_wait(|wait| *wait.nearest() == READ).0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;
    use crate::LimitedIo;

    /// Trials of 100 transactions with ten reads each.
    fn stage(read_us: f64, device_us: f64, utilisation_percent: f64) -> Stage {
        Stage::new()
            .trials(|trial| trial.transactions = 100)
            .parts(&[(READ.name(), 10.0 * read_us), ("log file sync", 10_000.0)])
            .waits(READ.name(), 1_000, 1_000.0 * read_us)
            .system(&[
                ("device_read_time_us", device_us),
                ("device_utilisation_percent", utilisation_percent),
            ])
    }

    #[test]
    fn reads_that_an_idle_device_did_quickly_show_it() {
        let mut stage = stage(8_000.0, 100.0, 12.0);
        stage.layout.emulated = vec!["limited by Spindle (500 reads/s)".to_owned()];
        assert_eq!(
            stage.look(&KIND).expect("seen").evidence,
            "a single-block read takes the session 8.0 ms and the device 0.10 ms, which is busy 12 % of the time; the \
             experiment asks for it: limited by Spindle (500 reads/s)"
        );
    }

    #[test]
    fn a_slow_or_busy_device_does_not() {
        assert_eq!(stage(8_000.0, 2_000.0, 20.0).look(&KIND), None);
        assert_eq!(stage(8_000.0, 100.0, 70.0).look(&KIND), None);
        let mut emulated = stage(8_000.0, 2_000.0, 20.0);
        emulated.layout.emulated = vec!["delayed by Spindle (5000 us a read)".to_owned()];
        assert!(emulated.look(&KIND).is_some());
        // Scheduling: quick in both eyes.
        assert_eq!(stage(900.0, 100.0, 24.0).look(&KIND), None);
    }

    /// Of a transaction of 10 ms, while processors are this busy.
    fn writing(sync_percent: f64, utilisation_percent: f64, processors_percent: f64) -> Stage {
        Stage::new()
            .trials(|trial| {
                let cpu = trial.cpu.as_mut().expect("the sample knows it");
                (cpu.user, cpu.system) = (processors_percent, 0.0);
            })
            .parts(&[
                ("WALSync (log file sync)", 100.0 * sync_percent),
                ("user CPU", 100.0 * (100.0 - sync_percent)),
            ])
            .system(&[("device_utilisation_percent", utilisation_percent)])
    }

    #[test]
    fn waits_for_writes_that_no_device_does_show_it() {
        let mut stage = writing(90.0, 4.0, 10.0);
        stage.layout.emulated = vec!["limited by Spindle (120 writes/s)".to_owned()];
        assert_eq!(
            stage.look(&KIND).expect("seen").evidence,
            "a transaction waits 90 % of its time for writes, 9.0 ms, and the busiest device has a request for 4 % of the \
             time; the experiment asks for it: limited by Spindle (120 writes/s)"
        );
    }

    #[test]
    fn a_device_at_work_or_processors_that_are_scarce_do_not() {
        assert_eq!(writing(90.0, 23.0, 10.0).look(&KIND), None);
        assert_eq!(writing(90.0, 4.0, 85.0).look(&KIND), None);
        assert_eq!(writing(35.0, 1.0, 10.0).look(&KIND), None);
        // Scheduling: 0.9 of 1 ms.
        let mut quick = writing(90.0, 4.0, 10.0);
        quick.case.response_time.as_mut().expect("set").mean_us = 1_000.0;
        for part in &mut quick.case.response_time.as_mut().expect("set").parts {
            part.us /= 10.0;
        }
        assert_eq!(quick.look(&KIND), None);
    }

    #[test]
    fn a_limit_that_is_used_up_shows_it_whatever_the_database_calls_its_waits() {
        let limited = |done_per_s, cpu_percent: f64| {
            let stage = Stage::new()
                .trials(|trial| {
                    trial.audit.nearest_limit = Some(UsedLimit {
                        of: LimitedIo::Writes,
                        done_per_s,
                        allowed_per_s: 60,
                    });
                })
                .parts(&[
                    ("other", 100.0 * (100.0 - cpu_percent)),
                    ("user CPU", 100.0 * cpu_percent),
                ]);
            stage.look(&KIND)
        };
        assert_eq!(
            limited(58.2, 12.0).expect("seen").evidence,
            "the device did 58 of 60 writes/s that the experiment allows, in the trial that used least of them"
        );
        assert_eq!(limited(50.0, 12.0), None);
        // The writers are held back, and nobody waits for them.
        assert_eq!(limited(58.2, 85.0), None);
    }

    #[test]
    fn processors_that_were_held_back_show_it() {
        let stage = |percent| Stage::new().system(&[("cpu_throttled_percent", percent)]);
        let evidence = stage(40.0).look(&KIND).expect("seen").evidence;
        assert!(evidence.starts_with("a limit on processor time"));
        assert_eq!(stage(4.0).look(&KIND), None);
    }
}
