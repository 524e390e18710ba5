//! A case's means over its trials: what became of a transaction's time, and what the system did meanwhile.

use super::{ResponseTime, SampledTrial, SystemFigure, SystemMean, TimePart, Trial};

/// The mean of the trials that know, part by part; `None` when none does.
pub(super) fn response_time(trials: &[Trial]) -> Option<ResponseTime> {
    let known: Vec<&ResponseTime> = trials
        .iter()
        .filter_map(|trial| trial.response_time.as_ref())
        .collect();
    if known.is_empty() {
        return None;
    }
    let share = 1.0 / known.len() as f64;
    let mut parts: Vec<TimePart> = Vec::new();
    for part in known.iter().flat_map(|time| &time.parts) {
        // A trial without waits for an event does not list it.
        match parts.iter_mut().find(|mean| mean.part == part.part) {
            Some(mean) => mean.us += part.us * share,
            None => parts.push(TimePart {
                part: part.part.clone(),
                us: part.us * share,
            }),
        }
    }
    parts.sort_by(|a, b| b.us.total_cmp(&a.us));
    Some(ResponseTime {
        mean_us: known.iter().map(|time| time.mean_us * share).sum(),
        excess_us: known.iter().map(|time| time.excess_us * share).sum(),
        parts,
    })
}

struct Sum {
    name: SystemFigure,
    sum: f64,
    count: u64,
    max: f64,
}

/// Mean and greatest value of every column over all samples of the trials, in the order of the columns.
pub(super) fn system<'a>(trials: impl Iterator<Item = &'a SampledTrial>) -> Vec<SystemMean> {
    let mut sums: Vec<Sum> = Vec::new();
    for column in trials.flat_map(|trial| &trial.system.columns) {
        let index = sums.iter().position(|sum| sum.name == column.name);
        let index = index.unwrap_or_else(|| {
            sums.push(Sum {
                name: column.name.clone(),
                sum: 0.0,
                count: 0,
                max: f64::NEG_INFINITY,
            });
            sums.len() - 1
        });
        let sum = &mut sums[index];
        for value in column.values.iter().flatten() {
            sum.sum += f64::from(*value);
            sum.count += 1;
            sum.max = sum.max.max(f64::from(*value));
        }
    }
    let known = sums.into_iter().filter(|sum| sum.count > 0);
    let mean = |sum: Sum| SystemMean {
        mean: sum.sum / sum.count as f64,
        name: sum.name,
        max: sum.max,
    };
    known.map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{CaseId, SystemColumn, SystemSeries, sample};
    use super::*;

    fn time(mean_us: f64, parts: &[(&str, f64)]) -> ResponseTime {
        let part = |(name, us): &(&str, f64)| TimePart {
            part: (*name).into(),
            us: *us,
        };
        ResponseTime {
            mean_us,
            parts: parts.iter().map(part).collect(),
            excess_us: 0.0,
        }
    }

    #[test]
    fn parts_of_trials_are_averaged_and_still_add_up() {
        let mut trials = sample::record(&[("a", &[1.0, 1.0, 1.0])]).cases[0]
            .trials
            .clone();
        assert_eq!(response_time(&trials), None);
        trials[0].response_time = Some(time(10.0, &[("user CPU", 8.0), ("other", 2.0)]));
        trials[2].response_time = Some(time(
            20.0,
            &[("log file sync", 14.0), ("user CPU", 6.0), ("other", 0.0)],
        ));
        let mean = response_time(&trials).expect("two trials know");
        assert_eq!(
            mean,
            time(
                15.0,
                &[("user CPU", 7.0), ("log file sync", 7.0), ("other", 1.0)]
            )
        );
    }

    #[test]
    fn means_are_over_all_samples_that_are_known() {
        let trial = |values: &[Option<f32>]| SampledTrial {
            case: CaseId::new("a", 8),
            round: 1,
            interval_ms: 1000,
            tps: Vec::new(),
            system: SystemSeries {
                interval_ms: 1000,
                columns: vec![SystemColumn {
                    name: "dirty_mib".into(),
                    values: values.to_vec(),
                }],
            },
        };
        let trials = [trial(&[Some(1.0), None]), trial(&[Some(2.0), Some(6.0)])];
        let expected = SystemMean {
            name: "dirty_mib".into(),
            mean: 3.0,
            max: 6.0,
        };
        assert_eq!(system(trials.iter()), [expected]);
        assert_eq!(system([trial(&[None])].iter()), []);
    }
}
