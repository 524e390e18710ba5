//! What this machine can do for a candidate. What a layout asks for and cannot have makes its cases skipped, with the
//! reason; nothing is ever put in its place silently.

use std::fmt;
use std::path::Path;

use spindle_engines::EngineError;
use spindle_engines::database::RemoteDatabase;
use spindle_engines::engine::Engine;
use spindle_engines::sql::{Copying, FoundServer, ServerKind, server};
use spindle_io::real::Method;
use spindle_io::real::facts::{self, DirectProbe};
use spindle_layout::plan::DelayedBy;
use spindle_layout::{Placement, PlacementTarget, reflink_refusal};

use super::databases::blocks;
use super::description::describe_delayed;
use super::layout_targets::LayoutTargets;
use super::schemas::{self, may_copy};
use super::server_files::ServerFiles;
use spindle_experiment::{
    AccessPath, Caching, DatabaseSpec, Experiment, KernelSpec, PutBack, RemoteSpec, RestoreBy,
    ServerSpec, TornBlocks,
};
use spindle_result::{Layout, NOT_DIRECT_HERE};
use spindle_system::SystemTree;
use spindle_system::machine::DataPath;
use spindle_text::file_kind::FileKind;
use spindle_text::quantity::size;
use spindle_text::vocabulary::Vocabulary;

/// A candidate, looked at on this machine.
pub struct Examined {
    /// What it is, with what was found.
    pub layout: Layout,
    /// Why it cannot be measured here.
    pub skip: Option<String>,
}

/// Looks at a candidate on what it stands on; leaves nothing behind there.
pub fn examine(experiment: &Experiment, targets: &LayoutTargets, index: usize) -> Examined {
    let mut layout = describe_delayed(experiment, index, targets.delayed_by(index));
    let placement = || {
        let found = targets.placement(experiment, index);
        found.map_err(|error| error.to_string())
    };
    let skip = match &experiment.database_of(index).spec {
        DatabaseSpec::Kernel(kernel) => placement().map_or_else(Some, |placement| {
            tell_beneath(targets, &placement, index, &mut layout);
            examine_kernel(kernel, experiment, &placement, index, &mut layout)
        }),
        DatabaseSpec::Server(server) => placement().map_or_else(Some, |placement| {
            tell_beneath(targets, &placement, index, &mut layout);
            examine_server(server, experiment, targets, index, &mut layout)
        }),
        DatabaseSpec::Remote(spec) => {
            let engine = schemas::engine(experiment, index, spec);
            let looked = look_at(&engine, spec, experiment.plan.restore, &mut layout);
            looked.err().map(|error| error.to_string())
        }
    };
    Examined { layout, skip }
}

/// Adds what lies beneath the files of a candidate to what is told of the layout.
fn tell_beneath(targets: &LayoutTargets, placement: &Placement, index: usize, layout: &mut Layout) {
    if let Some(on) = on_plain_files(&placement.data) {
        layout.name = format!("{} ({on})", layout.name);
    }
    if let PlacementTarget::Directory(directory) = &placement.data
        && let Some(file_system) = DataPath::capture(&SystemTree::default(), directory).file_system
    {
        layout.description = format!(
            "{}; {} on {}",
            layout.description, file_system.kind, file_system.mount_point
        );
    }
    if let Some(description) = targets.description(index) {
        layout.description = format!("{}; {description}", layout.description);
    }
}

/// Looks whether the embedded database can be as a layout asks; the reason when not.
fn examine_kernel(
    kernel: &KernelSpec,
    experiment: &Experiment,
    placement: &Placement,
    index: usize,
    layout: &mut Layout,
) -> Option<String> {
    let of = &experiment.layouts[index];
    let has_temp = !blocks::shape_of(experiment, index, kernel)
        .temp_bytes
        .is_empty();
    layout.notes.extend(unused_placements(of, has_temp));
    let buffered_redo = redo_is_buffered(kernel, of.io, placement);
    let skip = reason_to_skip(
        kernel,
        of.io,
        placement,
        (has_temp, buffered_redo.is_some()),
    );
    layout.notes.extend(buffered_redo);
    match skip {
        Some(Refusal::NotDirect(why)) => {
            layout.not_direct = Some(why);
            layout.not_direct_note()
        }
        Some(Refusal::Other(why)) => Some(why),
        None => cannot_be_put_back(experiment, placement, index),
    }
}

