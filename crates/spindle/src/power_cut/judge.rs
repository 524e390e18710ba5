//! Judging a recorded case: the power is cut at many moments of its log, and each time the layout is attached, the
//! database recovered and compared with what had been promised by then. A file system is mounted, so that it recovers
//! first, and checked afterwards; raw devices are files in place of devices.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_engines::kernel::{IoSettings, OpenStorage};
use spindle_engines::power_cut::{Broken, PowerCutSurvey, Promises, survey};
use spindle_io::disk_group::DiskGroup;
use spindle_io::real::{AccessPath, Caching, Method, Queue, RealEnv, block_on};
use spindle_io::sim::DiskImage;
use spindle_io::{BlockDevice, Env};
use spindle_layout::file_system;
use spindle_layout::power_cut::{Cut, CutKind, Notes, Replay, WriteLog, draw_cuts};
use spindle_layout::spec::{FileSystemSpec, LayoutKind};
use spindle_layout::tool::{Tools, find};
use spindle_layout::{
    DiskGroupTarget, GroupStripes, KnownDevice, LayoutError, PlacementTarget, RawDevice,
};

use super::case::CutCase;
use super::error::PowerCutError;
use super::record::CutRecording;
use spindle_text::files;

/// Kinds of cuts that a layout must survive.
const HONEST: [CutKind; 2] = [CutKind::InOrder, CutKind::Scattered];
/// One cut of the control for this many others, and some at the least.
const CUTS_PER_CONTROL: usize = 5;
const CONTROLS_MIN: usize = 10;
/// Harm told in words, of each row.
const TOLD_MAX: usize = 3;

/// What became of a case: one row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CutRow {
    /// The case's key.
    pub case: String,
    /// The layout's name.
    pub layout: String,
    /// What it is made of.
    pub stack: String,
    /// `buffered` or `direct`, and the method.
    pub io: String,
    /// `wait` or `nowait`.
    pub commit: String,
    /// Whether commits wait: then nothing may be lost.
    pub waits: bool,
    /// Requests in the log while the workload ran, marks included.
    pub requests: u64,
    /// Acknowledged commits at the end.
    pub acknowledged: u64,
    /// Moments at which the power was cut.
    pub cuts: u64,
    /// Acknowledged commits that were gone, of all cuts.
    pub lost: u64,
    /// Cuts after which any were gone.
    pub cuts_with_loss: u64,
    /// Torn blocks in the datafiles before recovery, of all cuts.
    pub torn_blocks: u64,
    /// Redo rolled forward, bytes, of all cuts.
    pub redo_bytes: u64,
    /// Transactions rolled back, of all cuts.
    pub rolled_back: u64,
    /// Cuts after which the file system, or the database, did not come back or was wrong.
    pub broken: u64,
    /// Cuts after which the file system's own check found something to repair, although it had been mounted.
    pub file_system_damage: u64,
    /// Extents of a disk group, of all cuts, whose copies differed after recovery.
    pub divergent_extents: u64,
    /// Cuts of a device that ignores flushes.
    pub control_cuts: u64,
    /// Those of them that did harm.
    pub control_harmed: u64,
    /// What was wrong, in words, of the first such cuts.
    pub told: Vec<String>,
}

