//! What a trial measures: the warm-up, the time in which everything is counted, and what is looked at when the clients
//! have gone. `worker` opens the database before it and stops it afterwards.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use spindle_engines::engine::{CacheCounts, RunningEngine};
use spindle_engines::{EngineError, ErrorKind};
use spindle_io::Env;
use spindle_io::real::facts;
use spindle_workload::driver::{KindRecord, LeftOpen, Running};

use super::aftermath::{Aftermath, audit_of};
use super::channel::say;
use super::clients::Window;
use super::counter_snapshot::{
    CounterSnapshot, ProcessCounts, cache_use, client_processors, cpu_per_transaction, cpu_shares,
    device_counts, fetched_bytes, io_calls, physical_counts, response_time_between, statements,
    tool_counts, waits,
};
use super::heartbeat::Heartbeat;
use super::limit_check;
use super::load::clients::LoadClients;
use super::open_loop;
use super::outside::{as_seen_from_outside, is_apart};
use super::page_cache::{PAGE_BYTES, cached_pages_of, dirty_bytes_of, not_direct};
use super::promise::promise_of;
use super::protocol::{
    Span, Task, TrialDatabase, TrialOutcome, WordToWorker, WorkerReport, data_paths, file_paths,
};
use super::query_run::query_run;
use super::series_recorder::{self, SeriesRecorder};
use super::times_of_kinds::{deferred, fell_behind, kinds, latency};
use super::turns;
use super::watching::{Until, Watched};
use crate::observe::series::DatabaseState;
use spindle_experiment::{Caching, WriteSync};
use spindle_result::{
    Audit, CacheUse, Capacity, ClientProcessors, Deferred, IoPerTransaction, Memory, QueryRun,
    SegmentSpace, StatementTime, SystemSeries, TrialFigures, TrialTimes, WarmUp,
};
use spindle_system::SystemTree;
use spindle_system::file_locks::WritingThreads;
use spindle_system::processes::Processes;
use spindle_system::sampler::Sampler;
use spindle_system::threads::ThreadTimes;
use spindle_text::quantity::size;

/// Clients that begin a turn work this long before it counts.
const RAMP_MS: u64 = 100;
/// After the clients have stopped, DBWR may still have a batch under way: at most this many looks wait for it.
const SETTLE_LOOKS: u32 = 50;
const SETTLE_LOOK: Duration = Duration::from_millis(20);

/// A trial whose clients are at work.
pub(super) struct Measurement<'a> {
    pub task: &'a Task,
    pub env: &'a Arc<dyn Env>,
    pub engine: &'a Arc<dyn RunningEngine>,
    pub load: LoadClients,
    /// When the clients were started.
    pub started_ns: u64,
    /// What had been read into the cache before.
    pub cache_at_start: Option<CacheCounts>,
    /// Memory of the process before there were clients.
    pub instance_bytes: Option<u64>,
    /// What the run says of turns.
    pub words: Receiver<WordToWorker>,
    /// Where the time went so far.
    pub times: TrialTimes,
}

/// What was counted while the clients were at work.
struct Measured {
    span: Span,
    warm_up: Option<WarmUp>,
    capacity: Option<Capacity>,
    begin: CounterSnapshot,
    end: CounterSnapshot,
    watched: Watched,
    system: SystemSeries,
}

impl Measured {
    /// With what was counted in the turn that followed.
    fn and(mut self, turn: Measured) -> Measured {
        self.end.put_off(&turn.begin, &turn.end);
        self.span.end_ns = turn.span.end_ns;
        self.watched.samples.extend(turn.watched.samples);
        self.watched.backlogs.extend(turn.watched.backlogs);
        turns::join_series(&mut self.system, turn.system);
        self
    }
}

