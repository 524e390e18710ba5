//! A client's connection to PostgreSQL. Statements are prepared once; a call is Bind, Execute and Sync in one write,
//! its parameters and its answer in binary. It is what measures, so it is to cost less than the peers' clients do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::backend::{
    COMMAND_COMPLETE_TAG, COPY_IN_RESPONSE_TAG, DATA_ROW_TAG, EMPTY_QUERY_RESPONSE_TAG,
    PARAMETER_DESCRIPTION_TAG, ROW_DESCRIPTION_TAG,
};
use postgres_protocol::message::frontend::{self, BindError};
use postgres_protocol::{IsNull, Oid};
use spindle_workload::SessionError;
use spindle_workload::sql::connection::{Breaker, PipelineFailure, Visit};
use spindle_workload::sql::{Dialect, LoadPart, RowSink, SqlConnection, SqlRow, Value};

use super::stream::Stream;
use super::temporary::{self, SharedFiles};
use super::values;
use super::wire::{Login, Message, Wire, number_at, short_at, unexpected};
use crate::sql::child_server::ServerLog;

/// Whole messages of simple queries.
const BEGIN: &[u8] = b"Q\0\0\0\x0abegin\0";
const COMMIT: &[u8] = b"Q\0\0\0\x0bcommit\0";
const ROLLBACK: &[u8] = b"Q\0\0\0\x0drollback\0";
/// Rows are sent to COPY in messages of about this size.
const COPY_BYTES: usize = 128 << 10;
/// How COPY's binary format begins ("COPY", section "Binary Format"): signature, flags, length of more.
const COPY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const COPY_END: i16 = -1;
/// What a statement is told that wants rows of the client.
const NO_ROWS: &str = "COPY has no rows here: load a dump, or write insert";
const NULL: i32 = -1;
/// How the answer to a statement ends.
const DONE_TAGS: [u8; 2] = [COMMAND_COMPLETE_TAG, EMPTY_QUERY_RESPONSE_TAG];
const BINARY: i16 = 1;
const TEXT: i16 = 0;
/// Of a pipeline, about this much is kept before it is sent.
const PIPELINE_BYTES: usize = 8 << 10;

/// Processes of the server that serve clients now.
pub(super) type Backends = Arc<Mutex<BTreeSet<u32>>>;

/// A prepared statement.
struct Statement {
    name: String,
    /// What is to be prepared before it is used first; empty: it is prepared.
    waiting: String,
    parameters: Vec<Oid>,
    columns: Vec<AnswerColumn>,
}

/// A column of an answer.
struct AnswerColumn {
    name: String,
    of: Oid,
}

/// One client's connection.
pub(super) struct PostgresConnection {
    wire: Wire,
    statements: Vec<Statement>,
    /// Where to sign off.
    backends: Option<Backends>,
    /// The server's log; `None` for an existing server.
    log: Option<ServerLog>,
    shared_files: Option<SharedFiles>,
    pipeline: Pipeline,
}

/// What was sent and not answered yet.
#[derive(Default)]
struct Pipeline {
    /// Of each part that the server carries out as one, how many statements it has.
    ended: Vec<usize>,
    /// Statements that were sent after the last of them.
    open: usize,
}

impl Pipeline {
    fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.open == 0
    }
}

impl PostgresConnection {
    /// Gives up on answers that take longer; waits indefinitely without a limit.
    ///
    /// # Errors
    /// [`SessionError::Lost`].
    pub(super) fn answer_within(&self, limit: Option<Duration>) -> Result<(), SessionError> {
        self.wire.stream.answer_within(limit)
    }

