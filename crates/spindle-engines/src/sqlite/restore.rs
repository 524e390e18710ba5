//! Copies a database file of SQLite's into the one that is loaded, page by page, as it is at one moment
//! (https://www.sqlite.org/backup.html).

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use spindle_text::load_file::Dump;

use crate::sql::ServerRequest;
use crate::sql::restore::failed;
use crate::{EngineError, ErrorKind};

/// Pages that are copied between two looks at whether it is interrupted.
const PAGES: i32 = 1024;
/// Pages of a new database, bytes (https://www.sqlite.org/pragma.html#pragma_page_size).
const PAGE_BYTES: i64 = 4096;

fn source(dump: &Dump) -> Result<Connection, EngineError> {
    dump.check().map_err(|error| failed(dump, error))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(&dump.path, flags).map_err(|error| failed(dump, error))
}

/// Looks whether a file can be copied into a database with these settings.
///
/// # Errors
/// `Unavailable`: its pages are of another size; or it cannot be read.
pub(super) fn examine(request: &ServerRequest, dump: &Dump) -> Result<(), EngineError> {
    let number = |connection: &Connection, name: &str| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, name, |row| row.get(0))
    };
    let source = source(dump)?;
    let unreadable =
        |error| EngineError::unavailable(format!("{} cannot be read: {error}", dump.name));
    // The first that reads pages.
    number(&source, "schema_version").map_err(unreadable)?;
    let bytes = number(&source, "page_size").map_err(unreadable)?;
    let wanted = request.settings.get("page_size");
    let wanted_bytes = wanted.map_or(Some(PAGE_BYTES), |text| text.parse().ok());
    match wanted_bytes == Some(bytes) {
        true => Ok(()),
        false => Err(EngineError::unavailable(format!(
            "{} has pages of {bytes} bytes, which its copy keeps: set page_size = {bytes} in [database]",
            dump.name
        ))),
    }
}

/// Copies a file into the open database.
///
/// # Errors
/// SQLite's; `Interrupted`.
pub(super) fn restore(
    to: &mut Connection,
    dump: &Dump,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let source = source(dump)?;
    let backup = Backup::new(&source, to).map_err(|error| failed(dump, error))?;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Interrupted, "interrupted"));
        }
        match backup.step(PAGES).map_err(|error| failed(dump, error))? {
            StepResult::Done => return Ok(()),
            StepResult::Busy | StepResult::Locked => {
                return Err(failed(dump, "another program is writing to it"));
            }
            _ => {}
        }
    }
}
