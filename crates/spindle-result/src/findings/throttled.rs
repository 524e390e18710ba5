//! The machine could do more than it is allowed to: a control group's limit, or a delay, holds processors or I/O back.

use super::case_facts::CaseFacts;
use super::{Kind, Seen};
use crate::{OracleEvent, SystemFigure};

/// Of the measured time, all processors together.
const CPU_MIN_PERCENT: f64 = 5.0;
const READ: OracleEvent = OracleEvent::DbFileSequentialRead;
/// A read that takes the session this many times as long as the device was held up before it got there.
const TIMES_MIN: f64 = 5.0;
/// The same where the experiment itself asks for a limit or a delay.
const TIMES_MIN_EMULATED: f64 = 2.0;
/// And so long, in microseconds: shorter ones are scheduling.
const READ_MIN_US: f64 = 1_000.0;
/// A busy device has its own queue.
const UTILISATION_MAX_PERCENT: f64 = 60.0;
/// Share of a transaction's time.
const SHARE_MIN: f64 = 0.20;
const READS_MIN: u64 = 100;

pub(super) const KIND: Kind = Kind {
    name: "throttled",
    text: "A limit or a delay holds the database back, not its device or its processors.",
    words: None,
    remedy: "Look for a limit on processors or I/O of this control group, those above it (cpu.max, io.max, blkio.throttle), the \
             container or the virtual machine; keep it only if your own hardware will have it, too.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Seen> {
    processors(facts).or_else(|| reads(facts))
}

/// A limit on processor time was reached.
pub(super) fn processors(facts: &CaseFacts<'_>) -> Option<Seen> {
    let percent = facts.mean(&SystemFigure::CpuThrottledPercent)?;
    (percent >= CPU_MIN_PERCENT).then(|| Seen {
        weight: (percent / 100.0).min(1.0),
        evidence: format!(
            "a limit on processor time kept the database from running for {percent:.0} % of the time, all processors together"
        ),
    })
}

/// Reads that take the session much longer than the device, which has nothing to do meanwhile.
fn reads(facts: &CaseFacts<'_>) -> Option<Seen> {
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
        && session_us >= READ_MIN_US.max(times_min * device_us)
        && utilisation_percent <= UTILISATION_MAX_PERCENT;
    is_seen.then(|| {
        let mut evidence = format!(
            "a single-block read takes the session {:.1} ms and the device {:.2} ms, which is busy {utilisation_percent:.0} % \
             of the time",
            session_us / 1e3,
            device_us / 1e3
        );
        for emulated in &facts.layout.emulated {
            evidence += &format!("; the experiment asks for it: {emulated}");
        }
        Seen {
            weight: share,
            evidence,
        }
    })
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
        assert_eq!(stage(8_000.0, 2_000.0, 12.0).look(&KIND), None);
        assert_eq!(stage(8_000.0, 100.0, 70.0).look(&KIND), None);
        let mut emulated = stage(8_000.0, 2_000.0, 12.0);
        emulated.layout.emulated = vec!["delayed by Spindle (5000 us a read)".to_owned()];
        assert!(emulated.look(&KIND).is_some());
        // Scheduling: quick in both eyes.
        assert_eq!(stage(900.0, 100.0, 12.0).look(&KIND), None);
    }

    #[test]
    fn processors_that_were_held_back_show_it() {
        let stage = |percent| Stage::new().system(&[("cpu_throttled_percent", percent)]);
        let evidence = stage(40.0).look(&KIND).expect("seen").evidence;
        assert!(evidence.starts_with("a limit on processor time"));
        assert_eq!(stage(4.0).look(&KIND), None);
    }
}
