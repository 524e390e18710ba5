//! The files of a stopped server, or of a backup of its files, that a database is copied from. Which of them are the
//! database is said by name: settings, logs, sockets and what a running server keeps for itself are none of it. Nothing
//! is opened here, and links are followed only where a server itself has put them.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::files;

/// Directories of a PostgreSQL cluster that are taken whole
/// (https://www.postgresql.org/docs/current/storage-file-layout.html).
const WHOLE: [&str; 7] = [
    "base",
    "global",
    "pg_commit_ts",
    "pg_multixact",
    "pg_stat",
    "pg_twophase",
    "pg_xact",
];
/// Files of a cluster beside those directories: what it is, and where its recovery begins.
const BESIDE: [&str; 2] = [VERSION, LABEL];
/// The major version of a cluster, in a file.
const VERSION: &str = "PG_VERSION";
const VERSION_BYTES_MAX: u64 = 64;
/// Where the recovery of a base backup begins.
pub const LABEL: &str = "backup_label";
/// What queries spill; a server removes it when it starts.
const SPILLED: &str = "pgsql_tmp";
const WAL: &str = "pg_wal";
/// The directory of MariaDB's own tables, and the first file of InnoDB's.
const OWN_TABLES: &str = "mysql";
const SYSTEM_TABLESPACE: &str = "ibdata1";
/// What only MySQL has: its dictionary.
const OF_MYSQL: &str = "mysql.ibd";
/// Ending of a file that says where a table outside of the data directory lies (`DATA DIRECTORY`).
const ELSEWHERE: &str = "isl";
/// Length of the name of a piece of the write-ahead log, in hexadecimal digits.
const WAL_NAME: usize = 24;

/// Which directory of a database something belongs in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DatabasePart {
    /// The data directory.
    Data,
    /// Redo: the write-ahead log of PostgreSQL, the log files of InnoDB.
    Log,
    /// Undo tablespaces of InnoDB.
    Undo,
    /// A tablespace of PostgreSQL, by its number.
    Tablespace(String),
}

/// A file or directory of a database that is copied.
#[derive(Clone, Debug)]
pub struct DatabaseFile {
    /// The directory that it belongs in.
    pub part: DatabasePart,
    /// Its path there.
    pub name: PathBuf,
    /// Where it is.
    pub path: PathBuf,
    /// What the system says of it.
    pub metadata: Metadata,
}

impl DatabaseFile {
    /// Whether it is a directory; else it is a regular file.
    pub fn is_directory(&self) -> bool {
        self.metadata.is_dir()
    }
}

/// Whether a directory is that of a PostgreSQL cluster.
pub(super) fn is_cluster(directory: &Path) -> bool {
    directory.join(VERSION).is_file() && directory.join("global").is_dir()
}

/// What a directory holds instead of the files themselves, and what to do then.
pub(super) fn packed(directory: &Path) -> Option<&'static str> {
    let names = ["base.tar", "base.tar.gz", "base.tar.lz4", "base.tar.zst"];
    names.iter().any(|name| directory.join(name).exists()).then_some(
        "it is a base backup in the tar form, and the plain form is taken: make it by pg_basebackup --format=plain \
         --wal-method=stream, or unpack base.tar into a directory, and pg_wal.tar into its pg_wal",
    )
}

/// The major version of a PostgreSQL cluster, as its own file says it.
///
/// # Errors
/// The system's; it is no regular file, or no text.
pub fn version(cluster: &Path) -> io::Result<String> {
    let path = cluster.join(VERSION);
    let text = files::read_text(&path, VERSION_BYTES_MAX).map_err(|error| at(&path, error))?;
    Ok(text.trim().to_owned())
}

/// What is copied of a PostgreSQL cluster, a directory before what is in it.
///
/// # Errors
/// It contains something that no cluster has, in words; or the system's.
pub fn of_cluster(directory: &Path) -> io::Result<Vec<DatabaseFile>> {
    let mut found = Vec::new();
    for name in BESIDE {
        match fs::symlink_metadata(directory.join(name)) {
            Ok(_) => take(&DatabasePart::Data, directory, name.as_ref(), &mut found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(&directory.join(name), error)),
        }
    }
    for name in WHOLE {
        take(&DatabasePart::Data, directory, name.as_ref(), &mut found)?;
    }
    take_log(&directory.join(WAL), &mut found)?;
    let spaces = directory.join("pg_tblspc");
    for number in names_in(&spaces)? {
        take_tablespace(&spaces, &number, &mut found)?;
    }
    Ok(found)
}

/// Whether a directory is that of a MariaDB, or of a backup of its files.
pub(super) fn is_mariadb(directory: &Path) -> bool {
    directory.join(OWN_TABLES).is_dir() && directory.join(SYSTEM_TABLESPACE).exists()
}

