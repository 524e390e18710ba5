//! The file of a recording: lines of JSON. The first is a [`RecordingHead`]. Then come the texts that have parameters,
//! one a line. Then comes each session: a [`SessionHead`], and a line for each of its transactions. A transaction is
//! `[at_us, [step, ...]]`. A step is `[after_us, "sql"]` or `[after_us, number of a text, [parameter, ...]]`. Moments
//! count from the begin of the recording, those of steps from the begin of their transaction, all in microseconds.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use spindle_text::load_file::LargeFile;

use super::inlined::inlined;
use crate::sql::{Dialect, has_any};

/// What a head says first.
pub const FORMAT: &str = "spindle recording";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// No larger recording is read, bytes: it is kept in memory.
pub const BYTES_MAX: u64 = 1 << 30;
/// Texts with parameters, at most: every client prepares all of them.
pub const TEXTS_MAX: usize = 500;

/// What a recording is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingHead {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Which database it is of: `postgres` or `mariadb`.
    pub database: String,
    /// Texts that have parameters.
    pub texts: usize,
    /// Sessions.
    pub sessions: usize,
    /// Transactions of all sessions.
    pub transactions: u64,
    /// Statements of all transactions, their begins and ends included.
    pub statements: u64,
    /// From the first statement to the end of the last, microseconds.
    pub duration_us: u64,
}

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHead {
    /// Its first statement.
    pub from_us: u64,
    /// The end of its last one.
    pub to_us: u64,
    /// Its transactions.
    pub transactions: u64,
}

/// A statement with its moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedStep {
    /// As it is written.
    Text(u64, String),
    /// A text that has parameters.
    Prepared(u64, usize, Vec<Option<String>>),
}

/// A transaction, or a statement that is one by itself: its moment, and its statements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded(pub u64, pub Vec<RecordedStep>);

/// A line of a text, or of a session.
#[derive(Debug, Serialize, Deserialize)]
pub enum RecordingLine {
    /// A text that has parameters.
    #[serde(rename = "text")]
    Text(String),
    /// A session; its transactions follow.
    #[serde(rename = "session")]
    Session(SessionHead),
}

/// Why a file is no recording, with its line where there is one.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// No file is named.
    #[error("kind = \"replay\" has no recording")]
    Missing,
    /// It cannot be read.
    #[error("{name}: {reason}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        reason: std::io::Error,
    },
    /// It is more than can be kept in memory.
    #[error("{name} has more than {BYTES_MAX} bytes: import a part of the log")]
    TooLarge {
        /// The file.
        name: String,
    },
    /// A line is not what belongs there.
    #[error("{name}:{line}: {reason}")]
    Wrong {
        /// The file.
        name: String,
        /// From 1.
        line: usize,
        /// Why.
        reason: String,
    },
}

/// Which kind of transaction it is, of [`KINDS`], by the first word of its first statement.
pub fn kind_of(steps: &[RecordedStep], texts: &[String]) -> &'static str {
    let text = match steps {
        [RecordedStep::Text(_, sql)] => sql,
        [RecordedStep::Prepared(_, number, _)] => texts.get(*number).map_or("", String::as_str),
        _ => return KINDS[0],
    };
    let first = text
        .trim_start()
        .split(|letter: char| !letter.is_ascii_alphabetic());
    let first = first.map(str::to_ascii_lowercase).next();
    let mut kinds = KINDS.iter().copied();
    kinds
        .find(|kind| Some(*kind) == first.as_deref())
        .unwrap_or(KINDS[5])
}

/// The kinds of transactions of every recording.
pub const KINDS: [&str; 6] = [
    "transaction",
    "select",
    "insert",
    "update",
    "delete",
    "other",
];

/// The word of a database in a head.
pub fn word_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::MariaDb => "mariadb",
        Dialect::Sqlite => "sqlite",
    }
}

/// A session of a recording that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedSession {
    /// What it is.
    pub head: SessionHead,
    /// The bytes of its transactions.
    lines: Range<usize>,
}

/// A recording, whole and checked.
#[derive(Debug)]
pub struct Recording {
    /// What it is.
    pub head: RecordingHead,
    /// Texts that have parameters.
    pub texts: Vec<String>,
    /// Its sessions, in the order of their begins.
    pub sessions: Vec<RecordedSession>,
    /// The kinds of its transactions, of [`KINDS`].
    pub kinds: Vec<&'static str>,
    bytes: Vec<u8>,
}

