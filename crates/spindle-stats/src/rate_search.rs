//! Searches the highest rate at which load may arrive so that no more than a share of transactions takes longer than
//! promised. Each try measures a rate for a while. Where to try is decided by PEST (M. M. Taylor, C. D. Creelman: PEST:
//! Efficient Estimates on Probability Functions, JASA 41, 1967): steps in the logarithm of the rate, halved when the
//! direction turns, doubled when it holds on, so that a try that was disturbed is made good by the next ones. What is
//! found comes from all tries near the end: the logarithm of the share is fitted as a straight line over the logarithm
//! of the rate (Poisson regression by Fisher's scoring). Shares, unlike percentiles, have the mean of the long run in
//! tries however short, so queues that come and go slowly do not make the rate too high.

use serde::{Deserialize, Serialize};

/// The first step, as a factor of the rate, and the smallest.
const FIRST_STEP: f64 = 1.25;
const LEAST_STEP: f64 = 1.02;
/// No step is longer.
const MOST_STEP: f64 = 4.0;
/// Steps in one direction from which on each doubles.
const HOLDS_ON: u32 = 3;
/// Tries at the smallest step after which the end is near.
const AT_LEAST_STEP: usize = 6;
/// This many tries are enough in any case.
const TRIES_MAX: usize = 40;
/// Failures in a row at the lowest rate after which none keeps the promise: one may have been disturbed.
const AT_LOWEST_MAX: u32 = 3;
/// Tries at rates within this factor of the last ones are near.
const NEAR: f64 = 1.15;
/// Where the fit lies so far from the place at which shares are seen to cross the promise, it is no line: a device at a
/// limit goes from none that are late to most of them.
const APART: f64 = 1.05;
/// Where the fit begins: how fast the share grows with the rate, as a power.
const FIRST_POWER: f64 = 10.0;
/// Turns of the fit there are at most, and how far one goes.
const TURNS_MAX: u32 = 100;
const LONGEST_TURN: f64 = 2.0;

/// A rate that was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateTry {
    /// Transactions that arrived, per second; positive.
    pub rate_per_s: f64,
    /// How many were measured.
    pub transactions: u64,
    /// The share of them that took longer than promised, 0 to 1.
    pub late_share: f64,
}

/// A rate that was tried, with what is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Transactions that arrived, per second.
    pub rate_per_s: f64,
    /// How many ended while it was measured.
    pub transactions: u64,
    /// Half of the transactions took no longer, microseconds from their intended begin.
    pub p50_us: f64,
    /// So took 99 of 100.
    pub p99_us: f64,
    /// The share of them that took longer than promised, 0 to 1.
    pub late_share: f64,
}

impl RateStep {
    /// What a search looks at.
    pub fn tried(&self) -> RateTry {
        RateTry {
            rate_per_s: self.rate_per_s,
            transactions: self.transactions,
            late_share: self.late_share,
        }
    }
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct RateSearch {
    late_share: f64,
    log_rate: f64,
    /// Logarithms of the lowest and the highest rate that are tried.
    bounds: (f64, f64),
    step: f64,
    was_kept: Option<bool>,
    /// Steps in this direction so far.
    in_a_row: u32,
    /// Tries at the smallest step, since it was last reached.
    at_least_step: usize,
    /// Failures in a row at the lowest rate.
    at_lowest: u32,
    tries: Vec<RateTry>,
}

/// What a search has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SearchEnd {
    /// The highest rate that keeps the promise, per second.
    Found(f64),
    /// About where it is, per second: tries disagreed to the end.
    Unsettled(f64),
    /// Even the lowest rate does not keep it.
    Nowhere,
}

impl RateSearch {
    /// At most `late_share` (0 to 1) may take longer than promised. Begins at `first_per_s`; rates from `least_per_s`
    /// to `most_per_s` are tried, all of them positive.
    pub fn new(late_share: f64, first_per_s: f64, least_per_s: f64, most_per_s: f64) -> RateSearch {
        let bounds = (least_per_s.ln(), most_per_s.ln());
        RateSearch {
            late_share,
            log_rate: first_per_s.ln().clamp(bounds.0, bounds.1),
            bounds,
            step: FIRST_STEP.ln(),
            was_kept: None,
            in_a_row: 0,
            at_least_step: 0,
            at_lowest: 0,
            tries: Vec::new(),
        }
    }

