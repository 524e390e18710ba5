//! One client: connects, carries out one transaction after the other, again when others are in the way, and notes on
//! the board what became of each.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spindle_io::Env;

use super::board::{Board, ClientRecord, Coming};
use super::deferral::{Deferral, Deferred, PutsOff, Queue};
use super::parts::ClientPart;
use super::time_spent::{Doing, Open};
use super::work::{ClientError, Work};
use crate::arrivals::Arrivals;
use crate::session::SessionError;
use crate::workload::Client;

/// A transaction that meets others this often in a row is given up: it has failed for good.
const RETRIES_MAX: u32 = 100;
/// How long a client waits for a database that has gone away before it gives up, and the pause between tries.
const RECONNECT_PATIENCE_NS: u64 = 30_000_000_000;
const RECONNECT_PAUSE_NS: u64 = 100_000_000;

/// How clients behave.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Behaviour {
    /// Clients at once.
    pub clients: usize,
    /// Transactions that each client carries out before it ends; `None`: until it is told to stop.
    pub transactions: Option<u64>,
    /// A client whose connection is lost connects again; else it ends the run.
    pub reconnect: bool,
    /// Pause after each transaction, nanoseconds; of no use with `arrivals`.
    pub think_time_ns: u64,
    /// Transactions come at their own rate; `None`: each client begins one when it has ended the last. An infinite
    /// rate is that, too, until [`Running::arrive`] sets another.
    pub arrivals: Option<Arrivals>,
    /// Which clients these are, where others are at work elsewhere; `None`: they are all.
    pub part: Option<ClientPart>,
}

impl Behaviour {
    /// Which of all clients these are.
    pub(super) fn part(&self) -> ClientPart {
        self.part.unwrap_or(ClientPart {
            first: 0,
            all: self.clients,
        })
    }
}

/// What clients share.
pub(super) struct Shared<W: Work> {
    pub(super) env: Arc<dyn Env>,
    pub(super) work: Arc<W>,
    pub(super) board: Arc<Board>,
    pub(super) behaviour: Behaviour,
    pub(super) put_off: Queue<W::Txn>,
}

/// Connects a client, at its place on the board, and has it work to its end.
pub(super) async fn run_client<W: Work>(shared: Arc<Shared<W>>, place: usize, client: Client) {
    let worked = ClientPlace::new(&shared, place).work(client).await;
    note_failure(&shared.board, worked);
}

/// Connects a process that carries out what clients put off, and has it do so until they have ended.
pub(super) async fn run_deferred<W: Work>(shared: Arc<Shared<W>>, place: usize) {
    let worked = ClientPlace::new(&shared, place).work_deferred().await;
    note_failure(&shared.board, worked);
}

fn note_failure(board: &Board, worked: Result<(), SessionError>) {
    if let Err(error) = worked {
        let mut failure = board.failure.lock();
        failure.get_or_insert(ClientError::Failed(error));
        drop(failure);
        board.at_work.fetch_sub(1, Ordering::Release);
    }
}

/// A client at its place.
struct ClientPlace<'a, W: Work> {
    env: &'a dyn Env,
    work: &'a W,
    board: &'a Board,
    put_off: &'a Queue<W::Txn>,
    /// Its place on the board: its number among the clients of this process.
    place: usize,
    behaviour: Behaviour,
}

