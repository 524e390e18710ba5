//! What the system did while a trial was measured, sampled at equal steps. In the journal beside the trial, and in the
//! run's series; `result.json` holds means only.

use serde::{Deserialize, Serialize};

/// Figures of the system sampled together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SystemSeries {
    /// Time that one sample covers, in milliseconds.
    pub interval_ms: u64,
    /// One column for each figure.
    pub columns: Vec<SystemColumn>,
}

impl SystemSeries {
    /// The samples of one figure; `None` when it was not sampled.
    pub fn column(&self, name: &str) -> Option<&[Option<f32>]> {
        let mut columns = self.columns.iter();
        columns
            .find(|column| column.name == name)
            .map(|column| column.values.as_slice())
    }
}

/// One figure over the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemColumn {
    /// What it is, its unit last, such as `device_utilisation_percent`.
    pub name: String,
    /// A value for each sample; `None` where it was not known.
    pub values: Vec<Option<f32>>,
}

/// The mean of one figure over the measured time of all trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemMean {
    /// As in [`SystemColumn`].
    pub name: String,
    /// Mean of all samples.
    pub mean: f64,
    /// The greatest sample.
    pub max: f64,
}
