//! What a single thread has written, as the system counts it: by this a client that has changed nothing knows how much
//! its queries wrote to temporary files, where the database itself does not tell. Sockets are not in that count.

use std::fs;
use std::path::Path;

/// A line of a thread's `io` (proc_pid_io(5)); `None` when it is not there.
pub(crate) fn field_of(io: &str, key: &str) -> Option<u64> {
    let line = io.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|value| value.trim().parse().ok())
}

/// Bytes that the thread of a directory in `/proc` has written so far; `None` where the system does not tell.
pub(crate) fn written_bytes(task: &Path) -> Option<u64> {
    let io = fs::read_to_string(task.join("io")).ok()?;
    field_of(&io, "wchar:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_thread_writes_is_counted_and_what_another_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str| fs::write(directory.path().join(name), [1; 12_345]).unwrap();
        let so_far = || written_bytes(Path::new("/proc/thread-self")).expect("Linux counts");
        let before = so_far();
        std::thread::scope(|scope| scope.spawn(|| write("other")).join().unwrap());
        assert_eq!(so_far(), before);
        write("own");
        assert_eq!(so_far(), before + 12_345);
    }
}
