//! The outputs of a trial's process. Its standard output is the run's, which reads lines of the protocol there; its
//! standard error is for people.

use std::io::{self, Write};

use spindle_text::plain;

use super::protocol::WorkerReport;

/// Says a line of the protocol to the run.
///
/// # Errors
/// The other end is closed.
fn to_the_run(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(line.as_bytes())?;
    output.flush()
}

/// Says something on a line of standard error.
pub(super) fn to_people(text: &str) {
    // There is no other place to say that this place takes nothing.
    let _ = writeln!(io::stderr(), "{}", plain::lines(text));
}

/// Says something to the run; this process ends when that is gone.
pub(super) fn say(report: &WorkerReport) {
    let mut line =
        serde_json::to_string(report).expect("a report holds only strings, numbers and lists");
    line.push('\n');
    // The run is gone, and with it the only listener.
    if to_the_run(&line).is_err() {
        std::process::exit(1);
    }
}
