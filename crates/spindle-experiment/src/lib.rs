//! The experiment file: one TOML file that says which database, which workload, which layouts and which plan.
//!
//! [`Experiment::read`] gives a complete, checked [`Experiment`] (everything left out has its default) or all its
//! mistakes as an [`ExperimentError`] that shows their places. Nothing here looks at devices or starts anything. The
//! experiment is kept as JSON in the journal of its run. Every key is described in `docs/experiment-file.md`.
//!
//! `document` turns TOML and `--set` arguments into one tree with places, `reader` takes typed settings out of it, and
//! each section has its own file in which a setting is one line. This file reads them all, in their order, into what
//! `experiment` holds; `sections` knows the keys of each.

// Tests make files as they like.
#![cfg_attr(test, allow(clippy::disallowed_methods))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![forbid(unsafe_code)]

mod access_path;
mod aliases;
mod arrivals;
mod changes;
mod command_line;
mod database;
mod document;
mod doubts;
mod error;
mod experiment;
mod file;
mod kept;
mod kernel;
mod keys;
mod layout;
mod left_out;
mod limit;
mod load_machine;
mod matrix;
mod memory;
mod nearest;
mod of_workload;
mod outside;
mod plan;
mod reader;
#[cfg(test)]
mod reference;
mod restore;
mod sections;
mod server;
mod shown;
#[cfg(test)]
mod slips;
#[cfg(test)]
mod tests;
mod vary;
mod workload;

use std::path::Path;

use spindle_layout::LayoutSpec;
use spindle_layout::plan::mistakes_of;

pub use access_path::{AccessPath, Caching, Method};
pub use aliases::aliases;
pub use arrivals::{Arrivals, Promised, RateLevels, Spacing};
pub use changes::Changes;
pub use command_line::CommandLine;
pub use database::{
    Commit, Database, DatabaseEngine, DatabaseMemory, DatabaseSpec, KernelSpec, RemoteSpec,
    ServerSpec, TornBlocks, WriteSync,
};
pub use document::{NAME_LENGTH_MAX, is_value};
pub use error::ExperimentError;
pub use experiment::Experiment;
pub use layout::specs_of;
pub use layout::{
    DiskGroupSpec, Layout, MadeLayout, PlacedOn, PlacementSpec, Price, Redundancy, Striping,
    StripingByKind,
};
pub use left_out::TooFewLeft;
pub use limit::{Delay, Rates, limited_by};
pub use load_machine::{LoadMachine, deal};
pub use matrix::{Factor, FactorMatrix, LeftOut, MatrixCell, listed};
pub use plan::{Auto, Plan, RUNS_TO_ESTIMATE, Repeats};
pub use restore::{PutBack, RestoreBy};
pub use shown::without_passwords;
pub use spindle_layout::Verify;
pub use vary::parts;
pub use workload::{Transactions, WorkloadChoice, WorkloadKind};

use database::{Inherited, SharedDatabase};
use document::Document;
use doubts::anywhere;
use layout::SAY_WHAT_IS_MADE;
use left_out::Refused;
use reader::Reader;

use spindle_text::plain::is_invisible;
use spindle_text::section::{Key, Keys, Section};
use spindle_text::settings;

/// More layouts than this are a slip of whatever wrote the file.
const LAYOUTS_MAX: usize = 1000;

impl Experiment {
    /// Reads the experiment file at `path`, the `--set` arguments `sets` (each `key=value`) applied in their order.
    ///
    /// # Errors
    /// The mistakes found; also a file that cannot be read and a directory that does not exist.
    pub fn read(path: &Path, sets: &[String]) -> Result<Experiment, ExperimentError> {
        let changes = Changes {
            sets,
            ..Changes::default()
        };
        Experiment::read_changed(path, changes)
    }

    /// Reads the experiment file at `path` with all that the command line changes of it.
    ///
    /// # Errors
    /// Those of [`Experiment::read`].
    pub fn read_changed(path: &Path, changes: Changes<'_>) -> Result<Experiment, ExperimentError> {
        let text = file::read(path)?;
        Experiment::from_text(path, &text, changes, true)
    }

    /// Reads the experiment in `text`, which people know as the file `path`, with all that the command line changes.
    /// `must_exist` says whether directories are looked for.
    ///
    /// # Errors
    /// The mistakes found.
    pub fn from_text(
        path: &Path,
        text: &str,
        changes: Changes<'_>,
        must_exist: bool,
    ) -> Result<Experiment, ExperimentError> {
        let name = path.display().to_string();
        let mut document = Document::parse(&name, text, changes.sets, changes.written_for)?;
        document.directories_must_exist = must_exist;
        document.home_of = sections::home_of;
        changes::make(&mut document, changes, &sections::known());
        Experiment::from_document(&document, path)
    }

