//! What each factor of a matrix does: its effects over all other settings, by the arithmetic of `spindle-stats`, and
//! the sentence that tells them. Of one factor alone the verdicts say it all.

use std::fmt::Write as _;

use spindle_stats::{CaseRounds, Comparison as Judged, LevelMatrix, Standard, StatsError, Verdict};

use super::judge::rounds_of;
use super::record::MatrixRecord;
use super::wording::percent;
use super::{
    Case, Effect, FactorAnswer, FactorName, Interaction, Keeps, Measure, Ranking, RatioEstimate,
    RunResult, format_interval, format_ratio, named,
};

/// A ratio up to this, or from its inverse on, is told in per cent; others as a multiple.
const PERCENT_RATIO_MAX: f64 = 1.8;

/// Nor is an interval with such an end told in per cent: two rounds leave open any number of digits.
const PERCENT_END_MAX: f64 = 100.0;

/// What is said of the factors at one load level.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub effects: Vec<Effect>,
    pub interactions: Vec<Interaction>,
    pub answers: Vec<FactorAnswer>,
}

/// The effects among the cases of a load level. Nothing without a matrix of two factors or more.
pub(super) fn of_load(
    result: &RunResult,
    ranking: &Ranking,
    matrix: Option<&MatrixRecord>,
    standard: Standard,
) -> Result<Told, StatsError> {
    let Some(matrix) = matrix.filter(|matrix| matrix.factors.len() > 1) else {
        return Ok(Told::default());
    };
    let compared = result.cases_at(ranking.load);
    let compared = compared.filter(|case| case.is_compared());
    let of_matrix = compared.filter_map(|case| Some((case, matrix.levels_of(&case.id.layout)?)));
    let (cases, cells): (Vec<&Case>, Vec<&[usize]>) = of_matrix.unzip();
    if cases.is_empty() {
        return Ok(Told::default());
    }
    let cells = LevelMatrix {
        cells: cells.into_iter().map(<[usize]>::to_vec).collect(),
        is_fraction: matrix.is_half,
    };
    let rounds: Vec<CaseRounds> = cases.iter().map(|case| rounds_of(case)).collect();
    let told = spindle_stats::effects(&rounds, &cells, standard)?;
    let named = Named { ranking, matrix };
    let effects: Vec<Effect> = told
        .effects
        .iter()
        .map(|effect| named.effect(effect))
        .collect();
    let interactions = told.interactions.iter();
    let interactions: Vec<Interaction> = interactions.map(|both| named.interaction(both)).collect();
    let scene = SentenceParts {
        matrix,
        cases: &cases,
        effects: &effects,
        interactions: &interactions,
        margin: standard.margin,
        measure: ranking.measure,
    };
    let answers = matrix.factors.iter().filter_map(|(factor, _)| {
        Some(FactorAnswer {
            load: ranking.load,
            factor: factor.clone(),
            sentence: scene.sentence(factor)?,
            is_same_everywhere: scene.is_same_everywhere(factor),
        })
    });
    let answers = answers.collect();
    Ok(Told {
        effects,
        interactions,
        answers,
    })
}

/// Gives names to what the arithmetic knows by numbers.
struct Named<'a> {
    ranking: &'a Ranking,
    matrix: &'a MatrixRecord,
}

impl Named<'_> {
    fn name(&self, factor: usize) -> FactorName {
        self.matrix.factors[factor].0.clone()
    }

    fn level(&self, factor: usize, level: usize) -> String {
        self.matrix.factors[factor].1[level].clone()
    }

    fn effect(&self, of: &spindle_stats::Effect) -> Effect {
        Effect {
            load: self.ranking.load,
            factor: self.name(of.factor),
            level: self.level(of.factor, of.level),
            base: self.level(of.factor, of.base),
            effect: estimate(&of.comparison),
            verdict: of.comparison.verdict,
            rounds: of.comparison.rounds,
            cases: of.cases,
        }
    }

    fn interaction(&self, of: &spindle_stats::Interaction) -> Interaction {
        let (factor, other) = of.factors;
        Interaction {
            load: self.ranking.load,
            factor: self.name(factor),
            level: self.level(factor, of.levels.0),
            base: self.level(factor, of.levels.1),
            other: self.name(other),
            at: self.level(other, of.at.0),
            at_base: self.level(other, of.at.1),
            effects: of.effects,
            effects_of_other: of.effects_of_other,
            interaction: estimate(&of.comparison),
            verdict: of.comparison.verdict,
            rounds: of.comparison.rounds,
        }
    }
}

