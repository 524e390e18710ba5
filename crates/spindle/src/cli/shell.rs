//! What shells and `man` are given, made from the declaration of the command line: `spindle completions`, and the
//! manual pages that packages hold.

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Arguments;
use super::code::Code;
use super::ending::{fail, print};

const NAME: &str = "spindle";

/// Prints a shell's completions.
pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut command = commands_of_people();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, NAME, &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// The command line without the commands that only this program itself calls.
fn commands_of_people() -> clap::Command {
    let all = Arguments::command();
    let shown = all.get_subcommands().filter(|of| !of.is_hide_set());
    clap::Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .args(all.get_arguments().cloned())
        .subcommands(shown.cloned())
}

/// Writes a manual page for each command.
pub(super) fn manual(directory: &Path) -> ExitCode {
    match clap_mangen::generate_to(Arguments::command(), directory) {
        Ok(()) => Code::Done.into(),
        Err(error) => fail(&format!("{}: {error}", directory.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_complete_what_people_call() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut commands_of_people(), NAME, &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains("-worker"), "{shell}: {text}");
            for word in ["try", "resume", "calibrate", "num-small"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
        }
    }
}
