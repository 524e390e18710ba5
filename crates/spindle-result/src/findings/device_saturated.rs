//! The device is at its limit: busy all the time, with requests queued, and sessions that are blocked by it. (Time in
//! which they wait for a processor is not storage's in the parts of a response time.)

use super::super::{Case, SystemFigure};
use super::case_facts::CaseFacts;
use super::kind::{Kind, Seen};

/// How busy it is, percent, and how many requests are under way at the least: a device that is busy all the time and
/// has few of them is one that nobody presses. With many it may rest at moments in which processors are busy with
/// something else.
const PRESSED: [(f64, f64); 2] = [(90.0, 4.0), (80.0, 12.0)];
/// Share of a transaction's time that is waiting for storage.
const STORAGE_MIN: f64 = 0.50;
/// With more clients a device that still has room does so much more.
const GROWTH_MIN: f64 = 1.10;

pub(super) const KIND: Kind = Kind {
    name: "device saturated",
    text: "The device is at its limit: it is busy all the time and requests queue for it.",
    words: None,
    remedy: "Spread the files over more devices or use a faster one; a larger buffer cache asks less of it. More clients only \
             wait longer.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Seen> {
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
    Some(Seen {
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
