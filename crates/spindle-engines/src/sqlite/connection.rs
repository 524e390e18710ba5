//! A connection to SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, ToSql};
use spindle_workload::SessionError;
use spindle_workload::sql::connection::Visit;
use spindle_workload::sql::value::decimal_text;
use spindle_workload::sql::{Dialect, LoadPart, Row, RowSink, SqlConnection, Value};

/// One client's connection.
pub(super) struct SqliteConnection {
    connection: Connection,
    statements: Vec<String>,
}

impl SqliteConnection {
    pub fn new(connection: Connection) -> SqliteConnection {
        SqliteConnection {
            connection,
            statements: Vec::new(),
        }
    }
}

fn session_error(error: rusqlite::Error) -> SessionError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            SessionError::Retry(error.to_string())
        }
        Some(ErrorCode::ConstraintViolation) => SessionError::Refused(error.to_string()),
        _ => SessionError::Failed(error.to_string()),
    }
}

/// A value on its way in. Exact numbers go as texts: the affinity of their column makes numbers of them.
struct Parameter<'a>(&'a Value<'a>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = |value| Ok(ToSqlOutput::Borrowed(value));
        match self.0 {
            Value::Null => borrowed(ValueRef::Null),
            Value::Int(number) | Value::Timestamp(number) => borrowed(ValueRef::Integer(*number)),
            Value::Date(day) => borrowed(ValueRef::Integer(i64::from(*day))),
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

impl Row for SqliteRow<'_, '_> {
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

    fn prepare(&mut self, statements: &[String]) -> Result<(), SessionError> {
        let texts = statements.iter();
        self.statements = texts
            .map(|sql| Dialect::Sqlite.placeholders(sql).0)
            .collect();
        for statement in &self.statements {
            let prepared = self.connection.prepare_cached(statement);
            prepared.map_err(session_error)?;
        }
        Ok(())
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        self.connection.execute_batch(sql).map_err(session_error)
    }

    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
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
        match self.connection.is_autocommit() {
            true => Ok(()),
            false => self.run("rollback"),
        }
    }

    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError> {
        let sql = &self.statements[statement];
        let mut prepared = self.connection.prepare_cached(sql).map_err(session_error)?;
        let parameters = rusqlite::params_from_iter(parameters.iter().map(Parameter));
        let changed = prepared.execute(parameters).map_err(session_error)?;
        Ok(changed as u64)
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        let sql = &self.statements[statement];
        let mut prepared = self.connection.prepare_cached(sql).map_err(session_error)?;
        let parameters = rusqlite::params_from_iter(parameters.iter().map(Parameter));
        let rows = prepared.query(parameters).map_err(session_error)?;
        each_row(rows, visit)
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