impl CutRow {
    /// Why the case did not pass; `None` when it did.
    pub fn failure(&self) -> Option<String> {
        let mut wrong = Vec::new();
        if self.waits && self.lost > 0 {
            wrong.push(format!("{} acknowledged commits lost", self.lost));
        }
        if self.broken > 0 {
            wrong.push(format!("{} cuts not recovered from", self.broken));
        }
        if self.file_system_damage > 0 {
            wrong.push(format!(
                "{} times a damaged file system",
                self.file_system_damage
            ));
        }
        if self.divergent_extents > 0 {
            wrong.push(format!(
                "{} extents whose copies differ",
                self.divergent_extents
            ));
        }
        if self.control_harmed == 0 {
            wrong.push("the control lost nothing, so this row shows nothing".to_owned());
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judging {
    /// Cuts of each case, those of the control not counted.
    pub cuts: usize,
    /// Draws the cuts.
    pub seed: u64,
}

/// Judges a case by its log, which is in the file or on the device `log`. Images are made in `work`, which must be the
/// program's own. `go_on` is asked before each cut, and what it says ends it.
pub fn judge(
    case: &CutCase,
    recording: &CutRecording,
    log: &Path,
    work: &Path,
    judging: Judging,
    go_on: &dyn Fn() -> Result<(), PowerCutError>,
) -> Result<CutRow, PowerCutError> {
    let log = WriteLog::open(log, recording.log_first_byte)?;
    let notes = Notes::of(&log);
    let Some((first, last)) = notes.running() else {
        return Err(PowerCutError::NothingRecorded { case: case.key() });
    };
    if log.flushes() == 0 {
        return Err(PowerCutError::NoWriteCache { case: case.key() });
    }
    let mut row = CutRow {
        case: case.key(),
        layout: case.layout.clone(),
        stack: case.stack(),
        io: format!("{}, {}", case.io.caching, case.io.method),
        commit: case.database.instance.commit.to_string(),
        waits: case.waits(),
        requests: (last - first) as u64,
        acknowledged: notes.in_the_end().iter().sum(),
        ..CutRow::default()
    };
    let scene = AttachedImages { case, work };
    let mut replay = Replay::new(&log, recording.volumes.clone());
    for cut in cuts(first, last, judging) {
        go_on()?;
        let found = scene.recover(&replay.after(cut), &notes, cut)?;
        row.add(cut, found);
    }
    Ok(row)
}

fn cuts(first: usize, last: usize, judging: Judging) -> Vec<Cut> {
    let Judging { cuts, seed } = judging;
    let controls = cuts.div_ceil(CUTS_PER_CONTROL).max(CONTROLS_MIN);
    let mut all = draw_cuts(first, last, &HONEST, cuts, seed);
    all.extend(draw_cuts(
        first,
        last,
        &[CutKind::FlushesIgnored],
        controls,
        seed,
    ));
    all
}

/// What was found after one cut.
struct CutFindings {
    database: Result<PowerCutSurvey, Broken>,
    file_system_damage: Option<String>,
    /// Extents of a disk group whose copies differ, and what else its check finds.
    divergence: Vec<String>,
}

impl Default for CutFindings {
    fn default() -> CutFindings {
        CutFindings {
            database: Ok(PowerCutSurvey::default()),
            file_system_damage: None,
            divergence: Vec::new(),
        }
    }
}

impl CutRow {
    fn add(&mut self, cut: Cut, found: CutFindings) {
        let (lost, broken) = match &found.database {
            Ok(survey) => (survey.lost, None),
            Err(broken) => (0, Some(broken.to_string())),
        };
        if cut.kind == CutKind::FlushesIgnored {
            let is_damaged = found.file_system_damage.is_some() || !found.divergence.is_empty();
            let is_harmed = lost > 0 || broken.is_some() || is_damaged;
            self.control_cuts += 1;
            self.control_harmed += u64::from(is_harmed);
            return;
        }
        self.cuts += 1;
        self.lost += lost;
        self.cuts_with_loss += u64::from(lost > 0);
        self.broken += u64::from(broken.is_some());
        self.file_system_damage += u64::from(found.file_system_damage.is_some());
        self.divergent_extents += found.divergence.len() as u64;
        if let Ok(survey) = found.database {
            self.torn_blocks += survey.torn_blocks;
            self.redo_bytes += survey.redo_bytes;
            self.rolled_back += survey.rolled_back;
        }
        let loss = (self.waits && lost > 0).then(|| format!("{lost} acknowledged commits lost"));
        for words in [loss, broken, found.file_system_damage]
            .into_iter()
            .flatten()
        {
            if self.told.len() < TOLD_MAX {
                let Cut {
                    entries,
                    kind,
                    seed,
                } = cut;
                self.told.push(format!(
                    "cut after request {entries}, {kind:?}, seed {seed}: {words}"
                ));
            }
        }
    }
}

/// Where images are attached.
struct AttachedImages<'a> {
    case: &'a CutCase,
    work: &'a Path,
}

impl AttachedImages<'_> {
    fn recover(
        &self,
        images: &[DiskImage],
        notes: &Notes,
        cut: Cut,
    ) -> Result<CutFindings, PowerCutError> {
        let mut volumes = Vec::new();
        for (number, image) in images.iter().enumerate() {
            let path = self.work.join(format!("volume{number}.img"));
            write_image(&path, image)
                .map_err(|source| PowerCutError::system("write the image", &path, source))?;
            volumes.push(RawDevice::look(&path, image.capacity_bytes() as u64)?);
        }
        let found = match &self.case.spec.kind {
            LayoutKind::FileSystem(of) => self.on_file_system(of, volumes[0].path(), notes, cut)?,
            LayoutKind::Raw => CutFindings {
                database: self.survey(&PlacementTarget::Devices(volumes.clone()), notes, cut)?,
                ..CutFindings::default()
            },
            LayoutKind::DiskGroup => self.in_disk_group(&volumes, notes, cut)?,
        };
        for volume in volumes {
            let path = volume.path();
            std::fs::remove_file(path)
                .map_err(|source| PowerCutError::system("remove", path, source))?;
        }
        Ok(found)
    }

    /// Mounts the file system, which lets it recover, and has it checked when the database is down again.
    fn on_file_system(
        &self,
        of: &FileSystemSpec,
        image: &Path,
        notes: &Notes,
        cut: Cut,
    ) -> Result<CutFindings, PowerCutError> {
        let at = self.work.join("mounted");
        let found = match Mounted::mount(image, &at, &of.mount_options)? {
            Mount::Refused(words) => CutFindings {
                database: Err(Broken::NotRecovered(words)),
                ..CutFindings::default()
            },
            Mount::Came(mounted) => {
                let database = self.survey(&PlacementTarget::Directory(at.clone()), notes, cut)?;
                mounted.unmount()?;
                CutFindings {
                    database,
                    file_system_damage: damage(&of.type_name, image),
                    ..CutFindings::default()
                }
            }
        };
        std::fs::remove_dir(&at).map_err(|source| PowerCutError::system("remove", &at, source))?;
        Ok(found)
    }

    /// Has the copies of every extent compared when the database is down again.
    fn in_disk_group(
        &self,
        volumes: &[RawDevice],
        notes: &Notes,
        cut: Cut,
    ) -> Result<CutFindings, PowerCutError> {
        let disks: Vec<KnownDevice> = volumes.iter().map(|of| of.device.clone()).collect();
        let target = PlacementTarget::DiskGroup(DiskGroupTarget {
            disks: disks.clone(),
            prefix: String::new(),
            // Its files exist already.
            stripes: GroupStripes::default(),
            preferred_failure_group: None,
        });
        let database = self.survey(&target, notes, cut)?;
        let (findings, database) = match (block_on(compare_copies(&disks)), database) {
            (Ok(findings), database) => (findings, database),
            (Err(_), Err(broken)) => (Vec::new(), Err(broken)),
            (Err(error), Ok(_)) => (Vec::new(), Err(Broken::Wrong(error.to_string()))),
        };
        Ok(CutFindings {
            database,
            divergence: findings,
            ..CutFindings::default()
        })
    }

    /// Every cut is recovered from by one access path, the simplest: it is the recording that differs. The inner error:
    /// the database did not survive; the outer one: it could not be judged.
    fn survey(
        &self,
        target: &PlacementTarget,
        notes: &Notes,
        cut: Cut,
    ) -> Result<Result<PowerCutSurvey, Broken>, PowerCutError> {
        let files = self.case.files_on(target)?;
        let env: Arc<dyn Env> = RealEnv::new(cut.seed);
        let (settings, workload) = (self.case.settings(), self.case.workload());
        let path = IoSettings::of(AccessPath::new(Caching::Buffered, Method::Sync));
        let promises = Promises {
            acknowledged: notes.acknowledged(cut.entries),
            in_the_end: notes.in_the_end(),
        };
        let judged = block_on(async {
            let opened = match OpenStorage::open(&files, path, settings.block_bytes).await {
                Ok(opened) => opened,
                Err(error) => return Broken::not_recovered(error).map(Err),
            };
            let found = survey(&env, &opened.storage, &settings, &workload, promises).await;
            opened.close().await;
            found
        });
        Ok(judged?)
    }
}

/// What the disk group's own check finds.
async fn compare_copies(disks: &[KnownDevice]) -> Result<Vec<String>, PowerCutError> {
    let env: Arc<dyn Env> = RealEnv::new(0);
    let mut devices: Vec<Arc<dyn BlockDevice>> = Vec::new();
    for disk in disks {
        let device = disk.open(Caching::Direct, Queue::sync())?;
        devices.push(Arc::new(device));
    }
    let group = DiskGroup::mount(&env, &devices)
        .await
        .map_err(LayoutError::from)?;
    let checked = group.check().await.map_err(LayoutError::from)?;
    group.dismount().await.map_err(LayoutError::from)?;
    Ok(checked.findings.iter().map(ToString::to_string).collect())
}

/// A new sparse file. Not the old one again: a loop device that still lets go of that one would be mounted in its
/// place, with all it remembers.
fn write_image(path: &Path, image: &DiskImage) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = files::create_new(path)?;
    file.set_len(image.capacity_bytes() as u64)?;
    for (at, part) in image.parts() {
        file.write_all_at(part, at as u64)?;
    }
    Ok(())
}

