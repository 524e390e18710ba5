//! Puts what a log tells of sessions together: each session's transactions in their order, with their moments. What is
//! left out is counted by its reason; nothing of its text is kept.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Result as IoResult, Write};

use spindle_workload::replay::recording::{
    BYTES_MAX, FORMAT, RecordedStep, RecordingHead, RecordingLine, SessionHead, TEXTS_MAX, VERSION,
    word_of,
};
use spindle_workload::replay::{clients_at_once, inlined};
use spindle_workload::sql::Dialect;

use super::super::error::NothingToReplay;
use super::super::own_names::without_own;
use super::lines::LineFault;
use super::wording::{Left, TransactionEffect, WhyLeftOut, judge};

/// Clients that an experiment can have.
const CLIENTS_MAX: usize = 4_096;
const NO_PARAMETERS: WhyLeftOut = "statements whose parameters are not in the log";
const MIXED: WhyLeftOut =
    "texts that end a transaction and have more statements, where autocommit is off";
pub const OTHER_DATABASE: WhyLeftOut = "statements of other databases";
pub const FAILED: WhyLeftOut = "statements that failed when they were recorded";

/// A statement that a session has carried out.
#[derive(Debug, Clone)]
pub struct StatementCall<'a> {
    pub session: &'a str,
    pub database: &'a str,
    pub from_us: u64,
    pub to_us: u64,
    pub text: &'a str,
    /// Of each parameter its value, or no value.
    pub parameters: Vec<Option<String>>,
}

/// A transaction: its moment, and its steps as they are written.
type Written = (u64, Box<str>);

/// A session as far as it was read.
#[derive(Default)]
struct Session {
    database: String,
    from_us: u64,
    to_us: u64,
    /// Of each transaction its moment and its steps, written.
    transactions: Vec<Written>,
    statements: u64,
    open: Option<Open>,
    joins_statements: bool,
}

/// A transaction that has begun.
struct Open {
    at_us: u64,
    /// The statement that begins another one like it.
    begin: String,
    steps: Vec<RecordedStep>,
    /// Of the texts in its steps.
    bytes: u64,
    /// A statement of it has failed: a commit undoes it.
    has_failed: bool,
}

/// What is put together.
pub struct Recorder<'a> {
    dialect: Dialect,
    database: Option<&'a str>,
    sessions: Vec<Session>,
    /// Sessions that have not ended, by key and database.
    known: BTreeMap<(String, String), usize>,
    texts: BTreeMap<String, usize>,
    /// Transactions that are prepared, by their names: of which session, and where among its transactions.
    prepared: BTreeMap<String, (usize, usize)>,
    /// Of transactions that have ended, and of texts.
    bytes: u64,
    /// Of transactions that have not.
    open_bytes: u64,
    left: BTreeMap<WhyLeftOut, u64>,
    skipped: Skipped,
    unended: u64,
    begins: Begins,
}

/// What the log tells of begins of transactions.
#[derive(Default)]
struct Begins {
    /// It tells of some.
    any: bool,
    /// Ends of transactions that it has not seen begin. Of PostgreSQL: elsewhere it is usual to end what is none.
    missing: u64,
}

/// Lines that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    pub count: u64,
    /// The first of them, and why.
    pub first: Option<(u64, LineFault)>,
}

