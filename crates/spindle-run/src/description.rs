//! A candidate in words and as typed facts, before anything was found out about it: what the journal keeps of a layout,
//! so that results and reports need not read the experiment again.

use std::collections::BTreeMap;
use std::path::Path;

use spindle_layout::plan::DelayedBy;
use spindle_layout::spec::{DeviceSpec, LayoutKind};

use spindle_engines::sql::{ServerKind, server};
use spindle_experiment::{
    Caching, DatabaseSpec, Experiment, Layout, MadeLayout, PlacedOn, limited_by,
};
use spindle_result::{AccessMethod, DatabaseFacts, PageCache, StackKind, StackPart};
use spindle_text::file_kind::FileKind;
use spindle_text::quantity::size;

/// Devices that are named one by one.
const DEVICES_MAX: usize = 4;

/// A candidate in words, before anything was found out about it.
pub fn describe(experiment: &Experiment, index: usize) -> spindle_result::Layout {
    describe_delayed(experiment, index, None)
}

/// The same when it is known what delays its I/O, if that was asked for.
pub(super) fn describe_delayed(
    experiment: &Experiment,
    index: usize,
    by: Option<DelayedBy>,
) -> spindle_result::Layout {
    let layout = &experiment.layouts[index];
    let database = experiment.database_of(index);
    let (caching, method) = asked_of(layout, &database.spec);
    let place = place_of(layout, &database.spec);
    let mut description = match &database.spec {
        DatabaseSpec::Kernel(kernel) => format!(
            "{} datafiles on {place} ({}), {} DBWR; redo {}",
            kernel.files.datafiles,
            layout.io,
            kernel.instance.writers,
            kernel.redo_access_path(layout.io),
        ),
        DatabaseSpec::Server(server) => format!("{} on {place}", server.kind),
        DatabaseSpec::Remote(_) => format!("{place}, an existing server"),
    };
    let limited = layout.limit.as_ref().map(limited_by);
    let by = by.map_or_else(String::new, |by| format!(" {by}"));
    let delayed = layout
        .delay
        .map(|delay| format!("delayed by Spindle ({delay}){by}"));
    let emulated: Vec<String> = limited.into_iter().chain(delayed).collect();
    if let Some(first) = &layout.repeats {
        description.push_str(&format!(
            "; {first} once more, to learn the machine's own noise"
        ));
    }
    for emulation in &emulated {
        description.push_str("; ");
        description.push_str(emulation);
    }
    spindle_result::Layout {
        name: layout.name.clone(),
        stack: stack(layout, &database.spec, &place),
        path: place,
        caching,
        method,
        engine: engine_of(&database.spec),
        price: layout.price.clone().map(Box::new),
        description,
        emulated,
        not_direct: None,
        notes: Vec::new(),
        database: facts_of(&database.spec),
    }
}

/// What a server is called as long as it has not told its version; `None` for the embedded database.
fn engine_of(spec: &DatabaseSpec) -> Option<String> {
    let kind = match spec {
        DatabaseSpec::Kernel(_) => return None,
        DatabaseSpec::Server(server) => server.kind,
        DatabaseSpec::Remote(remote) => remote.address.kind(),
    };
    Some(kind.to_string())
}

/// The place of its files: what Spindle makes, a directory, or a server that runs already.
fn place_of(layout: &Layout, spec: &DatabaseSpec) -> String {
    match (spec, &layout.made) {
        (DatabaseSpec::Remote(remote), _) => remote.address.to_string(),
        (_, Some(made)) => made.to_string(),
        (_, None) => layout.path.display().to_string(),
    }
}

