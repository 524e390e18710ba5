//! What fio found, from its `--output-format=json`. The file may be anybody's: what is not understood is an error with
//! its place, or a figure that is not there.

use serde::{Deserialize, Serialize};

use super::point::PointName;

/// Why a file is no result of fio's.
#[derive(Debug, thiserror::Error)]
pub enum FioError {
    /// It is no JSON, or JSON of something else.
    #[error(
        "it is not a result of fio ({0}): write one with fio --output-format=json --output=FILE JOBFILE"
    )]
    NotFio(String),
    /// It has no job.
    #[error("fio measured nothing: there is no job in it")]
    NoJobs,
    /// A job of it failed.
    #[error("job {job} of fio failed with error {code}: its figures are not to be compared")]
    Failed {
        /// Its name.
        job: String,
        /// `errno`.
        code: i64,
    },
}

/// A job of fio's, or a group of jobs that it reports together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioPoint {
    /// The job's name.
    pub job: String,
    /// Requests completed per second; of `flush-N`, flushes.
    pub iops: f64,
    /// Bytes moved per second, in millions.
    pub mb_per_s: f64,
    /// Mean time of a request, or of a flush, microseconds.
    pub mean_us: f64,
    /// Half took no longer, microseconds; `None` where fio was not told to keep it, or keeps reads and writes apart.
    pub p50_us: Option<f64>,
    /// 99 of 100 took no longer, microseconds; `None` as above.
    pub p99_us: Option<f64>,
}

/// What fio found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioResults {
    /// Its version.
    pub version: String,
    /// Its jobs, in order.
    pub points: Vec<FioPoint>,
}

#[derive(Deserialize)]
#[serde(expecting = "a JSON object of fio's")]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(expecting = "a job of fio's")]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    read: Option<Direction>,
    write: Option<Direction>,
    /// In the place of both, with `unified_rw_reporting`.
    mixed: Option<Direction>,
    sync: Option<Sync>,
}

#[derive(Deserialize)]
#[serde(expecting = "figures of reads or writes")]
struct Direction {
    iops: Figure,
    /// Bytes per second; older versions tell `bw` alone, in KiB.
    bw_bytes: Option<Figure>,
    bw: Option<Figure>,
    lat_ns: Latency,
    clat_ns: Option<Latency>,
}

#[derive(Deserialize)]
#[serde(expecting = "figures of flushes")]
struct Sync {
    lat_ns: Latency,
}

#[derive(Deserialize)]
#[serde(expecting = "a latency with its mean")]
struct Latency {
    mean: Figure,
    #[serde(rename = "N")]
    count: Option<Figure>,
    percentile: Option<std::collections::BTreeMap<String, Figure>>,
}

/// A number that a device can have: a rate, bytes per second, or nanoseconds.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
struct Figure(f64);

/// A petabyte per second, or eleven days.
const FIGURE_MAX: f64 = 1e15;

/// A number that no device has.
#[derive(Debug, thiserror::Error)]
#[error("the figure {0:e}, which no device has")]
struct NoFigure(f64);

impl TryFrom<f64> for Figure {
    type Error = NoFigure;

    fn try_from(value: f64) -> Result<Figure, NoFigure> {
        match (0.0..=FIGURE_MAX).contains(&value) {
            true => Ok(Figure(value)),
            false => Err(NoFigure(value)),
        }
    }
}

impl FioResults {
    /// Reads what fio wrote; words of its own before the JSON are passed over.
    ///
    /// # Errors
    /// [`FioError`].
    pub fn read(text: &str) -> Result<FioResults, FioError> {
        let begin = text.find('{').unwrap_or(0);
        let mut documents = serde_json::Deserializer::from_str(&text[begin..]).into_iter();
        let document: Document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(FioError::NotFio(error.to_string())),
            None => return Err(FioError::NotFio("it is empty".to_owned())),
        };
        if let Some(job) = document.jobs.iter().find(|job| job.error != 0) {
            return Err(FioError::Failed {
                job: job.jobname.clone(),
                code: job.error,
            });
        }
        let points: Vec<FioPoint> = document.jobs.iter().filter_map(Job::point).collect();
        match points.is_empty() {
            true => Err(FioError::NoJobs),
            false => Ok(FioResults {
                version: document.version,
                points,
            }),
        }
    }
}

