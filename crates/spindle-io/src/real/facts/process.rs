//! What this process has used of the machine: its processor time and memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::env::ProcessorUse;

/// Processor time of this process, all its threads together, those that have ended included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTime {
    /// In the program.
    pub user: Duration,
    /// In the system on its behalf.
    pub system: Duration,
}

impl ProcessorTime {
    /// What has been used since the process began (`getrusage`).
    pub fn now() -> ProcessorTime {
        let usage = usage();
        let duration = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        };
        ProcessorTime {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
        }
    }

    /// Both kinds together.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

fn usage() -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure it is given; zeroed, it is a valid one from the beginning.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// How often threads of this process have given up a processor to wait (`getrusage`, voluntary context switches): once
/// for each time they are woken.
pub fn sleeps() -> u64 {
    usage().ru_nvcsw as u64
}

/// How often threads of this process had to leave a processor to another, those that have ended included.
pub fn preemptions() -> u64 {
    usage().ru_nivcsw as u64
}

impl std::ops::Sub for ProcessorTime {
    type Output = ProcessorTime;
    fn sub(self, earlier: ProcessorTime) -> ProcessorTime {
        ProcessorTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// Time that the calling thread has been on a processor (`clock_gettime` of `CLOCK_THREAD_CPUTIME_ID`), which counts
/// the current turn too.
pub fn processor_time_of_thread() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the structure it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// This machine's clock, the same in all of its processes: nanoseconds since some moment (`CLOCK_MONOTONIC`).
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the structure it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What the calling thread has had of the processors, from its clock and `/proc/thread-self/schedstat` (Linux
/// Documentation/scheduler/sched-stats.rst); `None` where the kernel does not keep it. The file is not kept open: a
/// thousand sessions would take a thousand descriptors.
pub fn processor_use_of_thread() -> Option<ProcessorUse> {
    let mut bytes = [0; 80];
    let mut file = File::open("/proc/thread-self/schedstat").ok()?;
    let length = file.read(&mut bytes).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let run_queue_ns = run_queue_ns(text)?;
    Some(ProcessorUse {
        running_ns: processor_time_of_thread().as_nanos() as u64,
        run_queue_ns,
    })
}

/// The second of its three numbers: time on the processor, time waiting for one, turns. A kernel that does not count
/// says `0 0 0`, and a thread that reads this has had a turn.
fn run_queue_ns(schedstat: &str) -> Option<u64> {
    let mut words = schedstat.split_whitespace().skip(1);
    let waited_ns = words.next()?.parse().ok()?;
    let turns: u64 = words.next()?.parse().ok()?;
    (turns > 0).then_some(waited_ns)
}

/// Bytes of memory that this process has in use and that belong to no file: heap, stacks, buffers. Counted page by page
/// (`/proc/self/smaps_rollup`, Linux 4.14), because the quick counters lag by megabytes on machines of many processors.
/// `None` where the system does not say.
pub fn anonymous_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Whether two processes or threads have one and the same table of open files (kcmp(2)). Errors: one of them ended, or
/// there is no right to compare them, or the kernel cannot.
pub fn share_open_files(one: u32, other: u32) -> std::io::Result<bool> {
    const FILES: libc::c_int = 2;
    let [one, other] = [one, other].map(|id| id as libc::pid_t);
    // SAFETY: the call takes numbers only.
    let answer = unsafe { libc::syscall(libc::SYS_kcmp, one, other, FILES, 0usize, 0usize) };
    match answer {
        -1 => Err(std::io::Error::last_os_error()),
        order => Ok(order == 0),
    }
}

/// Whether anyone has a file open to write, the kernel included: a request of io_uring keeps its file open when its
/// process has gone. `file` is open for reading only. `None`: the file system does not tell, or there is no right to
/// ask. The kernel grants a lease for reading where there are no writers (fcntl(2), F_SETLEASE); it is given back at
/// once. Should anyone want to write in that moment, the kernel says so by a signal: one that ends no program.
pub fn is_open_to_write(file: &File) -> Option<bool> {
    /// asm-generic/fcntl.h.
    const F_SETSIG: libc::c_int = 10;
    let set = |command: libc::c_int, argument: libc::c_int| {
        // SAFETY: the call takes a descriptor, which is open, and numbers.
        match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    set(F_SETSIG, libc::SIGURG).ok()?;
    match set(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => set(libc::F_SETLEASE, libc::F_UNLCK).ok().map(|()| false),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(true),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn who_writes_a_file_is_seen_until_it_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = File::open(file.path()).unwrap();
        assert_eq!(is_open_to_write(&read), Some(true));
        let path = file.into_temp_path();
        // A process that another test starts then has it open, too, until it runs its own program.
        let until = Instant::now() + Duration::from_secs(60);
        while is_open_to_write(&read) == Some(true) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(is_open_to_write(&read), Some(false));
        let _other_reader = File::open(&path).unwrap();
        assert_eq!(is_open_to_write(&read), Some(false));
    }

    #[test]
    fn work_takes_processor_time() {
        let before = ProcessorTime::now();
        let mut sum = 0u64;
        while (ProcessorTime::now() - before).total() < Duration::from_millis(20) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }

    #[test]
    fn a_thread_counts_for_itself_alone() {
        let began = processor_time_of_thread();
        let busy = std::thread::spawn(|| {
            let began = processor_time_of_thread();
            while processor_time_of_thread() - began < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
        });
        busy.join().unwrap();
        assert!(processor_time_of_thread() - began < Duration::from_millis(15));
        if let Some(this) = processor_use_of_thread() {
            assert!(this.running_ns >= began.as_nanos() as u64);
        }
    }

    #[test]
    fn the_run_queue_is_known_where_the_kernel_counts() {
        assert_eq!(run_queue_ns("123 456 7\n"), Some(456));
        assert_eq!(run_queue_ns("0 0 0\n"), None);
        assert_eq!(run_queue_ns("123\n"), None);
    }

    /// In its own process: other tests give memory back meanwhile.
    #[test]
    fn memory_counts_when_it_is_touched() {
        let ended = spindle_harness::child!(memory_is_touched).output().unwrap();
        assert!(
            ended.status.success(),
            "{}",
            String::from_utf8_lossy(&ended.stdout)
        );
    }

    #[test]
    #[ignore = "a process that another test starts"]
    fn memory_is_touched() {
        let Some(before) = anonymous_bytes() else {
            spindle_harness::skip("the system does not tell a process's memory");
            return;
        };
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        let grown = anonymous_bytes().unwrap() - before;
        assert!(grown >= 60 << 20, "{grown}");
        drop(touched);
    }
}
