//! How many databases a run makes, and how large, before there is anything that they could stand on. Layouts share what
//! `run` lets them share: a golden copy when their files have one shape, and its copy when they lie in the same places,
//! too.

use std::fmt;

use spindle_engines::sql::{Server, ServerKind, ServerRequest, ServerRoom, server};
use spindle_layout::DatabaseShape;

use super::destination::{Destination, Destinations};
use crate::databases::blocks::shape_of;
use crate::server_files::request_of;
use spindle_experiment::{DatabaseSpec, PutBack};
use spindle_text::file_kind::FileKind;

/// The databases of a run.
pub struct Databases {
    /// Golden copies.
    pub goldens: Vec<ReckonedGolden>,
    /// Copies of them.
    pub images: Vec<ReckonedImage>,
    layouts: usize,
}

/// The files of a database.
#[derive(PartialEq)]
pub enum Files {
    /// Of the embedded database.
    Kernel(DatabaseShape),
    /// Of a server.
    Server {
        /// Which.
        kind: ServerKind,
        /// The settings that shape them.
        shaping: Vec<(String, String)>,
        /// Its tables, bytes.
        data_bytes: u64,
    },
}

/// A loaded database.
pub struct ReckonedGolden {
    /// Its files.
    pub files: Files,
    /// What they take beside the tables, of a server.
    room: Option<ServerRoom>,
    /// Its datafiles, made as long as they are to be on devices.
    on_devices_bytes: Option<u64>,
}

/// A copy of a golden copy.
pub struct ReckonedImage {
    /// Number of the golden copy.
    pub golden: usize,
    /// The first layout that uses it.
    pub layout: usize,
    /// What its files beside the tables may take, of a server.
    pub room: Option<ServerRoom>,
    /// Its datafiles, where they lie on raw devices or in a disk group, of a server.
    pub on_devices_bytes: Option<u64>,
    /// How it is put back.
    pub put_back: PutBack,
    destinations: Vec<Destination>,
    /// Made by the disk manager, where there is a file system to make files in.
    by_odm: bool,
}

impl Files {
    /// Of a layout's database, with what a server adds; and its datafiles on devices, if that is where they lie. `None`
    /// on a server that runs already, which has them.
    fn of(
        destinations: Destinations<'_>,
        layout: usize,
    ) -> Option<(Files, Option<ServerRoom>, Option<u64>)> {
        let experiment = destinations.experiment;
        match &experiment.database_of(layout).spec {
            DatabaseSpec::Kernel(spec) => {
                let files = Files::Kernel(shape_of(experiment, layout, spec));
                Some((files, None, None))
            }
            DatabaseSpec::Server(spec) => {
                let kind = spec.kind;
                let request = request_of(spec, experiment, layout);
                let data_bytes = request.data_bytes;
                let room = server(kind).room(&request);
                let (request, on_devices_bytes) = on_devices(destinations, layout, kind, request);
                let settings = request.settings.into_iter();
                let shaping = settings.filter(|(name, _)| server(kind).shapes_files(name));
                let files = Files::Server {
                    kind,
                    shaping: shaping.collect(),
                    data_bytes,
                };
                Some((files, Some(room), on_devices_bytes))
            }
            DatabaseSpec::Remote(_) => None,
        }
    }

    /// The server that they are of.
    pub fn server(&self) -> Option<&'static dyn Server> {
        match self {
            Files::Kernel(_) => None,
            Files::Server { kind, .. } => Some(server(*kind)),
        }
    }

    /// All files of the embedded database, the tables of a server.
    pub fn bytes(&self) -> u64 {
        match self {
            Files::Kernel(shape) => shape.total_bytes(),
            Files::Server { data_bytes, .. } => *data_bytes,
        }
    }
}

/// What is asked of a server whose datafiles lie on raw devices or in a disk group, and how large they are there.
fn on_devices(
    destinations: Destinations<'_>,
    layout: usize,
    kind: ServerKind,
    request: ServerRequest,
) -> (ServerRequest, Option<u64>) {
    let data = destinations.of(layout, FileKind::Data);
    if data.has_file_system(destinations.specs) {
        return (request, None);
    }
    let data_bytes = request.data_bytes;
    let Some(devices) = destinations.devices_of(layout, &data) else {
        let bytes = data_bytes + server(kind).room(&request).total_bytes();
        return (request, Some(bytes));
    };
    match server(kind).on_raw_devices(&request, &devices) {
        Ok(on) => (on.request, Some(on.bytes)),
        // What is wrong is said when the layout is examined.
        Err(_) => (request, Some(data_bytes)),
    }
}

impl ReckonedGolden {
    /// What a golden copy takes, about. Loading a server's tables, written as a whole, fills its log with them at most.
    pub fn bytes(&self) -> u64 {
        let data_bytes = self.files.bytes().max(self.on_devices_bytes.unwrap_or(0));
        let added = |room: ServerRoom| room.own_bytes + room.redo_bytes.min(data_bytes);
        data_bytes + self.room.map_or(0, added)
    }
}

