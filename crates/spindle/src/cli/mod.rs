//! The command line: what people type, and how they are told what went wrong.

mod ask;
mod calibrate;
mod calibrate_layouts;
#[cfg(test)]
mod documents;
mod import;
mod init;
mod number;
mod results;
mod run;
mod shell;
mod signals;
mod standing;
mod words;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind::InvalidUtf8;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use miette::GraphicalReportHandler;
use rustix::termios::tcgetwinsize;
use spindle_layout::ledger;

use number::number;
use signals::AtOnce;

use crate::disk_group::{self, CommandError, DiskGroupCommand};
use crate::power_cut::judge::Judging;
use crate::power_cut::{self, PowerCutError, Scratch};
use crate::{clean, doctor, plan, reports, say};
use spindle_experiment::{Changes, Experiment, ExperimentError};
use spindle_report::table::Style;
use spindle_run::agent::far_side;
use spindle_run::agent::protocol::AGENT_COMMAND;
use spindle_run::directory::{DirectoryError, open_run};
use spindle_run::examine::refused_combinations;
use spindle_run::journal;
use spindle_run::replay::RunState;
use spindle_run::trial;
use spindle_run::trial::load::words::LOAD_COMMAND;
use spindle_text::paragraph::fitted;

const EXIT_CODES: &str = "Exit codes: 0 done; 1 the run or a command failed; 2 the experiment file or the command line \
is wrong, and nothing was created; 3 half of the layouts or more could not be measured; 130 interrupted, go on with `spindle resume`. \
`spindle compare` and `spindle calibrate` have their own.";

/// Where runs are made and looked for, unless told otherwise.
const RUNS: &str = "runs";

/// Runs the same database workload on every storage layout you consider, and says which is faster, by how much, and how
/// sure it is.
#[derive(Parser)]
#[command(version, about, long_about = None, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

/// What is said to who has only typed the program's name.
const NEXT_STEP: &str = "\
Spindle runs one database workload on every storage layout you consider, and says
which is faster, by how much, and how sure it is. The next step:

  spindle try DIR DIR     compare two directories, in two minutes
  spindle try .           compare ways of reading and writing, here
  spindle init            write an experiment file, by five questions
  spindle examples        experiment files to start from
  spindle doctor          what this machine can do, and what makes it noisy
  spindle explain WORD    what a word of a report or a file means
  spindle --help          all commands
";

