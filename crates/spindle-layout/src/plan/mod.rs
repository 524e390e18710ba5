//! From what layouts are to be made of to the steps that make them. [`ProvisionPlan::of`] is a pure function of the
//! layouts and of [`Facts`], which were looked up before; neither changes anything. What stands in the way of a layout
//! is in its plan, and concerns it alone.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use spindle_text::quantity::size;

use crate::file_system;
use crate::guard::{Appearance, Permit, Refusal};
use crate::spec::{
    Delay, DeviceSharing, DeviceSpec, FileSystemSpec, LayoutKind, LayoutSpec, VolumeSpec,
};
use crate::steps::{
    AttachLoop, ClaimDevice, DelayDevice, DeviceName, MakeDirectory, MakeFile, MakeFileSystem,
    MakeVolume, MakeVolumeGroup, MountFileSystem, OverwriteDevice, Step,
};

mod delayed_by;
mod facts;
mod obstacle;
mod room;
mod share;

pub use delayed_by::DelayedBy;
pub use facts::Facts;
pub use obstacle::{Obstacle, mistakes_of};

/// What a device must hold to be of any use.
const LEAST_DEVICE_BYTES: u64 = 16 << 20;

/// Assumed for the estimate: what a disk writes in a second.
const ASSUMED_BYTES_PER_S: u64 = 200 << 20;

/// Assumed for the estimate: what a step takes apart from writing.
const ASSUMED_STEP: Duration = Duration::from_millis(200);

/// What will be done to make layouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvisionPlan {
    /// What several layouts stand on, done first.
    pub shared: Vec<Step>,
    /// Each layout.
    pub layouts: Vec<LayoutPlan>,
    /// What could not be looked at, in words.
    pub unseen: Option<String>,
}

/// The devices that paths meant when they were looked at.
pub type LookedAt = BTreeMap<PathBuf, Appearance>;

/// What will be done to make one layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutPlan {
    /// Its name in the experiment.
    pub name: String,
    /// Why it cannot be made here; then it has no steps.
    pub obstacles: Vec<Obstacle>,
    /// In this order.
    pub steps: Vec<Step>,
    /// Whether it stands on what is made for several layouts.
    pub is_shared: bool,
    /// Its outcome.
    pub target: PlannedTarget,
    /// Bytes of each device of the target; of a file system, what it will have for files, about.
    pub room_bytes: Vec<u64>,
    /// From the devices up, in words: `disk1.img, disk2.img -> volume of 2 stripes of 64 KiB -> xfs`.
    pub description: String,
    /// What delays its I/O, if that was asked for.
    pub delayed_by: Option<DelayedBy>,
}

/// Where a layout's database will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedTarget {
    /// Files in this directory.
    Directory(PathBuf),
    /// These devices.
    Devices(Vec<DeviceName>),
}

/// A device of a layout, or its part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    name: DeviceName,
    size_bytes: u64,
}

/// Steps, and the devices they lead to; or what stands in the way.
type Prepared = Result<(Vec<Step>, Vec<Piece>), Vec<Obstacle>>;

impl ProvisionPlan {
    /// The devices that will be taken, as they were looked at for this plan.
    pub fn looked_at(&self) -> LookedAt {
        let steps = self.layouts.iter().flat_map(|layout| &layout.steps);
        let claims = self
            .shared
            .iter()
            .chain(steps)
            .filter_map(|step| match step {
                Step::ClaimDevice(claim) => Some((claim.path.clone(), claim.looked_at)),
                _ => None,
            });
        claims.collect()
    }

    /// A device that is another one than when it was looked at `before`, if there is one.
    pub fn changed_since(&self, before: &LookedAt) -> Option<Refusal> {
        let mut now = self.looked_at().into_iter();
        now.find_map(|(path, now)| {
            let before = before.get(&path).filter(|before| **before != now)?;
            let what = before.differs_from(now);
            Some(Refusal::Changed { path, what })
        })
    }

