//! Where the program is asked from, looked at before anything else: a current directory that was removed, and names
//! that are no text. Each would come back later as a message about something else.

use std::io::ErrorKind;
use std::process::ExitCode;

use super::arguments::Command;
use super::code::Code;
use super::ending::fail;

/// Refuses a command that names places, where the shell stands in a directory that was removed.
pub(super) fn check(command: &Command) -> Result<(), ExitCode> {
    let is_gone = std::env::current_dir().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    if !is_gone || !names_places(command) {
        return Ok(());
    }
    fail(
        "the current directory was removed, so relative paths cannot be resolved: cd to an existing one, and try again",
    );
    Err(Code::Refused.into())
}

/// Those that this program starts by itself are told where to work.
fn names_places(command: &Command) -> bool {
    !matches!(
        command,
        Command::TrialWorker
            | Command::Agent { .. }
            | Command::LoadWorker { .. }
            | Command::Explain { .. }
            | Command::Examples { copy: None }
            | Command::Completions { .. }
    )
}

/// Names the arguments that are not UTF-8, where text is wanted.
pub(super) fn tell_what_is_no_text() -> ExitCode {
    for argument in std::env::args_os().filter(|argument| argument.to_str().is_none()) {
        fail(&format!(
            "{} is not UTF-8, and an experiment is written in UTF-8: rename it, or name a symbolic link to it",
            argument.display()
        ));
    }
    Code::Refused.into()
}
