//! Connections of a load, whose waits end when it is interrupted: a statement may take as long as it likes, and a
//! server may never answer. The code that loads databases calls it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;
use spindle_workload::sql::connection::Breaker;

use super::RunningServer;

/// How often it is looked whether the load is interrupted.
const LOOK: Duration = Duration::from_millis(100);

/// Makes connections to a server, and knows how the waits of each end.
pub(super) struct Connections<'a> {
    pub(super) running: &'a dyn RunningServer,
    breakers: Mutex<Vec<Breaker>>,
}

impl Connections<'_> {
    /// Connects, without limits of time.
    ///
    /// # Errors
    /// See [`RunningServer::connect_unlimited`].
    pub(super) fn connect(&self) -> Result<Box<dyn SqlConnection>, SessionError> {
        let connection = self.running.connect_unlimited()?;
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.extend(connection.breaker());
        Ok(connection)
    }

    /// Ends the waits of those that were made so far.
    fn break_off(&self) {
        let breakers = self.breakers.lock();
        let breakers = std::mem::take(&mut *breakers.unwrap_or_else(PoisonError::into_inner));
        for breaker in breakers {
            breaker();
        }
    }
}

/// Works with connections to a server, until done or `interrupted`.
pub(super) fn breaking_off<T>(
    running: &dyn RunningServer,
    interrupted: &AtomicBool,
    work: impl FnOnce(&Connections<'_>) -> T,
) -> T {
    let connections = Connections {
        running,
        breakers: Mutex::default(),
    };
    let (working, done) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let connections = &connections;
        scope.spawn(move || {
            while done.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if interrupted.load(Ordering::Relaxed) {
                    connections.break_off();
                }
            }
        });
        let worked = work(connections);
        drop(working);
        worked
    })
}
