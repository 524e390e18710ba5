//! The only place that makes, changes and opens files of run directories. Such a directory may come from a stranger or
//! lie where others write: a name in it can be a link to a file of root's, a pipe that never answers, a device. So a
//! [`Directory`] is a descriptor, resolved once; every name is looked up in it by `openat`, no link is followed, and
//! only regular files are opened. A file is written as a new one under a name that cannot be guessed, then renamed. It
//! exists as a whole or not at all, and what stood in its place is never written to. `clippy.toml` keeps other code
//! from making files.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fcntl_getfl, fcntl_setfl, fstat, mkdirat, open,
    openat, readlinkat, renameat, stat, statat, unlinkat,
};
use rustix::io::Errno;

/// No file of a run directory that is read is larger, bytes: it is read into memory.
const READ_BYTES_MAX: u64 = 1 << 30;
/// What a file is called until it is whole begins so, and ends with random digits.
const UNFINISHED: &str = ".spindle-new-";
/// Permissions before the process's mask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const PRIVATE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// Opening a pipe would wait for its other end, opening a terminal would take it.
const WITHOUT_WAITING: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const IS_LINK: &str = "it is a symbolic link, and links in a run directory are not followed: put the thing itself in its place";

/// A directory that files are kept in, open.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
    /// What was made when it was opened: itself, then its parents.
    made: Vec<PathBuf>,
    /// Permissions of new files in it.
    file_mode: Mode,
}

impl Directory {
    /// Opens a directory. The path may lead through links, for a person named it; it is resolved once.
    ///
    /// # Errors
    /// There is none, or the system's.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let descriptor = open(path.canonicalize()?, of_directory(), Mode::empty())?;
        Ok(Directory {
            descriptor,
            path: path.to_owned(),
            made: Vec::new(),
            file_mode: FILE_MODE,
        })
    }

    /// Opens a directory, which is made if need be, its parents, too.
    ///
    /// # Errors
    /// The system's.
    pub fn make(path: &Path) -> io::Result<Directory> {
        match Directory::make_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Directory::open(path),
            made => made,
        }
    }

    /// Opens a directory that is not there yet. Its parents are made if need be.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when it exists; or the system's.
    pub fn make_new(path: &Path) -> io::Result<Directory> {
        let mut made = Vec::new();
        if let Some(parent) = path.parent() {
            let missing = parent.ancestors().take_while(|above| !above.exists());
            made.extend(missing.map(Path::to_owned));
            fs::create_dir_all(parent)?;
        }
        fs::create_dir(path)?;
        made.insert(0, path.to_owned());
        Ok(Directory {
            made,
            ..Directory::open(path)?
        })
    }

    /// From now on only this user may read the files that are made in it.
    #[must_use]
    pub fn private(self) -> Directory {
        Directory {
            file_mode: PRIVATE_MODE,
            ..self
        }
    }

    /// Removes the directory, and its parents, as far as they were made when it was opened and are empty.
    pub fn remove_if_made(&self) {
        // What is in one stays; that it does is no mistake.
        let mut made = self.made.iter();
        while made.next().is_some_and(|path| fs::remove_dir(path).is_ok()) {}
    }

    /// The directory, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in this one, which is made if need be.
    ///
    /// # Errors
    /// Something else has that name, a link for one; or the system's.
    pub fn subdirectory(&self, name: &str) -> io::Result<Directory> {
        match mkdirat(&self.descriptor, plain_name(name)?, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        if readlinkat(&self.descriptor, name, Vec::new()).is_ok() {
            return Err(io::Error::other(IS_LINK));
        }
        let descriptor = openat(&self.descriptor, name, of_directory(), Mode::empty())?;
        Ok(Directory {
            descriptor,
            path: self.path.join(name),
            made: Vec::new(),
            file_mode: self.file_mode,
        })
    }

    /// Writes a file as a whole: readers see the old one or the new one. When that fails, nothing of it is left.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        // The standard library keys its hashes by the system's random numbers.
        let number = RandomState::new().hash_one(name);
        let unfinished = format!("{UNFINISHED}{number:016x}");
        let mut file = self.create_new(&unfinished)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| {
            Ok(renameat(
                &self.descriptor,
                &unfinished,
                &self.descriptor,
                plain_name(name)?,
            )?)
        });
        if written.is_err() {
            // The first error is the one to be told.
            let _ = self.remove(&unfinished);
        }
        written
    }

    /// Makes a file that is not there yet.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`], whatever it is that has the name; or the system's.
    pub fn create_new(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, plain_name(name)?, flags, self.file_mode)?.into())
    }

    /// Opens a file to be read.
    ///
    /// # Errors
    /// It is no regular file, a link for one; or the system's.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        self.regular(name, OFlags::RDONLY)
    }

    /// Opens a file to be read and added to; `makes` it when it does not exist. It must have this name only, and belong
    /// to this process's user or to the directory's: no other user's file is changed.
    ///
    /// # Errors
    /// It is no such file; or the system's.
    pub fn open_to_add(&self, name: &str, makes: bool) -> io::Result<File> {
        let making = if makes {
            OFlags::CREATE
        } else {
            OFlags::empty()
        };
        let file = self.regular(name, OFlags::RDWR | OFlags::APPEND | making)?;
        let found = file.metadata()?;
        if found.nlink() != 1 {
            return Err(io::Error::other(format!(
                "the file has {} names (hard links), and a change would show under all of them: copy the directory with `cp -r`, \
                 and name the copy",
                found.nlink()
            )));
        }
        let own = rustix::process::geteuid().as_raw();
        if found.uid() != own && found.uid() != fstat(&self.descriptor)?.st_uid {
            return Err(io::Error::other(format!(
                "the file belongs to another user (id {}) than its directory",
                found.uid()
            )));
        }
        Ok(file)
    }

    /// All of a file.
    ///
    /// # Errors
    /// As for [`Directory::open_file`]; it is larger than what is ever read.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        read_all(&self.open_file(name)?)
    }

    /// Whether there is something of that name.
    pub fn has(&self, name: &str) -> bool {
        statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(
            &self.descriptor,
            plain_name(name)?,
            AtFlags::empty(),
        )?)
    }

    /// Names of what is in it, sorted; not of files that a dead process of this program left unfinished.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name != "." && name != ".." && !name.starts_with(UNFINISHED));
        names.sort();
        Ok(names)
    }

    fn regular(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let name = plain_name(name)?;
        match statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => must_be_regular(&found)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = flags | OFlags::NOFOLLOW | WITHOUT_WAITING;
        let file = openat(&self.descriptor, name, flags, self.file_mode)?;
        must_be_regular(&fstat(&file)?)?;
        Ok(file.into())
    }
}

