//! What weakens the answer of a run, said once per case: each warning names what was seen, where, and the remedy.

use std::ops::RangeInclusive;

use spindle_text::plain::sentence;
use spindle_text::quantity::size;

use super::judge::{is_within_noise, own_noise};
use super::wording::{MOSTLY_CACHED_SHARE, case_label, format_ratio, named, rounds_where};
use super::{
    Audit, Case, CaseStatus, Drift, IoCounts, PageCache, PairComparison, RunRecord, RunResult,
    Trial, Warning, beneath, capacity, clients, cold_start, costs, disturbance, far_out,
    few_transactions, fixed_rate,
};

/// Ratios of the program's to the device's byte counts that count as agreement.
const AGREEMENT: RangeInclusive<f64> = 0.90..=1.10;

/// Share of all bytes moved from which a difference in reads, or in writes, is told.
const MATERIAL_SHARE: f64 = 0.05;

/// Shares of reads answered by the page cache that matter in a buffered layout, up to where [`mostly_cached`] takes
/// over.
const PARTLY_CACHED_SHARES: RangeInclusive<f64> = 0.05..=MOSTLY_CACHED_SHARE;

/// All warnings of a run, by how far they may move the answer, the farthest first.
pub(super) fn warnings(result: &RunResult, record: &RunRecord) -> Vec<Warning> {
    let texts = [
        of_another_question(result, record),
        noise(result),
        memory(result),
        unequal(result, record),
        figures(result),
    ];
    let texts = texts.into_iter().flatten();
    texts.map(|text| Warning { text }).collect()
}

/// A look at one case.
type Check = fn(&RunResult, &Case) -> Option<String>;

/// What the checks find, check by check.
fn found(result: &RunResult, checks: &[Check]) -> Vec<String> {
    let cases = |check: &Check| {
        let check = *check;
        let cases = result.cases.iter();
        cases.filter_map(move |case| check(result, case))
    };
    checks.iter().flat_map(cases).collect()
}

/// The answer is not the last one, or is of something else than was asked.
fn of_another_question(result: &RunResult, record: &RunRecord) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    texts.extend(unfinished(record));
    texts.extend(first_look(record));
    let checks: [Check; 4] = [failed, fixed_rate::fell_behind, not_restored, left_dirty];
    texts.extend(found(result, &checks));
    texts
}

/// What differs may be chance.
fn noise(result: &RunResult) -> Vec<String> {
    let mut texts = disturbance::noise(result);
    let verdicts = result.verdicts.iter();
    texts.extend(verdicts.filter_map(|comparison| within_noise(result, comparison)));
    texts.extend(found(result, &[far_out::warning]));
    texts.extend(far_out::order(result));
    texts.extend(not_settled(result));
    texts
}

/// Memory answered instead of devices.
fn memory(result: &RunResult) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    if !result.was_memory_held() {
        texts.extend(found(result, &[mostly_cached]));
    }
    texts.extend(beneath::page_cache(result));
    texts.extend(found(result, &[not_direct]));
    texts.extend(beyond_budget(result));
    if result.memory_budget_bytes.is_none() {
        texts.extend(partly_cached(result));
    }
    texts
}

/// Layouts were not equal in all but what was compared, or share what was to differ.
fn unequal(result: &RunResult, record: &RunRecord) -> Vec<String> {
    let noticed = record.warnings.iter();
    let mut texts: Vec<String> = noticed.map(|warning| warning.text.clone()).collect();
    texts.extend(beneath::one_disk(result));
    texts.extend(cold_start::warning(result, record));
    texts.extend(disturbance::minor(result));
    texts
}

/// The verdict stands; figures beside it want a word.
fn figures(result: &RunResult) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let checks: [Check; 5] = [
        reads_off,
        writes_off,
        uncounted,
        clients::unaccounted,
        clients::fewer_than_clients,
    ];
    texts.extend(found(result, &checks));
    texts.extend(fixed_rate::note(result));
    texts.extend(capacity::note(result));
    texts.extend(costs::note(result));
    let cases = result.cases.iter();
    texts.extend(cases.flat_map(|case| noticed_in_trials(result, case)));
    let drifts = result.drifts.iter();
    texts.extend(drifts.filter_map(|drift| drifting(result, drift)));
    texts
}

fn first_look(record: &RunRecord) -> Option<String> {
    record.is_quick.then(|| {
        "This was a first look (--quick): few and short rounds. The answer may change once throughput is steady. Run \
         without --quick to follow the plan."
            .to_owned()
    })
}

