//! A database made of the files of another MariaDB: of one that was stopped in order, or of a prepared
//! `mariadb-backup`. It is looked at before anything is made. Then its files are copied to where each kind belongs, and
//! a first start shows whether they fit together. None of its settings are taken: what they name may lie anywhere.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use spindle_layout::TreeDirectories;
use spindle_text::files;
use spindle_text::load_file::Dump;
use spindle_text::load_file::server_files::{DatabaseFile, DatabasePart};
use spindle_workload::sql::SqlConnection;

use super::connection::DATABASE;
use super::programs::Programs;
use crate::EngineError;
use crate::sql::account::{Account, with_rights_of};
use crate::sql::copied_files::{chosen, copy, files_at_rest, last_name, refused};
use crate::sql::restore::failed;

/// What a server is called whose files these may be.
const PROGRAMS: [&str; 2] = ["mariadbd", "mysqld"];
/// In what a backup says of itself: its file, by the versions, and the kinds that are prepared.
const SAID_BY_BACKUP: [&str; 2] = ["mariadb_backup_checkpoints", "xtrabackup_checkpoints"];
const PREPARED: [&str; 2] = ["backup_type = log-applied", "backup_type = full-prepared"];
const SAID_BYTES_MAX: u64 = 64 << 10;
/// The program that made a log file, in its head (`LOG_HEADER_CREATOR` of InnoDB's log0log.h).
const CREATOR: std::ops::Range<usize> = 16..48;
/// The database that every server has.
pub(super) const OWN: &str = "mysql";
/// The name of the database that is measured, in a file beside the data.
const NOTE: &str = "spindle.database";
/// InnoDB says so when its files are not those of a server that was stopped in order.
const RECOVERS: &str = "InnoDB: Starting crash recovery";
const REMEDY: &str = "stop the server (mariadb-admin shutdown) and copy its data directory, or make a backup: mariadb-backup \
                      --backup, then mariadb-backup --prepare";
const DATABASES: &str = "select schema_name from information_schema.schemata where schema_name not in ('mysql', \
     'information_schema', 'performance_schema', 'sys') order by 1";

/// Looks whether a database can be made of these files; what is copied.
///
/// # Errors
/// `Unavailable`: why not, and what to do.
pub(super) fn look(programs: &Programs, dump: &Dump) -> Result<Vec<DatabaseFile>, EngineError> {
    let here = |_: &[DatabaseFile]| vec![(PathBuf::new(), dump.path.clone())];
    let found = files_at_rest(dump, &PROGRAMS, here)?;
    let mut files = found.iter();
    let log = files.find(|file| last_name(file) == "ib_logfile0");
    let Some(log) = log else {
        let reason = format!("it has no ib_logfile0, from which InnoDB starts: {REMEDY}");
        return Err(refused(dump, reason));
    };
    let creator = creator_of(&log.path).map_err(|error| refused(dump, error))?;
    if version_in(&creator) != Some(programs.version) {
        let (major, minor) = programs.version;
        let reason = format!(
            "its files are of {creator}, and the server is {} ({}): copies need the same version, {major}.{minor}. Set \
             bin_dir in [database] to the programs of the other one",
            programs.title,
            programs.server.display()
        );
        return Err(refused(dump, reason));
    }
    for name in SAID_BY_BACKUP {
        let path = dump.path.join(name);
        if std::fs::symlink_metadata(&path).is_err() {
            continue;
        }
        let said = files::read_text(&path, SAID_BYTES_MAX).map_err(|error| refused(dump, error))?;
        if !said.lines().any(|line| PREPARED.contains(&line.trim())) {
            let path = dump.path.display();
            let reason = format!(
                "it is a backup that is not prepared: mariadb-backup --prepare --target-dir={path}"
            );
            return Err(refused(dump, reason));
        }
    }
    Ok(found)
}

/// The program that made a log file, as it calls itself: `MariaDB 10.11.19`, or `Backup 10.11.19`.
fn creator_of(log: &Path) -> std::io::Result<String> {
    let mut head = [0; CREATOR.end];
    let mut log = files::open_named(log)?;
    let read = log.read_exact(&mut head);
    read.map_err(|_| std::io::Error::other("its ib_logfile0 is cut off"))?;
    let text = String::from_utf8_lossy(&head[CREATOR]).into_owned();
    Ok(text
        .chars()
        .take_while(|letter| !letter.is_control())
        .collect())
}

