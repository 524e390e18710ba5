//! The only place that writes to standard output and standard error. What is written is made harmless first
//! ([`spindle_text::plain`]). An output that is full or closed never ends the program with a panic, which `println!`
//! would: results that cannot be written are an error for the caller, notes that cannot be written are lost.

use std::io::{self, ErrorKind, IsTerminal, Write};

use spindle_text::plain::{coloured, lines, one_line, shortened};

/// No reason takes more characters than this: it may hold what a stranger wrote.
const REASON_LENGTH_MAX: usize = 2000;

/// Prints a result on standard output. Nobody may be listening any more, as in `spindle export ... | head`: that is no
/// failure.
///
/// # Errors
/// Standard output does not take it: its file system is full, for one.
pub fn result(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let shown = match output.is_terminal() {
        true => coloured(text),
        false => lines(text).into_owned(),
    };
    match output
        .write_all(shown.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Says something on a line of standard error.
pub fn note(text: &str) {
    on_error_output(&format!("{}\n", lines(text)));
}

/// Says why something failed, on standard error.
pub fn reason(text: &str) {
    let text = shortened(text, REASON_LENGTH_MAX);
    on_error_output(&format!("spindle: {}\n", lines(&text)));
}

/// Says something on standard error that is drawn in colours and lines; its foreign parts are harmless already.
pub fn drawn(text: &str) {
    on_error_output(&coloured(text));
}

/// Writes over the line that a terminal on standard error shows now, and goes to the next line when `ends_line`.
pub fn over_the_line(text: &str, ends_line: bool) {
    let (text, end) = match ends_line {
        true => (lines(text), "\n"),
        false => (one_line(text), ""),
    };
    on_error_output(&format!("\r\x1b[K{text}{end}"));
}

fn on_error_output(text: &str) {
    let mut output = io::stderr().lock();
    // There is no other place to say that this place takes nothing.
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}
