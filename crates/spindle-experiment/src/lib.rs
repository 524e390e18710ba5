//! The experiment file: one TOML file that says which database, which workload, which layouts and which plan.
//!
//! [`Experiment::read`] gives a complete, checked [`Experiment`] (everything left out has its default) or all its
//! mistakes as an [`ExperimentError`] that shows their places. Nothing here looks at devices or starts anything. The
//! experiment is kept as JSON in the journal of its run. Every key is described in `docs/experiment-file.md`.
//!
//! `document` turns TOML and `--set` arguments into one tree with places, `reader` takes typed settings out of it, and
//! each section has its own file in which a setting is one line.

// Tests make files as they like.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod access_path;
mod aliases;
mod arrivals;
mod changes;
mod database;
mod document;
mod error;
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
mod plan;
mod reader;
#[cfg(test)]
mod reference;
mod restore;
mod server;
mod shown;
#[cfg(test)]
mod tests;
mod vary;
mod workload;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spindle_layout::LayoutSpec;
use spindle_layout::plan::mistakes_of;

pub use access_path::{AccessPath, Caching, Method};
pub use arrivals::{Arrivals, Promised, RateLevels, Spacing};
pub use changes::Changes;
pub use database::{
    Commit, Database, DatabaseMemory, DatabaseSpec, Engine, KernelSpec, RemoteSpec, ServerSpec,
    TornBlocks, WriteSync,
};
pub use document::is_value;
pub use error::ExperimentError;
pub use layout::specs_of;
pub use layout::{
    DiskGroup, Layout, Made, PlacedOn, Placement, Price, Redundancy, Striping, StripingByKind,
};
pub use left_out::TooFewLeft;
pub use limit::{Delay, Limit};
pub use load_machine::{LoadMachine, deal};
pub use matrix::{Cell, Factor, LeftOut, Matrix, listed};
pub use plan::{Auto, Plan};
pub use restore::{PutBack, RestoreBy};
pub use spindle_layout::Verify;
pub use vary::parts;
pub use workload::{Transactions, Workload, WorkloadKind};

use access_path::read_access_path;
use changes::Known;
use database::Inherited;
use document::{Document, Table};
use left_out::Refused;
use reader::{Reader, keys_asked_by};

use spindle_text::plain::is_invisible;

/// More layouts than this are a slip of whatever wrote the file.
const LAYOUTS_MAX: usize = 1000;

/// How people know the section of the database.
const DATABASE_SECTION: &str = "[database]";
/// How people know the section of a layout.
const LAYOUT_SECTION: &str = "[[layout]]";