    /// Connects. `backends` learns of the server's process, from now until this is dropped.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn connect(
        stream: Stream,
        login: &Login,
        backends: Option<Backends>,
    ) -> Result<PostgresConnection, SessionError> {
        let wire = Wire::connect(stream, login)?;
        if let Some(backends) = &backends {
            let mut backends = backends.lock().unwrap_or_else(PoisonError::into_inner);
            backends.insert(wire.process_id);
        }
        Ok(PostgresConnection {
            wire,
            statements: Vec::new(),
            backends,
            log: None,
            shared_files: None,
            pipeline: Pipeline::default(),
        })
    }

    /// The same, of a server whose log can be read.
    pub fn with_log(mut self, log: ServerLog) -> PostgresConnection {
        self.log = Some(log);
        self
    }

    /// The server's process for it, as the server said when it was made.
    pub fn process_id(&self) -> u32 {
        self.wire.process_id
    }

    /// What it is, if it is encrypted.
    pub fn encryption(&self) -> Option<String> {
        self.wire.encryption()
    }

    /// Whether the server had the password itself, and not a proof of it.
    pub fn told_password(&self) -> bool {
        self.wire.was_told
    }

    /// A simple query that has no answer but its end.
    fn simple(&mut self, message: &[u8]) -> Result<(), SessionError> {
        self.wire.send_bytes(message)?;
        self.wire.ready(|_, _| Ok(()))
    }

    /// Describes a statement, which is prepared under `name`.
    fn describe(&mut self, sql: &str, name: &str) -> Result<Statement, SessionError> {
        let out = &mut self.wire.out;
        let written = frontend::parse(name, sql, [], out)
            .and_then(|()| frontend::describe(b'S', name, out))
            .map(|()| frontend::sync(out));
        written.map_err(|error| unexpected(&error.to_string()))?;
        self.wire.send()?;
        let described = self.described(name);
        described.map_err(|error| error.at_position(sql, self.wire.error_position))
    }

    /// What the server tells of the statement that was prepared last, under `name`.
    fn described(&mut self, name: &str) -> Result<Statement, SessionError> {
        let mut statement = Statement {
            name: name.to_owned(),
            waiting: String::new(),
            parameters: Vec::new(),
            columns: Vec::new(),
        };
        self.wire.ready(|wire, message| {
            match message.tag {
                PARAMETER_DESCRIPTION_TAG => {
                    statement.parameters = parameter_types(wire.body(&message))?;
                }
                ROW_DESCRIPTION_TAG => statement.columns = columns_of(wire.body(&message))?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(statement)
    }

    fn call(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        wanted: Wanted,
        visit: Visit<'_>,
    ) -> Result<Rows, SessionError> {
        self.prepare_waiting(statement)?;
        let of = &self.statements[statement];
        bind(of, parameters, wanted, &mut self.wire.out).inspect_err(|_| self.wire.out.clear())?;
        frontend::sync(&mut self.wire.out);
        self.wire.send()?;
        answer(&mut self.wire, &of.columns, wanted, visit)
    }

    /// Prepares a statement that could not be prepared before.
    fn prepare_waiting(&mut self, statement: usize) -> Result<(), SessionError> {
        let of = &mut self.statements[statement];
        if of.waiting.is_empty() {
            return Ok(());
        }
        if !self.pipeline.is_empty() {
            return Err(SessionError::Failed(
                "what this statement needs was not there when the pipeline began: make it before \\startpipeline"
                    .to_owned(),
            ));
        }
        let (sql, name) = (of.waiting.clone(), of.name.clone());
        self.statements[statement] = self.describe(&sql, &name)?;
        Ok(())
    }
}

/// How an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Values as they are read here, in binary.
    Values,
    /// The same, as texts: every server that speaks the protocol can write them.
    Written,
    /// Texts, and the names of columns.
    Texts,
    /// Texts that are not read: some types have no other form.
    Nothing,
}

impl Wanted {
    fn format(self) -> i16 {
        match self {
            Wanted::Values => BINARY,
            Wanted::Written | Wanted::Texts | Wanted::Nothing => TEXT,
        }
    }
}

/// Bind and Execute, with an answer as it is wanted; Sync is to follow.
fn bind(
    of: &Statement,
    parameters: &[Value<'_>],
    wanted: Wanted,
    out: &mut BytesMut,
) -> Result<(), SessionError> {
    if parameters.len() != of.parameters.len() {
        return Err(SessionError::Failed(format!(
            "statement {} takes {} parameters and was given {}",
            of.name,
            of.parameters.len(),
            parameters.len()
        )));
    }
    let mut refused = None;
    let pairs = || parameters.iter().zip(&of.parameters);
    let has_text = pairs().any(|(value, oid)| values::as_text(value, *oid).is_some());
    // One format is that of all.
    let formats = pairs().map(
        |(value, oid)| match values::as_text(value, *oid).is_some() {
            true => TEXT,
            false => BINARY,
        },
    );
    let formats = formats.take(if has_text { parameters.len() } else { 0 });
    let for_all = (!has_text).then_some(BINARY);
    let bound = frontend::bind(
        "",
        &of.name,
        formats.chain(for_all),
        pairs(),
        |(value, oid), out| match (value, values::as_text(value, *oid)) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (_, Some(text)) => {
                text.write(out);
                Ok(IsNull::No)
            }
            (value, None) => {
                if let Err(error) = values::write(value, *oid, out) {
                    refused.get_or_insert(error);
                }
                Ok(IsNull::No)
            }
        },
        [wanted.format()],
        out,
    );
    if let Some(error) = refused {
        return Err(error);
    }
    bound.map_err(|error| match error {
        BindError::Conversion(error) => unexpected(&error.to_string()),
        BindError::Serialization(error) => unexpected(&error.to_string()),
    })?;
    if wanted == Wanted::Texts && of.columns.is_empty() {
        // What some statements answer, such as FETCH, is known when they are carried out.
        frontend::describe(b'P', "", out).map_err(|error| unexpected(&error.to_string()))?;
    }
    frontend::execute("", 0, out).map_err(|error| unexpected(&error.to_string()))
}

/// Rows of an answer.
#[derive(Clone, Copy, Default)]
struct Rows {
    /// That were visited.
    visited: u64,
    /// That the statement says it found or changed; a call of a procedure does not.
    told: u64,
}

/// Takes an answer to its end.
fn answer(
    wire: &mut Wire,
    columns: &[AnswerColumn],
    wanted: Wanted,
    visit: Visit<'_>,
) -> Result<Rows, SessionError> {
    let (mut rows, mut described) = (Rows::default(), None);
    wire.ready(|wire, message| {
        match message.tag {
            ROW_DESCRIPTION_TAG => described = Some(columns_of(wire.body(&message))?),
            DATA_ROW_TAG => {
                rows.visited += 1;
                visit(&PostgresRow {
                    fields: wire.body(&message).get(2..).unwrap_or_default(),
                    columns: described.as_deref().unwrap_or(columns),
                    wanted,
                })?;
            }
            COMMAND_COMPLETE_TAG => rows.told = rows_in_tag(wire.body(&message)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(rows)
}

/// The number at the end of what was done, such as `UPDATE 3` or `INSERT 0 1`; 0 when there is none.
fn rows_in_tag(body: &[u8]) -> u64 {
    let text = body.strip_suffix(b"\0").unwrap_or(body);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let start = text.len() - digits.count();
    text[start..].iter().fold(0, |number: u64, digit| {
        number.wrapping_mul(10) + u64::from(digit - b'0')
    })
}

fn parameter_types(body: &[u8]) -> Result<Vec<Oid>, SessionError> {
    let count = usize::from(short_at(body, 0)?);
    let oids = (0..count).map(|place| number_at(body, 2 + 4 * place));
    oids.map(|oid| oid.map(|oid| oid as Oid)).collect()
}

/// Of each column: its name, then table (4), column (2), type (4), size (2), modifier (4), format (2).
fn columns_of(body: &[u8]) -> Result<Vec<AnswerColumn>, SessionError> {
    let count = usize::from(short_at(body, 0)?);
    let mut rest = body.get(2..).unwrap_or_default();
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let name_bytes = rest.iter().position(|byte| *byte == 0);
        let after = name_bytes.ok_or_else(|| unexpected("a column without a name"))? + 1;
        columns.push(AnswerColumn {
            name: String::from_utf8_lossy(&rest[..after - 1]).into_owned(),
            of: number_at(rest, after + 6)? as Oid,
        });
        rest = rest.get(after + 18..).unwrap_or_default();
    }
    Ok(columns)
}

/// A row: of each field its length, or -1, and its bytes.
struct PostgresRow<'a> {
    fields: &'a [u8],
    columns: &'a [AnswerColumn],
    wanted: Wanted,
}

impl SqlRow for PostgresRow<'_> {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn name(&self, column: usize) -> &str {
        self.columns.get(column).map_or("", |column| &column.name)
    }

    fn value(&self, column: usize) -> Result<Value<'_>, SessionError> {
        let Some(AnswerColumn { of, .. }) = self.columns.get(column) else {
            return Err(SessionError::Failed(format!(
                "the answer has {} columns, and column {column}, counted from 0, was asked for",
                self.columns.len()
            )));
        };
        let mut rest = self.fields;
        for _ in 0..column {
            let length = number_at(rest, 0)?.max(0) as usize;
            rest = rest.get(4 + length..).unwrap_or_default();
        }
        match usize::try_from(number_at(rest, 0)?) {
            Err(_) => Ok(Value::Null),
            Ok(length) => {
                let bytes = rest.get(4..4 + length);
                let bytes = bytes.ok_or_else(|| unexpected("a short row"))?;
                match self.wanted {
                    Wanted::Values => values::read(bytes, *of),
                    Wanted::Written => values::read_written(bytes, *of),
                    Wanted::Texts | Wanted::Nothing => {
                        Ok(Value::Text(String::from_utf8_lossy(bytes)))
                    }
                }
            }
        }
    }
}

