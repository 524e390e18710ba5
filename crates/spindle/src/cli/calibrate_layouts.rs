//! `spindle calibrate FILE.toml`: the storage that the layouts of an experiment stand on, made by the plan, guard and
//! ledger of a run, measured one after the other, and removed.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use spindle_calibrate::text::{self, trust_word};
use spindle_calibrate::{
    CalibrateError, Calibration, CalibrationSettings, DurableBy, Simulate, calibrate,
    calibrate_devices, run_name,
};
use spindle_experiment::{Experiment, specs_of};
use spindle_layout::ledger;
use spindle_layout::spec::LayoutKind;
use spindle_layout::{Facts, LayoutSpec, Ledger, PlacementTarget, Provision, ProvisionPlan};
use spindle_system::SystemTree;
use spindle_text::plain;
use spindle_text::quantity::{thousands, thousands_or_tenths, time};

/// Of [`LayoutsCalibrated::format`].
const FORMAT: u32 = 1;

/// All layouts of an experiment.
#[derive(Debug, Serialize)]
pub(super) struct LayoutsCalibrated {
    /// Of this document.
    format: u32,
    /// The experiment's name.
    experiment: String,
    /// Each storage, with the layouts that stand on it.
    pub(super) layouts: Vec<StorageCalibrated>,
    /// What could not be removed, in words.
    left: Vec<String>,
}

/// What layouts stand on, and what was found of it.
#[derive(Debug, Serialize)]
pub(super) struct StorageCalibrated {
    /// The layouts that stand on it.
    names: Vec<String>,
    /// From the devices up, or the directory.
    storage: String,
    /// What was found; `None` where that failed.
    pub(super) found: Option<Calibration>,
    /// Why it failed.
    failed: Option<String>,
}

/// What layouts stand on, before it is made.
struct LayoutStorage {
    names: Vec<String>,
    place: Storing,
}

enum Storing {
    /// An existing directory.
    InPlace(PathBuf),
    /// To be made.
    OfPlan(Box<LayoutSpec>),
}

/// Makes the storage of all layouts, measures each for an equal part of the time, and removes it.
///
/// # Errors
/// A layout cannot be made, which is found before anything is; or the ledger cannot be kept.
pub(super) fn calibrate_layouts(
    experiment: &Experiment,
    settings: &CalibrationSettings,
    tell: &mut dyn FnMut(&str),
) -> Result<LayoutsCalibrated, CalibrateError> {
    let tree = SystemTree::default();
    let storages = storages_of(experiment)?;
    let specs: Vec<LayoutSpec> = storages
        .iter()
        .filter_map(|storage| match &storage.place {
            Storing::OfPlan(spec) => Some((**spec).clone()),
            Storing::InPlace(_) => None,
        })
        .collect();
    let run = run_name("calibrate-layouts");
    let plan = ProvisionPlan::of(&specs, &Facts::gather(&specs, &tree), &run);
    for layout in &plan.layouts {
        if let Some(obstacle) = layout.obstacles.first() {
            let name = &layout.name;
            return Err(CalibrateError::Refused(format!(
                "layout {name}: {obstacle}; nothing was made. --only NAME,... measures others"
            )));
        }
    }
    let provision = match specs.is_empty() {
        true => None,
        false => {
            let ledger = Arc::new(Ledger::begin(&ledger::default_directory(), &run, &tree)?);
            Some(Provision::carry_out(&plan, ledger, &tree, tell)?)
        }
    };
    let each = CalibrationSettings {
        time_ms: settings.time_ms / storages.len().max(1) as u64,
        ..settings.clone()
    };
    let mut layouts = Vec::new();
    for storage in storages {
        tell(&format!("layout {}", storage.names.join(", ")));
        let measured = measure(&storage, &each, provision.as_ref(), tell);
        if let Err(CalibrateError::Interrupted) = measured {
            let left = provision.map_or_else(Vec::new, Provision::teardown);
            for what in left {
                tell(&format!("left behind, for spindle clean: {what}"));
            }
            return Err(CalibrateError::Interrupted);
        }
        layouts.push(storage.with(measured, &plan));
    }
    Ok(LayoutsCalibrated {
        format: FORMAT,
        experiment: experiment.name.clone(),
        layouts,
        left: provision.map_or_else(Vec::new, Provision::teardown),
    })
}

/// Each storage once, in the order of the layouts.
fn storages_of(experiment: &Experiment) -> Result<Vec<LayoutStorage>, CalibrateError> {
    let wrong = |reason: String| CalibrateError::Refused(reason);
    let candidates: Vec<usize> = (0..experiment.layouts.len())
        .filter(|index| experiment.layouts[*index].candidate)
        .collect();
    let specs = specs_of(&experiment.layouts, &candidates)
        .map_err(|error| wrong(format!("there is no current directory: {error}")))?;
    let mut storages: Vec<LayoutStorage> = Vec::new();
    for index in candidates {
        let layout = &experiment.layouts[index];
        let name = layout.name.clone();
        if layout.address().is_some() {
            return Err(wrong(format!(
                "layout {name} is an existing server: Spindle cannot reach its storage from here; leave it out with --only"
            )));
        }
        let place = match specs.iter().find(|(_, standing)| standing.contains(&index)) {
            Some((spec, standing)) if standing[0] == index => {
                Storing::OfPlan(Box::new(spec.clone()))
            }
            Some((spec, _)) => {
                let stands = |storage: &&mut LayoutStorage| storage.names[0] == spec.name;
                if let Some(storage) = storages.iter_mut().find(stands) {
                    storage.names.push(name);
                }
                continue;
            }
            None => Storing::InPlace(layout.path.clone()),
        };
        let same = storages
            .iter_mut()
            .find(|other| match (&other.place, &place) {
                (Storing::InPlace(other), Storing::InPlace(own)) => other == own,
                _ => false,
            });
        match same {
            Some(storage) => storage.names.push(name),
            None => storages.push(LayoutStorage {
                names: vec![name],
                place,
            }),
        }
    }
    Ok(storages)
}