/// Cases that cannot run here, or broke off, are not waited for.
fn unfinished(record: &RunRecord) -> Option<String> {
    let runnable = record
        .cases
        .iter()
        .filter(|case| case.outcome == CaseStatus::Measured);
    let finished = runnable.map(|case| case.trials.len()).min()?;
    let planned = record.planned_rounds;
    if let Some(plan) = record.auto {
        return (!plan.is_finished).then(|| {
            format!(
                "The run is not finished: {finished} rounds are complete, and some cases are not settled yet. \
                 `spindle resume` finishes it."
            )
        });
    }
    (finished < planned as usize).then(|| {
        format!("The run is not finished: {finished} of {planned} rounds are complete. `spindle resume` finishes it.")
    })
}

fn failed(result: &RunResult, case: &Case) -> Option<String> {
    match &case.outcome {
        CaseStatus::Failed { reason } => Some(format!(
            "{} failed and is not compared: {}",
            case_label(result, case),
            sentence(reason)
        )),
        _ => None,
    }
}

/// What was sure enough as a pair, and no more than what the machine did to one layout under two names.
fn within_noise(result: &RunResult, comparison: &PairComparison) -> Option<String> {
    if is_within_noise(comparison)
        && let Some(told) = few_transactions::warning(result, comparison)
    {
        return Some(told);
    }
    let noise = own_noise(result, comparison)?;
    let case = result.case(&comparison.cases.first())?;
    is_within_noise(comparison).then(|| {
        format!(
            "{} was {} x as fast as {}, which is within the noise: {} differed from itself by up to {:.1} % when it \
             was run twice. Look for \
             what disturbs this machine (`spindle doctor`), or measure longer.",
            case_label(result, case),
            format_ratio(comparison.ratio),
            named(&comparison.cases.b),
            named(&noise.case.layout),
            100.0 * noise.floor
        )
    })
}

/// The trials that were measured before their throughput was steady.
fn not_settled(result: &RunResult) -> Option<String> {
    let unsettled = |case: &Case| {
        let rounds = rounds_where(case, |trial| {
            trial.warm_up.is_some_and(|warm_up| !warm_up.is_settled)
        })?;
        Some(format!("{} ({rounds})", case_label(result, case)))
    };
    let cases: Vec<String> = result.cases.iter().filter_map(unsettled).collect();
    (!cases.is_empty()).then(|| {
        format!(
            "The throughput was not steady yet when the longest warm-up ended and measuring began: {}. Set plan.warmup_max \
             higher.",
            cases.join("; ")
        )
    })
}

fn drifting(result: &RunResult, drift: &Drift) -> Option<String> {
    let case = result.case(&drift.case)?;
    let (low, high) = drift.ci95;
    let (moved, least, most) = match drift.percent_per_round {
        percent if percent < 0.0 => ("fell", -high, -low),
        _ => ("rose", low, high),
    };
    Some(format!(
        "{}: its {} {moved} by {:.1} % from round to round ({least:.1}-{most:.1} %). Verdicts compare layouts within \
         each round, where what slowed all alike cancels out; in the table's means it does not.",
        case_label(result, case),
        drift.measure,
        drift.percent_per_round.abs(),
    ))
}

fn not_restored(result: &RunResult, case: &Case) -> Option<String> {
    let rounds = rounds_where(case, |trial| !trial.restore.verified)?;
    Some(format!(
        "{}: nothing verified that the database was back in its loaded state ({rounds}), so its trials may have \
         started from different data.",
        case_label(result, case)
    ))
}

fn not_direct(result: &RunResult, case: &Case) -> Option<String> {
    let note = result.layout_of(case)?.not_direct_note()?;
    Some(format!("{}: {note}.", case_label(result, case)))
}

fn left_dirty(result: &RunResult, case: &Case) -> Option<String> {
    let is_dirty = |trial: &Trial| {
        trial.audit.dirty_bytes_at_end.unwrap_or(0) > 0 && trial.audit.flush_at_end_us.is_none()
    };
    let rounds = rounds_where(case, is_dirty)?;
    let bytes = case
        .trials
        .iter()
        .filter(|trial| is_dirty(trial))
        .filter_map(|trial| trial.audit.dirty_bytes_at_end)
        .max();
    Some(format!(
        "{}: up to {} of writes had not reached the device when the clock stopped ({rounds}), so it looks faster than \
         it is.",
        case_label(result, case),
        size(bytes.unwrap_or(0))
    ))
}

