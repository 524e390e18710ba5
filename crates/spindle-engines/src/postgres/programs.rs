//! The programs of an installed PostgreSQL, and the user they run as: the server refuses to run as root, so that for
//! root it is a user without privileges, through `setpriv` of util-linux.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::EngineError;
use crate::sql::ServerRequest;
use crate::sql::account::{Account, launch, launch_bound, not_launched, with_rights_of};

/// The oldest version that has all that is asked of a server here.
pub(super) const MAJOR_MIN: u32 = 13;
/// Where Debian puts the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Users that the server may run as when Spindle is root, the better first.
const USERS: [&str; 2] = ["postgres", "nobody"];

/// What is said where none of them exists.
const NO_USER: &str = "PostgreSQL refuses to run as root, and there is no user \"postgres\" or \"nobody\" that it could run as";

/// An installed PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    bin_dir: PathBuf,
    /// The version, such as 15.
    pub major: u32,
    /// As the server itself says it.
    pub version: String,
    /// Who runs them; `None`: the user who runs Spindle.
    pub user: Option<Account>,
}

impl Programs {
    /// The programs in `bin_dir` of the request; else those on the path; else the newest that Debian has installed.
    ///
    /// # Errors
    /// `Unavailable`: there are none, they are too old, or no user may run them.
    pub fn find(request: &ServerRequest) -> Result<Programs, EngineError> {
        let user = Account::of_servers(&USERS, NO_USER)?;
        let candidates = match &request.bin_dir {
            Some(directory) => vec![directory.clone()],
            None => on_path().into_iter().chain(newest_of_debian()).collect(),
        };
        let mut refused = None;
        for bin_dir in candidates {
            match Programs::in_directory(bin_dir, user.clone()) {
                Ok(programs) => return Ok(programs),
                Err(error) => _ = refused.get_or_insert(error),
            }
        }
        Err(refused.unwrap_or_else(|| {
            EngineError::unavailable(format!(
                "no PostgreSQL server is installed: neither on PATH nor in {DEBIAN}; install one (Debian: apt-get \
                 install postgresql), or name the directory of its programs with bin_dir"
            ))
        }))
    }

    fn in_directory(bin_dir: PathBuf, user: Option<Account>) -> Result<Programs, EngineError> {
        let mut programs = Programs {
            bin_dir,
            major: 0,
            version: String::new(),
            user,
        };
        for program in ["postgres", "initdb"] {
            let path = programs.bin_dir.join(program);
            if !path.is_file() {
                return Err(EngineError::unavailable(format!(
                    "there is no PostgreSQL server in {}: {program} is missing",
                    programs.bin_dir.display()
                )));
            }
        }
        let said = programs.text_of(programs.command("postgres").arg("--version"))?;
        programs.major = major_of(&said).ok_or_else(|| {
            EngineError::unavailable(format!(
                "{} says its version is {said:?}, which is not one of PostgreSQL",
                programs.path("postgres").display()
            ))
        })?;
        programs.version = said.replace("postgres (PostgreSQL)", "PostgreSQL");
        if programs.major < MAJOR_MIN {
            return Err(EngineError::unavailable(format!(
                "{} in {} is too old: PostgreSQL {MAJOR_MIN} or newer is needed",
                programs.version,
                programs.bin_dir.display()
            )));
        }
        Ok(programs)
    }

    /// Where a program is.
    pub fn path(&self, program: &str) -> PathBuf {
        self.bin_dir.join(program)
    }

    /// Whether there is such a program.
    pub fn has(&self, program: &str) -> bool {
        self.path(program).is_file()
    }

    /// A program, to be run as the user of servers.
    pub fn command(&self, program: &str) -> Command {
        let path = self.path(program);
        with_clean_environment(launch(self.user.as_ref(), &["--"], [path]))
    }

    /// The same for a program that ends, as PostgreSQL does at once (SIGQUIT), when the thread that started it does.
    pub fn command_of_thread(&self, program: &str) -> Command {
        let path = self.path(program);
        with_clean_environment(launch_bound(self.user.as_ref(), "QUIT", &path))
    }

