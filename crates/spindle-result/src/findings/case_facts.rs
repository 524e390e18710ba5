//! A case as findings look at it: its figures by the names under which they are known elsewhere.

use crate::{Case, DatabaseFacts, Layout, OracleEvent, RunResult, SystemFigure, TimeUse};

/// From this share of a transaction's time, waits for other programs' processors are said to be left out of its shares.
const FOREIGN_SAID: f64 = 0.10;

/// One case with all that belongs to it.
pub(super) struct CaseFacts<'a> {
    pub(super) case: &'a Case,
    pub(super) layout: &'a Layout,
    /// Its database's own settings; `None` when the record does not hold them.
    pub(super) database: Option<DatabaseFacts>,
    /// The same layout at the next lower load level, if it was measured.
    pub(super) lower_load: Option<&'a Case>,
    /// The other measured cases whose files lie on the same devices; none where the devices are not known.
    pub(super) same_devices: Vec<&'a Case>,
}

fn same_devices<'a>(case: &Case, result: &'a RunResult) -> Vec<&'a Case> {
    let Some(devices) = result.devices_of(case) else {
        return Vec::new();
    };
    let others = result.cases.iter().filter(|other| {
        let is_other = other.is_compared() && other.id != case.id;
        is_other && result.devices_of(other).as_ref() == Some(&devices)
    });
    others.collect()
}

impl<'a> CaseFacts<'a> {
    /// `None` for a case of no known layout.
    pub(super) fn of(case: &'a Case, result: &'a RunResult) -> Option<CaseFacts<'a>> {
        let layout = result.layout_of(case)?;
        let lower = result.cases.iter().filter(|other| {
            other.is_compared()
                && other.id.layout == case.id.layout
                && other.id.load.rate == case.id.load.rate
                && other.id.load.clients < case.id.load.clients
        });
        Some(CaseFacts {
            case,
            layout,
            database: layout.database,
            lower_load: lower.max_by_key(|other| other.id.load.clients),
            same_devices: same_devices(case, result),
        })
    }

    /// Mean of a figure of the system's series.
    pub(super) fn mean(&self, figure: &SystemFigure) -> Option<f64> {
        self.case.mean_of(figure)
    }

    /// Share of a transaction's own time, 0 to 1, that the named parts take together; `None` when it is not known.
    pub(super) fn share(&self, is_part: impl Fn(&TimeUse) -> bool) -> Option<f64> {
        let own_us = self.own_us()?;
        let parts = self.case.response_time.as_ref()?.parts.iter();
        let named = parts.filter(|part| is_part(&part.part));
        let us: f64 = named
            .map(|part| match part.part {
                TimeUse::RunQueue => part.us - self.foreign_us(),
                _ => part.us,
            })
            .sum();
        (own_us > 0.0).then(|| us / own_us)
    }

    /// The share in which sessions wait for an event, by the nearest of Oracle's.
    pub(super) fn share_of_waits(&self, event: &OracleEvent) -> Option<f64> {
        self.share(|part| part.is_wait(|nearest| nearest == event))
    }

    /// The share in which sessions read datafiles, one block or several.
    pub(super) fn share_of_reads(&self) -> Option<f64> {
        self.share(|part| {
            part.is_wait(|nearest| {
                matches!(
                    nearest,
                    OracleEvent::DbFileSequentialRead | OracleEvent::DbFileScatteredRead
                )
            })
        })
    }

    /// A transaction's time without what it waited for processors that other programs had: how busy they are says
    /// nothing of the layout.
    pub(super) fn own_us(&self) -> Option<f64> {
        let time = self.case.response_time.as_ref()?;
        Some(time.mean_us - self.foreign_us())
    }

    /// The time that shares are of, in words.
    pub(super) fn of_time(&self) -> &'static str {
        let mean_us = self.case.response_time.as_ref().map(|time| time.mean_us);
        match mean_us {
            Some(mean_us) if self.foreign_us() >= FOREIGN_SAID * mean_us => {
                "of a transaction's time (not counting its waits for processors that other programs had)"
            }
            _ => "of a transaction's time",
        }
    }

    /// The part of the run queue that other programs account for.
    fn foreign_us(&self) -> f64 {
        let time = self.case.response_time.as_ref();
        let run_queue_us = time.map_or(0.0, |time| time.part_us(&TimeUse::RunQueue));
        run_queue_us * self.foreign_share()
    }

    /// The share of waits for processors that other programs account for, 0 to 1: as much as they had of the processors
    /// that were busy.
    pub(super) fn foreign_share(&self) -> f64 {
        let others_percent = self
            .mean(&SystemFigure::OtherProgramsCpuPercent)
            .unwrap_or(0.0);
        let busy_percent = self.busy_percent().unwrap_or(100.0).max(others_percent);
        match others_percent {
            0.0 => 0.0,
            _ => others_percent / busy_percent,
        }
    }

    /// The largest of the named parts.
    pub(super) fn largest(&self, is_part: impl Fn(&TimeUse) -> bool) -> Option<&'a TimeUse> {
        let parts = self.case.response_time.as_ref()?.parts.iter();
        let named = parts.filter(|part| is_part(&part.part));
        let largest = named.max_by(|a, b| a.us.total_cmp(&b.us))?;
        Some(&largest.part)
    }

    /// The share in which sessions wait for devices, or for processes that wait for devices.
    pub(super) fn storage_share(&self) -> Option<f64> {
        self.share(|part| part.is_wait(OracleEvent::is_storage))
    }

    /// The share that is neither spent on processors nor in waiting for one. It includes time that is not accounted
    /// for.
    pub(super) fn share_off_processors(&self) -> Option<f64> {
        self.share(|part| {
            !matches!(
                part,
                TimeUse::UserCpu | TimeUse::SystemCpu | TimeUse::RunQueue
            )
        })
    }

    /// The share of the longest wait, processors included, that is not left out; unaccounted time is not a wait.
    pub(super) fn longest_wait_but(&self, is_left_out: impl Fn(&TimeUse) -> bool) -> f64 {
        let parts = self.case.response_time.iter().flat_map(|time| &time.parts);
        let waits = parts.map(|part| &part.part).filter(|part| {
            let is_none = matches!(
                part,
                TimeUse::UserCpu | TimeUse::SystemCpu | TimeUse::Unaccounted
            );
            !is_none && !is_left_out(part)
        });
        waits
            .filter_map(|part| self.share(|other| other == part))
            .chain(self.share_of_reads())
            .fold(0.0, f64::max)
    }

    /// The share of the counted time that flushes at the end of trials took.
    pub(super) fn flush_share(&self) -> f64 {
        let flushes = self.case.trials.iter().filter_map(|trial| trial.flush_s());
        flushes.sum::<f64>() / self.measured_s().max(f64::EPSILON)
    }

    /// Time measured in all trials, seconds.
    pub(super) fn measured_s(&self) -> f64 {
        self.case.trials.iter().map(|trial| trial.measured_s).sum()
    }

    /// How much of the machine's processor time was used, by whomever, percent.
    pub(super) fn busy_percent(&self) -> Option<f64> {
        let summary = self.case.summary()?;
        Some(summary.cpu_user_percent? + summary.cpu_system_percent?)
    }
}
