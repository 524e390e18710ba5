//! An existing block device: taken for this program alone, and erased when the experiment says that it may be. At the
//! end it is given back as empty as a device must be to be taken. The signature that Spindle made on it goes, and so do
//! its first and last MiB; a mark says that the rest is Spindle's. Whether what is on it is Spindle's own is proved
//! before: by the identity that was given to the file system, volume or partition table on it, and to each of its
//! partitions. Where there is no identity, the run itself needs no more than that the device has existed without a
//! break since it was claimed (same start of the system, same number of its appearance). When the run is dead, others
//! may have used the device since: then it must still bear the stamp that was put on it, or be unwritten since.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cut_device::{DevicePartition, content_uuid, part_uuid, partitions};
use super::error::{DeviceName, StepError};
use super::make_volume_group::physical_volume_uuid;
use super::site::{Site, Undone, wait_until};
use super::udev;
use super::workshop::{Workshop, new_uuid};
use crate::guard::stamp::{
    bears_stamp, stamp, unstamp, zero_ends_but_stamp, zero_header_copies, zero_stamped_end,
};
use crate::guard::{
    Appearance, DeviceContent, DeviceState, EDGE_BYTES, Guard, HeldDevice, Permit, Refusal,
    TakenDevice, Want, signature_within,
};
use crate::record::ClaimedDevice;
use crate::tool::Tools;
use spindle_system::{BlockDeviceNode, DeviceNumber, SystemTree};

/// Takes a block device, checked by the guard; erases it if the experiment names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDevice {
    /// Its name among the devices.
    pub device: DeviceName,
    /// As written.
    pub path: PathBuf,
    /// The size it must have.
    pub least_bytes: u64,
    /// Identities that may be erased.
    pub erase: Vec<String>,
    /// What is on it and will be erased, as far as was seen when the plan was made.
    pub erased_content: Option<String>,
    /// The type of a file system that bears no identity of our choice.
    pub file_system_type: Option<String>,
    /// The device that was looked at when the plan was made.
    pub looked_at: Appearance,
}

/// Whose what lies between the ends of a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// The run's.
    Ours,
    /// Others may have written there since the run died.
    Unknown,
}

impl fmt::Display for ClaimDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.erased_content {
            None => write!(f, "take the device {}, which is empty", self.path.display()),
            Some(content) => write!(
                f,
                "take the device {} and ERASE it: {content}",
                self.path.display()
            ),
        }
    }
}

impl ClaimDevice {
    pub(super) fn written_bytes(&self) -> u64 {
        self.erased_content.as_ref().map_or(0, |_| 2 * EDGE_BYTES)
    }

    pub(super) fn carry_out(&self, workshop: &mut Workshop<'_>) -> Result<(), StepError> {
        let want = Want {
            path: &self.path,
            least_bytes: self.least_bytes,
            erase: &self.erase,
        };
        let uuid = new_uuid(&workshop.site.tree)?;
        let mut taken = workshop.guard().claim(&want)?;
        taken.held().must_be(self.looked_at)?;
        let noted = workshop.note(ClaimedDevice {
            path: self.path.clone(),
            number: taken.state().number,
            sequence: taken.state().sequence,
            identities: taken.state().identities.clone(),
            uuid: uuid.clone(),
            file_system_type: self.file_system_type.clone(),
            size_bytes: Some(taken.state().size_bytes),
            is_stamped: true,
        })?;
        if let Err(refusal) = workshop.guard().check_again(&taken, &want) {
            // Nothing was written, so nothing on it is the run's.
            workshop.ledger.gone(noted)?;
            return Err(refusal.into());
        }
        let held = Arc::clone(taken.held());
        workshop.ready(&self.device, Arc::clone(&held), uuid.clone())?;
        if let Permit::Erase { .. } = taken.permit() {
            let file = workshop.to_write(&self.device, &taken)?;
            let size_bytes = taken.state().size_bytes;
            erase(&file, size_bytes, taken.path(), &workshop.site.tools)?;
            // The kernel reads the partition table again only when no process holds the disk exclusively.
            drop((file, taken));
            forget_partitions(&held, &workshop.site.tree, &workshop.site.tools)?;
            taken = workshop.guard().take(&held)?;
        }
        let file = workshop.to_write(&self.device, &taken)?;
        stamp(&file, taken.state().size_bytes, &uuid)
            .map_err(|error| StepError::system("stamp", taken.path(), error))?;
        workshop.taken.insert(self.device.clone(), taken);
        Ok(())
    }
}

/// Removes every signature that libblkid knows from a device or file, and zeroes both ends; errors call it `path`.
pub(super) fn erase(
    file: &File,
    size_bytes: u64,
    path: &Path,
    tools: &Tools,
) -> Result<(), StepError> {
    wipe_signatures(file, tools)?;
    zero_ends(file, 0, size_bytes)
        .map_err(|error| StepError::system("zero the ends of", path, error))
}

