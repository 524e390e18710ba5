//! Asks the server itself whether it knows every setting and takes every value, before there is a database: with
//! `--verbose --help` it reads its options, says what it thinks of them, lists them, and ends.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use spindle_text::nearest::nearest;

use super::programs::{Make, Programs};
use super::settings::{Settings, plain};
use crate::EngineError;
use crate::sql::ServerRequest;

/// Names and values of the experiment's settings, and what `io` became.
///
/// # Errors
/// `Unavailable`: the server does not take one of them.
pub(super) fn check(
    programs: &Programs,
    settings: &Settings,
    request: &ServerRequest,
) -> Result<(), EngineError> {
    let help = Help::of(programs)?;
    for name in request.settings.keys() {
        if !help.variables.contains_key(&plain(name)) {
            return Err(EngineError::misspelt(format!(
                "{} has no setting {name}{}",
                programs.title,
                help.nearest(name)
            )));
        }
    }
    let answer = ask(programs, settings.arguments())?;
    let said = String::from_utf8_lossy(&answer.stderr);
    let complaint = said.lines().find(|line| is_complaint(line));
    match complaint {
        None if answer.status.success() => Ok(()),
        None => Err(no(format!("{}: {}", programs.title, said.trim()))),
        Some(line) => {
            // MySQL has several of them: [ERROR] [MY-000077] [Server].
            let words = line.rsplit_once("] ").map_or(line, |(_, words)| words);
            Err(EngineError::misspelt(format!(
                "{} does not take a value: {words}{}",
                programs.title,
                help.allowed(words)
            )))
        }
    }
}

fn no(reason: String) -> EngineError {
    EngineError::refused(reason)
}

/// Whether a line of the server's log is about an option that it does not take as it is. What it says of limits of this
/// machine is not.
fn is_complaint(line: &str) -> bool {
    line.contains("[ERROR]")
        || (line.contains("[Warning]")
            && ["ignoring option", "adjusted to", "unknown"]
                .iter()
                .any(|words| line.contains(words)))
}

fn ask(
    programs: &Programs,
    arguments: impl Iterator<Item = String>,
) -> Result<Output, EngineError> {
    let mut command = Command::new(&programs.server);
    command.arg("--no-defaults");
    if let Some(base) = &programs.base {
        command.arg(format!("--basedir={}", base.display()));
    }
    if programs.make == Make::MySql {
        // Or it keeps its warnings to itself.
        command.arg("--log-error-verbosity=2");
    }
    command.args(arguments).args(["--verbose", "--help"]);
    command.output().map_err(|error| {
        let server = programs.server.display();
        no(format!("{server} cannot be started: {error}"))
    })
}

/// What the server says of its options.
struct Help {
    /// Its settings and what they are by default.
    variables: BTreeMap<String, String>,
    text: String,
}

impl Help {
    fn of(programs: &Programs) -> Result<Help, EngineError> {
        let answer = ask(programs, std::iter::empty())?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        // The list of values stands behind a line of dashes, one to a line.
        let lines = text.lines().skip_while(|line| !line.starts_with("-----"));
        let variables = lines.skip(1).take_while(|line| !line.is_empty());
        let variables: BTreeMap<String, String> = variables
            .filter_map(|line| line.split_once(char::is_whitespace))
            .map(|(name, value)| (plain(name), value.trim().to_owned()))
            .collect();
        if variables.is_empty() {
            let server = programs.server.display();
            return Err(no(format!("{server} does not list its settings")));
        }
        Ok(Help { variables, text })
    }

    fn nearest(&self, name: &str) -> String {
        let known = self.variables.keys().map(String::as_str);
        let near = nearest(&plain(name), known);
        near.map_or_else(String::new, |known| format!("; did you mean {known}?"))
    }

    /// The values that an option may have, where the help lists them; the option is the one that is named in `words`.
    fn allowed(&self, words: &str) -> String {
        let quoted = words.split('\'').map(|word| word.trim_start_matches('-'));
        let mut options = quoted.filter(|word| self.variables.contains_key(&plain(word)));
        let found = options.next().and_then(|option| {
            let (_, rest) = self.text.split_once(&format!("\n  --{option}"))?;
            let paragraph = rest.split("\n  --").next()?;
            let (_, values) = paragraph.split_once("One of: ")?;
            Some(values.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        found.map_or(String::new(), |values| format!("; allowed: {values}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_about_options_are_complaints() {
        let machine = "0 [Warning] Could not increase number of max_open_files to more than 20000 (request: 32184)";
        assert!(!is_complaint(machine));
        for line in [
            "0 [Warning] mariadbd: ignoring option '--innodb-doublewrite' due to invalid value 'maybe'",
            "0 [Warning] option 'innodb-read-io-threads': unsigned value 400 adjusted to 64",
            "0 [ERROR] mariadbd: Error while setting value 'foo' to 'innodb-flush-method'",
        ] {
            assert!(is_complaint(line), "{line}");
        }
    }
}
