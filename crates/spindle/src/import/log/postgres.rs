//! PostgreSQL's `csvlog` and `jsonlog` ("Error Reporting and Logging" of its documentation). A statement is told when
//! it has ended, with its duration, or when it begins. Then a duration alone follows when that is logged, too.

use std::collections::BTreeMap;
use std::io::{BufRead, Result};

use serde::Deserialize;

use super::lines::{LINE_BYTES_MAX, LineFault, Lines, LogLine};
use super::moment::{duration_us, moment_us};
use super::recorder::{Recorder, StatementCall};

/// Columns that every version writes.
const COLUMNS_MIN: usize = 23;
/// The end of a parameter that is longer than `log_parameter_max_length`.
const SHORTENED: &str = "...";
/// What is of interest in an entry.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct LogEntry {
    #[serde(rename = "timestamp")]
    time: String,
    #[serde(default, rename = "dbname")]
    database: String,
    #[serde(default, rename = "session_id")]
    session: String,
    #[serde(rename = "error_severity")]
    severity: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    detail: String,
    /// That failed.
    #[serde(default)]
    statement: String,
}

/// A statement that was told when it began.
struct Begun {
    at_us: u64,
    database: String,
    text: String,
    parameters: Vec<Option<String>>,
}

/// Statements that have begun, by their sessions.
type AllBegun = BTreeMap<String, Begun>;

/// Reads a `csvlog`.
///
/// # Errors
/// Those of reading.
pub fn read_csv<R: BufRead>(lines: &mut Lines<R>, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut begun = AllBegun::new();
    while let Some(line) = lines.next()? {
        if recorder.is_full() {
            break;
        }
        let number = line.number;
        let wrong = match record(line, lines)? {
            Ok(fields) => match entry_of(fields) {
                Some(entry) => take(&entry, &mut begun, recorder).err(),
                None => Some(LineFault::FewColumns),
            },
            Err(reason) => Some(reason),
        };
        if let Some(reason) = wrong {
            recorder.skip(number, reason);
        }
    }
    flush(begun, recorder);
    Ok(())
}

/// Reads a `jsonlog`.
///
/// # Errors
/// Those of reading.
pub fn read_json<R: BufRead>(lines: &mut Lines<R>, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut begun = AllBegun::new();
    while let Some(line) = lines.next()? {
        if recorder.is_full() {
            break;
        }
        let entry = line.text.and_then(|text| {
            let entry: serde_json::Result<LogEntry> = serde_json::from_str(&text);
            let reason = if line.is_cut {
                LineFault::Cut
            } else {
                LineFault::NoEntry
            };
            entry.map_err(|_| reason)
        });
        let taken = entry.and_then(|entry| take(&entry, &mut begun, recorder));
        if let Err(reason) = taken {
            recorder.skip(line.number, reason);
        }
    }
    flush(begun, recorder);
    Ok(())
}

/// Those of which no end was told.
fn flush(begun: AllBegun, recorder: &mut Recorder<'_>) {
    for (session, begun) in begun {
        let at_us = begun.at_us;
        carry(&session, begun, at_us, at_us, recorder);
    }
}

fn carry(session: &str, begun: Begun, from_us: u64, to_us: u64, recorder: &mut Recorder<'_>) {
    recorder.call(&StatementCall {
        session,
        database: &begun.database,
        from_us,
        to_us,
        text: &begun.text,
        parameters: begun.parameters,
    });
}

/// Takes what an entry tells.
fn take(
    entry: &LogEntry,
    all_begun: &mut AllBegun,
    recorder: &mut Recorder<'_>,
) -> std::result::Result<(), LineFault> {
    let at_us = moment_us(&entry.time).ok_or(LineFault::NoTimeOfEntry)?;
    let session = &entry.session;
    if matches!(&*entry.severity, "ERROR" | "FATAL" | "PANIC") {
        let begun = all_begun.remove(session).map(|begun| begun.text);
        let text = begun.as_ref().unwrap_or(&entry.statement);
        recorder.failed(session, &entry.database, text);
        return Ok(());
    }
    let message = &entry.message;
    if message.starts_with("disconnection: ") {
        if let Some(begun) = all_begun.remove(session) {
            let from_us = begun.at_us;
            carry(session, begun, from_us, from_us, recorder);
        }
        recorder.end(session);
        return Ok(());
    }
    let Some(rest) = message.strip_prefix("duration: ") else {
        if let Some((text, parameters)) = statement(message, &entry.detail, recorder) {
            let begun = Begun {
                at_us,
                database: entry.database.clone(),
                text,
                parameters,
            };
            if let Some(last) = all_begun.insert(session.clone(), begun) {
                let from_us = last.at_us;
                carry(session, last, from_us, from_us, recorder);
            }
        }
        return Ok(());
    };
    let (time, what) = rest
        .split_once(" ms")
        .ok_or(LineFault::DurationWithoutUnit)?;
    let taken_us = duration_us(time, 1e3).ok_or(LineFault::DurationWithoutNumber)?;
    let from_us = at_us.saturating_sub(taken_us);
    let what = what.trim_start();
    if what.is_empty() {
        if let Some(begun) = all_begun.remove(session) {
            carry(session, begun, from_us, at_us, recorder);
        }
        return Ok(());
    }
    if let Some((text, parameters)) = statement(what, &entry.detail, recorder) {
        let begun = Begun {
            at_us,
            database: entry.database.clone(),
            text,
            parameters,
        };
        carry(session, begun, from_us, at_us, recorder);
    }
    Ok(())
}

