//! Asks the server itself whether it knows every setting and takes every value, before there is a database: with
//! `--verbose --help` it reads its options, says what it thinks of them, lists them, and ends.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use spindle_text::nearest::nearest;

use super::programs::{Make, Programs};
use super::settings::{MariaDbSettings, plain};
use crate::EngineError;
use crate::sql::ServerRequest;

/// Names and values of the experiment's settings, and what `io` became.
///
/// # Errors
/// The server does not take some of them: all that it complains of, a line each.
pub(super) fn check(
    programs: &Programs,
    settings: &MariaDbSettings,
    request: &ServerRequest,
) -> Result<(), EngineError> {
    let help = Help::of(programs)?;
    let (title, names) = (&programs.title, request.settings.keys());
    let unknown: Vec<&String> = names
        .filter(|name| !help.variables.contains_key(&plain(name)))
        .collect();
    let mut slips: Vec<String> = unknown
        .iter()
        .map(|name| format!("{title} has no setting {name}{}", help.nearest(name)))
        .collect();
    // A server that is given a name it does not know says nothing of values.
    let is_known = |argument: &String| {
        let name = argument.trim_start_matches('-').split('=').next();
        let name = plain(name.unwrap_or_default());
        unknown.iter().all(|unknown| plain(unknown) != name)
    };
    let answer = ask(programs, settings.arguments().filter(is_known))?;
    let said = String::from_utf8_lossy(&answer.stderr);
    let values = help.complaints(&said).into_iter();
    slips.extend(values.map(|words| format!("{title} does not take a value: {words}")));
    match slips.is_empty() {
        true if answer.status.success() => Ok(()),
        true => Err(no(format!("{title}: {}", said.trim()))),
        false => Err(EngineError::misspelt(slips.join("\n"))),
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

    /// What the server's log says of values, once for each option, with the values that it may have. What is of no
    /// option follows from the rest, and counts where nothing else does.
    fn complaints(&self, log: &str) -> Vec<String> {
        let lines = log.lines().filter(|line| is_complaint(line));
        // MySQL has several of them: [ERROR] [MY-000077] [Server].
        let words = lines.map(|line| line.rsplit_once("] ").map_or(line, |(_, words)| words));
        let (mut of_options, mut others) = (Vec::<(&str, String)>::new(), Vec::new());
        for words in words {
            match self.option_in(words) {
                None => others.push(words.to_owned()),
                Some(option) if of_options.iter().any(|(told, _)| *told == option) => {}
                Some(option) => {
                    of_options.push((option, format!("{words}{}", self.allowed(option))));
                }
            }
        }
        match of_options.is_empty() {
            true => others.into_iter().take(1).collect(),
            false => of_options.into_iter().map(|(_, words)| words).collect(),
        }
    }

    /// The option that is named in these words.
    fn option_in<'a>(&self, words: &'a str) -> Option<&'a str> {
        let quoted = words.split('\'').map(|word| word.trim_start_matches('-'));
        let mut options = quoted.filter(|word| self.variables.contains_key(&plain(word)));
        options.next()
    }

    /// The values that an option may have, where the help lists them.
    fn allowed(&self, option: &str) -> String {
        let found = self.text.split_once(&format!("\n  --{option}"));
        let found = found.and_then(|(_, rest)| {
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
    fn each_option_is_complained_of_once() {
        let variables = ["innodb_flush_method", "innodb_buffer_pool_size"];
        let help = Help {
            variables: variables
                .map(|name| (name.to_owned(), String::new()))
                .into(),
            text: "\n  --innodb-flush-method=name\n   With it. One of: fsync O_DSYNC\n  --other"
                .to_owned(),
        };
        let log = "0 [Warning] Could not increase number of max_open_files\n\
                   0 [ERROR] mariadbd: Error while setting value 'x' to 'innodb-flush-method'\n\
                   0 [ERROR] Unknown suffix 'a' used for variable 'innodb-buffer-pool-size' (value 'abc').\n\
                   0 [ERROR] mariadbd: Error while setting value 'abc' to 'innodb-buffer-pool-size'\n\
                   0 [ERROR] Parsing options for plugin 'InnoDB' failed. Disabling plugin\n";
        let told = help.complaints(log);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].ends_with("'innodb-flush-method'; allowed: fsync O_DSYNC"));
        assert!(told[1].starts_with("Unknown suffix 'a'"));
        let other = "0 [ERROR] Parsing options for plugin 'InnoDB' failed. Disabling plugin";
        assert_eq!(help.complaints(other).len(), 1);
        assert!(help.complaints("0 [Note] started").is_empty());
    }

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
