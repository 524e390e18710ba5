//! Locks of open files (`flock`). A killed process may hold one for a moment longer: its requests are under way, or a
//! program that it was starting still shares its open files. So taking a lock waits that long.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How long a process that was killed may take to let its files go.
pub const DYING: Duration = Duration::from_secs(1);

const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// Takes the lock, which goes with the open file; false when another holds it for longer than `patience`. It polls,
/// because the system's call that waits has no limit.
///
/// # Errors
/// The system's.
pub fn is_locked_within(file: &File, patience: Duration) -> io::Result<bool> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) if began.elapsed() < patience => {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_in_time_is_taken() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(path.path()).unwrap();
        let (held, wanted) = (open(), open());
        assert!(is_locked_within(&held, Duration::ZERO).unwrap());
        assert!(!is_locked_within(&wanted, Duration::from_millis(20)).unwrap());
        let letting_go = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(held);
        });
        assert!(is_locked_within(&wanted, Duration::from_secs(60)).unwrap());
        letting_go.join().unwrap();
    }
}