    /// Reads the experiment in `text`, which people know as `name`. Directories are not looked for.
    ///
    /// # Errors
    /// The mistakes found.
    pub fn parse(name: &str, text: &str, sets: &[String]) -> Result<Experiment, ExperimentError> {
        let changes = Changes {
            sets,
            ..Changes::default()
        };
        Experiment::from_text(Path::new(name), text, changes, false)
    }

    fn from_document(document: &Document, path: &Path) -> Result<Experiment, ExperimentError> {
        let experiment = Experiment::read_sections(document, path);
        document.mistakes().map_or(Ok(experiment), Err)
    }

    /// Reads every section, with defaults for what has a mistake.
    fn read_sections(document: &Document, path: &Path) -> Experiment {
        let mut root = Reader::root(document);
        let name = read_name(&mut root, path);
        note_sections(&mut root);
        let TopSettings { seed } = Section::read(&mut root);
        let mut database_reader = root.section("database");
        let mut workload_reader = root.section("workload");
        let mut plan_reader = root.section("plan");
        let layout_readers = root.sections("layout");
        let load_readers = root.sections("load");
        // What stands there has been made into layouts.
        root.section("vary");
        root.finish();

        let plan = Plan::read(&mut plan_reader);
        let inherited = Inherited {
            is_remote: layout_readers.iter().any(Reader::names_a_server),
            of_workload: workload::data_of(&workload_reader),
            ..Inherited::default()
        };
        let database = Database::read(&mut database_reader, inherited);
        let workload = WorkloadChoice::read(&mut workload_reader, &database);
        if workload.transactions.are_counted() {
            Plan::check_counted(&plan_reader, workload.kind());
        }
        let inherited = Inherited {
            memory_bytes: database.spec.memory().map(|memory| memory.memory_bytes),
            ..inherited
        };
        let shared = SharedDatabase {
            database: &database,
            table: database_reader.table(),
            inherited,
        };
        let (readers, mut layouts, refused) =
            read_layouts(document, &root, layout_readers, &shared);
        check_remote(&root, &layouts);
        plan.restore.check(&plan_reader, &readers, &layouts);
        if layouts.iter().any(|layout| layout.address().is_some()) {
            Plan::check_foreign(&plan_reader);
        }
        plan.check_interleaved(&plan_reader, &workload, &layouts);
        let load = load_machine::read(&root, load_readers, (&workload, &plan, &layouts[..]));
        if plan.noise_check {
            layouts.extend(once_more(&layouts));
        }
        Experiment {
            name,
            seed,
            database,
            workload,
            plan,
            layouts,
            load,
            matrix: refused.out_of(document.matrix.as_ref()),
            is_quick: document.is_quick,
        }
    }
}

settings! {
    /// What is said at the top of the file.
    pub(crate) struct TopSettings {
        /// Where everything random starts from: data, transactions, the order of trials.
        seed: u64 = number("seed", 1, 0..=u64::MAX),
    }
}

/// The other keys at the top, for the reference: the name, and the sections.
pub(crate) fn note_sections<K: Keys>(keys: &mut K) {
    let below = "see below";
    for (name, default, allowed, says) in [
        (
            "name",
            "the file's name without `.toml`",
            "1 to 100 visible characters, no `/`, no `.` at its start, no space first or last",
            "what the experiment is called; part of the run directory's name",
        ),
        (
            "database",
            below,
            "a table",
            "the database, the same for all layouts unless one of them says otherwise",
        ),
        ("workload", below, "a table", "what the clients do"),
        ("plan", below, "a table", "how long, how often"),
        (
            "layout",
            "none: at least one",
            "`[[layout]]`, once for each",
            "the candidates",
        ),
        (
            "load",
            "none",
            "`[[load]]`, once for each",
            "machines that the clients run on, see below",
        ),
        (
            "vary",
            "nothing",
            "a table of lists",
            "settings with several values each, see below",
        ),
    ] {
        keys.noted(Key { name, says }, default, allowed);
    }
}

fn read_name(root: &mut Reader<'_>, path: &Path) -> String {
    let Some(name) = root.name("name") else {
        return name_from(path);
    };
    if name.starts_with('.') || name.contains('/') {
        root.refuse(
            &["name"],
            format!("name is {name:?}"),
            "a name begins without '.' and holds no '/'",
            "the name becomes part of the run directory's name",
        );
    }
    name.to_owned()
}

