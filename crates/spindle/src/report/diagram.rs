//! Layouts as drawings: files above, then the access path, the file system or disk group, the volume, the devices. Made
//! from the experiment that the run recorded; a layout of an unknown shape is drawn from its description alone.

use std::path::Path;

use maud::{Markup, html};
use spindle_layout::spec::{DeviceSpec, LayoutKind};

use super::chart::colour_class;
use crate::experiment::quantity::size_text;
use crate::experiment::{Database, Engine, Experiment, Layout as Candidate, Made, PlacedOn};
use crate::result::{Layout, RunResult};

/// Units of a drawing from left to right, about its pixels.
const WIDTH: usize = 300;
/// Height of a box, which holds two lines.
const BOX: usize = 40;
/// Room between rows, for the lines that join them.
const GAP: usize = 14;
/// Room between boxes of a row.
const APART: usize = 6;
/// Devices that are drawn one by one.
const DEVICES_MAX: usize = 4;
/// Units that a character takes.
const CHARACTER: usize = 7;

/// One part of a layout: what it is, and more about it.
struct Part {
    title: String,
    detail: String,
    class: &'static str,
}

impl Part {
    fn new(class: &'static str, title: impl Into<String>, detail: impl Into<String>) -> Part {
        Part {
            title: title.into(),
            detail: detail.into(),
            class,
        }
    }
}

/// A drawing for each layout.
pub(super) fn diagrams(result: &RunResult) -> Markup {
    let experiment: Option<Experiment> = serde_json::from_value(result.experiment.clone()).ok();
    html! {
        div.diagrams {
            @for (index, layout) in result.layouts.iter().enumerate() {
                figure.diagram {
                    figcaption {
                        span class={ "swatch " (colour_class(index)) } aria-hidden="true" {}
                        span.number { (index + 1) } " " (layout.name)
                    }
                    @for note in &layout.notes { p.note { (note) } }
                    (drawing(&rows(experiment.as_ref(), index, layout), &layout.description))
                }
            }
        }
    }
}

/// The parts of a layout from the files down to the devices.
fn rows(experiment: Option<&Experiment>, index: usize, layout: &Layout) -> Vec<Vec<Part>> {
    let candidate = experiment.and_then(|experiment| experiment.layouts.get(index));
    let mut rows = match (experiment, candidate) {
        (Some(experiment), Some(candidate)) if layout.is_called(&candidate.name) => {
            let database = experiment.database_of(index);
            let mut rows = Vec::new();
            if candidate.candidate {
                rows.push(files(candidate, &database));
                rows.push(vec![access_path(candidate, &database)]);
            } else {
                rows.push(vec![Part::new(
                    "files",
                    "files of other layouts",
                    "not measured itself",
                )]);
            }
            match &candidate.made {
                Some(made) => rows.extend(made_rows(made)),
                None => rows.push(vec![Part::new(
                    "system",
                    match candidate.address() {
                        Some(_) => "an existing server",
                        None => "existing directory",
                    },
                    &layout.path,
                )]),
            }
            rows
        }
        _ => vec![
            vec![Part::new(
                "path",
                format!("{}, {}", layout.caching, layout.method),
                "access path",
            )],
            vec![Part::new("system", &layout.path, "path")],
        ],
    };
    let emulated = layout.emulated.iter();
    rows.extend(emulated.map(|text| vec![Part::new("emulated", "made slower", text)]));
    rows
}

/// The database's files, and those that lie elsewhere.
fn files(candidate: &Candidate, database: &Database) -> Vec<Part> {
    let placed: Vec<(&str, &PlacedOn)> = candidate.placement.kinds().collect();
    // Each kind as the experiment places it, and as the engine calls it.
    let kinds: &[(&str, &str)] = match database.engine {
        Engine::Kernel => &[("control", "control"), ("redo", "redo"), ("undo", "undo")],
        Engine::Sqlite => &[("redo", "WAL or journal")],
        Engine::Postgres => &[("redo", "WAL")],
        Engine::MariaDb => &[("redo", "redo log"), ("undo", "undo")],
    };
    let here: Vec<&str> = kinds
        .iter()
        .filter(|(kind, _)| placed.iter().all(|(elsewhere, _)| elsewhere != kind))
        .map(|(_, called)| *called)
        .collect();
    let datafiles = match database.server {
        None => format!("{} datafiles", database.datafiles),
        Some(_) => format!("{} files", database.engine),
    };
    let mut parts = vec![Part::new("files", datafiles, here.join(", "))];
    for (kind, on) in placed {
        let place = match on {
            PlacedOn::Layout(name) => format!("on layout {name}"),
            PlacedOn::Devices(devices) => format!("on {}", devices.join(", ")),
        };
        parts.push(Part::new("files", kind, place));
    }
    parts
}

fn access_path(candidate: &Candidate, database: &Database) -> Part {
    let Some(server) = &database.server else {
        let writers = format!("{} DBWR", database.writers);
        return Part::new("path", candidate.io.to_string(), writers);
    };
    let settings = server.settings.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let path = match candidate.server_io {
        Some(_) => candidate.io.to_string(),
        None => format!("{}'s own", database.engine),
    };
    Part::new("path", path, settings.join(", "))
}