/// The caching and the method of a layout; a server does as it likes where nothing is asked of it.
fn asked_of(layout: &Layout, spec: &DatabaseSpec) -> (PageCache, AccessMethod) {
    let asks = layout.server_io;
    let (asks_caching, asks_method) = match spec {
        DatabaseSpec::Kernel(_) => (true, true),
        DatabaseSpec::Server(_) | DatabaseSpec::Remote(_) => (
            asks.is_some_and(|io| io.caching.is_some()),
            asks.is_some_and(|io| io.method.is_some()),
        ),
    };
    let caching = match (asks_caching, layout.io.caching) {
        (true, Caching::Buffered) => PageCache::Buffered,
        (true, Caching::Direct) => PageCache::Direct,
        (false, _) => PageCache::OfTheServer,
    };
    let method = match asks_method {
        true => AccessMethod::from(layout.io.method.as_str()),
        false => AccessMethod::OfTheServer,
    };
    (caching, method)
}

/// The settings that findings weigh; `None`: they are not known.
fn facts_of(spec: &DatabaseSpec) -> Option<DatabaseFacts> {
    match spec {
        DatabaseSpec::Kernel(kernel) => Some(DatabaseFacts {
            writers: Some(kernel.instance.writers),
            datafiles: Some(kernel.files.datafiles),
            buffer_cache_bytes: kernel.memory.buffer_cache_bytes,
        }),
        DatabaseSpec::Server(server) => Some(DatabaseFacts {
            writers: None,
            datafiles: None,
            buffer_cache_bytes: server.memory.buffer_cache_bytes,
        }),
        DatabaseSpec::Remote(_) => None,
    }
}

/// The parts of a layout from the files down to the devices.
fn stack(candidate: &Layout, spec: &DatabaseSpec, place: &str) -> Vec<Vec<StackPart>> {
    let mut rows = match candidate.candidate {
        true => vec![files(candidate, spec), vec![access_path(candidate, spec)]],
        false => vec![vec![part(
            StackKind::Files,
            "files of other layouts",
            "not measured itself",
        )]],
    };
    let standing = match (spec, &candidate.made) {
        (DatabaseSpec::Remote(_), _) => "an existing server",
        (_, Some(made)) => {
            rows.extend(made_rows(made));
            return rows;
        }
        (_, None) => "existing directory",
    };
    rows.push(vec![part(StackKind::FileSystem, standing, place)]);
    rows
}

fn part(kind: StackKind, title: impl Into<String>, detail: impl Into<String>) -> StackPart {
    StackPart {
        kind,
        title: title.into(),
        detail: detail.into(),
    }
}

/// The database's files, and those that lie elsewhere.
fn files(candidate: &Layout, spec: &DatabaseSpec) -> Vec<StackPart> {
    let of_kernel =
        [FileKind::Control, FileKind::Redo, FileKind::Undo].map(|kind| (kind, kind.as_str()));
    let of_server = |kind: ServerKind| (format!("{kind} files"), server(kind).file_words());
    let (datafiles, kinds) = match spec {
        DatabaseSpec::Kernel(kernel) => (
            format!("{} datafiles", kernel.files.datafiles),
            &of_kernel[..],
        ),
        DatabaseSpec::Server(server) => of_server(server.kind),
        DatabaseSpec::Remote(remote) => of_server(remote.address.kind()),
    };
    let here: Vec<&str> = kinds
        .iter()
        .filter(|(kind, _)| candidate.placement.of(*kind).is_none())
        .map(|(_, called)| *called)
        .collect();
    let mut parts = vec![part(StackKind::Files, datafiles, here.join(", "))];
    for (kind, on) in candidate.placement.kinds() {
        let place = match on {
            PlacedOn::Layout(name) => format!("on layout {name}"),
            PlacedOn::Devices(devices) => format!("on {}", devices.join(", ")),
        };
        let mut known = kinds.iter();
        let known = known.find(|(known, _)| *known == kind);
        let called = known.map_or(kind.as_str(), |(_, called)| *called);
        parts.push(part(StackKind::Files, called, place));
    }
    parts
}

