//! The only place that writes to standard output and standard error. What is written is made harmless first
//! ([`spindle_text::plain`]). An output that is full or closed never ends the program with a panic, which `println!`
//! would: results that cannot be written are an error for the caller, notes that cannot be written are lost. Passwords
//! of addresses that were typed as arguments are stars on standard error.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;
use spindle_experiment::without_passwords;
use spindle_text::paragraph::{cut, fitted};
use spindle_text::plain::{coloured, lines, one_line, shortened};

/// No reason takes more characters than this: it may hold what a stranger wrote.
const REASON_LENGTH_MAX: usize = 2000;

/// Lines are fitted to terminals of this many columns or more.
const COLUMNS_MIN: u16 = 20;

/// Prints a result on standard output. The reader may be gone, as in `spindle export ... | head`: that is no failure.
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

/// A text for people in lines that fit standard output, where that is a terminal.
pub fn fitted_to_output(text: &str) -> String {
    fitted_to(&io::stdout(), text)
}

/// Says something on a line of standard error.
pub fn note(text: &str) {
    on_error_output(&fitted_to(&io::stderr(), &format!("{}\n", lines(text))));
}

/// Says why something failed, on standard error.
pub fn reason(text: &str) {
    let text = shortened(text, REASON_LENGTH_MAX);
    on_error_output(&fitted_to(
        &io::stderr(),
        &format!("spindle: {}\n", lines(&text)),
    ));
}

/// Says something on standard error that is drawn in colours and lines; its foreign parts are harmless already.
pub fn drawn(text: &str) {
    on_error_output(&coloured(text));
}

/// Writes over the line that a terminal on standard error shows now, and goes to the next.
pub fn last_over_the_line(text: &str) {
    let text = fitted_to(&io::stderr(), &format!("{}\n", lines(text)));
    on_error_output(&format!("\r\x1b[K{text}"));
}

/// Writes over the line that a terminal on standard error shows now: how far something has come. Its name is cut so
/// that both fit: what runs on to the next line would stay there.
pub fn over_the_line(name: &str, state: &str) {
    let (name, state) = (one_line(name), one_line(state));
    let line = match columns(&io::stderr()) {
        // In its last column a terminal may wrap to the next line by itself.
        Some(columns) => {
            let room = (columns - 1).saturating_sub(state.chars().count() + 2);
            cut(&format!("{}: {state}", cut(&name, room)), columns - 1)
        }
        None => format!("{name}: {state}"),
    };
    on_error_output(&format!("\r\x1b[K{line}"));
}

fn fitted_to(output: &(impl AsFd + IsTerminal), text: &str) -> String {
    match columns(output) {
        Some(columns) => fitted(text, columns),
        None => text.to_owned(),
    }
}

/// The columns of a terminal; `None` for what is none, and for one that does not know, or is too narrow for words.
pub(crate) fn columns(output: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let size = output.is_terminal().then(|| tcgetwinsize(output))?.ok()?;
    (size.ws_col >= COLUMNS_MIN).then(|| size.ws_col.into())
}

fn on_error_output(text: &str) {
    let text = hidden(text, std::env::args_os().skip(1));
    let mut output = io::stderr().lock();
    // There is no other place to say that this place takes nothing.
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}

/// The text with stars for what looks like a password in an argument that it repeats.
fn hidden(text: &str, arguments: impl Iterator<Item = OsString>) -> String {
    let mut hidden = text.to_owned();
    for argument in arguments {
        let argument = argument.to_string_lossy();
        // A message may repeat the value alone of `--option=value`.
        let value = argument.split_once('=').map(|(_, value)| value);
        for typed in [&*argument].into_iter().chain(value) {
            let harmless = without_passwords(typed);
            if harmless != typed {
                hidden = hidden.replace(typed, &harmless);
            }
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_was_typed_is_not_repeated() {
        let said = |argument: &str| {
            let text = format!("spindle: {argument}: No such file or directory\n");
            hidden(&text, [OsString::from(argument)].into_iter())
        };
        for typed in [
            "postgres://ann:SECRET@h/x",
            "POSTGRES://ann:SECRET@h",
            "jdbc:mysql://ann:SECRET@h:3306/x?a=b",
            "host=h password=SECRET",
            "ann:SECRET@h/x",
        ] {
            let said = said(typed);
            assert!(!said.contains("SECRET"), "{said}");
            assert!(said.ends_with("No such file or directory\n"), "{said}");
        }
        let option = OsString::from("--to=postgres://ann:SECRET@h/x");
        let value_alone = hidden("no postgres://ann:SECRET@h/x", [option].into_iter());
        assert!(!value_alone.contains("SECRET"), "{value_alone}");
        assert_eq!(
            said("/srv/a:b"),
            "spindle: /srv/a:b: No such file or directory\n"
        );
    }
}
