//! A line of the kernel's mount table, taken apart. The one place that knows its form: code that reads the table for a
//! decision about a device is above this crate.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountLine {
    /// The mount's number, as statx(2) gives it for files there.
    pub id: u64,
    /// Major number of what `stat` gives for files here; 0 when no single block device lies beneath.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount and of the file system, comma separated, each once.
    pub options: String,
    /// Type, such as `ext4`.
    pub kind: String,
    /// What was mounted, as the one who mounted it wrote it.
    pub source: PathBuf,
}

impl MountLine {
    /// Reads a line; `None` when it is not as documented.
    pub fn parse(line: &[u8]) -> Option<MountLine> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        // After six fields come optional ones, then a hyphen.
        let hyphen = 6 + fields.get(6..)?.iter().position(|field| *field == b"-")?;
        let text = |at: usize| String::from_utf8_lossy(fields.get(at).copied().unwrap_or_default());
        let (major, minor) = std::str::from_utf8(fields[2]).ok()?.split_once(':')?;
        Some(MountLine {
            id: std::str::from_utf8(fields[0]).ok()?.parse().ok()?,
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
            root: unescaped(fields[3]),
            mount_point: unescaped(fields[4]),
            options: join_options(&text(5), &text(hyphen + 3)),
            kind: String::from_utf8_lossy(fields.get(hyphen + 1)?).into_owned(),
            source: unescaped(fields.get(hyphen + 2)?),
        })
    }
}

fn join_options(of_mount: &str, of_file_system: &str) -> String {
    let mut options: Vec<&str> = Vec::new();
    for option in of_mount.split(',').chain(of_file_system.split(',')) {
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(",")
}

/// A field of the kernel's tables without the octal escapes (`\040` for a space) of blanks and the like.
pub fn unescaped(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut at = 0;
    while at < field.len() {
        let escaped = (field[at] == b'\\')
            .then(|| std::str::from_utf8(field.get(at + 1..at + 4)?).ok())
            .flatten()
            .and_then(|octal| u8::from_str_radix(octal, 8).ok());
        plain.push(escaped.unwrap_or(field[at]));
        at += if escaped.is_some() { 4 } else { 1 };
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let line = |text: &str| MountLine::parse(text.as_bytes());
        let root = line("29 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard").unwrap();
        assert_eq!((root.id, root.major), (29, 254));
        assert_eq!(root.options, "rw,relatime,discard");
        let disk = line(
            "71 29 0:42 /sub /mnt/my\\040disk\\134 rw,noatime shared:1 master:2 - btrfs /dev/loop\\0401 rw,space_cache",
        )
        .unwrap();
        assert_eq!(disk.mount_point, PathBuf::from("/mnt/my disk\\"));
        assert_eq!(disk.kind, "btrfs");
        assert_eq!(disk.source, PathBuf::from("/dev/loop 1"));
        for broken in ["nonsense", "", "27 1 8:0 / / rw ext4 /dev/sda rw"] {
            assert_eq!(line(broken), None, "{broken}");
        }
    }
}
