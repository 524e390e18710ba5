//! What happened around the trials and weakens the answer: other programs, other guests of the host, a device at its
//! limit, trials that stood still, devices that were never at rest, flushes that take a part of the measured time. What
//! is grave is said first, with its figure; the rest is a warning. The thresholds stand here, and nowhere else.

use std::collections::BTreeSet;

use super::device_drift;
use super::doubt::{Doubt, doubt};
use super::findings::{
    PROGRAMS_MIN_PERCENT, STEAL_MIN_PERCENT, are_alike, is_device_saturated, neighbour_of,
};
use super::wording::{case_label, rounds_where};
use super::{Case, Neighbour, RunResult, SystemFigure, Trial};
use spindle_text::plain::sentence;
use spindle_text::quantity::about_time;

/// Both together: from here on small differences mean nothing.
const GRAVE_PERCENT: f64 = 30.0;
/// Most that layouts may differ in the part of a transaction's time that they spend on processors.
const PROCESSOR_PART: f64 = 0.25;
/// Whoever is twice as fast is so on any machine.
const BUSY_FLOOR_MAX: f64 = 1.0;
/// Cases whose figures lie farther apart than this are told as from and to, percentage points.
const UNEVEN_PERCENT: f64 = 10.0;
/// A flush that takes more of the measured time than this is told of.
const FLUSH_MAX_PART: f64 = 0.05;

/// What a person must know before the answer: who else used the processors and the devices, and that devices were at
/// their limits.
pub(super) fn said_first(result: &RunResult) -> impl Iterator<Item = String> {
    let neighbour = neighbour(result).map(|neighbour| format!("{neighbour} on the same device."));
    let others = processors(result).into_iter().chain(neighbour);
    others.chain(device_decides(result))
}

/// What makes differences uncertain, each with its remedy: other load where it is grave, trials that lasted too long,
/// devices that changed or were never at rest.
pub fn noise(result: &RunResult) -> Vec<String> {
    let cases = result.cases.iter();
    let mut texts: Vec<String> = Vec::new();
    texts.extend(busy_floor(result).and_then(|_| busy(result)));
    texts.extend(neighbour(result).map(|neighbour| {
        format!("{neighbour} on a device that is compared. Stop it, and run again.")
    }));
    texts.extend(device_drift::warnings(result));
    texts.extend(cases.filter_map(|case| overlong(result, case)));
    texts.extend(never_quiet(result));
    texts
}

/// What weakens the answer without turning it, each with its remedy.
pub(super) fn minor(result: &RunResult) -> Vec<String> {
    let cases = || result.cases.iter();
    let mut texts: Vec<String> = Vec::new();
    texts.extend(cases().filter_map(|case| long_flush(result, case)));
    texts.extend(cases().filter_map(|case| set_aside(result, case)));
    if busy_floor(result).is_none() {
        texts.extend(busy(result));
    }
    texts
}

/// The program that used a device of the cases most beside their databases.
fn neighbour(result: &RunResult) -> Option<&Neighbour> {
    let compared = result.cases.iter().filter(|case| case.is_compared());
    compared
        .filter_map(|case| neighbour_of(result, case))
        .max_by(|one, other| one.bytes_per_s().total_cmp(&other.bytes_per_s()))
}

/// Who else used the processors, and what to do about it.
fn busy(result: &RunResult) -> Option<String> {
    let programs = Range::of(result, &SystemFigure::OtherProgramsCpuPercent);
    let are_programs = programs.is_some_and(|range| range.most >= PROGRAMS_MIN_PERCENT);
    let remedy = match are_programs {
        true => "Stop them, and run again",
        false => "Run again when the host has less to do",
    };
    Some(format!("{} {remedy}.", processors(result)?))
}

