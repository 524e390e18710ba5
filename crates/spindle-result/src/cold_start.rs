//! Cold starts: cases that were measured while their caches were still filling. Either a cache had room left when the
//! measured time ended: whatever was not there had never been read. Or what was read from storage for a transaction
//! fell from the first third of that time to the last; of a warm database it stays, however much it is. Called for the
//! warnings.

use super::mean::mean_of;
use super::wording::case_label;
use super::{Case, RunRecord, RunResult, SampledTrial, SystemFigure, SystemSeries, Trial};

/// What is read for a transaction has fallen by at least this share in each trial of a cold case. By chance that
/// happens in one trial of forty, when it varies by 5 %.
const FALL_MIN: f64 = 0.10;
/// A cache with less room than this is full: some of it serves for other things.
const ROOM_MIN: f64 = 0.10;
/// A cache that lacks fewer blocks in a transaction is warm enough.
const MISSED_MIN: f64 = 0.2;
/// Hits have risen when they have by at least this share of the blocks wanted.
const RISE_MIN: f64 = 0.01;
/// Where hits are not counted, less than this read for a transaction is not worth a word, KiB.
const FETCHED_MIN_KIB: f64 = 4.0;
/// Thirds of fewer samples tell nothing.
const SAMPLES_MIN: usize = 2;

/// A figure in the first third of the measured time, in the last, and in all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Course {
    first: f64,
    last: f64,
    all: f64,
}

/// How a trial's cache was filled.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Filling {
    /// How full the cache was at the end, 0 to 1, and the blocks of a transaction that it lacked; where that is
    /// counted.
    filled: Option<(f64, f64)>,
    /// Share of the blocks wanted that the cache held, where that is counted.
    hits: Option<Course>,
    /// Read from storage for a transaction, KiB; where that is not known, blocks missed.
    fetched: Option<Course>,
}

/// What is to be said, of the coldest case and how many others there are.
pub(super) fn warning(result: &RunResult, record: &RunRecord) -> Option<String> {
    let compared = || result.cases.iter().filter(|case| case.is_compared());
    let cold = compared().filter_map(|case| Some((case, of_case(case, record)?)));
    let mut cold: Vec<(&Case, Filling)> = cold.collect();
    cold.sort_by(|(_, a), (_, b)| b.coldness().total_cmp(&a.coldness()));
    let (coldest, filling) = cold.first()?;
    let place = match cold.len() {
        1 => "Cold start".to_owned(),
        several => format!(
            "Cold start in {several} of {} cases, most of all this one",
            compared().count()
        ),
    };
    let remedy = match coldest.is_recorded() {
        true => "A replay has no warm-up: its figures are of a cache that fills.",
        false => "Warm up longer (plan.warmup, or \"auto\").",
    };
    Some(format!(
        "{place}: {}. {remedy}",
        filling.told(&case_label(result, coldest))
    ))
}

/// How the cache of a case was filled, the mean of its trials; `None` unless each of them was cold.
fn of_case(case: &Case, record: &RunRecord) -> Option<Filling> {
    // Of queries each reads what it reads, and a bulk load begins with an empty database.
    let has_warm_up = |trial: &Trial| trial.queries.is_none() && trial.rows.is_none();
    if !case.trials.iter().all(has_warm_up) {
        return None;
    }
    let sampled = |trial: &Trial| {
        let mut series = record.series.iter();
        series.find(|of| of.case == case.id && of.round == trial.round)
    };
    let trials = case.trials.iter();
    let fillings: Option<Vec<Filling>> = trials
        .map(|trial| Some(Filling::of(trial, sampled(trial))).filter(Filling::is_cold))
        .collect();
    let fillings = fillings.filter(|fillings| !fillings.is_empty())?;
    let filled: Vec<(f64, f64)> = fillings.iter().filter_map(|of| of.filled).collect();
    let (full, missed) = filled.into_iter().unzip::<f64, f64, Vec<f64>, Vec<f64>>();
    Some(Filling {
        filled: mean_of(full.into_iter()).zip(mean_of(missed.into_iter())),
        hits: mean_course(fillings.iter().filter_map(|filling| filling.hits)),
        fetched: mean_course(fillings.iter().filter_map(|filling| filling.fetched)),
    })
}