impl<'a> Recorder<'a> {
    /// Of a log of such a database.
    pub fn new(dialect: Dialect, database: Option<&'a str>) -> Recorder<'a> {
        Recorder {
            dialect,
            database,
            sessions: Vec::new(),
            known: BTreeMap::new(),
            texts: BTreeMap::new(),
            prepared: BTreeMap::new(),
            bytes: 0,
            open_bytes: 0,
            left: BTreeMap::new(),
            skipped: Skipped::default(),
            unended: 0,
            begins: Begins::default(),
        }
    }

    /// Whether it has more than can be replayed.
    pub fn is_full(&self) -> bool {
        self.bytes + self.open_bytes > BYTES_MAX
    }

    /// Counts a line that cannot be read.
    pub fn skip(&mut self, line: u64, fault: LineFault) {
        self.skipped.count += 1;
        self.skipped.first.get_or_insert((line, fault));
    }

    /// Counts a statement that is left out.
    pub fn leave(&mut self, reason: WhyLeftOut) {
        *self.left.entry(reason).or_default() += 1;
    }

    /// A statement of a session has failed. One that would have ended a transaction has undone it.
    pub fn failed(&mut self, session: &str, database: &str, text: &str) {
        self.leave(FAILED);
        let number = self.known.get(&(session.to_owned(), database.to_owned()));
        let Some(&number) = number else { return };
        let at_us = self.sessions[number].to_us;
        let Some(open) = &mut self.sessions[number].open else {
            return;
        };
        let judged = judge(text, self.dialect);
        let effects = judged.map_or_else(|left| left.effects, |taken| taken.effects);
        open.has_failed = true;
        if matches!(&effects[..], [effect] if effect.ends_one()) {
            self.close(number, at_us, "rollback");
        }
    }

    /// A session has ended: from now on its key belongs to another one.
    pub fn end(&mut self, session: &str) {
        let first = (session.to_owned(), String::new());
        let own = self
            .known
            .range(first..)
            .take_while(|((key, _), _)| key == session);
        let own: Vec<_> = own.map(|(key, number)| (key.clone(), *number)).collect();
        for (key, number) in own {
            self.known.remove(&key);
            self.end_transaction(number);
        }
    }

    /// A statement.
    pub fn call(&mut self, call: &StatementCall<'_>) {
        match without_own(call.text, call.database, self.dialect) {
            Cow::Borrowed(_) => self.take(call),
            Cow::Owned(text) => self.take(&StatementCall {
                text: &text,
                ..call.clone()
            }),
        }
    }

    fn take(&mut self, call: &StatementCall<'_>) {
        let is_other = |database| database != call.database;
        let taken = match judge(call.text, self.dialect) {
            Ok(taken) if taken.parameters > call.parameters.len() => Err(NO_PARAMETERS.into()),
            Ok(_) if self.database.is_some_and(is_other) => Err(OTHER_DATABASE.into()),
            taken => taken,
        };
        let effects = taken
            .as_ref()
            .map_or_else(|left| &left.effects, |taken| &taken.effects);
        self.begins.any |= effects.iter().any(TransactionEffect::tells_of_begins);
        let taken = match taken {
            Ok(taken) => taken,
            Err(left) => return self.leave_out(call, left),
        };
        let (number, from_us) = self.moment(call);
        let session = &mut self.sessions[number];
        if session.statements == 0 {
            session.from_us = from_us;
        }
        session.statements += 1;
        match &taken.effects[..] {
            [TransactionEffect::Statement] => {
                self.statement(number, call, from_us, taken.parameters)
            }
            [TransactionEffect::StandsAlone] => {
                self.end_implicitly(number, from_us);
                let step = self.step(call, taken.parameters);
                self.push(number, from_us, step);
            }
            [effect] => self.effect(number, effect, call.text, from_us),
            effects => self.effects(number, effects, call, from_us),
        }
    }

    /// A statement that is left out begins and ends transactions as it did.
    fn leave_out(&mut self, call: &StatementCall<'_>, left: Left) {
        self.leave(left.reason);
        let is_other = |database| database != call.database;
        if left.effects.is_empty() || self.database.is_some_and(is_other) {
            return;
        }
        let (number, from_us) = self.moment(call);
        for effect in &left.effects {
            self.effect(number, effect, "begin", from_us);
        }
    }

    /// The session of a statement, and when the statement began: not before the last one has ended.
    fn moment(&mut self, call: &StatementCall<'_>) -> (usize, u64) {
        let number = self.session(call);
        let session = &mut self.sessions[number];
        let from_us = call.from_us.max(session.to_us.min(call.to_us));
        session.to_us = session.to_us.max(call.to_us).max(from_us);
        (number, from_us)
    }

    fn session(&mut self, call: &StatementCall<'_>) -> usize {
        let key = (call.session.to_owned(), call.database.to_owned());
        let sessions = &mut self.sessions;
        *self.known.entry(key).or_insert_with(|| {
            sessions.push(Session {
                database: call.database.to_owned(),
                ..Session::default()
            });
            sessions.len() - 1
        })
    }

    /// What a statement does to the transaction of its session. `begin`: its text, where it begins one.
    fn effect(&mut self, number: usize, effect: &TransactionEffect, begin: &str, from_us: u64) {
        match effect {
            TransactionEffect::Begins => {
                // Beginning one ends the last.
                self.end_implicitly(number, from_us);
                let begin = plain_or(begin, &["begin", "start transaction"], "begin");
                self.open(number, from_us, begin.clone(), begin);
            }
            TransactionEffect::Commits { chains } => {
                self.end_one(number, from_us, "commit", *chains)
            }
            TransactionEffect::RollsBack { chains } => {
                self.end_one(number, from_us, "rollback", *chains)
            }
            TransactionEffect::Autocommit(is_on) => {
                let session = &mut self.sessions[number];
                let joined = std::mem::replace(&mut session.joins_statements, !is_on);
                if *is_on && joined {
                    self.end_implicitly(number, from_us);
                }
            }
            TransactionEffect::Prepares(name) => self.prepare(number, name, from_us),
            TransactionEffect::EndsPrepared { name, commits } => match self.prepared.remove(name) {
                Some(place) if !commits => self.undo(place),
                Some(_) => {}
                // In one phase: MariaDB's sessions end so what is open.
                None if *commits => self.close(number, from_us, "commit"),
                None => self.close(number, from_us, "rollback"),
            },
            TransactionEffect::StandsAlone => self.end_implicitly(number, from_us),
            TransactionEffect::Statement => {}
        }
    }

    fn statement(
        &mut self,
        number: usize,
        call: &StatementCall<'_>,
        from_us: u64,
        parameters: usize,
    ) {
        let session = &self.sessions[number];
        if session.open.is_none() && session.joins_statements {
            self.open(number, from_us, "begin".to_owned(), "begin".to_owned());
        }
        let step = self.step(call, parameters);
        self.push(number, from_us, step);
    }

    /// Ends what is open, and begins another one like it if it `chains`.
    fn end_one(&mut self, number: usize, from_us: u64, by: &str, chains: bool) {
        let open = self.sessions[number].open.as_ref();
        self.begins.missing += u64::from(open.is_none() && self.dialect == Dialect::Postgres);
        let begin = open.map_or_else(|| "begin".to_owned(), |open| open.begin.clone());
        self.close(number, from_us, by);
        if chains {
            self.open(number, from_us, begin.clone(), begin);
        }
    }

    /// What is open is committed here, unless it turns out to be rolled back.
    fn prepare(&mut self, number: usize, name: &str, from_us: u64) {
        if self.sessions[number].open.is_some() {
            self.close(number, from_us, "commit");
            let last = self.sessions[number].transactions.len() - 1;
            self.prepared.insert(name.to_owned(), (number, last));
        }
    }

    /// A transaction that was prepared is rolled back.
    fn undo(&mut self, (number, place): (usize, usize)) {
        let (_, written) = &mut self.sessions[number].transactions[place];
        if let Some(before) = written.strip_suffix(r#""commit"]]"#) {
            *written = format!(r#"{before}"rollback"]]"#).into_boxed_str();
        }
    }

    /// A text of several statements is carried out as one.
    fn effects(
        &mut self,
        number: usize,
        effects: &[TransactionEffect],
        call: &StatementCall<'_>,
        from_us: u64,
    ) {
        let session = &self.sessions[number];
        let (joins, has_failed) = (
            session.joins_statements,
            session.open.as_ref().is_some_and(|open| open.has_failed),
        );
        let has_ended = effects.iter().any(TransactionEffect::ends_one);
        // A begin that a replay makes would come within it; and what has failed cannot be committed.
        if has_ended && (joins || has_failed) {
            self.leave(if joins { MIXED } else { FAILED });
            for effect in effects {
                self.effect(number, effect, "begin", from_us);
            }
            return;
        }
        if joins && session.open.is_none() {
            self.open(number, from_us, "begin".to_owned(), "begin".to_owned());
        }
        let was_open = self.sessions[number].open.is_some();
        let is_open = effects
            .iter()
            .fold(was_open, |is_open, effect| match effect {
                TransactionEffect::Begins => true,
                TransactionEffect::Commits { chains } | TransactionEffect::RollsBack { chains } => {
                    *chains
                }
                TransactionEffect::StandsAlone => false,
                // Those of two-phase commits and of autocommit are left out.
                _ => is_open,
            });
        let text = call.text.to_owned();
        match (was_open, is_open) {
            (false, true) => self.open(number, from_us, text, "begin".to_owned()),
            (true, false) => self.close_by(number, from_us, text),
            _ => self.push(number, from_us, RecordedStep::Text(0, text)),
        }
    }

    /// A statement as a step, at a moment that is set later.
    fn step(&mut self, call: &StatementCall<'_>, parameters: usize) -> RecordedStep {
        let text = call.text.trim().trim_end_matches(';');
        if parameters == 0 {
            return RecordedStep::Text(0, text.to_owned());
        }
        let values = &call.parameters[..parameters];
        let next = self.texts.len();
        match self.texts.get(text) {
            Some(number) => RecordedStep::Prepared(0, *number, values.to_vec()),
            None if next < TEXTS_MAX => {
                self.texts.insert(text.to_owned(), next);
                self.bytes += text.len() as u64;
                RecordedStep::Prepared(0, next, values.to_vec())
            }
            None => RecordedStep::Text(0, inlined(text, values).unwrap_or_default()),
        }
    }

    /// A transaction begins with `text`; another one like it would with `begin`.
    fn open(&mut self, number: usize, at_us: u64, text: String, begin: String) {
        if self.sessions[number].open.is_some() {
            return self.push(number, at_us, RecordedStep::Text(0, text));
        }
        self.sessions[number].open = Some(Open {
            at_us,
            begin,
            steps: vec![RecordedStep::Text(0, text)],
            bytes: 0,
            has_failed: false,
        });
    }

    /// Adds a statement to what is open, or as a transaction by itself.
    fn push(&mut self, number: usize, from_us: u64, mut step: RecordedStep) {
        let Some(open) = &mut self.sessions[number].open else {
            return self.add(number, from_us, &[step]);
        };
        let (RecordedStep::Text(after_us, _) | RecordedStep::Prepared(after_us, ..)) = &mut step;
        *after_us = from_us.saturating_sub(open.at_us);
        let is_to_savepoint = matches!(&step, RecordedStep::Text(_, text)
            if text.get(..8).is_some_and(|first| first.eq_ignore_ascii_case("rollback")));
        open.has_failed &= !is_to_savepoint;
        let bytes = match &step {
            RecordedStep::Text(_, text) => text.len(),
            RecordedStep::Prepared(_, _, values) => values.iter().flatten().map(String::len).sum(),
        };
        open.bytes += bytes as u64;
        self.open_bytes += bytes as u64;
        open.steps.push(step);
    }

    /// Ends what is open; what ends nothing is nothing.
    fn close(&mut self, number: usize, from_us: u64, by: &str) {
        let has_failed = self.sessions[number]
            .open
            .as_ref()
            .map(|open| open.has_failed);
        match has_failed {
            None => {}
            Some(true) => self.close_by(number, from_us, "rollback".to_owned()),
            Some(false) => self.close_by(number, from_us, by.to_owned()),
        }
    }

    fn close_by(&mut self, number: usize, from_us: u64, text: String) {
        self.push(number, from_us, RecordedStep::Text(0, text));
        if let Some(open) = self.sessions[number].open.take() {
            self.open_bytes -= open.bytes;
            self.add(number, open.at_us, &open.steps);
        }
    }

    /// MariaDB and MySQL commit what is open when another begins.
    fn end_implicitly(&mut self, number: usize, from_us: u64) {
        if self.dialect == Dialect::MariaDb {
            self.close(number, from_us, "commit");
        }
    }

    /// What is open at the end of a session was never committed.
    fn end_transaction(&mut self, number: usize) {
        let session = &self.sessions[number];
        if session.open.is_some() {
            self.unended += 1;
            let at_us = session.to_us;
            self.close(number, at_us, "rollback");
        }
    }

    fn add(&mut self, number: usize, at_us: u64, steps: &[RecordedStep]) {
        let session = &mut self.sessions[number];
        // Texts are strings and numbers, which always can be written.
        let written = serde_json::to_string(steps).unwrap_or_default();
        self.bytes += written.len() as u64 + 24;
        session.transactions.push((at_us, written.into_boxed_str()));
    }

    /// The recording.
    ///
    /// # Errors
    /// There is nothing to be replayed.
    pub fn finish(mut self) -> Result<FinishedRecording, NothingToReplay> {
        if self.is_full() {
            return Err(NothingToReplay::TooMuch(BYTES_MAX));
        }
        for number in 0..self.sessions.len() {
            self.end_transaction(number);
        }
        let mut databases: BTreeMap<&str, u64> = BTreeMap::new();
        for session in &self.sessions {
            *databases.entry(&session.database).or_default() += session.statements;
        }
        let most = databases.iter().max_by_key(|(_, statements)| **statements);
        let most = most.map(|(database, _)| (*database).to_owned());
        let Some(database) = self.database.map(str::to_owned).or(most) else {
            return Err(self.nothing(None));
        };
        let (mut own, others): (Vec<Session>, Vec<Session>) = std::mem::take(&mut self.sessions)
            .into_iter()
            .partition(|session| session.database == database);
        let of_others: u64 = others.iter().map(|session| session.statements).sum();
        if of_others > 0 {
            self.left.insert(OTHER_DATABASE, of_others);
        }
        own.retain(|session| !session.transactions.is_empty());
        if own.is_empty() {
            return Err(self.nothing(Some(database)));
        }
        Ok(self.made(own, database))
    }

    fn nothing(&self, database: Option<String>) -> NothingToReplay {
        let first = self.skipped.first;
        NothingToReplay::NoStatement {
            database,
            unread: first.map(|(line, fault)| (self.skipped.count, line, fault.to_string())),
        }
    }

    fn made(self, mut own: Vec<Session>, database: String) -> FinishedRecording {
        let moments = |session: &Session| session.transactions.first().map_or(0, |first| first.0);
        own.sort_by_key(moments);
        let base_us = own.iter().map(moments).min().unwrap_or(0);
        let mut steps = 0;
        let sessions: Vec<(SessionHead, Vec<Written>)> = own
            .into_iter()
            .map(|session| {
                let from_us = moments(&session);
                let mut last_us = from_us;
                let moved = session.transactions.into_iter().map(|(at_us, written)| {
                    last_us = last_us.max(at_us);
                    (last_us - base_us, written)
                });
                let transactions: Vec<_> = moved.collect();
                let head = SessionHead {
                    from_us: from_us - base_us,
                    to_us: session.to_us.max(last_us) - base_us,
                    transactions: transactions.len() as u64,
                };
                (head, transactions)
            })
            .collect();
        for (_, written) in sessions.iter().flat_map(|(_, transactions)| transactions) {
            let of: Vec<serde::de::IgnoredAny> = serde_json::from_str(written).unwrap_or_default();
            steps += of.len() as u64;
        }
        let heads: Vec<SessionHead> = sessions.iter().map(|(head, _)| *head).collect();
        let mut texts = vec![String::new(); self.texts.len()];
        for (text, number) in self.texts {
            texts[number] = text;
        }
        let ended = heads.iter().map(|head| head.to_us).max().unwrap_or(0);
        FinishedRecording {
            head: RecordingHead {
                format: FORMAT.to_owned(),
                version: VERSION,
                database: word_of(self.dialect).to_owned(),
                texts: texts.len(),
                sessions: sessions.len(),
                transactions: heads.iter().map(|head| head.transactions).sum(),
                statements: steps,
                duration_us: ended,
            },
            texts,
            clients: clients_at_once(&heads).min(CLIENTS_MAX),
            sessions,
            database,
            left: self.left,
            skipped: self.skipped,
            unended: self.unended,
            has_begins: self.begins.any && self.begins.missing <= heads.len() as u64,
        }
    }
}

/// A word where the text is nothing but that, else the text.
fn plain_or(text: &str, plain: &[&str], word: &str) -> String {
    let text = text.trim().trim_end_matches(';').trim_end();
    match plain.iter().any(|plain| text.eq_ignore_ascii_case(plain)) {
        true => word.to_owned(),
        false => text.to_owned(),
    }
}

/// A recording that was put together.
pub struct FinishedRecording {
    pub head: RecordingHead,
    pub texts: Vec<String>,
    pub sessions: Vec<(SessionHead, Vec<Written>)>,
    /// Sessions at once.
    pub clients: usize,
    pub database: String,
    pub left: BTreeMap<WhyLeftOut, u64>,
    pub skipped: Skipped,
    /// Transactions that the log does not end.
    pub unended: u64,
    /// The log tells where transactions begin: but for one of each session, which may have begun before it.
    pub has_begins: bool,
}

impl FinishedRecording {
    /// Bytes of its file, about.
    pub fn bytes(&self) -> u64 {
        let transactions = self
            .sessions
            .iter()
            .flat_map(|(_, transactions)| transactions);
        transactions
            .map(|(_, written)| written.len() as u64 + 24)
            .sum()
    }

    /// Writes its file.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&self, out: &mut impl Write) -> IoResult<()> {
        write_line(out, &self.head)?;
        for text in &self.texts {
            write_line(out, &RecordingLine::Text(text.clone()))?;
        }
        for (head, transactions) in &self.sessions {
            write_line(out, &RecordingLine::Session(*head))?;
            for (at_us, steps) in transactions {
                writeln!(out, "[{at_us},{steps}]")?;
            }
        }
        Ok(())
    }
}

fn write_line(out: &mut impl Write, line: &impl serde::Serialize) -> IoResult<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
