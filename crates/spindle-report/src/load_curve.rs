//! Latency over load, where the plan has several rates of arrivals: p99 of every layout at every rate. For the
//! terminal, both reports, and the chart on the page.

use spindle_result::{Case, LoadLevel, RunResult};

use super::comparison::{NO_FIGURE, milliseconds};
use super::sentences::load_name;
use super::side_by_side::{SideBySide, name};

/// Stands below the table.
const NOTE: &str = "\
p99 in milliseconds from the intended begin, mean of the rounds. \"behind\": the layout did not keep up at that rate, and \
its times grew for as long as a trial lasted.";

/// Stands for the p99 of a layout that did not keep up.
const BEHIND: &str = "behind";

/// The cases of one number of clients.
pub(crate) struct LoadCurve<'a> {
    clients: u32,
    /// The cases of each rate, in the order of rates.
    pub levels: Vec<Vec<&'a Case>>,
}

impl<'a> LoadCurve<'a> {
    /// One for each number of clients; none where the plan has no several rates.
    pub fn all(result: &'a RunResult) -> Vec<LoadCurve<'a>> {
        let mut curves: Vec<LoadCurve<'a>> = Vec::new();
        for group in result.groups() {
            let group: Vec<&Case> = group
                .into_iter()
                .filter(|case| case.is_compared())
                .collect();
            let Some(load) = group.first().map(|case| case.id.load) else {
                continue;
            };
            if load.rate.is_none() {
                continue;
            }
            match curves
                .iter_mut()
                .find(|curve| curve.clients == load.clients)
            {
                Some(curve) => curve.levels.push(group),
                None => curves.push(LoadCurve {
                    clients: load.clients,
                    levels: vec![group],
                }),
            }
        }
        let rate_per_s = |group: &Vec<&Case>| group[0].rate_per_s().unwrap_or_default();
        for curve in &mut curves {
            let levels = &mut curve.levels;
            levels.sort_by(|a, b| rate_per_s(a).total_cmp(&rate_per_s(b)));
        }
        curves
    }

    /// What it is of.
    pub fn title(&self, result: &RunResult) -> String {
        let load = load_name(result, LoadLevel::of(self.clients));
        format!("Latency over load: {load}")
    }

    /// The first case of each layout, in the order of layouts.
    pub fn layouts(&self, result: &RunResult) -> Vec<&'a Case> {
        let mut first: Vec<&Case> = Vec::new();
        for case in self.levels.iter().flatten() {
            if first.iter().all(|other| other.id.layout != case.id.layout) {
                first.push(case);
            }
        }
        first.sort_by_key(|case| result.layout_number(&case.id.layout));
        first
    }

    /// Its table.
    pub fn table(&self, result: &RunResult) -> SideBySide {
        let layouts = self.layouts(result);
        let names = layouts.iter().map(|case| name(result, case));
        let row = |level: &Vec<&Case>| {
            let of_layout = |first: &&Case| {
                let mut cases = level.iter();
                let case = cases.find(|case| case.id.layout == first.id.layout);
                case.map_or_else(|| NO_FIGURE.to_owned(), |case| p99(case))
            };
            let figures = layouts.iter().map(of_layout);
            std::iter::once(rate(level[0])).chain(figures).collect()
        };
        SideBySide {
            title: self.title(result),
            header: std::iter::once("arrivals per second".to_owned())
                .chain(names)
                .collect(),
            rows: self.levels.iter().map(row).collect(),
            note: NOTE,
        }
    }
}

/// The tables of all.
pub(crate) fn tables(result: &RunResult) -> Vec<SideBySide> {
    let curves = LoadCurve::all(result);
    curves.iter().map(|curve| curve.table(result)).collect()
}

/// `153.2 (30%)`, or only the rate where that is what the plan says.
fn rate(case: &Case) -> String {
    let per_s = case.rate_per_s().map(|per_s| per_s.to_string());
    let per_s = per_s.unwrap_or_else(|| NO_FIGURE.to_owned());
    match case.id.load.rate {
        Some(part) if part.is_of_slowest() => format!("{per_s} ({part})"),
        _ => per_s,
    }
}

fn p99(case: &Case) -> String {
    match case.summary() {
        _ if case.is_overloaded() => BEHIND.to_owned(),
        Some(summary) => milliseconds(summary.p99_ms),
        None => NO_FIGURE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::build;
    use spindle_result::sample::with_rates;

    #[test]
    fn a_row_for_each_rate_and_a_column_for_each_layout() {
        let result = build(&with_rates(&["30%", "90%"])).unwrap();
        let tables = tables(&result);
        assert_eq!(tables.len(), 1);
        assert_eq!(tables[0].title, "Latency over load: oltp_mix, 8 clients");
        assert_eq!(
            tables[0].header,
            ["arrivals per second", "1 quick", "2 slow"]
        );
        assert_eq!(
            tables[0].rows,
            [
                ["150 (30%)", "1.00", "2.00"],
                ["450 (90%)", "1.00", "behind"]
            ]
        );
        let single = spindle_result::sample::record(&[("a", &[100.0, 101.0])]);
        assert!(super::tables(&build(&single).unwrap()).is_empty());
    }
}
