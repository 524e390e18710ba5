//! Virtual time. Tasks are polled one at a time, in an order drawn from the seed; when none is ready the clock jumps to
//! the next timer (u64 nanoseconds, ties in order of registration). Nothing here reads a real clock, starts a thread or
//! opens a file, so one seed is one history: [`World::trace_hash`] of two runs must agree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

use crate::env::{Env, Join, LocalFuture, ProcessStart, seeded_rng};
use crate::sim::fault::{FailedIo, Fate, Faults, IoFault};
use crate::sync::{Latch, assert_no_latch_held};

/// Polls without the clock moving after which a task is called a spinner.
const POLLS_PER_INSTANT_MAX: u64 = 1_000_000;

/// Why a world stopped before its main task ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// The power was cut, as asked.
    #[error("the power was cut at {at_ns} ns, at I/O {io}")]
    PowerCut {
        /// Virtual time.
        at_ns: u64,
        /// Number of the I/O that was being submitted (the first is 1).
        io: u64,
    },
    /// Nothing is ready and nothing will be: every task waits for another.
    #[error("nothing can go on at {at_ns} ns; waiting: {}", waiting.join(", "))]
    Deadlock {
        /// Virtual time.
        at_ns: u64,
        /// Names of the tasks left.
        waiting: Vec<String>,
    },
    /// A task is always ready, so time stands still.
    #[error("time stands still at {at_ns} ns: `{task}` is always ready")]
    Spinning {
        /// Virtual time.
        at_ns: u64,
        /// The task polled last.
        task: String,
    },
}

type Call = Box<dyn FnOnce() + Send>;

enum Due {
    Wake(Waker),
    Call(Call),
}

struct Timer {
    at_ns: u64,
    sequence: u64,
    due: Due,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        (self.at_ns, self.sequence) == (other.at_ns, other.sequence)
    }
}
impl Eq for Timer {}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        (self.at_ns, self.sequence).cmp(&(other.at_ns, other.sequence))
    }
}

struct Core {
    now_ns: u64,
    sequence: u64,
    timers: BinaryHeap<Reverse<Timer>>,
    started: Vec<(String, ProcessStart)>,
    io_count: u64,
    cut_at_io: Option<u64>,
    power_cut: bool,
    faults: Faults,
    trace: u64,
    order: Xoshiro256PlusPlus,
    devices: Xoshiro256PlusPlus,
}

/// Called with the number of each I/O at its submission.
type Observer = Box<dyn FnMut(u64) + Send>;

/// The simulated world as its inhabitants see it.
pub struct SimEnv {
    seed: u64,
    core: Latch<Core>,
    observer: Latch<Option<Observer>>,
}

impl SimEnv {
    /// Runs `call` after `delay_ns`, outside every latch: how a device ends an I/O.
    pub(crate) fn call_later(&self, delay_ns: u64, call: Call) {
        let mut core = self.core.lock();
        let at_ns = core.now_ns + delay_ns;
        core.add_timer(at_ns, Due::Call(call));
    }

    /// True after a power cut: what is submitted then reaches no device.
    pub(crate) fn power_is_off(&self) -> bool {
        self.core.lock().power_cut
    }

    /// Counts an I/O that a disk has taken, mixes it and its place into the trace, shows it to the observer, and says
    /// what becomes of it.
    pub(crate) fn count_io(&self, taken: FailedIo, place: [u64; 2]) -> Fate {
        let (io, fate) = self.enter_io(taken, place);
        // Taken out while it looks around, so that no latch is held meanwhile.
        let observer = self.observer.lock().take();
        if let Some(mut observer) = observer {
            observer(io);
            *self.observer.lock() = Some(observer);
        }
        fate
    }

    fn enter_io(&self, taken: FailedIo, place: [u64; 2]) -> (u64, Fate) {
        let mut core = self.core.lock();
        core.io_count += 1;
        let io = core.io_count;
        let now_ns = core.now_ns;
        for value in [now_ns, taken.disk, taken.kind as u64, place[0], place[1]] {
            core.mix(value);
        }
        if core.cut_at_io == Some(io) {
            core.power_cut = true;
        }
        let fate = if core.power_cut {
            Fate::NeverEnds
        } else {
            core.faults.fate(io, taken)
        };
        (io, fate)
    }

    /// The next number of the devices' own chance (latencies).
    pub(crate) fn device_chance(&self) -> u64 {
        self.core.lock().devices.next_u64()
    }
}

impl Core {
    fn add_timer(&mut self, at_ns: u64, due: Due) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.timers.push(Reverse(Timer {
            at_ns,
            sequence,
            due,
        }));
    }

    fn mix(&mut self, value: u64) {
        // FNV-1a's prime over 64-bit words: any difference in what happened, or when, changes the hash.
        self.trace = (self.trace ^ value)
            .wrapping_mul(0x0000_0100_0000_01B3)
            .rotate_left(29);
    }
}

