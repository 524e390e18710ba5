//! Which trials a run has before it: the rounds in their random order. When the rounds themselves decide how many are
//! needed, also which cases still need one. A pure function of the state in the journal, so a resumed run continues
//! alike.
//!
//! With `rounds = "auto"` each case is compared with the best so far under the same load, as the verdicts will be. A
//! pair that is settled (see `spindle_stats::Family::is_settled`) needs no further round; a case all of whose pairs are
//! settled is measured no more. Should another case become the best, its pairs count from then on, and one that is not
//! settled brings its case back. Of layouts that keep unlike promises, pairs count that decide the answer: those among
//! the layouts of the strongest promise, from which the winner comes. With several runs each begins again, and its own
//! rounds say how many it takes. With `runs = "auto"` runs are what is compared and repeated (see `runs`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use rand_xoshiro::rand_core::RngCore;
use spindle_io::env::seeded_rng;
use spindle_stats::{CaseRounds, Family, ROUNDS_TO_JUDGE, Standard, rank_in_groups};

use super::replay::{CaseKey, RunState};
use spindle_experiment::{Auto, FactorMatrix, Plan, Repeats};
use spindle_result::{Keeps, LoadLevel, Trial, speed};

/// Streams of chance from here on are the orders of rounds.
const ORDER_STREAMS: u64 = 1 << 40;
/// Streams of chance from here on are the orders in which databases are made.
const MAKING_STREAMS: u64 = 2 << 40;
/// Streams of chance from here on are the orders of turns.
const TURN_STREAMS: u64 = 3 << 40;

/// A trial to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Round, from 1.
    pub round: u32,
    /// Place in the order of the round, from 1.
    pub position: u32,
    /// Which case.
    pub case: CaseKey,
}

/// The trials of the first round that is not done, in order; none when nothing is left to measure. Skipped and failed
/// cases have none.
pub fn next_round(state: &RunState) -> Vec<Planned> {
    let plan = &state.experiment.plan;
    let maxima = maxima_left(state);
    if !maxima.is_empty() {
        return maxima;
    }
    for run in 1..=plan.runs {
        if !runs::is_wanted(state, run) {
            break;
        }
        for round in plan.rounds_of(run) {
            let wanted = wanted_in(state, round);
            if wanted.is_empty() {
                break;
            }
            let left = trials_of(state, round, &wanted);
            if !left.is_empty() {
                return left;
            }
        }
    }
    Vec::new()
}

/// Where rates are parts of what the slowest layout does: the trials of the next round that still have to tell it. All
/// layouts have theirs before load comes at any such rate.
pub fn maxima_left(state: &RunState) -> Vec<Planned> {
    if !state.experiment.workload.has_rates_of_slowest() {
        return Vec::new();
    }
    let closed: BTreeSet<CaseKey> = runnable(state)
        .into_iter()
        .filter(|(_, load)| load.rate.is_none())
        .collect();
    let mut rounds =
        rounds_of_maxima(&state.experiment.plan).map(|round| trials_of(state, round, &closed));
    rounds.find(|left| !left.is_empty()).unwrap_or_default()
}

/// Rounds whose closed loops tell what the slowest layout does.
pub fn rounds_of_maxima(plan: &Plan) -> impl Iterator<Item = u32> {
    plan.rounds_of(1).take(ROUNDS_TO_JUDGE as usize)
}

