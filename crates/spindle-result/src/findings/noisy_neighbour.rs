//! Something else used the machine or its device meanwhile.

use super::super::{PageCache, SystemFigure};
use super::case_facts::CaseFacts;
use super::kind::{Kind, Seen};

/// Other programs are told of from here on, percent of all processors.
pub(crate) const PROGRAMS_MIN_PERCENT: f64 = 10.0;
/// Other guests of the host are told of from here on, percent of all processors.
pub(crate) const STEAL_MIN_PERCENT: f64 = 5.0;

/// Bytes read from the device beyond those that the database read past the page cache: no layout reads more than it is
/// asked for.
const FOREIGN_READS_MIN: f64 = 0.5;
const FOREIGN_MIB_PER_S_MIN: f64 = 10.0;

pub(super) const KIND: Kind = Kind {
    name: "noisy neighbour",
    text: "Other programs used the machine during the measurement. Do not trust small differences.",
    words: None,
    remedy: "Stop them for the run, or use an idle machine; more rounds reduce their effect.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Seen> {
    let mut evidence = Vec::new();
    let programs_percent = facts
        .mean(&SystemFigure::OtherProgramsCpuPercent)
        .unwrap_or(0.0);
    if programs_percent >= PROGRAMS_MIN_PERCENT {
        evidence.push(format!(
            "other programs took {programs_percent:.0} % of the processors"
        ));
    }
    let steal_percent = facts.mean(&SystemFigure::CpuStealPercent).unwrap_or(0.0);
    if steal_percent >= STEAL_MIN_PERCENT {
        evidence.push(format!(
            "the hypervisor took {steal_percent:.0} % of the processors for other guests"
        ));
    }
    let foreign = foreign_reads(facts);
    evidence.extend(foreign.map(|mib_per_s| {
        format!("others read {mib_per_s:.0} MiB per second from the same device")
    }));
    (!evidence.is_empty()).then(|| Seen {
        // What it did to the figures is not known; that it was there comes before all that they seem to show.
        weight: 1.0,
        evidence: evidence.join("; "),
    })
}

/// MiB per second that were read from the device and not by the database; `None` when they are few.
fn foreign_reads(facts: &CaseFacts<'_>) -> Option<f64> {
    if facts.layout.caching != PageCache::Direct {
        return None;
    }
    let (mut own, mut all) = (0, 0);
    for trial in &facts.case.trials {
        own += trial.audit.tool?.read_bytes;
        all += trial.audit.device?.read_bytes;
    }
    let foreign = all.saturating_sub(own) as f64;
    let mib_per_s = foreign / f64::from(1 << 20) / facts.measured_s();
    let is_seen = foreign >= FOREIGN_READS_MIN * own as f64 && mib_per_s >= FOREIGN_MIB_PER_S_MIN;
    is_seen.then_some(mib_per_s)
}

#[cfg(test)]
mod tests {
    use super::super::super::IoCounts;
    use super::super::stage::Stage;
    use super::*;

    #[test]
    fn programs_and_other_guests_show() {
        let seen = Stage::new()
            .system(&[
                ("other_programs_cpu_percent", 12.0),
                ("cpu_steal_percent", 7.0),
            ])
            .look(&KIND)
            .expect("seen");
        assert_eq!(
            seen.evidence,
            "other programs took 12 % of the processors; the hypervisor took 7 % of the processors for other guests"
        );
    }

    #[test]
    fn a_little_of_each_does_not() {
        let stage = Stage::new().system(&[
            ("other_programs_cpu_percent", 9.0),
            ("cpu_steal_percent", 4.5),
        ]);
        assert_eq!(stage.look(&KIND), None);
    }

    #[test]
    fn reads_of_others_show_on_a_direct_layout_only() {
        let device = |mib: u64| IoCounts {
            read_bytes: mib << 20,
            ..IoCounts::default()
        };
        let stage = |own_mib, device_mib| {
            Stage::new().trials(|trial| {
                trial.audit.tool = Some(device(own_mib));
                trial.audit.device = Some(device(device_mib));
            })
        };
        // Trials of 5 seconds.
        let seen = stage(100, 200).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "others read 20 MiB per second from the same device"
        );
        assert_eq!(stage(100, 145).look(&KIND), None);
        assert_eq!(stage(10, 55).look(&KIND), None);
        let untold = stage(0, 200).trials(|trial| trial.audit.tool = None);
        assert_eq!(untold.look(&KIND), None);
        let mut read_ahead = stage(100, 200);
        read_ahead.layout.caching = PageCache::Buffered;
        assert_eq!(read_ahead.look(&KIND), None);
    }
}