impl Env for SimEnv {
    fn now(&self) -> u64 {
        self.core.lock().now_ns
    }

    fn sleep(&self, duration_ns: u64) -> LocalFuture {
        let mut core = self.core.lock();
        let deadline_ns = core.now_ns.saturating_add(duration_ns);
        let state = Arc::new(SleepState::default());
        let waker = Waker::from(Arc::clone(&state));
        core.add_timer(deadline_ns, Due::Wake(waker));
        Box::pin(Sleep { state })
    }

    fn spawn(&self, name: &str, start: ProcessStart) -> Join {
        let (ended, join) = Join::pair();
        let start: ProcessStart = Box::new(move || {
            let process = start();
            Box::pin(async move {
                process.await;
                // The receiver may be gone: the process need not be waited for.
                let _ = ended.send(());
            })
        });
        self.core.lock().started.push((name.to_string(), start));
        join
    }

    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        seeded_rng(self.seed, stream)
    }
}

#[derive(Default)]
struct SleepState {
    over: AtomicBool,
    sleeper: Latch<Option<Waker>>,
}

impl Wake for SleepState {
    fn wake(self: Arc<Self>) {
        self.over.store(true, Ordering::Relaxed);
        let sleeper = self.sleeper.lock().take();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}

struct Sleep {
    state: Arc<SleepState>,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.state.over.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        *self.state.sleeper.lock() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// A task's place in the queue of those that can continue.
struct TaskWaker {
    task: usize,
    queued: AtomicBool,
    ready: Arc<Latch<Vec<usize>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().push(self.task);
        }
    }
}

struct Task {
    name: String,
    future: LocalFuture,
    waker: Arc<TaskWaker>,
}

/// A simulated world; dropping it is the end of every process in it.
pub struct World {
    env: Arc<SimEnv>,
    tasks: Vec<Option<Task>>,
    ready: Arc<Latch<Vec<usize>>>,
}

impl World {
    /// An empty world at time zero. Everything that happens in it follows from the seed.
    pub fn new(seed: u64) -> World {
        let core = Core {
            now_ns: 0,
            sequence: 0,
            timers: BinaryHeap::new(),
            started: Vec::new(),
            io_count: 0,
            cut_at_io: None,
            power_cut: false,
            faults: Faults::default(),
            trace: seed,
            order: seeded_rng(seed, u64::MAX),
            devices: seeded_rng(seed, u64::MAX - 1),
        };
        World {
            env: Arc::new(SimEnv {
                seed,
                core: Latch::new(core),
                observer: Latch::default(),
            }),
            tasks: Vec::new(),
            ready: Arc::default(),
        }
    }

    /// The world for its inhabitants.
    pub fn env(&self) -> Arc<SimEnv> {
        Arc::clone(&self.env)
    }

    /// Cuts the power when I/O number `io` (the first is 1) is submitted; that I/O is in flight at the cut.
    pub fn cut_power_at_io(&self, io: u64) {
        self.env.core.lock().cut_at_io = Some(io);
    }

    /// Has an I/O fail, and perhaps those after it. One fault at a time: a later one takes the place of an earlier one.
    pub fn fail_io(&self, fault: IoFault) {
        self.env.core.lock().faults.plan(fault);
    }

    /// The first I/O that failed, if its time has come.
    pub fn failed_io(&self) -> Option<FailedIo> {
        self.env.core.lock().faults.first()
    }

    /// Has `observer` called with the number of each I/O (the first is 1) when it has just been submitted: what it then
    /// finds on the disks is what a power cut at that I/O would leave, so one run shows every crash.
    pub fn observe_io(&self, observer: impl FnMut(u64) + Send + 'static) {
        *self.env.observer.lock() = Some(Box::new(observer));
    }

    /// I/Os submitted so far.
    pub fn io_count(&self) -> u64 {
        self.env.core.lock().io_count
    }

    /// A hash of every I/O and its time: equal for equal histories.
    pub fn trace_hash(&self) -> u64 {
        self.env.core.lock().trace
    }

