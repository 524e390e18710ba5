//! The files of a cluster, PostgreSQL's word for what one server serves. In the directory for data: `cluster`, the
//! server's own data directory; `run`, with its socket and its log; `password`; and `tablespaces`, the numbers of its
//! tablespaces. In the directory for redo its write-ahead log, in those for indexes and temporary files a tablespace
//! each. The server reaches them through symbolic links, which are made again at each start: a copy of the cluster lies
//! elsewhere.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use spindle_layout::TreeDirectories;
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::programs::Programs;
use super::settings::Settings;
use crate::EngineError;
use crate::sql::Purpose;
use crate::sql::child_server::ServerLog;

/// The superuser, whose password is drawn for each cluster.
pub(super) const SUPERUSER: &str = "spindle";
/// The number in the socket's name; nothing listens on a network.
pub(super) const PORT: &str = "5432";
/// The tablespaces, by their names in the database.
pub(super) const INDEX_TABLESPACE: &str = "spindle_index";
pub(super) const TEMP_TABLESPACE: &str = "spindle_temp";
/// Where the server finds its socket's directory from its data directory: short, whatever the layout's path.
const RUN_FROM_DATA: &str = "../run";
const PASSWORD_BYTES: usize = 24;

/// Where a cluster's files are.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    top: PathBuf,
    wal: PathBuf,
    index: PathBuf,
    temp: PathBuf,
    roots: Vec<PathBuf>,
}

fn system(what: &str, path: &Path, error: std::io::Error) -> EngineError {
    EngineError::failed(format!("{what} {}", path.display()), error)
}

impl Cluster {
    /// The cluster in directories, which are there.
    ///
    /// # Errors
    /// `Failed`; so for the others.
    pub fn of(directories: &TreeDirectories) -> Result<Cluster, EngineError> {
        let whole = |path: &Path| {
            path.canonicalize()
                .map_err(|error| system("looking for", path, error))
        };
        let [top, redo, index, temp] = [
            whole(&directories.data)?,
            whole(&directories.redo)?,
            whole(&directories.index)?,
            whole(&directories.temp)?,
        ];
        Ok(Cluster {
            wal: redo.join("wal"),
            index: index.join("tablespace"),
            temp: temp.join("tablespace"),
            roots: vec![top.clone(), redo, index, temp],
            top,
        })
    }

    /// The server's data directory.
    pub fn data(&self) -> PathBuf {
        self.top.join("cluster")
    }

    /// The directory of socket and log.
    pub fn run(&self) -> PathBuf {
        self.top.join("run")
    }

    /// What the server says.
    pub fn log(&self, programs: &Programs) -> ServerLog {
        ServerLog {
            path: self.run().join("server.log"),
            account: programs.user.clone(),
        }
    }

    /// The superuser's password.
    pub fn password(&self, programs: &Programs) -> Result<String, EngineError> {
        let path = self.top.join("password");
        let text = programs.as_server(|| std::fs::read_to_string(&path))?;
        let text = text.map_err(|error| system("reading", &path, error))?;
        Ok(text.trim().to_owned())
    }