impl Measurement<'_> {
    fn moment(&mut self, sampler: &Sampler) -> Result<CounterSnapshot, EngineError> {
        let load = self.load.counts(self.env.now())?;
        let drivers = load.threads;
        Ok(CounterSnapshot {
            drivers,
            at_ns: load.at_ns,
            committed: load.committed(),
            committed_by_client: load.committed_by_client,
            spent: load.spent,
            retries: load.retries,
            deadlocks: load.deadlocks,
            errors: load.errors,
            reconnects: load.reconnects,
            counts: self.engine.counters().counts(),
            waits: self.engine.counters().waits(),
            session_waits: self.engine.counters().session_waits(),
            cache: self.engine.counters().cache(),
            statements: load.statements,
            clients: drivers.map(|clients| self.with_sessions(&clients)),
            system: sampler.sample(),
            process: ProcessCounts::now(&SystemTree::default()),
            charged: limit_check::charged(&self.task.limited),
        })
    }

    /// Whether all of the database's I/O is this process's own.
    fn is_embedded(&self) -> bool {
        matches!(self.task.database, TrialDatabase::Kernel(_))
    }

    /// Of what use the buffer cache was; `None` where its size is not known.
    fn cache_use(&self, begin: &CounterSnapshot, end: &CounterSnapshot) -> Option<CacheUse> {
        let cache_bytes = match &self.task.database {
            TrialDatabase::Kernel(kernel) => kernel.spec.memory.buffer_cache_bytes,
            TrialDatabase::Server(server) => server.request.buffer_cache_bytes,
            TrialDatabase::Remote(_) => return None,
        };
        cache_use([self.cache_at_start, begin.cache, end.cache], cache_bytes)
    }

    /// The threads of clients, with those of a server that serve them.
    fn with_sessions(&self, clients: &ThreadTimes) -> ThreadTimes {
        let files = SystemTree::default();
        let threads = self.engine.counters().session_threads().into_iter();
        let threads = threads.map(|thread| (thread.process_id, thread.thread_id));
        let ended = self.engine.counters().ended_processes();
        let ended = ThreadTimes {
            running_ns: ended.running_ns,
            run_queue_ns: ended.run_queue_ns,
            ..ThreadTimes::default()
        };
        clients
            .plus(&ThreadTimes::of_threads(&files, threads))
            .plus(&ended)
    }

    /// Measures it, and lets the clients go. Error: why it counts for nothing, in words.
    pub async fn carry_out(mut self, heartbeat: Heartbeat) -> Result<TrialOutcome, EngineError> {
        let measured = self.measure(&heartbeat).await?;
        limit_check::check(&self.task.limited, &measured.begin, &measured.end)?;
        self.check_errors(&measured.begin, &measured.end)?;
        let aftermath = self.wind_up(heartbeat).await?;
        Ok(self.outcome(measured, aftermath))
    }

    /// Warms up, and counts while the clients are at work.
    async fn measure(&mut self, heartbeat: &Heartbeat) -> Result<Measured, EngineError> {
        let sampler = Sampler::new(
            SystemTree::default(),
            self.task.devices.clone(),
            Processes::with_servers(std::process::id(), self.engine.counters().processes()),
        );
        let is_counted = self.task.workload.transactions.are_counted();
        let began = Instant::now();
        // What ends with the last transaction is measured from the first on.
        let warm_up = match is_counted {
            true => None,
            false => {
                self.load.begun(self.task.workload.arrivals).await?;
                self.warm_up().await?
            }
        };
        let capacity = match self.task.workload.promised {
            Some(promised) => Some(self.find_capacity(promised).await?),
            None => None,
        };
        self.times.warm_up_ms = milliseconds(began);
        let until = match is_counted {
            true => Until::Finished,
            false => Until::Passed(self.task.measure_ms),
        };
        let mut measured = match self.task.turn_ms {
            Some(turn_ms) => self.measure_by_turns(&sampler, turn_ms, heartbeat).await?,
            None => self.measure_until(&sampler, until).await?,
        };
        measured.warm_up = warm_up;
        measured.capacity = capacity;
        Ok(measured)
    }

    /// Counts while the clients are at work.
    async fn measure_until(
        &mut self,
        sampler: &Sampler,
        until: Until,
    ) -> Result<Measured, EngineError> {
        self.load.measure(true);
        self.arrange(until, self.task.sample_ms, true).await?;
        let began_ns = facts::monotonic_ns();
        let begin = self.moment(sampler)?;
        let recorder = self.record_series(sampler.clone())?;
        let watched = self.watch(until, self.task.sample_ms, true).await?;
        self.load.measure(false);
        let span = Span {
            begin_ns: began_ns,
            end_ns: facts::monotonic_ns(),
        };
        let end = self.moment(sampler)?;
        Ok(Measured {
            span,
            warm_up: None,
            capacity: None,
            begin,
            end,
            watched,
            system: recorder.finish(),
        })
    }

    /// Counts in each turn that the run lets it take, and pauses in between.
    async fn measure_by_turns(
        &mut self,
        sampler: &Sampler,
        turn_ms: u64,
        heartbeat: &Heartbeat,
    ) -> Result<Measured, EngineError> {
        let mut sum: Option<Measured> = None;
        loop {
            if let Some(running) = self.load.here() {
                running.pause().await;
            }
            heartbeat.pause();
            say(&WorkerReport::AtRest);
            let word = self.words.recv();
            heartbeat.go_on();
            match (word, sum) {
                (Ok(WordToWorker::Turn), so_far) => {
                    if let Some(running) = self.load.here() {
                        running.go_on();
                    }
                    self.watch(Until::Passed(RAMP_MS), RAMP_MS, false).await?;
                    let turn = self.measure_until(sampler, Until::Passed(turn_ms)).await?;
                    sum = Some(match so_far {
                        Some(so_far) => so_far.and(turn),
                        None => turn,
                    });
                }
                (Ok(WordToWorker::End), Some(measured)) => return Ok(measured),
                _ => return Err(EngineError::new(ErrorKind::Interrupted, "the run ended")),
            }
        }
    }

    /// Lets the clients go, and looks at what they leave behind.
    async fn wind_up(&mut self, heartbeat: Heartbeat) -> Result<Aftermath, EngineError> {
        let memory = self.memory();
        let dirty_buffer_bytes = self.engine.counters().dirty_bytes();
        self.load.stop().await?;
        let (dirty_bytes, flush) = self.settle().await?;
        let standstill = heartbeat.finish();
        let cached_pages = self.cached_pages();
        let page_cache_bytes = self.page_cache_bytes();
        // A check remembers more than the database does.
        say(&WorkerReport::Measured);
        if self.words.recv() != Ok(WordToWorker::Check) {
            return Err(EngineError::new(ErrorKind::Interrupted, "the run ended"));
        }
        let began = Instant::now();
        let check = self.engine.check(self.load.acknowledged()).await;
        self.times.check_ms = milliseconds(began);
        let check = check.map_err(|error| match error.kind() {
            ErrorKind::LostRows => EngineError::failed("the check failed", error),
            _ => EngineError::failed("whether something was lost is not known", error),
        })?;
        let mut warnings = self.engine.counters().warnings();
        if self.is_durable_at_once() && dirty_bytes.is_some_and(|bytes| bytes > 0) {
            warnings.push(format!(
                "{} of the files were still dirty at the end, though every write should have been durable",
                size(dirty_bytes.unwrap_or(0))
            ));
        }
        warnings.extend(not_direct(cached_pages));
        Ok(Aftermath {
            memory,
            dirty_buffer_bytes,
            dirty_bytes,
            flush,
            standstill,
            cached_pages,
            page_cache_bytes,
            check,
            warnings,
        })
    }

    /// The time measured: what ends with the last transaction ends when the last client does.
    fn at_work_ns(&self, begin: &CounterSnapshot, end: &CounterSnapshot) -> u64 {
        let is_counted = self.task.workload.transactions.are_counted();
        match self.load.here().and_then(Running::at_work_ns) {
            Some((first_ns, last_ns)) if is_counted => last_ns - first_ns,
            _ => end.at_ns - begin.at_ns,
        }
    }

    /// Transactions committed meanwhile.
    fn transactions(&self, begin: &CounterSnapshot, end: &CounterSnapshot) -> u64 {
        match self.task.workload.transactions.are_counted() {
            true => end.committed,
            false => end.committed - begin.committed,
        }
    }

    /// All of it, put together.
    fn outcome(&mut self, seen: Measured, aftermath: Aftermath) -> TrialOutcome {
        let (begin, end) = (&seen.begin, &seen.end);
        let at_work_ns = self.at_work_ns(begin, end);
        let flush = aftermath.flush;
        self.times.measured_ms = at_work_ns / 1_000_000;
        self.times.flush_ms = flush.map_or(0, |flush| flush.as_millis() as u64);
        // Queries have their answers, whatever is still to be flushed.
        let flushed = flush.filter(|_| !self.task.workload.transactions.ask_queries());
        let measured = Duration::from_nanos(at_work_ns) + flushed.unwrap_or_default();
        let (_, steal_percent) = cpu_shares(&begin.system, &end.system);
        let figures = self.figures(&seen, measured, &aftermath);
        let outcome = TrialOutcome {
            figures,
            span: seen.span,
            steal_percent,
            standstill: aftermath.standstill,
            times: self.times,
            samples: seen.watched.samples,
            system: seen.system,
            answers: self.engine.kept_answers(),
            written: Vec::new(),
        };
        match &self.task.database {
            TrialDatabase::Kernel(_) | TrialDatabase::Server(_) => outcome,
            TrialDatabase::Remote(_) => as_seen_from_outside(outcome),
        }
    }

    /// What results say of it.
    fn figures(&self, seen: &Measured, measured: Duration, aftermath: &Aftermath) -> TrialFigures {
        let (begin, end) = (&seen.begin, &seen.end);
        let transactions = self.transactions(begin, end);
        let record = self.load.record();
        let window = self.window(begin, end, record.rest.left_open);
        let mean = window.mean_time();
        let errors = end.errors - begin.errors;
        let tool = tool_counts(begin, end);
        let device = device_counts(&begin.system, &end.system);
        let fetched_bytes = fetched_bytes(&begin.system, &end.system);
        let audit = audit_of(tool, physical_counts(begin, end), device, fetched_bytes);
        let measured_s = measured.as_secs_f64();
        let per_second = |count: u64| count as f64 / measured_s;
        let is_sampled = self.engine.counters().waits_are_sampled();
        let (cpu, _) = cpu_shares(&begin.system, &end.system);
        let delay_us = || latency(&record.delay_times(), mean.before_begin_us);
        let latency_us = latency(&record.times(), mean.whole_us);
        let deferred = record.rest.deferred.as_ref().map(deferred);
        TrialFigures {
            tpm: transactions as f64 * 60.0 / measured_s,
            transactions,
            retries: end.retries - begin.retries,
            deadlocks: end.deadlocks - begin.deadlocks,
            errors,
            reconnects: end.reconnects - begin.reconnects,
            kinds: kinds(&self.task.workload, &record.kinds, &window.spent),
            rows: self.rows(transactions),
            statements: self.statements(begin, end),
            queries: self.queries(&record.kinds, measured),
            cache: self.cache_use(begin, end),
            measured_s,
            read_iops: tool.map(|tool| per_second(tool.reads)),
            write_iops: tool.map(|tool| per_second(tool.writes)),
            kib_per_s: tool.map(|tool| per_second(tool.read_bytes + tool.write_bytes) / 1024.0),
            latency_us,
            waits: waits(&begin.waits, &end.waits, is_sampled),
            cpu,
            cpu_us_per_transaction: cpu_per_transaction(&begin.system, &end.system, transactions),
            memory: aftermath.memory,
            audit: Audit {
                clients: Some(window.audit(mean)),
                client_processors: self.client_processors(begin, end, &window),
                nearest_limit: limit_check::nearest(&self.task.limited, begin, end),
                ..aftermath.added_to(audit)
            },
            check: aftermath.check.clone(),
            space: space(&**self.engine),
            warnings: self.warnings(aftermath, errors, deferred),
            promise: promise_of(&**self.engine, &self.task.database),
            warm_up: seen.warm_up,
            arrivals: open_loop::arrivals(
                self.task,
                &seen.watched.backlogs,
                transactions,
                delay_us,
            ),
            deferred,
            capacity: seen.capacity.clone(),
            response_time: response_time_between(
                begin,
                end,
                mean,
                transactions * self.processes(),
                latency_us.max,
            ),
            io: IoPerTransaction::of(transactions, tool, device),
            io_calls: self.is_embedded().then(|| io_calls(begin, end)).flatten(),
        }
    }

    /// What the trial itself noticed.
    fn warnings(
        &self,
        aftermath: &Aftermath,
        errors: u64,
        deferred: Option<Deferred>,
    ) -> Vec<String> {
        let mut warnings = aftermath.warnings.clone();
        warnings.extend_from_slice(self.load.warnings());
        warnings.extend(failed_for_good(errors, self.load.first_error()));
        warnings.extend(deferred.and_then(|it| fell_behind(&it, self.task.clients)));
        warnings
    }

    /// What the clients took of this machine's processors; of a database in this process they are part.
    fn client_processors(
        &self,
        begin: &CounterSnapshot,
        end: &CounterSnapshot,
        window: &Window,
    ) -> Option<ClientProcessors> {
        let in_transactions_ns = window.spent.in_transactions();
        is_apart(&self.task.database).then(|| client_processors(begin, end, in_transactions_ns))?
    }

    fn queries(&self, kinds: &[KindRecord], measured: Duration) -> Option<QueryRun> {
        query_run(
            &self.task.workload,
            self.task.clients,
            kinds.to_vec(),
            measured.as_secs_f64(),
        )
    }

    /// What the clients did in the measured time: since they were started, where what ends with the last transaction is
    /// measured from the first on.
    fn window(
        &self,
        begin: &CounterSnapshot,
        end: &CounterSnapshot,
        left_open: LeftOpen,
    ) -> Window {
        let is_counted = self.task.workload.transactions.are_counted();
        let ended = end.committed_by_client.iter();
        let ended_before = begin.committed_by_client.iter();
        let since = |(now, then): (&u64, &u64)| now - if is_counted { 0 } else { *then };
        let (began_ns, spent) = match is_counted {
            true => (self.started_ns, end.spent.clone()),
            false => (begin.at_ns, end.spent.since(&begin.spent)),
        };
        Window {
            length_ns: end.at_ns - began_ns,
            spent,
            ended: ended.zip(ended_before).map(since).collect(),
            left_open,
            is_counted,
        }
    }

    fn record_series(&self, sampler: Sampler) -> Result<SeriesRecorder, EngineError> {
        let engine = Arc::clone(self.engine);
        let database = move || {
            let done = engine.counters().housekeeping();
            DatabaseState {
                checkpoints: done.map(|done| done.checkpoints),
                log_switches: done.and_then(|done| done.log_switches),
                dirty_buffer_bytes: engine.counters().dirty_bytes(),
                cache: engine.counters().cache(),
                segments_bytes: engine.counters().segments_bytes(),
            }
        };
        let writers = WritingThreads::of(SystemTree::default(), std::process::id());
        let stretch_ms = self.task.turn_ms.unwrap_or(self.task.measure_ms);
        let interval_ms = series_recorder::interval_ms(stretch_ms);
        SeriesRecorder::start(sampler, writers, database, interval_ms).map_err(|error| {
            EngineError::failed("starting the thread that samples the system", error)
        })
    }

    /// A trial in which too many transactions failed for good does not count for its layout.
    fn check_errors(
        &self,
        begin: &CounterSnapshot,
        end: &CounterSnapshot,
    ) -> Result<(), EngineError> {
        let (errors, done) = (end.errors - begin.errors, end.committed - begin.committed);
        let limit_percent = self.task.workload.error_limit_percent;
        let percent = 100.0 * errors as f64 / (errors + done).max(1) as f64;
        if percent <= limit_percent {
            return Ok(());
        }
        Err(EngineError::other(format!(
            "{errors} of {} transactions failed for good, {percent:.2} %, more than workload.error_limit, {limit_percent} %; \
             the first error was: {}",
            errors + done,
            self.load.first_error().unwrap_or_default()
        )))
    }

    /// What was still dirty in the page cache when the clients had stopped, and how long flushing it took.
    async fn settle(&self) -> Result<(Option<u64>, Option<Duration>), EngineError> {
        let durable = self.is_durable_at_once();
        let mut dirty_bytes = self.dirty_bytes();
        for _ in 0..SETTLE_LOOKS {
            if !durable || dirty_bytes.is_none_or(|bytes| bytes == 0) {
                break;
            }
            self.env.sleep(SETTLE_LOOK.as_nanos() as u64).await;
            dirty_bytes = self.dirty_bytes();
        }
        let is_remote = matches!(self.task.database, TrialDatabase::Remote(_));
        if durable && dirty_bytes == Some(0) || is_remote {
            return Ok((dirty_bytes, None));
        }
        let began_ns = self.env.now();
        self.engine.flush().await?;
        Ok((
            dirty_bytes,
            Some(Duration::from_nanos(self.env.now() - began_ns)),
        ))
    }

    /// Processes that carry out a transaction side by side: its parts are the means of theirs.
    fn processes(&self) -> u64 {
        match self.is_embedded() {
            true => u64::from(self.task.workload.transactions.settings().processes()),
            // What a server's processes do is not told by transactions.
            false => 1,
        }
    }

    /// Rows that this many transactions have inserted, for a bulk load.
    fn rows(&self, transactions: u64) -> Option<u64> {
        let load = self.task.workload.transactions.bulk_load()?;
        Some(transactions * load.rows_per_transaction)
    }

    /// What each statement took; queries have their own place.
    fn statements(&self, begin: &CounterSnapshot, end: &CounterSnapshot) -> Vec<StatementTime> {
        let transactions = &self.task.workload.transactions;
        match (transactions.ask_queries(), transactions.are_counted()) {
            (true, _) => Vec::new(),
            (false, true) => statements(&[], &end.statements),
            (false, false) => statements(&begin.statements, &end.statements),
        }
    }

    /// What the process takes of memory while the clients are at work; a server's is not asked for.
    fn memory(&self) -> Option<Memory> {
        let TrialDatabase::Kernel(kernel) = &self.task.database else {
            return None;
        };
        let (before, now) = (self.instance_bytes?, facts::anonymous_bytes()?);
        let buffer_cache_bytes = kernel.spec.memory.buffer_cache_bytes;
        Some(Memory {
            buffer_cache_bytes,
            instance_bytes: before.saturating_sub(buffer_cache_bytes),
            session_bytes: now.saturating_sub(before) / u64::from(self.task.clients),
        })
    }

    /// Whether every write is durable when it returns. Servers write as they do, and flush at their checkpoints.
    fn is_durable_at_once(&self) -> bool {
        match &self.task.database {
            TrialDatabase::Kernel(kernel) => kernel.spec.instance.write_sync == WriteSync::Dsync,
            TrialDatabase::Server(_) | TrialDatabase::Remote(_) => false,
        }
    }

    fn dirty_bytes(&self) -> Option<u64> {
        let paths = file_paths(&self.task.database);
        paths.iter().map(|path| dirty_bytes_of(path)).sum()
    }

    /// What the page cache holds of the datafiles of a direct case, which is nothing where direct is direct. Which
    /// files a server reads otherwise is its own affair.
    fn cached_pages(&self) -> Option<u64> {
        match &self.task.database {
            TrialDatabase::Kernel(kernel) if kernel.io.caching == Caching::Direct => {
                self.pages_in_cache()
            }
            _ => None,
        }
    }

    /// What the page cache holds of the files of a case that goes through it.
    fn page_cache_bytes(&self) -> Option<u64> {
        let caching = match &self.task.database {
            TrialDatabase::Kernel(kernel) => kernel.io.caching,
            TrialDatabase::Server(server) => server.caching,
            TrialDatabase::Remote(_) => return None,
        };
        match caching {
            Caching::Direct => None,
            Caching::Buffered => self.pages_in_cache().map(|pages| pages * PAGE_BYTES),
        }
    }

    fn pages_in_cache(&self) -> Option<u64> {
        let paths = data_paths(&self.task.database);
        cached_pages_of(paths.iter().map(|path| path.as_path()))
    }
}

/// Milliseconds since then.
pub(super) fn milliseconds(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

/// What is to be said of transactions that failed for good.
fn failed_for_good(errors: u64, first: Option<String>) -> Option<String> {
    (errors > 0).then(|| {
        let first = first.unwrap_or_default();
        format!("{errors} transactions failed for good; the first error was: {first}")
    })
}

fn space(engine: &dyn RunningEngine) -> Vec<SegmentSpace> {
    let segments = engine.counters().segments().into_iter();
    let space = segments.map(|segment| SegmentSpace {
        segment: segment.name,
        extents: segment.extents,
        bytes: segment.bytes,
    });
    space.collect()
}
