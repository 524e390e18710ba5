//! What both reports say in words, once: how the run was made and judged, what it costs to be sure, how it is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::comparison::{self, ratio};
use super::{cost, device_limits};
use spindle_result::{
    CaseStatus, Drift, Layout, LoadLevel, Measure, NoiseFloor, RunResult, Stopping, Trial,
    format_interval, named, percent,
};
use spindle_text::quantity::{duration_text, size, thousands};

/// The data that was loaded, in words: how much, or the files of `load` that made it, as `size` is a guess then.
pub(crate) fn data(result: &RunResult) -> String {
    let asked = result.experiment.facts();
    let files = &asked.workload.loaded_from;
    if files.is_empty() {
        return format!("{} of data", size(asked.database.size_bytes));
    }
    let names = files.iter();
    let names = names.filter_map(|name| Path::new(name).file_name()?.to_str());
    format!("data of {}", names.collect::<Vec<_>>().join(", "))
}

/// What was tested, in a line: database, size of the data, layouts, rounds, machine, day.
pub(crate) fn context(result: &RunResult) -> String {
    let layouts = result.layouts.len();
    let machine = result.machine.as_ref();
    let processors = machine.and_then(|machine| machine.processor.logical_processors);
    let host = machine.map(|machine| machine.host.clone());
    let day = machine.and_then(|machine| machine.captured_at.get(..10));
    let parts = [
        Some(engines(result).join(" and ")),
        Some(data(result)),
        Some(counted(layouts, "layout")),
        rounds(result),
        processors.map(|processors| counted(processors as usize, "processor")),
        host,
        day.map(str::to_owned),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `6 rounds x 3 s`, of trials that are measured for a time.
pub(crate) fn rounds(result: &RunResult) -> Option<String> {
    let plan = &result.experiment.facts().plan;
    let most = result.cases.iter().max_by_key(|case| case.trials.len())?;
    let rounds = in_runs(&most.trials);
    let seconds = plan.measure_ms as f64 / 1e3;
    if !is_time_of_trials(result, seconds) {
        return Some(rounds);
    }
    let turns = plan.interleave_ms.map_or_else(String::new, |turn_ms| {
        format!(" by turns of {} s", turn_ms as f64 / 1e3)
    });
    Some(format!("{rounds} x {seconds} s{turns}"))
}

/// `9 rounds`, `3 runs x 3 rounds`, or `9 rounds in 4 runs`.
fn in_runs(trials: &[Trial]) -> String {
    let mut of_runs: BTreeMap<u32, usize> = BTreeMap::new();
    for run in trials.iter().filter_map(|trial| trial.conditions.run) {
        *of_runs.entry(run).or_default() += 1;
    }
    let (runs, rounds) = (of_runs.len(), counted(trials.len(), "round"));
    let mut lengths = of_runs.into_values();
    let Some(first) = lengths.next() else {
        return rounds;
    };
    match lengths.all(|of_run| of_run == first) {
        true => format!("{} x {}", counted(runs, "run"), counted(first, "round")),
        false => format!("{rounds} in {}", counted(runs, "run")),
    }
}

/// Whether some trial was measured for about this long, seconds. Those of bulk loads and queries end by themselves.
fn is_time_of_trials(result: &RunResult, seconds: f64) -> bool {
    let mut trials = result.cases.iter().flat_map(|case| &case.trials);
    trials.any(|trial| {
        let measured_s = trial
            .conditions
            .times
            .map(|times| times.measured_ms as f64 / 1e3);
        measured_s.is_none_or(|measured_s| (0.9..1.5).contains(&(measured_s / seconds)))
    })
}

/// The databases that were measured, in the order of the layouts; all of them where none could be.
pub(crate) fn engines(result: &RunResult) -> Vec<&str> {
    let is_measured = |layout: &&Layout| {
        let mut cases = result.cases.iter();
        cases.any(|case| case.id.layout == layout.name && case.outcome == CaseStatus::Measured)
    };
    let mut measured: Vec<_> = result.layouts.iter().filter(is_measured).collect();
    if measured.is_empty() {
        measured = result.layouts.iter().collect();
    }
    let mut engines: Vec<&str> = Vec::new();
    for layout in measured {
        let engine = layout.engine.as_deref().unwrap_or("embedded database");
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    engines
}

/// What a device says of itself: whether the kernel takes it for a spinning disk.
pub(crate) fn kind_of_device(rotational: bool) -> String {
    let kind = match rotational {
        true => "rotational",
        false => "solid state",
    };
    kind.to_owned()
}

/// `1 client`, `8 clients`, `1,234 transactions`.
pub fn counted(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", thousands(number as f64)),
    }
}

/// The workload and a load level, as headings name them: `oltp_mix, 8 clients`.
pub(crate) fn load_name(result: &RunResult, load: LoadLevel) -> String {
    format!("{}, {load}", result.workload)
}

/// The heading over the effects of a matrix.
pub(crate) const EFFECTS: &str = "What each setting does, over all combinations of the others (95 % intervals, which hold together)";

/// What a half fraction leaves open; `None` of other experiments.
pub(super) fn of_half(result: &RunResult) -> Option<&'static str> {
    let matrix = result.experiment.facts().matrix.as_ref()?;
    matrix.is_half.then_some(
        "Half of all combinations were measured: effects of one setting and of two together are told apart, those of three \
         together are not.",
    )
}

/// The heading over what to do next.
pub(super) const NEXT: &str = "What to do next";

/// What a run needs to be repeated.
pub(super) const REPEAT: &str = "\
Run it on the same machine, from the same directory. The run directory holds the experiment with all defaults filled \
in.";

/// The command that does.
pub(super) const REPEAT_COMMAND: &str = "spindle run RUN-DIRECTORY";

/// How trials were ordered and compared.
pub(super) fn how_compared(result: &RunResult) -> String {
    let measured = result.cases.iter().filter(|case| case.is_compared());
    let rounds: BTreeSet<usize> = measured.map(|case| case.trials.len()).collect();
    let (ran, of_unlike) = match rounds.len() {
        0 | 1 => ("Every round ran every case once", ""),
        _ => (
            "Every round ran each case once that was still to be told apart from others",
            " A ratio is of the rounds that both cases ran; the throughput of a case is that of all its own rounds.",
        ),
    };
    format!(
        "{ran}, in random order, each from the same restored database. Cases of one workload and load are compared round \
         by round, or run by run where the plan has several: the logarithms of their ratios, in Student's t intervals. All \
         intervals of the run hold together: in at most 5 of 100 runs does any of them miss the true ratio. A winner is \
         faster than every other case by these intervals.{of_unlike}"
    )
}

/// Whether every case had the same memory.
pub(super) fn memory_terms(result: &RunResult) -> String {
    let cache = comparison::words(result).cache;
    match (result.memory_budget_bytes, result.beyond_budget_bytes()) {
        (Some(bytes), None) => format!(
            "The {cache} and the page cache together were held to {} in every case.",
            size(bytes)
        ),
        (Some(bytes), Some(held)) => format!(
            "The {cache} and the page cache together were to be held to {} in every case, but up to {} of the data files \
             were in the page cache.",
            size(bytes),
            size(held)
        ),
        (None, _) => "Memory had no budget: the page cache of buffered layouts could use all free memory. Checks says what share of the reads it answered."
            .to_owned(),
    }
}

/// What layouts that were made slower than their devices show, as a sentence to follow others.
pub(super) fn emulation_terms(result: &RunResult) -> &'static str {
    if result
        .layouts
        .iter()
        .all(|layout| layout.emulated.is_empty())
    {
        return "";
    }
    " Some layouts were made slower than their devices, as their descriptions say: a limit holds a device to a rate, as an \
     array does; a delay adds time to each I/O, as a slower disk does. They emulate such hardware and were not measured on it."
}

