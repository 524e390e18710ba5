//! Answers to queries with the validation parameters: those of databases, and the standard's at scale 1, which come
//! with the crate `tpchgen`; that has them from the TPC's own tools.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tpchgen::q_and_a::answers_sf1;

pub use crate::answer::{Agreement, KeptAnswer, QueryAnswer};
use crate::session::SessionError;
use crate::sql::value::{date_text, decimal_text};
use crate::sql::{SqlConnection, SqlRow, Value};

impl QueryAnswer {
    /// The standard's, at scale 1.
    pub fn of_standard(query: u8) -> Option<QueryAnswer> {
        answers_sf1::answer(i32::from(query)).map(QueryAnswer::read)
    }

    /// The database's, of this many columns.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn ask(
        connection: &mut dyn SqlConnection,
        sql: &str,
        columns: usize,
    ) -> Result<QueryAnswer, SessionError> {
        let mut rows = Vec::new();
        connection.ask(sql, &mut |row: &dyn SqlRow| {
            let values = (0..columns).map(|column| Ok(text_of(&row.value(column)?)));
            rows.push(values.collect::<Result<Vec<String>, SessionError>>()?);
            Ok(())
        })?;
        Ok(QueryAnswer { rows })
    }
}

impl KeptAnswer {
    /// Takes in a row.
    pub(super) fn add(&mut self, row: &dyn SqlRow) -> Result<(), SessionError> {
        let values = (0..row.columns()).map(|column| Ok(text_of(&row.value(column)?)));
        let values = values.collect::<Result<Vec<String>, SessionError>>()?;
        let names = || {
            let names = (0..row.columns()).map(|column| row.name(column).to_owned());
            names.collect()
        };
        self.add_texts(names, values);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_has_an_answer_to_each_of_its_queries() {
        let rows = |query| QueryAnswer::of_standard(query).unwrap().rows;
        assert_eq!(
            [1, 6, 9, 16].map(|query| rows(query).len()),
            [4, 1, 175, 18314]
        );
        assert_eq!(rows(6), [["123141078.23"]]);
        assert_eq!(QueryAnswer::of_standard(23), None);
    }
}