impl<'a, W: Work> ClientPlace<'a, W> {
    fn new(shared: &'a Shared<W>, place: usize) -> ClientPlace<'a, W> {
        ClientPlace {
            env: &*shared.env,
            work: &*shared.work,
            board: &shared.board,
            put_off: &shared.put_off,
            place,
            behaviour: shared.behaviour,
        }
    }

    /// Connects, and waits until all others have.
    async fn come(&self) -> Result<W::Session, SessionError> {
        let coming = Coming(self.board);
        let connected = self.work.connect();
        drop(coming);
        let session = connected?;
        self.board.all_have_come().await;
        self.record().at_work_ns[0].store(self.env.now().max(1), Ordering::Relaxed);
        Ok(session)
    }

    /// Has done its work. What its thread and its connection have done can be counted as long as they exist.
    async fn end(&self) {
        self.turn_to(Doing::Away, self.env.now());
        self.record().at_work_ns[1].store(self.env.now(), Ordering::Relaxed);
        self.board.at_work.fetch_sub(1, Ordering::Release);
        self.board.stopped().await;
    }

    async fn work(self, mut client: Client) -> Result<(), SessionError> {
        let board = self.board;
        let puts_off = PutsOff(board.deferral.as_ref());
        let mut session = self.come().await?;
        let of_work = self.work.transactions(client.number, client.clients);
        let mut left = of_work.or(self.behaviour.transactions).unwrap_or(u64::MAX);
        while left > 0 && !board.is_stopping() {
            if board.rest.is_asked_for() {
                self.turn_to(Doing::Away, self.env.now());
                board.rest.take().await;
                continue;
            }
            left -= 1;
            self.turn_to(Doing::Between, self.env.now());
            let txn = self.work.next(&mut client);
            let terminal = self.work.terminal_times(&txn, &mut client);
            self.pause(terminal.keying_ns).await;
            if board.is_stopping() {
                break;
            }
            let mut due_ns = None;
            if let Some(open) = &board.open {
                self.turn_to(Doing::Idle, self.env.now());
                let is_stopping = || board.is_stopping();
                due_ns = match self.work.due_ns(&txn) {
                    Some(after_ns) => open.due(self.env, after_ns, is_stopping).await,
                    None => open.arrival(self.env, is_stopping).await,
                };
                if due_ns.is_none() {
                    break;
                }
            }
            match &board.deferral {
                Some(deferral) if self.work.is_deferred(self.work.kind(&txn)) => {
                    self.put_off(deferral, txn, due_ns);
                }
                _ => {
                    self.settle(&mut session, &txn, due_ns, self.place).await?;
                }
            }
            self.pause(self.behaviour.think_time_ns + terminal.thinking_ns)
                .await;
        }
        drop(puts_off);
        self.end().await;
        Ok(())
    }

    /// Leaves a transaction to others.
    fn put_off(&self, deferral: &Deferral, txn: W::Txn, due_ns: Option<u64>) {
        let put_off_ns = self.env.now();
        if let (Some(open), Some(due_ns)) = (&self.board.open, due_ns) {
            open.queued_ns
                .fetch_add(put_off_ns.saturating_sub(due_ns), Ordering::Relaxed);
        }
        let deferred = Deferred {
            txn,
            place: self.place,
            put_off_ns,
        };
        self.put_off.put(deferral, deferred);
    }

    /// Carries out what clients put off, until they have ended and nothing is left.
    async fn work_deferred(self) -> Result<(), SessionError> {
        let board = self.board;
        let mut session = self.come().await?;
        let deferral = (board.deferral.as_ref()).expect("there is one where clients put off");
        while !board.is_stopping() {
            if board.rest.is_asked_for() {
                board.rest.take().await;
                continue;
            }
            // Made before the looks: what changes after them ends the wait.
            let changed = deferral.changed.notified();
            // Looked at before the queue: the last client may put something off before it ends.
            let is_over = deferral.is_over();
            match self.put_off.take(deferral) {
                Some(deferred) => {
                    self.settle_deferred(&mut session, deferral, deferred)
                        .await?
                }
                None if is_over => break,
                None if board.is_stopping() || board.rest.is_asked_for() => {}
                None => changed.await,
            }
        }
        self.end().await;
        Ok(())
    }

    async fn settle_deferred(
        &self,
        session: &mut W::Session,
        deferral: &Deferral,
        deferred: Deferred<W::Txn>,
    ) -> Result<(), SessionError> {
        let Deferred {
            txn,
            place,
            put_off_ns,
        } = deferred;
        let is_done = self.settle(session, &txn, None, place).await?;
        if is_done && self.board.measuring.load(Ordering::Relaxed) {
            let completed_ns = self.env.now().saturating_sub(put_off_ns);
            deferral.record.lock().completed.record_ns(completed_ns);
        }
        Ok(())
    }

    /// Carries a transaction out and counts what became of it, for the client at a place; whether it was done.
    async fn settle(
        &self,
        session: &mut W::Session,
        txn: &W::Txn,
        due_ns: Option<u64>,
        place: usize,
    ) -> Result<bool, SessionError> {
        let began_ns = self.begin(txn, due_ns);
        match self.carry_out(session, txn).await {
            Ok(()) => {
                self.count(txn, began_ns, due_ns, place);
                self.count_temporary_space(txn, session);
                Ok(true)
            }
            Err(error) => {
                self.count_given_up(txn, due_ns.unwrap_or(began_ns));
                self.count_error(txn, error, session).await?;
                // What it has written does not count for the next one.
                self.work.temporary_bytes(session);
                Ok(false)
            }
        }
    }

    /// Keys in or thinks for this long, or until told to stop.
    async fn pause(&self, length_ns: u64) {
        if length_ns > 0 {
            let now_ns = self.env.now();
            self.turn_to(Doing::Thinking, now_ns);
            let until_ns = now_ns + length_ns;
            self.board.sleep_until(self.env, until_ns).await;
        }
    }

    fn record(&self) -> &ClientRecord {
        &self.board.records[self.place]
    }

    fn turn_to(&self, doing: Doing, now_ns: u64) {
        let mut clock = self.board.clocks[self.place].lock();
        clock.turn_to(doing, now_ns);
    }

    /// A transaction begins now.
    fn begin(&self, txn: &W::Txn, due_ns: Option<u64>) -> u64 {
        let began_ns = self.env.now();
        let open = Open {
            kind: self.work.kind(txn),
            due_ns: due_ns.unwrap_or(began_ns),
        };
        self.turn_to(Doing::Transaction(open), began_ns);
        if let Some(open_loop) = &self.board.open {
            let delay_ns = began_ns.saturating_sub(open.due_ns);
            open_loop.queued_ns.fetch_add(delay_ns, Ordering::Relaxed);
        }
        began_ns
    }

    /// One that failed for good would have taken longer than it did.
    fn count_given_up(&self, txn: &W::Txn, due_ns: u64) {
        if self.board.measuring.load(Ordering::Relaxed) {
            let age_ns = self.env.now().saturating_sub(due_ns);
            self.board.at_least.lock()[self.work.kind(txn)].record_ns(age_ns);
        }
    }

    fn count(&self, txn: &W::Txn, began_ns: u64, due_ns: Option<u64>, place: usize) {
        let (board, now_ns) = (self.board, self.env.now());
        self.turn_to(Doing::Between, now_ns);
        let histogram = self.place % board.latencies.len();
        if board.measuring.load(Ordering::Relaxed) {
            let latency_ns = now_ns.saturating_sub(due_ns.unwrap_or(began_ns));
            let kind = self.work.kind(txn);
            board.latencies[histogram].lock()[kind].record_ns(latency_ns);
            if let (Some(open), Some(due_ns)) = (&board.open, due_ns) {
                let delay_ns = began_ns.saturating_sub(due_ns);
                open.delays[histogram].lock().record_ns(delay_ns);
            }
        }
        board.records[place]
            .committed
            .fetch_add(1, Ordering::Relaxed);
    }

    fn count_temporary_space(&self, txn: &W::Txn, session: &mut W::Session) {
        let bytes = self.work.temporary_bytes(session);
        if let (Some(bytes), true) = (bytes, self.board.measuring.load(Ordering::Relaxed)) {
            let mut temporary = self.board.temporary[self.work.kind(txn)].lock();
            temporary.bytes += bytes;
            temporary.known += 1;
        }
    }

    /// Counts a transaction that failed for good, and makes the session fit for the next one.
    async fn count_error(
        &self,
        txn: &W::Txn,
        error: SessionError,
        session: &mut W::Session,
    ) -> Result<(), SessionError> {
        let goes_on = match &error {
            SessionError::Refused(_) => true,
            // Others were in the way until it was given up.
            SessionError::Retry(_) | SessionError::Deadlock(_) => true,
            lost if lost.is_lost() => self.behaviour.reconnect,
            SessionError::Lost(_)
            | SessionError::NoRoom(_)
            | SessionError::Rejected { .. }
            | SessionError::Failed(_) => false,
        };
        if !goes_on {
            return Err(error);
        }
        self.record().errors.fetch_add(1, Ordering::Relaxed);
        if self.work.number(txn) > 0 {
            self.record().failed.fetch_add(1, Ordering::Release);
        }
        if self.board.measuring.load(Ordering::Relaxed) {
            self.board.failed[self.work.kind(txn)].fetch_add(1, Ordering::Relaxed);
        }
        let mut first_error = self.board.first_error.lock();
        first_error.get_or_insert(error.to_string());
        drop(first_error);
        if error.is_lost() {
            return self.reconnect(session).await;
        }
        match self.work.rollback(session).await {
            Err(error) if error.is_lost() && self.behaviour.reconnect => {
                self.reconnect(session).await
            }
            rolled_back => rolled_back,
        }
    }

    /// Connects again, for as long as a database takes to come back.
    async fn reconnect(&self, session: &mut W::Session) -> Result<(), SessionError> {
        let now_ns = self.env.now();
        self.turn_to(Doing::Away, now_ns);
        let end_ns = now_ns + RECONNECT_PATIENCE_NS;
        loop {
            match self.work.connect() {
                Ok(connected) => {
                    *session = connected;
                    self.record().reconnects.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) if error.is_lost() && self.env.now() < end_ns => {
                    if self.board.is_stopping() {
                        return Ok(());
                    }
                    let until_ns = self.env.now() + RECONNECT_PAUSE_NS;
                    self.board.sleep_until(self.env, until_ns).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Carries a transaction out, from the beginning again when another was in the way.
    async fn carry_out(&self, session: &mut W::Session, txn: &W::Txn) -> Result<(), SessionError> {
        let record = self.record();
        let mut tries = 0;
        while let Err(error) = self.work.attempt(session, txn).await {
            let deadlocks = match error {
                SessionError::Retry(_) => 0,
                SessionError::Deadlock(_) => 1,
                _ => return Err(error),
            };
            if tries == RETRIES_MAX {
                return Err(error);
            }
            tries += 1;
            record.retries.fetch_add(1, Ordering::Relaxed);
            record.deadlocks.fetch_add(deadlocks, Ordering::Relaxed);
            self.work.rollback(session).await?;
        }
        let number = self.work.number(txn);
        if number > 0 {
            record.acknowledged.store(number, Ordering::Release);
        }
        Ok(())
    }
}
