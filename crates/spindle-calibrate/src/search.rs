//! The knee of a curve: the depth grows until throughput gains too little, or requests take too long.

use std::time::Duration;

use spindle_io::real::Method;

use crate::error::CalibrateError;
use crate::figures::{Point, What};

/// The access paths, in the order in which they are measured.
const METHODS: [Method; 4] = [Method::Sync, Method::Slaves, Method::Libaio, Method::Async];
/// Depths are doubled up to this: requests under way that a thread of the asynchronous methods may have.
const DEPTH_MAX: u32 = 256;
/// With a thread, or a slave, for each request.
const THREADS_MAX: u32 = 128;
/// Large requests under way at most: a buffer of 1 MiB for each.
const LARGE_DEPTH_MAX: u32 = 32;

/// With less time than this, each depth is four times the one before.
const DOUBLED_FROM: Duration = Duration::from_secs(90);
/// With less time than this for requests, large ones have two access paths. A search in [`DOUBLED_FROM`] has as much.
const ALL_LARGE_FROM: Duration = Duration::from_secs(66);

/// A deeper point must gain as much, or the knee is reached.
const GAIN_MIN: f64 = 0.05;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Throughput gained less than 5 %.
    Knee,
    /// The mean time of a request passed the limit, and throughput still rose.
    Latency,
    /// The access path has no larger depth.
    Deepest,
    /// The time was over.
    Time,
}

/// The access paths of a search with this time for requests, and the largest depth of each.
pub(crate) fn paths(what: What, time: Duration) -> Vec<(Method, u32)> {
    let large = |method| (method, LARGE_DEPTH_MAX);
    match what {
        What::SmallRandom => METHODS
            .map(|method| (method, small_depth_max(method)))
            .to_vec(),
        What::LargeSequential if time < ALL_LARGE_FROM => {
            [Method::Sync, asynchronous()].map(large).to_vec()
        }
        What::LargeSequential => METHODS.map(large).to_vec(),
    }
}

/// The depths of a search that may take this long: twice the one before, or four times. A few large requests fill any
/// device.
pub(crate) fn depths(what: What, time: Duration, depth_max: u32) -> impl Iterator<Item = u32> {
    let step = match what {
        What::SmallRandom if time >= DOUBLED_FROM => 2,
        What::SmallRandom | What::LargeSequential => 4,
    };
    std::iter::successors(Some(1), move |depth| {
        (*depth < depth_max).then(|| (depth * step).min(depth_max))
    })
}

fn small_depth_max(method: Method) -> u32 {
    match method.is_asynchronous() {
        true => DEPTH_MAX,
        false => THREADS_MAX,
    }
}

/// The access path of a matrix.
pub(crate) fn matrix_method() -> Method {
    let best = asynchronous();
    match best.available() {
        Ok(()) => best,
        Err(_) => Method::Sync,
    }
}

/// The best asynchronous access path that there is.
fn asynchronous() -> Method {
    match Method::Async.available() {
        Ok(()) => Method::Async,
        Err(_) => Method::Libaio,
    }
}

/// Measures rising depths, and again one that gained too little. `measure` answers `None` when there is no time left.
pub(crate) fn knee(
    depths: impl Iterator<Item = u32>,
    max_latency_us: f64,
    mut measure: impl FnMut(u32) -> Result<Option<Point>, CalibrateError>,
) -> Result<(Vec<Point>, End), CalibrateError> {
    let mut points: Vec<Point> = Vec::new();
    for depth in depths {
        let best = points.iter().map(|point| point.iops).fold(0.0, f64::max);
        let Some(mut point) = measure(depth)? else {
            return Ok((points, End::Time));
        };
        // Another program may have taken the gain as well as the device: it is looked at once more.
        if point.iops < best * (1.0 + GAIN_MIN)
            && let Some(again) = measure(depth)?
            && again.iops > point.iops
        {
            point = again;
        }
        let (iops, is_late) = (point.iops, point.mean_us > max_latency_us);
        points.push(point);
        if iops < best * (1.0 + GAIN_MIN) {
            return Ok((points, End::Knee));
        }
        if is_late {
            return Ok((points, End::Latency));
        }
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
            histogram: Vec::new(),
        }
    }

    fn twice(depth_max: u32) -> impl Iterator<Item = u32> {
        depths(What::SmallRandom, DOUBLED_FROM, depth_max)
    }

    fn four_times(depth_max: u32) -> impl Iterator<Item = u32> {
        depths(What::SmallRandom, DOUBLED_FROM / 2, depth_max)
    }

    fn search(max_latency_us: f64) -> (Vec<u32>, End) {
        let (points, end) =
            knee(twice(256), max_latency_us, |depth| Ok(Some(device(depth)))).unwrap();
        (points.iter().map(|point| point.depth).collect(), end)
    }

    #[test]
    fn the_depth_is_doubled_up_to_the_knee() {
        assert_eq!(search(1e9), (vec![1, 2, 4, 8], End::Knee));
        let (points, _) = knee(four_times(256), 1e9, |depth| Ok(Some(device(depth)))).unwrap();
        assert_eq!(points.len(), 3, "1, 4, and 16, which gains nothing");
        let rising = |depth| Point {
            iops: f64::from(depth),
            ..device(depth)
        };
        let (points, end) = knee(four_times(128), 1e9, |depth| Ok(Some(rising(depth)))).unwrap();
        let depths: Vec<u32> = points.iter().map(|point| point.depth).collect();
        assert_eq!((depths, end), (vec![1, 4, 16, 64, 128], End::Deepest));
    }

    #[test]
    fn a_point_that_others_disturbed_is_no_knee() {
        // It did less than the point before, or more, and too little.
        disturbed_by(0.1);
        disturbed_by(0.51);
    }

    fn disturbed_by(part: f64) {
        let mut looks = 0;
        let (points, end) = knee(twice(256), 1e9, |depth| {
            looks += 1;
            let mut point = device(depth);
            if looks == 2 {
                point.iops *= part;
            }
            Ok(Some(point))
        })
        .unwrap();
        assert_eq!((points.len(), looks, end), (4, 6, End::Knee));
        assert_eq!(points[1].iops, 20_000.0);
    }

    #[test]
    fn the_limit_of_latency_ends_the_search() {
        assert_eq!(search(110.0), (vec![1, 2, 4], End::Latency));
        let (points, _) = knee(twice(256), 110.0, |depth| Ok(Some(device(depth)))).unwrap();
        assert_eq!(best(&points, 110.0).unwrap().depth, 2);
        assert_eq!(best(&points, 1.0).unwrap().depth, 4);
    }

    #[test]
    fn depth_and_time_end_it_too() {
        let (points, end) = knee(twice(2), 1e9, |depth| Ok(Some(device(depth)))).unwrap();
        assert_eq!((points.len(), end), (2, End::Deepest));
        let (points, end) = knee(twice(256), 1e9, |depth| {
            Ok((depth < 2).then(|| device(depth)))
        })
        .unwrap();
        assert_eq!((points.len(), end), (1, End::Time));
    }
}
