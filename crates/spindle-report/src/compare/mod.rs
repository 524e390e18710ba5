//! `spindle compare`: what became of the cases of a run in other runs, of another day or another machine; or of several
//! runs in several others. Rounds of different runs share nothing, so cases are compared by Welch's interval and not in
//! pairs: of rounds where a side is one run, of runs where it is several ([`spindle_stats::compare_runs`]). The
//! intervals of all cases hold together. Where machines or settings differ nothing is called faster or slower, unless
//! the person says that just this difference is the question.

mod cases;
pub(crate) mod differences;
mod json;
mod orderings;
mod text;

use serde::Serialize;
use spindle_stats::{UnpairedRatio, Verdict};

use spindle_result::StoredRun;
use spindle_result::{CaseId, Measure, RunResult};

pub use cases::compare;
pub(crate) use cases::figures;
pub use differences::Difference;
pub use json::json;
pub use orderings::{OrderedLayout, Orderings, Pairs};
pub use text::render;

/// What a person wants of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// A case that became slower by more than this fraction has regressed: 0.05 stands for 5 %. At least 0, below 1.
    pub threshold: f64,
    /// Judge although machines or their settings differ.
    pub across_machines: bool,
    /// Judge although the experiments ask for different things.
    pub across_settings: bool,
}

/// A run in a comparison.
#[derive(Clone, Copy)]
pub struct ComparedRun<'a> {
    /// What people call it: its directory.
    pub name: &'a str,
    /// When it began.
    pub started_at: &'a str,
    /// What it found.
    pub result: &'a RunResult,
}

impl<'a> ComparedRun<'a> {
    /// The side that a stored run is; `name` is its directory as the person wrote it.
    pub fn of(run: &'a StoredRun, name: &'a str) -> ComparedRun<'a> {
        ComparedRun {
            name,
            started_at: &run.started_at,
            result: &run.result,
        }
    }
}

/// One side beside the first: a run each, or several.
pub struct RunComparison {
    /// As in [`CompareOptions::threshold`].
    pub threshold: f64,
    /// What differs in the machines.
    pub machines: Vec<Difference>,
    /// What differs in workload and plan.
    pub experiments: Vec<Difference>,
    /// The cases of the first side, in its order, then those that only the other has.
    pub cases: Vec<CaseComparison>,
    /// How each run orders the layouts, when their databases are different ones.
    pub orderings: Vec<Orderings>,
}

/// One case on both sides.
pub struct CaseComparison {
    /// Which case.
    pub id: CaseId,
    /// Its workload.
    pub workload: String,
    /// What came of it.
    pub judgement: Judgement,
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Compared.
    Compared {
        /// By what.
        measure: Measure,
        /// Mean of the measure on the first side, in transactions per minute or microseconds.
        before: f64,
        /// On the other.
        after: f64,
        /// How fast it is now over how fast it was: of throughput, or of the inverse of the transaction time.
        speed: UnpairedRatio,
        /// How many runs of each side have figures of it.
        runs: [usize; 2],
        /// How far runs differ; `None` where each side is a single run.
        noise: Option<Noise>,
        /// The settings of this layout that differ.
        differences: Vec<Difference>,
        /// What may be said of it now.
        call: CaseCall,
    },
    /// One of the sides has no figures of it.
    Missing {
        /// Why, in words.
        reason: String,
        /// The first side measured it and on the other it broke off.
        is_regression: bool,
    },
}

/// How far runs of one side differ in a case: standard deviations, 0.02 is about 2 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// What a run adds to all its rounds.
    pub between_runs: f64,
    /// Of a round within its run; `None` where every run has a single round.
    pub between_rounds: Option<f64>,
    /// Runs a side that tell a loss of the threshold's size from none, at this noise; `None` with a threshold of 0.
    pub runs_needed: Option<u32>,
}

