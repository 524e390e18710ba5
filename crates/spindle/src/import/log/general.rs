//! The general query log of MariaDB and MySQL: a line for each command, `time <tab> session command <tab> argument`; a
//! statement may continue in the lines after it
//! (https://mariadb.com/docs/server/server-management/server-monitoring-logs/general-query-log).

use std::collections::BTreeMap;
use std::io::{BufRead, Result};

use super::lines::{LineFault, Lines};
use super::moment::moment_us;
use super::recorder::{Recorder, StatementCall};
use super::slow::BANNER;
use super::wording::TEXT_BYTES_MAX;

/// The commands there are (`sql/sql_parse.cc` of both).
const COMMANDS: [&str; 20] = [
    "Query",
    "Execute",
    "Prepare",
    "Connect",
    "Quit",
    "Init DB",
    "Close stmt",
    "Reset stmt",
    "Field List",
    "Statistics",
    "Ping",
    "Change user",
    "Reset connection",
    "Set option",
    "Fetch",
    "Long Data",
    "Refresh",
    "Kill",
    "Debug",
    "Processlist",
];

/// This many lines are looked at for the first time.
const LOOKED_AT_MAX: usize = 10_000;
/// And this many bytes of them.
const LOOKED_AT_BYTES_MAX: usize = 64 << 20;

/// A command.
struct Command<'a> {
    /// When it is another second than that of the last one.
    time_us: Option<u64>,
    session: &'a str,
    name: &'static str,
    argument: &'a str,
}

/// A statement that may continue.
struct Open {
    line: u64,
    session: String,
    at_us: u64,
    text: String,
    is_broken: bool,
}

impl Open {
    /// One more line of its text.
    fn go_on(&mut self, line: &str, is_cut: bool) {
        self.is_broken |= is_cut || self.text.len() + line.len() > TEXT_BYTES_MAX;
        // A broken one is left out, however it continues.
        if !self.is_broken {
            self.text.push('\n');
            self.text.push_str(line);
        }
    }
}

/// Reads a general query log.
///
/// # Errors
/// Those of reading.
pub fn read<R: BufRead>(lines: &mut Lines<R>, recorder: &mut Recorder<'_>) -> Result<()> {
    let mut schemas: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Option<Open> = None;
    let mut now_us = first_time_us(lines)?;
    while let Some(line) = lines.next()? {
        if recorder.is_full() {
            break;
        }
        let text = match line.text {
            Ok(text) => text,
            Err(reason) => {
                recorder.skip(line.number, reason);
                if let Some(open) = &mut open {
                    open.is_broken = true;
                }
                continue;
            }
        };
        if text.ends_with(BANNER) {
            finish(open.take(), &schemas, recorder);
            lines.next()?;
            lines.next()?;
            continue;
        }
        let Some(command) = command(&text) else {
            match &mut open {
                Some(open) => open.go_on(&text, line.is_cut),
                None => recorder.skip(line.number, LineFault::OfNoCommand),
            }
            continue;
        };
        finish(open.take(), &schemas, recorder);
        now_us = command.time_us.or(now_us);
        let session = command.session.to_owned();
        match command.name {
            "Query" | "Execute" => {
                let Some(at_us) = now_us else {
                    recorder.skip(line.number, LineFault::StatementWithoutTime);
                    continue;
                };
                open = Some(Open {
                    line: line.number,
                    session,
                    at_us,
                    text: command.argument.to_owned(),
                    is_broken: line.is_cut,
                });
            }
            "Connect" => {
                let named = command.argument.split_once(" on ").map(|(_, rest)| rest);
                let schema = named.and_then(|rest| rest.split(" using ").next());
                schemas.insert(session, schema.unwrap_or_default().trim().to_owned());
            }
            "Init DB" => _ = schemas.insert(session, command.argument.trim().to_owned()),
            "Quit" => {
                schemas.remove(&session);
                recorder.end(&session);
            }
            "Long Data" => recorder.leave("parameters that were sent in parts"),
            _ => {}
        }
    }
    finish(open, &schemas, recorder);
    Ok(())
}

/// The first time of the log: one that was cut begins with statements of a second that was told before.
fn first_time_us<R: BufRead>(lines: &mut Lines<R>) -> Result<Option<u64>> {
    let mut seen = Vec::new();
    let (mut found, mut bytes) = (None, 0);
    while found.is_none() && seen.len() < LOOKED_AT_MAX && bytes < LOOKED_AT_BYTES_MAX {
        let Some(line) = lines.next()? else {
            break;
        };
        let text = line.text.as_deref().unwrap_or_default();
        found = command(text).and_then(|command| command.time_us);
        bytes += text.len();
        seen.push(line);
    }
    lines.give_back(seen.into_iter());
    Ok(found)
}

fn finish(open: Option<Open>, schemas: &BTreeMap<String, String>, recorder: &mut Recorder<'_>) {
    let Some(open) = open else {
        return;
    };
    if open.is_broken {
        return recorder.skip(open.line, LineFault::StatementNotWhole);
    }
    recorder.call(&StatementCall {
        session: &open.session,
        database: schemas.get(&open.session).map_or("", String::as_str),
        from_us: open.at_us,
        to_us: open.at_us,
        text: &open.text,
        parameters: Vec::new(),
    });
}

/// A line as a command; `None`: it is the rest of one.
fn command(line: &str) -> Option<Command<'_>> {
    let (time, rest) = line.split_once('\t')?;
    let time_us = moment_us(time);
    if time_us.is_none() && !time.trim().is_empty() {
        return None;
    }
    let rest = rest.trim_start_matches(['\t', ' ']);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (session, rest) = rest.split_at(digits);
    let rest = rest.strip_prefix(' ')?;
    let known = COMMANDS.iter().find(|name| {
        let after = rest.strip_prefix(**name);
        after.is_some_and(|after| after.is_empty() || after.starts_with('\t'))
    })?;
    let argument = &rest[known.len()..];
    (digits > 0).then_some(Command {
        time_us,
        session,
        name: known,
        argument: argument.strip_prefix('\t').unwrap_or(argument),
    })
}

#[cfg(test)]
mod tests {
    use spindle_workload::sql::Dialect;

    use super::*;

    #[test]
    fn a_log_that_names_its_database_everywhere_is_replayed() {
        let log = "261124  9:00:00\t     5 Connect\tann@localhost on shop using Socket\n\
                   \t\t     5 Query\tupdate shop.t set a = 1\n\
                   \t\t     5 Query\tselect 'shop.t' from shop.t\n\
                   \t\t     5 Query\tinsert into other.t values (1)\n";
        let mut recorder = Recorder::new(Dialect::MariaDb, None);
        read(&mut Lines::new(log.as_bytes()), &mut recorder).unwrap();
        let made = recorder.finish().unwrap();
        let mut file = Vec::new();
        made.write(&mut file).unwrap();
        let file = String::from_utf8(file).unwrap();
        assert!(file.contains("\"update `t` set a = 1\""), "{file}");
        assert!(file.contains("\"select 'shop.t' from `t`\""), "{file}");
        assert_eq!(made.left.values().sum::<u64>(), 1);
    }
}
