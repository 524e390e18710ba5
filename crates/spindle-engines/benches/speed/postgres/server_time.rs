//! How long the server itself was at a statement, as its log says (`log_min_duration_statement`, "Error Reporting and
//! Logging" of its manual). What a client tells of the same execution goes beyond that by the client's and the way's
//! own time only, whatever else the machine did meanwhile: two clients' times can be compared by it though they never
//! time the same execution.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use super::Private;

/// A client's milliseconds and the server's, of one execution.
#[derive(Clone, Copy)]
pub(super) struct Timed {
    pub client_ms: f64,
    pub server_ms: f64,
}

/// The server's log, read on.
pub(super) struct ServerTimes {
    log: File,
    read_bytes: u64,
}

impl ServerTimes {
    /// Has the server note every statement from now on.
    pub(super) fn watch(private: &Private) -> ServerTimes {
        let mut connection = private.running.connect().expect("a connection");
        for statement in [
            "alter system set log_min_duration_statement = 0",
            "select pg_reload_conf()",
        ] {
            connection.run(statement).expect("our own server");
        }
        let path = private.socket_directory().join("server.log");
        let log = File::open(path).expect("the server's log");
        ServerTimes { log, read_bytes: 0 }
    }

    /// Times an execution of a statement by a client.
    pub(super) fn time(&mut self, text: &str, client_ms: impl FnOnce() -> f64) -> Timed {
        self.read_bytes = self.log.seek(SeekFrom::End(0)).expect("our own file");
        let client_ms = client_ms();
        let end = self.log.seek(SeekFrom::End(0)).expect("our own file");
        let mut noted = vec![0; (end - self.read_bytes) as usize];
        let read = self.log.read_exact_at(&mut noted, self.read_bytes);
        read.expect("our own file");
        let server_ms = server_ms(&String::from_utf8_lossy(&noted), text);
        assert!(server_ms > 0.0, "the log does not tell of {text}");
        Timed {
            client_ms,
            server_ms,
        }
    }
}

/// What a log tells of a statement: of the whole, or, by the extended protocol, of parsing it, of binding (and
/// planning) it, and of executing it.
fn server_ms(log: &str, statement: &str) -> f64 {
    // The lines of a message behind its first begin with a tab.
    let log = log.replace("\n\t", "\n");
    let messages = log.split(" LOG:  duration: ").skip(1);
    let told = messages.filter_map(|message| {
        let (duration, rest) = message.split_once(" ms  ")?;
        let is_of_it = rest.contains(statement);
        is_of_it.then(|| duration.parse::<f64>().ok()).flatten()
    });
    told.sum()
}
