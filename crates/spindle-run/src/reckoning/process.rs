//! Threads and open files that a trial has at once. Users, control groups and the machine each limit them. Only trying
//! answers for all of these limits, so that is done for a moment, before anything is made.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, mpsc};

use spindle_experiment::{DatabaseSpec, Experiment};

/// Of the run, the worker and the database beside those that are counted, about.
const OTHER_THREADS: u32 = 16;
/// The same of files; taking away what was made needs some of them.
const OTHER_FILES: u32 = 24;
/// Stack of a thread that only waits, bytes.
const STACK_BYTES: usize = 64 << 10;

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessNeeds {
    /// Threads.
    pub threads: u32,
    /// Open files.
    pub files: u32,
}

/// Why a trial cannot have its threads or files, a line for each; none: it can. `try_out` takes them for a moment.
pub(super) fn shortages(
    experiment: &Experiment,
    try_out: &dyn Fn(ProcessNeeds) -> [io::Result<()>; 2],
) -> Vec<String> {
    let needs = needs(experiment);
    let [threads, files] = try_out(needs);
    let threads = threads.err().map(|error| {
        format!(
            "Threads: about {} at once are needed, and the system does not give as many ({error}). Allow more (ulimit -u; \
             pids.max of the control group), or ask for fewer clients, slaves and writers",
            needs.threads
        )
    });
    let files = files.err().map(|error| {
        format!(
            "Open files: at least {} at once are needed, and the system does not give as many ({error}). Allow more \
             (ulimit -n), or ask for fewer files and clients",
            needs.files
        )
    });
    threads.into_iter().chain(files).collect()
}

/// The same, of this process.
pub(crate) fn short_of(experiment: &Experiment) -> Vec<String> {
    shortages(experiment, &try_out)
}

fn needs(experiment: &Experiment) -> ProcessNeeds {
    let each = experiment
        .candidates()
        .map(|layout| of_layout(experiment, layout));
    let by_turns = experiment.plan.interleave_ms.is_some();
    let start = ProcessNeeds {
        threads: 0,
        files: 0,
    };
    let all = each.fold(start, |sum, of| match by_turns {
        true => ProcessNeeds {
            threads: sum.threads + of.threads,
            files: sum.files + of.files,
        },
        false => ProcessNeeds {
            threads: sum.threads.max(of.threads),
            files: sum.files.max(of.files),
        },
    });
    ProcessNeeds {
        threads: all.threads + OTHER_THREADS,
        files: all.files + OTHER_FILES,
    }
}

fn of_layout(experiment: &Experiment, layout: usize) -> ProcessNeeds {
    // Those of load machines take theirs there.
    let clients = match experiment.load.is_empty() {
        true => experiment.workload.connections_max(),
        false => 0,
    };
    match &experiment.database_of(layout).spec {
        DatabaseSpec::Kernel(kernel) => {
            // Of the data and of the redo.
            let slaves = 2 * experiment.layouts[layout].io.slaves;
            let processes = experiment
                .workload
                .query_processes(experiment.workload.clients_max())
                as u32;
            ProcessNeeds {
                threads: clients.max(processes) + slaves + kernel.instance.writers,
                files: kernel.files.datafiles + kernel.files.log_files,
            }
        }
        DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => ProcessNeeds {
            threads: clients,
            files: clients,
        },
    }
}

/// Starts the threads and opens the files needed, and lets go of them when all exist. Returns whether each was given.
pub fn try_out(needs: ProcessNeeds) -> [io::Result<()>; 2] {
    let opened: io::Result<Vec<File>> = (0..needs.files).map(|_| File::open("/dev/null")).collect();
    [start_threads(needs.threads), opened.map(drop)]
}

fn start_threads(count: u32) -> io::Result<()> {
    let (keep, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let start = |_| {
        let wait = Arc::clone(&wait);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // The wait ends with the sender.
        thread.spawn(move || drop(wait.lock().map(|wait| wait.recv())))
    };
    let mut started = Vec::new();
    let failed = (0..count).map(start).find_map(|thread| match thread {
        Ok(thread) => {
            started.push(thread);
            None
        }
        Err(error) => Some(error),
    });
    drop(keep);
    for thread in started {
        // It cannot panic.
        let _ = thread.join();
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_little_is_told_with_what_is_allowed() {
        let text = "workload.clients = 100\n[[layout]]\nname = \"a\"\nio = { method = \"slaves\", slaves = 7 }";
        let experiment = Experiment::parse("e.toml", text, &[]).unwrap();
        let asked = std::cell::Cell::new(None);
        let refuse = |needs| {
            asked.set(Some(needs));
            ["no more", "enough open"].map(|why| Err(io::Error::other(why)))
        };
        let said = shortages(&experiment, &refuse).join("\n");
        let needs = ProcessNeeds {
            threads: 100 + 14 + 1 + OTHER_THREADS,
            files: 4 + 3 + OTHER_FILES,
        };
        assert_eq!(asked.get(), Some(needs));
        for word in ["131", "no more", "ulimit -u", "enough open", "ulimit -n"] {
            assert!(said.contains(word), "{said}");
        }
        assert_eq!(short_of(&experiment), Vec::<String>::new());
    }
}
