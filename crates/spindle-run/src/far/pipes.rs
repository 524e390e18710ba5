//! The two pipes of a connection. The far side may be anything: what it says is bounded, and one that no longer reads
//! blocks nothing here. A thread reads lines, another one writes. `ssh` alone makes them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A line has no more. The longest are a load machine's: two histograms, each of some 20,000 buckets where times are
/// from microseconds to seconds, and what 4096 clients were promised. An agent's have a few thousand.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Lines that wait to be taken have no more: the looks of a trial are a hundredth of it.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Bytes go to the other side in pieces of this size, of which that many may be under way.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 64;
/// How often a full pipe is tried again.
const AGAIN: Duration = Duration::from_millis(5);

/// Why nothing more is read of what the other side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// A line is longer than [`LINE_BYTES_MAX`].
    Line,
    /// More lines wait than [`WAITING_BYTES_MAX`] holds.
    Waiting,
}

impl std::fmt::Display for Excess {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Excess::Line => write!(out, "a line of more than {} MiB", LINE_BYTES_MAX >> 20),
            Excess::Waiting => write!(
                out,
                "more than {} MiB without being asked",
                WAITING_BYTES_MAX >> 20
            ),
        }
    }
}

/// What the other side says.
pub(super) struct Lines {
    lines: Receiver<String>,
    waiting_bytes: Arc<AtomicUsize>,
    excess: Arc<OnceLock<Excess>>,
}

impl Lines {
    /// Reads lines from now on. Bytes that are no UTF-8 become U+FFFD: nothing that an agent says has any.
    pub fn of(output: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = mpsc::channel();
        let said = Lines {
            lines,
            waiting_bytes: Arc::default(),
            excess: Arc::default(),
        };
        let waiting_bytes = Arc::clone(&said.waiting_bytes);
        let excess = Arc::clone(&said.excess);
        std::thread::spawn(move || {
            if let Err(found) = read_lines(output, &sender, &waiting_bytes) {
                // There is one reader. The caller that finds the end of the lines finds the reason.
                let _ = excess.set(found);
            }
            drop(sender);
        });
        said
    }

    /// The next line, if it comes in this time.
    pub fn next(&self, within: Duration) -> Result<String, RecvTimeoutError> {
        let line = self.lines.recv_timeout(within)?;
        self.waiting_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        Ok(line)
    }

    /// Why there is no further line, when the other side said too much.
    pub fn excess(&self) -> Option<Excess> {
        self.excess.get().copied()
    }
}

/// Reads until the other side ends, or the receiver is gone.
fn read_lines(
    output: impl Read,
    sender: &Sender<String>,
    waiting_bytes: &AtomicUsize,
) -> Result<(), Excess> {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let mut bounded = (&mut output).take(LINE_BYTES_MAX as u64 + 1);
        match bounded.read_until(b'\n', &mut bytes) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(_) => {}
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.len() > LINE_BYTES_MAX {
            return Err(Excess::Line);
        }
        let line = String::from_utf8_lossy(&bytes).into_owned();
        let length = line.len();
        if waiting_bytes.fetch_add(length, Ordering::Relaxed) + length > WAITING_BYTES_MAX {
            return Err(Excess::Waiting);
        }
        if sender.send(line).is_err() {
            return Ok(());
        }
    }
}

/// Why bytes did not go to the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsent {
    /// It is not there any more.
    Gone,
    /// It takes nothing.
    Stuck,
    /// The person wants the run to stop.
    Interrupted,
}

/// The way to the other side; it ends when [`Input::close`] is called, or its last owner is gone.
#[derive(Clone)]
pub(super) struct Input(Arc<Mutex<Option<SyncSender<Vec<u8>>>>>);

impl Input {
    /// Writes from now on what is sent.
    pub fn to(mut pipe: impl Write + Send + 'static) -> Input {
        let (sender, pieces) = mpsc::sync_channel::<Vec<u8>>(PIECES_MAX);
        std::thread::spawn(move || {
            for piece in pieces {
                // The next sender finds that the receiver is gone.
                if write(&mut pipe, &piece).is_err() {
                    return;
                }
            }
        });
        Input(Arc::new(Mutex::new(Some(sender))))
    }

