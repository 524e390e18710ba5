//! Moments between the parts of a step: before a tool starts, after a note in the ledger, before a device is opened
//! again. Tests change the machine in such a moment, as another program might. Outside of this crate's own tests there
//! is nothing here: the call is empty, and nothing can give it something to do.

/// A moment has come; `what` follows, or has just been.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reached(_what: &str) {}

#[cfg(test)]
pub(crate) use hook::{reached, with_hook};

#[cfg(test)]
mod hook {
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(&str)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Tells the test of this thread.
    pub(crate) fn reached(what: &str) {
        // The hook is taken out meanwhile: what it does itself is no moment.
        let hook = HOOK.with_borrow_mut(Option::take);
        if let Some(mut hook) = hook {
            hook(what);
            HOOK.set(Some(hook));
        }
    }

    /// Does `work` in this thread, and `hook` in each of its moments.
    pub(crate) fn with_hook<T>(hook: impl FnMut(&str) + 'static, work: impl FnOnce() -> T) -> T {
        HOOK.set(Some(Box::new(hook)));
        let done = work();
        HOOK.set(None);
        done
    }
}