/// How far a ratio lies from 1 that others may have made who took much of the processors; `None` when they took less.
/// With a part `p` gone, whatever runs on them takes `1 / (1 - p)` times as long. A layout that spends
/// [`PROCESSOR_PART`] more of its time there so loses that part times `p / (1 - p)`, in every round alike: no interval
/// tells.
pub(super) fn busy_floor(result: &RunResult) -> Option<f64> {
    let columns = [
        SystemFigure::OtherProgramsCpuPercent,
        SystemFigure::CpuStealPercent,
    ];
    let taken = columns
        .into_iter()
        .zip([PROGRAMS_MIN_PERCENT, STEAL_MIN_PERCENT]);
    let most = taken.filter_map(|(column, least)| {
        let most = Range::of(result, &column)?.most;
        (most >= least).then_some(most)
    });
    let sum_percent = most.sum::<f64>();
    if sum_percent < GRAVE_PERCENT {
        return None;
    }
    let part = (sum_percent / 100.0).min(1.0);
    Some((PROCESSOR_PART * part / (1.0 - part)).min(BUSY_FLOOR_MAX))
}

/// Who else used the processors, if it was much.
fn processors(result: &RunResult) -> Option<String> {
    let (programs, steal) = (
        Range::of(result, &SystemFigure::OtherProgramsCpuPercent),
        Range::of(result, &SystemFigure::CpuStealPercent),
    );
    let programs = programs.filter(|range| range.most >= PROGRAMS_MIN_PERCENT);
    let steal = steal.filter(|range| range.most >= STEAL_MIN_PERCENT);
    let mut text = match (programs, steal) {
        (None, None) => return None,
        (Some(programs), None) => format!("Other programs took {programs} of the processors"),
        (None, Some(steal)) => {
            format!("The hypervisor gave {steal} of the processors to other guests")
        }
        (Some(programs), Some(steal)) => format!(
            "Other programs took {programs} of the processors, and the hypervisor gave {steal} to other guests"
        ),
    };
    if let Some(floor) = busy_floor(result) {
        text += &match floor {
            floor if floor >= BUSY_FLOOR_MAX => ": do not trust a difference below 2 x".to_owned(),
            floor => format!(": do not trust a difference below {:.0} %", 100.0 * floor),
        };
    }
    Some(text + ".")
}

/// The least and the most that the cases saw of something, percent.
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    fn of(result: &RunResult, figure: &SystemFigure) -> Option<Range> {
        let compared = result.cases.iter().filter(|case| case.is_compared());
        let means: Vec<f64> = compared.filter_map(|case| case.mean_of(figure)).collect();
        Some(Range {
            least: means.iter().copied().reduce(f64::min)?,
            most: means.iter().copied().reduce(f64::max)?,
        })
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.most - self.least > UNEVEN_PERCENT {
            true => write!(f, "{:.0} to {:.0} %", self.least, self.most),
            false => write!(f, "{:.0} %", (self.least + self.most) / 2.0),
        }
    }
}

