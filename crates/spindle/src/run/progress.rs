//! What people see while a run is under way: one line that is written over on a terminal, plain lines elsewhere, nothing
//! when asked to be quiet. Always on standard error, so that standard output holds results only.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::HumanDuration;

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// One line, written over.
    Line,
    /// A line for each thing that begins or ends.
    Plain,
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
    trial: Option<(String, Instant)>,
}

impl Progress {
    /// `trials` are to come, each of about `trial_estimate`.
    pub fn new(quiet: bool, trials: usize, trial_estimate: Duration) -> Progress {
        let manner = match quiet {
            true => Manner::Quiet,
            false if std::io::stderr().is_terminal() => Manner::Line,
            false => Manner::Plain,
        };
        Progress {
            manner,
            trials_left: trials,
            trials_done: 0,
            trial_estimate,
            began: Instant::now(),
            trial: None,
        }
    }

    /// Says something that happens once.
    pub fn note(&mut self, text: &str) {
        match self.manner {
            Manner::Line => eprintln!("\r\x1b[K{text}"),
            Manner::Plain => eprintln!("{text}"),
            Manner::Quiet => {}
        }
    }

    /// So many trials are left after all.
    pub fn expects(&mut self, trials: usize) {
        self.trials_left = trials;
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, what: &str) {
        let all = self.trials_done + self.trials_left;
        let name = format!("trial {}/{all}, {what}", self.trials_done + 1);
        if self.manner == Manner::Plain {
            eprintln!("{name} ({} left)", HumanDuration(self.time_left()));
        }
        self.trial = Some((name, Instant::now()));
        self.show("restoring");
    }

    /// The trial goes on: warming up, or measuring with so many transactions per minute so far.
    pub fn trial_goes_on(&mut self, measuring: bool, tpm: f64) {
        let phase = if measuring { "measuring" } else { "warming up" };
        self.show(&format!("{phase}, {tpm:.0} tpm so far"));
    }

    /// The trial is over; `result` says how it went.
    pub fn trial_ends(&mut self, result: &str) {
        if let Some((name, began)) = self.trial.take() {
            let (done, spent) = (self.trials_done as u32, began.elapsed());
            self.trial_estimate = if done == 0 {
                spent
            } else {
                (self.trial_estimate * done + spent) / (done + 1)
            };
            self.note(&format!("{name}: {result}"));
        }
        self.trials_done += 1;
        self.trials_left = self.trials_left.saturating_sub(1);
    }

    /// The run is over.
    pub fn ends(&mut self) {
        self.note(&format!(
            "{} trials in {}",
            self.trials_done,
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
        if self.manner != Manner::Line {
            return;
        }
        if let Some((name, _)) = &self.trial {
            eprint!(
                "\r\x1b[K{name}: {state}, {} left",
                HumanDuration(self.time_left())
            );
            // A terminal that does not take it takes the next.
            let _ = std::io::stderr().flush();
        }
    }
}
