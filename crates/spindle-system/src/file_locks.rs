//! Whether the threads that write are waiting for the lock of a file: every file system lets one buffered write at a
//! time into a file, and some direct ones. Where a thread sleeps is in `/proc/PID/task/TID/wchan` (proc_pid_wchan(5)):
//! the function outside the scheduler and the locks themselves that it was in.

use std::path::PathBuf;

use super::{SystemTree, text};

/// Names that the writing threads of a database begin with: database writers, LGWR, I/O slaves, and the threads on
/// which io_uring carries out what would block (`iou-wrk-`).
const WRITERS: [&str; 4] = ["dbw", "lgwr", "ioslave", "iou-wrk-"];
/// io_uring makes threads as it needs them: this many looks later they are listed again.
const LISTED_FOR_LOOKS: u32 = 16;

/// Threads that write, looked at again and again.
#[derive(Debug)]
pub struct WritingThreads {
    files: SystemTree,
    process_id: u32,
    listed: Vec<PathBuf>,
    looks: u32,
}

impl WritingThreads {
    /// Those of a process.
    pub fn of(files: SystemTree, process_id: u32) -> WritingThreads {
        WritingThreads {
            files,
            process_id,
            listed: Vec::new(),
            looks: 0,
        }
    }

    /// How many of them wait for a file's lock at this moment; `None` when the system does not say where threads sleep.
    pub fn waiting(&mut self) -> Option<u32> {
        if self.looks.is_multiple_of(LISTED_FOR_LOOKS) {
            self.listed = self.list();
        }
        self.looks += 1;
        let mut known = self
            .listed
            .iter()
            .filter_map(|task| text(&task.join("wchan")))
            .peekable();
        known.peek()?;
        Some(known.filter(|function| is_lock_of_file(function)).count() as u32)
    }

    fn list(&self) -> Vec<PathBuf> {
        let tasks = self.files.proc.join(self.process_id.to_string());
        let Ok(tasks) = std::fs::read_dir(tasks.join("task")) else {
            return Vec::new();
        };
        let is_writer = |task: &PathBuf| {
            let name = text(&task.join("comm")).unwrap_or_default();
            WRITERS.iter().any(|writer| name.starts_with(writer))
        };
        let tasks = tasks.flatten().map(|task| task.path());
        tasks.filter(is_writer).collect()
    }
}

/// Whether a thread that sleeps in this function of the kernel waits for the lock of an inode: ext4 takes it in
/// `ext4_file_write_iter` and `ext4_buffered_write_iter`, XFS in `xfs_ilock`, btrfs in `btrfs_inode_lock`; kernels that
/// count the lock itself among the functions say `rwsem_down_write_slowpath` or the like.
fn is_lock_of_file(function: &str) -> bool {
    function.ends_with("_write_iter")
        || function.starts_with("xfs_ilock")
        || function.ends_with("inode_lock")
        || function.starts_with("rwsem_down_")
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Fixture;
    use super::*;

    #[test]
    fn only_writers_that_sleep_on_a_lock_count() {
        let fixture = Fixture::with(&[
            ("proc/7/task/1/comm", "dbw0\n"),
            ("proc/7/task/1/wchan", "ext4_file_write_iter"),
            ("proc/7/task/2/comm", "dbw1\n"),
            ("proc/7/task/2/wchan", "submit_bio_wait"),
            ("proc/7/task/3/comm", "ioslave0\n"),
            ("proc/7/task/3/wchan", "0"),
            ("proc/7/task/4/comm", "client0\n"),
            ("proc/7/task/4/wchan", "ext4_file_write_iter"),
        ]);
        let mut threads = WritingThreads::of(fixture.files(), 7);
        assert_eq!(threads.waiting(), Some(1));
        fixture.write("proc/7/task/3/wchan", "xfs_ilock_iocb");
        assert_eq!(threads.waiting(), Some(2));
        assert_eq!(WritingThreads::of(fixture.files(), 8).waiting(), None);
    }

    #[test]
    fn new_threads_are_found_after_some_looks() {
        let fixture = Fixture::with(&[
            ("proc/7/task/1/comm", "dbw0\n"),
            ("proc/7/task/1/wchan", "0"),
        ]);
        let mut threads = WritingThreads::of(fixture.files(), 7);
        assert_eq!(threads.waiting(), Some(0));
        fixture.write("proc/7/task/2/comm", "iou-wrk-1\n");
        fixture.write("proc/7/task/2/wchan", "btrfs_inode_lock");
        let looks: Vec<_> = (1..=LISTED_FOR_LOOKS).map(|_| threads.waiting()).collect();
        assert_eq!(looks.last(), Some(&Some(1)));
        assert_eq!(looks[0], Some(0));
    }
}