    /// A program, to be run as the user who runs Spindle.
    pub fn command_of_caller(&self, program: &str) -> Command {
        with_clean_environment(launch(None, &["--"], [self.path(program)]))
    }

    /// The same for a program that is killed when the thread that started it ends.
    pub fn command_of_caller_bound(&self, program: &str) -> Command {
        with_clean_environment(launch_bound(None, "KILL", &self.path(program)))
    }

    /// The same for a script of the shell, but to be run as the user of servers.
    pub fn shell_of_thread(&self, script: &str) -> Command {
        let mut shell = launch_bound(self.user.as_ref(), "KILL", Path::new("sh"));
        shell.args(["-c", script, "sh"]);
        with_clean_environment(shell)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// `Failed` when it cannot be started.
    pub fn output_of(&self, command: &mut Command) -> Result<Output, EngineError> {
        let output = command.output();
        output.map_err(|error| not_launched("running PostgreSQL", error))
    }

    /// Runs a command to its end; what it wrote to its output.
    ///
    /// # Errors
    /// `Failed` with what it wrote to standard error.
    pub fn text_of(&self, command: &mut Command) -> Result<String, EngineError> {
        let output = self.output_of(command)?;
        if !output.status.success() {
            let program = command
                .get_args()
                .skip_while(|word| *word != "--")
                .nth(1)
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            return Err(EngineError::failed(program, last_words(&output)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Makes sure that the user of servers gets to a directory. Errors: see [`Account::reach`].
    pub fn reaches(&self, directory: &Path) -> Result<(), EngineError> {
        self.user
            .as_ref()
            .map_or(Ok(()), |user| user.reach(directory))
    }

    /// Does what `work` does to files of a server with the rights of its user. Errors: see [`with_rights_of`].
    pub fn as_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, EngineError> {
        with_rights_of(self.user.as_ref(), work)
    }

    /// Gives a file or directory to the user of servers. Errors: the system's.
    pub fn give(&self, path: &Path) -> Result<(), EngineError> {
        self.user.as_ref().map_or(Ok(()), |user| user.give(path))
    }
}

/// What the environment says of other servers is not for this one.
fn with_clean_environment(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").current_dir("/");
    command.stdin(Stdio::null());
    command
}

/// What a program said when it failed.
pub(super) fn last_words(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    match error.trim() {
        "" => format!("it ended with {}", output.status),
        text => text.to_owned(),
    }
}

/// The directory of the server that is on the path. Where that is a link, the other programs may be beside its target
/// only.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let programs = std::env::split_paths(&path).map(|directory| directory.join("postgres"));
    programs
        .filter(|program| program.is_file())
        .find_map(|program| {
            let bin_dir = program.canonicalize().ok()?.parent()?.to_path_buf();
            bin_dir.join("initdb").is_file().then_some(bin_dir)
        })
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = std::fs::read_dir(DEBIAN).ok()?.flatten();
    let versions = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin_dir = entry.path().join("bin");
        // Of a version that was removed, or of which only the client is installed, something may be left.
        bin_dir
            .join("postgres")
            .is_file()
            .then_some((version, bin_dir))
    });
    versions.max().map(|(_, bin_dir)| bin_dir)
}

/// The version in what `postgres --version` says, such as `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn major_of(said: &str) -> Option<u32> {
    let (_, version) = said.split_once("(PostgreSQL) ")?;
    let digits: String = version
        .chars()
        .take_while(|letter| letter.is_ascii_digit())
        .collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_say_them() {
        for (said, major) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                Some(15),
            ),
            ("postgres (PostgreSQL) 19devel", Some(19)),
            ("postgres (PostgreSQL) 9.6.24", Some(9)),
            ("mysqld  Ver 8.0", None),
        ] {
            assert_eq!(major_of(said), major, "{said}");
        }
    }
}
