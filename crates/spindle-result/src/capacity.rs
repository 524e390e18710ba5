//! Cases for which the highest rate was searched that keeps a promise. They are compared by that rate, as closed loops
//! are by their throughput; each round searches again, so the interval holds what a search may miss.

use spindle_stats::median;
use spindle_stats::{Verdict, estimate_mean};

use super::answer::{AnswerSentence, Opening};
use super::wording::{case_label, format_interval, format_ratio, named};
use super::{Capacity, Case, PairComparison, Ranking, RateStep, RunResult, Trial};

/// Rates that differ by less than this factor are one place of the curve.
const SAME_RATE: f64 = 1.05;

/// The rate of a case over its rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseCapacity {
    /// What was promised, milliseconds.
    pub p99_ms: f64,
    /// Arithmetic mean of the rates, per second.
    pub rate_per_s: f64,
    /// 95 % interval of the mean (Student's t over the trials); `None` with a single trial.
    pub ci95: Option<(f64, f64)>,
    /// The rate in parts of what the same clients did in a closed loop, mean.
    pub of_closed_loop: f64,
    /// Where the curve of latency over load has its knee: the rate, of all that were tried, with the most throughput
    /// for its p99 (L. Kleinrock calls the quotient power; "Power and deterministic rules of thumb", ICC 1979).
    pub knee_per_s: f64,
}

impl Case {
    /// What searches found, a trial each.
    pub fn capacities(&self) -> impl Iterator<Item = &Capacity> {
        self.trials
            .iter()
            .filter_map(|trial| trial.capacity.as_ref())
    }

    /// The highest rate that keeps the promise; `None` where it was not searched for.
    pub fn capacity(&self) -> Option<CaseCapacity> {
        let first = self.capacities().next()?;
        let rates: Vec<f64> = self.capacities().map(|it| it.rate_per_s).collect();
        let parts = self
            .capacities()
            .map(|it| it.rate_per_s / it.closed_loop_per_s);
        let estimate = estimate_mean(&rates).ok()?;
        Some(CaseCapacity {
            p99_ms: first.p99_us / 1e3,
            rate_per_s: estimate.mean,
            ci95: estimate.ci95,
            of_closed_loop: parts.sum::<f64>() / rates.len() as f64,
            knee_per_s: knee(self.capacities().flat_map(|it| &it.steps), estimate.mean)?,
        })
    }
}

/// The rate with the most throughput for its p99, of those that the layout holds. Tries of about one rate are one
/// place, with the middle one of their p99: a try that chance favoured is no knee.
fn knee<'a>(steps: impl Iterator<Item = &'a RateStep>, most_per_s: f64) -> Option<f64> {
    let mut steps: Vec<&RateStep> = steps.filter(|step| step.rate_per_s <= most_per_s).collect();
    steps.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    let places = steps.chunk_by(|a, b| b.rate_per_s <= SAME_RATE * a.rate_per_s);
    let place = |steps: &[&RateStep]| {
        let rate_per_s = median(steps.iter().map(|step| step.rate_per_s))?;
        let p99_us = median(steps.iter().map(|step| step.p99_us))?;
        Some((rate_per_s, rate_per_s / p99_us.max(1.0)))
    };
    let places = places.filter_map(place);
    let best = places.max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.map(|(rate_per_s, _)| rate_per_s)
}

/// The answer for a load level at which rates were searched for and one is surely higher than the others; `None`: as of
/// any throughput. `comparisons` stand in ascending order of ratio.
pub(super) fn answer(
    result: &RunResult,
    ranking: &Ranking,
    comparisons: &[&PairComparison],
) -> Option<AnswerSentence> {
    let best = result.case(&ranking.best_case())?;
    let capacity = best.capacity()?;
    let next = comparisons.first().filter(|_| ranking.winner.is_some())?;
    let interval = next.ci95.map_or_else(String::new, |interval| {
        format!(" ({})", format_interval(interval))
    });
    Some(AnswerSentence::new(
        Opening::Name,
        format!(
            "{} holds the most load at p99 <= {} ms: {}, {} x {}{interval}, by up to {}",
            named(&ranking.best),
            capacity.p99_ms,
            rate_text(&capacity),
            format_ratio(next.ratio),
            named(&next.cases.b),
            ranking.load
        ),
    ))
}

/// `812 transactions a second (790-834)`.
fn rate_text(capacity: &CaseCapacity) -> String {
    let interval = capacity.ci95.map_or_else(String::new, |(low, high)| {
        format!(" ({:.0}-{high:.0})", low.max(0.0))
    });
    format!("{:.0} transactions a second{interval}", capacity.rate_per_s)
}

/// What is to be said once of a run that searched.
pub(super) fn note(result: &RunResult) -> Option<String> {
    let capacity = result.cases.iter().find_map(Case::capacity)?;
    let is_draw = |verdict: &PairComparison| verdict.verdict == Verdict::Draw;
    let draws = match result.verdicts.iter().any(is_draw) {
        true => " A draw is one of these rates.",
        false => "",
    };
    let missed = missed(result).unwrap_or_default();
    let unsettled = unsettled(result).unwrap_or_default();
    let found = found(result).unwrap_or_default();
    Some(format!(
        "Layouts are compared by the highest rate at which 99 of 100 transactions take no more than {} ms from their \
         intended begin. Each trial searched it, and its other figures were measured at that rate.{found}{draws}{unsettled}{missed}",
        capacity.p99_ms
    ))
}

