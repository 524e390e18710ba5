//! Whether files can be made in a directory, by what shows without making one: plans ask before anything is touched.

use std::io;
use std::path::Path;

use spindle_text::remedy::with_remedy;

use rustix::fs::{Access, AtFlags, CWD, FsWord, StatVfsMountFlags, accessat, statfs, statvfs};

/// File systems of the kernel that hold no files of others, by their magic numbers (`linux/magic.h`).
const OF_THE_KERNEL: [(FsWord, &str); 10] = [
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0x1cd1, "devpts"),
    (0x1980_0202, "mqueue"),
    (0x6265_6570, "configfs"),
];

/// Why no file can be made in this directory; `None` where nothing stands in the way.
pub fn why_no_file(directory: &Path) -> Option<String> {
    match looked_at(directory) {
        Ok(reason) => reason,
        Err(error) => Some(format!("{}: {}", directory.display(), with_remedy(&error))),
    }
}

fn looked_at(directory: &Path) -> io::Result<Option<String>> {
    let shown = directory.display();
    if !directory.metadata()?.is_dir() {
        return Ok(Some(format!("{shown} is not a directory")));
    }
    let kind = statfs(directory)?.f_type;
    if let Some((_, name)) = OF_THE_KERNEL.iter().find(|(magic, _)| *magic == kind) {
        return Ok(Some(format!("{shown} is {name}, which holds no files")));
    }
    if statvfs(directory)?
        .f_flag
        .contains(StatVfsMountFlags::RDONLY)
    {
        return Ok(Some(format!(
            "{shown} is on a file system mounted read-only"
        )));
    }
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, directory, rights, AtFlags::EACCESS) {
        Ok(()) => Ok(None),
        Err(error) => {
            let why = with_remedy(&error.into());
            Ok(Some(format!("{shown} may not be written to: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_where_files_can_be_made_nothing_stands_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(why_no_file(directory.path()), None);
        let missing = why_no_file(&directory.path().join("none")).unwrap();
        assert!(missing.contains("No such file"), "{missing}");
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(why_no_file(&file).unwrap().ends_with("is not a directory"));
        let of_the_kernel = why_no_file(Path::new("/proc/self")).unwrap();
        assert!(
            of_the_kernel.ends_with("is proc, which holds no files"),
            "{of_the_kernel}"
        );
    }
}
