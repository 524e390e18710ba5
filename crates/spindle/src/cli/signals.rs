//! What the system tells the program from outside: stop (Ctrl-C, SIGTERM, the terminal is gone), and that a file would
//! be larger than allowed. Handlers are set before anything is made.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use spindle_layout::{clean, ledger};
use spindle_system::SystemTree;
use spindle_system::processes::ignores_signal;

use super::code::Code;
use crate::say;
use crate::watch::terminal;

/// What a run leaves behind is named one by one, up to this many.
const NAMED_MAX: usize = 12;

/// `timeout -s INT` sends the signal twice at once: to its program and to its group. No person is that fast.
const TWICE_AT_ONCE: Duration = Duration::from_millis(200);

/// Set by the first Ctrl-C, SIGTERM or SIGHUP. A Ctrl-C after that ends the program at once, the terminal as it was,
/// and says what is left behind and how it goes away. The others may come again: a shell that loses its terminal and
/// `timeout` send them twice, and mean no more by it.
///
/// # Errors
/// The system gives no thread that waits for them.
pub(super) fn interrupts(at_once: AtOnce) -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut numbers = vec![SIGINT, SIGTERM];
    // `nohup spindle run ...` is to outlive its terminal.
    if !ignores_signal(&SystemTree::default(), SIGHUP) {
        numbers.push(SIGHUP);
    }
    let mut signals = Signals::new(numbers)?;
    let interrupted = Arc::clone(&flag);
    let thread = std::thread::Builder::new();
    thread.spawn(move || {
        let mut last: Option<Instant> = None;
        for signal in signals.forever() {
            let is_again = last.is_some_and(|last| last.elapsed() > TWICE_AT_ONCE);
            if signal == SIGINT && is_again {
                terminal::give_back();
                tell(&at_once.left_behind());
                std::process::exit(u8::from(Code::Interrupted).into());
            }
            if !interrupted.swap(true, Ordering::Relaxed) && !terminal::is_taken() {
                tell(at_once.first());
            }
            // One that came meanwhile is looked at now.
            last = Some(Instant::now());
        }
    })?;
    Ok(flag)
}

/// Why nothing is begun without them.
pub(super) fn not_waited_for(error: &io::Error) -> String {
    format!(
        "no thread that waits for Ctrl-C can be started: {error} (see ulimit -u and ulimit -n). Nothing was made"
    )
}

/// On its own line where progress is written over.
fn tell(text: &str) {
    match io::stderr().is_terminal() {
        true => say::last_over_the_line(text),
        false => say::note(text),
    }
}

/// What is under way, of which something stays when the program ends at once.
pub(super) enum AtOnce {
    /// The run of this directory.
    InRun(PathBuf),
    /// Power cuts.
    InPowerCuts,
    /// A calibration that only reads: the file it made has no name, and goes with it.
    InReads,
    /// A calibration that writes.
    InCalibration,
    /// Work on a disk group, for which these files are made.
    OnGroup(Vec<PathBuf>),
}

impl AtOnce {
    /// What the first interrupt leads to.
    fn first(&self) -> &'static str {
        match self {
            AtOnce::InRun(_) => {
                "interrupted: what the run made is removed now. A second Ctrl-C ends at once and leaves it"
            }
            AtOnce::InPowerCuts => {
                "interrupted: what was made for the power cuts is removed now. A second Ctrl-C ends at once and leaves it"
            }
            AtOnce::InReads => "interrupted: what was made is removed now",
            AtOnce::InCalibration => {
                "interrupted: devices that were taken are erased and given back now. A second Ctrl-C ends at once and leaves them"
            }
            AtOnce::OnGroup(_) => {
                "interrupted: finishing what is in progress, then stopping. A second Ctrl-C ends at once"
            }
        }
    }

    /// What is left by ending at once, how it is removed, and how to continue.
    fn left_behind(&self) -> String {
        match self {
            AtOnce::InRun(directory) => format!(
                "{}\nFinished trials are kept. Go on with: spindle resume {}",
                still_there(),
                directory.display()
            ),
            AtOnce::InPowerCuts => format!(
                "{}\nFinished cases are kept. Go on with the same command",
                still_there()
            ),
            AtOnce::InReads => "spindle: ended at once".to_owned(),
            AtOnce::InCalibration => still_there(),
            AtOnce::OnGroup(files) => {
                let mut text = String::from(
                    "spindle: ended at once. An existing group is intact: its next mount completes what was in progress, such as: \
                     spindle diskgroup rebalance",
                );
                let left = files.iter().filter(|path| path.exists());
                let left: Vec<String> = left.map(|path| path.display().to_string()).collect();
                if !left.is_empty() {
                    text.push_str("\nMade and still there, remove them by hand: ");
                    text.push_str(&left.join(", "));
                }
                text
            }
        }
    }
}