    /// Plans these layouts for the run called `run`.
    pub fn of(specs: &[LayoutSpec], facts: &Facts, run: &str) -> ProvisionPlan {
        let mut shared = share::cut(specs, facts);
        let taken = taken_twice(specs);
        let same = same_storage(specs, facts);
        let layouts = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| {
                let mut obstacles = obstacle::of_spec(spec, facts);
                obstacles.extend(taken.get(&index).cloned().into_iter().flatten());
                obstacles.extend(same.get(&index).cloned().into_iter().flatten());
                let prepared = match spec.share {
                    Some(DeviceSharing::Fair) => shared.parts_of(index),
                    None => prepare_devices(spec, facts),
                };
                LayoutPlan::of(
                    spec,
                    facts,
                    &format!("spindle-{run}-{}", index + 1),
                    obstacles,
                    prepared,
                )
            })
            .collect();
        ProvisionPlan {
            shared: shared.steps(),
            layouts,
            unseen: facts.unseen.clone(),
        }
    }

    /// About how much is written.
    pub fn written_bytes(&self) -> u64 {
        self.all_steps().map(Step::written_bytes).sum()
    }

    /// About how long it takes, at 200 MiB/s.
    pub fn estimated_time(&self) -> Duration {
        let steps = u32::try_from(self.all_steps().count()).unwrap_or(u32::MAX);
        Duration::from_secs(self.written_bytes() / ASSUMED_BYTES_PER_S) + ASSUMED_STEP * steps
    }

    fn all_steps(&self) -> impl Iterator<Item = &Step> {
        let of_layouts = self.layouts.iter().flat_map(|layout| &layout.steps);
        self.shared.iter().chain(of_layouts)
    }
}

/// Layouts that name a device which another names as well, without both sharing it.
fn taken_twice(specs: &[LayoutSpec]) -> BTreeMap<usize, Vec<Obstacle>> {
    let mut found: BTreeMap<usize, Vec<Obstacle>> = BTreeMap::new();
    for (index, spec) in specs.iter().enumerate() {
        for (position, device) in spec.devices.iter().enumerate() {
            let path = device.path();
            let again = spec.devices[..position]
                .iter()
                .any(|other| other.path() == path);
            let names_it =
                |other: &LayoutSpec| other.devices.iter().any(|device| device.path() == path);
            let other = specs.iter().enumerate().find(|(other, spec)| {
                *other != index
                    && names_it(spec)
                    && (spec.share.is_none() || specs[index].share.is_none())
            });
            let path = path.to_owned();
            let obstacle = match (again, other) {
                (true, _) => Obstacle::NamedAgain { path },
                (false, Some((_, other))) => Obstacle::TakenTwice {
                    path,
                    by: other.name.clone(),
                },
                (false, None) => continue,
            };
            found.entry(index).or_default().push(obstacle);
        }
    }
    found
}

/// Devices under two names, or by two stacks, that come down to the same bytes.
fn same_storage(specs: &[LayoutSpec], facts: &Facts) -> BTreeMap<usize, Vec<Obstacle>> {
    let devices: Vec<(usize, &Path)> = specs
        .iter()
        .enumerate()
        .flat_map(|(index, spec)| {
            spec.devices
                .iter()
                .map(move |device| (index, device.path()))
        })
        .collect();
    let footprint = |path: &Path| Some(&facts.devices.get(path)?.as_ref().ok()?.state.footprint);
    let mut found: BTreeMap<usize, Vec<Obstacle>> = BTreeMap::new();
    for (index, path) in &devices {
        let overlaps = |(_, other): &&(usize, &Path)| {
            other != path
                && footprint(path)
                    .zip(footprint(other))
                    .is_some_and(|(one, other)| one.overlaps(other))
        };
        if let Some((by, other)) = devices.iter().find(overlaps) {
            found
                .entry(*index)
                .or_default()
                .push(Obstacle::SameStorage {
                    path: (*path).to_owned(),
                    other: (*other).to_owned(),
                    by: specs[*by].name.clone(),
                });
        }
    }
    found
}

/// The devices of a layout that has them for itself.
fn prepare_devices(spec: &LayoutSpec, facts: &Facts) -> Prepared {
    let (mut steps, mut pieces, mut obstacles) = (Vec::new(), Vec::new(), Vec::new());
    for device in &spec.devices {
        match device_step(device, spec, facts) {
            Ok((step, size_bytes)) => {
                steps.push(step);
                let name = name_of(device);
                if is_file(device) && facts.is_root {
                    steps.push(whole_loop(&name, size_bytes));
                }
                pieces.push(Piece { name, size_bytes });
            }
            Err(obstacle) => obstacles.push(obstacle),
        }
    }
    if obstacles.is_empty() {
        Ok((steps, pieces))
    } else {
        Err(obstacles)
    }
}

