//! Why one layout is slower than another: the difference of their response times, part by part, over the rounds that
//! both finished, and in a sentence.

use spindle_stats::estimate_mean;

use super::fixed_rate::measure_of;
use super::{
    Attribution, Case, IoCalls, Layout, Measure, PageCache, PairComparison, PartDifference,
    ResponseTime, RunResult, TimeUse, Trial, Verdict, format_ratio, named,
};

/// Parts below this share of the difference are not worth a place in the sentence.
const SHARE_SAID: f64 = 0.05;
/// A sentence has no more parts than these.
const PARTS_SAID: usize = 5;
/// With fewer rounds nothing is explained: what chance did to one round looks like a cause.
const ROUNDS_MIN: usize = 2;
/// With fewer the sentence says from how few rounds it speaks.
const ROUNDS_SURE: usize = 4;

/// Cases whose transactions have no more than this many times the requests of each other's do the same I/O.
const SAME_IO: f64 = 1.15;
/// System calls are worth a word when one case makes this many times those of the other.
const MORE_CALLS: f64 = 1.25;

/// One for each verdict on cases that know what their time went to, in the order of the verdicts.
pub(super) fn attributions(result: &RunResult) -> Vec<Attribution> {
    let verdicts = result.verdicts.iter();
    verdicts
        .filter_map(|verdict| attribution(result, verdict))
        .collect()
}

fn attribution(result: &RunResult, verdict: &PairComparison) -> Option<Attribution> {
    let cases = &verdict.cases;
    let (a, b) = (result.case(&cases.first())?, result.case(&cases.second())?);
    let pairs = pairs(a, b);
    if pairs.len() < ROUNDS_MIN {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| b.mean_us - a.mean_us).collect();
    let is_b_slower = differences.iter().sum::<f64>() >= 0.0;
    let (slower, faster) = if is_b_slower { (b, a) } else { (a, b) };
    // As faster and slower, whichever way the verdict put them.
    let sign = if is_b_slower { 1.0 } else { -1.0 };
    let estimate = |figure: &dyn Fn(&ResponseTime) -> f64| {
        let differences: Vec<f64> = pairs
            .iter()
            .map(|(a, b)| sign * (figure(b) - figure(a)))
            .collect();
        // No pairs, or figures that are none: nothing is said.
        estimate_mean(&differences).ok()
    };
    let whole = estimate(&|time| time.mean_us)?;
    let layouts = (result.layout_of(slower)?, result.layout_of(faster)?);
    let calls = system_calls(slower, faster);
    let mut parts: Vec<PartDifference> = Vec::new();
    for name in names(&pairs) {
        let difference = estimate(&|time| time.part_us(name))?;
        parts.push(PartDifference {
            part: name.clone(),
            us: difference.mean,
            ci95_us: difference.ci95,
            explanation: explanation(name, difference.mean, layouts, calls.as_deref()),
        });
    }
    parts.sort_by(|a, b| b.us.abs().total_cmp(&a.us.abs()));
    let mut attribution = Attribution {
        load: cases.load,
        slower: slower.id.layout.clone(),
        faster: faster.id.layout.clone(),
        difference_us: whole.mean,
        ci95_us: whole.ci95,
        parts,
        sentence: String::new(),
    };
    attribution.sentence = said(&attribution, pairs.len(), verdict, measure_of(&[a, b]));
    Some(attribution)
}

/// The sentence that goes with the verdict. That may be of the p99, while all that is known here is of mean times.
fn said(it: &Attribution, rounds: usize, verdict: &PairComparison, measure: Measure) -> String {
    let Some((called, other)) = called_slower(verdict) else {
        return sentence(it, rounds, verdict.verdict, measure);
    };
    match (measure, called == it.slower, it.is_clear()) {
        (Measure::P99, _, false) | (_, false, true) => {
            unexplained(it, (called, other), verdict, measure)
        }
        (Measure::Throughput, true, false) => only_slower(it),
        _ => sentence(it, rounds, verdict.verdict, measure),
    }
}

