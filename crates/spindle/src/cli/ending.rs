//! How a command ends: what it prints, what it says when it fails, and the exit code. Every command uses this.

use std::io::IsTerminal;
use std::process::ExitCode;

use miette::GraphicalReportHandler;
use rustix::termios::tcgetwinsize;
use spindle_experiment::ExperimentError;
use spindle_report::table::Style;
use spindle_run::directory::DirectoryError;

use super::signals;
use crate::say;

/// How to draw on standard output, which may be a terminal.
pub(super) fn style_of_output() -> Style {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return Style::default();
    }
    Style::of_terminal(tcgetwinsize(&output).map_or(0, |size| size.ws_col))
}

/// Says why a command line cannot be carried out. Nothing was made.
pub(super) fn wrong_command_line(reason: &str) -> ExitCode {
    fail(reason);
    ExitCode::from(2)
}

/// Says why a directory cannot be used as that of a run.
pub(super) fn no_run(error: &DirectoryError) -> ExitCode {
    match error.is_of_command_line() {
        true => wrong_command_line(&error.to_string()),
        false => fail(&error.to_string()),
    }
}

pub(super) fn no_current_directory(error: &std::io::Error) -> ExitCode {
    fail(&format!("there is no current directory: {error}"))
}

pub(super) fn wrong_experiment(error: &ExperimentError) -> ExitCode {
    let handler = if std::io::stderr().is_terminal() {
        GraphicalReportHandler::new()
    } else {
        GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
    };
    let mut text = String::new();
    match handler.render_report(&mut text, error) {
        Ok(()) => say::drawn(&text),
        Err(_) => say::reason(&error.to_string()),
    }
    ExitCode::from(2)
}

pub(super) fn fail(reason: &str) -> ExitCode {
    say::reason(reason);
    if let Some(advice) = signals::advice_on_file_size(reason) {
        say::note(&advice);
    }
    ExitCode::FAILURE
}

/// Prints a result.
pub(super) fn print(text: &str) -> ExitCode {
    print_then(text, ExitCode::SUCCESS)
}

/// Prints a result, and ends with `code` when that succeeds.
pub(super) fn print_then(text: &str, code: ExitCode) -> ExitCode {
    match say::result(text) {
        Ok(()) => code,
        Err(error) => fail(&format!("standard output takes no more: {error}")),
    }
}

pub(super) fn success_if(is_well: bool) -> ExitCode {
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
