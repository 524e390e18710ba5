//! What every kind of database has alike: the [`Recipe`] by which one is made, what it is made for ([`Making`]), and
//! what the run itself keeps ([`Store`]). The kinds and the walk over layouts beside it use this; it uses neither.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spindle_engines::engine::Engine;
use spindle_experiment::{Experiment, PutBack};
use spindle_layout::{Golden, GoldenTree, RawSpace};
use spindle_system::machine::DataPath;
use spindle_system::{DeviceNumber, SystemTree};

use crate::database_error::DatabaseError;
use crate::layout_targets::LayoutTargets;
use crate::own_directories::OwnDirectories;
use crate::replay::RunState;
use crate::schemas::{NotedSchemas, ServerPutBack};

/// What a layout needs of a database of one kind, and how that is made. Layouts whose recipes are equal share an image.
pub(super) trait Recipe: PartialEq + Sized {
    /// The kind.
    type Engine: Engine;

    /// Refuses what databases of this kind made before leave no room for.
    fn check(&self, _made: &[&Self]) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// The golden copy, made by `engine` if there is none yet.
    fn golden(
        &self,
        engine: &Self::Engine,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<Arc<GoldenOf<Self>>, DatabaseError>;

    /// Where the next image goes, with what it lies in.
    fn site(
        &self,
        golden: &GoldenOf<Self>,
        making: &mut Making<'_>,
        store: &mut Store,
    ) -> Result<SiteOf<Self>, DatabaseError>;

    /// What an image lies in.
    fn home(image: &ImageOf<Self>) -> HomeOf<Self>;

    /// The devices beneath an image, where known.
    fn devices(&self, home: &HomeOf<Self>) -> Vec<DeviceNumber>;
}

pub(super) type HomeOf<R> = <<R as Recipe>::Engine as Engine>::Home;
pub(super) type GoldenOf<R> = <<R as Recipe>::Engine as Engine>::Golden;
pub(super) type SiteOf<R> = <<R as Recipe>::Engine as Engine>::Site;
pub(super) type ImageOf<R> = <<R as Recipe>::Engine as Engine>::Image;

/// The settings that a database is made with: what takes part in how its files are.
pub(super) type FileShape = BTreeMap<String, String>;

/// What the database of a layout is made for, and on.
pub(super) struct Making<'a> {
    pub state: &'a RunState,
    pub targets: &'a LayoutTargets,
    /// The layout.
    pub layout: usize,
    /// How it is put back.
    pub put_back: PutBack,
    /// Where golden copies go; nowhere, when there are existing servers only.
    pub golden_place: &'a Path,
    /// How existing servers put their tables back.
    pub way: &'a ServerPutBack,
    /// Hears what is being done.
    pub note: &'a mut dyn FnMut(&str),
}

impl<'a> Making<'a> {
    pub fn experiment(&self) -> &'a Experiment {
        &self.state.experiment
    }

    pub fn name(&self) -> &'a str {
        &self.experiment().layouts[self.layout].name
    }

    /// The layout's name, when what is made for it is for it alone.
    pub fn owner(&self) -> Option<&'a str> {
        self.targets.is_made(self.layout).then_some(self.name())
    }
}

/// What the run itself keeps for its databases: directories, room, copies and notes.
pub(super) struct Store {
    pub directories: OwnDirectories,
    pub space: RawSpace,
    pub goldens: Vec<Arc<Golden>>,
    pub golden_trees: Vec<(FileShape, Arc<GoldenTree>)>,
    pub schemas: NotedSchemas,
    /// Number of the next image.
    pub next_image: u32,
    /// Directories made for it so far.
    pub of_image: Vec<PathBuf>,
    /// Directories of servers made so far.
    pub server_directories: u32,
    /// What people are to be told of the databases made.
    pub warnings: Vec<String>,
    /// Ends loading.
    pub interrupted: Arc<AtomicBool>,
}

impl Store {
    pub fn new(state: &RunState, targets: &LayoutTargets, interrupted: &Arc<AtomicBool>) -> Store {
        Store {
            directories: OwnDirectories::new(&state.run, targets.ledger()),
            space: RawSpace::default(),
            goldens: Vec::new(),
            golden_trees: Vec::new(),
            schemas: NotedSchemas::new(targets.ledger()),
            next_image: 1,
            of_image: Vec::new(),
            server_directories: 0,
            warnings: Vec::new(),
            interrupted: Arc::clone(interrupted),
        }
    }
}

/// The block devices beneath some places, where known.
pub(super) fn devices_beneath<'a>(places: impl IntoIterator<Item = &'a Path>) -> Vec<DeviceNumber> {
    let system = SystemTree::default();
    let places: BTreeSet<&Path> = places.into_iter().collect();
    let device = |place: &Path| {
        let device = DataPath::capture(&system, place).device;
        device.map(|device| device.number)
    };
    let devices: BTreeSet<DeviceNumber> = places.into_iter().filter_map(device).collect();
    devices.into_iter().collect()
}
