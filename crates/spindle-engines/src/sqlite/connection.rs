//! A connection to SQLite.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};
use spindle_system::SystemTree;
use spindle_system::threads::{this_thread, written_bytes};
use spindle_workload::sql::connection::{Breaker, Visit};
use spindle_workload::sql::value::{date_text, decimal_text};
use spindle_workload::sql::{Dialect, LoadPart, RowSink, SqlConnection, SqlRow, Value};
use spindle_workload::{Complaint, SessionError};

/// Steps of SQLite's virtual machine between two looks at the clock: a tenth of a millisecond, about.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

/// Pauses before another try, as SQLite itself makes them where it waits (`sqliteDefaultBusyCallback` of its source).
const PAUSES_MS: [u64; 8] = [1, 2, 5, 10, 15, 20, 25, 50];

/// One client's connection.
pub(super) struct SqliteConnection {
    connection: Connection,
    statements: Vec<String>,
    limit: Option<Limit>,
    written: Option<Written>,
    /// Tries in a row that found the database busy.
    busy: usize,
}

/// What had been written when temporary space was asked for last.
#[derive(Clone, Copy)]
struct Written {
    /// By this thread, to whatever file.
    bytes: u64,
    /// Rows that this connection had changed.
    changes: u64,
}

/// How long a statement may take.
struct Limit {
    time: Duration,
    made: Instant,
    /// When the statement under way is to end, nanoseconds after `made`.
    end_ns: Arc<AtomicU64>,
}

impl Limit {
    fn begin(&self) {
        let end = self.made.elapsed() + self.time;
        self.end_ns.store(end.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl SqliteConnection {
    pub fn new(connection: Connection) -> SqliteConnection {
        SqliteConnection {
            connection,
            statements: Vec::new(),
            limit: None,
            written: None,
            busy: 0,
        }
    }

    /// Notes whether the database was busy, and when a transaction has come through.
    fn noted<T>(&mut self, done: Result<T, SessionError>) -> Result<T, SessionError> {
        match &done {
            Err(SessionError::Retry(_)) => self.busy += 1,
            Ok(_) if self.connection.is_autocommit() => self.busy = 0,
            _ => {}
        }
        done
    }

    fn written(&self) -> Option<Written> {
        Some(Written {
            bytes: written_bytes(&this_thread(&SystemTree::default()))?,
            changes: self.connection.total_changes(),
        })
    }

    /// A statement begins: its time counts from now.
    fn begin_limit(&self) {
        if let Some(limit) = &self.limit {
            limit.begin();
        }
    }
}

fn session_error(error: rusqlite::Error) -> SessionError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            SessionError::Retry(error.to_string())
        }
        Some(ErrorCode::OperationInterrupted) => SessionError::Refused(
            "the statement took longer than it may, and was cancelled".to_owned(),
        ),
        Some(ErrorCode::ConstraintViolation) => SessionError::Refused(error.to_string()),
        Some(ErrorCode::DiskFull) => SessionError::NoRoom(error.to_string()),
        _ => match error {
            // Its own text repeats the whole statement.
            rusqlite::Error::SqlInputError {
                msg, sql, offset, ..
            } => {
                let before = usize::try_from(offset).ok().and_then(|end| sql.get(..end));
                let position = before.map_or(0, |before| 1 + before.chars().count());
                failed(msg).at_position(&sql, position)
            }
            other => failed(other.to_string()),
        },
    }
}

fn failed(text: String) -> SessionError {
    match WRITTEN_WRONGLY.iter().any(|words| text.contains(words)) {
        true => SessionError::rejected(Complaint::Syntax, text),
        false => SessionError::Failed(text),
    }
}

/// What SQLite says of a statement that is written wrongly; it has one code for all that is wrong with one.
const WRITTEN_WRONGLY: [&str; 3] = [": syntax error", "unrecognized token", "incomplete input"];

/// A value on its way in. Exact numbers go as texts: the affinity of their column makes numbers of them. Days go as ISO
/// texts, which SQLite's own functions take.
struct Parameter<'a>(&'a Value<'a>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = |value| Ok(ToSqlOutput::Borrowed(value));
        match self.0 {
            Value::Null => borrowed(ValueRef::Null),
            Value::Int(number) | Value::Timestamp(number) => borrowed(ValueRef::Integer(*number)),
            Value::Date(day) => Ok(ToSqlOutput::from(date_text(*day))),
            Value::Float(number) => borrowed(ValueRef::Real(*number)),
            Value::Decimal { digits, scale } => {
                Ok(ToSqlOutput::from(decimal_text(*digits, *scale)))
            }
            Value::Text(text) => borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bytes(bytes) => borrowed(ValueRef::Blob(bytes)),
        }
    }
}

struct SqliteRow<'a, 'b>(&'a rusqlite::Row<'b>);

impl SqlRow for SqliteRow<'_, '_> {
    fn columns(&self) -> usize {
        self.0.as_ref().column_count()
    }

    fn name(&self, column: usize) -> &str {
        self.0.as_ref().column_name(column).unwrap_or_default()
    }