fn estimate(comparison: &Judged) -> RatioEstimate {
    RatioEstimate {
        ratio: comparison.ratio,
        ci95: comparison.ci95,
    }
}

/// What a sentence is made of.
struct SentenceParts<'a> {
    matrix: &'a MatrixRecord,
    cases: &'a [&'a Case],
    effects: &'a [Effect],
    interactions: &'a [Interaction],
    margin: f64,
    measure: Measure,
}

/// An effect as it is told: of the value that does better, where it is known.
struct Turned<'a> {
    base: &'a str,
    effect: RatioEstimate,
    verdict: Verdict,
}

impl SentenceParts<'_> {
    /// What a factor does; `None` where no two of its values could be compared.
    fn sentence(&self, factor: &FactorName) -> Option<String> {
        let effects: Vec<&Effect> = self
            .effects
            .iter()
            .filter(|effect| effect.factor == *factor)
            .collect();
        let best = self.best(&effects)?;
        let mut others: Vec<Turned<'_>> = effects
            .iter()
            .filter_map(|effect| turned(effect, best))
            .collect();
        others.sort_by(|a, b| b.effect.ratio.total_cmp(&a.effect.ratio));
        let against: Vec<String> = others
            .iter()
            .map(|other| format!("against {}: {}", other.base, self.told(other)))
            .collect();
        let of = match factor {
            FactorName::Layout => String::new(),
            other => format!("{other} "),
        };
        let mut sentence = format!("{of}{best} {}", against.join(", "));
        if let Some(weaker) = self.keeps_less(factor, best, &others) {
            let _ = write!(sentence, "; {weaker}");
        }
        if let Some(dependence) = self.dependence(factor) {
            let _ = write!(sentence, "; {dependence}");
        }
        Some(sentence)
    }

    /// The value that the sentence is of: the later of two, as a setting is changed; of more, the one ahead of all.
    fn best<'b>(&self, effects: &[&'b Effect]) -> Option<&'b str> {
        if let [only] = effects {
            return Some(only.level.as_str());
        }
        let mut values: Vec<&str> = effects
            .iter()
            .flat_map(|effect| [&effect.base, &effect.level])
            .map(String::as_str)
            .collect();
        values.sort_unstable();
        values.dedup();
        let lead = |value: &str| -> f64 {
            let of_value = effects.iter().filter_map(|effect| turned(effect, value));
            of_value.map(|turned| turned.effect.ratio.ln()).sum()
        };
        values
            .into_iter()
            .max_by(|a, b| lead(a).total_cmp(&lead(b)))
    }

    /// `+20 % (15 to 25)`, `no difference above 3 %`, or that it is not clear; and of what, where it is not throughput.
    fn told(&self, turned: &Turned<'_>) -> String {
        let change = change(turned.effect);
        let told = match turned.verdict {
            Verdict::Draw => format!("no difference above {} %", percent(self.margin)),
            Verdict::Faster | Verdict::Slower => change,
            Verdict::Undecided => format!("not clear, {change}"),
        };
        match self.measure {
            Measure::Throughput => told,
            Measure::P99 => format!("{told} in promptness (p99)"),
        }
    }

    /// That a value keeps less when the power goes than those it is compared with.
    fn keeps_less(
        &self,
        factor: &FactorName,
        level: &str,
        others: &[Turned<'_>],
    ) -> Option<String> {
        let index = self
            .matrix
            .factors
            .iter()
            .position(|(name, _)| name == factor)?;
        let of_value = |value: &str| {
            let has_value = |case: &&&Case| {
                let levels = self.matrix.levels_of(&case.id.layout);
                levels.is_some_and(|levels| self.matrix.factors[index].1[levels[index]] == value)
            };
            self.cases.iter().filter(has_value).collect::<Vec<_>>()
        };
        let weakest_case = |value: &str| {
            let cases = of_value(value).into_iter();
            cases.max_by_key(|case| (case.promise.keeps, case.promise.back_ms))
        };
        let weakest = |value: &str| Some(&weakest_case(value)?.promise);
        // What other settings have a part in is said of all of them together.
        let with = |value: &str, keeps: Keeps| match weakest_case(value) {
            Some(case) if of_value(value).iter().any(|of| of.promise.keeps != keeps) => {
                format!("as in {}", named(&case.id.layout))
            }
            _ => format!("with {value}"),
        };
        let own = weakest(level)?;
        let bases = others
            .iter()
            .filter_map(|other| Some((other.base, weakest(other.base)?)));
        let strongest_base = bases.clone().map(|(_, promise)| promise.keeps).min()?;
        if own.keeps > strongest_base {
            return Some(format!("{} it {}", with(level, own.keeps), own.clause()));
        }
        let weaker: Vec<String> = bases
            .filter(|(_, promise)| promise.keeps > own.keeps)
            .map(|(base, promise)| format!("{} it {}", with(base, promise.keeps), promise.clause()))
            .collect();
        (!weaker.is_empty()).then(|| weaker.join(", "))
    }

    /// Its interactions with the others.
    fn interactions_of(&self, factor: &FactorName) -> Vec<&Interaction> {
        let of_factor = |both: &&Interaction| both.factor == *factor || both.other == *factor;
        self.interactions.iter().filter(of_factor).collect()
    }

    /// Whether the effect surely depends on no other factor.
    fn is_same_everywhere(&self, factor: &FactorName) -> bool {
        let all = self.interactions_of(factor);
        !all.is_empty() && all.iter().all(|both| both.verdict == Verdict::Draw)
    }

    /// On which other factors the effect surely depends.
    fn dependence(&self, factor: &FactorName) -> Option<String> {
        let all = self.interactions_of(factor);
        let is_decided =
            |both: &&&Interaction| matches!(both.verdict, Verdict::Faster | Verdict::Slower);
        let size = |both: &Interaction| both.interaction.ratio.ln().abs();
        let mut told: Vec<String> = Vec::new();
        for (other, _) in self
            .matrix
            .factors
            .iter()
            .filter(|(other, _)| other != factor)
        {
            let with_other = all
                .iter()
                .filter(|both| both.factor == *other || both.other == *other);
            let strongest = with_other
                .filter(is_decided)
                .max_by(|a, b| size(a).total_cmp(&size(b)));
            told.extend(strongest.map(|both| depends(both, factor)));
        }
        (!told.is_empty()).then(|| told.join(", and "))
    }
}

