//! `spindle try`: asks without a file. Writes the experiment, reads it as any other, says what it will take, runs it,
//! and answers in a dozen lines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use spindle_text::quantity::about_time;

use super::ending::{wrong_command_line, wrong_experiment};
use super::number::{number_or, size, time};
use super::options::{Show, Watch};
use super::run;
use crate::ask::command_line::with_command_line;
use crate::ask::engines::engine_of;
use crate::ask::error::AskError;
use crate::ask::question::{Question, ROUNDS_MAX, SIZE_BYTES, found_percent};
use crate::ask::workloads::{READY, ReadyWorkload};
use crate::{plan, say};
use spindle_experiment::{Changes, DatabaseEngine, Experiment};
use spindle_run::refusals::Refusals;
use spindle_text::files;
use spindle_text::paragraph::wrapped;
use spindle_text::plain::is_harmful;

/// What people read as the name of the file where there is none.
const NO_FILE: &str = "try.toml";
/// More candidates than this are not named one by one before a run.
const NAMES_MAX: usize = 6;
/// More time than the usual one, which settles smaller differences.
const MORE_TIME_MS: u64 = 600_000;

pub(super) const TRY_HELP: &str = "Examples:
  spindle try /mnt/nvme /srv/data                    which directory is faster?
  spindle try . --vary io.method=sync,slaves,async   which way of doing I/O?
  spindle try . --engine sqlite --vary settings.journal_mode=wal,delete \\
      --vary settings.synchronous=full,normal        what does each setting do?
  spindle try . --engine postgres --vary settings.full_page_writes=on,off --time 5m
  spindle try /a /b --engine postgres --load schema.sql --script buy.sql@1 --script look.sql@9 -D scale=10

Files of the databases are made in the directories and removed again; nothing else there is touched.";

#[derive(Args)]
pub(super) struct Try {
    /// Directories to compare, one or more.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<String>,
    /// The database: kernel (embedded), sqlite, postgres, mariadb.
    #[arg(long, default_value = "kernel", value_parser = engine_of)]
    engine: DatabaseEngine,
    /// Compares these values, too; several make a matrix, and the effect of each is reported.
    #[arg(long, value_name = "KEY=A,B,...")]
    vary: Vec<String>,
    /// What clients do.
    #[arg(long, default_value = ReadyWorkload::by_default().kind.as_str(), value_parser = workloads())]
    workload: &'static ReadyWorkload,
    /// Your own SQL: a file in the language of pgbench, with its weight; may be given several times.
    #[arg(
        long = "script",
        value_name = "FILE[@WEIGHT]",
        conflicts_with = "workload"
    )]
    scripts: Vec<String>,
    /// SQL or a dump that makes the tables of the scripts; may be given several times.
    #[arg(long, value_name = "FILE", requires = "scripts")]
    load: Vec<String>,
    /// Defines a variable of the scripts, as pgbench's -D; may be given several times.
    #[arg(
        short = 'D',
        long = "define",
        value_name = "NAME=VALUE",
        requires = "scripts",
        value_parser = definition
    )]
    defines: Vec<(String, String)>,
    /// About how long it may take.
    #[arg(long, default_value = "2m", value_parser = time)]
    pub(super) time: u64,
    /// Loaded data [default: 256MiB].
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// Sessions that work at the same time.
    #[arg(long, default_value_t = 8, value_parser = clients())]
    clients: u32,
    /// Overrides a setting; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// All columns, all verdicts, all findings.
    #[arg(long, conflicts_with = "json")]
    wide: bool,
    /// Keeps the experiment in this file, which must not be there yet.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// The run directory [default: runs/try-TIME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    watch: Watch,
}

/// The name and the value of a variable. Which names there are, the experiment knows.
fn definition(text: &str) -> Result<(String, String), AskError> {
    let (name, value) = text.split_once('=').ok_or(AskError::NotDefined)?;
    match name.is_empty() || value.is_empty() || text.contains(is_harmful) {
        true => Err(AskError::NotDefined),
        false => Ok((name.to_owned(), value.to_owned())),
    }
}

fn clients() -> impl TypedValueParser<Value = u32> {
    number_or(
        1..=4096,
        "; several load levels: --set 'workload.clients=[1, 8]'",
    )
}

fn workloads() -> impl TypedValueParser<Value = &'static ReadyWorkload> {
    PossibleValuesParser::new(READY.iter().map(|ready| ready.kind.as_str()))
        .map(|word| ReadyWorkload::of_word(&word).expect("it is one of them"))
}

