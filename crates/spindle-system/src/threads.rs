//! Processor time of a process's threads by name: what clients used, apart from the database's own processes. Threads
//! say in `/proc/PID/task/TID/stat` how their time divides between program and kernel (proc_pid_stat(5)), and in
//! `schedstat` how long they ran and how long they were ready to run and did not (Linux
//! Documentation/scheduler/sched-stats.rst).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cpu::ProcessCpu;
use super::{SystemTree, keyed_number, text};

/// The calling thread's directory in `/proc`.
pub fn this_thread(tree: &SystemTree) -> PathBuf {
    tree.proc.join("thread-self")
}

/// The directory in `/proc` of a thread.
pub fn thread_of(tree: &SystemTree, process_id: u32, thread_id: u32) -> PathBuf {
    tree.proc.join(format!("{process_id}/task/{thread_id}"))
}

/// The directories of this process's threads whose names begin with `name`.
pub fn own_threads(tree: &SystemTree, name: &str) -> Vec<PathBuf> {
    let tasks = tree.proc.join("self/task");
    let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let is_named =
        |task: &PathBuf| text(&task.join("comm")).is_some_and(|thread| thread.starts_with(name));
    tasks.map(|task| task.path()).filter(is_named).collect()
}

/// Bytes that the thread of a directory in `/proc` has written so far, to files and pipes, not to sockets
/// (proc_pid_io(5), `wchar`); `None` where the system does not tell.
pub fn written_bytes(thread: &Path) -> Option<u64> {
    keyed_number(&text(&thread.join("io"))?, "wchar")
}

/// What the threads of one kind have had of the processors since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// In the program, in ticks of 10 ms, microseconds.
    pub user_ticks_us: u64,
    /// In the kernel on its behalf, in ticks of 10 ms, microseconds.
    pub system_ticks_us: u64,
    /// On a processor, exactly, nanoseconds.
    pub running_ns: u64,
    /// Ready to run and not running, nanoseconds.
    pub run_queue_ns: u64,
}

impl ThreadTimes {
    /// The sum over all threads of a process whose name begins with `name`; `None` when there is none, or when the
    /// kernel does not keep the time that threads wait for a processor.
    pub fn of(files: &SystemTree, process_id: u32, name: &str) -> Option<ThreadTimes> {
        let tasks = files.proc.join(process_id.to_string()).join("task");
        let mut sum: Option<ThreadTimes> = None;
        for task in std::fs::read_dir(tasks).ok()?.flatten() {
            // A thread may end between the listing and the look; that is none of ours then.
            let Some(stat) = text(&task.path().join("stat")) else {
                continue;
            };
            if !name_of(&stat).is_some_and(|thread| thread.starts_with(name)) {
                continue;
            }
            let schedstat = text(&task.path().join("schedstat"));
            let times = ThreadTimes::parse(&stat, &schedstat?)?;
            sum = Some(sum.unwrap_or_default().plus(&times));
        }
        sum
    }

    /// The sum over single threads, given as process and thread; those that have ended count no longer.
    pub fn of_threads(
        files: &SystemTree,
        threads: impl IntoIterator<Item = (u32, u32)>,
    ) -> ThreadTimes {
        let times = threads.into_iter().filter_map(|(process, thread)| {
            let task = thread_of(files, process, thread);
            let stat = text(&task.join("stat"))?;
            ThreadTimes::parse(&stat, &text(&task.join("schedstat"))?)
        });
        times.fold(ThreadTimes::default(), |sum, times| sum.plus(&times))
    }

    fn parse(stat: &str, schedstat: &str) -> Option<ThreadTimes> {
        let ticks = ProcessCpu::parse(stat)?;
        let mut numbers = schedstat
            .split_whitespace()
            .map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let (running_ns, run_queue_ns, turns) = (next()?, next()?, next()?);
        // A thread of which there is something to see has had its turn.
        (turns > 0).then_some(ThreadTimes {
            user_ticks_us: ticks.user_us,
            system_ticks_us: ticks.system_us,
            running_ns,
            run_queue_ns,
        })
    }

