//! What fio found, from its `--output-format=json`. The file may come from anywhere: what is not understood is an error
//! with its place, or a missing figure.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::document::{Direction, Document, Figure, Job, Latency};
use super::error::FioError;
use super::options::{FioOptions, Listed};
use super::point::PointName;
use crate::result::FioLeftOut;

/// Requests per second: one in eleven days, and more than any machine can count.
const IOPS: RangeInclusive<f64> = 1e-6..=1e9;
/// Bytes per second: up to a petabyte.
const BYTES_PER_S: RangeInclusive<f64> = 0.0..=1e15;
/// Times in microseconds: a nanosecond to eleven days.
const TIME_US: RangeInclusive<f64> = 1e-3..=1e12;

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
    /// As far as fio tells them.
    #[serde(skip)]
    pub(super) options: FioOptions,
    /// It is called as one of flushes, and fio counted none.
    #[serde(skip)]
    pub(super) lacks_flushes: bool,
}

/// What fio found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioResults {
    /// Its version.
    pub version: String,
    /// Its jobs, in order.
    pub points: Vec<FioPoint>,
    /// Its jobs without figures, in order.
    pub left_out: Vec<FioLeftOut>,
}

impl FioResults {
    /// Reads what fio wrote; of several documents in a file the last complete one.
    ///
    /// # Errors
    /// [`FioError`].
    pub fn read(text: &str) -> Result<FioResults, FioError> {
        let mut document = Document::last(text)?;
        let jobs = document.take_jobs()?;
        if jobs.is_empty() {
            return Err(FioError::NoJobs);
        }
        if let Some(job) = jobs.iter().find(|job| job.error != 0) {
            return Err(FioError::Failed {
                job: job.jobname.clone(),
                code: job.error,
            });
        }
        let (mut points, mut left_out) = (Vec::new(), Vec::new());
        for job in &jobs {
            match job.point(&document.global)? {
                Ok(point) => points.push(point),
                Err(why) => left_out.push(FioLeftOut {
                    job: job.jobname.clone(),
                    why: why.to_owned(),
                }),
            }
        }
        if points.is_empty() {
            let each = left_out.iter();
            let each: Vec<String> = each
                .map(|left| format!("{}: {}", left.job, left.why))
                .collect();
            return Err(FioError::NothingTold(each.join("; ")));
        }
        Ok(FioResults {
            version: document.version,
            points,
            left_out,
        })
    }
}

/// Figures of requests of one kind, or of flushes.
#[derive(Clone, Copy, Default)]
struct Figures {
    iops: f64,
    mb_per_s: f64,
    mean_us: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

impl Job {
    /// Its figures, or why they are not told.
    fn point(&self, global: &Listed) -> Result<Result<FioPoint, &'static str>, FioError> {
        let options = FioOptions::of(global, &self.options);
        let trims = self.figures("trim", self.trim.as_ref())?.is_some() || options.trims();
        let mut busy = Vec::new();
        for (name, direction) in [
            ("mixed", &self.mixed),
            ("read", &self.read),
            ("write", &self.write),
        ] {
            busy.extend(self.figures(name, direction.as_ref())?);
        }
        if trims {
            return Ok(Err("it trims, which has no figure here"));
        }
        if busy.is_empty() {
            return Ok(Err("without requests"));
        }
        let is_flush = matches!(self.jobname.parse(), Ok(PointName::Flush { .. }));
        let flushes = match is_flush {
            true => self.flushes()?,
            false => None,
        };
        let times = match (&busy[..], flushes) {
            (_, Some(flushes)) => flushes,
            ([one], None) => *one,
            (several, None) => together(several),
        };
        Ok(Ok(FioPoint {
            job: self.jobname.clone(),
            iops: busy.iter().map(|found| found.iops).sum(),
            mb_per_s: busy.iter().map(|found| found.mb_per_s).sum(),
            mean_us: times.mean_us,
            p50_us: times.p50_us,
            p99_us: times.p99_us,
            options,
            lacks_flushes: is_flush && flushes.is_none(),
        }))
    }