/// Why a layout cannot be measured here.
enum Refusal {
    /// The file system buffers what is to be direct.
    NotDirect(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotDirect(why) => write!(formatter, "{NOT_DIRECT_HERE}: {why}"),
            Refusal::Other(why) => formatter.write_str(why),
        }
    }
}

/// What datafiles without a file system lie on where Spindle may make no devices: files, and with them a file system
/// after all.
fn on_plain_files(target: &PlacementTarget) -> Option<&'static str> {
    let paths = match target {
        PlacementTarget::Directory(_) => Vec::new(),
        PlacementTarget::Devices(_) | PlacementTarget::DiskGroup(_) => target.paths(),
    };
    let is_file = |path: &&&Path| std::fs::metadata(path).is_ok_and(|found| found.is_file());
    match paths.iter().filter(is_file).count() {
        0 => None,
        1 => Some("on a plain file"),
        _ => Some("on plain files"),
    }
}

/// Looks at an existing server; the reason when it cannot be measured.
fn look_at(
    engine: &RemoteDatabase,
    remote: &RemoteSpec,
    restore: RestoreBy,
    layout: &mut Layout,
) -> Result<(), EngineError> {
    describe_server(layout, engine.examine()?);
    match restore {
        RestoreBy::Reflink => may_copy(remote, Copying::Cloned).map_err(|error| {
            EngineError::unavailable(format!("cannot be restored by {restore}: {error}"))
        }),
        RestoreBy::Copy | RestoreBy::Snapshot => {
            if let Err(error) = may_copy(remote, Copying::Copied) {
                let note = format!("the database is loaded again before each trial: {error}");
                layout.notes.push(note);
            }
            Ok(())
        }
        RestoreBy::Reload => Ok(()),
    }
}

/// Looks whether a server can be as a layout asks; the reason when not.
fn examine_server(
    spec: &ServerSpec,
    experiment: &Experiment,
    targets: &LayoutTargets,
    index: usize,
    layout: &mut Layout,
) -> Option<String> {
    if let Some(reason) = cannot_be_delayed(spec.kind, experiment, targets, index) {
        return Some(reason);
    }
    let files = match ServerFiles::of(spec, experiment, index, targets) {
        Ok(files) => files,
        Err(reason) => return Some(reason.to_string()),
    };
    match files.engine(spec, experiment, index).examine() {
        Err(error) => Some(error.to_string()),
        Ok(found) => {
            describe_server(layout, found);
            let is_on_devices = files.is_on_devices();
            let reason = files_cannot_be_put_back(experiment, &files, index);
            layout.notes.extend(files.notes);
            layout
                .notes
                .extend(not_placed(spec, experiment, index, is_on_devices));
            reason
        }
    }
}

/// Why a server's I/O cannot be delayed as the experiment asks: what is not beneath its files it would not notice.
fn cannot_be_delayed(
    engine: ServerKind,
    experiment: &Experiment,
    targets: &LayoutTargets,
    index: usize,
) -> Option<String> {
    let layout = &experiment.layouts[index];
    let is_beneath = |other: &&spindle_experiment::Layout| {
        other.name == layout.name || layout.placement.layouts().any(|name| name == other.name)
    };
    let delayed = experiment.layouts.iter().filter(is_beneath);
    let delayed = delayed.filter(|other| other.delay.is_some());
    for other in delayed {
        let number = experiment
            .layouts
            .iter()
            .position(|of| of.name == other.name);
        if let Some(DelayedBy::Database { why }) = number.and_then(|of| targets.delayed_by(of)) {
            return Some(format!(
                "no delay here for {}: {engine} does not delay its own I/O, and nothing beneath it can: {why}",
                other.name
            ));
        }
    }
    let redo = experiment
        .redo_apart(index)
        .filter(|_| layout.delay.is_some())?;
    let words = Vocabulary::of(engine.as_str());
    let (log, key) = (words.log, words.log_path?);
    Some(format!(
        "no delay here for the {log}, in {key}: {engine} does not delay its own I/O, and nothing is beneath {}; place it on a \
         layout with this delay instead",
        redo.display()
    ))
}

