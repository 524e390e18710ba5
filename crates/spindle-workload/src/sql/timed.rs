//! How long each statement takes, as `pgbench -r` tells it: a connection that passes everything on to another, and
//! counts prepared statements, begins and commits. Two looks at a clock cost a point select several percent of its
//! client's processor time, so short ones are timed now and then only. Used by [`super::SqlWork`] alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spindle_io::Env;
use spindle_io::sync::Latch;

use super::connection::{LoadPart, PipelineFailure, SqlConnection, Visit};
use super::dialect::Dialect;
use super::pause::Pause;
use super::value::Value;
use crate::driver::StatementTotal;
use crate::session::SessionError;

/// Characters of a statement by which it is known.
const NAME_CHARS: usize = 100;
/// Of a short statement one execution of this many is timed.
const TIMED_EVERY: u64 = 16;
/// Where a statement has taken longer than this so far, on average, looking at a clock costs nothing: all are timed.
const SHORT_NS: u64 = 100_000;
/// What the begin and the end of a transaction are called, behind the workload's own statements.
const AROUND: [&str; 2] = ["begin", "commit"];

/// One statement of one client, who alone writes.
#[derive(Default)]
struct Counted {
    count: AtomicU64,
    timed: AtomicU64,
    total_ns: AtomicU64,
}

impl Counted {
    /// Whether the next execution is timed: by what came before it, never by itself.
    fn is_timed(&self) -> bool {
        let [count, timed, total_ns] = [&self.count, &self.timed, &self.total_ns]
            .map(|counter| counter.load(Ordering::Relaxed));
        count.is_multiple_of(TIMED_EVERY) || total_ns > timed * SHORT_NS
    }

    fn add(&self, taken_ns: Option<u64>) {
        let add = |to: &AtomicU64, amount| {
            to.store(to.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        };
        add(&self.count, 1);
        if let Some(taken_ns) = taken_ns {
            add(&self.timed, 1);
            add(&self.total_ns, taken_ns);
        }
    }
}

/// The times of a workload's statements.
#[derive(Default)]
pub struct StatementTimes {
    known: Latch<Known>,
}

#[derive(Default)]
struct Known {
    names: Vec<String>,
    clients: Vec<Arc<[Counted]>>,
}

impl StatementTimes {
    /// The connection of one more client, its `statements` prepared.
    pub fn watch(
        &self,
        connection: Box<dyn SqlConnection>,
        statements: &[String],
        env: &Arc<dyn Env>,
        pause: Pause,
    ) -> Timed {
        let own = statements.iter().map(|statement| name_of(statement));
        let names: Vec<String> = own.chain(AROUND.map(str::to_owned)).collect();
        let counted: Arc<[Counted]> = names.iter().map(|_| Counted::default()).collect();
        let mut known = self.known.lock();
        known.names = names;
        known.clients.push(Arc::clone(&counted));
        Timed {
            connection,
            pause,
            env: Arc::clone(env),
            begins: statements.len(),
            counted,
        }
    }

    /// The totals so far, in the workload's order; statements of the same name are one.
    pub fn totals(&self) -> Vec<StatementTotal> {
        let known = self.known.lock();
        let mut totals: Vec<StatementTotal> = Vec::new();
        for (number, name) in known.names.iter().enumerate() {
            let sum = |of: fn(&Counted) -> &AtomicU64| {
                let clients = known.clients.iter();
                clients
                    .map(|counted| of(&counted[number]).load(Ordering::Relaxed))
                    .sum::<u64>()
            };
            let (count, timed) = (sum(|of| &of.count), sum(|of| &of.timed));
            let total_ns = sum(|of| &of.total_ns);
            match totals.iter_mut().find(|total| total.statement == *name) {
                Some(total) => {
                    total.count += count;
                    total.timed += timed;
                    total.total_ns += total_ns;
                }
                None => totals.push(StatementTotal {
                    statement: name.clone(),
                    count,
                    timed,
                    total_ns,
                }),
            }
        }
        totals
    }
}

/// A statement in one line, cut where it becomes long.
fn name_of(statement: &str) -> String {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let line = words.join(" ");
    match line.chars().count() > NAME_CHARS {
        true => line.chars().take(NAME_CHARS - 1).chain(['…']).collect(),
        false => line,
    }
}

/// A connection whose statements are timed.
pub struct Timed {
    connection: Box<dyn SqlConnection>,
    pause: Pause,
    env: Arc<dyn Env>,
    /// The place behind the workload's own statements.
    begins: usize,
    counted: Arc<[Counted]>,
}

impl Timed {
    /// Carries something out, and counts its time under a statement when it ends well.
    fn timed<T>(
        &mut self,
        statement: usize,
        carry_out: impl FnOnce(&mut dyn SqlConnection) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let is_timed = self.counted.get(statement).is_some_and(Counted::is_timed);
        let began_ns = is_timed.then(|| self.env.now());
        let done = carry_out(&mut *self.connection)?;
        if let Some(counted) = self.counted.get(statement) {
            counted.add(began_ns.map(|began_ns| self.env.now() - began_ns));
        }
        Ok(done)
    }
}

impl SqlConnection for Timed {
    fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    fn prepare_what_can(
        &mut self,
        statements: &[String],
    ) -> Result<Vec<(usize, SessionError)>, SessionError> {
        self.connection.prepare_what_can(statements)
    }