    /// `None` when there were none.
    fn figures(&self, name: &str, of: Option<&Direction>) -> Result<Option<Figures>, FioError> {
        let is_idle = |found: &&Direction| found.iops.value() == 0.0;
        let Some(found) = of.filter(|found| !is_idle(found)) else {
            return Ok(None);
        };
        let iops = self.checked(format!("{name}.iops"), found.iops.value(), IOPS)?;
        let bytes = found.bw_bytes.map(Figure::value);
        let bytes = bytes.or(found.bw.map(|kib| kib.value() * 1024.0));
        let bytes = self.checked(format!("{name}.bw"), bytes.unwrap_or_default(), BYTES_PER_S)?;
        // fio 2 tells microseconds, and has no names with the unit.
        let (unit, lat, clat, per_us) = match (&found.lat_ns, &found.lat) {
            (Some(lat), _) => ("_ns", lat, &found.clat_ns, 1e3),
            (None, Some(lat)) => ("", lat, &found.clat, 1.0),
            (None, None) => return Err(self.no_times(format!("{name}.lat_ns"))),
        };
        let mut figures = self.times(&format!("{name}.lat{unit}"), lat, per_us)?;
        // Older defaults keep percentiles of the time after the submission, which hardly differ.
        if let (None, Some(clat)) = (figures.p50_us.or(figures.p99_us), clat) {
            let field = format!("{name}.clat{unit}");
            figures.p50_us = self.percentile(&field, clat, 50.0, per_us)?;
            figures.p99_us = self.percentile(&field, clat, 99.0, per_us)?;
        }
        Ok(Some(Figures {
            iops,
            mb_per_s: bytes / 1e6,
            ..figures
        }))
    }

    /// Times of flushes; `None` when fio counted none.
    fn flushes(&self) -> Result<Option<Figures>, FioError> {
        let counted = self.sync.as_ref().filter(|sync| sync.lat_ns.has_some());
        counted
            .map(|sync| self.times("sync.lat_ns", &sync.lat_ns, 1e3))
            .transpose()
    }

    fn times(&self, field: &str, latency: &Latency, per_us: f64) -> Result<Figures, FioError> {
        if latency.mean.value() == 0.0 {
            return Err(self.no_times(format!("{field}.mean")));
        }
        let mean_us = latency.mean.value() / per_us;
        Ok(Figures {
            mean_us: self.checked(format!("{field}.mean, in us,"), mean_us, TIME_US)?,
            p50_us: self.percentile(field, latency, 50.0, per_us)?,
            p99_us: self.percentile(field, latency, 99.0, per_us)?,
            ..Figures::default()
        })
    }

    fn percentile(
        &self,
        field: &str,
        latency: &Latency,
        which: f64,
        per_us: f64,
    ) -> Result<Option<f64>, FioError> {
        let found = latency.percentile(which);
        let field = || format!("{field}.percentile of {which}, in us,");
        let allowed = 0.0..=*TIME_US.end();
        found
            .map(|value| self.checked(field(), value / per_us, allowed))
            .transpose()
    }

    fn no_times(&self, field: String) -> FioError {
        FioError::NoTimes {
            job: self.jobname.clone(),
            field,
        }
    }

    fn checked(
        &self,
        field: String,
        value: f64,
        allowed: RangeInclusive<f64>,
    ) -> Result<f64, FioError> {
        match allowed.contains(&value) {
            true => Ok(value),
            false => Err(FioError::Absurd {
                job: self.jobname.clone(),
                field,
                value,
                least: *allowed.start(),
                most: *allowed.end(),
            }),
        }
    }
}