impl Filling {
    /// As far as it is known, and the trial long enough to tell.
    fn of(trial: &Trial, sampled: Option<&SampledTrial>) -> Filling {
        let column = |figure| known(&sampled?.system, figure);
        let tps = sampled.and_then(|sampled| course(&sampled.tps));
        let tps = tps.filter(|tps| tps.first > 0.0 && tps.last > 0.0);
        let each = |mib_per_s: f64, tps: f64| mib_per_s * 1024.0 / tps;
        let fetched = column(&SystemFigure::FetchedMibPerS).zip(tps);
        let transactions = trial.transactions.max(1) as f64;
        Filling {
            filled: trial
                .cache
                .map(|cache| (cache.filled_at_end, cache.missed as f64 / transactions)),
            hits: column(&SystemFigure::BufferCacheHitPercent)
                .map(|percent| percent.each(|percent| percent / 100.0)),
            fetched: fetched.map(|(mib_per_s, tps)| Course {
                first: each(mib_per_s.first, tps.first),
                last: each(mib_per_s.last, tps.last),
                all: each(mib_per_s.all, tps.all),
            }),
        }
    }

    /// By how much what is read for a transaction has fallen, 0 to 1.
    fn fall(&self) -> f64 {
        let missed = self.hits.map(|hits| hits.each(|share| 1.0 - share));
        let read = self.fetched.or(missed);
        read.filter(|read| read.first > 0.0)
            .map_or(0.0, |read| 1.0 - read.last / read.first)
    }

    /// What is colder has more of it: room in the cache, or less to read as time passes.
    fn coldness(&self) -> f64 {
        let room = self.filled.map_or(0.0, |(full, _)| 1.0 - full);
        room.max(self.fall())
    }

    fn has_room(&self) -> bool {
        self.filled.is_some_and(|(full, _)| full <= 1.0 - ROOM_MIN)
    }

    fn is_cold(&self) -> bool {
        let matters = match (self.filled, self.fetched) {
            (Some((_, missed)), _) => missed >= MISSED_MIN,
            (None, Some(fetched)) => fetched.all >= FETCHED_MIN_KIB,
            (None, None) => false,
        };
        matters && (self.has_room() || self.fall() >= FALL_MIN)
    }

    fn told(&self, label: &str) -> String {
        let rise = self.hits.filter(|hits| hits.last >= hits.first + RISE_MIN);
        match (rise, self.filled, self.fetched) {
            (Some(hits), ..) => format!(
                "{:.0} % of the blocks that {label} wanted were not in its cache, whose hit ratio rose from {:.0} % to {:.0} % \
                 while it was measured",
                100.0 * (1.0 - hits.all),
                100.0 * hits.first,
                100.0 * hits.last
            ),
            (None, Some((full, missed)), _) if self.has_room() => format!(
                "when measuring ended, the cache of {label} was {:.0} % full at most, and lacked {missed:.1} blocks in each \
                 transaction",
                100.0 * full
            ),
            (None, _, Some(fetched)) => format!(
                "{label} read {:.1} KiB from storage for a transaction when measuring began, and {:.1} KiB when it ended",
                fetched.first, fetched.last
            ),
            (None, ..) => format!("the cache of {label} was still filling while it was measured"),
        }
    }
}

impl Course {
    fn each(self, change: impl Fn(f64) -> f64) -> Course {
        Course {
            first: change(self.first),
            last: change(self.last),
            all: change(self.all),
        }
    }
}

/// A column of the system, where each of its samples is known.
fn known(system: &SystemSeries, figure: &SystemFigure) -> Option<Course> {
    let values: Option<Vec<f64>> = system
        .column(figure)?
        .iter()
        .map(|value| value.map(f64::from))
        .collect();
    course(&values?)
}

fn course(samples: &[f64]) -> Option<Course> {
    let third = samples.len() / 3;
    if third < SAMPLES_MIN {
        return None;
    }
    let mean = |samples: &[f64]| mean_of(samples.iter().copied());
    Some(Course {
        first: mean(&samples[..third])?,
        last: mean(&samples[samples.len() - third..])?,
        all: mean(samples)?,
    })
}

