//! `spindle run` and `spindle resume`: begins or goes on with a run, and says how it ended.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Zoned;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{RUNS, Show, fail, style_of_output};
use crate::experiment::Experiment;
use crate::result::{Outcome, RunResult};
use crate::run::progress::Shown;
use crate::run::runner::{RunError, Runner};
use crate::table;
use crate::watch::terminal;

/// Runs an experiment.
pub(super) fn begin(
    experiment: Experiment,
    out: Option<PathBuf>,
    show: &Show,
    watch: bool,
) -> ExitCode {
    let Some(shown) = shown(show, watch) else {
        return no_terminal();
    };
    let directory = out.unwrap_or_else(|| default_directory(&experiment));
    let runner = Runner::begin(experiment, &directory, shown, interrupts());
    carry_out(runner, &directory, show)
}

/// Goes on with a run.
pub(super) fn resume(directory: &Path, show: &Show, watch: bool) -> ExitCode {
    let Some(shown) = shown(show, watch) else {
        return no_terminal();
    };
    let runner = Runner::go_on(directory, shown, interrupts());
    carry_out(runner, directory, show)
}

/// How progress is shown; `None` for a dashboard where there is no terminal.
fn shown(show: &Show, watch: bool) -> Option<Shown> {
    match (show.quiet, watch) {
        (true, _) => Some(Shown::Nothing),
        (false, false) => Some(Shown::Lines),
        (false, true) => terminal::is_there().then_some(Shown::Dashboard),
    }
}

fn no_terminal() -> ExitCode {
    fail(
        "--watch draws on a terminal, and standard output is none. Nothing was begun: leave --watch out, or start spindle in a \
         terminal",
    );
    ExitCode::from(2)
}

/// Set by the first Ctrl-C or SIGTERM; the second ends the program at once, the terminal as it was.
fn interrupts() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM]).expect("SIGINT and SIGTERM may be handled");
    let interrupted = Arc::clone(&flag);
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if interrupted.swap(true, Ordering::Relaxed) {
                terminal::give_back();
                std::process::exit(130);
            }
        }
    });
    flag
}

fn default_directory(experiment: &Experiment) -> PathBuf {
    let time = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    Path::new(RUNS).join(format!("{}-{time}", experiment.name))
}

fn carry_out(runner: Result<Runner, RunError>, directory: &Path, show: &Show) -> ExitCode {
    // Resuming changes the working directory.
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
    match runner.and_then(|mut runner| runner.run()) {
        Ok(result) => show_result(&result, &directory, show),
        Err(RunError::Interrupted) => {
            eprintln!(
                "interrupted; finished trials are kept. Go on with: spindle resume {}",
                directory.display()
            );
            ExitCode::from(130)
        }
        Err(error) => {
            let code = fail(&error.to_string());
            if directory.join(crate::run::journal::FILE_NAME).exists() {
                eprintln!(
                    "finished trials are kept. When it is mended: spindle resume {}",
                    directory.display()
                );
            }
            code
        }
    }
}

pub(super) fn show_result(result: &RunResult, directory: &Path, show: &Show) -> ExitCode {
    if show.json {
        print!("{}", result.to_json());
    } else {
        print!("{}", table::render(result, style_of_output()));
        println!("\nreport: {}", directory.join("report.html").display());
    }
    let measured = result
        .cases
        .iter()
        .any(|case| case.outcome == Outcome::Measured && !case.trials.is_empty());
    if measured {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    }
}
