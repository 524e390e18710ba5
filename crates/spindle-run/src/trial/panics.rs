//! A panic in the process of a trial, told to the run. The standard library's own report reads the program's debug
//! information when a backtrace is asked for, which takes more memory than a small budget leaves: the kernel would kill
//! the process, and the run blame the budget.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, PoisonError};

use spindle_engines::EngineError;

use super::channel;

/// Where the last panic was, and what it said.
static LAST: Mutex<Option<String>> = Mutex::new(None);

/// Carries something out; a panic in it becomes the reason why it failed.
///
/// # Errors
/// What it fails with, or that it panicked, and where.
pub(super) fn told<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    set_hook(Box::new(|panic| {
        let text = panic.to_string();
        channel::to_people(&text);
        *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let said = LAST.lock().unwrap_or_else(PoisonError::into_inner).take();
        let said = said.unwrap_or_default();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        Err(format!("a mistake in Spindle itself: {said}").into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_reason_with_its_place() {
        let failed = told(|| -> Result<(), EngineError> { panic!("all at\n sea") });
        let done = told(|| Ok(7));
        drop(std::panic::take_hook());
        let reason = failed.unwrap_err().to_string();
        assert!(
            reason.starts_with("a mistake in Spindle itself: "),
            "{reason}"
        );
        assert!(reason.contains("trial/panics.rs:"), "{reason}");
        assert!(reason.ends_with("all at sea"), "{reason}");
        assert_eq!(done, Ok(7));
    }
}
