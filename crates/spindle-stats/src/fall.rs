//! Does a throughput fall for good while a load is held: credit that runs out, or a cache that is full? The series is
//! cut in two where the halves differ most (least squares of two levels, the first step of binary segmentation: A.
//! Scott and M. Knott, "A cluster analysis method for grouping means in the analysis of variance", Biometrics 30,
//! 1974). A cut is a fall when the second level is clearly lower, and nearly all of it lies below nearly all of the
//! first. So waves and single stalls are none.

/// The fewest samples of either level.
const LEVEL_SAMPLES_MIN: usize = 8;
/// The second level is at most this part of the first.
const FALL_MAX: f64 = 0.8;
/// Of each level, a tenth may lie where the other does.
const TAIL: f64 = 0.1;
/// At most this many samples in a row count as one when the levels are compared. What holds requests back lets them go
/// in bursts, and a busy machine stalls.
const SAMPLES_TOGETHER_MAX: usize = 4;

/// A throughput that fell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fall {
    /// Samples before it.
    pub at: usize,
    /// Median before it.
    pub before: f64,
    /// Median after it.
    pub after: f64,
}

/// Looks for one fall in equally spaced samples; `None` where there is none, or there are too few to say.
pub fn fall(samples: &[f64]) -> Option<Fall> {
    let at = best_cut(samples)?;
    let (first, second) = samples.split_at(at);
    let (before, after) = (quantile(first, 0.5), quantile(second, 0.5));
    let is_apart = quantile(&together(second), 1.0 - TAIL) < quantile(&together(first), TAIL);
    (after <= FALL_MAX * before && is_apart).then_some(Fall { at, before, after })
}

/// The cut that leaves least of the squares: where the sums of both parts, squared over their counts, are largest.
fn best_cut(samples: &[f64]) -> Option<usize> {
    let last = samples.len().checked_sub(LEVEL_SAMPLES_MIN)?;
    let total: f64 = samples.iter().sum();
    let (mut best, mut most, mut sum) = (None, f64::NEG_INFINITY, 0.0);
    for at in 1..=last {
        sum += samples[at - 1];
        if at < LEVEL_SAMPLES_MIN {
            continue;
        }
        let rest = total - sum;
        let explained = sum * sum / at as f64 + rest * rest / (samples.len() - at) as f64;
        if explained > most {
            (best, most) = (Some(at), explained);
        }
    }
    best
}

/// Means of a few samples in a row, and no fewer of them than a level must have.
fn together(samples: &[f64]) -> Vec<f64> {
    let together = (samples.len() / LEVEL_SAMPLES_MIN).clamp(1, SAMPLES_TOGETHER_MAX);
    let groups = samples.chunks_exact(together);
    groups
        .map(|group| group.iter().sum::<f64>() / together as f64)
        .collect()
}

fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `level` with noise of a fifth of it, the same each time.
    fn noisy(level: f64, count: u32) -> Vec<f64> {
        let noise = |at: u32| f64::from(at * 37 % 41) / 41.0 - 0.5;
        (0..count)
            .map(|at| level * (1.0 + 0.2 * noise(at)))
            .collect()
    }

    #[test]
    fn a_fall_is_found_with_its_moment_and_both_levels() {
        let samples = [noisy(3000.0, 60), noisy(500.0, 100)].concat();
        let found = fall(&samples).unwrap();
        assert_eq!(found.at, 60);
        assert!((2900.0..3100.0).contains(&found.before), "{found:?}");
        assert!((480.0..520.0).contains(&found.after), "{found:?}");
    }

    /// A throttle lets requests go in bursts, and the machine stalls now and then: single samples of the first level
    /// lie below bursts of the second.
    #[test]
    fn bursts_and_stalls_do_not_hide_a_fall() {
        let first = [33.0, 34.0, 4.0, 61.0, 32.0, 33.0, 35.0, 31.0].repeat(10);
        let second = [18.0, 0.0, 18.0, 0.0, 9.0].repeat(24);
        let found = fall(&[first, second].concat()).unwrap();
        assert_eq!((found.at, found.before, found.after), (80, 33.0, 9.0));
    }

    #[test]
    fn what_is_no_fall_is_none() {
        assert_eq!(fall(&noisy(1000.0, 200)), None);
        assert_eq!(fall(&[noisy(500.0, 60), noisy(3000.0, 60)].concat()), None);
        // Less than a fifth lower.
        assert_eq!(fall(&[noisy(1000.0, 60), noisy(850.0, 60)].concat()), None);
        // A stall, and waves.
        let stalled = [noisy(1000.0, 60), noisy(10.0, 4), noisy(1000.0, 60)].concat();
        assert_eq!(fall(&stalled), None);
        let waves: Vec<f64> = (0..200)
            .map(|at| if at / 10 % 2 == 0 { 1000.0 } else { 300.0 })
            .collect();
        assert_eq!(fall(&waves), None);
        assert_eq!(fall(&[1000.0; 15]), None);
        assert_eq!(fall(&[]), None);
    }
}
