//! Where small requests lay, as counts of equal regions of what is measured. Requests that keep to a part of it, or
//! that come back to each block often, are answered by a cache that holds that part; so their spread is audited, and
//! not taken from the intention. `point` and `mix` count, `cache` tells.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use crate::figures::What;

/// Regions at most.
const REGIONS_MAX: u64 = 1024;

/// The spread of requests over what is measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    /// Equal regions of what is measured.
    pub regions: u32,
    /// The part of them in which a request began, 0 to 1.
    pub reached_share: f64,
    /// Requests in the region of the most, over the mean of all regions.
    pub most_over_mean: f64,
    /// Requests for each block of 8 KiB, on average.
    pub requests_per_block: f64,
}

/// Counts of all regions, shared by the threads of all points.
#[derive(Debug)]
pub(crate) struct CoverageCounts {
    requests: Mutex<Vec<u64>>,
    region_bytes_log2: u32,
    capacity_bytes: u64,
}

impl CoverageCounts {
    pub(crate) fn new(capacity_bytes: u64) -> Arc<CoverageCounts> {
        let least = What::SmallRandom.length_bytes();
        let region_bytes = capacity_bytes.div_ceil(REGIONS_MAX).max(least);
        let region_bytes_log2 = region_bytes.next_power_of_two().trailing_zeros();
        let regions = capacity_bytes.div_ceil(1 << region_bytes_log2).max(1);
        Arc::new(CoverageCounts {
            requests: Mutex::new(vec![0; regions as usize]),
            region_bytes_log2,
            capacity_bytes,
        })
    }

    /// For one thread, which waits for no other.
    pub(crate) fn of_thread(self: &Arc<CoverageCounts>) -> ThreadCoverage {
        ThreadCoverage {
            requests: vec![0; self.lock().len()],
            all: self.clone(),
        }
    }

    /// The spread so far, of threads that have ended; `None` without requests.
    pub(crate) fn coverage(&self) -> Option<Coverage> {
        let requests = self.lock();
        let (all, most): (u64, u64) = (requests.iter().sum(), *requests.iter().max()?);
        let (regions, blocks) = (
            requests.len() as f64,
            self.capacity_bytes as f64 / What::SmallRandom.length_bytes() as f64,
        );
        let reached = requests.iter().filter(|count| **count > 0).count();
        (all > 0).then(|| Coverage {
            regions: requests.len() as u32,
            reached_share: reached as f64 / regions,
            most_over_mean: most as f64 * regions / all as f64,
            requests_per_block: all as f64 / blocks,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of one thread, added to all when it ends.
pub(crate) struct ThreadCoverage {
    requests: Vec<u32>,
    all: Arc<CoverageCounts>,
}

impl ThreadCoverage {
    /// Counts a request by its first byte.
    pub(crate) fn count(&mut self, offset: u64) {
        let region = (offset >> self.all.region_bytes_log2) as usize;
        if let Some(count) = self.requests.get_mut(region) {
            *count = count.saturating_add(1);
        }
    }
}

impl Drop for ThreadCoverage {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        for (all, own) in all.iter_mut().zip(&self.requests) {
            *all += u64::from(*own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_no_request_reached_shows() {
        let counts = CoverageCounts::new(1 << 30);
        assert_eq!(counts.coverage(), None);
        for thread in 0..2_u64 {
            let mut own = counts.of_thread();
            // Each block of the first half, once by each thread.
            for block in 0..(1_u64 << 29) / 8192 {
                own.count(block * 8192 + thread % 2);
            }
        }
        let found = counts.coverage().unwrap();
        assert_eq!((found.regions, found.reached_share), (1024, 0.5));
        assert_eq!((found.requests_per_block, found.most_over_mean), (1.0, 2.0));
    }

    #[test]
    fn small_and_odd_capacities_have_regions_too() {
        for bytes in [8192, 8 << 20, (5 << 30) + (1 << 20)] {
            let counts = CoverageCounts::new(bytes);
            counts.of_thread().count(bytes - 1);
            let found = counts.coverage().unwrap();
            assert!((1..=1024).contains(&found.regions), "{found:?}");
            assert!(found.reached_share > 0.0, "{found:?}");
        }
    }
}
