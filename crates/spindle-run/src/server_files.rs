//! Where the files of a server's database go on a layout, and what is asked of the server for that. Where the datafiles
//! are placed on raw devices or in a disk group, all its other files need a file system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use spindle_engines::EngineError;
use spindle_engines::database::ServerDatabase;
use spindle_engines::sql::{Server, ServerRequest, server};
use spindle_layout::{DiskGroupTarget, GroupedFile, PlacementTarget, RawFile};

use super::layout_targets::LayoutTargets;
use spindle_experiment::{Experiment, ServerSpec};
use spindle_text::file_kind::FileKind;

/// A server's files on a layout.
#[derive(Debug, Clone)]
pub struct ServerFiles {
    /// What is asked of the server.
    pub request: ServerRequest,
    /// The directory for each kind of file.
    pub places: BTreeMap<FileKind, PathBuf>,
    /// Datafiles that lie on raw devices.
    pub raw: Vec<RawFile>,
    /// Datafiles that lie in a disk group.
    pub grouped: Vec<GroupedFile>,
    /// What is to be known of that.
    pub notes: Vec<String>,
}

impl ServerFiles {
    /// Those of a layout. Error: why it cannot hold them, in words.
    pub fn of(
        spec: &ServerSpec,
        experiment: &Experiment,
        layout: usize,
        targets: &LayoutTargets,
    ) -> Result<ServerFiles, EngineError> {
        let of = &experiment.layouts[layout];
        let request = request_of(spec, experiment, layout);
        let mut by_kind: BTreeMap<FileKind, PlacementTarget> =
            targets.places(experiment, layout)?.into_iter().collect();
        let mut files = ServerFiles {
            request,
            places: BTreeMap::new(),
            raw: Vec::new(),
            grouped: Vec::new(),
            notes: Vec::new(),
        };
        files.put_data(server(spec.kind), &by_kind[&FileKind::Data])?;
        if !matches!(by_kind[&FileKind::Data], PlacementTarget::Directory(_)) {
            let control = targets.placement(experiment, layout)?.control;
            let home = home(&control, &by_kind[&FileKind::Redo]).ok_or_else(needs_a_home)?;
            for (kind, target) in &mut by_kind {
                let is_directory = matches!(target, PlacementTarget::Directory(_));
                if !is_directory && (*kind == FileKind::Data || of.placement.of(*kind).is_none()) {
                    *target = home.clone();
                }
            }
        }
        for (kind, target) in by_kind {
            let PlacementTarget::Directory(directory) = target else {
                return Err(EngineError::unavailable(format!(
                    "{kind}: a server keeps these files in a file system; place them on a layout that has one"
                )));
            };
            files.places.insert(kind, directory);
        }
        files.stay_out_of_copied(experiment)?;
        Ok(files)
    }

    /// Refuses places within files that the database is copied from: these are only read.
    fn stay_out_of_copied(&self, experiment: &Experiment) -> Result<(), EngineError> {
        let dumps = experiment.workload.dumps().into_iter();
        for dump in dumps.filter(|dump| dump.form.is_of_files()) {
            let is_within =
                |place: &&PathBuf| match (place.canonicalize(), dump.path.canonicalize()) {
                    (Ok(place), Ok(copied)) => place.starts_with(copied),
                    // What is not there yet is made elsewhere.
                    _ => false,
                };
            if let Some(place) = self.places.values().find(is_within) {
                return Err(EngineError::unavailable(format!(
                    "{} lies within {}, which is copied and only read: give the layout another path",
                    place.display(),
                    dump.name
                )));
            }
        }
        Ok(())
    }

    /// The engine that makes them.
    pub fn engine(
        &self,
        spec: &ServerSpec,
        experiment: &Experiment,
        layout: usize,
    ) -> ServerDatabase {
        let size_bytes = experiment.database_of(layout).size_bytes;
        let workload = &experiment.workload;
        ServerDatabase {
            kind: spec.kind,
            request: self.request.clone(),
            workload: workload.in_sql(size_bytes, spec.kind, experiment.seed),
        }
    }

    /// Whether datafiles lie on raw devices or in a disk group.
    pub fn is_on_devices(&self) -> bool {
        !(self.raw.is_empty() && self.grouped.is_empty())
    }

    /// Puts datafiles on devices, if that is where they go. Error: why they cannot be there, in words.
    fn put_data(
        &mut self,
        server: &dyn Server,
        target: &PlacementTarget,
    ) -> Result<(), EngineError> {
        match target {
            PlacementTarget::Directory(_) => {}
            PlacementTarget::Devices(devices) => {
                let on = server.on_raw_devices(&self.request, devices)?;
                (self.request, self.raw, self.notes) = (on.request, on.files, on.notes);
            }
            PlacementTarget::DiskGroup(group) => {
                let within = server.in_disk_group(&self.request, &group.disks)?;
                let file = |(name, bytes)| grouped_file(group, name, bytes);
                self.grouped = within.files.into_iter().map(file).collect();
                (self.request, self.notes) = (within.request, within.notes);
            }
        }
        Ok(())
    }
}

/// What is asked of the server of a layout, wherever its files lie.
pub fn request_of(spec: &ServerSpec, experiment: &Experiment, layout: usize) -> ServerRequest {
    let workload = &experiment.workload;
    let clients = workload.connections_max();
    let data_bytes = experiment.database_of(layout).size_bytes;
    spec.request(data_bytes, clients, experiment.layouts[layout].server_io)
}

fn grouped_file(group: &DiskGroupTarget, name: String, bytes: u64) -> GroupedFile {
    GroupedFile {
        name,
        disks: group.disks.clone(),
        bytes,
        fine_stripes: group.stripes.data_fine,
        preferred_failure_group: group.preferred_failure_group.clone(),
    }
}

/// The file system for what is no datafile: that of the control file, which here stands for all that a server knows of
/// its files, or else that of redo.
fn home(control: &PlacementTarget, redo: &PlacementTarget) -> Option<PlacementTarget> {
    let is_directory = |target: &&PlacementTarget| matches!(target, PlacementTarget::Directory(_));
    [control, redo].into_iter().find(is_directory).cloned()
}

fn needs_a_home() -> EngineError {
    EngineError::unavailable(
        "only datafiles can lie on raw devices or in disk groups; redo and all other files of a server need a file system: add placement = \
     { redo = \"NAME\" }, the name of a layout that has one",
    )
}
