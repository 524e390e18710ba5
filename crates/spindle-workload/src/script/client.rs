//! What a client does with a program: it takes the steps of a script on its connection. Its variables stay from one
//! transaction to the next; a transaction that is tried again begins with those it began with, and with the same
//! chance.

use std::sync::Arc;
use std::time::Duration;

use spindle_io::sync::Latch;

use super::expression::{Expression, Scope};
use super::mistake::NoValue;
use super::program::{Keep, Program, Step, Time};
use super::random::Random;
use super::value::{Scalar, Variable};
use crate::session::SessionError;
use crate::sql::value::{date_text, decimal_text};
use crate::sql::{Dialect, Row, SqlConnection, SqlTransaction, Value};

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
            in_pipeline: false,
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
    in_pipeline: bool,
}

impl Attempt<'_> {
    fn carry_out(
        &mut self,
        steps: &[Step],
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
                Step::Begin => connection.begin()?,
                Step::Commit => connection.commit()?,
                Step::Rollback => connection.rollback()?,
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
                Step::StartPipeline => self.in_pipeline = true,
                Step::SyncPipeline => connection.sync_pipeline()?,
                Step::EndPipeline => {
                    self.in_pipeline = false;
                    connection.end_pipeline()?;
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, expression: &Expression, place: &str) -> Result<Scalar, SessionError> {
        let mut scope = Scope {
            variables: &self.variables,
            names: &self.program.names,
            random: &mut self.random,
        };
        let value = expression.evaluate(&mut scope);
        value.map_err(|reason| SessionError::Failed(format!("{place}: {reason}")))
    }

    fn time(&self, time: Time, unit_us: u64, place: &str) -> Result<Duration, SessionError> {
        let count = match time {
            Time::Of(count) => Ok(count),
            Time::Variable(variable) => {
                let value = self.variables[variable].value(self.program.names.name(variable));
                value
                    .and_then(Scalar::to_int)
                    .and_then(|count| u64::try_from(count).map_err(|_| NoValue::NoTime(count)))
            }
        };
        let count = count.map_err(|reason| SessionError::Failed(format!("{place}: {reason}")))?;
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
                Variable::Unset => {
                    let name = self.program.names.name(*variable);
                    let reason = format!("{place}: undefined variable \"{name}\"");
                    return Err(SessionError::Failed(reason));
                }
            });
        }
        if self.in_pipeline {
            return connection.send(number, &values).map_err(placed);
        }
        let Some(keep) = keep else {
            let done = connection.query(number, &values, &mut |_| Ok(()));
            return done.map(drop).map_err(placed);
        };
        let (names, mut kept) = (&self.program.names, Vec::new());
        let rows = connection.query(number, &values, &mut |row| {
            kept.clear();
            for column in 0..row.columns() {
                let name = format!("{}{}", keep.prefix, row.name(column));
                if let Some(variable) = names.known(&name) {
                    kept.push((variable, variable_of(row, column)?));
                }
            }
            Ok(())
        });
        let rows = rows.map_err(placed)?;
        if keep.is_one && rows != 1 {
            let reason = format!("{place}: expected one row, got {rows}");
            return Err(SessionError::Failed(reason));
        }
        for (variable, value) in kept {
            self.variables[variable] = value;
        }
        Ok(())
    }
}

/// What a column leaves in a variable: a text, as in pgbench; no value is an empty one.
fn variable_of(row: &dyn Row, column: usize) -> Result<Variable, SessionError> {
    Ok(match row.value(column)? {
        Value::Null => Variable::Text(String::new()),
        Value::Int(number) => Variable::Scalar(Scalar::Int(number)),
        Value::Float(number) => Variable::Scalar(Scalar::Double(number)),
        Value::Decimal { digits, scale } => Variable::of_text(&decimal_text(digits, scale)),
        Value::Text(text) => Variable::of_text(&text),
        Value::Bytes(bytes) => Variable::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Value::Date(day) => Variable::Text(date_text(day)),
        Value::Timestamp(_) => {
            return Err(SessionError::Failed(
                "a moment cannot become a variable: cast it to text".to_owned(),
            ));
        }
    })
}
