//! What people see during a run: one line that is written over on a terminal, plain lines elsewhere, a dashboard or
//! nothing when asked for. The lines are on standard error, so that standard output holds results only.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indicatif::HumanDuration;

use crate::say;
use crate::watch::{Dashboard, RunView};
use spindle_report::sentences::counted;
use spindle_result::{LoadLevel, Trial};
use spindle_run::listener::{Listener, Said};
use spindle_run::replay::RunState;
use spindle_run::schedule;
use spindle_run::trial::protocol;
use spindle_system::caches::Activity;
use spindle_text::quantity::{about_time, thousands};

/// Shorter waits are not worth a line.
const WAIT_WORTH_SAYING: Duration = Duration::from_secs(1);

/// A run that takes no more than this longer than was said is not worth a line either.
const LATE_WORTH_SAYING: Duration = Duration::from_secs(5);

/// How a person wants to see progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressForm {
    /// In lines, or one line that is written over.
    Lines,
    /// On a dashboard, which takes the terminal on standard output.
    Dashboard,
    /// Not at all.
    Nothing,
}

/// How to show progress.
enum Manner {
    /// One line, written over.
    Line,
    /// A line for each thing that begins or ends.
    Plain,
    /// A dashboard.
    Watch(Dashboard),
    /// Nothing.
    Quiet,
}

/// Shows how a run goes.
pub struct Progress {
    manner: Manner,
    trials_left: usize,
    trials_done: usize,
    trial_estimate: Duration,
    began: Instant,
    /// How long the run takes, as a person was told last; `None` before anything was told.
    told: Option<Duration>,
    trial: Option<(String, Instant)>,
    /// That the trial waits was said in its own line.
    wait_is_said: bool,
}

impl Progress {
    /// For a run as its journal tells it.
    ///
    /// `told` is the time that was announced.
    ///
    /// # Errors
    /// A dashboard is wanted, and standard output is no terminal that can be taken.
    pub fn new(
        shown: ProgressForm,
        state: &RunState,
        interrupted: Arc<AtomicBool>,
        told: Option<Duration>,
    ) -> io::Result<Progress> {
        let run_view = RunView::of(state, interrupted);
        let trials_left = run_view.trials;
        let manner = match shown {
            ProgressForm::Nothing => Manner::Quiet,
            ProgressForm::Dashboard => Manner::Watch(Dashboard::open(run_view)?),
            ProgressForm::Lines if io::stderr().is_terminal() => Manner::Line,
            ProgressForm::Lines => Manner::Plain,
        };
        Ok(Progress {
            manner,
            trials_left,
            trials_done: 0,
            trial_estimate: schedule::trial_time(state),
            began: Instant::now(),
            told,
            trial: None,
            wait_is_said: false,
        })
    }

    /// Says something that happens once.
    fn note(&mut self, text: &str) {
        match &self.manner {
            Manner::Line => say::last_over_the_line(text),
            Manner::Plain => say::note(text),
            Manner::Watch(dashboard) => {
                dashboard.update(|run_view| run_view.notes.push(text.to_owned()));
            }
            Manner::Quiet => {}
        }
    }

    /// This many trials are left, and each takes about this long.
    fn expects(&mut self, trials: usize, each: Duration) {
        self.trials_left = trials;
        self.trial_estimate = each;
        let all = self.trials_done + trials;
        self.watch(|run_view| run_view.trials = all);
        let whole = self.began.elapsed() + self.time_left();
        if trials > 0
            && let Some(text) = told_again(&mut self.told, whole)
        {
            self.note(&text);
        }
    }

    /// Changes what the dashboard shows, if there is one.
    fn watch(&self, change: impl FnOnce(&mut RunView)) {
        if let Manner::Watch(dashboard) = &self.manner {
            let ends = Instant::now() + self.time_left();
            dashboard.update(|run_view| {
                change(run_view);
                run_view.ends = Some(ends);
            });
        }
    }

    /// A trial is the one under way. Returns what it is called.
    fn trial_is(&mut self, layout: &str, load: LoadLevel, round: u32) -> String {
        let number = self.trials_done + 1;
        // Time may run out in a round, which is measured to its end.
        let all = number.max(self.trials_done + self.trials_left);
        let name = format!("trial {number}/{all}, round {round}: {layout}, {load}");
        self.trial = Some((name.clone(), Instant::now()));
        self.watch(|run_view| run_view.trial_begins(layout, load, round));
        name
    }

    /// A trial begins.
    fn trial_begins(&mut self, layout: &str, load: LoadLevel, round: u32) {
        let name = self.trial_is(layout, load, round);
        if matches!(self.manner, Manner::Plain) {
            say::note(&format!(
                "{name} ({} left)",
                HumanDuration(self.time_left())
            ));
        }
        self.wait_is_said = false;
        self.show("restoring");
    }

