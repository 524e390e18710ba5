//! The command line. `arguments` says what people may type and `ending` how they are told what came of it. This file
//! brings each command to what carries it out.

mod arguments;
mod ask;
mod calibrate;
mod calibrate_layouts;
mod code;
#[cfg(test)]
mod documents;
mod ending;
mod import;
mod init;
mod number;
mod options;
mod results;
mod run;
mod shell;
mod signals;
mod standing;
mod words;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind::InvalidUtf8;
use clap::{CommandFactory, FromArgMatches};
use spindle_layout::ledger;

use arguments::{Arguments, Command, PowerCuts};
use code::Code;
use ending::{
    ended_by, fail, no_current_directory, print, print_for_people, print_then, success_if,
    wrong_command_line, wrong_experiment,
};
use signals::AtOnce;

use crate::disk_group::{self, DiskGroupCommand};
use crate::power_cut::judge::Judging;
use crate::power_cut::{self, Scratch};
use crate::{clean, doctor, plan, reports, say};
use spindle_experiment::{Changes, Experiment, Layout};
use spindle_run::agent::far_side;
use spindle_run::directory::open_run;
use spindle_run::journal;
use spindle_run::refusals::Refusals;
use spindle_run::replay::RunState;
use spindle_run::trial;

/// What is said to who has only typed the program's name.
const NEXT_STEP: &str = "\
Spindle runs one database workload on every storage layout you consider, and
says which is faster, by how much, and how sure it is. The next step:

  spindle try DIR DIR     compare two directories, in two minutes
  spindle try .           compare ways of reading and writing, here
  spindle init            answer five questions, and get an experiment file
  spindle examples        experiment files to start from
  spindle doctor          what this machine can do, and what makes it noisy
  spindle explain WORD    what a word of a report or a file means
  spindle --help          all commands
";

/// Does what the command line asks for.
pub fn main() -> ExitCode {
    signals::outlive_file_size_limit();
    if let Some(why) = signals::stack_is_too_small() {
        say::reason(&why);
        return Code::Refused.into();
    }
    match arguments() {
        Ok(arguments) => carry_out(arguments),
        Err(error) if error.kind() == InvalidUtf8 => standing::tell_what_is_no_text(),
        Err(error) if error.use_stderr() => {
            let text = error.render();
            match std::io::stderr().is_terminal() {
                true => say::drawn(&text.ansi().to_string()),
                false => say::drawn(&text.to_string()),
            }
            Code::Refused.into()
        }
        // Help, or the version.
        Err(error) => match std::io::stdout().is_terminal() {
            true => print(&error.render().ansi().to_string()),
            false => print(&error.render().to_string()),
        },
    }
}

/// What was asked for. Help fits the terminal; a pipe gets whole lines.
fn arguments() -> Result<Arguments, clap::Error> {
    let width = say::columns(&std::io::stdout()).unwrap_or(0);
    let mut command = Arguments::command().term_width(width);
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

fn carry_out(arguments: Arguments) -> ExitCode {
    let Some(command) = arguments.command else {
        return print_for_people(NEXT_STEP);
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
            Err(error) => ended_by(&error),
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
            Ok(experiment) => run::begin(experiment, out, (&show, watch.watch), || ()),
            Err(code) => code,
        },
        Command::Try(asked) => ask::carry_out(asked),
        Command::Calibrate(asked) => calibrate::carry_out(*asked),
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
        Command::Doctor { url: None, .. } => print_for_people(&doctor::report()),
        Command::Doctor {
            url: Some(url),
            password_env,
        } => match doctor::report_of(&url, password_env.as_deref()) {
            Ok(report) => print_for_people(&report),
            Err(error) => ended_by(&error),
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
    let directory = open_run(file).map_err(|error| ended_by(&error))?;
    if !changes.is_nothing() {
        return Err(wrong_command_line(
            "--set, --vary, --only and --quick change what an experiment file says; a run directory is run again as it was",
        ));
    }
    let events = journal::replay_in(&directory).map_err(|error| fail(&error.to_string()))?;
    let state = RunState::of(&events).expect("a replayed journal begins with a run's start");
    tell_of_other_start(&state);
    Ok(state.experiment)
}

/// Says that what has relative paths is now elsewhere than it was in the earlier run.
fn tell_of_other_start(earlier: &RunState) {
    let starts_here = |layout: &Layout| match &layout.made {
        Some(made) => made.spec.devices.iter().any(|of| of.path().is_relative()),
        None => layout.address().is_none() && layout.path.is_relative(),
    };
    let has_relative = earlier.experiment.layouts.iter().any(starts_here);
    match std::env::current_dir() {
        Ok(here) if has_relative && here != earlier.working_directory => say::note(&format!(
            "relative paths of this experiment start in {}; in the earlier run they started in {}",
            here.display(),
            earlier.working_directory.display()
        )),
        _ => {}
    }
}

fn show_plan(mut experiment: Experiment) -> ExitCode {
    let refusals = Refusals::of(&experiment);
    if let Some(mistakes) = refusals.mistakes(&experiment) {
        return wrong_command_line(&mistakes);
    }
    let too_few = experiment.leave_out(&refusals.combinations(&experiment));
    let look = match plan::look_at_servers_too(&experiment, Path::new(".")) {
        Ok(look) => look,
        Err(error) => return no_current_directory(&error),
    };
    let text = say::fitted_to_output(&look.text);
    let too_few = too_few.err().map(|too_few| too_few.to_string());
    match too_few.or_else(|| look.reckoning.refusal()) {
        Some(refusal) => {
            let shown = print_then(&text, Code::Refused.into());
            fail(&refusal);
            shown
        }
        None => {
            let code = match look.can_be_answered {
                true => Code::Done,
                false => Code::NoAnswer,
            };
            print_then(&text, code.into())
        }
    }
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
                true => Code::Interrupted.into(),
                false => success_if(answer.is_well),
            };
            print_then(&answer.text, code)
        }
        Err(error) => ended_by(&error),
    }
}

fn cut_power(experiment: &Experiment, asked: PowerCuts) -> ExitCode {
    if let Some(Err(error)) = asked.document.as_deref().map(power_cut::table::check_place) {
        return ended_by(&error);
    }
    let default = || Path::new("runs").join(format!("powercut-{}", experiment.name));
    let out = asked.out.unwrap_or_else(default);
    let options = power_cut::PowerCutOptions {
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
                    return ended_by(&error);
                }
            }
            code
        }
        Err(error) => ended_by(&error),
    }
}
