//! `spindle show`, `export`, `compare`, `history` and `list`: what runs found, for people and for programs. They read
//! journals and write nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::code::Code;
use super::ending::{
    ended_by, fail, no_output, print, print_for_people, print_then, style_of_output,
    wrong_command_line,
};
use super::options::RUNS;
use crate::list::{self, FoundRun};
use crate::results_database::ResultsDatabase;
use crate::say::{self, fitted_to_output};
use spindle_report::compare::{self, CompareOptions, ComparedRun, Conclusion, RunComparison};
use spindle_report::export::rows::rows;
use spindle_report::{export, history, show};
use spindle_result::StoredRun;
use spindle_run::directory;
use spindle_text::remedy::with_remedy;

/// A case that is slower by more than this has regressed, unless told otherwise.
const THRESHOLD_DEFAULT: &str = "5%";

pub(super) const COMPARE_HELP: &str = "Examples:\n  spindle compare runs/before runs/after --threshold 5%\n  \
spindle compare runs/before-1 runs/before-2 runs/before-3 -- runs/after-1 runs/after-2 runs/after-3\n\n\
The second form knows how far equal runs differ, and says how many runs per side the threshold needs.\n\n\
Cases are matched by layout, workload and clients, and compared by throughput, at a fixed rate of arrivals by the 99th \
percentile of the transaction time. A regression is certainly slower (the interval excludes 1; the intervals of all cases hold together in \
95 of 100 runs), and by more than the threshold; so is a case that broke off.\n\n\
Exit codes: 0 no regression, and every case that was judged would have shown one; 1 a regression; 2 the command line is wrong or a \
run cannot be read; 3 nothing could be judged: machines or settings differ, no case in common, or fewer than two rounds; 4 no \
regression was found, but a case is known too imprecisely to see one of the threshold's size. --format json has the same codes, and \
repeats them in outcome.";

pub(super) const HISTORY_HELP: &str = "Example:\n  spindle history /srv/runs\n\n\
Finished runs of the same experiment, workload, plan and layouts are one history, four or more of them. Each change is told with its \
size, its interval, the two runs beside it, and what differs in their machines. In 5 of 100 histories without a change, one is named by \
chance, all cases together.\n\n\
Exit codes: 0 told; 1 the directory cannot be read; 2 the command line is wrong; 3 too few runs ask the same.";

#[derive(Args)]
pub(super) struct Compare {
    /// The run directories: the first is compared with each of the others; or all of them with those behind `--`.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// The later runs, where you compare several on each side.
    #[arg(last = true, value_name = "NOW")]
    now: Vec<PathBuf>,
    /// Slower by more than this is a regression.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = THRESHOLD_DEFAULT,
        value_parser = threshold,
        allow_hyphen_values = true
    )]
    threshold: f64,
    /// Judge even if machines, their versions or their settings differ.
    #[arg(long)]
    across_machines: bool,
    /// Judge even if the experiments ask for different things.
    #[arg(long)]
    across_settings: bool,
    /// Text, or JSON for programs (described in docs/compare.md).
    #[arg(long, value_enum, default_value_t = TellFormat::Text)]
    format: TellFormat,
}

/// How comparisons and histories are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TellFormat {
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
        Ok(run) => print_for_people(&show::render(&run, style_of_output())),
        Err(error) => ended_by(&error),
    }
}

/// A format for other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A row for each trial, for spreadsheets and data frames.
    Csv,
    /// The whole result, as in result.json.
    Json,
    /// Samples for each case, for Prometheus and compatible systems.
    #[value(name = "openmetrics")]
    OpenMetrics,
}

pub(super) const EXPORT_HELP: &str = "Examples:\n  spindle export runs/quickstart-20260101-120000 --format csv > trials.csv\n  \
spindle export runs/monday runs/tuesday --to postgres://ann@db1/lab\n\n\
What each format holds, the tables in PostgreSQL, and questions in SQL: docs/export.md";

#[derive(Args)]
pub(super) struct Export {
    /// The run directory; several with --to.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Prints the run in this format.
    #[arg(long, required_unless_present = "to", conflicts_with = "to")]
    format: Option<Format>,
    /// Writes the runs into this PostgreSQL database: postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// With --to: the schema of the tables [default: spindle].
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// With --to: the environment variable that the password is in [default: where the server's own clients look].
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
}

