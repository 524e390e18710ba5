//! Bulk loading: `LOAD DATA LOCAL INFILE`, whose "file" is made in memory while the server reads it. Fields end with a
//! tab and rows with a newline; these and the backslash have one before them.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler};
use spindle_workload::SessionError;
use spindle_workload::sql::{LoadPart, RowSink, Value};

use super::connection::session_error;
use super::values::load_text;

/// Rows are handed over in pieces of about this size, and this many pieces may wait.
const PIECE_BYTES: usize = 1 << 20;
const PIECES_WAITING: usize = 4;

/// Loads the rows of a part; how many.
///
/// # Errors
/// See [`SessionError`]; a row that the server leaves out or changes is one.
pub(super) fn load(connection: &mut Conn, part: &LoadPart) -> Result<u64, SessionError> {
    let (pieces, taken) = sync_channel(PIECES_WAITING);
    connection.set_local_infile_handler(Some(handler(taken)));
    // `binary`: the server takes the bytes as they are, in texts as well.
    let sql = format!(
        "load data local infile 'rows' into table {} character set binary fields terminated by '\\t' escaped by '\\\\' \
         lines terminated by '\\n' ({})",
        part.table,
        part.columns.join(", ")
    );
    let (made, loaded) = std::thread::scope(|scope| {
        let maker = scope.spawn(move || make(part, pieces));
        let loaded = connection.query_iter(sql);
        let loaded = loaded
            .map(|result| (result.affected_rows(), result.warnings()))
            .map_err(session_error);
        // When the server refused before it had read, the rows must find no receiver.
        connection.set_local_infile_handler(None);
        (maker.join(), loaded)
    });
    let (rows, warnings) = loaded?;
    let made = made.map_err(|_| SessionError::Failed("making rows panicked".to_owned()))??;
    if rows != made || warnings > 0 {
        let said = warnings_of(connection)?;
        return Err(SessionError::Failed(format!(
            "{}: {rows} of {made} rows were loaded, with {warnings} warnings: {said}",
            part.table
        )));
    }
    Ok(rows)
}

fn handler(pieces: Receiver<Vec<u8>>) -> LocalInfileHandler {
    // The library wants it to be callable from anywhere.
    let pieces = Mutex::new(pieces);
    LocalInfileHandler::new(move |_, writer| {
        let pieces = pieces
            .lock()
            .map_err(|_| std::io::Error::other("a load panicked"))?;
        pieces.iter().try_for_each(|piece| writer.write_all(&piece))
    })
}

fn make(part: &LoadPart, pieces: SyncSender<Vec<u8>>) -> Result<u64, SessionError> {
    let mut sink = Sink {
        pieces,
        piece: Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8),
        rows: 0,
    };
    (part.rows)(&mut sink)?;
    sink.hand_over()?;
    Ok(sink.rows)
}

fn warnings_of(connection: &mut Conn) -> Result<String, SessionError> {
    let asked: Result<Vec<(String, u16, String)>, _> = connection.query("show warnings limit 3");
    let warnings = asked.map_err(session_error)?;
    let texts: Vec<String> = warnings.into_iter().map(|(_, _, text)| text).collect();
    Ok(texts.join("; "))
}

/// Writes rows as the server reads them.
struct Sink {
    pieces: SyncSender<Vec<u8>>,
    piece: Vec<u8>,
    rows: u64,
}

impl Sink {
    fn hand_over(&mut self) -> Result<(), SessionError> {
        let piece = std::mem::replace(
            &mut self.piece,
            Vec::with_capacity(PIECE_BYTES + PIECE_BYTES / 8),
        );
        let taken = self.pieces.send(piece);
        taken.map_err(|_| SessionError::Failed("the server stopped reading rows".to_owned()))
    }

    fn escaped(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(next) = rest.iter().position(|byte| b"\t\n\\".contains(byte)) {
            self.piece.extend_from_slice(&rest[..next]);
            self.piece.push(b'\\');
            self.piece.push(match rest[next] {
                b'\t' => b't',
                b'\n' => b'n',
                other => other,
            });
            rest = &rest[next + 1..];
        }
        self.piece.extend_from_slice(rest);
    }
}

impl RowSink for Sink {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        for (number, value) in values.iter().enumerate() {
            if number > 0 {
                self.piece.push(b'\t');
            }
            match (value, load_text(value)) {
                (Value::Bytes(bytes), _) => self.escaped(bytes),
                (Value::Text(text), _) => self.escaped(text.as_bytes()),
                (_, Some(text)) => self.piece.extend_from_slice(text.as_bytes()),
                (_, None) => self.piece.extend_from_slice(b"\\N"),
            }
        }
        self.piece.push(b'\n');
        self.rows += 1;
        match self.piece.len() >= PIECE_BYTES {
            true => self.hand_over(),
            false => Ok(()),
        }
    }
}
