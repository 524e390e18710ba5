//! Devices that may be written, taken as those of a raw layout are: the guard judges them before anything is made, and
//! again on the descriptor that holds them; the ledger notes them, so that `spindle clean` gives back what a killed
//! calibration had; at the end they are given back as empty as they must be to be taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spindle_layout::guard::Refusal;
use spindle_layout::plan::Obstacle;
use spindle_layout::spec::{DeviceSpec, LayoutKind, Preparation};
use spindle_layout::{
    Facts, KnownDevice, LayoutSpec, Ledger, PlacementTarget, Provision, ProvisionPlan, RawDevice,
    ledger,
};
use spindle_system::SystemTree;

use crate::error::CalibrateError;

/// The only layout of the plan.
const LAYOUT: &str = "calibrate";

/// Devices that the guard lets be written to.
#[derive(Debug)]
pub(crate) struct DeviceClaims {
    plan: ProvisionPlan,
    run: String,
    paths: Vec<PathBuf>,
}

/// Devices that were taken, until they are given back.
#[derive(Debug)]
pub(crate) struct ClaimedDevices {
    provision: Provision,
    devices: Vec<(PathBuf, RawDevice)>,
}

impl DeviceClaims {
    /// Looks whether all of these devices may be written to. Reads them, changes nothing.
    ///
    /// # Errors
    /// [`CalibrateError::Target`]: one may not.
    pub(crate) fn look(
        paths: Vec<PathBuf>,
        erase: &[String],
        tree: &SystemTree,
    ) -> Result<DeviceClaims, CalibrateError> {
        let absolute: Result<Vec<PathBuf>, _> = paths.iter().map(std::path::absolute).collect();
        let spec = LayoutSpec {
            name: LAYOUT.to_owned(),
            devices: absolute?.into_iter().map(DeviceSpec::Existing).collect(),
            volume: None,
            kind: LayoutKind::Raw,
            share: None,
            erase: erase.to_vec(),
            preparation: Preparation::default(),
            delay: None,
        };
        let specs = [spec];
        let run = run_name("calibrate");
        let facts = Facts::gather(&specs, tree);
        let plan = ProvisionPlan::of(&specs, &facts, &run);
        if let Some(obstacle) = plan.layouts[0].obstacles.first() {
            return Err(refused(obstacle, &paths[0]));
        }
        // On an empty device a word with a mistake would change nothing, and be believed to have worked.
        let names_one = |word: &&String| {
            let mut looked = facts.devices.values().flatten();
            looked.any(|looked| {
                looked
                    .state
                    .named_in(tree, std::slice::from_ref(*word))
                    .is_some()
            })
        };
        match erase.iter().find(|word| !names_one(word)) {
            None => Ok(DeviceClaims { plan, run, paths }),
            Some(word) => Err(CalibrateError::Settings(format!(
                "--erase {word} names none of the targets; nothing was written"
            ))),
        }
    }

    /// Takes them for this program alone, and erases those that may be erased. What could not be looked at, and each
    /// step, is told before.
    ///
    /// # Errors
    /// One is no longer what was looked at, or cannot be taken; then all are given back. The ledger cannot be kept.
    pub(crate) fn take(
        self,
        tree: &SystemTree,
        tell: &mut dyn FnMut(&str),
    ) -> Result<ClaimedDevices, CalibrateError> {
        let ledger = Arc::new(Ledger::begin(
            &ledger::default_directory(),
            &self.run,
            tree,
        )?);
        let provision = Provision::carry_out(&self.plan, ledger, tree, tell)?;
        provision.gives_up_stamps()?;
        let target = match &provision.layouts()[0] {
            Ok(made) => made.target.clone(),
            Err(error) => return Err(CalibrateError::Take(error.to_string())),
        };
        let devices = match target {
            PlacementTarget::Devices(devices) => devices,
            _ => Vec::new(),
        };
        Ok(ClaimedDevices {
            provision,
            devices: self.paths.into_iter().zip(devices).collect(),
        })
    }
}

impl ClaimedDevices {
    /// The device that was taken for a target.
    pub(crate) fn of(&self, path: &Path) -> Option<&KnownDevice> {
        let mut devices = self.devices.iter();
        Some(&devices.find(|(of, _)| of == path)?.1.device)
    }

    /// Gives all back, erased. Returns what could not be, in words.
    pub(crate) fn give_back(self) -> Vec<String> {
        self.provision.teardown()
    }
}

/// The name of a run that no ledger has: what it is of, when it began, and its process.
#[must_use]
pub fn run_name(of: &str) -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.map_or(0, |time| time.as_secs());
    format!("{of}-{seconds}-{}", std::process::id())
}

fn refused(obstacle: &Obstacle, first: &Path) -> CalibrateError {
    match obstacle {
        Obstacle::Refused(Refusal::NotEmpty {
            path,
            content,
            identities,
        }) => {
            let by = match identities.first() {
                Some(identity) => identity.clone(),
                None => path.display().to_string(),
            };
            CalibrateError::target(
                path,
                format!(
                    "it is not empty: it contains {content}; to have everything on it erased, add --erase {by}"
                ),
            )
        }
        Obstacle::Refused(refusal) => CalibrateError::Refused(refusal.to_string()),
        Obstacle::NeedsRoot { .. } => {
            CalibrateError::target(first, "writing to a block device needs root")
        }
        other => CalibrateError::Refused(other.to_string()),
    }
}
