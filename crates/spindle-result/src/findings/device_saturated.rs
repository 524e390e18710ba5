//! The device is at its limit: busy all the time, with requests queued, and sessions that are blocked by it. (Time in
//! which they wait for a processor is not storage's in the parts of a response time.) A device that another case of the
//! run got more out of was not at its limit, unless the requests of the two differ: then these are told.

use super::super::{Case, SystemFigure, named};
use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};

/// How busy it is, percent, and how many requests are under way at the least: a device that is always busy with few
/// requests is not under pressure. With many it may rest at moments when processors are busy with something else.
const PRESSED: [(f64, f64); 2] = [(90.0, 4.0), (80.0, 12.0)];
/// Share of a transaction's time that is waiting for storage.
const STORAGE_MIN: f64 = 0.50;
/// Work of one kind that is so near to another's is as much as that.
const AS_MUCH: f64 = 0.95;
/// With more clients a device that still has room does at least this many times as much.
const GROWTH_MIN: f64 = 1.10;

pub(super) const KIND: FindingKind = FindingKind {
    name: "device saturated",
    text: "The device is at its limit: it is busy all the time and requests queue for it.",
    words: None,
    remedy: "Spread the files over more devices or use a faster one; a larger buffer cache asks less of it. More clients only \
             wait longer.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let utilisation_percent = facts.mean(&SystemFigure::DeviceUtilisationPercent)?;
    let queue = facts.mean(&SystemFigure::DeviceQueueRequests)?;
    let storage = facts.storage_share()?;
    let is_pressed = PRESSED
        .iter()
        .any(|(percent, requests)| utilisation_percent >= *percent && queue >= *requests);
    if !is_pressed || storage < STORAGE_MIN {
        return None;
    }
    let per_s = requests_per_s(facts.case)?;
    let mut evidence = format!(
        "the device was busy {utilisation_percent:.0} % of the time with {queue:.1} requests under way, {per_s:.0} per \
         second; waiting for storage is {:.0} % {}",
        100.0 * storage,
        facts.of_time()
    );
    if let Some(lower) = facts.lower_load {
        let before = requests_per_s(lower)?;
        if per_s > GROWTH_MIN * before {
            return None;
        }
        evidence += &format!("; it did {before:.0} per second with {}", lower.id.load);
    }
    if let Some(faster) = most_done(facts, per_s) {
        let (here, there) = (Work::of(facts.case)?, Work::of(faster)?);
        evidence += &format!(
            "; {} did {:.0} per second there, {}",
            named(&faster.id.layout),
            there.requests_per_s(),
            here.unlike(&there)?
        );
    }
    Some(Sighting {
        weight: storage,
        evidence,
    })
}

fn requests_per_s(case: &Case) -> Option<f64> {
    Some(
        case.mean_of(&SystemFigure::DeviceReadsPerS)?
            + case.mean_of(&SystemFigure::DeviceWritesPerS)?,
    )
}

/// The case that did clearly more requests per second on the same devices than `per_s`, and the most.
fn most_done<'a>(facts: &CaseFacts<'a>, per_s: f64) -> Option<&'a Case> {
    let others = facts.same_devices.iter().copied();
    let known = others.filter_map(|other| Some((other, requests_per_s(other)?)));
    let faster = known.filter(|(_, more_per_s)| *more_per_s > GROWTH_MIN * per_s);
    let most_done = faster.max_by(|(_, a), (_, b)| a.total_cmp(b));
    most_done.map(|(other, _)| other)
}

/// What a case asks of its devices in a second. What was not sampled counts as nothing.
struct Work {
    reads: f64,
    writes: f64,
    flushes: f64,
    mib: f64,
}

impl Work {
    fn of(case: &Case) -> Option<Work> {
        let known = |figure| case.mean_of(&figure).unwrap_or(0.0);
        requests_per_s(case)?;
        Some(Work {
            reads: known(SystemFigure::DeviceReadsPerS),
            writes: known(SystemFigure::DeviceWritesPerS),
            flushes: known(SystemFigure::DeviceFlushesPerS),
            mib: known(SystemFigure::DeviceReadMibPerS) + known(SystemFigure::DeviceWrittenMibPerS),
        })
    }

    fn requests_per_s(&self) -> f64 {
        self.reads + self.writes
    }

