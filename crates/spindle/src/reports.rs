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
/// The directory holds no run, or cannot be written to; its results are of more trials than its journal has.
pub fn write_reports(path: &Path) -> Result<RunResult, DirectoryError> {
    let directory = open_run(path)?;
    let stored = read_in(&directory)?;
    must_have(kept_trials(&directory), &directory, &stored)?;
    write_all(&directory, stored)
}

/// The directory of a run that is to go on.
///
/// # Errors
/// As for [`write_reports`]: going on would measure again what the journal lost, and replace the results.
pub fn that_was_not_cut(directory: Directory) -> Result<Directory, DirectoryError> {
    match kept_trials(&directory) {
        0 => {}
        kept => must_have(kept, &directory, &read_in(&directory)?)?,
    }
    Ok(directory)
}

/// The journal has at least the trials that the results are of.
fn must_have(kept: usize, directory: &Directory, stored: &StoredRun) -> Result<(), DirectoryError> {
    let found = stored.record.cases.iter().map(|case| case.trials.len());
    let found = found.sum();
    if kept > found {
        let path = directory.path().to_owned();
        return Err(DirectoryError::Cut { path, kept, found });
    }
    Ok(())
}

/// As [`write_reports`], of a run that this process has just ended.
pub fn write_reports_in(directory: &Directory) -> Result<RunResult, DirectoryError> {
    write_all(directory, read_in(directory)?)
}

/// Trials of the existing result; 0 without one that can be read.
fn kept_trials(directory: &Directory) -> usize {
    let kept = directory.read("result.json").ok();
    let kept = kept.and_then(|bytes| String::from_utf8(bytes).ok());
    let kept = kept.and_then(|text| RunResult::from_json(&text).ok());
    kept.map_or(0, |kept| {
        kept.cases.iter().map(|case| case.trials.len()).sum()
    })
}

fn write_all(directory: &Directory, stored: StoredRun) -> Result<RunResult, DirectoryError> {
    let StoredRun { record, result, .. } = stored;
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