/// The layout that the verdict calls slower, and the other; `None` where it calls neither so.
fn called_slower(verdict: &PairComparison) -> Option<(&str, &str)> {
    let (a, b) = (verdict.cases.a.as_str(), verdict.cases.b.as_str());
    match verdict.verdict {
        Verdict::Faster => Some((b, a)),
        Verdict::Slower => Some((a, b)),
        Verdict::Draw | Verdict::Undecided => None,
    }
}

/// Response times of both cases in the rounds that both finished.
fn pairs<'a>(a: &'a Case, b: &'a Case) -> Vec<(&'a ResponseTime, &'a ResponseTime)> {
    let of_round = |case: &'a Case, round: u32| {
        let mut trials = case.trials.iter();
        let trial: &'a Trial = trials.find(|trial| trial.round == round)?;
        trial.response_time.as_ref()
    };
    let rounds = a.trials.iter().map(|trial| trial.round);
    rounds
        .filter_map(|round| Some((of_round(a, round)?, of_round(b, round)?)))
        .collect()
}

fn names<'a>(pairs: &[(&'a ResponseTime, &'a ResponseTime)]) -> Vec<&'a TimeUse> {
    let mut names: Vec<&TimeUse> = Vec::new();
    for part in pairs
        .iter()
        .flat_map(|(a, b)| a.parts.iter().chain(&b.parts))
    {
        if !names.contains(&&part.part) {
            names.push(&part.part);
        }
    }
    names
}

/// What a part is on this pair of layouts, where its name does not say it.
fn explanation(
    part: &TimeUse,
    us: f64,
    (slower, faster): (&Layout, &Layout),
    calls: Option<&str>,
) -> Option<String> {
    if *part != TimeUse::SystemCpu || us <= 0.0 {
        return None;
    }
    match slower.caching == PageCache::Buffered && faster.caching == PageCache::Direct {
        true => Some("copying through the page cache".to_owned()),
        false => calls.map(str::to_owned),
    }
}

/// That one case made many more system calls for the same I/O: "async made 0.83 system calls per I/O, odm 0.40".
fn system_calls(slower: &Case, faster: &Case) -> Option<String> {
    let of = |case: &Case| {
        let transactions: u64 = case.trials.iter().map(|trial| trial.transactions).sum();
        let calls = IoCalls::sum(case.trials.iter().filter_map(|trial| trial.io_calls))?;
        let requests = calls.requests as f64 / transactions as f64;
        Some((calls.per_request()?, requests))
    };
    let ((slower_calls, slower_io), (faster_calls, faster_io)) = (of(slower)?, of(faster)?);
    let is_same_io = (slower_io / faster_io).ln().abs() <= SAME_IO.ln();
    (is_same_io && slower_calls >= MORE_CALLS * faster_calls).then(|| {
        format!(
            "{} made {slower_calls:.2} system calls per I/O, {} {faster_calls:.2}",
            named(&slower.id.layout),
            named(&faster.id.layout)
        )
    })
}

impl Attribution {
    /// Whether the difference is known to be one.
    fn is_clear(&self) -> bool {
        self.ci95_us.is_none_or(|(low, _)| low > 0.0)
    }

    fn difference_with_interval(&self) -> String {
        let unit = Unit::of(self.difference_us);
        let interval = |(low, high)| format!(" ({} to {})", unit.words(low), unit.words(high));
        let interval = self.ci95_us.map_or_else(String::new, interval);
        format!("{}{interval}", unit.words(self.difference_us))
    }
}

/// What is known where the ratio of two cases is, and the difference of their times, which single long transactions
/// decide, is not.
fn only_slower(it: &Attribution) -> String {
    format!(
        "With {} {} is slower than {}; by how much per transaction is not yet clear: {}",
        it.load,
        named(&it.slower),
        named(&it.faster),
        it.difference_with_interval(),
    )
}