    /// Runs until `main` ends; other tasks stay as they are and can be run on by a later call.
    pub fn run<T: 'static>(&mut self, main: impl Future<Output = T> + 'static) -> Result<T, Stop> {
        let result: Arc<Latch<Option<T>>> = Arc::new(Latch::new(None));
        let slot = Arc::clone(&result);
        self.add_task(
            "main".to_string(),
            Box::pin(async move {
                let value = main.await;
                *slot.lock() = Some(value);
            }),
        );
        let mut polls_this_instant = 0;
        loop {
            self.adopt_started();
            if let Some(task) = self.take_ready() {
                polls_this_instant += 1;
                let name = self.poll_task(task);
                let at_ns = self.env.now();
                if polls_this_instant > POLLS_PER_INSTANT_MAX {
                    return Err(Stop::Spinning { at_ns, task: name });
                }
            } else {
                let before_ns = self.env.now();
                self.advance()?;
                // A sleep of no time does not move the clock either.
                if self.env.now() > before_ns {
                    polls_this_instant = 0;
                }
            }
            if let Some(value) = result.lock().take() {
                return Ok(value);
            }
            self.check_power()?;
        }
    }

    fn check_power(&self) -> Result<(), Stop> {
        let core = self.env.core.lock();
        if core.power_cut {
            Err(Stop::PowerCut {
                at_ns: core.now_ns,
                io: core.io_count,
            })
        } else {
            Ok(())
        }
    }

    fn adopt_started(&mut self) {
        let started = std::mem::take(&mut self.env.core.lock().started);
        for (name, start) in started {
            let future = start();
            self.add_task(name, future);
        }
    }

    fn add_task(&mut self, name: String, future: LocalFuture) {
        let task = self.tasks.len();
        let waker = Arc::new(TaskWaker {
            task,
            queued: AtomicBool::new(true),
            ready: Arc::clone(&self.ready),
        });
        self.tasks.push(Some(Task {
            name,
            future,
            waker,
        }));
        self.ready.lock().push(task);
    }

    fn take_ready(&mut self) -> Option<usize> {
        let mut ready = self.ready.lock();
        if ready.is_empty() {
            return None;
        }
        let chance = self.env.core.lock().order.next_u64();
        let index = (chance % ready.len() as u64) as usize;
        Some(ready.swap_remove(index))
    }

    fn poll_task(&mut self, index: usize) -> String {
        let Some(task) = self.tasks[index].as_mut() else {
            return String::new();
        };
        task.waker.queued.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.waker));
        let poll = task.future.as_mut().poll(&mut Context::from_waker(&waker));
        assert_no_latch_held();
        let name = task.name.clone();
        if poll.is_ready() {
            self.tasks[index] = None;
        }
        name
    }

    /// Moves the clock to the next timer and carries out what is due then.
    fn advance(&mut self) -> Result<(), Stop> {
        let due = {
            let mut core = self.env.core.lock();
            let Some(Reverse(timer)) = core.timers.pop() else {
                let waiting = self
                    .tasks
                    .iter()
                    .flatten()
                    .map(|task| task.name.clone())
                    .collect();
                return Err(Stop::Deadlock {
                    at_ns: core.now_ns,
                    waiting,
                });
            };
            core.now_ns = timer.at_ns;
            timer.due
        };
        match due {
            Due::Wake(waker) => waker.wake(),
            Due::Call(call) => call(),
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Observers, processes and the ends of I/Os know devices, which know the environment that owns them.
        self.env.observer.lock().take();
        self.tasks.clear();
        let (timers, started) = {
            let mut core = self.env.core.lock();
            (
                std::mem::take(&mut core.timers),
                std::mem::take(&mut core.started),
            )
        };
        drop((timers, started));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping_pong(seed: u64) -> (u64, u64) {
        let mut world = World::new(seed);
        let env = world.env();
        let total = world
            .run(async move {
                let mut joins = Vec::new();
                for worker in 0..4u64 {
                    let inner = Arc::clone(&env);
                    joins.push(env.spawn(
                        "worker",
                        Box::new(move || {
                            Box::pin(async move {
                                for _ in 0..10 {
                                    inner.sleep(1000 * (worker + 1)).await;
                                }
                            })
                        }),
                    ));
                }
                for join in joins {
                    join.ended().await.unwrap();
                }
                env.now()
            })
            .unwrap();
        (total, world.trace_hash())
    }

    #[test]
    fn the_same_seed_is_the_same_history() {
        assert_eq!(ping_pong(1), ping_pong(1));
        assert_eq!(ping_pong(1).0, 40_000);
        assert_ne!(ping_pong(1).1, ping_pong(2).1);
    }

    #[test]
    fn a_deadlock_is_named() {
        let mut world = World::new(1);
        let stop = world.run(std::future::pending::<()>()).unwrap_err();
        assert_eq!(
            stop,
            Stop::Deadlock {
                at_ns: 0,
                waiting: vec!["main".into()]
            }
        );
    }

    #[test]
    fn a_task_that_sleeps_for_no_time_is_named_too() {
        let mut world = World::new(1);
        let env = world.env();
        let sleepless = Arc::clone(&env);
        env.spawn(
            "sleepless",
            Box::new(move || {
                Box::pin(async move {
                    sleepless.sleep(5).await;
                    loop {
                        sleepless.sleep(0).await;
                    }
                })
            }),
        );
        let stop = world.run(std::future::pending::<()>()).unwrap_err();
        let task = "sleepless".to_string();
        assert_eq!(stop, Stop::Spinning { at_ns: 5, task });
    }

    #[test]
    fn a_task_that_stops_time_is_named() {
        let mut world = World::new(1);
        let stop = world
            .run(std::future::poll_fn(|context| {
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            }))
            .unwrap_err();
        assert_eq!(
            stop,
            Stop::Spinning {
                at_ns: 0,
                task: "main".into()
            }
        );
    }
}