/// The text of `statement: ...` or `execute name: ...`, and its parameters.
fn statement(
    what: &str,
    detail: &str,
    recorder: &mut Recorder<'_>,
) -> Option<(String, Vec<Option<String>>)> {
    if let Some(text) = what.strip_prefix("statement: ") {
        return Some((text.to_owned(), Vec::new()));
    }
    if what.starts_with("execute fetch from ") {
        recorder.leave("further rows of an answer that was fetched in parts");
        return None;
    }
    if what.starts_with("fastpath function call") {
        recorder.leave("calls of functions without SQL");
        return None;
    }
    let (_, text) = what.strip_prefix("execute ")?.split_once(": ")?;
    let parameters = parameters(detail).unwrap_or_default();
    let is_shortened = |value: &String| value.ends_with(SHORTENED);
    if parameters.iter().flatten().any(is_shortened) {
        recorder.leave(
            "statements with a parameter that ends in \"...\": it may have been shortened (log_parameter_max_length)",
        );
        return None;
    }
    Some((text.to_owned(), parameters))
}

/// `parameters: $1 = '42', $2 = NULL`; newer versions begin with a capital.
fn parameters(detail: &str) -> Option<Vec<Option<String>>> {
    let rest = detail
        .strip_prefix("parameters: ")
        .or_else(|| detail.strip_prefix("Parameters: "));
    let (mut rest, mut found) = (rest?, Vec::new());
    loop {
        let name = format!("${} = ", found.len() + 1);
        rest = rest.strip_prefix(&*name)?;
        if let Some(after) = rest.strip_prefix("NULL") {
            found.push(None);
            rest = after;
        } else {
            let (value, after) = quoted(rest)?;
            found.push(Some(value));
            rest = after;
        }
        match rest.strip_prefix(", ") {
            Some(after) => rest = after,
            None => return rest.is_empty().then_some(found),
        }
    }
}

/// A value in quotes, where a quote is two, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('\'')?;
    let mut value = String::new();
    loop {
        let end = rest.find('\'')?;
        value.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Some((value, rest)),
        }
    }
}

fn entry_of(mut fields: Vec<String>) -> Option<LogEntry> {
    if fields.len() < COLUMNS_MIN {
        return None;
    }
    let mut field = |place: usize| std::mem::take(&mut fields[place]);
    Some(LogEntry {
        time: field(0),
        database: field(2),
        session: field(5),
        severity: field(11),
        message: field(13),
        detail: field(14),
        statement: field(19),
    })
}

/// A record of CSV that begins with a line, as its fields. What follows a line that begins none is looked at again.
fn record<R: BufRead>(
    first: LogLine,
    lines: &mut Lines<R>,
) -> Result<std::result::Result<Vec<String>, LineFault>> {
    let mut fields = Fields::default();
    let mut more: Vec<LogLine> = Vec::new();
    let mut bytes = 0;
    let mut state = match &first.text {
        Ok(text) => fields.feed(text),
        Err(reason) => return Ok(Err(*reason)),
    };
    let reason = loop {
        match state {
            State::Whole => return Ok(Ok(fields.done)),
            State::Broken => break LineFault::NoRecord,
            State::Open => {}
        }
        let Some(line) = lines.next()? else {
            break LineFault::Cut;
        };
        let text = line.text.clone();
        more.push(line);
        match text {
            Ok(text) if bytes + text.len() < LINE_BYTES_MAX => {
                bytes += text.len();
                fields.last.push('\n');
                state = fields.feed(&text);
            }
            Ok(_) => break LineFault::TooLong,
            Err(reason) => break reason,
        }
    };
    lines.give_back(more.into_iter());
    Ok(Err(reason))
}

/// Fields of CSV as they are read.
#[derive(Default)]
struct Fields {
    done: Vec<String>,
    last: String,
    is_quoted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It ends with the line.
    Whole,
    /// A quote is open.
    Open,
    /// This is no CSV.
    Broken,
}

impl Fields {
    /// Reads a line.
    fn feed(&mut self, line: &str) -> State {
        let mut rest = line;
        loop {
            if self.is_quoted {
                let Some(end) = rest.find('"') else {
                    self.last.push_str(rest);
                    return State::Open;
                };
                self.last.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                if let Some(after) = rest.strip_prefix('"') {
                    self.last.push('"');
                    rest = after;
                    continue;
                }
                self.is_quoted = false;
            } else {
                let end = rest.find(['"', ',']).unwrap_or(rest.len());
                self.last.push_str(&rest[..end]);
                rest = &rest[end..];
                if let Some(after) = rest.strip_prefix('"') {
                    if !self.last.is_empty() {
                        return State::Broken;
                    }
                    self.is_quoted = true;
                    rest = after;
                    continue;
                }
            }
            self.done.push(std::mem::take(&mut self.last));
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None if rest.is_empty() => return State::Whole,
                None => return State::Broken,
            }
        }
    }
}
