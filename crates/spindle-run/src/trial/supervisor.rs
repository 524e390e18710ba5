//! Starts the process of a trial, holds it to its memory budget and its layout's limit, passes its progress on, and
//! ends it when the run is interrupted. Only the process started here is ever killed, by its own handle.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use spindle_engines::EngineError;
use spindle_engines::sql::server;

use super::limit_probe::LimitProbe;
use super::own_cost::OwnCostTask;
use super::protocol::{Order, Outcome, Progress, Report, Task, TrialDatabase};
use spindle_result::OwnCost;
use spindle_system::io_limit::{IoGroup, IoLimit};
use spindle_system::memory::{MemoryBudget, MemoryGroup, MemoryUsage};

/// The hidden command that turns the program into a worker.
pub const WORKER_COMMAND: &str = "trial-worker";
/// What a worker allocates to add up what it measured, bytes: histograms above all, a quarter of a megabyte each; 0.75
/// MiB were seen. The same for every case.
const BOOKKEEPING_BYTES: u64 = 2 << 20;
/// What a client allocates until it is at work, at most, bytes: its thread and its session.
const CLIENT_BYTES: u64 = 128 << 10;
/// A row lock: its entry in a hash table that may be half empty, and in the transaction's list.
const ROW_LOCK_BYTES: u64 = 192;
/// Rows, each of a block at most, that a session has copies of at once: two on the way to an earlier version, two in
/// redo and undo.
const ROW_COPIES: u64 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why there is no outcome.
#[derive(Debug)]
pub enum TrialError {
    /// The trial broke off; others may go on.
    Failed(EngineError),
    /// The person wants the run to stop.
    Interrupted,
}

/// What a process is held to from before its first I/O.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds<'a> {
    /// Its memory.
    pub memory: Option<&'a MemoryBudget>,
    /// Its I/O.
    pub io: Option<&'a IoLimit>,
}

struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    // Dropped after the process is gone: a group with processes cannot be removed.
    io_group: Option<IoGroup>,
    group: Option<MemoryGroup>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.io_group = None;
        self.group = None;
    }
}

/// Runs a trial to its end. `progress` hears how it goes; `interrupted` is looked at ten times a second.
pub fn run(
    task: &Task,
    bounds: Bounds<'_>,
    interrupted: &AtomicBool,
    mut progress: impl FnMut(&Progress),
) -> Result<Outcome, TrialError> {
    let order = Order::Trial(Box::new(task.clone()));
    let mut at_work = false;
    converse(&order, bounds, interrupted, |worker, report| match report {
        Report::Opened => {
            let clients_bytes = u64::from(task.clients) * CLIENT_BYTES;
            limit_memory(worker, task, clients_bytes)?;
            send(worker, "go")?;
            Ok(None)
        }
        Report::Progress(heard) => {
            if !std::mem::replace(&mut at_work, true) {
                // The clients have what they need: what they did not take shall not be page cache.
                limit_memory(worker, task, 0)?;
            }
            progress(&heard);
            Ok(None)
        }
        Report::Done(outcome) => Ok(Some(*outcome)),
        other => Err(unexpected(&other)),
    })
}

/// Finds out what Spindle itself costs.
pub fn own_cost(task: &OwnCostTask, interrupted: &AtomicBool) -> Result<OwnCost, TrialError> {
    let order = Order::OwnCost(Box::new(task.clone()));
    let free = Bounds::default();
    converse(&order, free, interrupted, |_, report| match report {
        Report::OwnCost(cost) => Ok(Some(cost)),
        other => Err(unexpected(&other)),
    })
}

/// Finds out whether a limit holds a process; the answer is the rate that it did not hold, in words, or `None`.
pub fn probe_limit(
    task: &LimitProbe,
    limit: &IoLimit,
    interrupted: &AtomicBool,
) -> Result<Option<String>, TrialError> {
    let order = Order::LimitProbe(Box::new(task.clone()));
    let bounds = Bounds {
        memory: None,
        io: Some(limit),
    };
    converse(&order, bounds, interrupted, |_, report| match report {
        Report::LimitProbed { exceeded } => Ok(Some(exceeded)),
        other => Err(unexpected(&other)),
    })
}

fn unexpected(report: &Report) -> EngineError {
    match report {
        Report::Failed { error } => error.clone(),
        other => EngineError::from(format!("the worker said {other:?}")),
    }
}

/// Starts a worker on an order and hears what it reports, until `hear` has its answer or a reason to give up.
fn converse<T>(
    order: &Order,
    bounds: Bounds<'_>,
    interrupted: &AtomicBool,
    mut hear: impl FnMut(&mut Worker, Report) -> Result<Option<T>, EngineError>,
) -> Result<T, TrialError> {
    let mut worker = start(bounds).map_err(TrialError::Failed)?;
    let output = worker
        .child
        .stdout
        .take()
        .expect("the worker's output is a pipe");
    let (sender, reports) = mpsc::channel();
    let listener = std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // The run has lost interest.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let text =
        serde_json::to_string(order).expect("an order holds only strings, numbers and lists");
    send(&mut worker, &text).map_err(TrialError::Failed)?;
    let result = loop {
        if interrupted.load(Ordering::Relaxed) {
            break Err(TrialError::Interrupted);
        }
        let line = match reports.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(TrialError::Failed(ended(&mut worker).into()));
            }
            Ok(line) => line,
        };
        let heard = serde_json::from_str(&line)
            .map_err(|error| EngineError::from(format!("the worker said {line:?}: {error}")))
            .and_then(|report| hear(&mut worker, report));
        match heard {
            Ok(None) => {}
            Ok(Some(answer)) => break Ok(answer),
            Err(reason) => break Err(TrialError::Failed(reason)),
        }
    };
    drop(worker);
    // The pipe is closed now.
    let _ = listener.join();
    result
}

