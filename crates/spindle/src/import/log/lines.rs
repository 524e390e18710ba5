//! The lines of a log, with their numbers. A line that is too long, not UTF-8 or has a zero byte is none: it says why.

use std::collections::VecDeque;
use std::io::{BufRead, Read as _, Result};

/// No longer line is read, bytes.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: u64,
    /// Its text, or why it has none.
    pub text: std::result::Result<String, &'static str>,
    /// Nothing ends it: the file does.
    pub is_cut: bool,
}

/// Reads lines.
pub struct Lines<R> {
    from: R,
    number: u64,
    /// Those that come next.
    again: VecDeque<Line>,
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
    pub fn next(&mut self) -> Result<Option<Line>> {
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
            () if is_long => Err("longer than 16 MiB"),
            () if bytes.contains(&0) => Err("a zero byte in it"),
            () => String::from_utf8(bytes).map_err(|_| "not UTF-8"),
        };
        // Some programs that copy a log put a byte order mark before it.
        let text = match (self.number, text) {
            (1, Ok(text)) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
            (_, text) => text,
        };
        Ok(Some(Line {
            number: self.number,
            text,
            is_cut,
        }))
    }

    /// Gives lines back: they come next.
    pub fn give_back(&mut self, lines: impl DoubleEndedIterator<Item = Line>) {
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
