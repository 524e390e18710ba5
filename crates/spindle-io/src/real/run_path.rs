//! Paths of a run's own files. The owner of the directory that is measured can rename what a run has there, and put
//! links in its place, while root works there. So a run's directories are entered without following any link, and its
//! files are then reached through the open directory. Other paths are a person's, whose links are followed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// The name of a run's directory begins so.
pub const RUN_DIRECTORY_PREFIX: &str = "spindle-data-";

/// A path to be opened, made or removed while this is held.
#[derive(Debug)]
pub struct RunPath {
    path: PathBuf,
    directory: Option<File>,
}

impl RunPath {
    /// The way to `path`, which may be there or not. Errors: a link, or no directory, on the way below that of the run;
    /// or the system's.
    pub fn to(path: &Path) -> io::Result<RunPath> {
        let whole = || RunPath {
            path: path.to_owned(),
            directory: None,
        };
        let (Some((outside, within)), Some(name)) = (split(path), path.file_name()) else {
            return Ok(whole());
        };
        let directories = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let outside = rustix::fs::open(&outside, directories, Mode::empty())?;
        let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        match openat2(outside, &within, directories, Mode::empty(), no_links) {
            Ok(directory) => Ok(RunPath {
                path: Path::new("/proc/self/fd")
                    .join(directory.as_raw_fd().to_string())
                    .join(name),
                directory: Some(directory.into()),
            }),
            // Before Linux 5.6, or where a sandbox does not know it.
            Err(Errno::NOSYS | Errno::PERM) => Ok(whole()),
            Err(error) => Err(error.into()),
        }
    }

    /// What to give to the system.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it, with these flags in addition to those of `options`.
    pub fn open(&self, options: &mut OpenOptions, flags: i32) -> io::Result<File> {
        let no_link = match self.directory {
            Some(_) => libc::O_NOFOLLOW,
            None => 0,
        };
        options.custom_flags(flags | no_link).open(&self.path)
    }
}

/// What lies outside of the run's directory, and the way from there to the directory of the file; `None` of a path that
/// leads into none.
fn split(path: &Path) -> Option<(PathBuf, PathBuf)> {
    let parts: Vec<Component<'_>> = path.parent()?.components().collect();
    let is_of_run = |part: &Component<'_>| match part {
        Component::Normal(name) => name.to_string_lossy().starts_with(RUN_DIRECTORY_PREFIX),
        _ => false,
    };
    let place = parts.iter().position(is_of_run)?;
    let outside: PathBuf = parts[..place].iter().collect();
    let outside = match outside.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => outside,
    };
    Some((outside, parts[place..].iter().collect()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_way_to_a_file_of_a_run_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let theirs = place.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("data1.dbf"), "theirs").unwrap();
        let linked = place.path().join("linked");
        symlink(place.path(), &linked).unwrap();
        let run = place.path().join("spindle-data-x");
        std::fs::create_dir_all(run.join("image-1")).unwrap();
        std::fs::write(run.join("image-1/data1.dbf"), "ours").unwrap();
        let read = |path: &Path| {
            let way = RunPath::to(path)?;
            let file = way.open(OpenOptions::new().read(true), 0)?;
            io::read_to_string(file)
        };
        // A person's link leads to the directory of the run.
        let by_link = linked.join("spindle-data-x/image-1/data1.dbf");
        assert_eq!(read(&by_link).unwrap(), "ours");
        assert_eq!(read(&theirs.join("data1.dbf")).unwrap(), "theirs");
        // The file, its directory, and that of the run are links.
        std::fs::remove_file(run.join("image-1/data1.dbf")).unwrap();
        symlink(theirs.join("data1.dbf"), run.join("image-1/data1.dbf")).unwrap();
        assert!(read(&run.join("image-1/data1.dbf")).is_err());
        symlink(&theirs, run.join("image-2")).unwrap();
        assert!(read(&run.join("image-2/data1.dbf")).is_err());
        symlink(&run, place.path().join("spindle-data-y")).unwrap();
        std::fs::remove_file(run.join("image-1/data1.dbf")).unwrap();
        std::fs::write(run.join("image-1/data1.dbf"), "ours").unwrap();
        assert!(read(&place.path().join("spindle-data-y/image-1/data1.dbf")).is_err());
        assert_eq!(read(&run.join("image-1/data1.dbf")).unwrap(), "ours");
    }

    #[test]
    fn the_directory_of_a_run_is_known_by_its_name() {
        let of = |path: &str| {
            let (outside, within) = split(Path::new(path))?;
            Some((outside.display().to_string(), within.display().to_string()))
        };
        let parts = |outside: &str, within: &str| Some((outside.to_owned(), within.to_owned()));
        assert_eq!(of("/a/spindle-data-1/b/c"), parts("/a", "spindle-data-1/b"));
        assert_eq!(of("spindle-data-1/c"), parts(".", "spindle-data-1"));
        assert_eq!(of("/a/spindle-data-1"), None, "that directory itself");
        assert_eq!(of("/a/b/c"), None);
    }
}
