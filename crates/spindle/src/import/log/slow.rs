//! The slow query log of MariaDB and MySQL: lines that begin with `#` tell of a statement, which follows
//! (https://mariadb.com/docs/server/server-management/server-monitoring-logs/slow-query-log).

use std::io::{BufRead, Result};

use super::lines::{LineFault, Lines};
use super::moment::{duration_us, moment_us};
use super::recorder::{Recorder, StatementCall};
use super::wording::TEXT_BYTES_MAX;

/// What a server writes first ends so; two lines follow.
pub const BANNER: &str = ". started with:";
const BANNER_LINES: usize = 2;

/// What is known of the statement that is being read.
#[derive(Default)]
struct SlowStatement {
    line: u64,
    session: String,
    schema: Option<String>,
    taken_us: u64,
    /// The lines of its text.
    text: Vec<String>,
    text_bytes: usize,
    is_broken: bool,
}

/// What holds for all statements that follow.
#[derive(Default)]
struct Now {
    /// Of MySQL, which tells the moment of each end.
    end_us: Option<u64>,
    schema: String,
}

/// Reads a slow query log.
///
/// # Errors
/// Those of reading.
pub fn read<R: BufRead>(lines: &mut Lines<R>, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut now = Now::default();
    let mut entry: Option<SlowStatement> = None;
    while let Some(line) = lines.next()? {
        if recorder.is_full() {
            break;
        }
        let text = match line.text {
            Ok(text) => text,
            Err(reason) => {
                recorder.skip(line.number, reason);
                if let Some(entry) = &mut entry {
                    entry.is_broken = true;
                }
                continue;
            }
        };
        if text.ends_with(BANNER) {
            finish(entry.take(), &mut now, recorder);
            for _ in 0..BANNER_LINES {
                lines.next()?;
            }
            continue;
        }
        if let Some(time) = text.strip_prefix("# Time: ") {
            finish(entry.take(), &mut now, recorder);
            now.end_us = moment_us(time).filter(|_| time.contains('T'));
            continue;
        }
        if text.starts_with("# User@Host: ") {
            finish(entry.take(), &mut now, recorder);
            entry = Some(SlowStatement {
                line: line.number,
                session: after(&text, "Id:").unwrap_or_default().to_owned(),
                ..SlowStatement::default()
            });
            continue;
        }
        match &mut entry {
            Some(entry) if entry.text.is_empty() && text.starts_with("# ") => entry.tell(&text),
            Some(entry) => entry.go_on(text),
            None => recorder.skip(line.number, LineFault::OfNoStatement),
        }
        if let Some(entry) = entry.as_mut().filter(|_| line.is_cut) {
            entry.is_broken |= !entry.text.last().is_some_and(|text| text.ends_with(';'));
        }
    }
    finish(entry, &mut now, recorder);
    Ok(())
}

/// The word behind a name.
fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.split_whitespace().next()
}

impl SlowStatement {
    /// One more line of its text; what is longer than any that is taken is left out.
    fn go_on(&mut self, line: String) {
        self.text_bytes += line.len();
        if self.text_bytes > TEXT_BYTES_MAX {
            self.is_broken = true;
        } else {
            self.text.push(line);
        }
    }

    /// Takes what a line tells of the statement.
    fn tell(&mut self, line: &str) {
        if let Some(session) = after(line, "# Thread_id: ") {
            self.session = session.to_owned();
            let named = line.split_once("Schema: ").map(|(_, rest)| rest);
            let named = named
                .and_then(|rest| rest.split_once("  "))
                .map(|(name, _)| name);
            self.schema = named.map(str::to_owned);
        }
        if let Some(taken_us) =
            after(line, "# Query_time: ").and_then(|time| duration_us(time, 1e6))
        {
            self.taken_us = taken_us;
        }
    }
}

/// Takes a statement that was read whole.
fn finish(entry: Option<SlowStatement>, now: &mut Now, recorder: &mut Recorder<'_>) {
    let Some(mut entry) = entry else {
        return;
    };
    let mut lines = std::mem::take(&mut entry.text).into_iter().peekable();
    let mut begin_us = None;
    while let Some(line) = lines.next_if(|line| is_before(line)) {
        let line = line.trim_end_matches(';');
        match line.strip_prefix("use ") {
            Some(schema) => now.schema = schema.trim().trim_matches('`').to_owned(),
            None => {
                let time = line.rsplit_once("timestamp=").map(|(_, time)| time);
                begin_us = time.and_then(|time| duration_us(time, 1e6));
            }
        }
    }
    let text = lines.collect::<Vec<_>>().join("\n");
    if entry.is_broken || entry.session.is_empty() {
        return recorder.skip(entry.line, LineFault::StatementNotWhole);
    }
    if let Some(command) = text.strip_prefix("# administrator command: ") {
        if command.starts_with("Quit") {
            recorder.end(&entry.session);
        }
        return;
    }
    let begin_us = begin_us.filter(|_| now.end_us.is_none());
    let ended_us = now
        .end_us
        .map(|end_us| end_us.saturating_sub(entry.taken_us));
    let Some(from_us) = begin_us.or(ended_us) else {
        return recorder.skip(entry.line, LineFault::StatementWithoutTime);
    };
    recorder.call(&StatementCall {
        session: &entry.session,
        database: entry.schema.as_deref().unwrap_or(&now.schema),
        from_us,
        to_us: from_us + entry.taken_us,
        text: text.trim_end().trim_end_matches(';'),
        parameters: Vec::new(),
    });
}

/// Whether a line is the server's own, before the statement.
fn is_before(line: &str) -> bool {
    let is_time = line.starts_with("SET ") && line.contains("timestamp=") && line.ends_with(';');
    is_time || line.starts_with("use ") && line.ends_with(';')
}
