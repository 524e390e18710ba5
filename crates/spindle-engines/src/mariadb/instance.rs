//! A database of MariaDB or MySQL in its own directories: made, and started. Every path is an option of each start and
//! none is kept in a file, so that the files can be copied to other directories. Only this program can connect: there
//! is only a socket, in a directory that is closed to others, and a password that lives as long as the server.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use spindle_layout::TreeDirectories;
use spindle_text::load_file::Dump;

use super::connection::{Access, DATABASE};
use super::programs::{Make, Programs};
use super::raw;
use super::restore::Client;
use super::running::RunningMariaDb;
use super::settings::{MariaDbSettings, Native};
use crate::EngineError;
use crate::sql::account::{Account, launch_bound, with_rights_of};
use crate::sql::child_server::{ChildServer, Habits, ServerLog, last_lines};

/// The socket and the file with the process's number, in the directory of the data, where the server works: a name
/// without a directory is never too long for a socket (108 bytes with its zero, unix(7)).
const SOCKET: &str = "spindle.sock";
/// MySQL's, in which it notes its process.
const SOCKET_LOCK: &str = "spindle.sock.lock";
const PID_FILE: &str = "spindle.pid";
/// Statements for the server's start, and its log, in the directory for temporary files.
const INIT_FILE: &str = "spindle-init.sql";
const LOG: &str = "spindle.log";
/// How long a server may take to start; recovery reads all redo since the last checkpoint.
const START_PATIENCE: Duration = Duration::from_secs(600);
const START_PAUSE: Duration = Duration::from_millis(20);
/// Its redo makes up for whatever a killed one had not written.
const HABITS: Habits = Habits {
    name: "the server",
    in_order: Signal::TERM,
    at_once: Signal::KILL,
    at_once_limit: Duration::from_secs(15),
    error_mark: Some("[ERROR]"),
};
/// What performance_schema is not asked for takes no memory and no time: all instruments are off but those of files and
/// of commits, and most of its tables have no rows. `loose`: not every version has every one.
const PERFORMANCE_SCHEMA: [&str; 29] = [
    "--performance-schema=ON",
    "--performance-schema-instrument=%=OFF",
    "--performance-schema-instrument=wait/io/file/innodb/%=ON",
    "--performance-schema-instrument=wait/io/file/sql/io_cache=ON",
    "--performance-schema-instrument=stage/sql/Commit=ON",
    "--performance-schema-instrument=stage/sql/waiting for handler commit=ON",
    "--loose-performance-schema-digests-size=0",
    "--loose-performance-schema-max-digest-length=0",
    "--loose-performance-schema-max-sql-text-length=0",
    "--loose-performance-schema-accounts-size=0",
    "--loose-performance-schema-hosts-size=0",
    "--loose-performance-schema-session-connect-attrs-size=0",
    "--loose-performance-schema-events-waits-history-size=0",
    "--loose-performance-schema-events-waits-history-long-size=0",
    "--loose-performance-schema-events-stages-history-size=0",
    "--loose-performance-schema-events-stages-history-long-size=0",
    "--loose-performance-schema-events-statements-history-size=0",
    "--loose-performance-schema-events-statements-history-long-size=0",
    "--loose-performance-schema-events-transactions-history-size=0",
    "--loose-performance-schema-events-transactions-history-long-size=0",
    "--loose-performance-schema-max-cond-instances=0",
    "--loose-performance-schema-max-mutex-instances=0",
    "--loose-performance-schema-max-rwlock-instances=0",
    "--loose-performance-schema-max-index-stat=0",
    "--loose-performance-schema-max-metadata-locks=0",
    "--loose-performance-schema-max-prepared-statements-instances=0",
    "--loose-performance-schema-max-program-instances=0",
    "--loose-performance-schema-max-table-instances=0",
    "--loose-performance-schema-max-table-lock-stat=0",
];

/// A database in its directories, and what it is to be run with.
pub(super) struct Instance<'a> {
    pub programs: &'a Programs,
    pub account: Option<&'a Account>,
    pub settings: &'a MariaDbSettings,
    pub directories: &'a TreeDirectories,
    /// The database that its sessions are in.
    pub database: String,
}

