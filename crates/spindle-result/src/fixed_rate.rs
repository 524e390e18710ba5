//! Cases whose load arrived at a fixed rate. All that keep up have the same throughput, namely the rate, so they are
//! judged by the time of their transactions: the 99th percentile, counted from the intended begin. A case that fell
//! behind has no such time, as it grows for as long as the trial lasts; it comes out slowest all the same, and is
//! named.

use spindle_stats::Verdict;

use super::answer::{AnswerSentence, Opening};
use super::wording::{case_label, format_interval, format_ratio, listed, named};
use super::{Case, CaseId, LoadLevel, Measure, PairComparison, Ranking, RunResult, Trial};

/// What cases are compared by, the greater the better: throughput; the highest rate that keeps a promise, per minute,
/// where that was searched for; at a fixed rate the inverse of the 99th percentile of the transaction time, per second.
pub fn speed(trial: &Trial) -> f64 {
    match (&trial.capacity, trial.arrivals) {
        (Some(capacity), _) => capacity.rate_per_s * 60.0,
        (None, None) => trial.tpm,
        (None, Some(_)) => 1e6 / trial.latency_us.p99,
    }
}

/// What cases of one workload and load level are compared by.
pub(super) fn measure_of(cases: &[&Case]) -> Measure {
    match cases.iter().find_map(|case| case.rate_per_s()) {
        None => Measure::Throughput,
        Some(_) => Measure::P99,
    }
}

impl Case {
    /// The rate at which its load arrived, per second; `None` in a closed loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        let mut trials = self.trials.iter();
        trials.find_map(|trial| Some(trial.arrivals?.rate_per_s))
    }

    /// Whether its load came when a recording says.
    pub(super) fn is_recorded(&self) -> bool {
        let mut arrivals = self.trials.iter().filter_map(|trial| trial.arrivals);
        arrivals.any(|arrivals| arrivals.is_recorded)
    }

    /// Whether it fell behind its load in any round.
    pub fn is_overloaded(&self) -> bool {
        self.rounds_behind().next().is_some()
    }

    /// The trials in which it did.
    fn rounds_behind(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| {
            let arrivals = trial.arrivals;
            arrivals.is_some_and(|arrivals| arrivals.is_overloaded)
        })
    }

    /// Whether it did in each.
    fn is_always_behind(&self) -> bool {
        self.rounds_behind().count() == self.trials.len()
    }
}

/// The answer for a load level with a fixed rate; `None` in a closed loop. `comparisons` stand in ascending order of
/// ratio.
pub(super) fn answer(
    result: &RunResult,
    ranking: &Ranking,
    comparisons: &[&PairComparison],
) -> Option<AnswerSentence> {
    let cases = || {
        let cases = result.cases_at(ranking.load);
        cases.filter(|case| case.is_compared())
    };
    let rate_per_s = cases().find_map(Case::rate_per_s)?;
    let behind: Vec<&str> = cases()
        .filter(|case| case.is_overloaded())
        .map(|case| case.id.layout.as_str())
        .collect();
    let load = load_text(ranking, rate_per_s, cases().any(Case::is_recorded));
    if behind.len() == cases().count() {
        return Some(AnswerSentence::new(
            Opening::NoLayout,
            format!("keeps up with {load}: there is no winner at this rate"),
        ));
    }
    let answer = among_those_that_keep_up(result, ranking, comparisons, &behind, &load);
    Some(match behind.as_slice() {
        [] => answer,
        behind => {
            let mut cases = cases().filter(|case| case.is_overloaded());
            let fails = fails(cases.all(Case::is_always_behind));
            answer.with(&format!("; {} {fails}", listed(behind)))
        }
    })
}

