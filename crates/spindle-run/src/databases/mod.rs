//! The databases of a run, whichever the engine. For each shape of database there is one golden copy, made and loaded
//! by the [`Engine`]; for each place one image, a snapshot of it, which all layouts that agree in these share, so that
//! they differ in nothing else. The engine puts an image back before every trial: by its known blocks, by whole files,
//! by sharing blocks again, by copying or loading again; or the volume beneath it is put back to its snapshot. All of
//! it lies in directories of the run's own (or in schemas, on existing servers) and goes away with it. What is
//! particular to a kind of database is its [`Recipe`]: `blocks` (files whose blocks are known, of the embedded
//! database), `tree` (whatever files a server makes) and `remote` (schemas on existing servers).

pub(crate) mod blocks;
mod recipe;
mod remote;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spindle_engines::engine::{Engine, PutBackBy, Restored};
use spindle_engines::spec::ByKind;
use spindle_layout::Verify;

use super::database_error::DatabaseError;
use super::layout_targets::LayoutTargets;
use super::replay::RunState;
use super::schedule::order_of_making;
use super::schemas::{self, ServerPutBack, way_of};
use super::volumes;
use crate::consequence::{AfterLayout, after_database};
use crate::observe::device_probe::Probed;
use crate::trial::protocol::{KernelTrial, ServerTrial, TrialDatabase, WrittenRuns};
use blocks::BlockFiles;
use recipe::{HomeOf, ImageOf, Making, Recipe, Store};
use remote::ServerSchema;
use spindle_experiment::{DatabaseSpec, Experiment, PutBack};
use spindle_system::DeviceNumber;
use tree::ServerTree;

/// An image, with what made it.
struct Kept<R: Recipe> {
    recipe: R,
    put_back: PutBack,
    engine: R::Engine,
    image: ImageOf<R>,
}

impl<R: Recipe> Kept<R> {
    /// Whether a layout that needs this may as well have it.
    fn serves(&self, recipe: &R, put_back: PutBack) -> bool {
        self.recipe == *recipe && self.put_back == put_back
    }

    fn restore(
        &mut self,
        by: PutBackBy,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Restored, DatabaseError> {
        Ok(self.engine.restore(&mut self.image, by, interrupted)?)
    }
}

/// What is put back before a trial, with what it was made of.
type MadeDatabase = ByKind<Kept<BlockFiles>, Kept<ServerTree>, Kept<ServerSchema>>;

/// A recipe whose databases are kept beside those of all kinds.
trait AmongAll: Recipe {
    /// The database, if it is of this kind.
    fn kept(made: &MadeDatabase) -> Option<&Kept<Self>>;

    /// A database of this kind among all.
    fn made(kept: Kept<Self>) -> MadeDatabase;
}

impl AmongAll for BlockFiles {
    fn kept(made: &MadeDatabase) -> Option<&Kept<BlockFiles>> {
        match made {
            MadeDatabase::Kernel(kept) => Some(kept),
            MadeDatabase::Server(_) | MadeDatabase::Remote(_) => None,
        }
    }

    fn made(kept: Kept<BlockFiles>) -> MadeDatabase {
        MadeDatabase::Kernel(kept)
    }
}

impl AmongAll for ServerTree {
    fn kept(made: &MadeDatabase) -> Option<&Kept<ServerTree>> {
        match made {
            MadeDatabase::Server(kept) => Some(kept),
            MadeDatabase::Kernel(_) | MadeDatabase::Remote(_) => None,
        }
    }

    fn made(kept: Kept<ServerTree>) -> MadeDatabase {
        MadeDatabase::Server(kept)
    }
}

impl AmongAll for ServerSchema {
    fn kept(made: &MadeDatabase) -> Option<&Kept<ServerSchema>> {
        match made {
            MadeDatabase::Remote(kept) => Some(kept),
            MadeDatabase::Kernel(_) | MadeDatabase::Server(_) => None,
        }
    }

