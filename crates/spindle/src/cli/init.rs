//! `spindle init`: five questions, each with what this machine has and a default; then an experiment file. Answers come
//! from flags, from a terminal or from a pipe; a line that is empty or missing takes the default, which is never a
//! device.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use spindle_engines::sql::{ServerKind, ServerRequest, server};
use spindle_experiment::{Changes, DatabaseEngine, Experiment};
use spindle_layout::file_system;
use spindle_layout::guard::{EmptyDevice, Guard, Want, empty_devices};
use spindle_layout::tool::Tools;
use spindle_text::quantity::{about_time, parse_duration_ms, size, size_free};
use spindle_text::word::Word;

use super::ask::save;
use super::ending::{print_for_people, wrong_command_line, wrong_experiment};
use crate::ask::command_line::with_command_line;
use crate::ask::engines::{engine_of, has_processes};
use crate::ask::error::AskError;
use crate::ask::interview::{
    Answers, CandidatePlace, Choice, DIRECTORIES, MachineOffer, comparable, times, workloads,
};
use crate::ask::question::{PlaceId, check_apart, check_path};
use crate::ask::workloads::ReadyWorkload;
use crate::{plan, say};
use spindle_run::reckoning::file_system_of;
use spindle_system::{SystemTree, mounts};

/// File systems that databases are put on, apart from those that Spindle makes.
const OTHER_FILE_SYSTEMS: [&str; 5] = ["f2fs", "zfs", "bcachefs", "nfs", "nfs4"];
/// Where programs that make file systems are.
const MKFS: [&str; 3] = ["/usr/sbin/mkfs.xfs", "/sbin/mkfs.xfs", "/usr/bin/mkfs.xfs"];
/// Other file systems are offered from this much free room on.
const ROOM_MIN_BYTES: u64 = 1 << 30;
/// Devices are offered from this size on.
const DEVICE_MIN_BYTES: u64 = 1 << 30;
/// And no more than these.
const PLACES_MAX: usize = 8;

pub(super) const INIT_HELP: &str = "Examples:
  spindle init
  spindle init mine.toml --engine postgres --compare directories \\
      --where /srv/pg --where /mnt/nvme --workload tpcb --time 1h
  yes '' | spindle init        every default

Then: spindle plan experiment.toml; spindle run experiment.toml";

#[derive(Args)]
pub(super) struct Init {
    /// The file to write, which must not be there yet.
    #[arg(default_value = "experiment.toml")]
    file: PathBuf,
    /// The database: kernel (embedded), sqlite, postgres, mariadb.
    #[arg(long)]
    engine: Option<String>,
    /// What to compare, by its word in the question.
    #[arg(long, value_name = "WORD")]
    compare: Option<String>,
    /// Directories for the files, or empty devices; may be given several times.
    #[arg(long = "where", value_name = "PLACE")]
    places: Vec<String>,
    /// What clients do.
    #[arg(long, value_name = "WORD")]
    workload: Option<String>,
    /// How long a run may take.
    #[arg(long)]
    time: Option<String>,
}

pub(super) fn carry_out(asked: &Init) -> ExitCode {
    match written(asked) {
        Ok(code) => code,
        Err(error) => wrong_command_line(&error.to_string()),
    }
}

