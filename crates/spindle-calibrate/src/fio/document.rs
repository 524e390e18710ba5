//! The shapes of fio's JSON, of versions 2 and 3, and where in a file the document lies that counts. [`super::results`]
//! makes figures of it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::error::FioError;
use super::options::Listed;

/// What fio's client calls the sum of all servers.
const SUMMARY: &str = "All clients";

/// All that fio wrote at a time.
#[derive(Deserialize)]
#[serde(expecting = "a JSON object of fio's")]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    #[serde(rename = "global options", default)]
    pub(super) global: Listed,
    #[serde(default)]
    jobs: Option<Vec<Job>>,
    /// In the place of jobs, where fio's client tells what its servers found.
    #[serde(default)]
    client_stats: Option<Vec<Job>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a job of fio's")]
pub(super) struct Job {
    pub(super) jobname: String,
    hostname: Option<String>,
    #[serde(default)]
    pub(super) error: i64,
    #[serde(rename = "job options", default)]
    pub(super) options: Listed,
    pub(super) read: Option<Direction>,
    pub(super) write: Option<Direction>,
    pub(super) trim: Option<Direction>,
    /// In the place of all three, with `unified_rw_reporting`.
    pub(super) mixed: Option<Direction>,
    pub(super) sync: Option<Sync>,
}

#[derive(Deserialize)]
#[serde(expecting = "figures of reads or writes")]
pub(super) struct Direction {
    pub(super) iops: Figure,
    /// Bytes per second; older versions tell `bw` alone, in KiB.
    pub(super) bw_bytes: Option<Figure>,
    pub(super) bw: Option<Figure>,
    pub(super) lat_ns: Option<Latency>,
    pub(super) clat_ns: Option<Latency>,
    /// The same of fio 2, in microseconds.
    pub(super) lat: Option<Latency>,
    pub(super) clat: Option<Latency>,
}

#[derive(Deserialize)]
#[serde(expecting = "figures of flushes")]
pub(super) struct Sync {
    pub(super) lat_ns: Latency,
}

#[derive(Deserialize)]
#[serde(expecting = "a latency with its mean")]
pub(super) struct Latency {
    pub(super) mean: Figure,
    #[serde(rename = "N")]
    pub(super) count: Option<Figure>,
    percentile: Option<BTreeMap<String, Figure>>,
}

/// A number, as fio tells it.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged, expecting = "a number")]
pub(super) enum Figure {
    Number(f64),
    /// What [`Document::last`] makes of a `nan` of fio's.
    NotANumber(()),
}

impl Figure {
    pub(super) fn value(self) -> f64 {
        match self {
            Figure::Number(value) => value,
            Figure::NotANumber(()) => f64::NAN,
        }
    }
}

impl Latency {
    /// `None` when it was not kept.
    pub(super) fn percentile(&self, which: f64) -> Option<f64> {
        let kept = self.percentile.as_ref().filter(|_| self.has_some())?;
        let is_it = |(name, _): &(&String, &Figure)| name.parse() == Ok(which);
        Some(kept.iter().find(is_it)?.1.value())
    }

    /// Whether anything was counted, as far as fio tells the number.
    pub(super) fn has_some(&self) -> bool {
        self.count.is_none_or(|count| count.value() != 0.0)
    }
}

impl Document {
    /// The last complete document of a file: with `--status-interval` fio writes one after the other, each of all that
    /// was done until then. Words of fio's own before, between and after them are passed over.
    ///
    /// # Errors
    /// [`FioError::NotFio`].
    pub(super) fn last(text: &str) -> Result<Document, FioError> {
        let text = without_nan(text);
        let mut last = None;
        let mut failed = None;
        let mut at = 0;
        while let Some(begin) = brace_of_line(&text, at) {
            let from = &text[begin..];
            let mut documents = serde_json::Deserializer::from_str(from).into_iter::<IgnoredAny>();
            match documents.next() {
                Some(Ok(_)) => {
                    at = begin + documents.byte_offset();
                    last = Some((begin, at));
                }
                // A note of fio's in braces: a document may come after it.
                Some(Err(error)) if !error.is_eof() => {
                    failed.get_or_insert((begin, error));
                    at = begin + 1;
                }
                Some(Err(error)) => {
                    failed.get_or_insert((begin, error));
                    break;
                }
                None => break,
            }
        }
        match (last, failed) {
            (Some((begin, end)), _) => serde_json::from_str(&text[begin..end])
                .map_err(|error| not_fio(&text, begin, &error)),
            (None, Some((begin, error))) => Err(not_fio(&text, begin, &error)),
            (None, None) if text.trim().is_empty() => {
                Err(FioError::NotFio("it is empty".to_owned()))
            }
            (None, None) => Err(FioError::NotFio("there is no brace in it".to_owned())),
        }
    }

