//! A look at an existing server before anything is measured there: what it is, what it keeps, how much is in it, what
//! this user may do, and how far away it is. It reads, in transactions that may do nothing else, and changes nothing.

use std::time::{Duration, Instant, UNIX_EPOCH};

use spindle_workload::SessionError;
use spindle_workload::sql::SqlConnection;

use crate::promise::Promise;

/// This many trivial statements are sent, one after the other.
const ROUND_TRIPS: usize = 300;
/// And the server is asked for its time this many times; the fastest answer counts.
const CLOCK_LOOKS: usize = 20;
/// Of tables and databases, the largest are told.
pub(crate) const LARGEST: usize = 5;

/// What was found.
#[derive(Debug, Clone)]
pub struct ServerSurvey {
    /// What it calls itself.
    pub version: String,
    /// What the connection is, if it is encrypted.
    pub encryption: Option<String>,
    /// Settings that matter to storage, as `name = value`.
    pub settings: Vec<String>,
    /// What it keeps when the power goes, as far as its settings tell.
    pub promise: Promise,
    /// What is installed in it: extensions, plugins.
    pub extensions: Vec<String>,
    /// Its buffer cache, bytes; `None`: it does not tell.
    pub cache_bytes: Option<u64>,
    /// Its largest databases.
    pub databases: Vec<Volume>,
    /// The largest tables that this user sees in this database, indexes included.
    pub tables: Vec<Volume>,
    /// What a run needs or likes to have, and whether it has it.
    pub rights: Vec<Right>,
    /// Limits of time that its sessions have.
    pub limits: Vec<Limit>,
    /// How long a trivial statement takes.
    pub round_trip: RoundTripTimes,
    /// Its clock; `None`: it does not tell the time.
    pub clock: Option<Clock>,
}

/// Something that takes space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Bytes; `None`: this user may not know.
    pub bytes: Option<u64>,
}

/// A setting that ends what takes long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// As `name = value`.
    pub setting: String,
    /// What it ends, in words.
    pub ends: &'static str,
}

impl Limit {
    /// What it means for a run, whose other sessions lift it.
    pub fn effect(&self) -> String {
        let ends = self.ends;
        format!("it ends {ends}, in the clients' sessions: load and checks have no such limit")
    }
}

/// Something that a user may or may not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// What it is.
    pub what: &'static str,
    /// What a run lacks without it.
    pub without: &'static str,
    /// The statement that gives it; `None`: it is given, or that is not known.
    pub missing: Option<String>,
    /// Whether the server tells.
    pub is_told: bool,
}

impl Right {
    /// One that is given if the answer to its question is `Some(true)`; `None`: the server does not tell. `remedy` is
    /// the statement that gives it.
    pub(crate) fn of(
        what: &'static str,
        without: &'static str,
        is_given: Option<bool>,
        remedy: impl FnOnce() -> String,
    ) -> Right {
        Right {
            what,
            without,
            missing: (is_given == Some(false)).then(remedy),
            is_told: is_given.is_some(),
        }
    }
}

/// Times of a trivial statement, as the client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTripTimes {
    /// Half of them were faster, microseconds.
    pub p50_us: u64,
    /// 99 of 100 were faster, microseconds.
    pub p99_us: u64,
}

/// A server's clock beside this machine's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// By how much it is ahead, microseconds; negative: behind.
    pub ahead_us: i64,
    /// By how much that may be wrong: half of the time that the question took.
    pub uncertain_us: i64,
}

/// Times trivial statements.
pub(crate) fn round_trip(
    connection: &mut dyn SqlConnection,
) -> Result<RoundTripTimes, SessionError> {
    connection.prepare(&["select 1".to_owned()])?;
    let mut times_us = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        connection.query(0, &[], &mut |_| Ok(()))?;
        times_us.push(began.elapsed().as_micros() as u64);
    }
    times_us.sort_unstable();
    Ok(RoundTripTimes {
        p50_us: times_us[ROUND_TRIPS / 2],
        p99_us: times_us[ROUND_TRIPS * 99 / 100],
    })
}

/// Compares clocks; `asked` answers with microseconds since 1970.
pub(crate) fn clock(connection: &mut dyn SqlConnection, asked: &str) -> Option<Clock> {
    let mut best: Option<Clock> = None;
    for _ in 0..CLOCK_LOOKS {
        let before = UNIX_EPOCH.elapsed().ok()?;
        let began = Instant::now();
        let theirs_us = number(connection, asked)?;
        let took = began.elapsed();
        let found = beside(theirs_us, before, took)?;
        if best.is_none_or(|best| found.uncertain_us < best.uncertain_us) {
            best = Some(found);
        }
    }
    best
}

/// A server is taken to have told the time in the middle of the question.
fn beside(theirs_us: i64, before: Duration, took: Duration) -> Option<Clock> {
    let middle_us = i64::try_from((before + took / 2).as_micros()).ok()?;
    Some(Clock {
        ahead_us: theirs_us - middle_us,
        uncertain_us: i64::try_from(took.as_micros() / 2).ok()?,
    })
}

/// The first number of an answer; `None` without one.
pub(crate) fn number(connection: &mut dyn SqlConnection, sql: &str) -> Option<i64> {
    let mut answer = None;
    let asked = connection.ask(sql, &mut |row| {
        if !row.is_null(0)? {
            answer = Some(row.int(0)?);
        }
        Ok(())
    });
    asked.ok()?;
    answer
}

/// The first column of an answer; empty where the server does not answer.
pub(crate) fn texts(connection: &mut dyn SqlConnection, sql: &str) -> Vec<String> {
    let mut answers = Vec::new();
    // What it does not tell is not known.
    let _ = connection.ask(sql, &mut |row| {
        answers.push(row.text(0)?);
        Ok(())
    });
    answers
}

/// Names and bytes.
pub(crate) fn volumes(connection: &mut dyn SqlConnection, sql: &str) -> Vec<Volume> {
    let mut found = Vec::new();
    let _ = connection.ask(sql, &mut |row| {
        let bytes = match row.is_null(1)? {
            true => None,
            false => u64::try_from(row.int(1)?).ok(),
        };
        found.push(Volume {
            name: row.text(0)?,
            bytes,
        });
        Ok(())
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_compared_in_the_middle_of_the_question() {
        let found = beside(
            1_000_700,
            Duration::from_secs(1),
            Duration::from_micros(400),
        );
        let clock = Clock {
            ahead_us: 500,
            uncertain_us: 200,
        };
        assert_eq!(found, Some(clock));
    }
}
