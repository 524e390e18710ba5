//! The outputs of a trial's process. Its standard output is the run's, which reads lines of the protocol there; its
//! standard error is for people.

use std::io::{self, Write};

use spindle_text::plain;

/// Says a line of the protocol to the run.
///
/// # Errors
/// Nobody listens.
pub(super) fn to_the_run(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(line.as_bytes())?;
    output.flush()
}

/// Says something on a line of standard error.
pub(super) fn to_people(text: &str) {
    // There is no other place to say that this place takes nothing.
    let _ = writeln!(io::stderr(), "{}", plain::lines(text));
}
