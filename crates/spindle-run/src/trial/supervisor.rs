//! Starts the process of a trial, holds it to its memory budget and its layout's limit, passes its progress on, and
//! ends it when the run is interrupted. Only the process started here is ever killed, by its own handle.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde::Serialize;
use spindle_engines::sql::server;
use spindle_engines::{Cause, EngineError, ErrorKind};

use super::limit_probe::LimitProbe;
use super::own_cost::OwnCostTask;
use super::protocol::{
    Order, Task, TrialDatabase, TrialOutcome, TrialProgress, WordToWorker, WorkerReport,
};
use spindle_result::OwnCost;
use spindle_system::disk::DiskCounters;
use spindle_system::io_limit::{IoGroup, IoLimit};
use spindle_system::memory::{MemoryBudget, MemoryError, MemoryGroup, MemoryUsage};
use spindle_system::own_group;
use spindle_system::{DeviceNumber, SystemTree};

/// The hidden command that turns the program into a worker.
pub const WORKER_COMMAND: &str = "trial-worker";
/// What a worker allocates to add up what it measured, bytes: histograms above all, a quarter of a megabyte each; 0.75
/// MiB were seen. The same for every case.
const BOOKKEEPING_BYTES: u64 = 2 << 20;
/// What a client allocates until it is at work, at most, bytes: its thread and its session.
const CLIENT_BYTES: u64 = 128 << 10;
/// What the kernel holds for the I/O of a client or a writer, at most, bytes: a worker of io_uring with its stack, and
/// requests under way. It counts against the limit.
const KERNEL_BYTES: u64 = 32 << 10;
/// At most this many clients have I/O under way.
const CLIENTS_IN_KERNEL: u32 = 64;
/// A row lock: its entry in a hash table that may be half empty, and in the transaction's list.
const ROW_LOCK_BYTES: u64 = 192;
/// Rows, each of a block at most, that a session has copies of at once: two on the way to an earlier version, two in
/// redo and undo.
const ROW_COPIES: u64 = 4;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longest wait for the outstanding I/O of a process that stands still.
const DEVICES_WAIT_MAX: Duration = Duration::from_millis(50);
/// Longest time that servers killed with their trial may take to end.
const SERVERS_LIMIT: Duration = Duration::from_secs(30);
const DEVICES_LOOK: Duration = Duration::from_micros(500);

/// Page cache that is left when the kernel has killed a process for its memory: where it is more, the kernel could have
/// taken it back, but for what was being read or written just then.
const PAGE_CACHE_LEFT_BYTES: u64 = 512 << 10;

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

impl Worker {
    fn memory(&self) -> MemoryUsage {
        let usage = self.group.as_ref().and_then(|group| group.usage().ok());
        usage.unwrap_or_default()
    }

