//! A panic becomes a reason, so that the caller continues and removes what was made: in the process of a trial, and in
//! the run itself. The standard library's own report reads the program's debug information when a backtrace is asked
//! for, which takes more memory than a small budget leaves. The kernel would kill the process, and the run blame the
//! budget. The runner and the worker call this.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, PoisonError};

use spindle_engines::EngineError;
use spindle_io::real::NO_THREAD;

/// Where the last panic was, and what it said.
static LAST: Mutex<Option<String>> = Mutex::new(None);
/// What the standard library says when the system has no thread to give.
const NO_THREAD_OF_STD: &str = "failed to spawn thread";

/// Why a panic ended something.
#[derive(Debug, thiserror::Error)]
pub enum Panicked {
    /// The system gave no thread.
    #[error(
        "the system gives no more threads: allow more of them (ulimit -u; pids.max of the control group) or of memory \
         (ulimit -v), or ask for fewer clients, slaves and writers"
    )]
    NoThread,
    /// Anything else.
    #[error("a mistake in Spindle itself: {0}")]
    Mistake(String),
}

impl Panicked {
    fn saying(text: &str) -> Panicked {
        match [NO_THREAD, NO_THREAD_OF_STD]
            .iter()
            .any(|said| text.contains(said))
        {
            true => Panicked::NoThread,
            false => Panicked::Mistake(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

impl From<Panicked> for EngineError {
    fn from(panicked: Panicked) -> EngineError {
        EngineError::other(panicked.to_string())
    }
}

/// Carries something out; a panic in it becomes the reason why it failed. `hear` is told of one at once.
///
/// # Errors
/// What it fails with, or that it panicked, and where.
pub(crate) fn told<T, E: From<Panicked>>(
    hear: fn(&str),
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let text = panic.to_string();
        hear(&text);
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    let ended = catch_unwind(AssertUnwindSafe(work));
    set_hook(before);
    ended.unwrap_or_else(|_| {
        let said = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        Err(Panicked::saying(&said.unwrap_or_default()).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hook is the whole process's: tests that set it take turns.
    static TURN: Mutex<()> = Mutex::new(());

    fn reason(work: impl FnOnce() -> Result<(), Panicked>) -> String {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        told(|_| (), work).unwrap_err().to_string()
    }

    #[test]
    fn a_panic_is_a_reason_with_its_place() {
        let reason = reason(|| panic!("all at\n sea"));
        assert!(
            reason.starts_with("a mistake in Spindle itself: "),
            "{reason}"
        );
        assert!(reason.contains("src/panics.rs:"), "{reason}");
        assert!(reason.ends_with("all at sea"), "{reason}");
    }

    #[test]
    fn what_does_not_panic_gives_what_it_has() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(told(|_| (), || Ok::<_, Panicked>(7)).unwrap(), 7);
    }

    #[test]
    fn a_thread_that_was_not_given_is_no_mistake_of_the_program() {
        for said in [NO_THREAD, NO_THREAD_OF_STD] {
            let reason = reason(|| panic!("{said}: too few"));
            assert!(reason.contains("ulimit -u"), "{reason}");
            assert!(!reason.contains("mistake"), "{reason}");
        }
    }
}
