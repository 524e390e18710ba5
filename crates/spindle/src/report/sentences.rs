//! What both reports say in words, once: how the run was made and judged, what it costs to be sure, how it is repeated.

use serde_json::Value;

use super::comparison::ratio;
use super::cost;
use crate::experiment::quantity::size_text;
use crate::result::{
    Comparison, Drift, Measure, NoiseFloor, Ranking, RunResult, Stopping, percent,
};

/// Name of the experiment, or a plain word for one without.
pub(super) fn experiment_name(result: &RunResult) -> &str {
    result
        .experiment
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or("experiment")
}

/// What has to be had to repeat a run.
pub(super) const REPEAT: &str = "\
On this machine, where it was started: the run directory holds the experiment as it was run, with every default filled in.";

/// The command that does.
pub(super) const REPEAT_COMMAND: &str = "spindle run RUN-DIRECTORY";

/// How trials were ordered and compared.
pub(super) const METHOD: &str = "\
Every round ran every case once, in random order, each from the same restored database. Cases of one workload and load \
are compared round by round: the logarithms of their ratios, a Student's t interval at 95 %. A winner must beat every \
other of k cases with a two-sided p-value of at most 0.10 / k, so that at most 5 % of experiments name a false one.";

/// Whether every case had the same memory.
pub(super) fn memory_terms(result: &RunResult) -> String {
    match result.memory_budget_bytes {
        Some(bytes) => format!(
            "Buffer cache and page cache together were held to {} in every case.",
            size_text(bytes)
        ),
        None => "Memory was not held to a budget: the page cache of buffered layouts could grow as far as memory was free; \
                 what share of the reads it answered stands under Checks."
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
    let costs = [cost::own_cost(result), cost::memory(result)];
    let sentence = |text: String| format!(" {text}.");
    costs.into_iter().flatten().map(sentence).collect()
}

/// What a table of all pairs may be trusted with.
pub(super) const ALL_PAIRS: &str = "\
Every layout (row) beside every other (column): the ratio, and what the row's layout is. Where all pairs are looked at, some \
differ by luck. So faster and slower are called only where that holds for all pairs of the table together: their p-values are \
corrected by Holm's method, and a false difference is called in at most 5 of 100 tables. \"faster alone\" is what the pair would \
say if nobody had looked at the others. Draws and intervals are those of each pair alone. The headline does not depend on this \
table: it asks only whether the best beats every other.";

/// What a ratio above 1 means, in words to follow a table or a chart.
pub(super) fn compared_by(result: &RunResult) -> &'static str {
    match measure_of(result) {
        Measure::Throughput => "Ratios are of throughput.",
        Measure::P99 => {
            "The rate was given, so throughput says only who kept up: ratios are of the 99th percentile of the transaction time, \
             counted from the intended begin, theirs over its own; above 1 is the sooner answer."
        }
    }
}

/// What the cases of a run are compared by; load comes at a fixed rate in all cases or in none.
pub(super) fn measure_of(result: &RunResult) -> Measure {
    result
        .rankings
        .first()
        .map_or(Measure::Throughput, |ranking| ranking.measure)
}

/// How many rounds would find what the open questions of a load level leave open; `None` when there are none, or no number of
/// rounds is known to.
pub(crate) fn rounds_to_find(result: &RunResult, ranking: &Ranking) -> Option<String> {
    let of_load = |verdict: &&Comparison| {
        verdict.workload == ranking.workload && verdict.clients == ranking.clients
    };
    let open = result.verdicts.iter().filter(of_load);
    let most = open.max_by_key(|verdict| verdict.rounds_to_find)?;
    let rounds = most.rounds_to_find?;
    let margin = percent(result.margin);
    let pair = format!("{} and {}", most.a, most.b);
    Some(if rounds >= spindle_stats::MAX_ROUNDS {
        format!(
            "To tell whether {pair} differ by {margin} %, at {} clients, more than {rounds} rounds would be needed, as unsteady as \
             they are: calm the machine, or measure longer.",
            ranking.clients
        )
    } else {
        format!(
            "To be sure: {rounds} rounds in all find a difference of {margin} % between {pair}, at {} clients, in 95 of 100 runs, \
             if they stay as unsteady as they were.",
            ranking.clients
        )
    })
}

/// The machine's own noise.
pub(crate) fn noise(noise: &NoiseFloor) -> String {
    let interval = noise.ratio.ci95.map_or_else(String::new, |(low, high)| {
        format!(" ({}-{})", ratio(low), ratio(high))
    });
    format!(
        "Noise floor: {} run twice under two names differed by a ratio of {}{interval} at {} clients, so no difference below \
         {:.1} % is called.",
        noise.layout,
        ratio(noise.ratio.ratio),
        noise.clients,
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
        "Drift: the {} of {} {direction} by {:.1} % from round to round at {} clients ({low:.1} to {high:.1} %, p {}).",
        drift.measure,
        drift.layout,
        drift.percent_per_round.abs(),
        drift.clients,
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
    format!(
        "Stopping early: {} trials were enough for {:.1} % where a fixed plan of {} rounds takes {}; that saved {}.",
        stopping.trials,
        100.0 * stopping.precision,
        stopping.rounds_max,
        stopping.trials_of_fixed_plan,
        time(stopping.saved_s)
    )
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
    use crate::result::{RatioEstimate, build, sample};

    #[test]
    fn open_questions_tell_how_many_rounds_find_the_margin() {
        let told = |a: &[f64]| {
            let record = sample::record(&[("a", a), ("b", &[100.0, 100.0, 100.0])]);
            let result = build(&record).unwrap();
            rounds_to_find(&result, &result.rankings[0])
        };
        assert_eq!(told(&[200.0, 200.0, 200.0]), None);
        let open = told(&[100.0, 106.0, 108.0]).unwrap();
        assert!(
            open.contains("rounds in all find a difference of 3 % between a and b, at 8 clients"),
            "{open}"
        );
        let hopeless = told(&[100.0, 1000.0, 10.0]).unwrap();
        assert!(
            hopeless.contains("more than 1000 rounds would be needed"),
            "{hopeless}"
        );
    }

    #[test]
    fn noise_and_drift_and_stopping_are_sentences() {
        let floor = NoiseFloor {
            workload: "oltp_mix".to_owned(),
            clients: 8,
            layout: "a".to_owned(),
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
            layout: "a".to_owned(),
            workload: "oltp_mix".to_owned(),
            clients: 8,
            measure: Measure::Throughput,
            percent_per_round: -1.2,
            ci95: (-1.9, -0.5),
            p_value: 0.0004,
        };
        assert_eq!(
            drift(&falling),
            "Drift: the throughput of a fell by 1.2 % from round to round at 8 clients (-1.9 to -0.5 %, p below 0.001)."
        );
        let early = Stopping {
            precision: 0.03,
            rounds_max: 30,
            trials: 74,
            trials_of_fixed_plan: 180,
            saved_s: 9_540.0,
        };
        assert_eq!(
            stopping(&early),
            "Stopping early: 74 trials were enough for 3.0 % where a fixed plan of 30 rounds takes 180; that saved 2.6 hours."
        );
    }
}
