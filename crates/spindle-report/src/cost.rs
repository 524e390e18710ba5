//! What the instrument itself takes, in words: processor time of a transaction without storage, and memory. Printed
//! with every run, because a benchmark that is dear measures itself.

use spindle_result::{Case, LoadLevel, Measure, Memory, RunResult, SystemFigure};
use spindle_stats::Verdict;
use spindle_text::quantity::size;

/// What Spindle itself costs, beside the pace of the fastest case; `None` when it was not measured.
pub fn own_cost(result: &RunResult) -> Option<String> {
    let cpu = result.own_cost?.cpu_us_per_transaction;
    let cost_us = cpu.user + cpu.system;
    let mut text = format!(
        "Spindle's own cost: {cost_us:.0} us of CPU a transaction (one client, devices of memory)"
    );
    text += &share_of_processors(result, cost_us).unwrap_or_default();
    if let Some(percent) = sampler_percent(result) {
        text += &format!("; sampling the system took {percent:.2} % of one processor");
    }
    Some(text)
}

/// Clients work on all processors at once, so it is a share of what all of them have from one commit to the next. At a
/// fixed rate that time is the rate's, and says nothing.
fn share_of_processors(result: &RunResult, cost_us: f64) -> Option<String> {
    let processors = result.machine.as_ref()?.processor.logical_processors?;
    let (case, pace_us) = fastest_in_closed_loop(result)?;
    let have_us = pace_us * f64::from(processors);
    let have = match processors {
        1 => "1 processor has".to_owned(),
        _ => format!("{processors} processors have"),
    };
    Some(format!(
        ", {:.1} % of the {have_us:.0} us that {have} from one commit to the next in the fastest case ({}, {})",
        100.0 * cost_us / have_us,
        case.id.layout,
        case.id.load
    ))
}

/// What the sampler took of one processor in the case where it took most.
fn sampler_percent(result: &RunResult) -> Option<f64> {
    let means = result.cases.iter().flat_map(|case| &case.system);
    let costs = means.filter(|mean| mean.name == SystemFigure::SamplerCpuPercent);
    costs.map(|cost| cost.mean).max_by(f64::total_cmp)
}

/// The case of the highest throughput of those that the answer ranks best at their loads, and of those that keep less
/// and are faster for sure, where transactions came at no rate; and the time from one of its commits to the next, in
/// microseconds.
fn fastest_in_closed_loop(result: &RunResult) -> Option<(&Case, f64)> {
    let rankings = result.rankings.iter();
    let closed = rankings.filter(|ranking| ranking.measure == Measure::Throughput);
    let first = closed.flat_map(|ranking| {
        let faster = result
            .verdicts_of(ranking)
            .filter(|verdict| verdict.verdict == Verdict::Slower);
        let best = ranking.best_case();
        std::iter::once(best).chain(faster.map(|verdict| verdict.cases.second()))
    });
    of_highest_throughput(first.filter_map(|id| result.case(&id)))
}

/// The case of the highest throughput, and the time from one of its commits to the next, in microseconds.
pub(super) fn fastest(result: &RunResult) -> Option<(&Case, f64)> {
    of_highest_throughput(result.cases.iter().filter(|case| case.is_compared()))
}

fn of_highest_throughput<'a>(cases: impl Iterator<Item = &'a Case>) -> Option<(&'a Case, f64)> {
    let tpm = |case: &Case| case.tpm.map_or(0.0, |tpm| tpm.mean);
    let case = cases.max_by(|a, b| tpm(a).total_cmp(&tpm(b)))?;
    (tpm(case) > 0.0).then(|| (case, 60e6 / tpm(case)))
}

/// What memory the database took at most, at the highest load level that knows: there a session's figure is least
/// mixed with what does not depend on their number. `None` when no trial knows.
pub fn memory(result: &RunResult) -> Option<String> {
    let trials = result.cases.iter().flat_map(|case| {
        let known = case.trials.iter().filter_map(|trial| trial.memory);
        known.map(|memory| (case.id.load.clients, memory))
    });
    let known: Vec<(u32, Memory)> = trials.collect();
    let clients = known.iter().map(|(clients, _)| *clients).max()?;
    let of_level = || known.iter().filter(|(level, _)| *level == clients);
    let most = |figure: fn(&Memory) -> u64| of_level().map(|(_, memory)| figure(memory)).max();
    Some(format!(
        "Its memory with {} at most: {} of buffer cache as configured, {} for the rest of the instance, \
         {} a session",
        LoadLevel::of(clients),
        size(most(|memory| memory.buffer_cache_bytes)?),
        size(most(|memory| memory.instance_bytes)?),
        size(most(|memory| memory.session_bytes)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{CpuMicroseconds, OwnCost, SystemMean};

    #[test]
    fn what_sampling_costs_is_said_with_the_rest() {
        let mut result =
            spindle_result::build(&spindle_result::sample::record(&[("a", &[100.0, 101.0])]))
                .unwrap();
        assert_eq!(own_cost(&result), None);
        result.own_cost = Some(OwnCost {
            cpu_us_per_transaction: CpuMicroseconds {
                user: 20.0,
                system: 10.0,
            },
            transactions: 100,
            measured_s: 1.0,
            data_bytes: 1,
            buffer_cache_bytes: 1,
        });
        let text = own_cost(&result).unwrap();
        assert!(text.starts_with("Spindle's own cost: 30 us") && !text.contains("sampling"));
        result.cases[0].system.push(SystemMean {
            name: SystemFigure::SamplerCpuPercent,
            mean: 0.123,
            max: 0.5,
        });
        let text = own_cost(&result).unwrap();
        assert!(text.ends_with("; sampling the system took 0.12 % of one processor"));
    }

    #[test]
    fn it_is_a_share_of_what_all_processors_have_and_not_of_a_rate() {
        use spindle_result::machine::{Machine, Processor};
        use spindle_result::{build, sample};

        let cost = OwnCost {
            cpu_us_per_transaction: CpuMicroseconds {
                user: 50.0,
                system: 25.0,
            },
            transactions: 100,
            measured_s: 1.0,
            data_bytes: 1,
            buffer_cache_bytes: 1,
        };
        let machine = Machine {
            processor: Processor {
                logical_processors: Some(4),
                ..Processor::default()
            },
            ..Machine::default()
        };
        // A round in which the last ran away makes its mean the highest, and not its place.
        let mut record = sample::record(&[
            ("a", &[1e6, 1e6, 1e6]),
            ("b", &[9e5, 9e5, 9e5]),
            ("c", &[1e5, 4e6, 1e5]),
        ]);
        record.own_cost = Some(cost);
        record.machine = Some(machine.clone());
        let text = own_cost(&build(&record).unwrap()).unwrap();
        assert!(
            text.ends_with(
                ", 31.2 % of the 240 us that 4 processors have from one commit to the next in the fastest case (a, 8 clients)"
            ),
            "{text}"
        );
        let mut record = sample::with_rates(&["30%"]);
        record.cases.retain(|case| case.load.rate.is_some());
        record.own_cost = Some(cost);
        record.machine = Some(machine);
        let text = own_cost(&build(&record).unwrap()).unwrap();
        assert!(text.ends_with("(one client, devices of memory)"), "{text}");
    }
}