/// Reads the layouts, and says which of a matrix cannot be used. The first are what the others have read.
fn read_layouts<'a>(
    document: &'a Document,
    root: &Reader<'_>,
    mut readers: Vec<Reader<'a>>,
    shared: &SharedDatabase<'_>,
) -> (Vec<Reader<'a>>, Vec<Layout>, Refused) {
    if readers.is_empty() {
        root.refuse(
            &["layout"],
            "there is no layout to run on",
            "at least one [[layout]] is needed",
            "add, for example:\n[[layout]]\nname = \"direct, async\"\nio = { caching = \"direct\", method = \"async\" }",
        );
    }
    if readers.len() > LAYOUTS_MAX {
        root.refuse(
            &["layout"],
            format!("there are {} layouts", readers.len()),
            format!("allowed: up to {LAYOUTS_MAX}"),
            "every layout takes part in every round: compare fewer",
        );
        readers.truncate(LAYOUTS_MAX);
    }
    let mut layouts: Vec<Layout> = Vec::new();
    let mut done = Vec::new();
    let mut refused = Refused::default();
    for mut reader in readers {
        let known = document.count_of_mistakes();
        let layout = Layout::read(&mut reader, shared);
        if refused.take(document, reader.given_name(), known) {
            continue;
        }
        let mut others = layouts.iter();
        if !layout.name.is_empty() && others.any(|other| look_alike(&other.name, &layout.name)) {
            reader.refuse(
                &["name"],
                format!("two layouts are called {:?}", layout.name),
                "this name is taken by a layout above",
                "give every layout its own name: tables and verdicts use it",
            );
        }
        layouts.push(layout);
        done.push(reader);
    }
    let stays = refused.spread(document, &layouts);
    keep(&mut layouts, &stays);
    keep(&mut done, &stays);
    for index in 0..layouts.len() {
        Layout::check_placement(index, &done, &layouts);
    }
    check_made(&done, &layouts);
    let is_nothing = layouts.iter().all(|layout| !layout.candidate) && !layouts.is_empty();
    if refused.count() == 0 && is_nothing {
        let nothing = root.conflict(
            &["layout"],
            "there is no layout to measure",
            "every layout says candidate = false",
            "leave candidate out of the layouts that are to be compared",
        );
        root.note(nothing.given(done.iter().flat_map(|reader| reader.keys(["candidate"]))));
    }
    (done, layouts, refused)
}

/// Keeps those items that stay.
fn keep<T>(items: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    items.retain(|_| stays.next() == Some(&true));
}

/// Names that differ in the number of spaces only cannot be told apart on a page.
fn look_alike(one: &str, other: &str) -> bool {
    one.split(' ')
        .filter(|word| !word.is_empty())
        .eq(other.split(' ').filter(|word| !word.is_empty()))
}

/// Refuses what cannot be made of the devices that are named, whatever devices they are.
fn check_made(readers: &[Reader<'_>], layouts: &[Layout]) {
    let all: Vec<usize> = (0..layouts.len()).collect();
    // Without a current directory the run says so.
    let Ok(made) = specs_of(layouts, &all) else {
        return;
    };
    let specs: Vec<LayoutSpec> = made.iter().map(|(spec, _)| spec.clone()).collect();
    for (index, obstacle) in mistakes_of(&specs) {
        let layout = made[index].1[0];
        let reader = &readers[layout];
        let refused = reader.conflict(
            &["devices", "volume", "share"],
            format!("layout {:?} cannot be made", layouts[layout].name),
            obstacle.to_string(),
            "docs/experiment-file.md says what devices, volume and share take",
        );
        reader.note(refused.given(reader.keys(SAY_WHAT_IS_MADE)));
    }
}

/// Spindle's own servers begin each trial with empty caches and no other users; others do not.
fn check_remote(root: &Reader<'_>, layouts: &[Layout]) {
    let is_remote = |layout: &&Layout| layout.address().is_some();
    let (remote, own): (Vec<_>, Vec<_>) = layouts.iter().partition(is_remote);
    if let (Some(remote), Some(own)) = (remote.first(), own.first()) {
        let refused = root.conflict(
            &["layout"],
            format!(
                "layout {:?} has a url, and layout {:?} has none",
                remote.name, own.name
            ),
            "an existing server and one that Spindle starts are not on equal terms: the latter is started again before \
             each trial, with empty caches",
            "give every layout a url, or none",
        );
        root.note(refused.given([anywhere("url")]));
    }
}

/// The first layout that is measured, under another name.
fn once_more(layouts: &[Layout]) -> Option<Layout> {
    let baseline = layouts.iter().find(|layout| layout.candidate)?;
    let mut name = baseline.name.clone();
    while layouts.iter().any(|layout| layout.name == name) {
        name.push_str(" (again)");
    }
    Some(Layout {
        name,
        repeats: Some(baseline.name.clone()),
        ..baseline.clone()
    })
}

/// The name of an experiment that has none: its file's.
fn name_from(path: &Path) -> String {
    let stem = path
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let visible = stem.replace(is_invisible, "_");
    let name: String = visible
        .trim()
        .trim_start_matches('.')
        .chars()
        .take(NAME_LENGTH_MAX)
        .collect();
    match name.trim() {
        "" => "experiment".to_owned(),
        name => name.to_owned(),
    }
}
