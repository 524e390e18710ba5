//! Restores dumps: archives of `pg_dump` by `pg_restore`, plain ones by `psql`, both of the server's own installation.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use spindle_text::load_file::{Dump, DumpForm};

use super::programs::{Programs, last_words};
use super::wire::Login;
use crate::EngineError;
use crate::sql::restore::{failed, open, run};

/// Connections of `pg_restore`, at most.
const JOBS_MAX: usize = 8;
/// Puts what it gets as its input to number 3, reads what it gets as its output, and says nothing.
const PASS_ON: &str = "exec 3<&0 0<&1 1>/dev/null; exec \"$@\"";

/// The tool that restores a dump.
fn tool_of(form: DumpForm) -> &'static str {
    match form {
        DumpForm::PostgresPlain => "psql",
        _ => "pg_restore",
    }
}

/// Checks that the tool for a dump exists, and reads its table of contents.
///
/// # Errors
/// `Unavailable`, in the tool's own words if it has some.
pub(super) fn examine(programs: &Programs, dump: &Dump) -> Result<(), EngineError> {
    let tool = tool_of(dump.form);
    if !programs.has(tool) {
        return Err(EngineError::unavailable(format!(
            "{} is restored by {tool}, and {} is not there: install PostgreSQL's client programs of this version",
            dump.name,
            programs.path(tool).display()
        )));
    }
    if dump.form == DumpForm::PostgresPlain {
        return Ok(());
    }
    let mut list = programs.command_of_caller(tool);
    list.arg("--list").arg(&dump.path);
    let output = programs.output_of(&mut list)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(EngineError::unavailable(format!(
            "{} cannot be read by {tool}: {}",
            dump.name,
            last_words(&output)
        ))),
    }
}

/// Restores a dump into the database of `login`; `socket` is the open directory of the server's socket.
///
/// # Errors
/// `Failed`, in the tool's own words.
pub(super) fn restore(
    programs: &Programs,
    (socket, login): (&File, &Login),
    dump: &Dump,
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let socket = socket.try_clone().map_err(|error| failed(dump, error))?;
    let mut tool = match dump.form {
        DumpForm::PostgresPlain => plain(programs, open(dump)?),
        _ => {
            dump.check().map_err(|error| failed(dump, error))?;
            archive(programs, dump)
        }
    };
    // The socket's path may be too long for one: it is reached through the open directory.
    tool.stdin(Stdio::from(socket));
    tool.env("PGPASSWORD", login.password.as_deref().unwrap_or_default());
    tool.args(["--no-password", "--username", &login.user])
        .args(["--dbname", &login.database]);
    run(tool, dump, interrupted)
}

/// `psql` does what a dump says, commands of the shell included: it runs as the user of servers, who need not have the
/// right to open the dump.
fn plain(programs: &Programs, dump: File) -> Command {
    let mut tool = programs.shell_of_thread(PASS_ON);
    tool.arg(programs.path("psql")).stdout(Stdio::from(dump));
    tool.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
        .args(["--file=-", "--host=/proc/self/fd/3"]);
    tool
}

/// `pg_restore` runs as the user who has the archive, since nothing in it is for the shell.
fn archive(programs: &Programs, dump: &Dump) -> Command {
    let mut tool = programs.command_of_caller_bound("pg_restore");
    tool.args(["--exit-on-error", "--no-owner", "--no-privileges"])
        .args(["--no-tablespaces", "--host=/proc/self/fd/0"]);
    if dump.form != DumpForm::PostgresTar {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        tool.arg(format!("--jobs={}", processors.min(JOBS_MAX)));
    }
    tool.arg(&dump.path).stdout(Stdio::null());
    tool
}
