//! The cases of a power-cut table: each candidate of an experiment, made small on a device whose writes are logged,
//! once with commits that wait and once with commits that do not. What a candidate is made of stays as the experiment
//! says; sizes do not, because every case is recovered hundreds of times.

use std::path::PathBuf;

use spindle_engines::kernel::{self, Commit, KernelSettings, double_write_bytes, files_of};
use spindle_io::real::facts;
use spindle_layout::file_system;
use spindle_layout::spec::{DeviceSpec, FileSystemSpec, LayoutKind, Preparation};
use spindle_layout::{
    DatabaseFiles, DatabaseShape, LayoutError, LayoutSpec, Placement, PlacementTarget, RawSpace,
};
use spindle_workload::{OltpMix, OltpMixSettings, Workload};
use thiserror::Error;

use super::error::PowerCutError;
use spindle_experiment::{
    AccessPath, DatabaseSpec, DiskGroupSpec, Experiment, KernelSpec, Layout, TornBlocks,
};

/// Clients of a recording.
pub const CLIENTS: usize = 4;

const MIB: u64 = 1 << 20;
/// Loaded data.
const DATA_BYTES: u64 = 2 * MIB;
/// A quarter of the data at most, so that DBWR has to make room.
const BUFFER_CACHE_BYTES: u64 = MIB;
const DATAFILES: usize = 2;
/// The ring goes round in every recording.
const LOG_FILES: usize = 3;
const LOG_FILE_BYTES: u64 = MIB;
const UNDO_BYTES: u64 = 2 * MIB;
const CHECKPOINT_INTERVAL_NS: u64 = 200_000_000;
const CHECKPOINT_PROGRESS_NS: u64 = 100_000_000;

/// Room for a database on devices that hold nothing else, or a file system that is content with little.
const LAYOUT_BYTES: u64 = 112 * MIB;
/// XFS takes no less than 300 MiB, btrfs little less.
const LARGE_LAYOUT_BYTES: u64 = 416 * MIB;

/// One row of the table.
pub struct CutCase {
    /// The layout's name in the experiment.
    pub layout: String,
    /// The access path of its datafiles.
    pub io: AccessPath,
    /// Its database, with the commit of this case.
    pub database: KernelSpec,
    /// What it is made of; its devices are stood in for.
    pub spec: LayoutSpec,
    /// The disk group that its devices become, if so.
    pub disk_group: Option<DiskGroupSpec>,
}

impl CutCase {
    /// The cases of an experiment, or why a candidate has none.
    pub fn all(experiment: &Experiment) -> Vec<Result<CutCase, PowerCutError>> {
        let both = |index: usize| {
            [Commit::Wait, Commit::NoWait].map(|commit| {
                let layout = &experiment.layouts[index];
                let DatabaseSpec::Kernel(spec) = &experiment.database_of(index).spec else {
                    return Err(PowerCutError::CannotBeCut {
                        layout: layout.name.clone(),
                        reason: "only the embedded database can be recovered here".to_owned(),
                    });
                };
                let mut spec = spec.clone();
                spec.instance.commit = commit;
                CutCase::of(layout, spec)
            })
        };
        experiment.candidates().flat_map(both).collect()
    }

    fn of(layout: &Layout, database: KernelSpec) -> Result<CutCase, PowerCutError> {
        let cannot = |reason: String| PowerCutError::CannotBeCut {
            layout: layout.name.clone(),
            reason,
        };
        let made = layout.made.as_ref();
        let spec = match made {
            Some(made) => made.spec.clone(),
            None => like_directory(layout).map_err(|why| cannot(why.to_string()))?,
        };
        if spec
            .volume
            .as_ref()
            .is_some_and(|volume| volume.thin || volume.mirrors > 0)
        {
            let reason = "power cuts can be replayed on linear and striped volumes only";
            return Err(cannot(reason.to_owned()));
        }
        if database.instance.torn_blocks == TornBlocks::Atomic {
            let reason = "a logged device does not promise atomic writes";
            return Err(cannot(reason.to_owned()));
        }
        Ok(CutCase {
            layout: layout.name.clone(),
            io: layout.io,
            database,
            spec,
            disk_group: made.and_then(|made| made.disk_group.clone()),
        })
    }