impl SqlConnection for PostgresConnection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        if !self.statements.is_empty() {
            self.run("deallocate all")?;
            self.statements.clear();
        }
        let mut refused = Vec::new();
        for (number, sql) in statements.iter().enumerate() {
            let name = format!("s{number}");
            let statement = match self.describe(sql, &name) {
                Ok(statement) => statement,
                Err(error) if self.wire.is_closed() => return Err(error),
                Err(error) => {
                    refused.push((number, error));
                    Statement {
                        name,
                        waiting: sql.clone(),
                        parameters: Vec::new(),
                        columns: Vec::new(),
                    }
                }
            };
            self.statements.push(statement);
        }
        Ok(refused)
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        frontend::query(sql, &mut self.wire.out).map_err(|error| unexpected(&error.to_string()))?;
        self.wire.send()?;
        let done = self.wire.ready(|wire, message| match message.tag {
            // The server waits for rows, and there are none.
            COPY_IN_RESPONSE_TAG => {
                frontend::copy_fail(NO_ROWS, &mut wire.out)
                    .map_err(|error| unexpected(&error.to_string()))?;
                wire.send()
            }
            _ => Ok(()),
        });
        done.map_err(|error| error.at_position(sql, self.wire.error_position))
    }

    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        let statement = self.describe(sql, "")?;
        bind(&statement, &[], Wanted::Written, &mut self.wire.out)?;
        frontend::sync(&mut self.wire.out);
        self.wire.send()?;
        answer(&mut self.wire, &statement.columns, Wanted::Written, visit).map(|_| ())
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.simple(BEGIN)
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        let mut rolled_back = false;
        self.wire.send_bytes(COMMIT)?;
        self.wire.ready(|wire, message: Message| {
            rolled_back |=
                message.tag == COMMAND_COMPLETE_TAG && wire.body(&message).starts_with(b"ROLLBACK");
            Ok(())
        })?;
        match rolled_back {
            true => Err(SessionError::Failed(
                "a commit became a rollback: a statement of the transaction had failed".to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        if !self.pipeline.is_empty() {
            // What it says of statements that are undone is of no interest.
            let ended = self.end_pipeline().map_err(|failure| failure.error);
            if let Err(error) = ended
                && error.is_lost()
            {
                return Err(error);
            }
        }
        match self.wire.in_transaction() {
            true => self.simple(ROLLBACK),
            false => Ok(()),
        }
    }

    fn in_transaction(&self) -> bool {
        self.wire.in_transaction()
    }

    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError> {
        self.call(statement, parameters, Wanted::Values, &mut |_| Ok(()))
            .map(|rows| rows.told)
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.call(statement, parameters, Wanted::Values, visit)
            .map(|rows| rows.visited)
    }

    fn query_to_keep(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.call(statement, parameters, Wanted::Texts, visit)
            .map(|rows| rows.visited)
    }

    fn query_unread(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.call(statement, parameters, Wanted::Nothing, &mut |_| Ok(()))
            .map(|rows| rows.visited)
    }

    fn send(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SessionError> {
        self.prepare_waiting(statement)?;
        // A message that cannot be made whole is none.
        let begin = self.wire.out.len();
        let of = &self.statements[statement];
        let bound = bind(of, parameters, Wanted::Nothing, &mut self.wire.out);
        bound.inspect_err(|_| self.wire.out.truncate(begin))?;
        self.pipeline.open += 1;
        match self.wire.out.len() >= PIPELINE_BYTES {
            true => self.wire.send(),
            false => Ok(()),
        }
    }

    fn sync_pipeline(&mut self) -> Result<(), SessionError> {
        frontend::sync(&mut self.wire.out);
        self.pipeline.ended.push(self.pipeline.open);
        self.pipeline.open = 0;
        self.wire.send()
    }

    fn end_pipeline(&mut self) -> Result<(), PipelineFailure> {
        if self.pipeline.open > 0 {
            self.sync_pipeline()?;
        }
        let (mut first, mut before) = (None, 0);
        for statements in std::mem::take(&mut self.pipeline.ended) {
            let mut done = 0;
            let ready = self.wire.ready(|_, message| {
                done += usize::from(DONE_TAGS.contains(&message.tag));
                Ok(())
            });
            if let Err(error) = ready {
                // What fails behind all of them is their commit.
                let statement = (done < statements).then_some(before + done);
                first.get_or_insert(PipelineFailure { error, statement });
            }
            if self.wire.is_closed() {
                break;
            }
            before += statements;
        }
        first.map_or(Ok(()), Err)
    }

    fn load(&mut self, part: &LoadPart) -> Result<u64, SessionError> {
        let (table, columns) = (part.table, part.columns.join(", "));
        let types = self.describe(&format!("select {columns} from {table}"), "")?;
        let copy = format!("copy {table} ({columns}) from stdin (format binary)");
        frontend::query(&copy, &mut self.wire.out)
            .map_err(|error| unexpected(&error.to_string()))?;
        self.wire.send()?;
        match self.wire.next_message() {
            Ok(message) if message.tag == COPY_IN_RESPONSE_TAG => {}
            Ok(_) => return Err(unexpected("no COPY where one belongs")),
            Err(error) => {
                let _ = self.wire.ready(|_, _| Ok(()));
                return Err(error);
            }
        }
        let mut sink = CopySink {
            wire: &mut self.wire,
            columns: &types.columns,
            rows: 0,
        };
        sink.begin_message();
        sink.wire.out.put_slice(COPY_HEAD);
        let made = (part.rows)(&mut sink);
        let rows = sink.rows;
        match made {
            Ok(()) => {
                sink.wire.out.put_i16(COPY_END);
                sink.end_message();
                frontend::copy_done(&mut self.wire.out);
            }
            Err(error) if self.wire.is_closed() => return Err(error),
            Err(error) => {
                self.wire.out.clear();
                frontend::copy_fail("the rows could not be made", &mut self.wire.out)
                    .map_err(|error| unexpected(&error.to_string()))?;
                self.wire.send()?;
                // It says that the copy failed, which is known.
                let _ = self.wire.ready(|_, _| Ok(()));
                return Err(error);
            }
        }
        self.wire.send()?;
        self.wire.ready(|_, _| Ok(()))?;
        Ok(rows)
    }

    fn limit_statement(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        let limit_ms = limit.map_or(0, |limit| limit.as_millis().max(1));
        self.run(&format!("set statement_timeout = {limit_ms}"))
    }

    fn watch_temporary_space(&mut self) -> Result<(), SessionError> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let shared = SharedFiles::watch(log, self.wire.process_id);
        let shared = shared.map_err(|error| {
            SessionError::Failed(format!("reading {}: {error}", log.path.display()))
        })?;
        self.shared_files = Some(shared);
        self.run(temporary::TELL)?;
        self.wire.temporary_bytes = 0;
        Ok(())
    }

    fn temporary_bytes(&mut self) -> Option<u64> {
        let own_bytes = std::mem::take(&mut self.wire.temporary_bytes);
        let shared = self.shared_files.as_mut()?.removed_bytes().ok()?;
        Some(own_bytes + shared)
    }

    fn breaker(&self) -> Option<Breaker> {
        let breaker = self.wire.stream.breaker().ok()?;
        Some(Box::new(breaker))
    }

    fn is_closed(&self) -> bool {
        self.wire.is_closed()
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        if let Some(backends) = &self.backends {
            let mut backends = backends.lock().unwrap_or_else(PoisonError::into_inner);
            backends.remove(&self.wire.process_id);
        }
    }
}

/// Takes rows for COPY, many to a message. What is in `out` begins with the message that is being made.
struct CopySink<'a> {
    wire: &'a mut Wire,
    columns: &'a [AnswerColumn],
    rows: u64,
}