/// What may be said of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseCall {
    /// Machines and settings agree, or the person said that they need not.
    Called {
        /// Of the other side, with the threshold for the margin of a draw.
        verdict: Verdict,
        /// It is slower, and by more than the threshold.
        is_regression: bool,
    },
    /// Nothing is called: machines or settings differ.
    Refused,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Every case that was judged would have shown a regression, and none did.
    NoRegression,
    /// A case became slower by more than the threshold, or broke off.
    Regression,
    /// No case was judged.
    NothingJudged,
    /// No regression was found, but one of the threshold's size could have been missed in at least one case.
    TooImprecise,
}

impl Conclusion {
    /// That of several comparisons: a regression in any counts, and so does one in which nothing was judged.
    pub fn of_all(outcomes: impl Iterator<Item = Conclusion>) -> Conclusion {
        let gravest = |all: Conclusion, one: Conclusion| match (all, one) {
            (Conclusion::Regression, _) | (_, Conclusion::Regression) => Conclusion::Regression,
            (Conclusion::NothingJudged, _) | (_, Conclusion::NothingJudged) => {
                Conclusion::NothingJudged
            }
            (Conclusion::TooImprecise, _) | (_, Conclusion::TooImprecise) => {
                Conclusion::TooImprecise
            }
            _ => Conclusion::NoRegression,
        };
        outcomes.fold(Conclusion::NoRegression, gravest)
    }
}

impl RunComparison {
    /// Its outcome.
    pub fn outcome(&self) -> Conclusion {
        match (self.has_regression(), self.is_judged()) {
            (true, _) => Conclusion::Regression,
            (false, false) => Conclusion::NothingJudged,
            (false, true) if self.too_imprecise().next().is_some() => Conclusion::TooImprecise,
            (false, true) => Conclusion::NoRegression,
        }
    }

    /// The cases that were judged, and would not surely have shown a regression: how much slower each would have had to
    /// become.
    pub fn too_imprecise(&self) -> impl Iterator<Item = f64> {
        let threshold = self.threshold;
        self.cases.iter().filter_map(move |case| {
            let speed = case.speed_judged()?;
            let (low, _) = speed.ci95?;
            let sees = match case.has_too_few() {
                true => 1.0,
                false => sees(speed)?,
            };
            (sees > threshold && low < 1.0 - threshold).then_some(sees)
        })
    }

    /// A case became slower by more than the threshold, or broke off.
    pub fn has_regression(&self) -> bool {
        self.cases.iter().any(|case| {
            let (Judgement::Compared {
                call: CaseCall::Called { is_regression, .. },
                ..
            }
            | Judgement::Missing { is_regression, .. }) = &case.judgement
            else {
                return false;
            };
            *is_regression
        })
    }

    /// The noise of the case that needs the most runs; `None` where each side is a single run.
    pub fn noisiest(&self) -> Option<(&CaseId, Noise)> {
        let noises = self.cases.iter().filter_map(|case| match &case.judgement {
            Judgement::Compared { noise, .. } => Some((&case.id, (*noise)?)),
            Judgement::Missing { .. } => None,
        });
        noises.max_by_key(|(_, noise)| noise.runs_needed)
    }

    /// Both sides hold the same figures in every case that was judged: a run beside itself.
    pub(crate) fn is_one_run(&self) -> bool {
        let mut judged = self.cases.iter().filter_map(CaseComparison::speed_judged);
        self.is_judged() && judged.all(|speed| speed.ci95 == Some((1.0, 1.0)))
    }

    /// At least one case was judged.
    pub fn is_judged(&self) -> bool {
        self.cases.iter().any(|case| case.speed_judged().is_some())
    }
}

impl CaseComparison {
    /// Its ratio, when the case was judged.
    fn speed_judged(&self) -> Option<&UnpairedRatio> {
        match &self.judgement {
            Judgement::Compared {
                call: CaseCall::Called { .. },
                speed,
                ..
            } if speed.ci95.is_some() => Some(speed),
            _ => None,
        }
    }

    /// Its interval excludes 1, and nothing is called: there were too few rounds or runs for that.
    pub(crate) fn has_too_few(&self) -> bool {
        let is_undecided = matches!(
            self.judgement,
            Judgement::Compared {
                call: CaseCall::Called {
                    verdict: Verdict::Undecided,
                    ..
                },
                ..
            }
        );
        let interval = self.speed_judged().and_then(|speed| speed.ci95);
        is_undecided && interval.is_some_and(|(low, high)| high < 1.0 || low > 1.0)
    }
}