fn mean_course(courses: impl Iterator<Item = Course>) -> Option<Course> {
    let courses: Vec<Course> = courses.collect();
    let mean = |of: fn(&Course) -> f64| mean_of(courses.iter().map(of));
    Some(Course {
        first: mean(|course| course.first)?,
        last: mean(|course| course.last)?,
        all: mean(|course| course.all)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{CacheUse, CaseId, SystemColumn, build, sample};
    use super::*;

    /// Nine samples from one value to another.
    fn rising(from: f32, to: f32) -> Vec<Option<f32>> {
        let step = |at: u8| from + (to - from) * f32::from(at) / 8.0;
        (0..9).map(|at| Some(step(at))).collect()
    }

    /// A layout's columns, and how full its cache was at the end, with what it lacked in a transaction.
    type Seen<'a> = (&'a [(&'a str, Vec<Option<f32>>)], Option<(f64, u64)>);

    /// What is said of the cold start of layouts `a` and `b`.
    fn said(of: [Seen<'_>; 2]) -> Option<String> {
        said_of(None, of)
    }

    /// The same when each trial inserted this many rows.
    fn said_of(rows: Option<u64>, of: [Seen<'_>; 2]) -> Option<String> {
        let rounds = [120.0; 3];
        let mut record = sample::record(&[("a", &rounds), ("b", &rounds)]);
        for (case, (columns, cache)) in record.cases.iter_mut().zip(of) {
            let layout = ["a", "b"][case.layout];
            for trial in &mut case.trials {
                trial.rows = rows;
                // Ten transactions.
                trial.cache = cache.map(|(filled_at_end, missed)| CacheUse {
                    wanted: 1_000,
                    missed: 10 * missed,
                    filled_at_end,
                });
                record.series.push(SampledTrial {
                    case: CaseId::new(layout, 8),
                    round: trial.round,
                    interval_ms: 500,
                    tps: vec![100.0; 9],
                    system: SystemSeries {
                        interval_ms: 500,
                        columns: columns
                            .iter()
                            .map(|(name, values)| SystemColumn {
                                name: (*name).into(),
                                values: values.clone(),
                            })
                            .collect(),
                    },
                });
            }
        }
        let warnings = build(&record).unwrap().warnings.into_iter();
        let mut warnings = warnings.map(|warning| warning.text);
        warnings.find(|text| text.starts_with("Cold start"))
    }

    const NOTHING: Seen<'_> = (&[], None);
    /// A full cache that lacks this many blocks in a transaction.
    const LACKS_TEN: Option<(f64, u64)> = Some((1.0, 10));

    fn hits(from: f32, to: f32) -> (&'static str, Vec<Option<f32>>) {
        ("buffer_cache_hit_percent", rising(from, to))
    }

    fn fetched(from: f32, to: f32) -> (&'static str, Vec<Option<f32>>) {
        ("fetched_mib_per_s", rising(from, to))
    }

    #[test]
    fn a_cache_that_fills_while_measuring_is_said_with_its_figures() {
        let cold = [hits(37.0, 69.0), fetched(8.0, 4.0)];
        assert_eq!(
            said([(&cold, LACKS_TEN), NOTHING]).as_deref(),
            Some(
                "Cold start: 47 % of the blocks that a wanted were not in its cache, whose hit ratio rose from 41 % to 65 % while \
                 it was measured. Warm up longer (plan.warmup, or \"auto\")."
            )
        );
        // A bulk load has no warm-up.
        assert_eq!(said_of(Some(1000), [(&cold, LACKS_TEN), NOTHING]), None);
        let colder = [hits(10.0, 80.0)];
        let both = said([(&cold, LACKS_TEN), (&colder, LACKS_TEN)]).expect("both are cold");
        assert!(both.starts_with("Cold start in 2 of 2 cases"), "{both}");
        assert!(both.contains("that b wanted"), "{both}");
    }

    #[test]
    fn a_cache_with_room_left_is_cold_though_nothing_changes_while_it_is_measured() {
        let steady = [hits(92.5, 92.6), fetched(8.0, 8.0)];
        assert_eq!(
            said([(&steady, Some((0.23, 1))), NOTHING]).as_deref(),
            Some(
                "Cold start: when measuring ended, the cache of a was 23 % full at most, and lacked 1.0 blocks in each \
                 transaction. Warm up longer (plan.warmup, or \"auto\")."
            )
        );
        // What is used fits, and nothing of it is missing.
        assert_eq!(said([(&steady, Some((0.23, 0))), NOTHING]), None);
    }

    #[test]
    fn without_a_count_of_hits_what_is_read_for_a_transaction_tells() {
        assert_eq!(
            said([(&[fetched(8.0, 4.0)], None), (&[fetched(6.0, 6.0)], None)]).as_deref(),
            Some(
                "Cold start: a read 76.8 KiB from storage for a transaction when measuring began, and 46.1 KiB when it ended. Warm \
                 up longer (plan.warmup, or \"auto\")."
            )
        );
    }

    #[test]
    fn a_warm_database_is_not_called_cold_however_much_it_reads() {
        let warm = [hits(40.0, 41.0), fetched(8.0, 7.8)];
        assert_eq!(said([(&warm, LACKS_TEN), NOTHING]), None);
        // Hits rise, but hardly a block is missing.
        let nothing_missing = [hits(97.0, 99.0), fetched(8.0, 1.0)];
        assert_eq!(said([(&nothing_missing, Some((1.0, 0))), NOTHING]), None);
        // Next to nothing is read, or too few samples say so.
        assert_eq!(said([(&[fetched(0.2, 0.1)], None), NOTHING]), None);
        let mut short = hits(10.0, 80.0);
        short.1.truncate(5);
        assert_eq!(said([(&[short], LACKS_TEN), NOTHING]), None);
    }
}