/// Removes every signature that libblkid knows from a device or file.
fn wipe_signatures(device: &File, tools: &Tools) -> Result<(), StepError> {
    // Force: we have the device ourselves.
    tools.run_on("wipefs", &["--all", "--force", "/dev/stdin"], device)?;
    Ok(())
}

/// Zeroes the first and the last MiB of the `size_bytes` that begin at `start_bytes`.
pub(super) fn zero_ends(device: &File, start_bytes: u64, size_bytes: u64) -> io::Result<()> {
    let length = EDGE_BYTES.min(size_bytes);
    let zeros = vec![0; length as usize];
    device.write_all_at(&zeros, start_bytes)?;
    device.write_all_at(&zeros, start_bytes + size_bytes - length)?;
    device.sync_all()
}

/// Has the kernel forget the partitions of a device that was erased. Others that look at partitions when they appear
/// may have one open for a moment, and the kernel then refuses.
pub(super) fn forget_partitions(
    held: &HeldDevice,
    tree: &SystemTree,
    tools: &Tools,
) -> Result<(), StepError> {
    let number = held.appearance().number;
    let partitions = || {
        let node = BlockDeviceNode::of(tree, number);
        node.map_or_else(Vec::new, |node| node.partitions())
    };
    let are_gone = wait_until(|| {
        partitions().is_empty() || {
            // Whether it took is seen from the partitions.
            let arguments = ["--rereadpt", "/dev/stdin"];
            let _ = tools.run_on("blockdev", &arguments, held.file());
            partitions().is_empty()
        }
    });
    if are_gone {
        udev::settle(tools);
        return Ok(());
    }
    let names: Vec<String> = partitions().into_iter().map(|node| node.name).collect();
    Err(StepError::Busy {
        path: held.called().to_owned(),
        by: format!("the kernel keeps its partitions {}", names.join(", ")),
    })
}

impl fmt::Display for ClaimedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what Spindle put on {}", self.path.display())
    }
}

