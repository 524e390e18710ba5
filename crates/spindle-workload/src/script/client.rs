//! What a client does with a program: it takes the steps of a script on its connection. Its variables stay from one
//! transaction to the next; a transaction that is tried again begins with those it began with, and with the same
//! chance.

use std::sync::Arc;
use std::time::Duration;

use spindle_io::sync::Latch;

use super::expression::{Expression, Scope};
use super::lexer::is_name;
use super::program::{Control, Keep, Pipeline, Program, Step, Time};
use super::random::Random;
use super::value::{Scalar, Variable};
use crate::session::SessionError;
use crate::sql::value::{date_text, decimal_text};
use crate::sql::{Dialect, SqlConnection, SqlRow, SqlTransaction, Value};

/// The variables of a client, between its transactions.
pub(super) type ClientVariables = Latch<Vec<Variable>>;

/// One script, to be carried out once.
pub(super) struct ScriptTransaction {
    pub program: Arc<Program>,
    /// Of all clients.
    pub places: Arc<[ClientVariables]>,
    pub client: usize,
    pub script: usize,
    pub random: Random,
}

impl SqlTransaction for ScriptTransaction {
    fn kind(&self) -> usize {
        self.script
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let place = &self.places[self.client];
        let mut attempt = Attempt {
            program: &self.program,
            dialect: connection.dialect(),
            variables: place.lock().clone(),
            random: self.random.clone(),
            stack: Vec::new(),
            pipeline: None,
            sent: Vec::new(),
            transaction: None,
        };
        attempt.carry_out(&self.program.scripts[self.script].steps, connection)?;
        *place.lock() = attempt.variables;
        Ok(())
    }
}

struct Attempt<'a> {
    program: &'a Program,
    dialect: Dialect,
    variables: Vec<Variable>,
    random: Random,
    /// What expressions are evaluated on.
    stack: Vec<Scalar>,
    /// Where the pipeline begins that is open.
    pipeline: Option<&'a str>,
    /// Where the statements are that were sent in it.
    sent: Vec<&'a str>,
    /// Where the transaction begins that is open.
    transaction: Option<&'a str>,
}

/// What fails at a place in a script.
fn failed(place: &str, reason: impl std::fmt::Display) -> SessionError {
    SessionError::Failed(format!("{place}: {reason}"))
}

impl<'a> Attempt<'a> {
    fn carry_out(
        &mut self,
        steps: &'a [Step],
        connection: &mut dyn SqlConnection,
    ) -> Result<(), SessionError> {
        let mut next = 0;
        while let Some(step) = steps.get(next) {
            next += 1;
            match step {
                Step::Set {
                    variable,
                    expression,
                    place,
                } => {
                    let value = self.evaluate(expression, place)?;
                    self.variables[*variable] = Variable::Scalar(value);
                }
                Step::Statement {
                    number,
                    parameters,
                    keep,
                } => self.statement(*number, parameters, keep.as_ref(), connection)?,
                Step::Control(control, place) => {
                    let done = match control {
                        Control::Begin => connection.begin(),
                        Control::Commit => connection.commit(),
                        Control::Rollback => connection.rollback(),
                    };
                    done.map_err(|error| error.at(place))?;
                    self.note_transaction(place, connection);
                }
                Step::JumpUnless {
                    condition,
                    to,
                    place,
                } => {
                    if !self.evaluate(condition, place)?.is_true() {
                        next = *to;
                    }
                }
                Step::Jump(to) => next = *to,
                Step::Sleep {
                    time,
                    unit_us,
                    place,
                } => connection.pause(self.time(*time, *unit_us, place)?),
                Step::Pipeline(what, place) => self.pipeline(*what, place, connection)?,
            }
        }
        self.end()
    }

    /// Nothing that a script begins may be open when it ends.
    fn end(&self) -> Result<(), SessionError> {
        if let Some(place) = self.pipeline {
            return Err(failed(
                place,
                "end of script reached with pipeline open: \\endpipeline is missing on the way that was taken",
            ));
        }
        match self.transaction {
            None => Ok(()),
            Some(place) => Err(failed(
                place,
                "end of script reached without completing the last transaction, which is open from here on: \
                 COMMIT or ROLLBACK is missing",
            )),
        }
    }

    /// Notes whether a transaction is open behind a place. Within a pipeline the database has not said so yet.
    fn note_transaction(&mut self, place: &'a str, connection: &dyn SqlConnection) {
        if self.pipeline.is_some() {
            return;
        }
        match connection.in_transaction() {
            true => _ = self.transaction.get_or_insert(place),
            false => self.transaction = None,
        }
    }

