//! How many databases a run would make, and how large: told by `spindle plan` before there is anything that they could stand on.
//! Layouts share what `run` lets them share: a golden copy when their files have one shape, and its copy when they lie in the same
//! places, too.

use std::fmt;
use std::path::PathBuf;

use spindle_engines::sql::server;
use spindle_layout::LayoutSpec;
use spindle_layout::spec::LayoutKind;

use crate::experiment::quantity::{MIB, size_text};
use crate::experiment::{DiskGroup, Experiment, Method, PlacedOn, PutBack};
use crate::run::images::golden::shape_of;
use crate::trial::protocol::server_request;

/// Databases and their sizes.
pub(super) struct Databases {
    goldens: usize,
    images: usize,
    layouts: usize,
    bytes: u64,
    /// Servers make more files in their trials.
    grow: bool,
}

/// What takes part in how the files of a database are.
#[derive(PartialEq)]
enum Shape {
    Files(spindle_layout::Shape),
    Settings(Vec<(String, String)>),
}

/// What files are put on.
#[derive(PartialEq)]
enum Ground {
    Directory(PathBuf),
    /// Number among those that are made; how it stripes and reads, if it is a disk group; which of its devices.
    Made(usize, Option<DiskGroup>, Vec<String>),
}

/// A copy of a golden copy.
#[derive(PartialEq)]
struct Image {
    /// Number of the golden copy.
    golden: usize,
    grounds: Vec<Ground>,
    /// Made by the disk manager, where there is a file system to make files in.
    by_odm: bool,
    put_back: PutBack,
}

impl Databases {
    /// Those that are measured; `specs` are what is made, with the layouts that stand on each.
    pub fn of(experiment: &Experiment, specs: &[(LayoutSpec, Vec<usize>)]) -> Databases {
        let mut goldens: Vec<Shape> = Vec::new();
        let mut images: Vec<Image> = Vec::new();
        let mut all_bytes = 0;
        for layout in experiment.candidates() {
            let (shape, bytes) = shape(experiment, layout);
            let known = goldens.iter().position(|other| *other == shape);
            let golden = known.unwrap_or_else(|| {
                goldens.push(shape);
                all_bytes += bytes;
                goldens.len() - 1
            });
            let grounds = grounds(experiment, specs, layout);
            let has_files = grounds.iter().any(|ground| has_file_system(ground, specs));
            let is_odm = experiment.layouts[layout].io.method == Method::Odm;
            let image = Image {
                golden,
                grounds,
                by_odm: has_files && is_odm,
                put_back: experiment.put_back(layout),
            };
            if !images.contains(&image) {
                images.push(image);
                all_bytes += bytes;
            }
        }
        Databases {
            goldens: goldens.len(),
            images: images.len(),
            layouts: experiment.candidates().count(),
            bytes: all_bytes,
            grow: experiment.database.engine.server().is_some(),
        }
    }
}

impl fmt::Display for Databases {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        write!(
            text,
            "Then the database is loaded: {} and {} for {}, about {} in all{}.",
            number(self.goldens, "golden copy", "golden copies"),
            number(self.images, "image", "images"),
            number(self.layouts, "layout", "layouts"),
            size_text(self.bytes.div_ceil(MIB) * MIB),
            if self.grow {
                ", and what the server adds"
            } else {
                ""
            },
        )
    }
}

/// The shape of a layout's database, and its size in bytes.
fn shape(experiment: &Experiment, layout: usize) -> (Shape, u64) {
    let database = experiment.database_of(layout);
    let io = experiment.layouts[layout].server_io;
    let asked = server_request(&experiment.workload, &database, io);
    match (experiment.database.engine.server(), asked) {
        (Some(kind), Some(request)) => {
            let settings = request.settings.into_iter();
            let shaping = settings.filter(|(name, _)| server(kind).shapes_files(name));
            (Shape::Settings(shaping.collect()), database.size_bytes)
        }
        _ => {
            let shape = shape_of(experiment, &database);
            let bytes = shape.total_bytes();
            (Shape::Files(shape), bytes)
        }
    }
}

/// What each kind of file is put on, in the order of the kinds.
fn grounds(
    experiment: &Experiment,
    specs: &[(LayoutSpec, Vec<usize>)],
    layout: usize,
) -> Vec<Ground> {
    let of = &experiment.layouts[layout];
    let placement = &of.placement;
    let data = || ground_of(experiment, specs, layout, placement.data.as_ref());
    let kinds = [
        &placement.control,
        &placement.redo,
        &placement.undo,
        &placement.index,
        &placement.temp,
    ];
    let redo_path = experiment.database_of(layout).redo_path;
    let otherwise = kinds.map(|on| ground_of(experiment, specs, layout, on.as_ref()));
    let on_redo_path = redo_path.filter(|_| placement.redo.is_none());
    otherwise
        .into_iter()
        .chain([data()])
        .chain(on_redo_path.map(Ground::Directory))
        .collect()
}

fn ground_of(
    experiment: &Experiment,
    specs: &[(LayoutSpec, Vec<usize>)],
    layout: usize,
    on: Option<&PlacedOn>,
) -> Ground {
    let (beneath, devices) = match on {
        Some(PlacedOn::Layout(name)) => {
            let mut layouts = experiment.layouts.iter();
            let index = layouts.position(|other| other.name == *name);
            (index.unwrap_or(layout), Vec::new())
        }
        Some(PlacedOn::Devices(devices)) => (layout, devices.clone()),
        None => (layout, Vec::new()),
    };
    let of = &experiment.layouts[beneath];
    let number = specs
        .iter()
        .position(|(_, layouts)| layouts.contains(&beneath));
    match (number, &of.made) {
        (Some(number), Some(made)) => Ground::Made(number, made.disk_group.clone(), devices),
        _ => Ground::Directory(of.path.canonicalize().unwrap_or_else(|_| of.path.clone())),
    }
}

fn has_file_system(ground: &Ground, specs: &[(LayoutSpec, Vec<usize>)]) -> bool {
    match ground {
        Ground::Directory(_) => true,
        Ground::Made(number, ..) => matches!(specs[*number].0.kind, LayoutKind::FileSystem(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::specs_of;

    fn told(text: &str) -> String {
        let experiment = Experiment::parse("test.toml", text, &[]).expect("it is right");
        let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
        let specs = specs_of(&experiment.layouts, &layouts).expect("a directory");
        Databases::of(&experiment, &specs).to_string()
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
            "Then the database is loaded: 1 golden copy and 1 image for 2 layouts, about 128MiB in all, and what the server adds."
        );
        let apart = of("[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\npath = \"/tmp\"");
        assert!(
            apart.contains("1 golden copy and 2 images for 2 layouts, about 192MiB"),
            "{apart}"
        );
        let shaped = of(
            "[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\ndatabase = { settings = { page_size = 8192 } }",
        );
        assert!(
            shaped.contains("2 golden copies and 2 images for 2 layouts, about 256MiB"),
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
        assert!(
            told.contains("1 golden copy and 3 images for 4 layouts"),
            "{told}"
        );
    }
}