/// What the instrument itself took, as sentences to follow others.
pub(super) fn costs(result: &RunResult) -> String {
    let costs = [
        cost::own_cost(result),
        cost::memory(result),
        device_limits::reached(result),
    ];
    let sentence = |text: String| format!(" {text}.");
    costs.into_iter().flatten().map(sentence).collect()
}

/// What a table of all pairs may be trusted with.
pub(super) const ALL_PAIRS: &str = "\
Every layout (row) beside every other (column): the ratio, and what the row's layout is. All 95 % intervals of the run hold together: \
in at most 5 of 100 runs does any of them miss the true ratio. They are the intervals of the verdicts, the ranking and the headline.";

/// What a ratio above 1 means, in words to follow a table or a chart.
pub(super) fn compared_by(result: &RunResult) -> &'static str {
    match measure_of(result) {
        Some(Measure::Throughput) => "Ratios are of throughput.",
        None => {
            "Ratios are of throughput where there was no rate. At a rate they are of the 99th percentile of the \
             transaction time, counted from its intended begin: above 1 means a faster response."
        }
        Some(Measure::P99) => {
            "The rate was given, so throughput shows only which layouts kept up. Ratios are of the 99th percentile \
             of the transaction time, counted from its intended begin: above 1 means a faster response."
        }
    }
}