impl Job {
    /// `None` when it did nothing.
    fn point(&self) -> Option<FioPoint> {
        let all = [&self.mixed, &self.read, &self.write];
        let busy: Vec<&Direction> = all
            .into_iter()
            .flatten()
            .filter(|direction| direction.iops.0 > 0.0)
            .collect();
        let iops: f64 = busy.iter().map(|direction| direction.iops.0).sum();
        let is_flush = matches!(self.jobname.parse(), Ok(PointName::Flush { .. }));
        let flushes = self.sync.as_ref().filter(|_| is_flush);
        let alone = match (&busy[..], flushes) {
            ([], _) => return None,
            (_, Some(sync)) => Some(&sync.lat_ns),
            ([one], None) => Some(&one.lat_ns),
            _ => None,
        };
        // Older defaults keep percentiles of the time after the submission, which hardly differ.
        let after = match (&busy[..], flushes) {
            ([one], None) => one.clat_ns.as_ref(),
            _ => None,
        };
        let percentile = |which: f64| {
            let found = alone.and_then(|latency| latency.percentile_us(which));
            found.or_else(|| after?.percentile_us(which))
        };
        let mean = |direction: &&Direction| direction.lat_ns.mean.0 * direction.iops.0 / iops;
        Some(FioPoint {
            job: self.jobname.clone(),
            iops,
            mb_per_s: busy.iter().map(|direction| direction.mb_per_s()).sum(),
            mean_us: alone.map_or_else(|| busy.iter().map(mean).sum(), |latency| latency.mean.0)
                / 1e3,
            p50_us: percentile(50.0),
            p99_us: percentile(99.0),
        })
    }
}

impl Direction {
    fn mb_per_s(&self) -> f64 {
        let bytes = self.bw_bytes.map(|bytes| bytes.0);
        let bytes = bytes.or(self.bw.map(|kib| kib.0 * 1024.0));
        bytes.unwrap_or_default() / 1e6
    }
}

impl Latency {
    /// `None` when it was not kept.
    fn percentile_us(&self, which: f64) -> Option<f64> {
        let kept = self
            .percentile
            .as_ref()
            .filter(|_| self.count != Some(Figure(0.0)))?;
        let is_it = |(name, _): &(&String, &Figure)| name.parse() == Ok(which);
        Some(kept.iter().find(is_it)?.1.0 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of fio 3.33, shortened.
    const FOUND: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [
 {"jobname": "small-sync-3", "error": 0, "mixed": {"iops": 22771.5, "bw_bytes": 186543104,
   "lat_ns": {"min": 31154, "mean": 129896.6, "N": 22817, "percentile": {"50.000000": 94720, "99.000000": 468992}}}},
 {"jobname": "mine", "error": 0,
   "read": {"iops": 300.0, "bw_bytes": 2457600, "lat_ns": {"mean": 1000000.0, "N": 300}},
   "write": {"iops": 100.0, "bw_bytes": 819200, "lat_ns": {"mean": 3000000.0, "N": 100}}},
 {"jobname": "flush-4", "error": 0,
   "read": {"iops": 0.0, "bw_bytes": 0, "lat_ns": {"mean": 0.0, "N": 0}},
   "write": {"iops": 13120.0, "bw_bytes": 107479040, "lat_ns": {"mean": 5682.4, "N": 13225}},
   "sync": {"total_ios": 0, "lat_ns": {"mean": 294670.5, "N": 13231, "percentile": {"50.000000": 201728}}}}
]}"#;

    #[test]
    fn figures_of_fio_are_those_of_its_jobs() {
        let found = FioResults::read(FOUND).unwrap();
        let [small, mine, flush] = &found.points[..] else {
            panic!("{found:?}");
        };
        assert_eq!(small.p99_us, Some(468.992));
        assert_eq!((small.iops, small.mean_us.round()), (22771.5, 130.0));
        assert_eq!(
            (mine.iops, mine.mean_us, mine.p50_us),
            (400.0, 1500.0, None)
        );
        assert_eq!((flush.iops, flush.mean_us.round()), (13120.0, 295.0));
        assert_eq!((flush.p50_us, flush.p99_us), (Some(201.728), None));
    }

    #[test]
    fn what_is_not_fios_is_refused() {
        for text in [
            "",
            "hello",
            "{",
            "{}",
            "[]",
            r#"{"fio version": 3, "jobs": []}"#,
        ] {
            assert!(
                matches!(FioResults::read(text), Err(FioError::NotFio(_))),
                "{text}"
            );
        }
        for wrong in ["1e308", "-1.5"] {
            let refused = FioResults::read(&FOUND.replacen("22771.5", wrong, 1)).unwrap_err();
            assert!(
                refused.to_string().contains("which no device has"),
                "{refused}"
            );
        }
        let refused = FioResults::read(r#"{"fio version": "fio-3.33", "jobs": [1]}"#).unwrap_err();
        assert!(
            refused.to_string().contains("expected a job of fio's"),
            "{refused}"
        );
        let none = r#"{"fio version": "fio-3.33", "jobs": []}"#;
        assert!(matches!(FioResults::read(none), Err(FioError::NoJobs)));
        let failed = FOUND.replacen("\"error\": 0", "\"error\": 5", 1);
        assert!(matches!(
            FioResults::read(&failed),
            Err(FioError::Failed { code: 5, .. })
        ));
    }
}
