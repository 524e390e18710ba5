//! Figures of fio beside our own, of the points that both have and that both measured with the same options.

use super::job::{OwnOptions, curve_options, flush_options, matrix_options};
use super::point::PointName;
use super::results::{FioPoint, FioResults};
use crate::figures::{DurableBy, Flushed};
use crate::point::PointLoad;
use crate::result::{
    Calibration, FioComparison, FioComparisonRow, FioLeftOut, MatrixPoint, MatrixResult,
};

/// What is compared of a point of ours.
struct Own {
    name: PointName,
    iops: f64,
    mean_us: Option<f64>,
    p99_us: Option<f64>,
    /// Of its job, those of each section that fio tells together.
    options: Vec<OwnOptions>,
}

impl FioComparison {
    /// Puts them side by side.
    pub fn of(found: &Calibration, fio: &FioResults) -> FioComparison {
        let own = own(found);
        let (mut rows, mut not_compared) = (Vec::new(), Vec::new());
        let mut left_out = fio.left_out.clone();
        for job in &fio.points {
            let name = job.job.parse::<PointName>().ok();
            // An access path that was measured direct and buffered has two points of one name.
            let mut named = own.iter().filter(|own| Some(own.name) == name);
            let fitting = named.clone().find(|own| why_not(own, job, fio).is_none());
            let Some(own) = fitting.or_else(|| named.next()) else {
                not_compared.push(job.job.clone());
                continue;
            };
            match why_not(own, job, fio) {
                None => rows.push(row(own, job)),
                Some(why) => left_out.push(FioLeftOut {
                    job: job.job.clone(),
                    why,
                }),
            }
        }
        FioComparison {
            version: fio.version.clone(),
            rows,
            not_compared,
            left_out,
        }
    }
}

/// Why a job with the name of a point is not to be compared with it.
fn why_not(own: &Own, job: &FioPoint, fio: &FioResults) -> Option<String> {
    let parts = fio.points.iter().filter(|other| other.job == job.job);
    match parts.count() {
        0 | 1 => {}
        parts => {
            return Some(format!(
                "fio tells it in {parts} parts: let it run with group_reporting=1"
            ));
        }
    }
    if job.lacks_flushes {
        return Some("fio tells no times of flushes of it".to_owned());
    }
    job.options.difference(&own.options)
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
            options: curve_options(
                PointLoad {
                    what: curve.what,
                    method: curve.method,
                    depth: point.depth,
                },
                curve.caching,
                found.write_percent,
            ),
        }));
    }
    if let Some(matrix) = &found.matrix {
        let each = matrix.points.iter();
        all.extend(each.flat_map(|point| of_matrix(point, matrix, found).into_iter().flatten()));
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
        options: vec![flush_options(flushed.writers)],
    }));
    all
}

