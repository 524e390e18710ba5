//! Who won under each load level: the cases of a group beside each other, by the arithmetic of
//! `spindle-stats`. What the machine's own noise is, if it was checked, is known before, and no verdict is called
//! within it; nor within what others may have moved who took much of the processors.

use spindle_stats::{
    CaseRounds, Family, Looks, PairVerdict, Standard, StatsError, Verdict, pairs, rank_in_groups,
    rounds_to_find,
};

use super::levels;
use super::{
    Case, CasePair, NoiseFloor, Pair, PairComparison, RankedCase, Ranking, RatioEstimate,
    RunRecord, RunResult, Trial, few_transactions, fixed_rate,
};

/// What is said of the cases of one load level.
pub(super) struct Judgement {
    pub ranking: Ranking,
    pub verdicts: Vec<PairComparison>,
    pub pairs: Vec<Pair>,
    /// What effects of settings have to meet, of which all cases are a part.
    pub standard: Standard,
    pub noise: Option<NoiseFloor>,
}

/// One judgement for each load level that has a case to judge.
pub(super) fn judge(result: &RunResult, record: &RunRecord) -> Result<Vec<Judgement>, StatsError> {
    let name = |layout: usize| {
        record
            .layouts
            .get(layout)
            .map(|layout| layout.name.as_str())
    };
    let noise_check = record
        .noise_check
        .and_then(|(layout, again)| Some((name(layout)?, name(again)?)));
    let is_again = |case: &Case| noise_check.is_some_and(|(_, again)| case.id.layout == again);
    let groups = result.compared_groups();
    let competing = |group: &&Vec<&Case>| group.iter().filter(|case| !is_again(case)).count() > 1;
    let tables = groups.iter().filter(competing).count().max(1) as u32;
    let mut judgements = Vec::new();
    for measured in groups {
        let mut standard = Standard {
            tables,
            ..standard_of(record)
        };
        let noise = match noise_check {
            Some((layout, again)) => noise_floor(&measured, layout, again, standard)?,
            None => None,
        };
        standard.noise_floor = noise.as_ref().map_or(0.0, |noise| noise.floor);
        let compared: Vec<&Case> = measured
            .into_iter()
            .filter(|case| !is_again(case))
            .collect();
        if let Some((ranking, verdicts)) = compare(&compared, standard)? {
            judgements.push(Judgement {
                ranking,
                verdicts,
                pairs: all_pairs(&compared, standard)?,
                standard: Standard {
                    noise_floor: standard
                        .noise_floor
                        .max(few_transactions::worst_floor(&compared)),
                    ..standard
                },
                noise,
            });
        }
    }
    Ok(judgements)
}

/// What a comparison of this run has to meet, but for the machine's noise and for the number of tables.
pub(super) fn standard_of(record: &RunRecord) -> Standard {
    let mut trials = record.cases.iter().flat_map(|case| &case.trials);
    let has_runs = trials.any(|trial| trial.conditions.run.is_some());
    Standard {
        // A fixed number of runs is made whatever their rounds say, so where they are compared it was looked once.
        looks: match record.auto {
            Some(plan) if !has_runs || plan.runs_max.is_some() => Looks::EveryRound,
            _ => Looks::Once,
        },
        ..Standard::fixed(record.margin)
    }
}

