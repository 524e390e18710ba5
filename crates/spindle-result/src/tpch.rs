//! The figures that the standard makes of a run's times (clause 5.4). What comes out of here is never an official TPC
//! result: those are audited, and carry a price.

/// The longest interval is at most this many times the one that it is weighed with (clause 5.4.1.4).
const RATIO_MAX: f64 = 1000.0;

/// The geometric mean; `None` of nothing, or when one is not above 0.
pub fn geometric_mean(seconds: &[f64]) -> Option<f64> {
    let is_mean = !seconds.is_empty() && seconds.iter().all(|&seconds| seconds > 0.0);
    let logarithms: f64 = seconds.iter().map(|seconds| seconds.ln()).sum();
    is_mean.then(|| (logarithms / seconds.len() as f64).exp())
}

/// Power: queries per hour of a single stream, times the scale factor. `seconds` are the times of the 22 queries and,
/// when they were carried out, the two refresh functions. Where the longest is more than 1000 times another, that one
/// counts as a thousandth of the longest.
pub fn power(scale: f64, seconds: &[f64]) -> Option<f64> {
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let weighed: Vec<f64> = seconds
        .iter()
        .map(|seconds| match *seconds {
            given if given > 0.0 => given.max(longest / RATIO_MAX),
            given => given,
        })
        .collect();
    geometric_mean(&weighed).map(|mean| 3600.0 * scale / mean)
}

/// Throughput: queries per hour of all streams together, times the scale factor. `elapsed_s` goes from the begin of the
/// first query to the end of the last.
pub fn throughput(scale: f64, queries: u64, elapsed_s: f64) -> Option<f64> {
    (queries > 0 && elapsed_s > 0.0).then(|| queries as f64 * 3600.0 / elapsed_s * scale)
}

/// Composite queries per hour (QphH): the geometric mean of power and throughput.
pub fn composite(power: f64, throughput: f64) -> f64 {
    (power * throughput).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_formulas() {
        let close =
            |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-9 * wanted;
        assert!(close(geometric_mean(&[1.0, 4.0]), 2.0));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert!(close(power(10.0, &[2.0; 24]), 18_000.0));
        assert!(close(throughput(10.0, 44, 3600.0), 440.0));
        assert_eq!(throughput(10.0, 0, 3600.0), None);
        assert_eq!(composite(400.0, 100.0), 200.0);
    }

    #[test]
    fn a_very_short_query_counts_as_a_thousandth_of_the_longest() {
        let mut seconds = [10.0; 24];
        seconds[3] = 0.01;
        let at_limit = power(1.0, &seconds);
        seconds[3] = 0.000_01;
        assert_eq!(power(1.0, &seconds), at_limit);
        seconds[3] = 0.02;
        assert!(power(1.0, &seconds) < at_limit);
    }
}
