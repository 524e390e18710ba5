//! What is said of cases beside each other: rankings, comparisons of pairs, the machine's own noise, drift over rounds
//! and what stopping early saved.

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_stats::Verdict;
use spindle_text::keeps::Keeps;

use super::{CaseId, CasePair, LoadLevel};

/// What cases are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Transactions per minute.
    #[default]
    Throughput,
    /// The 99th percentile of the transaction time from its intended begin, where load came at a fixed rate: the
    /// shorter the better.
    P99,
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Measure::Throughput => "throughput",
            Measure::P99 => "p99",
        })
    }
}

/// The outcome of one workload at one load level.
///
/// It follows from the verdicts: the winner is faster than every other case, by intervals that hold together for all
/// cases (see `spindle_stats::Family`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// Load level.
    #[serde(flatten)]
    pub load: LoadLevel,
    /// What its cases are compared by.
    #[serde(default)]
    pub measure: Measure,
    /// What the best keeps when the power goes: the strongest promise of the cases. Best and winner are found among
    /// those that keep as much, and so are the tied.
    #[serde(default)]
    pub keeps: Keeps,
    /// Name of the layout with the highest throughput, or the shortest time, of those with the strongest promise.
    pub best: String,
    /// Name of the layout that stands as the winner, always `best`; `None` when none does.
    pub winner: Option<String>,
    /// Names of the layouts that `best` is not faster than.
    pub tied: Vec<String>,
    /// Every compared case, the best first, with ties; those that keep less after those that keep more.
    #[serde(default)]
    pub places: Vec<RankedCase>,
}

impl Ranking {
    /// What a layout keeps when the power goes; that of the best for one that is not there.
    pub fn keeps_of(&self, layout: &str) -> Keeps {
        let mut places = self.places.iter();
        let place = places.find(|place| place.layout == layout);
        place.map_or(self.keeps, |place| place.keeps)
    }

    /// The best case.
    pub fn best_case(&self) -> CaseId {
        CaseId::new(&self.best, self.load)
    }

    /// The case that came in at one of its places.
    pub fn case_at(&self, place: &RankedCase) -> CaseId {
        CaseId::new(&place.layout, self.load)
    }

    /// Whether some cases keep less than the best.
    pub fn has_weaker(&self) -> bool {
        self.places.iter().any(|place| place.keeps != self.keeps)
    }
}

/// Where one layout came in under a workload and load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedCase {
    /// Name of the layout.
    pub layout: String,
    /// What it keeps when the power goes.
    #[serde(default)]
    pub keeps: Keeps,
    /// Place from 1 among those that keep as much. Layouts that were not shown to differ from the first of their place
    /// share it, as 1, 1, 3.
    pub place: u32,
    /// Its throughput over that of the best, or the time of the best over its own, and the interval of that ratio;
    /// `None` for the best itself.
    pub of_best: Option<RatioEstimate>,
}

/// A ratio of two cases over the rounds that both finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RatioEstimate {
    /// Geometric mean of the ratios of the rounds.
    pub ratio: f64,
    /// 95 % interval of the ratio; `None` with fewer than two common rounds.
    pub ci95: Option<(f64, f64)>,
}

/// Case `a` beside case `b`; both ran the same workload at the same load level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairComparison {
    /// Which two; the verdict is said of the best at its load level.
    #[serde(flatten)]
    pub cases: CasePair,
    /// Throughput of `a` over that of `b`, or time of `b` over that of `a`, as the ranking's measure says: geometric
    /// mean of the ratios of the rounds that both finished.
    pub ratio: f64,
    /// 95 % interval of the ratio, which holds together with those of all other pairs of the run; `None` with fewer
    /// than two common rounds.
    pub ci95: Option<(f64, f64)>,
    /// What may be said of `a`; undecided with fewer than three common rounds.
    pub verdict: Verdict,
    /// For an undecided comparison: how many rounds in all decide it in 95 of 100 runs, if the ratio is what it seems
    /// (or off by the margin, where that is more); at most 1,000, which stands for that many or more. `None` when
    /// decided or unknown, or when the ratio lies within the machine's own noise or what a busy one may make, which no
    /// number of rounds would change.
    pub rounds_needed: Option<u32>,
    /// For the same comparisons: rounds in all of a fixed plan that finds a difference as large as the margin in 95 of
    /// 100 runs, if rounds spread as they did; at most 1,000, which stands for that many or more. `None` without a
    /// margin, too.
    #[serde(default)]
    pub rounds_to_find: Option<u32>,
    /// `None` since a pair has one verdict. Older results have here how many rounds would make an `a` the winner that
    /// was faster as a pair and not sure among all.
    #[serde(default)]
    pub rounds_to_win: Option<u32>,
    /// Rounds that both finished.
    #[serde(default)]
    pub rounds: u32,
    /// 99th percentile of the transaction time of `a` over that of `b`: below 1 when `a` is faster.
    #[serde(default)]
    pub p99: Option<RatioEstimate>,
    /// Processor time of a transaction of `a` over that of `b`.
    #[serde(default)]
    pub cpu: Option<RatioEstimate>,
}

