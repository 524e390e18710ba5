//! The queries of a case, over all its trials.

use crate::tpch;

use super::mean::mean_of;
use super::{Case, CaseId, QueryRun, RunResult};

/// Means over the trials of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMeans {
    /// The queries and refresh functions, in the order of their numbers.
    pub times: Vec<QueryMean>,
    /// Geometric mean of the queries' seconds.
    pub geometric_mean_s: Option<f64>,
    /// The standard's power.
    pub power: Option<f64>,
    /// The standard's throughput.
    pub throughput: Option<f64>,
    /// Bytes that all queries of a trial wrote to temporary files.
    pub temporary_bytes: Option<f64>,
}

/// One query or refresh function.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryMean {
    /// Its name.
    pub name: String,
    /// Seconds; `None` when it never ended well.
    pub seconds: Option<f64>,
    /// How often it failed or was cancelled, in all trials.
    pub errors: u64,
    /// Bytes that it wrote to temporary files; `None` unless that is known of each trial in which it ended well.
    pub temporary_bytes: Option<f64>,
}

impl Case {
    /// What became of queries; `None` where there are none.
    pub fn queries(&self) -> Option<QueryMeans> {
        let runs = || {
            self.trials
                .iter()
                .filter_map(|trial| trial.queries.as_ref())
        };
        let of_time = |name: &str| {
            let times = || {
                let times = runs().flat_map(|run| &run.times);
                times.filter(|time| time.name == name)
            };
            QueryMean {
                name: name.to_owned(),
                seconds: mean_of(times().filter_map(|time| time.seconds)),
                errors: times().map(|time| time.errors).sum(),
                temporary_bytes: mean_of_all(
                    times()
                        .filter(|time| time.count > 0)
                        .map(|time| time.temporary_bytes),
                ),
            }
        };
        // A figure that one trial lacks, for a query that failed, does not belong to the case.
        let all = |figure: fn(&QueryRun) -> Option<f64>| mean_of_all(runs().map(figure));
        let first = runs().next()?;
        Some(QueryMeans {
            times: first.times.iter().map(|time| of_time(&time.name)).collect(),
            geometric_mean_s: all(|run| run.geometric_mean_s),
            power: all(|run| run.power),
            throughput: all(|run| run.throughput),
            temporary_bytes: all(|run| run.temporary_bytes.map(|bytes| bytes as f64)),
        })
    }
}

/// `None` unless all are known.
fn mean_of_all(figures: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let figures: Option<Vec<f64>> = figures.collect();
    figures.and_then(|figures| mean_of(figures.into_iter()))
}

impl RunResult {
    /// The standard's composite figure of a layout that has a power run and, in `case`, a throughput run.
    pub fn composite(&self, case: &Case) -> Option<f64> {
        let throughput = case.queries()?.throughput?;
        let power = self.case(&CaseId::new(&case.id.layout, 1));
        Some(tpch::composite(power?.queries()?.power?, throughput))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::QueryTime;

    fn run(seconds: Option<f64>, power: Option<f64>) -> QueryRun {
        QueryRun {
            times: vec![QueryTime {
                name: "Q1".to_owned(),
                seconds,
                count: u64::from(seconds.is_some()),
                errors: u64::from(seconds.is_none()),
                temporary_bytes: seconds.map(|seconds| 100.0 * seconds),
            }],
            geometric_mean_s: seconds,
            power,
            throughput: None,
            temporary_bytes: power.map(|power| power as u64),
        }
    }

    #[test]
    fn queries_are_averaged_over_trials_and_failures_are_counted() {
        let mut record = sample::record(&[("a", &[100.0, 101.0])]);
        assert_eq!(crate::build(&record).unwrap().cases[0].queries(), None);
        let trials = &mut record.cases[0].trials;
        trials[0].queries = Some(run(Some(2.0), Some(10.0)));
        trials[1].queries = Some(run(Some(4.0), Some(20.0)));
        let means = crate::build(&record).unwrap().cases[0].queries().unwrap();
        assert_eq!(
            (means.times[0].seconds, means.times[0].errors),
            (Some(3.0), 0)
        );
        assert_eq!(means.power, Some(15.0));
        assert_eq!(
            (means.temporary_bytes, means.times[0].temporary_bytes),
            (Some(15.0), Some(300.0))
        );

        record.cases[0].trials[1].queries = Some(run(None, None));
        let means = crate::build(&record).unwrap().cases[0].queries().unwrap();
        assert_eq!(
            (means.times[0].seconds, means.times[0].errors),
            (Some(2.0), 1)
        );
        assert_eq!((means.power, means.geometric_mean_s), (None, None));
        // What failed tells nothing of temporary files, and leaves the whole unknown.
        assert_eq!(
            (means.temporary_bytes, means.times[0].temporary_bytes),
            (None, Some(200.0))
        );
    }
}
