//! One recorded transaction, to be carried out once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use spindle_io::sync::Latch;

use super::inlined::inlined;
use super::recording::{Recorded, RecordedStep, Recording};
use crate::session::SessionError;
use crate::sql::{Dialect, SqlConnection, SqlTransaction, Value};

/// Texts that the database cannot prepare: of tables that are made later, for example.
pub(super) type Unprepared = Arc<Latch<BTreeSet<usize>>>;

/// What a session leaves to the next one of its connection is undone by these.
const RESETS: [&str; 4] = [
    "reset all",
    "close all",
    "discard temp",
    "select pg_catalog.pg_advisory_unlock_all()",
];

/// A transaction.
pub(super) struct ReplayTransaction {
    pub recording: Arc<Recording>,
    pub recorded: Recorded,
    pub kind: usize,
    /// Recorded microseconds for each that passes; `None`: nothing waits.
    pub speed: Option<f64>,
    /// Another session had the connection before.
    pub resets: bool,
    pub unprepared: Unprepared,
}

impl SqlTransaction for ReplayTransaction {
    fn kind(&self) -> usize {
        self.kind
    }

    fn due_us(&self) -> Option<u64> {
        self.speed
            .map(|speed| (self.recorded.0 as f64 / speed) as u64)
    }

    fn run(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        if self.resets && connection.dialect() == Dialect::Postgres {
            for reset in RESETS {
                connection.run(reset)?;
            }
        }
        let began = now();
        let mut first_error = None;
        for step in &self.recorded.1 {
            let (RecordedStep::Text(after_us, _) | RecordedStep::Prepared(after_us, ..)) = step;
            if let Some(speed) = self.speed {
                let after = Duration::from_micros((*after_us as f64 / speed) as u64);
                connection.pause(after.saturating_sub(now() - began));
            }
            match self.carry_out(step, connection) {
                Ok(()) => {}
                // What is wrong today does not end what the others do. PostgreSQL undoes the whole transaction; the
                // others undo the statement, and their clients continued.
                Err(
                    SessionError::Failed(reason)
                    | SessionError::NoRoom(reason)
                    | SessionError::Refused(reason)
                    | SessionError::Rejected { text: reason, .. },
                ) if !connection.is_closed() => {
                    let refused = SessionError::Refused(reason);
                    if connection.dialect() == Dialect::Postgres {
                        return Err(refused);
                    }
                    first_error.get_or_insert(refused);
                }
                Err(other) => return Err(other),
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

impl ReplayTransaction {
    fn carry_out(
        &self,
        step: &RecordedStep,
        connection: &mut dyn SqlConnection,
    ) -> Result<(), SessionError> {
        let (number, parameters) = match step {
            RecordedStep::Text(_, sql) => return run(sql, connection),
            RecordedStep::Prepared(_, number, parameters) => (*number, parameters),
        };
        let is_unprepared = self.unprepared.lock().contains(&number);
        if is_unprepared {
            let text = inlined(&self.recording.texts[number], parameters);
            let text = text.ok_or_else(|| {
                SessionError::Failed("a parameter is missing in the recording".to_owned())
            })?;
            return connection.run(&text);
        }
        let values: Vec<Value<'_>> = parameters
            .iter()
            .map(|value| value.as_deref().map_or(Value::Null, Value::text))
            .collect();
        connection.query(number, &values, &mut |_| Ok(())).map(drop)
    }
}

/// Begins and ends are counted and timed as those of other workloads.
fn run(sql: &str, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
    match sql {
        "begin" => connection.begin(),
        "commit" => connection.commit(),
        "rollback" => connection.rollback(),
        _ => connection.run(sql),
    }
}

/// Clients of SQL have their own threads, and no simulated world.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}