    /// The rate to try, per second.
    pub fn rate_per_s(&self) -> f64 {
        self.log_rate.exp()
    }

    /// Takes what was found at a rate; what the search has come to, if it is over.
    pub fn tried(&mut self, tried: RateTry) -> Option<SearchEnd> {
        self.tries.push(tried);
        let is_kept = tried.late_share <= self.late_share;
        self.at_lowest = match !is_kept && self.log_rate <= self.bounds.0 {
            true => self.at_lowest + 1,
            false => 0,
        };
        self.choose_step(is_kept);
        if self.at_lowest == AT_LOWEST_MAX {
            let limit = self.limit_of_all();
            return Some(limit.map_or(SearchEnd::Nowhere, |at| SearchEnd::Unsettled(at.exp())));
        }
        if self.at_least_step == AT_LEAST_STEP {
            return Some(SearchEnd::Found(self.found_near(self.last_rates())));
        }
        if self.tries.len() == TRIES_MAX {
            let near = self.limit_of_all().unwrap_or_else(|| self.last_rates());
            return Some(SearchEnd::Unsettled(self.found_near(near)));
        }
        let next = match is_kept {
            true => self.log_rate + self.step,
            false => self.log_rate - self.step,
        };
        self.log_rate = next.clamp(self.bounds.0, self.bounds.1);
        None
    }

    fn choose_step(&mut self, is_kept: bool) {
        let least = LEAST_STEP.ln();
        let has_turned = self.was_kept.is_some_and(|was_kept| was_kept != is_kept);
        self.was_kept = Some(is_kept);
        if self.step <= least {
            self.at_least_step += 1;
        }
        if has_turned {
            self.in_a_row = 1;
            self.step = (self.step / 2.0).max(least);
            return;
        }
        self.in_a_row += 1;
        if self.in_a_row >= HOLDS_ON {
            self.step = (self.step * 2.0).min(MOST_STEP.ln());
            // It was not near after all.
            self.at_least_step = 0;
        }
    }

    /// The middle of the last rates, as a logarithm.
    fn last_rates(&self) -> f64 {
        let last = &self.tries[self.tries.len().saturating_sub(AT_LEAST_STEP)..];
        let logs = last.iter().map(|tried| tried.rate_per_s.ln());
        logs.sum::<f64>() / last.len() as f64
    }

    /// The limit that the fewest tries speak against, as a logarithm: those below it that did not keep the promise, and
    /// those above it that did. So a few that were disturbed do not move it. `None`: it lies below all of them.
    fn limit_of_all(&self) -> Option<f64> {
        let mut tries: Vec<(f64, bool)> = self
            .tries
            .iter()
            .map(|tried| (tried.rate_per_s.ln(), tried.late_share <= self.late_share))
            .collect();
        tries.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut against = tries.iter().filter(|(_, is_kept)| *is_kept).count();
        let (mut least, mut limit) = (against, None);
        for (number, (at, is_kept)) in tries.iter().enumerate() {
            match is_kept {
                true => against -= 1,
                false => against += 1,
            }
            let above = tries.get(number + 1).map_or(*at, |next| next.0);
            if against < least {
                (least, limit) = (against, Some((at + above) / 2.0));
            }
        }
        limit
    }

    /// By the fit of the tries near a rate; that rate where there is no line to be fitted.
    fn found_near(&self, middle: f64) -> f64 {
        let distance = |tried: &RateTry| tried.rate_per_s.ln() - middle;
        let near: Vec<(f64, &RateTry)> = self
            .tries
            .iter()
            .map(|tried| (distance(tried), tried))
            .filter(|(distance, _)| distance.abs() <= NEAR.ln())
            .collect();
        let fitted = fitted_distance(&near, self.late_share);
        let fitted = fitted.filter(|distance| distance.abs() <= NEAR.ln());
        let crossing = crossing_distance(&near, self.late_share);
        let distance = match (fitted, crossing) {
            (Some(fitted), Some(crossing)) if (fitted - crossing).abs() > APART.ln() => crossing,
            (Some(fitted), _) => fitted,
            (None, crossing) => crossing.unwrap_or(0.0),
        };
        (middle + distance).exp()
    }
}