/// What Spindle made, from the file system down.
fn made_rows(made: &Made) -> Vec<Vec<Part>> {
    let mut rows = vec![vec![match &made.spec.kind {
        LayoutKind::Raw => Part::new("system", "raw", "no file system"),
        LayoutKind::FileSystem(of) => {
            let mkfs = of.mkfs_options.join(" ");
            let options = [of.mount_options.as_str(), mkfs.as_str()];
            let options: Vec<&str> = options
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            Part::new("system", &of.type_name, or_defaults(options.join("; ")))
        }
        LayoutKind::DiskGroup => Part::new("system", "disk group", disk_group(made)),
    }]];
    if let Some(volume) = &made.spec.volume {
        rows.push(vec![Part::new(
            "volume",
            "logical volume",
            volume.to_string(),
        )]);
    }
    rows.push(devices(&made.spec.devices));
    rows
}

fn or_defaults(options: String) -> String {
    if options.is_empty() {
        "default options".to_owned()
    } else {
        options
    }
}

fn disk_group(made: &Made) -> String {
    made.disk_group.as_ref().map_or_else(String::new, |group| {
        let unit = size_text(group.allocation_unit_bytes);
        format!("{} redundancy, units of {unit}", group.redundancy)
    })
}

fn devices(specs: &[DeviceSpec]) -> Vec<Part> {
    let part = |spec: &DeviceSpec| match spec {
        DeviceSpec::Existing(path) => Part::new("device", last_name(path), "device"),
        DeviceSpec::File { path, size_bytes } => Part::new(
            "device",
            last_name(path),
            format!("file, {}", size_text(*size_bytes)),
        ),
    };
    if specs.len() <= DEVICES_MAX {
        return specs.iter().map(part).collect();
    }
    let (drawn, rest) = specs.split_at(DEVICES_MAX - 1);
    let mut parts: Vec<Part> = drawn.iter().map(part).collect();
    parts.push(Part::new(
        "device",
        format!("{} more", rest.len()),
        "devices",
    ));
    parts
}

fn last_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn drawing(rows: &[Vec<Part>], label: &str) -> Markup {
    let height = rows.len() * (BOX + GAP) - GAP;
    html! {
        svg.stack viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(label) {
            @for (index, parts) in rows.iter().enumerate() {
                @let top = index * (BOX + GAP);
                @if let Some(below) = rows.get(index + 1) { (joints(parts.len(), below.len(), top + BOX)) }
                @for (position, part) in parts.iter().enumerate() { (part_box(part, position, parts.len(), top)) }
            }
        }
    }
}

/// Width of each of some boxes in a row.
fn box_width(boxes: usize) -> usize {
    (WIDTH - 2 - APART * (boxes - 1)) / boxes
}

/// Lines from the first box of a row, which is the one that stands on the next, to each box below.
fn joints(above: usize, below: usize, top: usize) -> Markup {
    let middle = |position: usize, boxes: usize| {
        1 + position * (box_width(boxes) + APART) + box_width(boxes) / 2
    };
    let from = middle(0, above);
    html! {
        @for position in 0..below {
            @let to = if below == 1 { from } else { middle(position, below) };
            line.joint x1=(from) y1=(top) x2=(to) y2=(top + GAP) {}
        }
    }
}

fn part_box(part: &Part, position: usize, boxes: usize, top: usize) -> Markup {
    let width = box_width(boxes);
    let left = 1 + position * (width + APART);
    let middle = left + width / 2;
    let fits = (width - 8) / CHARACTER;
    html! {
        g {
            title { (part.title) ": " (part.detail) }
            rect class={ "box " (part.class) } x=(left) y=(top + 1) width=(width) height=(BOX - 2) rx="5" {}
            text.box-title x=(middle) y=(top + 17) text-anchor="middle" { (shortened(&part.title, fits)) }
            text.box-detail x=(middle) y=(top + 32) text-anchor="middle" { (shortened(&part.detail, fits + 1)) }
        }
    }
}

/// A text with its middle left out when it is longer than what fits: names of devices differ at their ends.
fn shortened(text: &str, fits: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= fits {
        return text.to_owned();
    }
    let kept = fits.saturating_sub(1);
    let start = characters[..kept.div_ceil(2)].iter();
    let end = characters[characters.len() - kept / 2..].iter();
    start.chain(['…'].iter()).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("nvme0n1", 7), "nvme0n1");
        assert_eq!(shortened("nvme-SAMSUNG-0001", 9), "nvme…0001");
    }

    #[test]
    fn a_layout_is_drawn_from_its_files_down_to_its_devices() {
        let text = "[[layout]]\nname = \"a\"\ndevices = [\"/dev/disk/by-id/x1\", \"/dev/disk/by-id/x2\"]\n\
            filesystem = { type = \"xfs\", mount = \"noatime\" }\nvolume = { stripes = 2 }\n\
            io = { caching = \"direct\", method = \"async\" }\n";
        let experiment = Experiment::parse("x.toml", text, &[]).expect("it is an experiment");
        let layout = crate::run::replay::describe(&experiment, 0);
        let rows = rows(Some(&experiment), 0, &layout);
        let titles: Vec<Vec<&str>> = rows
            .iter()
            .map(|row| row.iter().map(|part| part.title.as_str()).collect())
            .collect();
        assert_eq!(titles.len(), 5, "{titles:?}");
        assert!(titles[0][0].ends_with("datafiles"), "{titles:?}");
        assert_eq!(titles[1..3], [["direct, async"], ["xfs"]]);
        assert_eq!(titles[3], ["logical volume"]);
        assert_eq!(titles[4], ["x1", "x2"]);
        assert!(
            rows[2][0].detail.starts_with("noatime"),
            "{}",
            rows[2][0].detail
        );
    }
}