/// What mean times have to do with a verdict that they do not explain: the figures of both, and no cause. "With 8
/// clients stalls is slower than steady: its p99 is 1.95 x as long, though its transactions took 45.4 ms less on
/// average. What the mean time is made of does not explain the p99".
fn unexplained(
    it: &Attribution,
    (called, other): (&str, &str),
    verdict: &PairComparison,
    measure: Measure,
) -> String {
    let is_longer = called == it.slower;
    let (called, other) = (named(called), named(other));
    let times = format_ratio(verdict.ratio.max(1.0 / verdict.ratio));
    let by = match measure {
        Measure::P99 => format!("its p99 is {times} x as long"),
        Measure::Throughput => format!("{other} did {times} x as much"),
    };
    let mean = match (it.is_clear(), is_longer) {
        (true, _) => format!(
            ", though its transactions took {} less on average",
            Unit::of(it.difference_us).words(it.difference_us)
        ),
        (false, is_longer) => format!(
            ". That its transactions took {} on average is not clear: by {}",
            if is_longer { "longer" } else { "less time" },
            it.difference_with_interval()
        ),
    };
    format!(
        "With {} {called} is slower than {other}: {by}{mean}. What the mean time is made of does not explain the {measure}",
        it.load
    )
}

/// The whole in words: "With 8 clients buffered is slower than direct by 9.8 ms per transaction: +6.1 ms `db file
/// sequential read`, ...". It is not asked where a verdict calls the other layout slower.
fn sentence(it: &Attribution, rounds: usize, verdict: Verdict, measure: Measure) -> String {
    let unit = Unit::of(it.difference_us);
    let load = format!("With {}", it.load);
    if !it.is_clear() {
        return format!(
            "{load} the difference in transaction time between {} and {} is not yet clear: {}",
            named(&it.slower),
            named(&it.faster),
            it.difference_with_interval(),
        );
    }
    let is_said = |part: &&PartDifference| part.us.abs() >= SHARE_SAID * it.difference_us;
    let said: Vec<&PartDifference> = it.parts.iter().filter(is_said).take(PARTS_SAID).collect();
    let mut words: Vec<String> = said
        .iter()
        .map(|part| {
            let explanation = part.explanation.as_ref();
            let explanation = explanation.map_or(String::new(), |words| format!(" ({words})"));
            format!(
                "{} {}{explanation}",
                unit.signed(part.us),
                quoted(&part.part)
            )
        })
        .collect();
    let rest_us = it.difference_us - said.iter().map(|part| part.us).sum::<f64>();
    if rest_us.abs() >= SHARE_SAID * it.difference_us {
        words.push(format!("{} in smaller parts", unit.signed(rest_us)));
    }
    let (slower, faster) = (named(&it.slower), named(&it.faster));
    let by = unit.words(it.difference_us);
    let hedge = match rounds {
        rounds if rounds < ROUNDS_SURE => format!(", as far as {rounds} rounds can show,"),
        _ => String::new(),
    };
    let longer = format!("transactions of {slower} took {by} longer");
    let whole = match (verdict, measure) {
        (Verdict::Faster | Verdict::Slower, _) => {
            format!("{hedge} {slower} is slower than {faster} by {by} per transaction")
        }
        (Verdict::Undecided, Measure::Throughput) => {
            format!(" {longer} than those of {faster}, not settled yet")
        }
        (Verdict::Draw, Measure::Throughput) => {
            format!(" {longer} than those of {faster}, too little to matter")
        }
        (Verdict::Undecided, Measure::P99) => {
            format!(
                " {longer} on average than those of {faster} (it is not yet clear which has the longer p99)"
            )
        }
        (Verdict::Draw, Measure::P99) => {
            format!(" {longer} on average than those of {faster} (with p99 alike)")
        }
    };
    format!("{load}{whole}: {}", words.join(", "))
}

/// Wait events bear names of several words, so they are set apart.
fn quoted(part: &TimeUse) -> String {
    match part {
        TimeUse::Wait(event) => format!("`{}`", event.own_name()),
        of_processors => of_processors.to_string(),
    }
}

