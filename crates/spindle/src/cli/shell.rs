//! What shells and `man` are given, made from the declaration of the command line: `spindle completions`, and the
//! manual pages that packages hold.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Arguments;
use super::code::Code;
use super::ending::{fail, print};

/// Prints a shell's completions.
pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut command = Arguments::command();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "spindle", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Writes a manual page for each command.
pub(super) fn manual(directory: &Path) -> ExitCode {
    match clap_mangen::generate_to(Arguments::command(), directory) {
        Ok(()) => Code::Done.into(),
        Err(error) => fail(&format!("{}: {error}", directory.display())),
    }
}
