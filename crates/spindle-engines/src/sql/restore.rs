//! Dumps, restored by the tools that come with a server. A tool that executes what stands in a dump runs as the user of
//! the server; it ends with the load at the latest, and what it says when it fails is told.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use spindle_text::load_file::Dump;

use super::account::not_launched;
use super::child_server::last_lines;
use crate::{EngineError, ErrorKind};

const LOOK: Duration = Duration::from_millis(5);
/// What to do where a dump of MariaDB or MySQL brings views, routines or triggers of users that are not there.
pub(crate) const NO_DEFINER: &str = "; a view, a routine or a trigger was dumped with its DEFINER, who is not on this \
     server: take such clauses out of the dump (sed 's/DEFINER=[^ *]*//' DUMP > NEW)";
/// Two words of a line that a tool says, and what to do then.
const REMEDIES: [([&str; 2], &str); 2] = [
    (
        ["role \"", "does not exist"],
        ". Make the dump with pg_dump --no-owner --no-privileges, or in the custom form (--format=custom)",
    ),
    (["ERROR 1449 ", "definer"], NO_DEFINER),
];
/// What a tool calls the file that it reads as its input.
const INPUT: &str = "<stdin>";

/// The dump's file, as it was when the experiment was read.
///
/// # Errors
/// It has changed, or is gone.
pub(crate) fn open(dump: &Dump) -> Result<File, EngineError> {
    let opened = dump.open();
    opened.map_err(|error| EngineError::failed(format!("opening {}", dump.path.display()), error))
}

/// What does not work with a dump.
pub(crate) fn failed(dump: &Dump, reason: impl crate::Cause) -> EngineError {
    EngineError::failed(format!("restoring {}", dump.name), reason)
}

/// Runs a tool to its end, or until it is interrupted. It is a command of [`super::account::launch_bound`].
///
/// # Errors
/// What it said when it failed.
pub(crate) fn run(
    mut tool: Command,
    dump: &Dump,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let mut said = tempfile::tempfile().map_err(|error| failed(dump, error))?;
    let heard = said.try_clone().map_err(|error| failed(dump, error))?;
    let child = tool.stderr(Stdio::from(heard)).spawn();
    let what = || format!("restoring {}", dump.name);
    let mut child = child.map_err(|error| not_launched(&what(), error))?;
    let status = loop {
        match child.try_wait().map_err(|error| failed(dump, error))? {
            Some(status) => break status,
            None if interrupted.load(Ordering::Relaxed) => {
                // It may have ended by now.
                let _ = child.kill();
                child.wait().map_err(|error| failed(dump, error))?;
                return Err(EngineError::new(ErrorKind::Interrupted, "interrupted"));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    if status.success() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    read.map_err(|error| failed(dump, error))?;
    let said = String::from_utf8_lossy(&bytes).replace(INPUT, &dump.name);
    let remedy = remedy_of(&said).unwrap_or_default();
    let reason = format!(
        "the tool ended with {status}; {}{remedy}",
        last_lines(&said, None)
    );
    Err(failed(dump, reason))
}

/// What to do about a dump whose owners are not on this server. Only `pg_restore` can leave them out.
fn remedy_of(said: &str) -> Option<&'static str> {
    let has =
        |line: &str, [first, second]: [&str; 2]| line.contains(first) && line.contains(second);
    let known = REMEDIES.iter();
    let mut fit = known.filter(|(words, _)| said.lines().any(|line| has(line, *words)));
    fit.next().map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_of_missing_owners_has_its_remedy() {
        let psql = "psql:shop.sql:7: ERROR:  role \"bob\" does not exist";
        assert!(remedy_of(psql).is_some_and(|remedy| remedy.contains("--no-owner")));
        let client = "ERROR 1449 (HY000) at line 25: The user specified as a definer ('bob'@'%') does not exist";
        assert_eq!(remedy_of(client), Some(NO_DEFINER));
        assert_eq!(remedy_of("ERROR:  syntax error at or near \"x\""), None);
    }
}