/// Reads that page cache answers are no fault of a buffered layout; see [`mostly_cached`].
fn reads_off(result: &RunResult, case: &Case) -> Option<String> {
    if is_servers_own(result, case) {
        return None;
    }
    let is_buffered = is_buffered(result, case);
    let more = "the rest was answered from memory";
    audit_off(result, case, ("read", more), |trial| {
        let audit = &trial.audit;
        audit.read_ratio.filter(|&ratio| {
            (!is_buffered || ratio < 1.0) && is_material(audit, |counts| counts.read_bytes)
        })
    })
}

/// Whether the two sides differ by a share of all bytes moved that matters: a load that only writes reads nothing, and
/// any other program reads more.
fn is_material(audit: &Audit, bytes: fn(&IoCounts) -> u64) -> bool {
    let all = |counts: &IoCounts| counts.read_bytes + counts.write_bytes;
    let counts = audit.tool.zip(audit.device);
    let Some((tool, device)) = counts.filter(|(tool, device)| all(tool).max(all(device)) > 0)
    else {
        return true;
    };
    let moved = all(&tool).max(all(&device)) as f64;
    bytes(&tool).abs_diff(bytes(&device)) as f64 >= MATERIAL_SHARE * moved
}

fn is_buffered(result: &RunResult, case: &Case) -> bool {
    result
        .layout_of(case)
        .is_some_and(|layout| layout.caching == PageCache::Buffered)
}

/// Whether a server chooses how it reads and writes: through the page cache then, for all that is known.
fn is_servers_own(result: &RunResult, case: &Case) -> bool {
    result
        .layout_of(case)
        .is_some_and(|layout| layout.caching == PageCache::OfTheServer)
}

fn writes_off(result: &RunResult, case: &Case) -> Option<String> {
    if is_servers_own(result, case) {
        return None;
    }
    let more = "the rest went to files or caches in memory, or is still on its way";
    audit_off(result, case, ("wrote", more), |trial| {
        let audit = &trial.audit;
        let is_told = |_: &f64| is_material(audit, |counts| counts.write_bytes);
        audit.write_ratio.filter(is_told)
    })
}