    /// Makes the files of an empty cluster; its tablespaces are made by [`Cluster::create_tablespaces`].
    pub fn create(&self, settings: &Settings, programs: &Programs) -> Result<(), EngineError> {
        for path in &self.roots {
            programs.give(path)?;
            programs.reaches(path)?;
        }
        let password = self.top.join("password");
        programs.as_server(|| {
            for path in [self.run(), self.index.clone(), self.temp.clone()] {
                let made = DirBuilder::new().mode(0o700).create(&path);
                made.map_err(|error| system("making", &path, error))?;
            }
            write_password(&password).map_err(|error| system("writing", &password, error))
        })??;
        let mut initdb = programs.command("initdb");
        initdb
            .arg("-D")
            .arg(self.data())
            .args(["-U", SUPERUSER, "--auth=scram-sha-256"])
            .args(["--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg(option("--pwfile=", &password))
            .arg(option("--waldir=", &self.wal));
        match settings.checksums {
            Some(true) => _ = initdb.arg("--data-checksums"),
            // Before version 18 it is what happens when nothing is said.
            Some(false) if programs.major >= 18 => _ = initdb.arg("--no-data-checksums"),
            _ => {}
        }
        if let Some(mib) = settings.segment_mib {
            initdb.arg(format!("--wal-segsize={mib}"));
        }
        programs.text_of(&mut initdb).map(|_| ())
    }

    /// Makes the tablespaces, and notes their numbers.
    pub fn create_tablespaces(
        &self,
        connection: &mut PostgresConnection,
        programs: &Programs,
    ) -> Result<(), EngineError> {
        for (name, path) in [
            (INDEX_TABLESPACE, &self.index),
            (TEMP_TABLESPACE, &self.temp),
        ] {
            let location = path.display().to_string().replace('\'', "''");
            connection.run(&format!("create tablespace {name} location '{location}'"))?;
        }
        let mut numbers = String::new();
        let asked = "select oid, spcname from pg_tablespace where spcname like 'spindle%'";
        connection.ask(asked, &mut |row| {
            numbers.push_str(&format!("{} {}\n", row.int(0)?, row.text(1)?));
            Ok(())
        })?;
        let path = self.top.join("tablespaces");
        let written = programs.as_server(|| std::fs::write(&path, numbers))?;
        written.map_err(|error| system("writing", &path, error))
    }

    /// Makes the cluster ready to be started where it is: its links, its settings, an empty log.
    pub fn make_ready(
        &self,
        settings: &Settings,
        purpose: Purpose,
        programs: &Programs,
    ) -> Result<(), EngineError> {
        for path in &self.roots {
            programs.reaches(path)?;
        }
        let conf = settings.conf(purpose, RUN_FROM_DATA, programs);
        programs.as_server(|| self.make_files_ready(&conf))?
    }

    /// With the rights of the server, whose links there may lead anywhere.
    fn make_files_ready(&self, conf: &str) -> Result<(), EngineError> {
        link(&self.wal, &self.data().join("pg_wal"))?;
        let path = self.top.join("tablespaces");
        let numbers = match std::fs::read_to_string(&path) {
            Ok(numbers) => numbers,
            // Not made yet.
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(system("reading", &path, error)),
        };
        for line in numbers.lines() {
            let (number, to) = match line.split_once(' ') {
                Some((number, INDEX_TABLESPACE)) => (number, &self.index),
                Some((number, TEMP_TABLESPACE)) => (number, &self.temp),
                _ => return Err(not_ours(&path)),
            };
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(not_ours(&path));
            }
            link(to, &self.data().join("pg_tblspc").join(number))?;
        }
        let path = self.data().join("postgresql.conf");
        std::fs::write(&path, conf).map_err(|error| system("writing", &path, error))?;
        if let Err(error) = DirBuilder::new().mode(0o700).create(self.run())
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(system("making", &self.run(), error));
        }
        Ok(())
    }

    /// A new log, open for the server to write to.
    pub fn open_log(&self, programs: &Programs) -> Result<File, EngineError> {
        let path = self.log(programs).path;
        let mut options = OpenOptions::new();
        let options = options.create(true).write(true).truncate(true).mode(0o600);
        let opened = programs.as_server(|| options.open(&path))?;
        opened.map_err(|error| system("making", &path, error))
    }

    /// Flushes every file of a server that is stopped.
    pub fn flush(&self, programs: &Programs) -> Result<(), EngineError> {
        let mut initdb = programs.command("initdb");
        initdb.arg("--sync-only").arg("-D").arg(self.data());
        programs.text_of(&mut initdb).map(|_| ())
    }
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut option = std::ffi::OsString::from(name);
    option.push(path);
    option
}

fn write_password(path: &Path) -> std::io::Result<()> {
    let mut drawn = [0; PASSWORD_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    let password: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = OpenOptions::new();
    let mut file = options
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{password}")
}

fn not_ours(path: &Path) -> EngineError {
    EngineError::failed(
        format!("reading {}", path.display()),
        "it is not as Spindle writes it",
    )
}

/// Makes `at` a link to `to`, in the place of a link that was there.
fn link(to: &Path, at: &Path) -> Result<(), EngineError> {
    match std::fs::symlink_metadata(at) {
        Ok(found) if !found.is_symlink() => {
            return Err(EngineError::failed(
                format!("linking {} to {}", at.display(), to.display()),
                "something else than a link is there",
            ));
        }
        Ok(_) => std::fs::remove_file(at).map_err(|error| system("replacing", at, error))?,
        Err(_) => {}
    }
    symlink(to, at).map_err(|error| system("linking", at, error))
}
