//! What to do next where an answer is open or weak: which key of the experiment file to set to what, and how long the
//! run then takes. Nothing where the answer stands.

use spindle_stats::{MAX_ROUNDS, ROUNDS_TO_JUDGE, Verdict};
use spindle_text::quantity::about_time;

use super::time_needed::{compared, round_ms, rounds_of, unit_ms};
use super::wording::MOSTLY_CACHED_SHARE;
use super::{Case, PairComparison, RunResult, Stopping, Trial, disturbance, levels};

/// Where chance hides a difference whatever the rounds, trials are to be this many times as long.
const LONGER: f64 = 4.0;
/// More steps than this are too many to take at a time.
const STEPS_MAX: usize = 3;

/// Sentences, the most useful first, three at most.
pub fn next_steps(result: &RunResult) -> Vec<String> {
    let tied = tied(result);
    let steps = [
        quieter(result, &tied),
        equal_memory(result),
        more_rounds(result, &tied),
        longer_trials(result, &tied),
    ];
    steps.into_iter().flatten().take(STEPS_MAX).collect()
}

/// Comparisons of the leaders that are not decided.
fn tied(result: &RunResult) -> Vec<&PairComparison> {
    let open = result.rankings.iter().filter(|it| it.winner.is_none());
    let among_leaders = open.flat_map(|ranking| {
        let verdicts = result.verdicts_of(ranking);
        verdicts.filter(|verdict| ranking.tied.contains(&verdict.cases.b))
    });
    among_leaders
        .filter(|verdict| verdict.verdict == Verdict::Undecided)
        .collect()
}

/// The same again on a machine that has nothing else to do.
fn quieter(result: &RunResult, tied: &[&PairComparison]) -> Option<String> {
    let floor = disturbance::busy_floor(result)?;
    let is_small = |verdict: &PairComparison| verdict.ratio < 1.0 + floor;
    let is_in_doubt = !tied.is_empty() || result.verdicts.iter().any(is_small);
    is_in_doubt.then(|| {
        let time = takes(round_ms(result).map(|ms| ms * rounds_of(result)));
        format!("Stop what else uses the processors, then repeat the run{time}.")
    })
}

/// The same memory for all.
fn equal_memory(result: &RunResult) -> Option<String> {
    let is_cached = |case: &Case| {
        let share = case.page_cache_share();
        case.is_compared() && share.is_some_and(|share| share > MOSTLY_CACHED_SHARE)
    };
    let is_open = result.memory_budget_bytes.is_none() && result.cases.iter().any(is_cached);
    is_open.then(|| {
        let time = takes(round_ms(result).map(|ms| ms * rounds_of(result)));
        format!(
            "Run it as root, so that `database.memory` holds all layouts to the same memory{time}."
        )
    })
}

/// As many rounds as decide, or as a verdict needs at least.
fn more_rounds(result: &RunResult, tied: &[&PairComparison]) -> Option<String> {
    let needed = |verdict: &&PairComparison| match verdict.rounds {
        rounds if rounds < ROUNDS_TO_JUDGE => Some(ROUNDS_TO_JUDGE),
        _ => verdict.rounds_needed.filter(|needed| *needed < MAX_ROUNDS),
    };
    let needed = tied.iter().filter_map(needed).max()?;
    let has_runs = result.cases.iter().any(levels::has_runs);
    let repeats_runs = |stopping: &Stopping| stopping.runs_max.is_some();
    let key = match (has_runs, &result.stopping) {
        (true, Some(stopping)) if repeats_runs(stopping) => "max_runs",
        (true, _) => "runs",
        (false, Some(_)) => "max",
        (false, None) => "rounds",
    };
    let ms = unit_ms(result).map(|ms| ms * f64::from(needed));
    let is_timed = |stopping: &Stopping| {
        let ends_by_time = stopping.runs == 1 || stopping.runs_max.is_some();
        ends_by_time && stopping.ended_by_time_ms.is_some()
    };
    let by_time = ms.filter(|_| result.stopping.as_ref().is_some_and(is_timed));
    let (set, what) = match by_time {
        Some(ms) => (format!("time = \"{:.0}m\"", minutes(ms)), "that much time"),
        None => (format!("{key} = {needed}"), "that many rounds"),
    };
    let why = match tied.iter().any(|verdict| verdict.rounds < ROUNDS_TO_JUDGE) {
        true => format!("a verdict needs at least {ROUNDS_TO_JUDGE} rounds"),
        false => {
            format!("{what} can tell the leaders apart, if they differ by as much as now")
        }
    };
    Some(format!(
        "Set `plan.{set}`{}: {why}{}.",
        of_try(ms),
        takes(ms)
    ))
}

