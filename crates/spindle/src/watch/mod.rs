//! `spindle run --watch`: a dashboard on the terminal during a run. [`RunView`] is what it shows, `view` draws it,
//! `terminal` takes the terminal and gives it back as it was. The run tells the [`Dashboard`] what changed
//! ([`crate::progress`]); a thread draws it four times a second. Why so: `docs/decisions/0025-commands.md`.

mod run_view;
pub mod terminal;
mod view;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use run_view::{CaseView, RunView, UnderWay};
use terminal::Screen;

use crate::say;

/// Time between drawings.
const REDRAW_EVERY: Duration = Duration::from_millis(250);

/// A dashboard on the terminal, until it is dropped.
pub struct Dashboard {
    run: Arc<Mutex<RunView>>,
    closing: Arc<AtomicBool>,
    drawer: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Takes the terminal on standard output.
    ///
    /// # Errors
    /// Standard output is no terminal, or one that cannot be set.
    pub fn open(run: RunView) -> io::Result<Dashboard> {
        let mut screen = Screen::take()?;
        let run = Arc::new(Mutex::new(run));
        let closing = Arc::new(AtomicBool::new(false));
        let (seen, ends) = (Arc::clone(&run), Arc::clone(&closing));
        let drawer = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let run = lock(&seen).clone();
                // A terminal that does not take this picture may take the next; the run matters more.
                let _ = screen.draw(|frame| view::draw(frame, &run, Instant::now()));
                std::thread::park_timeout(REDRAW_EVERY);
            }
        });
        Ok(Dashboard {
            run,
            closing,
            drawer: Some(drawer),
        })
    }

    /// Changes what is to be seen.
    pub fn update(&self, change: impl FnOnce(&mut RunView)) {
        change(&mut lock(&self.run));
    }
}

impl Drop for Dashboard {
    /// Gives the terminal back, and repeats there what was said meanwhile.
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // It draws and does nothing else: if it panicked, that was told, and there is only a picture less.
            let _ = drawer.join();
        }
        terminal::give_back();
        for note in &lock(&self.run).notes {
            say::note(note);
        }
    }
}

/// The view is plain data, whole after any panic.
fn lock(run: &Mutex<RunView>) -> MutexGuard<'_, RunView> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}