    /// The trial waits until its devices are at rest: for how long so far, how long at most, and for what.
    fn trial_waits(&mut self, waited: Duration, limit: Duration, activity: &Activity) {
        if waited < WAIT_WORTH_SAYING {
            return;
        }
        let limit = about_time(limit.as_millis() as u64);
        let text = format!("waiting up to {limit} for quiet: {activity}");
        self.show(&text);
        let has_line = matches!(self.manner, Manner::Line);
        if !has_line && !std::mem::replace(&mut self.wait_is_said, true) {
            self.note(&text);
        }
    }

    /// The trial continues.
    fn trial_goes_on(&mut self, heard: &protocol::TrialProgress) {
        let phase = match heard.measuring {
            true => "measuring",
            false => "warming up",
        };
        self.watch(|run_view| run_view.trial_goes_on(heard));
        self.show(&format!("{phase}, {} tpm so far", thousands(heard.tpm)));
    }

    /// The trial is over: what it found, or why it broke off.
    fn trial_ends(&mut self, result: Result<&Trial, &str>) {
        if let Some((name, _)) = self.trial.take() {
            match result {
                // The dashboard has a row for it.
                Ok(_) if matches!(self.manner, Manner::Watch(_)) => {}
                Ok(trial) => self.note(&format!("{name}: {}", found(trial))),
                Err(reason) => self.note(&format!("{name}: failed: {reason}")),
            }
        }
        self.trials_done += 1;
        self.trials_left = self.trials_left.saturating_sub(1);
        self.watch(|run_view| run_view.trial_ends(result.ok().map(|trial| trial.tpm)));
    }

    /// The trial is over and in doubt: it counts for nothing, and is tried again or not.
    fn trial_set_aside(&mut self, reason: &str, is_tried_again: bool) {
        if let Some((name, _)) = self.trial.take() {
            let then = match is_tried_again {
                true => "it will be measured again",
                false => "its round goes without it",
            };
            self.note(&format!("{name}: set aside: {reason}; {then}"));
        }
        self.watch(RunView::trial_set_aside);
    }

    /// The run is over.
    fn ends(&mut self) {
        self.note(&format!(
            "{} in {}",
            counted(self.trials_done, "trial"),
            HumanDuration(self.began.elapsed())
        ));
    }

    fn time_left(&self) -> Duration {
        let spent = self
            .trial
            .as_ref()
            .map_or(Duration::ZERO, |(_, began)| began.elapsed());
        (self.trial_estimate * self.trials_left as u32).saturating_sub(spent)
    }

    fn show(&self, state: &str) {
        if !matches!(self.manner, Manner::Line) {
            return;
        }
        if let Some((name, _)) = &self.trial {
            let left = HumanDuration(self.time_left());
            say::over_the_line(name, &format!("{state}, {left} left"));
        }
    }
}

/// What is said when a run is going to take more than a tenth longer than was told, which this is from then on.
fn told_again(told: &mut Option<Duration>, now: Duration) -> Option<String> {
    let before = told.get_or_insert(now);
    if now <= *before + (*before / 10).max(LATE_WORTH_SAYING) {
        return None;
    }
    let [was, is] = [*before, now].map(|time| about_time(time.as_millis() as u64));
    *before = now;
    (was != is).then(|| format!("trials take longer than reckoned: about {is} in all, not {was}"))
}

impl Listener for Progress {
    fn hear(&mut self, said: Said<'_>) {
        match said {
            Said::Note(text) => self.note(text),
            Said::TrialsLeft { trials, each } => self.expects(trials, each),
            Said::TrialBegins {
                layout,
                load,
                round,
            } => self.trial_begins(layout, load, round),
            Said::TrialTakesTurn {
                layout,
                load,
                round,
            } => _ = self.trial_is(layout, load, round),
            Said::TrialWaits {
                waited,
                limit,
                activity,
            } => self.trial_waits(waited, limit, activity),
            Said::TrialGoesOn(heard) => self.trial_goes_on(heard),
            Said::TrialEnds(result) => self.trial_ends(result),
            Said::TrialSetAside {
                reason,
                is_tried_again,
            } => self.trial_set_aside(reason, is_tried_again),
            Said::RunEnds => self.ends(),
        }
    }
}

/// A flush shorter than this is not worth a word, seconds.
const FLUSH_WORTH_SAYING_S: f64 = 0.05;

/// What a trial found, in a few words.
fn found(trial: &Trial) -> String {
    match trial.flush_s() {
        Some(flush_s) if flush_s >= FLUSH_WORTH_SAYING_S => format!(
            "{} tpm (measured {:.1} s + flush {flush_s:.1} s)",
            thousands(trial.tpm),
            trial.measured_s - flush_s
        ),
        _ => format!("{} tpm", thousands(trial.tpm)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_not_kept_is_told_again() {
        let seconds = Duration::from_secs;
        let mut told = Some(seconds(120));
        assert_eq!(told_again(&mut told, seconds(131)), None);
        let text = told_again(&mut told, seconds(150)).unwrap();
        assert!(text.ends_with("about 3 min in all, not 2 min"), "{text}");
        assert_eq!(told_again(&mut told, seconds(160)), None);
        assert!(told_again(&mut None, seconds(9)).is_none());
        assert!(told_again(&mut Some(seconds(9)), seconds(12)).is_none());
    }
}