/// Longer trials, where no number of rounds decides.
fn longer_trials(result: &RunResult, tied: &[&PairComparison]) -> Option<String> {
    let is_hopeless = |verdict: &&PairComparison| {
        verdict.rounds >= ROUNDS_TO_JUDGE && verdict.rounds_needed.is_none_or(|it| it >= MAX_ROUNDS)
    };
    let is_timed = |trial: &Trial| trial.conditions.asked_ms.is_some();
    let mut trials = result.cases.iter().flat_map(|case| &case.trials);
    if !tied.iter().any(is_hopeless) || !trials.all(is_timed) {
        return None;
    }
    let measure_ms = result.experiment.facts().plan.measure_ms as f64;
    let more_ms = (LONGER - 1.0) * measure_ms * compared(result).count() as f64;
    let ms = round_ms(result).map(|ms| (ms + more_ms) * rounds_of(result));
    Some(format!(
        "Set `plan.measure = \"{:.0}s\"`: longer trials scatter less{}.",
        (LONGER * measure_ms / 1e3).ceil(),
        takes(ms)
    ))
}

/// What `spindle try`, which has no file, is to be given.
fn of_try(ms: Option<f64>) -> String {
    ms.map_or_else(String::new, |ms| {
        format!(" (with `spindle try`: `--time {:.0}m`)", minutes(ms))
    })
}

/// Whole minutes that are enough.
fn minutes(ms: f64) -> f64 {
    (ms / 60e3).ceil().max(1.0)
}

/// `; this takes about 12 min`.
fn takes(ms: Option<f64>) -> String {
    ms.map_or_else(String::new, |ms| {
        format!("; this takes about {}", about_time(ms as u64))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{AutoPlan, RunRecord, TrialTimes, build, sample};
    use super::*;

    const STEADY: [f64; 3] = [100.0, 101.0, 99.0];

    fn steps(record: &RunRecord) -> Vec<String> {
        next_steps(&build(record).unwrap())
    }

    /// Trials that last ten seconds each.
    fn timed(cases: &[(&str, &[f64])]) -> RunRecord {
        let mut record = sample::record(cases);
        for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
            trial.transactions = 100_000;
            trial.conditions.asked_ms = Some(5_000);
            trial.conditions.times = Some(TrialTimes {
                whole_ms: 10_000,
                ..TrialTimes::default()
            });
        }
        record
    }

    #[test]
    fn an_answer_that_stands_needs_no_next_step() {
        assert_eq!(
            steps(&timed(&[("a", &STEADY), ("b", &[50.0, 51.0, 49.0])])),
            [""; 0]
        );
    }

    #[test]
    fn leaders_that_are_not_told_apart_need_so_many_rounds_and_minutes() {
        let open: [(&str, &[f64]); 2] =
            [("a", &[100.0, 112.0, 106.0]), ("b", &[101.0, 103.0, 102.0])];
        let mut record = timed(&open);
        let result = build(&record).unwrap();
        let needed = result.verdicts[0].rounds_needed.expect("it is open");
        let minutes = (f64::from(needed) * 20.0 / 60.0).ceil();
        let told = format!(
            "Set `plan.rounds = {needed}` (with `spindle try`: `--time {minutes}m`): that many rounds can tell the leaders apart, if \
             they differ by as much as now; this takes about {}.",
            about_time(u64::from(needed) * 20_000)
        );
        assert_eq!(next_steps(&result), [told.as_str()]);
        let time = about_time(u64::from(needed) * 20_000);
        let told = format!("a verdict needs about {needed} rounds in all, {time}");
        assert!(result.headline.contains(&told), "{}", result.headline);
        record.auto = Some(AutoPlan {
            precision: 0.03,
            is_finished: true,
            warmup_s: 1.0,
            ended_by_time_ms: None,
            runs_max: None,
        });
        assert!(steps(&record)[0].starts_with("Set `plan.max = "));
        record.auto.as_mut().unwrap().ended_by_time_ms = Some(30_000);
        let timed_out = &steps(&record)[0];
        assert!(timed_out.starts_with("Set `plan.time = \""), "{timed_out}");
        assert!(
            timed_out.contains("that much time can tell the leaders apart"),
            "{timed_out}"
        );
        let two = timed(&[("a", &STEADY[..2]), ("b", &[100.0, 90.0])]);
        let begin = "Set `plan.rounds = 3` (with `spindle try`: `--time 1m`): a verdict needs at least 3 rounds";
        assert!(steps(&two)[0].starts_with(begin));
    }

    #[test]
    fn a_busy_machine_is_to_be_quieter_first() {
        let mut record = timed(&[("a", &STEADY), ("b", &[101.0, 112.0, 103.0])]);
        sample::system(&mut record, 0, &[("other_programs_cpu_percent", 84.0)]);
        let told =
            "Stop what else uses the processors, then repeat the run; this takes about 60 s.";
        assert_eq!(steps(&record)[0], told);
    }

    #[test]
    fn memory_that_answered_is_to_be_held() {
        let mut record = timed(&[("a", &STEADY), ("b", &[50.0, 51.0, 49.0])]);
        for trial in &mut record.cases[0].trials {
            trial.audit.page_cache_share = Some(0.9);
        }
        let told = steps(&record);
        assert!(
            told[0].starts_with("Run it as root, so that `database.memory`"),
            "{told:?}"
        );
    }

    #[test]
    fn noise_that_no_rounds_remove_wants_longer_trials() {
        let wild = timed(&[("a", &[100.0, 900.0, 10.0]), ("b", &[900.0, 50.0, 14.0])]);
        let told = steps(&wild);
        assert!(
            told[0].starts_with("Set `plan.measure = \"20s\"`: longer"),
            "{told:?}"
        );
    }
}