/// An image's file system, for as long as it is mounted.
struct Mounted {
    at: PathBuf,
    is_mounted: bool,
}

/// What came of mounting a file system after a power cut.
enum Mount {
    /// It is mounted.
    Came(Mounted),
    /// It does not come back, in the tool's words.
    Refused(String),
}

impl Mounted {
    /// Mounts an image, which lets the file system recover.
    fn mount(image: &Path, at: &Path, options: &str) -> Result<Mount, PowerCutError> {
        std::fs::create_dir_all(at)
            .map_err(|source| PowerCutError::system("make the directory", at, source))?;
        let options = ["loop", options].join(",");
        let [image, directory] = [image, at].map(|path| path.display().to_string());
        let arguments = ["-o", options.trim_end_matches(','), &image, &directory];
        Ok(match Tools::new().run("mount", &arguments) {
            Err(error) => Mount::Refused(error.to_string()),
            Ok(_) => Mount::Came(Mounted {
                at: at.to_owned(),
                is_mounted: true,
            }),
        })
    }

    fn unmount(mut self) -> Result<(), PowerCutError> {
        self.is_mounted = false;
        Tools::new().run("umount", &[&self.at.display().to_string()])?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // An error or a panic is under way already.
            let _ = Tools::new().run("umount", &[&self.at.display().to_string()]);
        }
    }
}

/// What a file system's own check says is wrong, where there is such a check.
fn damage(type_name: &str, image: &Path) -> Option<String> {
    let (tool, option) = file_system::kind(type_name)?.check?;
    find(tool)?;
    Tools::new()
        .run(tool, &[option, &image.display().to_string()])
        .err()
        .map(|error| error.to_string())
}