impl Instance<'_> {
    /// Makes it, empty.
    ///
    /// # Errors
    /// [`EngineError`]; so for the others.
    pub fn create(&self) -> Result<(), EngineError> {
        for (_, directory) in self.directories.named() {
            if let Some(account) = self.account {
                account.give(directory)?;
                account.reach(directory)?;
            }
        }
        let mut command = match (self.programs.make, &self.programs.install) {
            (Make::MariaDb, Some(install)) => {
                let mut command = launch_bound(self.account, "KILL", install);
                command.args(["--no-defaults", "--skip-test-db", "--skip-name-resolve"]);
                command
            }
            _ => {
                let mut command = launch_bound(self.account, "KILL", &self.programs.server);
                command.args(["--no-defaults", "--initialize-insecure"]);
                command
            }
        };
        self.places(&mut command)?;
        command.args(self.settings.shaping_arguments());
        let log = self.speak_into(&mut command)?;
        let program = self.programs.install.as_ref();
        let program = program.unwrap_or(&self.programs.server);
        let process = self.start_program(command, program, log.clone())?;
        match process.wait(START_PATIENCE) {
            Some(status) if status.success() => {}
            Some(status) => {
                let said = last_lines(&process.log(), HABITS.error_mark);
                let reason = format!("it ended with {status}; {said}");
                return Err(EngineError::failed("making the database", reason));
            }
            None => {
                let reason = "it did not end in ten minutes";
                return Err(EngineError::failed("making the database", reason));
            }
        }
        // The log is no part of the database.
        self.remove(&log.path)
            .map_err(|error| EngineError::failed("removing the log", error))
    }

    /// Starts it and waits until it takes connections.
    pub fn start(&self) -> Result<Arc<RunningMariaDb>, EngineError> {
        if let Some(account) = self.account {
            for (_, directory) in self.directories.named() {
                account.reach(directory)?;
            }
        }
        let devices = raw::hold(self.directories)?;
        let password = password()?;
        let init_file = self.write_init_file(&password)?;
        let started = self.start_process(&init_file, &password);
        // Whatever came of it: a password is not left lying about.
        let removed = self.remove(&init_file);
        let (process, access) = started?;
        removed.map_err(|error| EngineError::failed("removing the init file", error))?;
        self.is_as_asked(&process)?;
        let client = Client::of(self.programs, self.account, &password, &self.database);
        let data = self.directories.data.clone();
        let restore = Box::new(move |dump: &Dump, interrupted: &AtomicBool| {
            client
                .as_ref()
                .map_err(Clone::clone)?
                .restore((&data, SOCKET), dump, interrupted)
        });
        let database = self.database.clone();
        RunningMariaDb::new(process, access, database, restore, devices).map(Arc::new)
    }

    fn start_process(
        &self,
        init_file: &Path,
        password: &str,
    ) -> Result<(ChildServer, Access), EngineError> {
        let mut command = launch_bound(self.account, "KILL", &self.programs.server);
        command.arg("--no-defaults");
        self.places(&mut command)?;
        self.forget_dead_server()?;
        command.args([
            format!("--socket={SOCKET}"),
            format!("--pid-file={PID_FILE}"),
            format!("--init-file={}", init_file.display()),
        ]);
        command.args([
            "--skip-networking",
            "--skip-name-resolve",
            "--skip-log-bin",
            "--local-infile=ON",
            "--default-time-zone=+00:00",
            "--max-allowed-packet=64M",
            "--max-prepared-stmt-count=1048576",
            "--loose-mysqlx=OFF",
            "--loose-feedback=OFF",
        ]);
        if self.programs.make == Make::MySql {
            // By default a directory of the package's own, which other installations have not.
            command.arg("--secure-file-priv=NULL");
        }
        command.args(PERFORMANCE_SCHEMA);
        command.args(self.settings.arguments());
        let log = self.speak_into(&mut command)?;
        let directory = File::open(&self.directories.data)
            .map_err(|error| EngineError::failed("opening the directory of the data", error))?;
        let access = Access::new(directory, SOCKET, password, &self.database);
        let process = self.start_program(command, &self.programs.server, log)?;
        let began = Instant::now();
        loop {
            let error = match access.connect() {
                Ok(_) => return Ok((process, access)),
                Err(error) => error,
            };
            if let Some(words) = process.ended() {
                return Err(EngineError::failed("starting the server", words));
            }
            if began.elapsed() > START_PATIENCE {
                return Err(EngineError::failed("connecting to the server", error));
            }
            std::thread::sleep(START_PAUSE);
        }
    }

    fn start_program(
        &self,
        command: Command,
        program: &Path,
        log: ServerLog,
    ) -> Result<ChildServer, EngineError> {
        ChildServer::start(&HABITS, command, program, &self.directories.data, log)
    }

    /// MySQL does not start where one was killed, if a process has its number meanwhile. A server that is alive has its
    /// files locked, and starts no second one.
    fn forget_dead_server(&self) -> Result<(), EngineError> {
        let removed = self.remove(&self.directories.data.join(SOCKET_LOCK));
        removed.map_err(|error| EngineError::failed("removing the socket's lock", error))
    }

    /// Removes a file of the server's, if it exists.
    fn remove(&self, path: &Path) -> Result<(), EngineError> {
        match with_rights_of(self.account, || std::fs::remove_file(path))? {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(EngineError::failed(
                format!("removing {}", path.display()),
                error,
            )),
            _ => Ok(()),
        }
    }

    /// Where everything is.
    fn places(&self, command: &mut Command) -> Result<(), EngineError> {
        let TreeDirectories {
            data,
            redo,
            undo,
            temp,
            ..
        } = self.directories;
        let text = |path: &Path| -> Result<String, EngineError> {
            // InnoDB's lists of files have these two between their parts.
            match path.to_str() {
                Some(text) if !text.contains([':', ';']) => Ok(text.to_owned()),
                _ => Err(EngineError::failed(
                    format!("a path for InnoDB, {}", path.display()),
                    "it must be UTF-8 without : and ;",
                )),
            }
        };
        let (data, redo, undo, temp) = (text(data)?, text(redo)?, text(undo)?, text(temp)?);
        command.args([
            format!("--datadir={data}"),
            // Empty: the names of data files are full paths, or stand in the directory of the data.
            "--innodb-data-home-dir=".to_owned(),
            format!("--innodb-temp-data-file-path={temp}/ibtmp1:12M:autoextend"),
            format!("--innodb-log-group-home-dir={redo}"),
            format!("--innodb-undo-directory={undo}"),
            format!("--tmpdir={temp}"),
        ]);
        if let Some(base) = &self.programs.base {
            command.arg(format!("--basedir={}", base.display()));
        }
        command.current_dir(&self.directories.data);
        Ok(())
    }

    /// Lets what the program says go into its own file.
    fn speak_into(&self, command: &mut Command) -> Result<ServerLog, EngineError> {
        let log = self.log();
        let path = &log.path;
        let file = with_rights_of(self.account, || File::create(path))?;
        let file = file.map_err(|error| EngineError::failed("making the server's log", error))?;
        let again = file
            .try_clone()
            .map_err(|error| EngineError::failed("opening the server's log", error))?;
        command.stdin(Stdio::null()).stdout(file).stderr(again);
        Ok(log)
    }

    /// What the server says.
    pub fn log(&self) -> ServerLog {
        ServerLog {
            path: self.directories.temp.join(LOG),
            account: self.account.cloned(),
        }
    }

    fn write_init_file(&self, password: &str) -> Result<PathBuf, EngineError> {
        let path = self.directories.temp.join(INIT_FILE);
        self.remove(&path)?;
        // One statement to a line. Texts compare as bytes, as in the other databases. What was copied has its own.
        let first = match self.database == DATABASE {
            true => format!(
                "create database if not exists {DATABASE} character set utf8mb4 collate utf8mb4_bin;\n"
            ),
            false => "create user if not exists 'root'@'localhost';\n\
                      grant all on *.* to 'root'@'localhost' with grant option;\n"
                .to_owned(),
        };
        let text = format!("{first}alter user 'root'@'localhost' identified by '{password}';\n");
        let written = with_rights_of(self.account, || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            options.open(&path)?.write_all(text.as_bytes())
        })?;
        written.map_err(|error| EngineError::failed("writing the init file", error))?;
        Ok(path)
    }

    /// Whether the server does asynchronous I/O as the layout wants it: a server that cannot continues without it, and
    /// says so.
    fn is_as_asked(&self, process: &ChildServer) -> Result<(), EngineError> {
        let words = match self.settings.native {
            Some(Native::IoUring) => "InnoDB: Using io_uring",
            Some(Native::Libaio) => "InnoDB: Using Linux native AIO",
            None => return Ok(()),
        };
        let log = process.log();
        if log.contains(words) || self.programs.make == Make::MySql {
            return Ok(());
        }
        let is_of_it = |line: &&str| {
            ["AIO", "aio", "uring"]
                .iter()
                .any(|word| line.contains(word))
        };
        let said: Vec<&str> = log.lines().filter(is_of_it).collect();
        Err(EngineError::unavailable(format!(
            "the server does not use the asynchronous I/O that was asked for: it should say {words:?}, and said {said:?}"
        )))
    }
}

/// 128 random bits.
fn password() -> Result<String, EngineError> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| EngineError::failed("drawing a password", error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
