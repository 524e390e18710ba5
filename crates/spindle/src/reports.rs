//! What is made from the journal of a run: `result.json`, `report.html`, `report.md` and the series. They can be made
//! again at any time.

use std::fmt::Write as _;
use std::path::Path;

use spindle_result::{RunResult, StoredRun};
use spindle_run::directory::{DirectoryError, open_run, read_in, subdirectory, write};
use spindle_text::files::Directory;

/// Writes everything that is made from the journal, and returns the result.
///
/// # Errors
/// The directory holds no run, or cannot be written to.
pub fn write_reports(path: &Path) -> Result<RunResult, DirectoryError> {
    write_reports_in(&open_run(path)?)
}

/// As [`write_reports`].
pub fn write_reports_in(directory: &Directory) -> Result<RunResult, DirectoryError> {
    let StoredRun { record, result, .. } = read_in(directory)?;
    write(directory, "result.json", &result.to_json())?;
    let html = spindle_report::html(&result, &record.series);
    write(directory, "report.html", &html)?;
    let markdown = spindle_report::markdown(&result, &record.series);
    write(directory, "report.md", &markdown)?;
    let series = subdirectory(directory, "series")?;
    for trial in &record.series {
        let mut text = String::from("seconds,transactions_per_second\n");
        for (index, tps) in trial.tps.iter().enumerate() {
            let seconds = (index + 1) as f64 * trial.interval_ms as f64 / 1e3;
            writeln!(text, "{seconds:.3},{tps:.3}").expect("a string takes any text");
        }
        let name = format!(
            "layout{}-{}-round{}.csv",
            result.layout_number(&trial.case.layout).unwrap_or(0),
            trial.case.load.in_file_names(),
            trial.round
        );
        write(&series, &name, &text)?;
    }
    Ok(result)
}
