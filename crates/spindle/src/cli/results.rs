//! `spindle show`, `export`, `compare` and `list`: what runs found, for people and for programs. They read journals and
//! write nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{RUNS, fail, style_of_output};
use crate::list;
use crate::say;
use spindle_report::compare::{self, Conclusion, Options, RunComparison, Side};
use spindle_report::{export, show};
use spindle_result::StoredRun;
use spindle_run::directory;

/// A case that is slower by more than this has regressed, unless told otherwise.
const THRESHOLD_DEFAULT: &str = "5%";

pub(super) const COMPARE_HELP: &str = "Example:\n  spindle compare runs/before runs/after --threshold 5%\n\n\
Cases are matched by layout, workload and clients, and compared by throughput, at a fixed rate of arrivals by the 99th \
percentile of the transaction time. A regression is surely slower (the interval excludes 1; the intervals of all cases hold together in \
95 of 100 runs), and by more than the threshold; so is a case that broke off.\n\n\
Exit codes: 0 no regression, and every case that was judged would have shown one; 1 a regression; 2 the command line is wrong or a \
run cannot be read; 3 nothing could be judged: machines or settings differ, no case in common, or fewer than two rounds; 4 no \
regression was found, but a case is known too imprecisely to see one of the threshold's size. With --format json they are the same, and \
outcome says it, too.";

#[derive(Args)]
pub(super) struct Compare {
    /// The run directories: the first is compared with each of the others.
    #[arg(num_args = 2.., required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Slower by more than this is a regression.
    #[arg(long, value_name = "PERCENT", default_value = THRESHOLD_DEFAULT, value_parser = threshold)]
    threshold: f64,
    /// Judge although machines, their versions or their settings differ.
    #[arg(long)]
    across_machines: bool,
    /// Judge although the experiments ask for different things.
    #[arg(long)]
    across_settings: bool,
    /// For people, or for programs (described in docs/compare.md).
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    format: CompareFormat,
}

/// How a comparison is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// A percentage with its sign, as a fraction.
fn threshold(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim);
    let percent = number.and_then(|number| number.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => {
            Err("allowed: a percentage with its sign, from 0% to below 100%, such as 5%".to_owned())
        }
    }
}

/// A run for people.
pub(super) fn show(directory: &Path) -> ExitCode {
    match directory::read(directory) {
        Ok(run) => super::print(&show::render(&run, style_of_output())),
        Err(error) => fail(&error.to_string()),
    }
}

/// A format for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A row for each trial, for spreadsheets and data frames.
    Csv,
    /// The whole result, as in result.json.
    Json,
    /// Samples for each case, for Prometheus and its kin.
    #[value(name = "openmetrics")]
    OpenMetrics,
}

/// A run for programs.
pub(super) fn export(directory: &Path, format: Format) -> ExitCode {
    let text = |run: &StoredRun| match format {
        Format::Csv => export::csv(&run.result, &run.started_at),
        Format::Json => run.result.to_json(),
        Format::OpenMetrics => export::openmetrics(&run.result, &run.started_at),
    };
    match directory::read(directory) {
        Ok(run) => super::print(&text(&run)),
        Err(error) => fail(&error.to_string()),
    }
}

/// The runs there are.
pub(super) fn list(below: &Path) -> ExitCode {
    let found = match list::find(below) {
        // Nobody has run anything here yet, which is no mistake.
        Err(error) if error.kind() == ErrorKind::NotFound && below == Path::new(RUNS) => {
            Ok(Vec::new())
        }
        found => found,
    };
    match found {
        Ok(found) => super::print(&list::render(&found, below, style_of_output())),
        Err(error) => fail(&format!(
            "{}: {error}. Name a directory that holds runs; without one, runs/ is looked at",
            below.display()
        )),
    }
}

/// The first run beside each of the others. The gravest exit code of all counts.
pub(super) fn compare(asked: &Compare) -> ExitCode {
    let options = Options {
        threshold: asked.threshold,
        across_machines: asked.across_machines,
        across_settings: asked.across_settings,
    };
    let runs = asked.directories.iter().map(|path| directory::read(path));
    let runs = match runs.collect::<Result<Vec<StoredRun>, _>>() {
        Ok(runs) => runs,
        Err(error) => return trouble(&error.to_string()),
    };
    let [before, others @ ..] = runs.as_slice() else {
        return trouble("two run directories or more are needed");
    };
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.directory.display().to_string())
        .collect();
    let side = |index: usize| Side::of(&runs[index], &names[index]);
    let mut comparisons: Vec<(Side<'_>, RunComparison)> = Vec::new();
    for (index, after) in others.iter().enumerate() {
        match compare::compare(&before.result, &after.result, &options) {
            Ok(comparison) => comparisons.push((side(index + 1), comparison)),
            Err(error) => return trouble(&error.to_string()),
        }
    }
    let text = match asked.format {
        CompareFormat::Json => compare::json(side(0), &comparisons, &options),
        CompareFormat::Text => {
            let texts = comparisons.iter().map(|(after, comparison)| {
                compare::render(side(0), *after, comparison, &options, style_of_output())
            });
            texts.collect()
        }
    };
    if let Err(error) = say::result(&text) {
        return trouble(&format!("standard output takes no more: {error}"));
    }
    match Conclusion::of_all(
        comparisons
            .iter()
            .map(|(_, comparison)| comparison.outcome()),
    ) {
        Conclusion::NoRegression => ExitCode::SUCCESS,
        Conclusion::Regression => ExitCode::from(1),
        Conclusion::NothingJudged => ExitCode::from(3),
        Conclusion::TooImprecise => ExitCode::from(4),
    }
}

fn trouble(reason: &str) -> ExitCode {
    fail(reason);
    ExitCode::from(2)
}