/// The first two numbers of its version.
fn version_in(creator: &str) -> Option<(u32, u32)> {
    let number = ["MariaDB ", "Backup "]
        .iter()
        .find_map(|name| creator.strip_prefix(name))?;
    let mut parts = number.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// Copies what was found to where each kind belongs.
///
/// # Errors
/// `Failed`; `Interrupted`.
pub(super) fn take(
    (directories, account): (&TreeDirectories, Option<&Account>),
    dump: &Dump,
    found: &[DatabaseFile],
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let whole = |path: &Path| path.canonicalize().map_err(|error| failed(dump, error));
    let source = whole(&dump.path)?;
    for (_, directory) in directories.named() {
        if whole(directory)?.starts_with(&source) {
            return Err(failed(dump, "it would be copied into itself"));
        }
    }
    let place = |file: &DatabaseFile| match file.part {
        DatabasePart::Log => directories.redo.join(&file.name),
        DatabasePart::Undo => directories.undo.join(&file.name),
        DatabasePart::Data | DatabasePart::Tablespace(_) => directories.data.join(&file.name),
    };
    let made = copy(dump, found, place, interrupted)?;
    if let Some(account) = account {
        made.iter().try_for_each(|path| account.give(path))?;
        for (_, directory) in directories.named() {
            account.give(directory)?;
        }
    }
    Ok(())
}

/// That the files were those of a server that was stopped in order, by what the copy's first start said.
///
/// # Errors
/// `Unavailable`: they do not fit together.
pub(super) fn check_log(said: &str, dump: &Dump) -> Result<(), EngineError> {
    match said.contains(RECOVERS) {
        false => Ok(()),
        true => Err(refused(
            dump,
            format!(
                "its server was not stopped in order, or worked while it was copied: such files do not fit together, and \
                 damage would show late, or never: {REMEDY}"
            ),
        )),
    }
}

/// The database that is measured: `wanted`, or the only one that people have made.
///
/// # Errors
/// `Unavailable`: there is none, or there are several.
pub(super) fn choose(
    connection: &mut dyn SqlConnection,
    wanted: Option<&str>,
    dump: &Dump,
) -> Result<String, EngineError> {
    let mut names = Vec::new();
    connection.ask(DATABASES, &mut |row| {
        names.push(row.text(0)?);
        Ok(())
    })?;
    chosen(&names, DATABASE, wanted, dump)
}

/// Notes which database is measured.
///
/// # Errors
/// The system's.
pub(super) fn note(
    directories: &TreeDirectories,
    account: Option<&Account>,
    name: &str,
) -> Result<(), EngineError> {
    let note = directories.data.join(NOTE);
    let noted = with_rights_of(account, || std::fs::write(&note, name))?;
    noted.map_err(|error| EngineError::failed(format!("writing {}", note.display()), error))
}

/// The database that is measured, of one that was copied; else Spindle's own.
///
/// # Errors
/// The system's.
pub(super) fn database(
    directories: &TreeDirectories,
    account: Option<&Account>,
) -> Result<String, EngineError> {
    let note = directories.data.join(NOTE);
    match with_rights_of(account, || std::fs::read_to_string(&note))? {
        Ok(name) => Ok(name),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(DATABASE.to_owned()),
        Err(error) => Err(EngineError::failed(
            format!("reading {}", note.display()),
            error,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_program_that_made_the_log() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("ib_logfile0");
        let mut head = vec![0; 512];
        head[16..32].copy_from_slice(b"MariaDB 10.11.19");
        std::fs::write(&log, &head).unwrap();
        assert_eq!(creator_of(&log).unwrap(), "MariaDB 10.11.19");
        std::fs::write(&log, "short").unwrap();
        creator_of(&log).unwrap_err();
        assert_eq!(version_in("MariaDB 10.11.19"), Some((10, 11)));
        assert_eq!(version_in("Backup 11.4.2"), Some((11, 4)));
        assert_eq!(version_in("MySQL 8.0.36"), None);
        assert_eq!(version_in(""), None);
    }
}