/// Takes an existing device, or makes the file that stands in for one. A file's loop device takes over its name.
fn device_step(
    device: &DeviceSpec,
    spec: &LayoutSpec,
    facts: &Facts,
) -> Result<(Step, u64), Obstacle> {
    match device {
        DeviceSpec::File { path, size_bytes } => {
            let make = MakeFile {
                device: name_of(device),
                path: path.clone(),
                size_bytes: *size_bytes,
            };
            Ok((make.into(), *size_bytes))
        }
        DeviceSpec::Existing(path) => {
            let looked = facts.looked(path)?;
            let erased_content = match &looked.permit {
                Permit::Empty => None,
                Permit::Erase { content, .. } => Some(content.clone()),
            };
            let file_system_type = match &spec.kind {
                LayoutKind::FileSystem(of) if !takes_identity(&of.type_name) => {
                    Some(of.type_name.clone())
                }
                _ => None,
            };
            let claim = ClaimDevice {
                device: name_of(device),
                path: path.clone(),
                least_bytes: LEAST_DEVICE_BYTES,
                erase: spec.erase.clone(),
                erased_content,
                file_system_type,
                looked_at: Appearance {
                    number: looked.state.number,
                    sequence: looked.state.sequence,
                },
            };
            Ok((claim.into(), looked.state.size_bytes))
        }
    }
}

fn whole_loop(name: &DeviceName, size_bytes: u64) -> Step {
    Step::from(AttachLoop {
        file: name.clone(),
        device: name.clone(),
        offset_bytes: 0,
        size_bytes,
    })
}

fn name_of(device: &DeviceSpec) -> DeviceName {
    device.path().display().to_string()
}

fn is_file(device: &DeviceSpec) -> bool {
    matches!(device, DeviceSpec::File { .. })
}

impl LayoutPlan {
    fn of(
        spec: &LayoutSpec,
        facts: &Facts,
        unique: &str,
        mut obstacles: Vec<Obstacle>,
        prepared: Prepared,
    ) -> LayoutPlan {
        let description = description(spec);
        let at = facts.mounts_under.join(unique);
        let (name, is_shared) = (spec.name.clone(), spec.share.is_some());
        let delayed_by = DelayedBy::of(spec, facts);
        let (mut steps, pieces) = match prepared {
            Ok(prepared) => prepared,
            Err(more) => {
                obstacles.extend(more);
                (Vec::new(), Vec::new())
            }
        };
        let mut sizes_bytes: Vec<u64> = pieces.iter().map(|piece| piece.size_bytes).collect();
        obstacles.extend(obstacle::of_pieces(spec, &sizes_bytes));
        if !obstacles.is_empty() {
            return LayoutPlan {
                name,
                obstacles,
                steps: Vec::new(),
                is_shared,
                target: PlannedTarget::Devices(Vec::new()),
                room_bytes: Vec::new(),
                description,
                delayed_by,
            };
        }
        steps.extend(preparation(spec, &pieces));
        if let (Some(DelayedBy::DeviceMapper), Some(delay)) = (delayed_by, spec.delay) {
            steps.extend(delays(&pieces, delay, unique));
        }
        let mut devices: Vec<DeviceName> = pieces.iter().map(|piece| piece.name.clone()).collect();
        let size_bytes = sizes_bytes.iter().sum();
        if let Some(volume) = &spec.volume {
            let device = format!("the volume of {unique}");
            steps.extend(volume_steps(volume, devices, unique, &device));
            devices = vec![device];
            sizes_bytes = vec![room::of_volume(volume, &sizes_bytes)];
        }
        let target = match &spec.kind {
            LayoutKind::Raw | LayoutKind::DiskGroup => PlannedTarget::Devices(devices),
            LayoutKind::FileSystem(file_system) => {
                sizes_bytes = vec![room::of_file_system(file_system, &sizes_bytes)];
                steps.extend(file_system_steps(file_system, &devices, size_bytes, &at));
                PlannedTarget::Directory(at)
            }
        };
        LayoutPlan {
            name,
            obstacles,
            steps,
            is_shared,
            target,
            room_bytes: sizes_bytes,
            description,
            delayed_by,
        }
    }
}

/// What makes a volume over devices, under a name among the devices.
fn volume_steps(
    volume: &VolumeSpec,
    devices: Vec<DeviceName>,
    group: &str,
    device: &str,
) -> [Step; 2] {
    [
        Step::from(MakeVolumeGroup {
            devices: devices.clone(),
            group: group.to_owned(),
        }),
        Step::from(MakeVolume {
            group: group.to_owned(),
            devices,
            volume: volume.clone(),
            device: device.to_owned(),
        }),
    ]
}

