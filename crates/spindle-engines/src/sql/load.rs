//! Makes a database and loads a workload into it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use spindle_layout::TreeDirectories;
use spindle_workload::SessionError;
use spindle_workload::sql::{LoadPart, SqlConnection, SqlWorkload};

use super::{Purpose, RunningServer, Server, ServerError, ServerRequest, Stop};

/// Connections that load at once, at most: a server sorts and writes for each of them.
const LOADERS_MAX: usize = 8;

/// Makes a database in empty directories, loads the workload's tables and stops it in order: the state every trial
/// starts from.
///
/// # Errors
/// See [`ServerError`]; no server is left running.
pub fn create_and_load(
    server: &dyn Server,
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &dyn SqlWorkload,
) -> Result<(), ServerError> {
    server.create(request, directories)?;
    let running = server.start(request, directories, Purpose::Load)?;
    match load(&*running, workload) {
        Ok(()) => running.stop(Stop::Clean),
        Err(error) => {
            // The first error is the one to tell.
            let _ = running.stop(Stop::Kill);
            Err(error)
        }
    }
}

/// Makes the tables of a workload and fills them.
///
/// # Errors
/// See [`ServerError`].
pub(super) fn load(
    running: &dyn RunningServer,
    workload: &dyn SqlWorkload,
) -> Result<(), ServerError> {
    let mut connection = running.connect()?;
    let dialect = connection.dialect();
    for statement in workload.create_tables(dialect) {
        connection.run(&statement)?;
    }
    load_rows(running, &workload.load_parts(dialect))?;
    running.before_indexes(&mut *connection)?;
    for statement in workload.create_indexes(dialect) {
        connection.run(&statement)?;
    }
    running.after_load(&mut *connection)
}

/// Loads parts on as many connections as there are processors; one after the other where a database has one writer
/// only.
fn load_rows(running: &dyn RunningServer, parts: &[LoadPart]) -> Result<(), ServerError> {
    let mut first = running.connect()?;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let loaders = match first.dialect() {
        spindle_workload::sql::Dialect::Sqlite => 1,
        _ => processors.min(LOADERS_MAX).min(parts.len().max(1)),
    };
    let next = AtomicUsize::new(0);
    let failure: Mutex<Option<SessionError>> = Mutex::new(None);
    let work = |connection: &mut dyn SqlConnection| -> Result<(), SessionError> {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            connection.load(part)?;
        }
        Ok(())
    };
    let note = |result: Result<(), SessionError>| {
        if let Err(error) = result {
            next.store(parts.len(), Ordering::Relaxed);
            let mut failure = failure
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            failure.get_or_insert(error);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..loaders {
            scope.spawn(|| {
                let connected = running.connect();
                note(connected.and_then(|mut connection| work(&mut *connection)));
            });
        }
        note(work(&mut *first));
    });
    let failure = failure
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    failure.map_or(Ok(()), |error| Err(error.into()))
}
