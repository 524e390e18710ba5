//! Makes a database and loads a workload into it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spindle_layout::TreeDirectories;
use spindle_text::load_file::Dump;
use spindle_workload::SessionError;
use spindle_workload::sql::{
    LoadPart, RowSink, SqlConnection, SqlWorkload, StatementOrigin, Value,
};

use super::connections::{Connections, breaking_off};
use super::{Purpose, RunningServer, Server, ServerRequest, ServerStop};
use crate::{EngineError, ErrorKind};

/// Connections that load at once, at most: a server sorts and writes for each of them.
const LOADERS_MAX: usize = 8;

/// What is said of a load that was interrupted.
const INTERRUPTED: &str = "interrupted";

/// Makes a database in empty directories, loads the workload's tables and stops it in order: the state every trial
/// starts from.
///
/// # Errors
/// See [`EngineError`]; no server is left running.
pub fn create_and_load(
    server: &dyn Server,
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    create(server, request, directories, workload)?;
    load_into(server, request, directories, workload, interrupted)
}

/// Makes an empty database for the workload, unless it brings one.
pub(crate) fn create(
    server: &dyn Server,
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &dyn SqlWorkload,
) -> Result<(), EngineError> {
    match workload.copied_from() {
        None => server.create(request, directories),
        Some(_) => Ok(()),
    }
}

/// Loads the workload's tables into an empty database, or into the one that it is copied from, and stops it in order.
pub(crate) fn load_into(
    server: &dyn Server,
    request: &ServerRequest,
    directories: &TreeDirectories,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    if let Some(files) = workload.copied_from() {
        server.adopt(request, files, directories, interrupted)?;
    }
    let running = server.start(request, directories, Purpose::Load)?;
    match load(&*running, workload, interrupted) {
        Ok(()) => running.stop(ServerStop::Clean),
        Err(error) => {
            // The first error is the one to tell.
            let _ = running.stop(ServerStop::Kill);
            Err(error)
        }
    }
}

/// Makes the tables of a workload and fills them.
///
/// # Errors
/// See [`EngineError`].
pub(super) fn load(
    running: &dyn RunningServer,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    let loaded = breaking_off(running, interrupted, |connections| {
        load_unless(connections, workload, interrupted)
    });
    loaded.map_err(|error| match interrupted.load(Ordering::Relaxed) {
        true => EngineError::new(ErrorKind::Interrupted, INTERRUPTED.to_owned()),
        false => error,
    })
}

fn load_unless(
    connections: &Connections<'_>,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    let running = connections.running;
    let mut connection = connections.connect()?;
    let dialect = connection.dialect();
    make_tables(running, &mut *connection, workload, interrupted)?;
    let parts = workload.load_parts(dialect).into_iter();
    let parts: Vec<LoadPart> = parts.map(|part| until(part, interrupted)).collect();
    load_rows(connections, &parts)?;
    running.before_indexes(&mut *connection)?;
    for statement in workload.create_indexes(dialect) {
        check(interrupted)?;
        connection.run(&statement)?;
    }
    // What a session made for itself is gone in a trial: temporary tables, a search path.
    drop(connection);
    let mut connection = connections.connect()?;
    workload.after_load(&mut *connection)?;
    // What cannot be prepared is told now, and not by the first trial.
    workload.prepare(&mut *connection)?;
    running.after_load(&mut *connection)
}

/// Carries out the statements and restores the dumps that make the tables, in their order.
fn make_tables(
    running: &dyn RunningServer,
    connection: &mut dyn SqlConnection,
    workload: &dyn SqlWorkload,
    interrupted: &Arc<AtomicBool>,
) -> Result<(), EngineError> {
    let dialect = connection.dialect();
    let others = running.others(connection)?;
    if let Some(reason) = workload.beyond(dialect, running.ours(), &others) {
        return Err(EngineError::unavailable(reason));
    }
    let dumps = workload.dumps();
    let restore = |after: usize| -> Result<(), EngineError> {
        let is_due =
            |(before, dump): &&(usize, &Dump)| *before == after && !dump.form.is_of_files();
        let mut due = dumps.iter().filter(is_due);
        due.try_for_each(|(_, dump)| running.restore(dump, interrupted))
    };
    restore(0)?;
    let mut open = None;
    for (number, statement) in workload.create_tables(dialect).iter().enumerate() {
        check(interrupted)?;
        let place = workload.place(StatementOrigin::Table(number));
        if number == 0 && place.is_some() {
            connection.watch_transactions()?;
        }
        connection.run(statement).map_err(|error| match place {
            Some(place) => error.at(place),
            None => error,
        })?;
        open = match connection.in_transaction() {
            true => open.or(place),
            false => None,
        };
        restore(number + 1)?;
    }
    running.check_ended(connection)?;
    match open {
        None => Ok(()),
        Some(place) => Err(EngineError::failed(
            place,
            "the load ends in the transaction that is open from here on, and what it did is undone: COMMIT is missing",
        )),
    }
}

/// Loads parts on as many connections as there are processors; one after the other where a database has one writer
/// only.
fn load_rows(connections: &Connections<'_>, parts: &[LoadPart]) -> Result<(), EngineError> {
    let mut first = connections.connect()?;
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
                let connected = connections.connect();
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

fn check(interrupted: &AtomicBool) -> Result<(), SessionError> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(SessionError::Failed(INTERRUPTED.to_owned())),
        false => Ok(()),
    }
}

/// The part, which makes no more rows once interrupted.
fn until(part: LoadPart, interrupted: &Arc<AtomicBool>) -> LoadPart {
    let interrupted = Arc::clone(interrupted);
    let LoadPart {
        table,
        columns,
        rows,
    } = part;
    let rows = move |sink: &mut dyn RowSink| {
        let interrupted = &interrupted;
        rows(&mut Until { sink, interrupted })
    };
    LoadPart {
        table,
        columns,
        rows: Box::new(rows),
    }
}

/// Passes rows on until it is interrupted.
struct Until<'a> {
    sink: &'a mut dyn RowSink,
    interrupted: &'a AtomicBool,
}

impl RowSink for Until<'_> {
    fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        check(self.interrupted)?;
        self.sink.row(values)
    }
}
