//! Running a scenario of a few threads through many orders of their steps. A scenario makes everything it uses, starts
//! threads with [`spawn`], and panics when a property does not hold. Threads that wait for each other forever (a lost
//! wake-up) and scenarios that never end fail by themselves.

use std::any::Any;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use rand_xoshiro::Xoshiro256PlusPlus;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use crate::device::{BlockDevice, Completion, Limits, Request, Submission};
use crate::env::{Env, Join, LocalFuture, ProcessStart, seeded_rng};
use crate::real::block_on;
use crate::sync::modelled::PLANTED;
pub use crate::sync::modelled::WAITS_FROM_ITS_FIRST_POLL;
pub use shuttle::thread::{JoinHandle, spawn, yield_now};

const SEED: u64 = 0x5350_494E;
/// Changes of thread at which a bug may hide that [`explore`] looks for in particular (Burckhardt et al. 2010, "A
/// randomized scheduler with probabilistic guarantees of finding bugs").
const DEPTH: usize = 3;
/// More steps than any scenario takes: a scenario that gets here runs in circles.
const STEPS_MAX: usize = 200_000;
/// The stack of a thread: recovery without optimisation takes more than the checker's 32 KiB.
const STACK_BYTES: usize = 512 << 10;

/// Runs `scenario` in `orders` orders drawn evenly at every step, and in as many drawn by priorities (PCT).
pub fn explore(orders: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let scenario = Arc::new(scenario);
    run(
        RandomScheduler::new_from_seed(SEED, orders),
        Arc::clone(&scenario),
        FailurePersistence::Print,
    );
    run(
        PctScheduler::new_from_seed(SEED, DEPTH, orders),
        scenario,
        FailurePersistence::Print,
    );
}

/// Runs `scenario` in every order there is; panics if there are more than `orders_max`. Returns how many there are.
pub fn exhaust(orders_max: usize, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let orders = run(
        DfsScheduler::new(Some(orders_max), false),
        Arc::new(scenario),
        FailurePersistence::Print,
    );
    assert!(
        orders < orders_max,
        "not every order was tried: there are more than {orders_max}"
    );
    orders
}

/// How a race shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Threads wait forever for each other, or for a call that was lost.
    Deadlock,
    /// A thread panics: an assertion of the scenario or of the program.
    Panic,
    /// Threads go round in circles.
    NoEnd,
}

/// Plants `race` and demands that [`explore`] fails in the way of `expected`.
pub fn must_find(
    race: &'static str,
    expected: Shows,
    orders: usize,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    let scenario = Arc::new(scenario);
    PLANTED.set(Some(race));
    let by_chance = RandomScheduler::new_from_seed(SEED, orders);
    let by_priority = PctScheduler::new_from_seed(SEED, DEPTH, orders);
    let found = fails(by_chance, &scenario).or_else(|| fails(by_priority, &scenario));
    PLANTED.set(None);
    let Some(found) = found else {
        panic!("{orders} orders did not show the planted race `{race}`");
    };
    let shown = if found.contains("deadlock") {
        Shows::Deadlock
    } else if found.contains("max_steps") {
        Shows::NoEnd
    } else {
        Shows::Panic
    };
    assert_eq!(shown, expected, "`{race}` showed as: {found}");
}

fn fails<F: Fn() + Send + Sync + 'static>(
    scheduler: impl Scheduler + 'static,
    scenario: &Arc<F>,
) -> Option<String> {
    let scenario = Arc::clone(scenario);
    let attempt = || run(scheduler, scenario, FailurePersistence::None);
    catch_unwind(AssertUnwindSafe(attempt))
        .err()
        .map(|panic| words(&*panic))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

fn run<F: Fn() + Send + Sync + 'static>(
    scheduler: impl Scheduler + 'static,
    scenario: Arc<F>,
    persistence: FailurePersistence,
) -> usize {
    let mut config = Config::new();
    config.failure_persistence = persistence;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    config.stack_size = STACK_BYTES;
    config
        .ungraceful_shutdown_config
        .immediately_return_on_panic = true;
    Runner::new(scheduler, config).run(move || scenario())
}

/// The world of a scenario: its processes are threads of the checker. Time stands still, so that a thread that waits
/// for a lost call is not helped by a timeout; but the first few sleeps may end at any moment.
pub struct ExploredEnv {
    short_sleeps: AtomicUsize,
}

impl ExploredEnv {
    /// A world in which `short_sleeps` sleeps end, and all others never.
    pub fn new(short_sleeps: usize) -> Arc<ExploredEnv> {
        Arc::new(ExploredEnv {
            short_sleeps: AtomicUsize::new(short_sleeps),
        })
    }
}

impl Env for ExploredEnv {
    fn now(&self) -> u64 {
        0
    }

    fn sleep(&self, _duration_ns: u64) -> LocalFuture {
        let fewer = |left: usize| left.checked_sub(1);
        let left = &self.short_sleeps;
        if left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_err()
        {
            return Box::pin(pending());
        }
        let mut others_had_a_turn = false;
        Box::pin(poll_fn(move |context| {
            if std::mem::replace(&mut others_had_a_turn, true) {
                return Poll::Ready(());
            }
            yield_now();
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn spawn(&self, _name: &str, start: ProcessStart) -> Join {
        let (sender, join) = Join::pair();
        spawn(move || {
            block_on(start());
            let _ = sender.send(());
        });
        join
    }

    fn rng(&self, stream: u64) -> Xoshiro256PlusPlus {
        seeded_rng(SEED, stream)
    }
}

/// A device whose batched requests are carried out by another thread, at any moment.
pub struct SlowDevice(Arc<dyn BlockDevice>);

impl SlowDevice {
    /// `device` completes within `submit`.
    pub fn new(device: Arc<dyn BlockDevice>) -> Arc<SlowDevice> {
        Arc::new(SlowDevice(device))
    }
}

impl BlockDevice for SlowDevice {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn submit(&self, request: Request) -> Completion {
        if request.submission == Submission::Alone {
            return self.0.submit(request);
        }
        let (completer, completion) = Completion::pending();
        let device = Arc::clone(&self.0);
        spawn(move || completer.complete(block_on(device.submit(request))));
        completion
    }
}