impl Databases {
    /// Those of the layouts that are measured and `can_be_used`.
    pub fn of(destinations: Destinations<'_>, can_be_used: impl Fn(usize) -> bool) -> Databases {
        let experiment = destinations.experiment;
        let layouts: Vec<usize> = experiment
            .candidates()
            .filter(|of| can_be_used(*of))
            .collect();
        let mut databases = Databases {
            goldens: Vec::new(),
            images: Vec::new(),
            layouts: layouts.len(),
        };
        for layout in layouts {
            databases.add(destinations, layout);
        }
        databases
    }

    fn add(&mut self, destinations: Destinations<'_>, layout: usize) {
        let experiment = destinations.experiment;
        let Some((files, room, on_devices_bytes)) = Files::of(destinations, layout) else {
            return;
        };
        let known = self.goldens.iter().position(|other| other.files == files);
        let golden = known.unwrap_or_else(|| {
            self.goldens.push(ReckonedGolden {
                files,
                room,
                on_devices_bytes,
            });
            self.goldens.len() - 1
        });
        let of_kinds = destinations.of_all_kinds(layout);
        let mut with_files = of_kinds.iter();
        let has_files =
            with_files.any(|destination| destination.has_file_system(destinations.specs));
        let image = ReckonedImage {
            golden,
            layout,
            room,
            on_devices_bytes,
            by_odm: has_files && experiment.layouts[layout].io.method.identifies_files(),
            put_back: experiment.put_back(layout),
            destinations: of_kinds,
        };
        let is_shared = experiment.plan.interleave_ms.is_none();
        let mut others = self.images.iter_mut();
        match others.find(|other| is_shared && other.is_same(&image)) {
            None => self.images.push(image),
            Some(same) => same.grow_to(room),
        }
    }
}

impl ReckonedImage {
    fn is_same(&self, other: &ReckonedImage) -> bool {
        let of = |image: &ReckonedImage| (image.golden, image.put_back, image.by_odm);
        of(self) == of(other) && self.destinations == other.destinations
    }

    /// Of layouts that share an image, the one that takes most counts.
    fn grow_to(&mut self, other: Option<ServerRoom>) {
        if let (Some(room), Some(other)) = (&mut self.room, other) {
            *room = ServerRoom {
                own_bytes: room.own_bytes.max(other.own_bytes),
                redo_bytes: room.redo_bytes.max(other.redo_bytes),
                growth_bytes: room.growth_bytes.max(other.growth_bytes),
            };
        }
    }
}

impl fmt::Display for Databases {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let files = number(self.images.len(), "set of files", "sets of files");
        let layouts = number(self.layouts, "layout", "layouts");
        match self.goldens.len() {
            1 => write!(
                text,
                "Then the database is loaded once; this golden copy is copied to {files}, for {layouts}."
            ),
            goldens => write!(
                text,
                "Then the database is loaded {goldens} times, since its settings differ; these golden copies are copied to \
                 {files}, for {layouts}."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_layout::{Facts, ProvisionPlan};

    use super::*;
    use spindle_experiment::{Experiment, specs_of};

    fn told(text: &str) -> String {
        let experiment = Experiment::parse("test.toml", text, &[]).expect("it is right");
        let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
        let specs = specs_of(&experiment.layouts, &layouts).expect("a directory");
        let destinations = Destinations {
            experiment: &experiment,
            specs: &specs,
            plan: &ProvisionPlan::of(&[], &Facts::default(), "test"),
        };
        Databases::of(destinations, |_| true).to_string()
    }

    #[test]
    fn layouts_of_a_server_share_what_lies_in_the_same_place_and_has_the_same_shape() {
        let of = |layouts: &str| {
            told(&format!(
                "[database]\nengine = \"sqlite\"\nsize = \"64MiB\"\nbuffer_cache = \"4MiB\"\n{layouts}"
            ))
        };
        let shared = of(
            "[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\ndatabase = { settings = { synchronous = \"off\" } }",
        );
        assert_eq!(
            shared,
            "Then the database is loaded once; this golden copy is copied to 1 set of files, for 2 layouts."
        );
        let apart = of("[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\npath = \"/tmp\"");
        assert!(
            apart.ends_with(
                "loaded once; this golden copy is copied to 2 sets of files, for 2 layouts."
            ),
            "{apart}"
        );
        let shaped = of(
            "[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\ndatabase = { settings = { page_size = 8192 } }",
        );
        assert!(
            shaped.contains("loaded 2 times")
                && shaped.ends_with("2 sets of files, for 2 layouts."),
            "{shaped}"
        );
    }

    #[test]
    fn layouts_of_the_embedded_database_share_by_place_file_manager_and_sizes() {
        let told = told(
            r#"
            [[layout]]
            name = "buffered"
            [[layout]]
            name = "direct"
            io = { caching = "direct", method = "async" }
            [[layout]]
            name = "odm"
            io = { method = "odm" }
            [[layout]]
            name = "redo apart"
            placement = { redo = "log" }
            [[layout]]
            name = "log"
            path = "/tmp"
            candidate = false
            "#,
        );
        assert!(told.ends_with("3 sets of files, for 4 layouts."), "{told}");
    }
}