fn access_path(candidate: &Layout, spec: &DatabaseSpec) -> StackPart {
    let of_server = |kind: ServerKind, settings: &BTreeMap<String, String>| {
        let settings = settings.iter();
        let settings: Vec<String> = settings
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let path = match candidate.server_io {
            Some(_) => candidate.io.to_string(),
            None => format!("{kind}'s own"),
        };
        part(StackKind::AccessPath, path, settings.join(", "))
    };
    match spec {
        DatabaseSpec::Kernel(kernel) => {
            let writers = format!("{} DBWR", kernel.instance.writers);
            part(StackKind::AccessPath, candidate.io.to_string(), writers)
        }
        DatabaseSpec::Server(server) => of_server(server.kind, &server.settings),
        DatabaseSpec::Remote(remote) => of_server(remote.address.kind(), &BTreeMap::new()),
    }
}

/// What Spindle made, from the file system down.
fn made_rows(made: &MadeLayout) -> Vec<Vec<StackPart>> {
    let mut rows = vec![vec![match &made.spec.kind {
        LayoutKind::Raw => part(StackKind::FileSystem, "raw", "no file system"),
        LayoutKind::FileSystem(of) => {
            let mkfs = of.mkfs_options.join(" ");
            let options = [of.mount_options.as_str(), mkfs.as_str()];
            let options: Vec<&str> = options
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect();
            part(
                StackKind::FileSystem,
                &of.type_name,
                or_defaults(options.join("; ")),
            )
        }
        LayoutKind::DiskGroup => part(StackKind::FileSystem, "disk group", disk_group(made)),
    }]];
    if let Some(volume) = &made.spec.volume {
        rows.push(vec![part(
            StackKind::Volume,
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

fn disk_group(made: &MadeLayout) -> String {
    made.disk_group.as_ref().map_or_else(String::new, |group| {
        let unit = size(group.allocation_unit_bytes);
        format!("{} redundancy, units of {unit}", group.redundancy)
    })
}

fn devices(specs: &[DeviceSpec]) -> Vec<StackPart> {
    let device = |spec: &DeviceSpec| match spec {
        DeviceSpec::Existing(path) => part(StackKind::Device, last_name(path), "device"),
        DeviceSpec::File { path, size_bytes } => part(
            StackKind::Device,
            last_name(path),
            format!("file, {}", size(*size_bytes)),
        ),
    };
    if specs.len() <= DEVICES_MAX {
        return specs.iter().map(device).collect();
    }
    let (drawn, rest) = specs.split_at(DEVICES_MAX - 1);
    let mut parts: Vec<StackPart> = drawn.iter().map(device).collect();
    parts.push(part(
        StackKind::Device,
        format!("{} more", rest.len()),
        "devices",
    ));
    parts
}

fn last_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_told_from_its_files_down_to_its_devices() {
        let text = "[[layout]]\nname = \"a\"\ndevices = [\"/dev/disk/by-id/x1\", \"/dev/disk/by-id/x2\"]\n\
            filesystem = { type = \"xfs\", mount = \"noatime\" }\nvolume = { stripes = 2 }\n\
            io = { caching = \"direct\", method = \"async\" }\n";
        let experiment = Experiment::parse("x.toml", text, &[]).expect("it is an experiment");
        let rows = describe(&experiment, 0).stack;
        let titles: Vec<Vec<&str>> = rows
            .iter()
            .map(|row| row.iter().map(|part| part.title.as_str()).collect())
            .collect();
        assert_eq!(titles.len(), 5, "{titles:?}");
        assert!(titles[0][0].ends_with("datafiles"), "{titles:?}");
        assert_eq!(titles[1..3], [["direct, async"], ["xfs"]]);
        assert_eq!(titles[3], ["logical volume"]);
        assert_eq!(titles[4], ["x1", "x2"]);
        let mount = &rows[2][0].detail;
        assert!(mount.starts_with("noatime"), "{mount}");
    }
}
