//! Queries lose their time in temporary segments: sorts and aggregations that are larger than their memory.

use spindle_text::quantity::size;

use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};
use crate::{OracleEvent, TimeUse};

/// Share of a query's time.
const TEMP_MIN: f64 = 0.20;

pub(super) const KIND: FindingKind = FindingKind {
    name: "temporary segments",
    text: "Queries lose their time in temporary segments: what sorts and aggregations cannot hold in memory is written \
           there, and read again.",
    words: None,
    remedy: "Give sorts more memory (`sort_area` of the embedded database, `work_mem` of PostgreSQL). Or give temporary \
             segments disks that are not busy with tables.",
    look,
};

fn is_temp(part: &TimeUse) -> bool {
    part.is_wait(|event| {
        matches!(
            event,
            OracleEvent::DirectPathReadTemp | OracleEvent::DirectPathWriteTemp
        )
    })
}

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let queries = facts.case.queries()?;
    let share = facts.share(is_temp)?;
    if share < TEMP_MIN {
        return None;
    }
    let of = |event| 100.0 * facts.share_of_waits(&event).unwrap_or(0.0);
    let written = queries.temporary_bytes.map_or(String::new(), |bytes| {
        format!(
            "; the queries of a trial wrote {} there",
            size(bytes.round() as u64)
        )
    });
    Some(Sighting {
        weight: share,
        evidence: format!(
            "`direct path write temp` is {:.0} % and `direct path read temp` {:.0} % of a query's time{written}",
            of(OracleEvent::DirectPathWriteTemp),
            of(OracleEvent::DirectPathReadTemp),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;
    use crate::QueryRun;

    fn stage(write_us: f64, read_us: f64) -> Stage {
        Stage::new().parts(&[
            ("direct path write temp", write_us),
            ("direct path read temp", read_us),
            ("user CPU", 100.0 - write_us - read_us),
        ])
    }

    fn run() -> QueryRun {
        QueryRun {
            times: Vec::new(),
            geometric_mean_s: None,
            power: None,
            throughput: None,
            temporary_bytes: Some(300 << 20),
        }
    }

    #[test]
    fn a_fifth_of_a_querys_time_shows_it() {
        assert_eq!(
            stage(15.0, 6.0)
                .trials(|trial| trial.queries = Some(run()))
                .look(&KIND)
                .expect("seen")
                .evidence,
            "`direct path write temp` is 15 % and `direct path read temp` 6 % of a query's time; the queries of a trial \
             wrote 300 MiB there"
        );
    }

    #[test]
    fn less_of_it_or_transactions_do_not() {
        assert_eq!(
            stage(13.0, 6.0)
                .trials(|trial| trial.queries = Some(run()))
                .look(&KIND),
            None
        );
        assert_eq!(stage(30.0, 30.0).look(&KIND), None);
    }
}
