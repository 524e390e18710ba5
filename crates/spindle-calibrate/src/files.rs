//! A calibration as files: `result.json` is the program's; these have ORION's names and forms. In the matrices a row is
//! a number of large requests, a column a number of small ones.

use std::fmt::Write as _;

use crate::figures::{Point, What};
use crate::result::{Calibration, MatrixPoint, PathCurve};
use crate::text;

/// Ends of the files' names, and their content. What ORION puts before them is the name of the test and the time.
pub fn files(found: &Calibration) -> Vec<(&'static str, String)> {
    vec![
        ("summary.txt", summary(found)),
        (
            "iops.csv",
            table(found, &|point| point.iops, &|point| point.iops),
        ),
        (
            "mbps.csv",
            table(found, &|point| point.mb_per_s, &|point| point.mb_per_s),
        ),
        (
            "lat.csv",
            table(found, &|point| point.mean_us, &|point| point.mean_us),
        ),
        ("hist.txt", histograms(found)),
        ("trace.txt", text::render(found)),
    ]
}

/// ORION's three lines, with the load where each was reached.
fn summary(found: &Calibration) -> String {
    let points = found.matrix.as_ref().map(|matrix| matrix.points.as_slice());
    let extremes = [
        (&found.maximum_mb_per_s, false),
        (&found.maximum_iops, true),
        (&found.minimum_latency, true),
    ];
    let loads = extremes.map(|(extreme, is_small)| {
        let extreme = extreme.as_ref()?;
        let depth = extreme.point.depth;
        let is_it = |point: &&MatrixPoint| match is_small {
            true => point.iops == Some(extreme.point.iops),
            false => point.mb_per_s == Some(extreme.point.mb_per_s),
        };
        let of_matrix = points.and_then(|points| points.iter().find(is_it));
        let alone = if is_small { (depth, 0) } else { (0, depth) };
        let (small, large) = of_matrix.map_or(alone, |point| (point.small, point.large));
        Some((&extreme.point, format!("@ Small={small} and Large={large}")))
    });
    let mut text = String::new();
    if let Some((point, at)) = &loads[0] {
        let _ = writeln!(text, "Maximum Large MBPS={:.2} {at}", point.mb_per_s);
    }
    if let Some((point, at)) = &loads[1] {
        let _ = writeln!(text, "Maximum Small IOPS={:.0} {at}", point.iops);
    }
    if let Some((point, at)) = &loads[2] {
        let _ = writeln!(
            text,
            "Minimum Small Latency={:.2} usecs {at}",
            point.mean_us
        );
    }
    text
}

/// A figure of each point: of the matrix, or where there is none, of each access path.
fn table(
    found: &Calibration,
    of_matrix: &dyn Fn(&MatrixPoint) -> Option<f64>,
    of_point: &dyn Fn(&Point) -> f64,
) -> String {
    match &found.matrix {
        Some(found) => matrix(&found.points, of_matrix),
        None => curves(&found.curves, of_point),
    }
}

/// Loads of which no point has the figure have no row and no column, as with ORION.
fn matrix(points: &[MatrixPoint], figure: &dyn Fn(&MatrixPoint) -> Option<f64>) -> String {
    let distinct = |load: fn(&MatrixPoint) -> u32| {
        let has_it = points.iter().filter(|point| figure(point).is_some());
        let mut all: Vec<u32> = has_it.map(load).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (smalls, larges) = (distinct(|point| point.small), distinct(|point| point.large));
    let mut text = String::from("Large/Small");
    for small in &smalls {
        let _ = write!(text, ",{small}");
    }
    for large in larges {
        let _ = write!(text, "\n{large}");
        for small in &smalls {
            let point = points
                .iter()
                .find(|point| (point.small, point.large) == (*small, large));
            let told = point.and_then(figure).map(|figure| format!("{figure:.2}"));
            let _ = write!(text, ",{}", told.unwrap_or_default());
        }
    }
    text + "\n"
}

/// Latencies of the points of ORION's three lines: how many requests took no longer than each time, and longer than the
/// one before.
fn histograms(found: &Calibration) -> String {
    let extremes = [
        ("Maximum Large MBPS", &found.maximum_mb_per_s),
        ("Maximum Small IOPS", &found.maximum_iops),
        ("Minimum Small Latency", &found.minimum_latency),
    ];
    let mut text = String::new();
    for (name, extreme) in extremes {
        let buckets = extreme.iter().flat_map(|found| &found.point.histogram);
        let mut buckets = buckets.peekable();
        if buckets.peek().is_some() {
            let _ = writeln!(text, "{name}\n{:>14}  requests", "up to usecs");
        }
        for (upper_us, requests) in buckets {
            let _ = writeln!(text, "{upper_us:>14.1}  {requests}");
        }
    }
    text
}

/// A line for each point: without run type there is no matrix.
fn curves(curves: &[PathCurve], figure: &dyn Fn(&Point) -> f64) -> String {
    let mut text = String::from("requests,method,caching,depth,value\n");
    for curve in curves {
        let what = match curve.what {
            What::SmallRandom => "small",
            What::LargeSequential => "large",
        };
        for point in &curve.points {
            let (method, caching, depth) = (curve.method, curve.caching, point.depth);
            let _ = writeln!(
                text,
                "{what},{method},{caching},{depth},{:.2}",
                figure(point)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use spindle_io::real::{Caching, Method};

    use super::*;
    use crate::figures::Extreme;

    #[test]
    fn rows_are_large_loads_and_columns_small_ones() {
        let point = |small, large, iops| MatrixPoint {
            small,
            large,
            iops,
            ..MatrixPoint::default()
        };
        let points = [
            point(1, 0, Some(10.0)),
            point(2, 0, Some(19.5)),
            point(0, 1, None),
        ];
        let text = matrix(&points, &|point| point.iops);
        assert_eq!(text, "Large/Small,1,2\n0,10.00,19.50\n");
    }

    #[test]
    fn latencies_of_the_best_points_are_listed() {
        let mut found = crate::need::tests::found(1.0);
        found.maximum_iops = Some(Extreme {
            method: Method::Sync,
            caching: Caching::Direct,
            point: Point {
                depth: 1,
                iops: 19_500.0,
                mb_per_s: 160.0,
                mean_us: 90.0,
                p50_us: 89.0,
                p99_us: 99.0,
                max_us: 99.0,
                is_steady: true,
                measured_s: 1.0,
                requests: 15,
                writes: None,
                histogram: vec![(89.125, 3), (100.0, 12)],
            },
            beside: 0,
            is_confirmed: true,
        });
        let text = histograms(&found);
        let wanted =
            "Maximum Small IOPS\n   up to usecs  requests\n          89.1  3\n         100.0  12\n";
        assert_eq!(text, wanted);
    }
}