    fn value(&self, column: usize) -> Result<Value<'_>, SessionError> {
        let value = self.0.get_ref(column).map_err(session_error)?;
        Ok(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Int(number),
            ValueRef::Real(number) => Value::Float(number),
            ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => Value::bytes(bytes),
        })
    }
}

fn each_row(mut rows: rusqlite::Rows<'_>, visit: Visit<'_>) -> Result<u64, SessionError> {
    let mut count = 0;
    while let Some(row) = rows.next().map_err(session_error)? {
        visit(&SqliteRow(row))?;
        count += 1;
    }
    Ok(count)
}

impl SqlConnection for SqliteConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        let texts = statements.iter();
        self.statements = texts
            .map(|sql| Dialect::Sqlite.placeholders(sql).0)
            .collect();
        let mut refused = Vec::new();
        for (number, statement) in self.statements.iter().enumerate() {
            if let Err(error) = self.connection.prepare_cached(statement) {
                refused.push((number, session_error(error)));
            }
        }
        Ok(refused)
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        self.begin_limit();
        let done = self.connection.execute_batch(sql).map_err(session_error);
        self.noted(done)
    }

    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.begin_limit();
        let mut statement = self.connection.prepare(sql).map_err(session_error)?;
        let rows = statement.query([]).map_err(session_error)?;
        each_row(rows, visit).map(|_| ())
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        // At once for writing: one that reads first and then finds another writing cannot wait for it.
        self.run("begin immediate")
    }

    fn begin_reading(&mut self) -> Result<(), SessionError> {
        self.run("begin")
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.run("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        if !self.connection.is_autocommit() {
            let undone = self.connection.execute_batch("rollback");
            undone.map_err(session_error)?;
        }
        // SQLite does not wait where a transaction has read already: another try at once finds it as busy.
        if let Some(tries) = self.busy.checked_sub(1) {
            let pause_ms = PAUSES_MS[tries.min(PAUSES_MS.len() - 1)];
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
        Ok(())
    }

    fn breaker(&self) -> Option<Breaker> {
        let handle = self.connection.get_interrupt_handle();
        Some(Box::new(move || handle.interrupt()))
    }

    fn in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError> {
        self.begin_limit();
        let sql = &self.statements[statement];
        let mut prepared = self.connection.prepare_cached(sql).map_err(session_error)?;
        let parameters = rusqlite::params_from_iter(parameters.iter().map(Parameter));
        let changed = prepared.execute(parameters).map_err(session_error);
        drop(prepared);
        self.noted(changed).map(|changed| changed as u64)
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.begin_limit();
        let sql = &self.statements[statement];
        let mut prepared = self.connection.prepare_cached(sql).map_err(session_error)?;
        let parameters = rusqlite::params_from_iter(parameters.iter().map(Parameter));
        let rows = prepared.query(parameters).map_err(session_error);
        let read = rows.and_then(|rows| each_row(rows, visit));
        drop(prepared);
        self.noted(read)
    }

    fn load(&mut self, part: &LoadPart) -> Result<u64, SessionError> {
        let places: Vec<String> = (1..=part.columns.len()).map(|n| format!("?{n}")).collect();
        let sql = format!(
            "insert into {} ({}) values ({})",
            part.table,
            part.columns.join(", "),
            places.join(", ")
        );
        self.run("begin immediate")?;
        let mut sink = Sink {
            statement: self.connection.prepare(&sql).map_err(session_error)?,
            rows: 0,
        };
        (part.rows)(&mut sink)?;
        let rows = sink.rows;
        drop(sink);
        self.commit()?;
        Ok(rows)
    }

    fn limit_statement(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        let (made, end_ns) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
        let end_of = Arc::clone(&end_ns);
        let is_over = move || made.elapsed().as_nanos() as u64 > end_of.load(Ordering::Relaxed);
        let looked_at = limit.map(|_| is_over);
        self.limit = limit.map(|time| Limit { time, made, end_ns });
        self.connection
            .progress_handler(STEPS_BETWEEN_LOOKS, looked_at)
            .map_err(session_error)
    }

    fn watch_temporary_space(&mut self) -> Result<(), SessionError> {
        self.written = self.written();
        Ok(())
    }

    /// SQLite's own count (`SQLITE_DBSTATUS_TEMPBUF_SPILL`) is of sorts and not of intermediate results. A client that
    /// has changed nothing has written to nothing but temporary files, and that the system counts.
    fn temporary_bytes(&mut self) -> Option<u64> {
        let before = self.written.take()?;
        self.written = self.written();
        let now = self.written?;
        (now.changes == before.changes).then_some(now.bytes - before.bytes)
    }

    fn is_closed(&self) -> bool {
        false
    }
}

/// Takes rows by a prepared insert.
struct Sink<'a> {
    statement: rusqlite::Statement<'a>,
    rows: u64,
}

impl RowSink for Sink<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        let parameters = rusqlite::params_from_iter(values.iter().map(Parameter));
        self.statement.execute(parameters).map_err(session_error)?;
        self.rows += 1;
        Ok(())
    }
}
