//! The layout writes much more than the database asks for: a file system that journals data or copies what it writes,
//! mirrors, parity.

use spindle_text::quantity::size;

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use super::noisy_neighbour;
use crate::{IoPerTransaction, OracleEvent, TimeUse};

/// Bytes that the devices write for each byte of the database, in every trial. A journal of metadata adds less, unless
/// commits are small and make files longer.
const AMPLIFICATION_MIN: f64 = 1.5;
/// Share of a transaction's time in which writes are waited for.
const WAITS_MIN: f64 = 0.20;

pub(super) const KIND: FindingKind = FindingKind {
    name: "write amplification",
    text: "The devices write much more than the database does: the layout adds to its writes, and they take time.",
    words: None,
    remedy: "Look for what adds to writes: a journal of data (ext4: data=journal), copy on write (btrfs, where nodatacow \
             avoids it), small commits to a log that grows, mirrors and parity of a volume. Compare with a file \
             system or a volume that has none of it.",
    look,
};

/// A wait for writes, or for processes that write.
fn is_for_writes(part: &TimeUse) -> bool {
    part.is_wait(|event| {
        event.is_storage()
            && !matches!(
                event,
                OracleEvent::DbFileSequentialRead
                    | OracleEvent::DbFileScatteredRead
                    | OracleEvent::DirectPathReadTemp
            )
    })
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let share = facts.share(is_for_writes)?;
    // What others write to the device is counted with it.
    if share < WAITS_MIN || noisy_neighbour::on_device(facts).is_some() {
        return None;
    }
    let trials = facts.case.trials.iter();
    let io: Vec<IoPerTransaction> = trials.map(|trial| trial.io).collect::<Option<_>>()?;
    let each = io.iter().map(|io| io.write_amplification);
    let least = each.collect::<Option<Vec<f64>>>()?;
    let least = least.into_iter().min_by(f64::total_cmp)?;
    let mean = |figure: fn(&IoPerTransaction) -> Option<f64>| {
        io.iter().filter_map(figure).sum::<f64>() / io.len() as f64
    };
    let (asked, written) = (
        mean(|io| io.written_bytes),
        mean(|io| io.device_written_bytes),
    );
    (least >= AMPLIFICATION_MIN).then(|| Sighting {
        weight: share * (1.0 - asked / written),
        evidence: format!(
            "for a transaction the database wrote {}, and the devices wrote {}: {:.1} x as much; waits for writes are \
             {:.0} % {}",
            size(asked.round() as u64),
            size(written.round() as u64),
            written / asked,
            100.0 * share,
            facts.of_time()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;
    use crate::Neighbour;

    fn stage(log_us: f64, asked: f64, written: f64) -> Stage {
        let parts = [
            ("log file sync", log_us),
            ("db file sequential read", 100.0 - log_us),
        ];
        let io = IoPerTransaction {
            reads: Some(1.0),
            writes: Some(1.0),
            read_bytes: Some(8192.0),
            written_bytes: Some(asked),
            device_read_bytes: Some(8192.0),
            device_written_bytes: Some(written),
            write_amplification: Some(written / asked),
        };
        Stage::new()
            .parts(&parts)
            .trials(|trial| trial.io = Some(io))
    }

    #[test]
    fn a_layout_that_writes_twice_shows_it() {
        let seen = stage(60.0, 8192.0, 16_384.0).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "for a transaction the database wrote 8 KiB, and the devices wrote 16 KiB: 2.0 x as much; waits for writes \
             are 60 % of a transaction's time"
        );
        assert!((seen.weight - 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_journal_of_metadata_does_not_nor_what_nobody_waits_for() {
        assert_eq!(stage(60.0, 8192.0, 12_000.0).look(&KIND), None);
        assert_eq!(stage(19.0, 8192.0, 16_384.0).look(&KIND), None);
        assert_eq!(
            stage(60.0, 8192.0, 16_384.0)
                .trials(|trial| trial.io = None)
                .look(&KIND),
            None
        );
    }

    #[test]
    fn nor_what_others_write_to_the_device() {
        let neighbour = Neighbour {
            program: "dd".to_owned(),
            process_id: 7,
            read_bytes_per_s: 0.0,
            written_bytes_per_s: 1e9,
        };
        let stage = stage(60.0, 8192.0, 16_384.0);
        let beside = stage.trials(|trial| trial.conditions.neighbour = Some(neighbour.clone()));
        assert_eq!(beside.look(&KIND), None);
    }
}