    fn made(kept: Kept<ServerSchema>) -> MadeDatabase {
        MadeDatabase::Remote(kept)
    }
}

/// A database of the run. Layouts that need the same share one.
struct RunDatabase {
    database: MadeDatabase,
    /// The volumes that its files lie on, where they are put back as a whole.
    volumes: Vec<usize>,
    devices: Vec<DeviceNumber>,
}

impl RunDatabase {
    /// Whether a layout may as well have the other; where it is not known, it may not.
    fn is_alike(&self, other: &RunDatabase) -> bool {
        match (&self.database, &other.database) {
            (MadeDatabase::Kernel(one), MadeDatabase::Kernel(other)) => {
                one.serves(&other.recipe, other.put_back)
            }
            _ => false,
        }
    }
}

/// What belongs to a layout.
struct OfLayout {
    /// Its place among those made.
    made: usize,
    /// Its database, as trials use it.
    trial: TrialDatabase,
}

/// The databases of a run.
pub struct RunDatabases {
    verify: Verify,
    // In this order: files go before the directories they lie in.
    made: Vec<RunDatabase>,
    of_layout: BTreeMap<usize, OfLayout>,
    store: Store,
    /// Time that loading took.
    loading: Duration,
}

impl RunDatabases {
    /// Makes the databases of the layouts `wanted` on what they stand on. `note` hears what is being done. Returns the
    /// layouts that turned out not to hold theirs, with the reason; what goes wrong elsewhere is an error. Once
    /// `interrupted`, loading ends and no further one is made: the run looks at that itself before it uses any.
    pub fn prepare(
        state: &RunState,
        wanted: &[usize],
        targets: &LayoutTargets,
        interrupted: &Arc<AtomicBool>,
        note: &mut dyn FnMut(&str),
    ) -> Result<(RunDatabases, Vec<(usize, String)>), DatabaseError> {
        let experiment = &state.experiment;
        let mut databases = RunDatabases {
            verify: experiment.plan.restore_verify,
            made: Vec::new(),
            of_layout: BTreeMap::new(),
            store: Store::new(state, targets, interrupted),
            loading: Duration::ZERO,
        };
        let layouts: BTreeSet<usize> = wanted.iter().copied().collect();
        let layouts: Vec<usize> = layouts.into_iter().collect();
        let (golden_place, way) = match experiment.spec() {
            DatabaseSpec::Kernel(_) | DatabaseSpec::Server(_) => {
                let place = golden_place(experiment, &layouts, targets)?;
                databases.store.directories.make(&place, None)?;
                (place, ServerPutBack::Reload { why: None })
            }
            DatabaseSpec::Remote(_) => (PathBuf::new(), way_of(experiment)),
        };
        if let ServerPutBack::Reload { why: Some(why) } = &way {
            let said = format!("the database is loaded again before each trial: {why}");
            note(&said);
        }
        blocks::check_room(experiment, &layouts, targets, &golden_place)?;
        let is_embedded = matches!(experiment.spec(), DatabaseSpec::Kernel(_));
        let mut failed = Vec::new();
        for layout in order_of_making(state, &layouts) {
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
            let making = Making {
                state,
                targets,
                layout,
                put_back: experiment.put_back(layout),
                golden_place: &golden_place,
                way: &way,
                note,
            };
            match databases.database_for(making) {
                Ok(made) => _ = databases.of_layout.insert(layout, made),
                // What is interrupted breaks off with errors of many kinds.
                Err(_) if interrupted.load(Ordering::Relaxed) => break,
                Err(error) => {
                    // A server refuses what another layout may ask of it; the embedded database has no such ways.
                    let is_alone = !is_embedded || targets.is_made(layout);
                    match after_database(&error, is_alone) {
                        AfterLayout::LeftOut => failed.push((layout, error.to_string())),
                        AfterLayout::RunEnds => return Err(error),
                    }
                }
            }
        }
        failed.extend(databases.keep_volumes(targets, note));
        failed.sort_by_key(|(layout, _)| *layout);
        Ok((databases, failed))
    }

