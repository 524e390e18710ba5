//! Answers to queries as texts, and whether one agrees with another that is right.
//!
//! Clause 2.1.3.5 of TPC-H lets sums differ by 100 dollars, and averages and ratios by 1 %. Here texts, dates and whole
//! numbers must be equal, and all others no further from the right one than a hundredth, to which it is rounded.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// As near as a number that is rounded to hundredths must be, with room for how floats round.
const HUNDREDTH: f64 = 0.010_000_1;

/// Rows of an answer that are kept; of those of the standard's queries none is nearly that long at scale 1.
const ROWS_MAX: usize = 100_000;

/// The rows of an answer, as texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryAnswer {
    /// Row by row, each value without the blanks around it.
    pub rows: Vec<Vec<String>>,
}

impl QueryAnswer {
    /// An answer that is written with a line of names and a line for each row, values divided by `|`.
    pub fn read(text: &str) -> QueryAnswer {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let row = |line: &str| {
            line.split('|')
                .map(|value| value.trim().to_owned())
                .collect()
        };
        QueryAnswer {
            rows: lines.skip(1).map(row).collect(),
        }
    }

    /// Columns of its rows.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// Whether it is as right as another, which is.
    pub fn compare(&self, right: &QueryAnswer) -> Agreement {
        let mut differences = String::new();
        if self.rows.len() != right.rows.len() {
            let (found, wanted) = (self.rows.len(), right.rows.len());
            let _ = writeln!(differences, "{found} rows, not {wanted}");
        }
        for (number, (found, wanted)) in self.rows.iter().zip(&right.rows).enumerate() {
            let is_right = found.len() == wanted.len()
                && found
                    .iter()
                    .zip(wanted)
                    .all(|(found, wanted)| agree(found, wanted));
            if !is_right {
                let _ = writeln!(differences, "row {}: {found:?}, not {wanted:?}", number + 1);
            }
        }
        match differences.is_empty() {
            true => Agreement::Right,
            false => Agreement::Wrong(differences),
        }
    }
}

/// What a stream was answered, as it is kept for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAnswer {
    /// Number of the query.
    pub query: u8,
    /// The stream that asked.
    pub stream: usize,
    /// Names of the columns; none where there is no row.
    pub columns: Vec<String>,
    /// The rows, up to a hundred thousand.
    pub answer: QueryAnswer,
    /// How many rows more there were.
    pub rows_left_out: u64,
    /// Whether every trial has to get the same answer: no other client changed the data.
    pub is_settled: bool,
    /// Whether it is as right as the standard's answer; `None` where the standard has none.
    pub standard: Option<Agreement>,
}

/// Whether an answer is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// It is.
    Right,
    /// It is not: the differences, for people.
    Wrong(String),
}

impl KeptAnswer {
    /// Takes in a row of texts; `names` tells those of its columns.
    pub(crate) fn add_texts(
        &mut self,
        names: impl FnOnce() -> Vec<String>,
        values: impl IntoIterator<Item = String>,
    ) {
        if self.answer.rows.len() == ROWS_MAX {
            self.rows_left_out += 1;
            return;
        }
        if self.columns.is_empty() {
            self.columns = names();
        }
        self.answer.rows.push(values.into_iter().collect());
    }
}

fn agree(found: &str, wanted: &str) -> bool {
    if found == wanted {
        return true;
    }
    match (found.parse::<f64>(), wanted.parse::<f64>()) {
        (Ok(found), Ok(right)) if wanted.contains('.') => (found - right).abs() <= HUNDREDTH,
        (Ok(found), Ok(right)) => found == right,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_to_a_hundredth_and_all_else_exactly() {
        for (found, wanted) in [
            ("abc", "abc"),
            ("3.0", "3"),
            ("25.5193", "25.52"),
            ("25.529", "25.52"),
            ("1995-03-15", "1995-03-15"),
            ("56586554400.7299", "56586554400.73"),
        ] {
            assert!(agree(found, wanted), "{found} {wanted}");
        }
        for (found, wanted) in [
            ("abc", "abd"),
            ("4", "3"),
            ("25.54", "25.52"),
            ("1995-03-16", "1995-03-15"),
            ("56586554401.73", "56586554400.73"),
            ("null", "0.00"),
        ] {
            assert!(!agree(found, wanted), "{found} {wanted}");
        }
    }

    #[test]
    fn what_differs_is_said() {
        let right = QueryAnswer::read("a|b\n1 | 2.00\n3|4.00\n");
        assert_eq!(right.rows, [["1", "2.00"], ["3", "4.00"]]);
        let mut found = right.clone();
        assert_eq!(found.compare(&right), Agreement::Right);
        found.rows[1][1] = "4.02".to_owned();
        let wrong = |differences: &str| Agreement::Wrong(differences.to_owned());
        let said = wrong("row 2: [\"3\", \"4.02\"], not [\"3\", \"4.00\"]\n");
        assert_eq!(found.compare(&right), said);
        found.rows.pop();
        assert_eq!(found.compare(&right), wrong("1 rows, not 2\n"));
    }
}
