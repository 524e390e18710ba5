//! The files of a cluster, PostgreSQL's word for what one server serves. In the directory for data: `cluster`, the
//! server's own data directory; `run`, with its socket and its log; `password`; `tablespaces`, the numbers of its
//! tablespaces; of a cluster that was copied, `database`, the name of the one that is measured, and `copied`, its own
//! tablespaces. In the directory for redo its write-ahead log, in those for indexes and temporary files a tablespace
//! each. The server reaches them through symbolic links, which are made again at each start: a copy of the cluster lies
//! elsewhere.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use spindle_layout::TreeDirectories;
use spindle_text::load_file::Dump;
use spindle_text::load_file::server_files::{DatabaseFile, DatabasePart};
use spindle_workload::sql::SqlConnection;

use super::connection::PostgresConnection;
use super::copied::Looked;
use super::programs::Programs;
use super::settings::PostgresSettings;
use crate::EngineError;
use crate::sql::Purpose;
use crate::sql::child_server::ServerLog;
use crate::sql::copied_files::{copy, make_directory, make_file};

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
/// Files and a directory beside that of the data.
const TABLESPACES: &str = "tablespaces";
const DATABASE: &str = "database";
const COPIED: &str = "copied";
/// Directories of a cluster that are not copied and must be there: what a running server keeps for itself, and what
/// belongs to replication. `pg_basebackup` leaves their contents out, too, but for those of `pg_logical`.
const EMPTY: [&str; 11] = [
    "pg_dynshmem",
    "pg_logical",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
];

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
    /// The cluster in directories, which exist.
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
    pub fn create(
        &self,
        settings: &PostgresSettings,
        programs: &Programs,
    ) -> Result<(), EngineError> {
        let password = self.make_own(programs)?;
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

    /// Gives the directories to the server, and makes what is Spindle's own there; where the password is.
    fn make_own(&self, programs: &Programs) -> Result<PathBuf, EngineError> {
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
        Ok(password)
    }

    /// Makes the files of a cluster of those of another one, still to be recovered. Until all are made, only the user
    /// who runs Spindle can reach them.
    pub fn take(
        &self,
        dump: &Dump,
        looked: &Looked,
        programs: &Programs,
        interrupted: &AtomicBool,
    ) -> Result<(), EngineError> {
        let source = dump.path.canonicalize();
        let source = source.map_err(|error| system("looking for", &dump.path, error))?;
        if let Some(within) = self.roots.iter().find(|root| root.starts_with(&source)) {
            let what = format!("copying {} to {}", dump.name, within.display());
            return Err(EngineError::failed(what, "it would be copied into itself"));
        }
        let copied = self.top.join(COPIED);
        let data = self.data();
        let mut made = vec![data.clone(), self.wal.clone(), copied.clone()];
        made.extend(EMPTY.iter().map(|name| data.join(name)));
        let mut numbers = BTreeSet::new();
        for file in &looked.found {
            if let DatabasePart::Tablespace(number) = &file.part
                && numbers.insert(number)
            {
                made.push(copied.join(number));
            }
        }
        made.iter().try_for_each(|path| make_directory(path))?;
        let place = |file: &DatabaseFile| match &file.part {
            DatabasePart::Data | DatabasePart::Undo => data.join(&file.name),
            DatabasePart::Log => self.wal.join(&file.name),
            DatabasePart::Tablespace(number) => copied.join(number).join(&file.name),
        };
        made.extend(copy(dump, &looked.found, place, interrupted)?);
        // Only clients with the password may connect.
        let mut own = vec![
            (
                data.join("pg_hba.conf"),
                "local all all scram-sha-256
"
                .to_owned(),
            ),
            (data.join("pg_ident.conf"), String::new()),
        ];
        if looked.recovers_from.is_some() {
            own.push((data.join("recovery.signal"), String::new()));
        }
        let lines = numbers.iter().map(|number| {
            format!(
                "{number} {COPIED}
"
            )
        });
        own.push((self.top.join(TABLESPACES), lines.collect()));
        for (path, text) in own {
            make_file(&path, &text)?;
            made.push(path);
        }
        made.iter().try_for_each(|path| programs.give(path))?;
        self.make_own(programs).map(|_| ())
    }

    /// Where its write-ahead log is.
    pub fn log_directory(&self) -> &Path {
        &self.wal
    }

    /// The names in its write-ahead log.
    pub fn log_pieces(&self, programs: &Programs) -> Result<Vec<String>, EngineError> {
        let wrong = |error| system("listing", &self.wal, error);
        let entries = programs.as_server(|| std::fs::read_dir(&self.wal))?;
        let names = entries.map_err(wrong)?.map(|entry| {
            let name = entry.map_err(wrong)?.file_name();
            Ok(name.to_string_lossy().into_owned())
        });
        names.collect()
    }

    /// Notes which database is measured.
    pub fn note_database(&self, name: &str, programs: &Programs) -> Result<(), EngineError> {
        let path = self.top.join(DATABASE);
        let written = programs.as_server(|| std::fs::write(&path, name))?;
        written.map_err(|error| system("writing", &path, error))
    }

    /// The database that is measured.
    pub fn database(&self, programs: &Programs) -> Result<String, EngineError> {
        let path = self.top.join(DATABASE);
        match programs.as_server(|| std::fs::read_to_string(&path))? {
            Ok(name) => Ok(name),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok("postgres".to_owned()),
            Err(error) => Err(system("reading", &path, error)),
        }
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
        let asked = format!(
            "select oid, case when spcname in ('{INDEX_TABLESPACE}', '{TEMP_TABLESPACE}') then spcname \
             else '{COPIED}' end from pg_tablespace where spcname not in ('pg_default', 'pg_global')"
        );
        connection.ask(&asked, &mut |row| {
            numbers.push_str(&format!("{} {}\n", row.int(0)?, row.text(1)?));
            Ok(())
        })?;
        let path = self.top.join(TABLESPACES);
        let written = programs.as_server(|| std::fs::write(&path, numbers))?;
        written.map_err(|error| system("writing", &path, error))
    }

    /// Makes the cluster ready to be started where it is: its links, its settings, an empty log.
    pub fn make_ready(
        &self,
        settings: &PostgresSettings,
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
        let path = self.top.join(TABLESPACES);
        let numbers = match std::fs::read_to_string(&path) {
            Ok(numbers) => numbers,
            // Not made yet.
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(system("reading", &path, error)),
        };
        for line in numbers.lines() {
            let (number, name) = line.split_once(' ').ok_or_else(|| not_ours(&path))?;
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(not_ours(&path));
            }
            let to = match name {
                INDEX_TABLESPACE => self.index.clone(),
                TEMP_TABLESPACE => self.temp.clone(),
                COPIED => self.top.join(COPIED).join(number),
                _ => return Err(not_ours(&path)),
            };
            link(&to, &self.data().join("pg_tblspc").join(number))?;
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

/// Makes `at` a link to `to`, in place of any earlier link.
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
