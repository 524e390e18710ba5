//! Before anything is measured: what is asked for, whether it fits together, and targets made ready. Every target is
//! looked at before the first is touched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use spindle_layout::RawDevice;
use spindle_system::{Beneath, SystemTree};
use spindle_text::quantity::size;

use crate::below::Below;
use crate::claims::{ClaimedDevices, DeviceClaims};
use crate::error::CalibrateError;
use crate::figures::TargetKind;
use crate::need::ToBeMeasured;
use crate::orion::Orion;
use crate::result::Calibration;
use crate::settings::{AskedCaching, CalibrationSettings, FILLED_AT, FLUSHED_BYTES};
use crate::target::{Filling, ReadyTarget, Target, Written};
use crate::unit::Simulate;
use crate::work::Work;

/// Targets that were looked at, and may be measured as asked.
pub(crate) struct LookedTargets {
    pub(crate) targets: Vec<Target>,
    control: Option<Target>,
    claims: Option<DeviceClaims>,
    size_bytes: u64,
}

/// Measures the targets. `tell` hears what is done at the moment.
///
/// # Errors
/// See [`CalibrateError`]; when [`CalibrateError::is_about_target`], nothing was made or measured.
pub fn calibrate(
    settings: &CalibrationSettings,
    tell: &mut dyn FnMut(&str),
) -> Result<Calibration, CalibrateError> {
    let (began, tree) = (Instant::now(), SystemTree::default());
    let looked = look(settings, &tree)?;
    let time = Duration::from_millis(settings.time_ms);
    let filling = Filling {
        bytes: looked.size_bytes,
        time: time.mul_f64(FILLED_AT) / looked.targets.len() as u32,
        caching: settings.caching.of_limits(),
        interrupted: &settings.interrupted,
    };
    let control = looked.control.map(|target| {
        let bytes = FLUSHED_BYTES;
        target.make(None, Filling { bytes, ..filling })
    });
    let control = control.transpose()?;
    // Taking a device erases it, so whatever may fail in a directory comes before.
    let targets = looked.targets.into_iter().enumerate();
    let (harmless, devices): (Vec<_>, Vec<_>) = targets
        .partition(|(_, target)| looked.claims.is_none() || target.kind() != TargetKind::Device);
    let mut made = BTreeMap::new();
    for (place, target) in harmless {
        tell_filling(&target, false, looked.size_bytes, tell);
        made.insert(place, target.make(None, filling)?);
    }
    let claimed = looked.claims.map(|claims| claims.take(&tree, tell));
    let claimed = claimed.transpose()?;
    for (place, target) in devices {
        let claimed = claimed.as_ref();
        let device = claimed.and_then(|claimed| claimed.of(target.path()));
        tell_filling(&target, device.is_some(), looked.size_bytes, tell);
        made.insert(place, target.make(device, filling)?);
    }
    let made: Vec<ReadyTarget> = made.into_values().collect();
    has_stripes(settings, &made)?;
    let mut found = Work::new(settings, &made, began, tell).all(control.as_ref())?;
    // What is open cannot be given back.
    drop(made);
    let left = claimed.map_or_else(Vec::new, ClaimedDevices::give_back);
    found.notes.extend(left);
    Ok(found)
}

/// Measures the devices of a layout that was made, filled from their beginning as far as the size goes. The caller made
/// them and removes them.
///
/// # Errors
/// See [`CalibrateError`].
pub fn calibrate_devices(
    settings: &CalibrationSettings,
    devices: &[RawDevice],
    tell: &mut dyn FnMut(&str),
) -> Result<Calibration, CalibrateError> {
    let began = Instant::now();
    let time = Duration::from_millis(settings.time_ms);
    let filling = Filling {
        bytes: match settings.only_flushes {
            true => FLUSHED_BYTES,
            false => settings.size_bytes,
        },
        time: time.mul_f64(FILLED_AT) / devices.len().max(1) as u32,
        caching: settings.caching.of_limits(),
        interrupted: &settings.interrupted,
    };
    let mut made = Vec::new();
    for raw in devices {
        let target = Target::of_layout(&raw.device)?;
        tell_filling(&target, true, filling.bytes, tell);
        made.push(target.make(Some(&raw.device), filling)?);
    }
    Work::new(settings, &made, began, tell).all(None)
}

