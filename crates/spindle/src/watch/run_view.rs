//! What there is to see of a run: plain data, changed by the run and drawn by `view`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use spindle_result::{LoadLevel, Wait};
use spindle_run::replay::{CaseKey, RunState};
use spindle_run::schedule;
use spindle_run::trial::protocol::TrialProgress;

/// A run under way.
#[derive(Debug, Clone)]
pub struct RunView {
    /// The experiment's name.
    pub experiment: String,
    /// When this program began to work on it.
    pub began: Instant,
    /// Trials done, those of earlier sittings not counted.
    pub trials_done: usize,
    /// Trials that this sitting has in all.
    pub trials: usize,
    /// When the run will end, as far as one can tell.
    pub ends: Option<Instant>,
    /// Rounds of the plan.
    pub rounds: u32,
    /// Every case, in the order of the experiment.
    pub cases: Vec<CaseView>,
    /// What is done now.
    pub under_way: UnderWay,
    /// What happened, the latest last.
    pub notes: Vec<String>,
    /// The person has asked the run to stop.
    pub interrupted: Arc<AtomicBool>,
}

/// One case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseView {
    /// Name of its layout.
    pub layout: String,
    /// Its load level.
    pub load: LoadLevel,
    /// Throughput of each finished trial, transactions per minute.
    pub finished_tpm: Vec<f64>,
    /// Throughput over the measured time of its last trial, finished or not.
    pub samples_tpm: Vec<f64>,
    /// It cannot continue.
    pub has_failed: bool,
}

/// What a run does now.
#[derive(Debug, Clone, PartialEq)]
pub enum UnderWay {
    /// It gets things ready, or is done with them.
    Preparing,
    /// A trial.
    Trial {
        /// Place of its case among the view's.
        case: usize,
        /// Its round, from 1.
        round: u32,
        /// When it began.
        began: Instant,
        /// What it said last; `None` while the database is put back.
        heard: Option<TrialProgress>,
    },
}

impl RunView {
    /// What a run shows before it starts or resumes.
    pub fn of(state: &RunState, interrupted: Arc<AtomicBool>) -> RunView {
        let case_view = |case: CaseKey| CaseView {
            layout: state.layout(case.0).name,
            load: case.1,
            finished_tpm: state.finished(case).map(|trial| trial.tpm).collect(),
            ..CaseView::default()
        };
        RunView {
            experiment: state.experiment.name.clone(),
            began: Instant::now(),
            trials_done: 0,
            trials: schedule::trials_left(state),
            ends: None,
            rounds: state.experiment.plan.all_rounds(),
            cases: state.cases().into_iter().map(case_view).collect(),
            under_way: UnderWay::Preparing,
            notes: Vec::new(),
            interrupted,
        }
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, layout: &str, load: LoadLevel, round: u32) {
        let mut cases = self.cases.iter();
        let case = cases.position(|case| case.layout == layout && case.load == load);
        let Some(case) = case else {
            return;
        };
        self.cases[case].samples_tpm.clear();
        self.under_way = UnderWay::Trial {
            case,
            round,
            began: Instant::now(),
            heard: None,
        };
    }

    /// The trial said how it goes.
    pub fn trial_goes_on(&mut self, now: &TrialProgress) {
        if let UnderWay::Trial { case, heard, .. } = &mut self.under_way {
            if now.measuring {
                self.cases[*case].samples_tpm.push(now.tpm_now);
            }
            *heard = Some(now.clone());
        }
    }

    /// The trial is over: its throughput, or nothing when it broke off.
    pub fn trial_ends(&mut self, tpm: Option<f64>) {
        if let UnderWay::Trial { case, .. } = self.under_way {
            let case = &mut self.cases[case];
            match tpm {
                Some(tpm) => case.finished_tpm.push(tpm),
                None => case.has_failed = true,
            }
        }
        self.trials_done += 1;
        self.under_way = UnderWay::Preparing;
    }

    /// The trial is over and counts for nothing.
    pub fn trial_set_aside(&mut self) {
        self.under_way = UnderWay::Preparing;
    }

    /// Time since the beginning.
    pub(super) fn spent(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }

    /// Waits of the trial under way, the longest first.
    pub(super) fn waits(&self) -> Vec<&Wait> {
        let UnderWay::Trial {
            heard: Some(heard), ..
        } = &self.under_way
        else {
            return Vec::new();
        };
        let mut waits: Vec<&Wait> = heard.waits.iter().collect();
        waits.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
        waits
    }
}
