//! The highest rate at which clients still answer as promised, found by letting load arrive at one rate after the other
//! while the database keeps running. The measuring code calls this when clients are warm; load then arrives at what was
//! found.

use spindle_io::Env;
use spindle_stats::{RateSearch, RateStep, SearchEnd};

use crate::arrivals::{Arrivals, Spacing};
use crate::driver::Running;

/// 99 of 100 transactions keep the promise.
const LATE_SHARE: f64 = 0.01;
/// Rates of the curve below the limit, as parts of what clients do in a closed loop.
const CURVE: [f64; 4] = [0.1, 0.25, 0.5, 0.75];
/// A search begins at the last of them, and looks between these parts.
const SEARCH_FROM: f64 = 0.75;
const SEARCH_LEAST: f64 = 0.002;
const SEARCH_MOST: f64 = 1.5;
/// Fewer transactions say too little of one in a hundred: a try lasts longer then, up to this many times.
const TRANSACTIONS_MIN: f64 = 400.0;
const LONGER_MAX: f64 = 10.0;
/// Before each try, clients go at its rate for this part of it.
const SETTLE: u64 = 4;
/// A promise of more than this part of a try may be kept while a queue grows without end.
const LONG_PROMISE: f64 = 0.1;
/// A rate that is too high by this part of it makes a queue as long as the promise within a try.
const OVERLOAD_SEEN: f64 = 0.05;

/// What is promised, of load that arrives so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// 99 of 100 transactions take no longer, microseconds from their intended begin.
    pub p99_us: f64,
    /// The times between arrivals.
    pub spacing: Spacing,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// The highest rate that keeps the promise, per second.
    pub rate_per_s: f64,
    /// What the same clients did without waiting for arrivals, per second.
    pub closed_loop_per_s: f64,
    /// Whether the search came to its end; else tries disagreed, and the rate is where most of them point to.
    pub is_settled: bool,
    /// The rates that were tried, in this order.
    pub steps: Vec<RateStep>,
}

/// Why there is no such rate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoCapacity<E> {
    /// No transaction ended at all.
    #[error("no transaction ended in {0} s")]
    Nothing(f64),
    /// The lowest rate that was tried does not keep the promise either.
    #[error(
        "no rate keeps the promise: at {:.1} transactions a second p99 was {:.2} ms", .0.rate_per_s, .0.p99_us / 1e3
    )]
    Nowhere(RateStep),
    /// The caller ended it after a step.
    #[error(transparent)]
    Stopped(#[from] E),
}

/// Searches; each try takes `try_ns`, and more where few transactions arrive. `after_step` learns of each, and may end
/// it. The clients are those of an open loop.
///
/// # Errors
/// There is no such rate, or `after_step` ended the search.
pub async fn find_capacity<E>(
    env: &dyn Env,
    running: &Running,
    goal: Goal,
    try_ns: u64,
    mut after_step: impl FnMut(&RateStep) -> Result<(), E>,
) -> Result<Capacity, NoCapacity<E>> {
    let closed_loop_per_s = closed_loop_per_s(env, running, goal, try_ns).await;
    if closed_loop_per_s <= 0.0 {
        return Err(NoCapacity::Nothing(try_ns as f64 / 1e9));
    }
    let mut steps = Vec::new();
    for part in CURVE {
        let step = try_rate(env, running, goal, part * closed_loop_per_s, try_ns).await;
        after_step(&step)?;
        steps.push(step);
    }
    let [first, least, most] =
        [SEARCH_FROM, SEARCH_LEAST, SEARCH_MOST].map(|part| part * closed_loop_per_s);
    let mut search = RateSearch::new(LATE_SHARE, first, least, most);
    let (rate_per_s, is_settled) = loop {
        let step = try_rate(env, running, goal, search.rate_per_s(), try_ns).await;
        after_step(&step)?;
        steps.push(step);
        match search.tried(step.tried()) {
            None => {}
            Some(SearchEnd::Found(rate_per_s)) => break (rate_per_s, true),
            Some(SearchEnd::Unsettled(rate_per_s)) => break (rate_per_s, false),
            Some(SearchEnd::Nowhere) => return Err(NoCapacity::Nowhere(step)),
        }
    };
    settle(env, running, goal, rate_per_s, try_ns).await;
    running.forget();
    Ok(Capacity {
        rate_per_s,
        closed_loop_per_s,
        is_settled,
        steps,
    })
}

async fn settle(env: &dyn Env, running: &Running, goal: Goal, rate_per_s: f64, try_ns: u64) {
    running.arrive(Arrivals {
        rate_per_s,
        spacing: goal.spacing,
    });
    env.sleep(try_ns / SETTLE).await;
}

async fn closed_loop_per_s(env: &dyn Env, running: &Running, goal: Goal, try_ns: u64) -> f64 {
    settle(env, running, goal, f64::INFINITY, try_ns).await;
    let (before, began_ns) = (running.committed(), env.now());
    env.sleep(try_ns).await;
    let (done, took_ns) = (running.committed() - before, env.now() - began_ns);
    done as f64 * 1e9 / took_ns.max(1) as f64
}

async fn try_rate(
    env: &dyn Env,
    running: &Running,
    goal: Goal,
    rate_per_s: f64,
    try_ns: u64,
) -> RateStep {
    settle(env, running, goal, rate_per_s, try_ns).await;
    let wanted_s = (TRANSACTIONS_MIN / rate_per_s).max(goal.p99_us / 1e6 / OVERLOAD_SEEN);
    let wanted = wanted_s / (try_ns as f64 / 1e9);
    let length_ns = (try_ns as f64 * wanted.clamp(1.0, LONGER_MAX)) as u64;
    running.forget();
    running.measure(true);
    env.sleep(length_ns).await;
    running.measure(false);
    let times = running.times();
    let behind_us = running.backlog(env.now()) as f64 / rate_per_s * 1e6;
    let is_long = goal.p99_us * 1e3 > LONG_PROMISE * length_ns as f64;
    RateStep {
        rate_per_s,
        transactions: running.latencies().count(),
        p50_us: times.percentile_us(50.0),
        p99_us: times.percentile_us(99.0),
        late_share: match is_long && behind_us > goal.p99_us {
            true => 1.0,
            false => times.share_longer_than(goal.p99_us),
        },
    }
}
