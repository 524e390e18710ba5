//! What a run reports, and to whom. A run draws nothing and prints nothing: its caller listens.

use std::time::Duration;

use crate::trial::protocol::TrialProgress;
use spindle_result::{LoadLevel, Trial};
use spindle_system::caches::Activity;

/// Hears how a run goes. Until it is dropped it may have the terminal.
pub trait Listener {
    /// Hears what is said, in the order in which it happens.
    fn hear(&mut self, said: Said<'_>);
}

/// Hears nothing.
pub struct Nobody;

impl Listener for Nobody {
    fn hear(&mut self, _said: Said<'_>) {}
}

/// What a run says.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    /// Something that happens once, in words.
    Note(&'a str),
    /// What is left of the run, as far as can be known.
    TrialsLeft {
        /// How many trials.
        trials: usize,
        /// What each takes, about, with all that belongs to it.
        each: Duration,
    },
    /// A trial begins.
    TrialBegins {
        /// Name of its layout.
        layout: &'a str,
        /// Its load level.
        load: LoadLevel,
        /// Its round, from 1.
        round: u32,
    },
    /// One of several trials under way continues, and the others wait.
    TrialTakesTurn {
        /// Name of its layout.
        layout: &'a str,
        /// Its load level.
        load: LoadLevel,
        /// Its round, from 1.
        round: u32,
    },
    /// The trial waits until its devices are at rest.
    TrialWaits {
        /// For how long so far.
        waited: Duration,
        /// For how long at most.
        limit: Duration,
        /// What it waits for.
        activity: &'a Activity,
    },
    /// The trial continues.
    TrialGoesOn(&'a TrialProgress),
    /// The trial is over: what it found, or why it broke off.
    TrialEnds(Result<&'a Trial, &'a str>),
    /// The trial is over and in doubt: it counts for nothing.
    TrialSetAside {
        /// Why it is in doubt.
        reason: &'a str,
        /// Whether it will be measured again.
        is_tried_again: bool,
    },
    /// Every trial of the plan is done.
    RunEnds,
}