/// Ranks the cases of one load level; `None` when there are none.
fn compare(
    cases: &[&Case],
    standard: Standard,
) -> Result<Option<(Ranking, Vec<PairComparison>)>, StatsError> {
    let Some(first) = cases.first() else {
        return Ok(None);
    };
    let rounds: Vec<CaseRounds> = cases.iter().map(|case| rounds_of(case)).collect();
    let keeps = |index: usize| cases[index].promise.keeps;
    let groups: Vec<u32> = (0..cases.len()).map(|index| keeps(index) as u32).collect();
    let order = rank_in_groups(&rounds, &groups, standard)?;
    let name = |index: usize| cases[index].id.layout.clone();
    let of_best = |index: usize| {
        let mut pairs = order.verdicts.iter();
        let pair = pairs.find(|pair| pair.b == index)?;
        Some(inverse(pair.comparison.ratio, pair.comparison.ci95))
    };
    let place = |&(index, place): &(usize, u32)| RankedCase {
        layout: name(index),
        keeps: keeps(index),
        place,
        of_best: of_best(index),
    };
    let ranking = Ranking {
        load: first.id.load,
        measure: fixed_rate::measure_of(cases),
        keeps: keeps(order.best),
        best: name(order.best),
        // A case that fell behind a fixed rate has no transaction time to win by.
        winner: order
            .winner
            .filter(|&winner| !cases[winner].is_overloaded())
            .map(name),
        tied: order.tied.iter().map(|&index| name(index)).collect(),
        places: order.places.iter().map(place).collect(),
    };
    let p99 = OneFigure::of(cases, |trial| Some(trial.latency_us.p99));
    let cpu = OneFigure::of(cases, |trial| {
        let used = trial.cpu_us_per_transaction?;
        Some(used.user + used.system)
    });
    let of_p99 = p99.family(&order.verdicts, standard)?;
    let of_cpu = cpu.family(&order.verdicts, standard)?;
    let verdicts = order.verdicts.iter().map(|pair| PairComparison {
        p99: p99.ratio(of_p99.as_ref(), pair),
        cpu: cpu.ratio(of_cpu.as_ref(), pair),
        ..comparison(cases[pair.a], cases[pair.b], pair, standard)
    });
    let verdicts = verdicts.collect();
    Ok(Some((ranking, verdicts)))
}

/// What the throughput of two cases says.
fn comparison(a: &Case, b: &Case, pair: &PairVerdict, standard: Standard) -> PairComparison {
    PairComparison {
        cases: CasePair::of(&a.id, &b.id),
        ratio: pair.comparison.ratio,
        ci95: pair.comparison.ci95,
        verdict: pair.comparison.verdict,
        rounds_needed: pair.comparison.rounds_needed,
        rounds_to_find: pair
            .comparison
            .rounds_needed
            .and_then(|_| rounds_to_find(standard.margin, pair.comparison.spread?)),
        rounds_to_win: None,
        rounds: pair.comparison.rounds,
        p99: None,
        cpu: None,
    }
}

/// Every case beside every other, in the order of the experiment file.
fn all_pairs(cases: &[&Case], standard: Standard) -> Result<Vec<Pair>, StatsError> {
    let rounds: Vec<CaseRounds> = cases.iter().map(|case| rounds_of(case)).collect();
    let told = pairs(&rounds, standard)?.into_iter().map(|pair| Pair {
        cases: CasePair::of(&cases[pair.a].id, &cases[pair.b].id),
        ratio: pair.comparison.ratio,
        ci95: pair.comparison.ci95,
        rounds: pair.comparison.rounds,
        p_value: pair.comparison.p_value,
        p_value_of_all: pair.comparison.p_value_of_all,
        verdict: pair.comparison.verdict,
        verdict_alone: pair.comparison.verdict,
        rounds_needed: pair.comparison.rounds_needed,
    });
    Ok(told.collect())
}

/// A figure of all cases that have it in a round, by which they are compared beside their throughput.
struct OneFigure {
    known: Vec<CaseRounds>,
    /// Of each case, where it stands among the known ones.
    places: Vec<Option<usize>>,
}

impl OneFigure {
    fn of(cases: &[&Case], figure: fn(&Trial) -> Option<f64>) -> OneFigure {
        let (mut known, mut places) = (Vec::new(), Vec::new());
        for case in cases {
            let rounds = levels::figure_of(case, figure);
            let has_one = !rounds.values.is_empty();
            places.push(has_one.then_some(known.len()));
            known.extend(has_one.then_some(rounds));
        }
        OneFigure { known, places }
    }