/// What the cases of a run are compared by; `None` where load came at a rate in some of them, and in others not.
pub(super) fn measure_of(result: &RunResult) -> Option<Measure> {
    let mut measures = result.rankings.iter().map(|ranking| ranking.measure);
    let first = measures.next().unwrap_or(Measure::Throughput);
    measures.all(|measure| measure == first).then_some(first)
}

/// The machine's own noise.
pub(crate) fn noise(noise: &NoiseFloor) -> String {
    let interval = noise.ratio.ci95.map_or_else(String::new, |interval| {
        format!(" ({})", format_interval(interval))
    });
    format!(
        "Noise floor: {} run twice under two names differed by a ratio of {}{interval} at {}, so no difference below \
         {:.1} % is called.",
        named(&noise.case.layout),
        ratio(noise.ratio.ratio),
        noise.case.load,
        100.0 * noise.floor
    )
}

/// How a case moved from round to round.
pub(super) fn drift(drift: &Drift) -> String {
    let (low, high) = drift.ci95;
    let direction = if drift.percent_per_round < 0.0 {
        "fell"
    } else {
        "rose"
    };
    format!(
        "Drift: the {} of {} {direction} by {:.1} % from round to round at {} ({low:.1} to {high:.1} %, p {}).",
        drift.measure,
        named(&drift.case.layout),
        drift.percent_per_round.abs(),
        drift.case.load,
        p_value(drift.p_value)
    )
}

fn p_value(p: f64) -> String {
    if p < 0.001 {
        "below 0.001".to_owned()
    } else {
        format!("= {p:.3}")
    }
}

/// What stopping early saved.
pub(crate) fn stopping(stopping: &Stopping) -> String {
    if let Some(limit) = limit_reached(stopping) {
        return limit;
    }
    let precision = percent(stopping.precision);
    if let (Some(runs_max), true) = (stopping.runs_max, stopping.is_finished) {
        return format!(
            "Stopped when each ratio was known to within {precision} % or a difference was certain: {} runs of at most {runs_max}, {} trials. \
             That saved {}.",
            stopping.runs,
            stopping.trials,
            time(stopping.saved_s)
        );
    }
    if stopping.runs > 1 && stopping.is_finished {
        return format!(
            "In each of {} runs cases were measured until each ratio was known to within {precision} % or decided with certainty, for \
             {} rounds at most: {} trials, where {} rounds of every case take {}. That saved {}.",
            stopping.runs,
            stopping.rounds_max / stopping.runs,
            stopping.trials,
            stopping.rounds_max,
            stopping.trials_of_fixed_plan,
            time(stopping.saved_s)
        );
    }
    if !stopping.is_finished {
        return format!(
            "{} trials so far, of at most {}; the run goes on until each ratio is known to within {precision} %.",
            stopping.trials, stopping.trials_of_fixed_plan
        );
    }
    format!(
        "Stopped when each ratio was known to within {precision} % or a difference was certain: {} trials, where {} rounds of every case take {}. That \
         saved {}.",
        stopping.trials,
        stopping.rounds_max,
        stopping.trials_of_fixed_plan,
        time(stopping.saved_s)
    )
}

