//! Which files are open under an identifier, and how the rings that have them in their tables hear that one is closed.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::Latch;

/// Where a file stands in every ring's table of registered files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Index into the tables; used again when the file is closed.
    pub(crate) index: u32,
    /// Never used again: tells a ring that its entry is another file's.
    pub(crate) generation: u64,
}

/// Generation of the open file that has an index, 0 for none.
static OPEN: Latch<Vec<u64>> = Latch::new(Vec::new());
static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);
static CLOSED: AtomicU64 = AtomicU64::new(0);

impl Identity {
    /// For a file that has just been opened.
    pub(crate) fn next() -> Identity {
        let generation = NEXT_GENERATION.fetch_add(1, Ordering::Relaxed);
        let mut open = OPEN.lock();
        let index = open
            .iter()
            .position(|taken| *taken == 0)
            .unwrap_or_else(|| {
                open.push(0);
                open.len() - 1
            });
        open[index] = generation;
        Identity {
            index: index as u32,
            generation,
        }
    }
    /// The file is closed: the calling thread's ring lets go of it now, others when they are next used.
    pub(crate) fn close(self) {
        OPEN.lock()[self.index as usize] = 0;
        CLOSED.fetch_add(1, Ordering::Release);
        let_go();
    }
}

/// How many identified files have been closed so far: when it has grown, tables may hold closed ones.
pub(crate) fn closed_count() -> u64 {
    CLOSED.load(Ordering::Acquire)
}

/// Whether the file is still open.
pub(crate) fn is_open(identity: Identity) -> bool {
    OPEN.lock().get(identity.index as usize) == Some(&identity.generation)
}

thread_local! {
    /// How the calling thread's ring lets go of what it has in its tables.
    static LETS_GO: Cell<fn()> = const { Cell::new(|| {}) };
}

/// From now on `let_go` is called when a file, or memory, that rings may have in their tables is closed on the calling
/// thread.
pub(crate) fn on_closing(let_go: fn()) {
    LETS_GO.set(let_go);
}

/// Has the calling thread's ring let go of what is closed.
pub(crate) fn let_go() {
    // At the end of the thread there is nothing to do: its ring is about to go.
    if let Ok(let_go) = LETS_GO.try_with(Cell::get) {
        let_go();
    }
}
