//! The lines of a log, with their numbers. A line that is too long, not UTF-8 or has a zero byte is none: it says why.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _, Result};

use thiserror::Error;

/// No longer line is read, bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// Why a line, or what begins with it, cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LineFault {
    /// It has more than [`LINE_BYTES_MAX`].
    #[error("longer than 16 MiB")]
    TooLong,
    /// It is binary.
    #[error("a zero byte in it")]
    ZeroByte,
    /// It is in another encoding.
    #[error("not UTF-8")]
    NotUtf8,
    /// The rest of it is not there.
    #[error("the file ends within it")]
    Cut,
    /// It begins no record of a `csvlog`.
    #[error("no record of a csvlog")]
    NoRecord,
    /// A record of another kind of CSV.
    #[error("not as many columns as a csvlog has")]
    FewColumns,
    /// It is no entry of a `jsonlog`.
    #[error("no entry of a jsonlog")]
    NoEntry,
    /// An entry of which nothing tells when it was.
    #[error("no time of an entry")]
    NoTimeOfEntry,
    /// A duration in another unit.
    #[error("a duration without ms")]
    DurationWithoutUnit,
    /// A duration that is not a number.
    #[error("a duration that is not a number")]
    DurationWithoutNumber,
    /// A line of a statement that did not begin.
    #[error("it belongs to no statement")]
    OfNoStatement,
    /// A line of a command that did not begin, and no command.
    #[error("no command, and it belongs to none")]
    OfNoCommand,
    /// A line of it could not be read.
    #[error("a statement that is not whole")]
    StatementNotWhole,
    /// Nothing tells when it was.
    #[error("a statement without its time")]
    StatementWithoutTime,
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// From 1.
    pub number: u64,
    /// Its text, or why it has none.
    pub text: std::result::Result<String, LineFault>,
    /// Nothing ends it: the file does.
    pub is_cut: bool,
}

/// Reads lines.
pub struct Lines<R> {
    from: R,
    number: u64,
    /// Those that come next.
    again: VecDeque<LogLine>,
}

impl<R: BufRead> Lines<R> {
    /// From the begin of a file.
    pub fn new(from: R) -> Lines<R> {
        Lines {
            from,
            number: 0,
            again: VecDeque::new(),
        }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// Those of reading.
    pub fn next(&mut self) -> Result<Option<LogLine>> {
        if let Some(line) = self.again.pop_front() {
            return Ok(Some(line));
        }
        let mut bytes = Vec::new();
        let most = LINE_BYTES_MAX as u64 + 1;
        if (&mut self.from).take(most).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let mut is_cut = false;
        let mut is_long = false;
        match bytes.last() {
            Some(b'\n') => _ = bytes.pop(),
            _ if bytes.len() > LINE_BYTES_MAX => {
                is_long = true;
                self.pass_over()?;
            }
            _ => is_cut = true,
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let text = match () {
            () if is_long => Err(LineFault::TooLong),
            () if bytes.contains(&0) => Err(LineFault::ZeroByte),
            () => String::from_utf8(bytes).map_err(|_| LineFault::NotUtf8),
        };
        // Some programs that copy a log put a byte order mark before it.
        let text = match (self.number, text) {
            (1, Ok(text)) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
            (_, text) => text,
        };
        Ok(Some(LogLine {
            number: self.number,
            text,
            is_cut,
        }))
    }

    /// Gives lines back: they come next.
    pub fn give_back(&mut self, lines: impl DoubleEndedIterator<Item = LogLine>) {
        lines.rev().for_each(|line| self.again.push_front(line));
    }

    /// To the end of a line that is too long.
    fn pass_over(&mut self) -> Result<()> {
        loop {
            let part = self.from.fill_buf()?;
            let (used, is_over) = match part.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (part.len(), part.is_empty()),
            };
            self.from.consume(used);
            if is_over {
                return Ok(());
            }
        }
    }
}
