//! The knee of a curve: the depth is doubled until throughput gains too little, or requests take too long.

use crate::error::CalibrateError;
use crate::result::Point;

/// Doubling the depth must gain as much, or the knee is reached.
const GAIN_MIN: f64 = 0.05;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Throughput gained less than 5 %.
    Knee,
    /// The mean time of a request passed the limit.
    Latency,
    /// The access path has no larger depth.
    Deepest,
    /// The time was over.
    Time,
}

/// Measures depths 1, 2, 4 and so on to `depth_max`. `measure` answers `None` when there is no time left.
pub(crate) fn knee(
    depth_max: u32,
    max_latency_us: f64,
    mut measure: impl FnMut(u32) -> Result<Option<Point>, CalibrateError>,
) -> Result<(Vec<Point>, End), CalibrateError> {
    let mut points: Vec<Point> = Vec::new();
    let mut depth = 1;
    while depth <= depth_max {
        let best = points.iter().map(|point| point.iops).fold(0.0, f64::max);
        let Some(point) = measure(depth)? else {
            return Ok((points, End::Time));
        };
        let (iops, is_late) = (point.iops, point.mean_us > max_latency_us);
        points.push(point);
        if is_late {
            return Ok((points, End::Latency));
        }
        if iops < best * (1.0 + GAIN_MIN) {
            return Ok((points, End::Knee));
        }
        depth *= 2;
    }
    Ok((points, End::Deepest))
}

/// The point of most requests per second among those within the limit of latency; among all, when none is within.
pub(crate) fn best(points: &[Point], max_latency_us: f64) -> Option<&Point> {
    let key = |point: &&Point| (point.mean_us <= max_latency_us, point.iops);
    let order = |a: &(bool, f64), b: &(bool, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
    points.iter().max_by(|a, b| order(&key(a), &key(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of 100 us for each request and 32,000 requests per second at most.
    fn device(depth: u32) -> Point {
        let iops = (f64::from(depth) * 10_000.0).min(32_000.0);
        let mean_us = f64::from(depth) / iops * 1e6;
        Point {
            depth,
            iops,
            mb_per_s: 0.0,
            mean_us,
            p50_us: mean_us,
            p99_us: mean_us,
            max_us: mean_us,
            is_steady: true,
            measured_s: 1.0,
            requests: 1,
            writes: None,
        }
    }

    fn search(max_latency_us: f64) -> (Vec<u32>, End) {
        let (points, end) = knee(256, max_latency_us, |depth| Ok(Some(device(depth)))).unwrap();
        (points.iter().map(|point| point.depth).collect(), end)
    }

    #[test]
    fn the_depth_is_doubled_up_to_the_knee() {
        assert_eq!(search(1e9), (vec![1, 2, 4, 8], End::Knee));
    }

    #[test]
    fn the_limit_of_latency_ends_the_search() {
        assert_eq!(search(110.0), (vec![1, 2, 4], End::Latency));
        let (points, _) = knee(256, 110.0, |depth| Ok(Some(device(depth)))).unwrap();
        assert_eq!(best(&points, 110.0).unwrap().depth, 2);
        assert_eq!(best(&points, 1.0).unwrap().depth, 4);
    }

    #[test]
    fn depth_and_time_end_it_too() {
        let (points, end) = knee(2, 1e9, |depth| Ok(Some(device(depth)))).unwrap();
        assert_eq!((points.len(), end), (2, End::Deepest));
        let (points, end) = knee(256, 1e9, |depth| Ok((depth < 2).then(|| device(depth)))).unwrap();
        assert_eq!((points.len(), end), (1, End::Time));
    }
}
