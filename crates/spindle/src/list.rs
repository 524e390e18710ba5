//! `spindle list`: the runs below a directory, each in a few lines: which experiment, when, how far it came, what it
//! says.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spindle_report::sentences::counted;
use spindle_report::table::{BOLD, RED, Style, YELLOW, paint};
use spindle_result::{CaseStatus, RunResult, StoredRun};
use spindle_run::directory::{self, DirectoryError};
use spindle_run::journal;
use spindle_system::SystemTree;
use spindle_text::plain::one_line;

/// Runs are looked for this many directories deep.
const DEPTH_MAX: u32 = 4;

/// A run that was found.
pub struct FoundRun {
    /// Its directory.
    pub directory: PathBuf,
    /// The run, or why it cannot be read.
    pub run: Result<StoredRun, DirectoryError>,
    /// A program is working on it.
    pub is_going_on: bool,
}

/// The runs below a directory, or in it, the latest first; those that cannot be read last. Links are not followed.
///
/// # Errors
/// The directory cannot be read.
pub fn find(below: &Path) -> io::Result<Vec<FoundRun>> {
    let locks = SystemTree::default().locks();
    let mut directories = Vec::new();
    collect(below, DEPTH_MAX, &mut directories)?;
    let mut found: Vec<FoundRun> = directories
        .into_iter()
        .map(|directory| FoundRun {
            run: directory::read(&directory),
            is_going_on: journal::is_in_use(&directory, &locks),
            directory,
        })
        .collect();
    let begun = |found: &FoundRun| found.run.as_ref().ok().map(|run| run.started_at.clone());
    found.sort_by(|a, b| begun(b).cmp(&begun(a)).then(a.directory.cmp(&b.directory)));
    Ok(found)
}

fn collect(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) -> io::Result<()> {
    // Whatever it is: what is wrong with it is said.
    let journal = directory.join(journal::FILE_NAME);
    if journal.symlink_metadata().is_ok() {
        found.push(directory.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if depth > 0 && entry.file_type()?.is_dir() {
            // One directory that is closed to us hides no other.
            let _ = collect(&entry.path(), depth - 1, found);
        }
    }
    Ok(())
}

/// The runs for people; `below` is what they are below of.
pub fn render(found: &[FoundRun], below: &Path, style: Style) -> String {
    if found.is_empty() {
        let below = below.display();
        return format!("There is no run below {below}. `spindle run FILE` makes one.\n");
    }
    let mut text = String::new();
    for found in found {
        let directory = found.directory.display().to_string();
        let directory = paint(&one_line(&directory), BOLD, style);
        match &found.run {
            Ok(run) => {
                let _ = writeln!(text, "{directory}");
                let _ = writeln!(text, "  {}", state(run, found.is_going_on, style));
                let _ = writeln!(text, "  {}\n", run.result.headline);
            }
            Err(error) => {
                let error = error.to_string();
                let error = paint(&one_line(&error), RED, style);
                let _ = writeln!(text, "{directory}\n  cannot be read: {error}\n");
            }
        }
    }
    text.pop();
    text
}

/// `quickstart, begun 2026-01-01T12:00:00Z: 6 layouts, 6 cases, 18 of 18 trials, finished`.
fn state(run: &StoredRun, is_going_on: bool, style: Style) -> String {
    let result = &run.result;
    let state = match (run.is_finished, is_going_on) {
        (_, true) => paint("going on now", YELLOW, style),
        (true, false) => "finished".to_owned(),
        (false, false) => paint("not finished: spindle resume does the rest", YELLOW, style),
    };
    format!(
        "{}, begun {}: {}, {}, {state}",
        result.experiment.name(),
        run.started_at,
        cases(result),
        counted(trials(result), "trial"),
    )
}

fn cases(result: &RunResult) -> String {
    let cases = result.cases.len();
    let outcomes = || result.cases.iter().map(|case| &case.outcome);
    let skipped = outcomes().filter(|outcome| matches!(outcome, CaseStatus::Skipped { .. }));
    let failed = outcomes().filter(|outcome| matches!(outcome, CaseStatus::Failed { .. }));
    let mut text = counted(cases, "case");
    for (count, what) in [(skipped.count(), "skipped"), (failed.count(), "failed")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text
}

fn trials(result: &RunResult) -> usize {
    result.cases.iter().map(|case| case.trials.len()).sum()
}