/// The distance at which the share of late transactions is `late_share`, by a Poisson regression over `tries`, each
/// with its distance; `None` where late ones do not become more with the rate.
fn fitted_distance(tries: &[(f64, &RateTry)], late_share: f64) -> Option<f64> {
    let (mut level, mut power) = (late_share.ln(), FIRST_POWER);
    for _ in 0..TURNS_MAX {
        // The score, and the information that it is divided by.
        let (mut score, mut moment) = (0.0, 0.0);
        let (mut weight, mut first, mut second) = (0.0, 0.0, 0.0);
        for (distance, tried) in tries {
            let transactions = tried.transactions as f64;
            let expected = transactions * (level + power * distance).min(0.0).exp();
            let beyond = transactions * tried.late_share - expected;
            score += beyond;
            moment += beyond * distance;
            weight += expected;
            first += expected * distance;
            second += expected * distance * distance;
        }
        let determinant = weight * second - first * first;
        if determinant.is_nan() || determinant <= f64::EPSILON * weight * second {
            return None;
        }
        let of_level = (second * score - first * moment) / determinant;
        let of_power = (weight * moment - first * score) / determinant;
        let length = of_level.abs() + of_power.abs() / FIRST_POWER;
        let part = (LONGEST_TURN / length).min(1.0);
        level += part * of_level;
        power += part * of_power;
        if length < 1e-9 {
            break;
        }
    }
    let distance = (late_share.ln() - level) / power;
    (power > 1.0 && distance.is_finite()).then_some(distance)
}