impl Recording {
    /// Reads a recording, and looks at every line.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn open(file: &LargeFile) -> Result<Recording, RecordingError> {
        let name = &file.name;
        let read = |reason| RecordingError::Read {
            name: name.clone(),
            reason,
        };
        let mut bytes = Vec::new();
        let opened = file.open().map_err(read)?;
        opened
            .take(BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(read)?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(RecordingError::TooLarge { name: name.clone() });
        }
        Recording::of_bytes(name, bytes)
    }

    /// The same of what was read of the file of this name.
    pub(super) fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<Recording, RecordingError> {
        let read = Reader::new(&bytes).recording();
        let read = read.map_err(|(line, reason)| RecordingError::Wrong {
            name: name.to_owned(),
            line,
            reason,
        })?;
        Ok(Recording { bytes, ..read })
    }

    /// The transaction of a session that begins at `offset` of its lines, and where the next one begins; `None` behind
    /// the last.
    pub fn transaction(&self, session: usize, offset: usize) -> Option<(Recorded, usize)> {
        let lines = &self.bytes[self.sessions.get(session)?.lines.clone()];
        let rest = lines.get(offset..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let recorded = serde_json::from_slice(&rest[..end]).ok()?;
        Some((recorded, offset + end + 1))
    }

    /// All statements: the texts that have parameters, and those that are sent as they are written.
    pub fn statements(&self) -> impl Iterator<Item = String> {
        let lines = self.sessions.iter().map(|of| &self.bytes[of.lines.clone()]);
        let lines = lines.flat_map(|lines| lines.split(|byte| *byte == b'\n'));
        let steps = lines.filter_map(|line| serde_json::from_slice::<Recorded>(line).ok());
        let written = steps.flat_map(|Recorded(_, steps)| {
            steps.into_iter().filter_map(|step| match step {
                RecordedStep::Text(_, text) => Some(text),
                RecordedStep::Prepared(..) => None,
            })
        });
        self.texts.iter().cloned().chain(written)
    }

    /// The statements that have one of these words, which are in small letters, with their parameters in their places;
    /// each once.
    pub fn sent_with(&self, words: &[&str]) -> Vec<String> {
        let is_any_prepared = self.texts.iter().any(|text| has_any(text, words));
        let mut sent = BTreeSet::new();
        let lines = self.sessions.iter().map(|of| &self.bytes[of.lines.clone()]);
        for line in lines.flat_map(|lines| lines.split(|byte| *byte == b'\n')) {
            if !is_any_prepared && !has_any(&String::from_utf8_lossy(line), words) {
                continue;
            }
            let Ok(Recorded(_, steps)) = serde_json::from_slice(line) else {
                continue;
            };
            let texts = steps.into_iter().filter_map(|step| match step {
                RecordedStep::Text(_, text) => Some(text),
                RecordedStep::Prepared(_, number, parameters) => {
                    let text = self.texts.get(number)?;
                    Some(inlined(text, &parameters).unwrap_or_else(|| text.clone()))
                }
            });
            sent.extend(texts.filter(|text| has_any(text, words)));
        }
        sent.into_iter().collect()
    }
}

/// Where reading is.
struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// The number of the last line.
    line: usize,
}

type Wrong = (usize, String);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            bytes,
            offset: 0,
            line: 0,
        }
    }

    fn wrong(&self, reason: impl Into<String>) -> Wrong {
        (self.line, reason.into())
    }

    /// The next line as what belongs there; `None` at the end.
    fn next<T: Deserialize<'a>>(&mut self, what: &str) -> Result<Option<T>, Wrong> {
        let rest = &self.bytes[self.offset..];
        self.line += 1;
        if rest.is_empty() {
            return Ok(None);
        }
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(self.wrong("the file ends within this line"));
        };
        self.offset += end + 1;
        let read = serde_json::from_slice(&rest[..end]);
        let read = read.map_err(|error| {
            let column = error.column();
            self.wrong(format!("this is no {what}: look at column {column}"))
        });
        read.map(Some)
    }

    fn needed<T: Deserialize<'a>>(&mut self, what: &str) -> Result<T, Wrong> {
        let next = self.next(what)?;
        next.ok_or_else(|| self.wrong(format!("the file ends where a {what} belongs")))
    }

    fn recording(mut self) -> Result<Recording, Wrong> {
        let head: RecordingHead = self.needed("head of a recording")?;
        if head.format != FORMAT || head.version != VERSION {
            return Err(self.wrong(format!("no {FORMAT} of version {VERSION}")));
        }
        if head.texts > TEXTS_MAX {
            return Err(self.wrong(format!("more than {TEXTS_MAX} texts with parameters")));
        }
        let mut texts = Vec::new();
        for _ in 0..head.texts {
            match self.needed("text")? {
                RecordingLine::Text(text) => texts.push(text),
                RecordingLine::Session(_) => return Err(self.wrong("a text belongs here")),
            }
        }
        let mut sessions: Vec<RecordedSession> = Vec::new();
        let (mut transactions, mut statements) = (0, 0);
        let mut kinds = BTreeSet::new();
        while let Some(line) = self.next("session")? {
            let RecordingLine::Session(of_session) = line else {
                return Err(self.wrong("a session belongs here"));
            };
            let earlier = sessions.last().map_or(0, |session| session.head.from_us);
            if of_session.from_us < earlier || of_session.to_us < of_session.from_us {
                return Err(self.wrong("a session that begins before the one above, or ends first"));
            }
            let start = self.offset;
            let mut last_us = of_session.from_us;
            for _ in 0..of_session.transactions {
                let recorded: Recorded = self.needed("transaction")?;
                self.check(&recorded, texts.len(), &mut last_us)?;
                statements += recorded.1.len() as u64;
                kinds.insert(kind_of(&recorded.1, &texts));
            }
            transactions += of_session.transactions;
            sessions.push(RecordedSession {
                head: of_session,
                lines: start..self.offset,
            });
        }
        let found = (sessions.len(), transactions, statements);
        if found != (head.sessions, head.transactions, head.statements) {
            return Err(
                self.wrong("not as many sessions, transactions and statements as line 1 says")
            );
        }
        match transactions {
            0 => Err(self.wrong("it has no transaction")),
            _ => Ok(Recording {
                head,
                texts,
                sessions,
                kinds: kinds.into_iter().collect(),
                bytes: Vec::new(),
            }),
        }
    }

    fn check(&self, recorded: &Recorded, texts: usize, last_us: &mut u64) -> Result<(), Wrong> {
        let Recorded(at_us, steps) = recorded;
        if *at_us < *last_us {
            return Err(self.wrong("a transaction that begins before the one above"));
        }
        *last_us = *at_us;
        if steps.is_empty() {
            return Err(self.wrong("a transaction without statements"));
        }
        let is_known = |step: &RecordedStep| match step {
            RecordedStep::Text(..) => true,
            RecordedStep::Prepared(_, number, _) => *number < texts,
        };
        match steps.iter().all(is_known) {
            true => Ok(()),
            false => Err(self.wrong("a statement whose text is not above")),
        }
    }
}
