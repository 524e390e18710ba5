//! Figures of fio beside our own, of the points that both have.

use super::point::PointName;
use super::results::{FioPoint, FioResults};
use crate::figures::{DurableBy, Flushed};
use crate::result::{Calibration, FioComparison, FioComparisonRow, MatrixPoint};

/// What is compared of a point of ours.
struct Own {
    name: PointName,
    iops: f64,
    mean_us: Option<f64>,
    p99_us: Option<f64>,
}

impl FioComparison {
    /// Puts them side by side.
    pub fn of(found: &Calibration, fio: &FioResults) -> FioComparison {
        let own = own(found);
        let partner = |job: &FioPoint| {
            let name: PointName = job.job.parse().ok()?;
            own.iter().find(|own| own.name == name)
        };
        let rows = fio
            .points
            .iter()
            .filter_map(|job| Some(row(partner(job)?, job)));
        let others = fio.points.iter().filter(|job| partner(job).is_none());
        FioComparison {
            version: fio.version.clone(),
            rows: rows.collect(),
            not_compared: others.map(|job| job.job.clone()).collect(),
        }
    }
}

impl FioResults {
    /// Whether any of its jobs is named as a point is.
    pub fn can_be_compared(&self) -> bool {
        let is_named = |job: &FioPoint| job.job.parse::<PointName>().is_ok();
        self.points.iter().any(is_named)
    }
}

fn row(own: &Own, fio: &FioPoint) -> FioComparisonRow {
    FioComparisonRow {
        name: own.name.to_string(),
        iops: (own.iops, fio.iops),
        iops_ratio: own.iops / fio.iops,
        mean_us: (own.mean_us, fio.mean_us),
        mean_ratio: own.mean_us.map(|mean_us| mean_us / fio.mean_us),
        p99_us: (own.p99_us, fio.p99_us),
    }
}

/// All points of a calibration that fio has a job for.
fn own(found: &Calibration) -> Vec<Own> {
    let mut all = Vec::new();
    for curve in &found.curves {
        all.extend(curve.points.iter().map(|point| Own {
            name: PointName::Curve {
                what: curve.what,
                method: curve.method,
                depth: point.depth,
            },
            iops: point.iops,
            mean_us: Some(point.mean_us),
            p99_us: Some(point.p99_us),
        }));
    }
    if let Some(matrix) = &found.matrix {
        for point in &matrix.points {
            all.extend(
                of_matrix(point, matrix.size_large_bytes)
                    .into_iter()
                    .flatten(),
            );
        }
    }
    let first = found.flushes.first().map(|flushed| &flushed.target);
    let is_job =
        |flushed: &&Flushed| flushed.by == DurableBy::Fdatasync && Some(&flushed.target) == first;
    all.extend(found.flushes.iter().filter(is_job).map(|flushed| Own {
        name: PointName::Flush {
            writers: flushed.writers,
        },
        iops: flushed.flushes_per_s,
        mean_us: Some(flushed.mean_us),
        p99_us: Some(flushed.p99_us),
    }));
    all
}

/// Small and large requests of a point of a matrix.
fn of_matrix(point: &MatrixPoint, size_large_bytes: u64) -> [Option<Own>; 2] {
    let name = |is_small| PointName::Matrix {
        small: point.small,
        large: point.large,
        is_small,
    };
    [
        point.iops.map(|iops| Own {
            name: name(true),
            iops,
            mean_us: point.mean_us,
            p99_us: point.p99_us,
        }),
        point.mb_per_s.map(|mb_per_s| Own {
            name: name(false),
            iops: mb_per_s * 1e6 / size_large_bytes as f64,
            mean_us: None,
            p99_us: None,
        }),
    ]
}