/// The distance at which shares cross `late_share` if they only ever grow with the rate: isotonic regression by pooling
/// adjacent violators (M. Ayer and others: An empirical distribution function for sampling with incomplete information,
/// Annals of Mathematical Statistics 26, 1955). `None` where they do not cross.
fn crossing_distance(tries: &[(f64, &RateTry)], late_share: f64) -> Option<f64> {
    let mut sorted = tries.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Means of distance and share, and transactions.
    let mut pools: Vec<(f64, f64, f64)> = Vec::new();
    for (distance, tried) in sorted {
        let mut pool = (distance, tried.late_share, tried.transactions.max(1) as f64);
        while let Some(last) = pools.pop_if(|last| last.1 >= pool.1) {
            let all = last.2 + pool.2;
            let mean = |a: f64, b: f64| (a * last.2 + b * pool.2) / all;
            pool = (mean(last.0, pool.0), mean(last.1, pool.1), all);
        }
        pools.push(pool);
    }
    let above = pools.iter().position(|pool| pool.1 > late_share)?;
    let (below, above) = (pools.get(above.checked_sub(1)?)?, pools[above]);
    let part = (late_share - below.1) / (above.1 - below.1);
    Some(below.0 + part * (above.0 - below.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Late ones grow with the twentieth power of the rate; one in a hundred is late at this rate.
    const TRUE_PER_S: f64 = 730.0;

    fn late_share(rate_per_s: f64) -> f64 {
        (0.01 * (rate_per_s / TRUE_PER_S).powi(20)).min(1.0)
    }

    fn search(first_per_s: f64, disturbed: fn(usize) -> bool) -> SearchEnd {
        let mut search = RateSearch::new(0.01, first_per_s, 1.0, 100_000.0);
        for number in 0.. {
            let rate_per_s = search.rate_per_s();
            let late_share = match disturbed(number) {
                true => 0.5,
                false => late_share(rate_per_s),
            };
            let tried = RateTry {
                rate_per_s,
                transactions: 5_000,
                late_share,
            };
            if let Some(end) = search.tried(tried) {
                return end;
            }
        }
        unreachable!("a search ends")
    }

    #[test]
    fn a_limit_without_chance_is_found_from_anywhere() {
        for first_per_s in [2.0, 100.0, 700.0, 5_000.0, 90_000.0] {
            let SearchEnd::Found(found) = search(first_per_s, |_| false) else {
                panic!("nowhere from {first_per_s}");
            };
            assert!(
                (found / TRUE_PER_S - 1.0).abs() < 0.01,
                "{found} from {first_per_s}"
            );
        }
    }

    #[test]
    fn tries_that_were_disturbed_far_from_the_limit_do_not_move_it() {
        let SearchEnd::Found(found) = search(500.0, |number| number < 2) else {
            panic!("nowhere");
        };
        assert!((found / TRUE_PER_S - 1.0).abs() < 0.01, "{found}");
    }

    #[test]
    fn a_search_that_is_disturbed_to_its_end_says_so_and_is_near() {
        // Stretches of it: without them the limit would be found.
        let SearchEnd::Unsettled(found) = search(500.0, |number| number / 4 % 3 == 1) else {
            panic!("it settled");
        };
        assert!((found / TRUE_PER_S - 1.0).abs() < 0.1, "{found}");
    }

    /// Rates and shares that were tried on a device held to 2,000 reads a second, of which a transaction makes 4.5.
    const HELD: [(f64, f64); 41] = [
        (214.0, 0.0),
        (321.0, 0.0),
        (402.0, 0.0),
        (502.0, 0.433),
        (449.0, 0.182),
        (402.0, 0.0),
        (425.0, 0.0),
        (449.0, 0.0),
        (502.0, 0.627),
        (475.0, 0.226),
        (449.0, 0.105),
        (402.0, 0.0),
        (425.0, 0.0),
        (449.0, 0.0),
        (502.0, 0.739),
        (475.0, 0.828),
        (449.0, 0.008),
        (462.0, 0.308),
        (453.0, 0.11),
        (444.0, 0.061),
        (427.0, 0.0),
        (435.0, 0.0),
        (444.0, 0.0),
        (462.0, 0.175),
        (453.0, 0.0),
        (462.0, 0.124),
        (453.0, 0.529),
        (444.0, 0.0),
        (453.0, 0.004),
        (462.0, 0.01),
        (480.0, 0.467),
        (471.0, 0.608),
        (462.0, 0.039),
        (444.0, 0.063),
        (410.0, 0.0),
        (427.0, 0.0),
        (444.0, 0.0),
        (480.0, 0.167),
        (462.0, 0.746),
        (444.0, 0.026),
        (410.0, 0.0),
    ];

    #[test]
    fn a_limit_that_is_a_wall_is_found_where_shares_cross() {
        let mut search = RateSearch::new(0.01, 321.0, 1.0, 1_000.0);
        search.tries = HELD
            .map(|(rate_per_s, late_share)| RateTry {
                rate_per_s,
                transactions: 2_000,
                late_share,
            })
            .to_vec();
        let found = search.found_near(search.limit_of_all().unwrap());
        assert!((425.0..450.0).contains(&found), "{found}");
    }

    #[test]
    fn one_failure_at_the_lowest_rate_ends_nothing() {
        let mut search = RateSearch::new(0.01, 1.1, 1.0, 1_000.0);
        for late_share in [0.5, 0.5, 0.0, 0.0] {
            let tried = RateTry {
                rate_per_s: search.rate_per_s(),
                transactions: 100,
                late_share,
            };
            assert_eq!(search.tried(tried), None);
        }
        assert!(search.rate_per_s() > 1.0);
    }

    #[test]
    fn what_no_rate_keeps_is_said() {
        let mut search = RateSearch::new(0.01, 100.0, 1.0, 1_000.0);
        let end = loop {
            let tried = RateTry {
                rate_per_s: search.rate_per_s(),
                transactions: 100,
                late_share: 0.2,
            };
            if let Some(end) = search.tried(tried) {
                break end;
            }
        };
        assert_eq!(end, SearchEnd::Nowhere);
    }
}