/// A whole experiment, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// What it is called; part of the name of its run directory.
    pub name: String,
    /// Where everything random starts from: data, transactions, the order of trials.
    pub seed: u64,
    /// The database, before any layout's own settings; [`Experiment::spec`] tells which it is, for layouts may name a
    /// server that runs already.
    pub database: Database,
    /// What the clients do.
    pub workload: Workload,
    /// How the trials are run and judged.
    pub plan: Plan,
    /// The candidates, at least one, each with its own name.
    pub layouts: Vec<Layout>,
    /// Machines on which clients run; none: all run on this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadMachine>,
    /// What was varied, if the candidates are combinations of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
    /// Whether the plan was cut down to a first look.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_quick: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

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
        let mut document = Document::parse(&path.display().to_string(), text, changes.sets)?;
        document.directories_must_exist = must_exist;
        changes::make(&mut document, changes, &known())?;
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

    /// Numbers of the layouts that are measured, in order.
    pub fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        let layouts = self.layouts.iter().enumerate();
        layouts.filter_map(|(index, layout)| layout.candidate.then_some(index))
    }

    /// The database of a layout's cases: the shared settings with that layout's own in place.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn database_of(&self, layout: usize) -> &Database {
        &self.layouts[layout].database
    }

    /// Which database it is, as the first layout has it: in all of them it is of one kind, and has the same memory.
    pub fn spec(&self) -> &DatabaseSpec {
        &self.layouts[0].database.spec
    }

    /// What is done to put the database of a layout back before a trial.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn put_back(&self, layout: usize) -> PutBack {
        self.plan.restore.of(&self.layouts[layout])
    }

    /// The directory that a layout's redo lies in, if that is one of its own: it lies on no other layout, and belongs
    /// to this one.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn redo_apart(&self, layout: usize) -> Option<PathBuf> {
        let of = &self.layouts[layout];
        let is_placed = of.placement.redo.is_some();
        let path = of.database.spec.redo_path().filter(|_| !is_placed);
        path.map(Path::to_path_buf)
    }

    /// How much longer the database is to make the I/O of a layout's datafiles, and that of its redo: each by the
    /// layout that it lies on, unless that `is_slow` already. Nothing beneath a layout delays redo in a directory of
    /// its own.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn delays_of(
        &self,
        layout: usize,
        is_slow: impl Fn(usize) -> bool,
    ) -> (Option<Delay>, Option<Delay>) {
        let of = &self.layouts[layout];
        let on = |placed: &Option<PlacedOn>| {
            let beneath = match placed {
                Some(PlacedOn::Layout(name)) => {
                    let mut layouts = self.layouts.iter();
                    layouts.position(|other| other.name == *name)?
                }
                _ => layout,
            };
            self.layouts[beneath].delay.filter(|_| !is_slow(beneath))
        };
        let redo = match self.redo_apart(layout) {
            Some(_) => of.delay,
            None => on(&of.placement.redo),
        };
        (on(&of.placement.data), redo)
    }

    fn from_document(document: &Document, path: &Path) -> Result<Experiment, ExperimentError> {
        let experiment = Experiment::read_sections(document, path);
        match document.mistakes() {
            Some(mistakes) => Err(mistakes),
            None => Ok(experiment.expect("what has no mistake is read")),
        }
    }

    /// Reads every section, also when one before has a mistake; `None` when one could not be read.
    fn read_sections(document: &Document, path: &Path) -> Option<Experiment> {
        let mut root = Reader::root(document);
        let name = read_name(&mut root, path);
        let seed = root.number("seed", 1, 0..=u64::MAX);
        let mut database_reader = root.section("database");
        let mut workload_reader = root.section("workload");
        let mut plan_reader = root.section("plan");
        let layout_readers = root.sections("layout");
        let load_readers = root.sections("load");
        // What stands there has been made into layouts.
        root.section("vary");
        root.finish();
        if layout_readers.len() > LAYOUTS_MAX {
            root.refuse(
                &["layout"],
                format!("there are {} layouts", layout_readers.len()),
                format!("allowed: up to {LAYOUTS_MAX}"),
                "every layout takes part in every round: compare fewer",
            );
            return None;
        }

        let plan = document.noted(Plan::read(&mut plan_reader));
        let inherited = Inherited {
            memory_bytes: None,
            data: workload::data_of(&workload_reader),
            is_remote: layout_readers.iter().any(Reader::names_a_server),
        };
        let database = document.noted(Database::read(&mut database_reader, inherited))?;
        let workload = document.noted(Workload::read(&mut workload_reader, &database));
        if let Some(workload) = &workload
            && workload.transactions.are_counted()
        {
            document.noted(Plan::check_counted(&plan_reader, workload.kind()));
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
        let layouts = read_layouts(document, &root, layout_readers, &shared);
        let (mut layouts, refused) = document.noted(layouts)?;
        document.noted(check_remote(&root, &layouts));
        let (plan, workload) = (plan?, workload?);
        document.noted(plan.restore.check(&plan_reader, &layouts));
        if layouts.iter().any(|layout| layout.address().is_some()) {
            document.noted(Plan::check_foreign(&plan_reader));
        }
        document.noted(plan.check_interleaved(&plan_reader, &workload, &layouts));
        let beside = (&workload, &plan, &layouts[..]);
        let load = document.noted(load_machine::read(&root, load_readers, beside));
        if plan.noise_check {
            layouts.extend(once_more(&layouts));
        }
        Some(Experiment {
            name,
            seed,
            database,
            workload,
            plan,
            layouts,
            load: load?,
            matrix: refused.out_of(document.matrix.as_ref()),
            is_quick: document.is_quick,
        })
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

/// The database section of the experiment, for layouts to change.
struct SharedDatabase<'a> {
    /// As it was read.
    database: &'a Database,
    /// As it is written.
    table: &'a Table,
    /// What a layout's own does not say itself.
    inherited: Inherited,
}

fn read_layouts(
    document: &Document,
    root: &Reader<'_>,
    readers: Vec<Reader<'_>>,
    shared: &SharedDatabase<'_>,
) -> Result<(Vec<Layout>, Refused), ExperimentError> {
    if readers.is_empty() {
        return Err(root.conflict(
            &["layout"],
            "there is no layout to run on",
            "at least one [[layout]] is needed",
            "add, for example:\n[[layout]]\nname = \"direct, async\"\nio = { caching = \"direct\", method = \"async\" }",
        ));
    }
    let count = readers.len();
    let mut layouts: Vec<Layout> = Vec::new();
    let mut done = Vec::new();
    let mut refused = Refused::default();
    for mut reader in readers {
        let known = document.count_of_mistakes();
        let read = document.noted(Layout::read(&mut reader, shared));
        if refused.take(document, reader.given_name(), known) {
            continue;
        }
        let Some(layout) = read else {
            continue;
        };
        if layouts
            .iter()
            .any(|other| look_alike(&other.name, &layout.name))
        {
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
    let is_complete = layouts.len() + refused.count() == count;
    let stays = refused.spread(document, &layouts);
    keep(&mut layouts, &stays);
    keep(&mut done, &stays);
    // What a layout says of others can be judged when all of them could be read.
    if is_complete {
        for (reader, layout) in done.iter().zip(&layouts) {
            document.noted(layout.check_placement(reader, &layouts));
        }
        check_made(&done, &layouts);
    }
    if refused.count() == 0 && is_complete && layouts.iter().all(|layout| !layout.candidate) {
        return Err(root.conflict(
            &["layout"],
            "there is no layout to measure",
            "every layout says candidate = false",
            "leave candidate out of the layouts that are to be compared",
        ));
    }
    Ok((layouts, refused))
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
        readers[layout].refuse(
            &["devices", "volume", "share"],
            format!("layout {:?} cannot be made", layouts[layout].name),
            obstacle.to_string(),
            "docs/experiment-file.md says what devices, volume and share take",
        );
    }
}

/// Servers of Spindle's own begin each trial with empty caches and nobody else on them; others do not.
fn check_remote(root: &Reader<'_>, layouts: &[Layout]) -> Result<(), ExperimentError> {
    let is_remote = |layout: &&Layout| layout.address().is_some();
    let (remote, own): (Vec<_>, Vec<_>) = layouts.iter().partition(is_remote);
    let (Some(remote), Some(own)) = (remote.first(), own.first()) else {
        return Ok(());
    };
    Err(root.conflict(
        &["layout"],
        format!(
            "layout {:?} has a url, and layout {:?} has none",
            remote.name, own.name
        ),
        "an existing server and one that Spindle starts are not on equal terms: the latter is started again before \
         each trial, with empty caches",
        "give every layout a url, or none",
    ))
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
        .take(document::NAME_LENGTH_MAX)
        .collect();
    match name.trim() {
        "" => "experiment".to_owned(),
        name => name.to_owned(),
    }
}

/// What those need to know who change a file before it is read.
fn known() -> Known {
    let sections = keys_by_section();
    let keys_of = |wanted: &str| {
        let of_section = sections.iter().filter(|(section, _)| section == wanted);
        of_section.flat_map(|(_, keys)| keys).copied().collect()
    };
    Known {
        layout_keys: keys_of(LAYOUT_SECTION),
        database_keys: keys_of(DATABASE_SECTION),
        counted: workload::kinds_that(Transactions::are_counted),
    }
}

/// How the name of a section of one kind of workload begins.
const OF_KIND: &str = "[workload] with kind = ";

/// The sections of the file and the keys they understand.
fn keys_by_section() -> Vec<(String, Vec<&'static str>)> {
    let mut database = None;
    let mut sections = vec![(
        DATABASE_SECTION.to_owned(),
        keys_asked_by(|reader| {
            database = Database::read(reader, Inherited::default()).ok();
        }),
    )];
    let database = database.expect("every database setting has a default");
    sections.push(("[plan]".to_owned(), keys_asked_by(Plan::read)));
    for (kind, keys) in workload::keys_by_kind() {
        sections.push((format!("{OF_KIND}\"{kind}\""), keys));
    }
    sections.push((
        "[workload]".to_owned(),
        keys_asked_by(|reader| Workload::read(reader, &database)),
    ));
    let shared = SharedDatabase {
        database: &database,
        table: &Table::EMPTY,
        inherited: Inherited::default(),
    };
    sections.push((
        LAYOUT_SECTION.to_owned(),
        keys_asked_by(|reader| Layout::read(reader, &shared)),
    ));
    let io = AccessPath::new(Caching::Buffered, Method::Sync);
    sections.push((
        "the io table of a [[layout]]".to_owned(),
        keys_asked_by(|reader| read_access_path(reader, io)),
    ));
    sections.extend(layout::keys_of_tables());
    sections.push(("[[load]]".to_owned(), keys_asked_by(LoadMachine::read)));
    sections.push((
        "the limit table of a [[layout]]".to_owned(),
        keys_asked_by(Limit::read_table),
    ));
    sections.push((
        "the delay table of a [[layout]]".to_owned(),
        keys_asked_by(limit::read_delay_table),
    ));
    sections
}

/// The section that a key belongs to, for a person who wrote it in another; of workloads, each kind that has it.
fn home_of(key: &str) -> Option<String> {
    let sections = keys_by_section().into_iter();
    let homes = sections.filter(|(_, keys)| keys.contains(&key));
    let homes: Vec<String> = homes.map(|(section, _)| section).collect();
    let first = homes.first()?;
    let kinds: Vec<&str> = homes
        .iter()
        .filter_map(|home| home.strip_prefix(OF_KIND))
        .collect();
    Some(match kinds.as_slice() {
        [before @ .., last] if !before.is_empty() && first.starts_with(OF_KIND) => {
            format!("{OF_KIND}{} or {last}", before.join(", "))
        }
        _ => first.clone(),
    })
}