fn audit_off(
    result: &RunResult,
    case: &Case,
    (verb, more): (&str, &str),
    ratio_of: impl Fn(&Trial) -> Option<f64>,
) -> Option<String> {
    let less = "another program used the device, or the file system added its own I/O";
    let told = [(less, 0.0..1.0), (more, 1.0..f64::INFINITY)];
    let told = told.into_iter().filter_map(|(cause, side)| {
        let off = |trial: &Trial| {
            ratio_of(trial).filter(|ratio| side.contains(ratio) && !AGREEMENT.contains(ratio))
        };
        let rounds = rounds_where(case, |trial| off(trial).is_some())?;
        let ratios = || case.trials.iter().filter_map(off);
        let least = format_ratio(ratios().min_by(f64::total_cmp)?);
        let most = format_ratio(ratios().max_by(f64::total_cmp)?);
        let range = match least == most {
            true => least,
            false => format!("{least} to {most}"),
        };
        Some(format!(
            "the database {verb} {range} x the bytes that the device {verb} ({rounds}): {cause}"
        ))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("{}: {}.", case_label(result, case), told.join("; ")))
}

fn uncounted(result: &RunResult, case: &Case) -> Option<String> {
    let rounds = rounds_where(case, |trial| trial.audit.device.is_none())?;
    Some(format!(
        "{}: no device counters here ({rounds}), so the database's own I/O counts are not confirmed.",
        case_label(result, case)
    ))
}

fn mostly_cached(result: &RunResult, case: &Case) -> Option<String> {
    let share = case
        .page_cache_share()
        .filter(|&share| share > MOSTLY_CACHED_SHARE)?;
    let remedy = match result.memory_budget_bytes {
        None => {
            "Make the database larger than memory, or run as root to hold every case to one memory budget"
        }
        Some(_) => "Make database.size several times what the page cache held",
    };
    Some(format!(
        "{}: {:.0} % of the bytes it read came from the page cache. {remedy}.",
        case_label(result, case),
        100.0 * share
    ))
}

/// A budget of memory that did not hold the page cache.
fn beyond_budget(result: &RunResult) -> Option<String> {
    let held_bytes = result.beyond_budget_bytes()?;
    Some(format!(
        "The memory budget of {} did not hold: up to {} of the data files were in the page cache. What a server's sessions \
         do not take of the memory that they are allowed becomes page cache.",
        size(result.memory_budget_bytes?),
        size(held_bytes)
    ))
}

/// Reads that memory answered in buffered layouts, too few to say that caches were compared: direct layouts had no such
/// help, nor did all buffered ones have the same.
fn partly_cached(result: &RunResult) -> Option<String> {
    let helped: Vec<String> = result
        .cases
        .iter()
        .filter(|case| case.is_compared() && is_buffered(result, case))
        .filter_map(|case| {
            let share = case
                .page_cache_share()
                .filter(|share| PARTLY_CACHED_SHARES.contains(share))?;
            Some(format!(
                "{} {:.0} %",
                case_label(result, case),
                100.0 * share
            ))
        })
        .collect();
    (!helped.is_empty()).then(|| {
        format!(
            "Memory had no budget, and the page cache answered part of the reads of buffered layouts: {}. Run as \
             root to hold every case to one memory budget.",
            helped.join("; ")
        )
    })
}

/// The trials' own warnings; the same text of several rounds is said once.
fn noticed_in_trials(result: &RunResult, case: &Case) -> Vec<String> {
    let mut texts: Vec<&String> = Vec::new();
    for text in case.trials.iter().flat_map(|trial| &trial.warnings) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
        .into_iter()
        .filter_map(|text| {
            let rounds = rounds_where(case, |trial| trial.warnings.contains(text))?;
            Some(format!("{} ({rounds}): {text}", case_label(result, case)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{AutoPlan, CaseRecord, WarmUp, build, sample};
    use super::*;

    /// The warnings of two cases of three rounds after `change`.
    fn warnings_after(change: impl FnOnce(&mut RunRecord)) -> Vec<String> {
        let mut record =
            sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        change(&mut record);
        let warnings = build(&record).unwrap().warnings;
        warnings.into_iter().map(|warning| warning.text).collect()
    }

    #[test]
    fn a_clean_run_has_none() {
        assert_eq!(warnings_after(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn what_may_move_the_answer_farther_is_said_before_what_may_not() {
        let told = warnings_after(|record| {
            record.warnings.push(Warning {
                text: "the log is part of the comparison".to_owned(),
            });
            sample::system(record, 0, &[("other_programs_cpu_percent", 84.0)]);
            record.cases[0].trials.pop();
            for trial in &mut record.cases[0].trials {
                trial.audit.page_cache_share = Some(0.9);
            }
        });
        let begins = [
            "The run is not finished",
            "Other programs took 84 % of the processors: do not trust a difference below 2 x. Stop them",
            "a: 90 % of the bytes it read came from the page cache.",
            "the log is part of the comparison",
        ];
        assert_eq!(told.len(), begins.len(), "{told:#?}");
        for (text, begin) in told.iter().zip(begins) {
            assert!(text.starts_with(begin), "{told:#?}");
        }
    }

    #[test]
    fn an_unfinished_run_is_said() {
        let unfinished =
            "The run is not finished: 2 of 3 rounds are complete. `spindle resume` finishes it.";
        assert_eq!(
            warnings_after(|record| drop(record.cases[1].trials.pop())),
            [unfinished]
        );
        let warnings = warnings_after(|record| record.cases[1].trials.clear());
        assert!(warnings[0].contains("0 of 3 rounds"), "{warnings:?}");
        let skipped = warnings_after(|record| {
            record.cases[1].trials.clear();
            record.cases[1].outcome = CaseStatus::Skipped {
                reason: "no io_uring".to_owned(),
            };
        });
        assert_eq!(skipped, Vec::<String>::new());
    }

    #[test]
    fn a_run_whose_rounds_say_when_to_stop_is_finished_when_it_says_so() {
        let auto = |record: &mut RunRecord, is_finished| {
            record.planned_rounds = 30;
            record.auto = Some(AutoPlan {
                precision: 0.03,
                is_finished,
                warmup_s: 1.0,
                ended_by_time_ms: None,
                runs_max: None,
            });
        };
        assert_eq!(
            warnings_after(|record| auto(record, true)),
            Vec::<String>::new()
        );
        let unfinished = warnings_after(|record| auto(record, false));
        assert!(
            unfinished[0].starts_with("The run is not finished: 3 rounds are complete, and some")
        );
    }

    #[test]
    fn a_trial_that_never_settled_is_said() {
        let warnings = warnings_after(|record| {
            for (trial, is_settled) in record.cases[0].trials.iter_mut().zip([true, false, true]) {
                trial.warm_up = Some(WarmUp {
                    duration_s: 60.0,
                    is_settled,
                });
            }
        });
        assert_eq!(
            warnings,
            [
                "The throughput was not steady yet when the longest warm-up ended and measuring began: a (round 2). Set \
                 plan.warmup_max higher."
            ]
        );
    }

    #[test]
    fn a_difference_within_the_noise_is_said() {
        let warnings = warnings_after(|record| {
            let again = sample::record(&[("a (again)", &[150.0, 152.0, 149.0])]);
            record.layouts.extend(again.layouts);
            record.cases.extend(
                again
                    .cases
                    .into_iter()
                    .map(|case| CaseRecord { layout: 2, ..case }),
            );
            record.noise_check = Some((0, 2));
            for trial in &mut record.cases[1].trials {
                trial.tpm /= 1.6;
            }
        });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].starts_with(
                "b was 1.25 x as fast as a, which is within the noise: a differed from itself by up to 5"
            ),
            "{warnings:?}"
        );
    }

    /// Lets the database have read `ratio` x what the device did.
    fn read_to(audit: &mut Audit, ratio: f64) {
        let (tool, device) = audit.tool.zip(audit.device.as_mut()).unwrap();
        device.read_bytes = (tool.read_bytes as f64 / ratio) as u64;
        audit.read_ratio = Some(ratio);
    }

    fn write_to(audit: &mut Audit, ratio: f64) {
        let (tool, device) = audit.tool.zip(audit.device.as_mut()).unwrap();
        device.write_bytes = (tool.write_bytes as f64 / ratio) as u64;
        audit.write_ratio = Some(ratio);
    }

    #[test]
    fn counts_that_differ_by_more_than_a_tenth_are_said_with_their_cause() {
        let warnings = warnings_after(|record| {
            let [first, second] = &mut record.cases[..] else {
                panic!("two cases");
            };
            for (trial, ratio) in first.trials.iter_mut().zip([1.10, 1.34, 0.5]) {
                write_to(&mut trial.audit, ratio);
            }
            read_to(&mut second.trials[0].audit, 0.91);
        });
        assert_eq!(
            warnings,
            [
                "a: the database wrote 0.50 x the bytes that the device wrote (round 3): another program used the device, or \
                 the file system added its own I/O; the database wrote 1.34 x the bytes that the device wrote (round 2): the \
                 rest went to files or caches in memory, or is still on its way."
            ]
        );
    }

    #[test]
    fn what_another_reads_beside_a_load_that_only_writes_is_not_told() {
        let warned = |read_bytes: u64| {
            warnings_after(|record| {
                let counts = |read_bytes, write_bytes| IoCounts {
                    read_bytes,
                    write_bytes,
                    ..IoCounts::default()
                };
                let audit = &mut record.cases[0].trials[0].audit;
                audit.tool = Some(counts(0, 1000));
                audit.device = Some(counts(read_bytes, 1000));
                audit.read_ratio = Some(0.0);
            })
        };
        assert_eq!(warned(40), Vec::<String>::new());
        let [told] = &warned(60)[..] else {
            panic!("one warning");
        };
        assert!(
            told.starts_with("a: the database read 0.00 x the bytes"),
            "{told}"
        );
    }

    #[test]
    fn reads_from_the_page_cache_are_no_mismatch_of_a_buffered_layout() {
        let cached = |record: &mut RunRecord| {
            for trial in &mut record.cases[0].trials {
                read_to(&mut trial.audit, 1.6);
                trial.audit.page_cache_share = Some(0.4);
            }
        };
        assert!(warnings_after(cached)[0].starts_with(
            "a: the database read 1.60 x the bytes that the device read (every round): the rest was answered from memory."
        ));
        let buffered = warnings_after(|record| {
            cached(record);
            record.layouts[0].caching = PageCache::Buffered;
            record.memory_budget_bytes = Some(1 << 30);
        });
        assert_eq!(buffered, Vec::<String>::new());
    }

    #[test]
    fn reads_partly_from_memory_are_said_of_buffered_layouts_unless_memory_was_held_equal() {
        let cached = |record: &mut RunRecord, shares: [f64; 2], budget_bytes: Option<u64>| {
            record.memory_budget_bytes = budget_bytes;
            for (case, share) in record.cases.iter_mut().zip(shares) {
                record.layouts[case.layout].caching = PageCache::Buffered;
                for trial in &mut case.trials {
                    trial.audit.page_cache_share = Some(share);
                }
            }
        };
        let none = Vec::<String>::new();
        assert_eq!(
            warnings_after(|record| cached(record, [0.05, 0.5], None)),
            [
                "Memory had no budget, and the page cache answered part of the reads of buffered layouts: a 5 %; \
                 b 50 %. Run as root to hold every case to one memory budget."
            ]
        );
        let held = |record: &mut RunRecord| cached(record, [0.05, 0.5], Some(1 << 30));
        assert_eq!(warnings_after(held), none);
        assert_eq!(
            warnings_after(|record| cached(record, [0.049, 0.0], None)),
            none
        );
        let mostly = warnings_after(|record| cached(record, [0.51, 0.0], None));
        assert_eq!(mostly.len(), 1);
        assert!(mostly[0].starts_with("a: 51 % of the bytes it read"));
        let direct = warnings_after(|record| {
            cached(record, [0.3, 0.0], None);
            record.layouts[0].caching = PageCache::Direct;
        });
        assert_eq!(direct, none);
        let failed = warnings_after(|record| {
            cached(record, [0.3, 0.0], None);
            record.cases[0].outcome = CaseStatus::Failed {
                reason: "disk full".to_owned(),
            };
        });
        assert_eq!(failed, ["a failed and is not compared: disk full."]);
    }

    #[test]
    fn reads_mostly_from_memory_are_said_unless_memory_was_held_equal() {
        let cached = |record: &mut RunRecord| {
            for trial in &mut record.cases[0].trials {
                trial.audit.page_cache_share = Some(0.87);
            }
        };
        assert!(
            warnings_after(cached)[0]
                .starts_with("a: 87 % of the bytes it read came from the page cache.")
        );
        let held = warnings_after(|record| {
            cached(record);
            record.memory_budget_bytes = Some(1 << 30);
        });
        assert_eq!(held, Vec::<String>::new());
        let beyond = warnings_after(|record| {
            cached(record);
            record.memory_budget_bytes = Some(32 << 20);
            record.cases[0].trials[1].audit.page_cache_bytes_at_end = Some(125 << 20);
        });
        assert_eq!(
            beyond,
            [
                "a: 87 % of the bytes it read came from the page cache. Make database.size several times what the page \
                 cache held.",
                "The memory budget of 32 MiB did not hold: up to 125 MiB of the data files were in the page cache. What a \
                 server's sessions do not take of the memory that they are allowed becomes page cache.",
            ]
        );
    }

    #[test]
    fn dirty_bytes_count_only_when_they_were_not_flushed_in_time() {
        let dirty = |record: &mut RunRecord| {
            record.cases[1].trials[2].audit.dirty_bytes_at_end = Some(8_193)
        };
        assert_eq!(
            warnings_after(dirty),
            [
                "b: up to 8,193 bytes of writes had not reached the device when the clock stopped (round 3), so it looks faster than \
              it is."
            ]
        );
        let flushed = warnings_after(|record| {
            dirty(record);
            record.cases[1].trials[2].audit.flush_at_end_us = Some(120.0);
        });
        assert_eq!(flushed, Vec::<String>::new());
    }

    #[test]
    fn every_other_doubt_is_said_once_per_case() {
        let warnings = warnings_after(|record| {
            record.warnings.push(Warning {
                text: "The governor is powersave.".to_owned(),
            });
            record.layouts[0].notes = vec!["fixed buffers dropped".to_owned()];
            record.layouts[0].not_direct = Some("tmpfs keeps files in memory".to_owned());
            for trial in &mut record.cases[0].trials {
                trial.restore.verified = false;
                trial.audit.device = None;
                trial.warnings.push("steal time was 4 %".to_owned());
            }
            record.cases[1].outcome = CaseStatus::Failed {
                reason: "disk full".to_owned(),
            };
        });
        assert_eq!(
            warnings,
            [
                "b failed and is not compared: disk full.",
                "a: nothing verified that the database was back in its loaded state (every round), so its trials may \
                 have started from different data.",
                "a: not direct here: tmpfs keeps files in memory.",
                "The governor is powersave.",
                "a: no device counters here (every round), so the database's own I/O counts are not confirmed.",
                "a (every round): steal time was 4 %",
            ]
        );
    }
}