    fn pipeline(
        &mut self,
        what: Pipeline,
        place: &'a str,
        connection: &mut dyn SqlConnection,
    ) -> Result<(), SessionError> {
        match (what, self.pipeline) {
            (Pipeline::Start, None) => self.pipeline = Some(place),
            (Pipeline::Start, Some(_)) => return Err(failed(place, "already in pipeline mode")),
            (_, None) => return Err(failed(place, "not in pipeline mode")),
            (Pipeline::Sync, Some(_)) => {
                connection
                    .sync_pipeline()
                    .map_err(|error| error.at(place))?;
            }
            (Pipeline::End, Some(begin)) => {
                self.pipeline = None;
                let sent = std::mem::take(&mut self.sent);
                connection.end_pipeline().map_err(|failure| {
                    let place = failure.statement.and_then(|number| sent.get(number));
                    failure.error.at(place.unwrap_or(&begin))
                })?;
                self.note_transaction(begin, connection);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, expression: &Expression, place: &str) -> Result<Scalar, SessionError> {
        let mut scope = Scope {
            variables: &self.variables,
            names: &self.program.names,
            random: &mut self.random,
            stack: &mut self.stack,
        };
        let value = expression.evaluate(&mut scope);
        value.map_err(|reason| failed(place, reason))
    }

    fn time(&self, time: Time, unit_us: u64, place: &str) -> Result<Duration, SessionError> {
        let count = match time {
            Time::Of(count) => Ok(count),
            Time::Variable(variable) => {
                self.variables[variable].time(self.program.names.name(variable))
            }
        };
        let count = count.map_err(|reason| failed(place, reason))?;
        // A time before now has come.
        let count = u64::try_from(count).unwrap_or(0);
        Ok(Duration::from_micros(count.saturating_mul(unit_us)))
    }

    fn statement(
        &mut self,
        number: usize,
        parameters: &[usize],
        keep: Option<&Keep>,
        connection: &mut dyn SqlConnection,
    ) -> Result<(), SessionError> {
        let place = &self.program.statements[number].place;
        let placed = |error: SessionError| error.at(place);
        let mut values = Vec::with_capacity(parameters.len());
        for variable in parameters {
            values.push(match &self.variables[*variable] {
                Variable::Scalar(scalar) => scalar.parameter(self.dialect),
                Variable::Text(text) => Value::text(text),
                Variable::Bytes(bytes) => Value::bytes(bytes),
                // As `pgbench -M prepared` hands over what only another script has set, or no answer yet.
                Variable::Unset => Value::Null,
            });
        }
        match (self.pipeline, keep) {
            (Some(_), Some(_)) => {
                return Err(failed(
                    place,
                    "\\gset and \\aset are not allowed in pipeline mode",
                ));
            }
            (Some(_), None) => {
                self.sent.push(place);
                return connection.send(number, &values).map_err(placed);
            }
            (None, Some(keep)) => {
                for (variable, value) in self.answer(number, &values, keep, connection)? {
                    self.variables[variable] = value;
                }
            }
            (None, None) => {
                let done = connection.query_unread(number, &values);
                done.map_err(placed)?;
            }
        }
        self.note_transaction(place, connection);
        Ok(())
    }

    /// Carries out a statement, and makes variables of its answer.
    fn answer(
        &self,
        number: usize,
        values: &[Value<'_>],
        keep: &Keep,
        connection: &mut dyn SqlConnection,
    ) -> Result<Vec<(usize, Variable)>, SessionError> {
        let place = &self.program.statements[number].place;
        let (names, mut kept) = (&self.program.names, Vec::new());
        let rows = connection.query_to_keep(number, values, &mut |row| {
            kept.clear();
            for column in 0..row.columns() {
                let name = format!("{}{}", keep.prefix, row.name(column));
                if !is_name(&name) {
                    return Err(SessionError::Failed(format!(
                        "error storing into variable {name}: give the column a name that a variable may have, \
                         as in count(*) as rows"
                    )));
                }
                if let Some(variable) = names.known(&name) {
                    kept.push((variable, variable_of(row, column)?));
                }
            }
            Ok(())
        });
        let rows = rows.map_err(|error| error.at(place))?;
        if keep.is_one && rows != 1 {
            return Err(failed(place, format!("expected one row, got {rows}")));
        }
        Ok(kept)
    }
}

/// What a column leaves in a variable: a text, as in pgbench; no value is an empty one.
fn variable_of(row: &dyn SqlRow, column: usize) -> Result<Variable, SessionError> {
    Ok(match row.value(column)? {
        Value::Null => Variable::Text(String::new()),
        Value::Int(number) => Variable::Scalar(Scalar::Int(number)),
        Value::Float(number) => Variable::Scalar(Scalar::Double(number)),
        Value::Decimal { digits, scale } => Variable::of_text(&decimal_text(digits, scale)),
        Value::Text(text) => Variable::of_text(&text),
        Value::Bytes(bytes) => Variable::Bytes(bytes.into_owned()),
        Value::Date(day) => Variable::Text(date_text(day)),
        Value::Timestamp(moment_us) => Variable::Text(moment_text(moment_us)),
    })
}

/// A moment as databases write it, with a fraction of a second if there is one.
fn moment_text(moment_us: i64) -> String {
    const SECOND_US: i64 = 1_000_000;
    const DAY_US: i64 = 86_400 * SECOND_US;
    let (day, of_day_us) = (moment_us.div_euclid(DAY_US), moment_us.rem_euclid(DAY_US));
    let (seconds, part) = (of_day_us / SECOND_US, of_day_us % SECOND_US);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = match part {
        0 => String::new(),
        part => format!(".{part:06}"),
    };
    let date = date_text(day as i32);
    format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}")
}