fn written(asked: &Init) -> Result<ExitCode, AskError> {
    let name = asked.file.file_stem().and_then(|stem| stem.to_str());
    let name = name.ok_or_else(|| AskError::NamesNoFile(asked.file.clone()))?;
    if asked.file.exists() {
        return Err(AskError::AlreadyThere(asked.file.clone()));
    }
    let machine = machine();
    let answers = answers(asked, &machine)?;
    let mut cases = 2;
    let (text, experiment) = loop {
        let draft = answers.draft(name, &machine, cases)?;
        let command = format!("spindle init {}", asked.file.display());
        let (text, written_for) =
            with_command_line(&draft, |place| answers.argument_of(place), command);
        let changes = Changes {
            written_for: Some(&written_for),
            ..Changes::default()
        };
        let read = Experiment::from_text(&asked.file, &text, changes, true);
        let experiment = match read {
            Ok(experiment) => experiment,
            Err(error) => return Ok(wrong_experiment(&error)),
        };
        match experiment.candidates().count() {
            found if found == cases => break (text, experiment),
            found => cases = found,
        }
    };
    save(&asked.file, &text)?;
    let file = asked.file.display();
    let look = plan::look(&experiment, Path::new(".")).map_err(AskError::NoCurrentDirectory)?;
    if let Some(refusal) = look.reckoning.refusal() {
        return Err(AskError::TooLittle {
            file: asked.file.clone(),
            refusal,
        });
    }
    let (rounds, ms) = look.reckoning.most();
    if !look.can_be_answered {
        say::note(&format!(
            "note: half of the candidates or more cannot be measured on this machine as it is; `spindle plan {file}` says why"
        ));
    }
    let formatted = answers.formatted(&machine).map(|told| format!("{told}\n"));
    let told = format!(
        "{file} is written: {cases} candidates, up to {rounds} rounds, about {} in all.\n{}  spindle plan {file}    what it would take\n  \
         spindle run {file}     the answer\n",
        about_time(ms),
        formatted.unwrap_or_default()
    );
    Ok(print_for_people(&told))
}

/// Asks what no flag says.
fn answers(asked: &Init, machine: &MachineOffer) -> Result<Answers, AskError> {
    let mut input = Input::new();
    let choices: Vec<Choice> = machine
        .engines
        .iter()
        .map(|(word, text)| choice(word, text))
        .collect();
    let given = asked.engine.as_deref();
    let engine = input.ask("1/5 Which database?", &choices, given, |word| {
        known_engine(word).map(|_| word.to_owned())
    })?;
    let engine = known_engine(&engine)?;
    let known = |choices: Vec<Choice>| move |word: &str| one_of(&choices, word);
    let choices = comparable(engine, machine);
    let compare = input.ask(
        "2/5 What is to be compared?",
        &choices,
        asked.compare.as_deref(),
        known(choices.clone()),
    )?;
    let places = match asked.places.is_empty() {
        true => input.ask_places(&compare, machine)?,
        false => {
            let places = asked
                .places
                .iter()
                .map(|place| checked_place(place, machine));
            places.collect::<Result<Vec<String>, AskError>>()?
        }
    };
    let looked_at = places.iter().filter_map(|place| {
        let found = std::fs::metadata(place).ok()?;
        Some((PlaceId::of(&found), place))
    });
    check_apart(&looked_at.collect::<Vec<_>>())?;
    let choices = workloads();
    let workload = input.ask(
        "4/5 Under which workload?",
        &choices,
        asked.workload.as_deref(),
        known(choices.clone()),
    )?;
    let workload = ReadyWorkload::of_word(&workload).expect("it is one of the choices");
    let time = input.ask(
        "5/5 How long may it take? (any time, such as 20m)",
        &times(),
        asked.time.as_deref(),
        |word| {
            let time_ms = parse_duration_ms(word).filter(|ms| (60_000..=864_000_000).contains(ms));
            time_ms
                .map(|_| word.to_owned())
                .ok_or_else(|| AskError::NotATime(word.to_owned()))
        },
    )?;
    Ok(Answers {
        engine,
        compare,
        places,
        workload,
        time_ms: parse_duration_ms(&time).unwrap_or_default(),
    })
}

fn known_engine(word: &str) -> Result<DatabaseEngine, AskError> {
    engine_of(word).map_err(|allowed| AskError::NoEngine {
        word: word.to_owned(),
        allowed,
    })
}

fn choice(word: &str, text: &str) -> Choice {
    Choice {
        word: word.to_owned(),
        text: text.to_owned(),
    }
}

fn one_of(choices: &[Choice], word: &str) -> Result<String, AskError> {
    match choices.iter().any(|choice| choice.word == word) {
        true => Ok(word.to_owned()),
        false => Err(AskError::NotAmong {
            word: word.to_owned(),
            words: choices.iter().map(|choice| choice.word.clone()).collect(),
        }),
    }
}