/// Refuses stripes of which a target has not even one.
fn has_stripes(settings: &CalibrationSettings, made: &[ReadyTarget]) -> Result<(), CalibrateError> {
    let (stripe_bytes, is_striped) = (settings.stripe_bytes, settings.simulate == Simulate::Raid0);
    let is_short = |made: &&ReadyTarget| made.bytes() < stripe_bytes;
    match made.iter().find(is_short) {
        Some(short) if is_striped && !settings.only_flushes => {
            let (bytes, stripe) = (size(short.bytes()), size(stripe_bytes));
            let reason = format!("it has {bytes} to measure, less than a stripe of {stripe}");
            Err(CalibrateError::target(short.target().path(), reason))
        }
        _ => Ok(()),
    }
}

fn tell_filling(target: &Target, is_claimed: bool, size_bytes: u64, tell: &mut dyn FnMut(&str)) {
    let (size, path) = (size(size_bytes), target.path().display());
    match (target.kind(), is_claimed) {
        (TargetKind::Directory, _) => tell(&format!(
            "filling a file of up to {size} in {path} with data that do not compress; it has no name and goes with this command"
        )),
        (_, true) => tell(&format!(
            "filling up to {size} of {path} with data that do not compress; only these are measured"
        )),
        (_, false) => {}
    }
}

/// Looks at everything that is asked for. Changes nothing.
pub(crate) fn look(
    settings: &CalibrationSettings,
    tree: &SystemTree,
) -> Result<LookedTargets, CalibrateError> {
    let targets = settings.targets.iter().map(|path| Target::look(path));
    let targets: Vec<Target> = targets.collect::<Result<_, _>>()?;
    apart(&targets, tree)?;
    if settings.orion.is_some() && settings.caching == AskedCaching::Both {
        return Err(CalibrateError::Settings(
            "--run measures with one --caching: direct or buffered".to_owned(),
        ));
    }
    let loads = settings.orion.as_ref().map(Orion::loads).transpose()?;
    let made =
        |target: &Target| target.kind() == TargetKind::Directory || settings.write_percent > 0;
    can_be_judged(settings, loads.as_deref(), targets.iter().any(made))?;
    let size_bytes = match settings.only_flushes {
        true => FLUSHED_BYTES,
        false => settings.size_bytes,
    };
    for target in of_kind(&targets, TargetKind::Directory) {
        target.room(size_bytes)?;
    }
    if settings.only_flushes {
        all_written(&targets)?;
    }
    let control = settings
        .control
        .as_deref()
        .map(|path| control_at(path, tree));
    let control = control.transpose()?;
    if let Some(control) = &control
        && let Some(same) = targets.iter().find(|target| target.is_same(control))
    {
        let reason =
            "it is its own control, and would be compared with itself: name another directory";
        return Err(CalibrateError::target(same.path(), reason));
    }
    if control.is_some() && of_kind(&targets, TargetKind::Directory).next().is_none() {
        let reason =
            "flushes are compared in files that are made: name a directory beside --control";
        return Err(CalibrateError::target(targets[0].path(), reason));
    }
    let claims = claims(settings, &targets, tree)?;
    if claims.is_none() {
        of_kind(&targets, TargetKind::Device)
            .try_for_each(|target| must_be_written(target, tree))?;
    }
    Ok(LookedTargets {
        claims,
        targets,
        control,
        size_bytes,
    })
}

/// Refuses a need that nothing to be measured can answer.
fn can_be_judged(
    settings: &CalibrationSettings,
    loads: Option<&[(u32, u32)]>,
    has_flushes: bool,
) -> Result<(), CalibrateError> {
    let has = |of: fn(&(u32, u32)) -> bool| loads.is_none_or(|loads| loads.iter().any(of));
    let measured = ToBeMeasured {
        only_flushes: settings.only_flushes,
        write_percent: settings.write_percent,
        has_flushes,
        has_small: has(|load| load.0 > 0),
        has_large: has(|load| load.1 > 0),
    };
    let mut needs = settings.needs.iter();
    match needs.find_map(|need| need.is_in_vain(&measured)) {
        Some(why) => Err(CalibrateError::Settings(why)),
        None => Ok(()),
    }
}