fn measure(
    storage: &LayoutStorage,
    settings: &CalibrationSettings,
    provision: Option<&Provision>,
    tell: &mut dyn FnMut(&str),
) -> Result<Calibration, CalibrateError> {
    let in_directory = |path: &PathBuf| CalibrationSettings {
        targets: vec![path.clone()],
        ..settings.clone()
    };
    let spec = match &storage.place {
        Storing::InPlace(path) => return calibrate(&in_directory(path), tell),
        Storing::OfPlan(spec) => spec,
    };
    let mut made = provision.into_iter().flat_map(Provision::layouts);
    let is_it = |made: &&Result<_, _>| match made {
        Ok::<spindle_layout::Provisioned, _>(made) => made.name == spec.name,
        Err(_) => false,
    };
    let target = match made.find(is_it) {
        Some(Ok(made)) => &made.target,
        _ => return Err(CalibrateError::Take(why_not_made(provision))),
    };
    match target {
        PlacementTarget::Directory(path) => calibrate(&in_directory(path), tell),
        PlacementTarget::Devices(devices) => {
            let simulate = match spec.kind {
                // Its files lie in stripes over all of its disks.
                LayoutKind::DiskGroup => Simulate::Raid0,
                LayoutKind::Raw | LayoutKind::FileSystem(_) => Simulate::Concat,
            };
            let settings = CalibrationSettings {
                simulate,
                ..settings.clone()
            };
            calibrate_devices(&settings, devices, tell)
        }
        PlacementTarget::DiskGroup(_) => {
            unreachable!("disks are handed over before there is a group")
        }
    }
}

fn why_not_made(provision: Option<&Provision>) -> String {
    let made = provision.into_iter().flat_map(Provision::layouts);
    let errors: Vec<String> = made
        .filter_map(|made| Some(made.as_ref().err()?.to_string()))
        .collect();
    format!("it was not made: {}", errors.join("; "))
}

impl LayoutStorage {
    fn with(
        self,
        measured: Result<Calibration, CalibrateError>,
        plan: &ProvisionPlan,
    ) -> StorageCalibrated {
        let storage = match &self.place {
            Storing::InPlace(path) => path.display().to_string(),
            Storing::OfPlan(spec) => {
                let mut layouts = plan.layouts.iter();
                let planned = layouts.find(|layout| layout.name == spec.name);
                let made = planned.map_or_else(String::new, |of| of.description.clone());
                match spec.kind {
                    LayoutKind::DiskGroup => {
                        format!("{made} (a disk group: its disks in stripes of 1 MiB)")
                    }
                    LayoutKind::Raw | LayoutKind::FileSystem(_) => made,
                }
            }
        };
        let (found, failed) = match measured {
            Ok(found) => (Some(found), None),
            Err(error) => (None, Some(error.to_string())),
        };
        StorageCalibrated {
            names: self.names,
            storage,
            found,
            failed,
        }
    }
}

impl LayoutsCalibrated {
    /// Whether a layout could not be measured, or something is left.
    pub(super) fn has_failed(&self) -> bool {
        !self.left.is_empty() || self.layouts.iter().any(|of| of.found.is_none())
    }

    /// Each storage by itself, then all side by side.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for of in &self.layouts {
            let _ = writeln!(text, "== {}: {}", of.title(), plain::one_line(&of.storage));
            match (&of.found, &of.failed) {
                (Some(found), _) => text += &text::render(found),
                (None, why) => {
                    let why = why.as_deref().unwrap_or_default();
                    let _ = writeln!(text, "not measured: {why}");
                }
            }
            text.push('\n');
        }
        text += &self.table();
        for left in &self.left {
            let _ = writeln!(text, "Note: {left}.");
        }
        text
    }

    fn table(&self) -> String {
        let widest = self.layouts.iter().map(|of| of.title().chars().count());
        let width = widest.max().unwrap_or(0).clamp(6, 40) + 2;
        let mut text = format!(
            "{:<width$}{:>10}{:>8}{:>11}{:>15}  {}\n",
            "layout", "IOPS", "MB/s", "latency", "fdatasync p99", "flushes"
        );
        for of in &self.layouts {
            let told = of.found.as_ref().map_or_else(
                || format!("{:>10}", "-"),
                |found| {
                    let [iops, mb, latency, flush, trust] = figures(found);
                    format!("{iops:>10}{mb:>8}{latency:>11}{flush:>15}  {trust}")
                },
            );
            let _ = writeln!(text, "{:<width$}{told}", of.title());
        }
        text
    }
}

impl StorageCalibrated {
    fn title(&self) -> String {
        plain::one_line(&self.names.join(", ")).into_owned()
    }
}

fn figures(found: &Calibration) -> [String; 5] {
    let none = || "-".to_owned();
    let flush = found
        .flushes
        .iter()
        .find(|flushed| flushed.by == DurableBy::Fdatasync && flushed.writers == 1);
    let iops = found.maximum_iops.as_ref();
    let most_bytes = found.maximum_mb_per_s.as_ref();
    let least = found.minimum_latency.as_ref();
    let trust = found.honesty.first();
    [
        iops.map_or_else(none, |most| thousands(most.point.iops)),
        most_bytes.map_or_else(none, |most| thousands_or_tenths(most.point.mb_per_s)),
        least.map_or_else(none, |least| time(least.point.mean_us)),
        flush.map_or_else(none, |flushed| time(flushed.p99_us)),
        trust.map_or_else(none, |honesty| trust_word(honesty.trust).to_owned()),
    ]
}