/// Why a server's files cannot be put back before a trial as the experiment asks.
fn files_cannot_be_put_back(
    experiment: &Experiment,
    files: &ServerFiles,
    index: usize,
) -> Option<String> {
    let by = experiment.plan.restore;
    let reason = match experiment.put_back(index) {
        PutBack::Copy => None,
        _ if files.is_on_devices() => Some(
            "a server's datafiles on raw devices and in disk groups are put back by copying only"
                .to_owned(),
        ),
        PutBack::Clones => {
            let mut places = files.places.values();
            places.find_map(|directory| cannot_be_cloned(by, directory))
        }
        PutBack::ThinVolumes => None,
    }?;
    Some(format!("cannot be restored by {by}: {reason}"))
}

/// What was found of a server, among what is told of a layout.
fn describe_server(layout: &mut Layout, found: Option<FoundServer>) {
    let Some(found) = found else {
        return;
    };
    layout.engine = Some(found.version.clone());
    let settings = found.settings.join(", ");
    for more in [found.version, settings] {
        if !more.is_empty() {
            layout.description = format!("{}; {more}", layout.description);
        }
    }
    layout.notes.extend(found.notes);
}

/// What is placed and a server keeps with its data. Beside datafiles on devices `control`, or else `redo`, says where
/// its other files are.
fn not_placed(
    spec: &ServerSpec,
    experiment: &Experiment,
    index: usize,
    is_on_devices: bool,
) -> Option<String> {
    let layout = &experiment.layouts[index];
    let redo = spec.redo_path.as_ref().map(|_| FileKind::Redo);
    let placed = layout.placement.kinds().map(|(kind, _)| kind).chain(redo);
    let home = match layout.placement.control {
        Some(_) => FileKind::Control,
        None => FileKind::Redo,
    };
    let can_be_placed = server(spec.kind).placed_kinds();
    let kept: Vec<&str> = placed
        .filter(|kind| *kind != FileKind::Data && !can_be_placed.contains(kind))
        .filter(|kind| !is_on_devices || *kind != home)
        .map(FileKind::as_str)
        .collect();
    let note = format!("{} keeps {} beside its data", spec.kind, kept.join(" and "));
    (!kept.is_empty()).then_some(note)
}

/// What is placed and does not exist: it has tempfiles only for a workload that asks queries.
fn unused_placements(layout: &spindle_experiment::Layout, has_temp: bool) -> Option<String> {
    let kinds = layout.placement.kinds().map(|(kind, _)| kind);
    let unused: Vec<&str> = kinds
        .filter(|kind| *kind == FileKind::Index || *kind == FileKind::Temp && !has_temp)
        .map(FileKind::as_str)
        .collect();
    let none = format!(
        "the embedded database has no {} files to place here",
        unused.join(" or ")
    );
    (!unused.is_empty()).then_some(none)
}

fn reason_to_skip(
    kernel: &KernelSpec,
    io: AccessPath,
    placement: &Placement,
    (has_temp, may_buffer_redo): (bool, bool),
) -> Option<Refusal> {
    let redo = kernel.redo_access_path(io);
    let block_bytes = Some(kernel.files.block_size_bytes);
    let of_data = placement.data.paths().into_iter().find_map(|path| {
        let atomic = || cannot_atomic(kernel, io, path).map(Refusal::Other);
        cannot(io, path, block_bytes).or_else(atomic)
    });
    let elsewhere = |kind: FileKind, target: &PlacementTarget, io, block_bytes| {
        let mut paths = target.paths().into_iter();
        let reason = paths.find_map(|path| cannot(io, path, block_bytes))?;
        Some(Refusal::Other(format!("{kind}: {reason}")))
    };
    let of_temp = || match has_temp {
        true => elsewhere(FileKind::Temp, &placement.temp, io, block_bytes),
        false => None,
    };
    let of_redo = || match may_buffer_redo {
        true => unavailable(redo.method),
        false => elsewhere(FileKind::Redo, &placement.redo, redo, None),
    };
    of_data.or_else(of_redo).or_else(of_temp)
}