    /// Its jobs, those of several servers with the server's name.
    ///
    /// # Errors
    /// [`FioError::NotFio`]: it has no list of them.
    pub(super) fn take_jobs(&mut self) -> Result<Vec<Job>, FioError> {
        if let Some(jobs) = self.jobs.take() {
            return Ok(jobs);
        }
        let missing = || FioError::NotFio("missing field `jobs`".to_owned());
        let mut jobs = self.client_stats.take().ok_or_else(missing)?;
        if jobs.len() > 1 {
            jobs.retain(|job| job.jobname != SUMMARY);
        }
        let host = |job: &Job| job.hostname.clone();
        if jobs.iter().any(|job| host(job) != host(&jobs[0])) {
            for job in &mut jobs {
                let host = job.hostname.as_deref().unwrap_or("an unnamed server");
                job.jobname = format!("{} on {host}", job.jobname);
            }
        }
        Ok(jobs)
    }
}

/// fio prints what is not a number as C does, which is no JSON.
fn without_nan(text: &str) -> String {
    let mut text = text.to_owned();
    for word in ["nan", "-nan", "inf", "-inf"] {
        let told = format!("\" : {word}");
        if text.contains(&told) {
            text = text.replace(&told, "\" : null");
        }
    }
    text
}

/// The place of the first brace from `at` on that begins a line or follows a document directly. In a file without one,
/// that of its first brace: a line of fio's own may have no end.
fn brace_of_line(text: &str, at: usize) -> Option<usize> {
    let begins = |(place, _): &(usize, &str)| {
        let before = text[..at + place].trim_end_matches([' ', '\t']);
        before.is_empty() || text[..at + place].ends_with(['\n', '\r', '}'])
    };
    let found = text[at..].match_indices('{').find(begins);
    let found = found.map(|(place, _)| at + place);
    found.or_else(|| text.find('{').filter(|first| at <= *first))
}

/// With the line of the file where the document begins, from which `serde_json` counts.
fn not_fio(text: &str, begin: usize, error: &serde_json::Error) -> FioError {
    let before = text[..begin].matches('\n').count();
    FioError::NotFio(match before {
        0 => error.to_string(),
        _ => format!("{error}, counted from line {} of the file", before + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Result<String, FioError> {
        Document::last(text).map(|document| document.version)
    }

    fn document(version: &str) -> String {
        format!(
            "{{\n\"fio version\" : \"{version}\",\n\"jobs\" : [\n  {{\"jobname\" : \"a\"}}]\n}}"
        )
    }

    #[test]
    fn the_last_complete_document_counts() {
        let (one, two) = (document("1"), document("2"));
        let cut = &document("3")[..30];
        for text in [
            format!("{one}\n{two}\n"),
            format!("note: {{x}}\n{one}\nfio: a line\n{{a note}}\n{two}\nthe end {{}}\n"),
            format!("{one}{two}\n{cut}"),
            format!("  {two}"),
            format!("Jobs: 1 {two}\n"),
            format!("Jobs: 1\r{two}\n"),
        ] {
            assert_eq!(version(&text).unwrap(), "2", "{text}");
        }
        let refused = version(&format!("a note\n{cut}")).unwrap_err().to_string();
        assert!(refused.contains("counted from line 2"), "{refused}");
    }

    #[test]
    fn servers_tell_their_jobs_without_the_sum() {
        let job =
            |name: &str, host: &str| format!(r#"{{"jobname": "{name}", "hostname": "{host}"}}"#);
        let names = |jobs: &[String]| -> Vec<String> {
            let text = format!(
                r#"{{"fio version": "3", "client_stats": [{}]}}"#,
                jobs.join(",")
            );
            let jobs = Document::last(&text).unwrap().take_jobs().unwrap();
            jobs.into_iter().map(|job| job.jobname).collect()
        };
        let sum = r#"{"jobname": "All clients"}"#.to_owned();
        let one = names(&[job("a", "x"), job("b", "x"), sum.clone()]);
        assert_eq!(one, ["a", "b"]);
        let two = names(&[job("a", "x"), job("a", "y"), sum.clone()]);
        assert_eq!(two, ["a on x", "a on y"]);
        assert_eq!(names(&[sum]), ["All clients"]);
    }
}
