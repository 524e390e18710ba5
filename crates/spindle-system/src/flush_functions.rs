//! Who answers when a program calls `fsync`: the C library, which asks the kernel, or a library in front of it
//! (`LD_PRELOAD`, `/etc/ld.so.preload`, a link). Such a library may do nothing, as libeatmydata does. Only who answers
//! is found, not what it does.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use elf::ElfStream;
use elf::endian::AnyEndian;

use super::SystemTree;

/// Functions of the C library by which programs flush (fsync(2), msync(2), sync(2), sync_file_range(2)), or ask that
/// writes are flushed (open(2), O_DSYNC; pwritev2(2), RWF_DSYNC).
const FLUSH_FUNCTIONS: [&str; 12] = [
    "fsync",
    "fdatasync",
    "msync",
    "sync",
    "syncfs",
    "sync_file_range",
    "open",
    "open64",
    "openat",
    "openat64",
    "pwritev2",
    "pwritev64v2",
];
/// How names of files begin that are a C library or its loader: glibc's, musl's.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "libc.musl", "libpthread", "ld-"];

/// Libraries of a process, the C library left out, that define a function by which programs flush.
///
/// # Errors
/// What the process has mapped may not be looked at, or it has ended.
pub fn libraries_that_flush(tree: &SystemTree, process_id: u32) -> std::io::Result<Vec<PathBuf>> {
    let maps = std::fs::read(tree.proc.join(format!("{process_id}/maps")))?;
    let root = tree.proc.join(format!("{process_id}/root"));
    let mapped = programs_in(&String::from_utf8_lossy(&maps));
    let found = mapped.into_iter().filter(|path| {
        // As the process sees it: it may live in another mount namespace.
        let below_root = path.strip_prefix("/").unwrap_or(path);
        !is_c_library(path) && defines_flush(&root.join(below_root))
    });
    Ok(found.collect())
}

/// Files that are mapped to be executed (proc_pid_maps(5)).
fn programs_in(maps: &str) -> BTreeSet<PathBuf> {
    let lines = maps.lines().filter_map(|line| {
        let permissions = line.split_whitespace().nth(1)?;
        let path = &line[line.find('/')?..];
        permissions.contains('x').then(|| PathBuf::from(path))
    });
    lines.collect()
}

fn is_c_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    C_LIBRARIES.iter().any(|start| name.starts_with(start))
}

/// Whether a file offers other programs such a function; not when it is none that the loader could read.
fn defines_flush(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let Ok(mut file) = ElfStream::<AnyEndian, _>::open_stream(file) else {
        return false;
    };
    let Ok(Some((symbols, names))) = file.dynamic_symbol_table() else {
        return false;
    };
    symbols.iter().any(|symbol| {
        let name = names.get(symbol.st_name as usize).unwrap_or_default();
        !symbol.is_undefined() && FLUSH_FUNCTIONS.contains(&name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_alone_answers_in_this_process() {
        let tree = SystemTree::default();
        let found = libraries_that_flush(&tree, std::process::id()).unwrap();
        assert_eq!(found, Vec::<PathBuf>::new());
        let maps = tree.proc_text("self/maps").unwrap();
        let c_library = programs_in(&maps)
            .into_iter()
            .find(|path| is_c_library(path));
        let c_library = c_library.expect("tests are linked to a C library");
        assert!(
            defines_flush(&c_library) || c_library.to_string_lossy().contains("/ld-"),
            "{}",
            c_library.display()
        );
    }

    #[test]
    fn only_files_that_are_executed_are_looked_at() {
        let maps = "\
7f0-7f1 r--p 00000000 fe:00 1 /lib/a.so
7f1-7f2 r-xp 00001000 fe:00 1 /lib/a.so
7f2-7f3 r--p 00000000 fe:00 2 /data/file
7f3-7f4 r-xp 00000000 fe:00 3 /lib/with space.so
7f4-7f5 r-xp 00000000 00:00 0 [vdso]
";
        let paths: Vec<PathBuf> = programs_in(maps).into_iter().collect();
        assert_eq!(
            paths,
            [
                PathBuf::from("/lib/a.so"),
                PathBuf::from("/lib/with space.so")
            ]
        );
    }

    #[test]
    fn who_has_ended_is_an_error() {
        assert!(libraries_that_flush(&SystemTree::default(), u32::MAX).is_err());
    }
}
