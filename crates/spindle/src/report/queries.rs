//! Seconds per query side by side: a row for each query, a column for each layout, then the figures that sum them up. For the
//! terminal and both reports.

use super::comparison::NO_FIGURE;
use crate::result::{Case, QueryMean, QueryMeans, RunResult};

/// Stands below every table: what its last rows are not.
pub const NOTE: &str = "\
Seconds are means over streams and trials. Power, throughput and composite are calculated as the standard says; they are not official TPC results, \
which are audited.";

/// The queries of one workload and load level.
pub struct QueryTable {
    /// The workload and its load.
    pub load: String,
    /// What the columns are: the query, then each layout by number and name.
    pub header: Vec<String>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// One for each load level that has queries.
pub fn tables(result: &RunResult) -> Vec<QueryTable> {
    let groups = result.groups();
    let tables = groups.iter().map(|group| table(result, group));
    tables.flatten().collect()
}

/// The cases of one load level that have queries, with what became of them.
pub fn measured<'a>(group: &[&'a Case]) -> Vec<(&'a Case, QueryMeans)> {
    let cases = group.iter();
    cases
        .filter_map(|case| Some((*case, case.queries()?)))
        .collect()
}

/// The table of the cases of one load level; `None` when they have no queries.
pub fn table(result: &RunResult, group: &[&Case]) -> Option<QueryTable> {
    let cases = measured(group);
    let (first, means) = cases.first()?;
    let mut header = vec!["seconds".to_owned()];
    header.extend(cases.iter().map(|(case, _)| name(result, case)));
    let mut rows: Vec<Vec<String>> = means
        .times
        .iter()
        .map(|time| {
            let cells = cases.iter().map(|(_, means)| {
                let mut times = means.times.iter();
                times
                    .find(|other| other.name == time.name)
                    .map_or(NO_FIGURE.to_owned(), cell)
            });
            [vec![time.name.clone()], cells.collect()].concat()
        })
        .collect();
    let mut sum_up = |title: &str, figure: &dyn Fn(&(&Case, QueryMeans)) -> Option<f64>| {
        if cases.iter().any(|case| figure(case).is_some()) {
            let cells = cases
                .iter()
                .map(|case| figure(case).map_or(NO_FIGURE.to_owned(), seconds));
            rows.push([vec![title.to_owned()], cells.collect()].concat());
        }
    };
    sum_up("geometric mean", &|(_, means)| means.geometric_mean_s);
    sum_up("power", &|(_, means)| means.power);
    sum_up("throughput", &|(_, means)| means.throughput);
    sum_up("composite", &|(case, _)| result.composite(case));
    Some(QueryTable {
        load: format!("{}, {} clients", first.workload, first.clients),
        header,
        rows,
    })
}

/// Number and name of a case's layout.
pub fn name(result: &RunResult, case: &Case) -> String {
    match result.layout_number(&case.layout) {
        Some(number) => format!("{number} {}", case.layout),
        None => case.layout.clone(),
    }
}

fn cell(time: &QueryMean) -> String {
    match (time.seconds, time.errors) {
        (Some(mean), 0) => seconds(mean),
        (Some(mean), errors) => format!("{} ({errors} failed)", seconds(mean)),
        (None, errors) => format!("{errors} failed"),
    }
}

/// With three figures that count, about.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        0.0..0.1 => format!("{seconds:.4}"),
        0.1..10.0 => format!("{seconds:.3}"),
        10.0..100.0 => format!("{seconds:.2}"),
        _ => format!("{seconds:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_stand_side_by_side_with_the_figures_that_sum_them_up() {
        use crate::result::{QueryRun, QueryTime, build};

        let run = |seconds: f64, power, throughput| {
            Some(QueryRun {
                times: vec![QueryTime {
                    name: "Q1".to_owned(),
                    seconds: Some(seconds),
                    count: 1,
                    errors: 0,
                }],
                geometric_mean_s: Some(seconds),
                power,
                throughput,
            })
        };
        let mut record = crate::result::sample::record(&[("a", &[100.0]), ("b", &[90.0])]);
        assert!(tables(&build(&record).unwrap()).is_empty());
        record.cases[0].trials[0].queries = run(0.5, Some(7200.0), None);
        record.cases[1].trials[0].queries = run(20.0, None, None);
        let tables = tables(&build(&record).unwrap());
        assert_eq!(tables.len(), 1);
        assert_eq!(tables[0].header, ["seconds", "1 a", "2 b"]);
        assert_eq!(
            tables[0].rows,
            [
                ["Q1", "0.500", "20.00"],
                ["geometric mean", "0.500", "20.00"],
                ["power", "7200.0", "-"],
            ]
        );
    }

    #[test]
    fn failures_stand_beside_the_seconds() {
        let time = |seconds, errors| QueryMean {
            name: "Q1".to_owned(),
            seconds,
            errors,
        };
        assert_eq!(cell(&time(Some(0.0123), 0)), "0.0123");
        assert_eq!(cell(&time(Some(12.345), 2)), "12.35 (2 failed)");
        assert_eq!(cell(&time(None, 3)), "3 failed");
        assert_eq!(seconds(1234.5), "1234.5");
    }
}
