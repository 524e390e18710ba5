//! Bulk loads side by side: how long they took and what that time went to, rows per second over time, and the space of
//! the table and each of its indexes. For the terminal and both reports.

use spindle_result::{BulkLoad, Case, RunResult};
use spindle_text::quantity::thousands;

use super::comparison::NO_FIGURE;
use super::sentences::load_name;
use super::side_by_side::{MIB, SideBySide, mebibytes, name, seconds, time_rows};

/// Stands below the table.
const NOTE: &str = "\
Means over the trials. The parts of the elapsed time are those of a loader, waits without its processor time in them; parts below one in a hundred \
are left out. Space is that at the end.";

/// For each load level of a bulk load, one.
pub(super) fn tables(result: &RunResult) -> Vec<SideBySide> {
    let groups = result.groups();
    let tables = groups.iter().map(|group| table(result, group));
    tables.flatten().collect()
}

/// That of the cases of one load level; `None` of other workloads.
pub(super) fn table(result: &RunResult, group: &[&Case]) -> Option<SideBySide> {
    let cases = group.iter();
    let cases: Vec<(&Case, &BulkLoad)> = cases
        .filter_map(|case| Some((*case, case.load.as_ref()?)))
        .collect();
    let (first, _) = cases.first()?;
    let layouts = cases.iter().map(|(case, _)| name(result, case));
    let header = std::iter::once("bulk load".to_owned()).chain(layouts);
    let rows = [
        row(&cases, "elapsed, s", |_, load| Some(seconds(load.seconds))),
        row(&cases, "rows", |_, load| Some(thousands(load.rows as f64))),
        row(&cases, "rows/s", |_, load| Some(thousands(load.rows_per_s))),
    ];
    let rows = rows.into_iter().chain(over_time(&cases));
    let rows = rows.chain(time(&cases)).chain(space(&cases));
    Some(SideBySide {
        title: format!("Bulk load: {}", load_name(result, first.id.load)),
        header: header.collect(),
        rows: rows.collect(),
        note: NOTE,
    })
}

/// A row of one figure of each case.
fn row(
    cases: &[(&Case, &BulkLoad)],
    title: &str,
    figure: impl Fn(&Case, &BulkLoad) -> Option<String>,
) -> Vec<String> {
    let cell = |(case, load): &(&Case, &BulkLoad)| {
        figure(case, load).unwrap_or_else(|| NO_FIGURE.to_owned())
    };
    std::iter::once(title.to_owned())
        .chain(cases.iter().map(cell))
        .collect()
}

/// Rows per second in each part of the time, where all cases have as many.
fn over_time(cases: &[(&Case, &BulkLoad)]) -> Vec<Vec<String>> {
    let counts = cases.iter().map(|(_, load)| load.over_time.len());
    let parts = counts.clone().min().unwrap_or(0);
    if counts.max() != Some(parts) {
        return Vec::new();
    }
    let of_part = |number: usize| {
        let percent = |number: usize| 100 * number / parts;
        let (from, to) = (percent(number), percent(number + 1));
        let title = format!("rows/s, {from} to {to} % of the time");
        row(cases, &title, |_, load| {
            Some(thousands(load.over_time[number].rows_per_s))
        })
    };
    (0..parts).map(of_part).collect()
}

/// Seconds of a loader's time that went to each part.
fn time(cases: &[(&Case, &BulkLoad)]) -> Vec<Vec<String>> {
    let cases: Vec<(&Case, f64)> = cases
        .iter()
        .map(|(case, load)| (*case, load.seconds))
        .collect();
    time_rows(&cases)
}

/// Mean space of each segment, MiB.
fn space(cases: &[(&Case, &BulkLoad)]) -> Vec<Vec<String>> {
    let mut segments: Vec<&str> = Vec::new();
    let trials = || cases.iter().flat_map(|(case, _)| &case.trials);
    for space in trials().flat_map(|trial| &trial.space) {
        if !segments.contains(&space.segment.as_str()) {
            segments.push(&space.segment);
        }
    }
    let of_segment = |segment: &str| {
        row(cases, &format!("MiB of {segment}"), |case, _| {
            let spaces = case.trials.iter().flat_map(|trial| &trial.space);
            let found: Vec<f64> = spaces
                .filter(|space| space.segment == segment)
                .map(|space| space.bytes as f64 / MIB)
                .collect();
            let mean = found.iter().sum::<f64>() / found.len() as f64;
            (!found.is_empty()).then(|| mebibytes(mean))
        })
    };
    segments.into_iter().map(of_segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{LoadStep, ResponseTime, TimePart, build, sample};

    fn part(name: &str, us: f64) -> TimePart {
        TimePart {
            part: name.into(),
            us,
        }
    }

    #[test]
    fn loads_stand_side_by_side_with_their_time_and_space() {
        let mut record = sample::record(&[("a", &[120.0]), ("b", &[60.0])]);
        let result = build(&record).unwrap();
        assert!(tables(&result).is_empty(), "of other workloads");
        for case in &mut record.cases {
            case.trials[0].rows = Some(1000);
        }
        let mut result = build(&record).unwrap();
        let cases = &mut result.cases;
        cases[0].response_time = Some(ResponseTime {
            mean_us: 100.0,
            parts: vec![
                part("log file sync", 60.0),
                part("user CPU", 39.5),
                part("other", 0.5),
            ],
            excess_us: 0.0,
        });
        for (case, rates) in cases.iter_mut().zip([[300.0, 100.0], [210.0, 190.0]]) {
            let load = case.load.as_mut().unwrap();
            load.over_time = rates
                .map(|rows_per_s| LoadStep {
                    end_s: 1.0,
                    rows_per_s,
                    segments_mib: None,
                })
                .to_vec();
        }
        let [table] = &tables(&result)[..] else {
            panic!("one load level")
        };
        assert_eq!(table.header, ["bulk load", "1 a", "2 b"]);
        assert_eq!(
            table.rows,
            [
                ["elapsed, s", "5.000", "5.000"],
                ["rows", "1,000", "1,000"],
                ["rows/s", "200", "200"],
                ["rows/s, 0 to 50 % of the time", "300", "210"],
                ["rows/s, 50 to 100 % of the time", "100", "190"],
                ["time in log file sync, s", "3.000", "-"],
                ["time in user CPU, s", "1.975", "-"],
                ["MiB of accounts", "256", "256"],
            ]
        );
        result.cases[0].load.as_mut().unwrap().over_time.clear();
        assert_eq!(
            tables(&result)[0].rows.len(),
            6,
            "unlike courses are not compared"
        );
    }
}
