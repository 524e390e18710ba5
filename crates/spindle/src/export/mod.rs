//! `spindle export`: a run for other programs. What each format holds is described in `docs/export.md`; a field that
//! goes away or changes its meaning there is a break for whoever reads it.

mod csv;
mod openmetrics;

use clap::ValueEnum;

use crate::run::directory::StoredRun;

pub use csv::csv;
pub use openmetrics::openmetrics;

/// A format for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A row for each trial, for spreadsheets and data frames.
    Csv,
    /// The whole result, as in result.json.
    Json,
    /// Samples for each case, for Prometheus and its kin.
    #[value(name = "openmetrics")]
    OpenMetrics,
}

/// The run in a format.
pub fn export(run: &StoredRun, format: Format) -> String {
    match format {
        Format::Csv => csv(&run.result, &run.started_at),
        Format::Json => run.result.to_json(),
        Format::OpenMetrics => openmetrics(&run.result, &run.started_at),
    }
}

/// Name of the run's experiment.
fn experiment_name(result: &crate::result::RunResult) -> &str {
    result.experiment["name"].as_str().unwrap_or_default()
}