impl ClaimedDevice {
    pub(super) fn undo(&self, site: &Site) -> Result<Undone, StepError> {
        let guard = Guard::new(&site.tree, &site.tools);
        let held = match self.find(site) {
            Ok(held) => Arc::new(held),
            Err(Refusal::Missing { reason, .. }) => {
                return Ok(Undone::NotOurs(format!(
                    "the device is not there ({reason})"
                )));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let (state, content) = guard.identify(&held)?;
        if let Some(reason) = self.why_not_ours(site, held.file(), &state, &content) {
            return Ok(Undone::NotOurs(reason));
        }
        if content == DeviceContent::Empty {
            forget_partitions(&held, &site.tree, &site.tools)?;
            return Ok(Undone::WasNot);
        }
        let (taken, content) = guard.take_whatever_it_bears(&held)?;
        if let Some(reason) = self.why_not_ours(site, taken.file(), taken.state(), &content) {
            return Ok(Undone::NotOurs(reason));
        }
        let whole = self.whole(site, taken.state(), &content);
        self.empty(&guard, &taken, site, whole)?;
        drop(taken);
        let (_, left) = guard.identify(&held)?;
        forget_partitions(&held, &site.tree, &site.tools)?;
        Ok(match left {
            DeviceContent::Empty | DeviceContent::Left => Undone::Removed,
            DeviceContent::Signature(_) | DeviceContent::Unknown(_) => Undone::RemovedBut(
                "the data behind its first MiB stay, as nothing says whose they are: to use it again, name it in erase"
                    .to_owned(),
            ),
        })
    }

    /// Empties what was claimed of a device. One that has grown since has others' data behind that: nothing there is
    /// touched. Where others may have written since the run died, only what the stamp proves goes.
    fn empty(
        &self,
        guard: &Guard<'_>,
        taken: &TakenDevice,
        site: &Site,
        whole: Whole,
    ) -> Result<(), StepError> {
        let size_bytes = taken.state().size_bytes;
        let claimed_bytes = self.size_bytes.unwrap_or(size_bytes).min(size_bytes);
        let device = &taken
            .to_write(site.own_node(taken.held()).as_deref())
            .map_err(|error| StepError::system("write to", &self.path, error))?;
        // A header says itself whose it is, wherever it lies.
        zero_header_copies(device, claimed_bytes)
            .map_err(|error| StepError::system("zero headers on", &self.path, error))?;
        if whole == Whole::Unknown {
            return zero_stamped_end(device)
                .map_err(|error| StepError::system("zero the first MiB of", &self.path, error));
        }
        zero_ends_but_stamp(device, claimed_bytes, &self.uuid)
            .map_err(|error| StepError::system("zero the ends of", &self.path, error))?;
        let marked = match claimed_bytes == size_bytes {
            true => {
                wipe_signatures(device, &site.tools)?;
                guard.leave_mark(device, taken.state())
            }
            false => unstamp(device, claimed_bytes),
        };
        marked.map_err(|error| StepError::system("mark", &self.path, error))
    }

    /// The stamp proves that the first MiB was left alone since the run died, and nothing of the rest.
    fn whole(&self, site: &Site, state: &DeviceState, content: &DeviceContent) -> Whole {
        let is_bare = matches!(content, DeviceContent::Unknown(_))
            && !site.emptied.borrow().contains(&state.number);
        match is_bare && !site.is_untouched(state.number, &self.path) {
            true => Whole::Unknown,
            false => Whole::Ours,
        }
    }

    /// The very device that was claimed, whatever its path means now; when it has been away since, or the system was
    /// started again, what its path means, to be judged by what is on it.
    fn find(&self, site: &Site) -> Result<HeldDevice, Refusal> {
        let claimed = Appearance {
            number: self.number,
            sequence: self.sequence,
        };
        site.find(claimed, &self.path)
    }

    /// Whether the partitions are the run's, each with what the run put there or just took away, or with nothing.
    fn has_own_parts(&self, site: &Site, device: &File, number: DeviceNumber) -> bool {
        let found =
            |part: &DevicePartition| signature_within(&site.tools, device, part.range.clone());
        let bears_ours = |part: &DevicePartition, index: usize| {
            let uuid = content_uuid(&self.uuid, index);
            found(part).ok().flatten().is_some_and(|signature| {
                signature.has_uuid(&uuid) || signature.has_uuid(&physical_volume_uuid(&uuid))
            })
        };
        let disk = BlockDeviceNode::of(&site.tree, number);
        let nodes = disk
            .as_ref()
            .map_or_else(Vec::new, BlockDeviceNode::partitions);
        let disk_is_untouched = disk.is_some_and(|disk| site.is_cut_untouched(&disk));
        let is_bare = |part: &DevicePartition, index: usize| {
            let is_left = |node: &BlockDeviceNode| {
                site.emptied.borrow().contains(&node.number) || site.is_part_untouched(node)
            };
            disk_is_untouched
                && nodes.get(index).is_some_and(is_left)
                && matches!(found(part), Ok(None))
        };
        let parts = partitions(&site.tools, device).unwrap_or_default();
        let mut numbered = parts.iter().enumerate();
        !parts.is_empty()
            && numbered.all(|(index, part)| {
                let is_made = part
                    .uuid
                    .eq_ignore_ascii_case(&part_uuid(&self.uuid, index));
                is_made && (bears_ours(part, index) || is_bare(part, index))
            })
    }

    /// The same device, on which no stamp stays: all of it is going to be written.
    pub(crate) fn without_stamp(&self) -> ClaimedDevice {
        ClaimedDevice {
            is_stamped: false,
            ..self.clone()
        }
    }

    /// Why what is on the device now is not the run's.
    fn why_not_ours(
        &self,
        site: &Site,
        device: &File,
        state: &DeviceState,
        content: &DeviceContent,
    ) -> Option<String> {
        let same_hardware = state.has_identity_of(&self.identities);
        // Old kernels do not number the appearances of a device.
        let never_away =
            self.sequence == state.sequence && (self.sequence.is_some() || same_hardware);
        let stayed = site.boot_is_the_same() && self.number == state.number && never_away;
        if !stayed && !same_hardware {
            return Some("it is another device".to_owned());
        }
        let is_untouched = || site.is_untouched(state.number, &self.path);
        match content {
            DeviceContent::Empty | DeviceContent::Left => None,
            DeviceContent::Signature(signature) => {
                let ours = self.file_system_type.as_deref();
                let bears_our_type = ours.is_some() && signature.tag("TYPE") == ours;
                let is_ours = signature.has_uuid(&self.uuid)
                    || signature.has_uuid(&physical_volume_uuid(&self.uuid))
                    || stayed && bears_our_type && is_untouched();
                if !is_ours {
                    return Some(format!("it bears {signature}, which the run did not make"));
                }
                let is_cut = signature.tag("TYPE").is_none() && signature.tag("PTTYPE").is_some();
                (is_cut && !is_untouched() && !self.has_own_parts(site, device, state.number)).then(|| {
                    "it bears partitions that the run did not make, or what it did not put there".to_owned()
                })
            }
            DeviceContent::Unknown(_) => {
                let is_proved = match self.is_stamped && !site.is_of_living_run {
                    true => bears_stamp(device, state.size_bytes, &self.uuid).unwrap_or(false),
                    false => stayed && is_untouched(),
                };
                (!is_proved).then(|| {
                    format!("it bears {content}, and nothing on it says whose that is; to use it again, name it in erase")
                })
            }
        }
    }
}
