//! Answers to queries with the validation parameters, and whether they are right. The standard's answers at scale 1
//! come with the crate `tpchgen`, which has them from the TPC's own tools.
//!
//! Clause 2.1.3.5 lets sums differ by 100 dollars, and averages and ratios by 1 %. Here texts, dates and whole numbers
//! must be equal, and all others no further from the right one than a hundredth, to which it is rounded.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tpchgen::q_and_a::answers_sf1;

use crate::session::SessionError;
use crate::sql::value::{date_text, decimal_text};
use crate::sql::{Row, SqlConnection, Value};

/// As near as a number that is rounded to hundredths must be, with room for how floats round.
const HUNDREDTH: f64 = 0.010_000_1;

/// Rows of an answer that are kept; of those of the standard's queries none is nearly so long at scale 1.
const ROWS_MAX: usize = 100_000;

/// The rows of an answer, as texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Row by row, each value without the blanks around it.
    pub rows: Vec<Vec<String>>,
}

impl Answer {
    /// The standard's, at scale 1.
    pub fn of_standard(query: u8) -> Option<Answer> {
        answers_sf1::answer(i32::from(query)).map(Answer::read)
    }

    /// An answer that is written with a line of names and a line for each row, values divided by `|`.
    pub fn read(text: &str) -> Answer {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let row = |line: &str| {
            line.split('|')
                .map(|value| value.trim().to_owned())
                .collect()
        };
        Answer {
            rows: lines.skip(1).map(row).collect(),
        }
    }

    /// The database's, of so many columns.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn ask(
        connection: &mut dyn SqlConnection,
        sql: &str,
        columns: usize,
    ) -> Result<Answer, SessionError> {
        let mut rows = Vec::new();
        connection.ask(sql, &mut |row: &dyn Row| {
            let values = (0..columns).map(|column| Ok(text_of(&row.value(column)?)));
            rows.push(values.collect::<Result<Vec<String>, SessionError>>()?);
            Ok(())
        })?;
        Ok(Answer { rows })
    }

    /// Columns of its rows.
    pub fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// Whether it is as right as another, which is; else where it is not.
    ///
    /// # Errors
    /// The differences, for people.
    pub fn compare(&self, right: &Answer) -> Result<(), String> {
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
            true => Ok(()),
            false => Err(differences),
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
    pub answer: Answer,
    /// How many rows more there were.
    pub rows_left_out: u64,
    /// Whether every trial has to get the same answer: nobody else changed the data.
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
    /// Takes in a row.
    pub(super) fn add(&mut self, row: &dyn Row) -> Result<(), SessionError> {
        if self.answer.rows.len() == ROWS_MAX {
            self.rows_left_out += 1;
            return Ok(());
        }
        if self.columns.is_empty() {
            let names = (0..row.columns()).map(|column| row.name(column).to_owned());
            self.columns = names.collect();
        }
        let values = (0..row.columns()).map(|column| Ok(text_of(&row.value(column)?)));
        self.answer
            .rows
            .push(values.collect::<Result<Vec<String>, SessionError>>()?);
        Ok(())
    }
}

/// The answers of a trial; of a query that was asked again, the last.
#[derive(Debug, Default)]
pub struct KeptAnswers(Mutex<BTreeMap<(usize, u8), KeptAnswer>>);

impl KeptAnswers {
    pub(super) fn keep(&self, answer: KeptAnswer) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert((answer.stream, answer.query), answer);
    }

    /// All of them, stream by stream.
    pub(super) fn all(&self) -> Vec<KeptAnswer> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values().cloned().collect()
    }
}

fn text_of(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Decimal { digits, scale } => decimal_text(*digits, *scale),
        Value::Text(text) => text.trim().to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).trim().to_owned(),
        Value::Date(day) => date_text(*day),
        Value::Timestamp(moment) => moment.to_string(),
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
    fn the_standard_has_an_answer_to_each_of_its_queries() {
        let rows = |query| Answer::of_standard(query).unwrap().rows;
        assert_eq!(
            [1, 6, 9, 16].map(|query| rows(query).len()),
            [4, 1, 175, 18314]
        );
        assert_eq!(rows(6), [["123141078.23"]]);
        assert_eq!(Answer::of_standard(23), None);
    }

    #[test]
    fn what_differs_is_said() {
        let right = Answer::read("a|b\n1 | 2.00\n3|4.00\n");
        assert_eq!(right.rows, [["1", "2.00"], ["3", "4.00"]]);
        let mut found = right.clone();
        assert_eq!(found.compare(&right), Ok(()));
        found.rows[1][1] = "4.02".to_owned();
        let said = found.compare(&right).unwrap_err();
        assert_eq!(said, "row 2: [\"3\", \"4.02\"], not [\"3\", \"4.00\"]\n");
        found.rows.pop();
        assert_eq!(found.compare(&right).unwrap_err(), "1 rows, not 2\n");
    }
}
