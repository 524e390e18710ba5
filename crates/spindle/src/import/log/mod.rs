//! A server's log as a recording that is replayed: `lines` reads the file, `postgres`, `slow` and `general` read what
//! the servers write there, `wording` judges statements, `recorder` puts sessions together, and `told`
//! says what is covered. Logs are those of strangers: what cannot be read is skipped and
//! counted, and nothing of a statement that is left out is written or shown.

mod general;
mod lines;
mod moment;
mod postgres;
mod recorder;
mod slow;
#[cfg(test)]
mod tests;
mod told;
mod wording;

use std::io::{BufReader, Write as _};
use std::path::Path;

use spindle_text::files::{self, Directory};
use spindle_text::plain::one_line;
use spindle_workload::replay::recording;
use spindle_workload::sql::Dialect;

use super::error::ImportError;
use super::told::EXPERIMENT;
use super::{SIZE_BYTES, absolute, make_directory, not_written};
use crate::ask::draft::{Draft, DraftSection, quoted};
use lines::Lines;
use recorder::{FinishedRecording, Recorder};

/// What the recording is called.
pub const RECORDING: &str = "recording.jsonl";

/// The kinds of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// PostgreSQL's `csvlog`.
    Csv,
    /// PostgreSQL's `jsonlog`.
    Json,
    /// The slow query log of MariaDB and MySQL.
    Slow,
    /// Their general query log.
    General,
}

impl LogForm {
    fn dialect(self) -> Dialect {
        match self {
            LogForm::Csv | LogForm::Json => Dialect::Postgres,
            LogForm::Slow | LogForm::General => Dialect::MariaDb,
        }
    }

    /// What a server must be told to write such a log.
    fn remedy(self) -> &'static str {
        match self {
            LogForm::Csv => {
                "the server writes one with log_destination = 'csvlog', logging_collector = on and \
                 log_min_duration_statement = 0, in English (lc_messages = 'C')"
            }
            LogForm::Json => {
                "the server writes one with log_destination = 'jsonlog', logging_collector = on and \
                 log_min_duration_statement = 0, in English (lc_messages = 'C')"
            }
            LogForm::Slow => {
                "the server writes one with slow_query_log = on, log_output = FILE and long_query_time = 0"
            }
            LogForm::General => "the server writes one with general_log = on and log_output = FILE",
        }
    }
}

/// Which log, and where its recording goes.
#[derive(Debug)]
pub struct AskedLog<'a> {
    /// What it is.
    pub form: LogForm,
    /// The file.
    pub file: &'a Path,
    /// The database whose statements are taken; `None`: the one with most of them.
    pub database: Option<&'a str>,
    /// Files that load the data, for the experiment file.
    pub load: &'a [String],
    /// The directory to make.
    pub out: &'a Path,
}

/// Makes a recording of a log; what it covers, for people.
///
/// # Errors
/// Why there is none; nothing was written then.
pub fn log(asked: &AskedLog<'_>) -> Result<String, ImportError> {
    let path = asked.file.to_path_buf();
    let unread = |source: std::io::Error| ImportError::NotRead {
        path: path.clone(),
        source,
    };
    let file = files::open_named(asked.file).map_err(unread)?;
    let mut recorder = Recorder::new(asked.form.dialect(), asked.database);
    let mut lines = Lines::new(BufReader::with_capacity(1 << 20, file));
    let read = match asked.form {
        LogForm::Csv => postgres::read_csv(&mut lines, &mut recorder),
        LogForm::Json => postgres::read_json(&mut lines, &mut recorder),
        LogForm::Slow => slow::read(&mut lines, &mut recorder),
        LogForm::General => general::read(&mut lines, &mut recorder),
    };
    read.map_err(unread)?;
    let made = recorder
        .finish()
        .map_err(|reason| ImportError::NothingInLog {
            path: path.clone(),
            reason,
            remedy: asked.form.remedy(),
        })?;
    if made.bytes() > recording::BYTES_MAX {
        return Err(ImportError::RecordingTooLarge {
            path,
            bytes: made.bytes(),
            bytes_max: recording::BYTES_MAX,
        });
    }
    write(asked, &made)?;
    Ok(told::told(asked, &made))
}

fn write(asked: &AskedLog<'_>, made: &FinishedRecording) -> Result<(), ImportError> {
    let load: Vec<String> = asked
        .load
        .iter()
        .map(|file| absolute(file))
        .collect::<Result<_, _>>()?;
    let experiment = experiment(asked, made, &load);
    let directory = make_directory(asked.out)?;
    let written = write_recording(&directory, made);
    written.map_err(|error| not_written(RECORDING, asked.out, error))?;
    let written = directory.write(EXPERIMENT, &experiment);
    written.map_err(|error| not_written(EXPERIMENT, asked.out, error))
}

fn write_recording(directory: &Directory, made: &FinishedRecording) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(directory.create_new(RECORDING)?);
    made.write(&mut file)?;
    file.flush()
}

/// The experiment file: the recording, on a database that is made here.
fn experiment(asked: &AskedLog<'_>, made: &FinishedRecording, load: &[String]) -> String {
    let about = format!(
        "Which layout is the fastest for what the sessions in {} did? The recording has {} transactions.",
        asked.file.display(),
        made.head.transactions
    );
    let mut draft = Draft::new("replay", vec![one_line(&about).into_owned()]);
    let engine = recording::word_of(asked.form.dialect());
    draft.set(DraftSection::Database, "engine", quoted(engine), "");
    let mib = SIZE_BYTES >> 20;
    let size = quoted(&format!("{mib}MiB"));
    let why = "what load makes, about";
    draft.set(DraftSection::Database, "size", size, why);
    let cache = quoted(&format!("{}MiB", mib / 4));
    let why = "set what your server has, or its share of the data";
    draft.set(DraftSection::Database, "buffer_cache", cache, why);
    draft.set(DraftSection::Workload, "kind", quoted("replay"), "");
    draft.set(DraftSection::Workload, "recording", quoted(RECORDING), "");
    let why = "or \"ignored\": as fast as possible";
    draft.set(DraftSection::Workload, "times", quoted("kept"), why);
    draft.set(
        DraftSection::Workload,
        "speed",
        "1.0",
        "2.0: in half the time",
    );
    let why = match load.is_empty() {
        true => "name a dump here, of the data as they were when the log began",
        false => "",
    };
    let load: Vec<String> = load.iter().map(|file| quoted(file)).collect();
    let load = format!("[{}]", load.join(", "));
    draft.set(DraftSection::Workload, "load", load, why);
    let why = "sessions at once, as recorded";
    let clients = made.clients.to_string();
    draft.set(DraftSection::Workload, "clients", clients, why);
    draft.layout("here", ".");
    draft.text()
}