/// The schema that results are kept in, unless told otherwise.
const RESULTS_SCHEMA: &str = "spindle";

/// Runs for programs.
pub(super) fn export(asked: &Export) -> ExitCode {
    match (asked.directories.as_slice(), asked.format, &asked.to) {
        (_, _, Some(url)) => keep(asked, url),
        _ if asked.schema.is_some() || asked.password_env.is_some() => {
            wrong_command_line("--schema and --password-env need --to URL")
        }
        ([directory], Some(format), None) => print_as(directory, format),
        _ => wrong_command_line("--format prints one run: name one run directory"),
    }
}

/// Writes runs into a database, and says of each whether it is new there.
fn keep(asked: &Export, url: &str) -> ExitCode {
    let runs = asked.directories.iter().map(|path| directory::read(path));
    let runs = match runs.collect::<Result<Vec<StoredRun>, _>>() {
        Ok(runs) => runs,
        Err(error) => return ended_by(&error),
    };
    let schema = asked.schema.as_deref().unwrap_or(RESULTS_SCHEMA);
    let connected = ResultsDatabase::connect(url, schema, asked.password_env.as_deref());
    let mut database = match connected {
        Ok(database) => database,
        Err(error) => return ended_by(&error),
    };
    let mut text = format!("{}, schema {schema}:\n", database.address());
    for run in &runs {
        let named = run.directory.display().to_string();
        let absolute = std::path::absolute(&run.directory);
        let place = absolute.map_or_else(|_| named.clone(), |path| path.display().to_string());
        match database.keep(&rows(run, &place)) {
            Ok(true) => text.push_str(&format!("  {named}: written again\n")),
            Ok(false) => text.push_str(&format!("  {named}: new\n")),
            Err(error) => return print_then(&text, fail(&error.to_string())),
        }
    }
    print(&text)
}

/// A run for programs.
fn print_as(directory: &Path, format: Format) -> ExitCode {
    let text = |run: &StoredRun| match format {
        Format::Csv => export::csv(&run.result, &run.started_at),
        Format::Json => run.result.to_json(),
        Format::OpenMetrics => export::openmetrics(&run.result, &run.started_at),
    };
    match directory::read(directory) {
        Ok(run) => print(&text(&run)),
        Err(error) => ended_by(&error),
    }
}

/// The runs there are.
pub(super) fn list(below: &Path) -> ExitCode {
    match find(below) {
        Ok(found) => print_for_people(&list::render(&found, below, style_of_output())),
        Err(code) => code,
    }
}

/// The runs below a directory. A mistake has been told when it is an error.
fn find(below: &Path) -> Result<Vec<FoundRun>, ExitCode> {
    match list::find(below) {
        // Nothing has been run here yet, which is no mistake.
        Err(error) if error.kind() == ErrorKind::NotFound && below == Path::new(RUNS) => {
            Ok(Vec::new())
        }
        found => found.map_err(|error| {
            let reason = format!(
                "{}: {}. Name a directory that holds runs; without one, runs/ is looked at",
                below.display(),
                with_remedy(&error)
            );
            match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => wrong_command_line(&reason),
                _ => fail(&reason),
            }
        }),
    }
}

/// The finished runs below a directory in order of time, and where they changed.
pub(super) fn history(below: &Path, format: TellFormat) -> ExitCode {
    let found = match find(below) {
        Ok(found) => found,
        Err(code) => return code,
    };
    let mut runs: Vec<StoredRun> = Vec::new();
    for found in found {
        match found.run {
            Ok(run) if runs.iter().any(|known| known.id == run.id) => say::note(&format!(
                "{}: left out, as it is a copy of another run here",
                found.directory.display()
            )),
            Ok(run) if run.is_finished => runs.push(run),
            Ok(_) => say::note(&format!(
                "{}: left out, as it is not finished",
                found.directory.display()
            )),
            Err(error) => say::note(&format!("left out: {error}")),
        }
    }
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.directory.display().to_string())
        .collect();
    let named = runs.iter().zip(&names);
    let sides: Vec<ComparedRun<'_>> = named
        .map(|(run, name)| ComparedRun::of(run, name))
        .collect();
    let histories = match history::histories(&sides) {
        Ok(histories) => histories,
        Err(error) => return fail(&error.to_string()),
    };
    let below = below.display().to_string();
    let text = match format {
        TellFormat::Json => history::json(&histories, &below),
        TellFormat::Text => {
            fitted_to_output(&history::render(&histories, &below, style_of_output()))
        }
    };
    match histories.histories.is_empty() {
        true => print_then(&text, Code::NoAnswer.into()),
        false => print(&text),
    }
}

