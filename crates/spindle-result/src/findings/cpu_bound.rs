//! The processors are the limit; where no verdict says otherwise, storage hardly matters.

use super::case_facts::CaseFacts;
use super::kind::{AtLoad, FindingKind, Sighting};
use super::{log_writes, throttled};
use crate::{SystemFigure, TimeUse};

/// Of the processor time that other programs left.
const BUSY_MIN_PERCENT: f64 = 85.0;
/// Share of a transaction's time that is on a processor or waiting for one.
const PROCESSOR_MIN: f64 = 0.60;
/// What nothing accounts for is left out of that time: latches whose holders wait for a processor, page faults. Where
/// it is more than this, it may be anything.
const OTHER_MAX: f64 = 0.55;
/// Share of the counted time that the flush at the end takes at the most.
const FLUSH_MAX: f64 = 0.20;

/// Where nothing says otherwise.
const ALIKE: &str = "The processors are the limit, so storage hardly matters here: layouts differ by the processor time \
                     that they cost.";
const AHEAD: &str = "The processors limit the layouts named here: with more processors they could be further ahead of the others.";
const BEHIND: &str = "The processors limit the layouts named here, which are behind: with more processors they could come closer \
                      to the others.";

pub(super) const KIND: FindingKind = FindingKind {
    name: "CPU-bound",
    text: "The processors limit the layouts named here: what they cost in processor time counts more than their storage.",
    words: Some(words),
    remedy: "To compare storage, use fewer clients, more processors, or more data beside the same buffer cache.",
    look,
};

fn words(facts: &CaseFacts<'_>, at_load: AtLoad) -> &'static str {
    match at_load {
        // A better log would help all layouts alike.
        AtLoad::Alike if (log_writes::KIND.look)(facts).is_none() => ALIKE,
        AtLoad::Alike | AtLoad::Open | AtLoad::Between => KIND.text,
        AtLoad::Ahead => AHEAD,
        AtLoad::Behind => BEHIND,
    }
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    // A limit on processor time is not their limit.
    if throttled::processors(facts).is_some() {
        return None;
    }
    // Throughput is over that time, too, in which no processor is the limit.
    if facts.flush_share() > FLUSH_MAX {
        return None;
    }
    let others_percent = facts.mean(&SystemFigure::OtherProgramsCpuPercent)?;
    let left_percent = 100.0 - others_percent;
    let own_percent = facts.busy_percent()? - others_percent;
    let busy_percent = 100.0 * own_percent / left_percent.max(f64::EPSILON);
    let share = facts.share(|part| {
        matches!(
            part,
            TimeUse::UserCpu | TimeUse::SystemCpu | TimeUse::RunQueue
        )
    })?;
    let other = facts.share(|part| *part == TimeUse::Unaccounted)?;
    let is_seen = busy_percent >= BUSY_MIN_PERCENT
        && other <= OTHER_MAX
        && share >= PROCESSOR_MIN * (1.0 - other);
    let unaccounted = match 100.0 * other {
        percent if percent >= 10.0 => format!("; {percent:.0} % is unaccounted for"),
        _ => String::new(),
    };
    is_seen.then(|| Sighting {
        weight: share,
        evidence: format!(
            "the database had {busy_percent:.0} % of the processor time that other programs left, and {:.0} % {} is on a \
             processor or waiting for one{unaccounted}",
            100.0 * share,
            facts.of_time()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(user_percent: f64, others_percent: f64, read_us: f64) -> Stage {
        Stage::new()
            .trials(|trial| {
                let cpu = trial.cpu.as_mut().expect("the sample knows it");
                (cpu.user, cpu.system) = (user_percent, 20.0);
            })
            .parts(&[
                ("user CPU", 20.0),
                ("system CPU", 20.0),
                ("run queue", 60.0 - read_us),
                ("db file sequential read", read_us),
            ])
            .system(&[("other_programs_cpu_percent", others_percent)])
    }

    #[test]
    fn busy_processors_and_transactions_that_wait_for_them_show_it() {
        let seen = stage(75.0, 1.0, 20.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "the database had 95 % of the processor time that other programs left, and 80 % of a transaction's time is on a \
             processor or waiting for one"
        );
    }

    #[test]
    fn time_left_or_waiting_for_storage_or_for_other_programs_does_not() {
        assert_eq!(stage(60.0, 1.0, 20.0).look(&KIND), None);
        assert_eq!(stage(75.0, 1.0, 45.0).look(&KIND), None);
        assert!(stage(80.0, 40.0, 20.0).look(&KIND).is_some());
        assert_eq!(stage(80.0, 90.0, 30.0).look(&KIND), None);
        let limited = stage(75.0, 1.0, 20.0).system(&[("cpu_throttled_percent", 40.0)]);
        assert_eq!(limited.look(&KIND), None);
    }

    #[test]
    fn a_case_whose_time_is_a_flush_is_not_bound_by_processors() {
        let flushed = |flush_s: f64| {
            let stage = stage(75.0, 1.0, 20.0);
            let stage = stage.trials(|trial| trial.audit.flush_at_end_us = Some(flush_s * 1e6));
            stage.look(&KIND)
        };
        assert!(flushed(0.9).is_some());
        assert_eq!(flushed(3.2), None);
    }

    #[test]
    fn that_storage_hardly_matters_is_said_only_where_no_verdict_leaves_it_open() {
        let stage = stage(75.0, 1.0, 20.0);
        let says_so = |at_load| stage.said(&KIND, at_load).contains("hardly matters");
        assert!(says_so(AtLoad::Alike));
        for others in [AtLoad::Open, AtLoad::Between, AtLoad::Ahead, AtLoad::Behind] {
            assert!(!says_so(others), "{others:?}");
        }
        let logging = Stage::new().parts(&[("user CPU", 60.0), ("log file sync", 40.0)]);
        assert_eq!(logging.said(&KIND, AtLoad::Alike), KIND.text);
    }

    #[test]
    fn a_little_that_nothing_accounts_for_does_not_matter_and_much_of_it_may_be_anything() {
        let with_other = |other_us: f64| {
            let mut stage = stage(80.0, 0.0, 5.0);
            let processor = (100.0 - other_us) / 2.0;
            let parts = [("user CPU", processor), ("run queue", processor)];
            stage = stage.parts(&[parts[0], parts[1], ("other", other_us)]);
            stage.look(&KIND)
        };
        let evidence = with_other(45.0).expect("seen").evidence;
        assert!(
            evidence.ends_with("; 45 % is unaccounted for"),
            "{evidence}"
        );
        assert_eq!(with_other(60.0), None);
    }
}