#[derive(Subcommand)]
enum Command {
    /// Run an experiment: every layout, several rounds, one table and a verdict.
    #[command(
        after_help = "Example:\n  spindle run examples/quickstart.toml --set plan.rounds=5 --out runs/today\n  spindle run examples/quickstart.toml \
                      --vary database.writers=1,4 --only 'direct, async, writers 1' --quick\n  spindle run runs/today"
    )]
    Run {
        /// The experiment file; or the directory of an earlier run, to run its experiment again.
        file: PathBuf,
        /// The run directory [default: runs/NAME-TIME].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        #[command(flatten)]
        changed: Changed,
        #[command(flatten)]
        show: Show,
        #[command(flatten)]
        watch: Watch,
    },
    /// Compare directories, or settings, without an experiment file: an answer in two minutes.
    #[command(after_help = ask::TRY_HELP)]
    Try(ask::Try),
    /// Write an experiment file, by five questions.
    #[command(after_help = init::INIT_HELP)]
    Init(init::Init),
    /// Go on with a run that was interrupted, killed, or had failures; finished trials are kept.
    #[command(after_help = "Example:\n  spindle resume runs/quickstart-20260101-120000")]
    Resume {
        /// The run directory.
        directory: PathBuf,
        #[command(flatten)]
        show: Show,
        #[command(flatten)]
        watch: Watch,
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
    /// Show a run on the terminal, from the answer down to what weakens it; writes nothing.
    #[command(after_help = "Example:\n  spindle show runs/quickstart-20260101-120000")]
    Show {
        /// The run directory.
        directory: PathBuf,
    },
    /// Print a run for other programs; or write runs into a PostgreSQL database.
    #[command(after_help = results::EXPORT_HELP)]
    Export(results::Export),
    /// Compare runs of different days or machines: the first with each of the others.
    #[command(after_help = results::COMPARE_HELP)]
    Compare(results::Compare),
    /// Tell when the runs of an experiment became faster or slower: change points over many runs.
    #[command(after_help = results::HISTORY_HELP)]
    History {
        /// Where to look.
        #[arg(default_value = RUNS)]
        directory: PathBuf,
        /// For people, or for programs (described in docs/history.md).
        #[arg(long, value_enum, default_value_t = results::TellFormat::Text)]
        format: results::TellFormat,
    },
    /// List the runs below a directory.
    #[command(after_help = "Example:\n  spindle list /srv/runs")]
    List {
        /// Where to look.
        #[arg(default_value = RUNS)]
        directory: PathBuf,
    },
    /// Say what an experiment would make, write and take; touch nothing.
    #[command(after_help = "Example:\n  spindle plan examples/quickstart.toml --set plan.rounds=5")]
    Plan {
        /// The experiment file.
        file: PathBuf,
        #[command(flatten)]
        changed: Changed,
    },
    /// List experiment files to start from, or copy one of them here.
    #[command(after_help = "Example:\n  spindle examples --copy quickstart")]
    Examples {
        /// Copies the one of this name into the current directory.
        #[arg(long, value_name = "NAME")]
        copy: Option<String>,
    },
    /// Say what a word of a report or of an experiment file means: a finding, a column, a wait event, a setting.
    #[command(after_help = "Example:\n  spindle explain double buffering")]
    Explain {
        /// The word, or words [default: list them all].
        word: Vec<String>,
    },
    /// Remove what killed runs left: mounts, loop devices, volumes, files, control groups.
    #[command(after_help = "Example:\n  spindle clean --dry-run")]
    Clean {
        /// Only say what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Tell what this machine can do, and what makes its results noisy; or look at an existing server.
    #[command(
        after_help = "Example:\n  spindle doctor\n  spindle doctor 'postgres://ann@db1/lab?sslmode=require' --password-env DB1_PASSWORD\n\n\
                      A server is only read: nothing of it is changed."
    )]
    Doctor {
        /// The address of a server that is running, as `url` of an experiment file.
        url: Option<String>,
        /// The environment variable that its password is in [default: where the server's own clients look].
        #[arg(long, value_name = "NAME", requires = "url")]
        password_env: Option<String>,
    },
    /// Turn what clients do to a server of yours into scripts and an experiment file.
    #[command(subcommand)]
    Import(import::Import),
    /// Measure what storage can do by itself: most IOPS, most MB/s, least latency, flushes.
    #[command(after_help = calibrate::CALIBRATE_HELP)]
    Calibrate(calibrate::Calibrate),
    /// Make, show, change and check disk groups on block devices and files.
    #[command(name = "diskgroup", subcommand)]
    DiskGroup(DiskGroupCommand),
    /// Cut the power of every layout, at many moments, and print what was lost. Needs root and device-mapper.
    #[command(
        after_help = "Example:\n  spindle powercut examples/power-cut.toml --cuts 200\n\nExit codes: 0 nothing was lost \
                      that had been promised; 1 something was, or a command failed; 2 the experiment file is wrong."
    )]
    Powercut(PowerCuts),
    /// Print what a shell needs to complete commands and options.
    #[command(
        after_help = "Example:\n  spindle completions bash > ~/.local/share/bash-completion/completions/spindle"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages, one a command, into a directory; for those who make packages.
    #[command(name = "man", hide = true)]
    Manual {
        /// An existing directory.
        directory: PathBuf,
    },
    /// Looks at the machine of an existing server; brought there and started by `run`, not by people.
    #[command(name = AGENT_COMMAND, hide = true)]
    Agent {
        /// The directory that was made for this program's file; both are removed.
        #[arg(long, value_name = "DIR")]
        made_for_it: Option<PathBuf>,
    },
    /// Runs clients of a load that is spread over machines; brought there and started by `run`, not by people.
    #[command(name = LOAD_COMMAND, hide = true)]
    LoadWorker {
        /// The directory that was made for this program's file; both are removed.
        #[arg(long, value_name = "DIR")]
        made_for_it: Option<PathBuf>,
    },
    /// The process of one trial; started by `run`, not by people.
    #[command(name = trial::supervisor::WORKER_COMMAND, hide = true)]
    TrialWorker,
}