    /// What this has more of than one that does more requests, in words; `None` where it has nothing more, so that the
    /// device had room.
    fn unlike(&self, other: &Work) -> Option<String> {
        let is_more = |here: f64, there: f64| AS_MUCH * here > there;
        let kib = |work: &Work| 1024.0 * work.mib / work.requests_per_s();
        let flushes = |work: &Work| 100.0 * work.flushes / work.requests_per_s();
        let writes = |work: &Work| 100.0 * work.writes / work.requests_per_s();
        if is_more(self.mib, other.mib) {
            let (here, there) = (kib(self), kib(other));
            return Some(format!("of {there:.0} KiB each instead of {here:.0} KiB"));
        }
        if is_more(self.flushes, other.flushes) {
            let (here, there) = (flushes(self), flushes(other));
            return Some(format!(
                "with {there:.0} flushes for 100 of them instead of {here:.0}"
            ));
        }
        let is_other_mix = is_more(self.writes, other.writes) || is_more(self.reads, other.reads);
        is_other_mix.then(|| {
            let (here, there) = (writes(self), writes(other));
            format!("of which {there:.0} % were writes instead of {here:.0} %")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(utilisation_percent: f64, queue: f64, read_us: f64) -> Stage {
        Stage::new()
            .parts(&[
                ("db file sequential read", read_us),
                ("enq: TX - row lock contention", 100.0 - read_us),
            ])
            .system(&[
                ("device_utilisation_percent", utilisation_percent),
                ("device_queue_requests", queue),
                ("device_reads_per_s", 900.0),
                ("device_writes_per_s", 100.0),
            ])
    }

    #[test]
    fn a_busy_device_with_a_queue_shows_it() {
        let seen = stage(99.0, 12.0, 70.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "the device was busy 99 % of the time with 12.0 requests under way, 1000 per second; waiting for storage is \
             70 % of a transaction's time"
        );
    }

    #[test]
    fn a_device_with_room_does_not() {
        assert_eq!(stage(79.0, 16.0, 70.0).look(&KIND), None);
        assert_eq!(stage(89.0, 11.0, 70.0).look(&KIND), None);
        assert!(stage(82.0, 16.0, 70.0).look(&KIND).is_some());
        assert_eq!(stage(99.0, 3.5, 70.0).look(&KIND), None);
        assert_eq!(stage(99.0, 12.0, 45.0).look(&KIND), None);
    }

    /// Another case on the same device, with so many reads, writes, flushes and MiB per second.
    fn beside(reads: f64, writes: f64, flushes: f64, mib: f64) -> Option<String> {
        let mut stage = stage(99.0, 12.0, 70.0).system(&[
            ("device_flushes_per_s", 50.0),
            ("device_read_mib_per_s", 8.0),
        ]);
        let mut other = Stage::new().system(&[
            ("device_reads_per_s", reads),
            ("device_writes_per_s", writes),
            ("device_flushes_per_s", flushes),
            ("device_read_mib_per_s", mib),
        ]);
        other.case.id.layout = "b, direct".to_owned();
        stage.same_device = Some(other.case);
        stage.look(&KIND).map(|seen| seen.evidence)
    }

    #[test]
    fn one_that_did_twice_as_much_for_another_layout_was_not_at_its_limit() {
        assert_eq!(beside(1_800.0, 200.0, 100.0, 16.0), None);
        let as_much = beside(900.0, 100.0, 50.0, 8.0).expect("seen");
        assert!(as_much.ends_with("a transaction's time"), "{as_much}");
    }

    #[test]
    fn requests_that_ask_more_of_a_device_are_told() {
        let of = |reads, writes, flushes, mib| beside(reads, writes, flushes, mib).expect("seen");
        let smaller = of(1_800.0, 200.0, 100.0, 4.0);
        let end = "; \"b, direct\" did 2000 per second there, of 2 KiB each instead of 8 KiB";
        assert!(smaller.ends_with(end), "{smaller}");
        let without_flushes = of(1_800.0, 200.0, 0.0, 16.0);
        let end = "with 0 flushes for 100 of them instead of 5";
        assert!(without_flushes.ends_with(end), "{without_flushes}");
        let only_reads = of(2_000.0, 0.0, 100.0, 16.0);
        let end = "of which 0 % were writes instead of 10 %";
        assert!(only_reads.ends_with(end), "{only_reads}");
    }

    #[test]
    fn one_that_did_less_for_fewer_clients_was_not_at_its_limit() {
        let lower = |reads_per_s| {
            let mut case = Stage::new()
                .system(&[
                    ("device_reads_per_s", reads_per_s),
                    ("device_writes_per_s", 0.0),
                ])
                .case;
            case.id.load = 4.into();
            Some(case)
        };
        let mut stage = stage(99.0, 12.0, 70.0);
        stage.lower_load = lower(800.0);
        assert_eq!(stage.look(&KIND), None);
        stage.lower_load = lower(980.0);
        let evidence = stage.look(&KIND).expect("seen").evidence;
        assert!(evidence.ends_with("; it did 980 per second with 4 clients"));
    }
}