/// The smallest loss of speed, as a fraction, that an interval as wide as this one tells from none; `None` without an
/// interval.
pub fn sees(speed: &UnpairedRatio) -> Option<f64> {
    let (low, high) = speed.ci95?;
    Some(1.0 - (low / high).sqrt())
}

#[cfg(test)]
mod tests {
    use super::cases::{call, figures};
    use super::*;

    fn called(ratio: f64, low: f64, high: f64) -> (Verdict, bool) {
        let speed = UnpairedRatio {
            ratio,
            ci95: Some((low, high)),
            p_value: None,
        };
        match call(&speed, 0.05) {
            CaseCall::Called {
                verdict,
                is_regression,
            } => (verdict, is_regression),
            CaseCall::Refused => panic!("nothing forbids a call"),
        }
    }

    #[test]
    fn a_run_beside_itself_does_not_differ() {
        let record = spindle_result::sample::record(&[("a", &[100.0, 150.0]), ("b", &[90.0])]);
        let result = spindle_result::build(&record).unwrap();
        let side = [ComparedRun {
            name: "run",
            started_at: "today",
            result: &result,
        }];
        let options = CompareOptions {
            threshold: 0.03,
            across_machines: false,
            across_settings: false,
        };
        let compared = compare(&side, &side, &options).unwrap();
        assert_eq!(compared.outcome(), Conclusion::NoRegression);
        let told = render(&side, &side, &compared, &options, Default::default());
        assert!(
            told.contains("No difference: both sides are one run"),
            "{told}"
        );
        for case in &compared.cases {
            let Judgement::Compared { call, .. } = &case.judgement else {
                panic!("{:?}", case.judgement)
            };
            let verdict = Verdict::Draw;
            let is_regression = false;
            assert_eq!(
                *call,
                CaseCall::Called {
                    verdict,
                    is_regression
                }
            );
        }
    }

    #[test]
    fn what_went_on_around_a_run_is_told_of_that_run() {
        let mut record = spindle_result::sample::record(&[("a", &[100.0, 101.0, 99.0])]);
        let quiet = spindle_result::build(&record).unwrap();
        spindle_result::sample::system(&mut record, 0, &[("other_programs_cpu_percent", 84.0)]);
        let busy = spindle_result::build(&record).unwrap();
        let [before, now] =
            [("quiet", &quiet), ("busy", &busy)].map(|(name, result)| ComparedRun {
                name,
                started_at: "today",
                result,
            });
        let options = CompareOptions {
            threshold: 0.03,
            across_machines: false,
            across_settings: false,
        };
        let compared = compare(&[before], &[now], &options).unwrap();
        let told = render(&[before], &[now], &compared, &options, Default::default());
        let noise: Vec<&str> = told
            .lines()
            .filter(|line| line.contains("noise:"))
            .collect();
        assert_eq!(
            noise,
            [
                "noise: busy: Other programs took 84 % of the processors: do not trust a difference below 2 x. Stop them, \
                 and run again."
            ]
        );
    }

    #[test]
    fn a_regression_is_sure_and_beyond_the_threshold() {
        assert_eq!(called(0.90, 0.86, 0.94), (Verdict::Slower, true));
        assert_eq!(called(0.94, 0.90, 0.99), (Verdict::Slower, true));
        assert_eq!(called(0.96, 0.93, 0.99), (Verdict::Slower, false));
        assert_eq!(called(0.90, 0.80, 1.01), (Verdict::Undecided, false));
        assert_eq!(called(0.97, 0.95, 0.99), (Verdict::Draw, false));
        assert_eq!(called(1.20, 1.10, 1.30), (Verdict::Faster, false));
        assert_eq!(called(1.02, 0.97, 1.07), (Verdict::Undecided, false));
    }

    #[test]
    fn without_an_interval_nothing_is_decided() {
        let speed = UnpairedRatio {
            ratio: 0.5,
            ci95: None,
            p_value: None,
        };
        assert_eq!(
            call(&speed, 0.05),
            CaseCall::Called {
                verdict: Verdict::Undecided,
                is_regression: false
            }
        );
    }