pub(super) fn carry_out(asked: Try) -> ExitCode {
    let question = Question {
        engine: asked.engine,
        paths: asked.paths,
        vary: asked.vary,
        workload: asked.workload,
        scripts: asked.scripts,
        load: asked.load,
        defines: asked.defines,
        clients: asked.clients,
        size_bytes: asked.size.unwrap_or(SIZE_BYTES),
        time_ms: asked.time,
        sets: asked.sets,
    };
    let wrong = |error: &AskError| wrong_command_line(&error.to_string());
    if let Err(error) = question.check_paths() {
        return wrong(&error);
    }
    let (text, experiment) = match written(&question) {
        Ok(written) => written,
        Err(Mistake::Told(error)) => return wrong(&error),
        Err(Mistake::Code(code)) => return code,
    };
    let mut saved = match asked.save.map(|path| Saved::write(path, &text)).transpose() {
        Ok(saved) => saved,
        Err(error) => return wrong(&error),
    };
    if !asked.show.quiet {
        foretell(&question, &experiment);
    }
    let show = Show {
        brief: !asked.wide,
        ..asked.show
    };
    let begun = || {
        if let Some(saved) = &mut saved {
            saved.is_kept = true;
        }
    };
    run::begin(experiment, asked.out, (&show, asked.watch.watch), begun)
}

/// The file that was asked for, which goes again unless the run begins.
struct Saved {
    path: PathBuf,
    is_kept: bool,
}

impl Saved {
    fn write(path: PathBuf, text: &str) -> Result<Saved, AskError> {
        save(&path, text)?;
        Ok(Saved {
            path,
            is_kept: false,
        })
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        if !self.is_kept {
            // It was made a moment ago; one that cannot be removed does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes a file that is not there yet. Where there is no room for it, nothing of it is left.
pub(super) fn save(path: &Path, text: &str) -> Result<(), AskError> {
    let not_written = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => AskError::AlreadyThere(path.to_owned()),
        _ => AskError::NotWritten {
            path: path.to_owned(),
            source,
        },
    };
    let mut file = files::create_new(path).map_err(not_written)?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // What cannot be removed either is told by the error of the write.
        let _ = std::fs::remove_file(path);
        not_written(error)
    })
}

enum Mistake {
    Told(AskError),
    Code(ExitCode),
}

/// The file and what it says. How long trials are depends on how many cases there are, so it is written until that is
/// known, three times at most.
fn written(question: &Question) -> Result<(String, Experiment), Mistake> {
    let mut cases = question.paths.len();
    let mut refused = None;
    let mut attempts = 0;
    loop {
        let text = question.draft(cases).map_err(Mistake::Told)?.text();
        let frame = question.frame(cases).map_err(Mistake::Told)?;
        let command = format!("spindle try {}", question.paths.join(" "));
        let (frame, written_for) =
            with_command_line(&frame, |place| question.argument_of(place), command);
        let changes = Changes {
            sets: &question.sets,
            vary: &question.vary,
            written_for: Some(&written_for),
            ..Changes::default()
        };
        let read = Experiment::from_text(Path::new(NO_FILE), &frame, changes, true);
        let mut experiment = read.map_err(|error| Mistake::Code(wrong_experiment(&error)))?;
        let refused = refused.get_or_insert_with(|| Refusals::of(&experiment));
        if let Some(mistakes) = refused.mistakes(&experiment) {
            return Err(Mistake::Told(AskError::Settings(mistakes)));
        }
        let left_out = experiment.leave_out(&refused.combinations(&experiment));
        left_out.map_err(|too_few| Mistake::Told(too_few.into()))?;
        let found = experiment.candidates().count() * experiment.workload.loads().len();
        attempts += 1;
        if found == cases || attempts == 3 {
            return Ok((text, experiment));
        }
        cases = found;
    }
}

/// Says at once what it will take, and what it cannot settle.
fn foretell(question: &Question, experiment: &Experiment) {
    if question.vary.is_empty()
        && let Some(shared) = question.shared_file_system()
    {
        say::note(&format!("note: {shared}"));
    }
    let candidates: Vec<&str> = experiment
        .candidates()
        .map(|layout| experiment.layouts[layout].name.as_str())
        .collect();
    if candidates.len() < 2 {
        say::note("note: only one candidate: figures, but no verdict");
    }
    let Ok(look) = plan::look(experiment, Path::new(".")) else {
        return;
    };
    let (rounds, ms) = look.reckoning.most();
    let time = about_time(ms);
    let over = match ms > question.time_ms + question.time_ms / 10 {
        true => format!(
            ", more than the {} asked for: a verdict needs at least three rounds",
            about_time(question.time_ms)
        ),
        false => String::new(),
    };
    let trial_s = experiment.plan.measure_ms as f64 / 1e3;
    let more = match rounds {
        _ if question.time_ms < MORE_TIME_MS => "; --time 10m settles smaller ones",
        rounds if rounds < ROUNDS_MAX => "; a longer --time settles smaller ones",
        _ => "",
    };
    let said = format!(
        "{} ({}): about {rounds} rounds of {trial_s} s in {time}{over}. On a calm machine differences below about {} % stay \
         open{more}.",
        spindle_report::sentences::counted(candidates.len(), "candidate"),
        named(&candidates),
        found_percent(rounds)
    );
    for said in std::iter::once(said).chain(plan::left_out(experiment)) {
        wrapped(&said, 80).iter().for_each(|line| say::note(line));
    }
}

/// The names of candidates; of many, the first and the last.
fn named(candidates: &[&str]) -> String {
    match candidates {
        [first, second, .., last] if candidates.len() > NAMES_MAX => {
            format!("{first}; {second}; ...; {last}")
        }
        all => all.join("; "),
    }
}