/// What is copied of a MariaDB's data directory: all databases, and the files of InnoDB and Aria that they need
/// (https://mariadb.com/docs/server/storage-engines/innodb/innodb-tablespaces).
///
/// # Errors
/// It contains something that no server makes, or a table lies elsewhere, in words; or the system's.
pub fn of_mariadb(directory: &Path) -> io::Result<Vec<DatabaseFile>> {
    if directory.join(OF_MYSQL).exists() {
        let reason =
            "it is of MySQL, and files are copied of MariaDB only: make a dump with mysqldump";
        return Err(invalid(reason));
    }
    let mut found = Vec::new();
    for name in names_in(directory)? {
        if let Some(part) = part_of(directory, &name) {
            take(&part, directory, &name, &mut found)?;
        }
    }
    let is_elsewhere =
        |file: &&DatabaseFile| file.name.extension().is_some_and(|end| end == ELSEWHERE);
    match found.iter().find(is_elsewhere) {
        None => Ok(found),
        Some(file) => Err(at(
            &file.path,
            invalid(
                "its table lies outside of the data directory (DATA DIRECTORY), where the copy would write, too: make a \
                 dump with mariadb-dump",
            ),
        )),
    }
}

/// Where what lies in a data directory belongs; `None`: the database has no part in it.
fn part_of(directory: &Path, name: &Path) -> Option<DatabasePart> {
    let text = name.to_string_lossy();
    let is_directory = directory.join(name).is_dir();
    match () {
        () if is_directory => {
            // What the file system keeps there, and what begins so: other engines, snapshots.
            let is_other = text == "lost+found" || text.starts_with(['#', '.']);
            (!is_other).then_some(DatabasePart::Data)
        }
        () if text.starts_with("ib_logfile") => Some(DatabasePart::Log),
        () if text.starts_with("undo") => Some(DatabasePart::Undo),
        () if text.starts_with("ibdata") || text.starts_with("aria_log") => {
            Some(DatabasePart::Data)
        }
        () => None,
    }
}

/// The write-ahead log, which may lie behind a link.
fn take_log(directory: &Path, found: &mut Vec<DatabaseFile>) -> io::Result<()> {
    for name in names_in(directory)? {
        let text = name.to_string_lossy();
        let is_piece = text.len() == WAL_NAME && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_piece || text.ends_with(".history") {
            take(&DatabasePart::Log, directory, &name, found)?;
        }
    }
    Ok(())
}

/// A tablespace, which lies behind a link. Several clusters of different versions may share its directory.
fn take_tablespace(spaces: &Path, number: &Path, found: &mut Vec<DatabaseFile>) -> io::Result<()> {
    let text = number.to_string_lossy();
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(at(
            &spaces.join(number),
            invalid("PostgreSQL has only tablespaces there, by their numbers"),
        ));
    }
    let directory = spaces.join(number);
    let part = DatabasePart::Tablespace(text.into_owned());
    let of_version = format!("PG_{}_", version(spaces.parent().unwrap_or(spaces))?);
    for name in names_in(&directory)? {
        if name.to_string_lossy().starts_with(&of_version) {
            take(&part, &directory, &name, found)?;
        }
    }
    Ok(())
}

/// What is named in a directory, and all that is in it.
fn take(
    part: &DatabasePart,
    directory: &Path,
    name: &Path,
    found: &mut Vec<DatabaseFile>,
) -> io::Result<()> {
    let path = directory.join(name);
    let metadata = fs::symlink_metadata(&path).map_err(|error| at(&path, error))?;
    if let Some(what) = stranger(&metadata) {
        let reason = format!("it is {what}, and a database has only files and directories there");
        return Err(at(&path, invalid(reason)));
    }
    let is_directory = metadata.is_dir();
    found.push(DatabaseFile {
        part: part.clone(),
        name: name.to_owned(),
        path: path.clone(),
        metadata,
    });
    if is_directory {
        for inner in names_in(&path)? {
            if inner != Path::new(SPILLED) {
                take(part, directory, &name.join(inner), found)?;
            }
        }
    }
    Ok(())
}

/// What is neither a file nor a directory, in words.
fn stranger(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_symlink() => Some("a symbolic link"),
        () if kind.is_fifo() => Some("a pipe (FIFO)"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_block_device() || kind.is_char_device() => Some("a device"),
        () => None,
    }
}

/// Names in a directory, sorted.
fn names_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let wrong = |error| at(directory, error);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(wrong)? {
        names.push(PathBuf::from(entry.map_err(wrong)?.file_name()));
    }
    names.sort();
    Ok(names)
}

/// Nothing that can be loaded, in words.
pub(super) fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

/// When something was changed last, nanoseconds since 1970.
pub(super) fn age_ns(found: &Metadata) -> i64 {
    let seconds_ns = found.mtime().saturating_mul(1_000_000_000);
    seconds_ns.saturating_add(found.mtime_nsec())
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Bytes of all files, and when something of them was changed last.
pub(super) fn size_and_age(found: &[DatabaseFile]) -> (u64, i64) {
    let files = found.iter().filter(|found| !found.is_directory());
    let bytes = files.fold(0_u64, |sum, file| sum.saturating_add(file.metadata.size()));
    let ages = found.iter().map(|found| age_ns(&found.metadata));
    (bytes, ages.max().unwrap_or(0))
}