/// Two cases of a workload and load level, among all pairs of it. The intervals of all pairs hold together (see
/// `spindle_stats::Family`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Which two; the verdict is said of the earlier one in the experiment file.
    #[serde(flatten)]
    pub cases: CasePair,
    /// As in [`PairComparison::ratio`].
    pub ratio: f64,
    /// As in [`PairComparison::ci95`].
    pub ci95: Option<(f64, f64)>,
    /// Rounds that both finished.
    pub rounds: u32,
    /// Two-sided p-value of "the ratio is 1", of the pair alone; `None` with fewer than two common rounds.
    pub p_value: Option<f64>,
    /// The same, raised for all pairs of the run: the interval excludes 1 when it is at most 0.05, or 0.03 in a plan
    /// that stops by itself.
    pub p_value_of_all: Option<f64>,
    /// What may be said of `a`: any false difference among all pairs is called in 5 of 100 runs at most.
    pub verdict: Verdict,
    /// The same as `verdict`. Older results have here what could be said of `a` if there were no other pairs.
    pub verdict_alone: Verdict,
    /// As in [`PairComparison::rounds_needed`].
    pub rounds_needed: Option<u32>,
}

/// One case run twice under two names: by how much two equal things differ on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseFloor {
    /// Which case was run twice.
    #[serde(flatten)]
    pub case: CaseId,
    /// Name under which it was run again.
    #[serde(default)]
    pub again: String,
    /// Throughput of the second over that of the first, or time of the first over that of the second; 1 but for noise.
    pub ratio: RatioEstimate,
    /// No verdict is called on a difference smaller than this: 0.012 stands for 1.2 %. The farther end of the interval.
    pub floor: f64,
}

/// How the throughput of a case, or its 99th percentile, moved from round to round. Only drifts that the rounds show
/// are listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Which case.
    #[serde(flatten)]
    pub case: CaseId,
    /// What moved.
    #[serde(default)]
    pub measure: Measure,
    /// Change of it from one round to the next in percent, negative when it fell, and its 95 % interval.
    pub percent_per_round: f64,
    /// 95 % interval of it.
    pub ci95: (f64, f64),
    /// Two-sided p-value of "there is no drift", after allowing for all the cases that were tested.
    pub p_value: f64,
}

/// What a plan of `rounds = "auto"` came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// The precision that was asked for, as a fraction: 0.03 stands for 3 %.
    pub precision: f64,
    /// Rounds that a fixed plan of the same promise takes.
    pub rounds_max: u32,
    /// Trials that were run.
    pub trials: u32,
    /// Trials of the fixed plan.
    pub trials_of_fixed_plan: u32,
    /// Time that was saved, in seconds.
    pub saved_s: f64,
    /// The run has ended by its plan.
    #[serde(default = "is_true")]
    pub is_finished: bool,
    /// How far the ends of an interval lie from its ratio, as a fraction of it: the widest of the pairs that were
    /// measured up to [`rounds_max`](Stopping::rounds_max) and are not known to the precision. `None` when there is no
    /// such pair.
    #[serde(default)]
    pub reached: Option<f64>,
    /// That pair, in words: `the ratio of a and b at 8 clients`.
    #[serde(default)]
    pub least_known: Option<String>,
    /// Runs of the plan, in each of which the rounds said when to stop; [`rounds_max`](Stopping::rounds_max) are of all
    /// runs together.
    #[serde(default = "one")]
    pub runs: u32,
    /// The time that the plan gave, where that ended the run before its limit of rounds did, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by_time_ms: Option<u64>,
    /// The most runs, where these were repeated until pairs were settled; `None`: rounds were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_max: Option<u32>,
}

fn one() -> u32 {
    1
}

fn is_true() -> bool {
    true
}