fn among_those_that_keep_up(
    result: &RunResult,
    ranking: &Ranking,
    comparisons: &[&PairComparison],
    behind: &[&str],
    load: &str,
) -> AnswerSentence {
    let best = named(&ranking.best);
    let p99_ms = p99_ms(result, ranking, &ranking.best);
    let rivals: Vec<&PairComparison> = comparisons
        .iter()
        .copied()
        .filter(|comparison| !behind.contains(&comparison.cases.b.as_str()))
        .collect();
    if behind.contains(&ranking.best.as_str()) {
        let why = format!("at {load}: the rounds differ in who keeps up");
        return AnswerSentence::new(Opening::Undecided, why);
    }
    match rivals.as_slice() {
        [] => AnswerSentence::new(
            Opening::Only,
            format!("{best} keeps up with {load} (p99 {p99_ms})"),
        ),
        [next, ..] if ranking.winner.is_some() => AnswerSentence::new(
            Opening::Name,
            format!(
                "{best} responds fastest at {load}: p99 {p99_ms}; {} (p99)",
                takes_longer(next)
            ),
        ),
        [next, ..] => {
            let close = rivals
                .iter()
                .filter(|rival| rival.verdict != Verdict::Faster);
            let mut names: Vec<&str> = close.map(|rival| rival.cases.b.as_str()).collect();
            if names.is_empty() {
                return AnswerSentence::new(
                    Opening::Name,
                    format!(
                        "{best} had the shortest p99 at {load}: p99 {p99_ms}; {} (p99), but that is not certain \
                         among all {} \
                         layouts",
                        takes_longer(next),
                        comparisons.len() + 1
                    ),
                );
            }
            names.insert(0, &ranking.best);
            AnswerSentence::new(
                Opening::TooClose,
                format!(
                    "between {} at {load}: the best p99 is {p99_ms}",
                    listed(&names)
                ),
            )
        }
    }
}

/// `slow, the next, takes 2.01 x as long (1.97-2.05)`.
fn takes_longer(next: &PairComparison) -> String {
    let interval = next.ci95.map_or_else(String::new, |interval| {
        format!(", {}", format_interval(interval))
    });
    let ratio = format_ratio(next.ratio);
    format!(
        "{}, the next, takes {ratio} x as long{interval}",
        named(&next.cases.b)
    )
}

/// `3.21 ms`, the mean of the rounds.
fn p99_ms(result: &RunResult, ranking: &Ranking, layout: &str) -> String {
    let case = result.case(&CaseId::new(layout, ranking.load));
    let p99_ms = case.and_then(|case| Some(case.summary()?.p99_ms));
    p99_ms.map_or_else(|| "unknown".to_owned(), |ms| format!("{ms:.2} ms"))
}

/// `500 transactions a second by up to 8 clients`, with what the rate is a part of.
fn load_text(ranking: &Ranking, rate_per_s: f64, is_recorded: bool) -> String {
    let clients = LoadLevel::of(ranking.load.clients);
    let part = match ranking.load.rate {
        Some(rate) if rate.is_of_slowest() => format!(" ({rate} of the slowest layout's maximum)"),
        _ => String::new(),
    };
    let recorded = recorded(is_recorded);
    format!("{recorded}{rate_per_s} transactions a second{part} by up to {clients}")
}

fn recorded(is_recorded: bool) -> &'static str {
    match is_recorded {
        true => "the recorded ",
        false => "",
    }
}

/// What is to be said once of a run with fixed rates.
pub(super) fn note(result: &RunResult) -> Option<String> {
    let mut rates: Vec<String> = Vec::new();
    for rate_per_s in result.cases.iter().filter_map(Case::rate_per_s) {
        let rate = rate_per_s.to_string();
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    let is_recorded = result.cases.iter().any(Case::is_recorded);
    let at = match rates.as_slice() {
        [] => return None,
        [only] if is_recorded => format!("when they were recorded, on average {only}"),
        [only] => format!("at a fixed rate of {only}"),
        [first @ .., last] => format!("at fixed rates of {} and {last}", first.join(", ")),
    };
    let is_closed = |case: &Case| case.is_compared() && case.rate_per_s().is_none();
    let closed = match result.cases.iter().any(is_closed) {
        true => " Cases without a rate are compared by throughput.",
        false => "",
    };
    Some(format!(
        "Transactions came {at} a second, so throughput shows only which layouts kept up. They are compared \
         by the 99th percentile of the time of a transaction from its intended begin; a ratio above 1 means a faster \
         response.{closed}"
    ))
}

fn fails(always: bool) -> &'static str {
    match always {
        true => "cannot keep up",
        false => "did not always keep up",
    }
}