/// What the ledger says that this process has made, and what takes it away.
fn still_there() -> String {
    let made = clean::made_by(&ledger::default_directory(), std::process::id());
    let mut text = String::from("spindle: ended at once; nothing was removed.");
    if !made.is_empty() {
        text.push_str(" Still there:\n");
        for what in made.iter().take(NAMED_MAX) {
            text.push_str(&format!("  {what}\n"));
        }
        if made.len() > NAMED_MAX {
            text.push_str(&format!("  and {} more\n", made.len() - NAMED_MAX));
        }
    } else {
        text.push('\n');
    }
    text.push_str("Remove what is left with: spindle clean");
    text
}

/// Lets a write beyond the limit on the size of files fail with a reason, in place of the signal that ends the program.
pub(super) fn outlive_file_size_limit() {
    // The handler need only have been called: the write then returns EFBIG (setrlimit(2)).
    let called = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, called).expect("SIGXFSZ may be handled");
}

/// What the program asks for of its stack, bytes: what a system gives by default.
const STACK_BYTES: u64 = 8 << 20;
/// With less than this, bytes, some command overflows it.
const STACK_BYTES_MIN: u64 = 1 << 20;

/// Has the stack grow as far as the program needs. The kernel looks at the limit when the stack grows, not before
/// (setrlimit(2)). Returns what to do where the hard limit is too low.
pub(super) fn stack_is_too_small() -> Option<String> {
    let limit = getrlimit(Resource::Stack);
    let is_enough = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes >= STACK_BYTES);
    if is_enough(limit.current) {
        return None;
    }
    let raised = |maximum: Option<u64>| Rlimit {
        current: maximum.map_or(Some(STACK_BYTES), |maximum| Some(maximum.min(STACK_BYTES))),
        maximum,
    };
    // Root may raise the hard limit, too.
    let root = limit.maximum.map(|maximum| maximum.max(STACK_BYTES));
    if setrlimit(Resource::Stack, raised(root)).is_err() {
        // What it comes to is looked at below.
        let _ = setrlimit(Resource::Stack, raised(limit.maximum));
    }
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < STACK_BYTES_MIN => Some(format!(
            "the stack may have {} KiB only, and the program needs {} KiB: raise `ulimit -s`",
            bytes >> 10,
            STACK_BYTES_MIN >> 10
        )),
        _ => None,
    }
}

/// What to do about a file that may not grow, when that is in a reason.
pub(super) fn advice_on_file_size(reason: &str) -> Option<String> {
    const EFBIG: &str = "(os error 27)";
    let limit = getrlimit(Resource::Fsize).current?;
    reason.contains(EFBIG).then(|| {
        format!("files are limited to {limit} B here: raise `ulimit -f`, or start spindle where it is unlimited")
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_of_a_group_that_stay_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let (there, never) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&there, "x").unwrap();
        let text = AtOnce::OnGroup(vec![there.clone(), never.clone()]).left_behind();
        assert!(text.contains("ended at once"), "{text}");
        assert!(text.contains(there.to_str().unwrap()), "{text}");
        assert!(!text.contains(never.to_str().unwrap()), "{text}");
    }
}
