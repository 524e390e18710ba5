//! The files of a stopped server, copied into directories of Spindle's own. Before, a look whether a server still works
//! on them; what is copied is only read, and links are followed nowhere.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::OFlags;
use spindle_system::open_files::{OpenFiles, OpenFor};
use spindle_system::{StoragePlace, SystemTree, processes};
use spindle_text::load_file::Dump;
use spindle_text::load_file::server_files::DatabaseFile;

use super::restore::failed;
use crate::{EngineError, ErrorKind};

const PIECE_BYTES: usize = 1 << 20;

/// What is copied, as it was when the experiment was read: no server works on it. None of its files is open to be
/// written, and no process called as one of `programs` works where one of the places is that `places` says. A place is
/// a path from a server's working directory, and the same place here.
///
/// # Errors
/// `Unavailable`: who works there, and what to do; it has changed, is gone, or holds what no server makes.
pub(crate) fn files_at_rest(
    dump: &Dump,
    programs: &[&str],
    places: impl Fn(&[DatabaseFile]) -> Vec<(PathBuf, PathBuf)>,
) -> Result<Vec<DatabaseFile>, EngineError> {
    let found = dump.files().map_err(|error| refused(dump, error))?;
    check_at_rest(dump, &found, programs, &places(&found))?;
    dump.check().map_err(|error| refused(dump, error))?;
    Ok(found)
}

/// Why files cannot be copied.
pub(crate) fn refused(dump: &Dump, reason: impl std::fmt::Display) -> EngineError {
    EngineError::unavailable(format!("{} cannot be copied: {reason}", dump.name))
}

fn check_at_rest(
    dump: &Dump,
    found: &[DatabaseFile],
    programs: &[&str],
    places: &[(PathBuf, PathBuf)],
) -> Result<(), EngineError> {
    const REMEDY: &str =
        "stop that server and copy its files, or make a backup of it and name that";
    let tree = SystemTree::default();
    for process in processes::ids(&tree) {
        let program = processes::program_of(&tree, process).unwrap_or_default();
        let is_server = programs.iter().any(|name| name.as_bytes() == program);
        if is_server
            && places
                .iter()
                .any(|(from_there, here)| processes::works_at(&tree, process, from_there, here))
        {
            let program = String::from_utf8_lossy(&program).into_owned();
            let reason = format!("{program} (process {process}) works on it: {REMEDY}");
            return Err(refused(dump, reason));
        }
    }
    let open = OpenFiles::read(&tree);
    for file in found {
        let storage = StoragePlace::of(&file.metadata).into_iter();
        let mut holders = storage.flat_map(|storage| open.holders(storage));
        let is_read = |open_for| matches!(open_for, OpenFor::Reading | OpenFor::Mapped);
        if let Some(holder) = holders.find(|holder| !is_read(holder.open_for)) {
            let reason = format!("{} is {holder}: {REMEDY}", file.path.display());
            return Err(refused(dump, reason));
        }
    }
    Ok(())
}

/// Copies what was found, each to the path that `place` says, for this user alone. Directories above exist. Returns
/// what was made, a directory before what is in it.
///
/// # Errors
/// The system's; it has changed meanwhile; `Interrupted`.
pub(crate) fn copy(
    dump: &Dump,
    found: &[DatabaseFile],
    place: impl Fn(&DatabaseFile) -> PathBuf,
    interrupted: &AtomicBool,
) -> Result<Vec<PathBuf>, EngineError> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut made = Vec::new();
    for from in found {
        let to = place(from);
        match from.is_directory() {
            true => make_directory(&to)?,
            false => copy_file(&from.path, &to, &mut piece, interrupted)?,
        }
        made.push(to);
    }
    // A server that was started meanwhile has written.
    dump.check().map_err(|error| failed(dump, error))?;
    Ok(made)
}

/// Makes a directory for this user alone.
///
/// # Errors
/// The system's.
pub(crate) fn make_directory(path: &Path) -> Result<(), EngineError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| EngineError::failed(format!("making {}", path.display()), error))
}

/// Makes a file with this text, for this user alone.
///
/// # Errors
/// The system's.
pub(crate) fn make_file(path: &Path, text: &str) -> Result<(), EngineError> {
    let written = create(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| EngineError::failed(format!("writing {}", path.display()), error))
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn copy_file(
    from: &Path,
    to: &Path,
    piece: &mut [u8],
    interrupted: &AtomicBool,
) -> Result<(), EngineError> {
    let wrong = |error| EngineError::failed(format!("copying {}", from.display()), error);
    let mut source = open(from).map_err(wrong)?;
    let mut file = create(to).map_err(wrong)?;
    loop {
        if interrupted.load(Ordering::Relaxed) {
            return Err(EngineError::new(ErrorKind::Interrupted, "interrupted"));
        }
        match source.read(piece).map_err(wrong)? {
            0 => return Ok(()),
            bytes => file.write_all(&piece[..bytes]).map_err(wrong)?,
        }
    }
}

/// Opens a regular file to be read. What has come into its place meanwhile is not waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file any longer")),
    }
}

/// The last part of a file's name in a copy, such as that of a piece of a log.
pub(crate) fn last_name(found: &DatabaseFile) -> &OsStr {
    found.name.file_name().unwrap_or_default()
}

/// The database of a copy that is measured: `wanted`, or the only one beside the server's `own`, which counts
/// where there is no other.
///
/// # Errors
/// `Unavailable`: there is none, or there are several.
pub(crate) fn chosen(
    names: &[String],
    own: &str,
    wanted: Option<&str>,
    dump: &Dump,
) -> Result<String, EngineError> {
    let made: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| *name != own)
        .collect();
    let has = |name: &str| names.iter().any(|there| there == name);
    let no = |reason: String| Err(refused(dump, reason));
    match (wanted, &made[..]) {
        (Some(wanted), _) if has(wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => no(format!(
            "it has no database {wanted}, as name in [database] says; it has {}",
            names.join(", ")
        )),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) if has(own) => Ok(own.to_owned()),
        (None, []) => no("there is no database in it".to_owned()),
        (None, several) => no(format!(
            "it has several databases, {}, and one is measured: say which with name in [database]",
            several.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use spindle_text::load_file::DumpForm;

    use super::*;

    #[test]
    fn the_only_database_is_chosen_and_of_several_the_one_that_is_named() {
        let dump = Dump {
            name: "base".to_owned(),
            path: "/base".into(),
            form: DumpForm::PostgresFiles,
            bytes: 0,
            changed_ns: 0,
        };
        let chosen = |names: &[&str], wanted| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            chosen(&names, "postgres", wanted, &dump).map_err(|error| error.to_string())
        };
        assert_eq!(chosen(&["postgres", "shop"], None), Ok("shop".to_owned()));
        assert_eq!(chosen(&["postgres"], None), Ok("postgres".to_owned()));
        let several = ["postgres", "shop", "stock"];
        assert_eq!(chosen(&several, Some("stock")), Ok("stock".to_owned()));
        let told = chosen(&several, None).unwrap_err();
        assert!(
            told.contains("several databases, shop, stock, and"),
            "{told}"
        );
        let told = chosen(&several, Some("shops")).unwrap_err();
        assert!(
            told.contains("no database shops") && told.contains("postgres, shop"),
            "{told}"
        );
        assert!(chosen(&[], None).is_err());
    }
}
