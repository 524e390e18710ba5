//! All pairs of layouts of one workload and load level as a table: a row and a column for each layout, for both
//! reports.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::ratio;
use spindle_result::{Pair, Ranking, RunResult, Verdict, format_interval};

/// Fewer layouts have no pair beside that of the verdict.
const LAYOUTS_MIN: usize = 3;
/// More layouts make a table too large to read, and a page of many megabytes.
const LAYOUTS_MAX: usize = 64;

/// The table of one workload and load level.
pub(super) struct PairTable<'a> {
    /// The layouts, in the order of the experiment.
    pub(super) layouts: Vec<&'a str>,
    /// By the names of their layouts.
    pairs: BTreeMap<(&'a str, &'a str), &'a Pair>,
}

/// What is said in place of the tables where there are too many layouts for them.
pub(super) fn left_out(result: &RunResult) -> Option<String> {
    let layouts = result.layouts.len();
    (layouts > LAYOUTS_MAX).then(|| {
        format!(
            "A table of every pair of {layouts} layouts is not drawn: result.json has them all."
        )
    })
}

/// What is known of the layout of a row beside that of a column.
pub(super) struct Cell {
    /// Ratio of the row's layout to the column's; above 1 the row's is the better one.
    pub(super) ratio: String,
    /// Its 95 % interval; empty when it is not known.
    pub(super) interval: String,
    /// What may be said of the row's layout.
    pub(super) verdict: String,
}

impl PairTable<'_> {
    /// `None` where there are too few layouts for it, or too many.
    pub(super) fn of<'a>(result: &'a RunResult, ranking: &Ranking) -> Option<PairTable<'a>> {
        if result.layouts.len() > LAYOUTS_MAX {
            return None;
        }
        let by_names = |pair: &'a Pair| ((pair.cases.a.as_str(), pair.cases.b.as_str()), pair);
        let pairs: BTreeMap<_, _> = result.pairs_of(ranking).map(by_names).collect();
        let compared: BTreeSet<&str> = pairs.keys().flat_map(|(a, b)| [*a, *b]).collect();
        let names = result.layouts.iter().map(|layout| layout.name.as_str());
        let layouts: Vec<&str> = names.filter(|name| compared.contains(name)).collect();
        (layouts.len() >= LAYOUTS_MIN).then_some(PairTable { layouts, pairs })
    }

    /// `None` where a layout meets itself.
    pub(super) fn cell(&self, row: &str, column: &str) -> Option<Cell> {
        let forth = self.pairs.get(&(row, column)).map(|pair| (*pair).clone());
        let back = || {
            self.pairs
                .get(&(column, row))
                .map(|pair| the_other_way(pair))
        };
        let pair = forth.or_else(back)?;
        Some(Cell {
            ratio: ratio(pair.ratio),
            interval: pair.ci95.map_or_else(String::new, format_interval),
            verdict: pair.verdict.to_string(),
        })
    }
}

/// The same pair, said of the other layout.
fn the_other_way(pair: &Pair) -> Pair {
    let turned = |verdict: Verdict| match verdict {
        Verdict::Faster => Verdict::Slower,
        Verdict::Slower => Verdict::Faster,
        same => same,
    };
    Pair {
        cases: pair.cases.turned(),
        ratio: 1.0 / pair.ratio,
        ci95: pair.ci95.map(|(low, high)| (1.0 / high, 1.0 / low)),
        verdict: turned(pair.verdict),
        verdict_alone: turned(pair.verdict_alone),
        ..pair.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{build, sample};

    #[test]
    fn each_pair_is_there_both_ways() {
        let record = sample::record(&[
            ("a", &[100.0, 101.0, 99.0]),
            ("b", &[200.0, 203.0, 198.0]),
            ("c", &[100.0, 108.0, 104.0]),
        ]);
        let result = build(&record).unwrap();
        let matrix = PairTable::of(&result, &result.rankings[0]).unwrap();
        assert_eq!(matrix.layouts, ["a", "b", "c"]);
        let cell = |row, column| {
            let cell: Cell = matrix.cell(row, column).unwrap();
            (cell.ratio, cell.verdict)
        };
        assert_eq!(cell("a", "b"), ("0.50".to_owned(), "slower".to_owned()));
        assert_eq!(cell("b", "a"), ("2.00".to_owned(), "faster".to_owned()));
        assert_eq!(cell("c", "a").1, "undecided");
        assert!(matrix.cell("a", "a").is_none());
        let of_two = build(&sample::record(&[("a", &[1.0]), ("b", &[1.0])])).unwrap();
        assert!(PairTable::of(&of_two, &of_two.rankings[0]).is_none());
    }
}
