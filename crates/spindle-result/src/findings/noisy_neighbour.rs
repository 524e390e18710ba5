//! Something else used the machine or its device meanwhile.

use super::super::{Neighbour, PageCache, SystemFigure};
use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};

/// Other programs are told of from here on, percent of all processors.
pub(crate) const PROGRAMS_MIN_PERCENT: f64 = 10.0;
/// Other guests of the host are told of from here on, percent of all processors.
pub(crate) const STEAL_MIN_PERCENT: f64 = 5.0;

/// Bytes read from the device beyond those that the database read past the page cache: no layout reads more than it is
/// asked for.
const FOREIGN_READS_MIN: f64 = 0.5;
const FOREIGN_MIB_PER_S_MIN: f64 = 10.0;
/// A program on the same device counts from here on, of the bytes that the database itself moves.
const NEIGHBOUR_MIN: f64 = 0.10;
/// What is not spent on processors, of a transaction's time: below that no device matters.
const WAITS_MIN: f64 = 0.10;

pub(super) const KIND: FindingKind = FindingKind {
    name: "noisy neighbour",
    text: "Other programs used the machine during the measurement. Do not trust small differences.",
    words: None,
    remedy: "Stop them for the run, or use an idle machine; more rounds reduce their effect.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
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
    evidence.extend(on_device(facts).map(|neighbour| format!("{neighbour} on the same device")));
    (!evidence.is_empty()).then(|| Sighting {
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

/// The program that used the device beside the database, where that was enough to be felt.
pub(super) fn on_device<'a>(facts: &CaseFacts<'a>) -> Option<&'a Neighbour> {
    if facts.share_off_processors()? < WAITS_MIN {
        return None;
    }
    let trials = &facts.case.trials;
    let mut own_bytes = 0.0;
    for trial in trials {
        let own = trial.audit.tool.or(trial.audit.device)?;
        own_bytes += (own.read_bytes + own.write_bytes) as f64;
    }
    let own_bytes_per_s = own_bytes / facts.measured_s();
    let neighbours = trials
        .iter()
        .filter_map(|trial| trial.conditions.neighbour.as_ref());
    let felt: Vec<&Neighbour> = neighbours
        .filter(|neighbour| neighbour.bytes_per_s() >= NEIGHBOUR_MIN * own_bytes_per_s)
        .collect();
    let is_often = 2 * felt.len() >= trials.len();
    felt.into_iter()
        .max_by(|one, other| one.bytes_per_s().total_cmp(&other.bytes_per_s()))
        .filter(|_| is_often)
}

#[cfg(test)]
mod tests {
    use super::super::super::IoCounts;
    use super::super::stage::Stage;
    use super::*;

    /// Half of the time is waits; another program writes so much while the database writes 4 MiB in 5 s.
    fn beside(written_bytes_per_s: f64, cpu_percent: f64) -> Stage {
        Stage::new()
            .parts(&[
                ("log file sync", 100.0 * (100.0 - cpu_percent)),
                ("user CPU", 100.0 * cpu_percent),
            ])
            .trials(|trial| {
                trial.audit.tool = Some(IoCounts {
                    write_bytes: 4 << 20,
                    ..IoCounts::default()
                });
                trial.conditions.neighbour = Some(Neighbour {
                    program: "fio".to_owned(),
                    process_id: 4711,
                    read_bytes_per_s: 0.0,
                    written_bytes_per_s,
                });
            })
    }

    #[test]
    fn a_program_on_the_same_device_is_named() {
        let seen = beside(262_144.0, 50.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "fio (process 4711) wrote 256 KiB and read 0 bytes per second on the same device"
        );
        assert_eq!(beside(65_536.0, 50.0).look(&KIND), None);
        assert_eq!(beside(262_144.0, 95.0).look(&KIND), None);
        let mut once = beside(262_144.0, 50.0).trials(|_| {});
        once.case.trials[0].conditions.neighbour = None;
        assert!(once.look(&KIND).is_some());
        once.case.trials[1].conditions.neighbour = None;
        assert_eq!(once.look(&KIND), None);
    }

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
