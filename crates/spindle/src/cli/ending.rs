//! How a command ends: what it prints, what it says when it fails, and the exit code. Every command uses this; which
//! error leads to which code is decided here alone.

use std::fmt;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use miette::GraphicalReportHandler;
use rustix::termios::tcgetwinsize;
use spindle_calibrate::CalibrateError;
use spindle_experiment::ExperimentError;
use spindle_report::table::Style;
use spindle_run::directory::DirectoryError;
use spindle_run::runner::RunError;

use super::code::Code;
use super::signals;
use crate::disk_group::CommandError;
use crate::doctor::ReportError;
use crate::import::error::ImportError;
use crate::power_cut::PowerCutError;
use crate::results_database::ResultsKeepError;
use crate::say::{self, fitted_to_output};

/// An error that ends a command.
pub(super) trait EndsCommand: fmt::Display {
    /// With which exit code.
    fn code(&self) -> Code;
}

/// Those of errors that are found in the command line are refused, and the others fail.
fn refused_if(is_of_command_line: bool) -> Code {
    match is_of_command_line {
        true => Code::Refused,
        false => Code::Failed,
    }
}

impl EndsCommand for DirectoryError {
    fn code(&self) -> Code {
        refused_if(self.is_of_command_line())
    }
}

impl EndsCommand for RunError {
    fn code(&self) -> Code {
        match self {
            RunError::Interrupted => Code::Interrupted,
            _ => Code::Failed,
        }
    }
}

impl EndsCommand for PowerCutError {
    fn code(&self) -> Code {
        match self {
            PowerCutError::Interrupted => Code::Interrupted,
            PowerCutError::ForeignDocument { .. } => Code::Refused,
            _ => Code::Failed,
        }
    }
}

impl EndsCommand for CommandError {
    fn code(&self) -> Code {
        match self {
            CommandError::Interrupted => Code::Interrupted,
            other => refused_if(other.is_of_command_line()),
        }
    }
}

impl EndsCommand for CalibrateError {
    fn code(&self) -> Code {
        match self {
            CalibrateError::Interrupted => Code::Interrupted,
            other => refused_if(other.is_about_target()),
        }
    }
}

impl EndsCommand for ImportError {
    fn code(&self) -> Code {
        refused_if(self.is_of_command_line())
    }
}

impl EndsCommand for ResultsKeepError {
    fn code(&self) -> Code {
        refused_if(self.is_of_command_line())
    }
}

impl EndsCommand for ReportError {
    fn code(&self) -> Code {
        match self {
            ReportError::Address(_) => Code::Refused,
            ReportError::Server(_) => Code::Failed,
        }
    }
}

/// Says why a command ended early.
pub(super) fn ended_by(error: &impl EndsCommand) -> ExitCode {
    match error.code() {
        Code::Interrupted => interrupted(&error.to_string()),
        code => {
            fail(&error.to_string());
            code.into()
        }
    }
}

/// Says what an interrupt leaves, and how to continue.
pub(super) fn interrupted(note: &str) -> ExitCode {
    say::note(note);
    Code::Interrupted.into()
}

/// How to draw on standard output, which may be a terminal.
pub(super) fn style_of_output() -> Style {
    let output = io::stdout();
    if !output.is_terminal() {
        return Style::default();
    }
    Style::of_terminal(tcgetwinsize(&output).map_or(0, |size| size.ws_col))
}

/// Says why a command line cannot be carried out. Nothing was made.
pub(super) fn wrong_command_line(reason: &str) -> ExitCode {
    fail(reason);
    Code::Refused.into()
}

pub(super) fn no_current_directory(error: &io::Error) -> ExitCode {
    fail(&format!("there is no current directory: {error}"))
}

pub(super) fn wrong_experiment(error: &ExperimentError) -> ExitCode {
    let handler = if io::stderr().is_terminal() {
        GraphicalReportHandler::new()
    } else {
        GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
    };
    let mut text = String::new();
    match handler.render_report(&mut text, error) {
        Ok(()) => say::drawn(&text),
        Err(_) => say::reason(&error.to_string()),
    }
    Code::Refused.into()
}

pub(super) fn fail(reason: &str) -> ExitCode {
    say::reason(reason);
    if let Some(advice) = signals::advice_on_file_size(reason) {
        say::note(&advice);
    }
    Code::Failed.into()
}

/// Prints what people read.
pub(super) fn print_for_people(text: &str) -> ExitCode {
    print(&fitted_to_output(text))
}

/// Prints a result as it is: for programs, or to be kept.
pub(super) fn print(text: &str) -> ExitCode {
    print_then(text, Code::Done.into())
}

/// Prints a result, and ends with `code` when that succeeds.
pub(super) fn print_then(text: &str, code: ExitCode) -> ExitCode {
    match say::result(text) {
        Ok(()) => code,
        Err(error) => no_output(&error),
    }
}

/// Standard output is full, or closed.
pub(super) fn no_output(error: &io::Error) -> ExitCode {
    fail(&format!("cannot write to standard output: {error}"))
}

pub(super) fn success_if(is_well: bool) -> ExitCode {
    match is_well {
        true => Code::Done.into(),
        false => Code::Failed.into(),
    }
}