fn of_kind(targets: &[Target], kind: TargetKind) -> impl Iterator<Item = &Target> {
    targets.iter().filter(move |target| target.kind() == kind)
}

/// What must be claimed, as it is to be written; `None` where nothing is, but files that are made.
fn claims(
    settings: &CalibrationSettings,
    targets: &[Target],
    tree: &SystemTree,
) -> Result<Option<DeviceClaims>, CalibrateError> {
    if settings.write_percent == 0 {
        return match settings.erase.is_empty() {
            true => Ok(None),
            false => Err(CalibrateError::Settings(
                "--erase needs --write-percent above 0: nothing is written without it".to_owned(),
            )),
        };
    }
    if settings.caching != AskedCaching::Direct {
        return Err(CalibrateError::Settings(
            "--write-percent needs --caching direct: writes through the page cache measure memory"
                .to_owned(),
        ));
    }
    if let Some(file) = of_kind(targets, TargetKind::File).next() {
        let reason =
            "an existing file is never written: name its directory, and a file is made there";
        return Err(CalibrateError::target(file.path(), reason));
    }
    let devices: Vec<PathBuf> = of_kind(targets, TargetKind::Device)
        .map(|target| target.path().to_owned())
        .collect();
    match (devices.is_empty(), settings.erase.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(CalibrateError::Settings(
            "--erase needs a block device, and no target is one".to_owned(),
        )),
        (false, _) => DeviceClaims::look(devices, &settings.erase, tree).map(Some),
    }
}

/// Refuses a device of which parts were never written, as far as is known.
fn must_be_written(target: &Target, tree: &SystemTree) -> Result<(), CalibrateError> {
    match target.written(tree) {
        Written::Whole | Written::Unknown => Ok(()),
        Written::InParts(why) => {
            let reason = format!(
                "{why}. Write the device as a whole, or name a directory, and a file is made there"
            );
            Err(CalibrateError::target(target.path(), reason))
        }
    }
}

/// A control must be a directory with room, on a disk.
fn control_at(path: &Path, tree: &SystemTree) -> Result<Target, CalibrateError> {
    let target = Target::look(path)?;
    if target.kind() != TargetKind::Directory {
        let reason = "a control is a directory on the disk beneath, in which a file is made";
        return Err(CalibrateError::target(path, reason));
    }
    if let Some(memory) = Below::of(&Beneath::of(tree, path)).memory {
        let reason = format!(
            "it lies in memory ({memory}), which flushes sooner than any disk: name a directory on the disk beneath"
        );
        return Err(CalibrateError::target(path, reason));
    }
    target.room(FLUSHED_BYTES)?;
    Ok(target)
}

/// Refuses targets that are only read, where only flushes are asked for.
fn all_written(targets: &[Target]) -> Result<(), CalibrateError> {
    let read = targets
        .iter()
        .find(|target| target.kind() != TargetKind::Directory);
    read.map_or(Ok(()), |target| {
        let reason =
            "it is only read, and flushes need a file that is made: name a directory on it";
        Err(CalibrateError::target(target.path(), reason))
    })
}

/// Refuses one file, device or directory under two names, and one that lies on another.
fn apart(targets: &[Target], tree: &SystemTree) -> Result<(), CalibrateError> {
    for (index, target) in targets.iter().enumerate() {
        for other in &targets[..index] {
            let (name, others) = (target.path().display(), other.path().display());
            let wrong = if other.is_same(target) {
                let reason = format!("it is the same as {others}; name each once");
                (target, reason)
            } else if target.lies_on(other, tree) {
                let reason =
                    format!("it lies on {others}, which is a target, too; name one of them");
                (target, reason)
            } else if other.lies_on(target, tree) {
                let reason = format!("it lies on {name}, which is a target, too; name one of them");
                (other, reason)
            } else if let Some(file) = target.shares_file(other, tree) {
                let file = file.display();
                let reason = format!("it is the same as {others}: both stand for {file}");
                (target, reason)
            } else {
                continue;
            };
            return Err(CalibrateError::target(wrong.0.path(), wrong.1));
        }
    }
    Ok(())
}