/// That direct writes of redo, which the experiment did not ask for, pass through the page cache: on tmpfs, and on
/// btrfs now and then. Each is flushed all the same, so the layout can be measured.
fn redo_is_buffered(kernel: &KernelSpec, io: AccessPath, placement: &Placement) -> Option<String> {
    if kernel.redo_io.is_some() || kernel.redo_access_path(io).caching == Caching::Buffered {
        return None;
    }
    let mut paths = placement.redo.paths().into_iter();
    let reason = paths.find_map(|path| match facts::direct_probe(path) {
        Ok(DirectProbe::NotDirect {
            reason,
            is_taken: true,
        }) => Some(reason),
        _ => None,
    })?;
    Some(format!("redo: {NOT_DIRECT_HERE}: {reason}"))
}

/// Why the database cannot be put back before a trial as the experiment asks.
fn cannot_be_put_back(
    experiment: &Experiment,
    placement: &Placement,
    index: usize,
) -> Option<String> {
    let by = experiment.plan.restore;
    if experiment.put_back(index) != PutBack::Clones {
        return None;
    }
    let targets = [
        &placement.control,
        &placement.redo,
        &placement.undo,
        &placement.data,
        &placement.temp,
    ];
    let reason = targets.into_iter().find_map(|target| match target {
        PlacementTarget::Directory(directory) => cannot_be_cloned(by, directory),
        PlacementTarget::Devices(_) | PlacementTarget::DiskGroup(_) => {
            Some("not all files are on a file system".to_owned())
        }
    })?;
    Some(format!("cannot be restored by {by}: {reason}"))
}

/// Why files in a directory cannot share the blocks of originals.
fn cannot_be_cloned(by: RestoreBy, directory: &Path) -> Option<String> {
    let kind = DataPath::capture(&SystemTree::default(), directory).file_system;
    let refused = kind.and_then(|file_system| by.refusal_on(&file_system.kind));
    refused.or_else(|| reflink_refusal(directory))
}

/// Why an access path cannot be used in a directory.
fn cannot(io: AccessPath, directory: &Path, block_bytes: Option<u64>) -> Option<Refusal> {
    if io.caching == Caching::Direct
        && let Some(reason) = cannot_direct(directory, block_bytes)
    {
        return Some(reason);
    }
    unavailable(io.method)
}

/// Why this system lacks a method, if it does.
fn unavailable(method: Method) -> Option<Refusal> {
    let why = method.available().err()?;
    Some(Refusal::Other(why.to_string()))
}

/// Why a device does not keep the promise that `torn_blocks = "atomic"` relies on.
fn cannot_atomic(kernel: &KernelSpec, io: AccessPath, directory: &Path) -> Option<String> {
    if kernel.instance.torn_blocks != TornBlocks::Atomic {
        return None;
    }
    let instead = "choose torn_blocks = \"images\" or \"double_write\"";
    if io.caching == Caching::Buffered {
        return Some(format!(
            "torn_blocks is \"atomic\", and only direct writes can be atomic: {instead}"
        ));
    }
    match facts::atomic_write_bytes(directory) {
        Err(error) => Some(error.to_string()),
        Ok(bytes) if u64::from(bytes) >= kernel.files.block_size_bytes => None,
        Ok(bytes) => Some(format!(
            "torn_blocks is \"atomic\", but the device under {} promises atomic writes of {bytes} bytes at most, and a \
             block has {}: {instead}",
            directory.display(),
            kernel.files.block_size_bytes
        )),
    }
}

fn cannot_direct(directory: &Path, block_bytes: Option<u64>) -> Option<Refusal> {
    match facts::direct_probe(directory) {
        Err(error) => return Some(Refusal::NotDirect(error.to_string())),
        Ok(DirectProbe::NotDirect { reason, .. }) => {
            return Some(Refusal::NotDirect(reason));
        }
        Ok(DirectProbe::Direct) => {}
    }
    smaller_than_sectors(directory, block_bytes?).map(Refusal::Other)
}

/// Why blocks of this size cannot be written alone to the device at a path, or beneath it.
pub(super) fn smaller_than_sectors(path: &Path, block_bytes: u64) -> Option<String> {
    let device = DataPath::capture(&SystemTree::default(), path).device?;
    let sector_bytes = u64::from(device.logical_sector_bytes?);
    (block_bytes < sector_bytes).then(|| {
        format!(
            "blocks of {} are smaller than the device's sectors of {}: choose a larger block_size",
            size(block_bytes),
            size(sector_bytes)
        )
    })
}