    /// `None` where none of the pairs has the figure of both: then it need not be one that can be compared.
    fn family(
        &self,
        pairs: &[PairVerdict],
        standard: Standard,
    ) -> Result<Option<Family<'_>>, StatsError> {
        let is_known = |case: usize| self.places[case].is_some();
        let mut pairs = pairs.iter();
        match pairs.any(|pair| is_known(pair.a) && is_known(pair.b)) {
            true => Family::of(&self.known, standard).map(Some),
            false => Ok(None),
        }
    }

    /// The ratio of two of the cases, in an interval that holds for all pairs together; `None` when no round has the
    /// figure of both.
    fn ratio(&self, family: Option<&Family<'_>>, pair: &PairVerdict) -> Option<RatioEstimate> {
        let comparison = family?.compare(self.places[pair.a]?, self.places[pair.b]?);
        (comparison.rounds > 0).then_some(RatioEstimate {
            ratio: comparison.ratio,
            ci95: comparison.ci95,
        })
    }
}

/// The same comparison, said of the other case.
fn inverse(ratio: f64, ci95: Option<(f64, f64)>) -> RatioEstimate {
    RatioEstimate {
        ratio: 1.0 / ratio,
        ci95: ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
    }
}

/// By how much the two measurements of one layout differ; `None` without two common rounds, as the spread is then
/// unknown.
fn noise_floor(
    cases: &[&Case],
    layout: &str,
    again: &str,
    standard: Standard,
) -> Result<Option<NoiseFloor>, StatsError> {
    let find = |name: &str| cases.iter().find(|case| case.id.layout == name);
    let (Some(first), Some(second)) = (find(layout), find(again)) else {
        return Ok(None);
    };
    let of_both = [second, first].map(|case| rounds_of(case));
    let comparison = Family::of(&of_both, standard)?.compare(0, 1);
    Ok(comparison.ci95.map(|(low, high)| NoiseFloor {
        case: first.id.clone(),
        again: second.id.layout.clone(),
        ratio: RatioEstimate {
            ratio: comparison.ratio,
            ci95: comparison.ci95,
        },
        floor: high.max(1.0 / low) - 1.0,
    }))
}

/// What a case is compared by: its throughput, or its promptness at a fixed rate, of each round.
pub(super) fn rounds_of(case: &Case) -> CaseRounds {
    CaseRounds {
        counted: few_transactions::counted(case),
        ..levels::figure_of(case, |trial| Some(fixed_rate::speed(trial)))
    }
}

/// What the machine's own noise was found to be at the load of a comparison, if the ratio lies within it.
pub(super) fn own_noise<'a>(
    result: &'a RunResult,
    comparison: &PairComparison,
) -> Option<&'a NoiseFloor> {
    let noise = result.noise_at(comparison.cases.load)?;
    (comparison.ratio.ln().abs() < noise.floor.ln_1p()).then_some(noise)
}

/// Whether a comparison is left undecided only because noise is as large.
pub(super) fn is_within_noise(comparison: &PairComparison) -> bool {
    let is_apart = |(low, high): (f64, f64)| low > 1.0 || high < 1.0;
    comparison.verdict == Verdict::Undecided && comparison.ci95.is_some_and(is_apart)
}

#[cfg(test)]
mod tests {
    use super::super::{AutoPlan, build, sample};
    use super::*;

    /// Three cases; the third is the first once more, with values of its own.
    fn with_noise_check(again: &[f64]) -> RunResult {
        let mut record = sample::record(&[
            ("a", &[100.0, 101.0, 99.0, 100.0]),
            ("b", &[110.0, 111.1, 108.9, 110.0]),
            ("a (again)", again),
        ]);
        record.noise_check = Some((0, 2));
        build(&record).unwrap()
    }