#[derive(Args)]
struct PowerCuts {
    /// The experiment file; its layouts are made small, on devices that stand in for theirs.
    file: PathBuf,
    /// Cuts of each layout, with commits that wait and again with commits that do not.
    #[arg(long, default_value_t = 200, value_parser = number(1..=1_000_000_usize))]
    cuts: usize,
    /// Draws the moments.
    #[arg(long, default_value_t = 1, value_parser = number(0..=u64::MAX))]
    seed: u64,
    /// Where recordings and rows are kept [default: runs/powercut-NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the table into this Markdown file, too.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// An empty or new directory for images while power is cut; quick on tmpfs [default: work in --out's].
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Only record, on these two empty block devices.
    #[arg(long, num_args = 2, value_names = ["DEVICE", "LOG"], conflicts_with = "recorded")]
    record_on: Option<Vec<PathBuf>>,
    /// Only cut, from the log that was recorded in this file or on this device.
    #[arg(long, value_name = "LOG")]
    recorded: Option<PathBuf>,
}

/// What is changed of an experiment file.
#[derive(Args)]
struct Changed {
    /// Overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Measures every layout with each of these values; several make a matrix, and the effect of each is told.
    #[arg(long, value_name = "KEY=A,B,...")]
    vary: Vec<String>,
    /// Measures these layouts only.
    #[arg(long, value_name = "NAME,...")]
    only: Vec<String>,
    /// A first look: three rounds of 2 seconds.
    #[arg(long)]
    quick: bool,
    /// Keeps the answers to the queries of tpch and tpcd, as CSV files in the run directory.
    #[arg(long)]
    keep_answers: bool,
}

impl Changed {
    fn changes(&mut self) -> Changes<'_> {
        if self.keep_answers {
            self.sets.push("workload.keep_answers=true".to_owned());
        }
        Changes {
            sets: &self.sets,
            vary: &self.vary,
            only: &self.only,
            is_quick: self.quick,
        }
    }
}

#[derive(Args)]
struct Show {
    /// Print result.json instead of the table.
    #[arg(long)]
    json: bool,
    /// No progress, no warnings on the way: only the result.
    #[arg(long)]
    quiet: bool,
    /// A dozen lines in place of the table.
    #[arg(skip)]
    brief: bool,
}

#[derive(Args)]
struct Watch {
    /// A dashboard on the terminal while it goes on: throughput, waits, time left.
    #[arg(long, conflicts_with = "quiet")]
    watch: bool,
}

/// Does what the command line asks for.
pub fn main() -> ExitCode {
    signals::outlive_file_size_limit();
    match Arguments::try_parse() {
        Ok(arguments) => carry_out(arguments),
        Err(error) if error.kind() == InvalidUtf8 => standing::tell_what_is_no_text(),
        Err(error) if error.use_stderr() => {
            let text = error.render();
            match std::io::stderr().is_terminal() {
                true => say::drawn(&text.ansi().to_string()),
                false => say::drawn(&text.to_string()),
            }
            ExitCode::from(2)
        }
        // Help, or the version.
        Err(error) => match std::io::stdout().is_terminal() {
            true => print(&error.render().ansi().to_string()),
            false => print(&error.render().to_string()),
        },
    }
}

