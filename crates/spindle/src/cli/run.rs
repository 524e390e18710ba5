//! `spindle run` and `spindle resume`: begins or resumes a run, and says how it ended.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::Zoned;

use super::code::Code;
use super::ending::{
    EndsCommand, ended_by, fail, interrupted, no_current_directory, style_of_output,
    wrong_command_line,
};
use super::options::{RUNS, Show};
use super::signals::{self, AtOnce};
use crate::progress::{Progress, ProgressForm};
use crate::say::{self, fitted_to_output};
use crate::watch::terminal;
use crate::{plan, reports};
use spindle_experiment::Experiment;
use spindle_report::{brief, table};
use spindle_result::RunResult;
use spindle_run::answers;
use spindle_run::directory::{self, DirectoryError};
use spindle_run::listener::Listener;
use spindle_run::refusals::Refusals;
use spindle_run::replay::RunState;
use spindle_run::runner::{RunError, Runner};
use spindle_text::files::Directory;

/// Runs an experiment, and says when it has `begun`: whatever forbids it was found before.
pub(super) fn begin(
    mut experiment: Experiment,
    out: Option<PathBuf>,
    (show, watch): (&Show, bool),
    begun: impl FnOnce(),
) -> ExitCode {
    let Some(shown) = shown(show, watch) else {
        return no_terminal();
    };
    let refusals = Refusals::of(&experiment);
    if let Some(mistakes) = refusals.mistakes(&experiment) {
        return wrong_command_line(&mistakes);
    }
    if let Err(too_few) = experiment.leave_out(&refusals.combinations(&experiment)) {
        return wrong_command_line(&too_few.to_string());
    }
    if !show.quiet && !show.brief {
        plan::left_out(&experiment)
            .iter()
            .for_each(|line| say::note(line));
    }
    let results = out.as_deref().unwrap_or(Path::new(RUNS));
    let reckoning = match plan::look(&experiment, results) {
        Ok(look) => look.reckoning,
        Err(error) => return no_current_directory(&error),
    };
    if let Some(refusal) = reckoning.refusal() {
        return wrong_command_line(&refusal);
    }
    let directory = match out {
        Some(path) => directory::create(&path),
        None => directory::create_named(Path::new(RUNS), &name_of_directory(&experiment)),
    };
    let is_open = experiment.workload.transactions.are_counted();
    carry_out(directory, show, |directory, path| {
        let interrupted = interrupts(&directory, path)?;
        let (_, ms) = reckoning.most();
        // How long queries and loads take is not reckoned.
        let told = (!is_open).then(|| Duration::from_millis(ms));
        let listen = listener(shown, &interrupted, told);
        let runner = Runner::begin(experiment, directory, interrupted, listen)?;
        let runner = runner.foretell(&reckoning, show.brief)?;
        begun();
        Ok(runner)
    })
}

/// Resumes a run.
pub(super) fn resume(directory: &Path, show: &Show, watch: bool) -> ExitCode {
    let Some(shown) = shown(show, watch) else {
        return no_terminal();
    };
    let whole = directory::open_run(directory).and_then(reports::that_was_not_cut);
    carry_out(whole, show, |directory, path| {
        let interrupted = interrupts(&directory, path)?;
        let listen = listener(shown, &interrupted, None);
        Runner::go_on(directory, interrupted, listen)
    })
}

fn interrupts(directory: &Directory, path: PathBuf) -> Result<Arc<AtomicBool>, RunError> {
    signals::interrupts(AtOnce::InRun(path)).map_err(|error| {
        directory.remove_if_made();
        RunError::Signals(error)
    })
}

/// Who listens to the run, made when the run knows what it has to do; `told` is the time that was announced.
fn listener(
    shown: ProgressForm,
    interrupted: &Arc<AtomicBool>,
    told: Option<Duration>,
) -> impl FnOnce(&RunState) -> io::Result<Box<dyn Listener>> + use<> {
    let interrupted = Arc::clone(interrupted);
    move |state| Ok(Box::new(Progress::new(shown, state, interrupted, told)?))
}

/// How progress is shown; `None` for a dashboard where there is no terminal.
fn shown(show: &Show, watch: bool) -> Option<ProgressForm> {
    match (show.quiet, watch) {
        (true, _) => Some(ProgressForm::Nothing),
        (false, false) => Some(ProgressForm::Lines),
        (false, true) => terminal::is_there().then_some(ProgressForm::Dashboard),
    }
}

fn no_terminal() -> ExitCode {
    wrong_command_line(
        "--watch draws on a terminal, and standard output is not one. Nothing was begun: leave --watch out, or start spindle in a \
         terminal",
    )
}

/// `NAME-20260101-120000`.
fn name_of_directory(experiment: &Experiment) -> String {
    let time = Zoned::now().strftime("%Y%m%d-%H%M%S");
    format!("{}-{time}", experiment.name)
}

fn carry_out(
    directory: Result<Directory, DirectoryError>,
    show: &Show,
    start: impl FnOnce(Directory, PathBuf) -> Result<Runner, RunError>,
) -> ExitCode {
    let directory = match directory {
        Ok(directory) => directory,
        Err(error) => return ended_by(&error),
    };
    // Going on changes the working directory.
    let path = std::path::absolute(directory.path());
    let path = path.unwrap_or_else(|_| directory.path().to_path_buf());
    let mut runner = match start(directory, path.clone()) {
        Ok(runner) => runner,
        Err(error) => return ended_by(&error),
    };
    let run = runner.run();
    // Also what a run found before it was interrupted or failed is worth a report.
    let has_reports = run.is_ok() || runner.has_anything();
    let reports = has_reports.then(|| reports::write_reports_in(runner.directory()));
    match run {
        Ok(()) => match reports.expect("they were just written") {
            Ok(result) => show_result(&result, &path, show),
            Err(error) => fail_midway(runner, &error.to_string(), &path),
        },
        Err(error) if error.code() == Code::Interrupted => interrupted(&format!(
            "interrupted; finished trials are kept. Go on with: spindle resume {}",
            path.display()
        )),
        Err(error) => fail_midway(runner, &error.to_string(), &path),
    }
}

/// Says why a run broke off, and how to resume it; nothing stays of one that found out nothing.
fn fail_midway(runner: Runner, reason: &str, path: &Path) -> ExitCode {
    let code = fail(reason);
    match runner.is_kept() {
        true => say::note(&format!(
            "Finished trials are kept. After fixing the cause, run: spindle resume {}",
            path.display()
        )),
        false => runner.discard(),
    }
    code
}

/// Where answers are kept, if they are.
fn kept_answers(directory: &Path) -> String {
    let answers = directory.join(answers::NAME);
    match answers.is_dir() {
        true => format!("answers: {}\n", answers.display()),
        false => String::new(),
    }
}

/// Prints the result of a run.
pub(super) fn show_result(result: &RunResult, directory: &Path, show: &Show) -> ExitCode {
    let report = directory.join("report.html");
    let text = match show.json {
        true => result.to_json(),
        false if show.brief => {
            brief::render(result, &report.display().to_string(), style_of_output())
        }
        false => fitted_to_output(&format!(
            "{}\nreport: {}\n{}",
            table::render(result, style_of_output()),
            report.display(),
            kept_answers(directory)
        )),
    };
    if let Err(error) = say::result(&text) {
        return fail(&format!(
            "cannot write to standard output: {error}. The report is written: {}",
            report.display()
        ));
    }
    match result.is_answered() {
        true => Code::Done.into(),
        false => Code::NoAnswer.into(),
    }
}