    #[test]
    fn a_figure_of_one_case_alone_is_compared_with_nothing() {
        let mut record = sample::record(&[("a", &[100.0, 101.0, 99.0])]);
        for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
            trial.latency_us.p99 = 0.0;
        }
        let result = build(&record).unwrap();
        assert_eq!(result.rankings[0].best, "a");
    }

    #[test]
    fn a_layout_that_is_run_again_tells_the_noise_and_does_not_compete() {
        let result = with_noise_check(&[100.5, 101.0, 99.0, 100.2]);
        let [noise] = &result.noise[..] else {
            panic!("{:?}", result.noise)
        };
        assert_eq!(
            (noise.case.layout.as_str(), noise.again.as_str()),
            ("a", "a (again)")
        );
        let (low, high) = noise.ratio.ci95.unwrap();
        assert!(low < 1.0 && high > 1.0 && (noise.floor - (high - 1.0)).abs() < 1e-12);
        assert_eq!(result.cases.len(), 3);
        let places: Vec<_> = result.rankings[0]
            .places
            .iter()
            .map(|place| (place.layout.as_str(), place.place))
            .collect();
        assert_eq!(places, [("b", 1), ("a", 2)]);
        assert_eq!(result.verdicts.len(), 1);
        assert_eq!(result.rankings[0].winner.as_deref(), Some("b"));
    }

    #[test]
    fn no_verdict_is_called_on_less_than_the_noise() {
        // The same layout came out 12 % faster when it was called by another name.
        let result = with_noise_check(&[112.0, 113.0, 111.0, 112.0]);
        assert!(result.noise[0].floor > 0.12);
        assert_eq!(result.verdicts[0].verdict, Verdict::Undecided);
        assert!(is_within_noise(&result.verdicts[0]));
        assert_eq!(result.verdicts[0].rounds_needed, None);
        assert_eq!(result.rankings[0].winner, None);
        assert_eq!(result.rankings[0].tied, ["a"]);
        assert!(
            result.rankings[0]
                .places
                .iter()
                .all(|place| place.place == 1)
        );
        assert!(
            result.headline.contains("within the machine's own noise"),
            "{}",
            result.headline
        );
    }

    #[test]
    fn places_tell_the_ratio_to_the_best() {
        let record = sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        let places = &build(&record).unwrap().rankings[0].places;
        assert_eq!((places[0].layout.as_str(), places[0].of_best), ("b", None));
        let of_best = places[1].of_best.unwrap();
        assert!((of_best.ratio - 0.5).abs() < 0.01);
        let (low, high) = of_best.ci95.unwrap();
        assert!(low < of_best.ratio && of_best.ratio < high && high < 0.51);
    }

    #[test]
    fn latency_and_processor_time_are_paired_by_round() {
        let mut record =
            sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        for (case, p99) in record.cases.iter_mut().zip([6_000.0, 1_500.0]) {
            for trial in &mut case.trials {
                // Slow rounds are slow for both.
                trial.latency_us.p99 = p99 * f64::from(trial.round);
            }
        }
        record.cases[0].trials[0].cpu_us_per_transaction = None;
        let verdict = &build(&record).unwrap().verdicts[0];
        let p99 = verdict.p99.unwrap();
        assert!((p99.ratio - 0.25).abs() < 1e-9, "{p99:?}");
        assert!((p99.ci95.unwrap().1 - 0.25).abs() < 1e-9);
        let cpu = verdict.cpu.unwrap();
        assert_eq!((cpu.ratio, cpu.ci95), (1.0, Some((1.0, 1.0))));
        for trial in &mut record.cases[1].trials {
            trial.cpu_us_per_transaction = None;
        }
        assert_eq!(build(&record).unwrap().verdicts[0].cpu, None);
    }

    #[test]
    fn intervals_are_wider_when_the_rounds_said_when_to_stop() {
        let mut record =
            sample::record(&[("a", &[100.0, 101.0, 99.0]), ("b", &[200.0, 203.0, 198.0])]);
        let width = |record: &RunRecord| {
            let (low, high) = build(record).unwrap().verdicts[0].ci95.unwrap();
            high / low
        };
        let fixed = width(&record);
        record.auto = Some(AutoPlan {
            precision: 0.03,
            is_finished: true,
            warmup_s: 1.0,
            ended_by_time_ms: None,
            runs_max: None,
        });
        assert!(width(&record) > fixed);
    }
}