/// That a case fell behind.
pub(super) fn fell_behind(result: &RunResult, case: &Case) -> Option<String> {
    let worst = case.rounds_behind();
    let worst = worst.max_by_key(|trial| trial.arrivals.map(|arrivals| arrivals.backlog))?;
    let arrivals = worst.arrivals?;
    let (behind, all) = (case.rounds_behind().count(), case.trials.len());
    let place = match (behind, all) {
        (_, 1) => String::new(),
        (behind, all) if behind == all => format!("in round {} ", worst.round),
        (1, all) => format!("in round {}, the only one of {all}, ", worst.round),
        (behind, all) => format!("in round {}, one of {behind} of {all}, ", worst.round),
    };
    Some(format!(
        "{} {} with {}{} transactions a second: {place}it did {:.0}, and {} were waiting for a free client in the end. The \
         times of its transactions grow with the length of the trial. A lower rate, or more clients, would show more.",
        case_label(result, case),
        fails(case.is_always_behind()),
        recorded(arrivals.is_recorded),
        arrivals.rate_per_s,
        worst.tpm / 60.0,
        arrivals.backlog
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, Measure, RunRecord, build, sample};

    /// Cases at 500 transactions a second, each with its 99th percentiles in microseconds, a round each.
    fn record(cases: &[(&str, &[f64])]) -> RunRecord {
        let rate = [30_000.0; 3];
        let closed: Vec<(&str, &[f64])> =
            cases.iter().map(|(name, _)| (*name, &rate[..])).collect();
        let mut record = sample::record(&closed);
        for (case, (_, p99_us)) in record.cases.iter_mut().zip(cases) {
            for (trial, p99_us) in case.trials.iter_mut().zip(*p99_us) {
                trial.latency_us.p99 = *p99_us;
                trial.arrivals = Some(Arrivals {
                    is_recorded: false,
                    rate_per_s: 500.0,
                    delay_us: trial.latency_us,
                    backlog: 0,
                    is_overloaded: false,
                });
            }
        }
        record
    }

    fn overload(record: &mut RunRecord, case: usize) {
        for trial in &mut record.cases[case].trials {
            trial.tpm = 24_000.0;
            let arrivals = trial.arrivals.as_mut().unwrap();
            (arrivals.is_overloaded, arrivals.backlog) = (true, 2_000);
        }
    }

    const QUICK: &[f64] = &[1_000.0, 1_010.0, 990.0];
    const SLOW: &[f64] = &[2_000.0, 2_050.0, 1_980.0];

    #[test]
    fn a_replay_comes_at_recorded_times_and_has_no_warm_up() {
        let mut record = record(&[("a", QUICK), ("b", SLOW)]);
        for case in &mut record.cases {
            for trial in &mut case.trials {
                trial.arrivals.as_mut().unwrap().is_recorded = true;
            }
        }
        overload(&mut record, 1);
        let result = build(&record).unwrap();
        assert!(
            result
                .headline
                .starts_with("Only a keeps up with the recorded 500 transactions a second"),
            "{}",
            result.headline
        );
        let said = result.warnings.iter();
        assert!(
            said.clone().any(|it| it
                .text
                .starts_with("Transactions came when they were recorded, on average 500 a second")),
            "{said:?}"
        );
    }

    #[test]
    fn the_sooner_answer_wins_though_throughput_is_the_same() {
        let result = build(&record(&[("slow", SLOW), ("quick", QUICK)])).unwrap();
        assert_eq!(result.rankings[0].winner.as_deref(), Some("quick"));
        assert!((result.verdicts[0].ratio - 2.01).abs() < 0.01);
        assert_eq!(
            result.headline,
            "quick responds fastest at 500 transactions a second by up to 8 clients: p99 1.00 ms; slow, the next, takes 2.01 x \
             as long, 1.97-2.05 (p99)."
        );
        let warnings: Vec<&str> = result
            .warnings
            .iter()
            .map(|one| one.text.as_str())
            .collect();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("Transactions came at a fixed rate of 500 a second"));
    }

    #[test]
    fn who_falls_behind_is_named_and_never_wins() {
        let mut record = record(&[
            ("slow", SLOW),
            ("quick", QUICK),
            ("behind", &[9e6, 9.5e6, 9.1e6]),
        ]);
        overload(&mut record, 2);
        let result = build(&record).unwrap();
        assert!(
            result
                .headline
                .ends_with("1.94-2.09 (p99); behind cannot keep up."),
            "{}",
            result.headline
        );
        assert_eq!(
            result.warnings[0].text,
            "behind cannot keep up with 500 transactions a second: in round 3 it did 400, and 2000 were waiting for a free client in the \
             end. The times of its transactions grow with the length of the trial. A lower rate, or more clients, would show \
             more."
        );
    }

    #[test]
    fn one_that_keeps_up_and_none_that_does() {
        let mut record = record(&[("a", SLOW), ("b", &[9e6, 9.5e6, 9.1e6])]);
        overload(&mut record, 1);
        assert_eq!(
            build(&record).unwrap().headline,
            "Only a keeps up with 500 transactions a second by up to 8 clients (p99 2.01 ms); b cannot keep up."
        );
        overload(&mut record, 0);
        let result = build(&record).unwrap();
        assert_eq!(
            result.headline,
            "No layout keeps up with 500 transactions a second by up to 8 clients: there is no winner at this rate."
        );
        assert_eq!(result.rankings[0].winner, None);
    }

    #[test]
    fn each_rate_has_a_verdict_beside_that_of_the_closed_loop() {
        let result = build(&sample::with_rates(&["30%", "90%"])).unwrap();
        let measures: Vec<_> = result
            .rankings
            .iter()
            .map(|ranking| (ranking.load.to_string(), ranking.measure))
            .collect();
        let loads = ["8 clients", "8 clients at 30%", "8 clients at 90%"];
        let kinds = [Measure::Throughput, Measure::P99, Measure::P99];
        let expected = loads.into_iter().map(str::to_owned).zip(kinds);
        assert_eq!(measures, expected.collect::<Vec<_>>());
        let winners = result
            .rankings
            .iter()
            .map(|ranking| ranking.winner.as_deref());
        assert_eq!(winners.collect::<Vec<_>>(), [Some("quick"); 3]);
        for said in [
            "quick is fastest: 2.00 x slow (1.99-2.01), at 8 clients.",
            "quick responds fastest at 150 transactions a second (30% of the slowest layout's maximum) by up to 8 clients",
            "Only quick keeps up with 450 transactions a second (90% of the slowest layout's maximum) by up to 8 clients",
        ] {
            assert!(result.headline.contains(said), "{}", result.headline);
        }
        let note = &result.warnings[1].text;
        assert!(
            note.contains("at fixed rates of 150 and 450 a second")
                && note.ends_with("Cases without a rate are compared by throughput."),
            "{note}"
        );
    }

    #[test]
    fn equal_times_are_too_close_to_call() {
        let result = build(&record(&[("a", QUICK), ("b", &[1_005.0, 1_000.0, 995.0])])).unwrap();
        assert_eq!(result.rankings[0].winner, None);
        assert!(
            result.headline.starts_with("Too close to call between"),
            "{}",
            result.headline
        );
    }
}
