//! A candidate in words and as typed facts, before anything was found out about it: what the journal keeps of a layout,
//! so that results and reports need not read the experiment again.

use std::path::Path;

use spindle_layout::spec::{DeviceSpec, LayoutKind};

use spindle_engines::sql::ServerKind;
use spindle_experiment::{Caching, Database, Delay, Engine, Experiment, Layout, Made, PlacedOn};
use spindle_result::{DatabaseFacts, OF_THE_SERVER, PageCache, StackKind, StackPart};
use spindle_text::quantity::size_text;

/// Devices that are named one by one.
const DEVICES_MAX: usize = 4;

/// What is said of a layout whose I/O takes longer.
pub fn delayed(delay: Delay) -> String {
    format!("delayed by Spindle ({delay})")
}

/// A candidate in words, before anything was found out about it.
pub fn describe(experiment: &Experiment, index: usize) -> spindle_result::Layout {
    let layout = &experiment.layouts[index];
    let database = experiment.database_of(index);
    let redo = database.redo_access_path(layout.io);
    // A server does as it likes where nothing is asked of it.
    let is_asked = database.server.is_none();
    let asks = layout.server_io;
    let caching = match is_asked || asks.is_some_and(|io| io.caching.is_some()) {
        true => match layout.io.caching {
            Caching::Buffered => PageCache::Buffered,
            Caching::Direct => PageCache::Direct,
        },
        false => PageCache::OfTheServer,
    };
    let method = match is_asked || asks.is_some_and(|io| io.method.is_some()) {
        true => layout.io.method.as_str(),
        false => OF_THE_SERVER,
    };
    let place = match (&layout.made, layout.address()) {
        (Some(made), _) => made.to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => layout.path.display().to_string(),
    };
    let mut description = match database.engine.server() {
        None => format!(
            "{} datafiles on {place} ({}), {} DBWR; redo {}",
            database.datafiles, layout.io, database.instance.writers, redo,
        ),
        Some(_) if layout.address().is_some() => {
            format!("a schema on {place}, an existing server")
        }
        Some(_) => format!("{} on {place}", database.engine),
    };
    let limited = layout.limit.map(|limit| limit.to_string());
    let delayed = layout.delay.map(delayed);
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
        stack: stack(layout, &database, &place),
        path: place,
        caching,
        method: method.to_owned(),
        engine: None,
        description,
        emulated,
        not_direct: None,
        notes: Vec::new(),
        database: Some(DatabaseFacts {
            writers: database.instance.writers,
            datafiles: database.datafiles,
            buffer_cache_bytes: database.buffer_cache_bytes,
        }),
    }
}

/// The parts of a layout from the files down to the devices.
fn stack(candidate: &Layout, database: &Database, place: &str) -> Vec<Vec<StackPart>> {
    let mut rows = match candidate.candidate {
        true => vec![
            files(candidate, database),
            vec![access_path(candidate, database)],
        ],
        false => vec![vec![part(
            StackKind::Files,
            "files of other layouts",
            "not measured itself",
        )]],
    };
    match (&candidate.made, candidate.address()) {
        (Some(made), _) => rows.extend(made_rows(made)),
        (None, Some(_)) => rows.push(vec![part(
            StackKind::FileSystem,
            "an existing server",
            place,
        )]),
        (None, None) => rows.push(vec![part(
            StackKind::FileSystem,
            "existing directory",
            place,
        )]),
    }
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
fn files(candidate: &Layout, database: &Database) -> Vec<StackPart> {
    let placed: Vec<(&str, &PlacedOn)> = candidate.placement.kinds().collect();
    // Each kind as the experiment places it, and as the engine calls it.
    let kinds: &[(&str, &str)] = match database.engine {
        Engine::Kernel => &[("control", "control"), ("redo", "redo"), ("undo", "undo")],
        Engine::Server(ServerKind::Sqlite) => &[("redo", "WAL or journal")],
        Engine::Server(ServerKind::Postgres) => &[("redo", "WAL")],
        Engine::Server(ServerKind::MariaDb) => &[("redo", "redo log"), ("undo", "undo")],
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
    let mut parts = vec![part(StackKind::Files, datafiles, here.join(", "))];
    for (kind, on) in placed {
        let place = match on {
            PlacedOn::Layout(name) => format!("on layout {name}"),
            PlacedOn::Devices(devices) => format!("on {}", devices.join(", ")),
        };
        parts.push(part(StackKind::Files, kind, place));
    }
    parts
}

fn access_path(candidate: &Layout, database: &Database) -> StackPart {
    let Some(server) = &database.server else {
        let writers = format!("{} DBWR", database.instance.writers);
        return part(StackKind::AccessPath, candidate.io.to_string(), writers);
    };
    let settings = server.settings.iter();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    let path = match candidate.server_io {
        Some(_) => candidate.io.to_string(),
        None => format!("{}'s own", database.engine),
    };
    part(StackKind::AccessPath, path, settings.join(", "))
}

/// What Spindle made, from the file system down.
fn made_rows(made: &Made) -> Vec<Vec<StackPart>> {
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

fn disk_group(made: &Made) -> String {
    made.disk_group.as_ref().map_or_else(String::new, |group| {
        let unit = size_text(group.allocation_unit_bytes);
        format!("{} redundancy, units of {unit}", group.redundancy)
    })
}

fn devices(specs: &[DeviceSpec]) -> Vec<StackPart> {
    let device = |spec: &DeviceSpec| match spec {
        DeviceSpec::Existing(path) => part(StackKind::Device, last_name(path), "device"),
        DeviceSpec::File { path, size_bytes } => part(
            StackKind::Device,
            last_name(path),
            format!("file, {}", size_text(*size_bytes)),
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
