//! Queries side by side: a row for each query, a column for each layout. Seconds, the standard's rates, and what
//! queries wrote to temporary files: a table each, because their units differ. For the terminal and both reports.

use super::comparison::NO_FIGURE;
use super::sentences::load_name;
use super::side_by_side::{MIB, SideBySide, mebibytes, name, seconds, time_rows};
use spindle_result::{Case, QueryMean, QueryMeans, RunResult, StatementMeans};

/// Stands below seconds.
const SECONDS_NOTE: &str = "Seconds are means over streams and trials.";

/// Stands below the standard's rates: what they are not.
const RATES_NOTE: &str = "\
Queries per hour times the scale factor, calculated as the standard says: power of one stream, throughput of all streams together, composite of both. \
They are not official TPC results, which are audited.";

/// Stands below temporary space.
const TEMPORARY_SPACE_NOTE: &str = "\
What sorts, joins and intermediate results wrote to temporary files for want of memory: counted, not sampled. \
A query's figure is of one stream, that of all queries is of all streams together; both are means over trials. \
Queries that wrote nothing have no row; - is not known.";

/// Stands below where the time of queries went.
const TIME_NOTE: &str = "\
Seconds of a stream, means over trials and over the slaves of a query. Waits are without processor time in them; \
parts below one in a hundred are left out.";

/// Stands below times of statements.
const STATEMENTS_NOTE: &str = "\
Mean time from asking to the last row, as a client sees it; of statements below 0.1 ms one execution in sixteen is timed. How often a statement runs in a transaction is of the \
first layout.";

/// For each load level that has queries, one of seconds and, where they are known, one of rates and one of temporary
/// space.
pub fn tables(result: &RunResult) -> Vec<SideBySide> {
    let groups = result.groups();
    let tables = groups.iter().flat_map(|group| {
        [
            seconds_table(result, group),
            rates_table(result, group),
            temporary_space_table(result, group),
            time_table(result, group),
        ]
    });
    tables.flatten().collect()
}

/// The cases of one load level that have queries, with what became of them.
pub fn measured<'a>(group: &[&'a Case]) -> Vec<(&'a Case, QueryMeans)> {
    let cases = group.iter();
    cases
        .filter_map(|case| Some((*case, case.queries()?)))
        .collect()
}

/// Mean milliseconds of each statement of the cases of one load level; `None` where none was timed.
pub fn statements_table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let of_cases = group.iter().map(|case| (*case, case.statements()));
    let cases: Vec<(&Case, Vec<StatementMeans>)> = of_cases
        .filter(|(_, statements)| !statements.is_empty())
        .collect();
    let (first, _) = cases.first()?;
    let mut names: Vec<&str> = Vec::new();
    for of in cases.iter().flat_map(|(_, statements)| statements) {
        if !names.contains(&of.statement.as_str()) {
            names.push(&of.statement);
        }
    }
    let row = |name: &&str| {
        let found = cases.iter().map(|(_, statements)| {
            let mut statements = statements.iter();
            statements.find(|of| of.statement == *name)
        });
        let found: Vec<Option<&StatementMeans>> = found.collect();
        let often = found.iter().flatten().next();
        let often = often.map_or(NO_FIGURE.to_owned(), |of| {
            format!("{:.2}", of.per_transaction)
        });
        let cells = found.into_iter().map(|of| {
            of.map_or(NO_FIGURE.to_owned(), |of| {
                format!("{:.3}", of.mean_us / 1e3)
            })
        });
        [(*name).to_owned(), often]
            .into_iter()
            .chain(cells)
            .collect()
    };
    let layouts = cases.iter().map(|(case, _)| name(result, case));
    let header = ["statement, ms", "in a transaction"].map(str::to_owned);
    Some(SideBySide {
        title: format!("Time per statement: {}", load_of(result, first)),
        header: header.into_iter().chain(layouts).collect(),
        rows: names.iter().map(row).collect(),
        note: STATEMENTS_NOTE,
    })
}

/// What one load level is called.
fn load_of(result: &RunResult, case: &Case) -> String {
    load_name(result, case.id.load)
}

/// What the rows are, then the layouts.
fn header(result: &RunResult, rows: &str, cases: &[(&Case, QueryMeans)]) -> Vec<String> {
    let layouts = cases.iter().map(|(case, _)| name(result, case));
    std::iter::once(rows.to_owned()).chain(layouts).collect()
}

/// Seconds of the cases of one load level; `None` when they have no queries.
pub fn seconds_table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let cases = measured(group);
    let (first, means) = cases.first()?;
    let rows = means.times.iter().map(|time| {
        let cells = cases.iter().map(|(_, means)| {
            let mut times = means.times.iter();
            times
                .find(|other| other.name == time.name)
                .map_or(NO_FIGURE.to_owned(), cell)
        });
        [vec![time.name.clone()], cells.collect()].concat()
    });
    let mean = row(&cases, "geometric mean", &|(_, means)| {
        means.geometric_mean_s
    });
    Some(SideBySide {
        title: format!("Seconds per query: {}", load_of(result, first)),
        header: header(result, "seconds", &cases),
        rows: rows.chain(mean).collect(),
        note: SECONDS_NOTE,
    })
}

