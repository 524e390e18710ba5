//! Check scripts: each of their statements is asked when the tables are loaded and again after the clients have ended,
//! and must have the same answer. What it was is kept in a table beside the data, so that it is put back with them.

use super::program::Placed;
use crate::session::SessionError;
use crate::sql::{SqlConnection, SqlRow, Value};
use crate::workload::CheckError;

const TABLE: &str = "spindle_answers";
/// Of a row of an answer, this much is shown, characters.
const SHOWN_LENGTH: usize = 200;

/// An answer in short.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AnswerDigest {
    rows: i64,
    /// The sum of FNV-1a of each row: their order may be the database's choice, also with `order by` where keys are
    /// equal.
    hash: i64,
    /// The least row, compared as a text.
    first: String,
}

/// Asks and keeps the answers.
///
/// # Errors
/// See [`SessionError`].
pub(super) fn keep(
    questions: &[Placed],
    connection: &mut dyn SqlConnection,
) -> Result<(), SessionError> {
    if questions.is_empty() {
        return Ok(());
    }
    connection.run(&format!(
        "create table {TABLE} (question integer not null primary key, answer_rows bigint not null, \
         answer_hash bigint not null, first_row varchar(1000) not null)"
    ))?;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        let answer = ask(question, connection)?;
        let again = ask(question, connection)?;
        if answer != again {
            return Err(SessionError::Failed(format!(
                "asked twice, it gives two answers: {}, then {}; a check must give one as long as the data stay the same: leave \
                 out now(), random() and the like",
                answer.first, again.first
            ))
            .at(&question.place));
        }
        answers.push(answer);
    }
    connection.prepare(&[format!("insert into {TABLE} values ($1, $2, $3, $4)")])?;
    for (number, answer) in answers.iter().enumerate() {
        let row = [
            Value::Int(number as i64),
            Value::Int(answer.rows),
            Value::Int(answer.hash),
            Value::text(&answer.first),
        ];
        connection.execute(0, &row)?;
    }
    Ok(())
}

/// Asks again, and compares; says what was found.
///
/// # Errors
/// See [`CheckError`].
pub(super) fn compare(
    questions: &[Placed],
    connection: &mut dyn SqlConnection,
) -> Result<String, CheckError> {
    if questions.is_empty() {
        return Ok("no check script: nothing was looked at".to_owned());
    }
    let mut kept = Vec::new();
    let sql = format!("select answer_rows, answer_hash, first_row from {TABLE} order by question");
    let asked = connection.ask(&sql, &mut |row| {
        kept.push(AnswerDigest {
            rows: row.int(0)?,
            hash: row.int(1)?,
            first: row.text(2)?,
        });
        Ok(())
    });
    asked?;
    if kept.len() != questions.len() {
        return Err(CheckError::Lost(format!(
            "{} of {} answers were kept after the load",
            kept.len(),
            questions.len()
        )));
    }
    for (question, before) in questions.iter().zip(&kept) {
        let now = ask(question, connection)?;
        if now != *before {
            let what = difference(before, &now);
            return Err(CheckError::Lost(format!(
                "{}: {what}; a transaction was lost, or the scripts change what this asks: write what stays the same \
                 whatever they do",
                question.place
            )));
        }
    }
    Ok(match questions.len() {
        1 => "the answer of the check script is what it was after the load".to_owned(),
        count => format!("{count} answers of check scripts are what they were after the load"),
    })
}

fn difference(before: &AnswerDigest, now: &AnswerDigest) -> String {
    if before.rows != now.rows {
        return format!("{} rows, and {} after the load", now.rows, before.rows);
    }
    match before.first == now.first {
        true => "other rows than after the load".to_owned(),
        false => format!("{}, and {} after the load", now.first, before.first),
    }
}

fn ask(
    question: &Placed,
    connection: &mut dyn SqlConnection,
) -> Result<AnswerDigest, SessionError> {
    let mut answer = AnswerDigest {
        rows: 0,
        hash: 0,
        first: String::new(),
    };
    let asked = connection.ask(&question.sql, &mut |row| {
        let text = row_text(row)?;
        answer.hash = answer.hash.wrapping_add(hash_of(&text));
        answer.rows += 1;
        let shown: String = text.chars().take(SHOWN_LENGTH).collect();
        if answer.rows == 1 || shown < answer.first {
            answer.first = shown;
        }
        Ok(())
    });
    asked.map_err(|error| error.at(&question.place))?;
    Ok(answer)
}

fn hash_of(text: &str) -> i64 {
    text.as_bytes().chunks(8).fold(0, |hash, part| {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        let number = i64::from_le_bytes(bytes) ^ part.len() as i64;
        super::random::hash_fnv1a(number, hash)
    })
}

/// The columns of a row, in brackets.
fn row_text(row: &dyn SqlRow) -> Result<String, SessionError> {
    let mut text = String::from("(");
    for column in 0..row.columns() {
        if column > 0 {
            text.push_str(", ");
        }
        match row.value(column)? {
            Value::Null => text.push_str("null"),
            Value::Int(number) => text.push_str(&number.to_string()),
            Value::Float(number) => text.push_str(&number.to_string()),
            Value::Decimal { digits, scale } => {
                text.push_str(&crate::sql::value::decimal_text(digits, scale));
            }
            Value::Text(value) => text.push_str(&format!("{value:?}")),
            Value::Bytes(bytes) => text.push_str(&format!("{bytes:?}")),
            Value::Date(day) => text.push_str(&crate::sql::value::date_text(day)),
            Value::Timestamp(moment_us) => text.push_str(&moment_us.to_string()),
        }
    }
    text.push(')');
    Ok(text)
}