    fn run(&mut self, sql: &str) -> Result<(), SessionError> {
        self.connection.run(sql)
    }

    fn ask(&mut self, sql: &str, visit: Visit<'_>) -> Result<(), SessionError> {
        self.connection.ask(sql, visit)
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.timed(self.begins, |connection| connection.begin())
    }

    fn begin_reading(&mut self) -> Result<(), SessionError> {
        self.timed(self.begins, |connection| connection.begin_reading())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.timed(self.begins + 1, |connection| connection.commit())
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.connection.rollback()
    }

    fn watch_transactions(&mut self) -> Result<(), SessionError> {
        self.connection.watch_transactions()
    }

    fn in_transaction(&self) -> bool {
        self.connection.in_transaction()
    }

    fn execute(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<u64, SessionError> {
        self.timed(statement, |connection| {
            connection.execute(statement, parameters)
        })
    }

    fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.timed(statement, |connection| {
            connection.query(statement, parameters, visit)
        })
    }

    fn query_unread(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.timed(statement, |connection| {
            connection.query_unread(statement, parameters)
        })
    }

    fn query_to_keep(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: Visit<'_>,
    ) -> Result<u64, SessionError> {
        self.timed(statement, |connection| {
            connection.query_to_keep(statement, parameters, visit)
        })
    }

    /// Statements of a pipeline are not timed: their answers arrive together.
    fn send(&mut self, statement: usize, parameters: &[Value<'_>]) -> Result<(), SessionError> {
        self.connection.send(statement, parameters)
    }

    fn sync_pipeline(&mut self) -> Result<(), SessionError> {
        self.connection.sync_pipeline()
    }

    fn end_pipeline(&mut self) -> Result<(), PipelineFailure> {
        self.connection.end_pipeline()
    }

    fn load(&mut self, part: &LoadPart) -> Result<u64, SessionError> {
        self.connection.load(part)
    }

    fn pause(&mut self, time: Duration) {
        self.pause.wait(time);
    }

    fn limit_statement(&mut self, limit: Option<Duration>) -> Result<(), SessionError> {
        self.connection.limit_statement(limit)
    }

    fn watch_temporary_space(&mut self) -> Result<(), SessionError> {
        self.connection.watch_temporary_space()
    }

    fn temporary_bytes(&mut self) -> Option<u64> {
        self.connection.temporary_bytes()
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_statements_are_timed_now_and_then_and_long_ones_always() {
        let timed_of = |taken_ns: u64| {
            let counted = Counted::default();
            for _ in 0..160 {
                counted.add(counted.is_timed().then_some(taken_ns));
            }
            let [count, timed, total_ns] = [&counted.count, &counted.timed, &counted.total_ns]
                .map(|counter| counter.load(Ordering::Relaxed));
            assert_eq!((count, total_ns), (160, timed * taken_ns));
            timed
        };
        assert_eq!(timed_of(5_000), 10);
        assert_eq!(timed_of(2_000_000), 160);
    }

    #[test]
    fn a_long_statement_is_known_by_its_beginning() {
        assert_eq!(name_of("select a\n  from b"), "select a from b");
        let long = name_of(&"word ".repeat(50));
        assert_eq!(long.chars().count(), NAME_CHARS);
        assert!(long.ends_with('…'));
    }
}