/// The standard's rates of the cases of one load level; `None` where no case has one.
pub fn rates_table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let cases = measured(group);
    let (first, _) = cases.first()?;
    let rows = [
        row(&cases, "power", &|(_, means)| means.power),
        row(&cases, "throughput", &|(_, means)| means.throughput),
        row(&cases, "composite", &|(case, _)| result.composite(case)),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().flatten().collect();
    (!rows.is_empty()).then(|| SideBySide {
        title: format!("Queries per hour: {}", load_of(result, first)),
        header: header(result, "queries/h x scale", &cases),
        rows,
        note: RATES_NOTE,
    })
}

/// A row of one figure of each case; `None` where no case has it.
fn row(
    cases: &[(&Case, QueryMeans)],
    title: &str,
    figure: &dyn Fn(&(&Case, QueryMeans)) -> Option<f64>,
) -> Option<Vec<String>> {
    let figures: Vec<Option<f64>> = cases.iter().map(figure).collect();
    let is_known = figures.iter().any(Option::is_some);
    let cells = figures
        .into_iter()
        .map(|figure| figure.map_or(NO_FIGURE.to_owned(), seconds));
    is_known.then(|| std::iter::once(title.to_owned()).chain(cells).collect())
}

/// Temporary space of the cases of one load level, the queries that any layout has written some for, and all of them;
/// `None` where nothing is known of it.
pub fn temporary_space_table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let cases = measured(group);
    let (first, means) = cases.first()?;
    let row = |title: &str, bytes: &dyn Fn(&QueryMeans) -> Option<f64>| {
        let cells = cases.iter().map(|(_, means)| {
            bytes(means).map_or_else(|| NO_FIGURE.to_owned(), |bytes| mebibytes(bytes / MIB))
        });
        std::iter::once(title.to_owned()).chain(cells).collect()
    };
    let of_query = |means: &QueryMeans, query: &str| {
        let mut times = means.times.iter();
        times.find(|time| time.name == query)?.temporary_bytes
    };
    let is_written = |query: &str| {
        let bytes = cases.iter().filter_map(|(_, means)| of_query(means, query));
        bytes.sum::<f64>() > 0.0
    };
    let of_whole = |means: &QueryMeans| means.temporary_bytes;
    let queries = means.times.iter().map(|time| time.name.as_str());
    let written: Vec<&str> = queries.filter(|query| is_written(query)).collect();
    if written.is_empty() && cases.iter().all(|(_, means)| of_whole(means).is_none()) {
        return None;
    }
    let rows = written
        .iter()
        .map(|query| row(query, &|means| of_query(means, query)))
        .chain([row("all queries, all streams", &of_whole)]);
    Some(SideBySide {
        title: format!("Temporary space: {}", load_of(result, first)),
        header: header(result, "MiB", &cases),
        rows: rows.collect(),
        note: TEMPORARY_SPACE_NOTE,
    })
}

/// Where the time of queries went, side by side; `None` where that is not known.
pub fn time_table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let cases = measured(group).into_iter().filter_map(|(case, _)| {
        let measured_s = case.trials.iter().map(|trial| trial.measured_s);
        let mean_s = measured_s.sum::<f64>() / case.trials.len() as f64;
        case.response_time.as_ref().map(|_| (case, mean_s))
    });
    let cases: Vec<(&Case, f64)> = cases.collect();
    let (first, _) = cases.first()?;
    let whole = cases.iter().map(|(_, whole_s)| seconds(*whole_s));
    let whole = std::iter::once("elapsed, s".to_owned()).chain(whole);
    let layouts = cases.iter().map(|(case, _)| name(result, case));
    let rows = std::iter::once(whole.collect()).chain(time_rows(&cases));
    Some(SideBySide {
        title: format!("Where the time of queries went: {}", load_of(result, first)),
        header: std::iter::once("time".to_owned()).chain(layouts).collect(),
        rows: rows.collect(),
        note: TIME_NOTE,
    })
}

