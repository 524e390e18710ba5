//! The search for the highest rate, on simulated queues whose limit is known: Poisson arrivals, exponential times, c
//! servers, first come, first served (M/M/c; A. K. Erlang, 1917).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use spindle_stats::{RateSearch, RateTry, SearchEnd};

/// One in a hundred may take longer.
const LATE_SHARE: f64 = 0.01;
/// A try, and the time before it that does not count, seconds.
const TRY_S: f64 = 20.0;
const SETTLE_S: f64 = 5.0;

struct Queue {
    servers: usize,
    /// Transactions that one server ends in a second.
    service_per_s: f64,
    /// The promise, seconds.
    promise_s: f64,
}

const QUEUES: [Queue; 3] = [
    Queue {
        servers: 8,
        service_per_s: 100.0,
        promise_s: 0.06,
    },
    Queue {
        servers: 1,
        service_per_s: 800.0,
        promise_s: 0.02,
    },
    Queue {
        servers: 16,
        service_per_s: 50.0,
        promise_s: 0.15,
    },
];

impl Queue {
    fn most_per_s(&self) -> f64 {
        self.servers as f64 * self.service_per_s
    }

    /// The share of transactions that take longer than promised in the long run: the wait is 0 or exponential, by
    /// Erlang's C, and the service comes on top.
    fn late_share(&self, rate_per_s: f64) -> f64 {
        let load = rate_per_s / self.service_per_s;
        let erlang_b = (1..=self.servers).fold(1.0, |blocked, server| {
            load * blocked / (server as f64 + load * blocked)
        });
        let utilization = load / self.servers as f64;
        let must_wait = erlang_b / (1.0 - utilization * (1.0 - erlang_b));
        let (spare, service) = (self.most_per_s() - rate_per_s, self.service_per_s);
        let served_later = (-service * self.promise_s).exp();
        let waited = (-spare * self.promise_s).exp();
        let both = (spare * served_later - service * waited) / (spare - service);
        (1.0 - must_wait) * served_later + must_wait * both
    }

    fn capacity_per_s(&self) -> f64 {
        let (mut low, mut high) = (0.0, self.most_per_s());
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            match self.late_share(middle) <= LATE_SHARE {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn tried(&self, rate_per_s: f64, chance: &mut Xoshiro256PlusPlus) -> RateTry {
        let mut exponential = |per_s: f64| {
            let uniform = ((chance.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            -uniform.ln() / per_s
        };
        let mut free_at_s = vec![0.0_f64; self.servers];
        let (mut now_s, mut transactions, mut late) = (0.0, 0, 0);
        while now_s < SETTLE_S + TRY_S {
            now_s += exponential(rate_per_s);
            let first = (0..self.servers).min_by(|a, b| free_at_s[*a].total_cmp(&free_at_s[*b]));
            let server = first.expect("there is one");
            let ended_s = free_at_s[server].max(now_s) + exponential(self.service_per_s);
            free_at_s[server] = ended_s;
            if now_s >= SETTLE_S {
                transactions += 1;
                late += u64::from(ended_s - now_s > self.promise_s);
            }
        }
        RateTry {
            rate_per_s,
            transactions,
            late_share: late as f64 / transactions as f64,
        }
    }

    fn found_per_s(&self, seed: u64) -> f64 {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let most = self.most_per_s();
        let mut search = RateSearch::new(LATE_SHARE, 0.75 * most, most / 500.0, 1.5 * most);
        loop {
            let tried = self.tried(search.rate_per_s(), &mut chance);
            match search.tried(tried) {
                None => {}
                Some(SearchEnd::Found(found_per_s) | SearchEnd::Unsettled(found_per_s)) => {
                    return found_per_s;
                }
                Some(SearchEnd::Nowhere) => panic!("there is a rate that keeps the promise"),
            }
        }
    }

    /// The mean of this many searches over the truth.
    fn found_over(&self, capacity_per_s: f64, searches: u64) -> f64 {
        let logs = (0..searches).map(|seed| (self.found_per_s(seed) / capacity_per_s).ln());
        (logs.sum::<f64>() / searches as f64).exp()
    }
}

#[test]
fn the_capacity_of_queues_is_found_within_five_per_cent_of_theory() {
    let (queues, searches) = match spindle_harness::is_thorough() {
        true => (&QUEUES[..], 60),
        false => (&QUEUES[..2], 3),
    };
    for queue in queues {
        let truth = queue.capacity_per_s();
        let found = queue.found_over(truth, searches);
        assert!(
            (found - 1.0).abs() < 0.05,
            "{} servers: {found}",
            queue.servers
        );
        // A queue with another capacity is told from this one.
        let other = found * truth / (1.12 * truth);
        assert!((other - 1.0).abs() > 0.05, "{other}");
    }
}