/// The slowest layout in a closed loop with this many clients, and what it does, transactions a second; `None` where
/// none did any.
pub fn slowest(state: &RunState, clients: u32) -> Option<(usize, f64)> {
    let rounds: Vec<u32> = rounds_of_maxima(&state.experiment.plan).collect();
    let of_layout = |layout: usize| {
        let trials = state.finished((layout, LoadLevel::of(clients)));
        let trials = trials.filter(|trial| rounds.contains(&trial.round) && trial.tpm > 0.0);
        let tpm: Vec<f64> = trials.map(|trial| trial.tpm).collect();
        let mean = tpm.iter().sum::<f64>() / tpm.len() as f64;
        (!tpm.is_empty()).then_some((layout, mean / 60.0))
    };
    let layouts = state.experiment.candidates();
    layouts
        .filter_map(of_layout)
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

/// The run that the next trial belongs to, from 1; `None` when nothing is left to measure.
pub fn next_run(state: &RunState) -> Option<u32> {
    let next = next_round(state);
    Some(state.experiment.plan.run_of(next.first()?.round))
}

/// How many trials are left, or may be.
pub fn trials_left(state: &RunState) -> usize {
    let next = next_round(state);
    let Some(first) = next.first() else {
        return 0;
    };
    let plan = &state.experiment.plan;
    if !maxima_left(state).is_empty() {
        let rounds = match plan.auto {
            Some(_) => 1..=ROUNDS_TO_JUDGE.min(plan.all_rounds()),
            None => rounds(state),
        };
        let of_round = |round| trials_of(state, round, &runnable(state)).len();
        return rounds.map(of_round).sum();
    }
    let is_first_run = |round| plan.run_of(round) == plan.run_of(first.round);
    let left_in = |round| match plan.auto.map(|auto| auto.repeats) {
        // What later rounds of the run will need is unknown; as a rule, no more than the next.
        Some(Repeats::Rounds) if is_first_run(round) => next.len(),
        Some(Repeats::RunsAndRounds) if is_first_run(round) => {
            trials_of(state, round, &wanted_in(state, round)).len()
        }
        _ => trials_of(state, round, &runnable(state)).len(),
    };
    let later = first.round + 1..=plan.all_rounds();
    let all = next.len() + later.map(left_in).sum::<usize>();
    let by_time = plan.auto.and_then(|auto| {
        let (spent_ms, trial_ms) = state.spent();
        Some((auto.time_ms?.saturating_sub(spent_ms) / trial_ms) as usize)
    });
    let rounds = rounds_in_any_case(state, first.round) as usize;
    let of_round = runnable(state).len().max(1);
    let least = next.len() + rounds * of_round;
    by_time.map_or(all, |by_time: usize| {
        // A round that does not fit is not begun.
        let whole = next.len() + by_time.saturating_sub(next.len()) / of_round * of_round;
        all.min(whole.max(least))
    })
}

/// Rounds after this one that are measured however long they take.
fn rounds_in_any_case(state: &RunState, round: u32) -> u32 {
    let plan = &state.experiment.plan;
    let run = plan.run_of(round);
    let place = round + 1 - plan.rounds_of(run).start();
    if !plan.repeats_runs() {
        return ROUNDS_TO_JUDGE.saturating_sub(place);
    }
    let later = (run + 1..=ROUNDS_TO_JUDGE).map(|run| runs::rounds_in(state, run));
    runs::rounds_in(state, run).saturating_sub(place) + later.sum::<u32>()
}

/// What a trial takes with all that belongs to it: the mean of those that ended, or what is reckoned before the first.
pub fn trial_time(state: &RunState) -> Duration {
    let (_, trial_ms) = state.spent();
    Duration::from_millis(trial_ms)
}

/// Whether one more round would take longer than the plan's time, going by the rounds so far.
fn is_time_up(state: &RunState, auto: Auto) -> bool {
    let (spent_ms, trial_ms) = state.spent();
    let round_ms = trial_ms * runnable(state).len() as u64;
    auto.time_ms
        .is_some_and(|time_ms| spent_ms + round_ms > time_ms)
}

/// Whether the plan's time, where it has one, has room for as long a trial as `ended`, which the state does not know
/// yet.
pub fn has_time_to_repeat(state: &RunState, ended: &Trial) -> bool {
    let time_ms = state.experiment.plan.auto.and_then(|auto| auto.time_ms);
    let (spent_ms, _) = state.spent();
    let whole_ms = ended.conditions.times.map_or(0, |times| times.whole_ms);
    time_ms.is_none_or(|time_ms| spent_ms + 2 * whole_ms <= time_ms)
}

/// Layouts with trials that are not done or may come to need one, whether or not they could be used before.
pub fn layouts_not_done(state: &RunState) -> Vec<usize> {
    if state.experiment.plan.auto.is_some() {
        let is_over = next_round(state).is_empty() && state.skipped().is_empty();
        return match is_over {
            true => Vec::new(),
            false => state.experiment.candidates().collect(),
        };
    }
    let is_left = |case: &CaseKey| rounds(state).any(|round| !state.is_done(*case, round));
    layouts_of(state.cases().into_iter().filter(is_left))
}

/// Layouts whose databases are needed for what is left.
pub fn layouts_needed(state: &RunState) -> Vec<usize> {
    let runnable = runnable(state).into_iter();
    match state.experiment.plan.auto {
        Some(_) => layouts_of(runnable),
        None => layouts_of(
            runnable.filter(|case| rounds(state).any(|round| !state.is_done(*case, round))),
        ),
    }
}

fn layouts_of(cases: impl Iterator<Item = CaseKey>) -> Vec<usize> {
    let layouts: BTreeSet<usize> = cases.map(|(layout, _)| layout).collect();
    layouts.into_iter().collect()
}

fn rounds(state: &RunState) -> std::ops::RangeInclusive<u32> {
    1..=state.experiment.plan.all_rounds()
}

/// Cases that can be run.
fn runnable(state: &RunState) -> BTreeSet<CaseKey> {
    let skipped = state.skipped();
    let cases = state.cases().into_iter();
    cases
        .filter(|case| !skipped.contains(case) && !state.has_failed(*case))
        .collect()
}

/// The trials of a round that are wanted and not done, in order.
fn trials_of(state: &RunState, round: u32, wanted: &BTreeSet<CaseKey>) -> Vec<Planned> {
    let positions = (1..).zip(order(state, round));
    positions
        .filter(|(_, case)| wanted.contains(case) && !state.is_done(*case, round))
        .map(|(position, case)| Planned {
            round,
            position,
            case,
        })
        .collect()
}

/// The order of a round, which the seed decides: the same when the run is resumed.
fn order(state: &RunState, round: u32) -> Vec<CaseKey> {
    let mut cases = state.cases();
    let stream = ORDER_STREAMS + u64::from(round);
    shuffle(&mut cases, state.experiment.seed, stream);
    cases
}

/// The trials of a round that are measured together, by turns: those of one load, in the order in which loads come
/// first. Cases of one layout have one database, so they cannot.
pub fn by_load(round: &[Planned]) -> Vec<Vec<Planned>> {
    let mut loads: Vec<Vec<Planned>> = Vec::new();
    for &planned in round {
        match loads
            .iter_mut()
            .find(|load| load[0].case.1 == planned.case.1)
        {
            Some(load) => load.push(planned),
            None => loads.push(vec![planned]),
        }
    }
    loads
}

/// Draws the order in which trials of a round have their next turn.
pub fn shuffle_turns<T>(trials: &mut [T], seed: u64, round: u32, turn: u64) {
    shuffle(trials, seed, TURN_STREAMS + (u64::from(round) << 20) + turn);
}

/// The order in which the databases of some layouts are made. The first to be made may lie better than the last on
/// storage that they share: so that this favours no place in the experiment file, each run draws its own order,
/// and each run of a plan another.
pub fn order_of_making(state: &RunState, wanted: &[usize]) -> Vec<usize> {
    let distinct: BTreeSet<usize> = wanted.iter().copied().collect();
    let mut layouts: Vec<usize> = distinct.into_iter().collect();
    let seed = state.experiment.seed ^ u64::from(crc32c::crc32c(state.run.as_bytes()));
    let stream = MAKING_STREAMS + u64::from(next_run(state).unwrap_or_default());
    shuffle(&mut layouts, seed, stream);
    layouts
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], seed: u64, stream: u64) {
    let mut rng = seeded_rng(seed, stream);
    for last in (1..items.len()).rev() {
        items.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// The cases that a round is to measure, from what the rounds of its run before it showed.
fn wanted_in(state: &RunState, round: u32) -> BTreeSet<CaseKey> {
    let runnable = runnable(state);
    let plan = &state.experiment.plan;
    let Some(auto) = plan.auto else {
        return runnable;
    };
    let first = *plan.rounds_of(plan.run_of(round)).start();
    match auto.repeats {
        Repeats::Rounds => {}
        Repeats::Runs => return runnable,
        Repeats::RunsAndRounds => {
            let is_of_run = round - first < runs::rounds_in(state, plan.run_of(round));
            return runnable.into_iter().filter(|_| is_of_run).collect();
        }
    }
    if round >= first + ROUNDS_TO_JUDGE && is_time_up(state, auto) {
        return BTreeSet::new();
    }
    if round < first + spindle_stats::ROUNDS_MIN {
        return runnable;
    }
    let wanted = unsettled_by(state, &runnable, auto, first..round);
    // An effect is of all cases together, so none of them ends before the others.
    let is_matrix = |matrix: &FactorMatrix| matrix.factors.len() > 1;
    match state.experiment.matrix.as_ref().is_some_and(is_matrix) && !wanted.is_empty() {
        true => runnable,
        false => wanted,
    }
}

/// The cases that these rounds did not settle.
fn unsettled_by(
    state: &RunState,
    runnable: &BTreeSet<CaseKey>,
    auto: Auto,
    rounds: Range<u32>,
) -> BTreeSet<CaseKey> {
    let mut loads: BTreeMap<LoadLevel, Vec<Measured>> = BTreeMap::new();
    let mut wanted = BTreeSet::new();
    for &case in runnable {
        let measured = Measured::between(state, case, rounds.clone());
        // One that failed so far, or committed nothing, has nothing to be compared by.
        if measured.rounds.values.is_empty() {
            wanted.insert(case);
        } else {
            loads.entry(case.1).or_default().push(measured);
        }
    }
    let precision = auto.precision_percent / 100.0;
    let standard = Standard {
        tables: loads.values().filter(|cases| cases.len() > 1).count() as u32,
        ..state.experiment.plan.standard()
    };
    for cases in loads.values() {
        wanted.extend(unsettled(state, cases, standard, precision));
    }
    wanted
}

/// A case, what it is compared by, and what it keeps, as the verdicts will have it.
struct Measured {
    case: CaseKey,
    rounds: CaseRounds,
    keeps: Keeps,
}

impl Measured {
    fn between(state: &RunState, case: CaseKey, rounds: Range<u32>) -> Measured {
        let trials = state.finished(case);
        let values: BTreeMap<u32, f64> = trials
            .filter(|trial| rounds.contains(&trial.round) && trial.tpm > 0.0)
            .map(|trial| (trial.round, speed(trial)))
            .collect();
        let plan = &state.experiment.plan;
        let compared_by_runs = plan.repeats_runs();
        let run_of = |round: &u32| compared_by_runs.then(|| (*round, plan.run_of(*round)));
        let keeps = state.finished(case).map(|trial| trial.promise.keeps);
        Measured {
            case,
            rounds: CaseRounds {
                runs: values.keys().filter_map(run_of).collect(),
                values,
                ..CaseRounds::default()
            },
            keeps: keeps.max().unwrap_or_default(),
        }
    }
}

/// Of the cases of one load level those that belong to a pair that is not settled: the best and another, or a layout
/// and the same once more for the noise check.
fn unsettled(
    state: &RunState,
    cases: &[Measured],
    standard: Standard,
    precision: f64,
) -> BTreeSet<CaseKey> {
    let layout_of = |measured: &Measured| &state.experiment.layouts[measured.case.0];
    let (again, competing): (Vec<&Measured>, Vec<&Measured>) = cases
        .iter()
        .partition(|measured| layout_of(measured).repeats.is_some());
    let mut wanted = BTreeSet::new();
    for again in again {
        let repeats = layout_of(again).repeats.as_ref();
        let mut firsts = competing.iter().copied();
        if let Some(first) = firsts.find(|measured| repeats == Some(&layout_of(measured).name)) {
            wanted.extend(unsettled_beside(&[first, again], 0, standard, precision));
        }
    }
    let groups: Vec<u32> = competing.iter().map(|case| case.keeps as u32).collect();
    let best = rank_in_groups(&rounds_of(&competing), &groups, standard);
    if let Ok(best) = best.map(|ranking| ranking.best) {
        wanted.extend(unsettled_beside(&competing, best, standard, precision));
    }
    wanted
}

/// The cases of the pairs with the one at index `best` that are not settled: pairs with those that keep as much, for
/// among them is the winner. Where none does, the others are all there is to be told.
fn unsettled_beside(
    cases: &[&Measured],
    best: usize,
    standard: Standard,
    precision: f64,
) -> BTreeSet<CaseKey> {
    let rounds = rounds_of(cases);
    let Ok(family) = Family::of(&rounds, standard) else {
        return BTreeSet::new();
    };
    let keeps_as_much = |other: &usize| cases[*other].keeps == cases[best].keeps;
    let others = (0..cases.len()).filter(|other| *other != best);
    let is_alone = !others.clone().any(|other| keeps_as_much(&other));
    others
        .filter(|other| is_alone || keeps_as_much(other))
        .filter(|other| !family.is_settled(best, *other, precision))
        .flat_map(|other| [cases[best].case, cases[other].case])
        .collect()
}

fn rounds_of(cases: &[&Measured]) -> Vec<CaseRounds> {
    let of_case = |measured: &&Measured| measured.rounds.clone();
    cases.iter().map(of_case).collect()
}

mod runs;
#[cfg(test)]
mod tests;
