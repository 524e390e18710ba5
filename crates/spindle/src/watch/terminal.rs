//! Takes the terminal for a dashboard and gives it back as it was, however the program ends: in order, by a panic in
//! any thread, or by a second Ctrl-C. (What kills the program outright, `kill -9`, leaves the terminal as it is;
//! `reset` mends it.)
//!
//! Keys are not read. What is typed is not shown, Ctrl-C still makes its signal, and Ctrl-Z and Ctrl-\\, which would
//! leave the picture standing, do nothing. `tests/watch.rs` tries each of these on its own terminal.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Stdout};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::say;

/// What the terminal was like before it was taken; `None` when it is not taken. Drawing code holds this, so that
/// nothing is drawn on a terminal that was given back.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

thread_local! {
    static IS_DRAWING: Cell<bool> = const { Cell::new(false) };
    /// What a panic in drawing said, until the terminal is given back.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal on standard output, taken.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Whether there is a terminal to draw on.
pub fn is_there() -> bool {
    io::stdout().is_terminal()
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn take() -> io::Result<Screen> {
        give_back_on_panic();
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let modes = tcgetattr(io::stdout())?;
        let mut quiet = modes.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON);
        // 0 is _POSIX_VDISABLE on Linux: no key suspends, nor ends the program with a dump.
        quiet.special_codes[SpecialCodeIndex::VSUSP] = 0;
        quiet.special_codes[SpecialCodeIndex::VQUIT] = 0;
        *before() = Some(modes);
        let taken = tcsetattr(io::stdout(), OptionalActions::Now, &quiet)
            .map_err(io::Error::from)
            .and_then(|()| execute!(io::stdout(), EnterAlternateScreen, Hide));
        if let Err(error) = taken {
            give_back();
            return Err(error);
        }
        Ok(Screen { terminal })
    }

    /// Draws, unless the terminal was given back.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let drawing = Drawing::begin();
        if drawing.before.is_some() {
            self.terminal.draw(picture)?;
        }
        Ok(())
    }
}

/// A thread draws. A panic meanwhile cannot give the terminal back by itself, because the lock is held: this does, and
/// tells it then. The run continues without a dashboard.
struct Drawing {
    before: MutexGuard<'static, Option<Termios>>,
}

impl Drawing {
    fn begin() -> Drawing {
        let before = before();
        IS_DRAWING.set(true);
        Drawing { before }
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        IS_DRAWING.set(false);
        if let Some(said) = SAID.take() {
            restore(self.before.take());
            say::note(&format!(
                "the dashboard ends, and the run goes on without it: {said}"
            ));
        }
    }
}

/// Whether a dashboard has the terminal.
pub fn is_taken() -> bool {
    before().is_some()
}

/// Gives the terminal back, if it is taken. For all code that ends the program.
pub fn give_back() {
    restore(before().take());
}

fn restore(before: Option<Termios>) {
    if let Some(modes) = before {
        // If the terminal is gone, there is no one left to tell.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = tcsetattr(io::stdout(), OptionalActions::Flush, &modes);
    }
}

/// A panic is told on the terminal as it was, not on the picture.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IS_DRAWING.get() {
                SAID.set(Some(panic.to_string()));
            } else {
                give_back();
                tell(panic);
            }
        }));
    });
}