/// Writes a file at a path that a person named, as a whole. A link is replaced, not followed.
///
/// # Errors
/// The system's.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let (directory, name) = split(path)?;
    directory.write(name, text)
}

/// Makes a file at a path where there is nothing yet.
///
/// # Errors
/// As for [`Directory::create_new`].
pub fn create_new(path: &Path) -> io::Result<File> {
    let (directory, name) = split(path)?;
    directory.create_new(name)
}

/// The directory of a path, open, and the name in it.
fn split(path: &Path) -> io::Result<(Directory, &str)> {
    let name = path.file_name().and_then(OsStr::to_str);
    let name = name.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "this names no file"))?;
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    Ok((Directory::open(parent)?, name))
}

/// All of a regular file that a person named, links followed.
///
/// # Errors
/// It is no regular file, or larger than `bytes_max`; or the system's.
pub fn read_named(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_up_to(&open_named(path)?, bytes_max)
}

/// Opens a regular file that a person named, to be read, links followed. Nothing else is opened: a pipe would wait for
/// its other end, a device may do something.
///
/// # Errors
/// It is no regular file ([`ErrorKind::InvalidInput`]); or the system's.
pub fn open_named(path: &Path) -> io::Result<File> {
    must_be_regular(&stat(path)?)?;
    let flags = OFlags::RDONLY | WITHOUT_WAITING;
    let file = open(path, flags, Mode::empty())?;
    must_be_regular(&fstat(&file)?)?;
    // Only opening must not wait: readers, and programs that get it, know nothing of "try again".
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// The text of a regular file that a person named, links followed.
///
/// # Errors
/// As for [`read_named`]; it says where it is no text.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(read_named(path, bytes_max)?)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let reason = format!("byte {at} and those after it are not UTF-8");
        io::Error::new(ErrorKind::InvalidData, reason)
    })
}