/// What a plan came to that had all its rounds or runs, or all its time; `None` where it stopped by itself.
fn limit_reached(stopping: &Stopping) -> Option<String> {
    let precision = percent(stopping.precision);
    let ended = match stopping.runs_max {
        Some(_) => format!("{} runs", stopping.runs),
        None => format!("{} rounds", stopping.rounds_max),
    };
    let in_time = stopping.ended_by_time_ms.map(|time_ms| {
        let time = duration_text(time_ms);
        format!("when its time was over (`plan.time = \"{time}\"`)")
    });
    let Some(reached) = stopping.reached else {
        let is_whole = stopping.is_finished && stopping.trials >= stopping.trials_of_fixed_plan;
        let why = in_time.filter(|_| is_whole)?;
        return Some(format!(
            "Ended after {ended}, {why}; by then each ratio was known to within {precision} % or a difference was certain."
        ));
    };
    let known = match reached {
        reached if reached >= 10.0 => "known only roughly".to_owned(),
        reached => format!("known to within {:.0} %", 100.0 * reached),
    };
    let why = in_time.unwrap_or_else(|| match stopping.runs_max {
        Some(runs) => format!("as many as the plan allows (`plan.max_runs = {runs}`)"),
        None => format!(
            "as many as the plan allows (`plan.max = {}`)",
            stopping.rounds_max / stopping.runs.max(1)
        ),
    });
    Some(format!(
        "Ended after {ended}, {why}; {} is {known}, not within {precision} %.",
        stopping.least_known.as_deref().unwrap_or("the ratio"),
    ))
}