/// The first run beside each of the others, or one side of runs beside another. The gravest exit code of all counts.
pub(super) fn compare(asked: &Compare) -> ExitCode {
    let options = CompareOptions {
        threshold: asked.threshold,
        across_machines: asked.across_machines,
        across_settings: asked.across_settings,
    };
    let is_option = |path: &&PathBuf| path.as_os_str().as_encoded_bytes().starts_with(b"--");
    if let Some(option) = asked.now.iter().find(is_option) {
        return wrong_command_line(&format!(
            "{} comes after `--`, where only runs are named; put options before it",
            option.display()
        ));
    }
    let paths = asked.directories.iter().chain(&asked.now);
    let runs = paths.map(|path| directory::read(path));
    let runs = match runs.collect::<Result<Vec<StoredRun>, _>>() {
        Ok(runs) => runs,
        Err(error) => return wrong_command_line(&error.to_string()),
    };
    let sides_of = match asked.now.is_empty() {
        true => Vec::new(),
        false => vec![
            &runs[..asked.directories.len()],
            &runs[asked.directories.len()..],
        ],
    };
    if let Some((run, again)) = sides_of.into_iter().find_map(named_twice) {
        return wrong_command_line(&format!(
            "{} and {} are one run: name each run of a side once, as runs tell their noise",
            run.directory.display(),
            again.directory.display()
        ));
    }
    let names: Vec<String> = runs
        .iter()
        .map(|run| run.directory.display().to_string())
        .collect();
    let named = runs.iter().zip(&names);
    let sides: Vec<ComparedRun<'_>> = named
        .map(|(run, name)| ComparedRun::of(run, name))
        .collect();
    let (before, others) = match (asked.now.is_empty(), sides.as_slice()) {
        (true, [before, others @ ..]) if !others.is_empty() => {
            let others: Vec<&[ComparedRun<'_>]> = others.chunks(1).collect();
            (std::slice::from_ref(before), others)
        }
        (true, _) => return wrong_command_line("two run directories or more are needed"),
        (false, sides) => {
            let (before, now) = sides.split_at(asked.directories.len());
            (before, vec![now])
        }
    };
    let mut comparisons: Vec<(Vec<ComparedRun<'_>>, RunComparison)> = Vec::new();
    for after in others {
        match compare::compare(before, after, &options) {
            Ok(comparison) => comparisons.push((after.to_vec(), comparison)),
            Err(error) => return wrong_command_line(&error.to_string()),
        }
    }
    tell(before, &comparisons, &options, asked.format)
}

/// The first run that is given twice, perhaps as a copy.
fn named_twice(runs: &[StoredRun]) -> Option<(&StoredRun, &StoredRun)> {
    runs.iter().enumerate().find_map(|(number, run)| {
        let mut others = runs[number + 1..].iter();
        Some((run, others.find(|other| other.id == run.id)?))
    })
}

/// Prints comparisons, and ends with the exit code that they come to.
fn tell(
    before: &[ComparedRun<'_>],
    comparisons: &[(Vec<ComparedRun<'_>>, RunComparison)],
    options: &CompareOptions,
    format: TellFormat,
) -> ExitCode {
    let text = match format {
        TellFormat::Json => compare::json(before, comparisons, options),
        TellFormat::Text => {
            let texts = comparisons.iter().map(|(after, comparison)| {
                compare::render(before, after, comparison, options, style_of_output())
            });
            fitted_to_output(&texts.collect::<String>())
        }
    };
    if let Err(error) = say::result(&text) {
        return no_output(&error);
    }
    match Conclusion::of_all(
        comparisons
            .iter()
            .map(|(_, comparison)| comparison.outcome()),
    ) {
        Conclusion::NoRegression => Code::Done.into(),
        Conclusion::Regression => Code::Failed.into(),
        Conclusion::NothingJudged => Code::NoAnswer.into(),
        Conclusion::TooImprecise => Code::Unsure.into(),
    }
}
