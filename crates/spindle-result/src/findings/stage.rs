//! Cases for the tests of findings: nothing remarkable but what a test sets.

use super::super::{
    Case, DatabaseFacts, Layout, ResponseTime, SystemMean, TimePart, Trial, Wait, build, sample,
};
use super::case_facts::CaseFacts;
use super::kind::{AtLoad, FindingKind, Sighting};
use super::said;

/// A case of two trials of 5 seconds on a direct layout, with 2 writers, 4 datafiles and a buffer cache of 16 MiB.
pub(super) struct Stage {
    pub(super) case: Case,
    pub(super) layout: Layout,
    /// `None`: the database stood on another machine.
    pub(super) database: Option<DatabaseFacts>,
    pub(super) lower_load: Option<Case>,
    pub(super) same_device: Option<Case>,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let record = sample::record(&[("a", &[1200.0, 1200.0])]);
        let mut result = build(&record).expect("a sample is whole");
        Stage {
            case: result.cases.remove(0),
            layout: result.layouts.remove(0),
            database: Some(DatabaseFacts {
                writers: Some(2),
                datafiles: Some(4),
                buffer_cache_bytes: 16 << 20,
            }),
            lower_load: None,
            same_device: None,
        }
    }

    /// A transaction's time in parts, in microseconds.
    pub(super) fn parts(mut self, parts: &[(&str, f64)]) -> Stage {
        let part = |(name, us): &(&str, f64)| TimePart {
            part: (*name).into(),
            us: *us,
        };
        self.case.response_time = Some(ResponseTime {
            mean_us: parts.iter().map(|(_, us)| us).sum(),
            excess_us: 0.0,
            parts: parts.iter().map(part).collect(),
        });
        self
    }

    /// Means of columns of the system's series.
    pub(super) fn system(mut self, means: &[(&str, f64)]) -> Stage {
        let mean = |(name, mean): &(&str, f64)| SystemMean {
            name: (*name).into(),
            mean: *mean,
            max: *mean,
        };
        self.case.system.extend(means.iter().map(mean));
        self
    }

    /// Waits of all processes in each trial.
    pub(super) fn waits(self, event: &str, count: u64, total_us: f64) -> Stage {
        let wait = Wait {
            event: event.into(),
            count,
            total_us,
            mean_us: total_us / count as f64,
            sampled: false,
        };
        self.trials(|trial| trial.waits.push(wait.clone()))
    }

    /// A change of each trial.
    pub(super) fn trials(mut self, change: impl Fn(&mut Trial)) -> Stage {
        self.case.trials.iter_mut().for_each(change);
        self
    }

    /// What a kind sees.
    pub(super) fn look(&self, kind: &FindingKind) -> Option<Sighting> {
        (kind.look)(&self.facts())
    }

    /// How a kind is worded.
    pub(super) fn said(&self, kind: &FindingKind, at_load: AtLoad) -> &'static str {
        said(kind, &self.facts(), at_load)
    }

    fn facts(&self) -> CaseFacts<'_> {
        CaseFacts {
            case: &self.case,
            layout: &self.layout,
            database: self.database,
            lower_load: self.lower_load.as_ref(),
            same_devices: self.same_device.iter().collect(),
        }
    }
}