    /// What it is known by in the directory of the table.
    pub fn key(&self) -> String {
        format!(
            "{}, commit = {}",
            self.layout, self.database.instance.commit
        )
    }

    /// From the volume up, in words.
    pub fn stack(&self) -> String {
        let volume = self.spec.volume.as_ref().map(ToString::to_string);
        let kind = match &self.spec.kind {
            LayoutKind::Raw => "raw".to_owned(),
            LayoutKind::FileSystem(of) => of.type_name.clone(),
            LayoutKind::DiskGroup => match &self.disk_group {
                Some(group) => format!("disk group, {} redundancy", group.redundancy),
                None => "disk group".to_owned(),
            },
        };
        volume
            .into_iter()
            .chain([kind])
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// How large each device that stands in is.
    pub fn device_bytes(&self) -> u64 {
        let total = match &self.spec.kind {
            LayoutKind::FileSystem(of) if is_for_large_devices(&of.type_name) => LARGE_LAYOUT_BYTES,
            LayoutKind::DiskGroup => LAYOUT_BYTES * self.spec.devices.len() as u64,
            _ => LAYOUT_BYTES,
        };
        (total / self.spec.devices.len() as u64).next_multiple_of(16 * MIB)
    }

    /// The layout on these devices.
    pub fn spec_on(&self, devices: &[PathBuf]) -> LayoutSpec {
        LayoutSpec {
            devices: devices.iter().cloned().map(DeviceSpec::Existing).collect(),
            share: None,
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
            ..self.spec.clone()
        }
    }

    /// What clients do.
    pub fn workload(&self) -> OltpMix {
        OltpMix {
            data_bytes: DATA_BYTES,
            clients: CLIENTS as u64,
            settings: OltpMixSettings {
                read_percent: 20,
                row_operations: 4,
            },
        }
    }

    /// The instance's settings.
    pub fn settings(&self) -> KernelSettings {
        let mut settings = self.database.settings();
        settings.instance.checkpoint_interval_ns = CHECKPOINT_INTERVAL_NS;
        KernelSettings {
            buffer_cache_bytes: BUFFER_CACHE_BYTES.max(64 * settings.block_bytes as u64),
            log_buffer_bytes: 16 * settings.block_bytes,
            checkpoint_progress_ns: CHECKPOINT_PROGRESS_NS,
            ..settings
        }
    }

    /// Whether commits wait for their redo.
    pub fn waits(&self) -> bool {
        self.database.instance.commit == Commit::Wait
    }

    /// The access path of the datafiles and that of the log files.
    pub fn paths(&self) -> [kernel::IoSettings; 2] {
        let redo = self.database.redo_access_path(self.io);
        [self.io, redo].map(|io| self.database.io(io, None))
    }

    /// Sizes of the database's files.
    pub fn shape(&self) -> DatabaseShape {
        let (workload, settings) = (self.workload(), self.settings());
        let block_bytes = settings.block_bytes;
        let mut shape = files_of(
            &workload as &dyn Workload,
            CLIENTS,
            block_bytes,
            DATAFILES,
            LOG_FILES,
            LOG_FILE_BYTES.max(64 * block_bytes as u64),
        );
        shape.undo_bytes = UNDO_BYTES;
        if self.database.instance.torn_blocks == TornBlocks::DoubleWrite {
            shape.double_write_bytes =
                double_write_bytes(block_bytes, settings.instance.writers as usize);
        }
        shape
    }

    /// The sizes of the files that [`DatabaseFiles::named`] lists, in that order.
    pub fn file_sizes(&self) -> Vec<u64> {
        let shape = self.shape();
        let mut sizes = vec![shape.control_bytes];
        sizes.extend(shape.redo_bytes);
        sizes.push(shape.undo_bytes);
        sizes.extend(shape.data_bytes);
        sizes.push(shape.double_write_bytes);
        sizes
    }

    /// The database's files on a target; the same places on targets of the same sizes.
    pub fn files_on(&self, target: &PlacementTarget) -> Result<DatabaseFiles, LayoutError> {
        let placement = Placement::one(target);
        DatabaseFiles::place(&self.shape(), &placement, &mut RawSpace::default())
    }

    pub(super) fn not_made(&self, reason: String) -> PowerCutError {
        PowerCutError::NotMade {
            layout: self.layout.clone(),
            reason,
        }
    }
}

fn is_for_large_devices(type_name: &str) -> bool {
    file_system::kind(type_name).is_some_and(|kind| (kind.least_mib)(1) > 0)
}

/// Why there is no new file system like that of a directory.
#[derive(Debug, Error)]
enum NoneLikeIt {
    /// What it is on is unknown.
    #[error("{0}")]
    Unknown(String),
    /// It is on another kind than those that Spindle makes.
    #[error("{} is on {type_name}, and Spindle makes {}", path.display(), file_system::names().collect::<Vec<_>>().join(", "))]
    NotMade {
        /// The directory.
        path: PathBuf,
        /// What it is on.
        type_name: String,
    },
}

/// A layout that is an existing directory: a new file system of its type, on a device that stands in.
fn like_directory(layout: &Layout) -> Result<LayoutSpec, NoneLikeIt> {
    let file_system =
        facts::file_system(&layout.path).map_err(|error| NoneLikeIt::Unknown(error.to_string()))?;
    let type_name = file_system.type_name;
    if file_system::kind(&type_name).is_none() {
        let path = layout.path.clone();
        return Err(NoneLikeIt::NotMade { path, type_name });
    }
    let file_system = FileSystemSpec {
        type_name,
        mkfs_options: Vec::new(),
        mount_options: String::new(),
    };
    Ok(LayoutSpec {
        name: layout.name.clone(),
        devices: vec![DeviceSpec::Existing(PathBuf::new())],
        volume: None,
        kind: LayoutKind::FileSystem(file_system),
        share: None,
        erase: Vec::new(),
        preparation: Preparation::default(),
        delay: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(layout: &str) -> Vec<Result<CutCase, PowerCutError>> {
        let text = format!("[[layout]]\nname = \"it\"\n{layout}\n");
        CutCase::all(&Experiment::parse("test.toml", &text, &[]).unwrap())
    }

    const TWO: &str =
        "devices = [{ file = \"a\", size = \"1GiB\" }, { file = \"b\", size = \"1GiB\" }]\n";

    #[test]
    fn a_candidate_has_a_case_for_each_way_to_commit() {
        let cases = cases(&format!(
            "{TWO}volume = {{ stripes = 2 }}\nfilesystem = \"xfs\""
        ));
        let cases: Vec<CutCase> = cases.into_iter().map(Result::unwrap).collect();
        let keys: Vec<String> = cases.iter().map(CutCase::key).collect();
        assert_eq!(keys, ["it, commit = wait", "it, commit = nowait"]);
        assert!(cases[0].waits() && !cases[1].waits());
        assert!(cases[0].device_bytes() * 2 >= LARGE_LAYOUT_BYTES);
        let devices = ["/dev/x", "/dev/y"].map(PathBuf::from);
        assert_eq!(cases[0].spec_on(&devices).volume, cases[0].spec.volume);
        assert_eq!(
            cases[0].file_sizes().iter().sum::<u64>(),
            cases[0].shape().total_bytes()
        );
    }

    #[test]
    fn a_server_is_refused() {
        let text = format!(
            "[database]\nengine = \"sqlite\"\n[[layout]]\nname = \"it\"\n{TWO}raw = true\n"
        );
        let experiment = Experiment::parse("test.toml", &text, &[]).unwrap();
        for case in CutCase::all(&experiment) {
            let told = case.err().expect("no case").to_string();
            assert!(told.contains("only the embedded database"), "{told}");
        }
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        for volume in ["mirrors = 1", "thin = true"] {
            let layout = format!("{TWO}volume = {{ {volume} }}\nraw = true");
            for case in cases(&layout) {
                let told = case.err().expect("no case").to_string();
                assert!(told.contains("linear and striped"), "{told}");
            }
        }
    }
}