/// Standard input: a person, or a pipe.
struct Input {
    is_person: bool,
}

impl Input {
    fn new() -> Input {
        Input {
            is_person: std::io::stdin().is_terminal(),
        }
    }

    /// One line; empty at the end of the input.
    fn line(&self) -> Result<String, AskError> {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(AskError::Input)?;
        Ok(line.trim().to_owned())
    }

    /// An answer: the one `given`, or that to a question. A person who errs is asked again.
    fn ask(
        &mut self,
        question: &str,
        choices: &[Choice],
        given: Option<&str>,
        check: impl Fn(&str) -> Result<String, AskError>,
    ) -> Result<String, AskError> {
        if let Some(given) = given {
            return check(given);
        }
        let first = choices.first().map(|choice| choice.word.clone());
        show(question, choices, first.as_slice());
        loop {
            let line = self.line()?;
            let number = line
                .parse::<usize>()
                .ok()
                .and_then(|number| choices.get(number.checked_sub(1)?));
            let word = match (line.as_str(), number) {
                ("", _) => &choices[0].word,
                (_, Some(choice)) => &choice.word,
                (line, None) => line,
            };
            match check(word) {
                Ok(answer) => return Ok(answer),
                Err(error) if self.is_person => say::note(&error.to_string()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The third question: one directory, or several.
    fn ask_places(
        &mut self,
        compare: &str,
        machine: &MachineOffer,
    ) -> Result<Vec<String>, AskError> {
        let all = machine.places.iter().chain(&machine.devices);
        let choices: Vec<Choice> = all.map(|place| choice(&place.path, &place.text)).collect();
        let is_several = compare == DIRECTORIES;
        let question = match is_several {
            true => "3/5 Where? Two places or more, with commas between them",
            false => "3/5 Where? A place, or several with commas between them",
        };
        let usable = machine
            .places
            .iter()
            .filter(|place| place.has_room() && checked_place(&place.path, machine).is_ok());
        let default = usable.take(if is_several { 2 } else { 1 });
        let default: Vec<String> = default.map(|place| place.path.clone()).collect();
        show(question, &choices, &default);
        if !rustix::process::geteuid().is_root() {
            say::note("  (as root, empty devices are listed, too)");
        }
        loop {
            let line = self.line()?;
            let parts = line
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty());
            let of_part = |part: &str| {
                let number = part.parse::<usize>().ok();
                let place = number.and_then(|number| choices.get(number.checked_sub(1)?));
                place.map_or_else(|| part.to_owned(), |choice| choice.word.clone())
            };
            let places: Vec<String> = parts.map(of_part).collect();
            let is_default = places.is_empty();
            let places = if is_default { default.clone() } else { places };
            let checked = places.iter().map(|place| checked_place(place, machine));
            let error = match checked.collect::<Result<Vec<String>, AskError>>() {
                Err(error) => error,
                Ok(places) if places.is_empty() => {
                    let most = machine.places.iter().map(|place| place.free_bytes).max();
                    AskError::TooLittleRoom(most.unwrap_or(0))
                }
                Ok(places) if is_several && is_default && places.len() < 2 => {
                    AskError::NoSecondPlace
                }
                Ok(places) if is_several && places.len() < 2 => AskError::OneAnswer,
                Ok(places) => return Ok(places),
            };
            match self.is_person {
                true => say::note(&error.to_string()),
                false => return Err(error),
            }
        }
    }
}

/// A directory as it is, or a device by the name under which it is on offer.
fn checked_place(place: &str, machine: &MachineOffer) -> Result<String, AskError> {
    let path = Path::new(place);
    let found = std::fs::metadata(path).map_err(|source| AskError::NotThere {
        path: place.to_owned(),
        source,
    })?;
    if found.is_dir() {
        return check_path(place).map(|_| place.to_owned());
    }
    if !found.file_type().is_block_device() {
        return Err(AskError::NotADirectory(place.to_owned()));
    }
    let real = |path: &Path| path.canonicalize().ok();
    let mut devices = machine.devices.iter();
    if let Some(device) = devices.find(|device| real(Path::new(&device.path)) == real(path)) {
        return Ok(device.path.clone());
    }
    let want = Want {
        path,
        least_bytes: DEVICE_MIN_BYTES,
        erase: &[],
    };
    let looked = Guard::new(&SystemTree::default(), &Tools::new()).look(&want);
    let why = match looked {
        Err(refusal) => refusal.to_string(),
        Ok(_) => "it was not there, or not empty, a moment ago".to_owned(),
    };
    Err(AskError::NotOffered {
        place: place.to_owned(),
        why,
    })
}

/// A question with its choices; those of `default` are taken when nothing is answered.
fn show(question: &str, choices: &[Choice], default: &[String]) {
    say::note(question);
    let width = choices
        .iter()
        .map(|choice| choice.word.chars().count())
        .max()
        .unwrap_or(0);
    for (index, Choice { word, text }) in choices.iter().enumerate() {
        let default = match default.contains(word) {
            true => "  [default]",
            false => "",
        };
        say::note(&format!("  {}  {word:width$}  {text}{default}", index + 1));
    }
}

/// Looks at what this machine has.
fn machine() -> MachineOffer {
    let mut engines = vec![("kernel", "the embedded database, built in".to_owned())];
    for (word, kind) in ServerKind::ALLOWED {
        let request = ServerRequest {
            settings: BTreeMap::new(),
            bin_dir: None,
            buffer_cache_bytes: 16 << 20,
            data_bytes: 256 << 20,
            clients: 8,
            io: None,
            database: None,
        };
        let found = server(*kind).examine(&request);
        let mut text = found.map_or("not found here".to_owned(), |found| found.version);
        if !has_processes(DatabaseEngine::Server(*kind)) {
            text.push_str(", built in");
        }
        engines.push((word, text));
    }
    let is_root = rustix::process::geteuid().is_root();
    MachineOffer {
        engines,
        places: places(),
        devices: devices(),
        can_make_file_systems: is_root && MKFS.iter().any(|path| Path::new(path).exists()),
    }
}

fn is_for_databases(type_name: &str) -> bool {
    file_system::kind(type_name).is_some() || OTHER_FILE_SYSTEMS.contains(&type_name)
}

/// The current directory, and other file systems with room.
fn places() -> Vec<CandidatePlace> {
    let mut places: Vec<CandidatePlace> = Vec::new();
    let mut seen = Vec::new();
    let mounts = mounts::readable_mounts(&SystemTree::default());
    let others = mounts.iter().filter(|mount| {
        let is_writable = mount.options.split(',').any(|option| option == "rw");
        is_writable && is_for_databases(&mount.kind) && mount.mount_point.is_dir()
    });
    let here = std::iter::once(PathBuf::from("."));
    for path in here.chain(others.map(|mount| mount.mount_point.clone())) {
        let Some(found) = file_system_of(&path) else {
            continue;
        };
        let device = (found.device_major, found.device_minor);
        let is_here = places.is_empty();
        if seen.contains(&device)
            || places.len() >= PLACES_MAX
            || (!is_here && found.free_bytes < ROOM_MIN_BYTES)
        {
            continue;
        }
        seen.push(device);
        places.push(CandidatePlace {
            path: path.display().to_string(),
            text: format!(
                "{} on {}, {} free",
                found.type_name,
                found.source,
                size_free(found.free_bytes)
            ),
            free_bytes: found.free_bytes,
        });
    }
    places
}

/// Unused, empty devices.
fn devices() -> Vec<CandidatePlace> {
    let empty = empty_devices(&SystemTree::default(), DEVICE_MIN_BYTES);
    let devices = empty.into_iter().take(PLACES_MAX);
    let place = |device: EmptyDevice| CandidatePlace {
        path: device.path.display().to_string(),
        text: format!(
            "{}, an empty device of {}, formatted by the run",
            device.name,
            size(device.size_bytes)
        ),
        free_bytes: device.size_bytes,
    };
    devices.map(place).collect()
}