fn carry_out(arguments: Arguments) -> ExitCode {
    let Some(command) = arguments.command else {
        return print(NEXT_STEP);
    };
    if let Err(code) = standing::check(&command) {
        return code;
    }
    match command {
        Command::TrialWorker => trial::worker::run(),
        Command::Agent { made_for_it } => far_side::run(made_for_it.as_deref()),
        Command::LoadWorker { made_for_it } => trial::load::worker::run(made_for_it.as_deref()),
        Command::DiskGroup(command) => work_on_group(command),
        Command::Powercut(asked) => match Experiment::read(&asked.file, &asked.sets) {
            Ok(experiment) => cut_power(&experiment, asked),
            Err(error) => wrong_experiment(&error),
        },
        Command::Report { directory, show } => match reports::write_reports(&directory) {
            Ok(result) => run::show_result(&result, &directory, &show),
            Err(error) => no_run(&error),
        },
        Command::Show { directory } => results::show(&directory),
        Command::Export(asked) => results::export(&asked),
        Command::Compare(asked) => results::compare(&asked),
        Command::History { directory, format } => results::history(&directory, format),
        Command::List { directory } => results::list(&directory),
        Command::Resume {
            directory,
            show,
            watch,
        } => run::resume(&directory, &show, watch.watch),
        Command::Run {
            file,
            out,
            mut changed,
            show,
            watch,
        } => match experiment_to_run(&file, changed.changes()) {
            Ok(experiment) => run::begin(experiment, out, &show, watch.watch),
            Err(code) => code,
        },
        Command::Try(asked) => ask::carry_out(asked),
        Command::Calibrate(asked) => calibrate::carry_out(asked),
        Command::Init(asked) => init::carry_out(&asked),
        Command::Import(asked) => import::carry_out(&asked),
        Command::Plan { file, mut changed } => {
            match Experiment::read_changed(&file, changed.changes()) {
                Ok(experiment) => show_plan(experiment),
                Err(error) => wrong_experiment(&error),
            }
        }
        Command::Examples { copy } => words::examples(copy.as_deref()),
        Command::Explain { word } => words::explain(&word.join(" ")),
        Command::Clean { dry_run } => show_cleaning(dry_run),
        Command::Doctor { url: None, .. } => print(&doctor::report()),
        Command::Doctor {
            url: Some(url),
            password_env,
        } => match doctor::report_of(&url, password_env.as_deref()) {
            Ok(report) => print(&report),
            Err(doctor::ReportError::Address(reason)) => wrong_command_line(&reason),
            Err(doctor::ReportError::Server(error)) => fail(&error.to_string()),
        },
        Command::Completions { shell } => shell::completions(shell),
        Command::Manual { directory } => shell::manual(&directory),
    }
}

/// The experiment of a file, or that of an earlier run, to be run again. Mistakes have been told when it is an error.
fn experiment_to_run(file: &Path, changes: Changes<'_>) -> Result<Experiment, ExitCode> {
    if !file.is_dir() {
        return Experiment::read_changed(file, changes).map_err(|error| wrong_experiment(&error));
    }
    let directory = open_run(file).map_err(|error| no_run(&error))?;
    if !changes.is_nothing() {
        return Err(wrong_command_line(
            "--set, --vary, --only and --quick change what an experiment file says; a run directory is run again as it was",
        ));
    }
    let events = journal::replay_in(&directory).map_err(|error| fail(&error.to_string()))?;
    let state = RunState::of(&events).expect("a replayed journal begins with a run's start");
    Ok(state.experiment)
}

fn show_plan(mut experiment: Experiment) -> ExitCode {
    let too_few = experiment.leave_out(&refused_combinations(&experiment));
    let look = match plan::look_at_servers_too(&experiment, Path::new(".")) {
        Ok(look) => look,
        Err(error) => return no_current_directory(&error),
    };
    let text = match std::io::stdout().is_terminal() {
        true => fitted(&look.text, style_of_output().width.into()),
        false => look.text,
    };
    let too_few = too_few.err().map(|too_few| too_few.to_string());
    match too_few.or_else(|| look.reckoning.refusal()) {
        Some(refusal) => {
            let shown = print_then(&text, ExitCode::from(2));
            fail(&refusal);
            shown
        }
        None => print_then(
            &text,
            ExitCode::from(if look.can_be_answered { 0 } else { 3 }),
        ),
    }
}

fn no_current_directory(error: &std::io::Error) -> ExitCode {
    fail(&format!("there is no current directory: {error}"))
}

fn show_cleaning(dry_run: bool) -> ExitCode {
    match clean::clean(&ledger::default_directory(), dry_run) {
        Ok(report) => print_then(&report.text, success_if(report.is_clean)),
        Err(error) => fail(&error.to_string()),
    }
}