    /// The database for a layout, made if no other layout has made it.
    fn database_for(&mut self, mut making: Making<'_>) -> Result<OfLayout, DatabaseError> {
        let (experiment, layout) = (making.experiment(), making.layout);
        let targets = making.targets;
        let (made, trial) = match &experiment.database_of(layout).spec {
            DatabaseSpec::Kernel(spec) => {
                let recipe = BlockFiles::by(spec, experiment, layout, targets)?;
                let engine = blocks::engine(experiment, layout, spec);
                // What takes turns has an image for itself.
                let is_shared = experiment.plan.interleave_ms.is_none();
                let (made, files) = self.image_for(&mut making, recipe, engine, is_shared)?;
                let (delay, redo_delay) = targets.delays(experiment, layout);
                let trial = KernelTrial {
                    spec: spec.clone(),
                    io: experiment.layouts[layout].io,
                    delay,
                    redo_delay,
                    files,
                };
                (made, TrialDatabase::Kernel(Box::new(trial)))
            }
            DatabaseSpec::Server(spec) => {
                let (recipe, engine) = ServerTree::of(spec, experiment, layout, targets)?;
                let request = engine.request.clone();
                let (made, directories) = self.image_for(&mut making, recipe, engine, true)?;
                let trial = ServerTrial {
                    kind: spec.kind,
                    memory_bytes: spec.memory.memory_bytes,
                    caching: experiment.layouts[layout].io.caching,
                    request,
                    directories,
                };
                (made, TrialDatabase::Server(Box::new(trial)))
            }
            DatabaseSpec::Remote(spec) => {
                let recipe = ServerSchema::of(spec);
                let engine = schemas::engine(experiment, layout, spec);
                let (made, schema) = self.image_for(&mut making, recipe, engine, true)?;
                (made, TrialDatabase::Remote(Box::new(schema)))
            }
        };
        Ok(OfLayout { made, trial })
    }

    /// The image that a layout needs, made if there is none yet or none to be shared: its place among those made, and
    /// what it lies in.
    fn image_for<R: AmongAll>(
        &mut self,
        making: &mut Making<'_>,
        recipe: R,
        engine: R::Engine,
        is_shared: bool,
    ) -> Result<(usize, HomeOf<R>), DatabaseError> {
        let put_back = making.put_back;
        let kept = self.made.iter().map(|made| R::kept(&made.database));
        let mut serving = kept.enumerate().filter_map(|(place, kept)| {
            let kept = kept.filter(|kept| kept.serves(&recipe, put_back))?;
            Some((place, R::home(&kept.image)))
        });
        if let Some(there) = serving.next().filter(|_| is_shared) {
            return Ok(there);
        }
        drop(serving);
        let kept = self.made.iter().map(|made| R::kept(&made.database));
        let alike: Vec<&R> = kept.flatten().map(|kept| &kept.recipe).collect();
        recipe.check(&alike)?;
        let (began, store) = (Instant::now(), &mut self.store);
        let golden = recipe.golden(&engine, making, store);
        self.loading += began.elapsed();
        let golden = golden?;
        let space = store.space.clone();
        store.of_image.clear();
        let site = recipe.site(&golden, making, store);
        let image = site.and_then(|site| Ok(engine.snapshot(&golden, site)?));
        let image = image.inspect_err(|_| {
            store.directories.take_back(&store.of_image);
            store.space = space;
        })?;
        store.next_image += 1;
        let home = R::home(&image);
        self.made.push(RunDatabase {
            volumes: match put_back {
                PutBack::ThinVolumes => {
                    let targets = making.targets;
                    targets.thin_volumes(making.experiment(), making.layout)
                }
                PutBack::Copy | PutBack::Clones => Vec::new(),
            },
            devices: recipe.devices(&home),
            database: R::made(Kept {
                recipe,
                put_back,
                engine,
                image,
            }),
        });
        Ok((self.made.len() - 1, home))
    }

    /// Keeps the volumes that are to be put back as a whole, now that every database on them is loaded. Returns the
    /// layouts that lie on one which cannot be kept, with the reason.
    fn keep_volumes(
        &mut self,
        targets: &LayoutTargets,
        note: &mut dyn FnMut(&str),
    ) -> Vec<(usize, String)> {
        let beneath = self.made.iter().map(|made| &made.volumes);
        let lost = volumes::keep(beneath, &mut self.store.directories, targets, note);
        let made = &self.made;
        let reason = |of: &OfLayout| made[of.made].volumes.iter().find_map(|of| lost.get(of));
        let of_layout = self.of_layout.iter();
        let failed: Vec<(usize, String)> = of_layout
            .filter_map(|(layout, of)| Some((*layout, reason(of)?.clone())))
            .collect();
        for (layout, _) in &failed {
            self.of_layout.remove(layout);
        }
        failed
    }

    /// What people are to be told of the databases made; once.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.warnings)
    }

    fn made(&self, layout: usize) -> &RunDatabase {
        &self.made[self.of_layout[&layout].made]
    }

    /// A layout's database, as trials use it.
    pub fn of_trial(&self, layout: usize) -> TrialDatabase {
        self.of_layout[&layout].trial.clone()
    }

    /// The devices beneath it, where known.
    pub fn devices(&self, layout: usize) -> Vec<DeviceNumber> {
        self.made(layout).devices.clone()
    }