/// Load levels at which the device was at its limit in every case: on one device the cases could hardly differ, and on
/// several these are what differs.
fn device_decides(result: &RunResult) -> Option<String> {
    let groups = result.compared_groups();
    let at_limit = groups.iter().filter(|group| {
        let mut cases = group.iter();
        group.len() > 1 && cases.all(|case| is_device_saturated(result, case))
    });
    let (apart, together): (Vec<&Vec<&Case>>, Vec<&Vec<&Case>>) =
        at_limit.partition(|group| do_devices_differ(result, group));
    let at = |of: &[&Vec<&Case>]| match of.len() == groups.len() {
        true => "this load".to_owned(),
        false => {
            let levels = of.iter().map(|group| group[0].id.load.to_string());
            levels.collect::<Vec<_>>().join(" and ")
        }
    };
    let mut sentences: Vec<String> = Vec::new();
    let (told_apart, alike): (Vec<&Vec<&Case>>, Vec<&Vec<&Case>>) = together
        .into_iter()
        .partition(|group| has_winner(result, group));
    if !alike.is_empty() {
        sentences.push(format!(
            "At {} the device decides; below that the layouts may differ more.",
            at(&alike)
        ));
    }
    if !told_apart.is_empty() {
        sentences.push(format!(
            "At {} the device is at its limit with every layout; below that they may differ by more or less.",
            at(&told_apart)
        ));
    }
    if !apart.is_empty() {
        let told = match apart.iter().all(|group| have_own_devices(result, group)) {
            true => "saturates its own device: this compares the devices",
            false => "is at the limit of its device, and some share one",
        };
        sentences.push(format!("At {} each layout {told}.", at(&apart)));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Whether the layouts of a load level were told apart: a device that decided all would have made them equal.
fn has_winner(result: &RunResult, group: &[&Case]) -> bool {
    let mut rankings = result.rankings.iter();
    let ranking = rankings.find(|ranking| ranking.load == group[0].id.load);
    ranking.is_some_and(|ranking| ranking.winner.is_some())
}

/// Whether cases of a load level lie on different devices, and are not alike all the same.
fn do_devices_differ(result: &RunResult, group: &[&Case]) -> bool {
    let devices = group.iter().map(|case| result.devices_of(case));
    // With one unknown, the answer is.
    let Some(devices) = devices.collect::<Option<Vec<_>>>() else {
        return false;
    };
    devices.windows(2).any(|pair| pair[0] != pair[1]) && !are_alike(result, group[0])
}

/// Whether no two cases of a load level share a device.
fn have_own_devices(result: &RunResult, group: &[&Case]) -> bool {
    let devices = group.iter().filter_map(|case| result.devices_of(case));
    let each: Vec<BTreeSet<&str>> = devices
        .map(|(names, _)| names.into_iter().collect())
        .collect();
    let all: BTreeSet<&&str> = each.iter().flatten().collect();
    all.len() == each.iter().map(BTreeSet::len).sum::<usize>()
}

fn set_aside(result: &RunResult, case: &Case) -> Option<String> {
    let told: Vec<String> = case
        .set_aside
        .iter()
        .map(|of| format!("round {}, {}", of.trial.round, of.reason))
        .collect();
    let missing: Vec<String> = case
        .set_aside
        .iter()
        .map(|of| of.trial.round)
        .filter(|round| case.trials.iter().all(|trial| trial.round != *round))
        .map(|round| round.to_string())
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect();
    if told.is_empty() {
        return None;
    }
    let then = match missing.as_slice() {
        [] => "They were measured again and do not count.".to_owned(),
        [round] => format!("They do not count, and round {round} has no trial of this case."),
        rounds => format!(
            "They do not count, and rounds {} have no trial of this case.",
            rounds.join(", ")
        ),
    };
    Some(format!(
        "{}: trials set aside: {} {then}",
        case_label(result, case),
        sentence(&told.join("; "))
    ))
}

/// Trials that count although they lasted too long, because every try did.
fn overlong(result: &RunResult, case: &Case) -> Option<String> {
    let rounds = rounds_where(case, |trial| {
        matches!(doubt(trial), Some(Doubt::Overlong { .. }))
    })?;
    Some(format!(
        "{} ({rounds}): the trial lasted over 10 % longer than asked, every time it was tried. The machine is overloaded: use \
         fewer clients, or stop other programs.",
        case_label(result, case)
    ))
}

fn long_flush(result: &RunResult, case: &Case) -> Option<String> {
    let flush_s = |trial: &Trial| trial.flush_s().unwrap_or(0.0);
    let is_long = |trial: &Trial| flush_s(trial) > FLUSH_MAX_PART * trial.measured_s;
    let rounds = rounds_where(case, is_long)?;
    let longest = case
        .trials
        .iter()
        .filter(|trial| is_long(trial))
        .max_by(|a, b| flush_s(a).total_cmp(&flush_s(b)))?;
    let flush = flush_s(longest);
    // If the flush stays as it is and the time without it is this long, it is within the limit.
    let enough_s = (flush * (1.0 / FLUSH_MAX_PART - 1.0)).ceil();
    // What ends with its last transaction has no length that could be set.
    let advice = match longest.conditions.asked_ms {
        Some(_) => format!(" Set plan.measure to {enough_s:.0}s or more."),
        None => String::new(),
    };
    let long = case.trials.iter().filter(|trial| is_long(trial)).count();
    let (at_worst, up_to) = if long > 1 {
        ("at worst ", "up to ")
    } else {
        ("", "")
    };
    Some(format!(
        "{} ({rounds}): {at_worst}measured {:.1} s + flush {flush:.1} s. The flush at the end counts as measured time, so \
         {up_to}{:.0} % of the throughput depends on when the last checkpoint was.{advice}",
        case_label(result, case),
        longest.measured_s - flush,
        100.0 * flush / longest.measured_s
    ))
}

/// How often the devices were not at rest when a trial began.
fn never_quiet(result: &RunResult) -> Option<String> {
    let trials: Vec<&Trial> = result.cases.iter().flat_map(|case| &case.trials).collect();
    let waits: Vec<_> = trials
        .iter()
        .filter_map(|trial| trial.conditions.quiet.as_ref())
        .collect();
    let run_out: Vec<_> = waits.iter().filter(|wait| !wait.is_quiet).collect();
    let last = run_out.last()?;
    let waited_ms = run_out.iter().map(|wait| wait.waited_ms).sum();
    Some(format!(
        "The devices did not come to rest in time before {} of {} trials, in {} of waiting. Seen last: {}. Stop the \
         programs that use them, or set plan.quiet = \"0s\" and measure more rounds.",
        run_out.len(),
        trials.len(),
        about_time(waited_ms),
        last.in_the_way.as_deref().unwrap_or("nothing was seen")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Conditions, QuietWait, SetAside, build, sample};
    use super::*;
    use crate::{ResponseTime, RunRecord, StackKind, StackPart, TimePart};

    const STEADY: [f64; 4] = [100.0, 101.0, 99.0, 100.5];
    const FAST: [f64; 4] = [200.0, 203.0, 198.0, 201.0];

    fn record() -> RunRecord {
        sample::record(&[("a", &STEADY), ("b", &FAST)])
    }

    fn headline(record: &RunRecord) -> String {
        build(record).unwrap().headline
    }

    #[test]
    fn load_of_others_is_said_before_the_winner_and_grave_load_with_what_it_hides() {
        let with = |first: f64, second: f64| {
            let mut record = record();
            sample::system(&mut record, 0, &[("other_programs_cpu_percent", first)]);
            sample::system(&mut record, 1, &[("other_programs_cpu_percent", second)]);
            headline(&record)
        };
        let text = with(84.0, 84.0);
        assert!(
            text.starts_with(
                "Other programs took 84 % of the processors: do not trust a difference below 2 x. b is"
            ),
            "{text}"
        );
        let mild = with(12.0, 14.0);
        assert!(
            mild.starts_with("Other programs took 13 % of the processors. b is"),
            "{mild}"
        );
        assert!(with(20.0, 84.0).starts_with("Other programs took 20 to 84 % of the processors:"));
        assert!(with(9.0, 9.0).starts_with("b is"));
    }

    #[test]
    fn a_busy_machine_says_which_differences_it_may_have_made_and_calls_what_its_rounds_show() {
        let quick = STEADY.map(|tpm| tpm * 1.10);
        let mut record = sample::record(&[("a", &STEADY), ("b", &quick)]);
        sample::system(&mut record, 0, &[("other_programs_cpu_percent", 40.0)]);
        let busy = build(&record).unwrap();
        assert!(
            busy.headline
                .contains("do not trust a difference below 17 %. b is"),
            "{}",
            busy.headline
        );
        assert_eq!(busy.rankings[0].winner.as_deref(), Some("b"));
        let doubt = "the other load on the machine may explain so small a lead";
        assert!(busy.headline.contains(doubt), "{}", busy.headline);
        let far = STEADY.map(|tpm| tpm * 1.30);
        let mut record = sample::record(&[("a", &STEADY), ("b", &far)]);
        sample::system(&mut record, 0, &[("other_programs_cpu_percent", 40.0)]);
        assert!(!headline(&record).contains(doubt));
    }

    #[test]
    fn so_are_other_guests_of_the_host() {
        let mut record = record();
        sample::system(
            &mut record,
            0,
            &[
                ("cpu_steal_percent", 12.0),
                ("other_programs_cpu_percent", 20.0),
            ],
        );
        let text = headline(&record);
        assert!(
            text.starts_with(
                "Other programs took 20 % of the processors, and the hypervisor gave 12 % to other guests: \
                 do not trust a difference below 12 %. b is"
            ),
            "{text}"
        );
    }

    #[test]
    fn trials_that_were_set_aside_do_not_count_and_are_told() {
        let mut record = record();
        let mut trial = sample::trial(2, 40.0);
        trial.round = 2;
        let reason = "a process of the trial or the whole machine stood still for 4.0 s".to_owned();
        record.cases[0].set_aside = vec![SetAside { reason, trial }];
        let result = build(&record).unwrap();
        assert_eq!(result.cases[0].trials.len(), 4);
        assert_eq!(
            minor(&result),
            [
                "a: trials set aside: round 2, a process of the trial or the whole machine stood still for 4.0 s. They were \
                 measured again and do not count."
            ]
        );
        record.cases[0].trials.remove(1);
        let result = build(&record).unwrap();
        assert!(minor(&result)[0].ends_with("round 2 has no trial of this case."));
    }

    #[test]
    fn a_flush_that_takes_a_part_of_the_time_is_told_with_a_remedy() {
        let mut record = record();
        record.cases[0].trials[1].measured_s = 7.4;
        record.cases[0].trials[1].audit.flush_at_end_us = Some(2.4e6);
        record.cases[1].trials[1].audit.flush_at_end_us = Some(0.2e6);
        let without = minor(&build(&record).unwrap());
        assert!(
            without[0].ends_with("when the last checkpoint was."),
            "{without:?}"
        );
        record.cases[0].trials[1].conditions.asked_ms = Some(5_000);
        let result = build(&record).unwrap();
        assert_eq!(
            minor(&result),
            [
                "a (round 2): measured 5.0 s + flush 2.4 s. The flush at the end counts as measured time, so 32 % of the \
                 throughput depends on when the last checkpoint was. Set plan.measure to 46s or more."
            ]
        );
    }

    #[test]
    fn devices_that_were_never_at_rest_are_told_once() {
        let mut record = record();
        for trial in &mut record.cases[0].trials[..2] {
            trial.conditions = Conditions {
                quiet: Some(QuietWait {
                    waited_ms: 30_000,
                    limit_ms: 30_000,
                    is_quiet: false,
                    in_the_way: Some("the devices move 34 MB/s".to_owned()),
                }),
                ..Conditions::default()
            };
        }
        let texts = noise(&build(&record).unwrap());
        assert_eq!(texts.len(), 1);
        assert!(
            texts[0].starts_with(
                "The devices did not come to rest in time before 2 of 8 trials, in 60 s of waiting. Seen last: the devices \
                 move 34 MB/s."
            ),
            "{texts:?}"
        );
    }

    /// What is said of layouts at their devices' limits, which these devices have; the second alone may be faster.
    fn saturated(names: &[&str], second: [f64; 4]) -> String {
        let all: [(&str, &[f64]); 3] = [("a", &STEADY), ("b", &second), ("c", &STEADY)];
        let mut record = sample::record(&all[..names.len()]);
        let pressed = [
            ("device_utilisation_percent", 99.0),
            ("device_queue_requests", 12.0),
            ("device_reads_per_s", 900.0),
            ("device_writes_per_s", 100.0),
        ];
        for (layout, name) in names.iter().enumerate() {
            sample::system(&mut record, layout, &pressed);
            record.layouts[layout].stack = vec![vec![StackPart {
                kind: StackKind::Device,
                title: (*name).to_owned(),
                detail: String::new(),
            }]];
            for trial in &mut record.cases[layout].trials {
                trial.response_time = Some(ResponseTime {
                    mean_us: 100.0,
                    parts: vec![TimePart {
                        part: "db file sequential read".into(),
                        us: 100.0,
                    }],
                    excess_us: 0.0,
                });
            }
        }
        headline(&record)
    }

    #[test]
    fn devices_at_their_limits_decide_where_layouts_share_them_and_differ_where_they_do_not() {
        let decides = "At this load the device decides; below that the layouts may differ more.";
        let at_its_limit = "At this load the device is at its limit with every layout; below that they may differ by more or less.";
        let some_share =
            "At this load each layout is at the limit of its device, and some share one.";
        let differ =
            "At this load each layout saturates its own device: this compares the devices.";
        for (said, text) in [
            (decides, saturated(&["sda", "sda"], STEADY)),
            (at_its_limit, saturated(&["sda", "sda"], FAST)),
            (differ, saturated(&["sda", "sdb"], FAST)),
            (decides, saturated(&["sda", "sdb"], STEADY)),
            (some_share, saturated(&["sda", "sdb", "sda"], FAST)),
        ] {
            assert!(text.starts_with(&format!("{said} ")), "{text}");
        }
    }
}
