//! Users of what lies beneath that no process shows: a mount that only a bind mount of its namespace keeps, or one that
//! was taken out of its place while a file on it was open. The kernel knows that the device is taken. And users of a
//! file that know it by another identity: through an overlay.

use std::path::Path;

use super::survey::GuardSurvey;
use super::verdict::{DeviceState, Refusal, Use};
use super::{Guard, HeldDevice};
use spindle_system::overlays::{files_in_layers, layer_with};
use spindle_system::{BlockDeviceNode, DeviceNumber, StoragePlace, SystemTree};

impl Guard<'_> {
    /// Whether the kernel would give each device that a loop device beneath stands on to one user alone, and the files
    /// beneath are used through no overlay: as the machine is now.
    pub(super) fn check_beneath(&self, state: &DeviceState, path: &Path) -> Result<(), Refusal> {
        self.check_layers(&self.survey(path)?, state, path)?;
        for device in state.footprint.free_beneath() {
            self.check_alone_beneath(device, path)?;
        }
        Ok(())
    }

    fn check_alone_beneath(&self, number: DeviceNumber, path: &Path) -> Result<(), Refusal> {
        let node = BlockDeviceNode::of(self.tree, number).ok_or_else(|| Refusal::Unknown {
            path: path.to_owned(),
            reason: format!("/sys does not show device {number}, which lies beneath"),
        })?;
        let beneath = HeldDevice::of_number(self.tree, number, &node.path(self.tree))?;
        beneath.check_alone().map_err(|refusal| match refusal {
            Refusal::Held { .. } => Refusal::InUse {
                path: path.to_owned(),
                uses: vec![Use::Alone { device: node.name }],
            },
            other => other,
        })
    }

    /// Whether the files that a device comes down to are used through no overlay.
    fn check_layers(
        &self,
        survey: &GuardSurvey,
        state: &DeviceState,
        path: &Path,
    ) -> Result<(), Refusal> {
        let files = state.footprint.files();
        let uses: Vec<Use> = files
            .flat_map(|(file, named, _)| survey.uses_by_overlays(self.tree, file, named))
            .collect();
        if uses.is_empty() {
            return Ok(());
        }
        let path = path.to_owned();
        Err(Refusal::InUse { path, uses })
    }
}

impl GuardSurvey {
    /// Who may have a file under another identity; `path` is the file's for some process. A file of a layer belongs to
    /// the overlay. A file of an overlay is a file of a layer, too, and a process that has that has this.
    pub(super) fn uses_by_overlays(
        &self,
        tree: &SystemTree,
        file: StoragePlace,
        path: &Path,
    ) -> Vec<Use> {
        let in_layer = layer_with(tree, &self.views, file, path).map(|of| Use::InLayer {
            file: path.to_owned(),
            of,
        });
        let behind = files_in_layers(tree, &self.views, file, path);
        let uses = behind.into_iter().flat_map(|behind| self.uses(behind));
        in_layer.into_iter().chain(uses).collect()
    }
}