    /// Runs whose cases have these intervals, beside a threshold of 5 %.
    fn of_intervals(intervals: &[(f64, f64)]) -> RunComparison {
        let case = |&(low, high): &(f64, f64)| {
            let speed = UnpairedRatio {
                ratio: (low * high).sqrt(),
                ci95: Some((low, high)),
                p_value: Some(0.5),
            };
            CaseComparison {
                id: CaseId::new("a", 8),
                workload: "oltp_mix".to_owned(),
                judgement: Judgement::Compared {
                    measure: Measure::Throughput,
                    before: 1.0,
                    after: 1.0,
                    speed,
                    runs: [1, 1],
                    noise: None,
                    differences: Vec::new(),
                    call: call(&speed, 0.05),
                },
            }
        };
        RunComparison {
            threshold: 0.05,
            machines: Vec::new(),
            experiments: Vec::new(),
            cases: intervals.iter().map(case).collect(),
            orderings: Vec::new(),
        }
    }

    #[test]
    fn a_layout_that_may_differ_is_told_with_what_differs() {
        let mut comparison = of_intervals(&[(0.9, 1.1)]);
        let Judgement::Compared { differences, .. } = &mut comparison.cases[0].judgement else {
            panic!("it is compared");
        };
        differences.push(Difference {
            setting: "database.size_bytes".to_owned(),
            before: "1".to_owned(),
            after: "2".to_owned(),
            runs: Vec::new(),
        });
        let options = CompareOptions {
            threshold: 0.05,
            across_machines: false,
            across_settings: true,
        };
        let style = crate::table::Style {
            width: 80,
            colour: false,
        };
        let text = render(&[], &[], &comparison, &options, style);
        for told in [
            "Workload and plan agree.\nLayouts of one name differ, see below.\n",
            "The layout a differs, as was said:\n  database.size_bytes: 1 -> 2\n",
        ] {
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn what_could_not_have_been_seen_is_not_called_absent() {
        let wide = of_intervals(&[(0.44, 2.25), (0.6, 1.7), (0.7, 1.4)]);
        assert_eq!(wide.outcome(), Conclusion::TooImprecise);
        let told = text::render_conclusion(&wide);
        assert!(
            told.starts_with(
                "0 of 3 cases are known well enough to see 5 % (they see 29 % at best)"
            ),
            "{told}"
        );
        let one_wide = of_intervals(&[(0.98, 1.02), (0.7, 1.4)]);
        assert_eq!(one_wide.outcome(), Conclusion::TooImprecise);
        assert!(text::render_conclusion(&one_wide).starts_with("1 of 2 cases are known"));
        // Wide, and yet no regression can hide in the second.
        let known = of_intervals(&[(0.98, 1.02), (1.1, 2.2)]);
        assert_eq!(known.outcome(), Conclusion::NoRegression);
        let regressed = of_intervals(&[(0.7, 1.4), (0.8, 0.9)]);
        assert_eq!(regressed.outcome(), Conclusion::Regression);
    }

    /// Each run has its own maximum.
    #[test]
    fn a_part_of_a_maximum_is_not_compared_between_runs() {
        let record = spindle_result::sample::with_rates(&["30%"]);
        let result = spindle_result::build(&record).unwrap();
        let cases = result.cases.iter();
        let known: Vec<bool> = cases.map(|case| figures(case).is_ok()).collect();
        assert_eq!(known, [true, true, false, false]);
    }

    /// Of two equal runs of many cases, some case seems slower by luck unless that is allowed for.
    #[test]
    fn the_intervals_of_all_cases_hold_together() {
        let values = [[100.0, 101.0, 99.0, 100.5], [99.0, 98.0, 98.5, 98.2]];
        let width = |comparisons| {
            let speed =
                spindle_stats::compare_unpaired_among(&values[1], &values[0], comparisons).unwrap();
            speed.ci95.map(|(low, high)| high / low).unwrap()
        };
        assert!(width(6) > width(1));
    }
}