/// The rates, where no answer has them: no layout is surely ahead.
fn found(result: &RunResult) -> Option<String> {
    let rate = |case: &Case| {
        Some(format!(
            "{} {}",
            case_label(result, case),
            rate_text(&case.capacity()?)
        ))
    };
    let has_winner = |ranking: &Ranking| ranking.winner.is_some();
    let is_answered = !result.rankings.is_empty() && result.rankings.iter().all(has_winner);
    let rates: Vec<String> = result.cases.iter().filter_map(rate).collect();
    (!is_answered).then(|| format!(" Found: {}.", rates.join("; ")))
}

/// How many searches ended without an answer on which their tries agreed.
fn unsettled(result: &RunResult) -> Option<String> {
    let all = || result.cases.iter().flat_map(Case::capacities);
    let unsettled = all().filter(|capacity| capacity.is_unsettled).count();
    (unsettled > 0).then(|| {
        format!(
            " In {unsettled} of {} searches tries disagreed to the end, so the rate is an estimate. Use a longer \
             plan.measure, or a quieter machine.",
            all().count()
        )
    })
}

/// How often the promise was not kept at the rate that was found: a search is shorter than what follows it.
fn missed(result: &RunResult) -> Option<String> {
    let trials = || result.cases.iter().flat_map(|case| &case.trials);
    let searched = trials().filter(|trial| trial.capacity.is_some()).count();
    let is_missed = |trial: &&Trial| {
        let promised = trial.capacity.as_ref().map(|capacity| capacity.p99_us);
        promised.is_some_and(|p99_us| trial.latency_us.p99 > p99_us)
    };
    let missed = trials().filter(is_missed).count();
    let longest_us = trials().filter(is_missed).map(|trial| trial.latency_us.p99);
    let longest_ms = longest_us.fold(0.0, f64::max) / 1e3;
    (missed > 0).then(|| {
        format!(
            " In {missed} of {searched} trials it did not hold: p99 was up to {longest_ms:.1} ms in the measured time. Plan for a \
             lower rate, or measure for longer."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Capacity, RateStep, build, sample};

    fn capacity(rate_per_s: f64) -> Capacity {
        let step = |part: f64, p99_us: f64| RateStep {
            rate_per_s: part * rate_per_s,
            transactions: 1_000,
            p50_us: 1_000.0,
            p99_us,
            late_share: 0.0,
        };
        Capacity {
            p99_us: 20_000.0,
            rate_per_s,
            closed_loop_per_s: 1.25 * rate_per_s,
            is_unsettled: false,
            steps: vec![step(0.1, 4_000.0), step(0.6, 6_000.0), step(1.1, 90_000.0)],
        }
    }

    #[test]
    fn the_layout_that_holds_most_load_wins_whatever_was_done_at_it() {
        let same = [30_000.0; 3];
        let mut record = sample::record(&[("small", &same), ("large", &same)]);
        let rates = [[500.0, 505.0, 495.0], [750.0, 760.0, 742.0]];
        for (case, rates) in record.cases.iter_mut().zip(rates) {
            for (trial, rate_per_s) in case.trials.iter_mut().zip(rates) {
                trial.capacity = Some(capacity(rate_per_s));
            }
        }
        let result = build(&record).unwrap();
        assert_eq!(result.rankings[0].winner.as_deref(), Some("large"));
        assert!(
            result.headline.starts_with(
                "large holds the most load at p99 <= 20 ms: 751 transactions a second (728-773), 1.50 x small"
            ),
            "{}",
            result.headline
        );
        let said = result.warnings[0].text.as_str();
        assert!(
            said.starts_with("Layouts are compared by the highest rate"),
            "{said}"
        );
        assert!(!said.contains("Found"), "{said}");
        let mut equal = record.clone();
        equal.cases[1].trials = equal.cases[0].trials.clone();
        let equal = build(&equal).unwrap().warnings[0].text.clone();
        assert!(
            equal.contains(
                "Found: small 500 transactions a second (488-512); large 500 transactions a second (488-512)."
            ),
            "{equal}"
        );
        record.cases[0].trials[1].latency_us.p99 = 31_000.0;
        let missed = build(&record).unwrap().warnings[0].text.clone();
        assert!(
            missed.contains("In 1 of 6 trials it did not hold: p99 was up to 31.0 ms"),
            "{missed}"
        );
        assert!(!said.contains("did not hold"), "{said}");
        record.cases[1].trials[0]
            .capacity
            .as_mut()
            .unwrap()
            .is_unsettled = true;
        let unsettled = build(&record).unwrap().warnings[0].text.clone();
        assert!(
            unsettled.contains("In 1 of 6 searches tries disagreed to the end"),
            "{unsettled}"
        );
        let small = result.cases.iter().find(|case| case.id.layout == "small");
        let small = small.unwrap().capacity().unwrap();
        assert!((small.of_closed_loop - 0.8).abs() < 1e-9);
        // Not the lowest rate, and not one beyond the limit.
        assert!((small.knee_per_s - 0.6 * 500.0).abs() < 1e-6, "{small:?}");
    }
}