/// `it depends on method: +35 % with sync, +5.0 % with async`.
fn depends(both: &Interaction, factor: &FactorName) -> String {
    let ratio_only = |ratio: f64| change(RatioEstimate { ratio, ci95: None });
    let (other, (ratio, at), (ratio_base, at_base)) = match both.factor == *factor {
        true => (
            &both.other,
            (both.effects.0, &both.at),
            (both.effects.1, &both.at_base),
        ),
        false => (
            &both.factor,
            (both.effects_of_other.0, &both.level),
            (both.effects_of_other.1, &both.base),
        ),
    };
    let the = match other {
        FactorName::Layout => "the ",
        FactorName::Other(_) => "",
    };
    format!(
        "it depends on {the}{other}: {} with {at_base}, {} with {at}",
        ratio_only(ratio_base),
        ratio_only(ratio)
    )
}

/// An effect said of `level`; `None` when it is of other values.
fn turned<'a>(effect: &'a Effect, level: &str) -> Option<Turned<'a>> {
    if effect.level == level {
        return Some(Turned {
            base: &effect.base,
            effect: effect.effect,
            verdict: effect.verdict,
        });
    }
    if effect.base != level {
        return None;
    }
    let inverse = RatioEstimate {
        ratio: 1.0 / effect.effect.ratio,
        ci95: effect
            .effect
            .ci95
            .map(|(low, high)| (1.0 / high, 1.0 / low)),
    };
    Some(Turned {
        base: &effect.level,
        effect: inverse,
        verdict: match effect.verdict {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            other => other,
        },
    })
}

