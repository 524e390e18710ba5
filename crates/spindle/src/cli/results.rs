//! `spindle show`, `export`, `compare` and `list`: what runs found, for people and for programs. They read journals and
//! write nothing.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{RUNS, fail, style_of_output};
use crate::compare::{self, Options, Side};
use crate::export::{self, Format};
use crate::list;
use crate::run::directory::StoredRun;
use crate::show;

/// A case that is slower by more than this has regressed, unless told otherwise.
const THRESHOLD_DEFAULT: &str = "5%";

pub(super) const COMPARE_HELP: &str = "Example:\n  spindle compare runs/before runs/after --threshold 5%\n\n\
Cases are matched by layout, workload and clients, and compared by throughput, at a fixed rate of arrivals by the 99th \
percentile of the transaction time. A regression is surely slower (the 95 % interval excludes 1), and by more than the \
threshold; so is a case that broke off.\n\n\
Exit codes: 0 no regression was found; 1 a regression; 2 the command line is wrong or a run cannot be read; 3 nothing could \
be judged: machines or settings differ, no case in common, or fewer than two rounds.";

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
    match StoredRun::read(directory) {
        Ok(run) => print(&show::render(&run, style_of_output())),
        Err(error) => fail(&error.to_string()),
    }
}

/// A run for programs.
pub(super) fn export(directory: &Path, format: Format) -> ExitCode {
    match StoredRun::read(directory) {
        Ok(run) => print(&export::export(&run, format)),
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
        Ok(found) => print(&list::render(&found, below, style_of_output())),
        Err(error) => fail(&format!("{}: {error}", below.display())),
    }
}

/// The first run beside each of the others. The gravest exit code of all counts.
pub(super) fn compare(asked: &Compare) -> ExitCode {
    let options = Options {
        threshold: asked.threshold,
        across_machines: asked.across_machines,
        across_settings: asked.across_settings,
    };
    let runs = asked.directories.iter().map(|path| StoredRun::read(path));
    let runs = match runs.collect::<Result<Vec<StoredRun>, _>>() {
        Ok(runs) => runs,
        Err(error) => return trouble(&error.to_string()),
    };
    let [before, others @ ..] = runs.as_slice() else {
        return trouble("two run directories or more are needed");
    };
    let (mut has_regression, mut is_judged) = (false, true);
    for after in others {
        let comparison = match compare::compare(&before.result, &after.result, &options) {
            Ok(comparison) => comparison,
            Err(error) => return trouble(&error.to_string()),
        };
        let (a, b) = (before.directory.display(), after.directory.display());
        let (a, b) = (a.to_string(), b.to_string());
        let sides = (Side::of(before, &a), Side::of(after, &b));
        let text = compare::render(sides.0, sides.1, &comparison, &options, style_of_output());
        print(&text);
        has_regression |= comparison.has_regression();
        is_judged &= comparison.is_judged();
    }
    match (has_regression, is_judged) {
        (true, _) => ExitCode::from(1),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(3),
    }
}

fn trouble(reason: &str) -> ExitCode {
    fail(reason);
    ExitCode::from(2)
}

/// Prints to whoever still listens: `spindle export ... | head` is no failure.
fn print(text: &str) -> ExitCode {
    let mut output = std::io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&format!("standard output: {error}")),
    }
}