    /// Where the devices beneath a layout's data and beneath its redo are probed; `None` for an existing server.
    pub fn probed(&self, layout: usize) -> Option<(Probed, Probed)> {
        match &self.made(layout).database {
            MadeDatabase::Kernel(kept) => blocks::probed(kept.image.files()),
            MadeDatabase::Server(kept) => Some(kept.recipe.probed(kept.image.directories())),
            MadeDatabase::Remote(_) => None,
        }
    }

    /// Lets layouts whose images are alike take each other's, each that of the one before it. So none keeps one that
    /// lies better than the others.
    pub fn exchange_images(&mut self) {
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for (layout, of) in &self.of_layout {
            let is_alike = |circle: &&mut Vec<usize>| {
                let other = &self.made[self.of_layout[&circle[0]].made];
                self.made[of.made].is_alike(other)
            };
            match circles.iter_mut().find(is_alike) {
                Some(circle) => circle.push(*layout),
                None => circles.push(vec![*layout]),
            }
        }
        for circle in circles {
            let mut places: Vec<usize> = circle.iter().map(|it| self.of_layout[it].made).collect();
            places.rotate_right(1);
            for (layout, made) in circle.iter().zip(places) {
                let of = self.of_layout.get_mut(layout).expect("it was just listed");
                of.made = made;
                if let (TrialDatabase::Kernel(trial), MadeDatabase::Kernel(made)) =
                    (&mut of.trial, &self.made[made].database)
                {
                    trial.files = made.image.files().clone();
                }
            }
        }
    }

    /// Time that loading took when they were made, a part of making them.
    pub fn loading(&self) -> Duration {
        self.loading
    }

    /// Whether they are on servers that run already.
    pub fn are_remote(&self) -> bool {
        let is_remote = |made: &RunDatabase| matches!(made.database, MadeDatabase::Remote(_));
        self.made.iter().any(is_remote)
    }

    /// Puts a layout's database back to the loaded state.
    pub fn restore(
        &mut self,
        layout: usize,
        targets: &LayoutTargets,
    ) -> Result<Restored, DatabaseError> {
        let (verify, store) = (self.verify, &mut self.store);
        let made = &mut self.made[self.of_layout[&layout].made];
        let by = match made.volumes.is_empty() {
            true => PutBackBy::Itself(verify),
            false => {
                let began = Instant::now();
                volumes::roll_back(&made.volumes, &mut store.directories, targets)?;
                PutBackBy::Volume(verify, began)
            }
        };
        match &mut made.database {
            MadeDatabase::Kernel(kept) => kept.restore(by, &store.interrupted),
            MadeDatabase::Server(kept) => kept.restore(by, &store.interrupted),
            MadeDatabase::Remote(kept) => kept.restore(by, &store.interrupted),
        }
    }

    /// A trial has written to a layout's database; `None` when it is not known where. Whole files say themselves that
    /// they were written to, and what is loaded again need not know.
    pub fn written(&mut self, layout: usize, written: Option<&WrittenRuns>) {
        let made = &mut self.made[self.of_layout[&layout].made];
        if let MadeDatabase::Kernel(kept) = &mut made.database {
            let files = kept.image.files();
            let changed = written.map(|written| blocks::changed_by(files, written));
            kept.image.written(changed);
        }
    }

    /// Takes everything away. Returns what could not be, in words.
    pub fn remove(self) -> Vec<String> {
        drop(self.made);
        let Store {
            directories,
            schemas,
            goldens,
            golden_trees,
            ..
        } = self.store;
        let mut leftovers = schemas.remove();
        drop((goldens, golden_trees));
        leftovers.extend(directories.remove());
        leftovers
    }
}

/// Where golden copies go: beside the data of the first layout that is a directory; else where the experiment says, or
/// where the run was started.
fn golden_place(
    experiment: &Experiment,
    wanted: &[usize],
    targets: &LayoutTargets,
) -> Result<PathBuf, DatabaseError> {
    let is_there =
        |layout: &&usize| !targets.is_made(**layout) && experiment.layouts[**layout].made.is_none();
    let path = match (&experiment.plan.golden_path, wanted.iter().find(is_there)) {
        (Some(path), _) => path.as_path(),
        (None, Some(layout)) => &experiment.layouts[*layout].path,
        (None, None) => Path::new("."),
    };
    path.canonicalize().map_err(|error| DatabaseError::Place {
        path: path.to_path_buf(),
        error,
    })
}