    /// Nothing more is sent.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sends bytes, as fast as the other side takes them: it is stuck when it takes nothing for `patience`.
    pub fn send(
        &self,
        bytes: &[u8],
        patience: Duration,
        interrupted: &AtomicBool,
    ) -> Result<(), Unsent> {
        for piece in bytes.chunks(PIECE_BYTES) {
            let began = Instant::now();
            while let Err(unsent) = self.try_send(piece) {
                if unsent == Unsent::Gone || began.elapsed() >= patience {
                    return Err(unsent);
                }
                if interrupted.load(Ordering::Relaxed) {
                    return Err(Unsent::Interrupted);
                }
                std::thread::sleep(AGAIN);
            }
        }
        Ok(())
    }

    /// Sends bytes if there is room on the way.
    pub fn try_send(&self, piece: &[u8]) -> Result<(), Unsent> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = sender.as_ref().ok_or(Unsent::Gone)?;
        sender
            .try_send(piece.to_vec())
            .map_err(|error| match error {
                TrySendError::Full(_) => Unsent::Stuck,
                TrySendError::Disconnected(_) => Unsent::Gone,
            })
    }
}

fn write(pipe: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    pipe.write_all(piece)?;
    pipe.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_secs(60);

    /// All lines, and why there are no more.
    fn all(said: impl Read + Send + 'static) -> (Vec<String>, Option<Excess>) {
        let said = Lines::of(said);
        let lines = std::iter::from_fn(|| said.next(MOMENT).ok()).collect();
        (lines, said.excess())
    }

    #[test]
    fn bytes_that_are_no_text_end_no_line() {
        let (lines, excess) = all(&b"one\n\xff\xfe two\nthree"[..]);
        assert_eq!(lines, ["one", "\u{fffd}\u{fffd} two", "three"]);
        assert_eq!(excess, None);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        let said = b"one\n".chain(io::repeat(b'x'));
        assert_eq!(all(said), (vec!["one".to_owned()], Some(Excess::Line)));
        let longest = vec![b'x'; LINE_BYTES_MAX];
        assert_eq!(all(io::Cursor::new(longest)).1, None);
    }

    /// Says the same line forever.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            if let Some(last) = buffer.last_mut() {
                *last = b'\n';
            }
            Ok(buffer.len())
        }
    }

    #[test]
    fn lines_that_nobody_takes_are_not_kept_without_end() {
        let lines = Lines::of(Endless);
        // The reader stops by itself.
        let began = Instant::now();
        while lines.waiting_bytes.load(Ordering::Relaxed) <= WAITING_BYTES_MAX {
            assert!(began.elapsed() < MOMENT);
            std::thread::sleep(AGAIN);
        }
        let kept = std::iter::from_fn(|| lines.next(MOMENT).ok()).map(|line| line.len());
        assert!(kept.sum::<usize>() <= WAITING_BYTES_MAX);
        assert_eq!(lines.excess(), Some(Excess::Waiting));
    }

    /// Takes nothing until it is let go.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_that_takes_nothing_holds_nobody_up() {
        let (let_go, stuck) = mpsc::channel();
        let input = Input::to(Stuck(stuck));
        let much = vec![0; 2 * PIECES_MAX * PIECE_BYTES];
        let sent = |patience, interrupted| {
            let interrupted = AtomicBool::new(interrupted);
            input.send(&much, patience, &interrupted)
        };
        assert_eq!(sent(AGAIN * 4, false), Err(Unsent::Stuck));
        assert_eq!(sent(MOMENT, true), Err(Unsent::Interrupted));
        assert_eq!(input.try_send(b"sign"), Err(Unsent::Stuck));
        drop(let_go);
        while input.try_send(b"sign") != Err(Unsent::Gone) {
            std::thread::sleep(AGAIN);
        }
    }
}