/// Small and large requests of a point of a matrix.
fn of_matrix(point: &MatrixPoint, matrix: &MatrixResult, found: &Calibration) -> [Option<Own>; 2] {
    let name = |is_small| PointName::Matrix {
        small: point.small,
        large: point.large,
        is_small,
    };
    let best = found
        .maximum_iops
        .as_ref()
        .or(found.maximum_mb_per_s.as_ref());
    let caching = best.map(|best| best.caching);
    let options = |is_small| matrix_options(matrix, name(is_small), caching, found.write_percent);
    [
        point.iops.map(|iops| Own {
            name: name(true),
            iops,
            mean_us: point.mean_us,
            p99_us: point.p99_us,
            options: options(true),
        }),
        point.mb_per_s.map(|mb_per_s| Own {
            name: name(false),
            iops: mb_per_s * 1e6 / matrix.size_large_bytes as f64,
            mean_us: point.large_mean_us,
            p99_us: point.large_p99_us,
            options: options(false),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Cached, Point, What};
    use crate::orion::{LargeType, Run};
    use crate::result::{CacheFinding, PathCurve};
    use crate::text;
    use spindle_io::real::{Caching, Method};

    /// Threads of sync at depth 4, streams of a matrix, and flushes of a writer.
    fn measured() -> Calibration {
        let point = Point {
            depth: 4,
            iops: 1000.0,
            mb_per_s: 8.0,
            mean_us: 4000.0,
            p50_us: 4000.0,
            p99_us: 5000.0,
            max_us: 6000.0,
            is_steady: true,
            measured_s: 1.0,
            requests: 1000,
            writes: None,
            histogram: Vec::new(),
        };
        let curve = PathCurve {
            method: Method::Sync,
            caching: Caching::Direct,
            what: What::SmallRandom,
            points: vec![point],
            note: None,
            cut_short: None,
        };
        let streams = MatrixPoint {
            large: 2,
            mb_per_s: Some(100.0),
            ..MatrixPoint::default()
        };
        Calibration {
            format: 1,
            targets: Vec::new(),
            write_percent: 50,
            took_s: 0.0,
            max_latency_us: 0.0,
            maximum_iops: None,
            maximum_mb_per_s: None,
            minimum_latency: None,
            held: None,
            commits: Vec::new(),
            flushes: vec![Flushed {
                target: String::new(),
                by: DurableBy::Fdatasync,
                writers: 1,
                flushes_per_s: 1.0,
                mean_us: 1.0,
                p50_us: 1.0,
                p99_us: 1.0,
                max_us: 1.0,
                is_steady: true,
                flushes: 1,
            }],
            honesty: Vec::new(),
            needs: Vec::new(),
            cache: CacheFinding {
                cached: Cached::NotSeen,
                because: String::new(),
                device: None,
                repeat_ratio: None,
                zero_share: None,
                resident_share: None,
                coverage: None,
            },
            curves: vec![curve],
            at_rates: Vec::new(),
            matrix: Some(MatrixResult {
                run: Run::Advanced,
                method: Method::Libaio,
                size_small_bytes: 8192,
                size_large_bytes: 1 << 20,
                large_type: LargeType::Seq,
                points: vec![streams],
            }),
            cloud: None,
            bought: crate::cloud::Bought::default(),
            against: None,
            notes: Vec::new(),
        }
    }

    fn job(name: &str, options: &str) -> String {
        format!(
            r#"{{"jobname": "{name}", "job options": {{{options}}},
             "read": {{"iops": 500, "lat_ns": {{"mean": 8000000, "N": 9}}}},
             "sync": {{"lat_ns": {{"mean": 7000, "N": 9}}}}}}"#
        )
    }

    /// With the options that the heading of a job file has for all.
    fn compared(jobs: &[String]) -> FioComparison {
        let text = format!(
            r#"{{"fio version": "fio-3.33", "global options": {{"direct": "1", "filename": "/f"}}, "jobs": [{}]}}"#,
            jobs.join(",")
        );
        FioComparison::of(&measured(), &FioResults::read(&text).unwrap())
    }

    const SMALL: &str =
        r#""bs": "8k", "rw": "randrw", "rwmixread": "50", "ioengine": "psync", "numjobs": "4""#;
    const STREAM: &str = r#""bs": "1m", "rw": "write", "ioengine": "libaio", "iodepth": "3""#;
    const FLUSH: &str =
        r#""direct": "0", "bs": "8192", "rw": "write", "fdatasync": "1", "ioengine": "psync""#;

    #[test]
    fn jobs_as_ours_are_compared_and_others_told_with_the_reason() {
        let same = [
            job("small-sync-4", SMALL),
            job("mix-0-2-large", STREAM),
            job("flush-1", FLUSH),
            job("mine", ""),
        ];
        let beside = compared(&same);
        assert_eq!(beside.rows.len(), 3, "{beside:?}");
        assert_eq!(beside.rows[0].iops_ratio, 2.0);
        assert_eq!(
            (beside.not_compared, beside.left_out.len()),
            (vec!["mine".to_owned()], 0)
        );
        for (name, options, from, to, why) in [
            (
                "small-sync-4",
                SMALL,
                "8k",
                "4k",
                "bs is 4096 there and 8192 here",
            ),
            (
                "small-sync-4",
                SMALL,
                "randrw",
                "randread",
                "rw is randread there",
            ),
            (
                "small-sync-4",
                SMALL,
                "\"50\"",
                "\"70\"",
                "rwmixwrite is 30 there and 50 here",
            ),
            (
                "small-sync-4",
                SMALL,
                "psync",
                "libaio",
                "ioengine is libaio there",
            ),
            (
                "small-sync-4",
                SMALL,
                "\"4\"",
                "\"8\"",
                "numjobs is 8 there and 4 here",
            ),
            (
                "small-sync-4",
                SMALL,
                "\"bs\"",
                "\"direct\": \"0\", \"bs\"",
                "direct is 0 there",
            ),
            ("mix-0-2-large", STREAM, "1m", "128k", "bs is 131072 there"),
            (
                "flush-1",
                FLUSH,
                "\"direct\": \"0\"",
                "\"direct\": \"1\"",
                "direct is 1 there",
            ),
        ] {
            let beside = compared(&[job(name, &options.replace(from, to))]);
            assert_eq!(beside.rows, [], "{why}");
            assert_eq!(beside.left_out[0].job, name);
            assert!(
                beside.left_out[0].why.contains(why),
                "{:?}",
                beside.left_out
            );
        }
    }

    #[test]
    fn parts_of_a_job_and_missing_flushes_are_not_compared() {
        let parts = compared(&[job("small-sync-4", SMALL), job("small-sync-4", SMALL)]);
        assert_eq!((parts.rows.len(), parts.left_out.len()), (0, 2));
        assert!(parts.left_out[0].why.contains("2 parts"), "{parts:?}");
        let unflushed = job("flush-1", FLUSH).replace("\"N\": 9}}}", "\"N\": 0}}}");
        let beside =
            compared(&[unflushed.replace("\"mean\": 7000, \"N\": 9", "\"mean\": 0, \"N\": 0")]);
        assert!(beside.rows.is_empty() && beside.left_out[0].why.contains("no times of flushes"));
    }

    #[test]
    fn both_texts_name_what_is_left_out_and_keep_their_columns() {
        let idle = r#"{"jobname": "idle", "read": {"iops": 0, "lat_ns": {"mean": 0}}}"#.to_owned();
        let other = job("mix-0-2-large", "\"bs\": \"4k\"");
        let mut found = measured();
        found.against = Some(compared(&[job("small-sync-4", SMALL), idle.clone(), other]));
        let told = text::render(&found);
        for line in [
            "not compared: idle: without requests\n",
            "not compared: mix-0-2-large: bs is 4096 there and 1048576 here\n",
        ] {
            assert!(told.contains(line), "{told}");
        }
        let long = job("random-read-of-a-very-long-name-q8", "").replace("500", "999999999");
        let jobs = [job("short", ""), long, idle].join(",");
        let text = format!(r#"{{"fio version": "fio-3.33", "jobs": [{jobs}]}}"#);
        let told = text::render_fio(&FioResults::read(&text).unwrap());
        let lines: Vec<&str> = told.lines().skip(2).collect();
        assert!(
            lines[2].starts_with("random-read…") && lines[2].contains(" 999,999,999 "),
            "{told}"
        );
        assert!(
            lines[..3]
                .iter()
                .all(|line| line.chars().count() == lines[0].chars().count()),
            "{told}"
        );
        assert_eq!(lines[3], "not told: idle: without requests");
    }
}