fn start(bounds: Bounds<'_>) -> Result<Worker, EngineError> {
    let program = std::env::current_exe()
        .map_err(|error| EngineError::failed("where this program is", error))?;
    let group = bounds.memory.map(MemoryBudget::create_group).transpose();
    let group = group.map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // A process group of its own: an interrupt at the terminal is the run's to handle.
        .process_group(0)
        .spawn()
        .map_err(|error| EngineError::failed("starting the process of a trial", error))?;
    let input = child.stdin.take();
    let added = group
        .as_ref()
        .map(|group| group.add_process(child.id()))
        .transpose();
    let mut worker = Worker {
        child,
        input,
        io_group: None,
        group,
    };
    added.map_err(|error| error.to_string())?;
    if let Some(limit) = bounds.io {
        let memory_group = worker.group.as_ref();
        let memory_group = memory_group.map(|group| (group.version(), group.path()));
        let held = limit.hold(worker.child.id(), memory_group);
        worker.io_group = Some(held.map_err(|error| format!("limiting I/O: {error}"))?);
    }
    Ok(worker)
}

fn send(worker: &mut Worker, line: &str) -> Result<(), EngineError> {
    let input = worker
        .input
        .as_mut()
        .expect("the worker's input is open while it lives");
    writeln!(input, "{line}")
        .and_then(|()| input.flush())
        .map_err(|error| EngineError::failed("the process of the trial does not listen", error))
}

/// Holds the worker to what it has now, buffer cache included, the budget's rest for the page cache, `to_come_bytes` of
/// memory that it has yet to allocate, and what its transactions may take.
fn limit_memory(worker: &Worker, task: &Task, to_come_bytes: u64) -> Result<(), EngineError> {
    let Some(group) = &worker.group else {
        return Ok(());
    };
    let refused = |error| EngineError::from(ToString::to_string(&error));
    // A kernel without swap accounting has no such setting, and where nothing can swap it says nothing.
    let _ = group.forbid_swap();
    let limit_bytes = match &task.database {
        TrialDatabase::Kernel(kernel) => {
            let usage = group.usage().map_err(refused)?;
            let memory = kernel.spec.memory;
            let page_cache_bytes = memory.memory_bytes - memory.buffer_cache_bytes;
            let transaction_bytes = transaction_bytes(task, kernel.spec.files.block_size_bytes);
            let to_come_bytes = to_come_bytes + transaction_bytes + BOOKKEEPING_BYTES;
            own_bytes(&usage) + to_come_bytes + page_cache_bytes
        }
        // A server takes its buffer cache when it needs it, and its sessions' memory with them: the limit is the same
        // from the beginning to the end.
        TrialDatabase::Server(of) => of.memory_bytes + server(of.kind).overhead_bytes(&of.request),
        // Spindle does not control the memory of an existing server.
        TrialDatabase::Remote(_) => return Ok(()),
    };
    group.set_limit(limit_bytes).map_err(refused)
}

/// Memory that the transactions of all clients may take at once, besides what the clients themselves do: a lock for
/// each row they change, and copies of rows on the way.
fn transaction_bytes(task: &Task, block_bytes: u64) -> u64 {
    let rows = task.workload.transactions.settings().locked_rows();
    // The ledger's row comes on top.
    let locks_bytes = (u64::from(rows) + 1) * ROW_LOCK_BYTES;
    let copies_bytes = ROW_COPIES * block_bytes;
    u64::from(task.clients) * (locks_bytes + copies_bytes)
}

/// What a group holds that is no page cache: its programs' memory, and what the kernel holds for them (stacks of
/// threads, page tables, I/O under way), which counts against the limit, too.
fn own_bytes(usage: &MemoryUsage) -> u64 {
    usage.total_bytes.saturating_sub(usage.file_bytes)
}

fn ended(worker: &mut Worker) -> String {
    let status = match worker.child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let usage = worker.group.as_ref().and_then(|group| group.usage().ok());
    match usage.and_then(|usage| usage.out_of_memory_kills) {
        Some(1..) => {
            "the memory budget was too small for the database itself, and the kernel killed it: \
                      set database.memory higher"
                .to_string()
        }
        _ => format!("the process of the trial ended without a result ({status})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_holds_for_a_worker_is_its_own() {
        let usage = MemoryUsage {
            total_bytes: 10 << 20,
            anonymous_bytes: 5 << 20,
            shared_bytes: 1 << 20,
            file_bytes: 3 << 20,
            ..MemoryUsage::default()
        };
        assert_eq!(own_bytes(&usage), 7 << 20);
    }
}
