//! The clients of a trial, wherever they are, as its measurement asks them.

use spindle_engines::EngineError;
use spindle_experiment::Arrivals;
use spindle_workload::Acknowledged;
use spindle_workload::driver::Running;

use super::counts::{LoadCounts, LoadRecord};
use super::spread::SpreadLoad;

/// Clients at work.
pub enum LoadClients {
    /// In this process.
    Here(Running),
    /// On load machines.
    Spread(Box<SpreadLoad>),
}

impl LoadClients {
    /// Whether each client of this process has committed.
    pub fn are_all_at_work(&self) -> bool {
        let has_committed = |&committed: &u64| committed > 0;
        self.here()
            .is_none_or(|running| running.committed_by_client().iter().all(has_committed))
    }

    /// Those in this process.
    pub fn here(&self) -> Option<&Running> {
        match self {
            LoadClients::Here(running) => Some(running),
            LoadClients::Spread(_) => None,
        }
    }

    /// Returns when every client is at work, or one has failed.
    ///
    /// # Errors
    /// A load machine is gone, or cannot continue; so for the others.
    pub async fn begun(&mut self, arrivals: Option<Arrivals>) -> Result<(), EngineError> {
        match self {
            LoadClients::Here(running) => {
                running.begun(arrivals).await;
                Ok(())
            }
            LoadClients::Spread(spread) => spread.begin(),
        }
    }

    /// Latencies of those in this process count from now on, or no longer. Load machines know from when to when.
    pub fn measure(&self, measuring: bool) {
        if let LoadClients::Here(running) = self {
            running.measure(measuring);
        }
    }

    /// Counts at a moment of the world's clock; of load machines, those of when measuring begins and ends.
    pub fn counts(&mut self, now_ns: u64) -> Result<LoadCounts, EngineError> {
        match self {
            LoadClients::Here(running) => Ok(LoadCounts {
                at_ns: now_ns,
                ..LoadCounts::of(running, now_ns)
            }),
            LoadClients::Spread(spread) => spread.counts(),
        }
    }

    /// What the first transaction that failed for good was told.
    pub fn first_error(&self) -> Option<String> {
        match self {
            LoadClients::Here(running) => running.first_error(),
            LoadClients::Spread(spread) => spread.first_error(),
        }
    }

    /// Lets every client end its transaction, and returns when all have.
    pub async fn stop(&mut self) -> Result<(), EngineError> {
        match self {
            LoadClients::Here(running) => Ok(running.stop().await?),
            LoadClients::Spread(spread) => spread.stop(),
        }
    }

    /// What each client was promised.
    pub fn acknowledged(&self) -> Vec<Acknowledged> {
        match self {
            LoadClients::Here(running) => running.acknowledged(),
            LoadClients::Spread(spread) => spread.record().rest.acknowledged.clone(),
        }
    }

    /// What became of their transactions.
    pub fn record(&self) -> LoadRecord {
        match self {
            LoadClients::Here(running) => LoadRecord::of(running),
            LoadClients::Spread(spread) => spread.record().clone(),
        }
    }

    /// Which load machines fell behind, in words.
    pub fn warnings(&self) -> &[String] {
        match self {
            LoadClients::Here(_) => &[],
            LoadClients::Spread(spread) => spread.warnings(),
        }
    }
}