/// `+20 % (15 to 25)`, or `2.31 x (2.10-2.54)` where it is more than some per cent.
fn change(of: RatioEstimate) -> String {
    let is_small = |ratio: f64| (1.0 / PERCENT_RATIO_MAX..=PERCENT_RATIO_MAX).contains(&ratio);
    let is_wide = of.ci95.is_some_and(|(_, high)| high > PERCENT_END_MAX);
    if !is_small(of.ratio) || is_wide {
        let interval = of.ci95.map_or_else(String::new, |interval| {
            format!(" ({})", format_interval(interval))
        });
        return format!("{} x{interval}", format_ratio(of.ratio));
    }
    let percent = |ratio: f64| {
        let percent = 100.0 * (ratio - 1.0);
        match percent.abs() < 9.95 {
            true => format!("{percent:.1}"),
            false => format!("{percent:.0}"),
        }
    };
    let sign = if of.ratio >= 1.0 { "+" } else { "" };
    let interval = of.ci95.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", percent(low), percent(high))
    });
    format!("{sign}{} %{interval}", percent(of.ratio))
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, Keeps, RunRecord, build, sample};
    use super::*;

    fn record(values: &[(&str, &[f64])]) -> RunRecord {
        let mut record = sample::record(values);
        let cells = ["ext4, on", "ext4, off", "xfs, on", "xfs, off"];
        let levels = [[0, 0], [0, 1], [1, 0], [1, 1]];
        record.matrix = Some(MatrixRecord {
            factors: vec![
                ("layout".into(), vec!["ext4".to_owned(), "xfs".to_owned()]),
                (
                    "full_page_writes".into(),
                    vec!["on".to_owned(), "off".to_owned()],
                ),
            ],
            cells: cells
                .iter()
                .zip(levels)
                .map(|(name, levels)| ((*name).to_owned(), levels.to_vec()))
                .collect(),
            is_half: false,
        });
        record
    }

    const ON: &[f64] = &[100.0, 101.0, 99.0, 100.0, 100.5, 99.5];
    const ON_TOO: &[f64] = &[100.4, 100.8, 99.2, 99.9, 100.6, 99.4];
    const OFF: &[f64] = &[120.0, 121.5, 119.0, 120.0, 120.4, 119.1];
    const OFF_TOO: &[f64] = &[120.3, 121.0, 119.4, 120.1, 120.9, 119.0];
    const OFF_LITTLE: &[f64] = &[104.0, 105.2, 103.1, 104.3, 104.4, 103.3];

    fn sentences(record: &RunRecord) -> Vec<String> {
        let result = build(record).unwrap();
        result
            .factor_answers
            .iter()
            .map(FactorAnswer::told)
            .collect()
    }

    #[test]
    fn each_setting_is_told_with_its_interval() {
        let record = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", OFF_TOO),
        ]);
        assert_eq!(
            sentences(&record),
            [
                "xfs against ext4: no difference above 3 %; the same whatever else is set",
                "full_page_writes off against on: +20 % (20 to 20); the same whatever else is set",
            ]
        );
        let result = build(&record).unwrap();
        assert!(
            result
                .headline
                .contains("full_page_writes off against on: +20 %"),
            "{}",
            result.headline
        );
        assert_eq!((result.effects.len(), result.interactions.len()), (2, 1));
        assert_eq!(result.interactions[0].verdict, Verdict::Draw);
    }

    #[test]
    fn what_depends_on_another_setting_says_so() {
        let record = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", OFF_LITTLE),
        ]);
        assert_eq!(
            sentences(&record),
            [
                "xfs against ext4: -6.9 % (-7.0 to -6.7); it depends on full_page_writes: +0.1 % with on, -13 % with off",
                "full_page_writes off against on: +12 % (11 to 12); it depends on the layout: +20 % with ext4, +4.0 % with xfs",
            ]
        );
    }

    #[test]
    fn a_setting_that_keeps_less_says_so() {
        let mut record = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", OFF_TOO),
        ]);
        for case in [1, 3] {
            for trial in &mut record.cases[case].trials {
                trial.promise.keeps = Keeps::MayBeDamaged;
            }
            for trial in &mut record.cases[case - 1].trials {
                trial.promise.keeps = Keeps::EveryCommit;
            }
        }
        assert_eq!(
            sentences(&record)[1],
            "full_page_writes off against on: +20 % (20 to 20); with off it may be damaged by a power cut; the same whatever else is set"
        );
    }

    #[test]
    fn what_only_two_settings_together_weaken_is_said_of_both() {
        let mut record = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", OFF_TOO),
        ]);
        for case in 0..4 {
            for trial in &mut record.cases[case].trials {
                trial.promise.keeps = match case {
                    3 => Keeps::MayBeDamaged,
                    _ => Keeps::EveryCommit,
                };
            }
        }
        for sentence in sentences(&record) {
            let told = sentence.contains("; as in \"xfs, off\" it may be damaged by a power cut");
            assert!(told, "{sentence}");
        }
    }

    #[test]
    fn two_rounds_make_no_effect_and_a_missing_case_leaves_the_rest() {
        let two = record(&[
            ("ext4, on", &ON[..2]),
            ("ext4, off", &OFF[..2]),
            ("xfs, on", &ON_TOO[..2]),
            ("xfs, off", &OFF_TOO[..2]),
        ]);
        assert!(
            sentences(&two)
                .iter()
                .all(|sentence| sentence.contains("not clear")),
            "{:?}",
            sentences(&two)
        );
        let missing = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", &[]),
        ]);
        let result = build(&missing).unwrap();
        assert_eq!(
            result
                .effects
                .iter()
                .map(|effect| effect.cases)
                .collect::<Vec<_>>(),
            [2, 2]
        );
        assert!(result.interactions.is_empty());
    }

    #[test]
    fn of_several_values_the_best_is_told_against_the_others() {
        let mut record = sample::record(&[("sync", ON), ("async", OFF), ("slaves", ON_TOO)]);
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        record.matrix = Some(MatrixRecord {
            factors: vec![
                ("method".into(), names(&["sync", "async", "slaves"])),
                ("writers".into(), names(&["1", "2"])),
            ],
            cells: vec![
                ("sync".to_owned(), vec![0, 0]),
                ("async".to_owned(), vec![1, 0]),
                ("slaves".to_owned(), vec![2, 0]),
            ],
            is_half: false,
        });
        assert_eq!(
            sentences(&record),
            ["method async against sync: +20 % (20 to 20), against slaves: +20 % (20 to 20)"]
        );
    }

    #[test]
    fn at_a_rate_effects_say_what_they_are_of_whatever_the_verdict() {
        let mut record = record(&[
            ("ext4, on", ON),
            ("ext4, off", OFF),
            ("xfs, on", ON_TOO),
            ("xfs, off", OFF_TOO),
        ]);
        let noise = [1.0, 9.0, 2.0, 7.0, 1.5, 5.0];
        for (number, case) in record.cases.iter_mut().enumerate() {
            for (round, trial) in case.trials.iter_mut().enumerate() {
                trial.latency_us.p99 = 1_000.0 * noise[(round + number) % noise.len()];
                trial.arrivals = Some(Arrivals {
                    is_recorded: false,
                    rate_per_s: 1.0,
                    delay_us: trial.latency_us,
                    backlog: 0,
                    is_overloaded: false,
                });
            }
        }
        let said = sentences(&record);
        assert_eq!(said.len(), 2);
        for sentence in said {
            assert!(
                sentence.contains(": not clear, ") && sentence.contains(" in promptness (p99)"),
                "{sentence}"
            );
        }
    }
}