/// Seconds in the unit that suits them.
fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 5_400.0 => format!("{:.1} hours", s / 3_600.0),
        s if s >= 90.0 => format!("{:.0} minutes", s / 60.0),
        s => format!("{s:.0} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use spindle_result::{CaseId, RatioEstimate, build, sample};

    #[test]
    fn noise_and_drift_and_stopping_are_sentences() {
        let floor = NoiseFloor {
            case: CaseId::new("a", 8),
            again: "a (again)".to_owned(),
            ratio: RatioEstimate {
                ratio: 1.004,
                ci95: Some((0.994, 1.014)),
            },
            floor: 0.014,
        };
        assert_eq!(
            noise(&floor),
            "Noise floor: a run twice under two names differed by a ratio of 1.00 (0.99-1.01) at 8 clients, so no difference \
             below 1.4 % is called."
        );
        let falling = Drift {
            case: CaseId::new("a", 8),
            measure: Measure::Throughput,
            percent_per_round: -1.2,
            ci95: (-1.9, -0.5),
            p_value: 0.0004,
        };
        assert_eq!(
            drift(&falling),
            "Drift: the throughput of a fell by 1.2 % from round to round at 8 clients (-1.9 to -0.5 %, p below 0.001)."
        );
        let mut early = Stopping {
            precision: 0.03,
            rounds_max: 30,
            trials: 74,
            trials_of_fixed_plan: 180,
            saved_s: 9_540.0,
            is_finished: true,
            reached: None,
            least_known: None,
            runs: 1,
            ended_by_time_ms: None,
            runs_max: None,
        };
        assert_eq!(
            stopping(&early),
            "Stopped when each ratio was known to within 3 % or a difference was certain: 74 trials, where 30 rounds of every case take 180. \
             That saved 2.6 hours."
        );
        early.reached = Some(0.537);
        early.least_known = Some("the ratio of a and b at 8 clients".to_owned());
        assert_eq!(
            stopping(&early),
            "Ended after 30 rounds, as many as the plan allows (`plan.max = 30`); the ratio of a and b at 8 clients is known to \
             within 54 %, not within 3 %."
        );
        early.ended_by_time_ms = Some(30_000);
        assert_eq!(
            stopping(&early),
            "Ended after 30 rounds, when its time was over (`plan.time = \"30s\"`); the ratio of a and b at 8 clients is known to \
             within 54 %, not within 3 %."
        );
        let at_once = Stopping {
            reached: None,
            trials: early.trials_of_fixed_plan,
            ..early.clone()
        };
        assert_eq!(
            stopping(&at_once),
            "Ended after 30 rounds, when its time was over (`plan.time = \"30s\"`); by then each ratio was known to within \
             3 % or a difference was certain."
        );
        (early.reached, early.runs) = (None, 3);
        assert!(stopping(&early).starts_with("In each of 3 runs cases were measured until"));
        (early.is_finished, early.runs) = (false, 1);
        assert_eq!(
            stopping(&early),
            "74 trials so far, of at most 180; the run goes on until each ratio is known to within 3 %."
        );
        let mut by_runs = Stopping {
            runs: 7,
            runs_max: Some(20),
            is_finished: true,
            ..early
        };
        assert_eq!(
            stopping(&by_runs),
            "Stopped when each ratio was known to within 3 % or a difference was certain: 7 runs of at most 20, 74 trials. \
             That saved 2.6 hours."
        );
        (by_runs.reached, by_runs.runs, by_runs.ended_by_time_ms) = (Some(0.1), 20, None);
        let told = stopping(&by_runs);
        assert!(
            told.starts_with(
                "Ended after 20 runs, as many as the plan allows (`plan.max_runs = 20`)"
            ),
            "{told}"
        );
    }

    #[test]
    fn rounds_are_told_with_their_runs() {
        let told = |run_of: fn(u32) -> Option<u32>| {
            let mut record = sample::record(&[("a", &[100.0; 6])]);
            for trial in &mut record.cases[0].trials {
                trial.conditions.run = run_of(trial.round);
            }
            in_runs(&build(&record).unwrap().cases[0].trials)
        };
        assert_eq!(told(|_| None), "6 rounds");
        assert_eq!(told(|round| Some(round.div_ceil(2))), "3 runs x 2 rounds");
        assert_eq!(told(|round| Some(round.div_ceil(4))), "6 rounds in 2 runs");
    }

    #[test]
    fn cases_of_fewer_rounds_are_owned_up_to() {
        let told = |first: &[f64]| {
            let record = sample::record(&[("a", first), ("b", &[100.0, 101.0, 102.0])]);
            how_compared(&build(&record).unwrap())
        };
        assert!(told(&[100.0; 3]).starts_with("Every round ran every case once"));
        let unlike = told(&[100.0; 2]);
        assert!(
            unlike.contains("that was still to be told apart"),
            "{unlike}"
        );
        assert!(unlike.ends_with("of all its own rounds."), "{unlike}");
    }

    #[test]
    fn data_that_files_make_are_called_by_their_names() {
        let mut result = build(&sample::record(&[("direct", &[100.0, 100.0])])).unwrap();
        let mut load = |files: Value| {
            let workload = json!({ "transactions": { "kind": "script", "load": files } });
            result.experiment = sample::experiment(&[("workload", workload)]);
            data(&result)
        };
        assert_eq!(load(json!([])), "256 MiB of data");
        let files = json!([{ "name": "/srv/schema.sql" }, { "name": "rows.sql" }]);
        assert_eq!(load(files), "data of schema.sql, rows.sql");
    }
}
