//! The processors are the limit, so storage hardly matters.

use super::super::{RUN_QUEUE, SYSTEM_CPU, USER_CPU};
use super::scene::Scene;
use super::{Kind, Seen};

/// Of the machine's processor time, without what other programs took.
const BUSY_MIN_PERCENT: f64 = 85.0;
/// Share of a transaction's time that is on a processor or waiting for one.
const PROCESSOR_MIN: f64 = 0.60;

pub(super) const KIND: Kind = Kind {
    name: "CPU-bound",
    text: "The processors are the limit, so storage hardly matters here: layouts differ by the processor time that they cost.",
    text_where_layouts_differ: Some(
        "The processors are the limit on the layouts named here: with more of them these could be further ahead of the others.",
    ),
    remedy: "To compare storage, use fewer clients, more processors, or more data beside the same buffer cache.",
    look,
};

fn look(scene: &Scene<'_>) -> Option<Seen> {
    let others_percent = scene.mean("other_programs_cpu_percent")?;
    let busy_percent = scene.busy_percent()? - others_percent;
    let share = scene.share(|part| [USER_CPU, SYSTEM_CPU, RUN_QUEUE].contains(&part))?;
    (busy_percent >= BUSY_MIN_PERCENT && share >= PROCESSOR_MIN).then(|| Seen {
        weight: share,
        evidence: format!(
            "the processors were busy {busy_percent:.0} % of the time, and {:.0} % of a transaction's time is on a processor \
             or waiting for one",
            100.0 * share
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
                (USER_CPU, 20.0),
                (SYSTEM_CPU, 20.0),
                (RUN_QUEUE, 60.0 - read_us),
                ("db file sequential read", read_us),
            ])
            .system(&[("other_programs_cpu_percent", others_percent)])
    }

    #[test]
    fn busy_processors_and_transactions_that_wait_for_them_show_it() {
        let seen = stage(75.0, 1.0, 20.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "the processors were busy 94 % of the time, and 80 % of a transaction's time is on a processor or waiting for one"
        );
    }

    #[test]
    fn time_left_or_others_work_or_waiting_for_storage_do_not() {
        assert_eq!(stage(60.0, 1.0, 20.0).look(&KIND), None);
        assert_eq!(stage(75.0, 15.0, 20.0).look(&KIND), None);
        assert_eq!(stage(75.0, 1.0, 45.0).look(&KIND), None);
    }
}