/// Text from standard input, of at most `bytes_max`.
///
/// # Errors
/// It has more, or is not UTF-8; or the system's.
pub fn read_piped(bytes_max: u64) -> io::Result<String> {
    text_of(read_up_to(io::stdin().lock(), bytes_max)?)
}

/// All that follows the place in a file, if that is no more than any file of a run directory has.
///
/// # Errors
/// It is more; or the system's.
pub fn read_all(file: &File) -> io::Result<Vec<u8>> {
    read_up_to(file, READ_BYTES_MAX)
}

fn read_up_to(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "it has more than {} MiB, the most that is read",
                bytes_max >> 20
            ),
        ));
    }
    Ok(bytes)
}

/// Looked at before a file is opened, for opening a device can do something, and after, for it may be another by then.
fn must_be_regular(found: &Stat) -> io::Result<()> {
    let found = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => return Err(io::Error::other(IS_LINK)),
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe (FIFO)",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Socket => "a socket",
        _ => "something else",
    };
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("it is {found}, and a regular file is needed"),
    ))
}

fn of_directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// The name, when it is one: not a path that leads elsewhere.
fn plain_name(name: &str) -> io::Result<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{name:?} is not a file name"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn scene() -> (tempfile::TempDir, Directory, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let run = Directory::make(&place.path().join("run")).unwrap();
        (place, run, victim)
    }

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_is_not_written() {
        let (_place, run, victim) = scene();
        symlink(&victim, run.path().join("report.html")).unwrap();
        run.write("report.html", "new").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(run.read("report.html").unwrap(), b"new");
        assert_eq!(run.names().unwrap(), ["report.html"]);
    }

    #[test]
    fn nothing_but_a_regular_file_is_opened() {
        let (place, run, victim) = scene();
        symlink(&victim, run.path().join("link")).unwrap();
        fs::create_dir(run.path().join("directory")).unwrap();
        let fifo = run.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        for name in ["link", "directory", "fifo", "../victim", "."] {
            for error in [
                run.read(name).unwrap_err(),
                run.open_to_add(name, true).unwrap_err(),
            ] {
                assert!(!error.to_string().is_empty(), "{name}");
            }
        }
        assert!(read_named(&fifo, 10).is_err());
        assert!(read_named(Path::new("/dev/zero"), 10).is_err());
        assert!(read_named(&victim, 4).is_err());
        assert_eq!(
            read_named(&place.path().join("run/link"), 10).unwrap(),
            b"precious"
        );
    }

    #[test]
    fn files_of_a_private_directory_are_for_this_user_only() {
        let (_place, run, _) = scene();
        let run = run.private();
        run.write("whole", "secret").unwrap();
        run.create_new("new").unwrap();
        run.open_to_add("added", true).unwrap();
        let below = run.subdirectory("below").unwrap();
        below.write("whole", "secret").unwrap();
        for name in ["whole", "new", "added", "below/whole"] {
            let mode = fs::metadata(run.path().join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let (place, run, _) = scene();
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, run.path().join("series")).unwrap();
        let error = run.subdirectory("series").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        run.subdirectory("other").unwrap().write("a", "b").unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_stays_the_one_that_was_opened() {
        let (place, run, _) = scene();
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::rename(run.path(), place.path().join("moved")).unwrap();
        symlink(&elsewhere, run.path()).unwrap();
        run.write("a", "b").unwrap();
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert!(place.path().join("moved/a").exists());
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_nothing() {
        let (_place, run, _) = scene();
        fs::create_dir(run.path().join("result.json")).unwrap();
        run.write("result.json", "text").unwrap_err();
        let left = fs::read_dir(run.path()).unwrap().count();
        assert_eq!(left, 1, "only what was there");
    }

    #[test]
    fn a_file_with_another_name_elsewhere_is_not_added_to() {
        let (_place, run, victim) = scene();
        fs::hard_link(&victim, run.path().join("journal")).unwrap();
        let error = run.open_to_add("journal", false).unwrap_err().to_string();
        assert!(error.contains("hard link"), "{error}");
    }
}