impl CopySink<'_> {
    fn begin_message(&mut self) {
        self.wire.out.put_u8(b'd');
        self.wire.out.put_i32(0);
    }

    /// The length stands behind the tag, and counts itself.
    fn end_message(&mut self) {
        let length = (self.wire.out.len() - 1) as i32;
        self.wire.out[1..5].copy_from_slice(&length.to_be_bytes());
    }
}

impl RowSink for CopySink<'_> {
    fn row(&mut self, row: &[Value<'_>]) -> Result<(), SessionError> {
        if row.len() != self.columns.len() {
            return Err(SessionError::Failed(format!(
                "a row has {} values for {} columns",
                row.len(),
                self.columns.len()
            )));
        }
        let out = &mut self.wire.out;
        out.put_u16(row.len() as u16);
        for (value, AnswerColumn { of, .. }) in row.iter().zip(self.columns) {
            if *value == Value::Null {
                out.put_i32(NULL);
                continue;
            }
            let start = out.len();
            out.put_i32(0);
            values::write(value, *of, out)?;
            let length = (out.len() - start - 4) as i32;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        self.rows += 1;
        if out.len() >= COPY_BYTES {
            self.end_message();
            self.wire.send()?;
            self.begin_message();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_written_by_hand_have_the_right_length() {
        for (message, sql) in [(BEGIN, "begin"), (COMMIT, "commit"), (ROLLBACK, "rollback")] {
            let mut written = BytesMut::new();
            frontend::query(sql, &mut written).unwrap();
            assert_eq!(&written[..], message);
        }
    }

    #[test]
    fn the_number_of_rows_stands_at_the_end() {
        for (tag, rows) in [
            (&b"UPDATE 3\0"[..], 3),
            (b"INSERT 0 12\0", 12),
            (b"SELECT 100\0", 100),
            (b"COMMIT\0", 0),
            (b"", 0),
        ] {
            assert_eq!(rows_in_tag(tag), rows);
        }
    }
}