    /// Fails when the kernel has killed a server of the worker's, or a session of one, which may have come back.
    fn lost_no_server(&self) -> Result<(), EngineError> {
        match self.memory().out_of_memory_kills {
            Some(1..) => Err(EngineError::other(
                "the memory budget was too small for the database and its sessions, and the kernel killed a process of \
                 the server: set database.memory higher, or what a session may take lower",
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        // It may have ended already.
        let _ = self.child.kill();
        if let Some(group) = &self.io_group {
            // Else its servers end when what a limit holds back has been written, which may take minutes.
            let _ = group.lift();
        }
        let _ = self.child.wait();
        let io_group = self.io_group.iter().map(IoGroup::path);
        let groups = io_group.chain(self.group.iter().map(MemoryGroup::path));
        groups.for_each(|group| own_group::wait_until_left(group, SERVERS_LIMIT));
        self.io_group = None;
        self.group = None;
    }
}

/// Runs a trial to its end. `progress` hears how it goes; `interrupted` is looked at ten times a second.
pub fn run(
    task: &Task,
    bounds: Bounds<'_>,
    interrupted: &AtomicBool,
    mut progress: impl FnMut(&TrialProgress),
) -> Result<TrialOutcome, EngineError> {
    let order = Order::Trial(Box::new(task.clone()));
    let mut at_work = false;
    converse(&order, bounds, interrupted, |worker, report| match report {
        WorkerReport::Done(outcome) => Ok(Some(*outcome)),
        other => attend(worker, task, &mut at_work, other, &mut progress).map(|()| None),
    })
}

/// Does for a trial what its report asks for.
fn attend(
    worker: &mut Worker,
    task: &Task,
    at_work: &mut bool,
    report: WorkerReport,
    progress: &mut impl FnMut(&TrialProgress),
) -> Result<(), EngineError> {
    match report {
        WorkerReport::Opened { shared_bytes } => {
            let connections = task.workload.connections(task.clients);
            let clients_bytes = u64::from(connections) * CLIENT_BYTES + shared_bytes;
            limit_memory(worker, task, clients_bytes)?;
            send(worker, &WordToWorker::Begin)
        }
        WorkerReport::Progress(heard) => {
            if heard.all_at_work && !std::mem::replace(at_work, true) {
                // The clients have what they need: what they did not take shall not be page cache.
                limit_memory(worker, task, 0)?;
            }
            progress(&heard);
            Ok(())
        }
        WorkerReport::Measured => {
            if let Some(group) = &worker.group {
                group.lift_limit().map_err(refused)?;
            }
            send(worker, &WordToWorker::Check)
        }
        other => Err(unexpected(&other)),
    }
}

/// A trial that is measured by turns. In between its process stands still: neither its clients nor its writers do
/// anything.
pub struct TrialByTurns {
    task: Task,
    conversation: Conversation,
    at_work: bool,
}

impl TrialByTurns {
    /// Starts it, and lets it warm up.
    pub fn start(
        task: &Task,
        bounds: Bounds<'_>,
        interrupted: &AtomicBool,
        progress: impl FnMut(&TrialProgress),
    ) -> Result<TrialByTurns, EngineError> {
        let order = Order::Trial(Box::new(task.clone()));
        let mut trial = TrialByTurns {
            task: task.clone(),
            conversation: Conversation::begin(&order, bounds)?,
            at_work: false,
        };
        trial.until_at_rest(interrupted, progress)?;
        Ok(trial)
    }

    /// Lets it be measured for a turn.
    pub fn take_turn(
        &mut self,
        interrupted: &AtomicBool,
        progress: impl FnMut(&TrialProgress),
    ) -> Result<(), EngineError> {
        self.wake(&WordToWorker::Turn)?;
        self.until_at_rest(interrupted, progress)
    }

    /// Lets it look at what it leaves behind, and end.
    pub fn end(mut self, interrupted: &AtomicBool) -> Result<TrialOutcome, EngineError> {
        self.wake(&WordToWorker::End)?;
        let task = &self.task;
        self.conversation
            .hear_until(interrupted, |worker, report| match report {
                WorkerReport::Done(outcome) => Ok(Some(*outcome)),
                other => attend(worker, task, &mut self.at_work, other, &mut |_| {}).map(|()| None),
            })
    }

    fn wake(&mut self, word: &WordToWorker) -> Result<(), EngineError> {
        let worker = &mut self.conversation.worker;
        signal(worker, Signal::CONT).and_then(|()| send(worker, word))
    }

    /// Hears it until its clients pause, and lets it stand still.
    fn until_at_rest(
        &mut self,
        interrupted: &AtomicBool,
        mut progress: impl FnMut(&TrialProgress),
    ) -> Result<(), EngineError> {
        let (task, at_work) = (&self.task, &mut self.at_work);
        self.conversation
            .hear_until(interrupted, |worker, report| match report {
                WorkerReport::AtRest => Ok(Some(())),
                other => attend(worker, task, at_work, other, &mut progress).map(|()| None),
            })?;
        stand_still(&mut self.conversation.worker)?;
        wait_for_devices(&self.task.devices);
        Ok(())
    }
}

fn process_id(worker: &Worker) -> Pid {
    Pid::from_child(&worker.child)
}

fn signal(worker: &Worker, signal: Signal) -> Result<(), EngineError> {
    let sent = rustix::process::kill_process(process_id(worker), signal);
    sent.map_err(|error| EngineError::failed("halting the process of a trial", error))
}

/// Stops the process of a trial, and returns when none of its threads runs.
fn stand_still(worker: &mut Worker) -> Result<(), EngineError> {
    signal(worker, Signal::STOP)?;
    // Not reaped: that is for the code that started it.
    let either = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = rustix::process::waitid(WaitId::Pid(process_id(worker)), either);
    let status =
        status.map_err(|error| EngineError::failed("waiting until a process has halted", error))?;
    match status.is_some_and(|status| status.stopped()) {
        true => Ok(()),
        false => Err(ended(worker)),
    }
}

/// Waits until what a process that stands still had asked of its devices is done. Others may use them, too: so it
/// waits for a short time only.
fn wait_for_devices(devices: &[DeviceNumber]) {
    let files = SystemTree::default();
    let in_flight = |device: &DeviceNumber| {
        let counters = DiskCounters::read(&files, *device);
        counters.is_some_and(|counters| counters.in_flight > 0)
    };
    let began = Instant::now();
    while devices.iter().any(in_flight) && began.elapsed() < DEVICES_WAIT_MAX {
        std::thread::sleep(DEVICES_LOOK);
    }
}

/// Finds out what Spindle itself costs.
pub fn own_cost(task: &OwnCostTask, interrupted: &AtomicBool) -> Result<OwnCost, EngineError> {
    let order = Order::OwnCost(Box::new(task.clone()));
    let free = Bounds::default();
    converse(&order, free, interrupted, |_, report| match report {
        WorkerReport::OwnCost(cost) => Ok(Some(cost)),
        other => Err(unexpected(&other)),
    })
}

/// Finds out whether a limit holds a process; the answer is the rate that it did not hold, in words, or `None`.
pub fn probe_limit(
    task: &LimitProbe,
    limit: &IoLimit,
    interrupted: &AtomicBool,
) -> Result<Option<String>, EngineError> {
    let order = Order::LimitProbe(Box::new(task.clone()));
    let bounds = Bounds {
        memory: None,
        io: Some(limit),
    };
    converse(&order, bounds, interrupted, |_, report| match report {
        WorkerReport::LimitProbed { exceeded } => Ok(Some(exceeded)),
        other => Err(unexpected(&other)),
    })
}

fn unexpected(report: &WorkerReport) -> EngineError {
    match report {
        WorkerReport::Failed { error } => error.clone(),
        other => EngineError::other(format!("the worker said {other:?}")),
    }
}

/// Starts a worker on an order and hears what it reports, until `hear` has its answer or a reason to give up.
fn converse<T>(
    order: &Order,
    bounds: Bounds<'_>,
    interrupted: &AtomicBool,
    hear: impl FnMut(&mut Worker, WorkerReport) -> Result<Option<T>, EngineError>,
) -> Result<T, EngineError> {
    Conversation::begin(order, bounds)?.hear_until(interrupted, hear)
}

/// A worker, and what it says.
struct Conversation {
    // Dropped first: its pipe is closed then, and the thread that listens ends.
    worker: Worker,
    reports: Receiver<String>,
}

impl Conversation {
    fn begin(order: &Order, bounds: Bounds<'_>) -> Result<Conversation, EngineError> {
        let mut worker = start(bounds)?;
        let output = worker
            .child
            .stdout
            .take()
            .expect("the worker's output is a pipe");
        let (sender, reports) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The run has lost interest.
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        send(&mut worker, order)?;
        Ok(Conversation { worker, reports })
    }

    /// Hears what the worker reports, until `hear` has its answer or a reason to give up.
    fn hear_until<T>(
        &mut self,
        interrupted: &AtomicBool,
        mut hear: impl FnMut(&mut Worker, WorkerReport) -> Result<Option<T>, EngineError>,
    ) -> Result<T, EngineError> {
        loop {
            if interrupted.load(Ordering::Relaxed) {
                return Err(EngineError::new(ErrorKind::Interrupted, "interrupted"));
            }
            let line = match self.reports.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(ended(&mut self.worker));
                }
                Ok(line) => line,
            };
            let heard = serde_json::from_str(&line)
                .map_err(|error| EngineError::other(format!("the worker said {line:?}: {error}")))
                .and_then(|report| hear(&mut self.worker, report));
            match heard {
                Ok(None) => {}
                Ok(Some(answer)) => return self.worker.lost_no_server().map(|()| answer),
                Err(reason) => {
                    self.worker.lost_no_server()?;
                    return Err(reason);
                }
            }
        }
    }
}

fn start(bounds: Bounds<'_>) -> Result<Worker, EngineError> {
    let program = std::env::current_exe()
        .map_err(|error| EngineError::failed("where this program is", error))?;
    let group = bounds.memory.map(MemoryBudget::create_group).transpose();
    let group = group.map_err(refused)?;
    let mut child = Command::new(program)
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Its own process group: an interrupt at the terminal is the run's to handle.
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
    added.map_err(refused)?;
    if let Some(limit) = bounds.io {
        let memory_group = worker.group.as_ref();
        let memory_group = memory_group.map(|group| (group.version(), group.path()));
        let held = limit.hold(worker.child.id(), memory_group);
        worker.io_group = Some(held.map_err(|error| EngineError::failed("limiting I/O", error))?);
    }
    Ok(worker)
}

fn send(worker: &mut Worker, said: &impl Serialize) -> Result<(), EngineError> {
    let line = serde_json::to_string(said).expect("it holds only strings, numbers and lists");
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
    // A kernel without swap accounting has no such setting, and where nothing can swap it says nothing.
    let _ = group.forbid_swap();
    let limit_bytes = match &task.database {
        TrialDatabase::Kernel(kernel) => {
            let usage = group.usage().map_err(refused)?;
            let memory = kernel.spec.memory;
            let page_cache_bytes = memory.memory_bytes - memory.buffer_cache_bytes;
            let transaction_bytes = transaction_bytes(task, kernel.spec.files.block_size_bytes);
            let query_bytes = kernel
                .spec
                .query_bytes(task.workload.query_processes(task.clients));
            let connections = task.workload.connections(task.clients);
            let in_kernel = connections.min(CLIENTS_IN_KERNEL) + kernel.spec.instance.writers;
            let kernel_bytes = u64::from(in_kernel) * KERNEL_BYTES;
            let to_come_bytes =
                to_come_bytes + transaction_bytes + query_bytes + kernel_bytes + BOOKKEEPING_BYTES;
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

/// Memory that the transactions of all clients may take at once, apart from what the clients themselves do: a lock for
/// each row they change, and copies of rows on the way.
fn transaction_bytes(task: &Task, block_bytes: u64) -> u64 {
    let rows = task.workload.transactions.settings().locked_rows();
    // The ledger's row comes on top.
    let locks_bytes = (u64::from(rows) + 1) * ROW_LOCK_BYTES;
    let copies_bytes = ROW_COPIES * block_bytes;
    u64::from(task.workload.connections(task.clients)) * (locks_bytes + copies_bytes)
}

/// What a group holds that is no page cache: its programs' memory, and what the kernel holds for them (stacks of
/// threads, page tables, I/O under way), which counts against the limit, too.
fn own_bytes(usage: &MemoryUsage) -> u64 {
    usage.total_bytes.saturating_sub(usage.file_bytes)
}

/// What the system refused of a memory group.
fn refused(error: MemoryError) -> EngineError {
    EngineError::new(error.kind(), error.to_string())
}

fn ended(worker: &mut Worker) -> EngineError {
    let status = match worker.child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    killed_for_memory(&worker.memory()).unwrap_or_else(|| {
        let reason = format!("the process of the trial ended without a result ({status})");
        EngineError::other(reason)
    })
}

/// Why the kernel killed a process, judged by what its group still holds; `None` if it did not.
fn killed_for_memory(left: &MemoryUsage) -> Option<EngineError> {
    left.out_of_memory_kills.filter(|&kills| kills > 0)?;
    Some(match left.file_bytes {
        // It could take back none of that at that moment.
        page_cache_bytes @ PAGE_CACHE_LEFT_BYTES.. => EngineError::new(
            ErrorKind::Disturbed,
            format!(
                "the kernel killed the database to free memory, as {} KiB of page cache were in use for I/O: set \
                 database.memory higher, or read_ahead_kb of the devices lower (/sys/block/*/queue)",
                page_cache_bytes / 1024
            ),
        ),
        _ => EngineError::other(
            "the memory budget was too small for the database itself, and the kernel killed it: set database.memory \
             higher",
        ),
    })
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

    #[test]
    fn a_kill_that_left_page_cache_is_not_blamed_on_the_budget() {
        let left = |file_bytes, kills| MemoryUsage {
            file_bytes,
            out_of_memory_kills: Some(kills),
            ..MemoryUsage::default()
        };
        assert_eq!(killed_for_memory(&left(4 << 20, 0)), None);
        let too_small = killed_for_memory(&left(100 << 10, 1)).unwrap();
        assert_eq!(too_small.kind(), ErrorKind::Failed);
        assert!(
            (too_small.to_string()).contains("the memory budget was too small"),
            "{too_small}"
        );
        let in_use = killed_for_memory(&left(1536 << 10, 1)).unwrap();
        assert_eq!(in_use.kind(), ErrorKind::Disturbed);
        assert!(
            (in_use.to_string()).contains("1536 KiB of page cache were in use for I/O"),
            "{in_use}"
        );
    }
}
