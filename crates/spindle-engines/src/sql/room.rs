//! The room that a server's files take. And what a server that has ended may not have been able to say: that its disk
//! is full, and with it the file of its own log.

use std::path::Path;

use spindle_text::quantity::size_free;

/// Bytes that a server's files take beside the loaded data, about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerRoom {
    /// Its own files, which exist from the beginning: catalogues, system tablespaces, undo.
    pub own_bytes: u64,
    /// Redo (the write-ahead log), as large as its settings let it be.
    pub redo_bytes: u64,
    /// What trials may add: new versions of rows, more undo, temporary files, redo beyond its limit.
    pub growth_bytes: u64,
}

impl ServerRoom {
    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.own_bytes + self.redo_bytes + self.growth_bytes
    }
}

/// With less than that a server may end: PostgreSQL makes its log in pieces of this size, InnoDB its temporary
/// tablespace of nearly as much.
const LITTLE_BYTES: u64 = 16 << 20;

/// What is to be said of the first of these directories whose file system has next to no room left; nothing when all
/// have.
pub fn said_of_full_disks<'a>(directories: impl IntoIterator<Item = &'a Path>) -> String {
    let free_bytes = |directory: &Path| {
        let found = rustix::fs::statvfs(directory).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    };
    let said = directories
        .into_iter()
        .find_map(|directory| said_of(directory, free_bytes(directory)?));
    said.unwrap_or_default()
}

fn said_of(directory: &Path, free_bytes: u64) -> Option<String> {
    (free_bytes < LITTLE_BYTES).then(|| {
        format!(
            "; the disk is full: {} are free in {}",
            size_free(free_bytes),
            directory.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_disks_are_mentioned() {
        let place = Path::new("/data");
        assert_eq!(said_of(place, LITTLE_BYTES), None);
        assert_eq!(
            said_of(place, 4096).unwrap(),
            "; the disk is full: 4 KiB are free in /data"
        );
        assert_eq!(said_of_full_disks([Path::new("/there is none")]), "");
    }
}