    /// Time in the program and in the kernel, microseconds: the exact whole, divided as the ticks fell.
    pub fn user_and_system_us(&self) -> (f64, f64) {
        let running_us = self.running_ns as f64 / 1e3;
        let ticks_us = (self.user_ticks_us + self.system_ticks_us) as f64;
        if ticks_us == 0.0 {
            // Less than a tick: which of the two it was is not known.
            return (running_us / 2.0, running_us / 2.0);
        }
        let user_us = running_us * self.user_ticks_us as f64 / ticks_us;
        // Rounding must not make a time negative.
        (user_us, (running_us - user_us).max(0.0))
    }

    /// The sum of two.
    pub fn plus(&self, other: &ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            user_ticks_us: self.user_ticks_us + other.user_ticks_us,
            system_ticks_us: self.system_ticks_us + other.system_ticks_us,
            running_ns: self.running_ns + other.running_ns,
            run_queue_ns: self.run_queue_ns + other.run_queue_ns,
        }
    }

    /// What was had between an earlier look and this one.
    pub fn since(&self, earlier: &ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            user_ticks_us: self.user_ticks_us.saturating_sub(earlier.user_ticks_us),
            system_ticks_us: self.system_ticks_us.saturating_sub(earlier.system_ticks_us),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(earlier.run_queue_ns),
        }
    }
}

/// The name in parentheses of a `stat` file.
fn name_of(stat: &str) -> Option<&str> {
    let (_, rest) = stat.split_once('(')?;
    Some(rest.rsplit_once(')')?.0)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::fixture::Fixture;
    use super::*;

    fn stat(name: &str, user: u32, system: u32) -> String {
        format!("11 ({name}) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 5 0 0")
    }

    #[test]
    fn threads_of_a_name_are_added_up() {
        let (first, second) = (stat("client0", 3, 1), stat("client1", 0, 0));
        let fixture = Fixture::with(&[
            ("proc/7/task/11/stat", &first),
            ("proc/7/task/11/schedstat", "48000000 2000000 9\n"),
            ("proc/7/task/12/stat", &second),
            ("proc/7/task/12/schedstat", "2000000 500000 3\n"),
            ("proc/7/task/13/stat", &stat("dbw0", 50, 50)),
            ("proc/7/task/13/schedstat", "1000000000 9 9\n"),
        ]);
        let clients = ThreadTimes::of(&fixture.files(), 7, "client").expect("two clients");
        assert_eq!(clients.user_and_system_us(), (37_500.0, 12_500.0));
        assert_eq!(clients.run_queue_ns, 2_500_000);
        let between = clients.since(&ThreadTimes {
            user_ticks_us: 30_000,
            system_ticks_us: 10_000,
            running_ns: 49_000_000,
            run_queue_ns: 0,
        });
        assert_eq!(between.user_and_system_us(), (500.0, 500.0));
        assert_eq!(ThreadTimes::of(&fixture.files(), 7, "lgwr"), None);
        assert_eq!(ThreadTimes::of(&fixture.files(), 8, "client"), None);
    }

    #[test]
    fn a_kernel_that_does_not_count_waiting_leaves_it_unknown() {
        assert_eq!(ThreadTimes::parse(&stat("client0", 3, 1), "0 0 0"), None);
        assert_eq!(ThreadTimes::parse(&stat("client0", 3, 1), "5"), None);
    }

    #[test]
    fn a_real_thread_is_found_by_its_name() {
        let files = SystemTree::default();
        let name = "threads-test";
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || receiver.recv()).unwrap();
        // Without this file no thread is found. With it one is, once it runs and has named itself.
        let is_counted = std::fs::read_to_string("/proc/thread-self/schedstat").is_ok();
        let is_found = || ThreadTimes::of(&files, std::process::id(), name).is_some();
        let until = Instant::now() + Duration::from_secs(60);
        while is_counted && !is_found() {
            assert!(Instant::now() < until, "a thread was not found");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(sender);
        let _ = thread.join().unwrap();
    }

    #[test]
    fn what_this_thread_writes_is_counted_and_what_another_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(directory.path().join(name), [1; 12_345]).unwrap();
        let so_far = || written_bytes(&this_thread(&SystemTree::default())).expect("Linux counts");
        let before = so_far();
        std::thread::scope(|scope| scope.spawn(|| write("other")).join().unwrap());
        assert_eq!(so_far(), before);
        write("own");
        assert_eq!(so_far(), before + 12_345);
    }
}
