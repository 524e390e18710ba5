//! Why nothing is imported, and why a statement is left out of a mix.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use spindle_engines::EngineError;
use spindle_engines::sql::Address;
use spindle_report::sentences::counted;
use spindle_text::quantity::size;
use spindle_text::remedy::with_remedy;
use spindle_workload::SessionError;

/// Why there is no import. Nothing was written then, but for [`ImportError::NotWritten`].
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The address of the server is wrong.
    #[error("the address cannot be used: {0}")]
    Address(EngineError),
    /// The server does not speak what is asked of it.
    #[error("{0} is another kind of server")]
    OtherServer(Box<Address>),
    /// The server cannot be reached, or refuses.
    #[error(transparent)]
    Server(#[from] EngineError),
    /// The server does not answer a question.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The server counts no statements.
    #[error(
        "the extension pg_stat_statements is not in this database: add it to shared_preload_libraries, restart, create \
         extension pg_stat_statements, and let the load run for a while"
    )]
    NoExtension,
    /// The server counts no statements: `performance_schema` is off.
    #[error(
        "performance_schema is off on this server: set performance_schema = ON in its options, restart it, and let the \
         load run for a while"
    )]
    NoPerformanceSchema,
    /// It is on, and counts no digests.
    #[error(
        "this server counts no digests of statements: as an administrator: update performance_schema.setup_consumers set \
         enabled = 'YES' where name = 'statements_digest'; then let the load run for a while"
    )]
    NoDigests,
    /// The address names no database.
    #[error(
        "{0} names no database: which is meant is said behind the server, as in mysql://ann@db1/shop"
    )]
    NoDatabase(Box<Address>),
    /// The user does not see it.
    #[error(
        "there is no database {database:?} there, or {account} may not see it: name another one, or, as an administrator: \
         grant select on `{database}`.* to {account}"
    )]
    DatabaseNotSeen {
        /// Its name.
        database: String,
        /// The user, as a grant names it.
        account: String,
    },
    /// The user may not read what was counted.
    #[error("{text}; as an administrator: grant select on performance_schema.* to {account}")]
    NoRight {
        /// The server's words.
        text: String,
        /// The user, as a grant names it.
        account: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {}; name a file that you may read", path.display(), with_remedy(source))]
    NotRead {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file is not what it was said to be.
    #[error("{}{mistake}", path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong there.
        mistake: BadExport,
    },
    /// A log has nothing that can be replayed.
    #[error("{}: {reason}; {remedy}", path.display())]
    NothingInLog {
        /// The log.
        path: PathBuf,
        /// What is missing.
        reason: NothingToReplay,
        /// What the server must be told.
        remedy: &'static str,
    },
    /// The recording would be larger than what is replayed.
    #[error(
        "{}: the recording would have {}, and at most {} are replayed: import a part of the log",
        path.display(), size(*bytes), size(*bytes_max)
    )]
    RecordingTooLarge {
        /// The log.
        path: PathBuf,
        /// What it would have.
        bytes: u64,
        /// What it may have.
        bytes_max: u64,
    },
    /// The server or the file counted nothing.
    #[error("no statement was counted in {0}: let the load run first")]
    NothingCounted(String),
    /// Every statement is left out.
    #[error("no statement of {origin} can be carried out:\n{left}")]
    AllLeftOut {
        /// The server or the file.
        origin: String,
        /// Each, and why.
        left: String,
    },
    /// The name of a file cannot stand in an experiment file.
    #[error("the name of {} is not UTF-8: rename it", .0.display())]
    NotUtf8(PathBuf),
    /// Where a file is cannot be told.
    #[error("{file}: {source}")]
    NotFound {
        /// The file.
        file: String,
        /// The system's answer.
        source: io::Error,
    },
    /// What was to be made already exists.
    #[error("{} is there already: name another directory with --out", .0.display())]
    AlreadyThere(PathBuf),
    /// The directory cannot be made.
    #[error("cannot make {}: {}; name another directory with --out", path.display(), with_remedy(source))]
    NotMade {
        /// The directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file cannot be written. The directory exists, with what was written before.
    #[error(
        "cannot write {name} in {out}: {}; remove {out} before you try again",
        with_remedy(source), out = out.display()
    )]
    NotWritten {
        /// The file.
        name: String,
        /// The directory.
        out: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("no thread can be started: {0}")]
    NoThread(io::Error),
}

impl ImportError {
    /// Whether an address, a file or a directory of the command line cannot be used as it is meant.
    pub fn is_of_command_line(&self) -> bool {
        matches!(
            self,
            Self::Address(_)
                | Self::OtherServer(_)
                | Self::NoDatabase(_)
                | Self::NotRead { .. }
                | Self::NotUtf8(_)
                | Self::NotFound { .. }
                | Self::AlreadyThere(_)
        )
    }
}

/// What is wrong with an export of what was counted, to follow the name of the file.
#[derive(Debug, thiserror::Error)]
#[error(":{line}: {what}")]
pub struct BadExport {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: String,
}

/// Why there is no recording of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingToReplay {
    /// It has more than is replayed.
    #[error(
        "at most {} are replayed, and what was read has more: import a part of the log, or one database",
        size(*.0)
    )]
    TooMuch(u64),
    /// It has no statement for it.
    #[error(
        "no statement{}that can be replayed{}",
        of_database(database),
        skipped(unread)
    )]
    NoStatement {
        /// Of the database that was asked for.
        database: Option<String>,
        /// Lines that could not be read: how many, the first of them, and why.
        unread: Option<(u64, u64, String)>,
    },
}

fn of_database(database: &Option<String>) -> String {
    match database {
        Some(name) => format!(" of the database {name:?} "),
        None => " ".to_owned(),
    }
}

fn skipped(unread: &Option<(u64, u64, String)>) -> String {
    match unread {
        Some((count, line, reason)) => {
            format!("; {}", unread_lines(*count, *line, reason))
        }
        None => String::new(),
    }
}

/// Lines that could not be read: how many, and why the first could not.
pub fn unread_lines(count: u64, line: u64, reason: &str) -> String {
    match count {
        1 => format!("1 line could not be read, line {line}: {reason}"),
        _ => format!(
            "{} could not be read; the first is line {line}: {reason}",
            counted(count as usize, "line")
        ),
    }
}

/// Why a statement is left out of a mix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeftOutStatement {
    /// What it is, or does, has no place in a script.
    #[error("{0}")]
    Statement(Cow<'static, str>),
    /// No values can be drawn for its parameters.
    #[error("{0}")]
    Values(String),
    /// No server is asked what its tables have.
    #[error(
        "its parameters cannot be sampled without the server's statistics: add --statistics URL"
    )]
    NoStatistics,
    /// The server does not answer a question about it.
    #[error(transparent)]
    Unanswered(#[from] SessionError),
    /// The server refuses it.
    #[error("the server does not take it with these parameters: {0}")]
    Refused(SessionError),
    /// There are more statements than a mix has.
    #[error("{0} others have more calls or time")]
    TooMany(usize),
    /// It ends transactions, and the mix has none.
    #[error("no statement of the mix is within a transaction")]
    NothingWithin,
}