fn cell(time: &QueryMean) -> String {
    match (time.seconds, time.errors) {
        (Some(mean), 0) => seconds(mean),
        (Some(mean), errors) => format!("{} ({errors} failed)", seconds(mean)),
        (None, errors) => format!("{errors} failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_stand_side_by_side_with_the_figures_that_sum_them_up() {
        use spindle_result::{QueryRun, QueryTime, build};

        let run = |seconds: f64, power, throughput| {
            Some(QueryRun {
                times: vec![QueryTime {
                    name: "Q1".to_owned(),
                    seconds: Some(seconds),
                    count: 1,
                    errors: 0,
                    temporary_bytes: None,
                }],
                geometric_mean_s: Some(seconds),
                power,
                throughput,
                temporary_bytes: None,
            })
        };
        let mut record = spindle_result::sample::record(&[("a", &[100.0]), ("b", &[90.0])]);
        assert!(tables(&build(&record).unwrap()).is_empty());
        record.cases[0].trials[0].queries = run(0.5, Some(7200.0), None);
        record.cases[1].trials[0].queries = run(20.0, None, None);
        let tables = tables(&build(&record).unwrap());
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].header, ["seconds", "1 a", "2 b"]);
        assert_eq!(
            tables[0].rows,
            [
                ["Q1", "0.500", "20.00"],
                ["geometric mean", "0.500", "20.00"]
            ]
        );
        assert_eq!(tables[1].header, ["queries/h x scale", "1 a", "2 b"]);
        assert_eq!(tables[1].rows, [["power", "7,200", "-"]]);
    }

    #[test]
    fn temporary_space_has_rows_for_the_queries_that_wrote_some() {
        use spindle_result::{QueryRun, QueryTime, build};

        let run = |bytes: [Option<f64>; 3], whole| {
            let times = bytes.iter().zip(["Q1", "Q2", "Q3"]);
            Some(QueryRun {
                times: times
                    .map(|(bytes, name)| QueryTime {
                        name: name.to_owned(),
                        seconds: Some(1.0),
                        count: 1,
                        errors: 0,
                        temporary_bytes: *bytes,
                    })
                    .collect(),
                geometric_mean_s: None,
                power: None,
                throughput: None,
                temporary_bytes: whole,
            })
        };
        let rows_of = |a, b| {
            let mut record = spindle_result::sample::record(&[("a", &[100.0]), ("b", &[90.0])]);
            record.cases[0].trials[0].queries = a;
            record.cases[1].trials[0].queries = b;
            let mut tables = tables(&build(&record).unwrap());
            (tables.len() == 2).then(|| tables.remove(1).rows)
        };
        let nothing = || run([Some(0.0); 3], Some(0));
        assert_eq!(
            rows_of(nothing(), nothing()).unwrap(),
            [["all queries, all streams", "0", "0"]]
        );
        let unknown = || run([None; 3], None);
        assert_eq!(rows_of(unknown(), unknown()), None);
        let some = run([Some(0.0), Some(15.0 * MIB), None], Some(15 << 20));
        assert_eq!(
            rows_of(some, nothing()).unwrap(),
            [
                ["Q2", "15.0", "0"],
                ["all queries, all streams", "15.0", "0"]
            ]
        );
        assert_eq!(
            rows_of(unknown(), run([Some(2048.0), None, None], Some(2048))).unwrap(),
            [
                ["Q1", "-", "0.002"],
                ["all queries, all streams", "-", "0.002"]
            ]
        );
        assert_eq!(
            rows_of(unknown(), run([None; 3], Some(3 << 20))).unwrap(),
            [["all queries, all streams", "-", "3.00"]]
        );
    }

    #[test]
    fn statements_stand_beside_each_other_with_how_often_they_run() {
        use spindle_result::{RunRecord, StatementTime, build};

        let mut record = spindle_result::sample::record(&[("a", &[120.0]), ("b", &[120.0])]);
        let table = |record: &RunRecord| {
            let result = build(record).unwrap();
            let cases: Vec<&Case> = result.cases.iter().collect();
            statements_table(&result, &cases)
        };
        assert!(table(&record).is_none());
        let time = |statement: &str, count, mean_us| StatementTime {
            statement: statement.to_owned(),
            count,
            mean_us,
        };
        // Ten transactions.
        record.cases[0].trials[0].statements = vec![time("select", 15, 80.0)];
        record.cases[1].trials[0].statements =
            vec![time("select", 15, 60.0), time("commit", 10, 2_500.0)];
        let table = table(&record).expect("statements were timed");
        assert_eq!(table.header[2..], ["1 a", "2 b"]);
        assert_eq!(
            table.rows,
            [
                ["select", "1.50", "0.080", "0.060"],
                ["commit", "1.00", "-", "2.500"]
            ]
        );
    }

    #[test]
    fn failures_stand_beside_the_seconds() {
        let time = |seconds, errors| QueryMean {
            name: "Q1".to_owned(),
            seconds,
            errors,
            temporary_bytes: None,
        };
        assert_eq!(cell(&time(Some(0.0123), 0)), "0.0123");
        assert_eq!(cell(&time(Some(12.345), 2)), "12.35 (2 failed)");
        assert_eq!(cell(&time(None, 3)), "3 failed");
        assert_eq!(seconds(1234.6), "1,235");
        assert_eq!(seconds(0.001_234_5), "0.00123");
        assert_eq!(seconds(0.000_987_6), "0.000988");
    }
}