fn delays(pieces: &[Piece], delay: Delay, unique: &str) -> Vec<Step> {
    let delayed = |(number, piece): (usize, &Piece)| {
        Step::from(DelayDevice {
            device: piece.name.clone(),
            mapped_name: format!("{unique}-disk{number}"),
            delay,
        })
    };
    (1..).zip(pieces).map(delayed).collect()
}

fn preparation(spec: &LayoutSpec, pieces: &[Piece]) -> Vec<Step> {
    let overwrite = |(device, piece): (&DeviceSpec, &Piece)| {
        // A file has nothing to discard: it was only just made.
        let discard = spec.preparation.discard && !is_file(device);
        let passes = spec.preparation.overwrite_passes;
        (discard || passes > 0).then(|| {
            Step::from(OverwriteDevice {
                device: piece.name.clone(),
                discard,
                passes,
                size_bytes: piece.size_bytes,
            })
        })
    };
    spec.device_of_each(pieces).filter_map(overwrite).collect()
}

fn file_system_steps(
    spec: &FileSystemSpec,
    devices: &[DeviceName],
    size_bytes: u64,
    at: &Path,
) -> [Step; 3] {
    [
        Step::from(MakeFileSystem {
            devices: devices.to_vec(),
            spec: spec.clone(),
            size_bytes,
        }),
        Step::from(MakeDirectory {
            path: at.to_owned(),
        }),
        Step::from(MountFileSystem {
            device: devices.first().cloned().unwrap_or_default(),
            at: at.to_owned(),
            spec: spec.clone(),
        }),
    ]
}

fn description(spec: &LayoutSpec) -> String {
    let devices: Vec<String> = spec.devices.iter().map(name_of).collect();
    let mut layers = vec![devices.join(", ")];
    if spec.share.is_some() {
        layers[0] += " (a fair share)";
    }
    layers.extend(spec.volume.as_ref().map(ToString::to_string));
    layers.push(match &spec.kind {
        LayoutKind::Raw => "raw".to_owned(),
        LayoutKind::DiskGroup => "disk group".to_owned(),
        LayoutKind::FileSystem(file_system) => file_system.to_string(),
    });
    layers.join(" -> ")
}

impl fmt::Display for FileSystemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name)?;
        let options = [self.mkfs_options.join(" "), self.mount_options.clone()];
        let options: Vec<String> = options
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        if options.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", options.join("; "))
    }
}

impl fmt::Display for ProvisionPlan {
    /// The whole plan, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.shared.is_empty() {
            writeln!(f, "For layouts that share devices:")?;
            write_steps(f, &self.shared)?;
        }
        for layout in &self.layouts {
            writeln!(f, "{}: {}", layout.name, layout.description)?;
            for obstacle in &layout.obstacles {
                writeln!(f, "  cannot be made: {obstacle}")?;
            }
            write_steps(f, &layout.steps)?;
            if let (Some(by @ DelayedBy::Database { .. }), true) =
                (layout.delayed_by, layout.obstacles.is_empty())
            {
                writeln!(f, "  delayed {by}")?;
            }
            match &layout.target {
                PlannedTarget::Directory(path) => {
                    writeln!(f, "  -> database files in {}", path.display())?
                }
                PlannedTarget::Devices(devices) if devices.is_empty() => {}
                PlannedTarget::Devices(devices) => {
                    writeln!(f, "  -> the database on {}", devices.join(", "))?
                }
            }
        }
        if let Some(unseen) = &self.unseen {
            writeln!(f, "Could not be looked at: {unseen}.")?;
        }
        if self.layouts.iter().all(|layout| layout.steps.is_empty()) {
            return Ok(());
        }
        let seconds = self.estimated_time().as_secs().max(1);
        let written = match self.written_bytes() {
            0 => "Nothing is".to_owned(),
            bytes => format!("About {}", size(bytes)),
        };
        write!(
            f,
            "{written} written before the database is loaded, about {seconds} s."
        )
    }
}

fn write_steps(f: &mut fmt::Formatter<'_>, steps: &[Step]) -> fmt::Result {
    for (number, step) in (1..).zip(steps) {
        writeln!(f, "  {number}. {step}")?;
    }
    Ok(())
}

/// Whether a file system of this kind gets an identity of our choice.
fn takes_identity(type_name: &str) -> bool {
    file_system::kind(type_name).is_some_and(|kind| kind.identity.is_some())
}
