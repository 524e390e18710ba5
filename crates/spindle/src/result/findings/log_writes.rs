//! Most of a transaction's time is waiting for redo.

use super::scene::Scene;
use super::{Kind, Seen};

/// Share of a transaction's time.
const REDO_MIN: f64 = 0.40;

pub(super) const KIND: Kind = Kind {
    name: "log writes dominate",
    text: "A transaction waits for redo more than for anything else.",
    remedy: "Give redo a device of its own that is quick with small durable writes (placement.redo of a layout, or \
             database.redo_path).",
    look,
};

fn is_redo(part: &str) -> bool {
    part.starts_with("log file") || part == "log buffer space"
}

fn look(scene: &Scene<'_>) -> Option<Seen> {
    let share = scene.share(is_redo)?;
    let (count, total_us) = scene.case.total_wait("log file parallel write");
    (share >= REDO_MIN && count > 0).then(|| Seen {
        weight: share,
        evidence: format!(
            "waits for redo are {:.0} % of a transaction's time; a `log file parallel write` takes {:.2} ms",
            100.0 * share,
            total_us / count as f64 / 1e3
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(sync_us: f64) -> Stage {
        Stage::new()
            .parts(&[
                ("log file sync", sync_us),
                ("db file sequential read", 100.0 - sync_us),
            ])
            .waits("log file parallel write", 10, 25_000.0)
    }

    #[test]
    fn waiting_for_redo_most_of_the_time_shows_it() {
        let seen = stage(62.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "waits for redo are 62 % of a transaction's time; a `log file parallel write` takes 2.50 ms"
        );
    }

    #[test]
    fn waiting_for_it_now_and_then_does_not() {
        assert_eq!(stage(39.0).look(&KIND), None);
    }
}