/// All figures of a sentence are in one unit and to one decimal place, those of the difference.
struct Unit {
    name: &'static str,
    us: f64,
    decimals: usize,
}

impl Unit {
    fn of(difference_us: f64) -> Unit {
        let (name, us) = match difference_us {
            us if us >= 1_000.0 => ("ms", 1_000.0),
            _ => ("us", 1.0),
        };
        let decimals = match difference_us / us {
            figure if figure >= 100.0 => 0,
            figure if figure >= 3.0 => 1,
            _ => 2,
        };
        Unit { name, us, decimals }
    }

    fn words(&self, us: f64) -> String {
        format!("{:.*} {}", self.decimals, us / self.us, self.name)
    }

    fn signed(&self, us: f64) -> String {
        format!("{:+.*} {}", self.decimals, us / self.us, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, LoadLevel, RunRecord, TimePart, build, sample};
    use super::*;

    fn time(parts: &[(&str, f64)]) -> ResponseTime {
        ResponseTime {
            mean_us: parts.iter().map(|(_, us)| us).sum(),
            excess_us: 0.0,
            parts: parts
                .iter()
                .map(|(name, us)| TimePart {
                    part: (*name).into(),
                    us: *us,
                })
                .collect(),
        }
    }

    /// Two rounds of "buffered" at 100 and "direct" at 200 transactions a minute.
    fn record(buffered: [&[(&str, f64)]; 2], direct: [&[(&str, f64)]; 2]) -> RunRecord {
        let mut record =
            sample::record(&[("buffered", &[100.0, 101.0]), ("direct", &[200.0, 203.0])]);
        record.layouts[0].caching = PageCache::Buffered;
        for (case, times) in [(0, buffered), (1, direct)] {
            for (trial, parts) in record.cases[case].trials.iter_mut().zip(times) {
                trial.response_time = Some(time(parts));
            }
        }
        record
    }

    const READ: &str = "db file sequential read";

    #[test]
    fn the_difference_is_attributed_to_its_parts_in_words() {
        let buffered: &[(&str, f64)] = &[
            (READ, 8_100.0),
            ("system CPU", 3_200.0),
            ("free buffer waits", 1_500.0),
            ("user CPU", 510.0),
            ("other", 100.0),
        ];
        let direct: &[(&str, f64)] = &[
            (READ, 2_000.0),
            ("system CPU", 1_000.0),
            ("user CPU", 500.0),
            ("other", 110.0),
        ];
        let result = build(&record([buffered, buffered], [direct, direct])).unwrap();
        let [attribution] = result.attributions.as_slice() else {
            panic!("{:?}", result.attributions);
        };
        assert_eq!(
            attribution.sentence,
            "With 8 clients transactions of buffered took 9.8 ms longer than those of direct, not settled yet: +6.1 ms \
             `db file sequential read`, +2.2 ms system CPU (copying through the page cache), +1.5 ms `free buffer waits`"
        );
        let sum: f64 = attribution.parts.iter().map(|part| part.us).sum();
        assert!((sum - attribution.difference_us).abs() < 1e-6);
        assert_eq!(attribution.ci95_us, Some((9_800.0, 9_800.0)));
        assert_eq!(attribution.parts[3].part.name(), "user CPU");
        let mean = result.cases[0].response_time.as_ref().expect("known");
        assert_eq!(mean.parts[0].us, 8_100.0);
    }

    /// Two rounds of "async" and "odm", with this many system calls for 1,000 requests and this many transactions.
    fn sentence_of(calls: [u64; 2], transactions: u64) -> String {
        let part = |us| [(READ, 300.0), ("system CPU", us)];
        let (slow, fast) = (part(200.0), part(100.0));
        let mut record = record([&slow, &slow], [&fast, &fast]);
        for (layout, name) in record.layouts.iter_mut().zip(["async", "odm"]) {
            (layout.name, layout.caching) = (name.to_owned(), PageCache::Direct);
        }
        for (case, calls) in record.cases.iter_mut().zip(calls) {
            for trial in &mut case.trials {
                trial.transactions = 100;
                trial.io_calls = Some(IoCalls {
                    requests: 1_000,
                    calls,
                    submits: calls / 2,
                    queued: 1_000,
                    kernel_workers_us: 0,
                    sleeps: 0,
                    preemptions: 0,
                });
            }
        }
        for trial in &mut record.cases[0].trials {
            trial.transactions = transactions;
        }
        build(&record).unwrap().attributions[0].sentence.clone()
    }

    #[test]
    fn system_calls_are_said_where_they_differ_for_the_same_io() {
        let said = sentence_of([830, 400], 100);
        assert!(
            said.ends_with("+100 us system CPU (async made 0.83 system calls per I/O, odm 0.40)"),
            "{said}"
        );
        for other in [
            sentence_of([480, 400], 100),
            sentence_of([830, 400], 80),
            sentence_of([400, 830], 100),
        ] {
            assert!(other.ends_with("+100 us system CPU"), "{other}");
        }
    }

    #[test]
    fn rounds_are_paired_and_a_part_that_shrank_is_said() {
        // The second round was slow for both: the interval of the difference does not notice.
        let result = build(&record(
            [
                &[(READ, 300.0), ("user CPU", 40.0)],
                &[(READ, 1_300.0), ("user CPU", 40.0)],
            ],
            [
                &[(READ, 100.0), ("user CPU", 100.0)],
                &[(READ, 1_100.0), ("user CPU", 100.0)],
            ],
        ))
        .unwrap();
        assert_eq!(
            result.attributions[0].sentence,
            "With 8 clients transactions of buffered took 140 us longer than those of direct, not settled yet: +200 us `db file sequential read`, -60 us user CPU"
        );
    }

    #[test]
    fn no_difference_is_attributed_to_nothing() {
        let result = build(&record(
            [&[(READ, 300.0)], &[(READ, 200.0)]],
            [&[(READ, 200.0)], &[(READ, 290.0)]],
        ))
        .unwrap();
        let sentence = &result.attributions[0].sentence;
        assert!(
            sentence.starts_with(
                "With 8 clients the difference in transaction time between buffered and direct is not yet clear: 5.0 us ("
            ),
            "{sentence}"
        );
    }

    #[test]
    fn a_slower_layout_is_called_so_where_only_the_difference_is_not_clear() {
        let result = build(&record(
            [&[(READ, 300.0)], &[(READ, 200.0)]],
            [&[(READ, 200.0)], &[(READ, 290.0)]],
        ))
        .unwrap();
        let said = |verdict| {
            let called = PairComparison {
                verdict,
                ..result.verdicts[0].clone()
            };
            attribution(&result, &called).unwrap().sentence
        };
        let named = "With 8 clients buffered is slower than direct; by how much per transaction is not yet clear: 5.0 us (";
        let [as_called, otherwise] = match result.verdicts[0].cases.first().layout.as_str() {
            "direct" => [Verdict::Faster, Verdict::Slower],
            _ => [Verdict::Slower, Verdict::Faster],
        };
        assert!(said(as_called).starts_with(named), "{}", said(as_called));
        for verdict in [otherwise, Verdict::Undecided, Verdict::Draw] {
            assert!(said(verdict).contains("between buffered and direct is not yet clear"));
        }
    }

    #[test]
    fn rounds_that_do_not_know_are_left_out_and_one_round_explains_nothing() {
        let mut record = record(
            [&[(READ, 300.0)], &[(READ, 900.0)]],
            [&[(READ, 200.0)], &[(READ, 200.0)]],
        );
        assert_eq!(build(&record).unwrap().attributions.len(), 1);
        record.cases[1].trials[1].response_time = None;
        assert_eq!(build(&record).unwrap().attributions, []);
    }

    #[test]
    fn from_four_rounds_on_it_is_said_without_a_hedge() {
        for (rounds, hedge) in [(3, ", as far as 3 rounds can show,"), (4, "")] {
            let mut record = sample::record(&[
                ("a", &[100.0, 101.0, 99.0, 100.0][..rounds]),
                ("b", &[50.0, 50.0, 51.0, 50.0][..rounds]),
            ]);
            for (case, us) in [(0, 10.0), (1, 20.0)] {
                record.cases[case].load = LoadLevel::of(1);
                for trial in &mut record.cases[case].trials {
                    trial.response_time = Some(time(&[(READ, us)]));
                }
            }
            assert_eq!(
                build(&record).unwrap().attributions[0].sentence,
                format!(
                    "With 1 client{hedge} b is slower than a by 10.0 us per transaction: +10.0 us `db file sequential read`"
                )
            );
        }
    }

    #[test]
    fn no_layout_is_called_slower_that_the_verdict_does_not_call_so() {
        let said = |b: [f64; 4], margin: f64| {
            let mut record = sample::record(&[("a", &[100.0, 101.0, 99.0, 100.0]), ("b", &b)]);
            record.margin = margin;
            for (case, us) in [(0, 10.0), (1, 12.0)] {
                record.cases[case].load = LoadLevel::of(1);
                for trial in &mut record.cases[case].trials {
                    trial.response_time = Some(time(&[(READ, us)]));
                }
            }
            let result = build(&record).unwrap();
            (
                result.verdicts[0].verdict,
                result.attributions[0].sentence.clone(),
            )
        };
        let (verdict, sentence) = said([60.0, 140.0, 90.0, 105.0], 0.03);
        assert_eq!(verdict, Verdict::Undecided);
        assert_eq!(
            sentence,
            "With 1 client transactions of b took 2.00 us longer than those of a, not settled yet: +2.00 us `db file \
             sequential read`"
        );
        let (verdict, sentence) = said([100.0, 100.0, 100.0, 99.0], 0.3);
        assert_eq!(verdict, Verdict::Draw);
        assert!(sentence.contains(" too little to matter: "), "{sentence}");
    }

    /// What is said of "stalls" and "steady" at a fixed rate, with these means of "stalls" beside 60 ms of "steady".
    fn at_a_rate(stalls_p99_us: f64, means_us: [f64; 3]) -> String {
        let mut record = sample::record(&[("stalls", &[3e4; 3]), ("steady", &[3e4; 3])]);
        let times = [(stalls_p99_us, means_us), (100e3, [60e3; 3])];
        for (case, (p99_us, means_us)) in record.cases.iter_mut().zip(times) {
            for (trial, mean_us) in case.trials.iter_mut().zip(means_us) {
                trial.latency_us.p99 = p99_us + 100.0 * f64::from(trial.round);
                trial.arrivals = Some(Arrivals {
                    is_recorded: false,
                    rate_per_s: 500.0,
                    delay_us: trial.latency_us,
                    backlog: 0,
                    is_overloaded: false,
                });
                trial.response_time = Some(time(&[(READ, mean_us)]));
            }
        }
        build(&record).unwrap().attributions[0].sentence.clone()
    }

    #[test]
    fn mean_times_never_contradict_a_verdict_by_the_p99() {
        assert_eq!(
            at_a_rate(195e3, [14.6e3, 14.7e3, 14.5e3]),
            "With 8 clients stalls is slower than steady: its p99 is 1.95 x as long, though its transactions took 45.4 ms \
             less on average. What the mean time is made of does not explain the p99"
        );
        let unclear = at_a_rate(195e3, [30e3, 90e3, 57e3]);
        assert!(
            unclear.starts_with(
                "With 8 clients stalls is slower than steady: its p99 is 1.95 x as long. That its transactions took less \
                 time on average is not clear: by 1.00 ms ("
            ),
            "{unclear}"
        );
        let same_way = at_a_rate(195e3, [80e3, 80.1e3, 79.9e3]);
        assert!(
            same_way.contains("stalls is slower than steady by 20.0 ms per transaction: +20.0 ms"),
            "{same_way}"
        );
        let alike = at_a_rate(100e3, [80e3, 80.1e3, 79.9e3]);
        assert!(alike.contains("(with p99 alike): +20.0 ms"), "{alike}");
    }
}
