//! The command line: what people type, and how they are told what went wrong. The only module that prints, but for the
//! progress of a run.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser, Subcommand};
use jiff::Zoned;
use miette::GraphicalReportHandler;
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::disk_group::{self, DiskGroupCommand};
use crate::experiment::{Experiment, ExperimentError};
use crate::result::{Outcome, RunResult};
use crate::run::directory;
use crate::run::runner::{RunError, Runner};
use crate::table::{self, Style};
use crate::trial;

const EXIT_CODES: &str = "Exit codes: 0 done; 1 the run or a command failed; 2 the experiment file or the command line \
is wrong, and nothing was created; 3 not one case could be measured; 130 interrupted, go on with `spindle resume`.";

/// The program's arguments.
#[derive(Parser)]
#[command(version, about, long_about = None, after_help = EXIT_CODES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an experiment: every layout, several rounds, one table and a verdict.
    #[command(
        after_help = "Example:\n  spindle run examples/quickstart.toml --set plan.rounds=5 --out runs/today"
    )]
    Run {
        /// The experiment file.
        file: PathBuf,
        /// The run directory [default: runs/NAME-TIME].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Overrides a setting; may be given several times.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        sets: Vec<String>,
        #[command(flatten)]
        show: Show,
    },
    /// Go on with a run that was interrupted, killed, or had failures; finished trials are kept.
    #[command(after_help = "Example:\n  spindle resume runs/quickstart-20260101-120000")]
    Resume {
        /// The run directory.
        directory: PathBuf,
        #[command(flatten)]
        show: Show,
    },
    /// Make the reports of a run again from its journal, and print its table.
    #[command(
        after_help = "Example:\n  spindle report runs/quickstart-20260101-120000 --json | jq .headline"
    )]
    Report {
        /// The run directory.
        directory: PathBuf,
        #[command(flatten)]
        show: Show,
    },
    /// Make, show, change and check disk groups on block devices and files.
    #[command(name = "diskgroup", subcommand)]
    DiskGroup(DiskGroupCommand),
    /// The process of one trial; started by `run`, not by people.
    #[command(name = trial::supervisor::WORKER_COMMAND, hide = true)]
    TrialWorker,
}

#[derive(Args)]
struct Show {
    /// Print result.json instead of the table.
    #[arg(long)]
    json: bool,
    /// No progress, no warnings on the way: only the result.
    #[arg(long)]
    quiet: bool,
}

/// Does what was asked.
pub fn main(arguments: Arguments) -> ExitCode {
    match arguments.command {
        Command::TrialWorker => trial::worker::run(),
        Command::DiskGroup(command) => match disk_group::carry_out(command) {
            Ok(answer) => {
                print!("{}", answer.text);
                if answer.is_well {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                }
            }
            Err(error) => fail(&error.to_string()),
        },
        Command::Report { directory, show } => match directory::write_reports(&directory) {
            Ok(result) => show_result(&result, &directory, &show),
            Err(error) => fail(&error.to_string()),
        },
        Command::Resume { directory, show } => {
            let runner = Runner::go_on(&directory, show.quiet, interrupts());
            carry_out(runner, &directory, &show)
        }
        Command::Run {
            file,
            out,
            sets,
            show,
        } => match Experiment::read(&file, &sets) {
            Ok(experiment) => {
                let directory = out.unwrap_or_else(|| default_directory(&experiment));
                let runner = Runner::begin(experiment, &directory, show.quiet, interrupts());
                carry_out(runner, &directory, &show)
            }
            Err(error) => wrong_experiment(&error),
        },
    }
}

/// Set by the first Ctrl-C or SIGTERM; the second ends the program at once.
fn interrupts() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set by the first.
        let registered =
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)));
        registered.expect("SIGINT and SIGTERM may be handled");
    }
    flag
}

fn default_directory(experiment: &Experiment) -> PathBuf {
    let time = Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    Path::new("runs").join(format!("{}-{time}", experiment.name))
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

fn show_result(result: &RunResult, directory: &Path, show: &Show) -> ExitCode {
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

/// How to draw on standard output, which may be a terminal.
fn style_of_output() -> Style {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return Style::default();
    }
    Style::of_terminal(tcgetwinsize(&output).map_or(0, |size| size.ws_col))
}

fn fail(reason: &str) -> ExitCode {
    eprintln!("spindle: {reason}");
    ExitCode::FAILURE
}

fn wrong_experiment(error: &ExperimentError) -> ExitCode {
    let handler = if std::io::stderr().is_terminal() {
        GraphicalReportHandler::new()
    } else {
        GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
    };
    let mut text = String::new();
    match handler.render_report(&mut text, error) {
        Ok(()) => eprint!("{text}"),
        Err(_) => eprintln!("spindle: {error}"),
    }
    ExitCode::from(2)
}