fn work_on_group(command: DiskGroupCommand) -> ExitCode {
    let interrupted = match signals::interrupts(AtOnce::OnGroup(command.files_to_make())) {
        Ok(interrupted) => interrupted,
        Err(error) => return fail(&signals::not_waited_for(&error)),
    };
    match disk_group::carry_out(command, &interrupted) {
        Ok(answer) => {
            if let Some(unseen) = &answer.unseen {
                say::note(&format!("Could not be looked at: {unseen}."));
            }
            let code = match answer.is_interrupted {
                true => ExitCode::from(signals::INTERRUPTED),
                false => success_if(answer.is_well),
            };
            print_then(&answer.text, code)
        }
        Err(CommandError::Interrupted) => {
            say::note("interrupted; nothing was made");
            ExitCode::from(signals::INTERRUPTED)
        }
        Err(error) if error.is_of_command_line() => wrong_command_line(&error.to_string()),
        Err(error) => fail(&error.to_string()),
    }
}

fn cut_power(experiment: &Experiment, asked: PowerCuts) -> ExitCode {
    let default = || Path::new("runs").join(format!("powercut-{}", experiment.name));
    let out = asked.out.unwrap_or_else(default);
    let options = power_cut::Options {
        work: asked.work.unwrap_or_else(|| out.join("work")),
        out,
        judging: Judging {
            cuts: asked.cuts,
            seed: asked.seed,
        },
        scratch: match (asked.record_on.as_deref(), asked.recorded) {
            (Some([origin, log]), _) => Scratch::Devices(origin.clone(), log.clone()),
            (_, Some(log)) => Scratch::Recorded(log),
            _ => Scratch::Files,
        },
    };
    let interrupted = match signals::interrupts(AtOnce::InPowerCuts) {
        Ok(interrupted) => interrupted,
        Err(error) => return fail(&signals::not_waited_for(&error)),
    };
    match power_cut::run(experiment, &options, &interrupted, &mut |what| {
        say::note(what);
    }) {
        Ok(outcome) => {
            let is_kept = outcome.rows.iter().all(|row| row.failure().is_none());
            let mut code = success_if(is_kept);
            if !outcome.rows.is_empty() {
                code = print_then(&power_cut::table::render(&outcome), code);
                if let Some(path) = &asked.document
                    && let Err(error) = power_cut::table::write(path, &outcome, &options)
                {
                    return fail(&format!("cannot write {}: {error}", path.display()));
                }
            }
            code
        }
        Err(PowerCutError::Interrupted) => {
            say::note("interrupted; finished cases are kept. Go on with the same command");
            ExitCode::from(signals::INTERRUPTED)
        }
        Err(error) => fail(&error.to_string()),
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

/// Says why a command line cannot be carried out. Nothing was made.
fn wrong_command_line(reason: &str) -> ExitCode {
    fail(reason);
    ExitCode::from(2)
}

/// Says why a directory cannot be used as that of a run.
fn no_run(error: &DirectoryError) -> ExitCode {
    match error.is_of_command_line() {
        true => wrong_command_line(&error.to_string()),
        false => fail(&error.to_string()),
    }
}

fn fail(reason: &str) -> ExitCode {
    say::reason(reason);
    if let Some(advice) = signals::advice_on_file_size(reason) {
        say::note(&advice);
    }
    ExitCode::FAILURE
}

/// Prints a result.
fn print(text: &str) -> ExitCode {
    print_then(text, ExitCode::SUCCESS)
}

/// Prints a result, and ends with `code` when that succeeds.
fn print_then(text: &str, code: ExitCode) -> ExitCode {
    match say::result(text) {
        Ok(()) => code,
        Err(error) => fail(&format!("standard output takes no more: {error}")),
    }
}

fn success_if(is_well: bool) -> ExitCode {
    match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn wrong_experiment(error: &ExperimentError) -> ExitCode {
    let handler = if std::io::stderr().is_terminal() {
        GraphicalReportHandler::new()
    } else {
        GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
    };
    let mut text = String::new();
    match handler.render_report(&mut text, error) {
        Ok(()) => say::drawn(&text),
        Err(_) => say::reason(&error.to_string()),
    }
    ExitCode::from(2)
}