/// Reads and writes: the mean of all, and no percentiles, which those of each do not tell.
fn together(several: &[Figures]) -> Figures {
    let iops: f64 = several.iter().map(|found| found.iops).sum();
    let mean = |found: &Figures| found.mean_us * found.iops / iops;
    Figures {
        mean_us: several.iter().map(mean).sum(),
        ..Figures::default()
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

    #[test]
    fn figures_that_no_device_has_are_refused_with_job_and_field() {
        for (from, to, part) in [
            (
                "22771.5",
                "1e308",
                "small-sync-3 of fio has a mixed.iops of 1e308",
            ),
            ("22771.5", "1000000001", "mixed.iops"),
            ("22771.5", "-1.5", "mixed.iops of -1.5"),
            ("22771.5", "1e-300", "mixed.iops"),
            ("22771.5", "null", "mixed.iops of NaN"),
            ("\"iops\": 22771.5", "\"iops\" : -nan", "mixed.iops of NaN"),
            (
                "129896.6",
                "0",
                "small-sync-3 of fio has requests and no mixed.lat_ns.mean",
            ),
            ("129896.6", "1e300", "mixed.lat_ns.mean"),
            ("468992", "-1", "mixed.lat_ns.percentile of 99"),
            ("186543104", "1e300", "mixed.bw"),
            (
                "294670.5",
                "0.0",
                "flush-4 of fio has requests and no sync.lat_ns.mean",
            ),
            (
                "3000000.0",
                "0",
                "mine of fio has requests and no write.lat_ns.mean",
            ),
        ] {
            let text = FOUND.replacen(from, to, 1);
            assert_ne!(text, FOUND);
            let refused = FioResults::read(&text).unwrap_err().to_string();
            assert!(refused.contains(part), "{to}: {refused}");
        }
    }

    #[test]
    fn fio_2_tells_microseconds() {
        let found = FioResults::read(
            r#"{"fio version": "fio-2.16", "jobs": [{"jobname": "small-sync-1", "error": 0,
             "read": {"iops": 7812.5, "bw": 62500, "slat": {"mean": 0.0},
               "clat": {"mean": 120.5, "percentile": {"50.000000": 118, "99.000000": 240}},
               "lat": {"min": 80, "max": 900, "mean": 125.25}},
             "write": {"iops": 0.0, "bw": 0, "lat": {"mean": 0.0}}},
             {"jobname": "flush-1", "write": {"iops": 5.0, "lat": {"mean": 9.5}}}]}"#,
        )
        .unwrap();
        let [small, flush] = &found.points[..] else {
            panic!("{found:?}");
        };
        assert_eq!((small.mean_us, small.mb_per_s), (125.25, 64.0));
        assert_eq!((small.p50_us, small.p99_us), (Some(118.0), Some(240.0)));
        assert!(flush.lacks_flushes && !small.lacks_flushes);
    }

    #[test]
    fn jobs_without_a_figure_are_named() {
        let nothing = r#"{"iops": 0.0, "lat_ns": {"mean": 0.0, "N": 0}}"#;
        let some = r#"{"iops": 9.5, "lat_ns": {"mean": 5000.0, "N": 9}}"#;
        let jobs = format!(
            r#"{{"jobname": "idle", "read": {nothing}}},
             {{"jobname": "trimmer", "read": {nothing}, "trim": {some}}},
             {{"jobname": "mixed", "job options": {{"rw": "randtrim"}}, "mixed": {some}}}"#
        );
        let document = |jobs: &str| format!(r#"{{"fio version": "fio-3.33", "jobs": [{jobs}]}}"#);
        let busy = format!(r#"{{"jobname": "busy", "read": {some}}},{jobs}"#);
        let found = FioResults::read(&document(&busy)).unwrap();
        assert_eq!(found.points.len(), 1);
        let named: Vec<(&str, bool)> = found
            .left_out
            .iter()
            .map(|left| (left.job.as_str(), left.why.contains("trims")))
            .collect();
        assert_eq!(named, [("idle", false), ("trimmer", true), ("mixed", true)]);
        let refused = FioResults::read(&document(&jobs)).unwrap_err().to_string();
        assert!(
            refused.contains("idle: without requests; trimmer: it trims"),
            "{refused}"
        );
    }
}
